"""The id of a request, the same in the logs of the web server and of the application, and in the response."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse

GetResponse = Callable[[HttpRequest], HttpResponse]

HEADER = "X-Request-Id"
META = "HTTP_X_REQUEST_ID"
# One that a client made up may stand in a line of a log, whatever its form.
VALID = re.compile(r"[A-Za-z0-9@_.-]{8,64}")
_current: ContextVar[str] = ContextVar("request_id", default="-")


def identified(get_response: GetResponse) -> GetResponse:
    """Give each request an id, in request.headers["X-Request-Id"]: from the server in front, or a new one.

    Without a web server in front the response gets the id here.
    """
    adds = bool(settings.BENCHAPP_ACCESS_LOG)

    def middleware(request: HttpRequest) -> HttpResponse:
        request_id = request.META.get(META, "")
        if not VALID.fullmatch(request_id):
            request_id = request.META[META] = uuid.uuid4().hex
        token = _current.set(request_id)
        try:
            response = get_response(request)
        finally:
            _current.reset(token)
        if adds:
            response.headers[HEADER] = request_id
        return response

    return middleware


class InLog(logging.Filter):
    """Gives each record of a handler `request_id`, `-` outside of a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the record, with the id."""
        record.request_id = _current.get()
        return True
