"""The sentences of a reproduction's report."""

from __future__ import annotations

import json

from bench.measure import begin
from bench.report import pick
from bench.report.reproduction import side_by_side
from bench.report.reproduction.texts import ReproductionTexts
from bench.results import reproduction
from bench.results.folder import TRIALS_FILE, read_run
from tests.bench.report import report_folder
from tests.bench.report.reproduction.tiny import record


def test_trials_of_all_parts_are_counted_together(tmp_path, tiny):
    made = tmp_path / "again"
    for name in ("first", "second"):
        report_folder.make(made / name, workloads=("home",), levels=(10,), rounds=2)
    reproduction.write(made, record(parts=(reproduction.Part("first"), reproduction.Part("second"))))
    found = side_by_side.read(made)
    one, two = (sum(len(row.failed) for row in part.rows) for part in found.reports)
    assert one and two
    notes = ReproductionTexts(found).caveats
    assert [note for note in notes if "failed" in note] == [
        f"{one + two} trials failed: a failed trial has a reason and no figures."
    ]
    (rounds,) = [note for note in notes if note.startswith("Figures are medians of 1 to 2 rounds")]
    assert "A figure of one round is a single reading." in rounds


def test_the_first_screen_names_what_was_not_compared(folder):
    path = folder / "first" / TRIALS_FILE
    trials = [json.loads(line) for line in path.read_text().splitlines()]
    for trial in trials:
        if (trial["stack"], trial["layer"]) == ("gunicorn", "none"):
            trial.update(status="voided", reason="little: 40 connections, 50 asked")
    path.write_text("".join(f"{json.dumps(trial)}\n" for trial in trials))
    found = side_by_side.read(folder)
    said = ReproductionTexts(found).pick
    whole = [advice.sentence for advice in pick.pick(found.reports[0])]
    assert said[0] == whole[0]
    assert said[-1] == whole[-1]
    assert said[-1] == ("Not ranked on every workload: `gunicorn` with `none` (voided).")
    assert len(said) < len(whole)


def test_rounds_that_were_added_are_said(folder):
    case_id = read_run(folder / "first").info.cases[0].case_id
    begin.add(folder / "first", [(case_id, 50), (case_id, 10)], 2)
    notes = ReproductionTexts(side_by_side.read(folder)).caveats
    said = "Part `first` has 1 case with up to 2 more rounds, because a conclusion was open after the planned ones."
    assert said in notes
