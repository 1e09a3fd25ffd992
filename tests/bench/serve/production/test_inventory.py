"""Inventories as Ansible reads them, and the one line for each that no stack can use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import programs
from bench.errors import BenchError
from bench.serve.production import inventory
from bench.serve.production.inventory import Host

INI = """
[front]
front1 ansible_host=10.0.0.10 ansible_user=deploy ansible_port=2222 ansible_ssh_private_key_file=/k

[web]
web1 ansible_host=10.0.0.11
web2 ansible_host=10.0.0.12

[web:vars]
ansible_ssh_common_args=-o StrictHostKeyChecking=no
benchapp_trust=tls/fullchain.pem

[db]
db1 ansible_host=db.example.org address=10.0.0.20

[cache]
db1

[paris:children]
web
db
"""


def listed(variables: dict[str, object] | None = None, **groups: list[str]) -> dict:
    """The output of ansible-inventory for hosts in groups, each with an address; variables of the first one."""
    every = list(dict.fromkeys(name for names in groups.values() for name in names))
    addresses = {name: {"address": f"10.0.0.{number}"} for number, name in enumerate(every, 1)}
    addresses[every[0]] |= variables or {}
    tables = {group: {"hosts": names} for group, names in groups.items()}
    return {"_meta": {"hostvars": addresses}, "all": {"children": ["ungrouped", *tables]}, **tables}


def web(**variables: object) -> dict:
    return listed(variables, web=["web1"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        *((web(cores=value), f"web1: cores is {value!r}; use the processor cores") for value in ("two", 0, "nan")),
        *((web(link_mbit=value), f"web1: link_mbit is {value!r}; use the Mbit/s") for value in ("1gbit", "-5", "")),
        (web(ansible_port="x"), "web1: ansible_port is 'x'; use a port, such as 22"),
        (web(ansible_port=70_000), "web1: ansible_port is 70000; use a port"),
        (web(ansible_ssh_common_args="-o 'x"), "web1: ansible_ssh_common_args: no closing quotation; close"),
        (web(ansible_host="-oX=id"), "web1: ansible_host is '-oX=id'; it cannot begin with -"),
        (web(ansible_user="-oX"), "web1: ansible_user is '-oX'; it cannot begin with -"),
        (web(address="a.example.org"), "web1: its address, 'a.example.org', is no IPv4 address; add address=IP"),
        *(
            (listed(web=[name]), f"{name!r} is no name of a host")
            for name in ("../x", "x;id", "-x", ".x", "x y", "x\n")
        ),
        (listed(db=["a"]), "no host is in group web"),
        (listed(web=["a"], mail=["b"]), "group mail: no stack needs it; the groups are load, web, db, cache, front"),
        (listed(web=["a"], ungrouped=["b"]), "b is in no group"),
        *((listed(web=["w"], **{name: ["a", "b"]}), f"group {name} has a and b") for name in inventory.SINGLE),
        (listed({"address": "10.0.0.2"}, web=["a", "b"]), "a and b have the same address, 10.0.0.2; write one name"),
    ],
)
def test_what_no_stack_can_use_is_one_line(table, message):
    with pytest.raises(BenchError) as refused:
        inventory.decode(Path("hosts.ini"), table)
    assert str(refused.value).startswith(f"hosts.ini: {message}") and "\n" not in str(refused.value)


def test_a_group_for_variables_may_hold_our_hosts():
    table = listed(web=["a", "b"], db=["c"], paris=["a", "c"])
    assert len(inventory.decode(Path("hosts.ini"), table).hosts) == 3


def test_all_words_of_ansible_for_ssh_are_taken():
    table = web(ansible_ssh_extra_args="-C", ansible_ssh_common_args="-o 'A b'")
    assert inventory.decode(Path("hosts.ini"), table).hosts[0].arguments == ("-o", "A b", "-C")


def test_the_command_of_a_host_needs_no_input():
    host = Host("w", "10.0.0.1", ("web",), "w.example.org", 2222, "deploy", "/k", ("-C",))
    assert host.argv("true") == [
        *("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"),
        *("-o", "ControlPath=none", "-o", "ServerAliveInterval=5", "-p", "2222"),
        *("-l", "deploy", "-i", "/k", "-C", "--", "w.example.org", "true"),
    ]


@pytest.fixture
def ansible():
    if programs.find(["ansible-inventory"]) is None:
        pytest.skip("program not installed: ansible-inventory")


def test_variables_choose_how_a_host_is_reached(ansible, tmp_path):
    path = tmp_path / "hosts.ini"
    path.write_text(INI)
    hosts = inventory.read(path)
    (front,), (web1, web2) = hosts.of("front"), hosts.of("web")
    assert front == Host("front1", "10.0.0.10", ("front",), "10.0.0.10", 2222, "deploy", "/k")
    assert (web1.arguments, web2.trust) == (("-o", "StrictHostKeyChecking=no"), tmp_path / "tls/fullchain.pem")
    (db,) = hosts.of("db")
    assert (db.groups, db.address, db.target) == (("db", "cache"), "10.0.0.20", "db.example.org")


def test_a_file_that_is_no_inventory_is_refused_with_ansibles_reason(ansible, tmp_path):
    path = tmp_path / "hosts.ini"
    path.write_text("[web\nweb1\n")
    with pytest.raises(BenchError) as raised:
        inventory.read(path)
    message = str(raised.value)
    assert message.startswith(f"{path}: not an Ansible inventory: ") and "\n" not in message


def test_a_file_that_is_not_there_is_named(ansible, tmp_path):
    with pytest.raises(BenchError, match="no such file; write an Ansible inventory with the groups load, web, db"):
        inventory.read(tmp_path / "none.ini")


def test_without_ansible_one_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "find", lambda *_: None)
    hosts = tmp_path / "hosts.yml"
    hosts.touch()
    install = f"{programs.install_extra('hosts')} (with your other extras in the brackets)"
    message = f"program not installed: ansible-inventory; install it: {install}"
    with pytest.raises(BenchError, match=f"^{re.escape(message)}$"):
        inventory.read(hosts)
