"""The collected static files: what servers must serve below STATIC_URL."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from bench.verify.site import Site

# The hash that collectstatic puts into a name.
HASHED = re.compile(r"\.[0-9a-f]{8,}(\.[^./]+)$")


def source(site: Site, path: str) -> bytes | None:
    """The content of the project's file, as it is or as it was collected; None when there is no such file."""
    name = unquote(path.partition("?")[0].removeprefix(site.static_url))
    plain = HASHED.sub(r"\1", name)
    # collectstatic rewrites the addresses inside style sheets.
    names = [name] if plain != name and plain.endswith(".css") else [name, plain]
    for each in names:
        file = Path(site.static, each)
        if file.is_file() and file.resolve().is_relative_to(site.static.resolve()):
            return file.read_bytes()
    return None


def is_compressed(site: Site, path: str) -> bool:
    """Whether collectstatic wrote a compressed copy beside a file, as it has to on a strict site."""
    name = unquote(path.partition("?")[0].removeprefix(site.static_url))
    return site.description.strict or Path(site.static, f"{name}.gz").is_file()
