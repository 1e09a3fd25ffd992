"""The conditions of a run: load tool, cores, rounds, changed values."""

from __future__ import annotations

from dataclasses import replace

from bench.report import (
    conditions,
)
from bench.report.arrange import arrange
from bench.report.write import write_report
from bench.results.folder import Folder, read_run
from tests.bench.report import report_folder
from tests.bench.report.pages import Page, made, opened, shown


def test_a_fallback_load_tool_is_marked(hostile):
    page = Page(shown(hostile))
    assert page.texts("span", "badge") == ["fallback"]
    assert any("the fallback when no faster load tool is installed" in item for item in page.texts("li"))


def test_few_cores_one_round_and_an_unfinished_run_are_caveats(tmp_path):
    folder = report_folder.make(tmp_path / "run", rounds=1, finished=False)
    notes = conditions.caveats(arrange(read_run(folder)))
    assert notes[0] == "This run did not finish. The report shows the trials made so far."
    assert any(
        note.startswith("Load tool, servers and services share 2 cores. Compare figures within this report")
        for note in notes
    )
    assert any(note.startswith("One round only: each figure is a single reading") for note in notes)


def test_guards_that_were_turned_off_are_a_caveat(tmp_path):
    run = read_run(report_folder.make(tmp_path / "run", rounds=5))
    words = ("--guard", "others=off", "--guard", "drift=off", "--guard", "late=30", "--set", "access_log=off")
    found = conditions.caveats(arrange(replace(run, info=replace(run.info, command=(*run.info.command, *words)))))
    assert "Guards that were turned off: others, drift. They would have voided disturbed trials." in found
    assert not any("turned off" in note for note in conditions.caveats(arrange(run)))


def test_many_cores_are_not_warned_about(tmp_path):
    folder = report_folder.make(tmp_path / "run", rounds=5, machine=report_folder.environment(cores=16))
    notes = conditions.caveats(arrange(read_run(folder)))
    assert not [note for note in notes if "Compare figures within" in note]
    assert any("medians of 4 to 5 rounds with a bootstrap 95 % confidence interval" in note for note in notes)


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


def test_an_open_loop_has_levels_in_requests_a_second(tmp_path):
    text = write_report(opened(made(tmp_path))).read_text("utf-8")
    assert "50 requests/s, open loop" in text
    assert "latency counts from the moment a request was due" in text
    assert "50 connections" not in text
