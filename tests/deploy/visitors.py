"""Visitors of a site over HTTPS, on new and on keep-alive connections, as a program: `python -m tests.deploy.visitors`.

    python -m tests.deploy.visitors [--pairs N] [--slow PATH] [--plain PORT]

So many pairs of them request pages until SIGTERM, and another one a slow page; over HTTP as a server in front that
terminates TLS. It says `begun`, and at the end prints what they noticed, as JSON.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import socket
import ssl
import sys
import threading
import time
from collections import Counter

NAME = "example.org"
PATHS = ("/authors/", "/healthz", "/static/small.txt")
PAUSE_S = 0.1
# Responses before it says that it has begun.
ENOUGH = 12


class Visitors:
    """Observations of a visitor on new connections and of one on a keep-alive connection so far."""

    def __init__(self, plain: int | None) -> None:
        self.plain = plain
        self.over = threading.Event()
        self.responses: Counter[str] = Counter()
        self.failed: list[str] = []
        self.versions: list[str] = []
        self.longest_s = 0.0
        # The longest time without a response for one of them.
        self.down_s = 0.0
        self.slow: list[int | str] = []

    def visit(self, keep: bool) -> None:
        connection = self._connect()
        served = time.monotonic()
        while not self.over.wait(PAUSE_S):
            for path in PATHS:
                begun = time.monotonic()
                # A server may close a keep-alive connection; a browser then uses another.
                got = self._get(connection, path, tries=2 if keep else 1)
                now = time.monotonic()
                self.longest_s = max(self.longest_s, now - begun)
                self.down_s = max(self.down_s, now - served)
                if got:
                    served = now
                if not keep:
                    connection.close()

    def _get(self, connection: http.client.HTTPConnection, path: str, tries: int) -> bool:
        """True if the page came; a closed connection is opened again."""
        why = ""
        for _ in range(tries):
            try:
                return self._note(path, *_response(connection, path))
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                why = repr(error)
        self.failed.append(f"{path}: {why}")
        return False

    def _connect(self, timeout_s: float = 30) -> http.client.HTTPConnection:
        if self.plain:
            return http.client.HTTPConnection("127.0.0.1", self.plain, timeout=timeout_s)
        return Connection(NAME, timeout=timeout_s)

    def wait_for(self, path: str) -> None:
        """Request the slow page again and again, so that one such request is under way at any time."""
        while not self.over.is_set():
            try:
                self.slow.append(_response(self._connect(60), path)[0])
            except (OSError, http.client.HTTPException) as error:
                self.slow.append(repr(error))

    def _note(self, path: str, status: int, version: str) -> bool:
        self.responses[path] += 1
        if status != 200:
            self.failed.append(f"{path}: {status}")
        elif version and version not in self.versions[-1:]:
            self.versions.append(version)
        return status == 200


class Connection(http.client.HTTPSConnection):
    """To this machine's loopback interface, whatever the name is."""

    def connect(self) -> None:
        opened = socket.create_connection(("127.0.0.1", 443), self.timeout)
        self.sock = ssl._create_unverified_context().wrap_socket(opened, server_hostname=NAME)


HEADERS = {"Host": NAME, "X-Forwarded-Proto": "https"}


def _response(connection: http.client.HTTPConnection, path: str) -> tuple[int, str]:
    connection.request("GET", path, headers=HEADERS)
    response = connection.getresponse()
    body = response.read().decode()
    return response.status, body.partition("version:")[2].partition(":")[0]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--slow", action="append", default=[])
    parser.add_argument("--plain", type=int)
    options = parser.parse_args()
    visitors = Visitors(options.plain)
    signal.signal(signal.SIGTERM, lambda *_: visitors.over.set())
    threads = [threading.Thread(target=visitors.visit, args=(keep,)) for keep in (False, True) * options.pairs]
    threads += [threading.Thread(target=visitors.wait_for, args=(path,)) for path in options.slow]
    for thread in threads:
        thread.start()
    while sum(visitors.responses.values()) < ENOUGH and not visitors.failed:
        time.sleep(PAUSE_S)
    print("begun", flush=True)
    for thread in threads:
        thread.join()
    counts = {"responses": sum(visitors.responses.values()), "failed": visitors.failed, "versions": visitors.versions}
    print(
        json.dumps(
            {
                **counts,
                "longest_s": round(visitors.longest_s, 2),
                "down_s": round(visitors.down_s, 2),
                "slow": visitors.slow,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
