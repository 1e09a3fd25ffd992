"""Findings: mail, channel layers and caches that the site uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.serve.project.findings.finding import DOCS, RENDER, SETTINGS_DOCS, WARNING, Examination, Occurrence, finding
from bench.serve.project.health import START

PER_PROCESS_CACHE = "LocMemCache"
PER_PROCESS_CHANNELS = "InMemoryChannelLayer"
# How databases say that the table of a cache is missing; and how a server says that it does not know HELLO.
NO_TABLE = re.compile("no such table|does not exist|doesn't exist|ORA-00942")
NO_HELLO = re.compile("unknown command.*HELLO", re.I)
# Backends of Django that send nothing to anybody.
SENDS_NOTHING = re.compile(r"^django\.core\.mail\.backends\.(console|filebased|locmem|dummy)\.")
MAIL_DOCS = f"{DOCS}/topics/email/#smtp-backend"


@finding(
    "channel-layer-per-process",
    WARNING,
    "use channels_redis, with the Redis of a variable",
    link="https://channels.readthedocs.io/en/stable/topics/channel_layers.html#in-memory-channel-layer",
    setting="CHANNEL_LAYERS",
)
def channel_layer_per_process(examination: Examination) -> Iterator[Occurrence]:
    """A channel layer is in the memory of one process."""
    for alias, backend in examination.facts.channel_layers.items():
        if examination.processes > 1 and backend.endswith(PER_PROCESS_CHANNELS):
            yield Occurrence(
                f"{PER_PROCESS_CHANNELS} ({alias}) is per process: with {examination.processes} processes, a message "
                "reaches only the visitors of one process",
                examination.line("CHANNEL_LAYERS", PER_PROCESS_CHANNELS),
            )


@finding(
    "cache-per-process",
    WARNING,
    "use memcached, Redis or the database",
    link=f"{DOCS}/topics/cache/#local-memory-caching",
    setting="CACHES",
)
def cache_per_process(examination: Examination) -> Iterator[Occurrence]:
    """A cache is in the memory of one process."""
    facts = examination.facts
    # Each project has one by default.
    is_in_use = facts.uses_cache or "CACHES" in facts.statements
    if not is_in_use or examination.own_settings:
        return
    processes = examination.processes
    if processes > 1 and any(PER_PROCESS_CACHE in backend for backend in facts.caches.values()):
        yield Occurrence(
            f"{PER_PROCESS_CACHE} is per process: with {processes} processes there are {processes} different caches"
        )


@finding(
    "redis-hello",
    WARNING,
    'add "protocol": 2 to its OPTIONS, upgrade the server to Redis 6 or newer, or install redis below 8',
    link="https://github.com/redis/redis-py/issues/4089",
    found_in=RENDER,
    setting="CACHES",
)
def redis_hello(examination: Examination) -> Iterator[Occurrence]:
    """The Redis server is too old for redis-py 8."""
    for name, problem in examination.facts.silent.items():
        if NO_HELLO.search(problem):
            yield Occurrence(
                f"{name} refuses each connection: redis-py 8 begins it with HELLO, which Redis knows since version 6"
            )


@finding(
    "service-down",
    WARNING,
    "start it, or name another for measurements, by a variable of env_file",
    link=f"{SETTINGS_DOCS}caches",
    found_in=RENDER,
)
def service_down(examination: Examination) -> Iterator[Occurrence]:
    """A cache, a storage or a further database does not respond."""
    for name, problem in examination.facts.silent.items():
        if NO_HELLO.search(problem):
            continue
        remedy = ""
        if command := examination.facts.cache_servers.get(name):
            remedy = START.format(command)
        if name.startswith("CACHES") and NO_TABLE.search(problem):
            remedy = "its table is missing: run ./manage.py createcachetable"
        yield Occurrence(f"{name} does not respond: {problem}", examination.line(name.partition("[")[0]), remedy)


def _sends_mail(examination: Examination) -> str:
    """The line of the project that sends mail, or has a way to; empty without one."""
    if line := examination.code.get("mail"):
        return line
    for url in examination.facts.urls:
        if "password_reset" in url or "password-reset" in url:
            return f"GET {url}"
    return ""


@finding(
    "mail-not-sent",
    WARNING,
    "name the SMTP backend and its server for production, by variables of env_file",
    link=MAIL_DOCS,
    setting="EMAIL_BACKEND",
)
def mail_not_sent(examination: Examination) -> Iterator[Occurrence]:
    """Mail of the site reaches nobody."""
    facts = examination.facts
    # From Django 6.1 on it says so itself.
    if any(check.id == "mail.E001" for check in facts.checks):
        return
    for setting, backend in facts.mail_backends.items():
        name = setting.partition("[")[0]
        if (kind := SENDS_NOTHING.match(backend)) and not examination.only_in_debug(name):
            place = {"console": "to the log of a server", "filebased": "into files"}.get(kind[1], "nowhere")
            yield Occurrence(
                f"mail goes {place}: nobody gets a link to reset a password ({setting} is {kind[1]})",
                examination.line(name, kind[1]),
            )


@finding(
    "mail-without-host",
    WARNING,
    "set EMAIL_HOST and its credentials, by variables of env_file",
    link=f"{SETTINGS_DOCS}email-host",
    setting="EMAIL_HOST",
)
def mail_without_host(examination: Examination) -> Iterator[Occurrence]:
    """The site sends mail by SMTP, and the settings name no server."""
    sender = _sends_mail(examination)
    by = ""
    if sender:
        by = f" ({sender})"
    for setting, host in examination.facts.mail_hosts.items():
        name = setting.partition("[")[0]
        is_chosen = name in examination.facts.statements
        if host or not (sender or is_chosen):
            continue
        where = examination.line("EMAIL_HOST") or examination.line(name) or examination.code.get("mail", "")
        yield Occurrence(
            f"the site sends mail{by} by SMTP, and the settings name no host: it fails unless this machine has a mail "
            "server",
            where,
        )
