"""Ceilings on the words that make prose hard to read. Lower a ceiling when the prose gets better; never raise one."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Measure -> place -> ceiling.
CEILINGS = {
    "descriptions of records that begin with a pronoun or a question word": {
        "bench/measure": 0,
        "bench/serve": 0,
        "bench/verify": 0,
    },
    "percent of pronouns in docstrings": {
        "bench": 3.5,
        "bench/cli": 3.5,
        "bench/measure": 3.0,
        "bench/serve": 4.5,
        "bench/verify": 3.5,
        "benchapp": 4.0,
        "benchapp_overlay": 4.0,
        "config": 4.6,
        "fixtures": 3.4,
        "reproductions": 1.5,
        "tests/bench/cli": 4.0,
        "tests/bench/measure": 4.0,
        "tests/bench/verify": 5.0,
    },
    "docstrings that begin with a pronoun or a question word": {
        "bench": 0,
        "bench/cli": 0,
        "bench/measure": 0,
        "bench/serve": 0,
        "bench/verify": 0,
        "benchapp": 0,
        "benchapp_overlay": 0,
        "config": 0,
        "deploy/production": 0,
        "deploy/servers": 0,
        "fixtures": 0,
        "reproductions": 0,
        "tests": 0,
    },
    "words of the dialect in docstrings": {
        "bench": 0,
        "bench/cli": 0,
        "bench/measure": 1,
        "bench/serve": 0,
        "bench/verify": 0,
        "benchapp": 0,
        "benchapp_overlay": 0,
        "config": 0,
        "deploy/production": 0,
        "deploy/servers": 0,
        "fixtures": 0,
        "reproductions": 0,
        "tests": 0,
    },
    "words of the dialect in printed text": {
        "bench": 0,
        # Words of other programs read these: keys of JSON and addresses of probe pages.
        "bench/cli": 1,
        "bench/measure": 1,
        "bench/serve": 2,
        "bench/verify": 2,
        "benchapp": 0,
        "benchapp_overlay": 0,
        "deploy/production": 0,
        "reproductions": 0,
    },
    "words of the dialect in comments": {
        "bench": 0,
        "bench/cli": 0,
        "bench/measure": 0,
        "bench/serve": 0,
        "bench/verify": 0,
        "benchapp": 0,
        "benchapp_overlay": 0,
        "config": 0,
        "fixtures": 0,
        "reproductions": 0,
        "tests": 0,
        "deploy": 0,
    },
    "words of the dialect in pages": {
        "README.md": 0,
        "docs/*.md": 0,
        "docs/how-to/*.md": 0,
        "docs/tutorials/*.md": 0,
        "CONTRIBUTING.md": 0,
        "CHANGELOG.md": 0,
    },
    "words of the dialect in files": {
        "bench/**/*.j2": 0,
        "bench/**/*.js": 0,
        "bench/**/*.lua": 0,
        "bench/**/*.sh": 0,
        "bench/**/*.toml": 0,
        "bench/**/*.yml": 0,
        "deploy/**/*": 0,
        "docs/*.py": 0,
        "reproductions/**/*.toml": 0,
        "templates/**/*": 0,
        "Makefile": 0,
        "Containerfile": 0,
        "action.yml": 0,
        "pyproject.toml": 0,
        ".ci/*": 0,
    },
}

PRONOUNS = re.compile(r"\b(it|its|that|those|which|what|such|there|whose|whom|them|they|these)\b", re.IGNORECASE)
OPENING = re.compile(r"(What|Those|That|Which|Whose|Who|Whoever|Whether|Where|How|Why|One that|One which)\b")
# The field says response, request, only, except, if, again, separate, "terminates TLS".
DIALECT = re.compile(
    r"\b(answer(s|ed|ing)?|ask(s|ed|ing)?|alone|but for|all but|anew|(is|are) none|of (its|their) own|whoever"
    r"|for want of|ends? TLS|where (it|there|no|none|nothing|nobody|they|a|the|that|both|each|most|plain|some))\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z']+")
# Between two words of a phrase: a line end, with the marks of a comment.
LINE_END = re.compile(r"\s*\n[\s#*/{-]*")
# A name in a template, which no reader of the page sees.
EXPRESSION = re.compile(r"{{.*?}}|{%.*?%}|class=\"\w+\"")


def sources(place: str) -> list[Path]:
    """The Python files of a folder, without migrations; of `bench` only its own files, not those of its packages."""
    pattern = "*.py" if place == "bench" else "**/*.py"
    return [path for path in sorted((ROOT / place).glob(pattern)) if "migrations" not in path.parts]


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def documented(path: Path) -> Iterator[ast.Constant]:
    """The docstrings of a file."""
    for node in nodes(path):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node):
            yield node.body[0].value


def docstrings(place: str) -> list[str]:
    return [ast.literal_eval(node) for path in sources(place) for node in documented(path)]


def printed(place: str) -> list[str]:
    """The texts of string literals that are not docstrings."""
    texts = []
    for path in sources(place):
        lines = {node.lineno for node in documented(path)}
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno not in lines:
                texts.append(node.value)
    return texts


def descriptions(place: str) -> list[str]:
    """The descriptions of the fields of records, which the reference of result files shows."""
    texts = []
    for path in sources(place):
        calls = [node for node in nodes(path) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        texts += [ast.literal_eval(call.args[0]) for call in calls if call.func.id == "means"]
    return texts


def comments(place: str) -> list[str]:
    """The comments of each Python file; of other files the lines that are comments, and comments behind values."""
    if place == "deploy":
        files = [path for path in texts_at(f"{place}/**/*") if "examples" not in path.parts]
        return ["\n".join(map(comment, path.read_text(errors="replace").splitlines())) for path in files]
    texts = []
    for path in sources(place):
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        texts.append("\n".join(token.string for token in tokens if token.type == tokenize.COMMENT))
    return texts


def comment(line: str) -> str:
    """The comment in a line of a configuration file; empty without one."""
    line = line.strip()
    if line.startswith(("#", "//", "{#")):
        return line
    return line.partition(" # ")[2]


def pages(place: str) -> list[str]:
    """The text of Markdown pages."""
    return [path.read_text() for path in sorted(ROOT.glob(place))]


def files(place: str) -> list[str]:
    """The text of whole files, without Python's test for None."""
    texts = [path.read_text(errors="replace").replace(" is None", "") for path in texts_at(place)]
    return [EXPRESSION.sub("", text) for text in texts]


def texts_at(place: str) -> list[Path]:
    """The files at a place, except what Python compiled."""
    return [path for path in sorted(ROOT.glob(place)) if path.is_file() and path.suffix != ".pyc"]


def pronouns(texts: list[str]) -> float:
    """Pronouns in per cent of all words."""
    words = sum(len(WORD.findall(text)) for text in texts)
    return 100 * sum(len(PRONOUNS.findall(text)) for text in texts) / words


def openings(texts: list[str]) -> int:
    return sum(bool(OPENING.match(text.strip())) for text in texts)


def dialect(texts: list[str]) -> int:
    return sum(len(DIALECT.findall(LINE_END.sub(" ", text))) for text in texts)


def test_a_phrase_is_found_across_a_line_end():
    assert dialect(["# a comment needs a line of\n# its own"]) == 1
    assert dialect(["-- only this, where\n-- both are used"]) == 1


MEASURES: dict[str, tuple[Callable[[str], list[str]], Callable[[list[str]], float]]] = {
    "descriptions of records that begin with a pronoun or a question word": (descriptions, openings),
    "percent of pronouns in docstrings": (docstrings, pronouns),
    "docstrings that begin with a pronoun or a question word": (docstrings, openings),
    "words of the dialect in docstrings": (docstrings, dialect),
    "words of the dialect in printed text": (printed, dialect),
    "words of the dialect in comments": (comments, dialect),
    "words of the dialect in pages": (pages, dialect),
    "words of the dialect in files": (files, dialect),
}


@pytest.mark.parametrize("measure", CEILINGS)
def test_no_ceiling_is_exceeded(measure):
    texts, figure = MEASURES[measure]
    above = {}
    for place, ceiling in CEILINGS[measure].items():
        reached = figure(texts(place))
        if reached > ceiling:
            above[place] = f"{reached:g}, and the ceiling is {ceiling}"
    assert not above
