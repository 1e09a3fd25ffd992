"""The one error for people: what is wrong, where, and what to do next, in one line."""

from __future__ import annotations

import difflib
import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path


class BenchError(Exception):
    """A problem in one line; the command line prints it and exits with status 2."""


class GlobalFault(BenchError):
    """A problem of the machine that every further case would meet too, such as a missing database."""


class MachineBusy(GlobalFault):
    """Other programs use too much of the machine to measure anything."""


class DeploymentError(BenchError):
    """A deployment did not come up; `log` is the explaining file, or None."""

    def __init__(self, message: str, log: Path | None = None):
        self.message = message
        if log:
            message = f"{message}; see {log}"
        super().__init__(message)
        self.log = log

    def moved(self, folder: Path) -> DeploymentError:
        """The same error with its log now in `folder`."""
        return DeploymentError(self.message, self.log and folder / self.log.name)


def hint(name: str, known: Iterable[str], there_are: str = "there are:", lister: str = "") -> str:
    """The end of a message about an unknown name: the nearest known name, or all known names.

    lister  the command that prints the names, if too many for a line
    """
    known = list(known)
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean {near[0]}?"
    if lister:
        return f"`{lister}` prints all"
    return f"{there_are} {', '.join(known)}"


DISK_FULL = os.strerror(errno.ENOSPC)


def is_disk_full(error: OSError) -> bool:
    """True if a file found no room; shutil.Error has its reasons as text only."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT) or (isinstance(error, shutil.Error) and DISK_FULL in str(error))
