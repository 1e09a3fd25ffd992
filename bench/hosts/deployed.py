"""A case as it is deployed on the hosts of an inventory: how its front and each web host are asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from bench.errors import BenchError
from bench.hosts import host_record, host_site
from bench.hosts.front import FORWARDED
from bench.hosts.host_site import HostSite
from bench.hosts.sampling import Sampler, sampling
from bench.hosts.ssh import tunnel
from bench.machine.supervise import Address
from bench.production import host as one_host
from bench.production.hosts import Deployed
from bench.production.inventory import Host, Inventory
from bench.production.split import Split
from bench.serve import render
from bench.serve.case import Case
from bench.serve.layout import LOOPBACK, Places
from bench.serve.render import Wiring
from bench.verify.context import Accounts, Context
from bench.verify.wire import Target, Via


@dataclass(frozen=True)
class Reached:
    """A deployment on hosts as the checks of several hosts work with it.

    front    asked as visitors do, through a tunnel to its own port
    direct   each web host's application, asked by that host itself; empty where it speaks no HTTP
    site     the site, its commands run on the first web host
    sampler  counts the requests that the front passes to each web host
    """

    case: Case
    web: tuple[Host, ...]
    front_host: Host
    front: Context
    site: HostSite
    sampler: Sampler
    static_root: str
    direct: dict[str, Context] = field(default_factory=dict)


@contextmanager
def reached(case: Case, inventory: Inventory) -> Iterator[Reached]:
    """The deployment while the block lasts.

    Raises BenchError when it is not what the hosts have, and when a host or the site's commands cannot be used.
    """
    if not case.values.places:
        raise BenchError("--inventory verifies what production runs: its values have the places of a host")
    split = Split(case, inventory)
    case, places, wiring = one_host.in_production(case, LOOPBACK)
    there = host_record.read(inventory)
    host_record.must_be(there, [case.stack.name], [case.layer_name], "STACK")
    _require_same_values(there, case, places)
    tls = render.ends_tls(case)
    with ExitStack() as cleanup:
        site = host_site.learn(split.web[0], case.project)
        https = case.values.env.get("BENCHAPP_HTTPS") == "1"
        target = Target("https" if https else "http", case.settings["server_name"], 443 if https else 80)
        # The web server takes them from the hosts that it trusts, the application from the web server.
        headers = tuple(FORWARDED.items()) if https else ()
        ends = cleanup.enter_context(tunnel(split.front, LOOPBACK, places.port))
        accounts = Accounts(site, {})
        cleanup.callback(accounts.remove)
        context = Context(
            replace(target, via=Via(*ends, tls, () if tls else headers)),
            site,
            case.layers,
            accounts,
            stack=case.stack.name,
        )
        direct = {}
        for host, address in _doors(split, wiring):
            ends = cleanup.enter_context(tunnel(host, address.host, address.port))
            direct[host.name] = replace(context, target=replace(target, via=Via(*ends, False, headers)), pages={})
        sampler = cleanup.enter_context(sampling(inventory, case.values.names["access_log"]))
        yield Reached(case, split.web, split.front, context, site, sampler, places.static_root, direct)


def _require_same_values(there: Deployed, case: Case, places: Places) -> None:
    """Raise BenchError unless the hosts were rendered with these values, as far as visitors meet them."""
    settings, log = case.settings, str(case.values.names["access_log"])
    asked = (settings["server_name"], places.port, places.static_root, log, settings["cache_seconds"])
    if asked != (urlsplit(there.url).netloc, there.port, there.static_root, there.access_log, there.cache_seconds):
        has = f"{there.url} at port {there.port} with cache_seconds={there.cache_seconds}"
        raise BenchError(f"the hosts have {has}; give the --set of their `render`")


def _doors(split: Split, wiring: Wiring) -> list[tuple[Host, Address]]:
    """Where each web host's application listens, if it speaks HTTP and the front is on another host."""
    server = split.inner[-1] if split.split else None
    if server is None or server.speaks != "http":
        return []
    return [(host, split.wiring(wiring, host).listens[server.name][0]) for host in split.web]
