"""The records of a run besides its trials: notes, configurations, rows, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import paths
from bench.errors import GlobalFault
from bench.machine import facts
from bench.records.folder import Folder, read_addresses
from bench.records.records import Case, Dropped, Ended, Environment, RunInfo

# Share of the rows that may have come or gone since a run began: a killed check leaves a few behind.
MAX_CHANGED_ROWS = 0.01


class Journal:
    """The run.json, environment.json and workloads.json of a run under way.

    ended_by  why a run until decided makes no more rounds
    """

    def __init__(self, folder: Folder, info: RunInfo, environment: Environment):
        self.folder = folder
        self.info = info
        self.environment = environment
        self.addresses = read_addresses(folder.directory)
        self.ended_by: Ended | None = None
        self._rows_checked = False

    def finish(self, when: str) -> None:
        """The run is complete."""
        self._write_info(finished_at=when, ended_by=self.ended_by)

    def drop(self, dropped: tuple[Dropped, ...]) -> int:
        """Store which cases a run until decided has dropped so far; returns how many of them are new."""
        new = len(set(dropped) - set(self.info.dropped))
        if dropped != self.info.dropped:
            self._write_info(dropped=dropped)
        return new

    def case(self, case: Case) -> None:
        """Store one more case: the settings that are tried next follow from those before."""
        if case.case_id not in [known.case_id for known in self.info.cases]:
            self._write_info(cases=(*self.info.cases, case))

    def note(self, notes: Iterable[str]) -> list[str]:
        """Store the notes of a deployment about this machine, those about the stack are its case's; the new ones."""
        known = {*self.info.notes, *(note for case in self.info.cases for note in case.notes)}
        if new := [note for note in notes if note not in known]:
            self._write_info(notes=(*self.info.notes, *new))
        return new

    def configs(self, deployment: str, directory: Path) -> None:
        """Store the hashes of the files rendered for a deployment into `directory`, once in a run."""
        known = self.environment.configs or {}
        if any(name.startswith(f"{deployment}/") for name in known):
            return
        own = {str(directory.absolute()): "RUN", str(paths.VENV): "VENV", str(paths.PROJECT): "PROJECT"}
        hashes = facts.config_hashes(directory / "conf", own)
        found = {**known, **{f"{deployment}/{name}": digest for name, digest in hashes.items()}}
        self._write_environment(configs=found)

    def rows(self, count: Callable[[], tuple[int | None, int | None]]) -> None:
        """Count the rows of the site and learn their seed, once since the run began or was resumed, and store them.

        Raises GlobalFault when a run began with others.
        """
        if self._rows_checked:
            return
        self._rows_checked = True
        total, seed = count()
        if total is None:
            return
        before, seed_before = self.info.plan.rows_total, self.environment.rows_seed
        if before is None:
            self._write_environment(rows_seed=seed, rows_total=total)
            self._write_info(plan=replace(self.info.plan, rows_total=total))
        elif seed != seed_before or abs(total - before) > MAX_CHANGED_ROWS * before:
            raise GlobalFault(
                f"this is another database: {total:,} rows from seed {seed}, and the run began with {before:,} from "
                f"seed {seed_before}"
            )

    def workload(self, name: str, addresses: tuple[str, ...]) -> None:
        """Store the addresses of a workload, the same for every deployment."""
        self.addresses[name] = addresses
        self.folder.write_addresses(self.addresses)

    def _write_info(self, **changes: Any) -> None:
        self.info = replace(self.info, **changes)
        self.folder.write(self.info)

    def _write_environment(self, **changes: Any) -> None:
        self.environment = replace(self.environment, **changes)
        self.folder.write(self.environment)
