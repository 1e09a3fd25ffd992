"""A case as deployed on the hosts of an inventory: targets of its front and each web host, and the site's commands on
the hosts, in the environment of the units."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.errors import BenchError
from bench.serve.deployment.case import Case
from bench.serve.deployment.layout import LOOPBACK
from bench.serve.deployment.placed import Placed
from bench.serve.machine.http import Route, Target
from bench.serve.machine.supervise import Address
from bench.serve.production import one_host
from bench.serve.production.inventory import Host, Inventory
from bench.serve.production.several_hosts import Deployed
from bench.serve.production.split import Split
from bench.serve.project.opened import UnderTest
from bench.verify.context import Accounts, Context
from bench.verify.hosts import host_record, ssh
from bench.verify.hosts.front_log import FrontLog
from bench.verify.hosts.host_record import FORWARDED
from bench.verify.hosts.ssh import tunnel
from bench.verify.rows import Row
from bench.verify.site import NOT_PLAIN, ROLES, Site, described_urls
from bench.verify.target_site import NO_COMMANDS, NoExpectedPages

TIMEOUT_S = 60.0
# `benchapp-manage` needs to be root.
MANAGE = ssh.AS_ROOT + "exec $sudo benchapp-manage shell -c {code}"
# The probes are installed for that one command: the servers have none.
WITH_PROBES = (
    "import os, sys; os.environ['BENCHAPP_PROBES'] = '1'; "
    "os.execv(sys.executable, [sys.executable, 'manage.py', *{words!r}])"
)


@dataclass(frozen=True)
class HostSite(Site):
    """The site of one web host; all hosts share its accounts and rows.

    Naming an inventory allows checks to make rows, which they remove.
    """

    may_write: bool = True
    host: Host | None = None

    @property
    def html_paths(self) -> list[str]:
        """The public pages of each kind, without renderings in process to compare with."""
        kinds = [kind for kind in self.urls if not kind.endswith(NOT_PLAIN) and kind not in (*ROLES, "health")]
        return self.paths(*kinds)

    def make_row(self) -> Row:
        """Make a new author with a post and a comment; raises BenchError on failure."""
        return Row(**self._command(["proberows", "make"], None))

    def written(self, row: Row, what: str) -> Row:
        """Do `what` to the row; returns the new state of the row."""
        return Row(**self.write_row(row.author, what, {}))

    def at(self, host: Host) -> HostSite:
        """The same site with commands run on another host."""
        return replace(self, host=host)

    def _command(self, words: list[str], env: Mapping[str, str] | None, *, reads: bool = True) -> Any:
        assert self.host
        script = MANAGE.format(code=shlex.quote(WITH_PROBES.format(words=words)))
        output = ssh.run(self.host, script, TIMEOUT_S, f"manage.py {words[0]}")
        if not reads:
            return None
        try:
            # Some versions of Django's shell first print their imports.
            return json.loads(output[output.index("{") :])
        except ValueError:
            why = f"printed {output[:80]!r}, not a JSON object"
            raise BenchError(f"{self.host.name}: manage.py {words[0]}: {why}") from None


def discover_site(host: Host, project: UnderTest) -> HostSite:
    """The site with its URLs from the host's command; raises BenchError on failure."""
    static_url, description = project.names["static_url"], project.description
    site = HostSite({}, NoExpectedPages(), Path(), static_url, NO_COMMANDS, description=description, host=host)
    return replace(site, urls=described_urls(description) | site._command(["siteurls"], None))


@dataclass(frozen=True)
class HostsContext:
    """A deployment on hosts, for the checks of several hosts.

    front   target of visitors' requests, through a tunnel to the front's port
    direct  each web host's application, requested from the same host; empty without HTTP
    site    the site, with commands run on the first web host
    log     requests passed by the front to each web host
    """

    case: Case
    web: tuple[Host, ...]
    front_host: Host
    front: Context
    site: HostSite
    log: FrontLog
    static_root: str
    direct: dict[str, Context] = field(default_factory=dict)


@contextmanager
def reached(case: Case, inventory: Inventory) -> Iterator[HostsContext]:
    """The deployment while the block lasts.

    Raises BenchError if the hosts have something else, or if a host or the site's commands cannot be used.
    """
    if not case.values.places:
        raise BenchError("--inventory verifies what production runs: its values have the places of a host")
    split = Split(case, inventory)
    placed = one_host.in_production(case, LOOPBACK)
    case, places = placed.case, placed.places
    there = host_record.read(inventory)
    host_record.must_be(there, [case.stack.name], [case.layer_name], "STACK")
    _require_same_values(there, placed)
    tls = placed.ends_tls
    with ExitStack() as cleanup:
        site = discover_site(split.web[0], case.project)
        https = case.values.env.get("BENCHAPP_HTTPS") == "1"
        target = Target("http", case.settings["server_name"], 80)
        headers: tuple[tuple[str, str], ...] = ()
        if https:
            target = Target("https", case.settings["server_name"], 443)
            # The web server accepts them from its trusted hosts, the application from the web server.
            headers = tuple(FORWARDED.items())
        to_front = headers
        if tls:
            to_front = ()
        ends = cleanup.enter_context(tunnel(split.front, LOOPBACK, places.port))
        accounts = Accounts(site, {})
        cleanup.callback(accounts.remove)
        context = Context(
            replace(target, via=Route(*ends, tls, to_front)),
            site,
            case.layers,
            accounts,
            stack=case.stack.name,
        )
        direct = {}
        for host, address in _doors(split, placed):
            ends = cleanup.enter_context(tunnel(host, address.host, address.port))
            direct[host.name] = replace(context, target=replace(target, via=Route(*ends, False, headers)), pages={})
        log = FrontLog(split.front, split.web, str(case.values.names["access_log"]))
        yield HostsContext(case, split.web, split.front, context, site, log, places.static_root, direct)


def _require_same_values(there: Deployed, placed: Placed) -> None:
    """Raise BenchError unless the hosts were rendered with these values, as far as visible to visitors."""
    case, places = placed.case, placed.places
    settings, log = case.settings, str(case.values.names["access_log"])
    expected = (settings["server_name"], places.port, places.static_root, log, settings["cache_seconds"])
    if expected != (urlsplit(there.url).netloc, there.port, there.static_root, there.access_log, there.cache_seconds):
        has = f"{there.url} at port {there.port} with cache_seconds={there.cache_seconds}"
        raise BenchError(f"the hosts have {has}; give the --set of their `render`")


def _doors(split: Split, placed: Placed) -> list[tuple[Host, Address]]:
    """Listening addresses of each web host's application, if it speaks HTTP and the front is on another host."""
    if not split.split:
        return []
    server = split.inner[-1]
    if server.speaks != "http":
        return []
    return [(host, split.addressed_from(host, placed).listens[server.name][0]) for host in split.web]
