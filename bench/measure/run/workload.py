"""Workloads: the requested addresses, in order.

The project's description names them. A step describes an action of a visitor, so that it works with any number of rows:

    /path/            this address
    page:/blog/:3     page 3 of the list at /blog/, the last page when there are fewer
    page:/blog/:40%   the page 40 in 100 of the way down that list
    link:/blog/:2     the second address below /blog/ that the last page links to, counted on from the first when it
                      has fewer; of the list at /blog/ when it has none
    static:site.css   the static file collected under that name

`resolve` turns them into addresses once in a run; every deployment of the run gets the same requests.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bench.errors import BenchError
from bench.measure.run import recordings
from bench.serve.catalog.catalog import named
from bench.serve.project.description import FILE, Description, Requests
from bench.serve.project.opened import UnderTest

# Ends the names of workloads that open a connection for each request.
CLOSE = "-close"
# The workload of a project that describes none.
PUBLIC = "public"


@dataclass(frozen=True)
class Workload:
    """A named list of steps, requested over and over in this order.

    keep_alive  whether connections are reused; otherwise each request has a new one
    notes       notes for the reader of the results
    times_s     time of each step of a recording, in seconds from the first; empty without a recording
    """

    name: str
    title: str
    steps: tuple[str, ...]
    keep_alive: bool = True
    notes: tuple[str, ...] = ()
    times_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.steps:
            raise BenchError(f"workload {self.name} has no steps")
        for number, step in enumerate(self.steps, 1):
            if not _STEP.fullmatch(step):
                raise BenchError(
                    f"workload {self.name}, step {number}: {step!r} is not a step; benchapp's docs/your-own-project.md "
                    "lists them"
                )


_STEP = re.compile(r"/\S*|page:/\S*:[1-9]\d*%?|link:/\S*:[1-9]\d*|static:\S+")


def names(description: Description) -> list[str]:
    """The workloads of a project with this description, the default first; none of their sources is read."""
    own = list(description.workloads) or [PUBLIC]
    return [*own, *(f"{name}{CLOSE}" for name in own)]


def workloads(project: UnderTest) -> dict[str, Workload]:
    """Every workload of the project by name, the default first.

    Large sources are read only once. Raises BenchError for an unreadable source.
    """
    # The default is the entry page, which a filled database may show only later.
    return project.once(("workloads", project.description.start), lambda: _read_all(project))


def workload(project: UnderTest, name: str) -> Workload:
    """The workload called `name`; raises BenchError with the nearest name if unknown."""
    return named(workloads(project), name, "workload")


def _read_all(project: UnderTest) -> dict[str, Workload]:
    description = project.description
    sources = description.workloads or {PUBLIC: Requests(urls=description.first_pages, title="the public pages")}
    workloads = {name: _read(project, name, source) for name, source in sources.items()}
    for name, each in list(workloads.items()):
        title = f"{each.title}, each on a new connection"
        workloads[name + CLOSE] = replace(each, name=name + CLOSE, title=title, keep_alive=False)
    return workloads


def _read(project: UnderTest, name: str, source: Requests) -> Workload:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) or name.endswith(CLOSE):
        raise BenchError(
            f"{project.folder / FILE}: workload {name!r}: use small letters, digits and hyphens, not {CLOSE} at the end"
        )
    folder = project.project.described.parent
    if source.urls:
        return Workload(name, source.title or f"{len(source.urls)} addresses", source.urls)
    if source.file:
        return Workload(name, source.title or source.file, recordings.steps(folder / source.file))
    file = source.har or source.log or ""
    if source.har:
        recording = recordings.har(folder / source.har)
    else:
        recording = recordings.access_log(folder / file, source.fields or "")
    return Workload(name, source.title or file, recording.paths, notes=recording.notes, times_s=recording.times_s)


def resolve(
    workload: Workload, page: Callable[[str], str], static: Mapping[str, str], static_url: str
) -> tuple[str, ...]:
    """The addresses of the workload's steps.

    `page` gives the HTML of an address, `static` the collected name of every static file by its plain one, below
    `static_url`. Raises BenchError naming the first step without an address.
    """
    known: dict[str, str] = {}

    def text(path: str) -> str:
        if path not in known:
            known[path] = page(path)
        return known[path]

    addresses: list[str] = []
    here = "/"
    for number, step in enumerate(workload.steps, 1):
        if step.startswith("/"):
            here = step
        else:
            kind, _, rest = step.partition(":")
            if kind == "static":
                if rest not in static:
                    raise BenchError(f"workload {workload.name}, step {number}: no static file {rest} was collected")
                addresses.append(f"{static_url}{static[rest]}")
                continue
            place, _, wanted = rest.rpartition(":")
            if kind == "page":
                here = _list_page(place, wanted, text)
            else:
                links = _links(place, text(here)) or _links(place, text(place))
                if not links:
                    raise BenchError(f"workload {workload.name}, step {number}: {here} links to nothing below {place}")
                here = links[(int(wanted) - 1) % len(links)]
        addresses.append(here)
    return tuple(addresses)


def _list_page(place: str, wanted: str, text: Callable[[str], str]) -> str:
    """The address of a page of a list; the first page of a list links to the last one."""
    pages = re.findall(rf'href="(?:{re.escape(place)})?(page/|\?page=)(\d+)', text(place))
    last = max((int(number) for _, number in pages), default=1)
    number = int(wanted.removesuffix("%"))
    if wanted.endswith("%"):
        number = round(last * number / 100)
    number = min(max(number, 1), last)
    if number == 1:
        # The first page has the list's own address.
        return place
    form = pages[0][0]
    if form == "page/":
        return f"{place}{form}{number}/"
    return f"{place}{form}{number}"


def _links(place: str, text: str) -> list[str]:
    """Addresses right below a place, in the order of their first links."""
    pattern = rf'href="({re.escape(place)}[^/"#?]+/?)["#?]'
    return list(dict.fromkeys(html.unescape(link) for link in re.findall(pattern, text)))
