"""The charts with many points: data for uPlot beside the static charts, in the reports that need it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

import pytest

from bench.figures import histogram
from bench.report import html, plots
from bench.report.plots import CURVES, LEVELS, Plots
from bench.report.write import write_report
from tests.bench.report import report_folder
from tests.bench.report.pages import CHROMIUM, Page, browsed, made, opened, read
from tests.bench.report.report_folder import MIB


def data(text: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="plots">(.*?)</script>', text)[1])


def test_memory_is_the_sum_of_the_servers_in_the_round_with_the_highest_peak(tmp_path):
    def change(trial):
        if trial.status != "ok":
            return trial
        more = trial.round * MIB
        memory = {"front": ((0.0, 5 * MIB), (1.0, 6 * MIB)), "app": ((0.0, more), (1.0, more), (2.0, 2 * more))}
        return replace(trial, memory=memory)

    report = read(made(tmp_path, change))
    plot = Plots((report,)).data["plot1"]
    line = plot.lines[0]
    assert (plot.title, plot.y, line.x) == ("Memory of all servers over time", "MiB", (0.0, 1.0, 2.0))
    assert line.y == (10.0, 11.0, 16.0)  # the fifth round
    assert 1 <= sum(line.shown for line in plot.lines) <= plots.SHOWN


def test_a_line_has_few_points_however_many_samples(tmp_path):
    many = {"app": tuple((n / 10, n * MIB) for n in range(1000))}

    def change(trial):
        return replace(trial, memory=many) if trial.status == "ok" else trial

    report = read(made(tmp_path, change, rounds=2))
    (line, *_) = Plots((report,)).data["plot1"].lines
    assert len(line.x) <= plots.MAX_POINTS
    assert line.y[-1] == 999.0  # the highest of each group of neighbours


def test_a_curve_ends_where_fewer_than_ten_requests_lie_beyond(tmp_path):
    counts = histogram.encode(histogram.of((us * 1000, 1) for us in range(1, 251)))

    def change(trial):
        return replace(trial, histogram=counts) if trial.status == "ok" else trial

    report = read(opened(made(tmp_path, change, rounds=2)))
    name = Plots((report,)).name(CURVES, report.main_panels[0])
    plot = Plots((report,)).data[name]
    line = plot.lines[0]
    assert plot.percentiles and plot.log_x
    assert line.x[-1] == 50.0  # p98: 10 of 500 are slower
    assert line.y[-1] == pytest.approx(245, rel=0.01)
    assert (
        Page(write_report(tmp_path / "run").read_text("utf-8"))
        .texts("h3")
        .count("Percentile curves ms; further right, 1 in 10, 100, 1,000 requests is slower")
    )


def test_levels_have_a_plot_from_three_on(tmp_path):
    def named(levels):
        report = read(opened(report_folder.make(tmp_path / str(len(levels)), levels=levels, workloads=("home",))))
        return Plots((report,)).name(LEVELS, report.main_panels[0])

    assert named((10, 50)) == ""
    assert named((10, 30, 50)) == "plot2"


def test_the_script_is_only_in_a_report_that_needs_it(tmp_path):
    def change(trial):
        return replace(trial, memory=None) if trial.status == "ok" else trial

    text = write_report(made(tmp_path, change, rounds=1)).read_text("utf-8")
    assert "uPlot" not in text and "data-plot" not in text
    with_memory = write_report(report_folder.make(tmp_path / "memory", rounds=1, workloads=("home",)))
    text = with_memory.read_text("utf-8")
    names = [attributes["data-plot"] for _, attributes, _ in Page(text).elements if "data-plot" in attributes]
    assert names == list(data(text))
    assert text.count("https://github.com/leeoniya/uPlot (v1.6.32)") == 1


def test_names_in_the_data_end_no_script(tmp_path):
    text = write_report(report_folder.make(tmp_path / "run", hostile=True, workloads=("home",))).read_text("utf-8")
    assert set(data(text)) and len(re.findall("</script>", text)) == text.count("<script")


def test_the_library_is_the_one_that_its_page_names():
    said = (html.UPLOT / "README.md").read_text("utf-8")
    for name in ("uPlot.iife.min.js", "uPlot.min.css"):
        assert f"| `{name}` | {hashlib.sha256((html.UPLOT / name).read_bytes()).hexdigest()} |" in said
    assert "MIT" in (html.UPLOT / "LICENSE").read_text("utf-8")


@pytest.mark.servers
def test_a_browser_draws_what_is_opened_and_a_phone_needs_no_sideways_scroll(tmp_path):
    if not CHROMIUM:
        pytest.skip("program not installed: chromium")
    path = write_report(report_folder.make(tmp_path / "run", rounds=2, workloads=("home",)))
    opened = path.read_text("utf-8").replace("<details>", "<details open>")
    path.write_text(opened, "utf-8")
    frame = tmp_path / "frame.html"
    measured = "document.body.dataset.width = this.contentDocument.documentElement.scrollWidth"
    drawn = "document.body.dataset.drawn = this.contentDocument.querySelectorAll('.uplot canvas').length"
    text = f'<iframe width="390" height="900" srcdoc="{{}}" onload="{measured}; {drawn}"></iframe>'
    quoted = opened.replace("&", "&amp;").replace('"', "&quot;")
    frame.write_text(f"<!doctype html><body>{text.format(quoted)}</body>", "utf-8")
    done = browsed(frame, tmp_path / "profile")
    found = dict(re.findall(r'data-(width|drawn)="(\d+)"', done.stdout.partition(">")[2][:2000]))
    assert int(found["width"]) <= 390 and int(found["drawn"]) >= 1
    assert "CONSOLE" not in done.stderr
