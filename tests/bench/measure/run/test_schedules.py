"""Schedules of invented sites: next items, repetitions, and resumed runs."""

from __future__ import annotations

import io
import math
import os
import random
import re
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

import pytest

from bench.interrupt import Interrupts
from bench.measure.faults import prepare_faults as faults
from bench.measure.faults.fault_session import FaultItem
from bench.measure.records.capacity import MAX_REPEATS
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.folder import read_run
from bench.measure.records.records import Dropped, warmup_s
from bench.measure.run import plan as planning
from bench.measure.run import schedules, session
from bench.measure.run.outlook import Outlook
from bench.measure.run.plan import Deployment, Measurement
from bench.measure.run.prepare import Prepared
from bench.measure.run.race import CANNOT_BE_BEST, GIVEN_UP
from bench.measure.run.schedules import Replay, counting, counting_steps
from bench.measure.run.session import Session, TestBed
from bench.measure.run.tuner import Tuner
from bench.measure.run.verified import Verified
from bench.measure.stats.rate_search import Limit
from bench.printer import Printer
from bench.serve.deployment.database import NO_DATABASE
from bench.verify.outcome import Outcome
from tests.bench.measure.records.run_data import ENVIRONMENT, INFO, TRIAL, at_rate, changed, failed
from tests.bench.measure.run.fake_sites import FakeSites
from tests.bench.measure.run.test_plan import case
from tests.cases import kit

ROUNDS = 20
# A low limit: the computing time of a percentile grows with its latency.
LIMIT = Limit("p95", 0.2)
RATES = {"best": 1000.0, "near": 990.0, "slower": 500.0, "slow": 490.0, "far": 20.0}
REASONS = {
    "ok": None,
    "discarded": "drift: it was slower at its end",
    "disturbed": "interference: other processes took 90% of the machine",
}
DECIDED = replace(INFO.plan, until="decided", rounds=ROUNDS, levels=(16,), margin=0.05)


def trial(item: Measurement, status: str = "ok", rates=RATES):
    """A trial with little noise, another one in each round."""
    record = item.case
    names = ("case_id", "stack", "layer", "workload", "size", "database")
    identity = {name: getattr(record, name) for name in names}
    rate = rates.get(record.workload, rates)[record.stack]
    if item.rate or item.level != 16:
        result = at_rate(item.level, 0.1 if item.level <= rate else 0.9, item.round, replace(TRIAL, **identity))
    else:
        noise = random.Random(f"{record.stack} {item.round}").uniform(1, 1.04)
        result = changed(TRIAL, **identity, round=item.round, requests_per_second=rate * noise)
    result = replace(result, trial_id=item.key)
    if status == "failed":
        return failed(result)
    return replace(result, status="ok" if status == "ok" else "discarded", reason=REASONS[status])


class Play:
    """A schedule of a plan with invented trials; `statuses` of (stack, round[, workload]) are not `ok`."""

    def __init__(self, plan, cases, earlier=(), statuses=MappingProxyType({}), rates=RATES):
        self.statuses, self.rates = statuses, rates
        records = counting_steps(earlier) if plan.capacity else counting(earlier)
        self.outlook = Outlook(plan, records, Verified())
        self.replay = Replay(schedules.of_plan(plan, cases, self.outlook), records)
        self.trials = []

    def go(self, rounds=math.inf):
        """Make the remaining trials, at most these rounds; returns the stacks of each round."""
        measured: dict[int, set[str]] = {}
        while (item := self.replay.item) and item.round <= rounds:
            who = (item.case.stack, item.round)
            status = self.statuses.get((*who, item.case.workload), self.statuses.get(who, "ok"))
            measured.setdefault(item.round, set()).add(item.case.stack)
            self.trials.append(trial(item, status, self.rates))
            self.replay.send(self.trials[-1])
        return [sorted(stacks) for stacks in measured.values()]

    @property
    def dropped(self):
        return self.outlook.dropped


def cases(*workloads):
    return [case(stack, workload=work) for stack in RATES for work in workloads or ("home",)]


# ------------------------------------------------------------------------------------- made again, and resumed


PAIR = [case("best"), case("near")]
TWO_ROUNDS = replace(INFO.plan, rounds=2, levels=(16,))


def test_a_disturbed_trial_is_made_again_a_few_times_and_then_counts():
    play = Play(TWO_ROUNDS, PAIR)
    first = play.replay.item
    for _ in range(MAX_REPEATS + 1):
        assert play.replay.item == first
        play.replay.send(trial(first, "disturbed"))
    assert play.replay.item.key != first.key
    assert len(play.outlook.left) == 3


def test_discarded_trials_are_left_when_a_run_is_resumed_and_repeated_as_often_as_new_ones():
    complete = Play(TWO_ROUNDS, PAIR)
    order = list(complete.outlook.certain)
    trials = [trial(order[0], "disturbed")] * (MAX_REPEATS + 1)
    trials += [trial(order[1], "discarded"), trial(order[2], "failed"), trial(order[3], "failed"), trial(order[3])]
    play = Play(TWO_ROUNDS, PAIR, trials)
    assert [item.key for item in play.outlook.left] == [order[0].key, order[1].key]
    for _ in range(MAX_REPEATS + 1):
        assert play.replay.item.key == order[0].key
        play.replay.send(trial(order[0], "disturbed"))
    assert play.replay.item.key == order[1].key
    play.replay.send(trial(order[1]))
    assert play.replay.item is None


def test_steps_that_interference_discarded_are_made_again_and_those_of_an_overloaded_site_are_not():
    plan = replace(INFO.plan, capacity=LIMIT, rounds=1, levels=())
    play = Play(plan, [case("best")])
    item = play.replay.item
    overloaded = replace(trial(replace(item, level=800)), status="discarded", reason="lost: 7 requests were not sent")
    busy = trial(replace(item, level=50), "disturbed")
    trials = [busy, busy, busy, trial(replace(item, level=200)), overloaded, overloaded]
    again = Play(plan, [case("best")], trials)
    assert again.replay.item.level == 50
    again.replay.send(trial(again.replay.item))
    # 200 holds and 800 does not: the middle between them is next.
    assert 200 < again.replay.item.level < 800


@pytest.mark.parametrize(("wrong", "names"), [(1, "a"), (4, "a, b, c and 1 more")])
def test_wrong_responses_name_a_few_checks(wrong, names):
    verified = Verified()
    assert (verified.knows("one", "none"), verified.wrong("one", "none")) == (False, "")
    verified.add("one", "none", [Outcome("one", "none", "right", True)])
    verified.add("one", "none", [Outcome("one", "none", name, False) for name in "abcd"[:wrong]])
    plural = "check" if wrong == 1 else "checks"
    assert verified.knows("one", "none")
    assert verified.wrong("one", "none") == f"not measured, it gives wrong responses: {wrong} {plural} failed: {names}"


# ------------------------------------------------------------------------------------- until decided


def test_cases_are_dropped_until_the_rest_tie():
    play = Play(DECIDED, cases())
    measured = play.go()
    assert measured[0] == sorted(RATES)
    assert measured[1] == ["best", "near", "slow", "slower"]
    assert measured[2] == measured[-1] == ["best", "near"]
    assert len(measured) < ROUNDS and play.replay.ended_by == "decided"
    first, *others = play.dropped
    assert first == Dropped("far~none~home", 16, 1, CANNOT_BE_BEST)
    assert {(item.case_id, item.round) for item in others} == {("slow~none~home", 2), ("slower~none~home", 2)}


def test_a_race_that_nobody_wins_ends_with_its_rounds():
    play = Play(replace(DECIDED, rounds=2, margin=0.001), cases(), rates={**RATES, "near": 999.0})
    assert len(play.go()) == 2
    assert play.replay.ended_by == "rounds"


def test_each_workload_has_its_own_race():
    play = Play(DECIDED, cases("home", "login"))
    play.go(rounds=1)
    assert len([item for item in play.dropped if "login" in item.case_id]) == 1
    assert len(play.dropped) == 2


def test_who_may_be_the_best_over_all_workloads_goes_on():
    """Deployment `near` is the best on no workload, but of the geometric mean."""
    home = {**RATES, "best": 1000.0, "slower": 100.0, "near": 800.0}
    login = {**RATES, "best": 100.0, "slower": 1000.0, "near": 800.0}
    play = Play(DECIDED, cases("home", "login"), rates={"home": home, "login": login})
    play.go()
    dropped = {item.case_id for item in play.dropped}
    assert not {case_id for case_id in dropped if case_id.startswith("near")}
    # Each is still the best on one of them, and is measured on the other one no further.
    assert {"best~none~login", "slower~none~home"} <= dropped
    assert not {"best~none~home", "slower~none~login"} & dropped
    assert play.replay.ended_by == "decided"


def test_who_cannot_be_ranked_on_every_workload_is_no_contender():
    statuses = {("slower", number, "login"): "failed" for number in range(1, ROUNDS + 1)}
    play = Play(DECIDED, cases("home", "login"), statuses=statuses)
    play.go()
    out = {item.case_id: item.reason for item in play.dropped if item.case_id.startswith("slower")}
    assert out == {"slower~none~home": CANNOT_BE_BEST, "slower~none~login": GIVEN_UP}
    assert play.replay.ended_by == "decided"


def test_nothing_is_dropped_within_a_round():
    play = Play(DECIDED, cases())
    for _ in range(len(RATES) - 1):
        play.replay.send(trial(play.replay.item))
    assert (len(play.outlook.left), play.dropped) == (1, ())
    play.replay.send(trial(play.replay.item))
    assert [item.case_id for item in play.dropped] == ["far~none~home"]


def test_a_case_that_keeps_failing_is_given_up_and_delays_no_decision():
    statuses = {("far", number): "failed" for number in range(1, ROUNDS + 1)}
    play = Play(DECIDED, cases(), statuses=statuses)
    measured = play.go()
    assert ["far" in stacks for stacks in measured[:3]] == [True, True, False]
    assert Dropped("far~none~home", 16, 2, GIVEN_UP) in play.dropped
    assert play.replay.ended_by == "decided"


def test_a_case_without_a_trusted_figure_may_still_be_the_best():
    """Guards discarded all of its trials: the case is measured until one of them is trusted."""
    rates = {"best": 1000.0, "near": 500.0, "slower": 490.0, "slow": 480.0, "far": 20.0}
    discarded = {("far", number): "discarded" for number in (1, 2, 3, 4)}
    play = Play(DECIDED, cases(), statuses=discarded, rates=rates)
    measured = play.go()
    assert all("far" in stacks for stacks in measured[:5])
    assert measured[3] == ["best", "far"]
    assert play.replay.ended_by == "decided"


def test_discarded_trials_that_are_made_again_may_change_who_goes_on():
    first = Play(DECIDED, cases(), statuses={("far", 1): "discarded"})
    first.go(rounds=1)
    again = Play(DECIDED, cases(), first.trials)
    assert (again.dropped, [item.case.stack for item in again.outlook.left]) == ((), ["far"])
    again.go(rounds=1)
    assert [item.case_id for item in again.dropped] == ["far~none~home"]


# ------------------------------------------------------------------------------------- stopped after every record


class Killed(BaseException):
    """The process is gone."""


class Killing(TestBed):
    """A test bed of invented trials and faults, which dies after a number of them."""

    is_usable = True

    def __init__(self, journal, allowed, make, outlook):
        self.journal, self.allowed, self.making, self.outlook = journal, allowed, make, outlook

    @contextmanager
    def up(self, deployment, directory, interrupts):
        yield self

    def make(self, item, attempt):
        if self.allowed == 0:
            raise Killed
        self.allowed -= 1
        return self.making(item, attempt)

    def failed(self, item, reason, log=None):
        raise AssertionError(reason)

    def keep(self):
        for record in self.outlook.tried_cases:
            self.journal.case(record)
        self.journal.drop(self.outlook.dropped)


def invented(item, attempt, rates=RATES):
    """Every fifth trial is disturbed once."""
    disturbed = attempt == 1 and random.Random(item.key).random() < 0.2
    return trial(item, "disturbed" if disturbed else "ok", rates)


def fault(item, attempt):
    disturbed = attempt == 1 and item.outcome.fault == "worker"
    return replace(item.outcome, status="discarded" if disturbed else "ok", reason="others" if disturbed else None)


def tuned(item, attempt):
    """The same on a site that holds 100 requests/s with each of at most four processes."""
    processes = int(re.search(r"processes=(\d+)", item.case.stack)[1])
    return invented(item, attempt, {item.case.stack: 100.0 * min(processes, 4)})


def resolve(stack, layer):
    return FakeSites().resolve(stack, layer, NO_DATABASE)


def tuner(info, run):
    """The search of `benchapp tune` on invented sites, new or resumed."""
    planned = planning.recorded(info.cases, resolve)
    prepared = Prepared(info=info, cases=planned, tool="", environment=lambda: ENVIRONMENT, bed=None, before=run)
    return Tuner(prepared, kit(), FakeSites().bed)


def planned_faults():
    deployment = Deployment(case("one").served, 1)
    named = ("one", "none", "unlimited", "sqlite")
    outcomes = [FaultOutcome(name, *named, name, "killed", 1, "", "ok") for name in ("worker", "database", "memory")]
    return [FaultItem(outcome, deployment) for outcome in outcomes]


CAPACITY = replace(INFO.plan, capacity=LIMIT, mode="open", levels=(), rounds=2)
PLANS = {
    "rounds": replace(TWO_ROUNDS, latency=True),
    "decided": replace(DECIDED, latency=True),
    "capacity": CAPACITY,
    "tune": replace(CAPACITY, tunes="gunicorn", stacks=("gunicorn@processes=4,threads=4",)),
    "faults": replace(INFO.plan, faults=("worker",)),
}
MAKERS = {"tune": tuned, "faults": fault}


class Quiet:
    """Progress without output."""

    def __init__(self):
        self.printer = Printer(io.StringIO())

    def begin(self, item):
        pass

    def finish(self, record, again):
        pass


def cases_of(kind):
    """The cases that a run begins with."""
    if kind == "tune":
        usual = resolve(*PLANS["tune"].stacks, "none")
        return [planning.MeasuredCase(planning.record(usual, "home"), usual)]
    return PAIR if kind == "capacity" else cases()


def schedule_of(kind, info, outlook, run):
    if kind == "faults":
        return faults.schedule(planned_faults())
    if kind == "tune":
        return tuner(info, run).schedule(outlook)
    return schedules.of_plan(info.plan, cases_of(kind), outlook)


def once(kind, folder, allowed):
    """Begin a run, or resume it, until so many records were made."""
    run = read_run(folder) if folder.exists() else None
    earlier = (*run.trials, *run.latency, *run.outcomes) if run else ()
    plan = PLANS[kind]
    info = run.info if run else replace(INFO, plan=plan, cases=tuple(item.record for item in cases_of(kind)))
    records = counting_steps(earlier) if plan.capacity else counting(earlier)
    outlook = Outlook(plan, () if kind == "faults" else records, Verified())
    replay = Replay(schedule_of(kind, info, outlook, run), records)
    if run:
        journal = session.resume(folder, info, lambda: ENVIRONMENT, replay)
    else:
        journal = session.begin(folder, "", info, lambda: ENVIRONMENT)
    bed = Killing(journal, allowed, MAKERS.get(kind, invented), outlook)
    with Interrupts() as interrupts:
        earlier_keys = [record.key for record in earlier]
        Session(journal, replay, bed, Quiet(), earlier_keys).go(interrupts, keep_going=True)


def result(folder):
    run = read_run(folder)
    outcomes = [(record.key, record.status) for record in (*run.trials, *run.latency, *run.outcomes)]
    return outcomes, run.info.cases, run.info.dropped, run.info.ended_by


@pytest.mark.parametrize("kind", PLANS)
def test_a_run_that_is_killed_at_every_record_makes_the_same_trials(kind, tmp_path, monkeypatch, latency):
    latency()
    # A process is killed here, and no machine.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    uninterrupted, stopped = tmp_path / "whole", tmp_path / "stopped"
    once(kind, uninterrupted, math.inf)
    outcomes, *_ = result(uninterrupted)
    assert len(outcomes) > 3 and {"ok", "discarded"} == {status for _, status in outcomes}
    for _ in outcomes[:-1]:
        with pytest.raises(Killed):
            once(kind, stopped, 1)
    once(kind, stopped, 1)
    assert result(stopped) == result(uninterrupted)
    assert read_run(stopped).info.finished_at


# ------------------------------------------------------------------------------------- the time of a run


BEGAN = 100.0
# Seconds of a deployment besides its loads, and of its verification.
BESIDE_S, VERIFIED_S = 3.0, 12.0
SPEEDS = {"fast": 2000.0, "alike": 1900.0, "slow": 100.0}


class Clock:
    """A clock that moves only when set."""

    def __init__(self):
        self.now = BEGAN

    def __call__(self):
        return self.now


class TimedRun:
    """A run until decided with a fake clock; each deployment is verified in its first round."""

    def __init__(self, budget_s, earlier=(), verified=(), before_s=0.0):
        self.clock, self.verified = Clock(), Verified()
        self.verify(*verified)
        plan = replace(DECIDED, budget_s=budget_s, latency=True, duration_s=2.0)
        self.outlook = Outlook(plan, earlier, self.verified, self.clock)
        self.clock.now += before_s
        self.replay = Replay(schedules.of_plan(plan, [case(name) for name in SPEEDS], self.outlook), earlier)

    def verify(self, *stacks):
        for stack in stacks:
            self.verified.add(stack, "none", [Outcome(stack, "none", "status", True)])

    def go(self):
        """Make the trials; returns the stack and the round of each, and whether its loop was closed."""
        trials = []
        while self.replay.item:
            deployment, began, items = self.replay.item.deployment, self.clock.now, []
            was_verified = self.verified.knows(deployment.stack, "none")
            if not was_verified:
                self.clock.now += VERIFIED_S
                self.verify(deployment.stack)
            self.clock.now += BESIDE_S
            while (item := self.replay.item) and item.deployment is deployment:
                seconds = item.seconds or 2.0
                self.clock.now += seconds + warmup_s(seconds)
                items.append(item)
                self.replay.send(timed(item))
                trials.append((item.case.stack, item.round, item.rate is None))
            if was_verified:
                self.outlook.was_up(deployment, self.clock.now - began, items)
        return trials


def timed(item):
    rate = SPEEDS[item.case.stack] * math.exp(0.02 * math.sin(sum(map(ord, item.key))))
    identity = {"trial_id": item.key, "case_id": item.case.case_id, "stack": item.case.stack, "round": item.round}
    how = {"level_connections": None, "rate_requested": float(item.rate)} if item.rate else {}
    return changed(TRIAL, **identity, **how, requests_per_second=rate)


def rounds_of(trials):
    return max(number for _, number, closed in trials if closed)


def test_the_first_two_rounds_are_always_made_and_one_of_a_resumed_run():
    run = TimedRun(1.0)
    assert (rounds_of(run.go()), run.replay.ended_by) == (2, "budget")
    again = TimedRun(1.0, list(run.outlook.done.values()), verified=SPEEDS)
    assert (rounds_of(again.go()), again.replay.ended_by) == (3, "budget")


@pytest.mark.parametrize(
    ("budget_s", "rounds", "ended_by"), [(80.0, 3, "budget"), (101.0, 5, "decided"), (None, 5, "decided")]
)
def test_a_round_takes_as_long_as_the_last_one_without_its_verification(budget_s, rounds, ended_by):
    """The first two rounds take 68 s, with 36 s for verification, each of the others 11 s."""
    run = TimedRun(budget_s)
    assert (rounds_of(run.go()), run.replay.ended_by) == (rounds, ended_by)
    assert run.clock.now - BEGAN <= (budget_s or math.inf)


@pytest.mark.parametrize(
    ("budget_s", "rounds", "ended_by", "opened"),
    [(84.0, 2, "budget", ["fast", "alike"]), (86.0, 3, "budget", ["fast"]), (107.0, 5, "decided", ["fast"])],
)
def test_a_round_leaves_time_for_the_open_loop_of_the_fastest(latency, budget_s, rounds, ended_by, opened):
    """The open loop of a case takes 5 s; of the slowest, dropped one 25 s."""
    latency()
    run = TimedRun(budget_s)
    trials = run.go()
    assert (rounds_of(trials), run.replay.ended_by) == (rounds, ended_by)
    assert [stack for stack, _, closed in trials if not closed] == opened
    assert run.clock.now - BEGAN <= budget_s


def test_time_before_the_first_round_counts():
    assert rounds_of(TimedRun(101.0, before_s=40.0).go()) == 2


def test_how_many_trials_staircases_take_is_estimated_from_what_is_known():
    play = Play(replace(CAPACITY, rounds=2), [case("best")])
    assert play.outlook.count(play.outlook.left) == 12 + 6
    play.replay.send(trial(play.replay.item))
    assert play.outlook.count(play.outlook.left) == 11 + 6
    play.go(rounds=1)
    assert play.outlook.count(play.outlook.left) == 6


# ------------------------------------------------------------------------------------- the open loop afterwards


def held(name, *rates):
    """Trials of a case in a closed loop, round by round."""
    trials = []
    for number, rate in enumerate(rates, 1):
        case_id = case(name).record.case_id
        identity = replace(TRIAL, trial_id=f"{name}~{number}", case_id=case_id, stack=name, round=number)
        trials.append(changed(identity, requests_per_second=rate))
    return trials


CASES = [case("slow"), case("fast"), case("alike")]
TRIALS = [*held("slow", 100, 102), *held("fast", 1000, 1010), *held("alike", 990, 1001)]


@pytest.fixture
def opened(latency):
    """The open loop after these trials."""
    latency()
    plan = replace(INFO.plan, margin=0.05, latency=True)

    def open_loop_of(trials, done=()):
        return schedules.latency(plan, CASES, trials, Outlook(plan, done, Verified()))

    return open_loop_of


def test_the_rate_for_all_is_half_of_what_the_slowest_holds_that_ties_or_leads():
    assert schedules.rate_for_all(TRIALS, 0.05) == 498
    assert schedules.rate_for_all(TRIALS[:2], 0.05) == 50
    assert schedules.rate_for_all(held("fast", 90_000, 90_000), 0.05) == schedules.LATENCY_MAX_RATE
    # One round does not say which case leads.
    assert schedules.rate_for_all(held("fast", 1000), 0.05) == 0


def test_every_case_that_holds_the_rate_is_measured_at_it_the_fastest_first(opened):
    (fast,), (alike,) = opened(TRIALS)
    assert (fast.case.stack, alike.case.stack) == ("fast", "alike")
    assert (fast.rate, fast.seconds, fast.key) == (498, 3, f"{CASES[1].record.case_id}~rate498~r1")


def test_what_a_case_holds_is_the_median_over_all_levels(opened):
    wider = [*held("slow", 2000, 2000), *held("fast", 1000, 1000), *held("alike", 990, 990)]
    at_64 = [replace(trial, trial_id=f"{trial.trial_id}~64", level_connections=64) for trial in wider]
    assert [items[0].case.stack for items in opened([*at_64, *TRIALS])] == ["slow", "fast", "alike"]


def test_a_resumed_run_goes_on_at_the_rate_at_which_it_began(opened):
    begun = replace(TRIALS[2], trial_id="open", level_connections=None, rate_requested=400.0)
    assert {items[0].rate for items in opened(TRIALS, [begun])} == {400}
