"""What the image of a project needs: its packages, its database's driver, what stays out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.project import under_test
from bench.project.description import ENVIRONMENTS, FILE
from bench.project.under_test import UnderTest
from bench.serve import overlaid

# Where the kit's settings are laid over none: the Python of its image, and the file that locks its packages.
PYTHON, LOCK = "3.13", "requirements.lock"
DATABASE_URL = "DATABASE_URL"
SETTINGS = ("DJANGO_SETTINGS_MODULE", "OVERLAID_SETTINGS")
DATABASE_FILES = "BENCHAPP_DATABASE_FILES"
# For PostgreSQL, in place of an SQLite file.
DRIVER = "psycopg2-binary"


def refusal(project: UnderTest) -> str:
    """Why no image can serve the project, or an empty string."""
    if not project.overlaid:
        named = LOCK in project.description.image
        return "" if named else f"with reads_environment name in image what it is made of, its {LOCK} among that"
    if not overlaid.listing(project.folder):
        return f"no list of its packages for the image: add requirements.txt, or dependencies to its {FILE}"
    if others := sorted(project.facts.database_files.keys() - {"default"}):
        return f"its database {others[0]} is an SQLite file, and containers have no disk of their own: use a server"
    return ""


def drivers(project: UnderTest) -> tuple[str, ...]:
    """The distribution for the database server that takes the place of an SQLite file."""
    return (DRIVER,) if project.overlaid and "default" in project.facts.database_files else ()


def names(project: UnderTest, host: dict[str, Any]) -> dict[str, Any]:
    """What the templates of an image and its containers can name of the project, besides those of a host's files.

    env               that of a host, without files of databases
    base              the image with the Python below its environment
    database_url      the variable that names its database
    secret_names      variables of its settings that are secrets
    without_database  a path that answers without it, if there is one
    left_out          files and folders of the project that no image gets
    image             what the image gets of its code; empty for all but what is left out
    commands_env      environment of its commands while the image is built
    compiled          folders whose Python is compiled then
    unlisted          the file whose dependencies are to be made a list of packages, if they are
    """
    said = project.description
    found: dict[str, Any] = {
        "packages_step": f"containers/_packages.{'project' if project.overlaid else 'lock'}",
        "context_lines": f"containers/_context.{'named' if said.image else 'whole'}",
        "image": said.image,
        "secret_names": host["variables"] or ["SECRET_KEY"],
    }
    found |= {"without_database": [host["health"]] if host["health"] != host["ready"] else []}
    if not project.overlaid:
        env = {"SECRET_KEY": "none"}
        return {**found, "base": _base(PYTHON), "database_url": DATABASE_URL, "commands_env": env, "compiled": "."}
    files = [Path(file) for file in project.facts.database_files.values()]
    inside = [str(file.relative_to(project.folder)) for file in files if file.is_relative_to(project.folder)]
    env = {name: value for name, value in host["env"].items() if name != DATABASE_FILES}
    return {
        **found,
        "env": env,
        "base": _base(".".join(project.facts.python.split(".")[:2])),
        "database_url": next(iter(under_test.renamed({DATABASE_URL: ""}))),
        "left_out": list(dict.fromkeys([".git", *ENVIRONMENTS, *filter(None, [said.env_file]), *inside])),
        "commands_env": {name: env[name] for name in SETTINGS} | host["python_env"],
        "compiled": f". {host['conf']}/python",
        "unlisted": [FILE] if host["requirements"] == FILE else [],
    }


def _base(python: str) -> str:
    return f"python:{python}-slim-bookworm"
