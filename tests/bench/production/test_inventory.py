"""Inventories as Ansible reads them, and the one line for each that no stack can use."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import programs
from bench.errors import BenchError
from bench.production import inventory
from bench.production.inventory import Host

INI = """
[front]
front1 ansible_host=10.0.0.10 ansible_user=deploy ansible_port=2222 ansible_ssh_private_key_file=/k

[web]
web1 ansible_host=10.0.0.11
web2 ansible_host=10.0.0.12

[web:vars]
ansible_ssh_common_args=-o StrictHostKeyChecking=no

[db]
db1 ansible_host=db.example.org address=10.0.0.20

[cache]
db1

[paris:children]
web
db
"""


def listed(**groups: list[str]) -> dict:
    """What ansible-inventory lists of hosts in groups, each with an address of its own."""
    every = dict.fromkeys(name for names in groups.values() for name in names)
    variables = {name: {"ansible_host": f"10.0.0.{number}"} for number, name in enumerate(every, 1)}
    tables = {group: {"hosts": names} for group, names in groups.items()}
    return {"_meta": {"hostvars": variables}, "all": {"children": ["ungrouped", *tables]}, **tables}


def refused(table: dict) -> str:
    with pytest.raises(BenchError) as raised:
        inventory.decode(Path("hosts.ini"), table)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def ansible():
    if programs.find(["ansible-inventory"]) is None:
        pytest.skip("program not installed: ansible-inventory")


@pytest.fixture
def written(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "hosts.ini"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("cores", ["two", 0, "nan"])
def test_cores_that_are_none_are_refused(cores):
    table = listed(web=["web1"])
    table["_meta"]["hostvars"]["web1"]["cores"] = cores
    said = f"hosts.ini: web1: cores is {cores!r}; use the processor cores that it may use, such as 0.5"
    assert refused(table) == said


@pytest.mark.parametrize("rate", ["1gbit", 0, "-5", "nan", ""])
def test_a_link_without_a_rate_is_refused(rate):
    table = listed(web=["web1"])
    assert inventory.decode(Path("hosts.ini"), table).hosts[0].link_mbit is None
    table["_meta"]["hostvars"]["web1"]["link_mbit"] = rate
    assert refused(table) == f"hosts.ini: web1: link_mbit is {rate!r}; use the Mbit/s of its link, such as 1000"


def with_variable(name: str, value: object) -> dict:
    table = listed(web=["web1"])
    table["_meta"]["hostvars"]["web1"] |= {"address": "10.0.0.1", name: value}
    return table


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ansible_port", "x", "ansible_port is 'x'; use a port, such as 22"),
        ("ansible_port", 70_000, "ansible_port is 70000; use a port, such as 22"),
        (
            "ansible_ssh_common_args",
            "-o 'ProxyCommand",
            "ansible_ssh_common_args: no closing quotation; close what it opens",
        ),
        ("ansible_host", "-oProxyCommand=id", "ansible_host is '-oProxyCommand=id'; it cannot begin with -"),
        ("ansible_user", "-oX", "ansible_user is '-oX'; it cannot begin with -"),
    ],
)
def test_what_ssh_cannot_use_is_one_line(variable, value, said):
    assert refused(with_variable(variable, value)) == f"hosts.ini: web1: {said}"


@pytest.mark.parametrize("name", ["../../x", "x;id", "-x", ".x", "x y", "x\n"])
def test_a_name_that_is_no_file_and_no_word_is_refused(name):
    wanted = f"hosts.ini: {name!r} is no name of a host; use letters, digits and . _ - (not first)"
    assert refused(listed(web=[name])) == wanted


def test_all_words_of_ansible_for_ssh_are_taken():
    table = with_variable("ansible_ssh_extra_args", "-C")
    table["_meta"]["hostvars"]["web1"]["ansible_ssh_common_args"] = "-o 'A b'"
    assert inventory.decode(Path("hosts.ini"), table).hosts[0].arguments == ("-o", "A b", "-C")


def test_a_file_in_another_encoding_is_refused(ansible, tmp_path):
    path = tmp_path / "hosts.ini"
    path.write_bytes(b"[web]\nweb1 ansible_host=10.0.0.1 # \xe9\n")
    with pytest.raises(BenchError) as raised:
        inventory.read(path)
    assert str(raised.value) == f"{path}: not UTF-8 at byte 35; write it so"


def test_variables_choose_how_a_host_is_reached(ansible, written):
    found = inventory.read(written(INI))
    (front,), (web1, _) = found.of("front"), found.of("web")
    assert front == Host("front1", "10.0.0.10", ("front",), "10.0.0.10", 2222, "deploy", "/k")
    assert [host.name for host in found.of("web")] == ["web1", "web2"]
    assert web1.arguments == ("-o", "StrictHostKeyChecking=no")
    (db,) = found.of("db")
    assert (db.groups, db.address, db.target) == (("db", "cache"), "10.0.0.20", "db.example.org")


def test_certificates_are_a_path_from_the_folder_of_the_inventory(ansible, written):
    path = written(
        "[front]\nfront1 ansible_host=10.0.0.1\n[web]\nweb1 ansible_host=10.0.0.2\n"
        "[front:vars]\nbenchapp_trust=tls/fullchain.pem\n"
    )
    front, web = inventory.read(path).hosts
    assert (front.trust, web.trust) == (path.parent / "tls/fullchain.pem", None)


def test_the_command_of_a_host_asks_for_nothing():
    host = Host("w", "10.0.0.1", ("web",), "w.example.org", 2222, "deploy", "/k", ("-C",))
    assert host.argv("true") == [
        *("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"),
        *("-o", "ControlPath=none", "-o", "ServerAliveInterval=5", "-p", "2222"),
        *("-l", "deploy", "-i", "/k", "-C", "--", "w.example.org", "true"),
    ]


def test_a_file_that_is_no_inventory_is_refused_with_ansibles_reason(ansible, written):
    path = written("[web\nweb1\n")
    with pytest.raises(BenchError) as raised:
        inventory.read(path)
    said = str(raised.value)
    assert said.startswith(f"{path}: not an Ansible inventory: ") and "\n" not in said


def test_a_file_that_is_not_there_is_named(ansible, tmp_path):
    with pytest.raises(BenchError, match="no such file; write an Ansible inventory with the groups load, web, db"):
        inventory.read(tmp_path / "none.ini")


def test_without_ansible_one_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "find", lambda *_: None)
    with pytest.raises(BenchError) as raised:
        inventory.read(tmp_path)
    wanted = "program not installed: ansible-inventory; install it: python -m pip install -r requirements-hosts.txt"
    assert str(raised.value) == wanted


def test_without_web_hosts_nothing_can_serve():
    assert refused(listed(db=["a"])) == "hosts.ini: no host is in group web, which serves the site; name one there"


def test_a_group_that_no_stack_needs_is_named():
    wanted = "hosts.ini: group mail: no stack needs it; the groups are load, web, db, cache, front"
    assert refused(listed(web=["a"], mail=["b"])) == wanted


def test_a_host_in_no_group_is_named():
    assert refused(listed(web=["a"], ungrouped=["b"])).startswith("hosts.ini: b is in no group; ")


def test_a_group_for_variables_may_hold_our_hosts():
    table = listed(web=["a", "b"], db=["c"], paris=["a", "c"])
    assert len(inventory.decode(Path("hosts.ini"), table).hosts) == 3


@pytest.mark.parametrize("group", inventory.SINGLE)
def test_a_stack_uses_one_host_of_these(group):
    wanted = f"hosts.ini: group {group} has a and b; a stack uses one host of it"
    assert refused(listed(web=["w"], **{group: ["a", "b"]})) == wanted


def test_two_names_of_one_host_are_refused():
    table = listed(web=["a", "b"])
    table["_meta"]["hostvars"]["b"] = table["_meta"]["hostvars"]["a"]
    wanted = "hosts.ini: a and b have the same address, 10.0.0.1; write one name into several groups"
    assert refused(table) == wanted


def test_an_address_is_an_ip_address():
    table = listed(web=["a"])
    table["_meta"]["hostvars"]["a"] = {"ansible_host": "a.example.org"}
    wanted = (
        "hosts.ini: a: its address, 'a.example.org', is no IPv4 address; add address=IP, where the other hosts reach it"
    )
    assert refused(table) == wanted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts", "[web]\na ansible_host=10.0.0.1\n[db]\na ansible_user=x ansible_host='10.0.0.2'\n"),
        ("a.yml", "web: {hosts: {a: {ansible_host: 10.0.0.1}}}\ndb: {hosts: {a: {ansible_host: 10.0.0.2}}}\n"),
        ("a.yml", "web: {hosts: {'a': {ansible_user: x, ansible_host: 10.0.0.1}, a: {ansible_host: 10.0.0.2}}}\n"),
        (
            "a.yaml",
            "web:\n  hosts:\n    a:\n      ansible_host: 10.0.0.1\n"
            "all:\n  children:\n    db: {hosts: {a: {ansible_port: 22, ansible_host: 10.0.0.2}}}\n",
        ),
    ],
)
def test_a_host_with_two_addresses_is_refused(ansible, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BenchError) as raised:
        inventory.read(path)
    assert str(raised.value) == f"{path}: a has two addresses, 10.0.0.1 and 10.0.0.2 (ansible_host); keep one"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # The end of a name, a comment, the variables of a group.
        ("hosts", "[web]\na ansible_host=10.0.0.1 # a ansible_host=10.0.0.3\na-a ansible_host=10.0.0.2\n"),
        ("hosts", "[web]\na ansible_host=10.0.0.1\n# a ansible_host=10.0.0.9\n; a ansible_host=10.0.0.9\n"),
        ("hosts", "[web]\na ansible_host=10.0.0.1\n[db]\na\n[web:vars]\na=1\n"),
        ("a.yml", "web: {hosts: {a: {ansible_host: 10.0.0.1}}} # a: {ansible_host: 10.0.0.9}\ndb: {hosts: {a: }}\n"),
    ],
)
def test_a_host_with_one_address_is_taken(ansible, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert inventory.read(path).hosts[0].address == "10.0.0.1"
