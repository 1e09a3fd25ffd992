"""Configuration of the documentation site: `make docs` builds it below docs/_build."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import reference_pages  # noqa: E402

from bench import __version__  # noqa: E402

project = "benchapp"
author = "the benchapp developers"
copyright = "2026, the benchapp developers"
release = __version__
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build"]
root_doc = "index"
# Commands and output, not Python.
highlight_language = "text"
myst_heading_anchors = 4
copybutton_prompt_text = "$ "
html_theme = "furo"
html_title = "benchapp"
html_static_path = ["_static"]
html_css_files = ["chain.css"]


def setup(app: Any) -> None:
    """Write the reference before the pages are read."""
    app.connect("source-read", within_the_site)
    reference_pages.write_all()


def within_the_site(app: Any, name: str, source: list[str]) -> None:
    """Have links stay in the site: CONTRIBUTING.md is a page of it, and of a folder of the clone the text is left."""

    def text_of(link: re.Match[str]) -> str:
        target = (DOCS / name).parent / link[2]
        return link[1] if target.is_dir() else link[0]

    text = source[0].replace("](../CONTRIBUTING.md", "](contributing.md")
    source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)#]+)\)", text_of, text)
    if name == root_doc:
        source[0] += menu(source[0])


def menu(text: str) -> str:
    """The menu of the site, of the lists on its first page: a repository would show directives as code."""
    parts = []
    for section in text.split("\n## ")[1:]:
        caption, _, body = section.partition("\n")
        pages = re.findall(r"^- \[[^\]]+\]\(([^)]+)\.md\)", body, re.M)
        lines = ["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```"]
        parts.append("\n".join(lines))
    return "\n" + "\n\n".join(parts) + "\n"
