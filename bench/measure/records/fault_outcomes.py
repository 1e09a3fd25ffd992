"""Effects of faults on visitors: ``faults.jsonl`` in the folder of a run, one fault a line.

Each field is declared once, with its type and a sentence on its meaning. None means "not measured".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from bench.means import means

# Group of faults -> the subject of its faults, in order of running and printing.
GROUPS = {
    "replaced": "a new configuration, version, certificate or worker takes the place of the old one",
    "killed": "a process dies by SIGKILL, and is started again as the units do",
    "hung": "a process or the database accepts requests and responds to none",
    "starved": "memory or room on a disk runs out",
    "abused": "slow clients and malformed requests beside ordinary visitors",
}


@dataclass(frozen=True)
class FaultOutcome:
    """Effects of one fault on visitors."""

    fault_id: Annotated[str, means("Stack, layer, size, database, fault and round joined with ~.")]
    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    fault: Annotated[str, means("Name of the fault.")]
    group: Annotated[str, means("Group of the fault: replaced, killed, hung, starved, abused.")]
    round: Annotated[int, means("Round, counted from 1.")]
    started_at: Annotated[str, means("When it was made, ISO 8601 with offset.")]
    status: Annotated[
        Literal["ok", "failed", "discarded", "skipped"],
        means(
            "ok: as expected, or a known limitation; failed: not; discarded: not to be trusted; skipped: not possible."
        ),
    ]
    reason: Annotated[str | None, means("Reason why it failed, is discarded or was skipped; null when it is ok.")] = (
        None
    )
    known_limitation: Annotated[
        str | None, means("The reason, declared by stack, server or layer, for an unexpected outcome; or null.")
    ] = None
    operator: Annotated[
        str | None, means("Work of the operator: nothing, reload, restart with N requests refused, ...")
    ] = None
    capacity_per_second: Annotated[
        float | None, means("Requests a second that the deployment responded to in a closed loop right before.")
    ] = None
    rate_per_second: Annotated[float | None, means("Requests a second that the visitors made.")] = None
    watched_s: Annotated[float | None, means("Seconds from the fault to the end of the visits.")] = None
    requests_new: Annotated[int | None, means("Requests since the fault that opened a connection.")] = None
    requests_kept: Annotated[int | None, means("Requests since the fault on a keep-alive connection.")] = None
    failed_new: Annotated[
        int | None,
        means("Requests without a right response (refused, broken, no response in time, not 200) on a new one."),
    ] = None
    failed_kept: Annotated[int | None, means("Requests without a right response on a keep-alive connection.")] = None
    retried: Annotated[
        int | None,
        means("Requests whose keep-alive connection closed before the first byte: browsers send them once more."),
    ] = None
    failures: Annotated[
        dict[str, int] | None,
        means("Kind of failure (connect, read, timeout, dropped or a status) -> requests since the fault."),
    ] = None
    longest_gap_s: Annotated[float | None, means("Longest time since the fault without a right page.")] = None
    recovery_s: Annotated[
        float | None,
        means("From the end of the cause to the first right response after the last failure; null: none came."),
    ] = None
    slowest_s: Annotated[float | None, means("Longest time that a visitor waited for a right response.")] = None
    wrong: Annotated[
        int | None, means("Responses with status 200 that were another account's, cut, or of two versions at once.")
    ] = None
    stale: Annotated[
        int | None, means("Pages older than the time to live, or of the old version after the deploy was complete.")
    ] = None
    stale_s: Annotated[float | None, means("For how long after the deploy the old version came.")] = None
    mixed_s: Annotated[
        float | None, means("From the first response of the new version to the last of the old; null without a deploy.")
    ] = None
    missing_static: Annotated[
        int | None, means("Static files of pages that were missing, right after the page or at the end.")
    ] = None
    figures: Annotated[
        dict[str, float | None] | None, means("Figure of this fault only -> its value; the unit is in the name.")
    ] = None
    example: Annotated[str | None, means("The first wrong or stale response, in words.")] = None
    request: Annotated[
        str | None,
        means("The first request without a right response, as a curl command for `up --port 8000`; or null."),
    ] = None
    servers: Annotated[dict[str, str] | None, means("Server -> the action on it, or its fate.")] = None
    other_cpu_share: Annotated[float | None, means("Share of the machine's CPU time that other processes took.")] = None
    late_p99_ms: Annotated[
        float | None, means("99th percentile of the delay with which requests of the visitors left.")
    ] = None

    @property
    def key(self) -> str:
        """The key shared by records of the same item."""
        return self.fault_id

    @property
    def is_disturbed(self) -> bool:
        """True if the fault was discarded for interference of other processes, the only reason for a repetition."""
        return self.status == "discarded"

    @property
    def failed(self) -> int | None:
        """All requests without a right response."""
        if self.failed_new is None:
            return None
        return self.failed_new + (self.failed_kept or 0)

    @property
    def word(self) -> str:
        """`failed`, `discarded`, `skipped`, `known limitation` or `passed`."""
        if self.status != "ok":
            return self.status
        if self.known_limitation:
            return "known limitation"
        return "passed"
