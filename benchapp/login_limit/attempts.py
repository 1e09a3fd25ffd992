"""Attempts to log in: each takes a place in every limit that concerns it, before its password is checked.

A limit has as many places as failures are allowed. A unique constraint gives a place to one attempt, so attempts made
at one moment cannot exceed a limit. A wrong password keeps its places for a while, a right one gives them back.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db import IntegrityError, router, transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from benchapp.login_limit.limits import WINDOW_S, limits_of
from benchapp.login_limit.models import FailedLogin

# How long an attempt holds its places whose end nobody sees, such as that of a killed worker. No check takes as long.
UNDECIDED_S = 30

# An attempt waits while others hold the last places: their passwords may be right. In all 10 s.
PAUSE_S, PAUSES = 0.1, 100


class Attempt(NamedTuple):
    """An attempt whose password is being checked; without a key if it was refused."""

    limits: Mapping[str, int]
    key: uuid.UUID | None


# The last attempt of this request, thread or task. Django tells of a failure by a signal, of a success it does not.
_current: ContextVar[Attempt | None] = ContextVar("login_attempt", default=None)


def begin(limits: Mapping[str, int]) -> bool:
    """Take a place in each of the limits; False if failures hold all places of one."""
    release()
    if not limits:
        # A login without a password, such as single sign-on.
        return True
    key = uuid.uuid4()
    begun = _take_places(limits, key)
    for _ in range(PAUSES):
        if begun is not None:
            break
        time.sleep(PAUSE_S)
        begun = _take_places(limits, key)
    return _note(limits, key, begun)


async def abegin(limits: Mapping[str, int]) -> bool:
    """Take places like `begin`, and wait without a thread."""
    await arelease()
    if not limits:
        return True
    key = uuid.uuid4()
    begun = await sync_to_async(_take_places)(limits, key)
    for _ in range(PAUSES):
        if begun is not None:
            break
        await asyncio.sleep(PAUSE_S)
        begun = await sync_to_async(_take_places)(limits, key)
    return _note(limits, key, begun)


def count_failure(
    sender: object, credentials: Mapping[str, Any], request: HttpRequest | None = None, **signal: object
) -> None:
    """Count a login that `user_login_failed` reports, unless it was refused: else the limit would never end."""
    limits = limits_of(request, credentials)
    if not _keep_places(limits):
        # Another package reports a login without `authenticate()`, or the attempt was not expected to end any more.
        begin(limits)
        _keep_places(limits)
    _current.set(None)
    _rows().filter(_ended()).delete()


def release(**signal: object) -> None:
    """Give back the places of the last attempt if it has not failed."""
    attempt = _current.get()
    _current.set(None)
    if attempt is not None and attempt.key is not None:
        _rows().filter(limit__in=attempt.limits, attempt=attempt.key).delete()


async def arelease() -> None:
    """Give back places like `release`, in a thread only if the last attempt may hold some."""
    if _current.get() is not None:
        await sync_to_async(release)()


def _note(limits: Mapping[str, int], key: uuid.UUID, begun: bool | None) -> bool:
    """Remember the attempt, and return whether it has begun."""
    _current.set(Attempt(limits, key if begun else None))
    return bool(begun)


def _keep_places(limits: Mapping[str, int]) -> bool:
    """Count the last attempt as failed, unless it was refused; False if it is of other limits or holds no places."""
    attempt = _current.get()
    if attempt is None or attempt.limits != limits:
        return False
    if attempt.key is None:
        return True
    rows = _rows().filter(limit__in=limits, attempt=attempt.key)
    return rows.update(attempt=None, at=timezone.now()) > 0


def _take_places(limits: Mapping[str, int], key: uuid.UUID) -> bool | None:
    """Take a place in each limit, or none; False if failures hold all places of one, None if it is to try again."""
    free = _free_places(limits)
    if free is None:
        return False
    if not all(free.values()):
        return None
    # In one order for all, so that attempts that meet do not deadlock.
    rows = [FailedLogin(limit=limit, place=secrets.choice(free[limit]), attempt=key) for limit in sorted(limits)]
    try:
        with transaction.atomic(using=_rows().db):
            _rows().bulk_create(rows)
    except IntegrityError:
        # Another attempt was first.
        return None
    return True


def _free_places(limits: Mapping[str, int]) -> dict[str, list[int]] | None:
    """The places in each limit that no attempt holds; None if failures hold all places of one."""
    held: dict[str, set[int]] = {limit: set() for limit in limits}
    failures = Counter()
    rows = _rows().filter(limit__in=limits).annotate(ended=ExpressionWrapper(_ended(), BooleanField()))
    places = list(rows.values_list("limit", "place", "attempt", "ended"))
    for limit, place, attempt, ended in places:
        if ended:
            continue
        held[limit].add(place)
        if attempt is None:
            failures[limit] += 1
    if any(ended for *_, ended in places):
        _rows().filter(_ended(), limit__in=limits).delete()
    if any(failures[limit] >= allowed for limit, allowed in limits.items()):
        return None
    return {limit: sorted(set(range(allowed)) - held[limit]) for limit, allowed in limits.items()}


def _ended() -> Q:
    """Rows that count no longer."""
    now = timezone.now()
    undecided = Q(attempt__isnull=False, at__lte=now - timedelta(seconds=UNDECIDED_S))
    return undecided | Q(at__lte=now - timedelta(seconds=WINDOW_S))


def _rows() -> QuerySet[FailedLogin]:
    """The rows of the database that is written to: a replica may be late."""
    return FailedLogin.objects.using(router.db_for_write(FailedLogin))
