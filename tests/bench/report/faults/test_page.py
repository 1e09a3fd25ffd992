"""The report on faults as a page: safe, complete, from the folder alone."""

from __future__ import annotations

import html
import re

import pytest

from bench.errors import BenchError
from bench.report.write import write_report
from tests.bench.report.faults import fault_folder
from tests.bench.report.faults.fault_folder import bad, good, outcome
from tests.bench.report.pages import CHROMIUM, LOADING, Page, browsed, visible_words


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fault_folder.make(tmp_path_factory.mktemp("faults") / "run", [*good("nginx-uwsgi"), *bad("gunicorn")])


@pytest.fixture(scope="module")
def page(folder) -> Page:
    return Page(write_report(folder).read_text("utf-8"))


def test_the_page_loads_nothing_and_its_links_have_targets(page):
    for tag, attributes, _ in page.elements:
        assert not LOADING & attributes.keys(), f"<{tag}> loads something"
        assert not [name for name in attributes if name.startswith("on")]
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes, _ in page.elements if tag == "a"]
    assert links and {link.removeprefix("#") for link in links} <= set(ids)


def test_the_command_the_machine_and_the_date_are_on_it(page, folder):
    text = " ".join(page.texts("body"))
    assert "python -m bench faults --env 'SECRET_KEY=(hidden)'" in text
    assert "22 November 2026, 08:00 UTC, 20 min" in text
    assert "Example 3000 (test data), 2 cores" in text
    assert "very-secret" not in text and str(folder) not in text


def test_what_failed_or_is_void_or_left_out_has_its_reason(page):
    reasons = page.texts("li")
    assert "application: 378 stale pages (gunicorn)" in reasons
    assert any(text.startswith("worker: interference: other processes took 36 %") for text in reasons)
    assert any(text.startswith("slow-bodies: stops at 16 slow clients") for text in reasons)
    assert "memory: it needs a limit of memory: give --size bronze (nginx-uwsgi)" in reasons


def test_many_deployments_are_folded_and_the_page_stays_short(tmp_path):
    many = [item for number in range(24) for item in good(f"stack-{number}")]
    page = write_report(fault_folder.make(tmp_path / "faults", many)).read_text("utf-8")
    assert "12 more deployments" in Page(page).texts("summary")
    assert 300 < len(visible_words(page)) <= 1500


def test_heads_of_rows_and_columns_say_so(page):
    scopes = [attributes.get("scope") for tag, attributes, _ in page.elements if tag == "th"]
    assert {"row", "col"} == set(scopes)


def test_hostile_text_does_nothing(folder):
    text = write_report(folder).read_text("utf-8")
    assert "<script>alert" not in text and "\x1b" not in text
    assert len(re.findall("<script>", text)) == 1


@pytest.mark.parametrize("status", ["skipped", "voided", "failed"])
def test_a_folder_without_a_figure_has_a_report(tmp_path, status):
    only = outcome("one", "worker", status=status, reason="it ended", failed_new=None, failed_kept=None)
    made = fault_folder.make(tmp_path / "faults", [only])
    assert "it ended" in write_report(made).read_text("utf-8")


def test_a_folder_without_outcomes_says_how_to_go_on(tmp_path):
    empty = fault_folder.make(tmp_path / "faults", [])
    with pytest.raises(BenchError, match=r"no fault was made; go on with `python -m bench faults --resume "):
        write_report(empty)


@pytest.mark.servers
def test_a_browser_shows_it_without_complaint(folder, tmp_path):
    if not CHROMIUM:
        pytest.skip("program not installed: chromium")
    done = browsed(write_report(folder), tmp_path / "profile")
    assert "The table to choose by" in done.stdout
    assert "CONSOLE" not in done.stderr


@pytest.mark.servers
def test_a_phone_needs_no_sideways_scroll(folder, tmp_path):
    if not CHROMIUM:
        pytest.skip("program not installed: chromium")
    page = write_report(folder).read_text("utf-8")
    measured = "document.body.dataset.width = this.contentDocument.documentElement.scrollWidth"
    frame = f'<iframe width="390" height="900" srcdoc="{html.escape(page)}" onload="{html.escape(measured)}"></iframe>'
    outer = tmp_path / "phone.html"
    outer.write_text(f"<!doctype html><body>{frame}</body>", "utf-8")
    found = re.search(r'<body data-width="(\d+)"', browsed(outer, tmp_path / "profile").stdout)
    assert found and int(found[1]) <= 390
