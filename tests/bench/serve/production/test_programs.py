"""The tried case is the deployed one: the programs of a case are the same ones here, in the units of a host and in
containers, except for the places of their files."""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from bench import programs as installed
from bench.serve.catalog import catalog, compatibility, sizes
from bench.serve.deployment import database, deployment, takeover
from bench.serve.deployment.chain import Chain
from bench.serve.deployment.layout import HostPaths, Layout
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import OPEN_FILES, Program, programs, site_env
from bench.serve.machine import ports, supervise
from bench.serve.machine.cgroups import Group
from bench.serve.machine.identity import GUARD, Identity
from bench.serve.production import containers, one_host
from bench.serve.project import commands
from bench.serve.project.description import Worker
from bench.serve.project.opened import UnderTest
from bench.serve.project.run_command import INHERITED
from tests.bench.serve.production.test_containers import SERVER_NAMES, of_compose, of_pod, on_a_host, pod
from tests.bench.serve.production.test_workers import unit
from tests.cases import kit, production
from tests.skips import needs

KNOWN = catalog.read()
STACKS = [name for name, stack in KNOWN.stacks.items() if not stack.production]
# The layers that bring servers, services or sidecars, or modules and options of a server, each on two stacks.
LAYERS = [name for name, layer in KNOWN.layers.items() if layer.scope != "app" or layer.services or layer.sidecars]
LAYERED = [
    (stack, layer)
    for layer in LAYERS
    for stack in [name for name in STACKS if not compatibility.layer_problem(KNOWN.stacks[name], KNOWN.layers[layer])][
        :2
    ]
]
SIZE = "silver"
HERE = Path("/tmp/here")
USERS = ("user", "web_user", "cache_user")
# A variable of the unit only: by it a deploy knows that the application is loaded.
LOADED = "BENCHAPP_LOADED"
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def project() -> UnderTest:
    """The kit's site with a worker, whose command has what systemd and Compose would expand."""
    description = structs.replace(kit().description, workers={"queue": Worker("manage.py work 100%@$h")})
    return replace(kit(), project=structs.replace(kit().project, description=description))


def here(host: Placed) -> Placed:
    """The case of a host on this machine: other places, and the same users, so that it shows who runs what."""
    project = host.case.project
    places = Layout(HERE, HERE / "run").places(project, project.worker(), host.places.port)
    users = {name: getattr(host.places, name) for name in USERS}
    return Placed(host.case, replace(places, bind=host.places.bind, **users)).wired(count(8001).__next__)


def without_places(text: str, places: HostPaths, host: Placed) -> str:
    """The text with a word in place of each place, whose paths lie below each other."""
    names = ("project", "venv", "static_root", "conf", "run", "logs", "store", "tls", "data", "media_root")
    if places.here:
        for service in host.case.services:
            for name in service.programs.values():
                text = text.replace(str(installed.find([name], service.search)), f"/usr/bin/{name}")
        text = text.replace(str(host.case.project.python), f"{places.venv}/bin/python")
        # The programs of servers are those of the host, whatever is installed here.
        text = text.replace(host.places.venv, places.venv)
    if places.private:
        text = re.sub(rf"{re.escape(places.run)}/({'|'.join(SERVER_NAMES)})(?![\w.-])", places.run, text)
    for name in sorted(names, key=lambda name: len(getattr(places, name)), reverse=True):
        text = re.sub(rf"{re.escape(getattr(places, name))}(?![\w.-])", f"<{name}>", text)
    return text


def facts_here(placed: Placed, host: Placed) -> dict[str, Facts]:
    """Each program as it is started on this machine."""

    def facts(program: Program) -> Facts:
        return {
            "words": [without_places(word, placed.places, host) for word in program.argv],
            "env": {name: without_places(value, placed.places, host) for name, value in program.env.items()},
            "site": program.site or program.secrets,
            "signal": f"SIG{program.stop}",
            "stop_s": program.stop_s,
            "user": program.user,
            "socket": without_places(program.address.endpoint, placed.places, host) if program.address else "",
        }

    return {program.name: facts(program) for program in programs(placed)}


def unit_words(lines: dict[str, list[str]], program: Program) -> list[str]:
    """The command of a unit without the words about the socket that systemd holds for it."""
    words = started_words(lines)
    taken = program.server.inherits if program.server else ()
    if isinstance(taken, tuple) and taken:
        assert words[-len(taken) :] == list(taken)
        words = words[: -len(taken)]
    return words


def started_words(lines: dict[str, list[str]]) -> list[str]:
    """The command of a unit in the foreground, on the socket that others know."""
    words = shlex.split(lines["ExecStart"][0].replace("%%", "%").replace("$$", "$"))
    for line in lines.get("ExecStartPost", []):
        own, *link = shlex.split(line)[4:] or [""]
        words = [word.replace(own, link[0]) if link else word for word in words]
    return [word.replace("daemon on;", "daemon off;") for word in words]


def facts_of_units(folder: Path, placed: Placed) -> dict[str, Facts]:
    """Each program as systemd runs it."""
    facts = {}
    for program in programs(placed):
        lines = unit(folder / f"systemd/benchapp-{program.name}.service")
        assert lines["LimitNOFILE"] == [str(OPEN_FILES)]
        env = dict(line.split("=", 1) for line in lines.get("Environment", []) if LOADED not in line)
        beside = 0 if program.worker else 5
        facts[program.name] = {
            "words": [without_places(word, placed.places, placed) for word in unit_words(lines, program)],
            "env": {name: without_places(value, placed.places, placed) for name, value in env.items()},
            "site": "EnvironmentFile" in lines,
            "signal": lines["KillSignal"][0],
            "stop_s": int(lines["TimeoutStopSec"][0]) - beside,
            "user": lines["User"][0],
            "socket": without_places(program.address.endpoint, placed.places, placed) if program.address else "",
        }
        sockets = folder / f"systemd/benchapp-{program.name}.socket"
        if sockets.exists():
            assert unit(sockets)["ListenStream"] == [program.address.endpoint]
    return facts


def variables(file: Path) -> dict[str, str]:
    """The variables of a file of an environment."""
    lines = file.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def in_container(words: list[str]) -> list[str]:
    """The command of a container without the shell that removes a socket file before it, on the address of a host."""
    words = [on_a_host(word).replace("0.0.0.0", "127.0.0.1") for word in words]
    if words[:2] != ["/bin/sh", "-c"]:
        return words
    removed, _, rest = words[2].partition(" && exec ")
    assert removed.startswith("rm -f /")
    return shlex.split(rest)


@pytest.mark.parametrize(("stack", "layer"), [*((stack, "none") for stack in STACKS), *LAYERED])
def test_a_program_is_the_same_here_on_a_host_and_in_containers(stack, layer, project, tmp_path):
    case = production(stack, layer, project, SIZE)
    needs(*(name for service in case.services for name in service.programs.values()))
    host = one_host.in_production(case, "127.0.0.1")
    expected = facts_here(here(host), host)

    one_host.write(case, tmp_path / "host")
    assert facts_of_units(tmp_path / "host", host) == expected
    rendered = variables(tmp_path / "host/site.env")
    assert rendered.pop("DJANGO_SETTINGS_MODULE") == "config.settings"
    of_site = {name: without_places(value, here(host).places, host) for name, value in site_env(here(host)).items()}
    assert {name: without_places(value, host.places, host) for name, value in rendered.items()} == of_site

    containers.write(case, tmp_path / "compose", "compose")
    containers.write(case, tmp_path / "kubernetes", "kubernetes")
    # One user runs all of them, so that no server has a separate directory.
    in_one = replace(host.places, private=False)
    compose = of_compose(tmp_path / "compose")
    assert compose.keys() == expected.keys()
    for name, of in compose.items():
        words = [word.replace("$$", "$") for word in in_container(of["command"])]
        assert [without_places(word, in_one, host) for word in words] == expected[name]["words"]
        assert of["ulimits"] == {"nofile": OPEN_FILES}
        facts = {
            "env": {key: without_places(value, in_one, host) for key, value in of.get("environment", {}).items()},
            "site": (of.get("env_file"), of.get("secrets")) == (["site.env"], ["secrets.env"]),
        }
        if not name.startswith("worker-"):
            facts["signal"] = of["stop_signal"]
        assert facts == {key: expected[name][key] for key in facts}
    clustered = of_pod(tmp_path / "kubernetes")
    assert clustered.keys() == {name for name in expected if not name.startswith("worker-")}
    for name, of in clustered.items():
        words = [word.replace("$$(", "$(") for word in in_container(of["args"])]
        assert [without_places(word, in_one, host) for word in words] == expected[name]["words"]
        env = {item["name"]: without_places(item["value"], in_one, host) for item in of.get("env", [])}
        mounts = {mount["name"] for mount in of["volumeMounts"]}
        assert (env, "secrets" in mounts) == (expected[name]["env"], expected[name]["site"])


# ------------------------------------------------------------------------------------------------- what is started here


# Variables of every program here. Of a unit systemd gives some, and a release is read-only.
COMMON = {"HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE", *INHERITED}
# The secrets of the site: on a host, in a file that is not rendered.
SECRETS = {"DATABASE_URL", "SECRET_KEY"}
# On a host each release has its static files in its folder.
ONLY_HERE = {"BENCHAPP_STATIC_ROOT"}
ME = Identity("me", os.geteuid(), os.getegid(), ("setpriv", *GUARD, "--reuid", "me", "--"))
GROUP = Group((Path("/sys/fs/cgroup/of-this-test"),), 2)


class NeverRun:
    """The arguments of a started process, which never runs. No process of Linux has its number."""

    pid = 2**22 + 1

    def __init__(self, argv: list[str], **how: Any):
        self.argv, self.how = argv, how
        self.status: int | None = None

    @property
    def name(self) -> str:
        """The name of the program, as of its log."""
        return Path(self.how["stdout"].name).stem

    def send_signal(self, number: int) -> None:
        self.status = 0

    def poll(self) -> int | None:
        return self.status

    def wait(self, timeout: float | None = None) -> None:
        pass


class Held:
    """A socket for a server to inherit, which nobody listens on."""

    def __init__(self, address: supervise.Address, backlog: int, identity: Identity):
        self.address, self.backlog = address, backlog

    def fileno(self) -> Held:
        return self

    def close(self) -> None:
        pass


@pytest.fixture
def started(monkeypatch) -> list[NeverRun]:
    """Every process of a deployment in order, none of which runs: all else of a start is real."""
    processes: list[NeverRun] = []

    def start(argv: list[str], **how: Any) -> NeverRun:
        processes.append(NeverRun(argv, **how))
        return processes[-1]

    monkeypatch.setattr(supervise, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": start}))
    monkeypatch.setattr(takeover, "listening_socket", Held)
    for wait in ("wait_accepting", "wait_command", "wait_healthy"):
        monkeypatch.setattr(supervise, wait, lambda *_: None)
    # The rows and the files of the site, and what this machine can and may do, are no part of a program.
    for module, name in ((database, "check"), (database, "prepare"), (commands, "collect_static")):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(deployment, "_prepare_front", lambda *_: None)
    monkeypatch.setattr(ports, "free_port", count(8001).__next__)
    monkeypatch.setattr(UnderTest, "worker", lambda *_: ME)
    monkeypatch.setattr(sizes, "group", lambda size: GROUP)
    monkeypatch.setattr(Group, "create", lambda group, limits: None)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, resource.RLIM_INFINITY))
    return processes


def facts_of_started(process: NeverRun, chain: Chain, host: Placed) -> Facts:
    """A program as it was started on this machine."""
    words, before = list(process.argv), []
    for _ in range(3):
        at = words.index("--") + 1
        before.append(words[:at])
        words = words[at:]
    in_group, limited, as_user = before
    assert Path(limited[0]).name == "prlimit"
    held = process.how["stdin"]
    if isinstance(held, Held):
        assert words[: len(takeover.INHERITING)] == list(takeover.INHERITING)
        words = words[len(takeover.INHERITING) :]

    def neutral(text: str) -> str:
        # A link leads from the socket file that others know to the program's own.
        for link in Path(chain.placed.places.run).iterdir():
            if link.is_symlink():
                text = text.replace(str(link.readlink()), str(link))
        return without_places(text, chain.placed.places, host)

    env = process.how["env"]
    own = env.keys() - COMMON - SECRETS - ONLY_HERE
    return {
        "words": [neutral(word) for word in words],
        "env": {name: neutral(env[name]) for name in own},
        "secrets": SECRETS & env.keys(),
        "folder": neutral(str(process.how["cwd"])) if env.keys() >= SECRETS else "",
        "user": as_user[as_user.index("--reuid") + 1],
        "files": limited[1:],
        "limited": in_group == list(GROUP.join),
        "socket": (neutral(held.address.endpoint), held.backlog) if isinstance(held, Held) else None,
    }


def facts_of_unit(folder: Path, name: str, host: Placed) -> Facts:
    """A program as systemd starts it."""
    lines, sockets = unit(folder / f"systemd/benchapp-{name}.service"), folder / f"systemd/benchapp-{name}.socket"
    own = dict(line.split("=", 1) for line in lines.get("Environment", []) if LOADED not in line)
    of_site = "EnvironmentFile" in lines
    if of_site:
        assert lines["LoadCredential"] == ["secrets.env:/etc/benchapp/secrets.env"]
        own = {**variables(folder / "site.env"), **own}
    held = None
    if sockets.exists():
        of_socket = unit(sockets)
        held = (without_places(of_socket["ListenStream"][0], host.places, host), int(of_socket["Backlog"][0]))
    (user,) = lines["User"]
    assert user in {getattr(host.places, name) for name in USERS}
    return {
        "words": [without_places(word, host.places, host) for word in started_words(lines)],
        "env": {name: without_places(value, host.places, host) for name, value in own.items()},
        "secrets": SECRETS if of_site else set(),
        "folder": without_places(lines["WorkingDirectory"][0], host.places, host) if of_site else "",
        "user": ME.user,
        "files": [f"--nofile={lines['LimitNOFILE'][0]}", "--"],
        "limited": lines["Slice"] == ["benchapp.slice"],
        "socket": held,
    }


@pytest.mark.parametrize(("stack", "layer"), [*((stack, "none") for stack in STACKS), *LAYERED])
def test_a_program_is_started_here_as_its_unit_starts_it(stack, layer, project, started, tmp_path):
    """One user starts all of them here: nobody except root may start a program as another user. A host has a user for
    the application, one for web servers and one for caches; the test above compares whose each program is.
    """
    case = production(stack, layer, project, SIZE)
    case = replace(case, values=replace(case.values, user_env={"GREETING": "hello"}))
    needs("prlimit", *(name for service in case.services for name in service.programs.values()))
    host = one_host.in_production(case, "127.0.0.1")
    one_host.write(case, tmp_path / "host")
    with deployment.deployed(host.case, port=host.places.port, run_dir=tmp_path / "run") as running:
        facts = {process.name: facts_of_started(process, running.chain, host) for process in started}
    assert facts == {name: facts_of_unit(tmp_path / "host", name, host) for name in facts}
    assert facts.keys() == {program.name for program in programs(host)}


def test_the_size_limits_all_programs_alike(tmp_path):
    """Here a control group has the limits of the slice and of the pod."""
    case = production("gunicorn", size=SIZE)
    one_host.write(case, tmp_path / "host")
    containers.write(case, tmp_path / "kubernetes", "kubernetes")
    limits, mebibytes = case.size.limits, 1024 * 1024
    entries = unit(tmp_path / "host/systemd/benchapp.slice")
    assert entries["MemoryMax"] == [f"{limits.burstable_bytes // mebibytes}M"]
    assert entries["CPUQuota"] == [f"{limits.cpus * 100:.0f}%"]
    in_pod = pod(tmp_path / "kubernetes")["resources"]["limits"]
    assert in_pod == {"memory": f"{limits.burstable_bytes // mebibytes}Mi", "cpu": str(limits.cpus)}
