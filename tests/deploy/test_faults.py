"""`bench faults` on real servers: a reload and a killed worker, under visitors."""

from __future__ import annotations

import json

import pytest

from tests.deploy.running import command, runnable

pytestmark = pytest.mark.servers


def test_a_new_version_and_a_killed_worker_under_visitors(site_url, tmp_path):
    runnable("nginx-gunicorn")
    words = ["faults", "nginx-gunicorn", "--fault", "application", "--fault", "worker", "--no-guards", "--json"]
    done = command("-m", "bench", *words, "--database", site_url, "--to", str(tmp_path / "faults"), timeout_s=300)
    assert done.stderr.count("\n") == 2, done.stderr
    deploy, worker = json.loads(done.stdout)
    for outcome in (deploy, worker):
        assert outcome["requests_new"] > 20 and outcome["requests_kept"] > 20
        assert (outcome["wrong"], outcome["failed_new"] + outcome["failed_kept"] <= 1) == (0, True), outcome
    assert (deploy["operator"], deploy["stale"], deploy["missing_static"]) == ("reload", 0, 0)
    # Both versions were seen.
    assert deploy["mixed_s"] is not None
    assert (worker["operator"], done.returncode) == ("nothing", 0)
