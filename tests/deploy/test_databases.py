"""Two commands at once on one database: servers share it, a command that verifies pages has it alone."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench import paths
from tests.deploy.running import Up, get
from tests.waiting import until

pytestmark = pytest.mark.servers

CHECKS = ("content", "login", "comment")


@pytest.fixture
def verify(site_url):
    """Starts `bench verify gunicorn` on the database of the tests."""
    started = []

    def start() -> subprocess.Popen:
        words = ["verify", "gunicorn", "--layer", "none", *(word for name in CHECKS for word in ("--check", name))]
        process = subprocess.Popen(
            [sys.executable, "-m", "bench", *words, "--set", "processes=1", "--database", site_url],
            cwd=paths.PROJECT,
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


def test_verify_waits_for_a_site_that_is_up_and_names_it(site_url, verify):
    database = site_url.removeprefix("sqlite:///")
    with Up("gunicorn", "--database", site_url) as up:
        process = verify()
        line = process.stderr.readline()
        # Another process of the tests may use it as well.
        says = rf"the database {re.escape(database)} is in use by .*process {up.process.pid} \(.+\)"
        assert re.fullmatch(rf"{says}; waiting for it up to 600 s\n", line)
        assert get(up.url).status_code == 200
        assert process.poll() is None
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out.count("FAIL")) == (0, 0), out + err


@pytest.mark.long
def test_two_that_verify_at_once_call_nothing_wrong(verify):
    one, other = verify(), verify()
    until(lambda: None not in (one.poll(), other.poll()), "both have ended", 240)
    for process in (one, other):
        out, err = process.communicate()
        assert process.returncode == 0, out + err
        assert "gunicorn with layer none: 3 checks passed" in out
