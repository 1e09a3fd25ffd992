"""Facts from the Python files of a project, without importing them."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from bench import paths
from bench.serve.project import environments
from bench.serve.project.description import PRODUCTION, Project

# What code needs of servers and services.
PATTERNS = {
    "sendfile": re.compile(r"X-Accel-Redirect|X-Sendfile|import sendfile"),
    "websockets": re.compile(r"\b(ProtocolTypeRouter|URLRouter|WebsocketConsumer|websocket\.accept)\b"),
    "lifespan": re.compile(r"""["']lifespan(\.startup)?["']|@asynccontextmanager\s+async def lifespan"""),
    "mail": re.compile(
        r"\b(send_mail|send_mass_mail|mail_admins|mail_managers|email_user|EmailMessage|EmailMultiAlternatives)\(|"
        r"\bPasswordResetView\b|\bdjango\.contrib\.auth\.urls\b|\ballauth\.(account\.)?urls\b|\bdjoser\.urls\b"
    ),
}
MAX_FILES = 5000
LEFT_OUT = {*environments.FOLDERS, "node_modules", "site-packages", ".git"}
OF_TESTS = re.compile(r"(^|/)(tests?|conftest)(/|\.py$)|(^|/)test_[^/]*$")


def python_files(folder: Path) -> Iterator[Path]:
    """The Python files of the project, without those of environments and of other packages."""
    number = 0
    for path, names, files in os.walk(folder):
        own = [name for name in names if name not in LEFT_OUT]
        names[:] = [name for name in own if not (Path(path) / name / "pyvenv.cfg").exists()]
        for name in sorted(files):
            if name.endswith(".py") and number < MAX_FILES:
                number += 1
                yield Path(path) / name


def first_lines(project: Project) -> dict[str, str]:
    """Name of one of PATTERNS -> the first matching line of the project's code; empty for the kit's own site."""
    places: dict[str, str] = {}
    if project.folder == paths.KIT:
        return places
    for path in python_files(project.folder):
        file = str(path.relative_to(project.folder))
        if OF_TESTS.search(file) or not os.access(path, os.R_OK):
            continue
        text = path.read_text("utf-8", errors="replace")
        for name, pattern in PATTERNS.items():
            if name not in places and (match := pattern.search(text)):
                line = text.count("\n", 0, match.start()) + 1
                places[name] = f"{file}:{line}"
    return places


def production_settings(project: Project) -> str:
    """The module of settings for production that nobody has chosen, next to the inspected one or in its package; else
    empty.
    """
    if project.description.settings or PRODUCTION.search(project.settings):
        return ""
    around = (project.settings, project.settings.rpartition(".")[0])
    # Next to `shop.dev` stand settings; next to `shop.settings` a module `deploy` may be anything.
    for root, name in itertools.product(project.roots, around):
        folder = root / name.replace(".", "/")
        modules = sorted(path.stem for path in folder.glob("*.py") if name and path.stem.isidentifier())
        for other in (f"{name}.{stem}" for stem in modules if PRODUCTION.search(stem)):
            if "settings" in other or "config" in other or "settings" not in project.settings:
                return other
    return ""
