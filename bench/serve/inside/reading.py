"""The names of headers and cookies that a rendering looks for, in middleware, view and template alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.http.request import HttpHeaders


class Noting(dict[str, Any]):
    """A dictionary that notes the names that are looked for."""

    def __init__(self, original: dict[str, Any], names: set[str]) -> None:
        super().__init__(original)
        self.names = names

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


class NotingHeaders(HttpHeaders):
    """The headers of a request, which note the names that are looked for."""

    def __init__(self, meta: dict[str, Any], names: set[str]) -> None:
        super().__init__(meta)
        self.names = names

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return super().__getitem__(name)


class NoteNames:
    """Outermost middleware: `request.names_read` gets what all others look for, as `headers` and `cookies`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        names: dict[str, set[str]] = {"headers": set(), "cookies": set()}
        request.names_read = names
        request.COOKIES = Noting(request.COOKIES, names["cookies"])
        request.headers = NotingHeaders(request.META, names["headers"])
        request.META = Noting(request.META, names["headers"])
        return self.get_response(request)


def names_read(response: HttpResponseBase) -> dict[str, list[str]]:
    """The headers, as clients write them, and the cookies that a rendering looked for; empty if nobody noted them."""
    names = getattr(getattr(response, "wsgi_request", None), "names_read", None)
    if names is None:
        return {}
    headers = {name.removeprefix("HTTP_").replace("_", "-").lower() for name in names["headers"]}
    return {"headers": sorted(headers), "cookies": sorted(names["cookies"])}
