"""Workloads: which addresses are requested, in what order.

A recorded session names its steps so that they exist at any number of rows (fixtures/sessions/browsing.txt
says how). `resolve` turns them into addresses once in a run; every deployment of the run gets the same
requests.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bench import paths
from bench.errors import BenchError

SESSIONS = paths.PROJECT / "fixtures" / "sessions"
DEFAULT = "session"
# Ends the names of workloads that open a connection for each request.
CLOSE = "-close"


@dataclass(frozen=True)
class Workload:
    """A named list of steps, requested over and over in this order.

    keep_alive  whether connections are reused; without, each request opens one and closes it
    """

    name: str
    title: str
    steps: tuple[str, ...]
    keep_alive: bool = True

    def __post_init__(self) -> None:
        if not self.steps:
            raise BenchError(f"workload {self.name} has no steps")
        for number, step in enumerate(self.steps, 1):
            if not _STEP.fullmatch(step):
                raise BenchError(f"workload {self.name}, step {number}: {step!r} is not a step; see {SESSIONS}")


_STEP = re.compile(r"/\S*|page:(?:authors|posts|comments):[1-9]\d*%?|(?:post|author):[1-9]\d*|static:\S+")


def workloads() -> dict[str, Workload]:
    """Every workload by name, the default first."""
    found = (
        Workload(DEFAULT, "recorded browsing session, each page with its three static files", _recorded("browsing")),
        Workload("home", "the home page", ("/",)),
        Workload("login", "the login page, which no cache may store", ("/login/",)),
        Workload("static-small", "a static file of 99 bytes", ("/static/small.txt",)),
        Workload("static-large", "a static file of 1.5 MB", ("/static/large.txt",)),
    )
    closing = (replace(each, name=each.name + CLOSE, title=f"{each.title}, each on a new connection") for each in found)
    return {each.name: each for each in (*found, *(replace(each, keep_alive=False) for each in closing))}


def _recorded(name: str) -> tuple[str, ...]:
    lines = (SESSIONS / f"{name}.txt").read_text("utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def resolve(workload: Workload, page: Callable[[str], str], static: Mapping[str, str]) -> tuple[str, ...]:
    """The addresses of the workload's steps.

    `page` gives the HTML of an address, `static` the collected name of every static file by its plain one.
    Raises BenchError naming the first step without an address.
    """
    known: dict[str, str] = {}

    def text(path: str) -> str:
        if path not in known:
            known[path] = page(path)
        return known[path]

    found: list[str] = []
    here = "/"
    for number, step in enumerate(workload.steps, 1):
        kind, _, rest = step.partition(":")
        if kind == "static":
            if rest not in static:
                raise BenchError(f"workload {workload.name}, step {number}: no static file {rest} was collected")
            found.append(f"/static/{static[rest]}")
            continue
        if kind == "page":
            name, _, wanted = rest.partition(":")
            here = _list_page(name, wanted, text)
        elif kind in ("post", "author"):
            # An author may have no posts yet; then the visitor returns to the list.
            links = _links(f"/{kind}s/", text(here)) or _links(f"/{kind}s/", text(f"/{kind}s/"))
            if not links:
                raise BenchError(f"workload {workload.name}, step {number}: {here} links to no {kind}")
            here = links[(int(rest) - 1) % len(links)]
        else:
            here = step
        found.append(here)
    return tuple(found)


def _list_page(name: str, wanted: str, text: Callable[[str], str]) -> str:
    """The address of a page of a list; the list's first page links to its last one."""
    numbers = [int(found) for found in re.findall(rf'href="/{name}/page/(\d+)/', text(f"/{name}/"))]
    last = max(numbers, default=1)
    number = round(last * int(wanted[:-1]) / 100) if wanted.endswith("%") else int(wanted)
    number = min(max(number, 1), last)
    # The first page has the list's own address.
    return f"/{name}/" if number == 1 else f"/{name}/page/{number}/"


def _links(prefix: str, text: str) -> list[str]:
    """Addresses of detail pages in the order of their first links."""
    return list(dict.fromkeys(html.unescape(link) for link in re.findall(rf'href="({prefix}\d+/)["#]', text)))
