"""The published benchmarks repeated: their data leads to real runs, the runs to ratios, and the ratios to verdicts."""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.catalog import catalog, compose
from bench.cli import main, reproduce, run
from bench.errors import BenchError
from bench.measure import guards
from bench.report import numbers, pick
from bench.report.reproduction import claims, forms, side_by_side
from bench.report.reproduction.measured import MeasuredFigures
from bench.report.reproduction.texts import ReproductionTexts
from bench.report.write import write_report
from bench.results import reproduction
from bench.results.folder import TRIALS_FILE, read_run
from tests.bench.measure.fake_instrument import FakeInstrument
from tests.bench.report import report_folder
from tests.bench.report.pages import Page, cells_of
from tests.bench.report.reproduction.test_claims import rating

NAMES = list(reproduction.benchmarks())


@pytest.fixture(autouse=True)
def no_database_of_the_caller(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)


def places(benchmark: str):
    """Every place that a benchmark's rows and claims name, with what is said of all of them."""
    data = reproduction.benchmarks()[benchmark]
    here = data.get("here", {})
    yield from ({**here, **{key: row[key] for key in ("stack", "layer", "size") if key in row}} for row in data["rows"])
    for claim in data["claims"]:
        for place in (*(claim[side] for side in ("left", "right") if side in claim), *claim.get("order", [])):
            for stack in place.get("stacks", [place.get("stack")]):
                yield {**here, **place, **({"stack": stack} if stack else {})}


# ------------------------------------------------------------------------------------ the data is sound


@pytest.mark.parametrize(
    ("benchmark", "part"),
    [(name, part["name"]) for name in NAMES for part in reproduction.benchmarks()[name]["parts"]],
)
@pytest.mark.parametrize("quick", [False, True], ids=["published", "quick"])
def test_every_part_is_a_run_of_what_exists(benchmark, part, quick):
    words = reproduce.words_of(benchmark, part, quick)
    asked = main.parser().parse_args(["run", *words])
    for stack in asked.stack:
        assert catalog.read().stack(stack)
    for layer in asked.layer:
        assert catalog.read().joined_layers(layer)
    for name in asked.workload:
        assert catalog.read().workload(name)
    for size in asked.size or []:
        assert size == "unlimited" or catalog.read().size(size)


def test_quick_is_shorter():
    for name in NAMES:
        for part in reproduction.benchmarks()[name]["parts"]:
            whole, quick = (
                main.parser().parse_args(["run", *reproduce.words_of(name, part["name"], short)])
                for short in (False, True)
            )
            assert quick.duration * quick.rounds < whole.duration * whole.rounds
            assert (quick.stack, quick.level) == (whole.stack, whole.level)


@pytest.mark.parametrize("benchmark", NAMES)
def test_every_place_is_measured_by_some_part(benchmark):
    """A row or claim about what no part measures could never be anything but "not measured"."""
    data = reproduction.benchmarks()[benchmark]
    measured = {
        (stack, layer, name, size)
        for part in data["parts"]
        for stack in part["stacks"]
        for layer in part["layers"]
        for name in part["workloads"]
        for size in part.get("sizes", ["unlimited"])
    }
    for place in places(benchmark):
        wanted = {"size": "unlimited", "layer": "none", **place}
        assert tuple(wanted[key] for key in ("stack", "layer", "workload", "size")) in measured


# -------------------------------------------------------------------------------------------- verdicts


# ---------------------------------------------------------------- a folder of invented figures, read back

TINY = {
    "title": "A tiny benchmark",
    "source": "nobody",
    "year": 1999,
    "question": "Which?",
    "load": "ab",
    "machine": "an abacus",
    "here": {"layer": "none", "workload": "home"},
    "quick": {"rounds": 1},
    "parts": [
        {"name": "first", "stacks": ["one"], "layers": ["none"], "workloads": ["home"], "levels": [1, 2], "rounds": 2,
         "duration_s": 1},
        {"name": "second", "stacks": ["two"], "layers": ["none"], "workloads": ["home"], "levels": [2], "rounds": 2,
         "duration_s": 1},
    ],
    "columns": [
        {"key": "rps", "title": "requests/s", "metric": "requests_per_second"},
        {"key": "memory", "title": "memory MiB", "metric": "memory_total", "better": "lower"},
        {"key": "lowest", "title": "lowest", "metric": "requests_per_second", "pick": "min"},
    ],
    "rows": [
        {"stack": "gunicorn", "title": "Gunicorn", "baseline": True, "rps": 10},
        {"stack": "nginx-uwsgi", "title": "Nginx", "rps": 25},
        {"stack": "nginx-uwsgi", "layer": "staticgenerator", "title": "Files", "added": True},
        {"stack": "two", "title": "Gone", "rps": 5},
    ],
    "claims": [
        {"claim": "Files are a hundred times faster.", "left": {"stack": "nginx-uwsgi", "layer": "staticgenerator"},
         "right": {"stack": "nginx-uwsgi"}, "published": 200, "at_least": 100},
        {"claim": "Nginx doubles it.", "left": {"stack": "nginx-uwsgi"}, "right": {"stack": "gunicorn"}, "at_least": 2},
        {"claim": "Each is faster.", "order": [{"layer": "none", "stack": "nginx-uwsgi"},
         {"layer": "fragments", "stack": "nginx-uwsgi"}, {"layer": "site-middleware", "stack": "nginx-uwsgi"}],
         "at_least": 1},
        {"claim": "The middle one is slow.", "left": {"stack": "gunicorn"},
         "right": {"stacks": ["gunicorn", "uwsgi", "nginx-uwsgi"], "name": "all of them"}, "at_most": 0.99},
        {"claim": "It fails.", "left": {"stack": "uwsgi", "layer": "fragments"}, "fails": True},
        {"claim": "The lost one is slow.", "left": {"stack": "two"}, "right": {"stack": "uwsgi"}, "at_most": 1},
        {"claim": "Nobody tries it.", "untested": "it is gone"},
    ],
}  # fmt: skip


@pytest.fixture
def tiny(monkeypatch):
    real = reproduction.benchmarks()
    monkeypatch.setattr(reproduction, "benchmarks", lambda: {**real, "tiny": TINY})


def record(**changes) -> reproduction.Reproduction:
    return replace(
        reproduction.Reproduction(
            format=reproduction.FORMAT,
            benchmark="tiny",
            quick=False,
            database=None,
            command=("python", "-m", "bench", "reproduce", "tiny"),
            started_at="2026-11-21T08:07:00+00:00",
            finished_at="2026-11-21T09:07:00+00:00",
            parts=(reproduction.Part("first"), reproduction.Part("second", reason="two is not installed")),
        ),
        **changes,
    )


@pytest.fixture
def folder(tmp_path, tiny) -> Path:
    made = tmp_path / "again"
    report_folder.make(made / "first", workloads=("home",), levels=(10, 50), rounds=5)
    reproduction.write(made, record())
    return made


def test_ratios_are_against_each_sides_own_baseline(folder):
    found = side_by_side.read(folder)
    lines = {row.title: row.figures for row in found.rows}
    run_of = {(row.stack, row.layer): row for row in found.reports[0].main_panels[0].rows}
    rate, memory, lowest = lines["Nginx"]
    assert (rate.published, rate.published_ratio) == (25, 2.5)
    assert rate.measured == run_of["nginx-uwsgi", "none"].rate
    expected = rate.measured.median / run_of["gunicorn", "none"].rate.median
    assert rate.ratio.median == pytest.approx(expected, rel=0.05)
    assert (memory.published, memory.published_ratio) == (None, None)
    assert memory.measured.median == run_of["nginx-uwsgi", "none"].memory_total.median
    assert lowest.measured.median < rate.measured.median
    assert lines["Files"][0].published_ratio is None
    assert lines["Files"][0].ratio.median > 100
    assert lines["Gone"][0].measured is None
    assert lines["Gone"][0].why == "two is not installed"


def test_conclusions_are_computed(folder):
    found = {item.claim: item for item in side_by_side.read(folder).verdicts}
    verdicts = [item.verdict for item in found.values()]
    holds, wrong, unknown = claims.HOLDS, claims.NOT, claims.NOT_MEASURED
    assert verdicts == [holds, wrong, holds, holds, holds, unknown, unknown]
    files = found["Files are a hundred times faster."]
    assert files.sentence.startswith("`staticgenerator` serves ")
    assert f"{files.measured.median:.0f} times the requests/s of `none`, both with `nginx-uwsgi` (" in files.sentence
    assert files.sentence.endswith(" over 5 rounds); published 200.")
    assert found["The lost one is slow."].sentence == "Not measured: `two` on `home`: two is not installed."
    assert found["Nobody tries it."].sentence == "Not measured: it is gone."
    assert found["It fails."].sentence.startswith("At 50 connections, `uwsgi` with `fragments` failed in 1 of 5 trials")
    assert claims.summary(list(found.values())) == (
        "4 of 7 published conclusions hold here, 1 does not and 2 were not measured."
    )


def test_trials_of_all_parts_are_counted_together(tmp_path, tiny):
    made = tmp_path / "again"
    for name in ("first", "second"):
        report_folder.make(made / name, workloads=("home",), levels=(10,), rounds=2)
    reproduction.write(made, record(parts=(reproduction.Part("first"), reproduction.Part("second"))))
    found = side_by_side.read(made)
    one, two = (sum(len(failure.rounds) for failure in part.failures) for part in found.reports)
    assert one and two
    notes = ReproductionTexts(found).caveats
    assert [note for note in notes if "failed" in note] == [
        f"{one + two} trials failed: a failed trial has a reason and no figures."
    ]
    (rounds,) = [note for note in notes if note.startswith("Figures are medians of 2 rounds")]
    assert "contains the true median 50 % of the time" in rounds


def test_too_few_requests_do_not_disprove_what_began_later(folder, monkeypatch):
    place = {"stack": "nginx-uwsgi", "layer": "none", "workload": "home"}
    asked = MeasuredFigures(side_by_side.read(folder).reports)
    steady = rating()
    monkeypatch.setattr(MeasuredFigures, "stability", lambda self, at: (steady, ""))
    most = asked.most_requests(place)
    assert most == max(
        trial.requests_total
        for trial in asked.reports[0].run.trials
        if trial.stack == "nginx-uwsgi" and trial.layer == "none" and trial.requests_total
    )
    claim = {"claim": "It falls over.", "left": place, "rating": "LOW"}
    (enough,) = claims.verdicts({"claims": [{**claim, "began_at_request": most}]}, asked)
    (few,) = claims.verdicts({"claims": [{**claim, "began_at_request": most + 1}]}, asked)
    assert (enough.verdict, few.verdict) == (claims.NOT, claims.INCONCLUSIVE)
    assert few.sentence.endswith(f"the published trouble began at about {most + 1:,}.")


def test_a_column_of_ratings_has_reasons_and_no_ratios(folder, monkeypatch):
    column = {"key": "stability", "title": "stability", "metric": "stability"}
    rows = [{**row, "stability": "HIGH"} for row in TINY["rows"]]
    monkeypatch.setitem(TINY, "columns", [*TINY["columns"], column])
    monkeypatch.setitem(TINY, "rows", rows)
    found = side_by_side.read(folder)
    (cells,) = [row.figures for row in found.rows if row.title == "Gunicorn"]
    (row,) = [row for row in cells_of(forms.as_markdown(found)) if row[0] == "Gunicorn" and row[2] == "HIGH"]
    assert row[3:] == [cells[-1].measured, "; ".join(cells[-1].reasons) or numbers.DASH]


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


def test_a_median_of_stacks_says_of_how_many(folder):
    found = {item.claim: item for item in side_by_side.read(folder).verdicts}
    assert " of the median of all of them, all 3 measured (" in found["The middle one is slow."].sentence


def test_the_reports_of_a_reproduction_say_the_same(folder, capsys):
    path = write_report(folder)
    assert path == folder / "report.html"
    text = path.read_text("utf-8")
    page = Page(text)
    found = side_by_side.read(folder)
    assert page.texts("h1") == ["A tiny benchmark, repeated"]
    assert page.texts("p", "verdict") == [claims.summary(list(found.verdicts))]
    assert len(page.texts("li", "holds")) == 4
    assert page.texts("h3")[:2] == ["requests/s", "memory MiB less is better; no figure is published"]
    assert "Part second is left out: two is not installed." in page.texts("li")
    assert {"part second", "cannot run here", "two is not installed"} <= set(page.texts("td"))
    assert (folder / "first" / "report.html").exists()
    assert "first/report.html" in [attributes.get("href") for _, attributes, _ in page.elements]
    assert str(folder.parent) not in text
    nginx = next(row for row in found.rows if row.title == "Nginx")
    shown = page.texts("td")
    assert "2.50\N{MULTIPLICATION SIGN}" in shown
    rows = cells_of(write_report(folder, "md").read_text("utf-8"))
    assert ["part second", "cannot run here", "`two is not installed`"] in rows
    (row,) = [row for row in rows if row[0] == "Nginx" and row[2] == "25"]
    assert row[4] in shown
    lines = list(csv.DictReader((write_report(folder, "csv")).read_text("utf-8").splitlines()))
    (line,) = [line for line in lines if (line["row"], line["column"]) == ("Nginx", "requests/s")]
    assert float(line["measured"]) == nginx.figures[0].measured.median
    assert float(line["published_ratio"]) == 2.5
    gone = next(line for line in lines if line["row"] == "Gone")
    assert (gone["measured"], gone["ratio"], gone["why_not_measured"]) == ("", "", "two is not installed")


def test_a_reproduction_without_a_trial_is_refused(tmp_path, tiny):
    reproduction.write(tmp_path, record())
    with pytest.raises(BenchError, match="no part of it has a trial yet; resume it with `python -m bench reproduce"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "not a JSON object"),
        (json.dumps({"format": 7}), "this program reads format 1"),
        (json.dumps({"format": 1}), "benchmark is missing"),
    ],
)
def test_a_spoiled_reproduction_is_refused_in_one_line(tmp_path, content, says):
    (tmp_path / reproduction.FILE).write_text(content)
    with pytest.raises(BenchError, match=says) as refusal:
        write_report(tmp_path)
    assert "\n" not in str(refusal.value)


# --------------------------------------------------------------------------------------- making the runs


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="reproduce")
    reproduce.add_arguments(parser)
    return parser.parse_args(words)


def asked(tmp_path, *words: str) -> argparse.Namespace:
    # On a machine that runs other tests too, guards would void what these are not about.
    unguarded = [word for name in guards.BOUNDS for word in ("--guard", f"{name}=off")]
    return arguments("tiny", "--quick", *unguarded, "--to", str(tmp_path / "again"), *words)


@pytest.mark.servers
def test_runs_are_made_reported_and_left_out_with_reasons(tmp_path, tiny, capsys):
    instrument = FakeInstrument()
    instrument.misfits["two", "none"] = "program not installed: two"
    assert reproduce.main(asked(tmp_path), instrument) == 0
    folder = tmp_path / "again"
    made = reproduction.read(folder)
    assert made.finished_at
    assert [part.reason for part in made.parts] == [None, "two with layer none: program not installed: two"]
    trials = read_run(folder / "first").trials
    assert sorted((trial.stack, trial.level, trial.status) for trial in trials) == [("one", 1, "ok"), ("one", 2, "ok")]
    assert capsys.readouterr().out.splitlines()[-1] == str(folder / "report.html")
    with pytest.raises(BenchError, match="it is complete; next: python -m bench report"):
        reproduce.main(arguments("--resume", str(folder)), instrument)


@pytest.mark.servers
def test_a_reproduction_goes_on_where_it_stopped(tmp_path, tiny, monkeypatch, capsys):
    instrument, real = FakeInstrument(), run.main
    monkeypatch.setattr(
        run, "main", lambda args, instrument=None: 130 if args.stack == ["two"] else real(args, instrument)
    )
    assert reproduce.main(asked(tmp_path), instrument) == 130
    folder = tmp_path / "again"
    assert capsys.readouterr().err.endswith(f"resume with: python -m bench reproduce --resume {folder}\n")
    assert reproduction.read(folder).finished_at is None
    first = (folder / "first" / "trials.jsonl").read_text()
    monkeypatch.setattr(run, "main", real)
    assert reproduce.main(arguments("--resume", str(folder)), instrument) == 0
    assert (folder / "first" / "trials.jsonl").read_text() == first
    assert [trial.stack for trial in read_run(folder / "second").trials] == ["two"]
    assert [line for line in instrument.log if line.startswith("up")] == ["up one none", "up two none"]


@pytest.mark.servers
def test_a_part_that_was_cut_short_is_gone_on_with(tmp_path, tiny):
    instrument = FakeInstrument()
    instrument.misfits["two", "none"] = "gone"
    reproduce.main(asked(tmp_path), instrument)
    folder = tmp_path / "again"
    lines = (folder / "first" / "trials.jsonl").read_text().splitlines(keepends=True)
    (folder / "first" / "trials.jsonl").write_text(lines[0])
    for path in (folder / "first" / "run.json", folder / reproduction.FILE):
        path.write_text(json.dumps({**json.loads(path.read_text()), "finished_at": None}))
    assert reproduce.main(arguments("--resume", str(folder)), instrument) == 0
    assert len((folder / "first" / "trials.jsonl").read_text().splitlines()) == 2
    assert (folder / "first" / "trials.jsonl").read_text().startswith(lines[0])


@pytest.mark.servers
def test_a_fault_that_stops_a_run_stops_all_and_says_how_to_go_on(tmp_path, tiny, monkeypatch):
    real = run.main

    def stopped(args, instrument=None):
        real(args, instrument)
        raise BenchError("stopped: the disk is full; fix it and resume with: python -m bench run --resume X")

    monkeypatch.setattr(run, "main", stopped)
    with pytest.raises(BenchError, match="or all of it: python -m bench reproduce --resume"):
        reproduce.main(asked(tmp_path), FakeInstrument())
    assert reproduction.read(tmp_path / "again").finished_at is None


def test_nothing_that_can_run_is_one_line_and_leaves_no_folder(tmp_path, tiny):
    instrument = FakeInstrument()
    instrument.misfits |= {("one", "none"): "not installed: one", ("two", "none"): "not installed: two"}
    with pytest.raises(BenchError, match="nothing of tiny can run here: one with layer none: not installed: one"):
        reproduce.main(asked(tmp_path), instrument)
    assert not (tmp_path / "again").exists()


def test_a_wrong_database_is_one_line_and_leaves_no_folder(tmp_path, tiny):
    with pytest.raises(BenchError, match="--database oracle: use sqlite"):
        reproduce.main(asked(tmp_path, "--database", "oracle"), FakeInstrument())
    assert not (tmp_path / "again").exists()


def test_a_wrong_guard_is_told_before_anything_begins(tmp_path, tiny, capsys):
    with pytest.raises(BenchError, match="--guard litle=1: write it as"):
        reproduce.main(arguments("tiny", "--guard", "litle=1", "--to", str(tmp_path / "again")), FakeInstrument())
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "again").exists()


def test_a_folder_in_use_is_refused(folder):
    with pytest.raises(BenchError, match="already holds a reproduction; resume it with --resume"):
        reproduce.main(arguments("tiny", "--to", str(folder)), FakeInstrument())
    with pytest.raises(BenchError, match="not an empty directory; give --to a new one"):
        reproduce.main(arguments("tiny", "--to", str(folder / "first")), FakeInstrument())


@pytest.mark.parametrize("words", [["tiny"], ["--to", "x"], ["--quick"], ["--guard", "drift=off"]])
def test_resume_takes_everything_from_the_folder(folder, words):
    with pytest.raises(BenchError, match=r"--resume takes everything from .*; leave out"):
        reproduce.main(arguments(*words, "--resume", str(folder)), FakeInstrument())


def test_resume_needs_the_database_that_it_began_with(folder):
    reproduction.write(folder, record(finished_at=None, database="postgresql://...@host/db"))
    with pytest.raises(BenchError, match="named by URL, which is not stored; give --database"):
        reproduce.main(arguments("--resume", str(folder)), FakeInstrument())
    reproduction.write(folder, record(finished_at=None, database="sqlite"))
    with pytest.raises(BenchError, match="it measures another database; leave out --database"):
        reproduce.main(arguments("--resume", str(folder), "--database", "postgresql"), FakeInstrument())


def test_a_benchmark_must_be_named():
    with pytest.raises(BenchError, match="name a benchmark: deployment-techniques, cherokee-report, caching"):
        reproduce.main(arguments(), FakeInstrument())
    with pytest.raises(SystemExit):
        main.parser().parse_args(["reproduce", "cachin"])


def test_a_published_database_that_is_not_installed_is_replaced_and_said(monkeypatch):
    monkeypatch.setattr(compose, "missing_programs", lambda service: ["initdb"])
    asked_for = replace(record(), benchmark="caching")
    assert reproduce._database(asked_for, "layers", None) == (
        "sqlite",
        ("postgresql is not installed (initdb): sqlite replaces it",),
    )
    assert reproduce._database(asked_for, "layers", "postgresql") == ("postgresql", ())
