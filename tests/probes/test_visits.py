"""The page of the visitors: what it says is what rendered it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from bench import paths
from bench.faults.scene import FILES, FIRST
from bench.faults.visitors import NOBODY, PAGE, said
from probes import release

ASK = f"""
import django; django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
answer = Client(SERVER_NAME="127.0.0.1").get({PAGE.format("x")!r})
print(answer.headers["Vary"], answer.status_code, "Set-Cookie" in answer.headers)
print(answer.content.decode())
"""


@pytest.fixture(scope="module")
def answer():
    env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "config.settings"}
    env |= {"DATABASE_URL": "sqlite://:memory:", "BENCHAPP_PROBES": "1"}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=paths.PROJECT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n", 1)


def test_it_is_cacheable_like_an_ordinary_page(answer):
    assert answer[0] == "Cookie 200 False"


def test_it_says_its_versions_its_account_and_its_time(answer):
    code, template, account, rendered, static = said(answer[1])
    assert (code, template, account) == (release.VERSION, release.VERSION, NOBODY)
    assert abs(time.time() - float(rendered)) < 60
    assert static.startswith("/static/probes/release.")


def test_every_file_of_a_release_has_the_word_for_its_version():
    assert release.VERSION == FIRST
    for name in FILES:
        assert FIRST in (paths.PROJECT / name).read_text("utf-8"), name
