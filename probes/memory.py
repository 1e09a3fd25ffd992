"""A page that needs much memory, as an export or a picture does."""

from __future__ import annotations

import time

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

# A worker beyond the memory of its size is killed; without a size, no client may take more of the machine than this.
MAX_MB = 2_000
HOLD_S = 0.5


@never_cache
@require_safe
def allocate(request: HttpRequest, megabytes: int) -> JsonResponse:
    """Use so much memory for half a second."""
    # Not zeros, which take no memory until they are written to.
    used = b"x" * (min(megabytes, MAX_MB) * 1_000_000)
    time.sleep(HOLD_S)
    return JsonResponse({"bytes": len(used)})
