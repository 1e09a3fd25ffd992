"""Promises of a deployment on several web hosts, proved on the hosts. All written rows are removed again."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from bench.serve.deployment.case import Case
from bench.serve.production.inventory import Host
from bench.verify import page_parser, wire
from bench.verify.check import Check
from bench.verify.checks.privacy import accounts_apart
from bench.verify.hosts import ssh
from bench.verify.hosts.deployed import TIMEOUT_S, HostsContext
from bench.verify.mismatch import Figure, Finding, Mismatch, NotTried
from bench.verify.outcome import Outcome
from bench.verify.rows import INVALIDATED_S, SLACK_S, Row, expected_pages, settle, waiting, warm, wrong_pages
from bench.verify.suite import Progress, findings, outcome
from bench.verify.visitor import secret_cookies
from bench.words import plural

# Requests for each web host, after which the front must have used it: each of its processes begins with the first host.
TURNS = 12
# Requests for a page after a write, for each web host.
READS = 2
# Requests for a page, for each web host, of which one may come from a cache.
REPEATS = 4
NO_LOG = "the access log of the front does not show which host responded"
STATIC = "cd {root} && find . -type f -exec sha256sum {{}} +"
MANIFEST = "./staticfiles.json"

Proof = Callable[[HostsContext], Iterator[Finding]]


def responds(deployed: HostsContext) -> Iterator[Finding]:
    """Each web host responds through the front, and all of them give the same pages."""
    front = deployed.front
    count = TURNS * len(deployed.web)
    deployed.log.begin()
    pages = {}
    for path in front.site.main_paths:
        pages[path] = [front.get(path, front.bypass) for _ in range(count)]
    requests = deployed.log.requests()
    for path, got in pages.items():
        statuses = {response.status for response in got} - {200}
        texts = {page_parser.normalised(response.text) for response in got}
        if statuses or len(texts) != 1:
            yield Mismatch(f"GET {path}, {count} times: one page", f"{len(texts)} pages, other statuses: {statuses}")
    if requests is None:
        raise NotTried(NO_LOG)
    for host in deployed.web:
        yield Figure(f"requests_{host.name}", requests[host.name])
        if not requests[host.name]:
            yield Mismatch(f"{host.name} responds to some of {count * len(pages)} requests", "none")


@dataclass
class WriteTimings:
    """Visibility of writes.

    took_s    seconds until the pages were right, for each write
    requests  requests for these pages afterwards, by web host, if known from the front's log
    """

    took_s: list[float] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)


def fresh(deployed: HostsContext) -> Iterator[Finding]:
    """A write on each web host in turn, and its removal, shows through the front and at all other hosts: soon, or
    within the time to live if the layer promises no more."""
    row = deployed.site.make_row()
    shown = WriteTimings()
    try:
        for host in deployed.web:
            _warm(deployed, row)
            row, old = deployed.site.at(host).written(row, "edit"), row
            yield from _shows(deployed, row, old, f"an edit on {host.name}", shown)
        last = deployed.web[-1]
        gone = deployed.site.at(last).written(row, "remove")
        yield from _shows(deployed, gone, row, f"a removal on {last.name}", shown)
        yield Figure("fresh_after_write_ms", round(max(shown.took_s, default=0) * 1000))
        yield from unproven(deployed, shown)
    finally:
        # Remove leftovers of a killed run, too.
        deployed.site.remove_probes()


def _warm(deployed: HostsContext, row: Row) -> None:
    """Get the pages into every cache."""
    for context in [*[deployed.front] * READS * len(deployed.web), *deployed.direct.values()]:
        warm(context, expected_pages(context, row, None))


def _shows(deployed: HostsContext, row: Row, old: Row, what: str, shown: WriteTimings) -> Iterator[Finding]:
    """True if all pages become right through the front, stay so, and are right at each host itself."""
    front, bound_s, began = deployed.front, _bound_s(deployed.case), time.monotonic()
    waited = waiting(front, row, old, bound_s or INVALIDATED_S, what)
    settle(front, waited, stale_until_expired=bool(bound_s))
    yield from wrong_pages(waited)
    shown.took_s.extend(item.done_s for item in waited if item.done_s is not None)
    # A page that is right at one host may be stale at another one until then.
    time.sleep(max(0.0, began + bound_s - time.monotonic()))
    places = [(f"after {what}", front, READS * len(deployed.web))]
    places += [(f"at {name} after {what}", context, 1) for name, context in deployed.direct.items()]
    deployed.log.begin()
    for right in expected_pages(front, row, old):
        for when, context, times in places:
            for _ in range(times):
                if not right.met(response := context.get(right.path)):
                    yield right.wrong(response, when)
    shown.requests.update(deployed.log.requests() or {})


def _bound_s(case: Case) -> float:
    """Seconds until a write shows at all hosts, if only the time to live ends a stale page; else 0."""
    if not any(layer.hosts_expire for layer in case.layers):
        return 0.0
    return float(case.settings["cache_seconds"]) * len(case.layers) + SLACK_S


def unproven(deployed: HostsContext, shown: WriteTimings) -> Iterator[Finding]:
    """Hosts without proof: they speak no HTTP, and the front, which has a cache, passed no request to them."""
    hosts = [host.name for host in deployed.web if host.name not in deployed.direct]
    if len(deployed.web) == 1 or not hosts:
        return
    without_requests = []
    for name in hosts:
        yield Figure(f"reads_{name}", shown.requests[name])
        if not shown.requests[name]:
            without_requests.append(name)
    if without_requests:
        why = "only the front can reach it, and its log has no such request after a write"
        raise NotTried(f"at {' and '.join(without_requests)}: {why}")


def apart(deployed: HostsContext) -> Iterator[Finding]:
    """Two accounts signed in through the front stay signed in at whichever host responds; neither they nor an anonymous
    visitor see another's contents."""
    return iter(accounts_apart.run(deployed.front))


def static(deployed: HostsContext) -> Iterator[Finding]:
    """All web hosts have the same static files, and the front serves each of them."""
    hosts = list(dict.fromkeys([*deployed.web, deployed.front_host]))
    with ThreadPoolExecutor(len(hosts)) as pool:
        files = dict(zip(hosts, pool.map(lambda host: _files(host, deployed.static_root), hosts), strict=True))
    first = deployed.web[0]
    for host in hosts[1:]:
        # Older releases leave files, too, and not the same ones on each host.
        both = files[host].keys() & files[first].keys()
        if host not in deployed.web:
            both.discard(MANIFEST)
        if wrong := [name for name in sorted(both) if files[host][name] != files[first][name]]:
            yield Mismatch(
                f"{host.name}: {wrong[0]} as on {first.name}", f"{plural(len(wrong), 'file')} with other bytes"
            )
    for host in deployed.web:
        if missing := sorted(files[host].keys() - files[deployed.front_host].keys() - {MANIFEST}):
            yield Mismatch(
                f"{deployed.front_host.name}: {missing[0]} of {host.name}", f"{plural(len(missing), 'file')} missing"
            )
    yield Figure("static_files", len(files[first]))
    yield from _served(deployed, files[first])


def _files(host: Host, root: str) -> dict[str, str]:
    """The SHA-256 of each static file on a host, by name; empty without the directory."""
    output = ssh.run(host, STATIC.format(root=root), TIMEOUT_S, "static files")
    files = {}
    for line in output.splitlines():
        digest, name = line.split(maxsplit=1)
        files[name] = digest
    return files


def _served(deployed: HostsContext, files: dict[str, str]) -> Iterator[Finding]:
    """Expect the front to serve the static files of the home page."""
    front = deployed.front
    home = front.get(front.site.url("home")).text
    named = [name for name in sorted(files) if f"{front.site.static_url}{name.removeprefix('./')}" in home]
    for name in named:
        path = front.site.static_url + name.removeprefix("./")
        response = wire.fetch(front.target, path)
        if response.status != 200 or hashlib.sha256(response.content).hexdigest() != files[name]:
            yield Mismatch(f"GET {path}: the file of {deployed.web[0].name}", f"status {response.status}, other bytes")
    if not named:
        raise NotTried("the home page names no static file")


def cookies(deployed: HostsContext) -> Iterator[Finding]:
    """No visitor gets another visitor's cookie, with a page or with a login form."""
    front = deployed.front
    for path in [*front.site.main_paths, front.site.url("login")]:
        seen: set[str] = set()
        for _ in range(REPEATS * len(deployed.web)):
            secrets = set(secret_cookies(front.get(path).all("Set-Cookie")))
            if again := secrets & seen:
                yield Mismatch(f"GET {path}: a cookie for each visitor", f"{min(again).partition('=')[0]} twice")
                break
            seen |= secrets


# Name -> group and promise.
PROOFS: dict[str, tuple[str, Proof]] = {
    "hosts-answer": ("behaviour", responds),
    "hosts-static": ("behaviour", static),
    "hosts-cookies": ("caching", cookies),
    "hosts-fresh": ("freshness", fresh),
    "hosts-apart": ("privacy", apart),
}


def prove(deployed: HostsContext, progress: Progress | None = None) -> list[Outcome]:
    """The outcome of each proof; raises BenchError if a host or the site's commands cannot be used any more."""
    checks = [_check(name, group, proof, deployed) for name, (group, proof) in PROOFS.items()]
    outcomes = []
    for number, check in enumerate(checks):
        if progress:
            progress(number, len(checks), check)
        outcomes.append(outcome(deployed.front, check, findings(check, deployed.front)))
    return outcomes


def _check(name: str, group: str, proof: Proof, deployed: HostsContext) -> Check:
    return Check(name, lambda _: proof(deployed), " ".join((proof.__doc__ or "").split()), group)


def promises(case: Case) -> list[str]:
    """The promise of each layer about several web hosts."""
    return [f"{layer.name}: {layer.several_hosts}" for layer in case.layers]
