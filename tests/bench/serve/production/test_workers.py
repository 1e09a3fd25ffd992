"""Workers and jobs of a project in production: units and timers of a host, and what a deploy does. The containers are
in test_renders.py.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from bench.serve.production import one_host, several_hosts
from bench.serve.project import background
from bench.serve.project.description import Job, Worker
from bench.serve.project.opened import UnderTest
from tests.bench.serve.production.test_several_hosts import hosts
from tests.cases import kit, production
from tests.skips import needs

WORKERS = {
    "celery": Worker("celery -A shop worker -n 100%@$h"),
    "beat": Worker("celery -A shop beat", single=True),
}
JOBS = {"digest": Job("manage.py digest --all", "04:30"), "often": Job("python tools/often.py", "*:0/15")}
PYTHON = "/srv/benchapp/current/.venv/bin/python"


@pytest.fixture(scope="module")
def project() -> UnderTest:
    """The kit's site with workers and jobs."""
    description = structs.replace(kit().description, workers=WORKERS, jobs=JOBS)
    return replace(kit(), project=structs.replace(kit().project, description=description))


@pytest.fixture(scope="module")
def host(project, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("host") / "out"
    one_host.write(production("nginx-gunicorn", project=project), folder)
    return folder


def unit(path: Path) -> dict[str, list[str]]:
    """The entries of all sections of a unit: of each name all values."""
    entries: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            entries.setdefault(name, []).append(value)
    return entries


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("manage.py db_worker --batch", [PYTHON, "manage.py", "db_worker", "--batch", "--settings=config.settings"]),
        ("python manage.py x", [PYTHON, "manage.py", "x", "--settings=config.settings"]),
        ("python3 -m shop 'a b'", [PYTHON, "-m", "shop", "a b"]),
        ("celery -A shop worker", ["/srv/benchapp/current/.venv/bin/celery", "-A", "shop", "worker"]),
        ("/usr/bin/rclone sync", ["/usr/bin/rclone", "sync"]),
    ],
)
def test_a_command_is_run_by_the_packages_of_the_release(command, words):
    assert background.on_host(kit(), command, "/srv/benchapp/current/.venv") == words


def test_a_worker_has_the_sandbox_and_the_environment_of_the_application(host):
    worker, application = (unit(host / f"systemd/benchapp-{name}.service") for name in ("worker-celery", "gunicorn"))
    # Nothing of it is expanded by systemd.
    assert worker["ExecStart"] == ["/srv/benchapp/current/.venv/bin/celery -A shop worker -n '100%%@$$h'"]
    assert (worker["TimeoutStopSec"], application["TimeoutStopSec"]) == (["600"], ["35"])
    own = {"Description", "ExecStart", "TimeoutStopSec", "Type", "After", "ExecStartPost", "RuntimeDirectory"}
    own |= {"Requires", "ExecReload", "Environment"}
    same = application.keys() - own
    assert {"ProtectSystem", "User", "EnvironmentFile", "SystemCallFilter", "PartOf", "Restart"} <= same
    assert {name: worker[name] for name in same} == {name: application[name] for name in same}
    assert "benchapp-worker-beat.service" in (host / "systemd/benchapp.target").read_text()


def test_a_job_runs_at_its_time(host):
    digest, often = (unit(host / f"timers/benchapp-job-{name}.timer") for name in JOBS)
    assert (digest["OnCalendar"], often["OnCalendar"]) == (["04:30"], ["*:0/15"])
    assert "RandomizedDelaySec" not in digest
    assert unit(host / "timers/benchapp-clearsessions.timer")["RandomizedDelaySec"] == ["4h"]
    job = unit(host / "timers/benchapp-job-digest.service")
    assert job["ExecStart"] == [f"{PYTHON} manage.py digest --all --settings=config.settings"]
    assert job["WorkingDirectory"] == ["/srv/benchapp/current"]
    needs("systemd-analyze")
    for when in ("04:30", "*:0/15", "hourly", "daily", "weekly", "monthly"):
        done = subprocess.run(["systemd-analyze", "calendar", when], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_kits_own_job_goes_where_the_project_has_it(project, tmp_path):
    description = structs.replace(project.description, jobs={"sessions": Job("manage.py clearsessions", "hourly")})
    own = replace(project, project=structs.replace(project.project, description=description))
    one_host.write(production("gunicorn", project=own), tmp_path / "out")
    names = {path.stem for path in (tmp_path / "out/timers").iterdir()}
    assert names == {"benchapp-backup", "benchapp-job-sessions"}


def serve(script: str, folder: Path, restarts: str) -> tuple[int, list[str]]:
    """The calls of systemctl by `serve` of a deploy script, in order, and its exit status."""
    stubs = (
        'systemctl() { case $* in *NRestarts*) echo "$RESTARTS";; is-active*) ;; *) echo "$*" >> commands;; esac; }\n'
        "sleep() { :; }; curl() { :; }; journalctl() { echo ImportError; }; timeout() { :; }\n"
        'link() { echo "link" >> commands; }; prepare_servers() { :; }; current=/nonexistent\n'
    )
    words = ["bash", "-uc", f"{script}\n{stubs}\nserve new"]
    done = subprocess.run(words, cwd=folder, env={"PATH": "/usr/bin:/bin", "RESTARTS": restarts})
    return done.returncode, (folder / "commands").read_text().splitlines()


@pytest.mark.parametrize("stack", ["nginx-gunicorn", "waitress"])
def test_workers_end_before_a_release_serves_and_start_after_it(stack, project, tmp_path):
    one_host.write(production(stack, project=project), tmp_path / "out")
    script = (tmp_path / "out/benchapp-deploy").read_text().partition("\n[ $# -gt 0 ]")[0]
    status, steps = serve(script, tmp_path, "0")
    assert status == 0
    assert steps[:2] == ["stop benchapp-worker-celery benchapp-worker-beat", "link"]
    assert "benchapp-worker-celery.service benchapp-worker-beat.service" in steps[-1]
    assert steps[-1].startswith("start benchapp.target ")
    # None of them starts earlier, nor ends again.
    assert not any("worker" in line for line in steps[2:-1])


def test_a_release_whose_worker_ends_is_no_release(project, tmp_path):
    one_host.write(production("nginx-gunicorn", project=project), tmp_path / "out")
    script = (tmp_path / "out/benchapp-deploy").read_text().partition("\n[ $# -gt 0 ]")[0]
    assert serve(script, tmp_path, "2")[0] != 0


def test_of_several_hosts_each_has_the_workers_and_one_the_jobs(project, tmp_path):
    groups = {"front1": ("front",), "web1": ("web",), "web2": ("web",), "db1": ("db",)}
    several_hosts.write(production("nginx-gunicorn", project=project), hosts(groups), tmp_path / "out")
    by_host = {}
    for name in groups:
        units = (tmp_path / "out/hosts" / name / "etc/systemd/system").glob("benchapp-[wj]*-*")
        by_host[name] = {path.name.partition("benchapp-")[2] for path in units}
    jobs = {f"job-{name}.{kind}" for name in JOBS for kind in ("service", "timer")}
    assert by_host["web1"] == {"worker-celery.service", "worker-beat.service"} | jobs
    assert by_host["web2"] == {"worker-celery.service"}
    assert (by_host["front1"], by_host["db1"]) == (set(), set())


def test_a_worker_that_is_added_stops_no_server(host, tmp_path):
    """Servers of another stack would be stopped before those of this one start."""
    one_host.write(production("nginx-gunicorn"), tmp_path / "without")
    one_host.write(production("nginx-granian"), tmp_path / "other")
    servers = (
        "servers() {" + (host / "benchapp-install").read_text().partition("\nservers() {")[2].partition("\n}\n")[0]
    )
    by_folder = {}
    for folder in (host, tmp_path / "without", tmp_path / "other"):
        words = ["sh", "-euc", f"{servers}\n}}\nservers {folder}/systemd"]
        by_folder[folder] = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert by_folder[host] == by_folder[tmp_path / "without"] != by_folder[tmp_path / "other"]
