"""Read the pages of a report for the tests."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from bench.measure.report.write import write

LOADING = {"src", "srcset", "poster", "data", "action", "formaction", "background", "cite", "manifest", "xlink:href"}


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """A page for the tests: its elements with attributes, and their text."""

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


@cache
def shown(folder: Path) -> str:
    """The unchanged page of a folder."""
    return write([folder])[0].read_text(encoding="utf-8")


def browsed(path: Path, profile: Path, fragment: str = "") -> subprocess.CompletedProcess:
    """Chromium's view of a page after its scripts have run, and its complaints."""
    argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    argv += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    argv += ["--window-size=1280,800"]
    argv += [f"--user-data-dir={profile}", "--enable-logging=stderr", "--dump-dom", path.as_uri() + fragment]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)


def visible_words(text: str) -> list[str]:
    """The words of a page outside of its pictures; nothing is folded. A word has a letter or a digit."""
    body = re.sub(r"<(script|style|svg|title)\b.*?</\1>", " ", text, flags=re.S)
    return [word for word in html.unescape(re.sub(r"<[^>]+>", " ", body)).split() if re.search(r"\w", word)]
