"""The response to a login that was refused."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template import TemplateDoesNotExist, loader
from django.utils.cache import add_never_cache_headers
from django.utils.deprecation import MiddlewareMixin

from benchapp.login_limit import limits


class TooManyFailedLogins(MiddlewareMixin):
    """Whatever a view makes of a refused login, the response is 429 with Retry-After.

    The page is the project's template `429.html`, or a line of text without one.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """The view's response, unless the login was refused."""
        if not getattr(request, "login_refused", False):
            return response
        try:
            page = HttpResponse(loader.render_to_string("429.html", request=request), status=429)
        except TemplateDoesNotExist:
            text = "Too many wrong passwords. Please wait a few minutes, then try again.\n"
            page = HttpResponse(text, status=429, content_type="text/plain")
        page.headers["Retry-After"] = str(limits.WINDOW_S)
        add_never_cache_headers(page)
        return page
