"""What stops a command that measures, in one line each: a signal, other programs, a fault, a full disk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bench.errors import DISK_FULL, BenchError, GlobalFault, MachineBusy, is_disk_full
from bench.interrupt import Interrupts, Stopped
from bench.measure.session import Journal
from bench.records.folder import resume_command


def until_stopped(
    command: str, folder: Path, go: Callable[[Interrupts], int], then: str, *, stopped: str = "", busy: str = ""
) -> int:
    """The exit status of `go`, or 130 or 143 when a signal stopped it. Raises BenchError for what else stops it.

    then     what to do when the fault is gone, such as `resume with: ...`
    stopped  the same after a signal, `then` when empty
    busy     the same when other programs kept the machine busy, `then` when empty
    """
    with Interrupts() as interrupts:
        try:
            return go(interrupts)
        except Stopped as signal:
            print(f"bench {command}: {signal.name}; {stopped or then}", file=sys.stderr)
            return signal.exit_status
        except MachineBusy as fault:
            raise BenchError(f"stopped: {fault} and {busy or then}") from None
        except GlobalFault as fault:
            raise BenchError(f"stopped: {fault}; fix it and {then}") from None
        except OSError as error:
            if not is_disk_full(error):
                raise
            raise BenchError(f"stopped: {folder}: {DISK_FULL}; make room and {then}") from None


def made(command: str, journal: Journal, go: Callable[[Interrupts], int], also: str = "", busy: str = "") -> int:
    """`until_stopped` for the folder of a run, which is this process's alone meanwhile and can be resumed.

    also  more words of the command that resumes it
    busy  what else to do when other programs kept the machine busy
    """
    folder = journal.folder
    then = f"resume with: {resume_command(folder.directory, journal.info)}{also}"
    with folder.locked():
        return until_stopped(command, folder.directory, go, then, busy=busy and f"{then}, {busy}")
