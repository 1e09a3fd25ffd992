"""Empty the stores of every active caching layer: a new version of the site renders other pages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from benchapp.caching.invalidation import all_pages, invalidate


class Command(BaseCommand):
    """A deploy runs this after the reload."""

    help = "Invalidate every cached page, in every active caching layer."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        invalidate(all_pages())
