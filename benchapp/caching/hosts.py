"""The host of a request, on a site with several names: a page that depends on it is no page for everybody.

No layer's key holds the host. CommonMiddleware asks for it only to check it, so whoever asks more often may show it.
An absolute URL by `build_absolute_uri` may have an exact name of the site; of a wildcard, a client could choose any.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

LOCAL = {"localhost", "127.0.0.1", "[::1]"}


def has_several_hosts() -> bool:
    """Whether the site has more than one name, so that a page may depend on which of them was asked for."""
    names = set(settings.ALLOWED_HOSTS) - LOCAL
    return len(names) > 1 or any(name.startswith((".", "*")) for name in names)


class HostWatch:
    """Counts how often a request is asked for its host.

    allowed  how often Django's own middleware asks
    """

    def __init__(self, request: HttpRequest, allowed: int) -> None:
        self.request, self.allowed, self.reads = request, allowed, 0
        self._get_host, self._build_absolute_uri = request.get_host, request.build_absolute_uri
        request.get_host, request.build_absolute_uri = self.get_host, self.build_absolute_uri

    def get_host(self) -> str:
        """The host, counted."""
        self.reads += 1
        return self._get_host()

    def build_absolute_uri(self, location: str | None = None) -> str:
        """The absolute URL; counted for a host that is none of the exact names."""
        reads, headers = self.reads, getattr(self.request, "headers_read", set())
        had_host = "host" in headers
        found = self._build_absolute_uri(location)
        if self._get_host().partition(":")[0] in settings.ALLOWED_HOSTS:
            self.reads = reads
        else:
            self.reads += 1
            had_host = True
        if not had_host:
            headers.discard("host")
        return found

    @property
    def is_read(self) -> bool:
        """Whether the page may depend on the host. Django's middleware has asked if the view was reached."""
        if not hasattr(self.request, "headers_read"):
            return self.reads > 0
        return self.reads > self.allowed or "host" in self.request.headers_read
