"""The record of a trial: made of parts, and a failure is never a number."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from bench.measure.records.records import ResultsError
from bench.measure.records.trials import FIGURES, Errors, Trial, TrialIdentity
from tests.bench.measure.records.run_data import TRIAL

IDENTITY = TrialIdentity(**{item.name: getattr(TRIAL, item.name) for item in fields(TrialIdentity)})


def test_a_trial_is_its_parts_side_by_side_and_a_part_left_out_is_null():
    errors = Errors(errors_connect=1, errors_read=2, errors_timeout=3, responses_not_2xx=4)
    trial = Trial.of(IDENTITY, errors, status="failed", reason="503 answers", log="raw/x.log")
    assert (trial.trial_id, trial.level, trial.mode) == (TRIAL.trial_id, 16, "closed")
    assert (trial.status, trial.reason, trial.log) == ("failed", "503 answers", "raw/x.log")
    assert (trial.errors_connect, trial.responses_not_2xx) == (1, 4)
    assert {getattr(trial, name) for name in FIGURES} == {None}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"requests_per_second": None}, "ok without requests_per_second"),
        ({"status": "failed"}, "failed without a reason"),
        ({"status": "voided"}, "voided without a reason"),
        ({"status": "voided", "reason": "x", "requests_per_second": None}, "voided without requests_per_second"),
        ({"rate_requested": 100.0}, "level_connections or rate_requested, and not both"),
        ({"level_connections": None}, "level_connections or rate_requested, and not both"),
        ({"status": "failed", "reason": "x"}, "failed and yet it has duration_s"),
    ],
)
def test_a_failure_is_never_a_number(changes, message):
    with pytest.raises(ResultsError, match=message):
        replace(TRIAL, **changes)
