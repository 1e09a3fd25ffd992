"""Findings: lacks of a project with its own settings module on a host (`render --plain`, `doctor --plain`)."""

from __future__ import annotations

from collections.abc import Iterator

from bench.serve.machine.http import HEALTHY
from bench.serve.project.description import FILE
from bench.serve.project.findings.finding import (
    ERROR,
    PLAIN_DOCS,
    RENDER,
    SETTINGS_DOCS,
    WARNING,
    Examination,
    Occurrence,
    finding,
)

# Variable of `site.env` or `secrets.env` -> the effect if the settings do not read it.
EFFECTS = {
    "DATABASE_URL": "the database of secrets.env is not used; a file in a release disappears with it",
    "BENCHAPP_STATIC_ROOT": "servers do not find the collected static files",
    "ALLOWED_HOSTS": "the names in your file of values are refused, unless the settings have them",
    "DEBUG": "DEBUG=0 does not turn DEBUG off",
}


@finding(
    "variable-not-read",
    WARNING,
    "read it in the settings, or leave out --plain",
    link=PLAIN_DOCS,
)
def variable_not_read(examination: Examination) -> Iterator[Occurrence]:
    """The settings do not read a variable of the host's files."""
    for name in examination.unread:
        yield Occurrence(f"{name} is not read: {EFFECTS[name]}")


@finding(
    "health-check-missing",
    ERROR,
    f'add a view for any host and over plain HTTP, and name it: health = "/up/" in [tool.benchapp] of {FILE}',
    link=PLAIN_DOCS,
)
def health_check_missing(examination: Examination) -> Iterator[Occurrence]:
    """The project names no path for health checks, and benchapp's are in its settings."""
    if examination.plain and not examination.project.description.health_checks:
        yield Occurrence("no path is named for health checks, which deploys and load balancers request")


@finding(
    "health-check-refused",
    WARNING,
    "respond in a middleware before all others, and name the path in SECURE_REDIRECT_EXEMPT",
    link=PLAIN_DOCS,
    found_in=RENDER,
)
def health_check_refused(examination: Examination) -> Iterator[Occurrence]:
    """A health check refuses a load balancer, which requests an address over plain HTTP."""
    for path, status in examination.facts.checks_by_address.items():
        if status not in HEALTHY:
            yield Occurrence(f"GET {path} over plain HTTP, with an address as its Host, returns status {status}")


@finding(
    "start-not-told",
    WARNING,
    "make an empty file $BENCHAPP_LOADED/PID at the end of wsgi.py and asgi.py, if the variable is set",
    link=PLAIN_DOCS,
)
def start_not_told(examination: Examination) -> Iterator[Occurrence]:
    """A process does not tell when its application is loaded."""
    facts = examination.facts
    silent = [name for kind, name in facts.application.items() if kind not in facts.tells_loaded]
    if not examination.plain or not silent:
        return
    modules = dict.fromkeys(name.partition(":")[0] for name in silent)
    yield Occurrence(
        f"an import of {' or '.join(modules)} makes no file: a unit counts as started before its processes can serve, "
        "and a deploy may lose requests"
    )


@finding(
    "proxy-header-unread",
    WARNING,
    'SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https"), if a server in front terminates TLS',
    link=f"{SETTINGS_DOCS}secure-proxy-ssl-header",
    setting="SECURE_PROXY_SSL_HEADER",
)
def proxy_header_unread(examination: Examination) -> Iterator[Occurrence]:
    """Django takes each request of a server in front for plain HTTP."""
    if examination.plain and not examination.facts.settings.get("SECURE_PROXY_SSL_HEADER"):
        yield Occurrence("behind a server that terminates TLS each request counts as plain HTTP")
