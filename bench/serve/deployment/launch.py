"""Start the programs of a deployment, all in the same way."""

from __future__ import annotations

import resource
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.errors import DeploymentError
from bench.serve.deployment.layout import Layout
from bench.serve.deployment.program import OPEN_FILES, Program
from bench.serve.machine import supervise
from bench.serve.machine.cgroups import Group
from bench.serve.machine.identity import Identity
from bench.serve.machine.orphans import Register
from bench.serve.machine.supervise import Process
from bench.serve.project import commands


@dataclass(frozen=True)
class Launcher:
    """Starts programs as one user, and registers the processes.

    layout  has the directory of the programs' output, and the default working and home directory
    group   the control group of the deployment's size, for servers and services; preparing commands run outside
    """

    identity: Identity
    layout: Layout
    register: Register
    group: Group | None = None

    @property
    def clean_env(self) -> dict[str, str]:
        """The environment of programs without any need of the site."""
        return commands.clean_environment(self.layout.sockets)

    @property
    def _limited(self) -> Identity:
        """The user, with the limits of a unit: the control group of the size, and the number of open files."""
        prefix = (*_open_files(), *self.identity.prefix)
        if self.group:
            prefix = (*self.group.join, *prefix)
        return replace(self.identity, prefix=prefix)

    def start(self, program: Program, env: dict[str, str], *, cwd: Path | None = None, **how: Any) -> Process:
        """The program, started; raises DeploymentError for a program that cannot be executed.

        env  the environment of every program or of the site; the program's own variables win
        how  for `supervise.start`
        """
        log, folder = self.layout.log_of(program.name), cwd or self.layout.sockets
        process = supervise.start(program.argv, log, self._limited, env={**env, **program.env}, cwd=folder, **how)
        self.register.add(process.pid)
        return process

    def run(self, name: str, argv: list[str]) -> None:
        """Run a program to its end; raises DeploymentError with its last line on failure."""
        log = self.layout.log_of(name)
        with log.open("ab") as output:
            done = subprocess.run(
                [*self.identity.prefix, *argv],
                env=self.clean_env,
                cwd=self.layout.sockets,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        if done.returncode != 0:
            raise DeploymentError(f"{name}: {Path(argv[0]).name} failed: {supervise.last_line(log)}", log)


def _open_files() -> tuple[str, ...]:
    """The beginning of a command with as many open files as a unit has, or as many as this process may give."""
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        return ()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = OPEN_FILES
    if most != resource.RLIM_INFINITY:
        files = min(OPEN_FILES, most)
    return (prlimit, f"--nofile={files}", "--")
