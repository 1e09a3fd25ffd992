"""What stops a command that measures, in one line each: a signal, other programs, a fault, a full disk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bench.errors import DISK_FULL, BenchError, GlobalFault, MachineBusy, is_disk_full
from bench.interrupt import Interrupts, Stopped


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
