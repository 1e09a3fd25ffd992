"""What to pick for so much memory, for readers who are signed in, and in each size."""

from __future__ import annotations

import json
from dataclasses import replace

from bench.report import fits, pick
from tests.bench.report.pages import EVEN, change_cases, made, rates, read
from tests.bench.report.report_folder import MIB


def needing(needs: dict[str, float], found):
    """Rates as given, and stacks that need so many MiB."""

    def change(trial):
        trial = rates(found)(trial)
        if trial is None or trial.status != "ok":
            return trial
        return replace(trial, memory_peak_bytes={"all": int(needs[trial.stack] * MIB)})

    return change


FASTER = [rate * 3 for rate in EVEN]
FASTEST = [rate * 9 for rate in EVEN]
FOUND = {("uwsgi", "none"): EVEN, ("nginx-uwsgi", "staticgenerator"): FASTER, ("nginx-uwsgi", "none"): EVEN}


def test_the_fastest_that_fits_a_budget_is_named_and_equal_budgets_share_a_row(tmp_path):
    rows = fits.fits(read(made(tmp_path, needing({"uwsgi": 100, "nginx-uwsgi": 300}, FOUND))))
    assert [(row.need, row.deployment, row.memory) for row in rows] == [
        ("Anonymous readers, any memory", "`nginx-uwsgi` with `staticgenerator`", "300"),
        ("128 MiB", "`uwsgi` with `none`", "100"),
        ("512 and 2,048 MiB", "`nginx-uwsgi` with `staticgenerator`", "300"),
        ("Readers who are signed in", "`uwsgi` with `none`", "100"),
    ]
    assert rows[0].sure == "3.00 times the next" and rows[1].sure == "the only one"
    assert rows[3].sure == "ties with 1 other, the simplest of them"


def test_readers_who_are_signed_in_have_the_layers_that_cache_parts(tmp_path):
    found = {("uwsgi", "none"): EVEN, ("uwsgi", "fragments"): FASTER, ("uwsgi", "site-middleware"): FASTEST}
    folder = made(tmp_path, rates(found))
    what = {"none": "nothing", "fragments": "parts", "site-middleware": "pages"}
    change_cases(folder, lambda case: replace(case, caches=what.get(case.layer, "pages")))
    rows = {row.need: row.deployment for row in fits.fits(read(folder))}
    assert rows["Anonymous readers, any memory"] == "`uwsgi` with `site-middleware`"
    assert rows["Readers who are signed in"] == "`uwsgi` with `fragments`"


def test_a_budget_below_all_needs_says_the_least(tmp_path):
    rows = fits.fits(read(made(tmp_path, needing({"uwsgi": 700, "nginx-uwsgi": 800}, FOUND))))
    assert ("128 and 512 MiB", "nothing measured fits: the least is 700 MiB") in [
        (row.need, row.deployment) for row in rows
    ]


def test_a_limited_run_has_the_budgets_too(tmp_path):
    folder = made(tmp_path, needing({"uwsgi": 100, "nginx-uwsgi": 300}, FOUND))
    for path in (folder / "trials.jsonl", folder / "run.json"):
        path.write_text(path.read_text("utf-8").replace("unlimited", "silver"), "utf-8")
    assert [(row.need, row.deployment) for row in fits.fits(read(folder))][:3] == [
        ("Size `silver`", "`nginx-uwsgi` with `staticgenerator`"),
        ("128 MiB, size `silver`", "`uwsgi` with `none`"),
        ("512 and 2,048 MiB, size `silver`", "`nginx-uwsgi` with `staticgenerator`"),
    ]


def test_one_round_fits_nobody(tmp_path):
    one = {("uwsgi", "none"): [9.0], ("gunicorn", "none"): [1.0]}
    assert fits.fits(read(made(tmp_path, rates(one), rounds=1))) == []


def test_what_needs_an_unknown_amount_fits_no_budget(tmp_path):
    def change(trial):
        trial = rates(FOUND)(trial)
        return trial and replace(trial, memory_peak_bytes=None)

    rows = fits.fits(read(made(tmp_path, change)))
    assert [row.need for row in rows] == ["Anonymous readers, any memory", "Readers who are signed in"]
    assert rows[0].memory == "not measured"


def test_the_same_answer_on_another_database_is_said_in_short(tmp_path):
    folder = made(tmp_path, rates(FOUND))
    path = folder / "trials.jsonl"
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines, *(line.replace("sqlite", "postgresql") for line in lines)]) + "\n", "utf-8")
    said = {advice.topic: advice.sentence for advice in pick.pick(read(folder))}
    assert said["Pick"].startswith("Pick `nginx-uwsgi` with `staticgenerator`: on `home`, `postgresql`, it serves ")
    assert said["With `sqlite`"] == (
        "Pick `nginx-uwsgi` with `staticgenerator` as well: it serves 3.00 times the next."
    )


def test_each_size_has_a_sentence_and_a_row_of_its_own(tmp_path):
    """The answer stays one sentence: that of the first size; no sentence names two picks."""
    folder = made(tmp_path, rates(FOUND))
    path = folder / "trials.jsonl"
    lines = path.read_text("utf-8").splitlines()
    slow = [
        line.replace("~unlimited~", "~bronze~").replace('"size":"unlimited"', '"size":"bronze"')
        for line in lines
        if json.loads(line)["stack"] == "uwsgi"
    ]
    path.write_text("\n".join([*lines, *slow]) + "\n", "utf-8")
    report = read(folder)
    said = {advice.topic: advice.sentence for advice in pick.pick(report)}
    assert said["Pick"].startswith("Pick `nginx-uwsgi` with `staticgenerator`: on `home`, size `unlimited`, it serves ")
    assert said["Pick"].count("Pick ") == 1
    assert said["With size `bronze`"].startswith("`uwsgi` with `none` is the only deployment with figures on `home`, ")
    assert [row.need for row in fits.fits(report)][-1] == "Size `bronze`"
