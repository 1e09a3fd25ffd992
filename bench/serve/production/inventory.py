"""The hosts of an Ansible inventory, by group. Ansible reads the file; this module only validates.

https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import math
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from bench import programs
from bench.errors import BenchError

LOAD, WEB, DB, CACHE, FRONT = GROUPS = ("load", "web", "db", "cache", "front")
# A stack has one of each.
SINGLE = (DB, CACHE, FRONT)
# Ansible makes these itself.
BUILT_IN = ("all", "ungrouped")
INSTALL = f"{programs.install_extra('hosts')} ({programs.OTHER_EXTRAS})"
SSH_PORT = 22
CONNECT_TIMEOUT_S = 5
# Becomes a file's name and a word of a command.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
# Words for ssh, in the order in which Ansible gives them.
ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
# Variable with a file of certificates (PEM) by which the front's is verified, beside those of each machine.
TRUST = "benchapp_trust"
# A host that misses three keep-alive messages in a row is gone.
ALIVE_S = 5


@dataclass(frozen=True)
class Host:
    """A machine of an inventory.

    address     the IPv4 address of the host for the other hosts
    groups      its groups, in the order of GROUPS
    target      the name or address of the host for Ansible, by ssh
    user, key   for ssh; empty: from ssh's configuration. The key is a file
    arguments   more words for ssh, from Ansible's variables
    extra       the last part of `arguments`, from the last variable
    local       True for this machine, without ssh
    link_mbit   rate of the link in each direction, in Mbit/s, if the inventory has it
    cores       usable processor cores, if the inventory has them
    trust       file of certificates for verifying the host's, if the inventory has one
    """

    name: str
    address: str
    groups: tuple[str, ...]
    target: str
    port: int = SSH_PORT
    user: str = ""
    key: str = ""
    arguments: tuple[str, ...] = ()
    extra: str = ""
    local: bool = False
    link_mbit: float | None = None
    cores: float | None = None
    trust: Path | None = None

    def argv(self, script: str) -> list[str]:
        """The command for a shell script on the host, without a prompt and with a short wait for the connection."""
        if self.local:
            return ["sh", "-c", script]
        options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"]
        # A separate connection, even if connections are shared: its commands end with it.
        options += ["-o", "ControlPath=none", "-o", f"ServerAliveInterval={ALIVE_S}", "-p", str(self.port)]
        if self.user:
            options += ["-l", self.user]
        if self.key:
            options += ["-i", self.key]
        return ["ssh", *options, *self.arguments, "--", self.target, script]


@dataclass(frozen=True)
class Inventory:
    """The hosts of an inventory in the order of its file; raises BenchError for hosts that no stack can use."""

    path: Path
    hosts: tuple[Host, ...]

    def __post_init__(self) -> None:
        if not self.of(WEB):
            raise BenchError(f"{self.path}: no host is in group {WEB}, which serves the site; name one there")
        for group in SINGLE:
            if len(names := [host.name for host in self.of(group)]) > 1:
                raise BenchError(f"{self.path}: group {group} has {' and '.join(names)}; a stack uses one host of it")
        for one, other in combinations(self.hosts, 2):
            if one.address == other.address:
                both = f"{one.name} and {other.name} have the same address, {one.address}"
                raise BenchError(f"{self.path}: {both}; write one name into several groups")

    def of(self, group: str) -> tuple[Host, ...]:
        """The hosts of a group."""
        return tuple(host for host in self.hosts if group in host.groups)


def front_of(inventory: Inventory) -> Host:
    """The host that clients connect to."""
    return next(iter(inventory.of(FRONT)), inventory.of(WEB)[0])


def read(path: Path) -> Inventory:
    """The inventory in `path`, in any form that Ansible reads; raises BenchError with one line for an error."""
    if not path.is_file():
        raise BenchError(f"{path}: no such file; write an Ansible inventory with the groups {', '.join(GROUPS)}")
    program = programs.find(["ansible-inventory"])
    if program is None:
        raise BenchError(f"program not installed: ansible-inventory; install it: {INSTALL}")
    strict = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1", "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        [program, "-i", path, "--list"],
        # Ansible refuses a terminal or pipe that does not block.
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **strict},
        check=False,
    )
    if done.returncode != 0:
        raise BenchError(f"{path}: not an Ansible inventory: {_reason(done.stderr)}")
    return decode(path, json.loads(done.stdout))


def _reason(message: str) -> str:
    """The line of Ansible's message that names the error in the file."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    causes = [line.partition(": ")[2] for line in lines if line.startswith("Failed to parse inventory: ")]
    return (causes or lines or ["no reason given"])[-1]


def decode(path: Path, listed: dict[str, Any]) -> Inventory:
    """The inventory from the output of `ansible-inventory --list`; raises BenchError."""
    variables = listed["_meta"]["hostvars"]
    members = {group: _members(group, listed) for group in listed if group not in ("_meta", *BUILT_IN)}
    grouped: set[str] = set()
    for group in GROUPS:
        grouped.update(members.get(group, ()))
    for group, names in members.items():
        # A group of groups, such as one for variables, may have only hosts of the kit's groups.
        if group not in GROUPS and not (names and set(names) <= grouped):
            raise BenchError(f"{path}: group {group}: no stack needs it; the groups are {', '.join(GROUPS)}")
    every = dict.fromkeys(_members("all", listed))
    if lost := [name for name in every if name not in grouped]:
        raise BenchError(f"{path}: {lost[0]} is in no group; the groups are {', '.join(GROUPS)}")
    hosts = []
    for name in every:
        groups = tuple(group for group in GROUPS if name in members.get(group, ()))
        hosts.append(_host(path, name, groups, variables.get(name, {})))
    return Inventory(path, tuple(hosts))


def _members(group: str, listed: dict[str, Any]) -> list[str]:
    """The hosts of a group and of the groups below it."""
    table = listed.get(group, {})
    hosts = list(table.get("hosts", ()))
    for child in table.get("children", ()):
        hosts += _members(child, listed)
    return list(dict.fromkeys(hosts))


def _host(path: Path, name: str, groups: tuple[str, ...], variables: dict[str, Any]) -> Host:
    """A host, validated; raises BenchError."""
    if not NAME.fullmatch(name):
        raise BenchError(f"{path}: {name!r} is no name of a host; use letters, digits and . _ - (not first)")
    given = _HostVariables(f"{path}: {name}", variables)
    target = given.word("ansible_host", name)
    address = str(variables.get("address", target))
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        problem = f"{path}: {name}: its address, {address!r}, is no IPv4 address"
        raise BenchError(f"{problem}; add address=IP, its address for the other hosts") from None
    trust = None
    if variables.get(TRUST):
        # As Ansible takes paths of its configuration: a relative one begins at the file's folder.
        trust = path.parent / str(variables[TRUST])
    return Host(
        name,
        address,
        groups,
        target,
        port=given.number("ansible_port", f"a port, such as {SSH_PORT}", int, 65_536) or SSH_PORT,
        user=given.word("ansible_user"),
        key=given.word("ansible_ssh_private_key_file"),
        arguments=tuple(chain.from_iterable(map(given.words, ARGUMENTS))),
        extra=str(variables.get(ARGUMENTS[-1], "")),
        local=variables.get("ansible_connection") == "local",
        link_mbit=given.number("link_mbit", "the Mbit/s of its link, such as 1000"),
        cores=given.number("cores", "the processor cores that it may use, such as 0.5"),
        trust=trust,
    )


@dataclass(frozen=True)
class _HostVariables:
    """The variables of a host, each validated when read."""

    where: str
    variables: dict[str, Any]

    def word(self, variable: str, otherwise: str = "") -> str:
        """A word for ssh that cannot be an option."""
        given = str(self.variables.get(variable, otherwise))
        if given.startswith("-"):
            raise BenchError(f"{self.where}: {variable} is {given!r}; it cannot begin with -")
        return given

    def words(self, variable: str) -> list[str]:
        """Several words, split as by a shell."""
        try:
            return shlex.split(str(self.variables.get(variable, "")))
        except ValueError as error:
            raise BenchError(f"{self.where}: {variable}: {str(error).lower()}; close what it opens") from None

    def number(self, variable: str, what: str, kind: type = float, limit: float = math.inf) -> Any:
        """A number between 0 and the limit; None if not given."""
        given = self.variables.get(variable)
        if given is None:
            return None
        with contextlib.suppress(ValueError):
            if 0 < (number := kind(str(given))) < limit:
                return number
        raise BenchError(f"{self.where}: {variable} is {given!r}; use {what}")
