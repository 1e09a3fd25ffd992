"""The speed of each caching layer with the home page for anonymous clients, beside the limit of one core.

One run on one machine: servers and services of all layers are up at the same time, pinned to one core; the load tool
(wrk, on keep-alive connections) has the other. The limit is the same bytes as a plain file from the same Nginx. Every
round requests each layer in another order, so that other work disturbs all alike; the table shows medians over
the rounds, their ranges, and the ratio to the limit or to `none`. Figures of two runs are not to be compared.

On a machine with other work, requests a second say little: beside them stands how many requests a second of the
servers' CPU time is enough for, services included, with the same ratios.

    python -m tests.proofs.layers --database sqlite:////tmp/site.sqlite3 --rounds 5 --seconds 3 --json layers.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import programs
from bench.errors import BenchError
from bench.serve.deployment import deployment
from bench.serve.deployment.case import CannotRun, resolve
from bench.serve.deployment.database import parse as parse_database
from bench.serve.machine import cpu_affinity, http
from bench.serve.project.opened import open_project
from tests.proofs.arguments import count
from tests.proofs.loading import closed_loop, loaded

LIMIT = "limit"
SERVERS_CORE, LOAD_CORE = 0, 1
# What a layer must reach: a share of the limit, or times `none`.
#
# uWSGI's cache saves Python, not connections: it opens and closes one a hit, since with keep-alive an idle client holds
# a thread. An expert measured 87 to 116 microseconds of CPU time for its hits, and 19 for those of Nginx's own cache of
# uWSGI's responses: the fast and safe place for such a cache is Nginx, and `nginx-microcache` is it.
BARS = {
    "staticgenerator": (LIMIT, 0.9),
    "nginx-microcache": (LIMIT, 0.75),
    "uwsgi-cache": (LIMIT, 0.25),
    "nginx-memcached": (LIMIT, 0.45),
    "varnish": (LIMIT, 0.45),
    "page-cache": ("none", 18.0),
    # Django's own.
    "site-middleware": ("none", 8.0),
    "view-cache": ("none", 8.0),
    "fragments": ("none", 3.0),
}
# Each layer on the usual stack, but where another is its own place.
STACKS = {"uwsgi-cache": "uwsgi", "apache-cache": "apache-modwsgi"}
USUAL = "nginx-uwsgi"
LAYERS = (
    "none",
    "fragments",
    "view-cache",
    "site-middleware",
    "page-cache",
    "apache-cache",
    "varnish",
    "nginx-memcached",
    "uwsgi-cache",
    "nginx-microcache",
    "staticgenerator",
)


@dataclass
class Line:
    """One line of the table: a layer, its URL, and for each round the requests a second and a CPU second."""

    name: str
    stack: str
    url: str
    path: str
    body_bytes: int
    pids: list[int]
    rates: list[float] = field(default_factory=list)
    per_cpu_s: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    @property
    def median_per_cpu_s(self) -> float:
        return statistics.median(self.per_cpu_s)


def pair(text: str) -> tuple[str, str]:
    """A layer and a stack, for argparse."""
    layer, equals, stack = text.partition("=")
    if not equals or layer not in LAYERS:
        raise argparse.ArgumentTypeError(f"write it as LAYER=STACK, not {text!r}; layers: {', '.join(LAYERS)}")
    return layer, stack


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", default="sqlite", help="as `python -m bench up` takes it (default: sqlite)")
    parser.add_argument(
        "--layer", action="append", choices=LAYERS, metavar="L", help="only this layer, besides none; can be repeated"
    )
    parser.add_argument(
        "--stack", action="append", type=pair, default=[], metavar="L=S", help="use another stack for that layer"
    )
    parser.add_argument("--rounds", type=count(), default=5, metavar="N", help="loads of each layer (default: 5)")
    parser.add_argument("--seconds", type=count(), default=3, metavar="N", help="seconds of each load (default: 3)")
    parser.add_argument(
        "--connections", type=count(), default=32, metavar="N", help="keep-alive connections (default: 32)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    args = parse(arguments)
    try:
        if (os.cpu_count() or 1) < 2:
            raise BenchError("this machine has one core; servers and load tool need one each")
        if programs.find(["wrk"]) is None:
            raise BenchError("program not installed: wrk; `make servers` installs it on Debian and Ubuntu")
        stacks = STACKS | dict(args.stack)
        layers = [layer for layer in LAYERS if not args.layer or layer in ("none", *args.layer)]
        with contextlib.ExitStack() as cleanup:
            lines = list(bring_up(layers, stacks, args.database, cleanup))
            os.sched_setaffinity(0, {LOAD_CORE})
            measure(lines, args)
    except BenchError as error:
        print(f"layers: {error}", file=sys.stderr)
        return 2
    print(table(lines))
    if args.json:
        args.json.write_text(json.dumps([as_json(line, lines) for line in lines], indent=1) + "\n")
    return 0


def bring_up(layers: list[str], stacks: dict[str, str], database: str, cleanup: contextlib.ExitStack) -> Iterator[Line]:
    """Start every layer that can run here, pinned to its core, its page cached; the limit comes with `none`."""
    project = open_project()
    rows = parse_database(project, database)
    for layer in layers:
        stack = stacks.get(layer, USUAL)
        if isinstance(case := resolve(project, stack, layer, database=rows), CannotRun):
            print(f"{layer} on {stack} left out: {case.reason}", file=sys.stderr)
            continue
        running = cleanup.enter_context(deployment.deployed(case))
        pids = list(running.pids.values())
        cpu_affinity.move({cpu_affinity.STACK: (SERVERS_CORE,)}, cpu_affinity.STACK, pids)
        bodies = [http.get(running.url, "/") for _ in range(8)]
        yield Line(layer, stack, running.url, "/", len(bodies[-1]), pids)
        if layer == "none":
            file = project.static_root / f"layers-limit-{os.getpid()}.html"
            file.write_bytes(bodies[-1])
            cleanup.callback(file.unlink, missing_ok=True)
            path = f"/static/{file.name}"
            yield Line(LIMIT, stack, running.url, path, len(http.get(running.url, path)), pids)


def measure(lines: list[Line], args: argparse.Namespace) -> None:
    """Request all of them in each round, in another order; the first round is a warm-up."""
    how = closed_loop(["/"], args.seconds, "wrk")
    for number in range(args.rounds + 1):
        for line in random.sample(lines, len(lines)):
            http.get(line.url, line.path)
            rate, per_cpu_s = loaded(how, how.job(line.url, (line.path,), args.connections, keep_alive=True), line.pids)
            if number:
                line.rates.append(rate)
                line.per_cpu_s.append(per_cpu_s)
        print(f"round {number} of {args.rounds}", file=sys.stderr)


def as_json(line: Line, lines: list[Line]) -> dict[str, object]:
    known = {item.name: item for item in lines}
    to, bar = BARS.get(line.name, (LIMIT, None))
    ratio = line.median / known[to].median
    return {
        "layer": line.name,
        "stack": line.stack,
        "body_bytes": line.body_bytes,
        "requests_per_s": [round(rate, 1) for rate in line.rates],
        "median_requests_per_s": round(line.median, 1),
        "requests_per_cpu_s": [round(rate, 1) for rate in line.per_cpu_s],
        "ratio_to": to,
        "ratio": round(ratio, 4),
        "ratio_per_cpu_s": round(line.median_per_cpu_s / known[to].median_per_cpu_s, 4),
        "bar": bar,
        "reached": None if bar is None else ratio >= bar,
    }


def table(lines: list[Line]) -> str:
    head = f"{'layer':17} {'stack':14} {'requests/s':>11} {'range':>19} {'ratio':>13} {'bar':>5} "
    rows = [f"{head}{'requests/CPU s':>15} {'ratio':>13}"]
    for line in sorted(lines, key=lambda item: item.median):
        figures = as_json(line, lines)
        between = f"{min(line.rates):,.0f} to {max(line.rates):,.0f}"
        bar = "" if figures["bar"] is None else f"{figures['bar']:g}"
        row = f"{line.name:17} {line.stack:14} {line.median:11,.0f} {between:>19} {ratio(figures, 'ratio')} {bar:>5} "
        row += f"{line.median_per_cpu_s:15,.0f} {ratio(figures, 'ratio_per_cpu_s')}"
        rows.append(row + ("  bar not reached" if figures["reached"] is False else ""))
    return "\n".join(rows)


def ratio(figures: dict[str, object], name: str) -> str:
    digits = 2 if figures["ratio_to"] == LIMIT else 1
    return f"{figures[name]:.{digits}f} x {figures['ratio_to']:5}".rjust(13)


if __name__ == "__main__":
    sys.exit(main())
