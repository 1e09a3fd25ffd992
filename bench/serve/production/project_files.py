"""Production files for a project other than the kit's own: the settings overlay, the packages of its servers, and its
variables; nothing of the instrument.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from bench import paths, programs
from bench.serve.catalog import compatibility
from bench.serve.deployment.case import Case
from bench.serve.deployment.layout import HostPaths
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import PACKAGES, PATH, with_path
from bench.serve.production import lock_file
from bench.serve.project import background, opened
from bench.serve.project.description import FILE
from bench.serve.project.findings.code import python_files
from bench.serve.project.opened import PREFIX, UnderTest
from bench.serve.project.run_command import SETTINGS

GIT_TIMEOUT_S = 10
# Below the rendered directory: what to install for its servers.
REQUIREMENTS = "requirements-servers.txt"
# Packages of the settings laid over a project; the second if no web server has the static files.
IMPORTED = ("django-environ", "whitenoise")
OPTION = "CACHING_"
# Django's command that removes ended sessions from the database.
SESSIONS = "clearsessions"
# Engines of databases with backups by the kit, the unit for the backups, and the file with its code.
BACKED_UP = re.compile("sqlite|spatialite|postg|psql")
BACKUPS = "backups.py"


def write(case: Case, folder: Path, requirements: str = "") -> list[Path]:
    """Write the packages and the requirements into `folder`; returns the files. None for a project that needs none.

    requirements  lines for the packages of its servers; by default each in the version of the kit's lock file
    """
    if not case.project.overlaid:
        return []
    packages = folder / PACKAGES
    for name in ("benchapp_overlay", "benchapp/serving", "benchapp/caching", "benchapp/login_limit"):
        paths.copy_of_kit(paths.KIT / name, packages / name)
    # The package above is the kit's own site.
    (packages / "benchapp" / "__init__.py").touch()
    lines = ["# The servers, what the settings laid over the project import, and what its layer needs."]
    if requirements:
        lines.append(requirements.strip())
    else:
        lines += _pinned(case)
    written = [path for path in packages.rglob("*") if path.is_file()]
    written.append(folder / REQUIREMENTS)
    written[-1].write_text("\n".join(lines) + "\n", "utf-8")
    for path in _locks(case):
        written.append(Path(shutil.copy(path, folder)))
    return written


def names(placed: Placed) -> dict[str, Any]:
    """Names about the project for the templates of a host's files.

    health, ready       paths of a site that serves, and of a site that can use its database, too
    checks              paths among them without a page
    application_module  the module that its servers import
    fail_level          words for `check --deploy` if a warning stops a deploy: of the kit's site with HTTPS
    backup, restore     the project's own commands of manage.py for backups of its database, or empty
    backed_up           aliases of the databases with backups by the kit; not_backed_up: of the others
    uploads             whether the project keeps files of visitors
    database_cache      whether a cache of the project is a table of its database
    jobs                scheduled commands: the unit, its purpose, its command, its schedule for systemd and for cron,
                        the tolerated delay, whether the job copies folders, whether it is the project's
    invalidate          a command for the shell that empties its layers
    python_env          variables of each of its processes that are in no file
    locks               the directory of the kit's lock files on the host
    cache_url           the variable that names the cache of a layer
    build               commands that follow collectstatic
    below               the folder of manage.py, in its repository; empty for the root
    variables           names in its `env_file`; requirements: the file that lists its packages, or empty
    brought             packages of its servers that the project installs itself
    sqlite              aliases of its databases that are SQLite files
    own_settings        the project's settings module, if nothing is laid over; else empty
    """
    case, places = placed.case, placed.places
    project = case.project
    checks = opened.health_paths(project)
    application = project.names[case.servers[0].interface]
    root = repository(project.folder)
    below = ""
    if root != project.folder:
        below = str(project.folder.relative_to(root))
    return {
        "overlaid": project.overlaid,
        "health": checks[0],
        "ready": checks[-1],
        "checks": checks,
        "application_module": application.partition(":")[0],
        "fail_level": _fail_level(case),
        "uploads": has_uploads(project),
        **_commands(project, places),
        "invalidate": _invalidate(case, places),
        "python_env": with_path({}, placed),
        "variables": sorted(project.project.env.keys() - project.project.from_manage.keys()),
        "below": below,
        "requirements": listing(project.folder) or listing(root),
        "brought": _brought(case),
        **_of_overlay(project, places),
        **_of_own_settings(project, case.servers[0].interface),
    }


def _of_overlay(project: UnderTest, places: HostPaths) -> dict[str, Any]:
    cache_url = compatibility.CACHE_URL
    if not project.overlaid:
        return {"locks": places.project, "cache_url": cache_url, "sqlite": [], "database_cache": False}
    (cache_url,) = opened.renamed({cache_url: ""})
    facts = project.facts
    databases = {"sqlite": sorted(facts.database_files), "database_cache": facts.has_database_cache}
    return {**databases, "locks": places.conf, "cache_url": cache_url}


def _of_own_settings(project: UnderTest, interface: str) -> dict[str, Any]:
    if project.overlaid or not project.recorded:
        return {"own_settings": "", "tells_loaded": True}
    return {"own_settings": project.project.settings, "tells_loaded": interface in project.facts.tells_loaded}


def _fail_level(case: Case) -> str:
    values = case.values
    is_required = values.env.get("BENCHAPP_HTTPS") == "1" and values.names["hsts_seconds"]
    if is_required and not case.project.recorded:
        return "--fail-level WARNING"
    return ""


def _invalidate(case: Case, places: HostPaths) -> str:
    """The command that empties the layers; `true` if none caches under keys of the kit."""
    for layer in case.layers:
        # A project's own templates and views have other keys.
        has_keys_of_kit = not layer.in_site or not case.project.overlaid
        if has_keys_of_kit and layer.caches != "nothing":
            return f"{places.name}-manage invalidatepages"
    return "true"


def has_uploads(project: UnderTest) -> bool:
    """True if the kit chooses the folder of uploads."""
    return project.overlaid and project.facts.media_root is not None


def _commands(project: UnderTest, places: HostPaths) -> dict[str, Any]:
    description = project.description
    build = [shlex.join(shlex.split(command)) for command in description.build]
    jobs = list(_jobs(project, places))
    covered, others = _backed_up(project)
    return {
        "backup": description.backup or "",
        "restore": description.restore or "",
        "backed_up": covered,
        "not_backed_up": others,
        "jobs": jobs,
        "build": build,
    }


def _backed_up(project: UnderTest) -> tuple[list[str], list[str]]:
    """The aliases of databases with and without backups by the kit; both empty for a project with a backup command."""
    if project.description.backup:
        return [], []
    facts = project.facts
    covered, others = [], []
    for alias, engine in sorted(facts.databases.items()):
        # A URL on the host may take the place of the default database.
        if alias != "default" and alias in facts.databases_in_memory:
            continue
        if BACKED_UP.search(engine):
            covered.append(alias)
        else:
            others.append(alias)
    return covered, others


# The hour of all jobs of the kit, with few visitors; not midnight, the hour of all other programs' jobs.
KITS = {"schedule": "daily", "cron": "23 3 * * *", "delay": "4h", "copies": "", "of_project": ""}


def _jobs(project: UnderTest, places: HostPaths) -> Iterator[dict[str, str]]:
    """The jobs of the kit, then those of the project."""
    manage = f"{places.names['python']} {places.project}/manage.py"
    settings = project.project.settings
    if project.overlaid:
        settings = opened.OVERLAY
    if backup := project.description.backup:
        words = background.unit_words(shlex.split(backup))
        about = "A backup of the database; copy it to another host"
        command = f"{manage} {words} {places.data}/backups --settings={settings}"
        yield {**KITS, "unit": f"{places.name}-backup", "about": about, "command": command}
    elif _backed_up(project)[0]:
        about = "A backup of each database; copy it to another host"
        command = f"{places.names['python']} {places.conf}/{BACKUPS} backup {places.data}/backups"
        yield {**KITS, "unit": f"{places.name}-backup", "about": about, "command": command}
    if has_uploads(project):
        about = "Copies new uploads; one that is removed stays in the copy, for a backup of the database may name it"
        command = f"/bin/cp -r --update --preserve=timestamps -T {places.media_root} {places.data}/backups-media"
        yield {**KITS, "unit": f"{places.name}-backup-media", "about": about, "command": command, "copies": "1"}
    if ends_sessions(project):
        about = "Removes sessions that have ended, which Django leaves in the database"
        command = f"{manage} {SESSIONS} --settings={settings}"
        yield {**KITS, "unit": f"{places.name}-{SESSIONS}", "about": about, "command": command}
    for name, job in project.description.jobs.items():
        command = background.unit_words(background.on_host(project, job.command, places.venv))
        about = f"The project's job {name}"
        own = {"schedule": job.schedule, "cron": job.cron, "delay": "", "of_project": "1"}
        yield {**KITS, **own, "unit": f"{places.name}-job-{name}", "about": about, "command": command}


def ends_sessions(project: UnderTest) -> bool:
    """True if the kit removes ended sessions: unless a job of the project does."""
    own = [job.command for job in project.description.jobs.values()]
    return SESSIONS in project.facts.commands and not any(SESSIONS in command for command in own)


def environment(env: dict[str, str], placed: Placed) -> dict[str, str]:
    """The project's environment on the host, with the kit's variables that have a reader on the host."""
    case, places = placed.case, placed.places
    project = case.project
    static = {"BENCHAPP_STATIC_ROOT": places.static_root.removeprefix(f"{places.project}/")}
    if not project.recorded:
        return env
    if project.plain:
        env = _with_reader(project, env)
    if not project.overlaid:
        return env | static
    read = _read_names()
    kept = {name: value for name, value in opened.renamed(env).items() if name in read or name.startswith(OPTION)}
    # Files in a release would disappear with the release.
    files = {alias: f"{places.data}/{alias}.sqlite3" for alias in sorted(project.facts.database_files)}
    allowed = project.description.allow
    variables = {SETTINGS: opened.OVERLAY, "OVERLAID_SETTINGS": project.project.settings}
    if case.servers[0].interface == "asgi":
        variables |= opened.overlaid_asgi(project)
    variables |= {name: value for name, value in project.project.from_manage.items() if name != PATH}
    variables |= static
    if files:
        variables["BENCHAPP_DATABASE_FILES"] = json.dumps(files, separators=(",", ":"))
    if has_uploads(project):
        variables["BENCHAPP_MEDIA_ROOT"] = places.media_root
    if allowed:
        variables["BENCHAPP_ALLOW"] = json.dumps(allowed, separators=(",", ":"))
    return variables | opened.page_environment(project) | kept


def _with_reader(project: UnderTest, env: dict[str, str]) -> dict[str, str]:
    """The variables, except for the kit's in no Python file of the project."""
    names: set[str] = set()
    for path in python_files(project.folder):
        if os.access(path, os.R_OK):
            names.update(re.findall(rf"\b{PREFIX}\w+", path.read_text("utf-8", "replace")))
    return {name: value for name, value in env.items() if name in names or not name.startswith(PREFIX)}


def _read_names() -> set[str]:
    """The variables of the settings laid over a project, options of layers aside."""
    variables: set[str] = set()
    for path in (paths.KIT / "benchapp_overlay").glob("*.py"):
        variables.update(re.findall(r'"(BENCHAPP_\w+)"', path.read_text("utf-8")))
    return variables


def repository(folder: Path) -> Path:
    """The root of the git repository with a project's manage.py; its own folder without a repository."""
    root = next((it for it in (folder, *folder.parents) if (it / ".git").exists()), folder)
    if root == folder:
        return folder
    file = str(folder.relative_to(root) / "manage.py")
    try:
        # A repository may surround the folder without tracking it.
        command = ["git", "-C", str(root), "ls-files", "--error-unmatch", "--", file]
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True, capture_output=True, timeout=GIT_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return folder
    return root


def listing(folder: Path) -> str:
    """The file that lists a project's packages, or an empty string."""
    if (folder / "requirements.txt").is_file():
        return "requirements.txt"
    described = folder / FILE
    table = {}
    if described.is_file():
        table = tomllib.loads(described.read_text("utf-8"))
    if not table.get("project", {}).get("dependencies"):
        return ""
    return FILE


def _wanted(case: Case) -> list[str]:
    """The distributions for the servers, the settings laid over the project and the layer, each once."""
    wanted = lock_file.of_servers(case.servers)
    if case.project.overlaid:
        wanted.append(IMPORTED[0])
    if case.project.overlaid and not case.web_server_has_static_files:
        wanted.append(IMPORTED[1])
    for service in case.services:
        wanted += service.requirements
    return list(dict.fromkeys(wanted))


def _brought(case: Case) -> list[str]:
    there = case.project.own_packages
    return [name for name in _wanted(case) if canonicalize_name(name) in there]


def missing(case: Case) -> list[str]:
    """The wanted distributions that the project lacks."""
    brought = _brought(case)
    return [name for name in _wanted(case) if name not in brought]


def _pinned(case: Case) -> list[str]:
    """A requirement for each missing distribution, in the version of the kit's lock file."""
    text = (paths.KIT / lock_file.LOCK).read_text("utf-8")
    versions = dict(re.findall(r"(?m)^([\w.-]+)==([^\s;\\]+)", text))
    requirements = []
    for name in missing(case):
        version = versions.get(name) or programs.distribution_version(name)
        requirements.append("==".join(filter(None, [name, version])))
    return requirements


def _locks(case: Case) -> list[Path]:
    """The kit's lock files in commands of the servers."""
    commands = " ".join(chain.from_iterable(server.host for server in case.servers))
    return [path for path in sorted(paths.KIT.glob("requirements-*.lock")) if path.name in commands]
