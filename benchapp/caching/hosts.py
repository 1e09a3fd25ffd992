"""The site's own address: the host, port and scheme that a page for everybody may show.

No layer's key holds these. A site with one name has one spelling of the name, without capitals and a final dot, with
the port of its visitors: a page may show that spelling. A rendering for another spelling is not stored. A rendering
under an unknown host or scheme is stored only if the page did not read either. Over another scheme than the site's no
page is stored or served.
"""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.request import split_domain_port

from benchapp.caching.conf import app_settings
from benchapp.caching.local_hosts import LOCAL

USUAL_PORTS = ("", "80", "443")


def reason_of_spelling(request: HttpRequest) -> str:
    """The reason why a rendering for this spelling of an allowed host is not stored; else empty."""
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
    """True if the host of a request is the only host of the site, with its port: every page may show that."""
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
    """True if the site's scheme is known and a request has another one."""
    return bool(own := _scheme()) and request.scheme != own


def _scheme() -> str:
    """The scheme of all visitors; empty if unknown."""
    return app_settings.CACHING_SCHEME or ("https" if settings.SECURE_SSL_REDIRECT else "")


def _name() -> str:
    """The name of the site; empty for several names. Names of this machine are for health checks and do not count."""
    names = [name.lower() for name in settings.ALLOWED_HOSTS]
    public = {name for name in names if name not in LOCAL}
    if len(public) > 1 or any(name.startswith((".", "*")) for name in public):
        return ""
    return next(iter(public or names), LOCAL[0])


def _port(request: HttpRequest) -> str:
    """The port in the addresses of pages; empty for the scheme's default."""
    if getattr(settings, "BENCHAPP_TRUSTED_PROXIES", ()):
        # That of the load balancer, which visitors use, is the usual one.
        return ""
    own = str(app_settings.CACHING_PORT)
    if not own and not _is_behind_proxy(request):
        own = str(request.META.get("SERVER_PORT", ""))
    return "" if own in (*USUAL_PORTS, "0") else own


def _is_behind_proxy(request: HttpRequest) -> bool:
    """True if visitors use another port than the server's, as behind a reverse proxy. mod_wsgi takes the port from
    Host.
    """
    return bool(
        getattr(settings, "BENCHAPP_BEHIND_PROXY", False)
        or settings.SECURE_PROXY_SSL_HEADER
        or settings.USE_X_FORWARDED_HOST
        or "mod_wsgi.version" in request.META
    )
