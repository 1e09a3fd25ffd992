"""The command `tune`, on deployments without load."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from bench.cli import tune
from bench.errors import BenchError
from bench.measure.records.folder import read_run
from bench.measure.run import local
from bench.serve.catalog import catalog
from tests.bench.measure.records.run_data import TRIAL, at_rate, changed
from tests.bench.measure.run.fake_sites import UNGUARDED, FakeSites, arguments, change


@pytest.fixture
def sites(monkeypatch):
    """Deployments that hold 100 requests/s with each of up to two processes, whatever the threads."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(local, "measure", holds(lambda stack: 100 * min(processes(stack), 2)))
    return FakeSites()


def processes(stack: str) -> int:
    return int(re.search(r"processes=(\d+)", stack)[1])


def holds(rate):
    """A measurement of deployments that hold so many requests/s, by the name of their stack."""

    def measure(item, *rest):
        identity = replace(TRIAL, **{name: getattr(item.case, name) for name in ("case_id", "stack", "layer")})
        identity = changed(identity, memory_peak_bytes={"app": processes(item.case.stack) * 50 * 2**20})
        return at_rate(item.level, 20.0 if item.level <= rate(item.case.stack) else 900.0, item.round, identity)

    return measure


@pytest.fixture
def go(tmp_path, sites, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def went(*words: str) -> int:
        more = ["--capacity", "p95=200ms", "--workload", "home", "--output", str(tmp_path / "run"), *UNGUARDED]
        return tune.main(arguments([*words, *more], tune), sites.bed)

    return went


TRIED = ((4, 1), (8, 1), (2, 1), (1, 1), (2, 2))


def test_it_prints_a_table_and_what_to_change_and_writes_values_that_render_takes(go, tmp_path, capsys):
    assert go("nginx-gunicorn") == 0
    output = capsys.readouterr().out
    assert "tune nginx-gunicorn, layer none, home: the highest rate with p95 within 200 ms" in output
    table = output[output.index("settings  ") :].splitlines()
    rows = [re.split(r"  +", line) for line in table[1:6]]
    assert [row[1:] for row in rows] == [
        ["200", "200 to 212", "3", "200 MiB", "not counted", "no difference"],
        ["200", "200 to 212", "3", "400 MiB", "not counted", "no difference"],
        ["200", "200 to 212", "3", "100 MiB", "not counted", "take these"],
        ["100", "100 to 106", "1", "50 MiB", "not counted", "holds 0.50 times as much"],
        ["200", "200 to 212", "1", "100 MiB", "not counted", "no difference"],
    ]
    answer = " ".join(table[7:-1])
    assert "take 2 processes with 1 thread each (sync); they hold 200 requests/s (200 to 212 in 3 rounds)" in answer
    assert "The stack has 4 processes with 1 thread each (sync): the change holds 1.00 times as much" in answer
    path = tmp_path / "run" / "values.toml"
    assert table[-1] == f"next: python -m bench render nginx-gunicorn --values {path} --output DIR"
    assert catalog.read().value_set(str(path)).changes == {"processes": 2, "threads": 1}


def test_a_search_that_was_stopped_goes_on_where_it_was(go, sites, tmp_path, capsys):
    assert go("nginx-gunicorn") == 0
    output, folder = capsys.readouterr().out, tmp_path / "run"
    complete = read_run(folder)
    lines = (folder / "trials.jsonl").read_text().splitlines(keepends=True)
    (folder / "trials.jsonl").write_text("".join(lines[:15]))
    (folder / "verify.jsonl").write_text("")
    info = json.loads((folder / "run.json").read_text())
    info |= {"finished_at": None, "cases": info["cases"][:2]}
    (folder / "run.json").write_text(json.dumps(info))
    assert read_run(folder).resume_command() == f"python -m bench tune --resume {folder}"
    assert tune.main(arguments(["--resume", str(folder)], tune), sites.bed) == 0
    assert [trial.trial_id for trial in read_run(folder).trials] == [trial.trial_id for trial in complete.trials]
    assert capsys.readouterr().out.splitlines()[-1] == output.splitlines()[-1]


def test_a_search_goes_on_with_the_database_of_the_environment(go, sites, tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", url := "postgresql://me@db/site")
    assert go("nginx-gunicorn") == 0
    change(tmp_path / "run" / "run.json", finished_at=None)
    real, urls = sites.resolver, set()
    monkeypatch.setattr(sites, "resolver", lambda plan, rows: urls.add(rows.url) or real(plan, rows))
    assert tune.main(arguments(["--resume", str(tmp_path / "run")], tune), sites.bed) == 0
    assert urls == {url}


def test_json_is_all_that_stdout_gets_and_the_folder_is_a_run_whose_cases_were_each_verified_once(
    go, sites, tmp_path, capsys
):
    assert go("nginx-gunicorn", "--json") == 0
    run = read_run(tmp_path / "run")
    names = [f"nginx-gunicorn@processes={p},threads={t}" for p, t in TRIED]
    assert [case.stack for case in run.info.cases] == names and run.info.finished_at
    assert [line for line in sites.log if line.startswith("verify")] == [f"verify {name} none" for name in names]
    document = json.loads(capsys.readouterr().out)
    assert document["answer"]["settings"] == {"processes": 2, "threads": 1, "worker_class": "sync"}
    assert document["answer"]["no_difference"] == [
        {"processes": 4, "threads": 1, "worker_class": "sync"},
        {"processes": 8, "threads": 1, "worker_class": "sync"},
        {"processes": 2, "threads": 2, "worker_class": "gthread"},
    ]
    assert (document["answer"]["requests_per_second"], document["answer"]["memory_bytes"]) == (200, 100 * 2**20)
    assert [item["verdict"] for item in document["tried"]].count("take these") == 1


def test_stacks_of_the_same_server_with_another_worker_class_are_tried_too(go, sites, tmp_path, capsys):
    sites.misfits["gunicorn-uvicorn", "none"] = "program not installed: uvicorn"
    assert go("gunicorn") == 0
    tried = [case.stack for case in read_run(tmp_path / "run").info.cases]
    assert tried == [
        *(f"gunicorn@processes={p},threads={t}" for p, t in ((4, 4), (8, 4), (2, 4), (1, 4), (2, 8))),
        *(f"gunicorn-asgi@processes=2,threads={t}" for t in (16, 32)),
        *(f"gunicorn-gevent@processes=2,threads={t}" for t in (16, 32)),
    ]
    output = capsys.readouterr().out
    assert re.search(r"\n2 processes with 16 threads each \(asgi\) .*  no difference\n", output)
    assert re.search(r"\ngunicorn-uvicorn +skipped: program not installed: uvicorn\n", output)


def test_the_stack_of_the_best_worker_class_is_the_result(go, sites, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(local, "measure", holds(lambda stack: 300 if stack.startswith("granian-asgi") else 100))
    assert go("granian") == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "granian-asgi with layer none: take 1 process with 16 threads (asginl); they hold 300 requests/s" in output
    assert f"next: python -m bench render granian-asgi --values {tmp_path / 'run' / 'values.toml'}" in output


def test_a_stack_with_wrong_responses_has_no_settings(go, sites, tmp_path, capsys):
    sites.wrong |= {f"nginx-gunicorn@processes={p},threads={t}" for p in (1, 2, 4) for t in (1, 2)}
    assert go("nginx-gunicorn") == 1
    output = capsys.readouterr().out
    assert "not measured, it gives wrong responses: 1 check failed: content" in output
    assert output.splitlines()[-1] == "No settings kept p95 within 200 ms."
    assert not (tmp_path / "run" / "values.toml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["gunicorn@processes=2"],
            "tune gunicorn@processes=2: it finds processes and threads by itself; leave them out",
        ),
        (["lighttpd-flup"], "tune lighttpd-flup: it has neither processes nor threads to set; try another stack"),
    ],
)
def test_what_cannot_be_tuned_is_refused_in_one_line(go, words, message):
    with pytest.raises(BenchError) as refused:
        go(*words)
    assert str(refused.value).startswith(message)
