"""Commands at once on one database: servers share it, a command that verifies pages shares it with nobody."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench import paths
from tests.deploy.running import Up, get

pytestmark = pytest.mark.servers

CHECKS = ("content", "login", "comment")


@pytest.fixture
def verify(site_url):
    """Starts `benchapp verify gunicorn` on the database of the tests."""
    started = []

    def start() -> subprocess.Popen:
        words = ["verify", "gunicorn", "--layer", "none", *(word for name in CHECKS for word in ("--check", name))]
        process = subprocess.Popen(
            [sys.executable, "-m", "bench", *words, "--set", "processes=1", "--database", site_url],
            cwd=paths.KIT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def test_two_that_verify_wait_for_a_site_that_is_up_and_for_each_other(site_url, verify):
    database = site_url.removeprefix("sqlite:///")
    with Up("gunicorn", "--database", site_url) as up:
        both = verify(), verify()
        for process in both:
            # Another process of the tests may use it as well.
            message = rf"the database {re.escape(database)} is in use by .*process \d+ \(.+\)"
            assert re.fullmatch(rf"{message}; waiting for it up to 600 s\n", process.stderr.readline())
        assert get(up.url).status_code == 200
        assert [process.poll() for process in both] == [None, None]
    for process in both:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, out + err
        assert "gunicorn with layer none: 3 checks passed" in out
