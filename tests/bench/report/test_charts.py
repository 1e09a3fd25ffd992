"""Charts of a report: the picture for a README, percentiles, and purity."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from bench import report
from bench.report import (
    charts,
)
from bench.report.write import write_report
from tests.bench.report import report_folder
from tests.bench.report.pages import (
    made,
    read,
)


def test_p999_is_drawn_only_where_it_was_measured(tmp_path):
    panel = read(made(tmp_path)).main_panels[0]
    assert [name for name, _ in charts.percentiles(panel)] == ["p50", "p90", "p99"]


SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_for_a_readme_stands_alone(tmp_path):
    folder = report_folder.make(tmp_path / "run")
    write_report(folder)
    text = (folder / "throughput.svg").read_text(encoding="utf-8")
    drawing = ElementTree.fromstring(text)
    assert drawing.tag == f"{SVG}svg"
    assert "var(" not in text  # not every viewer of images knows variables
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    words = [element.text for element in drawing.iter(f"{SVG}text")]
    assert "Requests/s by stack and layer: home" in words
    assert "50 connections, median and range of 3 rounds; load by wrk 4.1.0" in words
    assert any(
        word.startswith("Example 3000 (test data), 2 cores, 8.00 GiB; 21 November 2026") for word in words if word
    )


def test_charts_read_and_write_nothing():
    for name in (
        "svg",
        "axis",
        "row_charts",
        "line_charts",
        "charts",
        "small_charts",
        "findings",
        "pick",
        "model",
        "numbers",
    ):
        source = (Path(report.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        assert not re.search(r"\b(open|read_text|read_bytes|write_text|print)\(", source), name
