"""Mistakes in the files that servers and the site read, one line each: a check or a fault notices each by its name."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass

import pytest

from bench import paths
from tests.deploy.running import command, runnable
from tests.projects import open_folder

# The parts of a clone in which `verify` and `faults` run.
PARTS = ("bench", "benchapp", "benchapp_overlay", "config", "deploy", "fixtures", "static", "templates")
FILES = ("manage.py", "pyproject.toml", "requirements.lock")

VARNISH = "deploy/servers/varnish/varnish.vcl.j2"
NGINX = "deploy/servers/nginx/nginx.conf.j2"
MICROCACHE = "deploy/layers/nginx-microcache/nginx.conf.j2"
MEMCACHED = "deploy/layers/nginx-memcached/nginx.conf.j2"
HTTPD = "deploy/servers/apache/httpd.conf.j2"
APACHE = "deploy/layers/apache-cache/httpd.conf.j2"
UWSGI = "deploy/layers/uwsgi-cache/uwsgi.ini.j2"
STATIC = "deploy/layers/staticgenerator/nginx.conf.j2"
WATCHED = "benchapp/caching/watched.py"
READS = "benchapp/caching/request_reads.py"
RULE = "benchapp/caching/cacheability.py"
LIMITS = "benchapp/login_limit/limits.py"

TWO_NAMES = ("--set", "server_names=127.0.0.1 a.example")
PAGE_CACHE = "nginx-gunicorn~page-cache"
ON_VARNISH = "nginx-gunicorn~varnish"
ON_MICROCACHE = "nginx-gunicorn~nginx-microcache"
ON_MEMCACHED = "nginx-gunicorn~nginx-memcached"
ON_APACHE = "apache-modwsgi~apache-cache"
ON_UWSGI = "nginx-uwsgi~uwsgi-cache"
ON_STATIC = "nginx-gunicorn~staticgenerator"


@dataclass(frozen=True)
class Mistake:
    """One line of a file, what stands there by mistake, and the check or the fault that notices it.

    case     STACK~LAYER
    changes  more words of the command
    """

    file: str
    right: str
    wrong: str
    noticed_by: str
    case: str
    changes: tuple[str, ...] = ()


CHECKS = {
    # Of web servers.
    "forwarded-for-passed-on": Mistake(
        NGINX,
        "proxy_set_header X-Forwarded-For   $remote_addr;",
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "forwarded-for",
        "nginx-gunicorn~none",
    ),
    "forwarded-for-left": Mistake(
        HTTPD, '"X-Real-IP", "X-Forwarded-For",', '"X-Real-IP",', "forwarded-for", "apache-modwsgi~none"
    ),
    "scheme-of-a-client": Mistake(
        NGINX,
        "proxy_set_header X-Forwarded-Proto {{ client_scheme }};",
        "proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto;",
        "client",
        "nginx-gunicorn~none",
    ),
    "port-lost": Mistake(
        NGINX,
        "proxy_set_header Host              $http_host;",
        "proxy_set_header Host $host;",
        "client",
        "nginx-gunicorn~none",
    ),
    "files-without-types": Mistake(
        NGINX, "    include /etc/nginx/mime.types;\n", "", "static-types", "nginx-gunicorn~none"
    ),
    "plain-names-for-a-year": Mistake(
        NGINX, '"" "max-age=60, public"', '"" "max-age=315360000, public"', "static-lifetime", "nginx-gunicorn~none"
    ),
    "bodies-without-a-limit": Mistake(
        NGINX,
        "client_max_body_size {{ max_body_mb }}m;",
        "client_max_body_size 0;",
        "chunked-limit",
        "nginx-gunicorn~none",
    ),
    "security-headers-lost": Mistake(
        MEMCACHED, "page_headers.items()", "static_headers.items()", "kept-headers", ON_MEMCACHED
    ),
    "age-lost": Mistake(
        "benchapp/caching/django_cache.py",
        'if "max-age" in headers',
        'if "no-age" in headers',
        "own-lifetime",
        PAGE_CACHE,
    ),
    "each-renders": Mistake(MICROCACHE, "_cache_lock on;", "_cache_lock off;", "stampede", ON_MICROCACHE),
    "static-root-open": Mistake(
        NGINX,
        "        location {{ static_url }} {",
        "        location {{ static_url.rstrip('/') }} {",
        "path-escapes",
        PAGE_CACHE,
    ),
    "purge-by-anyone": Mistake(
        VARNISH,
        'local.socket != "purge"',
        'local.socket != "purge" && req.http.Host !~ "127"',
        "purge-door",
        ON_VARNISH,
    ),
    "stale-for-long": Mistake(
        VARNISH, "grace = {{ cache_seconds // 2 }}s", "grace = {{ cache_seconds * 2 }}s", "time-kept", ON_VARNISH
    ),
    "password-looked-up": Mistake(VARNISH, "req.http.Authorization || ", "", "authorization", ON_VARNISH),
    "type-looked-up": Mistake(VARNISH, " || req.http.Content-Type) {", ") {", "depends-headers", ON_VARNISH),
    "unmarked-stored": Mistake(VARNISH, 'beresp.http.X-Cacheable != "1" || ', "", "nonce", ON_VARNISH),
    "vary-lost": Mistake(VARNISH, "set resp.http.Vary = resp.http.X-Vary;", "", "headers-kept", ON_VARNISH),
    "script-s-request-looked-up": Mistake(
        MICROCACHE,
        "_cache_bypass $has_session $bypasses $not_a_page",
        "_cache_bypass $has_session $not_a_page",
        "partial-requests",
        ON_MICROCACHE,
    ),
    "rule-not-asked": Mistake(MICROCACHE, "$unmarked { default 1; 1", "$unmarked { 1", "nonce", ON_MICROCACHE),
    "own-time-to-live": Mistake(MICROCACHE, "Vary X-Accel-Expires;", "Vary;", "time-kept", ON_MICROCACHE),
    "file-never-looked-at": Mistake(
        MICROCACHE, "open_file_cache_valid 0;", "open_file_cache_valid 60s;", "told-of-writes", ON_MICROCACHE
    ),
    "key-of-another-name": Mistake(
        MICROCACHE, "_cache_key $request_uri", "_cache_key $scheme$request_uri", "told-of-writes", ON_MICROCACHE
    ),
    "times-of-nginx-shown": Mistake(
        MICROCACHE,
        "{{ upstream_module }}_hide_header Cache-Control;\n            add_header Cache-Control"
        " $own_cache_control always;",
        "",
        "headers-kept",
        ON_MICROCACHE,
    ),
    "password-given-a-page": Mistake(
        MEMCACHED, "$http_authorization$http_hx_request", "$http_hx_request", "authorization", ON_MEMCACHED
    ),
    "charset-lost": Mistake(MEMCACHED, "            charset utf-8;\n", "", "headers-kept", ON_MEMCACHED),
    "session-given-a-page": Mistake(
        STATIC,
        "map $http_cookie $has_session { ~{{ session_cookie_re }} 1; }",
        'map "" $has_session { default ""; }',
        "signed-in-not-kept",
        ON_STATIC,
    ),
    "generation-ignored": Mistake(
        APACHE,
        'RequestHeader set Cookie "expr=generation=%{file:{{ store }}/purged}"',
        'RequestHeader set Cookie "expr=generation=1"',
        "told-of-writes",
        ON_APACHE,
    ),
    "rule-not-asked-by-apache": Mistake(
        APACHE, "resp('X-Cacheable') != '1' && ", "resp('X-Cacheable') == '2' && ", "nonce", ON_APACHE
    ),
    "browser-told-to-keep": Mistake(UWSGI, "route-run = delheader:Expires\n", "", "headers-kept", ON_UWSGI),
    "type-given-a-page": Mistake(
        UWSGI, "route-if-not = empty:${CONTENT_TYPE} goto:application\n", "", "depends-headers", ON_UWSGI
    ),
    # Of the rule of all layers.
    "address-not-watched": Mistake(
        WATCHED, '{"HTTP_ACCEPT_ENCODING"}', '{"HTTP_ACCEPT_ENCODING", "REMOTE_ADDR"}', "depends-address", PAGE_CACHE
    ),
    "peer-not-watched": Mistake(
        WATCHED, '{"type", "asgi",', '{"client", "type", "asgi",', "depends-address", "uvicorn~page-cache"
    ),
    "host-not-watched": Mistake(
        WATCHED,
        '        reads.note("host")\n        reads.is_paused',
        "        reads.is_paused",
        "depends-host",
        PAGE_CACHE,
        TWO_NAMES,
    ),
    "token-not-watched": Mistake(
        WATCHED,
        "{settings.SESSION_COOKIE_NAME, MESSAGES_COOKIE}",
        "{settings.SESSION_COOKIE_NAME, MESSAGES_COOKIE, settings.CSRF_COOKIE_NAME}",
        "depends-token",
        PAGE_CACHE,
    ),
    "headers-not-watched": Mistake(
        WATCHED, "        self._meta.note(self.to_wsgi_name(name))\n", "", "depends-headers", PAGE_CACHE
    ),
    "public-by-its-first-letters": Mistake(
        READS, "{path.rstrip('/')}/\"", "{path.rstrip('/')}\"", "named-public", PAGE_CACHE
    ),
    "other-cache-control-ignored": Mistake(
        RULE, '.endswith(("cache-control", "surrogate-control"))', ' == "cache-control"', "cache-control", PAGE_CACHE
    ),
    "revalidation-ignored": Mistake(
        RULE, '|= {"must-revalidate", "proxy-revalidate"}', "|= set()", "own-lifetime", PAGE_CACHE
    ),
    "nonce-in-a-tag-ignored": Mistake(RULE, "NONCE.search(html(response)) is not None", "False", "nonce", PAGE_CACHE),
    # Without such a declaration a page with another host than the usual one is private.
    "spelling-of-the-host-kept": Mistake(
        RULE,
        "    return reason_of_spelling(request)\n",
        '    return ""\n',
        "junk-hosts",
        PAGE_CACHE,
        ("--env", 'BENCHAPP_HARMLESS=["Host"]'),
    ),
    "coded-pages-not-kept": Mistake(
        "benchapp/caching/external/cacheable_header.py",
        "        normalized_coding(request, identity_only=True)\n",
        "",
        "coded-hits",
        ON_MICROCACHE,
    ),
    "generation-not-compared": Mistake(
        "benchapp/caching/django_cache.py",
        "if stored_under != current:",
        "if not stored_under:",
        "told-of-writes",
        PAGE_CACHE,
    ),
    "words-end-early": Mistake(
        "benchapp/caching/generations.py",
        "return 2 * app_settings.CACHING_SECONDS + SLOWEST_RENDERING_S",
        "return app_settings.CACHING_SECONDS // 3",
        "time-kept",
        PAGE_CACHE,
    ),
    # Of the site.
    "root-path-of-a-client": Mistake(
        "config/asgi.py",
        "root_path.without_root_path(get_asgi_application())",
        "get_asgi_application()",
        "forged-headers",
        "daphne~none",
    ),
    "first-address-believed": Mistake(
        "benchapp/serving/client_address.py",
        "for word in reversed(named)",
        "for word in named",
        "login-addresses",
        "gunicorn~none",
    ),
    "name-in-any-spelling": Mistake(
        LIMITS,
        'unicodedata.normalize("NFKC", name[:MAX_NAME]).casefold().strip()',
        "name",
        "login-spellings",
        "nginx-gunicorn~none",
    ),
    "shown-after-a-logout": Mistake(
        "benchapp/serving/sessions.py", "no_store=True", "no_store=False", "own-name", "nginx-gunicorn~none"
    ),
}
FAULTS = {
    "stale-for-ever": Mistake(
        MICROCACHE,
        "_cache_background_update on;",
        "_cache_background_update on; {{ upstream_module }}_cache_use_stale updating;",
        "application-away",
        ON_MICROCACHE,
    ),
    "room-without-a-limit": Mistake(
        MICROCACHE,
        "keys_zone=microcache:{{ [cache_memory_mb * 16, 64] | max }}k max_size={{ cache_memory_mb }}m",
        "keys_zone=microcache:64m max_size=1g",
        "made-up-pages",
        ON_MICROCACHE,
    ),
    "room-not-counted": Mistake(
        "benchapp/caching/stores/files.py", "if taken <= self.max_bytes:", "if taken:", "made-up-pages", ON_STATIC
    ),
    "lock-of-the-dead": Mistake(
        "benchapp/caching/render_lock.py", "LOCK_TTL_S = 3", "LOCK_TTL_S = 60", "render-lock-holder-killed", PAGE_CACHE
    ),
    "write-not-told-again": Mistake(
        "benchapp/caching/generations.py",
        "        _retry(alias).request(for_s=app_settings.CACHING_SECONDS)\n",
        "        pass\n",
        "caching-service-cut-off",
        PAGE_CACHE,
    ),
}


@pytest.mark.parametrize("mistake", [*CHECKS.values(), *FAULTS.values()], ids=[*CHECKS, *FAULTS])
def test_a_mistake_is_in_one_place(mistake):
    assert (paths.KIT / mistake.file).read_text("utf-8").count(mistake.right) == 1


def outcome_of(mistake: Mistake, site_url: str, *words: str):
    """The outcome of a command in a copy of the kit with the mistake."""
    stack, layer = mistake.case.split("~")
    runnable(stack, layer)
    with open_folder() as folder:
        for name in PARTS:
            paths.copy_of_kit(paths.KIT / name, folder / name)
        for name in FILES:
            shutil.copy(paths.KIT / name, folder)
        text = (folder / mistake.file).read_text("utf-8")
        (folder / mistake.file).write_text(text.replace(mistake.right, mistake.wrong), "utf-8")
        argv = ["-m", "bench", words[0], stack, "--layer", layer, *words[1:], "--set", "processes=2", "--json"]
        done = command(*argv, *mistake.changes, "--database", site_url, folder=folder)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.servers
@pytest.mark.matrix
@pytest.mark.parametrize("name", CHECKS)
def test_a_check_notices_a_mistake(site_url, name):
    mistake = CHECKS[name]
    status, document = outcome_of(mistake, site_url, "verify", "--check", mistake.noticed_by)
    failed = [outcome["check"] for outcome in document["outcomes"] if not outcome["ok"]]
    assert (status, failed) == (1, [mistake.noticed_by]), document


@pytest.mark.servers
@pytest.mark.matrix
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_notices_a_mistake(site_url, name, tmp_path):
    mistake = FAULTS[name]
    words = ["--fault", mistake.noticed_by, "--guard", "interference=off", "--output", str(tmp_path / "faults")]
    status, (outcome,) = outcome_of(mistake, site_url, "faults", *words)
    assert (status, outcome["status"]) == (1, "failed"), outcome
