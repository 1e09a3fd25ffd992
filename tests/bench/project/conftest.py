"""The fixtures of `tests.projects`, for a test that still takes them from here."""

from tests.projects import new_project, selection  # noqa: F401
