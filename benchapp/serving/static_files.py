"""Static files on stacks without a web server."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware

# The list that Django's and WhiteNoise's storages write beside the files.
MANIFEST = "staticfiles.json"


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise without the manifest of collectstatic, which is not public; web servers refuse the manifest too."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(f"{self.static_prefix}{MANIFEST}"):
            return self.get_response(request)
        return super().__call__(request)
