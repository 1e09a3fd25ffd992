"""Requests seen by visitors of an open loop: the log in the load tool's output."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure.load.base import LoadError, last_object


@dataclass(frozen=True)
class Visit:
    """One request. Times are seconds of the system's monotonic clock, shared by all processes.

    due         scheduled time
    left        time of the last attempt
    end         time of the complete response or of the failure
    page        index of the requested path
    keep_alive  whether the connection had carried another request before (keep-alive)
    again       number of retries after a keep-alive connection was closed before the first byte
    status      of the response, 0 after a failure
    failure     connect, read (broken), timeout, dropped (no connection was free), or empty
    size        bytes of the body
    mark        the groups of the mark of the job in the page; empty without the mark
    """

    due: float
    left: float
    end: float
    page: int
    keep_alive: bool
    again: int
    status: int
    failure: str
    size: int
    mark: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """True if the response had status 200."""
        return self.status == 200


def visits(stdout: str) -> list[Visit]:
    """The log in the load tool's output, in the order of due times. Raises LoadError without a log."""
    try:
        log = [Visit(*[*fields[:-1], tuple(fields[-1])]) for fields in last_object(stdout)["visits"]]
    except (LookupError, ValueError, TypeError):
        raise LoadError("the load tool printed no log of its visits") from None
    return sorted(log, key=lambda visit: visit.due)
