"""The site over ASGI: no connection persists, and no more requests run at a time than it says."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from bench import paths
from benchapp_overlay.bodies import limited

# Eight requests at once through the ASGI application; it prints their statuses, and how many were inside of the view.
AT_ONCE = """
import asyncio, json, threading, time
import httpx2
from tests.app.asgi_site import application
from django.conf import settings
from django.db import connection
from django.urls import path
from django.http import HttpResponse
from config import urls

inside, most, lock = 0, 0, threading.Lock()

def view(request):
    global inside, most
    connection.ensure_connection()
    with lock:
        inside += 1
        most = max(most, inside)
    time.sleep(0.1)
    with lock:
        inside -= 1
    return HttpResponse("ok")

urls.urlpatterns.insert(0, path("at-once", view))

async def main():
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url="http://127.0.0.1") as client:
        return await asyncio.gather(*(client.get("/at-once") for _ in range(8)))

statuses = [response.status_code for response in asyncio.run(main())]
print(json.dumps([statuses, most, settings.DATABASES["default"]["CONN_MAX_AGE"]]))
"""


# The place that a redirect of each application leads to, for a client that names a prefix.
PREFIXED = """
import asyncio, os
import httpx2
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from tests.app.asgi_site import application
from config import urls

urls.urlpatterns[:0] = [path("here", lambda request: HttpResponseRedirect(reverse("there"))),
                        path("there", lambda request: HttpResponse(), name="there")]
os.environ["OVERLAID_ASGI"] = "tests.app.asgi_site:plain"
from benchapp_overlay.asgi import application as overlaid

async def place(served):
    transport = httpx2.ASGITransport(served, root_path="//elsewhere.test")
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return (await client.get("/here")).headers["location"]

print(asyncio.run(place(application)), asyncio.run(place(overlaid)))
"""


def run(program: str = AT_ONCE, **env: str) -> str:
    env = {"PATH": os.environ["PATH"], "DATABASE_URL": "sqlite://:memory:", "SECRET_KEY": "x" * 50, **env}
    done = subprocess.run([sys.executable, "-c", program], cwd=paths.KIT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_so_many_requests_at_a_time_and_no_persistent_connection():
    assert run(BENCHAPP_ASGI_THREADS="3") == "[[200, 200, 200, 200, 200, 200, 200, 200], 3, 0]"


def test_a_single_thread_is_enough():
    assert run(BENCHAPP_ASGI_THREADS="1", BENCHAPP_CONN_MAX_AGE="60").endswith("1, 60]")


def test_no_client_names_a_prefix_of_the_links():
    assert run(PREFIXED) == "/there /there"


async def reading(scope, receive, send):
    """An application that reads a body to its end, as Django does."""
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        size += len(message["body"])
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


@pytest.mark.parametrize(
    ("max_mb", "sizes", "status"), [(1, [1048576], 200), (1, [1048576, 1], 413), (0, [9999999], 200)]
)
def test_a_body_without_a_length_has_a_limit(max_mb, sizes, status):
    pieces = [{"type": "http.request", "body": b"a" * size, "more_body": True} for size in sizes]
    pieces.append({"type": "http.request", "body": b"", "more_body": False})
    sent, taken = [], iter(pieces)

    async def receive():
        return next(taken)

    async def send(message):
        sent.append(message)

    asyncio.run(limited(reading, max_mb)({"type": "http"}, receive, send))
    assert [message.get("status", status) for message in sent] == [status, status]
    assert len(list(taken)) == (1 if status == 413 else 0), "nothing is read after the limit"
