"""The rest of the kit, from here: its path in a clone or in the wheel's own folder, and modules of the caching app."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path

from error_words import own_path

_INSTALLED = Path(__file__).parents[2] / "kit"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3]

# Begins the names of modules of the caching app that are loaded here.
OF_CACHING = "benchapp_of_caching_"


@functools.lru_cache
def loaded(name, path):
    """A module of the kit's, once, by its path: the project may have packages of the same names."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PackageOnHosts:
    """Finds the package benchapp, which is on each host, if the project's environment has none."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "benchapp":
            return None
        package = FOLDER / name
        return importlib.util.spec_from_file_location(
            name, package / "__init__.py", submodule_search_locations=[str(package)]
        )


def is_own_module(name):
    """True if a module is of the project and not of a package."""
    path = Path(getattr(sys.modules.get(name), "__file__", None) or "/")
    return own_path(path) is not None


def module_of_caching(name):
    """A module of the caching app by its file: the project need not have the app."""
    return loaded(OF_CACHING + name, FOLDER / "benchapp" / "caching" / name)


def hides(folder: Path, project: Path) -> bool:
    """True if a folder on the path of modules is a clone of the kit, and hides a package of the project.

    An editable installation has it there. It hides one of the same name without an __init__.py, such as `config`.
    """
    if not (folder / "bench" / "__main__.py").is_file() or not (folder / "config" / "settings.py").is_file():
        return False
    names = [path.name for path in project.iterdir() if path.is_dir() and not (path / "__init__.py").is_file()]
    return any((folder / name / "__init__.py").is_file() for name in names)
