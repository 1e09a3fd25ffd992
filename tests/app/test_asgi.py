"""The site over ASGI: no connection persists, and no more requests run at a time than it says."""

from __future__ import annotations

import os
import subprocess
import sys

from bench import paths

# Eight requests at once through the ASGI application: each notes how many are inside of it, and which thread it has.
AT_ONCE = """
import asyncio, json, threading, time
from config.asgi import application
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

async def ask():
    sent, got = [{"type": "http.request", "body": b"", "more_body": False}], []
    async def receive():
        if sent:
            return sent.pop()
        await asyncio.sleep(60)
    async def send(message):
        got.append(message)
    scope = {"type": "http", "method": "GET", "path": "/at-once", "raw_path": b"/at-once", "query_string": b"",
             "headers": [(b"host", b"127.0.0.1")], "http_version": "1.1", "scheme": "http",
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    await application(scope, receive, send)
    return got[0]["status"]

async def main():
    return await asyncio.gather(*(ask() for _ in range(8)))

statuses = asyncio.run(main())
print(json.dumps([statuses, most, settings.DATABASES["default"]["CONN_MAX_AGE"]]))
"""


def run(**env: str) -> str:
    env = {"PATH": os.environ["PATH"], "DATABASE_URL": "sqlite://:memory:", "SECRET_KEY": "x" * 50, **env}
    done = subprocess.run([sys.executable, "-c", AT_ONCE], cwd=paths.PROJECT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_so_many_requests_at_a_time_and_no_persistent_connection():
    assert run(BENCHAPP_ASGI_THREADS="3") == "[[200, 200, 200, 200, 200, 200, 200, 200], 3, 0]"


def test_a_single_thread_is_enough():
    assert run(BENCHAPP_ASGI_THREADS="1", BENCHAPP_CONN_MAX_AGE="60").endswith("1, 60]")
