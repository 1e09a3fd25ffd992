"""Files of `python -m bench report`, and one line for every refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.cli import report as report_command
from bench.errors import BenchError
from tests.bench.measure.report import report_folder
from tests.bench.measure.run.fake_sites import arguments


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return report_folder.make(tmp_path_factory.mktemp("plain") / "run")


def command(*argv: str) -> int:
    return report_command.main(arguments(argv, report_command))


def test_the_last_line_is_the_verdict_in_at_most_25_words(plain, capsys):
    assert command(str(plain)) == 0
    path, answer = capsys.readouterr().out.splitlines()
    assert path == str(plain / "report.html") and len(answer.split()) <= 25
    assert sorted(each.name for each in plain.iterdir() if each.name.startswith("report.")) == [
        "report.html",
        "report.json",
        "report.svg",
    ]


def test_without_a_web_server_the_verdict_comes_after_the_advice_to_install_one(tmp_path, capsys):
    machine = report_folder.environment(missing_web_server="front: `apt-get install front` installs it")
    folder = report_folder.make(tmp_path / "run", machine=machine)
    assert command(str(folder)) == 0
    _, advice, _ = capsys.readouterr().out.splitlines()
    assert advice.startswith("No usable web server is installed") and "`apt-get install front`" in advice
    page = (folder / "report.html").read_text()
    assert page.index("No usable web server is installed") < page.index("<h1>")
    assert command(str(folder), "--format", "github") == 0
    assert capsys.readouterr().out.splitlines()[2] == advice


def test_the_advice_is_left_out_if_another_run_had_a_web_server(tmp_path, capsys):
    machine = report_folder.environment(missing_web_server="front: `apt-get install front` installs it")
    without = report_folder.make(tmp_path / "without", machine=machine)
    other = report_folder.make(tmp_path / "other")
    assert command(str(without), str(other), "--output", str(tmp_path / "both.html")) == 0
    assert "No usable web server" not in capsys.readouterr().out


def test_json_is_the_document_and_nothing_is_written(tmp_path, capsys):
    folder = report_folder.make(tmp_path / "run")
    assert command(str(folder), "--json") == 0
    assert json.loads(capsys.readouterr().out)["boards"][0]["workloads"] == ["session", "home"]
    assert not list(folder.glob("report.*"))


def test_several_folders_are_one_page_elsewhere(tmp_path, capsys):
    folders = [str(report_folder.make(tmp_path / name)) for name in "ab"]
    assert command(*folders, "--output", str(tmp_path / "both.html")) == 0
    assert (tmp_path / "both.html").exists() and not (tmp_path / "a" / "report.html").exists()
    with pytest.raises(BenchError, match="--output"):
        command(*folders)


def test_without_a_folder_it_says_what_to_give(capsys):
    with pytest.raises(BenchError, match="results/DIR"):
        command()


def refused(folder: Path) -> str:
    with pytest.raises(BenchError) as refusal:
        command(str(folder))
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_run_without_trials_is_refused(tmp_path):
    folder = report_folder.make(tmp_path / "run", change=lambda trial: None)
    assert refused(folder) == (
        f"{folder}: the run has no trials; finish it with `python -m bench run --resume {folder}`"
    )
    assert not (folder / "report.html").exists()


def test_a_report_that_cannot_be_written_is_one_line(tmp_path):
    folder = report_folder.make(tmp_path / "run", rounds=1)
    (folder / "report.html.new").mkdir()
    assert refused(folder) == f"{folder / 'report.html'}: cannot be written: Is a directory"
