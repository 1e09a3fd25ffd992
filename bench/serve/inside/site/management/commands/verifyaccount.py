"""Accounts for the time of a check on the kit's own site, where accounts write comments."""

from __future__ import annotations

from django.db import DatabaseError

from bench.serve.inside.management.commands import verifyaccount
from benchapp.management import databases
from benchapp.models import Comment


class Command(verifyaccount.Command):
    """Removes the comments of the accounts, too."""

    help = "Make ordinary accounts with random names and passwords, or remove them with their comments."

    def problem(self, error: DatabaseError) -> str:
        return databases.problem(error)

    def remove_traces(self, username: str) -> None:
        """Remove the account's comments."""
        Comment.objects.filter(user__username=username).delete()
