"""Charts by level."""

from __future__ import annotations

from bench.report import (
    small_charts,
)
from bench.report.write import write_report
from tests.bench.report import report_folder
from tests.bench.report.pages import Page, made, opened, read


def test_levels_show_throughput_and_latency(tmp_path):
    folder = opened(made(tmp_path, levels=(10, 50)))
    page = Page(write_report(folder).read_text("utf-8"))
    assert any("p99 in ms over requests/s" in heading for heading in page.texts("h3"))
    found = read(folder)
    small = {item.heading: item for item in small_charts.latency_by_rate(found, found.main_panels[0])}
    assert set(small) == {"gunicorn", "uwsgi", "nginx-gunicorn", "nginx-uwsgi"}
    row = found.panels[1].row("uwsgi", "none")
    assert row.setting.level == 10
    cells = page.texts("td")
    assert "10 requests/s" in cells
    assert f"{row.rate.median:.3g}" in cells
    assert (
        small_charts.latency_by_rate(read(report_folder.make(tmp_path / "one", rounds=1)), found.main_panels[0]) == []
    )


def test_levels_of_a_closed_loop_show_no_latency(tmp_path):
    page = Page(write_report(made(tmp_path, levels=(10, 50))).read_text("utf-8"))
    assert "10 connections" in page.texts("td")
    assert not any("p99" in text for tag in ("h3", "th") for text in page.texts(tag))
    assert "latency" not in [attributes.get("id") for _, attributes, _ in page.elements]
    assert not any("of its answers took" in text for text in page.texts("p"))
