"""Write report.json, the page and the picture, from folders of results."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.errors import BenchError
from bench.measure.report import build, page, redact
from bench.measure.report.document import Document

NAME = "report.html"


def document(directories: Sequence[Path], to: Path) -> tuple[Document, str]:
    """The report of the folders for a page at `to`, and the same as JSON, without this machine's paths."""
    built = build.document(build.read(directories), to)
    text = msgspec.json.format(msgspec.json.encode(built), indent=2).decode()
    for directory in directories:
        text = redact.placed(text, redact.places(directory))
    return msgspec.json.decode(text, type=Document), text + "\n"


def write(directories: Sequence[Path], to: Path | None = None) -> tuple[Path, Document]:
    """Write the page, and its data as .json and its picture as .svg beside it. Raises BenchError in one line."""
    if to is None:
        if len(directories) > 1:
            raise BenchError("a page of several folders needs a place: give --output FILE, such as results/all.html")
        to = directories[0] / NAME
    content, text = document(directories, to)
    data = to.with_suffix(".json")
    write_text(data, text)
    write_text(to, page.render(content, data.name))
    if (picture := page.picture(content)) is not None:
        write_text(to.with_suffix(".svg"), picture)
    return to, content


def write_text(path: Path, text: str) -> None:
    """Write a temporary file and rename it, so that nobody opens half a report. Raises BenchError in one line."""
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise BenchError(f"{path}: cannot be written: {error.strerror}") from None
