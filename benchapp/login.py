"""Django's login, with a limit for wrong passwords.

Each one is a row of `FailedLogin` for every limit that it counts for. All processes thus share the counts on every
stack, at four queries for a failed login.
"""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import datetime, timedelta

from django.contrib.auth.forms import UsernameField
from django.contrib.auth.views import LoginView
from django.db.models import Count
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from benchapp.models import FailedLogin

WINDOW_S = 300  # how long a failure counts
# Failures in that time: for an account from one address; for an account from all, and an address with all accounts.
# Nobody can thus lock another one out easily.
FEW, MANY = 5, 50
IPV6_NETWORK = 64  # an owner of one has all addresses in it


class LimitedLogin(LoginView):
    """Django's login; 429 with Retry-After once an account or an address has failed too often."""

    template_name = "login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Log in, unless it is refused before the password is looked at."""
        limits = limits_of(request)
        recent = FailedLogin.objects.filter(limit__in=limits, at__gt=_window_start())
        failures = recent.values("limit").annotate(count=Count("*")).values_list("limit", "count")
        if any(count >= limits[limit] for limit, count in failures):
            response = render(request, "429.html", status=429)
            response.headers["Retry-After"] = str(WINDOW_S)
            return response
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: Form) -> HttpResponse:
        """Count a wrong password; a field that is missing is none."""
        if form.non_field_errors():
            FailedLogin.objects.filter(at__lte=_window_start()).delete()
            FailedLogin.objects.bulk_create(FailedLogin(limit=limit) for limit in limits_of(self.request))
        return super().form_invalid(form)


def limits_of(request: HttpRequest) -> dict[str, int]:
    """What a failure of this request counts for, each with how many are allowed."""
    # One spelling, as the form looks the account up: without spaces around it.
    name = UsernameField().to_python(request.POST.get("username", ""))
    address = _network(request.META.get("REMOTE_ADDR", ""))
    limits = {_key("both", name, address): FEW, _key("account", name): MANY}
    # Behind a proxy that is not named as one all clients have the machine's own address.
    return limits if address == "loopback" else {**limits, _key("address", address): MANY}


def _window_start() -> datetime:
    return timezone.now() - timedelta(seconds=WINDOW_S)


def _key(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()


def _network(address: str) -> str:
    """Whose address it is: one of IPv4 however it is written, or a network of IPv6."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "loopback"
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_loopback:
        return "loopback"
    return str(found) if found.version == 4 else str(ipaddress.ip_network(f"{found}/{IPV6_NETWORK}", strict=False))
