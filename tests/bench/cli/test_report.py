"""`python -m bench report`: its files, and one line for every refusal."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from bench.cli import report as report_command
from bench.errors import BenchError
from tests.bench.report import report_folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return report_folder.make(tmp_path_factory.mktemp("plain") / "run")


def command(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    report_command.add_arguments(parser)
    return report_command.main(parser.parse_args(argv))


def test_the_path_of_the_report_is_the_last_line(plain, capsys):
    assert command(str(plain)) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == str(plain / "report.html")
    assert Path(last).stat().st_size > 1000


def test_a_page_comes_with_a_picture(tmp_path, capsys):
    folder = report_folder.make(tmp_path / "run")
    assert command(str(folder)) == 0
    assert sorted(path.name for path in folder.iterdir() if path.suffix in (".html", ".svg", ".new")) == [
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


def test_a_torn_line_is_refused_unless_it_is_the_last(tmp_path):
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
