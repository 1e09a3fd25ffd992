"""Production's files, rendered once for all tests of a module."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.serve.production import one_host
from tests.cases import production

Files = dict[str, str]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Files]:
    """A function for the text of each file of a production host, by its name below the rendered directory."""
    files_by_key: dict[tuple, Files] = {}

    def render(stack: str, layer: str = "none", **changes: object) -> Files:
        key = (stack, layer, *changes.items())
        if key not in files_by_key:
            folder: Path = tmp_path_factory.mktemp("rendered") / "out"
            written = one_host.write(production(stack, layer, **changes), folder)
            files_by_key[key] = {str(path.relative_to(folder)): path.read_text("utf-8") for path in written}
        return files_by_key[key]

    return render
