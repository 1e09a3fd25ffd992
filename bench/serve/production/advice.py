"""Advice printed with a render: values without effect, a cache that is too large, an unlikely port, and host names for
another site."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from msgspec import structs

from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.catalog.values import PRODUCTION, Values
from bench.serve.deployment import render
from bench.serve.deployment.case import Case, with_services_for_files
from bench.serve.production import one_host
from bench.serve.project import inspection
from bench.serve.project.opened import UnderTest
from bench.words import joined

HTTPS_PORT = 443
ALLOWED_HOSTS = "ALLOWED_HOSTS"
# A host has them in secrets.env; with these, settings that need them can be imported here.
SECRETS = {"SECRET_KEY": "none", "DATABASE_URL": "sqlite:////nonexistent/benchapp.sqlite3"}
# Variables of the default database: of benchapp's settings, and of a project's own.
DATABASE_URLS = {"BENCHAPP_DATABASE_URL", "DATABASE_URL"}
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


def lost_database(case: Case) -> str:
    """The reason why containers lose the rows of the default database, or an empty string."""
    if "default" not in case.project.facts.database_files or DATABASE_URLS & _environment(case).keys():
        return ""
    return (
        "its database default is an SQLite file, and containers have no lasting disk: name a server, as INSTALL.md says"
    )


def _environment(case: Case) -> dict[str, str]:
    """The variables that values and user give the site."""
    return {**case.values.env, **case.user_env}


def refused_hosts(case: Case) -> str:
    """The host names of a host's web server that Django refuses there, or of another site; empty without any.

    If the project's settings cannot be imported with the host's variables, the error instead.
    """
    project = case.project
    given = _environment(case).get(ALLOWED_HOSTS, "")
    served = _served_names(case)
    if project.recorded and not project.overlaid:
        variables = {**SECRETS, **project.project.env, "DEBUG": "0", **_environment(case)}
        try:
            facts = inspection.inspect(structs.replace(project.project, env=variables), pages=False)
        except BenchError as error:
            return f"with the host's {ALLOWED_HOSTS}={given} and DEBUG={variables['DEBUG']}, {error}"
        allowed = facts.allowed_hosts
        place = f"{ALLOWED_HOSTS} of {project.project.settings}"
        remedy = "add it, or read the variable of that name"
    else:
        allowed = tuple(host.strip() for host in given.split(","))
        place = ALLOWED_HOSTS
        remedy = f"write {ALLOWED_HOSTS} with it under [env] of a file of values"
    if refused := [name for name in served if not _is_allowed(name, allowed)]:
        has = ", ".join(allowed) or "empty"
        return f"server_names has {joined(refused)}, which {place} ({has}) refuses with 400; {remedy}"

    is_usual = given == catalog.read().values[PRODUCTION].env[ALLOWED_HOSTS]
    if project.recorded and project.overlaid and is_usual:
        return _other_names(project, served)
    return ""


def _served_names(case: Case) -> list[str]:
    """The host names whose requests reach Django: a redirect keeps the other names away, if a server has one."""
    names, other = str(case.settings["server_names"]).split(), case.settings["other_names"]
    if "other_names" not in render.names_used(case):
        return names
    return [name for name in names if name not in other]


def _other_names(project: UnderTest, served: Sequence[str]) -> str:
    """A note if the project names hosts, and none is served; else empty."""
    own = project.facts.public_hosts
    if not own or any(_is_allowed(name, own) for name in served):
        return ""
    where = project.facts.lines.get(ALLOWED_HOSTS, project.project.settings)
    return (
        f"server_names has {joined(served)}, and {ALLOWED_HOSTS} ({where}) has {joined(own)}: write the site's names "
        f"into server_names, and into {ALLOWED_HOSTS} under [env], of a file of values"
    )


def _is_allowed(name: str, allowed: Iterable[str]) -> bool:
    """True if ALLOWED_HOSTS covers a name of `server_names`; `*.example.org` and `.example.org` are all below one.

    https://docs.djangoproject.com/en/stable/ref/settings/#allowed-hosts
    """
    below = name[0] in "*."
    ending = "." + name.lstrip("*.").lower()
    for host in (host.lower() for host in allowed):
        if host == "*" or (host.startswith(".") and ending.endswith(host)):
            return True
        if host == ending[1:] and not below:
            return True
    return False
