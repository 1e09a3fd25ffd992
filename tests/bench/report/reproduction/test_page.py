"""The report of a reproduction as a page, and the folders that are refused."""

from __future__ import annotations

import json

import pytest

from bench.errors import BenchError
from bench.report.numbers import number
from bench.report.reproduction import claims, side_by_side
from bench.report.write import write_report
from bench.results import reproduction
from tests.bench.report.pages import Page, visible_words
from tests.bench.report.reproduction.tiny import record


def test_the_page_shows_published_and_measured_figures(folder):
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
    shown = page.texts("td")
    nginx = next(row for row in found.rows if row.title == "Nginx")
    assert any(cell.startswith(number(nginx.figures[0].measured.median)) for cell in shown)
    assert "2.50\N{MULTIPLICATION SIGN}" in shown


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
