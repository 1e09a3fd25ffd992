"""Check the manifests and the rendered files: every template renders, each server's own configuration test passes."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import paths
from bench.serve.catalog import compatibility
from bench.serve.catalog.manifest import Layer, Stack
from bench.serve.catalog.server import Server
from bench.serve.deployment import program, render
from bench.serve.deployment.case import CannotRun, Case, resolve
from bench.serve.deployment.database import NO_DATABASE
from bench.serve.deployment.layout import Layout
from bench.serve.deployment.placed import Placed
from bench.serve.machine import ports
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest
from bench.serve.project.run_command import IMPORT_TIMEOUT_S

# How many of the last lines of a server's output are shown; they hold the reason.
MAX_LINES = 12


@dataclass(frozen=True)
class ConfigCheck:
    """The outcome of one server's check under one layer; `problem` is empty after a passed check.

    `problem` has the lines that the server printed, with the templates' paths in place of the rendered files'.
    """

    stack: str
    layer: str
    server: str
    problem: str = ""
    skipped: bool = False


def check(project: UnderTest, stack: Stack, layer: Layer) -> list[ConfigCheck]:
    """Render the stack with the layer and run each server's configuration test.

    Without the layer every server is tested; with the layer, each reader of a layer's file.
    """
    if compatibility.layer_problem(stack, layer):
        return []
    composed = resolve(project, stack.name, layer.name, database=NO_DATABASE)
    if isinstance(composed, CannotRun):
        return [ConfigCheck(stack.name, layer.name, "", composed.reason, skipped=True)]
    with contextlib.ExitStack() as cleanup:
        folder = Path(tempfile.mkdtemp(prefix="benchapp-check-"))
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        findings = []
        for server in composed.servers:
            if server.check and (layer.is_none or server in layer.servers or layer.files(server)):
                findings.append(ConfigCheck(stack.name, layer.name, server.name, problem(composed, server, folder)))
        return findings


def problem(composed: Case, server: Server, folder: Path) -> str:
    """The reason why the server's own test refuses its files, rendered below `folder`, or an empty string."""
    who = composed.project.worker(folder)
    layout = Layout(folder, folder / "run")
    layout.make(who)
    placed = Placed(composed, layout.places(composed.project, who, ports.free_port())).wired(ports.free_port)
    render.write_files(placed, layout.conf)
    who.give_tree(folder)
    first, *_ = program.of_server(server, placed)
    # Some import the application, whose packages may read its settings.
    site = commands.site_environment(composed.project, "sqlite:///:memory:", layout.sockets)
    env = {**composed.project.environment(site), **first.env}
    return _with_templates(run_check([*who.prefix, *first.check], env, server), server, composed, placed.places.conf)


def _with_templates(problem: str, server: Server, composed: Case, conf: str) -> str:
    """A server's output with the path of a file's uppermost template in place of the rendered file."""
    files = render.server_files(server, composed)
    for name in sorted(files, key=len, reverse=True):
        template = files[name][0].relative_to(paths.DEPLOY.parent)
        problem = problem.replace(f"{conf}/{name}", str(template))
    return problem


def run_check(argv: list[str], env: dict[str, str], server: Server) -> str:
    """The last lines of a server's failed configuration test, or an empty string when the test passed."""
    try:
        done = subprocess.run(
            argv,
            env=env,
            cwd=paths.KIT,
            capture_output=True,
            text=True,
            timeout=IMPORT_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(argv)} did not end within {IMPORT_TIMEOUT_S} s"
    output = (done.stdout + done.stderr).strip()
    warned = server.bad_output and re.search(server.bad_output, output)
    if done.returncode == server.good_status and not warned:
        return ""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return "\n".join(lines[-MAX_LINES:]) or f"exit status {done.returncode}"
