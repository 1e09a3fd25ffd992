"""The published caching benchmark beside a run."""

from __future__ import annotations

import pytest

from bench.report.arrange import arrange
from bench.report.reproduction import caching
from bench.report.write import write_report
from bench.results.folder import read_run
from tests.bench.report import report_folder
from tests.bench.report.pages import Page, shown


def test_the_published_ratios_stand_beside_the_measured_ones(plain):
    published = caching.beside(arrange(read_run(plain)))
    assert (published.stack, published.same_stack) == ("nginx-uwsgi", True)
    measured = {row.layer: row for row in published.layers}
    assert measured["staticgenerator"].ratio.median == pytest.approx(365, rel=0.1)
    assert measured["varnish"].ratio is None
    text = shown(plain)
    published_part = text[text.index('<section id="published"') : text.index('<section id="figures"')]
    assert [cell for cell in Page(published_part).texts("td") if "not measured" in cell] == ["not measured here"] * 2
    assert "681.65" in published_part
    assert "1,102.5" in published_part


def test_another_stack_replaces_an_unmeasured_published_one(tmp_path):
    folder = report_folder.make(tmp_path / "run", change=lambda trial: trial if trial.stack == "uwsgi" else None)
    published = caching.beside(arrange(read_run(folder)))
    assert (published.stack, published.same_stack) == ("uwsgi", False)


def test_where_nothing_can_be_compared_the_report_says_nothing_of_it(tmp_path):
    other = report_folder.make(tmp_path / "workload", workloads=("session",))
    alone = report_folder.make(tmp_path / "layer", change=lambda trial: trial if trial.layer == "none" else None)
    for folder in (other, alone):
        assert caching.beside(arrange(read_run(folder))).comparable == []
        assert 'id="published"' not in write_report(folder).read_text("utf-8")
