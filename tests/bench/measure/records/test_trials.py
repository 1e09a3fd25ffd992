"""The record of a trial: made of parts, and a failure is never a number."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from bench.measure.records.records import ResultsError
from bench.measure.records.trials import Errors, Trial
from tests.bench.measure.records.run_data import TRIAL, failed


def test_a_line_has_the_parts_of_a_trial_and_null_for_those_that_a_failure_lacks():
    written = msgspec.json.decode(msgspec.json.encode(TRIAL))
    assert (written["trial_id"], written["figures"]["requests_per_second"]) == (TRIAL.trial_id, 100.0)
    assert written["costs"]["cpu_seconds"] == {"one": 1.5, "closed": None}
    failed_trial = failed(errors=Errors(errors_connect=1, errors_read=2, errors_timeout=3, responses_not_2xx=4))
    written = msgspec.json.decode(msgspec.json.encode(failed_trial))
    assert (written["status"], written["figures"], written["costs"]) == ("failed", None, None)
    assert msgspec.json.decode(msgspec.json.encode(failed_trial), type=Trial) == failed_trial
    assert (failed_trial.errors.total, failed_trial.throughput, failed_trial.requests) == (10, None, 0)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"figures": None}, "ok without figures"),
        ({"status": "failed"}, "failed without a reason"),
        ({"status": "discarded"}, "discarded without a reason"),
        ({"status": "discarded", "reason": "x", "figures": None}, "discarded without figures"),
        ({"rate_requested": 100.0}, "level_connections or rate_requested, and not both"),
        ({"level_connections": None}, "level_connections or rate_requested, and not both"),
        ({"status": "failed", "reason": "x"}, "failed and yet it has figures"),
    ],
)
def test_a_failure_is_never_a_number(changes, message):
    with pytest.raises(ResultsError, match=message):
        replace(TRIAL, **changes)
