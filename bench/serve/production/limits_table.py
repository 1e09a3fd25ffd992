"""The values that an operator looks for first: file and words before each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.serve.deployment import render
from bench.serve.deployment.placed import Placed

# The name in the note, the value, and its unit.
LIMITS = {
    "Largest body of a request": ("max_body_mb", " MB"),
    "Static files": ("static_root", ""),
    "Longest time for a request": ("request_timeout_s", " s"),
    "Longest wait for a client": ("client_timeout_s", " s"),
    "Processes of the application": ("processes", ""),
}
# The number of words at a line's beginning that name its setting.
MAX_WORDS = 3
COMMENTS = ("#", ";", "//", '"""')


def rows(placed: Placed) -> list[tuple[str, str, str, str]]:
    """Rows of limit, value, file and first line with the value; file and line are empty if no file has the value."""
    limit_rows, case, places = [], placed.case, placed.places
    for what, (name, unit) in LIMITS.items():
        value = places.static_root
        if name != "static_root":
            value = str(case.settings[name])
        file, words = next(_lines(name, placed), ("", ""))
        if not file and name in {server.instances for server in case.servers}:
            file, words = "systemd/", "a unit for each"
        limit_rows.append((what, f"{value}{unit}", file, words))
    return limit_rows


def _lines(name: str, placed: Placed) -> Iterator[tuple[str, str]]:
    """Each line of a server's template with the value, if rendered, and each word of its command."""
    uses = re.compile(r"([^{}]*)\{\{[^{}]*\b" + name + r"\b")
    for server in placed.case.servers:
        texts = render.texts(server, placed)
        for file, templates in render.server_files(server, placed.case).items():
            for before in _before(uses, [path.read_text("utf-8") for path in templates]):
                if before in texts.get(file, "") and not before.lstrip().startswith(COMMENTS):
                    yield file, _directive(before)
        for index, word in enumerate(server.start):
            if list(_before(uses, [word])):
                option = word.partition("{{")[0] or server.start[index - 1]
                yield f"systemd/{placed.places.name}-{server.name}.service", _directive(option)


def _before(uses: re.Pattern[str], texts: list[str]) -> Iterator[str]:
    """The beginning of each line with the value."""
    for text in texts:
        for line in text.splitlines():
            if match := uses.match(line):
                yield match[1]


def _directive(before: str) -> str:
    return " ".join(re.sub(r'[=:"]', " ", before).split()[:MAX_WORDS])
