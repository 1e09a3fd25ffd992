"""The report as Markdown: the same figures and sentences, in tables that stay whole."""

from __future__ import annotations

import re

from markupsafe import Markup

from bench.report import findings, markdown
from bench.report.arrange import arrange
from bench.report.write import write_report
from bench.results.folder import read_run
from tests.bench.report.pages import Page, cells_of, shown


def test_markdown_has_the_same_figures(plain):
    text = write_report(plain, "md").read_text(encoding="utf-8")
    figures = [row for row in cells_of(text) if len(row) == 16]
    arranged = arrange(read_run(plain))
    assert len([row for row in figures if row[0] not in ("stack", "---")]) == len(arranged.rows)
    row = next(row for row in figures if row[:2] == ["`nginx-uwsgi`", "`staticgenerator`"])
    page = Page(shown(plain))
    assert row[3] in page.texts("td")
    assert row[4] in page.texts("td")
    failed = next(row for row in figures if row[:2] == ["`nginx-gunicorn`", "`fragments`"])
    assert failed[2:] == ["failed", *["\N{EN DASH}"] * 13]
    assert "not measured" in text
    assert "## Published and measured" in text
    assert "no web server in front: uwsgi cannot serve the finished pages" in text


def test_markdown_has_the_same_sentences(plain):
    text = write_report(plain, "md").read_text(encoding="utf-8")
    for answer in findings.answers(arrange(read_run(plain))):
        assert " ".join(answer.sentences) in text


def test_markdown_tables_stay_whole_whatever_the_text(hostile):
    text = write_report(hostile, "md").read_text(encoding="utf-8")
    lengths = []
    for block in text.split("\n\n"):
        if block.startswith("| "):
            lengths.append({len(row) for row in cells_of(block)})
    assert lengths
    assert all(len(block) == 1 for block in lengths)
    outside_code = re.sub(r"`[^`\n]*`", "", text)
    assert "<script" not in outside_code.replace("\\<", "")
    assert not re.search(r"@\w", outside_code)


def test_text_is_escaped_unless_it_is_markdown_already():
    assert markdown.line("a|b", Markup("`c`"), 3) == "| a\\|b | `c` | 3 |"
    assert markdown.head("name", "#figure") == "| name | figure |\n| --- | ---: |"
    assert markdown.sentence("`a|b` ties with *c*") == "`a\\|b` ties with \\*c\\*"
