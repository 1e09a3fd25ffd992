"""What each visitor of an open loop saw: its log of requests, read from what the load tool printed."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure.load.base import LoadError, last_object


@dataclass(frozen=True)
class Visit:
    """One request. Times are seconds of the system's monotonic clock, which all processes share.

    due      when it had to leave by the schedule
    left     when it left, the last time
    end      when its response was whole, or it failed
    page     which path of the job it requested
    kept     whether a connection carried it that had carried another before (keep-alive)
    again    how often a keep-alive connection was closed under it before the first byte, and it was sent once more
    status   of the response, 0 when it failed
    failure  connect, read (broken), timeout, dropped (no connection was free), or empty
    size     bytes of the body
    said     what the page said: the groups of the job's mark, empty if it is not in the body
    """

    due: float
    left: float
    end: float
    page: int
    kept: bool
    again: int
    status: int
    failure: str
    size: int
    said: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """True if it was answered with 200."""
        return self.status == 200


def visits(stdout: str) -> list[Visit]:
    """The log that the load tool printed, in the order in which requests were due. Raises LoadError without one."""
    try:
        found = [Visit(*[*fields[:-1], tuple(fields[-1])]) for fields in last_object(stdout)["visits"]]
    except (LookupError, ValueError, TypeError):
        raise LoadError("the load tool printed no log of its visits") from None
    return sorted(found, key=lambda visit: visit.due)
