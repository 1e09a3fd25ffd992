"""The log files of a production host, and how each is rotated: by the server that writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.catalog.manifest import Server
from bench.serve import render
from bench.serve.case import Case
from bench.serve.units import Unit

OFF = "off"
ACCESS = "{{ access_log }}"
# Other logs, as templates name them.
OTHER = re.compile(r"(\{\{ logs \}\}/[\w.-]+)")


@dataclass(frozen=True)
class Written:
    """The log files of one server that does not rotate them itself.

    reopen  the command after which it writes new ones; empty: it cannot
    """

    files: tuple[str, ...]
    user: str
    reopen: str


def names(case: Case, found: Sequence[Unit], logs: str) -> dict[str, Any]:
    """What the host's files can name of its logs.

    reopened_logs, copied_logs  those whose writer opens new ones, and those that are copied and emptied
    unlogged                    the servers that answer without a line in a log
    """
    rotated = list(written(case, found, logs))
    front = case.servers[-1]
    return {
        "reopened_logs": [log for log in rotated if log.reopen],
        "copied_logs": [log for log in rotated if not log.reopen],
        "unlogged": [front.name] if front not in case.stack.servers else [],
    }


def written(case: Case, found: Sequence[Unit], logs: str) -> Iterator[Written]:
    """The log files of each server that has a unit among those `found`; `logs` is their directory."""
    units = {unit.name: unit for unit in found}
    for server in case.servers:
        unit = units.get(f"benchapp-{server.name}")
        files = [name.replace("{{ logs }}", logs) for name in _files(server, case)]
        files = [name.replace(ACCESS, str(case.settings["access_log"])) for name in files]
        if unit and files and not server.rotates:
            yield Written(tuple(files), unit.user, _reopen(server, unit))


def _files(server: Server, case: Case) -> list[str]:
    texts = [path.read_text("utf-8") for found in render.server_files(server, case).values() for path in found]
    found = sorted({name for text in texts for name in OTHER.findall(text)})
    # One behind another web server has the file for it, too, and does not read it.
    outermost = server == case.stack.servers[-1] and case.settings["access_log"] != OFF
    return found + ([ACCESS] if outermost and any(ACCESS in text for text in texts) else [])


def _reopen(server: Server, unit: Unit) -> str:
    return f"systemctl kill --kill-who=main --signal={server.reopen} {unit.name}.service" if server.reopen else ""
