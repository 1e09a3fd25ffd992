"""The limit for wrong passwords as a Django application."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.core.checks import Tags, register


class LoginLimitConfig(AppConfig):
    """Counts failed logins, and checks the settings."""

    name = "benchapp.login_limit"
    label = "login_limit"
    verbose_name = "Failed logins"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the counter, and register the system checks."""
        from benchapp.login_limit import attempts, checks

        user_login_failed.connect(attempts.count_failure, dispatch_uid="benchapp.login_limit")
        user_logged_in.connect(attempts.release, dispatch_uid="benchapp.login_limit")
        register(checks.check_backend, Tags.security)
        register(checks.check_middleware, Tags.security)
        register(checks.check_transactions, Tags.security)
