"""The settings that templates read, from `deploy/values/<name>.toml`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.errors import BenchError, hint
from bench.serve.catalog.toml import read_toml
from bench.serve.machine.ports import MAX_PORT

# The file of values that measuring uses, and the one for a server that faces the internet.
BENCH = "bench"
PRODUCTION = "production"
# The host name in the instrument's own requests.
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Values:
    """One file of values.

    names     the settings that templates use by name
    env       environment of the site
    changes   the user's changed names, with their values
    places    paths and names on the host; empty for `bench`, whose places are its run directory's
    user_env  the user's environment of the site, which wins over all other
    """

    name: str
    names: dict[str, Any]
    env: dict[str, str] = field(default_factory=dict)
    places: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    user_env: Mapping[str, str] = field(default_factory=dict)

    def changed(self, changes: Mapping[str, Any], where: str = "--set") -> Values:
        """These values with some names changed; raises BenchError, naming `where`, for an unknown name."""
        for name, value in changes.items():
            if name in self.places:
                raise BenchError(
                    f"{where} {name}: a place, not a value; write it under [places] of a file of your own with "
                    f'base = "{self.name}", and give that with --values'
                )
            if name not in self.names:
                there_are = f"deploy/values/{self.name}.toml has"
                raise BenchError(f"{where} {name}: no such value; {hint(name, self.names, there_are)}")
            if problem := _problem(name, value, self.names[name]):
                raise BenchError(f"{where} {name}={value}: {problem}")
        return replace(self, names={**self.names, **changes}, changes={**self.changes, **changes})


# The value of `processes` that stands for as many as there is room for.
AUTO = "auto"
# Names whose value is one of a few, and numbers that may be zero.
CHOICES = {
    "listener": ("plain", "tls", "behind"),
    "redirect": ("off", "on"),
    "http2": ("off", "on"),
    "compress_pages": ("off", "on"),
    "strict_sni": ("off", "on"),
    "metrics": ("off", "on"),
    "log_format": ("combined", "json"),
    "log_addresses": ("full", "masked"),
    "canonical_host": ("off", "on"),
    "cache": ("memcached", "redis"),
    "preload": ("off", "on", "freeze"),
    "pool": ("site", "none", "conn_max_age", "django", "pgbouncer"),
    "io_cache": (0, 1),
    "debian": (12, 13),
}
MAX_NUMBER = 2**31 - 1
# The least and the most of numbers that are not from 1 to MAX_NUMBER.
BOUNDS = {
    **dict.fromkeys(("max_requests", "upstream_keepalive", "hsts_seconds", "logins_per_minute"), (0, MAX_NUMBER)),
    # With less a caching service does not start: it has no room for a page of the largest size.
    "cache_memory_mb": (8, MAX_NUMBER),
    # With more a machine has no memory left before its servers have started: some 50 MB a process.
    **dict.fromkeys(("processes", "threads", "web_processes"), (1, 512)),
    "pool_size": (1, 1000),
    "http_port": (1, MAX_PORT),
}
# A host name, every name below one (`*.example.org`), both (`.example.org`), or an IPv6 address in brackets.
HOST_NAME = r"(?:\*?\.)?[\w-]+(?:\.[\w-]+)*|\[[0-9A-Fa-f:.]+\]"
# One label of a host name with its dot, as every server's regular expressions understand it.
LABEL = r"(?:[A-Za-z0-9_-]+\.)"
# The name of a page that a layer may have, in its one spelling, and of one segment of it, for PCRE: what stores pages
# in Django names them so, too (benchapp/caching/names.py).
LETTERS, ESCAPE = "[A-Za-z0-9_.~@-]*", "%(?:20|[89A-F][0-9A-F])"
SEGMENT_RE = f"(?:[A-Za-z0-9_~@-]|{ESCAPE}){LETTERS}(?:{ESCAPE}{LETTERS})*"
PAGE_NAMES = {"segment_re": SEGMENT_RE, "page_re": f"/(?:{SEGMENT_RE}/)*(?:{SEGMENT_RE})?"}
# A file name, or `off`.
FILE_NAME = r"[^\s;{}\"'#\\]+"
# Texts that servers' files hold unquoted: the pattern of the whole text, and its description for people.
FORMS = {
    "server_names": (
        rf"({HOST_NAME})( ({HOST_NAME}))*",
        "one host name or more, with one space between two; *.example.org is every name below example.org",
    ),
    "tls_ciphers": (r"[A-Z0-9_-]+(:[A-Z0-9_-]+)*", "names of ciphers as OpenSSL writes them, with colons between"),
    "tls_curves": (r"[A-Za-z0-9]+(:[A-Za-z0-9]+)*", "names of curves as OpenSSL writes them, with colons between"),
    "conn_max_age": (r"site|0|[1-9][0-9]{0,4}", "site, or a whole number of seconds, 86400 at most"),
    "bind6": (r"off|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*", "off, or an IPv6 address without brackets"),
    "maintenance_file": (FILE_NAME, "off, or a file name without spaces and quotes"),
    "maintenance_pass": (r"off|[A-Za-z0-9_-]{12,64}", "off, or 12 to 64 letters, digits, - and _"),
    "acme_webroot": (rf"/{FILE_NAME}", "an absolute path of a directory without spaces and quotes"),
    "access_log": (FILE_NAME, "off, or a file name without spaces and quotes"),
}


def _problem(name: str, value: Any, usual: Any) -> str:
    """Return the problem of a new value of a name whose default is `usual`, or an empty string."""
    if isinstance(usual, dict) and not isinstance(value, dict):
        return "it is a table; change it in the file"
    if name == "processes" and value == AUTO:
        return ""
    if name in CHOICES:
        if value in CHOICES[name]:
            return ""
        return f"use {' or '.join(map(str, CHOICES[name]))}"
    if name in FORMS and not re.fullmatch(FORMS[name][0], str(value)):
        return f"use {FORMS[name][1]}"
    if name == "trusted_proxies" and not _are_networks(str(value)):
        return "use one network or more, such as 10.0.0.0/8, with one space between two"
    if isinstance(usual, int):
        least, most = BOUNDS.get(name, (1, MAX_NUMBER))
        if not isinstance(value, int) or value < least:
            return f"use a whole number, {least} or more"
        if value > most:
            return f"use a whole number, {most} at most"
    return ""


def _are_networks(text: str) -> bool:
    try:
        return bool(text) and all(ipaddress.ip_network(word) for word in text.split(" "))
    except ValueError:
        return False


def read(path: Path) -> Values:
    """The values in the file `path`, over those of its `base`; raises BenchError naming an invalid value."""
    table = read_toml(path)
    base = table.pop("base", "")
    below = Values("", {})
    if base:
        below = read(path.with_name(f"{base}.toml"))
    env = {key: str(value) for key, value in table.pop("env", {}).items()}
    places = table.pop("places", {})
    for key, value in table.items():
        if base and key not in below.names:
            raise BenchError(f"{path}: {key}: no such value; {hint(key, below.names)}")
        if problem := _problem(key, value, below.names.get(key, value)):
            raise BenchError(f"{path}: {key} = {value!r}: {problem}")
    return Values(path.stem, {**below.names, **table}, {**below.env, **env}, {**below.places, **places})


def read_own(path: Path, known: Mapping[str, Values]) -> Values:
    """The values of a user's file on top of its `base` (by default `production`).

    The user's changes win over the values of a stack. Raises BenchError naming the file for an unknown name.
    """
    table = read_toml(path)
    name = table.pop("base", PRODUCTION)
    if name not in known:
        raise BenchError(f"{path}: base = {name!r}: no such values; {hint(str(name), known)}")
    base = known[name]
    if "name" in table.get("places", {}):
        base = _renamed(base, str(table["places"]["name"]))
    env = {key: str(value) for key, value in table.pop("env", {}).items()}
    places = table.pop("places", {})
    if unknown := next((key for key in places if key not in base.places), None):
        raise BenchError(f"{path}: places.{unknown}: no such place; {hint(unknown, base.places)}")
    return replace(base.changed(table, f"{path}:"), env={**base.env, **env}, places={**base.places, **places})


def _renamed(base: Values, site: str) -> Values:
    """These values for another site: its name replaces the first one in each path and each user."""
    before = base.places["name"]
    names, places = dict(base.names), dict(base.places)
    for name, value in names.items():
        if isinstance(value, str) and value.startswith("/"):
            names[name] = _with_site(value, before, site)
    for name, value in places.items():
        if isinstance(value, str):
            places[name] = _with_site(value, before, site)
    return replace(base, names=names, places=places)


def _with_site(text: str, before: str, site: str) -> str:
    return re.sub(rf"\b{re.escape(before)}\b", site, text)


def derived(names: dict[str, Any]) -> dict[str, Any]:
    """The names that templates use beside the values, so that no template has to work them out.

    access           on or off: whether there is an access log
    alpn             the protocols that a TLS listener offers, by their ALPN names
    page_headers     the values' headers, with Strict-Transport-Security unless `hsts_seconds` is 0
    static_headers   nosniff and Strict-Transport-Security of these, for static files; media_headers: for uploads
    page_re          the name of a page that a layer may have, of segments (segment_re): PAGE_NAMES
    proxies          the networks of `trusted_proxies`
    believed_proxies  the text of `trusted_proxies` with the listener `behind`, else empty
    maintenance      on or off: whether there is a `maintenance_file`
    max_requests_jitter  the difference in requests between the lives of workers, so that not all are replaced at once
    scheme           the scheme of the URLs of clients
    server_name      the first single host name; of only `*.example.org`, example.org
    wildcard_names   the host names with `.example.org` written as example.org and *.example.org
    other_names      the names that are redirected to the first one; empty without `canonical_host`
    other_names_re   such a host's form, as server_names_re
    single_names     the host names without names for every name below a domain
    server_names_re  the form of a served host, without its port: a regular expression for PCRE
    """
    hsts = {}
    if names["hsts_seconds"]:
        hsts = {"Strict-Transport-Security": f"max-age={names['hsts_seconds']}"}
    alpn = "http/1.1"
    if names["http2"] == "on":
        alpn = "h2,http/1.1"
    believed_proxies = ""
    if names["listener"] == "behind":
        believed_proxies = names["trusted_proxies"]
    return {
        **PAGE_NAMES,
        **_host_names(names),
        "access": _switch(names["access_log"]),
        "maintenance": _switch(names["maintenance_file"]),
        "max_requests_jitter": names["max_requests"] // 4,
        "alpn": alpn,
        "page_headers": names["page_headers"] | hsts,
        "static_headers": {"X-Content-Type-Options": "nosniff"} | hsts,
        # What a visitor uploaded never runs as a page of the site.
        "media_headers": {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"} | hsts,
        "proxies": [ipaddress.ip_network(word) for word in str(names["trusted_proxies"]).split()],
        "believed_proxies": believed_proxies,
        "scheme": "https" if names["listener"] == "tls" else "http",
    }


def _host_names(names: dict[str, Any]) -> dict[str, Any]:
    """The derived names about the host names."""
    hosts = str(names["server_names"]).split()
    single = [host for host in hosts if host[0] not in "*."]
    other = []
    if names["canonical_host"] == "on":
        other = single[1:]
    wildcard_names: list[str] = []
    for host in hosts:
        if host[0] == ".":
            wildcard_names += [host[1:], f"*{host}"]
        else:
            wildcard_names.append(host)
    return {
        "server_name": next(iter(single), hosts[0].lstrip("*.")),
        "wildcard_names": wildcard_names,
        "other_names": other,
        "other_names_re": "|".join(map(_host_re, other)),
        "single_names": single,
        "server_names_re": "|".join(map(_host_re, hosts)),
    }


def _switch(file: str) -> str:
    """`off`, or `on` if there is a file."""
    if file == "off":
        return "off"
    return "on"


def _host_re(host: str) -> str:
    name = re.sub(r"[.\[\]]", r"\\\g<0>", host.lstrip("*."))
    repeated = "+" if host.startswith("*.") else "*"
    if host[0] in "*.":
        return f"{LABEL}{repeated}{name}"
    return name


def parse_change(text: str) -> tuple[str, int | str]:
    """`processes=5` as `("processes", 5)`: a whole number becomes a number, all else stays text.

    Raises BenchError for a text of another form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BenchError(f"{text}: write it as NAME=VALUE, for example processes=5")
    if value.isdecimal():
        return name, int(value)
    return name, value


def parse_variable(text: str) -> tuple[str, str]:
    """`BENCHAPP_HTTPS=1` as `("BENCHAPP_HTTPS", "1")`.

    Raises BenchError for a text of another form, and for host names without the instrument's.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise BenchError(f"{text}: write it as NAME=VALUE, for example BENCHAPP_CONN_MAX_AGE=0")
    if name == "ALLOWED_HOSTS" and not {LOOPBACK, "*"} & {host.strip() for host in value.split(",")}:
        # Without it every health check would get a 400 and the site would never be ready.
        raise BenchError(f"{text}: the instrument requests the site as {LOOPBACK}; write {name}={LOOPBACK},{value}")
    return name, value
