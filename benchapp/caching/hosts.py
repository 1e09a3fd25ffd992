"""The site's own address: under which host, port and scheme a rendering may show them, and still be everybody's page.

No layer's key holds them. A site with one name has one spelling of it, without capitals and a final dot, with the port
that visitors use: a page may show that one. A rendering for another spelling is not stored. A rendering under a host
or scheme of which nothing is known is stored only if it did not read them. Over another scheme than the site's no page
is stored or given.
"""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.request import split_domain_port

from benchapp.caching.conf import app_settings

LOCAL = ("localhost", "127.0.0.1", "[::1]")
USUAL_PORTS = ("", "80", "443")


def reason_of_spelling(request: HttpRequest) -> str:
    """The reason why a rendering for this spelling of an allowed host is not stored; empty if it may be."""
    host = request.get_host()
    name, port = split_domain_port(host)
    if host != (f"{name}:{port}" if port else name):
        return "host"
    if port == str(app_settings.CACHING_PORT) and port not in USUAL_PORTS:
        # Behind a load balancer it is no visitor's, and a page that does not show it is the same.
        return ""
    # So is one without a port.
    return "" if port in ("", _port(request)) else "port"


def is_own_host(request: HttpRequest) -> bool:
    """True if the host of a request is the only one of the site, with its port, so that every page may show it."""
    try:
        host = request.get_host()
    except DisallowedHost:
        return False
    port = _port(request)
    return host == (f"{_name()}:{port}" if port else _name())


def is_own_scheme(request: HttpRequest) -> bool:
    """True if the scheme of a request is the only one of the site."""
    return request.scheme == _scheme()


def is_other_scheme(request: HttpRequest) -> bool:
    """True if a request has not the scheme of the site, where that is known."""
    return bool(own := _scheme()) and request.scheme != own


def _scheme() -> str:
    """The scheme of all visitors; empty if it is unknown."""
    return app_settings.CACHING_SCHEME or ("https" if settings.SECURE_SSL_REDIRECT else "")


def _name() -> str:
    """The name of the site; empty if it has several. The names of this machine stand beside it for health checks."""
    names = [name.lower() for name in settings.ALLOWED_HOSTS]
    public = {name for name in names if name not in LOCAL}
    if len(public) > 1 or any(name.startswith((".", "*")) for name in public):
        return ""
    return next(iter(public or names), LOCAL[0])


def _port(request: HttpRequest) -> str:
    """The port that belongs into the addresses of pages; empty for the usual one of the scheme."""
    if getattr(settings, "BENCHAPP_TRUSTED_PROXIES", ()):
        # That of the load balancer, which visitors use, is the usual one.
        return ""
    own = str(app_settings.CACHING_PORT)
    if not own and not _is_behind_proxy(request):
        own = str(request.META.get("SERVER_PORT", ""))
    return "" if own in (*USUAL_PORTS, "0") else own


def _is_behind_proxy(request: HttpRequest) -> bool:
    """True if the port of the server is no visitor's: that of a reverse proxy is. mod_wsgi takes it from Host."""
    return bool(
        getattr(settings, "BENCHAPP_BEHIND_PROXY", False)
        or settings.SECURE_PROXY_SSL_HEADER
        or settings.USE_X_FORWARDED_HOST
        or "mod_wsgi.version" in request.META
    )
