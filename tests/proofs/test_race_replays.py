"""Finished runs, raced again in other orders of their rounds."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import replace

import pytest

from bench.report.arrange import arrange
from bench.report.choice import choices
from bench.results.folder import read_run
from tests.bench.report import report_folder
from tests.proofs import race_replays


@pytest.fixture
def folder(tmp_path):
    """A run of 5 rounds whose trials begin 4 s apart, but for a pause of an hour."""
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    seconds = itertools.chain(range(0, 100, 4), itertools.count(3700, 4))

    def timed(trial):
        return replace(trial, started_at=(begin + datetime.timedelta(seconds=next(seconds))).isoformat())

    return report_folder.make(tmp_path / "run", rounds=5, change=timed)


def test_a_replay_names_the_best_of_all_rounds_in_half_of_the_time(folder, capsys):
    run = read_run(folder)
    made = race_replays.replay(run, [3, 1, 5, 2, 4])
    assert made.time < 0.5
    assert race_replays.agrees(choices(arrange(run)), made.choices)
    assert race_replays.main([str(folder), "--orders", "2"]) in (0, 1)
    assert "the same answer in 2 of 2, in " in capsys.readouterr().out


def test_an_answer_that_does_not_tie_with_the_best_is_another(folder):
    wanted = choices(arrange(read_run(folder)))
    found = choices(arrange(read_run(report_folder.make(folder.parent / "other", change=without_the_best))))
    assert not race_replays.agrees(wanted, found)


def without_the_best(trial):
    return None if trial.layer == "staticgenerator" else trial


def test_a_visit_lasts_until_the_next_begins_but_for_pauses(folder):
    seconds = race_replays.visits(read_run(folder).trials)
    assert len(seconds) == 5 * len({(stack, layer) for stack, layer, _ in seconds})
    assert set(seconds.values()) == {8.0}  # two workloads


def test_a_run_of_one_round_cannot_be_replayed(tmp_path, capsys):
    directory = report_folder.make(tmp_path / "run", rounds=1)
    assert race_replays.main([str(directory)]) == 2
    assert "name a run of several rounds" in capsys.readouterr().err
