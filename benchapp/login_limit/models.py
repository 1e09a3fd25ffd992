"""Failed logins, counted in the database so that all processes of a site share the counts."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class FailedLogin(models.Model):
    """A wrong password, or one that is being checked: one row for each limit that counts it (`limits`, `attempts`)."""

    limit = models.CharField(max_length=64)
    # Of as many as the limit allows failures.
    place = models.PositiveSmallIntegerField(null=True)
    at = models.DateTimeField(default=timezone.now)
    # Of a password that is being checked: the same for all rows of the attempt.
    attempt = models.UUIDField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["limit", "place"], name="login_limit_place")]
        indexes = [models.Index(fields=["at"], name="login_limit_at")]
