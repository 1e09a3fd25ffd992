"""Accounts for the time of a check, and their removal without a trace."""

from __future__ import annotations

import copy
import json
import re
import secrets
from argparse import ArgumentParser
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import PBKDF2PasswordHasher, get_hasher
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, transaction
from django.utils import timezone

PREFIX = "verify-"
# The field with the owner of an account.
OWNER = "last_name"
# Fields that pages show in place of a username, if an account has one.
SHOWN = "first_name"
# By which some projects know an account; no mail gets there (RFC 6761).
EMAIL, MAIL = "email", "@verify.invalid"
# Exactly the names that `create` makes: a person may have a name like verify-something.
CREATED_HERE = re.compile(rf"{PREFIX}[0-9a-f]{{16}}({re.escape(MAIL)})?")
# What a superuser has.
RIGHTS = {"is_staff": True, "is_superuser": True}


class Command(BaseCommand):
    """Creates and deletes only accounts with names that begin with `verify-`.

    A killed caller leaves its accounts behind. So `create` takes the caller's own identifier as the owner and lists all
    existing accounts with their owners; the caller has accounts of dead owners removed by `delete`.
    """

    help = "Make ordinary accounts with random names and passwords, or remove them."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="print the new accounts' names and passwords as JSON")
        create.add_argument("--count", type=int, default=1, metavar="N", help="how many (default: 1)")
        create.add_argument("--owner", default="", metavar="TEXT", help="an identifier of the caller")
        create.add_argument("--superuser", action="store_true", help="with all rights, as pages of an admin need")
        delete = actions.add_parser("delete", help="remove accounts with their sessions and all that they wrote")
        delete.add_argument("username", nargs="+", metavar="USERNAME", help="as `create` has printed it")

    def handle(self, **options: Any) -> None:
        try:
            if options["action"] == "create":
                self.stdout.write(json.dumps(create_accounts(options["count"], options["owner"], options["superuser"])))
            else:
                self._delete(options["username"])
        except DatabaseError as error:
            raise CommandError(self.problem(error)) from error

    def problem(self, error: DatabaseError) -> str:
        """Describe a database error in one line."""
        return f"the database cannot be used: {str(error).strip().partition(chr(10))[0]}"

    def remove_traces(self, username: str) -> None:
        """Remove an account's traces that only the project knows."""

    def _delete(self, usernames: list[str]) -> None:
        """Remove these accounts with all traces; another process may have removed some already."""
        for username in usernames:
            # A typing error must not remove a person.
            if not CREATED_HERE.fullmatch(username):
                raise CommandError(f"{username!r} is not an account of this command: `create` gives other names")
        for account in _accounts():
            if account.get_username() in usernames:
                with transaction.atomic():
                    self.remove_traces(account.get_username())
                    _delete_sessions(account)
                    account.delete()


def user_model() -> Any:
    """The project's model of accounts; CommandError unless this command can fill the model."""
    if not apps.is_installed("django.contrib.auth"):
        raise CommandError("the project has no accounts: django.contrib.auth is not installed")
    model = get_user_model()
    if model.USERNAME_FIELD not in ("username", EMAIL):
        raise CommandError(
            f"accounts of {model._meta.label} are known by {model.USERNAME_FIELD}, not by a name or an address: name "
            "two with users_env in [tool.benchapp.login]"
        )
    return model


def create_accounts(count: int = 1, owner: str = "", superuser: bool = False) -> dict[str, Any]:
    """Make accounts with all rights, or only the right to log in; returns their names and passwords as `accounts`.

    `others` are the accounts of this command from earlier, each with its owner, if accounts can have one.
    """
    model = user_model()
    fields = {field.name for field in model._meta.get_fields()}
    if superuser and not RIGHTS.keys() <= fields:
        raise CommandError(f"accounts of {model._meta.label} have no {' and '.join(RIGHTS)}: leave out superuser")
    owners = [(user.get_username(), getattr(user, OWNER, "")) for user in _accounts()]
    others = [{"username": name, "owner": of} for name, of in owners if of]
    accounts = []
    for _ in range(count):
        name, password = PREFIX + secrets.token_hex(8), secrets.token_urlsafe(16)
        known = {OWNER: owner, SHOWN: name, EMAIL: name + MAIL}
        more: dict[str, Any] = {field: value for field, value in known.items() if field in fields}
        if superuser:
            more |= RIGHTS
        user = model(**{model.USERNAME_FIELD: name, **more})
        user.password = _quick_hash(password)
        user.save()
        if apps.is_installed("allauth.account"):
            # It may let nobody in whose address is not confirmed.
            confirmed = {"email": name + MAIL, "verified": True, "primary": True}
            apps.get_model("account", "EmailAddress").objects.create(user=user, **confirmed)
        accounts.append({"username": user.get_username(), "password": password})
    return {"accounts": accounts, "others": others}


def _quick_hash(password: str) -> str:
    """A hash of one iteration, enough for a random password of 128 bits; a log-in replaces the hash by a slow one."""
    hasher = copy.copy(get_hasher())
    if isinstance(hasher, PBKDF2PasswordHasher):
        hasher.iterations = 1
    return hasher.encode(password, hasher.salt())


def _accounts() -> Iterable[Any]:
    """The accounts that this command has made."""
    model = user_model()
    candidates = model.objects.filter(**{f"{model.USERNAME_FIELD}__startswith": PREFIX})
    return [user for user in candidates if CREATED_HERE.fullmatch(user.get_username())]


def _delete_sessions(user: Any) -> None:
    """Delete the accounts' sessions. A session names its user only in its data; sessions that expire before the account
    was made cannot belong to the account.
    """
    if not apps.is_installed("django.contrib.sessions"):
        return
    from django.contrib.sessions.models import Session

    for session in Session.objects.filter(expire_date__gt=_joined(user)).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()


def _joined(user: Any) -> datetime:
    """When the account was made; the beginning of time if accounts do not say."""
    return getattr(user, "date_joined", datetime.fromtimestamp(0, timezone.get_default_timezone()))
