"""The version of the site's code. A new release has another word here, in mark.html and in release.css."""

from __future__ import annotations

VERSION = "release-1"
