"""Releases of the project side by side, as on a host: a link, `current`, names the one that is served."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.errors import BenchError
from bench.host.identity import Identity
from bench.project import commands, run_command, under_test
from bench.project.run_command import Interpreter
from bench.serve.layout import Layout, Places

# Parts of a checkout that no server reads.
LEFT_OUT = (".*", "var", "results", "venv", "tests", "docs", "bench", "benchmarks", "deploy")


class Releases:
    """Copies of the project in a deployment's run directory; the checkout is never changed.

    current      the link to the release that is served: the `project` of templates
    static_root  the static files of all releases together, so that pages of an older one find theirs
    """

    def __init__(self, layout: Layout, identity: Identity):
        self.current = layout.run_dir / "current"
        self.static_root = layout.run_dir / "static"
        self._folder = layout.run_dir / "releases"
        self._identity = identity

    def begin(self, places: Places) -> Places:
        """Make the first release, of static files that are collected; the places of a deployment that serves it."""
        shutil.copytree(commands.static_root(), self.static_root)
        self._identity.give_tree(self.static_root)
        self._folder.mkdir()
        first = self.add("1")
        self.collect_static(first)
        self.switch(first)
        return replace(places, project=str(self.current), static_root=str(self.static_root))

    def add(self, name: str, change: Callable[[Path], None] = lambda folder: None) -> Path:
        """A new release beside the others, a copy of the checkout that `change` changes."""
        folder = self._folder / name
        shutil.copytree(under_test.current().folder, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
        change(folder)
        # As installers do: a worker that starts would otherwise compile the site first. What is compiled came along.
        subprocess.run(
            [str(under_test.current().python), "-m", "compileall", "-q", str(folder)], capture_output=True, check=False
        )
        (folder / "var").mkdir()
        self._identity.give(folder / "var")
        return folder

    def collect_static(self, folder: Path) -> None:
        """Add the static files of a release to those of the others. Raises BenchError when that fails."""
        project = under_test.current()
        env = {
            **commands.site_environment("sqlite:///:memory:", folder),
            **commands.COMMANDS_ENV,
            "BENCHAPP_STATIC_ROOT": str(self.static_root),
        }
        interpreter = Interpreter(self._identity.prefix, project.python, folder / "manage.py")
        words = ["collectstatic", "--noinput", "--verbosity", "0"]
        done = run_command.run(interpreter, words, project.environment(env))
        if done.returncode != 0:
            raise BenchError(f"collectstatic of {folder.name} failed: {done.stderr.strip().splitlines()[-1]}")

    def switch(self, folder: Path) -> None:
        """Have that release served from the next reload on: the link is replaced in one step."""
        beside = self.current.with_name("current.new")
        beside.symlink_to(folder)
        beside.replace(self.current)
