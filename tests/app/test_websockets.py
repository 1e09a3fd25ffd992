"""WebSockets: Django speaks none, so its handshakes are refused; those that a project takes reach it untouched."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from django.core import asgi
from django.core.handlers.asgi import ASGIHandler

from bench import paths
from benchapp_overlay import websockets
from tests.app.asgi_site import application as site

SHOWS_PATH = """
import asyncio
from benchapp_overlay.asgi import application

async def send(path):
    print(path)

asyncio.run(application({"type": "websocket", "path": "/x/"}, None, send))
"""
DENIAL = {"websocket.http.response": {}}
REFUSED = ["websocket.http.response.start", "websocket.http.response.body"]
KINDS = [(DENIAL, REFUSED), ({}, ["websocket.close"]), (None, ["websocket.close"])]


def sent_by(application: Any, **scope: Any) -> list[dict[str, Any]]:
    """The messages that an application sends to a handshake, or to another scope."""
    sent = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    asyncio.run(application({"type": "websocket", "path": "/", "headers": [], **scope}, receive, send))
    return sent


@pytest.mark.parametrize("application", [site, websockets.refusing(asgi.get_asgi_application())])
@pytest.mark.parametrize(("extensions", "kinds"), KINDS)
def test_a_websocket_that_nobody_takes_is_refused(application, extensions, kinds):
    sent = sent_by(application, extensions=extensions)
    assert [message["type"] for message in sent] == kinds
    assert sent[0].get("status", 400) == 400


@pytest.mark.parametrize("application", [site, websockets.refusing(asgi.get_asgi_application())])
def test_a_lifespan_is_the_server_s_to_do_without(application):
    with pytest.raises(ValueError, match="lifespan"):
        sent_by(application, type="lifespan")


def test_django_itself_stays_as_it_is():
    assert asgi.ASGIHandler is ASGIHandler
    with pytest.raises(ValueError, match=f"^{websockets.NO_WEBSOCKETS}"):
        sent_by(asgi.get_asgi_application())


async def routed(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """A project that takes WebSockets at one path, fails at another, and leaves the rest to Django."""
    if scope["path"] == "/chat/":
        await receive()
        await send({"type": "websocket.accept"})
    elif scope["path"] == "/fails/":
        raise ValueError("No route found for path 'fails/'.")
    else:
        await asgi.get_asgi_application()(scope, receive, send)


class Twice:
    """An application of the older kind, which is called twice, as Channels 2 had them."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self.scope = scope

    async def __call__(self, receive: Any, send: Any) -> None:
        await routed(self.scope, receive, send)


@pytest.mark.parametrize("project", [routed, Twice])
def test_a_project_that_takes_websockets_gets_them_and_its_errors_are_its_own(project):
    application = websockets.refusing(project)
    assert sent_by(application, path="/chat/") == [{"type": "websocket.accept"}]
    assert [message["type"] for message in sent_by(application, extensions=DENIAL)] == REFUSED
    with pytest.raises(ValueError, match="No route found"):
        sent_by(application, path="/fails/")


def test_the_application_of_another_project_is_the_one_that_a_variable_names(tmp_path):
    (tmp_path / "shop_asgi.py").write_text("async def chat(scope, receive, send):\n    await send(scope['path'])\n")
    (tmp_path / "shop_settings.py").write_text("BENCHAPP_MAX_BODY_MB = 1\n")
    env = {"PYTHONPATH": f"{tmp_path}:{paths.KIT}", "OVERLAID_ASGI": "shop_asgi:chat"}
    env["DJANGO_SETTINGS_MODULE"] = "shop_settings"
    done = subprocess.run([sys.executable, "-c", SHOWS_PATH], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("/x/\n", "")
