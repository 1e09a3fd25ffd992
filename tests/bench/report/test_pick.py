"""What to pick: the fastest, ties, and what was not ranked."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from bench.report import (
    charts,
    conditions,
    findings,
    gaps,
    pick,
)
from bench.report.arrange import arrange
from bench.report.write import write_report
from bench.results.folder import read_run
from tests.bench.report import report_folder
from tests.bench.report.pages import EVEN, Page, change_cases, made, picked, rates, read


def test_the_first_screen_picks_and_says_what_it_costs(tmp_path):
    folder = made(tmp_path, rates({("uwsgi", "none"): EVEN, ("nginx-uwsgi", "staticgenerator"): [v * 9 for v in EVEN]}))
    said = picked(read(folder))
    assert said[0] == (
        "Pick `nginx-uwsgi` with `staticgenerator`: on `home`, it serves 9.00 times the requests/s of the next, "
        "`uwsgi` with `none` (in 95 of 100 repetitions of this run 9.00 to 9.00 times)."
    )
    row = read(folder).main_panels[0].row("nginx-uwsgi", "staticgenerator")
    assert said[1] == "Layer `none` has no figures on this stack, so the gain of the layer is not known."
    assert said[2].startswith("It uses ")
    assert "MiB of peak memory and " in said[2]
    assert f"{row.cpu_total.median:.3g}" in said[2]
    command = "python -m bench render nginx-uwsgi --layer staticgenerator --values production --to DIR"
    assert said[3] == f"Render it with `{command}`."
    assert said[4] == "It passed all 7 checks, but no check of cache safety was made."
    page = Page(write_report(folder).read_text("utf-8"))
    assert page.texts("h1") == [said[0].replace("`", "")]
    assert page.texts("dl", "advice")[0].endswith(said[-1].replace("`", ""))


def test_the_gain_of_a_layer_is_that_over_none_on_the_same_stack(tmp_path):
    found = {("uwsgi", "none"): EVEN, ("uwsgi", "site-middleware"): [v * 4 for v in EVEN]}
    report = read(made(tmp_path, rates(found), workloads=("home", "session")))
    said = picked(report)
    assert said[0].startswith(
        "Pick `uwsgi` with `site-middleware`: over both workloads, `home` and `session`, it serves 4.00 times "
    )
    assert said[1] == (
        "It serves 4.00 times the requests/s of the same stack without a layer (in 95 of 100 repetitions of this run "
        "4.00 to 4.00 times): 4.00 times on `home` and 4.00 times on `session`."
    )
    assert pick.last_lines(report) == [
        *(said[number].replace("`", "") for number in (0, 1, 2)),
        "Render it with python -m bench render uwsgi --layer site-middleware --values production --to DIR.",
    ]


def test_a_layer_that_gains_nothing_is_not_picked(tmp_path):
    found = {("uwsgi", "none"): [v * 2 for v in EVEN], ("uwsgi", "site-middleware"): EVEN}
    said = picked(read(made(tmp_path, rates(found))))
    assert said[1] == "No layer measured on this stack is proven faster than none."


NEAR = [99.0, 102.0, 98.0, 101.0, 100.0]


def test_a_tie_names_every_deployment_and_picks_the_one_with_least_memory(tmp_path):
    found = read(made(tmp_path, rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): NEAR})))
    said = picked(found)
    assert re.fullmatch(
        r"Pick `uwsgi` with `none`: on `home`, it ties with `gunicorn` with `none` \(in 95 of 100 repetitions of this "
        r"run the best serves at most 1\.0\d times its requests/s\), and with as few programs it needs the least "
        r"memory: [\d.]+ MiB, not [\d.]+\.",
        said[0],
    )
    assert said[1] == "More rounds may tell them apart: `python -m bench run --rounds 10`."
    (said,) = findings.ties(found)
    assert said == ("`home`, requests/s: `gunicorn` with `none` (100) ties with `uwsgi` with `none` (100).")


def test_memory_that_differs_by_less_than_two_runs_do_picks_the_fastest(tmp_path):
    """181 MiB are not less than 182."""

    def change(trial):
        kept = rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): NEAR})(trial)
        peak = {"uwsgi": 181, "gunicorn": 182}
        return kept and replace(kept, memory_peak_bytes={kept.stack: peak[kept.stack] * 2**20})

    said = picked(read(made(tmp_path, change)))[0]
    assert said.startswith("Pick `gunicorn` with `none`: ")
    assert said.endswith("), and with as few programs no other needs clearly less memory than its 182 MiB.")


def test_a_tie_picks_the_one_with_the_fewest_programs(tmp_path):
    found = read(made(tmp_path, rates({("nginx-uwsgi", "none"): EVEN, ("gunicorn", "none"): NEAR})))
    said = picked(found)[0]
    assert said.startswith("Pick `gunicorn` with `none`: on `home`, it ties with `nginx-uwsgi` with `none` (")
    assert said.endswith("), and it is simpler: 1 program, not 2.")


def test_a_stack_without_tls_has_a_program_more_in_production(tmp_path):
    folder = made(tmp_path, rates({("nginx-uwsgi", "none"): EVEN, ("gunicorn", "none"): NEAR}))
    change_cases(folder, lambda case: replace(case, needs_proxy=case.stack == "gunicorn"))
    said = {advice.topic: advice.sentence for advice in pick.pick(read(folder))}
    assert "with as few programs" in said["Pick"]
    change_cases(folder, lambda case: replace(case, needs_proxy=case.stack == "nginx-uwsgi"))
    said = {advice.topic: advice.sentence for advice in pick.pick(read(folder))}
    assert said["Pick"].endswith("), and it is simpler: 1 program, not 3 (a proxy that ends TLS counted).")
    assert "proxy" not in said["In production"]
    change_cases(folder, lambda case: replace(case, needs_proxy=True))
    said = {advice.topic: advice.sentence for advice in pick.pick(read(folder))}
    assert said["In production"].endswith(" It needs a proxy in front that ends TLS.")


def test_a_rate_that_was_asked_for_picks_nothing(tmp_path):
    """All that keep up answer as many requests a second."""
    run = read_run(made(tmp_path, rates({("nginx-uwsgi", "none"): EVEN, ("gunicorn", "none"): NEAR})))
    opened = replace(run, trials=[replace(trial, level_connections=None, rate_requested=16.0) for trial in run.trials])
    report = arrange(replace(opened, info=replace(run.info, plan=replace(run.info.plan, mode="open"))))
    (said,) = picked(report)
    assert said.startswith("No pick: every deployment was asked for the same requests/s")
    assert "`--capacity p95=200ms` in place of `--rate`" in said
    assert pick.question(report) == "How long do answers take on `home`, at 16 requests/s?"


def test_one_round_is_no_proof(tmp_path):
    found = read(made(tmp_path, rates({("uwsgi", "none"): [9.0], ("gunicorn", "none"): [1.0]}), rounds=1))
    said = picked(found)
    assert said[0] == (
        "No pick yet: `uwsgi` with `none` has the highest figure on `home`, but one round proves no difference."
    )
    assert said[1] == "More rounds may prove one: `python -m bench run --rounds 5`."


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "--capacity", "p95=200ms", "--to", "/x/y", "--rounds=1"], "run --capacity p95=200ms --rounds 5"),
        (["run", "--until", "decided", "--budget", "3m"], "run --until decided --rounds 5"),
        (["tune", "uwsgi", "--limit", "p95=200ms"], None),
        (["reproduce", "caching"], None),
    ],
)
def test_the_command_for_more_rounds_is_the_run_s_own(tmp_path, words, expected):
    """`tune` and `reproduce` take no rounds, so there is no command to name."""
    folder = made(tmp_path, rates({("uwsgi", "none"): [9.0], ("gunicorn", "none"): [1.0]}), rounds=1)
    run = read_run(folder)
    command = ("python", "-m", "bench", *words)
    said = {
        item.topic: item.sentence for item in pick.pick(arrange(replace(run, info=replace(run.info, command=command))))
    }
    assert said.get("Confidence") == (expected and f"More rounds may prove one: `python -m bench {expected}`.")


def test_two_cases_with_one_shared_round_are_no_proof(tmp_path):
    def change(trial):
        kept = rates({("uwsgi", "none"): [9.0, 9.1], ("gunicorn", "none"): [1.0, 1.1]})(trial)
        lost = kept is not None and (kept.stack, kept.round) == ("gunicorn", 2)
        return replace(kept, status="voided", reason="drift: slower") if lost else kept

    said = picked(read(made(tmp_path, change, rounds=2)))
    assert said[0] == (
        "No pick yet: `uwsgi` with `none` has the highest figure on `home`, but so few figures prove no difference."
    )


def test_deployments_that_win_other_workloads_have_one_answer(tmp_path):
    """The geometric mean decides: nine times as fast on one workload outweighs half as fast on the other."""

    def change(trial):
        fast = 9 if trial.workload == "home" else 0.5
        return rates({("uwsgi", "none"): [v * fast for v in EVEN], ("gunicorn", "none"): EVEN})(trial)

    said = picked(read(made(tmp_path, change, workloads=("home", "session"))))
    assert said[0] == (
        "Pick `uwsgi` with `none`: over both workloads, `home` and `session`, it serves 2.12 times the requests/s of "
        "the next, `gunicorn` with `none` (in 95 of 100 repetitions of this run 2.12 to 2.12 times)."
    )


def test_a_dropped_case_is_never_picked(tmp_path):
    folder = made(tmp_path, rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): NEAR}))
    path = folder / "run.json"
    info = json.loads(path.read_text())
    info["plan"] |= {"until": "decided"}
    case = "uwsgi~none~home~unlimited~sqlite"
    why = "it cannot be the best any more"
    info["dropped"] = [{"case_id": case, "level": report_folder.LEVEL, "round": 1, "reason": why}]
    path.write_text(json.dumps(info))
    report = read(folder)
    assert picked(report)[0].startswith("Pick `gunicorn` with `none`: on `home`, it serves ")
    assert "1 case could not be the best any more and was dropped" in conditions.racing_note(report)


def test_differences_within_the_margin_are_none(tmp_path):
    """Every round is 2 % faster: certain, and yet not worth a verdict at a margin of 5 %."""
    found = read(made(tmp_path, rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): [v * 1.02 for v in EVEN]})))
    assert "it ties with" in picked(found)[0]
    found = read(
        report_folder.make(
            tmp_path / "more",
            rounds=5,
            workloads=("home",),
            change=rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): [v * 1.08 for v in EVEN]}),
        )
    )
    assert picked(found)[0].startswith("Pick `gunicorn` with `none`: on `home`, it serves 1.08 times ")


def voided(trial):
    if (trial.stack, trial.layer) == ("uwsgi", "none") and trial.status == "ok":
        return replace(trial, status="voided", reason="drift: the last third is 40 % slower", requests_per_second=1e9)
    return trial


def test_voided_trials_are_listed_and_not_used(tmp_path):
    folder = made(tmp_path, voided)
    found = read(folder)
    row = found.main_panels[0].row("uwsgi", "none")
    assert (row.outcome, row.rate, row.ranked) == ("voided", None, False)
    assert "uwsgi` with `none`" not in picked(found)[0]
    last = picked(found)[-1]
    assert last.startswith("Not ranked on every workload: ")
    assert "`uwsgi` with `none` (voided)" in last
    (gap,) = [gap for gap in gaps.gaps(found) if gap.outcome == "voided"]
    assert (gap.count, gap.reason, gap.example) == (5, "drift", "drift: the last third is 40 % slower")
    assert gaps.sentence(found).split("; ")[1] == "5 trials voided (5 by drift)"
    page = Page(write_report(folder).read_text("utf-8"))
    assert any(gap.example in text for text in page.texts("td"))
    assert any("Guards voided 5 trials" in note for note in page.texts("li"))
    assert "voided: none" in page.texts("text", "note")
    assert "1,000,000,000" not in write_report(folder).read_text("utf-8")
    assert "1 voided" in conditions.measured(found)


def test_few_rounds_ask_for_more_rounds(tmp_path):
    near = rates({("uwsgi", "none"): [100.0, 98.0], ("gunicorn", "none"): [99.0, 101.0]})
    said = picked(read(made(tmp_path, near, rounds=2)))
    assert "it ties with" in said[0] and "at most 1.3" in said[0]
    assert said[1] == "More rounds may tell them apart: `python -m bench run --rounds 5`."


def test_two_rounds_of_a_run_tell_far_apart_cases_apart(tmp_path):
    """As measured: with two rounds of each case alone this was called a tie."""
    layers = ("none", "fragments", "site-middleware")
    found = {(stack, layer): [331.0, 349.0] for stack in ("gunicorn", "uwsgi", "nginx-gunicorn") for layer in layers}
    found[("uwsgi", "site-middleware")] = [340.0, 331.0]
    found |= {("gunicorn", "none"): [81.0, 266.0], ("nginx-uwsgi", "staticgenerator"): [18_184.0, 18_986.0]}
    report = read(made(tmp_path, rates(found), rounds=2))
    assert len(report.main_panels[0].ranked) == 9  # gunicorn with site-middleware gives wrong answers
    said = picked(report)
    assert re.match(r"Pick `nginx-uwsgi` with `staticgenerator`: on `home`, it serves \d\d\.\d times ", said[0])
    assert findings.ties(report) == []
    panel = report.main_panels[0]
    noisy, quiet = panel.row("gunicorn", "none"), panel.row("uwsgi", "none")
    assert panel.standings.ratios[noisy].low > 2
    assert panel.standings.ratios[quiet].low > 40
    low, _, high = findings.standing(panel, noisy).partition(" to ")
    assert float(low) > 2
    assert high.endswith("\N{MULTIPLICATION SIGN}")


BUSY = "interference: other processes took 75% of the machine"


def disturbed(trial):
    return replace(trial, status="voided", reason=BUSY, oom_kills=0, requests_per_second=100.0)


def test_a_run_of_voided_trials_names_the_guard_and_the_remedy(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",), rounds=2, change=disturbed)
    assert picked(read(folder)) == [
        "Nothing was measured, so there is nothing to pick. Guards voided 28 trials, most often `interference`: other "
        "processes took 75% of the machine. Stop other programs, then make them again: "
        f"`python -m bench run --resume {folder}`."
    ]


def test_a_run_of_voided_trials_has_no_empty_axes(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",), rounds=2, change=disturbed)
    text = write_report(folder).read_text("utf-8")
    page = Page(text)
    assert page.texts("text", "tick") == []
    assert text.count("Nothing was measured here; see") == 3
    assert not (folder / "throughput.svg").exists()


def test_a_chart_without_a_figure_has_no_axis(tmp_path):
    """Requests/s were measured, percentiles were not."""
    names = ("latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "latency_p999_ms", "histogram")
    unknown = dict.fromkeys(names)
    folder = report_folder.make(tmp_path / "run", workloads=("home",), change=lambda trial: replace(trial, **unknown))
    report = read(folder)
    (panel,) = report.main_panels
    assert "tick" not in charts.latency(report, panel).wide
    assert "tick" in charts.throughput(report, panel).wide
