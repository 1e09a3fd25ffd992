"""The path of the rest of the kit, from here: in a clone, or in the wheel's own folder."""

from __future__ import annotations

from pathlib import Path

_INSTALLED = Path(__file__).parents[2] / "kit"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3]


def hides(folder: Path, project: Path) -> bool:
    """True if a folder on the path of modules is a clone of the kit, and hides a package of the project.

    An editable installation has it there. It hides one of the same name without an __init__.py, such as `config`.
    """
    if not (folder / "bench" / "__main__.py").is_file() or not (folder / "config" / "settings.py").is_file():
        return False
    names = [path.name for path in project.iterdir() if path.is_dir() and not (path / "__init__.py").is_file()]
    return any((folder / name / "__init__.py").is_file() for name in names)
