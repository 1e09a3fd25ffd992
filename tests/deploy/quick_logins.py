"""The site's settings with a password hasher that takes no time: each login costs a quarter of a second otherwise."""

from __future__ import annotations

from django.conf import global_settings

from config import settings as _site

globals().update({name: getattr(_site, name) for name in dir(_site) if name.isupper()})

# Accounts that commands make with the site's own settings can log in, too.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *global_settings.PASSWORD_HASHERS]
