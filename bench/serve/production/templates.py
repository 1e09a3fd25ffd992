"""The templates of production, all below deploy/production. Files in `.j2` are rendered, the others copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog.server import TEMPLATE, source
from bench.serve.deployment.render import TemplateEngine

FOLDER = paths.DEPLOY / "production"
ENGINE = TemplateEngine(FOLDER)


def write(name: str, target: Path, context: dict[str, Any]) -> Path:
    """Render a file, `name` below deploy/production without `.j2`, to one with the same mode; returns the new file."""
    path = source(FOLDER, name) or FOLDER / name
    text = path.read_text("utf-8")
    if path.suffix == TEMPLATE:
        try:
            text = ENGINE.get_template(str(path.relative_to(FOLDER))).render(context)
        except jinja2.TemplateError as error:
            raise BenchError(f"{path}: {error}") from None
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")
    target.chmod(path.stat().st_mode)
    return target
