"""The ceiling of the load tool, measured once in a run, so that no trial measures the tool instead of the server.

The tool loads a small plain file of the fastest static server there is. On shared cores the two slow each other down,
so the rate says little. The CPU time that the tool takes for a request says more: the ceiling is the rate at
which it would fill one core. A trial's ceiling is that of as many cores as the tool can keep busy with its connections.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench import paths
from bench.measure.load_process import TrialError
from bench.measure.trial import Load, load_once
from bench.project import under_test, workload
from bench.results.folder import write_json
from bench.results.records import Plan
from bench.serve.deployment import Running

STACKS = paths.DEPLOY / "calibration.toml"
SECONDS = 2
# Connections of a closed loop, requests a second of an open one.
LEVELS = {"closed": 16, "open": 1000}

# With keep-alive (True) or without -> requests a second at most with all of one core.
Ceilings = dict[bool, float]


def stacks(path: Path = STACKS) -> list[str]:
    """Stacks to calibrate on, the fastest static server first."""
    return msgspec.toml.decode(path.read_bytes(), type=dict[str, list[str]])["stacks"]


class Calibration:
    """The ceilings of a run's load tool, stored in its folder, so that a resumed run has the same.

    directory  for the files that servers and load tool write during the calibration
    """

    # What the load tool printed, by keep-alive.
    OUTPUT = {True: "reused", False: "new"}

    def __init__(self, raw: Path):
        self.directory = raw / "calibration"
        self._path = raw / "calibration.json"

    def stored(self) -> Ceilings | None:
        """The ceilings measured before, None when there are none."""
        if not self._path.is_file():
            return None
        return dict(msgspec.json.decode(self._path.read_bytes(), type=list[tuple[bool, float]]))

    def measure(self, running: Running, file_name: str, load: Load, plan: Plan) -> Ceilings:
        """Measure and store the ceilings that the workloads of the plan need; `file_name` is the collected file's."""
        kinds = {workload.workload(name).keep_alive for name in plan.workloads}
        found = {}
        for keep_alive in kinds:
            path = f"{under_test.current().names['static_url']}{file_name}"
            job = load.job(running.url, (path,), LEVELS[load.mode], keep_alive, SECONDS)
            folder = self.directory / self.OUTPUT[job.keep_alive]
            folder.mkdir(parents=True, exist_ok=True)
            try:
                figures, seconds = load_once(job, load, folder)
            except TrialError:
                continue
            if seconds > 0 and not figures.failure():
                found[job.keep_alive] = round(figures.requests_total / seconds, 1)
        write_json(self._path, list(found.items()))
        return found


def summary(ceilings: Ceilings) -> str:
    """The ceilings in words."""
    return ", ".join(
        f"{ceiling:,.0f} requests/s {'with' if keep_alive else 'without'} keep-alive"
        for keep_alive, ceiling in ceilings.items()
    )
