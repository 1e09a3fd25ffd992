"""What to pick: the fastest, ties, and what was not ranked."""

from __future__ import annotations

import re
from dataclasses import replace

from bench.report import (
    charts,
    conditions,
    findings,
)
from bench.report.write import write_report
from tests.bench.report import report_folder
from tests.bench.report.pages import EVEN, Page, made, picked, rates, read


def test_the_first_screen_picks_and_says_what_it_costs(tmp_path):
    folder = made(tmp_path, rates({("uwsgi", "none"): EVEN, ("nginx-uwsgi", "staticgenerator"): [v * 9 for v in EVEN]}))
    said = picked(read(folder))
    assert said[0] == "Pick `nginx-uwsgi` with `staticgenerator`: it is fastest on `home`."
    row = read(folder).main_panels[0].row("nginx-uwsgi", "staticgenerator")
    assert said[1] == (
        "Its lead is 9.00 times the requests/s of `uwsgi` with `none` "
        "(95 % confidence interval 9.00 to 9.00, 5 rounds)."
    )
    assert said[2].startswith("It uses ")
    assert "MiB of peak memory and " in said[2]
    assert f"{row.cpu_total.median:.3g}" in said[2]
    assert said[3] == "It passed all 7 checks, but no check of cache safety was made."
    page = Page(write_report(folder).read_text("utf-8"))
    assert page.texts("h1") == [said[0].replace("`", "")]
    assert page.texts("dl", "advice")[0].endswith(said[-1].replace("`", ""))


def test_a_tie_names_every_deployment(tmp_path):
    near = [99.0, 102.0, 98.0, 101.0, 100.0]
    found = read(made(tmp_path, rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): near})))
    assert picked(found)[0] == (
        "Pick `uwsgi` with `none` or `gunicorn` with `none`: they tie on `home`, so choose by cost and safety."
    )
    (said,) = findings.ties(found)
    assert said == ("`home`, requests/s: `gunicorn` with `none` (100) ties with `uwsgi` with `none` (100).")


def test_one_round_is_no_proof(tmp_path):
    found = read(made(tmp_path, rates({("uwsgi", "none"): [9.0], ("gunicorn", "none"): [1.0]}), rounds=1))
    said = picked(found)
    assert said[0] == (
        "No pick yet: `uwsgi` with `none` has the highest figure on `home`, but one round proves no difference."
    )
    assert said[1] == "More rounds may prove one: run again with --rounds 5."


def test_two_cases_with_one_shared_round_are_no_proof(tmp_path):
    def change(trial):
        kept = rates({("uwsgi", "none"): [9.0, 9.1], ("gunicorn", "none"): [1.0, 1.1]})(trial)
        lost = kept is not None and (kept.stack, kept.round) == ("gunicorn", 2)
        return replace(kept, status="voided", reason="drift: slower") if lost else kept

    said = picked(read(made(tmp_path, change, rounds=2)))
    assert said[0] == (
        "No pick yet: `uwsgi` with `none` has the highest figure on `home`, but so few figures prove no difference."
    )


def test_deployments_that_win_other_workloads_do_not_tie(tmp_path):
    def change(trial):
        first, second = ("uwsgi", "gunicorn") if trial.workload == "home" else ("gunicorn", "uwsgi")
        return rates({(first, "none"): EVEN, (second, "none"): [value / 2 for value in EVEN]})(trial)

    said = picked(read(made(tmp_path, change, workloads=("home", "session"))))
    assert said[1] == "Each is the fastest on other workloads."


def test_differences_within_the_margin_are_none(tmp_path):
    """Every round is 2 % faster: certain, and yet not worth a verdict at a margin of 5 %."""
    found = read(made(tmp_path, rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): [v * 1.02 for v in EVEN]})))
    assert " or " in picked(found)[0]
    found = read(
        report_folder.make(
            tmp_path / "more",
            rounds=5,
            workloads=("home",),
            change=rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): [v * 1.08 for v in EVEN]}),
        )
    )
    assert picked(found)[0] == "Pick `gunicorn` with `none`: it is fastest on `home`."


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
    (failure,) = found.voided
    assert (failure.rounds, failure.reason) == ((1, 2, 3, 4, 5), "drift: the last third is 40 % slower")
    page = Page(write_report(folder).read_text("utf-8"))
    assert failure.reason in page.texts("td")
    assert any("Guards voided 5 trials" in note for note in page.texts("li"))
    assert "voided: none" in page.texts("text", "note")
    text = write_report(folder, "md").read_text("utf-8")
    assert "## Voided" in text
    assert "1,000,000,000" not in text
    assert "1 voided" in conditions.measured(found)


def test_few_rounds_ask_for_more_rounds(tmp_path):
    near = rates({("uwsgi", "none"): [100.0, 98.0], ("gunicorn", "none"): [99.0, 101.0]})
    said = picked(read(made(tmp_path, near, rounds=2)))
    assert said[1] == (
        "2 rounds do not show which of them is the fastest; it serves at most 1.30 times the requests/s of "
        "`uwsgi` with `none`. More rounds may: run again with --rounds 5."
    )


def test_two_rounds_of_a_run_tell_far_apart_cases_apart(tmp_path):
    """As measured: with two rounds of each case alone this was called a tie."""
    layers = ("none", "fragments", "site-middleware")
    found = {(stack, layer): [331.0, 349.0] for stack in ("gunicorn", "uwsgi", "nginx-gunicorn") for layer in layers}
    found[("uwsgi", "site-middleware")] = [340.0, 331.0]
    found |= {("gunicorn", "none"): [81.0, 266.0], ("nginx-uwsgi", "staticgenerator"): [18_184.0, 18_986.0]}
    report = read(made(tmp_path, rates(found), rounds=2))
    assert len(report.main_panels[0].ranked) == 9  # gunicorn with site-middleware gives wrong answers
    said = picked(report)
    assert said[0] == "Pick `nginx-uwsgi` with `staticgenerator`: it is fastest on `home`."
    assert findings.ties(report) == []
    panel = report.main_panels[0]
    noisy, quiet = panel.row("gunicorn", "none"), panel.row("uwsgi", "none")
    assert panel.standings.ratios[noisy].low > 2
    assert panel.standings.ratios[quiet].low > 40
    low, _, high = findings.standing(panel, noisy).partition(" to ")
    assert float(low) > 2
    assert high.endswith("\N{MULTIPLICATION SIGN}")


BUSY = "others: other processes took 75% of the machine"


def disturbed(trial):
    return replace(trial, status="voided", reason=BUSY, oom_kills=0, requests_per_second=100.0)


def test_a_run_of_voided_trials_names_the_guard_and_the_remedy(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",), rounds=2, change=disturbed)
    assert picked(read(folder)) == [
        "Nothing was measured, so there is nothing to pick. Guards voided 28 trials, most often `others`: other "
        "processes took 75% of the machine. Stop other programs, then make them again: "
        f"`python -m bench run --resume {folder} --again voided`."
    ]


def test_a_run_of_voided_trials_has_no_rating_and_no_empty_axes(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",), rounds=2, change=disturbed)
    text = write_report(folder).read_text("utf-8")
    page = Page(text)
    assert page.texts("text", "tick") == []
    assert text.count("Nothing was measured here; see") == 4
    assert "<b>not rated</b>" in text
    assert not re.search(r"<b>(HIGH|MEDIUM|LOW)</b>", text)
    assert not (folder / "throughput.svg").exists()
    assert "| not rated |" in write_report(folder, "md").read_text("utf-8")


def test_a_chart_without_a_figure_has_no_axis(tmp_path):
    """Requests/s were measured, percentiles were not."""
    names = ("latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "latency_p999_ms", "histogram")
    unknown = dict.fromkeys(names)
    folder = report_folder.make(tmp_path / "run", workloads=("home",), change=lambda trial: replace(trial, **unknown))
    report = read(folder)
    (panel,) = report.main_panels
    assert "tick" not in charts.latency(report, panel).wide
    assert "tick" in charts.throughput(report, panel).wide
