"""The rest of the instrument, as a run uses it: resolve, serve, verify, and query the project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bench.catalog import catalog
from bench.errors import BenchError, GlobalFault
from bench.machine import pin
from bench.measure.interference import MachineLoad, machine_load
from bench.measure.queries import QueryCounter
from bench.project import commands
from bench.project.under_test import UnderTest
from bench.records import records
from bench.records.records import Outcome
from bench.serve import database, deployment, survey
from bench.serve.case import CannotRun, Case, resolve
from bench.serve.database import Database
from bench.serve.deployment import Running
from bench.verify.suite import Progress, Selection
from bench.verify.verifier import Verifier


class Instrument:
    """What a run needs of the other packages; tests replace it by a quick fake.

    thorough  whether deployments are verified with the checks that take seconds too
    """

    def __init__(self, project: UnderTest, thorough: bool = False) -> None:
        self.project = project
        self._verifier = Verifier(project, Selection(thorough=thorough))
        self._queries = QueryCounter()

    def resolve(
        self, stack: str, layer: str, rows: Database, changes: Mapping[str, Any], env: Mapping[str, str]
    ) -> Case | CannotRun:
        """The case without limits, or the reason; raises BenchError for a name that does not exist."""
        return resolve(self.project, stack, layer, database=rows, changes=changes, env=env)

    def database_alone(self, rows: Database) -> AbstractContextManager[None]:
        """The database of a run for this process alone, as long as the context lasts."""
        return database.in_use(self.project, rows, alone=True)

    def machine_load(self) -> MachineLoad:
        """What other processes take of the machine now; it takes a second to see."""
        return machine_load()

    def deployed(
        self, case: Case, *, run_dir: Path, progress: Callable[[str], None]
    ) -> AbstractContextManager[Running]:
        """The case, up as long as the context lasts; `progress` is called with each step of bringing it up."""
        return deployment.deployed(case, run_dir=run_dir, progress=progress)

    def verify(self, running: Running, progress: Progress | None = None) -> list[Outcome]:
        """Every check of the suite; those left out are named as such."""
        return self._verifier.verify(running, progress)

    def queries_per_request(self, running: Running, case: records.Case, addresses: tuple[str, ...]) -> float | None:
        """Database queries of a request to these addresses, on average; None when they cannot be counted."""
        return self._queries.per_request(running, case.stack, case.layer, addresses)

    def static_names(self) -> dict[str, str]:
        """Collected names of the static files by their plain ones."""
        return commands.static_names(self.project)

    def rows(self, running: Running) -> tuple[int | None, int | None]:
        """How many rows the project has, and from which seed they were made, None when that is not known."""
        return commands.rows(self.project, running.env["DATABASE_URL"], self.project.worker())

    def settle(self, pinned: pin.Cores | None, running: Running) -> None:
        """Move the processes to their cores: services to theirs, the others to the stack's."""
        services = catalog.read().services
        for name, pid in running.pids.items():
            pin.move(pinned, pin.SERVICES if name in services else pin.STACK, [pid])

    def check_database(self, rows: Database) -> None:
        """Raise GlobalFault when a database that the user named cannot be used; others are checked later."""
        project = self.project
        if not rows.made:
            try:
                if (path := database.sqlite_path(project, rows.url)) is not None:
                    database.check_sqlite(project, path, project.worker())
                commands.check(project, rows.url, {}, project.worker(), again=True)
            except BenchError as error:
                raise GlobalFault(f"the database cannot be used: {error}") from None

    def programs(self, cases: Iterable[Case], database_label: str) -> dict[str, str]:
        """Versions of the servers and services of these cases, and of the database, by name."""
        return survey.versions(cases, database_label)
