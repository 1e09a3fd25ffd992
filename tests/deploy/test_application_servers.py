"""What application servers do besides answering pages: replacing workers, and WebSockets."""

from __future__ import annotations

import base64
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from bench.catalog import catalog
from bench.project import commands
from bench.project.under_test import UnderTest, open_project
from bench.serve import deployment
from bench.serve.case import must_resolve
from tests.cases import resolved
from tests.deploy.running import FEW, ONE, client_of, runnable
from tests.deploy.test_projects import DESCRIPTION, made

pytestmark = pytest.mark.servers

# Each kind of worker that is replaced after so many requests, behind a web server and alone.
OF_GUNICORN = ("nginx-gunicorn", "nginx-gunicorn-gthread", "gunicorn", "gunicorn-gevent")
REPLACED = (*OF_GUNICORN, "nginx-uwsgi", "uwsgi", "apache-modwsgi", "nginx-apache-modwsgi")
LIFE = 20
VISITORS = 4
# Visitors who do not pause take the processors from the workers that start.
PAUSE_S = 0.02
# Each of two workers was replaced once. uWSGI replaces none that is younger than 10 s.
ENOUGH = 2 * FEW["processes"]
PATIENCE_S = 60
ASGI = [stack.name for stack in catalog.read().stacks.values() if stack.servers[0].interface == "asgi"]
# What a server answers where nobody speaks WebSockets. 403 is that of ASGI for a server that knows no other.
REFUSED = {"daphne": 403, "gunicorn-asgi": 403}
MASK = b"\1\2\3\4"
ECHO = """
from django.core.asgi import get_asgi_application

django = get_asgi_application()


async def application(scope, receive, send):
    if scope.get("path") != "/chat/":
        return await django(scope, receive, send)
    await receive()
    await send({"type": "websocket.accept"})
    said = await receive()
    await send({"type": "websocket.send", "text": scope["path"] + " " + said["text"]})
"""


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
    """Note the worker of each answer in `workers` until there were enough; returns the statuses."""
    statuses, ends = set(), time.monotonic() + PATIENCE_S
    with client_of(url, timeout=30) as client:
        while len(workers) < ENOUGH and time.monotonic() < ends:
            answer = client.get("/__probe__/inside")
            statuses.add(answer.status_code)
            if answer.status_code == 200:
                workers.add(answer.json()["process_id"])
            time.sleep(PAUSE_S)
    return statuses


@pytest.fixture(scope="module")
def chat() -> Iterator[UnderTest]:
    """A project whose ASGI application takes WebSockets at one path."""
    with made("shop", DESCRIPTION) as folder:
        (folder / "shop" / "asgi.py").write_text(ECHO)
        opened = open_project(folder)
        # Each deployment runs some commands.
        commands.warm_up(opened)
        yield opened


@pytest.mark.parametrize("stack", ASGI)
def test_a_websocket_reaches_a_project_that_speaks_it_and_is_refused_where_it_does_not(stack, chat):
    runnable(stack)
    with deployment.deployed(must_resolve(chat, stack, changes=ONE)) as running:
        with shaken(running.url, "/chat/") as opened:
            assert status_of(opened) == 101
            opened.sendall(frame(b"hello"))
            # A text in one frame that is not masked: its kind, its length, its bytes.
            assert opened.recv(100).startswith(b"\x81\x0c/chat/ hello")
        with shaken(running.url, "/") as opened:
            assert status_of(opened) == REFUSED.get(stack, 400)
        logs = "".join(path.read_text() for path in running.logs.rglob("*") if path.is_file())
    assert "Traceback" not in logs


def shaken(url: str, path: str) -> socket.socket:
    """A connection on which the handshake of a WebSocket was sent."""
    parts = httpx.URL(url)
    opened = socket.create_connection((parts.host, parts.port), timeout=60)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade")
    opened.sendall("\r\n".join((*lines, f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", "")).encode())
    return opened


def status_of(opened: socket.socket) -> int:
    """The status of the answer to a handshake, whose headers alone are read."""
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        piece = opened.recv(1)
        assert piece, answer
        answer += piece
    return int(answer.split()[1])


def frame(text: bytes) -> bytes:
    """A text as a client sends it: masked."""
    masked = bytes(byte ^ MASK[index % len(MASK)] for index, byte in enumerate(text))
    return b"\x81" + bytes([0x80 | len(text)]) + MASK + masked
