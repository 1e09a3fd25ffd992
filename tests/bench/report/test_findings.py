"""What a report concludes: which deployment to pick, what is safe, what counts and what does not, and no local path."""

from __future__ import annotations

import csv
import json
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest

from bench.figures import histogram
from bench.report import charts, conditions, findings, pick, ratings, redact, safety, small_charts
from bench.report import csv as csv_report
from bench.report.arrange import arrange
from bench.report.write import FORMATS, write_report
from bench.results import records, stability, trials
from bench.results.folder import Folder, read_info, read_run
from bench.verify.check import GROUPS
from tests.bench.report import report_folder
from tests.bench.report.test_report import Page, cells_of

EVEN = [100.0, 101.0, 99.0, 102.0, 98.0]


def made(tmp_path: Path, change=None, **more) -> Path:
    more = {"rounds": 5, "workloads": ("home",), **more}
    return report_folder.make(tmp_path / "run", change=change, **more)


def rates(found: dict[tuple[str, str], list[float]]):
    """Only these stacks with layers, with these requests/s round by round."""

    def change(trial):
        values = found.get((trial.stack, trial.layer))
        if values is None or trial.status == "failed":
            return None
        return replace(trial, requests_per_second=values[trial.round - 1])

    return change


def picked(report) -> list[str]:
    return [advice.sentence for advice in pick.pick(report)]


def read(folder: Path):
    return arrange(read_run(folder))


# ------------------------------------------------------------------------------------------ what to pick


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


def test_what_is_not_told_apart_is_named_beside_it(tmp_path):
    near = [99.0, 102.0, 98.0, 101.0, 100.0]
    found = read(made(tmp_path, rates({("uwsgi", "none"): EVEN, ("gunicorn", "none"): near})))
    assert picked(found)[0] == (
        "Pick `uwsgi` with `none` or `gunicorn` with `none`: they tie on `home`, so choose by cost and safety."
    )
    (said,) = findings.ties(found)
    assert said == (
        "`home`: `gunicorn` with `none` (100 requests/s) has the highest median and ties with "
        "`uwsgi` with `none` (100)."
    )


def test_one_round_is_no_proof(tmp_path):
    found = read(made(tmp_path, rates({("uwsgi", "none"): [9.0], ("gunicorn", "none"): [1.0]}), rounds=1))
    assert "but one round proves no difference" in picked(found)[0]


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


# --------------------------------------------------------------------------------------- what counts


def voided(trial):
    if (trial.stack, trial.layer) == ("uwsgi", "none") and trial.status == "ok":
        return replace(trial, status="voided", reason="drift: the last third is 40 % slower", requests_per_second=1e9)
    return trial


def test_voided_trials_are_told_and_count_nowhere(tmp_path):
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


def test_percentiles_of_several_rounds_are_of_all_their_requests(tmp_path):
    """One slow round among five: the mean of its rounds' p99 would be 208 ms, the p99 of all requests is 1,000."""

    def change(trial):
        if (trial.stack, trial.layer) != ("uwsgi", "none") or trial.status != "ok":
            return None
        slow = 200 if trial.round == 5 else 0
        counts = [(10_000, 2_000 - slow), (1_000_000, slow)]
        own = 1000.0 if slow else 10.0
        return replace(
            trial,
            histogram=histogram.encode(histogram.of(counts)),
            latency_p50_ms=10.0,
            latency_p99_ms=own,
            latency_p999_ms=None,
        )

    row = read(made(tmp_path, change)).main_panels[0].row("uwsgi", "none")
    figure = row.figure("latency_p99_ms")
    assert figure.median == pytest.approx(1000, rel=0.01)
    assert (figure.low, figure.count) == (10.0, 5)
    assert row.figure("latency_p999_ms").median == pytest.approx(1000, rel=0.01)
    assert row.figure("latency_p50_ms").median == pytest.approx(10, rel=0.01)


def test_percentiles_without_histograms_are_those_of_the_rounds(tmp_path):
    row = read(made(tmp_path)).main_panels[0].row("uwsgi", "none")
    assert row.figure("latency_p99_ms").median == sorted(row.by_round("latency_p99_ms").values())[2]


def test_the_chart_has_a_fourth_percentile_only_where_it_was_measured(tmp_path):
    panel = read(made(tmp_path)).main_panels[0]
    assert [name for name, _ in charts.percentiles(panel)] == ["p50", "p90", "p99"]


def test_levels_are_shown_as_throughput_and_as_latency_over_throughput(tmp_path):
    folder = made(tmp_path, levels=(10, 50))
    page = Page(write_report(folder).read_text("utf-8"))
    assert any("p99 in ms over requests/s" in heading for heading in page.texts("h3"))
    found = read(folder)
    small = {item.heading: item for item in small_charts.latency_by_rate(found, found.main_panels[0])}
    assert set(small) == {"gunicorn", "uwsgi", "nginx-gunicorn", "nginx-uwsgi"}
    row = found.panels[1].row("uwsgi", "none")
    assert row.setting.level == 10
    cells = page.texts("td")
    assert "10 connections" in cells
    assert f"{row.rate.median:.3g}" in cells
    assert (
        small_charts.latency_by_rate(read(report_folder.make(tmp_path / "one", rounds=1)), found.main_panels[0]) == []
    )


def test_an_open_loop_is_told_in_requests_a_second(tmp_path):
    def change(trial):
        return replace(trial, level_connections=None, rate_requested=50.0)

    folder = made(tmp_path, change)
    info = read_info(folder)
    Folder(folder).write_info(replace(info, plan=replace(info.plan, mode="open")))
    text = write_report(folder).read_text("utf-8")
    assert "50 requests/s, open loop" in text
    assert "latency counts from the moment a request was due" in text
    assert "50 connections" not in text


# ----------------------------------------------------------------------------------------------- safety


def checks(folder: Path) -> None:
    """What a layer's checks may come to."""
    more = [
        records.Outcome("uwsgi", "fragments", "hit", True, None, None, group="caching", figures={"hit_ratio": 0.98}),
        records.Outcome("gunicorn", "fragments", "hit", True, None, None, group="caching", figures={"hit_ratio": 0.5}),
        records.Outcome(
            "uwsgi", "fragments", "twice", True, None, None, group="stampede", not_tried="it takes seconds"
        ),
        records.Outcome("uwsgi", "fragments", "hosts", True, None, None, declared="one host only", group="web"),
        records.Outcome("nginx-uwsgi", "staticgenerator", "names", False, "404", "a file outside", group="names"),
    ]
    Folder(folder).append_checks(more)


def test_the_safety_table_has_a_word_for_each_layer_and_group(tmp_path):
    folder = made(tmp_path)
    checks(folder)
    found = safety.safety(read(folder))
    assert found.groups == ("behaviour", "caching", "web", "stampede", "names")
    words = {
        (layer, group): cell.word
        for layer in found.layers
        for group in found.groups
        if (cell := found.cell(layer, group))
    }
    assert words == {
        ("none", "behaviour"): "declared",
        ("fragments", "behaviour"): "pass",
        ("fragments", "caching"): "pass",
        ("fragments", "stampede"): "not tried",
        ("fragments", "web"): "declared",
        ("site-middleware", "behaviour"): "fail",
        ("staticgenerator", "behaviour"): "pass",
        ("staticgenerator", "names"): "fail",
    }
    page = Page(write_report(folder).read_text("utf-8"))
    cells = page.texts("td")
    for text in ("! declared1 declared", "\N{BALLOT X} fail1 fail", "\N{EN DASH} not tried1 not tried"):
        assert any(cell.replace(" ", "") == text.replace(" ", "") for cell in cells), text
    assert "one host only" in cells
    assert "it takes seconds" in cells
    assert "gunicorn 0.500" in " ".join(cells)
    # What was not tried is not counted with what was right.
    assert "\N{CHECK MARK} 8 of 8 (1 declared, 1 not tried)" in cells
    rows = cells_of(write_report(folder, "md").read_text("utf-8"))
    row = next(row for row in rows if row[0] == "`fragments`" and len(row) == 6)
    assert row[2:] == ["\N{CHECK MARK} 2 pass", "! 1 declared", "\N{EN DASH} 1 not tried", "\N{EN DASH}"]


def test_a_deployment_with_a_failed_check_is_never_picked(tmp_path):
    folder = made(tmp_path)
    checks(folder)
    assert not picked(read(folder))[0].startswith("Pick `nginx-uwsgi` with `staticgenerator`")


def test_groups_are_those_of_verify():
    assert safety.GROUPS == GROUPS


# -------------------------------------------------------------------------------------------- stability


def test_every_case_is_rated_with_reasons(tmp_path):
    def change(trial):
        killed = (trial.stack, trial.layer) == ("gunicorn", "none")
        return replace(trial, oom_kills=2 if killed and trial.round == 1 else 0, came_back=True)

    folder = made(tmp_path, change)
    found = {(item.stack, item.layer): item.rating for item in ratings.rated(read(folder))}
    assert found["gunicorn", "none"].rating == "LOW"
    assert found["nginx-uwsgi", "none"].rating == "HIGH"
    page = Page(write_report(folder).read_text("utf-8"))
    assert "LOW" in page.texts("td", "low")
    assert any("2 processes killed for lack of memory" in cell for cell in page.texts("td"))
    assert any(said.endswith("is HIGH.") for said in picked(read(folder)))
    only = report_folder.make(
        tmp_path / "one", workloads=("home",), change=lambda trial: change(trial) if trial.stack == "gunicorn" else None
    )
    assert "Its stability is HIGH." in picked(read(only))
    none = ratings.worst(read(only), "gunicorn", "none")
    assert (none.rating, none.reasons[0]) == ("LOW", "2 processes killed for lack of memory")


def test_the_formula_is_told_with_its_bounds():
    assert set(ratings.CRITERIA) == set(stability.BOUNDS)
    assert ("errors", "share of failed requests", "0 %", "1 %") in ratings.bounds()
    assert ("restarts", "worker processes replaced during a trial", "0", "3") in ratings.bounds()


# ------------------------------------------------------------------------------------------------ places


def test_reports_hold_no_path_of_the_machine(tmp_path):
    folder = report_folder.make(tmp_path / "elsewhere" / "run", rounds=1)
    path = folder / "configs" / "uwsgi~none" / "uwsgi" / "uwsgi.ini"
    path.write_text(
        "chdir = /srv/me/checkout\nhome = /srv/me/checkout/.venv\n"
        "socket = /srv/me/results/1/raw/uwsgi~none~r1/run/a.sock\n"
        f"stats = {folder}/raw/uwsgi~none~r1/x\n"
        "long = /tmp/benchapp-run-ab12_x/a.sock\nmodule = /usr/lib/uwsgi\n"
    )
    run = read_run(folder)
    command = ("python", "-m", "bench", "run", "--to", "/srv/me/results/1")
    Folder(folder).write_info(replace(run.info, command=command, notes=(f"kept in {folder}/raw",)))
    text = write_report(folder).read_text("utf-8")
    rendered = next(text for text in Page(text).texts("pre") if "chdir" in text)
    assert rendered == (
        "chdir = $PROJECT home = $PROJECT/.venv socket = $RUN/raw/uwsgi~none~r1/run/a.sock "
        "stats = $RUN/raw/uwsgi~none~r1/x long = $RUN/run/a.sock module = /usr/lib/uwsgi"
    )
    for form in FORMATS:
        said = write_report(folder, form).read_text("utf-8")
        assert "/srv/me" not in said
        assert str(tmp_path) not in said
    assert "kept in $RUN/raw." in Page(text).texts("li")
    assert "python -m bench run --to $RUN" in Page(text).texts("code")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("unix:/srv/site/a.sock;", "unix:$PROJECT/a.sock;"),
        ("/srv/site-other/a", "/srv/site-other/a"),
        ("x/srv/site/a", "x/srv/site/a"),
        ('"/srv/site"', '"$PROJECT"'),
        ("/srv/site/results/1/x", "$RUN/x"),
    ],
)
def test_only_whole_paths_are_replaced(text, shown):
    assert redact.placed(text, {"/srv/site": "$PROJECT", "/srv/site/results/1": "$RUN"}) == shown


# --------------------------------------------------------------------------------------------------- CSV


def test_a_cell_of_the_csv_is_a_value_or_json(tmp_path):
    def change(trial):
        return replace(trial, statuses={"200": 5, "503": 1}, thirds=(1.0, 2.0, 3.0), threads={"nginx": 3})

    folder = made(tmp_path, lambda trial: change(trial) if trial.status == "ok" else trial, rounds=1)
    row, *_ = csv.DictReader(write_report(folder, "csv").read_text("utf-8").splitlines())
    assert json.loads(row["statuses"]) == {"200": 5, "503": 1}
    assert json.loads(row["thirds"]) == [1.0, 2.0, 3.0]
    assert row["threads:nginx"] == "3"
    assert not set(csv_report.EXCLUDED) & row.keys()


def test_an_older_folder_is_still_read(tmp_path):
    """Format 1 had none of the later fields: what they say is not measured, and the report is whole."""
    folder = made(tmp_path)
    newer = {item.name for item in fields(trials.Trial) if item.default is not MISSING} - {"keep_alive"}
    lines = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    old = [{key: value for key, value in line.items() if key not in newer} for line in lines]
    (folder / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))
    info = json.loads((folder / "run.json").read_text())
    for key in ("mode", "margin", "guards"):
        info["plan"].pop(key)
    (folder / "run.json").write_text(json.dumps({**info, "format": 1}))
    for form in FORMATS:
        assert write_report(folder, form).stat().st_size > 1000
    assert picked(read(folder))[0].startswith("Pick ")
