"""The report as Markdown, for pasting into an issue: the same figures in tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from markupsafe import Markup

from bench.report import templating
from bench.report.model import Report
from bench.report.numbers import DASH, one_line


def render(report: Report) -> str:
    """The document of a run as text."""
    return document("report.md.j2", **templating.run_context(report))


def document(template: str, **context: object) -> str:
    """A whole document from a template, with one empty line between blocks."""
    environment = templating.environment(
        plain, code=sentence, name=code, head=head, line=line, sentences=sentences, figures="#{}".format
    )
    text = environment.get_template(template).render(**context)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def head(*heads: str) -> Markup:
    """The head of a table. A column whose head begins with # holds figures, aligned to the right."""
    rules = (Markup("---:") if text.startswith("#") else Markup("---") for text in heads)
    return Markup("\n").join((line(*(text.removeprefix("#") for text in heads)), line(*rules)))


def line(*cells: object) -> Markup:
    """A line of a table."""
    return Markup("| {} |").format(Markup(" | ").join(map(plain, cells)))


def code(text: str | None) -> Markup:
    """Text between backticks on one line; it cannot end a table cell, mention a person or open a tag."""
    if text is None:
        return Markup(DASH)
    return Markup("`" + one_line(text).replace("`", "'").replace("|", "\\|") + "`")


def plain(value: object) -> Markup:
    """Text without any Markdown markup; text that is already Markdown stays as it is."""
    if isinstance(value, Markup):
        return value
    return _escaped(one_line(value))


def _escaped(text: str) -> Markup:
    return Markup(re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", text).replace("@", "@\N{ZERO WIDTH SPACE}"))


def sentence(text: str) -> Markup:
    """A sentence of the findings: names between backticks stay code, the rest is plain text."""
    text = one_line(text)
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return Markup("").join(code(part) if index % 2 else _escaped(part) for index, part in enumerate(parts))


def sentences(texts: Iterable[str]) -> Markup:
    """Several sentences as one paragraph."""
    return Markup(" ").join(map(sentence, texts))
