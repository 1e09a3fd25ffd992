"""The report of a reproduction as HTML: published beside measured figures, and conclusions."""

from __future__ import annotations

from bench.report import html
from bench.report.plots import Plots
from bench.report.reproduction import texts
from bench.report.reproduction.side_by_side import Reproduced
from bench.report.reproduction.texts import ReproductionTexts


def render(found: Reproduced) -> str:
    """The whole document."""
    first = found.reports[0]
    sentences = ReproductionTexts(found)
    context = {
        "title": sentences.heading,
        "found": found,
        "plots": Plots(tuple(found.reports)),
        "texts": sentences,
        "cells": texts,
        "report": first,
        "plan": first.run.info.plan,
    }
    return html.document("reproduction.html.j2", context)
