"""A published benchmark that is small and invented."""

from __future__ import annotations

from msgspec import convert

from reproductions.published import Publication

CONTENT = {
    "title": "A tiny benchmark",
    "source": "nobody",
    "year": 1999,
    "question": "Which?",
    "load": "ab",
    "here": {"layer": "none", "workload": "home"},
    "quick": {"rounds": 1},
    "parts": [
        {"name": "first", "stacks": ["one"], "workloads": ["home"], "levels": [1, 2], "rounds": 2, "duration_s": 1},
        {"name": "second", "stacks": ["two"], "workloads": ["home"], "levels": [2], "rounds": 2, "duration_s": 1},
        {"name": "restart", "stacks": ["one"], "faults": ["configuration"], "rounds": 5, "quick": {"rounds": 2}},
    ],
    "columns": [
        {"key": "rps", "title": "requests/s", "metric": "requests_per_second"},
        {"key": "lowest", "title": "lowest", "metric": "requests_per_second", "pick": "min"},
        {"key": "stability", "title": "stability", "metric": "stability"},
    ],
    "rows": [
        {"stack": "gunicorn", "title": "Gunicorn", "rps": 10},
        {"stack": "two", "title": "Gone", "rps": 5},
    ],
    "claims": [
        {"claim": "One is faster.", "left": {"stack": "one"}, "right": {"stack": "two"}, "published": 2, "at_least": 1},
        {"claim": "It restarts.", "loses": "configuration", "left": {"stack": "one"}},
        {"claim": "Nobody tries it.", "untested": "it is gone"},
    ],
}


def publication(**changes: object) -> Publication:
    """The benchmark, with other content."""
    return convert({**CONTENT, **changes}, Publication)
