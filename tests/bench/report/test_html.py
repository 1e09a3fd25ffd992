"""The HTML report: one safe file that needs nothing else, with every figure in a table."""

from __future__ import annotations

import base64
import hashlib
import re
from xml.etree import ElementTree

import pytest

from bench.report import html
from bench.report.write import write_report
from tests.bench.report import report_folder
from tests.bench.report.pages import CHROMIUM, LOADING, Page, browsed, opened, shown, table_row, visible_words


def test_the_page_is_well_formed_and_loads_nothing(written):
    page = Page(written)
    for tag, attributes, _ in page.elements:
        assert not LOADING & attributes.keys(), f"<{tag}> loads something"
        assert tag not in ("img", "iframe", "object", "embed", "base", "form"), f"<{tag}>"
        if "href" in attributes:
            assert tag == "a" or (tag == "link" and attributes == {"rel": "icon", "href": "data:,"})
            assert not attributes["href"].lower().startswith("javascript:")
        assert not [name for name in attributes if name.startswith("on")]
    styles = " ".join(page.texts("style"))
    assert "@import" not in styles
    assert "url(" not in styles
    scripts = [attributes for tag, attributes, _ in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "plots"}, {}, {}, {}]


def test_scripts_other_than_the_reports_own_cannot_run(written):
    policy = next(
        attributes["content"]
        for tag, attributes, _ in Page(written).elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    allowed = re.findall(r"'sha256-([^']+)'", policy.partition("script-src")[2].partition(";")[0])
    scripts = re.findall(r"<script>(.*?)</script>", written, flags=re.S)
    assert allowed == [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]


def test_ids_are_unique_and_inner_links_have_targets(written):
    elements = Page(written).elements
    ids = [attributes["id"] for _, attributes, _ in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes, _ in elements if tag == "a"]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


def test_every_chart_is_well_formed_and_says_what_it_is(written):
    drawings = re.findall(r"<svg.*?</svg>", written, flags=re.S)
    charts = [ElementTree.fromstring(drawing) for drawing in drawings if 'class="chart' in drawing]
    assert len(charts) > 20
    assert all(chart.find("title").text for chart in charts)
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_every_number_beside_a_chart_stands_in_a_table(written):
    page = Page(written)
    values = set(page.texts("text", "value") + page.texts("tspan", "value")) - {""}
    in_tables = {part for text in page.texts("td") + page.texts("tr") for part in (text, *text.split(" "))}
    assert len(values) > 100
    assert {value for value in values if value not in ("not measured", "\N{EN DASH}")} <= in_tables


def test_hostile_text_is_shown_and_does_nothing(hostile):
    text = shown(hostile)
    page = Page(text)
    assert "\x1b" not in text
    assert "<b>bold</b>" not in text
    assert any("alert('x')" in cell for cell in page.texts("td"))
    assert any("</pre>" in content for content in page.texts("pre"))
    assert report_folder.EVIL_LOG in page.texts("code")
    assert report_folder.EVIL_LOG not in page.texts("a")


def test_a_log_is_a_link_beside_the_report(plain):
    page = Page(shown(plain))
    name = "raw/nginx-gunicorn~fragments~session~unlimited~sqlite~c50~r1/server.log"
    assert name in [attributes.get("href") for tag, attributes, _ in page.elements if tag == "a"]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../up", "raw/../../up", "https://evil.example/", "javascript:x", "a b"]
)
def test_other_paths_are_text(path):
    assert "href" not in html.log_link(path)


@pytest.mark.servers
@pytest.mark.skipif(CHROMIUM is None, reason="program not installed: chromium")
@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_a_browser_shows_it_without_complaint(request, tmp_path, name):
    done = browsed(write_report(request.getfixturevalue(name)), tmp_path / "profile")
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert '<button type="button">requests/s</button>' in done.stdout  # its own script ran


@pytest.mark.servers
@pytest.mark.skipif(CHROMIUM is None, reason="program not installed: chromium")
@pytest.mark.parametrize(("clicks", "ascending"), [(1, False), (2, True), (3, None)])
def test_a_click_on_a_column_head_sorts(plain, tmp_path, clicks, ascending):
    click = 'document.querySelector("table.sortable").tHead.rows[0].cells[3].firstElementChild.click();'
    text = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", shown(plain))
    copy = tmp_path / "copy.html"
    copy.write_text(text.replace("</body>", f"<script>{click * clicks}</script></body>"), encoding="utf-8")
    done = browsed(copy, tmp_path / "profile")
    body = re.search(r'class="sortable">.*?<tbody>(.*?)</tbody>', done.stdout, flags=re.S)[1]
    rates = [Page(row).texts("td", "n")[0] for row in re.findall(r"<tr>.*?</tr>", body, flags=re.S)]
    known = [float(rate.replace(",", "")) for rate in rates if rate != "\N{EN DASH}"]
    if ascending is None:
        assert known[0] == pytest.approx(274, rel=0.05)  # the order of the plan again
    else:
        assert known == sorted(known, reverse=not ascending)
        assert set(rates[len(known) :]) == {"\N{EN DASH}"}  # what was not measured stays last


def test_the_first_screen_has_the_answer_and_the_conditions(plain):
    page = Page(shown(plain))
    assert page.texts("h1")[0].startswith(
        "Pick nginx-uwsgi with staticgenerator: over both workloads, session and home, it ties with nginx-gunicorn "
    )
    facts = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert facts["Machine"] == "Example 3000 (test data), 2 cores, 8.00 GiB of memory"
    assert facts["System"] == "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-example"
    assert facts["Load tool"] == "wrk 4.1.0"
    assert facts["Load"] == "50 connections, 3 rounds of 10 s"
    assert facts["Database"] == "sqlite, 1,020,000 rows"
    assert facts["Programs"] == "CPython 3.11.7, nginx 1.22.1, gunicorn 27.0.1, uwsgi 2.0.30"
    assert "21 November 2026, 08:07 UTC, 12 min 30 s" in page.texts("p", "eyebrow")[0]
    counts = "4 stacks \N{MULTIPLICATION SIGN} 4 layers on 2 workloads: 27 cases measured, 1 failed, 4 skipped"
    assert facts["Measured"] == counts
    assert "4 trials failed; 4 cases skipped, as they cannot run here." in page.texts("p", "said")
    assert page.texts("p", "question") == [
        "Which deployment answers the most requests/s on session and home, with 50 connections?"
    ]
    assert page.texts("p", "repeat") == ["Repeat it python -m bench run --rounds 3"]


def test_failed_and_skipped_cases_show_no_number(plain):
    text = shown(plain)
    text = text[text.index('<section id="figures"') :]
    cells = table_row(text, "nginx-gunicorn", "fragments", 9)
    assert cells[2:] == ["failed", *["\N{EN DASH}"] * 6]
    cells = table_row(text, "gunicorn", "staticgenerator", 9)
    assert cells[2:] == ["skipped", *["\N{EN DASH}"] * 6]
    assert "failed: fragments" in Page(shown(plain)).texts("text", "note")


def test_nulls_are_not_measured_in_words(tmp_path):
    text = write_report(opened(report_folder.make(tmp_path / "run"))).read_text("utf-8")
    home = text[text.index('id="figures"') :]
    home = home[home.index("<code>home</code>") :]
    cells = table_row(home, "uwsgi", "site-middleware", 13)
    assert [cells[index] for index in (6, 7, 10, 11)] == ["not measured"] * 4
    assert "not measured" not in (cells[3], cells[5])


def test_skips_notes_checks_and_configurations_are_there(plain):
    page = Page(shown(plain))
    cells = page.texts("td")
    assert "no web server in front: uwsgi cannot serve the finished pages" in cells
    assert any("memcached is not installed" in item for item in page.texts("li"))
    assert "\N{BALLOT X} 7 of 8" in cells
    assert "\N{CHECK MARK} 7 of 7" in cells
    assert "the greeting of another account" in cells
    assert {"gunicorn and nginx-gunicorn", "nginx-gunicorn and nginx-uwsgi"} <= set(page.texts("summary"))
    nginx = [content for content in page.texts("pre") if "# nginx, as rendered (test data)" in content]
    assert len(nginx) == 1


def test_every_metric_has_its_sentence(plain):
    page = Page(shown(plain))
    meanings = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert meanings["p99"] == "99 in 100 answers came within this many milliseconds."
    for name in ("requests/s", "p50", "p99.9", "max", "errors", "memory", "CPU s / 1,000", "ready", "95 % interval"):
        assert meanings[name].endswith(".")


def test_cases_that_were_not_run_are_listed(tmp_path):
    folder = report_folder.make(
        tmp_path / "run", finished=False, change=lambda trial: trial if trial.stack != "uwsgi" else None
    )
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert "uwsgi with none, home, 50 connections" in page.texts("li")


MAX_WORDS = 1500  # before anything is opened


def test_the_report_is_short_until_something_is_opened(written):
    words = visible_words(written)
    assert 300 < len(words) <= MAX_WORDS


def test_only_what_is_open_counts_as_visible():
    page = """<body><p>one two</p><details><summary>three</summary>four<details><summary>five</summary>six</details>
    </details><details open><summary>seven</summary>eight</details><svg class="chart narrow"><text>nine</text></svg>
    <svg><title>ten</title><text>eleven -</text></svg><script>twelve</script></body>"""
    assert visible_words(page) == ["one", "two", "three", "seven", "eight", "eleven"]


def test_each_figure_leads_to_its_trials_and_each_trial_to_its_output(plain):
    text = shown(plain)
    figures = text[text.index('id="figures"') :]
    line = figures[figures.index('<td class="name">nginx-uwsgi</td><th scope="row">none</th>') :].partition("</tr>")[0]
    (anchor,) = set(re.findall(r'<a href="#(t\d+)">', line))
    row = re.search(rf'<tr id="{anchor}">(.*?)</tr>', text, flags=re.S)
    raw = "raw/nginx-uwsgi~none~session~unlimited~sqlite~c50~r{}/"
    assert row and all(f'href="{raw.format(number)}"' in row[1] for number in (1, 2, 3))
    assert f'<a href="#{anchor}" class="row">' in text  # the row of a chart, too
