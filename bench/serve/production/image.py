"""The image of a project: packages, database driver, excluded files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.serve.catalog.manifest import Release
from bench.serve.deployment.case import Case
from bench.serve.deployment.placed import Placed
from bench.serve.production import lock_file, project_files, target
from bench.serve.project import environments, opened
from bench.serve.project.description import FILE
from bench.serve.project.opened import UnderTest

# For a project without the overlay: the Python of its image.
PYTHON = "3.13"
DATABASE_URL = "DATABASE_URL"
SETTINGS = ("DJANGO_SETTINGS_MODULE", "OVERLAID_SETTINGS")
DATABASE_FILES = "BENCHAPP_DATABASE_FILES"
# For PostgreSQL, in place of an SQLite file.
DRIVER = "psycopg2-binary"


def refusal(project: UnderTest) -> str:
    """The reason why no image can serve the project, or an empty string."""
    if not project.overlaid:
        named = lock_file.LOCK in project.description.image
        if named:
            return ""
        return f"without benchapp's settings name in image all files of the image, {lock_file.LOCK} among them"
    if not project_files.listing(project.folder):
        return f"no list of its packages for the image: add requirements.txt, or dependencies to its {FILE}"
    if others := sorted(project.facts.database_files.keys() - {"default"}):
        return f"its database {others[0]} is an SQLite file, and containers have no lasting disk: use a server"
    return ""


def uncontainable(placed: Placed) -> str:
    """The reason why no image can have these servers, or an empty string: each comes from Debian or from
    requirements.lock.
    """
    for server in placed.case.servers:
        in_venv = placed.case.programs[server.name].is_relative_to(placed.places.venv)
        if not server.packages and not in_venv:
            return f"{server.name} is in no Debian package and not in the virtual environment, so no image can have it"
        if not lock_file.pinned(lock_file.of_server(server)) and server.distribution:
            return f"{server.name} is not in {lock_file.LOCK}, so no image can have it"
    return ""


def requirements(case: Case) -> str:
    """The packages of the image, pinned by hash: of the servers, without the project's own list; with the kit's site,
    also of the site. Empty for another project with a lock file."""
    project = case.project
    if opened.is_kits(project.folder):
        return lock_file.pinned([*lock_file.of_site(), *lock_file.of_servers(case.servers)])
    if not project.overlaid:
        return ""
    # In place of an SQLite file.
    driver = []
    if "default" in project.facts.database_files:
        driver = [DRIVER]
    return lock_file.pinned([*project_files.missing(case), *driver], target.listed(project))


def names(project: UnderTest, host: dict[str, Any]) -> dict[str, Any]:
    """Names for the templates of the project's image, in addition to the names of a host's templates.

    env           the host's environment, without files of databases
    base          the image with the Python below the environment
    database_url  the variable that names the database
    left_out      files and folders of the project outside of every image
    image         parts of the code for the image; empty for all except `left_out`
    commands_env  environment of the project's commands during the build
    compiled      folders with Python to compile
    """
    description = project.description
    if not project.overlaid:
        values = {"database_url": DATABASE_URL, "commands_env": {"SECRET_KEY": "none"}, "compiled": "."}
        return {**values, "base": _base(PYTHON, host["release"]), "image": description.image}
    left_out = [".git", *environments.FOLDERS]
    if description.env_file:
        left_out.append(description.env_file)
    for file in map(Path, project.facts.database_files.values()):
        if file.is_relative_to(project.folder):
            left_out.append(str(file.relative_to(project.folder)))
    env = dict(host["env"])
    env.pop(DATABASE_FILES, None)
    commands_env = {}
    for name in (*SETTINGS, *project.project.from_manage):
        if name in env:
            commands_env[name] = env[name]
    (database_url,) = opened.renamed({DATABASE_URL: ""})
    return {
        "env": env,
        "image": description.image,
        "base": _base(".".join(project.facts.python.split(".")[:2]), host["release"]),
        "database_url": database_url,
        "left_out": list(dict.fromkeys(left_out)),
        "commands_env": commands_env | host["python_env"],
        "compiled": f". {host['conf']}/python",
    }


def _base(python: str, release: Release) -> str:
    return f"python:{python}-slim-{release.codename}"
