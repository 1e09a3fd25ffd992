"""Failed logins, counted in the database so that all processes of a site share the counts."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class FailedLogin(models.Model):
    """A wrong password, one row for each limit that counts it (`benchapp.login_limit.limits`)."""

    limit = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["limit", "at"], name="login_limit_recent"),
            models.Index(fields=["at"], name="login_limit_at"),
        ]
