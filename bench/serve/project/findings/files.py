"""Findings: static files, uploads and logs."""

from __future__ import annotations

from collections.abc import Iterator

from bench.serve.project.description import FILE
from bench.serve.project.findings.finding import (
    DESCRIPTION_DOCS,
    DOCS,
    ERROR,
    RENDER,
    SERVED_DOCS,
    WARNING,
    Examination,
    Occurrence,
    finding,
)
from bench.words import first_names

# What only STATIC_ROOT has, no other host collects.
FIND_STATIC = (
    "add the file to an app or to STATICFILES_DIRS, not only to STATIC_ROOT, or have build in [tool.benchapp] of "
    f"{FILE} make it (npm, compress)"
)
WHITENOISE = "whitenoise.middleware.WhiteNoiseMiddleware"
# The version of Django without these settings.
STORAGES_ONLY = (5, 1)
OLDER_STORAGES = {
    "STATICFILES_STORAGE": "static files have Django's usual storage, without hashed names",
    "DEFAULT_FILE_STORAGE": "uploads go to MEDIA_ROOT on this machine",
}
STATICFILES_DOCS = f"{DOCS}/ref/contrib/staticfiles/#manifeststaticfilesstorage"


@finding(
    "dangling-reference",
    ERROR,
    "add the file, remove the line, or let a storage of your own forgive it",
    link=STATICFILES_DOCS,
)
def dangling_reference(examination: Examination) -> Iterator[Occurrence]:
    """A style sheet or script refers to a missing file, such as a source map, and collectstatic fails."""
    for file, reference in examination.facts.dangling_references.items():
        yield Occurrence(f"{file} refers to {reference}, which no finder has: collectstatic fails", file)


@finding(
    "static-file-missing",
    WARNING,
    FIND_STATIC,
    link=f"{DOCS}/howto/static-files/#configuring-static-files",
    found_in=RENDER,
)
def static_file_missing(examination: Examination) -> Iterator[Occurrence]:
    """A template names a static file that no finder has."""
    facts = examination.facts
    if examination.project.description.build:
        return
    rendered: dict[str, str] = {}
    for page in facts.pages:
        rendered.update(page.missing_static)
    missing = {**rendered, **facts.missing_static}
    happens = "each will be a 404"
    if facts.static_strict:
        # Those of rendered pages are errors already.
        for name in rendered:
            del missing[name]
        happens = "each page that names one will be a 500"
    if missing:
        yield Occurrence(f"no finder has {first_names(list(missing))}: {happens}", next(iter(missing.values())))


@finding(
    "static-root",
    WARNING,
    "set it to a folder outside version control",
    setting="STATIC_ROOT",
)
def static_root(examination: Examination) -> Iterator[Occurrence]:
    """STATIC_ROOT is not set."""
    facts = examination.facts
    # WhiteNoise sends the files of the finders.
    uses_finders = WHITENOISE in facts.middleware and facts.settings.get("WHITENOISE_USE_FINDERS")
    if facts.static_url and not facts.static_root and not uses_finders:
        yield Occurrence(
            "STATIC_ROOT is not set: collectstatic has no folder that a web server could serve",
            examination.line("STATIC_URL"),
        )


@finding(
    "static-unhashed",
    WARNING,
    "use ManifestStaticFilesStorage, or WhiteNoise's",
    link=STATICFILES_DOCS,
    setting="STORAGES",
)
def static_unhashed(examination: Examination) -> Iterator[Occurrence]:
    """Names of static files do not change with their content."""
    facts = examination.facts
    if facts.static_url and not facts.static_hashed:
        yield Occurrence(
            "names of static files have no hash, so no browser may keep them for long",
            examination.line("STORAGES") or examination.line("STATICFILES_STORAGE") or examination.line("STATIC_URL"),
        )


@finding(
    "storage-ignored",
    WARNING,
    "name the storage in STORAGES",
    link=f"{DOCS}/releases/5.1/#features-removed-in-5-1",
)
def storage_ignored(examination: Examination) -> Iterator[Occurrence]:
    """The setting of a storage has no effect since Django 5.1."""
    statements = examination.facts.statements
    # A project for several versions of Django may have both.
    if examination.django_version < STORAGES_ONLY or "STORAGES" in statements:
        return
    for setting, happens in OLDER_STORAGES.items():
        if setting in statements:
            yield Occurrence(f"{setting} has no effect since Django 5.1: {happens}", examination.line(setting))


@finding(
    "endless-file-cache",
    WARNING,
    "give it a TIMEOUT, or use memcached or Redis",
    link=f"{DOCS}/topics/cache/#cache-arguments",
    setting="CACHES",
)
def endless_file_cache(examination: Examination) -> Iterator[Occurrence]:
    """Entries of a cache in files never expire."""
    for alias in examination.facts.endless_file_caches:
        yield Occurrence(
            f"TIMEOUT of {alias} is None: files never expire, and outlive each release",
            examination.line("CACHES", "TIMEOUT"),
        )


@finding(
    "uploads-not-served",
    WARNING,
    "",
    link=SERVED_DOCS,
    setting="MEDIA_URL",
)
def uploads_not_served(examination: Examination) -> Iterator[Occurrence]:
    """Not every stack serves uploaded files."""
    facts = examination.facts
    # A view responds on each stack.
    if not facts.media_root or facts.media_view:
        return
    where = examination.line("MEDIA_URL") or examination.line("MEDIA_ROOT")
    if facts.media_url and not examination.own_settings:
        yield Occurrence(
            f"{facts.media_url} is a 404 on stacks without a web server that serves files; Django serves none",
            where,
            "choose a stack with such a server, or a storage elsewhere",
        )
        return
    yield Occurrence(
        f"uploads in {facts.media_root} are served by no web server: MEDIA_URL is no separate path",
        where,
        'set MEDIA_URL = "/media/", unless a view or another server serves uploads',
    )


@finding(
    "uploads-in-release",
    WARNING,
    "read MEDIA_ROOT from a variable of the environment, and name a folder outside of releases",
    setting="MEDIA_ROOT",
)
def uploads_in_release(examination: Examination) -> Iterator[Occurrence]:
    """Uploads may disappear with a release."""
    facts = examination.facts
    if facts.media_root and examination.own_settings:
        yield Occurrence(f"uploads are in {facts.media_root}: inside a release they disappear with it")


@finding(
    "sendfile",
    WARNING,
    "respond with FileResponse, or name that place as `protected` in [tool.benchapp]",
    link=DESCRIPTION_DOCS,
)
def sendfile(examination: Examination) -> Iterator[Occurrence]:
    """A view has the web server send a file."""
    if where := examination.code.get("sendfile"):
        yield Occurrence(
            "a view has the web server send a file, which not every server does, and none without `protected`", where
        )


@finding(
    "log-file",
    WARNING,
    "log to the console in production: the logs of the servers have it",
    setting="LOGGING",
)
def log_file(examination: Examination) -> Iterator[Occurrence]:
    """Each process opens a log file when it starts."""
    if files := examination.facts.log_files:
        yield Occurrence(
            f"each process opens {files[0]} at start-up and crashes if it may not: on a host the code's folder is "
            "read-only, and a missing folder is not made"
        )
