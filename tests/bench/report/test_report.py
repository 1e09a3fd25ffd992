"""The report of a run: what it says, what it must not say, and that it needs nothing but itself."""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.cli import report as report_command
from bench.errors import BenchError
from bench.report import conditions, findings, html, markdown, rendered_configs
from bench.report.arrange import arrange
from bench.report.redact import redacted
from bench.report.reproduction import caching
from bench.report.write import write_report
from bench.results import records, reproduction
from bench.results.folder import Folder, read_run
from tests.bench.report import report_folder

LOADING = {"src", "srcset", "poster", "data", "action", "formaction", "background", "cite", "manifest", "xlink:href"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """What the tests ask of a page: its elements with attributes, and the text inside each of them."""

    VOID = {"meta", "link", "input", "br", "img"}

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict, list[str]]] = []
        self._open: list[tuple[str, dict, list[str]]] = []
        self.feed(text)
        self.close()
        assert not self._open, "an element is left open"

    def handle_starttag(self, tag, attrs):
        element = (tag, {name: value or "" for name, value in attrs}, [])
        self.elements.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open[-1][0] == tag, f"</{tag}> closes <{self._open[-1][0]}>"
        self._open.pop()

    def handle_data(self, data):
        for _, _, texts in self._open:
            texts.append(data)

    def texts(self, tag: str, cls: str | None = None) -> list[str]:
        return [
            " ".join("".join(texts).split())
            for name, attributes, texts in self.elements
            if name == tag and (cls is None or cls in attributes.get("class", "").split())
        ]


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return report_folder.make(tmp_path_factory.mktemp("plain") / "run")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    fallback = report_folder.environment(load_tool=records.LoadTool("closedloop", "2.0", True))
    return report_folder.make(
        tmp_path_factory.mktemp("hostile") / "run", hostile=True, levels=(10, 50), machine=fallback
    )


@pytest.fixture(scope="module", params=["plain", "hostile"])
def written(request) -> str:
    return shown(request.getfixturevalue(request.param))


@cache
def shown(folder: Path) -> str:
    """The page of a folder that no test changes."""
    return write_report(folder).read_text(encoding="utf-8")


def command(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    report_command.add_arguments(parser)
    return report_command.main(parser.parse_args(argv))


# ------------------------------------------------------------------------------------------ the command


@pytest.mark.parametrize("form", ["html", "md", "csv"])
def test_the_path_of_the_report_is_the_last_line(plain, capsys, form):
    assert command(str(plain), "--format", form) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == str(plain / f"report.{form}")
    assert Path(last).stat().st_size > 1000


def test_html_is_the_default_and_brings_the_chart_for_a_readme(tmp_path, capsys):
    folder = report_folder.make(tmp_path / "run")
    assert command(str(folder)) == 0
    assert sorted(path.name for path in folder.iterdir() if path.suffix in (".html", ".svg", ".md", ".new")) == [
        "report.html",
        "throughput.svg",
    ]


def refused(folder: Path) -> str:
    with pytest.raises(BenchError) as refusal:
        command(str(folder))
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_missing_folder_is_refused(tmp_path):
    assert refused(tmp_path / "no") == (
        f"{tmp_path / 'no'}: no such directory; give a folder that `python -m bench run` made"
    )


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    assert refused(tmp_path) == (
        f"{tmp_path}: not a run, it has no run.json; give a folder that `python -m bench run` made"
    )


def test_a_run_without_trials_is_refused(tmp_path):
    folder = report_folder.make(tmp_path / "run", change=lambda trial: None)
    assert refused(folder) == (
        f"{folder}: the run has no trials; finish it with `python -m bench run --resume {folder}`"
    )
    assert not (folder / "report.html").exists()


def test_a_torn_file_is_refused(tmp_path):
    folder = report_folder.make(tmp_path / "run")
    path = folder / "run.json"
    path.write_bytes(path.read_bytes()[:500])
    assert refused(folder).startswith(f"{path}: cannot be read as JSON: ")


def test_a_torn_line_inside_the_trials_is_refused_and_one_at_the_end_is_not(tmp_path):
    folder = report_folder.make(tmp_path / "run", rounds=2)
    path = folder / "trials.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines) + lines[0][:80])
    assert command(str(folder)) == 0
    path.write_bytes(lines[0] + lines[1][:80] + b"\n" + lines[2])
    assert refused(folder).startswith(f"{path} line 2: not JSON: ")


def test_a_report_that_cannot_be_written_is_one_line(tmp_path):
    folder = report_folder.make(tmp_path / "run", rounds=1)
    (folder / "report.html.new").mkdir()
    assert refused(folder) == f"{folder / 'report.html'}: cannot be written: Is a directory"


# ------------------------------------------------------------------------------------- the page as a file


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
    assert len(page.texts("script")) == 1


def test_scripts_other_than_the_reports_own_cannot_run(written):
    policy = next(
        attributes["content"]
        for tag, attributes, _ in Page(written).elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


def test_ids_are_unlike_and_inner_links_lead_somewhere(written):
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


def browsed(path: Path, profile: Path) -> subprocess.CompletedProcess:
    """Chromium's own view of a page after its scripts have run, and what it complained about."""
    argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    argv += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    argv += [f"--user-data-dir={profile}", "--enable-logging=stderr", "--dump-dom", path.as_uri()]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_a_browser_shows_it_without_complaint(request, tmp_path, name):
    done = browsed(write_report(request.getfixturevalue(name)), tmp_path / "profile")
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert '<button type="button">requests/s</button>' in done.stdout  # its own script ran


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize(("clicks", "ascending"), [(1, False), (2, True), (3, None)])
def test_a_click_on_a_columns_head_sorts(plain, tmp_path, clicks, ascending):
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


# ------------------------------------------------------------------------------------------ what it says


def table_row(text: str, stack: str, layer: str, columns: int) -> list[str]:
    """Cells of the first row of a table with so many columns that is about a stack with a layer."""
    for row in re.findall(r"<tr>.*?</tr>", text, flags=re.S):
        cells = Page(row).texts("td") + Page(row).texts("th")
        if {stack, layer} <= set(cells) and len(cells) == columns:
            return [" ".join(re.sub("<[^>]+>", "", cell).split()) for cell in re.split(r"(?=<t[dh])", row)[1:]]
    raise AssertionError(f"no row of {stack} with {layer}")


def test_the_first_screen_says_what_where_when_and_by_which_tool(plain):
    page = Page(shown(plain))
    assert page.texts("h1")[0].startswith(
        "Pick nginx-uwsgi with staticgenerator or nginx-gunicorn with staticgenerator: "
    )
    facts = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert facts["Machine"] == "Example 3000 (test data), 2 cores, 8.00 GiB of memory"
    assert facts["System"] == "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-example"
    assert facts["Load tool"] == "wrk 4.1.0"
    assert facts["Load"] == "50 connections, 3 rounds of 10 s"
    assert facts["Database"] == "sqlite, 1,020,000 rows"
    assert facts["Programs"] == "CPython 3.11.7, nginx 1.22.1, gunicorn 27.0.1, uwsgi 2.0.30"
    assert "21 November 2026, 08:07 UTC, 12 min 30 s" in page.texts("p", "eyebrow")[0]
    counts = "4 stacks \N{MULTIPLICATION SIGN} 4 layers on 2 workloads: 27 cases measured, 1 failed, 4 skipped."
    assert page.texts("p", "lead")[0] == counts


def test_a_fallback_load_tool_is_marked(hostile):
    page = Page(shown(hostile))
    assert page.texts("span", "badge") == ["fallback"]
    assert any("the fallback when no faster load tool is installed" in item for item in page.texts("li"))


def test_few_cores_few_rounds_and_an_unfinished_run_are_said(tmp_path):
    folder = report_folder.make(tmp_path / "run", rounds=1, finished=False)
    notes = conditions.caveats(arrange(read_run(folder)))
    assert notes[0] == "This run did not finish. The report shows the trials made so far."
    assert any(
        note.startswith("Load tool, servers and services share 2 cores. Compare figures within this report")
        for note in notes
    )
    assert any(note.startswith("One round only: each figure is a single reading") for note in notes)


def test_many_cores_are_not_warned_about(tmp_path):
    folder = report_folder.make(tmp_path / "run", rounds=5, machine=report_folder.environment(cores=16))
    notes = conditions.caveats(arrange(read_run(folder)))
    assert not [note for note in notes if "Compare figures within" in note]
    assert any("medians of 5 rounds with a bootstrap 95 % confidence interval" in note for note in notes)


def fixed(rates: dict[tuple[str, str], list[float]]):
    """Only these stacks with layers, with these requests/s round by round."""

    def change(trial):
        values = rates.get((trial.stack, trial.layer))
        if values is None or trial.status == "failed":
            return None
        return replace(trial, requests_per_second=values[trial.round - 1])

    return change


def sentences(tmp_path, rates, **options) -> tuple[str, ...]:
    options = {"workloads": ("home",)} | options
    folder = report_folder.make(tmp_path / "run", change=fixed(rates), **options)
    (answer,) = findings.answers(arrange(read_run(folder)))
    return answer.sentences


def test_the_answer_is_computed_from_the_figures(tmp_path):
    said = sentences(
        tmp_path,
        {
            ("nginx-uwsgi", "none"): [100.0, 98.0, 102.0],
            ("nginx-uwsgi", "staticgenerator"): [1230.0, 1200.0, 1260.0],
            ("uwsgi", "none"): [80.0, 79.0, 81.0],
        },
    )
    assert said[0] == (
        "`nginx-uwsgi` with `staticgenerator` was fastest: median 1,230 requests/s "
        "(95 % confidence interval 1,200 to 1,260, 3 rounds), 12.3 times `none` on the same stack (100)."
    )
    assert re.fullmatch(
        r"Next: `nginx-uwsgi` with `none`, 100 requests/s; the fastest serves 12\.3 times that \(12\.\d to 12\.\d\)\.",
        said[1],
    )
    assert said[-1] == "Without a layer (`none`), `nginx-uwsgi` leads with 100 requests/s, 1.25 times `uwsgi`."


def test_overlapping_ranges_have_no_winner(tmp_path):
    said = sentences(
        tmp_path,
        {
            ("nginx-uwsgi", "staticgenerator"): [1230.0, 1200.0, 1260.0],
            ("nginx-gunicorn", "staticgenerator"): [1210.0, 1190.0, 1250.0],
        },
    )
    assert "was fastest" not in " ".join(said)
    assert said[0] == (
        "`nginx-uwsgi` with `staticgenerator` has the highest median: 1,230 requests/s "
        "(95 % confidence interval 1,200 to 1,260, 3 rounds); `none` was not measured on this stack, "
        "so there is no ratio."
    )
    assert said[1] == "It ties with `nginx-gunicorn` with `staticgenerator` (1,210)."


def test_stacks_without_layers_are_compared_in_one_sentence(tmp_path):
    fast, slow = ("uwsgi", "none"), ("gunicorn", "none")
    said = sentences(tmp_path, {fast: [200.0, 202.0, 204.0], slow: [100.0, 101.0, 102.0]})
    assert said[-1] == "The slowest is `gunicorn` with 101 requests/s; the fastest serves 2.00 times that."
    said = sentences(tmp_path / "near", {fast: [100.0, 150.0, 90.0], slow: [110.0, 95.0, 108.0]})
    assert [sentence for sentence in said if sentence.startswith("Even the slowest, ")]
    assert not [sentence for sentence in said if "leads with" in sentence]


def test_one_round_is_called_a_single_one(tmp_path):
    said = sentences(tmp_path, {("uwsgi", "none"): [80.0], ("gunicorn", "none"): [70.0]}, rounds=1)
    assert said[0] == "`uwsgi` with `none` was fastest in the only round: 80.0 requests/s."


def test_wrong_answers_are_never_called_fastest(tmp_path):
    said = sentences(
        tmp_path, {("gunicorn", "site-middleware"): [9e4, 9e4, 9e4], ("gunicorn", "none"): [70.0, 71.0, 72.0]}
    )
    assert said[0].startswith("`gunicorn` with `none` is the only case with figures here: 71.0 requests/s")


def test_errors_under_load_are_said(tmp_path):
    said = sentences(tmp_path, {("gunicorn", "none"): [70.0, 71.0, 72.0]})
    assert re.fullmatch(r"It had 3 errors besides [\d,]+ answers\.", said[-1])


def test_failed_and_skipped_cases_show_no_number(plain):
    text = shown(plain)
    text = text[text.index('<section id="figures"') :]
    cells = table_row(text, "nginx-gunicorn", "fragments", 13)
    assert cells[2:] == ["failed", *["\N{EN DASH}"] * 10]
    cells = table_row(text, "gunicorn", "staticgenerator", 13)
    assert cells[2:] == ["skipped", *["\N{EN DASH}"] * 10]
    assert "failed: fragments" in Page(shown(plain)).texts("text", "note")


def test_nulls_are_not_measured_in_words(plain):
    text = shown(plain)
    home = text[text.index('id="figures"') :]
    home = home[home.index("<code>home</code>") :]
    cells = table_row(home, "uwsgi", "site-middleware", 13)
    assert [cells[index] for index in (6, 7, 10, 11)] == ["not measured"] * 4
    assert "not measured" not in (cells[3], cells[5])


def test_a_round_that_failed_is_marked_and_the_others_count(plain):
    run = arrange(read_run(plain))
    row = next(
        row for row in run.rows if (row.stack, row.layer, row.setting.workload) == ("uwsgi", "fragments", "home")
    )
    assert (row.rate.count, len(row.failed)) == (2, 1)
    text = shown(plain)
    assert "2 of 3 *" in Page(text).texts("td")
    assert "not ready after 20 s on its port" in Page(text).texts("td")


def test_a_round_measured_again_after_a_failure_counts(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",))
    again = next(
        trial
        for trial in read_run(folder).trials
        if (trial.stack, trial.layer, trial.round) == ("uwsgi", "fragments", 1)
    )
    Folder(folder).append_trial(replace(again, round=2, trial_id="again"))
    assert not arrange(read_run(folder)).failures


def test_skips_notes_checks_and_configurations_are_there(plain):
    page = Page(shown(plain))
    cells = page.texts("td")
    assert "no web server in front: uwsgi cannot serve the finished pages" in cells
    assert any("memcached is not installed" in item for item in page.texts("li"))
    assert "\N{BALLOT X} 7 of 8" in cells
    assert "\N{CHECK MARK} 7 of 7" in cells
    assert "the greeting of another account" in cells
    assert "nginx-uwsgi with staticgenerator" in page.texts("summary")
    assert any("# nginx, as rendered (test data)" in content for content in page.texts("pre"))


def test_what_a_stack_declares_is_said_and_is_no_wrong_answer(plain):
    page = Page(shown(plain))
    assert "\N{CHECK MARK} 7 of 7 (1 declared)" in page.texts("td")
    assert "chunked bodies are refused by design" in page.texts("td")
    home = next(panel for panel in arrange(read_run(plain)).panels if panel.setting.workload == "home")
    assert home.row("uwsgi", "none").ranked


def test_rounds_that_failed_for_one_reason_are_one_line_with_every_log(plain):
    failures = arrange(read_run(plain)).failures
    assert [(failure.stack, failure.layer, failure.rounds, len(failure.logs)) for failure in failures] == [
        ("nginx-gunicorn", "fragments", (1, 2, 3), 3),
        ("uwsgi", "fragments", (2,), 1),
    ]


def test_changed_values_stand_on_the_first_screen_without_secrets(tmp_path):
    folder = report_folder.make(tmp_path / "run", rounds=1)
    run = read_run(folder)
    plan = replace(run.info.plan, changes=("processes=8",), env=("SECRET_KEY=abc", "DEBUG=0"))
    command = (*run.info.command, "--env", "SECRET_KEY=abc")
    Folder(folder).write_info(replace(run.info, plan=plan, command=command))
    text = write_report(folder).read_text(encoding="utf-8")
    facts = Page(text).texts("dd")
    assert "processes=8" in facts
    assert "SECRET_KEY=(hidden), DEBUG=0" in facts
    assert "SECRET_KEY=abc" not in text
    assert "SECRET_KEY=abc" not in write_report(folder, "md").read_text(encoding="utf-8")


def test_every_metric_has_its_sentence(plain):
    page = Page(shown(plain))
    meanings = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert meanings["p99"] == "99 in 100 answers came within this many milliseconds."
    for name in ("requests/s", "p50", "p99.9", "max", "errors", "memory", "CPU s / 1,000", "ready", "95 % interval"):
        assert meanings[name].endswith(".")


def test_several_levels_are_drawn_as_they_grow_and_answered_at_the_highest(tmp_path):
    folder = report_folder.make(tmp_path / "run", levels=(10, 50), workloads=("home",))
    arranged = arrange(read_run(folder))
    assert [(panel.setting.level, panel.main) for panel in arranged.panels] == [(50, True), (10, False)]
    text = write_report(folder).read_text(encoding="utf-8")
    assert "requests/s by level" in text
    assert arranged.counts()["measured"] == 14  # a case is one case at however many levels


def test_a_run_of_failures_only_still_reports_them(tmp_path):
    def fail(trial):
        case = next(item for item in cases if item.case_id == trial.case_id)
        return report_folder.failed(case, trial.level_connections, trial.round, "it fell over")

    cases = read_run(report_folder.make(tmp_path / "cases", rounds=1)).info.cases
    folder = report_folder.make(tmp_path / "run", rounds=1, change=fail)
    text = write_report(folder).read_text(encoding="utf-8")
    assert "Nothing was measured here. The reasons are below, under Left out." in text
    assert not (folder / "throughput.svg").exists()
    write_report(folder, "md")
    write_report(folder, "csv")


def test_planned_and_not_reached_is_said(tmp_path):
    folder = report_folder.make(
        tmp_path / "run", finished=False, change=lambda trial: trial if trial.stack != "uwsgi" else None
    )
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert "uwsgi with none, home, 50 connections" in page.texts("li")


# ------------------------------------------------------------------------------------- published figures


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


def test_another_stack_stands_in_where_the_published_one_was_not_measured(tmp_path):
    folder = report_folder.make(tmp_path / "run", change=lambda trial: trial if trial.stack == "uwsgi" else None)
    published = caching.beside(arrange(read_run(folder)))
    assert (published.stack, published.same_stack) == ("uwsgi", False)


def test_without_the_published_workload_nothing_is_set_beside_it(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("session",))
    text = write_report(folder).read_text(encoding="utf-8")
    assert "so there is nothing to compare" in text
    assert caching.beside(arrange(read_run(folder))).comparable == []


def test_the_four_published_benchmarks_are_data_with_source_and_year():
    found = reproduction.benchmarks()
    assert {name: item["year"] for name, item in found.items()} == {
        "deployment-techniques": 2010,
        "cherokee-report": 2011,
        "caching": 2010,
        "static-servers": 2007,
    }
    assert all(item["source"] and item["title"] and item["rows"] for item in found.values())
    rows = {name: [row for row in item["rows"] if not row.get("added")] for name, item in found.items()}
    assert [row["times_none"] for row in rows["caching"]] == [1, 2.6, 75.7, 185, 247, 249]
    assert [row.get("requests_per_second_max") for row in rows["cherokee-report"]] == [
        16,
        40,
        65,
        70,
        105,
        178,
        263,
        5500,
    ]
    assert len(rows["deployment-techniques"]) == 6
    assert rows["static-servers"][0]["small_keep_alive_requests_per_second"] == 7816


# --------------------------------------------------------------------------------------- configurations


def test_secrets_do_not_travel_with_the_report(hostile):
    text = shown(hostile)
    assert "very-private" not in text
    assert "hush" not in text
    assert "SECRET_KEY=(hidden)" in text


def test_links_are_not_followed_and_binaries_are_only_named(hostile):
    files = rendered_configs.read_configs(hostile)["nginx-uwsgi~staticgenerator"]
    found = {file.path: file.text for file in files}
    assert "link.conf" not in found
    assert found["binary.bin"] == "(not a text file)"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("env = SECRET_KEY=abc", "env = SECRET_KEY=(hidden)"),
        ('"db_password": "x y"', '"db_password": (hidden)'),
        ("postgres://user:pa@localhost/db", "postgres://user:(hidden)@localhost/db"),
        ("processes = 4", "processes = 4"),
        ("# tokens are not used", "# tokens are not used"),
    ],
)
def test_what_counts_as_a_secret(line, shown):
    assert redacted(line) == shown


def test_a_long_file_is_cut_and_says_so(tmp_path):
    folder = tmp_path / "configs" / "a~none"
    folder.mkdir(parents=True)
    (folder / "long.conf").write_text("x" * (rendered_configs.MAX_BYTES + 5))
    (file,) = rendered_configs.read_configs(tmp_path)["a~none"]
    assert file.text.endswith("(cut here: the file is longer than 200,000 bytes)")


# --------------------------------------------------------------------------------------- Markdown and CSV


def cells_of(text: str) -> list[list[str]]:
    """Cells of every table line of a Markdown document."""
    return [re.split(r"(?<!\\) \| ", line[2:-2]) for line in text.splitlines() if line.startswith("| ")]


def test_markdown_has_the_same_figures(plain):
    text = write_report(plain, "md").read_text(encoding="utf-8")
    figures = [row for row in cells_of(text) if len(row) == len(markdown.HEADS)]
    arranged = arrange(read_run(plain))
    assert len([row for row in figures if row[0] not in ("stack", "---")]) == len(arranged.rows)
    row = next(row for row in figures if row[:2] == ["`nginx-uwsgi`", "`staticgenerator`"])
    page = Page(shown(plain))
    assert row[3] in page.texts("td")
    assert row[4] in page.texts("td")
    failed = next(row for row in figures if row[:2] == ["`nginx-gunicorn`", "`fragments`"])
    assert failed[2:] == ["failed", *["\N{EN DASH}"] * 12]
    assert "not measured" in text
    assert "## Published and measured" in text
    assert "no web server in front: uwsgi cannot serve the finished pages" in text


def test_markdown_gives_the_answer_in_the_same_words(plain):
    text = write_report(plain, "md").read_text(encoding="utf-8")
    for answer in findings.answers(arrange(read_run(plain))):
        assert " ".join(answer.sentences) in text


def test_markdown_tables_stay_whole_whatever_the_text(hostile):
    text = write_report(hostile, "md").read_text(encoding="utf-8")
    lengths = []
    for block in text.split("\n\n"):
        if block.startswith("| "):
            lengths.append({len(row) for row in cells_of(block)})
    assert lengths
    assert all(len(block) == 1 for block in lengths)
    outside_code = re.sub(r"`[^`\n]*`", "", text)
    assert "<script" not in outside_code.replace("\\<", "")
    assert not re.search(r"@\w", outside_code)


def test_csv_has_a_line_for_each_trial_units_in_the_header_and_empty_nulls(plain):
    text = write_report(plain, "csv").read_bytes().decode("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    trials = read_run(plain).trials
    assert len(rows) == len(trials)
    assert {"requests_per_second", "latency_p99_ms", "memory_peak_bytes:nginx", "cpu_seconds:uwsgi"} <= rows[0].keys()
    for row, trial in zip(rows, trials, strict=True):
        assert row["trial_id"] == trial.trial_id
        if trial.status == "failed":
            assert row["requests_per_second"] == row["latency_p50_ms"] == row["memory_peak_bytes_total"] == ""
        else:
            assert float(row["requests_per_second"]) == trial.requests_per_second
        if trial.latency_p99_ms is None:
            assert row["latency_p99_ms"] == ""
    first = next(trial for trial in trials if trial.status == "ok" and trial.cpu_seconds)
    row = next(row for row in rows if row["trial_id"] == first.trial_id)
    per_thousand = sum(first.cpu_seconds.values()) / first.requests_total * 1000
    assert float(row["cpu_seconds_per_1000_requests"]) == pytest.approx(per_thousand)


def test_csv_holds_no_formulas(tmp_path):
    cases = read_run(report_folder.make(tmp_path / "cases", rounds=1)).info.cases
    change = lambda trial: report_folder.failed(cases[0], 50, trial.round, "=cmd|' /C calc'!A0")  # noqa: E731
    folder = report_folder.make(tmp_path / "run", rounds=1, change=change)
    text = write_report(folder, "csv").read_text(encoding="utf-8")
    assert {row["reason"] for row in csv.DictReader(text.splitlines())} == {"'=cmd|' /C calc'!A0"}
