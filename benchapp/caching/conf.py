"""Settings of the app with their defaults: `app_settings.CACHING_SECONDS` is the project's value, else the default."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

# The two entries of MIDDLEWARE.
OUTER = "benchapp.caching.middleware.CachingMiddleware"
INNER = "benchapp.caching.middleware.WatchMiddleware"
# docs/caching.md explains each.
DEFAULTS: dict[str, Any] = {
    # Active layers with their options.
    "CACHING_LAYERS": {"page-cache": {}},
    # The time to live of all layers, in seconds.
    "CACHING_SECONDS": 60,
    # Pages that may be cached, with those below them; empty: all.
    "CACHING_PUBLIC": [],
    # Model -> pages that a write of a row makes stale.
    "CACHING_STALE": {},
    # Parameters of the query string that are part of a page's name. Empty: visitors could fill the cache with made-up
    # values of a parameter that no page reads.
    "CACHING_QUERY": [],
    # Parameters that no page depends on, as patterns: campaigns, advertising and newsletters.
    "CACHING_QUERY_IGNORED": [
        "utm_*",
        "pk_campaign",
        "pk_kwd",
        "pk_medium",
        "pk_source",
        "mtm_*",
        "_ga",
        "_gl",
        "dclid",
        "fbclid",
        "gad_campaignid",
        "gad_source",
        "gbraid",
        "gclid",
        "gclsrc",
        "igshid",
        "li_fat_id",
        "mc_cid",
        "mc_eid",
        "msclkid",
        "ttclid",
        "twclid",
        "wbraid",
        "yclid",
    ],
    # Whether responses have the header X-Cache.
    "CACHING_X_CACHE": False,
    # The port that visitors use, if not the scheme's default.
    "CACHING_PORT": "",
    # The scheme that visitors use, if it is always the same: a page may depend on it.
    "CACHING_SCHEME": "",
    # Headers, cookies and middleware that read something, although no page depends on it.
    "CACHING_HARMLESS": [],
    # Headers of all pages, which a server that stores bodies sends.
    "CACHING_PAGE_HEADERS": {},
}


class AppSettings:
    """The settings by attribute. A value is kept until `setting_changed` reports a change."""

    def __getattr__(self, name: str) -> Any:
        if name not in DEFAULTS:
            raise AttributeError(f"the app has no setting {name}")
        value = getattr(settings, name, DEFAULTS[name])
        setattr(self, name, value)
        return value

    def forget(self, setting: str, **kwargs: object) -> None:
        """Receiver of `setting_changed`."""
        vars(self).pop(setting, None)


app_settings = AppSettings()
setting_changed.connect(app_settings.forget)
