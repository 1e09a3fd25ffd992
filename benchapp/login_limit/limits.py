"""Limits of failed logins: for an account, for a client, and for both together."""

from __future__ import annotations

import hashlib
import ipaddress
import unicodedata
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

WINDOW_S = 300  # how long a failure counts

# Failures allowed in that time: for an account from one client; for an account from all clients, and for a client with
# all accounts; for all clients of an IPv6 site.
FEW, MANY, MOST = 5, 50, 500

# Prefix lengths of IPv6: the owner of a /64 has all addresses in it, and providers hand out up to a /48.
CLIENT_PREFIX, SITE_PREFIX = 64, 48

# Addresses of IPv4 as IPv6 has them behind a translator. https://www.rfc-editor.org/rfc/rfc6052#section-2.1
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

# Characters of a name that count: as many as Django's login form takes.
MAX_NAME = 254


@sensitive_variables("credentials")
def limits_of(request: HttpRequest | None, credentials: Mapping[str, Any]) -> dict[str, int]:
    """The limits for a login with these credentials, each with the allowed number of failures.

    None for a login without a password, such as single sign-on.
    """
    if "password" not in credentials:
        return {}
    limits = {}
    name = account_name(credentials)
    client, site = client_networks(request)
    if name:
        limits[_key("account", name)] = MANY
    if name and client:
        limits[_key("both", name, client)] = FEW
    # Behind a proxy that is not trusted, all clients have the machine's own address.
    if client and client != "loopback":
        limits[_key("client", client)] = MANY
    if site:
        limits[_key("site", site)] = MOST
    return limits


@sensitive_variables("credentials")
def account_name(credentials: Mapping[str, Any]) -> str:
    """The name in the credentials, in one spelling for all that may find the same account; empty without a name."""
    model = get_user_model()
    for field in ("username", model.USERNAME_FIELD, model.get_email_field_name()):
        if name := str(credentials.get(field) or "").strip():
            # As Django's form reads it; many projects find accounts whatever the case.
            return unicodedata.normalize("NFKC", name[:MAX_NAME]).casefold().strip()
    return ""


def client_networks(request: HttpRequest | None) -> tuple[str, str]:
    """The client of a request and, with IPv6, the site around the client.

    The client is an address of IPv4 in one spelling, a network of IPv6, or `loopback`; empty without a request.
    """
    if request is None:
        return "", ""
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return "loopback", ""
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or _translated(address)
    if address.is_loopback:
        return "loopback", ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address), ""
    return _network(address, CLIENT_PREFIX), _network(address, SITE_PREFIX)


def _translated(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The client behind an address of NAT64, whose one /64 has all of IPv4."""
    if address in NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address


def _network(address: ipaddress.IPv6Address, prefix: int) -> str:
    return str(ipaddress.IPv6Network((int(address), prefix), strict=False))


def _key(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()
