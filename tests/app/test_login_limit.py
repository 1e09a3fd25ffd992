"""Too many wrong passwords are refused for a while, by account and by client, at every door."""

from __future__ import annotations

import asyncio
import contextvars
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings as site
from django.contrib.auth import aauthenticate, authenticate, get_user_model
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied
from django.core.management import call_command
from django.db import connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from bench import paths
from benchapp.login_limit import attempts, backends, checks, limits
from benchapp.login_limit.middleware import too_many_failed_logins
from benchapp.login_limit.models import FailedLogin
from tests import clock
from tests.app.conftest import PASSWORD

HOME, ELSEWHERE = "203.0.113.7", "198.51.100.9"
LOGIN, ADMIN = "/login/", "/admin/login/"
DOORS = [LOGIN, ADMIN]


@pytest.fixture(autouse=True)
def few(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FEW", 2)
    monkeypatch.setattr(limits, "MANY", 20)
    monkeypatch.setattr(limits, "MOST", 30)
    get_user_model().objects.create_superuser("margaret", password=PASSWORD)


def post(door: str, name: str = "margaret", password: str = "wrong", address: str = HOME) -> Any:
    data = {"username": name, "password": password, "next": "/"}
    return Client(REMOTE_ADDR=address).post(door, data)


def log_in(name: str = "margaret", password: str = "wrong", address: str = HOME, door: str = LOGIN) -> int:
    return post(door, name, password, address).status_code


# -- the doors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS)
def test_an_account_is_refused_from_an_address_that_failed_too_often(door: str):
    assert [log_in(door=door) for _ in range(4)] == [200, 200, 429, 429]
    assert log_in(password=PASSWORD, door=door) == 429
    # Its owner is elsewhere, and others are not concerned.
    assert log_in(password=PASSWORD, address=ELSEWHERE, door=door) == 302
    assert log_in(name="somebody", door=door) == 200


@pytest.mark.parametrize(("first", "second"), [DOORS, DOORS[::-1]])
def test_failures_at_one_door_count_at_the_other(first: str, second: str):
    assert [log_in(door=first) for _ in range(2)] == [200, 200]
    assert log_in(password=PASSWORD, door=second) == 429


@pytest.mark.parametrize("door", DOORS)
def test_the_response_says_when_to_come_back(door: str):
    for _ in range(2):
        log_in(door=door)
    response = post(door)
    assert (response.status_code, response["Retry-After"]) == (429, "300")
    assert "private" in response["Cache-Control"]
    assert "429.html" in [template.name for template in response.templates]


@pytest.mark.parametrize("door", DOORS)
def test_a_refused_login_looks_at_no_account(door: str):
    for name in ("margaret", "nobody"):
        for _ in range(2):
            log_in(name, door=door)
        with CaptureQueriesContext(connection) as queries:
            assert log_in(name, door=door) == 429
        assert not [query for query in queries if "auth_user" in query["sql"]]


def test_a_right_password_is_no_failure():
    assert [log_in(password=PASSWORD) for _ in range(4)] == [302] * 4
    assert not FailedLogin.objects.exists()


@pytest.mark.parametrize("door", DOORS)
def test_a_missing_field_is_no_failure(door: str):
    assert [log_in(password="", door=door) for _ in range(5)] == [200] * 5
    assert log_in(password=PASSWORD, door=door) == 302


def request_from(address: str = HOME) -> Any:
    return RequestFactory().post("/api/", REMOTE_ADDR=address)


def test_a_view_that_calls_authenticate_itself_is_limited():
    assert authenticate(request_from(), username="margaret", password=PASSWORD)
    for _ in range(2):
        assert authenticate(request_from(), username="margaret", password="wrong") is None
    assert authenticate(request_from(), username="margaret", password=PASSWORD) is None
    assert authenticate(request_from(ELSEWHERE), username="margaret", password=PASSWORD)


def test_a_login_without_a_request_is_limited_by_its_account():
    for _ in range(20):
        assert authenticate(username="margaret", password="wrong") is None
    assert authenticate(username="margaret", password=PASSWORD) is None
    assert log_in(password=PASSWORD, address=ELSEWHERE) == 429
    # What is refused is not counted.
    assert FailedLogin.objects.count() == 20


@pytest.mark.django_db(transaction=True)
def test_an_async_view_is_limited():
    async def tries() -> list[bool]:
        words = ["wrong", "wrong", PASSWORD]
        return [bool(await aauthenticate(request_from(), username="margaret", password=word)) for word in words]

    assert asyncio.run(tries()) == [False, False, False]
    FailedLogin.objects.all().delete()
    assert asyncio.run(aauthenticate(request_from(), username="margaret", password=PASSWORD))


def test_the_async_backend_refuses_by_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attempts, "_take_places", lambda limits, key: not limits)
    backend = backends.LimitBackend()
    with pytest.raises(PermissionDenied):
        asyncio.run(backend.aauthenticate(request_from(), username="margaret", password="wrong"))
    assert asyncio.run(backend.aauthenticate(request_from(), token="x")) is None


@pytest.mark.parametrize("credentials", [{}, {"token": "x"}, {"remote_user": "margaret"}])
def test_a_login_without_a_password_is_not_limited(credentials: dict[str, str]):
    for _ in range(25):
        assert authenticate(request_from(), **credentials) is None
    assert not FailedLogin.objects.exists()


def test_a_failure_that_another_package_reports_counts():
    for _ in range(2):
        user_login_failed.send(
            sender="other", credentials={"username": "margaret", "password": "***"}, request=request_from()
        )
    assert log_in(password=PASSWORD) == 429


def test_the_middleware_replaces_the_response_to_a_refused_login_only():
    request = request_from()
    async_view = AsyncMock(return_value=HttpResponse("wrong password"))
    for refused, status in ((False, 200), (True, 429)):
        request.login_refused = refused
        assert too_many_failed_logins(lambda request: HttpResponse("wrong password"))(request).status_code == status
        assert asyncio.run(too_many_failed_logins(async_view)(request)).status_code == status


# -- who is counted ----------------------------------------------------------------------------------


def test_an_account_is_refused_from_everywhere_after_more_failures():
    assert [log_in(address=f"203.0.113.{number}") for number in range(21)] == [200] * 20 + [429]
    assert log_in(password=PASSWORD, address=ELSEWHERE) == 429


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("addresses", "status"),
    [
        (["203.0.113.7"] * 21, 429),
        ([f"2001:db8::{number:x}" for number in range(21)], 429),
        ([f"2001:db8:0:{number:x}::1" for number in range(21)], 200),
        # One address of IPv4, as a socket of both versions names it, and one of each.
        (["::ffff:203.0.113.7"] * 11 + ["203.0.113.7"] * 10, 429),
        ([f"::ffff:203.0.113.{number}" for number in range(21)], 200),
        # The same behind a translator.
        ([f"64:ff9b::203.0.113.{number}" for number in range(21)], 200),
        (["64:ff9b::203.0.113.7"] * 11 + ["203.0.113.7"] * 10, 429),
        ([f"fe80::{number:x}%eth0" for number in range(21)], 429),
        (["::ffff:127.0.0.1"] * 21, 200),
        # All clients may look like this one.
        (["127.0.0.1"] * 21, 200),
        ([""] * 21, 200),
    ],
)
def test_an_address_is_refused_after_failures_with_many_accounts(addresses: list[str], status: int, door: str):
    statuses = [log_in(name=f"name-{number}", address=address, door=door) for number, address in enumerate(addresses)]
    assert statuses == [200] * 20 + [status]


def test_all_networks_of_an_ipv6_site_are_refused_after_still_more():
    statuses = [log_in(name=f"name-{number}", address=f"2001:db8:0:{number:x}::1") for number in range(31)]
    assert statuses == [200] * 30 + [429]
    assert log_in(name="name", address="2001:db8:1::1") == 200


@pytest.mark.parametrize("door", DOORS)
def test_an_account_has_one_name_however_a_client_spells_it(door: str):
    names = ["margaret", " margaret", "margaret\t", "\uff4dargaret", "\u2003margaret "]
    assert [log_in(name, door=door) for name in names] == [200, 200, 429, 429, 429]


@pytest.mark.parametrize("names", [("ann@example.org", "ANN@Example.org", "Ann@example.org"), ("x" * 300,) * 3])
def test_names_that_may_find_the_same_account_count_together(names: tuple[str, ...]):
    refused = []
    for name in names:
        request = request_from()
        authenticate(request, username=name, password="wrong")
        refused.append(request.login_refused)
    assert refused == [False, False, True]


def test_an_account_that_is_known_by_its_address_is_counted():
    for _ in range(2):
        authenticate(request_from(), email="ann@example.org", password="wrong")
    assert not attempts.begin(limits.limits_of(request_from(), {"email": "ann@example.org", "password": ""}))


# -- passwords that are checked at one moment ---------------------------------------------------------


class Hasher(MD5PasswordHasher):
    """Checks a password like MD5, and has something done while it is being checked."""

    checked: list[str] = []
    meanwhile: list[Callable[[], object]] = []

    def verify(self, password: str, encoded: str) -> bool:
        self.checked.append(password)
        if self.meanwhile:
            elsewhere(self.meanwhile.pop())
        return super().verify(password, encoded)


def elsewhere(task: Callable[[], Any]) -> Any:
    """The result of the task in a separate context, like that of another request."""
    return contextvars.Context().run(task)


def begin_elsewhere(limit: dict[str, int]) -> contextvars.Context:
    """The context of an attempt whose password is being checked."""
    context = contextvars.Context()
    assert context.run(attempts.begin, limit)
    return context


@pytest.mark.parametrize("door", DOORS)
def test_no_more_passwords_are_checked_at_one_moment_than_may_fail(
    settings: Any, monkeypatch: pytest.MonkeyPatch, door: str
):
    monkeypatch.setattr(attempts, "PAUSES", 0)
    settings.PASSWORD_HASHERS = [f"{__name__}.Hasher"]
    statuses: list[int] = []
    monkeypatch.setattr(Hasher, "checked", [])
    monkeypatch.setattr(Hasher, "meanwhile", [lambda: statuses.append(log_in(door=door))] * 5)
    statuses.append(log_in(door=door))
    assert (statuses, Hasher.checked) == ([429, 200, 200], ["wrong", "wrong"])
    assert log_in(password=PASSWORD, door=door) == 429


@pytest.mark.parametrize("door", DOORS)
def test_a_right_password_waits_for_others_that_are_being_checked(monkeypatch: pytest.MonkeyPatch, door: str):
    limit = limits.limits_of(request_from(), {"username": "margaret", "password": ""})
    others = [begin_elsewhere(limit) for _ in range(2)]
    clock.change(monkeypatch, attempts, sleep=lambda seconds: others.pop().run(attempts.release))
    assert log_in(password=PASSWORD, door=door) == 302
    assert len(others) == 1


@pytest.mark.django_db(transaction=True)
def test_an_async_login_waits_for_others_that_are_being_checked(monkeypatch: pytest.MonkeyPatch):
    limit = limits.limits_of(request_from(), {"username": "margaret", "password": ""})
    others = [begin_elsewhere(limit) for _ in range(2)]

    async def sleep(seconds: float) -> None:
        await sync_to_async(others.pop().run)(attempts.release)

    monkeypatch.setattr(attempts, "asyncio", SimpleNamespace(sleep=sleep))
    assert asyncio.run(aauthenticate(request_from(), username="margaret", password=PASSWORD))
    assert len(others) == 1


def test_an_attempt_whose_end_nobody_sees_holds_its_places_for_a_while(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attempts, "PAUSES", 0)
    limit = limits.limits_of(request_from(), {"username": "margaret", "password": ""})
    for _ in range(2):
        begin_elsewhere(limit)
    assert log_in(password=PASSWORD) == 429
    FailedLogin.objects.update(at=timezone.now() - timedelta(seconds=attempts.UNDECIDED_S))
    assert [log_in(password=PASSWORD) for _ in range(3)] == [302] * 3


def test_a_failure_that_comes_after_that_is_counted():
    request, credentials = request_from(), {"username": "margaret", "password": ""}
    attempts.begin(limits.limits_of(request, credentials))
    FailedLogin.objects.all().delete()
    user_login_failed.send(sender="late", credentials=credentials, request=request)
    assert FailedLogin.objects.filter(attempt=None).count() == 3


def test_passwords_that_are_right_without_a_login_hold_no_places():
    def api(request: Any) -> HttpResponse:
        assert authenticate(request, username="margaret", password=PASSWORD)
        return HttpResponse("right")

    async def async_api(request: Any) -> HttpResponse:
        return await sync_to_async(api)(request)

    for _ in range(3):
        assert elsewhere(lambda: too_many_failed_logins(api)(request_from())).status_code == 200
        assert not FailedLogin.objects.exists()
        assert elsewhere(lambda: async_to_sync(too_many_failed_logins(async_api))(request_from())).status_code == 200
        assert not FailedLogin.objects.exists()


def test_a_program_may_check_right_passwords_as_often_as_it_likes():
    for _ in range(21):
        assert authenticate(username="margaret", password=PASSWORD)
    assert log_in(password=PASSWORD) == 302


def test_a_backend_that_logs_in_once_more_has_both_failures_counted():
    assert attempts.begin(limits.limits_of(request_from(), {"username": "margaret", "password": ""}))
    assert authenticate(request_from(), username="margaret", password="wrong") is None
    user_login_failed.send(sender="outer", credentials={"username": "margaret", "password": ""}, request=request_from())
    assert log_in(password=PASSWORD) == 429


def test_a_right_login_costs_three_queries_more():
    with CaptureQueriesContext(connection) as queries:
        assert log_in(password=PASSWORD) == 302
    assert len([query for query in queries if '"login_limit_' in query["sql"]]) == 3


def test_failures_of_a_release_without_places_still_count():
    limit = limits.limits_of(request_from(), {"username": "margaret", "password": ""})
    FailedLogin.objects.bulk_create(FailedLogin(limit=name) for name in limit for _ in range(2))
    assert log_in(password=PASSWORD) == 429


# -- the end of it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS)
def test_failures_are_forgotten_after_a_while(door: str):
    assert [log_in(door=door) for _ in range(3)] == [200, 200, 429]
    FailedLogin.objects.update(at=timezone.now() - timedelta(seconds=limits.WINDOW_S))
    assert log_in(door=door) == 200
    assert FailedLogin.objects.count() == 3


@pytest.mark.parametrize("door", DOORS)
def test_attempts_that_are_refused_do_not_prolong_it(door: str):
    assert [log_in(door=door) for _ in range(9)] == [200] * 2 + [429] * 7
    assert FailedLogin.objects.count() == 6


def test_a_failed_login_costs_few_queries_however_many_there_were():
    for _ in range(20):
        log_in(name="nobody", address="203.0.113.8")
        with CaptureQueriesContext(connection) as queries:
            log_in(address="203.0.113.9")
        assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) <= 5


def documented_command() -> str:
    """The command that docs/production.md names for letting everybody in again."""
    text = (paths.KIT / "docs" / "production.md").read_text("utf-8")
    return re.findall(r"manage shell -c '([^']*FailedLogin[^']*)'", text)[0]


def test_the_documented_command_lets_everybody_in_again():
    assert [log_in() for _ in range(3)] == [200, 200, 429]
    call_command("shell", command=documented_command())
    assert log_in(password=PASSWORD) == 302


def test_visitors_who_are_signed_in_stay_so_while_their_account_is_refused():
    client = Client(REMOTE_ADDR=HOME)
    client.post(LOGIN, {"username": "margaret", "password": PASSWORD})
    for _ in range(3):
        log_in()
    assert client.get("/admin/").status_code == 200


# -- another project ---------------------------------------------------------------------------------

OTHER_PROJECT = """
INSTALLED_APPS.append("benchapp.login_limit")
MIDDLEWARE.append("benchapp.login_limit.middleware.too_many_failed_logins")
AUTHENTICATION_BACKENDS = [
    "benchapp.login_limit.backends.LimitBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["testserver"]
"""
TRY = """
from django.contrib.auth.models import User
from django.test import Client

User.objects.create_superuser("ann", password="right-words")
words = ["wrong"] * 6 + ["right-words"]
at = lambda word: Client(REMOTE_ADDR="203.0.113.7").post(
    "/admin/login/", {"username": "ann", "password": word, "next": "/admin/"}
)
responses = [at(word) for word in words]
print([response.status_code for response in responses], responses[-1]["Retry-After"])
"""


def test_a_fresh_project_installs_it(tmp_path: Path):
    def run(*words: str, status: int = 0) -> str:
        argv = [sys.executable, *words]
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{tmp_path}:{site.BASE_DIR}"}
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    run("-m", "django", "startproject", "shop", ".")
    with (tmp_path / "shop" / "settings.py").open("a") as settings:
        settings.write(OTHER_PROJECT)
    assert "no issues" in run("manage.py", "check")
    assert "No changes" in run("manage.py", "makemigrations", "--check", "--dry-run")
    run("manage.py", "migrate", "-v", "0")
    assert "[200, 200, 200, 200, 200, 429, 429] 300" in run("manage.py", "shell", "-v", "0", "-c", TRY)
    with (tmp_path / "shop" / "settings.py").open("a") as settings:
        settings.write("AUTHENTICATION_BACKENDS.reverse()")
    assert "login_limit.E001" in run("manage.py", "check", status=1)


# -- system checks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "ids"),
    [
        ([], ["login_limit.E001"]),
        (["django.contrib.auth.backends.ModelBackend"], ["login_limit.E001"]),
        (["no.such.Backend"], ["login_limit.E001"]),
        (list(reversed(site.AUTHENTICATION_BACKENDS)), ["login_limit.E001"]),
        (site.AUTHENTICATION_BACKENDS, []),
    ],
)
def test_a_backend_that_would_look_at_passwords_first_is_found(settings: Any, wrong: list[str], ids: list[str]):
    settings.AUTHENTICATION_BACKENDS = wrong
    assert [message.id for message in checks.check_backend()] == ids


@pytest.mark.parametrize(("middleware", "ids"), [(site.MIDDLEWARE, []), ([], ["login_limit.W002"])])
def test_middleware_that_would_miss_the_end_of_requests_is_found(settings: Any, middleware: Any, ids: list[str]):
    settings.MIDDLEWARE = middleware
    assert [message.id for message in checks.check_middleware()] == ids


@pytest.mark.parametrize(("atomic", "ids"), [(True, ["login_limit.W001"]), (False, [])])
def test_counts_that_a_view_would_undo_are_found(
    settings: Any, monkeypatch: pytest.MonkeyPatch, atomic: bool, ids: list[str]
):
    monkeypatch.setitem(settings.DATABASES["default"], "ATOMIC_REQUESTS", atomic)
    assert [message.id for message in checks.check_transactions()] == ids
