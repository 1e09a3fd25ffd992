"""A published benchmark that is small and invented."""

from __future__ import annotations

from dataclasses import replace

from bench.results import reproduction

TINY = {
    "title": "A tiny benchmark",
    "source": "nobody",
    "year": 1999,
    "question": "Which?",
    "load": "ab",
    "machine": "an abacus",
    "here": {"layer": "none", "workload": "home"},
    "quick": {"rounds": 1},
    "parts": [
        {"name": "first", "stacks": ["one"], "layers": ["none"], "workloads": ["home"], "levels": [1, 2], "rounds": 2,
         "duration_s": 1},
        {"name": "second", "stacks": ["two"], "layers": ["none"], "workloads": ["home"], "levels": [2], "rounds": 2,
         "duration_s": 1},
    ],
    "columns": [
        {"key": "rps", "title": "requests/s", "metric": "requests_per_second"},
        {"key": "memory", "title": "memory MiB", "metric": "memory_total", "better": "lower"},
        {"key": "lowest", "title": "lowest", "metric": "requests_per_second", "pick": "min"},
    ],
    "rows": [
        {"stack": "gunicorn", "title": "Gunicorn", "baseline": True, "rps": 10},
        {"stack": "nginx-uwsgi", "title": "Nginx", "rps": 25},
        {"stack": "nginx-uwsgi", "layer": "staticgenerator", "title": "Files", "added": True},
        {"stack": "two", "title": "Gone", "rps": 5},
    ],
    "claims": [
        {"claim": "Files are a hundred times faster.", "left": {"stack": "nginx-uwsgi", "layer": "staticgenerator"},
         "right": {"stack": "nginx-uwsgi"}, "published": 200, "at_least": 100},
        {"claim": "Nginx doubles it.", "left": {"stack": "nginx-uwsgi"}, "right": {"stack": "gunicorn"}, "at_least": 2},
        {"claim": "Each is faster.", "order": [{"layer": "none", "stack": "nginx-uwsgi"},
         {"layer": "fragments", "stack": "nginx-uwsgi"}, {"layer": "site-middleware", "stack": "nginx-uwsgi"}],
         "at_least": 1},
        {"claim": "The middle one is slow.", "left": {"stack": "gunicorn"},
         "right": {"stacks": ["gunicorn", "uwsgi", "nginx-uwsgi"], "name": "all of them"}, "at_most": 0.99},
        {"claim": "It fails.", "left": {"stack": "uwsgi", "layer": "fragments"}, "fails": True},
        {"claim": "The lost one is slow.", "left": {"stack": "two"}, "right": {"stack": "uwsgi"}, "at_most": 1},
        {"claim": "Nobody tries it.", "untested": "it is gone"},
    ],
}  # fmt: skip


def record(**changes) -> reproduction.Reproduction:
    return replace(
        reproduction.Reproduction(
            format=reproduction.FORMAT,
            benchmark="tiny",
            quick=False,
            command=("python", "-m", "bench", "reproduce", "tiny"),
            started_at="2026-11-21T08:07:00+00:00",
            finished_at="2026-11-21T09:07:00+00:00",
            parts=(reproduction.Part("first"), reproduction.Part("second", reason="two is not installed")),
        ),
        **changes,
    )
