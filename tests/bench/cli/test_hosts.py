"""`hosts project`: what is measured stands apart from what is projected, and what is not says why."""

from __future__ import annotations

import importlib.util
import json

import pytest

from bench.cli import main
from tests.bench.results.scaled import make

# Requests/s of one host, of two, ... with a contention of 5 %.
RATES = {1: (100, 101, 99), 2: (190, 192, 189), 3: (273, 271, 276)}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    return [str(make(tmp_path / str(web), web, rates)) for web, rates in RATES.items()]


def said(capsys, *words) -> tuple[int, list[str], str]:
    status = main.main(["hosts", "project", *words])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err


def test_a_table_of_what_was_measured_and_one_of_what_is_projected(runs, capsys):
    status, lines, err = said(capsys, *runs)
    assert (status, err) == (0, "")
    assert lines[:7] == [
        "one~none~home~unlimited~sqlite",
        "",
        "Measured, requests/s:",
        "  web hosts  trials  median  95 % interval  at",
        "  1          3       100     99.0 to 101    16 connections",
        "  2          3       190     189 to 192     16 connections",
        "  3          3       273     271 to 276     16 connections",
    ]
    after = lines.index("  web hosts  law  lower of both  processors")
    assert lines[8].startswith("Projected, not measured, in requests/s: the Universal Scalability Law")
    assert [line.split()[0] for line in lines[after + 1 : after + 4]] == ["4", "5", "6"]
    assert lines[after + 4] == ""
    text = " ".join(" ".join(lines[after + 5 :]).split())
    assert text.startswith("The law: one host 100 (98.")
    assert "Off the law, %: 1 web host +0.0 +1.0 -1.0; 2 web hosts" in text
    assert "Processors of front: 2 cores together, 1.00 ms a request (1.00 to 1.00)." in text
    assert "Processors of web: 2 cores of each host, 0.500 ms a request" in text


def test_json_keeps_them_apart_too(runs, capsys):
    status, lines, _ = said(capsys, *runs, "--json")
    (case,) = json.loads("\n".join(lines))
    assert (status, case["not_projected"]) == (0, None)
    assert len(case["measured"]["points"]) == 9
    assert [row["hosts"] for row in case["projected"]["rows"]] == [4, 5, 6]


def test_what_is_not_projected_says_why(runs, capsys):
    status, lines, _ = said(capsys, *runs[:2])
    assert status == 1
    assert " ".join(lines[-2:]).endswith(
        "Not projected: it takes 6 trials with 3 different numbers of web hosts, and there are 6 with 2."
    )


def test_requests_of_a_schedule_say_nothing_of_hosts(tmp_path, capsys):
    run = make(tmp_path / "open", 1, [100], plan={"mode": "open"})
    status, lines, _ = said(capsys, str(run))
    assert status == 1
    assert "Not projected: the requests/s of an open loop are those that were asked for;" in lines[-2]


def test_runs_that_are_not_alike_are_warned_of(runs, tmp_path, capsys):
    other = make(tmp_path / "other", 4, (350, 351), cores=64)
    _, _, err = said(capsys, *runs, str(other))
    assert err == f"warning: A = {runs[0]}, B = {other}: cores differ: 2 in A, 64 in B\n"


@pytest.mark.parametrize("wrong", ["no run", "one host", "no scipy"])
def test_what_cannot_be_is_one_line(runs, tmp_path, capsys, monkeypatch, wrong):
    given = {"no run": str(tmp_path / "none"), "one host": str(make(tmp_path / "one", 1, [100], hosts={}))}
    if wrong == "no scipy":
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    status, lines, err = said(capsys, *runs, *filter(None, [given.get(wrong)]))
    assert (status, lines) == (2, [])
    reasons = {
        "no run": f"{tmp_path}/none: no such directory; give a folder that `python -m bench run` made",
        "one host": f"{tmp_path}/one: not a run on several hosts; make it with `python -m bench run --inventory`",
        "no scipy": "package not installed: scipy; install it: python -m pip install -r requirements-hosts.txt",
    }
    assert err == f"bench hosts: {reasons[wrong]}\n"
