"""The view that shows a worker from inside: off unless asked for, right when on."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bench import paths

ASK = (
    "import django; django.setup();"
    "from django.test import Client;"
    "r = Client(SERVER_NAME='127.0.0.1').get('/probe/inside', REMOTE_ADDR='203.0.113.9');"
    "print(r.status_code, r.content.decode())"
)


@pytest.mark.parametrize(("switch", "status"), [("0", "404"), ("1", "200"), (None, "404")])
def test_the_probe_is_there_only_when_switched_on(tmp_path, switch, status):
    env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "config.settings"}
    env |= {"DATABASE_URL": "sqlite://:memory:", **({"BENCHAPP_PROBES": switch} if switch else {})}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=paths.PROJECT, env=env, capture_output=True, text=True)
    got, _, body = done.stdout.partition(" ")
    assert got == status, done.stderr
    if status == "200":
        found = json.loads(body)
        assert (found["client"], found["prefix"]) == ("203.0.113.9", sys.prefix)
