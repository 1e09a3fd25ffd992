"""Ends of a command that measures, in one line each: a signal, other programs, a fault, a full disk."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench.errors import DISK_FULL, BenchError, GlobalFault, MachineBusy, is_disk_full
from bench.interrupt import Interrupts, Stopped
from bench.measure.records.folder import resume_command
from bench.measure.run.session import Journal


def run_until_stopped(journal: Journal, go: Callable[[Interrupts], int], also: str = "", busy: str = "") -> int:
    """Run `go` with the run's folder locked; returns its exit status, or 130 or 143 after a signal.

    Raises BenchError for any other stop, with the command to resume.

    also  more words of the resuming command
    busy  more advice if other programs kept the machine busy
    """
    folder = journal.folder
    then = f"resume with: {resume_command(folder.directory, journal.info)}{also}"
    with folder.locked(), Interrupts() as interrupts:
        try:
            return go(interrupts)
        except Stopped as signal:
            print(f"benchapp {journal.info.plan.command}: {signal.name}; {then}", file=sys.stderr)
            return signal.exit_status
        except MachineBusy as fault:
            raise BenchError(f"stopped: {fault} and {then}{busy}") from None
        except GlobalFault as fault:
            raise BenchError(f"stopped: {fault}; fix it and {then}") from None
        except OSError as error:
            if not is_disk_full(error):
                raise
            raise BenchError(f"stopped: {folder.directory}: {DISK_FULL}; make room and {then}") from None
