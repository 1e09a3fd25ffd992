"""Releases of the project side by side, as on a host: a link, `current`, names the served one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench import paths
from bench.errors import BenchError
from bench.serve.deployment.layout import HostPaths, Layout
from bench.serve.machine.identity import Identity
from bench.serve.project import commands, run_command
from bench.serve.project.opened import UnderTest
from bench.serve.project.run_command import Interpreter

# Parts of the kit's checkout that no server reads.
LEFT_OUT = (".*", "var", "results", "venv", "tests", "docs", "bench", "deploy")
# Parts of any project that no server reads; a project may need all others.
NOT_CODE = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})
# Code inside the project, also as an app: a copy in each release has the word for its version.
INSIDE = ("bench/serve/inside", "bench/serve/command")
# Pages of another project then say which release rendered them (bench/serve/inside/visitor_pages.py).
MARKED = {"BENCHAPP_MARKS": "1"}


class Releases:
    """Copies of the project in a deployment's run directory; the checkout is never changed.

    project      the released project
    current      the link to the served release: the `project` of templates
    static_root  the static files of all releases together, so that pages of an older release find theirs
    """

    def __init__(self, project: UnderTest, layout: Layout, identity: Identity):
        self.project = project
        self.current = layout.run_dir / "current"
        self.static_root = layout.run_dir / "static"
        self._folder = layout.run_dir / "releases"
        self._identity = identity

    def begin(self, places: HostPaths) -> HostPaths:
        """Make the first release, with collected static files; the places of a deployment that serves this release."""
        shutil.copytree(self.project.static_root, self.static_root)
        self._identity.give_tree(self.static_root)
        self._folder.mkdir()
        first = self.add("1")
        self.collect_static(first)
        self.switch(first)
        return replace(places, project=str(self.current), static_root=str(self.static_root))

    def add(self, name: str, change: Callable[[Path], None] = lambda folder: None) -> Path:
        """A new release beside the others: a copy of the project, changed by `change`.

        Raises BenchError for a project that cannot be copied.
        """
        folder = self._folder / name
        project = self.project
        if project.overlaid:
            _copy_other(project, folder)
        else:
            paths.copy_of_kit(project.folder, folder, *LEFT_OUT)
        _add_inside(folder)
        change(folder)
        # As installers do: a starting worker would otherwise compile the site first. Compiled files were copied.
        compiling = [str(project.python), "-m", "compileall", "-q", str(folder)]
        subprocess.run(compiling, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        (folder / "var").mkdir(exist_ok=True)
        self._identity.give(folder / "var")
        return folder

    def collect_static(self, folder: Path) -> None:
        """Add the static files of a release to those of the others. Raises BenchError on failure."""
        project = self.project
        env = {
            **commands.site_environment(project, "sqlite:///:memory:", folder),
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


def _add_inside(folder: Path) -> None:
    """Put the inner parts of `bench` beside the project: a release's own come before the kit's."""
    above = paths.PACKAGE.parent
    for name in INSIDE:
        paths.copy_of_kit(above / name, folder / name)
    for package in ("bench", "bench/serve"):
        shutil.copy(above / package / "__init__.py", folder / package)


def _copy_other(project: UnderTest, folder: Path) -> None:
    """Copy another project than the kit's, without its databases, uploaded files and environments."""
    data = {project.facts.media_root or ""}
    for file in project.facts.database_files.values():
        data |= {str(file), f"{file}-wal", f"{file}-shm"}

    def left_out(where: str, names: list[str]) -> set[str]:
        excluded = {*NOT_CODE.intersection(names), *paths.results_among(where, names)}
        for name in names:
            path = Path(where) / name
            if str(path) in data or (path / "pyvenv.cfg").is_file():
                excluded.add(name)
        return excluded

    try:
        shutil.copytree(project.folder, folder, ignore=left_out, ignore_dangling_symlinks=True)
    except shutil.Error as error:
        source, _, why = error.args[0][0]
        raise BenchError(f"{source}: cannot be copied into a release: {why}") from None
    except OSError as error:
        raise BenchError(f"{error.filename}: cannot be copied into a release: {error.strerror}") from None
