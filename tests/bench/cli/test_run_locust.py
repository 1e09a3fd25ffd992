"""`run --inventory --tool locust`: a run with a page of its own, and what is refused."""

from __future__ import annotations

import importlib.util

import pytest

from bench.cli import main
from bench.fleet import host_record, inventory
from bench.fleet.host_record import Deployed
from bench.results.folder import read_run
from tests.bench.fleet.test_session import hosts
from tests.bench.load.load_target import target

missing = importlib.util.find_spec("locust") is None
pytestmark = [pytest.mark.servers, pytest.mark.skipif(missing, reason="package not installed: locust")]
LOCUSTFILE = """
from locust import FastHttpUser, constant_pacing, task

class Reader(FastHttpUser):
    wait_time = constant_pacing(0.02)

    @task
    def page(self):
        self.client.get("/")
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site on hosts that are all this machine, one of which makes load."""
    conf = tmp_path / "conf"
    conf.mkdir()
    monkeypatch.setattr(host_record, "conf", lambda: str(conf))
    every = hosts()
    monkeypatch.setattr(inventory, "read", lambda path: type(every)(every.path, every.hosts[:3]))
    with target() as running:
        found = Deployed(
            "nginx-uwsgi", "none", "unlimited", "http://example.org", running.server_port, True, "", "", 60
        )
        for name in ("rendered", "loaded"):
            (conf / name).write_text("0123456789abcdef\n" + found.line)
        yield running


@pytest.fixture
def locustfile(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(LOCUSTFILE)
    return str(path)


def run(*words: str) -> int:
    return main.main(["run", "--inventory", "hosts.ini", "--tool", "locust", *words])


def test_a_run_of_a_locustfile_has_a_report_of_its_own(site, locustfile, tmp_path, capsys):
    folder = tmp_path / "run"
    asked = ("--locustfile", locustfile, "--level", "1", "--duration", "1")
    assert run(*asked, "--to", str(folder)) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Locust: mine.py for 1 s from load1"
    assert said[1].startswith("As Locust counts: ") and said[2] == f"next: python -m bench report {folder}"
    found = read_run(folder)
    (figures,) = found.locust
    assert (figures.users, figures.hosts, figures.deployed) == (1, {"load1": 1}, "nginx-uwsgi with layer none")
    assert figures.requests[-1].failures == 0 < figures.requests[-1].requests <= site.requests["/"]
    assert found.info.finished_at and found.info.cases == () and found.environment.load_tool.name == "locust"
    assert (folder / figures.raw / "locust_stats.csv").is_file()
    assert main.main(["report", str(folder)]) == 0
    assert "Do not compare these figures" in (folder / "report.html").read_text()
    capsys.readouterr()
    # Once more, into the same run.
    assert run(*asked, "--resume", str(folder)) == 0
    assert [item.raw for item in read_run(folder).locust] == ["raw/locust-1", "raw/locust-2"]


def test_nothing_is_left_of_a_run_without_figures(site, tmp_path, capsys):
    path = tmp_path / "wrong.py"
    path.write_text("import absent")
    assert run("--locustfile", str(path), "--to", str(tmp_path / "run")) == 2
    wanted = f"bench run: {path}: Locust cannot run it: ModuleNotFoundError: No module named 'absent'\n"
    assert capsys.readouterr().err == wanted
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "--tool locust runs a locustfile of yours; add --locustfile FILE"),
        (["--locustfile", "none.py"], "none.py: no such file; give --locustfile a locustfile of yours"),
        (["--resume", "a", "--to", "b"], "--resume a: the figures go into that run; leave out --to"),
        (["--rounds", "2"], "--tool locust runs a locustfile once; leave out --rounds"),
        (["--dry-run"], "--tool locust runs a locustfile once; leave out --dry-run"),
        (
            ["--locustfile", "x", "--level", "1", "--level", "2"],
            "--tool locust runs once; give one --level, the number of users",
        ),
    ],
)
def test_what_a_locustfile_cannot_have_is_one_line(site, capsys, words, reason):
    assert run(*words) == 2
    assert capsys.readouterr().err == f"bench run: {reason}\n"


def test_locust_needs_hosts_and_a_locustfile_needs_locust(site, capsys):
    def refused(*words: str) -> str:
        assert main.main(["run", *words]) == 2
        return capsys.readouterr().err.removeprefix("bench run: ").strip()

    assert refused("--tool", "locust") == "--tool locust runs a locustfile on load hosts; add --inventory FILE"
    assert refused("--locustfile", "x.py") == (
        "--locustfile is for the load hosts of an inventory; leave it out, or add --inventory FILE"
    )
    assert refused("--inventory", "hosts.ini", "--locustfile", "x.py") == (
        "--locustfile is for Locust; add --tool locust"
    )
    assert refused("--inventory", "hosts.ini", "--tool", "wrk") == (
        "--inventory has its own load tool; leave out --tool, or say --tool locust"
    )
