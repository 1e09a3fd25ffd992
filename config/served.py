"""Settings with which a server of the site refuses to start. Commands and `runserver` accept them."""

from __future__ import annotations

import logging

from django.core.exceptions import ImproperlyConfigured

logger = logging.getLogger(__name__)

# Prefixes of public keys: of `startproject`, and of the kit's examples.
PUBLIC_KEYS = ("django-insecure-", "REPLACE-ME")
# The least that `check --deploy` accepts of a key (security.W009).
MIN_CHARACTERS, MIN_DIFFERENT = 50, 5
NEW_KEY = "set one from python3 -c 'import secrets; print(secrets.token_urlsafe(50))'"


def require_secret(key: str, fallbacks: list[str]) -> None:
    """Raise ImproperlyConfigured for a missing or public key; log a warning for a weak one.

    Without a key each process would make another key, and reject sessions of the others.
    """
    if not key:
        raise ImproperlyConfigured(f"SECRET_KEY is not set: {NEW_KEY}, the same for all processes of the site")
    for name, keys in (("SECRET_KEY", [key]), ("SECRET_KEY_FALLBACKS", fallbacks)):
        for secret in keys:
            if secret.startswith(PUBLIC_KEYS):
                raise ImproperlyConfigured(f"{name} is the public one of an example: {NEW_KEY}")
            if len(secret) < MIN_CHARACTERS or len(set(secret)) < MIN_DIFFERENT:
                logger.warning("%s is weak (security.W009 of check --deploy): %s", name, NEW_KEY)


def require_no_debug(debug: bool) -> None:
    """Raise ImproperlyConfigured with DEBUG on: pages for errors show settings and code to everybody."""
    if debug:
        raise ImproperlyConfigured("DEBUG is on: leave it unset for a server, or use ./manage.py runserver")
