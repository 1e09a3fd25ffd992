"""The user of servers, and a Python that the user cannot read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import paths
from bench.cli.list import as_text
from bench.errors import BenchError
from bench.serve.deployment.survey import survey
from bench.serve.machine import identity
from bench.serve.project import opened
from tests.cases import kit

CLOSED = Path("/home/somebody/python")


@pytest.fixture
def root_with_a_closed_python(monkeypatch):
    """As root, with a Python that the servers' user cannot read; `helps` says whether a mount namespace lets it."""

    def make(*, helps: bool) -> None:
        def closed_to(prefix: tuple[str, ...], folder: Path, reads: tuple[Path, ...]) -> Path | None:
            return None if helps and prefix[: len(identity.NAMESPACE)] == identity.NAMESPACE else CLOSED

        monkeypatch.setattr(identity, "_closed_to", closed_to)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        worker = identity.worker.__wrapped__
        for module in (identity, opened):
            monkeypatch.setattr(module, "worker", worker)
        for name in ("BENCH_USER", "SUDO_USER"):
            monkeypatch.delenv(name, raising=False)

    return make


def test_a_folder_that_nobody_can_read_is_named(root_with_a_closed_python):
    root_with_a_closed_python(helps=False)
    with pytest.raises(BenchError, match=rf"cannot read {CLOSED}, .*; let others read it \(chmod -R go\+rX {CLOSED}\)"):
        identity.worker(paths.KIT)


def test_a_python_that_nobody_can_read_is_named(root_with_a_closed_python, monkeypatch):
    root_with_a_closed_python(helps=False)
    monkeypatch.setattr(identity.sys, "base_prefix", str(CLOSED))
    monkeypatch.setattr(identity, "_enclosing", lambda *_: identity.NAMESPACE)
    with pytest.raises(BenchError) as error:
        identity.worker(paths.KIT)
    assert str(error.value) == (
        f"user nobody cannot read {CLOSED}, and no mount namespace can show it here; make the virtual environment "
        "from a Python that others can read, or set BENCH_USER=root"
    )


def test_list_says_so_and_lists_all_the_same(root_with_a_closed_python):
    root_with_a_closed_python(helps=False)
    text = as_text(survey(kit()), width=200)
    assert "; servers cannot run\n" in text
    assert f"note: user nobody cannot read {CLOSED}, and no mount namespace" in text
    assert "nginx-uwsgi" in text


def test_a_python_that_a_namespace_shows_is_used_with_a_notice(root_with_a_closed_python):
    root_with_a_closed_python(helps=True)
    worker = identity.worker(paths.KIT)
    assert worker.notice.startswith(
        f"servers run as nobody, who cannot read {CLOSED}; only this path is bind-mounted for them"
    )
    # A killed instrument ends it, by the signal that it ends best by.
    at = worker.prefix.index("--pdeathsig")
    assert (worker.prefix[at + 1], worker.ending_by("INT").prefix[at + 1]) == ("TERM", "INT")


def test_an_unknown_user_is_named(monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("only root chooses a user")
    monkeypatch.setenv("BENCH_USER", "nobody-of-that-name")
    identity.worker.cache_clear()
    try:
        with pytest.raises(BenchError, match="BENCH_USER=nobody-of-that-name: no such user on this machine"):
            identity.worker()
    finally:
        monkeypatch.undo()
        identity.worker.cache_clear()


def test_started_as_root_a_worker_is_an_ordinary_user_of_the_same_python(tmp_path):
    worker = identity.worker(tmp_path)
    text = "import os, sys; print(os.geteuid() == 0, sys.version.split()[0], sys.base_prefix)"
    done = subprocess.run([*worker.prefix, sys.executable, "-c", text], capture_output=True, text=True, cwd="/")
    assert done.stdout.split() == ["False", sys.version.split()[0], sys.base_prefix], done.stderr


def test_a_worker_sees_its_own_folder_in_a_closed_directory_and_nothing_else_of_it(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root gives servers another user")
    closed = tmp_path / "closed"
    own = closed / "deep" / "own"
    for folder in (own, closed / "other"):
        folder.mkdir(parents=True)
        (folder / "file").write_text("text")
        folder.chmod(0o755)
    (closed / "secret").write_text("text")
    closed.chmod(0o700)
    try:
        worker = identity.worker(own)
    except BenchError as error:
        pytest.skip(str(error))
    text = f"cat {own}/file; echo; ls -R {closed}; grep CapEff /proc/self/status"
    done = subprocess.run([*worker.prefix, "/bin/sh", "-c", text], capture_output=True, text=True, cwd="/")
    assert done.stdout.split()[0] == "text", done.stderr
    assert "secret" not in done.stdout
    assert "other" not in done.stdout
    assert done.stdout.split()[-1] == "0000000000000000"
    # Nothing has changed outside.
    assert (closed / "secret").read_text() == "text"
