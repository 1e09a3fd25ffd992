"""Application servers replace their workers while visitors request pages."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.serve.deployment import deployment
from tests.cases import resolved
from tests.deploy.running import FEW, client_of, runnable

pytestmark = pytest.mark.servers

# Each kind of worker that is replaced after so many requests, and the others behind a web server or on their own.
REPLACED = ["nginx-gunicorn", "gunicorn-gevent", "nginx-uwsgi", "apache-modwsgi"]
OTHERS = ("nginx-gunicorn-gthread", "gunicorn", "uwsgi", "nginx-apache-modwsgi")
REPLACED += [pytest.param(name, marks=pytest.mark.matrix) for name in OTHERS]
LIFE = 20
VISITORS = 4
# Visitors who do not pause take the processors from the workers that start.
PAUSE_S = 0.02
# Each of two workers was replaced once. uWSGI replaces none that is younger than 10 s.
ENOUGH = 2 * FEW["processes"]
PATIENCE_S = 60


@pytest.mark.parametrize("stack", REPLACED)
def test_no_request_is_lost_when_workers_are_replaced(stack, site_url):
    runnable(stack)
    case = resolved(stack, database_url=site_url, changes={"max_requests": LIFE, "stop_timeout_s": 10, **FEW})
    with deployment.deployed(case) as running:
        workers: set[int] = set()
        with ThreadPoolExecutor(VISITORS) as pool:
            visitors = [pool.submit(visit, running.url, workers) for _ in range(VISITORS)]
        assert [visitor.result() for visitor in visitors] == [{200}] * VISITORS
        assert running.died() is None
    assert len(workers) >= ENOUGH


def visit(url: str, workers: set[int]) -> set[int]:
    """Note the worker of each response in `workers` until there were enough; returns the statuses."""
    statuses, ends = set(), time.monotonic() + PATIENCE_S
    with client_of(url, timeout=30) as client:
        while len(workers) < ENOUGH and time.monotonic() < ends:
            response = client.get("/__probe__/inside")
            statuses.add(response.status_code)
            if response.status_code == 200:
                workers.add(response.json()["process_id"])
            time.sleep(PAUSE_S)
    return statuses
