"""A virtual environment for a project's servers: the project's packages first, the kit's behind them.

Nothing is installed into the project's own environment. A layered one has no packages itself; a `.pth` file names the
folders of both (https://docs.python.org/3/library/site.html), and its programs are the kit's with another interpreter.
The servers are those of the instrument's environment, or of one made for them and a version of Python when first
needed, by uv if installed.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import msgspec
from packaging.utils import canonicalize_name

from bench import paths, programs
from bench.errors import BenchError
from bench.printer import Printer, aside
from bench.serve.machine.lock import exclusive

# Packages of the kit that a project's processes import; a project may have some of these names itself.
KIT_PACKAGES = ("benchapp", "benchapp_overlay", "bench")
QUERY_TIMEOUT_S, INSTALL_TIMEOUT_S = 30, 600
ADVICE = "name another as python in [tool.benchapp]"
_QUERY = (
    "import json, sys, sysconfig; print(json.dumps({'version': '%d.%d' % sys.version_info[:2],"
    " 'prefix': sys.prefix, 'base_prefix': sys.base_prefix, 'sites':"
    " [p for p in sys.path if p.endswith(('site-packages', 'dist-packages'))]}))"
)

# A line of a `.pth` file that takes clones of the kit off the path, except one of PYTHONPATH, which is the project: a
# project may have a folder `config`, too.
_WITHOUT_CLONES = (
    "import os, sys; sys.path[:] = [p for p in sys.path if p in os.environ.get('PYTHONPATH', '').split(':')"
    " or not os.path.isfile(p + '/bench/__main__.py') or not os.path.isfile(p + '/config/settings.py')]"
)


class PythonFacts(msgspec.Struct, frozen=True):
    """Facts about a Python: version (`3.12`), folders, and package folders."""

    version: str
    prefix: str
    base_prefix: str
    sites: tuple[str, ...]


class VenvOverlay(msgspec.Struct, frozen=True):
    """A layered environment.

    venv   its folder
    kit    the virtual environment with the servers
    sites  folders of packages, the project's first
    base   the folder of the Python below
    """

    venv: Path
    kit: Path
    sites: tuple[str, ...]
    base: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return python_of(self.venv)


def python_of(venv: Path) -> Path:
    """The interpreter of a virtual environment."""
    if venv == paths.VENV:
        return paths.PYTHON
    return venv / "bin" / "python"


def own_packages(sites: tuple[str, ...]) -> frozenset[str]:
    """The canonical names of the distributions in those folders, except in the kit's environments."""
    not_own = (programs.servers_venv(), paths.STATE / programs.SERVERS)
    own = []
    for site in sites:
        if not any(Path(site).is_relative_to(venv) for venv in not_own):
            own.append(site)
    return frozenset(canonicalize_name(distribution.metadata["Name"]) for distribution in distributions(path=own))


@functools.cache
def kits() -> VenvOverlay:
    """The environment of the servers for the instrument's own Python, made if missing.

    Raises BenchError if the servers cannot be installed.
    """
    venv = programs.servers_venv()
    if venv != paths.VENV:
        venv = kit_venv(query_interpreter(paths.PYTHON), paths.PYTHON)
        sys.path += [str(site) for site in venv.glob("lib/python*/site-packages")]
        importlib.invalidate_caches()
    return VenvOverlay(venv, venv, (), Path(sys.base_prefix))


def servers_module(name: str) -> Any:
    """A module of the servers' packages, such as a database driver, for the instrument's own Python."""
    if importlib.util.find_spec(name) is None:
        kits()
    return importlib.import_module(name)


def query_interpreter(python: Path, advice: str = ADVICE) -> PythonFacts:
    """Query an interpreter; raises BenchError with a remedy if it cannot run."""
    problem = f"{python}: cannot be run"
    output = _run([str(python), "-c", _QUERY], problem, advice, QUERY_TIMEOUT_S)
    try:
        return msgspec.json.decode(output.strip().rpartition("\n")[2], type=PythonFacts)
    except msgspec.DecodeError:
        raise BenchError(f"{problem}: it does not say its version; {advice}") from None


def environment(python: Path, folder: Path) -> VenvOverlay:
    """The layered environment in `folder` for a project with that interpreter, made if missing.

    Raises BenchError if it cannot be made, or the kit's servers cannot be installed for this version of Python.
    """
    interpreter = query_interpreter(python)
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder / "lock", f"the environment {folder}"):
        servers = kit_venv(interpreter, python)
        venv, note = place(folder), folder / "environment.json"
        commands = sorted(path.name for path in (servers / "bin").iterdir())
        # A tool of pipx or uv may be in another folder after an upgrade.
        there = msgspec.json.encode([interpreter, str(servers), commands, str(paths.KIT), _WITHOUT_CLONES])
        if not note.is_file() or note.read_bytes() != there:
            shutil.rmtree(venv, ignore_errors=True)
            _make(venv, interpreter, python, servers)
            note.write_bytes(there)
    sites = (*interpreter.sites, *query_interpreter(servers / "bin" / "python").sites)
    return VenvOverlay(venv, servers, sites, Path(interpreter.base_prefix))


def place(folder: Path) -> Path:
    """The place of the layered environment in `folder`."""
    return folder / "venv"


def kit_venv(facts: PythonFacts, python: Path, advice: str = ADVICE) -> Path:
    """The virtual environment with the servers for that version of Python: the kit's own, or one made for it.

    Raises BenchError, with a remedy, if the servers cannot be installed.
    """
    venv = paths.STATE / programs.SERVERS / facts.version
    if facts.version == programs.VERSION:
        venv = programs.servers_venv()
    if venv == paths.VENV:
        return venv
    venv.parent.mkdir(parents=True, exist_ok=True)
    # Those of another project may be installed meanwhile.
    with exclusive(venv.with_name(f"{facts.version}.lock"), f"the servers {venv}"):
        _install(venv, facts, python, advice)
        _link_kit(venv)
    return venv


def _install(venv: Path, facts: PythonFacts, python: Path, advice: str) -> None:
    done, wanted = venv / "installed", programs.requirements()[programs.SERVERS]
    if done.is_file() and done.read_text("utf-8") == "\n".join(wanted):
        return
    aside(f"installing the servers for Python {facts.version} (once)")
    _new(venv, python, wanted, f"the servers cannot be installed for Python {facts.version}", advice)
    site = next(venv.glob("lib/python*/site-packages"))
    (site / "kit.pth").write_text(f"{venv / 'kit'}\n", "utf-8")
    done.write_text("\n".join(wanted), "utf-8")


def _new(venv: Path, python: Path, packages: Iterable[str], problem: str, advice: str) -> None:
    """A new environment of that interpreter with these packages, by uv if installed; or none.

    Raises BenchError that begins with the `problem`.
    """
    if venv in python.parents:
        # The environment's own goes with it: the one that it was made of makes it again.
        python = python.resolve()
    shutil.rmtree(venv, ignore_errors=True)
    uv = programs.find(["uv"], venvs=(paths.VENV,))
    if uv:
        make = [str(uv), "venv", "--quiet", "--python", str(python), str(venv)]
        # Servers may not write beside their packages, and would compile them at each start.
        install = [str(uv), "pip", "install", "--compile-bytecode", "--python", str(venv / "bin" / "python")]
    else:
        make = [str(python), "-m", "venv", str(venv)]
        install = [str(venv / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    try:
        _run(make, f"{python} cannot make a virtual environment", advice)
        _run_shown([*install, *packages], problem, advice)
    except BaseException:
        shutil.rmtree(venv, ignore_errors=True)
        raise


def of_listing(folder: Path, python: Path, venv: Path) -> Path:
    """The interpreter of an environment with the packages that a project lists, made once: as `venv`.

    The list is requirements.txt, else the dependencies of pyproject.toml. Raises BenchError for a project without a
    list, and if the packages cannot be installed.
    """
    done = venv / "installed"
    listing, described = folder / "requirements.txt", folder / "pyproject.toml"
    if done.is_file():
        return venv / "bin" / "python"
    packages = ["-r", str(listing)]
    if not listing.is_file():
        packages = []
        if described.is_file():
            packages = tomllib.loads(described.read_text("utf-8")).get("project", {}).get("dependencies", [])
    if not packages:
        raise BenchError(
            f"{folder}: its packages are others, and neither requirements.txt nor pyproject.toml lists them"
        )
    aside(f"installing the packages of {folder} (once)")
    venv.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(venv.with_name(f"{venv.name}.lock"), f"the environment {venv}"):
        _new(venv, python, packages, f"the packages of {folder} cannot be installed", "correct its list")
        done.touch()
    return venv / "bin" / "python"


def _link_kit(venv: Path) -> Path:
    """A folder of the environment with links to the kit's packages, which may be elsewhere since the last time."""
    folder = venv / "kit"
    folder.mkdir(parents=True, exist_ok=True)
    for name in KIT_PACKAGES:
        link, target = folder / name, paths.KIT / name
        if name == paths.PACKAGE.name:
            target = paths.PACKAGE
        if not link.is_symlink() or link.readlink() != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    return folder


def _make(venv: Path, facts: PythonFacts, python: Path, kit: Path) -> None:
    _run([str(python), "-m", "venv", "--without-pip", str(venv)], f"{python} cannot make a virtual environment")
    site = next(venv.glob("lib/*/site-packages"))
    packages = _link_kit(venv)
    kit_sites = query_interpreter(kit / "bin" / "python").sites
    # addsitedir also reads the .pth files there, which packages installed for development have. The kit's own is such
    # a package, and its clone has folders whose names a project may have, too.
    lines = [f"import site; site.addsitedir({folder!r})" for folder in facts.sites]
    lines.append(_WITHOUT_CLONES)
    (site / "layers.pth").write_text("\n".join([*lines, *kit_sites, str(packages)]) + "\n", "utf-8")
    for program in (kit / "bin").iterdir():
        target = venv / "bin" / program.name
        # The environment's own programs stay.
        if target.exists() or not program.is_file():
            continue
        first, _, rest = program.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            target.write_bytes(f"#!{venv}/bin/python\n".encode() + rest)
            target.chmod(0o755)


def _run_shown(argv: list[str], problem: str, advice: str) -> None:
    """Run a program that installs packages, and show each line of its output on a terminal.

    Raises BenchError, which begins with `problem`, if the program fails or does not end.
    """
    last_line = ""
    with (
        subprocess.Popen(
            argv,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
        Printer(sys.stderr) as printer,
    ):
        timer = threading.Timer(INSTALL_TIMEOUT_S, process.kill)
        timer.start()
        for line in process.stdout or ():
            last_line = line.strip() or last_line
            printer.show(last_line)
        timer.cancel()
    if process.returncode != 0:
        raise BenchError(f"{problem}: {last_line or f'it does not end within {INSTALL_TIMEOUT_S:g} s'}; {advice}")


def _environment() -> dict[str, str]:
    """The environment of programs that look at a project's Python or add to the kit's, which stays unchanged."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**env, "PYTHONDONTWRITEBYTECODE": "1"}


def _run(argv: list[str], problem: str, advice: str = ADVICE, timeout_s: float = INSTALL_TIMEOUT_S) -> str:
    """Return a program's output; raises BenchError, beginning with `problem`, if the program fails or times out."""
    try:
        done = subprocess.run(
            argv, env=_environment(), capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        raise BenchError(f"{problem}: {error.strerror}; {advice}") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{problem}: it does not end within {timeout_s:g} s; {advice}") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise BenchError(f"{problem}: {lines[-1]}; {advice}")
    return done.stdout
