"""All checks, in the order of these modules and, within a module, of their definitions."""

from __future__ import annotations

from bench.verify.check import Check
from bench.verify.checks import (
    accounts,
    advisories,
    bodies,
    caching,
    connections,
    content,
    database,
    files,
    freshness,
    full,
    headers,
    hosts,
    inside,
    killed,
    logs,
    names,
    pages,
    paths,
    privacy,
    service,
    stampede,
    static,
    web,
)

MODULES = (
    pages,
    static,
    paths,
    hosts,
    inside,
    headers,
    connections,
    accounts,
    bodies,
    database,
    logs,
    freshness,
    full,
    stampede,
    killed,
    files,
    service,
    advisories,
    caching,
    privacy,
    web,
    content,
    names,
)
CHECKS = tuple(item for module in MODULES for item in vars(module).values() if isinstance(item, Check))
