"""Failed logins are counted, by account and by address, and too many are refused for a while.

The counters are in a cache that all processes share, `logins`. Each failure takes one of a few places and gives it back
after a time; `add` lets only one of several requests take a place.
"""

from __future__ import annotations

import hashlib
import ipaddress
import unicodedata
from collections.abc import Iterator

from django.conf import settings
from django.contrib.auth.views import LoginView
from django.core.cache import caches
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

# An owner of one network of IPv6 has all addresses in it.
IPV6_NETWORK = 64


class LimitedLogin(LoginView):
    """Django's login; 429 with Retry-After once an account or an address has failed too often.

    Limits: BENCHAPP_LOGIN_FAILURES for an account from one address, ten times that for an account from all addresses,
    and for an address with all accounts. Nobody can thus lock another one out easily.
    """

    template_name = "login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Log in, unless it is refused before the password is looked at."""
        places = [place for places in places_of(request) for place in places]
        taken = caches["logins"].get_many(places)
        if any(set(places) <= taken.keys() for places in places_of(request)):
            response = render(request, "429.html", status=429)
            response.headers["Retry-After"] = str(settings.BENCHAPP_LOGIN_WINDOW)
            return response
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: Form) -> HttpResponse:
        """Count a wrong password; a field that is missing is none."""
        if form.non_field_errors():
            for places in places_of(self.request):
                any(caches["logins"].add(place, 1, settings.BENCHAPP_LOGIN_WINDOW) for place in places)
        return super().form_invalid(form)


def places_of(request: HttpRequest) -> Iterator[list[str]]:
    """The places that failures of this request take, for each limit."""
    # One spelling, as the account is looked up.
    name = unicodedata.normalize("NFKC", request.POST.get("username", ""))
    address = _network(request.META.get("REMOTE_ADDR", ""))
    few, many = settings.BENCHAPP_LOGIN_FAILURES, 10 * settings.BENCHAPP_LOGIN_FAILURES
    yield _places(few, "both", name, address)
    yield _places(many, "account", name)
    # Behind a proxy that is not named as one all clients have the machine's own address.
    if address != "loopback":
        yield _places(many, "address", address)


def _places(count: int, *words: str) -> list[str]:
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()
    return [f"{digest}:{number}" for number in range(count)]


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "loopback"
    if found.is_loopback:
        return "loopback"
    return address if found.version == 4 else str(ipaddress.ip_network(f"{found}/{IPV6_NETWORK}", strict=False))
