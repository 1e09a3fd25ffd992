"""Settings found on a real stack, served with the values of the search."""

from __future__ import annotations

import argparse

import pytest

from bench.cli import tune
from bench.measure.records.folder import read_run
from bench.measure.run import guards, schedules, tuning
from bench.measure.run.local import LocalTestBed
from bench.measure.stats import rate_search
from tests.deploy.running import runnable

RATES = (2, 5, 10)


class Unverified(LocalTestBed):
    """Other tests verify every stack, and count queries."""

    def verify(self, running):
        return []

    def queries_per_request(self, item, addresses):
        return None


@pytest.mark.servers
def test_a_real_stack_is_served_with_the_settings_that_are_tried(site_url, tmp_path, monkeypatch, capsys):
    runnable("nginx-gunicorn")
    # Three short trials, and no settings beyond the first.
    monkeypatch.setattr(rate_search, "RATES", RATES)
    monkeypatch.setattr(schedules, "FIRST_RATE", RATES[1])
    monkeypatch.setattr(tune, "ROUNDS", 1)
    monkeypatch.setattr(tuning, "MAX_SETTING", 1)
    parser = argparse.ArgumentParser()
    tune.add_arguments(parser)
    off = [word for name in guards.BOUNDS for word in ("--guard", f"{name}=off")]
    words = ["nginx-gunicorn", "--capacity", "p50=9s", "--workload", "login", "--duration", "1", "--database", site_url]
    assert tune.main(parser.parse_args([*words, "--output", str(tmp_path / "run"), *off]), Unverified) == 0
    run = read_run(tmp_path / "run")
    # What the stack has is climbed from the first rate; fewer processes begin, and end, at the highest.
    tried = [(trial.status, trial.level) for trial in run.trials]
    assert tried[:2] == [("ok", 5), ("ok", 10)] and set(tried[2:]) == {("ok", 10)}
    rendered = (tmp_path / "run" / "configs" / f"{run.info.cases[-1].stack}~none" / "gunicorn.conf.py").read_text()
    assert "workers = 1\n" in rendered and "threads = 1\n" in rendered
    assert "take 1 process with 1 thread (sync); they hold 10 requests/s" in " ".join(capsys.readouterr().out.split())
