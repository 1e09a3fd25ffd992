"""The site as a Django application."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class BenchappConfig(AppConfig):
    """Authors, posts and comments."""

    name = "benchapp"
    verbose_name = "The site"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the receivers of writes and migrations."""
        from benchapp import checks, invalidation  # noqa: F401

        self.follow_migrations()
        invalidation.connect()

    def follow_migrations(self) -> None:
        """Take the page index down before migrations of the site, and put it up after them."""
        from benchapp import page_index

        pre_migrate.connect(page_index.before_migrations, sender=self)
        post_migrate.connect(page_index.after_migrations, sender=self)

    def ignore_migrations(self) -> None:
        """Undo `follow_migrations`."""
        from benchapp import page_index

        pre_migrate.disconnect(page_index.before_migrations, sender=self)
        post_migrate.disconnect(page_index.after_migrations, sender=self)
