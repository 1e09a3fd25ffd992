"""An account for the time of a check, and its removal without a trace."""

from __future__ import annotations

import json
import secrets
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, transaction

from benchapp.models import Comment

PREFIX = "verify-"


class Command(BaseCommand):
    """Creates and deletes accounts whose names begin with `verify-`, no others."""

    help = "Make an ordinary account with a random name and password, or remove it with what it posted."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("create", help="print the new account's name and password as JSON")
        delete = actions.add_parser("delete", help="remove the account, its sessions and its comments")
        delete.add_argument("username", metavar="USERNAME")
        delete.add_argument(
            "--post", type=int, action="append", default=[], metavar="ID", help="a post it commented on"
        )

    def handle(self, **options: Any) -> None:
        try:
            if options["action"] == "create":
                self.stdout.write(json.dumps(create_account()))
            else:
                delete_account(options["username"], options["post"])
        except DatabaseError as error:
            reason = str(error).strip().splitlines()[0]
            raise CommandError(f"the database cannot be used ({reason}): run ./manage.py migrate") from error


def create_account() -> dict[str, str]:
    """A new account without any rights beyond logging in; returns what it takes to log in."""
    username, password = f"{PREFIX}{secrets.token_hex(8)}", secrets.token_urlsafe(16)
    get_user_model().objects.create_user(username, password=password)
    return {"username": username, "password": password}


def delete_account(username: str, posts: list[int]) -> None:
    """Remove the account, its sessions, and the comments under its name on these posts.

    Only accounts of `create_account`: a typing error must not remove a person.
    """
    if not username.startswith(PREFIX):
        raise CommandError(f"{username!r} is not an account of this command: its names begin with {PREFIX}")
    with transaction.atomic():
        user = get_user_model().objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"there is no account {username!r}: it was deleted already, or never created")
        Comment.objects.filter(post__in=posts, name=username).delete()
        _delete_sessions(user)
        user.delete()


def _delete_sessions(user: Any) -> None:
    """Sessions say whose they are only inside; those that end before the account began cannot be its own."""
    for session in Session.objects.filter(expire_date__gt=user.date_joined).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()
