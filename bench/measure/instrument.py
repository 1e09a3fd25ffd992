"""The rest of the instrument, as a run uses it: compose, serve, verify, and query the project."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bench.catalog import catalog, compose, survey
from bench.catalog.compose import Composition
from bench.errors import BenchError, GlobalFault
from bench.machine import pin
from bench.machine.identity import worker
from bench.measure.interference import MachineLoad, machine_load
from bench.measure.queries import QueryCounter
from bench.project import commands
from bench.results.records import Case, Outcome
from bench.serve import database, deployment
from bench.serve.deployment import Running
from bench.verify.suite import Progress, Selection
from bench.verify.verifier import Verifier


class Instrument:
    """What a run needs of the other packages; tests replace it by a quick fake.

    thorough  whether deployments are verified with the checks that take seconds too
    """

    def __init__(self, thorough: bool = False) -> None:
        self._verifier = Verifier(Selection(thorough=thorough))
        self._queries = QueryCounter()

    def compose(
        self, stack: str, layer: str, changes: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None
    ) -> Composition | compose.CannotRun:
        """The stack with the layer, or the reason; raises BenchError for a name that does not exist."""
        return compose.compose(stack, layer, changes, env)

    def database_alone(self, asked: str | None) -> AbstractContextManager[None]:
        """The database of a run for this process alone, as long as the context lasts."""
        return database.in_use(asked, alone=True)

    def machine_load(self) -> MachineLoad:
        """What other processes take of the machine now; it takes a second to see."""
        return machine_load()

    def deployed(
        self,
        composition: Composition,
        *,
        database: str | None,
        size: str,
        run_dir: Path,
        progress: Callable[[str], None],
    ) -> AbstractContextManager[Running]:
        """The composition, up as long as the context lasts; `progress` is called with each step of bringing it up."""
        return deployment.deployed(composition, database=database, size=size, run_dir=run_dir, progress=progress)

    def verify(self, running: Running, progress: Progress | None = None) -> list[Outcome]:
        """Every check of the suite; those left out are named as such."""
        return self._verifier.verify(running, progress)

    def queries_per_request(self, running: Running, case: Case, addresses: tuple[str, ...]) -> float | None:
        """Database queries of a request to these addresses, on average; None when they cannot be counted."""
        return self._queries.per_request(running, case.stack, case.layer, addresses)

    def static_names(self) -> dict[str, str]:
        """Collected names of the static files by their plain ones."""
        return commands.static_names()

    def rows(self, running: Running) -> tuple[int | None, int | None]:
        """How many rows the project has, and from which seed they were made, None when that is not known."""
        return commands.rows(running.env["DATABASE_URL"], worker())

    def settle(self, pinned: pin.Cores | None, running: Running) -> None:
        """Move the processes to their cores: services to theirs, the others to the stack's."""
        services = catalog.read().services
        for name, pid in running.pids.items():
            pin.move(pinned, pin.SERVICES if name in services else pin.STACK, [pid])

    def check_database(self, asked: str | None) -> None:
        """Raise GlobalFault when a database that the user named cannot be used; others are checked later."""
        chosen = database.parse(asked)
        if not chosen.made:
            try:
                if (path := database.sqlite_path(chosen.url)) is not None:
                    database.check_sqlite(path, worker())
                commands.check(chosen.url, {}, worker(), again=True)
            except BenchError as error:
                raise GlobalFault(f"the database cannot be used: {error}") from None

    def programs(self, compositions: Iterable[Composition], database_label: str) -> dict[str, str]:
        """Versions of the servers and services of these compositions, and of the database, by name."""
        found = survey.versions(compositions, [database_label])
        if database_label == database.SQLITE:
            # A part of the very Python that runs the site.
            found[database.SQLITE] = sqlite3.sqlite_version
        return found
