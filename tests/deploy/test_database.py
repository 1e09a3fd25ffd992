"""A database that is locked or takes no more connections, behind a real server: a 503, and health pages in time."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import psycopg2
import pytest

from bench.serve.deployment import deployment
from tests import postgresql
from tests.cases import resolved
from tests.deploy.running import FEW, client_of, command, get
from tests.waiting import until

pytestmark = pytest.mark.servers
CONNECTIONS = 12
# Above the site's own limit of 2 s; without one, it took 20 s and more.
HEALTH_S = 8


def test_writers_that_wait_for_a_lock_of_sqlite_hold_up_no_health_page(site_url):
    path = site_url.removeprefix("sqlite:///")
    with deployment.deployed(resolved("gunicorn", database_url=site_url, changes=FEW)) as running:
        lock = sqlite3.connect(path, isolation_level=None)
        with client_of(running.url) as client:
            author = client.post("/__probe__/rows/", headers=token(client)).json()["author"]
        lock.execute("BEGIN IMMEDIATE")
        try:
            with ThreadPoolExecutor(4) as pool:
                writers = [pool.submit(write, running.url, author, "edit") for _ in range(4)]
                begun = time.monotonic()
                assert get(f"{running.url}/healthz", timeout=30).status_code == 200
                assert time.monotonic() - begun < HEALTH_S
                responses = [writer.result() for writer in writers]
                # Readers wait for no writer.
                assert get(f"{running.url}/posts/").status_code == 200
        finally:
            lock.close()
        assert {(response.status_code, response.headers["Retry-After"]) for response in responses} == {(503, "5")}
        assert write(running.url, author, "remove").status_code == 200


def token(client: httpx2.Client) -> dict[str, str]:
    """The header of a form's token, whose cookie the client has."""
    client.get("/login/")
    return {"X-CSRFToken": client.cookies["csrftoken"]}


def write(url: str, author: int, what: str) -> httpx2.Response:
    with client_of(url, timeout=30) as client:
        return client.post(f"/__probe__/rows/{author}/{what}/", headers=token(client))


def test_a_database_that_takes_no_more_connections_is_a_503_until_one_is_free():
    binaries = postgresql.programs()
    if binaries is None:
        pytest.skip("programs not installed: initdb, postgres")
    with postgresql.cluster(binaries, (f"max_connections={CONNECTIONS}", "fsync=off")) as database:
        for words in (["migrate", "--verbosity", "0"], ["loadfixtures", "--rows", "500"]):
            done = command("manage.py", *words, database=database)
            assert done.returncode == 0, done.stderr
        with deployment.deployed(resolved("gunicorn", database_url=database, changes=FEW)) as running:
            held = []
            try:
                with pytest.raises(psycopg2.OperationalError, match="too many clients"):
                    while len(held) <= CONNECTIONS:
                        held.append(psycopg2.connect(database))
                response = get(f"{running.url}/posts/")
                assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
                assert "The pantry is locked." in response.text
                assert get(f"{running.url}/healthz").status_code == 200
            finally:
                for connection in held:
                    connection.close()
            until(lambda: get(f"{running.url}/posts/").status_code == 200, "a page again")
