"""Names of this machine, which are no names of a site. It imports nothing: `doctor` loads it by its path."""

from __future__ import annotations

# The last ones are no host of a request, but are in settings.
LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1", "0.0.0.0", ".localhost")
