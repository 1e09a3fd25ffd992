"""A virtual environment for a project's servers: the project's packages first, the kit's behind them.

Nothing is installed into the project's own environment. A layered one has no packages itself; a `.pth` file names the
folders of both (https://docs.python.org/3/library/site.html), and its programs are the kit's with another interpreter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from bench import paths
from bench.errors import BenchError
from bench.serve.machine.lock import exclusive

# Packages of the kit that a project's processes import; a project may have some of these names itself.
KIT_PACKAGES = ("benchapp", "benchapp_overlay", "bench")
ASK_TIMEOUT_S, INSTALL_TIMEOUT_S = 30, 600
# Of the Python that runs the instrument.
VERSION = "{}.{}".format(*sys.version_info[:2])
ADVICE = "name another as python in [tool.benchapp]"
# The part of requirements.txt that a server needs, up to this line.
NOT_FOR_SERVERS = "# The instrument"
_ASK = (
    "import json, sys, sysconfig; print(json.dumps({'version': '%d.%d' % sys.version_info[:2],"
    " 'prefix': sys.prefix, 'base_prefix': sys.base_prefix, 'sites':"
    " [p for p in sys.path if p.endswith(('site-packages', 'dist-packages'))]}))"
)


class Interpreter(msgspec.Struct, frozen=True):
    """What a Python says of itself: its version (`3.12`), its folders, and those of its packages."""

    version: str
    prefix: str
    base_prefix: str
    sites: tuple[str, ...]


class VenvOverlay(msgspec.Struct, frozen=True):
    """A layered environment.

    venv   its folder
    kit    the virtual environment whose servers it uses
    sites  folders of packages, those of the project first
    base   the folder of the Python below it
    """

    venv: Path
    kit: Path
    sites: tuple[str, ...]
    base: Path

    @property
    def of_project(self) -> bool:
        """Whether it has packages of a project, in front of the kit's."""
        return self.venv != self.kit

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return paths.PYTHON if self.venv == paths.VENV else self.venv / "bin" / "python"

    @property
    def own_packages(self) -> frozenset[str]:
        """The canonical names of the distributions that the project has itself."""
        sites = [site for site in self.sites if not Path(site).is_relative_to(self.kit)]
        return frozenset(canonicalize_name(it.metadata["Name"]) for it in distributions(path=sites))


# That of the instrument itself.
KIT = VenvOverlay(paths.VENV, paths.VENV, (), Path(sys.base_prefix))


def query_interpreter(python: Path, advice: str = ADVICE) -> Interpreter:
    """What an interpreter says of itself; raises BenchError, with what to do instead, when it cannot be run."""
    problem = f"{python}: cannot be run"
    said = _run([str(python), "-c", _ASK], problem, advice, ASK_TIMEOUT_S)
    try:
        return msgspec.json.decode(said.strip().rpartition("\n")[2], type=Interpreter)
    except msgspec.DecodeError:
        raise BenchError(f"{problem}: it does not say its version; {advice}") from None


def environment(python: Path, folder: Path) -> VenvOverlay:
    """The layered environment in `folder` for a project with that interpreter, made when it is not there.

    Raises BenchError when it cannot be made, or the kit's servers cannot be installed for this version of Python.
    """
    found = query_interpreter(python)
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder / "lock", f"the environment {folder}"):
        servers = kit_venv(found, python)
        venv, note = folder / "venv", folder / "environment.json"
        programs = sorted(path.name for path in (servers / "bin").iterdir())
        there = msgspec.json.encode([found, str(servers), programs])
        if not note.is_file() or note.read_bytes() != there:
            shutil.rmtree(venv, ignore_errors=True)
            _make(venv, found, python, servers)
            note.write_bytes(there)
    sites = (*found.sites, *query_interpreter(servers / "bin" / "python").sites)
    return VenvOverlay(venv, servers, sites, Path(found.base_prefix))


def kit_venv(found: Interpreter, python: Path, advice: str = ADVICE) -> Path:
    """The virtual environment with the servers for that version of Python: the kit's own, or one made for it.

    Raises BenchError, with what to do instead, when they cannot be installed.
    """
    if found.version == VERSION:
        return paths.VENV
    venv = paths.STATE / "servers" / found.version
    venv.parent.mkdir(parents=True, exist_ok=True)
    # Those of another project may be installed meanwhile.
    with exclusive(venv.with_name(f"{found.version}.lock"), f"the servers {venv}"):
        _install(venv, found, python, advice)
    return venv


def _install(venv: Path, found: Interpreter, python: Path, advice: str) -> None:
    done = venv / "installed"
    wanted = "\n".join(_server_requirements())
    if done.is_file() and done.read_text("utf-8") == wanted:
        return
    print(f"installing the servers for Python {found.version} (once)", file=sys.stderr, flush=True)
    # The environment's own goes with it: the one that it was made of makes it again.
    python = python.resolve() if venv in python.parents else python
    shutil.rmtree(venv, ignore_errors=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        _run([str(python), "-m", "venv", str(venv)], f"{python} cannot make a virtual environment", advice)
        _run([*pip, *_server_requirements()], f"the servers cannot be installed for Python {found.version}", advice)
        done.write_text(wanted, "utf-8")
    except BaseException:
        shutil.rmtree(venv, ignore_errors=True)
        raise


def _server_requirements() -> list[str]:
    """The lines of requirements.txt without the instrument's own."""
    text = (paths.KIT / "requirements.txt").read_text("utf-8").partition(NOT_FOR_SERVERS)[0]
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def _make(venv: Path, found: Interpreter, python: Path, kit: Path) -> None:
    _run([str(python), "-m", "venv", "--without-pip", str(venv)], f"{python} cannot make a virtual environment")
    site = next(venv.glob("lib/*/site-packages"))
    packages = venv / "kit"
    packages.mkdir()
    for name in KIT_PACKAGES:
        (packages / name).symlink_to(paths.KIT / name)
    kit_sites = query_interpreter(kit / "bin" / "python").sites
    # addsitedir also reads the .pth files there, which packages installed for development have.
    lines = [f"import site; site.addsitedir({folder!r})" for folder in dict.fromkeys((*found.sites, *kit_sites))]
    (site / "layers.pth").write_text("\n".join([*lines, str(packages)]) + "\n", "utf-8")
    for program in (kit / "bin").iterdir():
        target = venv / "bin" / program.name
        # The environment's own programs stay.
        if target.exists() or not program.is_file():
            continue
        first, _, rest = program.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            target.write_bytes(f"#!{venv}/bin/python\n".encode() + rest)
            target.chmod(0o755)


def _run(argv: list[str], problem: str, advice: str = ADVICE, timeout_s: float = INSTALL_TIMEOUT_S) -> str:
    """What a program prints. Raises BenchError, which begins with `problem`, when it fails or does not end."""
    # The project's own environment stays as it is.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else f"it does not end within {timeout_s:g} s"
        raise BenchError(f"{problem}: {why}; {advice}") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise BenchError(f"{problem}: {said[-1]}; {advice}")
    return done.stdout
