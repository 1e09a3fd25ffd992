"""`benchapp faults` on real servers: reloaded, killed, hung and abused under visitors."""

from __future__ import annotations

import json
import os
import signal
import stat

import pytest

from bench import paths
from bench.serve.deployment import deployment
from bench.serve.machine import supervise
from tests.cases import resolved
from tests.deploy.running import FEW, command, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers

QUICK = ("--set", "processes=2", "--guard", "interference=off", "--json")


@pytest.mark.long
def test_a_new_version_and_a_killed_worker_under_visitors(site_url, tmp_path):
    runnable("nginx-gunicorn")
    words = ["faults", "nginx-gunicorn", "--fault", "application", "--fault", "worker", *QUICK]
    done = command("-m", "bench", *words, "--database", site_url, "--output", str(tmp_path / "faults"), timeout_s=300)
    # How many first, and a line a fault; what the machine is waited for, or lacks, may stand between.
    lines = done.stderr.splitlines()
    assert lines[0].startswith("2 faults to make, 1 deployment, in about "), done.stderr
    assert len([line for line in lines if line.startswith("nginx-gunicorn with layer none, ")]) == 2, done.stderr
    deploy, worker = json.loads(done.stdout)
    for outcome in (deploy, worker):
        assert outcome["requests_new"] and outcome["requests_kept"]
        assert (outcome["wrong"], outcome["failed_new"] + outcome["failed_kept"] <= 1) == (0, True), outcome
    assert (deploy["operator"], deploy["stale"], deploy["missing_static"]) == ("reload", 0, 0)
    # Both versions were seen.
    assert deploy["mixed_s"] is not None
    assert (worker["operator"], done.returncode) == ("nothing", 0)


@pytest.mark.long
def test_what_hangs_goes_on_and_slow_clients_stop_what_they_are_declared_to(site_url, tmp_path):
    names = ("application-server-hangs", "write-lock", "slow-bodies")
    words = [word for name in names for word in ("--fault", name)]
    to = str(tmp_path / "faults")
    # A write waits 1 s for the lock, not 2: where one worker has all writers, the health page waits for two of them.
    words += ["--env", "BENCHAPP_DATABASE_TIMEOUT=1"]
    done = command("-m", "bench", "faults", "gunicorn", *words, *QUICK, "--database", site_url, "--output", to)
    hangs, lock, slow = json.loads(done.stdout)
    assert hangs["longest_gap_s"] > 2 and hangs["recovery_s"] < 8, hangs
    assert (lock["failed_new"] + lock["failed_kept"], lock["figures"]["health_page_s"] < 4) == (0, True), lock
    # One for each of its 8 threads; 5 are not enough.
    assert (slow["figures"]["stops_at"], slow["word"]) == (20, "known limitation"), slow
    report = command("-m", "bench", "report", to)
    assert report.stdout.splitlines()[0] == f"{to}/report.html"


@pytest.mark.matrix
@pytest.mark.parametrize("stack", sorted(path.name for path in (paths.DEPLOY / "examples").iterdir() if path.is_dir()))
def test_a_deploy_during_a_slow_request_loses_none(stack, site_url, tmp_path):
    runnable(stack)
    words = ["faults", stack, "--fault", "deploy-under-slow-requests", *QUICK, "--database", site_url]
    done = command("-m", "bench", *words, "--output", str(tmp_path / "faults"), timeout_s=300)
    (deploy,) = json.loads(done.stdout)
    assert (deploy["failed_new"], deploy["failed_kept"], deploy["wrong"], deploy["stale"]) == (0, 0, 0, 0), deploy
    assert deploy["operator"] == "reload", deploy


def test_the_socket_of_granian_is_for_its_group_only_and_no_hindrance_after_a_kill(site_url):
    runnable("nginx-granian")
    with deployment.deployed(resolved("nginx-granian", database_url=site_url, changes=FEW)) as running:
        assert stat.S_IMODE((running.layout.sockets / "granian.sock").stat().st_mode) == 0o660
        master = running.pids["granian"]
        os.kill(master, signal.SIGKILL)
        until(running.died, "its death")
        # As `up --restart` and systemd do: its workers live on otherwise.
        supervise.kill_session(master)
        running.start_again("granian")
        until(running.is_healthy, "the site, again")
