"""A deployment that does not come up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.errors import DeploymentError
from bench.serve.deployment import deployment

CACHE = "CACHES['default']"
LOG = Path("gunicorn.log")


def fail(silent: dict[str, str]) -> DeploymentError:
    """The error of a deployment whose first page fails, on a project with these caches that do not respond."""
    facts = SimpleNamespace(cache_servers={CACHE: "redis-server --port 7"}, session_cache=CACHE, silent=silent)
    case = SimpleNamespace(project=SimpleNamespace(overlaid=True, facts=facts))
    with pytest.raises(DeploymentError) as raised, deployment._naming_silent_caches(case):
        raise DeploymentError("gunicorn returns status 500 to GET /", LOG)
    return raised.value


def test_a_failed_start_names_the_caches_that_are_down():
    assert fail({}).message == "gunicorn returns status 500 to GET /"
    error = fail({CACHE: "ConnectionError: refused"})
    assert "status 500" in error.message and "`redis-server --port 7`" in error.message
    assert error.log == LOG
