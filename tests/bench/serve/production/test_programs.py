"""The tried case is the deployed one: the programs of a case are the same ones here, in the units of a host and in
containers, except for the places of their files."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from bench import programs as installed
from bench.serve.catalog import catalog, compatibility
from bench.serve.deployment.layout import HostPaths, Layout
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import OPEN_FILES, Program, programs, site_env
from bench.serve.production import containers, one_host
from bench.serve.project.description import Worker
from bench.serve.project.opened import UnderTest
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
    """The command of a unit in the foreground, on the socket that others know, which systemd may hold for it."""
    words = shlex.split(lines["ExecStart"][0].replace("%%", "%").replace("$$", "$"))
    taken = program.server.inherits if program.server else ()
    if isinstance(taken, tuple) and taken:
        assert words[-len(taken) :] == list(taken)
        words = words[: -len(taken)]
    for line in lines.get("ExecStartPost", []):
        own, *link = shlex.split(line)[4:] or [""]
        words = [word.replace(own, link[0]) if link else word for word in words]
    return [word.replace("daemon on;", "daemon off;") for word in words]


def facts_of_units(folder: Path, placed: Placed) -> dict[str, Facts]:
    """Each program as systemd runs it."""
    found = {}
    for program in programs(placed):
        lines = unit(folder / f"systemd/benchapp-{program.name}.service")
        assert lines["LimitNOFILE"] == [str(OPEN_FILES)]
        env = dict(line.split("=", 1) for line in lines.get("Environment", []) if LOADED not in line)
        beside = 0 if program.worker else 5
        found[program.name] = {
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
    return found


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
    lines = (tmp_path / "host/site.env").read_text("utf-8").splitlines()
    rendered = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
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
        found = {
            "env": {key: without_places(value, in_one, host) for key, value in of.get("environment", {}).items()},
            "site": (of.get("env_file"), of.get("secrets")) == (["site.env"], ["secrets.env"]),
        }
        if not name.startswith("worker-"):
            found["signal"] = of["stop_signal"]
        assert found == {key: expected[name][key] for key in found}
    clustered = of_pod(tmp_path / "kubernetes")
    assert clustered.keys() == {name for name in expected if not name.startswith("worker-")}
    for name, of in clustered.items():
        words = [word.replace("$$(", "$(") for word in in_container(of["args"])]
        assert [without_places(word, in_one, host) for word in words] == expected[name]["words"]
        env = {item["name"]: without_places(item["value"], in_one, host) for item in of.get("env", [])}
        mounts = {mount["name"] for mount in of["volumeMounts"]}
        assert (env, "secrets" in mounts) == (expected[name]["env"], expected[name]["site"])


def test_the_size_limits_all_programs_alike(tmp_path):
    """Here a control group has the limits of the slice and of the pod."""
    case = production("gunicorn", size=SIZE)
    one_host.write(case, tmp_path / "host")
    containers.write(case, tmp_path / "kubernetes", "kubernetes")
    limits, mebibytes = case.size.limits, 1024 * 1024
    found = unit(tmp_path / "host/systemd/benchapp.slice")
    assert found["MemoryMax"] == [f"{limits.burstable_bytes // mebibytes}M"]
    assert found["CPUQuota"] == [f"{limits.cpus * 100:.0f}%"]
    in_pod = pod(tmp_path / "kubernetes")["resources"]["limits"]
    assert in_pod == {"memory": f"{limits.burstable_bytes // mebibytes}Mi", "cpu": str(limits.cpus)}
