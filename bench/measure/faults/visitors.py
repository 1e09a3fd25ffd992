"""The visitors of a deployment: an open loop of pages and files, new and keep-alive connections by turns."""

from __future__ import annotations

import re
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.measure.faults.fault_threads import in_threads
from bench.measure.load import LoadJob
from bench.measure.load.engine import CLOSED_LOOP, OPEN_LOOP
from bench.measure.load.visits import Visit, visits
from bench.measure.run import load_process
from bench.measure.run.load_process import TrialError
from bench.serve.machine import http

# The end of a page for visitors; bench/serve/inside/templates/probes/visit.html.
MARK = r"<!-- visit code=(\S+) template=(\S+) account=(\S+) rendered=(\S+) static=(\S+) -->\s*\Z"
NOBODY = "nobody"
PAGE = "/__probe__/visit/{}/"
CLOSE = "Connection: close\r\n"
# Number of pages requested without an account, so that a layer has several.
ANONYMOUS = 3
CAPACITY_S = 2
CAPACITY_CONNECTIONS = 8
# Rate of the visitors as a share of the deployment's capacity, but no faster than the load tool beside it.
SHARE = 1 / 3
MIN_RATE, MAX_RATE = 5, 200
# A visitor waits no longer for a response.
PATIENCE_S = 10
# While a site hangs, every visitor has a connection until patience ends, plus some idle ones.
MAX_CONNECTIONS = MAX_RATE * PATIENCE_S + 500
MAX_S = 180
# Between two pages of the visitor who follows them to their static files.
INTERVAL_S = 0.2


@dataclass(frozen=True)
class RequestedPage:
    """One request of a visitor.

    account  the expected account: NOBODY without an account; None for a static file
    cookie   the Cookie header, or empty
    ttl_s    lifetime declared by the page
    """

    path: str
    account: str | None = NOBODY
    cookie: str = ""
    ttl_s: float = 0.0


def pages(
    token: str, accounts: Sequence[tuple[str, str]], static: str, own: Sequence[RequestedPage] = ()
) -> list[RequestedPage]:
    """Requests of visitors in turn: new pages, without an account and with each of the accounts (name and cookie), a
    file, and pages of the project."""
    anonymous = [RequestedPage(PAGE.format(f"{token}-{number}")) for number in range(ANONYMOUS)]
    signed_in = [RequestedPage(anonymous[0].path, name, cookie) for name, cookie in accounts]
    mixed = [
        anonymous[0],
        *signed_in[:1],
        RequestedPage(static, None),
        *anonymous[1:2],
        *signed_in[1:],
        *anonymous[2:],
        *own,
    ]
    # An odd number, so that in the second turn the other half close their connection.
    if len(mixed) % 2:
        return mixed
    return [*mixed, RequestedPage(static, None)]


def parse_page_marker(body: str) -> tuple[str, ...] | None:
    """Code, template, account, time of rendering and static file in the mark of a page; None without the mark."""
    match = re.search(MARK, body)
    if not match:
        return None
    return match.groups()


def job(url: str, requested: Sequence[RequestedPage], seconds: int, rate: int | None) -> LoadJob:
    """The load: every second request closes its connection, so that half of all requests open one."""
    turns = [*requested, *requested]
    headers = []
    for number, page in enumerate(turns):
        lines = ""
        if page.cookie:
            lines = f"Cookie: {page.cookie}\r\n"
        if number % 2:
            lines += CLOSE
        headers.append(lines)
    connections, mark = CAPACITY_CONNECTIONS, ""
    if rate:
        connections, mark = MAX_CONNECTIONS, MARK
    return LoadJob(
        url,
        tuple(page.path for page in turns),
        connections,
        seconds,
        timeout_s=PATIENCE_S,
        rate=rate,
        headers=tuple(headers),
        mark=mark,
    )


def capacity(url: str, requested: Sequence[RequestedPage], directory: Path) -> float:
    """Responses a second in a closed loop. Raises TrialError without any."""
    tool = CLOSED_LOOP
    command = tool.command(sys.executable, job(url, requested, CAPACITY_S, None))
    directory.mkdir(parents=True, exist_ok=True)
    texts = load_process.run(command, CAPACITY_CONNECTIONS, directory / "capacity", CAPACITY_S + PATIENCE_S + 5)
    figures = tool.parse(*texts)
    good = (figures.statuses or {}).get("200", 0)
    if not good:
        raise TrialError(
            f"no right response in {CAPACITY_S} s of load: {figures.failure()}", directory / "capacity.err"
        )
    return good / figures.duration_s


def rate_of(capacity_per_second: float) -> int:
    """Requests a second of the visitors of a deployment."""
    return max(MIN_RATE, min(MAX_RATE, round(capacity_per_second * SHARE)))


@contextmanager
def background_load(url: str, requested: Sequence[RequestedPage], rate: int, directory: Path) -> Iterator[list[Visit]]:
    """Visitors who send requests until the block ends; then the list has their visits.

    Visit.page is an index of the requested pages, taken twice. Raises errors of the load tool.
    """
    tool, finished_visits = OPEN_LOOP, list[Visit]()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    command = tool.command(sys.executable, job(url, requested, MAX_S, rate))
    output, limit_s = directory / "visits", MAX_S + PATIENCE_S + 10

    def load(enough: threading.Event) -> tuple[str, str]:
        return load_process.run(command, MAX_CONNECTIONS, output, limit_s, enough=enough)

    with in_threads([load]) as (texts,):
        yield finished_visits
    finished_visits += visits(texts.result()[0])


@contextmanager
def watch_static_links(url: str, path: str, interval_s: float = INTERVAL_S) -> Iterator[list[bool]]:
    """A visitor who requests a page and at once its static file, like a browser, during the block.

    The list gets an entry for each page: whether its file was missing (4xx). The other visitors count other failures.
    """
    missing = list[bool]()

    def follow(over: threading.Event) -> None:
        while not over.wait(interval_s):
            with suppress(http.VisitError, UnicodeDecodeError):
                if marker := parse_page_marker(http.get(url, path).decode()):
                    missing.append(400 <= (http.status(url, marker[-1]) or 0) < 500)

    with in_threads([follow]) as (follower,):
        yield missing
    follower.result()
