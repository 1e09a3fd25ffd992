"""The report of a reproduction in each form, and the folders that are refused."""

from __future__ import annotations

import csv
import json

import pytest

from bench.errors import BenchError
from bench.report.reproduction import claims, side_by_side
from bench.report.write import write_report
from bench.results import reproduction
from tests.bench.report.pages import Page, cells_of, visible_words
from tests.bench.report.reproduction.tiny import record


def test_the_reports_of_a_reproduction_say_the_same(folder, capsys):
    path = write_report(folder)
    assert path == folder / "report.html"
    text = path.read_text("utf-8")
    page = Page(text)
    found = side_by_side.read(folder)
    assert page.texts("h1") == ["A tiny benchmark, repeated"]
    assert len(visible_words(text)) <= 1500
    assert page.texts("p", "repeat") == ["Repeat it python -m bench reproduce tiny"]
    assert "21 November 2026, 08:07 UTC, 1 h" in page.texts("p", "eyebrow")[0]
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
        (json.dumps({"format": 7}), "format 7 of another version, and this one reads"),
        (json.dumps({"format": reproduction.FORMAT}), "benchmark is missing"),
    ],
)
def test_a_spoiled_reproduction_is_refused_in_one_line(tmp_path, content, says):
    (tmp_path / reproduction.FILE).write_text(content)
    with pytest.raises(BenchError, match=says) as refusal:
        write_report(tmp_path)
    assert "\n" not in str(refusal.value)
