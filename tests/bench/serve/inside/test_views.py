"""The probe views: off by default, right when on."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

import pytest

from bench import paths
from tests.managing import manage


def spelt(**values: object) -> str:
    """A response, as an address describes it."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


PATHS = (
    "/__probe__/inside",
    "/__probe__/page/a name/",
    "/__probe__/page/../x/",
    "/__probe__/large/x/",
    "/__probe__/coded/x/",
    "/__probe__/form/x/",
    f"/__probe__/answer/{spelt(headers=[['Cache-Control', 'private']])}/x/",
    f"/__probe__/answer/{spelt(does=['stream'])}/x/",
    f"/__probe__/answer/{spelt(does=['token'], shows=['session'])}/x/",
    f"/__probe__/answer/{spelt(shows=['absolute', 'meta REMOTE_ADDR'])}/x/",
    "/__probe__aside/x/",
    "/__probe__/memory/1/",
    "/__probe__/download/1/",
)
ASK = f"""
import json, django; django.setup()
from django.test import Client
client = Client(SERVER_NAME="127.0.0.1", raise_request_exception=False)
print(json.dumps([client.get(path, REMOTE_ADDR="203.0.113.9").status_code for path in {PATHS!r}]))
print(client.get("/__probe__/inside", REMOTE_ADDR="203.0.113.9").content.decode())
print(client.get("/__probe__/page/x/").content.decode())
"""


@pytest.mark.parametrize(("switch", "status"), [("1", 200), (None, 404)])
def test_the_probes_are_there_only_when_switched_on(tmp_path, switch, status):
    env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "config.settings"}
    env |= {"DATABASE_URL": "sqlite://:memory:", **({"BENCHAPP_PROBES": switch} if switch else {})}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=paths.KIT, env=env, capture_output=True, text=True)
    statuses, body, *_ = done.stdout.split("\n")
    assert json.loads(statuses) == [status] * len(PATHS), done.stderr
    if status == 200:
        document = json.loads(body)
        assert (document["client"], document["prefix"]) == ("203.0.113.9", sys.prefix)
        assert (document["token_cookie"], document["has_sessions"]) == ("csrftoken", True)
        assert document["admin_login"] == "/admin/login/"


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ("MIDDLEWARE, FORCE_SCRIPT_NAME = [], '/shop'", ("", False)),
        (
            "MIDDLEWARE = ['django.contrib.sessions.middleware.SessionMiddleware', "
            "'django.middleware.csrf.CsrfViewMiddleware']\nCSRF_USE_SESSIONS, SESSION_COOKIE_NAME = True, 'shop'",
            ("shop", True),
        ),
        # Wholly behind a login.
        (
            "INSTALLED_APPS = ['django.contrib.' + app for app in ('contenttypes', 'auth', 'sessions')]\n"
            "MIDDLEWARE = ['django.contrib.sessions.middleware.SessionMiddleware', "
            "*(f'django.contrib.auth.middleware.{name}Middleware' for name in ('Authentication', 'LoginRequired'))]",
            ("", True),
        ),
    ],
)
def test_what_a_project_gives_its_visitors_is_known(tmp_path, lines, known):
    (tmp_path / "bare.py").write_text(f"SECRET_KEY, ROOT_URLCONF = 'x', 'bare'\nurlpatterns = []\n{lines}\n")
    env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "bench.serve.inside.serving.settings"}
    env |= {"PYTHONPATH": f"{tmp_path}:{paths.KIT}", "OVERLAID_SETTINGS": "bare", "BENCHAPP_PROBES": "1"}
    env |= {"BENCHAPP_ALLOWED_HOSTS": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=tmp_path, env=env, capture_output=True, text=True)
    _, body, *page = done.stdout.split("\n")
    document = json.loads(body)
    assert (document["token_cookie"], document["has_sessions"]) == known
    assert document["admin_login"] == ""
    # Links have the prefix of its settings, which the client does not send.
    shown = "".join(page)
    assert "/__probe__/page/x/" in shown and "/shop/__probe__" not in shown


def test_the_commands_are_there_only_when_switched_on():
    assert "Unknown command: 'siteurls'" in manage("siteurls", BENCHAPP_PROBES="0").stderr
