"""Lists and forecasts of `python -m bench faults`."""

from __future__ import annotations

import json

import pytest

from bench import PROGRAM
from bench.cli.main import main
from bench.measure.faults import fault_session
from bench.measure.faults.kinds import FAULTS
from bench.measure.records.fault_outcomes import GROUPS
from tests.bench.measure.faults.test_prepare_faults import FakeUp


def test_the_faults_are_listed_with_what_happens(capsys):
    assert main(["faults", "--list-faults", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [item["fault"] for item in listed] == list(FAULTS)
    assert all(item["happens"].endswith(".") and item["group"] in GROUPS for item in listed)
    assert main(["faults", "--list-faults"]) == 0
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())


def test_a_dry_run_says_what_would_be_made_and_how_long_it_takes(capsys, tmp_path):
    impossible = ["--fault", "front-server", "--fault", "front-server-hangs"]
    words = ["faults", "gunicorn", "uvicorn", "--fault", "worker", *impossible, "--rounds", "2"]
    assert main([*words, "--output", str(tmp_path / "out"), "--dry-run"]) == 0
    first, *skipped = capsys.readouterr().out.splitlines()
    assert first == "4 faults to make, 4 deployments, in about 76 s"
    (line,) = skipped
    assert line.startswith("skipped: front-server, front-server-hangs: ")
    assert line.endswith(" (gunicorn, uvicorn)")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("faults", "status"),
    [(("worker", "front-server"), 1), (("worker", "application"), 1), (("worker",), 0), (("replaced", "worker"), 0)],
    ids=str,
)
def test_a_fault_named_that_is_made_nowhere_fails_with_its_reason(capsys, tmp_path, monkeypatch, faults, status):
    """The first is impossible for this stack, the second fails when made."""
    up = FakeUp()
    up.outcomes["application"] = "skipped"
    monkeypatch.setattr(fault_session, "open_session", up)
    words = [word for name in faults for word in ("--fault", name)]
    assert main(["faults", "gunicorn", *words, "--output", str(tmp_path / "out")]) == status
    out, err = capsys.readouterr()
    # As in the report.
    assert ["worker", "passed"] in [line.split() for line in out.splitlines()]
    assert [line.partition(" was made nowhere: ")[0] for line in err.splitlines()] == [
        f"benchapp faults: {name}" for name in faults if status and name != "worker"
    ]


def test_a_guard_that_is_off_is_noted_before_the_faults_and_in_their_report(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(fault_session, "open_session", FakeUp())
    words = ["faults", "gunicorn", "--fault", "worker", "--guard", "interference=off"]
    note = "uards off: interference; no trial is discarded because of them"
    assert main([*words, "--dry-run"]) == 0
    assert f"note: g{note}" in capsys.readouterr().out
    assert main([*words, "--output", str(tmp_path / "out")]) == 0
    assert f"G{note}." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("option", ["--allow-writes", "--json"])
def test_discarded_faults_name_the_command_that_repeats_them(new_project, capsys, tmp_path, monkeypatch, option):
    up = FakeUp()
    up.outcomes["worker"] = "discarded"
    monkeypatch.setattr(fault_session, "open_session", up)
    out = tmp_path / "out"
    words = ["gunicorn", "--fault", "worker", "--fault", "application", "--project", str(new_project())]
    assert main(["faults", *words, "--output", str(out), option]) == 1
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    again = f"{PROGRAM} faults --resume {out} --allow-writes"
    if option == "--json":
        again = f"{PROGRAM} faults --resume {out}"
        lines = printed.err.splitlines()
        json.loads(printed.out)
    assert f"1 of 2 faults discarded as unreliable; repeat with: {again}" in lines
