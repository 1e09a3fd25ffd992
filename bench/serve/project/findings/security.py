"""Findings: ways for others to see or do what they may not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from bench.serve.project.findings.finding import (
    DOCS,
    RENDER,
    SETTINGS_DOCS,
    WARNING,
    Examination,
    Occurrence,
    finding,
)
from bench.serve.project.findings.wording import first_line, listed

# Django's per-site cache; and what adds Vary: Cookie to a response that comes out of it.
UPDATE_CACHE = "django.middleware.cache.UpdateCacheMiddleware"
VARIES_LATER = re.compile(r"(Session|Csrf\w*|Locale)\w*Middleware$")
SECURITY = "django.middleware.security.SecurityMiddleware"
CSRF = "django.middleware.csrf.CsrfViewMiddleware"
GZIP = "django.middleware.gzip.GZipMiddleware"
# What has another value in each process.
RANDOM = re.compile(r"\b(get_random_\w+|token_\w+|urandom|uuid4)\(")
# https://w3c.github.io/webappsec-referrer-policy/#referrer-policies
REFERRER_POLICIES = {
    "no-referrer",
    "no-referrer-when-downgrade",
    "origin",
    "origin-when-cross-origin",
    "same-origin",
    "strict-origin",
    "strict-origin-when-cross-origin",
    "unsafe-url",
}
# Of Django: the secret key is weak.
WEAK_KEY = "security.W009"
# Of Django: HSTS, the redirect to HTTPS, secure cookies, DEBUG and ALLOWED_HOSTS.
SET_ON_HOST = {f"security.W{number:03}" for number in (4, 8, 10, 11, 12, 16, 18, 20)}
# Of Django: HSTS for all subdomains, and the preload lists of browsers.
OF_SUBDOMAINS = {"security.W005", "security.W021"}


@finding(
    "shared-page",
    WARNING,
    "put vary_on_cookie or vary_on_headers inside of cache_page and UpdateCacheMiddleware first in MIDDLEWARE, or "
    "leave both to the layer page-cache",
    link=f"{DOCS}/topics/cache/#using-vary-headers",
    found_in=RENDER,
)
def shared_page(examination: Examination) -> Iterator[Occurrence]:
    """Django's cache serves one visitor's page to others."""
    if pages := [page for page in examination.pages if page.shared]:
        yield Occurrence(
            f"{listed(pages, 'shared')}: stored by Django's cache for everybody after the session, a cookie, a header "
            "or the client's address was read that Vary does not name: visitors get each other's pages",
            first_line(pages, "shared"),
        )


@finding(
    "shared-part",
    WARNING,
    "name in the tag what the part shows of its visitor, {% cache 300 menu request.user.pk %}, or move that out of it",
    link=f"{DOCS}/topics/cache/#template-fragment-caching",
    found_in=RENDER,
)
def shared_part(examination: Examination) -> Iterator[Occurrence]:
    """A part stored by {% cache %} shows one visitor's data to others."""
    if pages := [page for page in examination.pages if page.shared_part]:
        yield Occurrence(
            f"{listed(pages, 'shared-part')}: a part in {{% cache %}} reads the session, a cookie, a header or the "
            "client's address, and has no name for each visitor: visitors get each other's parts",
            first_line(pages, "shared-part"),
        )


def _per_site_cache(examination: Examination) -> tuple[list[str], list[str]]:
    """Middleware that adds Vary: Cookie, outside and inside of Django's per-site cache; empty without such a cache."""
    names = examination.facts.middleware
    if UPDATE_CACHE not in names:
        return [], []
    position = names.index(UPDATE_CACHE)
    outside = [name for name in names[:position] if VARIES_LATER.search(name)]
    inside = [name for name in names[position:] if VARIES_LATER.search(name)]
    return outside, inside


@finding(
    "per-site-cache-order",
    WARNING,
    "put UpdateCacheMiddleware first in MIDDLEWARE",
    link=f"{DOCS}/topics/cache/#order-of-middleware",
    setting="MIDDLEWARE",
)
def per_site_cache_order(examination: Examination) -> Iterator[Occurrence]:
    """Django's per-site cache stores pages before they vary by cookie."""
    outside, _ = _per_site_cache(examination)
    if outside:
        yield Occurrence(
            f"UpdateCacheMiddleware stores a page before {outside[0]} adds Vary: Cookie: visitors get each other's "
            "pages",
            examination.line("MIDDLEWARE", "UpdateCacheMiddleware"),
        )


@finding(
    "per-site-cache-private",
    WARNING,
    "mark these pages private (cache_control(private=True)), or use the layer page-cache instead",
    link=f"{DOCS}/topics/cache/#order-of-middleware",
    setting="MIDDLEWARE",
)
def per_site_cache_private(examination: Examination) -> Iterator[Occurrence]:
    """Django's per-site cache stores pages of visitors who are signed in."""
    outside, inside = _per_site_cache(examination)
    if inside and not outside:
        yield Occurrence(
            "UpdateCacheMiddleware also stores pages of signed-in visitors: their own writes stay invisible "
            "to them until a page expires",
            examination.line("MIDDLEWARE", "UpdateCacheMiddleware"),
        )


@finding(
    "secret-key-in-code",
    WARNING,
    "read it from a variable without a default, and write that variable into env_file; replace a key that was "
    "committed",
    setting="SECRET_KEY",
)
def secret_key_in_code(examination: Examination) -> Iterator[Occurrence]:
    """The code has the secret key in use, so its readers can sign sessions and reset passwords."""
    facts = examination.facts
    if not facts.secret_in_code or examination.own_settings:
        return
    key = "SECRET_KEY"
    if facts.secret_is_default:
        key = "the default of SECRET_KEY, which is in use here,"
    yield Occurrence(
        f"{key} is in the code: each reader of the code can sign sessions and links that reset passwords",
        facts.secret_in_code,
    )


@finding(
    "secret-key-random",
    WARNING,
    "give all processes one key, by a variable of env_file or the file that the settings read",
    setting="SECRET_KEY",
)
def secret_key_random(examination: Examination) -> Iterator[Occurrence]:
    """Each process may generate another secret key."""
    for statement in examination.facts.statements.get("SECRET_KEY", ())[-1:]:
        text = "\n".join(examination.source(statement.file)[statement.line - 1 : statement.end])
        if RANDOM.search(text):
            yield Occurrence(
                "if unset, every process generates its own key: the others reject the sessions that one has signed",
                str(statement),
            )


@finding(
    "any-host",
    WARNING,
    "name your own hosts",
    setting="ALLOWED_HOSTS",
)
def any_host(examination: Examination) -> Iterator[Occurrence]:
    """ALLOWED_HOSTS accepts any Host header."""
    if "*" in examination.facts.allowed_hosts:
        yield Occurrence(
            "ALLOWED_HOSTS has *: Django accepts any Host header, and a cache may store a page with a foreign name "
            "in it"
        )


@finding(
    "tls-not-known",
    WARNING,
    'set SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if that server overwrites the header, as the '
    "kit's do",
    setting="SECURE_PROXY_SSL_HEADER",
)
def tls_not_known(examination: Examination) -> Iterator[Occurrence]:
    """Settings expect HTTPS, and do not say how Django knows it behind a server that terminates TLS."""
    settings = examination.facts.settings
    names = ("SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")
    expecting = [name for name in names if settings.get(name)]
    if expecting and not settings.get("SECURE_PROXY_SSL_HEADER"):
        yield Occurrence(
            "behind a server that terminates TLS every request looks like plain HTTP: a redirect to HTTPS never ends, "
            "and forms are refused for their origin",
            examination.line(expecting[0]),
        )


@finding(
    "forwarded-host",
    WARNING,
    "leave USE_X_FORWARDED_HOST off if the server in front passes Host on, as the kit's do",
    setting="USE_X_FORWARDED_HOST",
)
def forwarded_host(examination: Examination) -> Iterator[Occurrence]:
    """Links get their host from a header that any client can send."""
    if examination.facts.settings.get("USE_X_FORWARDED_HOST"):
        yield Occurrence("the host of links is in a header that any client can send, and a cache may store such a page")


@finding("plain-origins", WARNING, "name origins that begin with https://", setting="CSRF_TRUSTED_ORIGINS")
def plain_origins(examination: Examination) -> Iterator[Occurrence]:
    """Forms are accepted from pages over plain HTTP."""
    facts = examination.facts
    origins = facts.settings.get("CSRF_TRUSTED_ORIGINS") or ()
    plain = [origin for origin in origins if origin.startswith("http://")]
    public = [origin for origin in plain if urlsplit(origin).hostname not in facts.local_hosts]
    if public:
        yield Occurrence(
            f"forms may come from pages over plain HTTP, which others can change on the way: {', '.join(public)}"
        )


@finding(
    "no-referrer",
    WARNING,
    'use "same-origin", Django\'s default, or "strict-origin-when-cross-origin"',
    setting="SECURE_REFERRER_POLICY",
)
def no_referrer(examination: Examination) -> Iterator[Occurrence]:
    """Browsers send `Origin: null` with each form, which Django refuses."""
    policy = examination.facts.settings.get("SECURE_REFERRER_POLICY") or ()
    values = policy
    if isinstance(policy, str):
        values = policy.split(",")
    # Of several, a browser takes the last that it knows.
    known = [value.strip() for value in values if value.strip() in REFERRER_POLICIES]
    if known[-1:] == ["no-referrer"] and {SECURITY, CSRF} <= set(examination.facts.middleware):
        yield Occurrence(
            "with the policy no-referrer, browsers send forms over HTTPS with Origin: null, which Django's CSRF "
            "protection refuses with 403"
        )


@finding(
    "breach",
    WARNING,
    "remove GZipMiddleware, and let the web server compress static files and pages without secrets",
    link=f"{DOCS}/ref/middleware/#module-django.middleware.gzip",
    setting="MIDDLEWARE",
)
def breach(examination: Examination) -> Iterator[Occurrence]:
    """Django compresses pages with secrets in them (BREACH)."""
    if GZIP in examination.facts.middleware:
        yield Occurrence(
            "GZipMiddleware compresses pages that have secrets and text of the visitor's choice: BREACH finds such "
            "secrets by the length of responses; Django's random padding makes that slower, not impossible",
            examination.line("MIDDLEWARE", "GZipMiddleware"),
        )


@finding(
    "signed-cookie-sessions",
    WARNING,
    "use cached_db or db, unless sessions have nothing that must not be read, sent again or kept after a log-out",
    link=f"{DOCS}/topics/http/sessions/#using-cookie-based-sessions",
    setting="SESSION_ENGINE",
)
def signed_cookie_sessions(examination: Examination) -> Iterator[Occurrence]:
    """Sessions are in cookies, so that no log-out ends a copied one."""
    if str(examination.facts.settings.get("SESSION_ENGINE", "")).endswith(".signed_cookies"):
        yield Occurrence(
            "sessions are in cookies: visitors can read them, a log-out does not end a copied one, and browsers drop "
            "those above 4,096 bytes"
        )


@finding(
    "unlimited-body",
    WARNING,
    "leave DATA_UPLOAD_MAX_MEMORY_SIZE at 2.5 MB, or set the size of your largest form; uploaded files do not count",
    setting="DATA_UPLOAD_MAX_MEMORY_SIZE",
)
def unlimited_body(examination: Examination) -> Iterator[Occurrence]:
    """A request body of any size is read into memory."""
    settings = examination.facts.settings
    if "DATA_UPLOAD_MAX_MEMORY_SIZE" in settings and settings["DATA_UPLOAD_MAX_MEMORY_SIZE"] is None:
        yield Occurrence("a request body of any size is read into memory: a few large ones exhaust the host's memory")


@finding(
    "csp-nonce-unused",
    WARNING,
    'add "django.template.context_processors.csp" to context_processors in TEMPLATES, and nonce="{{ csp_nonce }}" to '
    "scripts",
    link=f"{DOCS}/howto/csp/",
    setting="SECURE_CSP",
)
def csp_nonce_unused(examination: Examination) -> Iterator[Occurrence]:
    """The Content-Security-Policy has a nonce, and no template can print it."""
    if setting := examination.facts.csp_nonce_setting:
        yield Occurrence(
            f"{setting} has CSP.NONCE, and no context processor gives templates csp_nonce: browsers block the scripts "
            "that need it",
            examination.line(setting, "NONCE"),
        )


@finding(
    "secure-cookie-name",
    WARNING,
    "serve it with --set listener=tls, or use another name for measurements (env_file)",
    link=f"{SETTINGS_DOCS}session-cookie-name",
)
def secure_cookie_name(examination: Examination) -> Iterator[Occurrence]:
    """A browser takes a cookie over HTTPS only, so that nobody can log in over plain HTTP."""
    facts = examination.facts
    for setting, name in (("SESSION_COOKIE_NAME", facts.session_cookie), ("CSRF_COOKIE_NAME", facts.csrf_cookie)):
        if name.startswith(("__Secure-", "__Host-")):
            yield Occurrence(
                f"a browser takes {name} over HTTPS only: nobody can log in over plain HTTP", examination.line(setting)
            )


@finding(
    "cookie-domain",
    WARNING,
    "leave SESSION_COOKIE_DOMAIN and CSRF_COOKIE_DOMAIN out unless several host names share a login",
    link=f"{SETTINGS_DOCS}session-cookie-domain",
)
def cookie_domain(examination: Examination) -> Iterator[Occurrence]:
    """Cookies are for a domain, to which this machine does not belong."""
    for setting in ("SESSION_COOKIE_DOMAIN", "CSRF_COOKIE_DOMAIN"):
        if domain := examination.facts.settings.get(setting):
            yield Occurrence(
                f"cookies are for {domain}: no browser sends them to 127.0.0.1, so it is unset over plain HTTP here",
                examination.line(setting),
            )


@finding("django-security", WARNING, "see ./manage.py check --deploy", link=f"{DOCS}/ref/checks/#security")
def django_security(examination: Examination) -> Iterator[Occurrence]:
    """Django's own checks of security for production (each has its own id, such as security.W004)."""
    # With the kit's variables, a render for production sets these.
    if not examination.own_settings:
        for item in examination.django_checks():
            known = item.id == WEAK_KEY and examination.facts.secret_in_code
            if not item.id.startswith("security.") or known:
                continue
            remedy = item.remedy
            if item.id in SET_ON_HOST and not examination.plain:
                remedy = "nothing to do: benchapp's settings set it on a host, except with --plain"
            if item.id in OF_SUBDOMAINS:
                remedy = "decide it for all subdomains, which it concerns too; no deploy stops for it"
            yield replace(item, remedy=remedy)
