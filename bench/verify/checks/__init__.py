"""All checks, in the order of these modules and, within a module, of their definitions."""

from __future__ import annotations

from importlib import import_module
from itertools import chain

from bench.verify.check import Check

MODULES = (
    *("pages", "static", "client", "connections", "accounts", "bodies", "resources"),
    *("freshness", "stampede", "files", "caching", "depends", "lasting", "privacy", "web", "bytes", "names"),
    *("published", "advisories"),
)
CONTENTS = [vars(import_module(f"{__name__}.{name}")).values() for name in MODULES]
CHECKS = [item for item in chain.from_iterable(CONTENTS) if isinstance(item, Check)]
