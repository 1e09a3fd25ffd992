"""The page: one safe, well-formed file that loads nothing, small enough to read, and accessible."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.measure.records.folder import Folder, read_info
from bench.measure.report import write
from tests.bench.measure.records.run_data import changed
from tests.bench.measure.report import report_folder
from tests.bench.measure.report.faults import fault_folder
from tests.bench.measure.report.pages import CHROMIUM, LOADING, Page, browsed, shown, visible_words


@pytest.fixture(scope="module")
def page(written) -> Page:
    return Page(written)


@pytest.fixture(scope="module")
def eight(tmp_path_factory) -> str:
    """Eight cases on two workloads, with faults: the maximum size of a page."""

    def few(trial):
        return changed(trial, database_connections_peak=16) if trial.layer in ("none", "page-cache") else None

    folder = report_folder.make(tmp_path_factory.mktemp("eight") / "run", change=few)
    info = read_info(folder)
    cases = tuple(case for case in info.cases if case.layer in ("none", "page-cache"))
    Folder(folder).write(replace(info, cases=cases))
    fault_folder.make(folder / "faults", [*fault_folder.good("nginx-uwsgi"), *fault_folder.bad("gunicorn")])
    return shown(folder)


def test_it_loads_nothing_and_runs_nothing_but_its_own_script(written, page):
    for tag, attributes, _ in page.elements:
        assert not LOADING & attributes.keys(), f"<{tag}> loads something"
        assert tag not in ("img", "iframe", "object", "embed", "base", "form", "details"), f"<{tag}>"
        assert not attributes.get("href", "").lower().startswith("javascript:")
        assert not [name for name in attributes if name.startswith("on")]
    styles = " ".join(page.texts("style"))
    assert "@import" not in styles and "url(" not in styles
    (script,) = re.findall(r"<script>(.*?)</script>", written, flags=re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (each["content"] for _, each, _ in page.elements if "Content-Security-Policy" in each.values())
    assert policy.startswith("default-src 'none'") and f"script-src 'sha256-{digest}'" in policy


def test_hostile_text_is_shown_and_does_nothing(hostile):
    text = shown(hostile)
    assert "\x1b" not in text and "<b>bold</b>" not in text
    page = Page(text)
    assert any("alert('x')" in cell for cell in page.texts("td"))
    assert report_folder.EVIL_LOG not in [each.get("href") for _, each, _ in page.elements]


def test_everybody_can_read_it(page):
    ids = [each["id"] for _, each, _ in page.elements if "id" in each]
    assert len(ids) == len(set(ids))
    assert len(page.texts("h1")) == 1
    for tag, attributes, _ in page.elements:
        if tag == "svg":  # a picture either says what it is, or stands beside the same in figures
            assert attributes.get("aria-label") or attributes.get("aria-hidden") == "true"
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
        if "data-copy" in attributes:
            assert attributes["data-copy"] in ids


def test_no_link_is_inside_a_picture(written):
    for drawing in re.findall(r"<svg.*?</svg>", written, flags=re.S):
        assert ElementTree.fromstring(drawing).find(".//a") is None


def test_eight_cases_are_at_most_a_thousand_words(eight):
    assert len(visible_words(eight)) <= 1000


def test_a_case_is_a_row_and_every_round_a_dot(eight):
    tables = re.findall(r"<tbody>.*?</tbody>", eight, flags=re.S)
    assert tables[0].count("<tr") == 8
    dots = [row.count("<circle") for row in re.findall(r"<tr.*?</tr>", tables[1], flags=re.S)]
    assert sorted(dots) == [0, *[3] * 7]  # one has wrong responses, and so no figure


def test_what_several_cases_declare_is_printed_once(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",))
    lines = (folder / "verify.jsonl").read_text("utf-8").splitlines(keepends=True)
    limited = next(
        line for line in lines if '"chunked body"' in line and '"known_limitation":"' in line.replace(" ", "")
    )
    other = limited.replace('"uwsgi"', '"nginx-uwsgi"')
    (folder / "verify.jsonl").write_text("".join([*lines, other]), "utf-8")
    notes = [note for note in Page(shown(folder)).texts("li") if "chunked body" in note]
    assert len(notes) == 1 and "chunked body on uwsgi and nginx-uwsgi" in notes[0]


def test_levels_are_one_line_chart_a_workload(tmp_path):
    folder = report_folder.make(tmp_path / "run", levels=(8, 50), workloads=("home",))
    (lines,) = re.findall(r'<svg[^>]*class="lines".*?</svg>', shown(folder), flags=re.S)
    assert lines.count("<text") > 13 and "requests/s over connections" in lines


def test_runs_stand_side_by_side(tmp_path):
    names = ("here/run", "there/run")  # of two machines
    folders = [report_folder.make(tmp_path / name, workloads=("home",), seed=seed) for seed, name in enumerate(names)]
    write.write(folders, tmp_path / "both.html")
    text = (tmp_path / "both.html").read_text("utf-8")
    (table,) = re.findall(r'<table id="across-table">.*?</table>', text, flags=re.S)
    assert tuple(Page(table).texts("th")[1:3]) == names
    assert "there/run/trials.jsonl" in [each.get("href") for _, each, _ in Page(text).elements]


def test_the_picture_on_its_own_has_every_case(plain):
    write.write([plain])
    drawing = ElementTree.fromstring((plain / "report.svg").read_text("utf-8"))
    texts = ["".join(each.itertext()) for each in drawing.iter("{http://www.w3.org/2000/svg}text")]
    lines = ["".join(each.itertext()) for each in drawing if each.get("class") == "heading"]
    assert " ".join(lines) == Page(shown(plain)).texts("h1")[0]
    assert max(map(len, lines)) < 74, "it does not fit the card"
    assert texts.count("nginx-uwsgi with staticgenerator") == 2


@pytest.mark.servers
@pytest.mark.skipif(CHROMIUM is None, reason="program not installed: chromium")
def test_a_browser_shows_it_without_complaint(hostile, tmp_path):
    path: Path = write.write([hostile])[0]
    assert not [line for line in browsed(path, tmp_path / "profile").stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.servers
@pytest.mark.skipif(CHROMIUM is None, reason="program not installed: chromium")
def test_no_column_is_cut_off(eight, tmp_path):
    """The table of eight cases with every column, in a window of 1280 pixels."""
    measure = "[...document.querySelectorAll('.scroll')].filter(it => it.scrollWidth > it.clientWidth).length"
    text = re.sub(r"<meta http-equiv=[^>]*>", "", eight)
    (tmp_path / "wide.html").write_text(text.replace("</body>", f"<script>document.title = {measure}</script></body>"))
    assert "checks passed" in text and "database connections" in text
    assert "<title>0</title>" in browsed(tmp_path / "wide.html", tmp_path / "profile").stdout
