"""The site's session engine: Django's own in the database, for keys of Django's own shape only."""

from __future__ import annotations

import re

from django.contrib.sessions.backends import db

# As Django makes them: 32 lower-case letters and digits.
KEY = re.compile(r"[a-z0-9]{32}")


class SessionStore(db.SessionStore):
    """A key of another shape is no session and reaches no query: PostgreSQL refuses one with a NUL."""

    def _validate_session_key(self, key: str | None) -> bool:
        return bool(key and KEY.fullmatch(key))
