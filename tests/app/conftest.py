"""Rows, accounts and settings for the tests of the site."""

from __future__ import annotations

import functools
import logging
import operator
import runpy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from benchapp.caching.invalidation import StalePages, pages_invalidated
from benchapp.models import Author, Comment, Post
from tests.conftest import forget_rows

PASSWORD = "a quiet evening 7"
BEGIN = datetime(2024, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _knows_no_rows_of_another_test() -> None:
    """Django keeps the keys of content types, also of those that a test's transaction has taken back."""
    forget_rows()


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """The site's log: Django 6.1 configures logging again with LOGGING overridden, and removes pytest's handler."""
    logger = logging.getLogger("benchapp")
    monkeypatch.setattr(logger, "handlers", [caplog.handler])
    monkeypatch.setattr(logger, "propagate", False)
    return caplog


@dataclass(frozen=True)
class Rows:
    """A small site: one author with 55 of the 60 posts, one post with 55 of the 60 comments."""

    author: Author
    post: Post


def make_rows() -> Rows:
    """Write the small site, titles and texts long enough to be cut where pages cut them."""
    authors = Author.objects.bulk_create(
        Author(name=f"Author {i}", city=f"City {i % 4}", bio=f"Writes about {i}. " * 5) for i in range(30)
    )
    posts = Post.objects.bulk_create(
        Post(
            author=authors[0] if i < 55 else authors[i - 54],
            title=f"Post {i} about the garden and the weather",
            body=f"Paragraph of post {i}. " * 30 + "\n\nAnother one.",
            published=BEGIN + timedelta(days=3 * i),
            views=i * 7 % 61,
        )
        for i in range(60)
    )
    Comment.objects.bulk_create(
        Comment(
            post=posts[0] if i < 55 else posts[i - 54],
            name=f"Reader {i}",
            body=f"Thoughts of reader {i}. " * 8,
            rating=i % 5 + 1,
            created=BEGIN + timedelta(days=180, minutes=i),
        )
        for i in range(60)
    )
    return Rows(Author.objects.get(pk=authors[0].pk), Post.objects.get(pk=posts[0].pk))


@pytest.fixture(autouse=True)
def site_settings(settings: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Static files as in a fresh checkout, whether or not collectstatic has run here, and a quick password hasher."""
    settings.STATIC_ROOT = tmp_path_factory.mktemp("static")
    settings.WHITENOISE_USE_FINDERS = True
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def rows(db: None) -> Rows:
    """The small site in the test database."""
    return make_rows()


def account(name: str) -> Client:
    """A client logged in as a new account."""
    client = Client()
    client.force_login(get_user_model().objects.create_user(name, password=PASSWORD))
    return client


@pytest.fixture
def reader(db: None) -> Client:
    """A client logged in as `margaret`."""
    return account("margaret")


@pytest.fixture
def invalidated(settings: Any) -> Iterator[list[StalePages]]:
    """The invalidations that a caching layer receives, in order."""
    settings.CACHING_LAYERS = {"page-cache": {}}
    received: list[StalePages] = []

    def hear(stale: StalePages, **kwargs: object) -> None:
        received.append(stale)

    pages_invalidated.connect(hear)
    yield received
    pages_invalidated.disconnect(hear)


@pytest.fixture
def stale_after(
    invalidated: list[StalePages], django_capture_on_commit_callbacks: Callable
) -> Callable[[Callable], StalePages]:
    """Runs a write and gives all that it made stale."""

    def after(write: Callable[[], object]) -> StalePages:
        invalidated.clear()
        with django_capture_on_commit_callbacks(execute=True):
            write()
        return functools.reduce(operator.or_, invalidated, StalePages())

    return after


@pytest.fixture
def settings_from(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Evaluates config/settings.py under other environment variables, a server's with a key; gives its settings."""

    def evaluate(**environment: str) -> dict[str, Any]:
        if "BENCHAPP_SERVER" in environment:
            environment.setdefault("SECRET_KEY", "a-key-of-tests-" * 4)
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            evaluated = runpy.run_path(str(Path(settings.BASE_DIR) / "config" / "settings.py"))
        return {name: value for name, value in evaluated.items() if name.isupper()}

    return evaluate


@pytest.fixture
def site_with(settings_from: Callable[..., dict[str, Any]]) -> Callable[..., AbstractContextManager[None]]:
    """The site as these environment variables set it up, all except database and static files; a context manager."""

    @contextmanager
    def override(**environment: str) -> Iterator[None]:
        changed = settings_from(**environment)
        for name in ("DATABASES", "SECRET_KEY", "STATIC_ROOT", "WHITENOISE_USE_FINDERS"):
            del changed[name]
        changed["ALLOWED_HOSTS"] = [*changed["ALLOWED_HOSTS"], "testserver"]
        with override_settings(**changed):
            yield

    return override
