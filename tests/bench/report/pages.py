"""Read the pages of a report as the tests need them."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from bench.report import pick
from bench.report.arrange import arrange
from bench.report.write import write_report
from bench.results.folder import Folder, read_run
from bench.results.records import Case
from tests.bench.report import report_folder

LOADING = {"src", "srcset", "poster", "data", "action", "formaction", "background", "cite", "manifest", "xlink:href"}


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """What the tests ask of a page: its elements with attributes, and the text inside each of them."""

    VOID = {"meta", "link", "input", "br", "img"}

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict, list[str]]] = []
        self._open: list[tuple[str, dict, list[str]]] = []
        self.feed(text)
        self.close()
        assert not self._open, "an element is left open"

    def handle_starttag(self, tag, attrs):
        element = (tag, {name: value or "" for name, value in attrs}, [])
        self.elements.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open[-1][0] == tag, f"</{tag}> closes <{self._open[-1][0]}>"
        self._open.pop()

    def handle_data(self, data):
        for _, _, texts in self._open:
            texts.append(data)

    def texts(self, tag: str, cls: str | None = None) -> list[str]:
        return [
            " ".join("".join(texts).split())
            for name, attributes, texts in self.elements
            if name == tag and (cls is None or cls in attributes.get("class", "").split())
        ]


def change_cases(folder: Path, change: Callable[[Case], Case]) -> None:
    """Write other records of the cases of a run."""
    info = read_run(folder).info
    Folder(folder).write_info(replace(info, cases=tuple(map(change, info.cases))))


@cache
def shown(folder: Path) -> str:
    """The page of a folder that no test changes."""
    return write_report(folder).read_text(encoding="utf-8")


def browsed(path: Path, profile: Path, fragment: str = "") -> subprocess.CompletedProcess:
    """Chromium's own view of a page after its scripts have run, and what it complained about."""
    argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    argv += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    argv += [f"--user-data-dir={profile}", "--enable-logging=stderr", "--dump-dom", path.as_uri() + fragment]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)


def table_row(text: str, stack: str, layer: str, columns: int) -> list[str]:
    """Cells of the first row of a table with so many columns that is about a stack with a layer."""
    for row in re.findall(r"<tr>.*?</tr>", text, flags=re.S):
        cells = Page(row).texts("td") + Page(row).texts("th")
        if {stack, layer} <= set(cells) and len(cells) == columns:
            return [" ".join(re.sub("<[^>]+>", "", cell).split()) for cell in re.split(r"(?=<t[dh])", row)[1:]]
    raise AssertionError(f"no row of {stack} with {layer}")


def rows_of(text: str) -> list[list[str]]:
    """Cells of every row of the tables of a page."""
    rows = (re.split(r"(?=<t[dh])", row)[1:] for row in re.findall(r"<tr\b[^>]*>.*?</tr>", text, flags=re.S))
    return [[" ".join(html.unescape(re.sub("<[^>]+>", "", cell)).split()) for cell in row] for row in rows]


EVEN = [100.0, 101.0, 99.0, 102.0, 98.0]


def made(tmp_path: Path, change=None, **more) -> Path:
    more = {"rounds": 5, "workloads": ("home",), **more}
    return report_folder.make(tmp_path / "run", change=change, **more)


def opened(folder: Path) -> Path:
    """The run in a folder, as if its levels had been requests a second of an open loop."""
    run = read_run(folder)
    Folder(folder).write_info(replace(run.info, plan=replace(run.info.plan, mode="open")))
    (folder / "trials.jsonl").unlink()
    for trial in run.trials:
        level = float(trial.level_connections)
        Folder(folder).append_trial(replace(trial, level_connections=None, rate_requested=level))
    return folder


def rates(found: dict[tuple[str, str], list[float]]):
    """Only these stacks with layers, with these requests/s round by round."""

    def change(trial):
        values = found.get((trial.stack, trial.layer))
        if values is None or trial.status == "failed":
            return None
        return replace(trial, requests_per_second=values[trial.round - 1])

    return change


def read(folder: Path):
    return arrange(read_run(folder))


def picked(report) -> list[str]:
    """The sentences of the answer."""
    return [advice.sentence for advice in pick.pick(report)]


class Visible(HTMLParser):
    """The text of a page that is shown with all details closed, on a wide screen."""

    UNSEEN = {"script", "style", "title", "head", "template"}
    VOID = {"meta", "link", "input", "br", "img"}

    def __init__(self, text: str):
        super().__init__()
        self.found: list[str] = []
        self._open: list[tuple[str, bool]] = []  # tag, whether its content is shown
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag in self.VOID:
            return
        values = dict(attrs)
        shown = not self._open or self._open[-1][1]
        if tag == "summary" and self._open and self._open[-1][0] == "details":
            shown = len(self._open) < 2 or self._open[-2][1]
        elif tag in self.UNSEEN or "hidden" in values or "narrow" in (values.get("class") or "").split():
            shown = False
        elif tag == "details":
            shown = shown and "open" in values
        self._open.append((tag, shown))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            self._open.pop()

    def handle_data(self, data):
        if self._open and self._open[-1][1]:
            self.found.append(data)


def visible_words(text: str) -> list[str]:
    """The words that a reader meets before opening anything; a word has a letter or a digit."""
    return [word for word in " ".join(Visible(text).found).split() if re.search(r"\w", word)]
