"""The archive that each host runs in a trial (`zipapp`): the load tool, the program of `on_host`, and the trial itself.

Neither Python's path nor a list of processes on a host has anything of the trial.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from bench import paths
from bench.measure.hosts import host_usage, on_host
from bench.measure.load import openloop
from bench.verify.hosts import upstreams

NAME = "engine.pyz"
MAIN = "import sys\n\nfrom bench.measure.hosts.on_host import main\n\nmain(sys.argv)\n"


def write(folder: Path, trial: dict[str, Any]) -> Path:
    """Write the archive of a trial into the folder; returns its path."""
    target = folder / NAME
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for name, text in modules().items():
            archive.writestr(name, text)
        archive.writestr("__main__.py", MAIN)
        archive.writestr(on_host.TRIAL, json.dumps(trial))
    return target


def modules() -> dict[str, str]:
    """The texts of all modules by their paths in the archive; packages are empty."""
    texts = {}
    for path in sources():
        inside = PurePosixPath(paths.PACKAGE.name, *path.relative_to(paths.PACKAGE).parts)
        for package in inside.parents[:-1]:
            texts[str(package / "__init__.py")] = ""
        texts[str(inside)] = path.read_text("utf-8")
    return texts


def sources() -> list[Path]:
    """The files of all modules."""
    engine = Path(openloop.__file__).parent
    # `__main__` needs more than Python.
    of_engine = [path for path in sorted(engine.glob("*.py")) if not path.stem.startswith("__")]
    return [*of_engine, *(Path(str(module.__file__)) for module in (on_host, host_usage, upstreams))]
