"""Missing requirements of hosts: of this machine, and of one that refuses ssh."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench.cli import main
from bench.errors import BenchError
from bench.serve.production import inventory
from bench.serve.production.inventory import Host, Inventory
from bench.verify.hosts import host_record, reach

HERE = Host("here", "127.0.0.1", ("load",), "127.0.0.1", local=True)
WEB = Host("web1", "127.0.0.2", ("web",), "127.0.0.2", local=True)


NO_PYTHON = "no Python 3, which Ansible needs: install it"


def lacks(*more: Host) -> dict[str, tuple[str, ...]]:
    probed = reach.probe_hosts(Inventory(Path("hosts.ini"), (WEB, *more)))
    return {item.host.name: item.lacks for item in probed if item.host != WEB}


def test_the_shortest_round_trip_tells_the_time():
    trips = [(0, 900, 1000), (2000, 2060, 2100), (3000, 3900, 5000)]
    assert reach.offset(trips) == reach.Clock(10 / 1e6, 50 / 1e6)


def test_an_offset_above_the_bound_is_wrong_however_well_it_is_known():
    assert reach.Clock(95, 49).wrong == "95 ms ahead: apt-get install chrony"
    assert reach.Clock(-50, 0).wrong == ""


def test_the_clock_of_this_machine_is_right():
    (_, probed) = reach.probe_hosts(Inventory(Path("hosts.ini"), (WEB, HERE)))
    assert probed.lacks == ()
    assert abs(probed.clock.ahead_ms) <= probed.clock.error_ms


def test_a_clock_200_ms_ahead_is_lacking(standing_in):
    standing_in("date", f'exec {shutil.which("date")} -d "+0.2 seconds" "$@"')
    ((lack,),) = lacks(HERE).values()
    assert lack in [f"its clock is {ahead} ms ahead: apt-get install chrony" for ahead in range(180, 230)]


@pytest.mark.parametrize(
    ("python", "of_load", "of_web"),
    [
        ("echo 3.9", ("its Python is 3.9; load needs Python 3.10 or a later one",), ()),
        ("echo 3.10", (), ()),
        ("exit 127", (NO_PYTHON,), (NO_PYTHON,)),
    ],
)
def test_a_python_is_old_for_load_only(standing_in, python, of_load, of_web):
    standing_in("python3", python)
    probed = reach.probe_hosts(Inventory(Path("hosts.ini"), (WEB, HERE)))
    assert probed[1].lacks == of_load and bool(probed[1].cannot_load) == bool(of_load)
    # This machine may lack something else that units need.
    assert [lack for lack in probed[0].lacks if "Python" in lack] == list(of_web)


def test_a_host_that_refuses_ssh_is_named():
    if shutil.which("ssh") is None:
        pytest.skip("program not installed: ssh")
    refusing = replace(HERE, name="there", local=False, port=1)
    assert lacks(refusing) == {
        "there": ("cannot be reached: connect to host 127.0.0.1 port 1: Connection refused",),
    }


def test_a_host_that_does_not_respond_in_time_is_named(monkeypatch, standing_in):
    monkeypatch.setattr(reach, "TIMEOUT_S", 0.2)
    standing_in("ssh", "exec sleep 60")
    silent = replace(HERE, local=False)
    assert lacks(silent) == {"here": ("cannot be reached: no response within 0 s",)}


def test_without_ssh_one_line_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    there = replace(WEB, local=False)
    monkeypatch.setattr(inventory, "read", lambda path: Inventory(path, (there,)))
    assert main.main(["hosts", "check", "--inventory", "hosts.ini"]) == 2
    assert capsys.readouterr().err == "benchapp hosts: program not installed: ssh; apt-get install openssh-client\n"
    with pytest.raises(BenchError, match="program not installed: ssh; apt-get install openssh-client"):
        host_record.file_of(there, "/x")


def test_what_units_need_is_lacking_only_where_units_run(standing_in):
    standing_in("id", "echo 1000")
    standing_in("sudo", "exit 1")
    database = Host("db1", "127.0.0.3", ("load", "db"), "127.0.0.3", local=True)
    lacking = lacks(HERE, database)
    assert lacking["here"] == ()
    assert lacking["db1"][0] == "no root: connect as root, or allow sudo without a password"


def test_the_command_prints_a_line_a_host(monkeypatch, capsys):
    lines = [
        reach.HostState(HERE, reach.Clock(0.31, 0.2), ()),
        reach.HostState(WEB, None, ("no Python 3, which Ansible needs: install it", "no systemd")),
    ]
    monkeypatch.setattr(inventory, "read", lambda path: path)
    monkeypatch.setattr(reach, "probe_hosts", lambda known: lines)
    assert main.main(["hosts", "check", "--inventory", "hosts.ini"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "ok    here 127.0.0.1 is load; clock +0.3 ms (±0.2)",
        "FAIL  web1 127.0.0.2: no Python 3, which Ansible needs: install it",
        "FAIL  web1 127.0.0.2: no systemd",
    ]
