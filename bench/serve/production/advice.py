"""Advice printed with a render: values without effect, a cache that is too large, an unlikely port."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path

from bench.serve.catalog.values import Values
from bench.serve.deployment.case import Case, with_services_for_files
from bench.serve.production import one_host

HTTPS_PORT = 443
# A store is files, not memory.
STORE = "{{ store }}"


def idle_changes(case: Case, usual: Values) -> list[str]:
    """The user's changes from `usual` without effect on any file or service, such as `http2` for a server without
    HTTP/2.
    """
    names = []
    files: dict[str, str] = {}
    for name in case.values.changes:
        if name == "debian" and case.values.places:
            # The note names the release of Debian and its packages.
            continue
        changes = dict(case.values.changes)
        del changes[name]
        values = replace(case.values, names={**case.values.names, name: usual.names[name]}, changes=changes)
        before = with_services_for_files(replace(case, values=values))
        if before.settings[name] == case.settings[name] or before.services != case.services:
            continue
        files = files or _contents(case)
        if _contents(before) == files:
            names.append(name)
    return names


def _contents(case: Case) -> dict[str, str]:
    """The text of each file that a program reads, by its path."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        if case.values.places:
            written = one_host.write_for_host(case, folder, [one_host.NOTE])
        else:
            written = one_host.write_for_this_machine(case, folder, one_host.PLAIN_PORT)
        return {str(path.relative_to(folder)): path.read_text("utf-8").replace(directory, "") for path in written}


def too_large_cache(case: Case, memory_disk: bool) -> str:
    """The reason why a cache in memory leaves too little of the size for all else, or an empty string.

    memory_disk  whether stored files are in memory, too, as in containers
    """
    texts = []
    if memory_disk:
        texts = list(case.env.values())
    for server in case.servers:
        texts += server.start
    for service in case.services:
        texts += service.start
    for layer, server in product(case.layers, case.servers):
        texts += [path.read_text("utf-8") for path in layer.files(server).values()]
    named = [text for text in texts if "cache_memory_mb" in text and (memory_disk or STORE not in text)]
    size, memory_mb = case.size, int(case.settings["cache_memory_mb"])
    if not named or not size.is_limited or memory_mb <= size.burstable_mb // 2:
        return ""
    return f"size {size.name} has {size.burstable_mb} MB for all, and the cache may take {memory_mb} MB of them"


def wrong_port(case: Case) -> str:
    """The reason why the port of a site behind a load balancer is probably wrong, or an empty string."""
    values = case.values
    behind = values.names["listener"] == "behind" and values.places
    if not behind or one_host.production_places(values).port != HTTPS_PORT:
        return ""
    return f"listener=behind: plain HTTP on port {HTTPS_PORT}; another is `port` under [places] of a values file"
