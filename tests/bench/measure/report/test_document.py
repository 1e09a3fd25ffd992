"""report.json: its values, from real and from invented runs."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import msgspec
import pytest

from bench import paths
from bench.cli import main
from bench.measure.records import schema
from bench.measure.records.folder import Folder, read_run
from bench.measure.records.records import FORMAT, Dropped
from bench.measure.records.trials import Condition, Costs, Errors, Evidence, TrialFigures
from bench.measure.report import facts, page, recommendation, write
from bench.measure.report.document import CaseRow, Document, Ranking
from bench.measure.stats import histogram
from bench.measure.stats.rate_search import Limit
from bench.verify.hosts.host_costs import HostCosts
from tests.bench.measure.records import run_data
from tests.bench.measure.records.run_data import changed, failed
from tests.bench.measure.report import report_folder
from tests.bench.measure.report.faults import fault_folder

GOLDEN = paths.KIT / "tests" / "golden" / "run"
EVEN = [100.0, 101.0, 99.0, 102.0, 98.0]


def read(*folders: Path) -> Document:
    return write.document(folders, folders[0] / write.NAME)[0]


def rates(by_case: dict[tuple[str, str], list[float | None]]):
    """Only these stacks with layers, with these requests/s round by round."""

    def change(trial):
        values = by_case.get((trial.stack, trial.layer))
        if values is None or values[trial.round - 1] is None or trial.status == "failed":
            return None
        return changed(trial, requests_per_second=values[trial.round - 1])

    return change


def raced(tmp_path: Path, by_case: dict[tuple[str, str], list[float | None]], rounds: int = 5) -> Ranking:
    """The only board of a run on `home` with these requests/s."""
    folder = report_folder.make(tmp_path / "run", rounds=rounds, workloads=("home",), change=rates(by_case))
    return read(folder).boards[0]


def row(board: Ranking, stack: str, layer: str = "none") -> CaseRow:
    return next(each for each in board.cases if (each.stack, each.layer) == (stack, layer))


def times(factor: float) -> list[float]:
    return [factor * rate for rate in EVEN]


# ---------------------------------------------------------------------------------------------- golden


def nested(line: str) -> str:
    """A trial of the earlier flat format, converted to parts."""
    flat = json.loads(line)
    parts = {"figures": TrialFigures, "costs": Costs, "errors": Errors, "condition": Condition, "evidence": Evidence}
    for name, part in parts.items():
        of_part = [field.name for field in fields(part) if field.name in flat]
        flat[name] = {field: flat.pop(field) for field in of_part}
    flat["status"] = {"voided": "discarded"}.get(flat["status"], flat["status"])
    if flat["status"] == "failed":
        flat |= {"figures": None, "costs": None}
    return json.dumps(flat) + "\n"


def test_a_real_run_has_the_figures_that_it_had(tmp_path):
    """A run of an earlier format with the same figures, arranged by older code."""
    folder = shutil.copytree(GOLDEN, tmp_path / "run")
    info = folder / "run.json"
    recorded = json.loads(info.read_text())
    recorded["format"] = FORMAT
    recorded["plan"] |= {"changes": {}, "env": {}, "capacity": None}
    info.write_text(json.dumps(recorded))
    trials = folder / "trials.jsonl"
    trials.write_text("".join(map(nested, trials.read_text().splitlines())))
    (board,) = read(folder).boards
    assert (board.verdict, board.best, board.load, board.rounds) == ("leads", 0, "8 connections", 3)
    assert board.workloads == ("home", "login")
    rates = {
        (each.stack, each.layer): [round(load.requests_per_second) for load in each.loads.values()]
        for each in board.cases
        if each.ratio
    }
    assert rates == {
        ("nginx-gunicorn", "staticgenerator"): [74484, 788],
        ("uwsgi", "none"): [179, 1138],
        ("nginx-gunicorn", "none"): [162, 893],
    }
    second, third = (each.ratio.estimate for each in board.cases[1:3])
    assert (round(second, 1), round(third, 1)) == (17.1, 20.0)
    home = row(board, "nginx-gunicorn").loads["home"]
    assert round(home.cpu_seconds_per_1000_requests, 1) == 12.6 and round(home.memory_peak_bytes / 2**20) == 158
    assert (home.queries_per_request, home.errors) == (14.0, 0)
    failed = row(board, "granian@listener=tls,strict_sni=on")
    assert failed.verdict == "not measured" and failed.ratio is None and "TLS" in failed.reason
    assert failed.loads["home"].rates == {}


def test_it_holds_what_its_schema_says(plain):
    definitions = schema.schema(Document)
    document = json.loads(write.document([plain], plain / write.NAME)[1])
    jsonschema.validate(document, {"$ref": "#/$defs/document", "$defs": definitions["$defs"]})
    assert msgspec.json.decode(msgspec.json.encode(document), type=Document)


# -------------------------------------------------------------------------------------------- verdicts


def test_one_leads(tmp_path):
    board = raced(tmp_path, {("uwsgi", "none"): times(2), ("gunicorn", "none"): EVEN})
    assert (board.verdict, board.cases[0].stack, board.best) == ("leads", "uwsgi", 0)
    ratio = row(board, "gunicorn").ratio
    assert ratio.estimate == pytest.approx(2) and ratio.low <= ratio.estimate <= ratio.high
    assert [each.verdict for each in board.cases[:2]] == ["leads", ""]
    assert len(board.answer[0].split()) <= 25


def test_of_those_that_tie_the_one_that_needs_least_memory_is_taken(tmp_path):
    board = raced(tmp_path, {("uwsgi", "none"): EVEN, ("nginx-gunicorn", "none"): times(1.001)})
    assert board.verdict == "ties" and [each.verdict for each in board.cases[:2]] == ["ties", "ties"]
    assert board.cases[board.best].stack == "uwsgi"


def test_what_the_rounds_do_not_tell_is_open(tmp_path):
    unsteady = [60.0, 140.0, 80.0, 150.0, 90.0]
    board = raced(tmp_path, {("uwsgi", "none"): EVEN, ("gunicorn", "none"): unsteady})
    assert board.verdict == "inconclusive"
    assert {each.verdict for each in board.cases if each.ratio} == {"inconclusive"}
    assert "--rounds 10" in board.answer[1]


@pytest.mark.parametrize(
    ("words", "plan", "rounds", "more"),
    [
        ("run --rounds 3 --max-time=3m", {}, 1, "python -m bench run --rounds 2"),
        ("run --max-time 1m --rounds 3", {"rounds": 3, "budget_s": 60.0}, 3, "python -m bench run --rounds 6"),
        # The time ended it.
        (
            "run --max-time=1m --rounds 3",
            {"rounds": 3, "budget_s": 60.0},
            2,
            "python -m bench run --rounds 3 --max-time 120s",
        ),
        ("tune gunicorn --capacity p95=200ms", {"tunes": "gunicorn"}, 1, ""),
    ],
)
def test_more_rounds_are_made_by_the_same_command_if_it_takes_them(words, plan, rounds, more):
    info = replace(run_data.INFO, command=("python", "-m", "bench", *words.split()))
    trials = [SimpleNamespace(round=number) for number in range(1, rounds + 1)]
    run = SimpleNamespace(info=replace(info, plan=replace(info.plan, **plan)), trials=trials)
    assert facts.more_rounds(run) == more


@pytest.mark.parametrize("verdict", ["leads", "inconclusive"])
def test_the_next_command_can_be_pasted(tmp_path, verdict):
    project, config = tmp_path / "my site", tmp_path / "it's.toml"
    other = [50.0] * 5 if verdict == "leads" else [60.0, 140.0, 80.0, 150.0, 90.0]
    change = rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): other})
    folder = report_folder.make(tmp_path / "run", rounds=5, workloads=("home",), change=change)
    file = folder / "run.json"
    info = json.loads(file.read_text())
    info["plan"] |= {"project": str(project), "describe": str(config)}
    info["command"] = ["python", "-m", "bench", "run", "--stack", "uwsgi", "--project", str(project)]
    info["command"] += ["--config", str(config), "--rounds", "5", "--output", str(folder)]
    file.write_text(json.dumps(info))
    (board,) = read(folder).boards
    assert board.verdict == verdict
    *program, command = shlex.split(board.answer[-1].removeprefix("Next: "))[:4]
    assert (program, command) == (["python", "-m", "bench"], "render" if verdict == "leads" else "run")
    args = main.parser().parse_args(shlex.split(board.answer[-1].removeprefix("Next: "))[3:])
    assert (args.project, args.config) == (project, config)


def test_a_commit_is_not_rendered_as_its_files_are_not_those_of_now(tmp_path):
    board = raced(tmp_path, {("uwsgi", "none"): EVEN, ("gunicorn", "none"): [50.0] * 5})
    assert "render" in board.answer[-1]
    cases = tuple(replace(case, stack=f"{case.stack}@ref=main") for case in board.cases)
    assert "Next" not in " ".join(recommendation.recommended(replace(board, cases=cases, answer=())).answer)


def test_the_best_with_a_single_round_is_open_against_nobody(tmp_path):
    slower = {("gunicorn", "none"): EVEN, ("nginx-gunicorn", "none"): times(0.9)}
    board = raced(tmp_path, {("uwsgi", "none"): [300.0, None, None, None, None], **slower})
    assert (board.verdict, row(board, "gunicorn").verdict) == ("inconclusive", "")
    assert "one round proves no difference" in board.answer[0]


def test_cases_without_a_round_in_common_have_no_interval(tmp_path):
    board = raced(
        tmp_path, {("uwsgi", "none"): [200.0, 201.0, *[None] * 3], ("gunicorn", "none"): [*[None] * 2, *EVEN[:3]]}
    )
    assert page.ratio_words(row(board, "gunicorn").ratio) == "2.01\N{MULTIPLICATION SIGN} (no interval)"


def test_wrong_responses_failed_trials_and_skips_have_no_figure(plain):
    (board,) = read(plain).boards
    wrong = row(board, "gunicorn", "page-cache")
    assert (wrong.verdict, wrong.ratio, wrong.checks.failed) == ("not measured", None, ("login",))
    assert all(load.rates == {} and load.latency is None for load in wrong.loads.values())
    failed = row(board, "nginx-gunicorn", "fragments")
    assert failed.verdict == "not measured" and failed.loads["session"].log.endswith("server.log")
    assert failed.loads["home"].verdict == "" and failed.ratio is None  # a mean needs every workload
    assert not any((each.stack, each.layer) == ("uwsgi", "staticgenerator") for each in board.cases)
    reason, (name,) = next(iter(read(plain).runs[0].skips.items()))
    assert "no web server in front" in reason and name == "gunicorn with staticgenerator"


def test_discarded_trials_are_not_used_and_only_interference_counts_as_such(tmp_path):
    def discarded(trial):
        if (trial.stack, trial.layer, trial.round) != ("uwsgi", "none", 1):
            return trial
        return replace(trial, status="discarded", reason="drift: it slowed down")

    folder = report_folder.make(tmp_path / "run", workloads=("home",), change=discarded)
    first = next(trial for trial in read_run(folder).trials if trial.status == "discarded")
    Folder(folder).append(replace(first, status="ok", reason=None))
    document = read(folder)
    rates = row(document.boards[0], "uwsgi").loads["home"].rates
    assert sorted(rates) == [1, 2, 3] and rates[1] == first.throughput
    assert not any("interference" in note for note in document.runs[0].notes)
    reason = "interference: other processes took 40% of the machine"
    Folder(folder).append(replace(first, reason=reason))
    Folder(folder).append(replace(first, status="ok", reason=None))
    assert any("1 trial made again because of interference" in note for note in read(folder).runs[0].notes)


def test_a_headline_without_a_figure_has_the_reason_of_a_case_that_was_tried(tmp_path):
    def stopped(trial):
        if trial.stack != "uwsgi":
            return None
        return replace(trial, status="discarded", reason="interference: a browser")

    folder = report_folder.make(tmp_path / "run", rounds=1, workloads=("home",), change=stopped)
    assert "interference: a browser" in read(folder).boards[0].answer[0]


@pytest.mark.parametrize("words", [19, 20])
def test_a_headline_shows_that_its_reason_goes_on(tmp_path, words):
    reason = " ".join(f"w{number}" for number in range(words))

    def discarded(trial):
        return replace(trial, status="discarded", reason=reason)

    folder = report_folder.make(tmp_path / "run", rounds=1, workloads=("home",), change=discarded)
    headline = read(folder).boards[0].answer[0]
    assert headline.startswith("Not measured: discarded: w0 ")
    assert headline.endswith("w18." if words == 19 else "w18 ...")


def test_a_case_that_a_race_dropped_cannot_be_the_best(tmp_path):
    by_case = {("uwsgi", "none"): times(2), ("gunicorn", "none"): EVEN, ("nginx-uwsgi", "none"): times(1.97)}
    folder = report_folder.make(tmp_path / "run", rounds=5, workloads=("home",), change=rates(by_case))
    info = read_run(folder).info
    (case,) = (case for case in info.cases if (case.stack, case.layer) == ("nginx-uwsgi", "none"))
    dropped = (Dropped(case.case_id, report_folder.LEVEL, 1, "it cannot be the best any more"),)
    Folder(folder).write(replace(info, dropped=dropped, ended_by="decided", plan=replace(info.plan, until="decided")))
    dropped_row = row(read(folder).boards[0], "nginx-uwsgi")
    # The rounds on their own do not prove the difference, but the race did.
    assert (dropped_row.verdict, dropped_row.loads["home"].verdict) == ("", "")
    assert "after 1 round" in dropped_row.reason


def test_no_cached_page_is_the_best_if_none_may_be_cached(plain):
    (board,) = read(plain).boards
    assert board.cases[board.best].caches_pages
    assert {board.cases[index].layer for index in board.uncached} == {"none"}


def test_the_verdict_without_cached_pages_has_the_words_of_the_others(tmp_path):
    unsteady = [60.0, 140.0, 80.0, 150.0, 90.0]
    cached = {("uwsgi", "page-cache"): times(9)}
    board = raced(tmp_path, {("uwsgi", "none"): EVEN, ("gunicorn", "none"): unsteady, **cached})
    assert board.uncached_verdict == "inconclusive"
    (sentence,) = (text for text in board.answer if "no page may be cached" in text)
    assert "inconclusive between" in sentence and "gunicorn" in sentence and "uwsgi" in sentence


# --------------------------------------------------------------------------------- levels, open loop, capacity


def with_open_loop(folder: Path, rate: float, requests: int = 1500) -> Path:
    """The run with one more trial of each case, with requests on a schedule."""
    for trial in read_run(folder).latest.values():
        if trial.round == 1 and trial.status == "ok":
            encoded = histogram.encode(histogram.from_counts([(1000 * n, requests // 100) for n in range(1, 101)]))
            opened = {"level_connections": None, "rate_requested": rate, "requests_per_second": rate}
            Folder(folder).append(changed(trial, trial_id=f"{trial.trial_id}-open", histogram=encoded, **opened))
    return folder


def test_latency_is_that_of_the_open_loop_only(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",))
    load = row(read(folder).boards[0], "uwsgi").loads["home"]
    assert load.latency is None
    open_load = row(read(with_open_loop(folder, 40.0)).boards[0], "uwsgi").loads["home"]
    assert (open_load.latency.rate_per_second, open_load.latency.requests) == (40.0, 1500)
    assert (round(open_load.latency.p50_ms), round(open_load.latency.p99_ms)) == (50, 99)
    assert open_load.rates == load.rates
    # A 99th percentile needs a thousand requests.
    folder = with_open_loop(report_folder.make(tmp_path / "few", workloads=("home",)), 40.0, requests=900)
    latency = row(read(folder).boards[0], "uwsgi").loads["home"].latency
    assert round(latency.p50_ms) == 50 and latency.p99_ms is None


def test_the_verdict_is_that_of_the_highest_level_and_others_are_points(tmp_path):
    folder = report_folder.make(tmp_path / "run", levels=(8, 50), workloads=("home",))
    (board,) = read(folder).boards
    load = row(board, "uwsgi").loads["home"]
    assert board.load == "50 connections" and [point.level for point in load.points] == [8, 50]
    assert load.points[1].value == load.requests_per_second


def test_a_given_rate_measures_how_long_responses_take(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",))
    run = read_run(folder)
    Folder(folder).write(replace(run.info, plan=replace(run.info.plan, mode="open")))
    (folder / "trials.jsonl").unlink()
    for trial in run.trials:
        Folder(folder).append(replace(trial, level_connections=None, rate_requested=50.0))
    (board,) = read(folder).boards
    assert (board.kind, board.load) == ("rate", "50 requests/s") and "50 requests/s" in board.answer[0]


def test_a_capacity_has_the_rates_that_held_and_an_open_end_is_null(capacity_run):
    (board,) = read(capacity_run()).boards
    assert (board.kind, board.load, board.limit_ms) == ("capacity", "p95 within 200 ms", 200)
    load = row(board, "gunicorn", "page-cache").loads["home"]
    assert (load.requests_per_second, load.capacity_low, load.capacity_high) == (530, 500, 561)
    assert row(board, "gunicorn").loads["home"].visitors_per_hour == 180_000
    assert (board.verdict, board.cases[0].layer) == ("leads", "page-cache")

    def limited(trial):
        reason = "tool: the load tool used 95% of the CPU time it can use"
        return replace(trial, status="discarded", reason=reason) if trial.level > 530 else trial

    (board,) = read(capacity_run(limited)).boards
    assert row(board, "gunicorn", "page-cache").loads["home"].capacity_high is None


def test_a_round_that_says_nothing_of_a_capacity_does_not_lower_it(capacity_run):
    def lost(trial):
        return failed(trial, responses_before_failure=None) if trial.round == 2 else trial

    (board,) = read(capacity_run(lost)).boards
    load = row(board, "gunicorn", "page-cache").loads["home"]
    assert (load.capacity_low, load.capacity_high) == (500, 561)


@pytest.mark.parametrize(("limit", "noted"), [(Limit("p95", 200.0), False), (Limit("p99", 200.0), True)])
def test_a_percentile_of_too_few_requests_is_reported(capacity_run, limit, noted):
    folder = capacity_run(lambda trial: changed(trial, requests_total=300))
    info = read_run(folder).info
    Folder(folder).write(replace(info, plan=replace(info.plan, capacity=limit)))
    notes = [note for note in read(folder).runs[0].notes if "requests:" in note]
    few = "p99 needs 1,000 requests: 6 of 6 rates that held had fewer; give a longer --duration."
    assert notes == ([few] if noted else [])


def test_sizes_are_boards_of_their_own(capacity_run):
    document = read(capacity_run(sizes=("bronze", "silver")))
    assert [board.size for board in document.boards] == ["bronze", "silver"]
    assert len(document.answer) == 2 and document.answer[0].startswith("size bronze: ")


# ------------------------------------------------------------------------------- several folders, faults, hosts


@pytest.mark.parametrize("beside", [True, False])
def test_faults_are_columns_of_the_cases_they_were_made_on(tmp_path, beside):
    run = report_folder.make(tmp_path / "run", workloads=("home",))
    outcomes = [*fault_folder.good("nginx-uwsgi"), *fault_folder.bad("gunicorn")]
    faults = fault_folder.make(run / "faults" if beside else tmp_path / "faults", outcomes)
    document = read(run) if beside else read(run, faults)
    (board,) = document.boards
    good, bad = row(board, "nginx-uwsgi"), row(board, "gunicorn")
    assert (good.slow_clients, good.deploy_lost) == (0, 0)
    assert bad.slow_clients == 20
    assert (row(board, "uwsgi").slow_clients, row(board, "uwsgi").deploy_lost) == (None, None)
    assert {case.stack for case in document.faults} == {"nginx-uwsgi", "gunicorn"}


def test_faults_of_which_none_was_made_yet_keep_no_run_from_its_report(tmp_path):
    run = report_folder.make(tmp_path / "run", workloads=("home",))
    fault_folder.make(run / "faults", [])
    assert read(run).boards and not read(run).faults


def test_faults_without_a_run_are_a_document(tmp_path):
    outcomes = [
        fault_folder.outcome("gunicorn", "application-server", number, failed_new=lost, recovery_s=lost / 10)
        for number, lost in enumerate((10, 30, 20), 1)
    ]
    document = read(fault_folder.make(tmp_path / "faults", [*outcomes, *fault_folder.bad("uwsgi")]))
    first, second, limited = document.faults
    killed = first.faults[0]
    assert (killed.outcome, killed.requests_lost, killed.recovery_s) == ("passed", 20, 2.0)
    assert {each.fault: each.outcome for each in second.faults} == {
        "application": "failed",
        "worker": "discarded",
        "application-server": "failed",
        "slow-bodies": "known limitation",
        "malformed": "failed",
    }
    assert second.faults[2].recovery_s is None  # it never came back
    assert limited.size == "bronze"
    assert not document.boards and "uwsgi" in document.answer[0]


def test_a_fault_that_was_skipped_or_discarded_is_not_as_expected(tmp_path):
    outcomes = fault_folder.good("gunicorn")
    discarded = fault_folder.outcome("gunicorn", "certificate", status="discarded", reason="interference: a browser")
    assert sum(item.status == "skipped" for item in outcomes) == 2
    first, second = (
        fault_folder.make(tmp_path / name, recorded) for name, recorded in (("a", outcomes), ("b", [discarded]))
    )
    assert read(first).answer == ("9 faults as expected or known limitations.",)
    assert read(second).answer == ("0 faults as expected or known limitations, 1 discarded.",)
    assert any("interference: a browser" in text for text in page.every_note(read(second)))


def test_each_host_has_the_median_of_its_rounds(tmp_path):
    busy = HostCosts(sampled_s=10.0, cores=2, cpu_seconds=5.0, requests_share=0.6)

    def on_hosts(trial):
        if (trial.stack, trial.layer, trial.status) != ("uwsgi", "none", "ok"):
            return trial
        return changed(trial, hosts={"web1": replace(busy, cpu_seconds=5.0 * trial.round), "db1": HostCosts()})

    hosts = read(report_folder.make(tmp_path / "run", workloads=("home",), change=on_hosts)).hosts
    assert [(host.host, host.cpu_share, host.requests_share) for host in hosts] == [
        ("web1", 0.5, 0.6),
        ("db1", None, None),
    ]


@pytest.mark.parametrize(
    "output", [("--output", "/srv/me/1"), ("-o", "/srv/me/1"), ("--output=/srv/me/1",), ("-o/srv/me/1",)]
)
def test_it_has_no_secret_and_no_path_of_the_machine(tmp_path, output):
    folder = report_folder.make(tmp_path / "elsewhere" / "run", rounds=1)
    run = read_run(folder)
    command = ("python", "-m", "bench", "run", "--env", "SECRET_KEY=very-private", *output)
    plan = replace(run.info.plan, env={"SECRET_KEY": "very-private"}, project="postgres://me:hush@host/db")
    Folder(folder).write(replace(run.info, command=command, plan=plan, notes=(f"it lies in {folder}/raw",)))
    text = write.document([folder], folder / write.NAME)[1]
    assert not any(word in text for word in ("very-private", "hush", "/srv/me", str(tmp_path)))
    assert "It lies in $RUN/raw." in text


def test_a_case_whose_workers_are_uneven_says_so(tmp_path):
    def uneven(trial):
        return changed(trial, worker_cpu_seconds=(3.0, 1.0)) if trial.stack == "uwsgi" and trial.costs else trial

    board = read(report_folder.make(tmp_path / "run", workloads=("home",), change=uneven)).boards[0]
    assert row(board, "uwsgi").loads["home"].imbalance == 1.5
    assert any("busiest worker" in note and names == "uwsgi" for note, names in page.notes(board).items())
