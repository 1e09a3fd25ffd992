"""The apps of the probes, installed for its own tests; the site's tests run without it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import reader, rows, settings_from, site_settings, site_with  # noqa: F401


@pytest.fixture(autouse=True)
def probes_installed(settings: Any) -> None:
    """Make the commands of `bench.serve.inside` available, as BENCHAPP_PROBES=1 does."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "bench.serve.inside.site", "bench.serve.inside"]
