"""The templates of production, all below deploy/production."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from bench import paths
from bench.errors import BenchError
from bench.serve.deployment.render import Engine

FOLDER = paths.DEPLOY / "production"
ENGINE = Engine(FOLDER)


def write(name: str, target: Path, context: dict[str, Any]) -> Path:
    """Render a template, `name` below deploy/production, to a file with the template's own mode; returns the file."""
    try:
        text = ENGINE.get_template(name).render(context)
    except jinja2.TemplateError as error:
        raise BenchError(f"{FOLDER / name}: {error}") from None
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")
    target.chmod((FOLDER / name).stat().st_mode)
    return target
