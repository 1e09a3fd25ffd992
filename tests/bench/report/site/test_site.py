"""A site of several runs: one page that loads nothing, from a JSON file a run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from bench.cli.main import main
from bench.errors import BenchError
from bench.report.site.arrange import AllRuns
from bench.report.site.write import write_site
from bench.results.site import read_site
from tests.bench.report import report_folder
from tests.bench.report.faults import fault_folder
from tests.bench.report.pages import CHROMIUM, LOADING, Page, browsed

REQUEST = "curl -i --path-as-is -H 'Cookie: a=b' http://127.0.0.1:8000/login/"


def again(folder: Path, to: Path, day: str) -> Path:
    """The same run once more, on another day."""
    shutil.copytree(folder, to)
    info = to / "run.json"
    info.write_text(info.read_text("utf-8").replace("2026-11-21", day), "utf-8")
    return to


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    place = tmp_path_factory.mktemp("runs")
    first = report_folder.make(place / "first", workloads=("home",), hostile=True)
    checks = first / "verify.jsonl"
    lines = [json.loads(line) for line in checks.read_text("utf-8").splitlines()]
    lines = [line if line["ok"] else line | {"request": REQUEST} for line in lines]
    checks.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    made = fault_folder.make(place / "broken", [*fault_folder.good("nginx-uwsgi"), *fault_folder.bad("gunicorn")])
    return [first, again(first, place / "second", "2026-11-22"), made]


@pytest.fixture(scope="module")
def site(folders, tmp_path_factory) -> Path:
    return write_site(tmp_path_factory.mktemp("site") / "site", folders).parent


@pytest.fixture(scope="module")
def page(site) -> Page:
    return Page((site / "index.html").read_text("utf-8"))


def test_the_page_loads_nothing_and_shows_hostile_text_as_text(site, page):
    for tag, attributes, _ in page.elements:
        assert not LOADING & attributes.keys(), f"<{tag}> loads something"
        assert not [name for name in attributes if name.startswith("on")]
    text = (site / "index.html").read_text("utf-8")
    assert "<script>alert" not in text and "<b>bold</b>" not in text
    hashes = re.findall(r"'sha256-[^']+'", text.partition("script-src")[2].partition(";")[0])
    assert len(hashes) == len(page.texts("script")) == 2


def test_every_control_has_a_label_and_every_link_a_target(site, page):
    controls = [attributes["id"] for tag, attributes, _ in page.elements if tag in ("select", "input")]
    labelled = {attributes["for"] for tag, attributes, _ in page.elements if tag == "label"}
    assert len(controls) == 6 and set(controls) == labelled
    for link in {attributes["href"] for tag, attributes, _ in page.elements if tag == "a" and "href" in attributes}:
        assert (site / link).is_file(), link


def test_it_has_a_file_for_each_run_and_the_newest_answer_first(site, page):
    names = sorted(path.name for path in (site / "runs").iterdir())
    assert names == ["20261121080700-first.json", "20261122080000-broken.json", "20261122080700-second.json"]
    assert page.texts("p", "who")[0].startswith("Pick nginx-uwsgi with staticgenerator: on home, ")
    assert page.texts("article", "run")[0].startswith("2026-11-22 08:07")


def test_the_failing_request_can_be_pasted(page):
    assert page.texts("pre") == [REQUEST]
    (wrong,) = page.texts("article", "wrong")
    assert wrong.startswith("gunicorn with site-middleware, login 2026-11-22")


def test_faults_are_a_matrix_with_reasons(page):
    cells = page.texts("td")
    assert "10 lost, 1.1 s, by itself" in cells
    assert "50 lost, not back while visitors asked (FAIL)" in cells
    repeated = "python -m bench faults gunicorn --fault application"
    request = f"The first request without a right answer: {fault_folder.REQUEST}"
    assert f"gunicorn with none, application (FAIL): 378 stale pages{repeated}{request}" in page.texts("li")


def test_a_case_of_two_runs_has_its_history(page):
    assert "nginx-uwsgi with staticgenerator, home, 50 connections, sqlite" in page.texts("summary")
    assert {"2026-11-21 08:07", "2026-11-22 08:07"} <= set(page.texts("th"))


def test_a_file_of_somebody_else_is_shown_after_the_next_writing(site, tmp_path):
    mine = tmp_path / "site"
    shutil.copytree(site, mine)
    theirs = json.loads((mine / "runs" / "20261121080700-first.json").read_text("utf-8"))
    other = theirs | {"machine": "Another 9000, 64 cores", "name": "theirs"}
    (mine / "runs" / "theirs.json").write_text(json.dumps(other), "utf-8")
    assert "Another 9000" not in (mine / "index.html").read_text("utf-8")
    page = Page(write_site(mine).read_text("utf-8"))
    assert "Another 9000, 64 cores" in page.texts("option")
    assert "4 runs on 3 machines" in page.texts("p", "eyebrow")[0]


def test_cases_of_two_machines_are_never_in_one_order(site, tmp_path):
    mine = tmp_path / "site"
    shutil.copytree(site, mine)
    theirs = json.loads((mine / "runs" / "20261121080700-first.json").read_text("utf-8"))
    for case in theirs["cases"]:
        case["requests_per_second"] *= 100
    (mine / "runs" / "theirs.json").write_text(json.dumps(theirs | {"machine": "Another 9000"}), "utf-8")
    found = AllRuns(read_site(mine))
    assert len({board.machine for board in found.boards}) == len(found.boards) == 2
    for board in found.boards:
        assert {row.run.machine for row in board.rows} == {board.machine}
    headings = Page(write_site(mine).read_text("utf-8")).texts("h3")
    assert sum("Another 9000" in heading for heading in headings) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "theirs.json: cannot be read as JSON"),
        ("[]", "theirs.json: not a JSON object"),
        ('{"format": 9}', "theirs.json: format is 9 and this program reads 1; remove the file, or make it with"),
        ('{"format": 1}', "theirs.json: "),
    ],
)
def test_a_wrong_file_is_named_and_nothing_is_written(folders, tmp_path, content, said):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "theirs.json").write_text(content, "utf-8")
    with pytest.raises(BenchError) as raised:
        write_site(tmp_path, folders[:1])
    assert said in str(raised.value) and "\n" not in str(raised.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["runs", "theirs.json"]


def test_a_folder_without_figures_leaves_no_site_behind(folders, tmp_path):
    with pytest.raises(BenchError, match="nowhere: no such directory"):
        write_site(tmp_path / "site", [folders[0], tmp_path / "nowhere"])
    assert not (tmp_path / "site").exists()
    with pytest.raises(BenchError, match="no run in its folder runs and none given; name folders of results"):
        write_site(tmp_path / "site")
    with pytest.raises(BenchError, match="a folder of results; give --site another folder"):
        write_site(folders[0], [folders[0]])


def test_the_command_says_what_it_needs(folders, tmp_path, capsys):
    run = str(folders[0])
    assert main(["report"]) == main(["report", run, run]) == 2
    assert capsys.readouterr().err == 2 * "bench report: give one folder of results, or several with --site SITE\n"
    assert main(["report", "--site", str(tmp_path / "site"), run, "--format", "md"]) == 2
    assert capsys.readouterr().err == "bench report: a site has no other format; leave out --format\n"
    assert main(["report", "--site", str(tmp_path / "site"), run]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/site/index.html\n"


@pytest.mark.servers
def test_filters_work_from_a_file(site, tmp_path):
    if not CHROMIUM:
        pytest.skip("program not installed: chromium")
    copy = tmp_path / "filtered.html"
    text = (site / "index.html").read_text("utf-8")
    copy.write_text(text, "utf-8")
    done = browsed(copy, tmp_path / "profile", "#cases?layer=staticgenerator&memory=130")
    shown = Page(done.stdout)
    rows = [attributes for tag, attributes, _ in shown.elements if tag == "tr" and "data-layer" in attributes]
    visible = [row for row in rows if "hidden" not in row]
    assert visible and len(visible) < len(rows)
    assert {row["data-layer"] for row in visible} == {"staticgenerator"}
    assert all(float(row["data-memory"]) <= 130 for row in visible)
    assert shown.texts("output") == [f"{len(visible)} of {len(rows)} cases"]
    assert "CONSOLE" not in done.stderr
