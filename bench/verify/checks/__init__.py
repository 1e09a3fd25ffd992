"""All checks, in the order of these modules and, within a module, of their definitions."""

from __future__ import annotations

from importlib import import_module
from itertools import chain

from bench.verify.check import Check

MODULES = (
    *("page_content", "static", "client", "client_connections", "accounts", "bodies", "request_costs"),
    *("freshness", "stampede", "stored_files", "cached_responses", "depends", "lasting", "privacy", "web"),
    *("bytes", "addresses", "published", "advisories"),
)
CONTENTS = [vars(import_module(f"{__name__}.{name}")).values() for name in MODULES]
CHECKS = [item for item in chain.from_iterable(CONTENTS) if isinstance(item, Check)]
