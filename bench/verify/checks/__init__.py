"""All checks, in the order of these modules and, within a module, of their definitions."""

from __future__ import annotations

from bench.verify.check import Check
from bench.verify.checks import (
    accounts,
    advisories,
    bodies,
    bytes,
    caching,
    client,
    connections,
    freshness,
    names,
    pages,
    privacy,
    resources,
    services,
    stampede,
    static,
    store,
    web,
)

MODULES = (
    *(pages, static, client, connections, accounts, bodies, resources),
    *(freshness, stampede, store, services, caching, privacy, web, bytes, names, advisories),
)
CHECKS = [item for module in MODULES for item in vars(module).values() if isinstance(item, Check)]
