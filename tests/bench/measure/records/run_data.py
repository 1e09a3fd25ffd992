"""A run's records with invented values, for tests of writing and reading."""

from __future__ import annotations

from dataclasses import replace

from bench.measure.records import records, trials
from bench.measure.stats import histogram
from bench.verify.outcome import Skip

ENVIRONMENT = records.Environment(
    cpu_model="Example 3000",
    cores=2,
    memory_bytes=8_000_000_000,
    kernel="Linux 6.1",
    os="Debian GNU/Linux 12",
    python="CPython 3.11.7",
    packages={"Django": "5.2.19"},
    programs={},
    load_tool=records.LoadTool(name="wrk", version="4.1.0", fallback=False),
    commit=None,
    dirty=None,
)

INFO = records.RunInfo(
    format=records.FORMAT,
    command=("python", "-m", "bench", "run"),
    started_at="2026-11-21T08:00:00+00:00",
    finished_at=None,
    plan=records.Plan(
        stacks=("one",),
        layers=("none",),
        workloads=("home",),
        levels=(16,),
        rounds=1,
        duration_s=2.0,
        sizes=("unlimited",),
        database="sqlite",
        rows_total=None,
        order_seed=7,
    ),
    cases=(records.CaseRecord("one~none~home~unlimited~sqlite", "one", "none", "home", "unlimited", "sqlite"),),
    skips=(Skip("one", "files", None, "no server of its chain serves files"),),
    notes=("2 cores",),
)

TRIAL = trials.Trial(
    trial_id="one~none~home~unlimited~sqlite~16~r1",
    case_id="one~none~home~unlimited~sqlite",
    stack="one",
    layer="none",
    workload="home",
    size="unlimited",
    database="sqlite",
    level_connections=16,
    round=1,
    status="ok",
    started_at="2026-11-21T08:00:01+00:00",
    tool="wrk",
    keep_alive=True,
    figures=trials.TrialFigures(
        duration_s=2.0,
        requests_total=200,
        requests_per_second=100.0,
        bytes_per_second=900_000.0,
        latency_p50_ms=150.0,
        latency_max_ms=300.0,
    ),
    costs=trials.Costs(
        memory={"one": ((0.0, 1000), (1.0, 2000)), "closed": ()},
        memory_peak_bytes={"one": 2000, "closed": None},
        cpu_seconds={"one": 1.5, "closed": None},
        processes={"one": 5, "closed": None},
    ),
    errors=trials.Errors(errors_connect=0, errors_read=0, errors_timeout=0, responses_not_2xx=0),
    condition=trials.Condition(time_to_ready_s=0.4),
)
PARTS = ("figures", "costs", "errors", "condition", "evidence")


def changed(trial=TRIAL, **changes):
    """A trial with other fields, in whichever part."""
    for part in PARTS:
        value = getattr(trial, part)
        own = {name: changes.pop(name) for name in list(changes) if value is not None and hasattr(value, name)}
        trial = replace(trial, **{part: replace(value, **own)}) if own else trial
    return replace(trial, **changes)


def failed(trial=TRIAL, **changes):
    """A trial with a load failed by its responses."""
    how = {"status": "failed", "reason": "503 answers", "responses_before_failure": 9, **changes}
    return changed(replace(trial, figures=None, costs=None, status="failed", reason="503 answers"), **how)


def at_rate(rate: int, latency_ms: float = 20.0, round: int = 1, trial=TRIAL, **changes):
    """A trial of an open loop at this rate, with this latency for all responses."""
    changed_trial = changed(
        trial,
        trial_id=f"{trial.case_id}~{rate}~r{round}",
        level_connections=None,
        rate_requested=float(rate),
        round=round,
        requests_total=10 * rate,
        requests_per_second=float(rate),
        histogram=histogram.encode(histogram.from_counts([(int(1000 * latency_ms), 10 * rate)])),
        came_back=True,
    )
    return changed(changed_trial, **changes)
