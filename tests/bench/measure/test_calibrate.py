"""The ceiling of the load tool is measured once in a run."""

from __future__ import annotations

import pytest

from bench.measure import calibrate
from bench.measure.calibrate import Calibration


@pytest.mark.servers
def test_the_load_tool_is_calibrated_once_in_a_run(go, instrument, capsys, monkeypatch):
    monkeypatch.setattr(calibrate, "SECONDS", 1)
    instrument.calibrates_on = "one"
    words = ["--stack", "one", "--stack", "two", "--guard", "ceiling=0.99"]
    _, recorded = go(*words)
    ceilings = {trial.tool_ceiling_per_second for trial in recorded.trials}
    assert len(ceilings) == 1 and ceilings.pop() > 100
    assert {trial.guards["ceiling"][:2] for trial in recorded.trials} == {"ok"}
    assert instrument.log.count("up one none") == 2, "once for the calibration and once for the trial"
    assert " requests/s with keep-alive for each core that it keeps busy" in capsys.readouterr().out


def test_a_resumed_run_has_the_ceilings_it_began_with(tmp_path):
    (tmp_path / "calibration.json").write_text("[[true, 4000.5], [false, 900.0]]\n")
    assert Calibration(tmp_path).stored() == {True: 4000.5, False: 900.0}
    assert Calibration(tmp_path / "other").stored() is None


def test_ceilings_in_words():
    words = calibrate.summary({True: 4000.5, False: 900.0})
    assert words == "4,000 requests/s with keep-alive, 900 requests/s without keep-alive"
