"""Accounts for the time of a check, and their removal without a trace."""

from __future__ import annotations

import copy
import json
import re
import secrets
from argparse import ArgumentParser
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import PBKDF2PasswordHasher, get_hasher
from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, transaction
from django.utils import timezone

from benchapp.management import databases
from benchapp.models import Comment

PREFIX = "verify-"
# Exactly the names that `create` makes: a person may have a name like verify-something.
MADE_HERE = re.compile(rf"{PREFIX}[0-9a-f]{{16}}")
# No check takes so long: an account of that age is abandoned.
ABANDONED = timedelta(hours=1)


class Command(BaseCommand):
    """Creates and deletes accounts whose names begin with `verify-`, no others.

    A caller that is killed leaves its accounts behind. So `create` takes the caller's own identifier as the owner and
    lists all accounts that are there with their owners; the caller has the accounts of dead owners removed by `prune`.
    """

    help = "Make ordinary accounts with random names and passwords, or remove them with their comments."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="print the new accounts' names and passwords as JSON")
        create.add_argument("--count", type=int, default=1, metavar="N", help="how many (default: 1)")
        create.add_argument("--owner", default="", metavar="TEXT", help="an identifier of the caller")
        prune = actions.add_parser("prune", help="remove abandoned accounts with their comments")
        prune.add_argument("username", nargs="*", metavar="USERNAME", help="(default: all older than an hour)")
        delete = actions.add_parser("delete", help="remove accounts, their sessions and their comments")
        delete.add_argument("username", nargs="+", metavar="USERNAME")
        delete.add_argument(
            "--post", type=int, action="append", default=[], metavar="ID", help="a post they commented on"
        )

    def handle(self, **options: Any) -> None:
        try:
            if options["action"] == "create":
                self.stdout.write(json.dumps(create_accounts(options["count"], options["owner"])))
            elif options["action"] == "prune":
                prune_accounts(options["username"])
            else:
                delete_accounts(options["username"], options["post"])
        except DatabaseError as error:
            raise CommandError(databases.problem(error)) from error


def create_accounts(count: int = 1, owner: str = "") -> dict[str, Any]:
    """Make accounts without any rights beyond logging in; returns their names and passwords as `accounts`.

    `others` are the accounts of this command that were there before, each with its owner.
    """
    others = [{"username": user.username, "owner": user.first_name} for user in _accounts() if user.first_name]
    accounts = [
        {"username": f"{PREFIX}{secrets.token_hex(8)}", "password": secrets.token_urlsafe(16)} for _ in range(count)
    ]
    for account in accounts:
        user = get_user_model()(username=account["username"], first_name=owner)
        user.password = _quick_hash(account["password"])
        user.save()
    return {"accounts": accounts, "others": others}


def _quick_hash(password: str) -> str:
    """A hash of one iteration, enough for a random password of 128 bits; logging in replaces it by a slow one."""
    hasher = copy.copy(get_hasher())
    if isinstance(hasher, PBKDF2PasswordHasher):
        hasher.iterations = 1
    return hasher.encode(password, hasher.salt())


def prune_accounts(usernames: Iterable[str]) -> None:
    """Remove these accounts, or all older than ABANDONED, with their sessions and all comments under their names.

    An account that is already gone is no error: another program may have removed it.
    """
    usernames = list(usernames)
    for username in usernames:
        if not MADE_HERE.fullmatch(username):
            raise CommandError(f"{username!r} is not an account of this command: `create` gives other names")
    limit = timezone.now() - ABANDONED
    for found in _accounts():
        if found.username in usernames or (not usernames and found.date_joined < limit):
            with transaction.atomic():
                Comment.objects.filter(name=found.username).delete()
                _delete_sessions(found)
                found.delete()


def _accounts() -> list[Any]:
    """The accounts that this command has made."""
    found = get_user_model().objects.filter(username__startswith=PREFIX)
    return [user for user in found if MADE_HERE.fullmatch(user.username)]


def delete_accounts(usernames: Iterable[str], posts: list[int]) -> None:
    """Remove the accounts, their sessions, and the comments under their names on these posts."""
    for username in usernames:
        _delete_account(username, posts)


def _delete_account(username: str, posts: list[int]) -> None:
    # Only accounts of `create_accounts`: a typing error must not remove a person.
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
    """A session names its user only inside its data; one that expires before the account was made cannot be its own."""
    for session in Session.objects.filter(expire_date__gt=user.date_joined).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()
