"""A page that needs much memory, as an export or a picture does, and one that is as long as a download."""

from __future__ import annotations

import time

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

# A worker beyond the memory of its size is killed; without a size, no client may take more of the machine than this.
MAX_MB = 2_000
MAX_DOWNLOAD_MB = 10
HOLD_S = 0.5


@never_cache
@require_safe
def allocate(request: HttpRequest, megabytes: int) -> JsonResponse:
    """Use so much memory for half a second."""
    # Not zeros, which take no memory until they are written to.
    used = b"x" * (min(megabytes, MAX_MB) * 1_000_000)
    time.sleep(HOLD_S)
    return JsonResponse({"bytes": len(used)})


@never_cache
@require_safe
def download(request: HttpRequest, megabytes: int) -> HttpResponse:
    """An answer of so many megabytes that takes no time to make."""
    return HttpResponse(b"x" * (min(megabytes, MAX_DOWNLOAD_MB) * 1_000_000), content_type="application/octet-stream")
