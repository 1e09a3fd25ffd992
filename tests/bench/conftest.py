"""The command line in this process: a second faster than in another."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bench import paths
from bench.cli import main
from bench.serve.deployment import database
from bench.serve.machine.small_disk import CannotMount, SmallDisk, mounted
from tests import once
from tests.bench.verify.mutant import Mutant, MutantSite, make, prepared, serving

Command = Callable[..., CompletedProcess]


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `python -m bench` with these words in the checkout; gives its status and what it printed."""
    monkeypatch.chdir(paths.KIT)

    def run(*words: str) -> CompletedProcess:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        capsys.readouterr()
        try:
            status = main.main([str(word) for word in words])
        except SystemExit as stop:
            status = stop.code
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return CompletedProcess(words, status, *capsys.readouterr())

    return run


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A separate disk that a test can fill."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        with mounted(folder) as disk:
            yield disk
    except CannotMount as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def locks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The locks of a test's own databases go with its directory; they would stay in `var`."""
    monkeypatch.setattr(database, "locks", lambda: tmp_path_factory.getbasetemp() / "locks")


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the kit's site: its database and static files."""
    return once.shared(tmp_path_factory, "mutant", make)


@pytest.fixture(scope="session")
def mutant(site_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mutant]:
    """The site over raw sockets, right or with a mutation, on a copy that no other process of the tests writes to."""
    with serving(site_folder, tmp_path_factory.mktemp("mutant")) as mutant:
        yield mutant


@pytest.fixture(scope="session")
def site(mutant: Mutant) -> MutantSite:
    """The site as its own commands render it."""
    return replace(prepared(mutant.site_folder), on_write=lambda: mutant.say(purge=True))
