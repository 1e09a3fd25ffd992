"""Remove confidential parts from a report: secrets, passwords in URLs, and paths of the machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench import paths

_SECRET = re.compile(
    r"(?im)^(?P<name>.*?\b[\w.-]*(?:secret|password|passwd|token|api_?key)[\w.-]*[\"']?\s*[=:]\s*)(?P<value>\S.*)$"
)
_URL_PASSWORD = re.compile(r"(://[^\s:/@]*:)[^\s@/]+@")


def redacted(text: str) -> str:
    """`text` with the values of secrets hidden, line by line."""
    return _SECRET.sub(r"\g<name>(hidden)", _URL_PASSWORD.sub(r"\1(hidden)@", text))


# The folder of the results on a command line.
OUTPUT = ("-o", "--output")


def command(words: Iterable[str]) -> str:
    """A command line to repeat, without secrets, and without the existing folder of its results.

    Paths below the kit's folder, hidden in a report, are relative: the command is called there.
    """
    shown, before = [], ""
    for word in words:
        if before not in OUTPUT and not word.startswith(OUTPUT):
            shown.append(shlex.quote(redacted(word.replace(f"{paths.KIT}/", ""))))
        before = word
    return " ".join(shown)


_SOCKETS = re.compile(r"/tmp/benchapp-(?:run-)?\w+")


def places(directory: Path) -> dict[str, str]:
    """Absolute path -> its name in the report of a run."""
    names = {str(Path.home()): "$HOME", str(paths.KIT): "$PROJECT", str(paths.VENV): "$VENV"}
    names |= {str(directory.absolute()): "$RUN", str(directory.resolve()): "$RUN"}
    return {path: name for path, name in names.items() if path.count("/") > 1 or path == str(Path.home())}


def placed(text: str, known: Mapping[str, str]) -> str:
    """`text` with these paths replaced, longest first; a longer name with the same beginning stays."""
    text = _SOCKETS.sub("$RUN/run", text)
    for path in sorted((path for path in known if path.strip("/")), key=len, reverse=True):
        name = known[path].replace("\\", r"\\")
        text = re.sub(rf"(?<![\w.$~/-]){re.escape(path)}(?![\w.@+~-])", name, text)
    return text
