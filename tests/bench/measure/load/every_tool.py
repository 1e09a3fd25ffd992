"""Every load tool as a parameter, and a suitable job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.measure import load
from bench.measure.load import LoadJob

JOB = LoadJob("http://127.0.0.1:1", ("/",), connections=4, seconds=1)


def tools(wanted=lambda tool: True):
    return pytest.mark.parametrize("tool", [tool for tool in load.TOOLS if wanted(tool)], ids=lambda tool: tool.name)


def job_of(tool, **changes):
    """A job suitable for the tool: an open loop has a rate."""
    rate = None if tool.mode == "closed" else 300
    return replace(JOB, rate=rate, **changes)


all_tools = tools()
tools_with_lists = tools(lambda tool: tool.url_list)
tools_with_keep_alive = tools(lambda tool: tool.can_keep_alive)
