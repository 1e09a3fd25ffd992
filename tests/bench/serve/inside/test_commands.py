"""The commands of the instrument: siteurls, renderpages, verifyaccount, sitecheck."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, override_settings

from bench.serve.inside.management.commands import renderpages
from bench.verify.visitor import MAIL
from benchapp.models import Author, Comment, Post
from tests.app.conftest import Rows, account
from tests.managing import manage

Site = Callable[..., AbstractContextManager[None]]


def run(*arguments: Any) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


# -- siteurls ----------------------------------------------------------------------------------------


def test_every_url_responds(rows: Rows, client: Client):
    urls = json.loads(run("siteurls"))
    assert {urls["home"], urls["authors"], urls["posts"], urls["comments"], urls["login"]} == {
        "/",
        "/authors/",
        "/posts/",
        "/comments/",
        "/login/",
    }
    assert urls["author"] == f"/authors/{rows.author.pk}/"
    assert urls["post"] == urls["detail"] == urls["commented"] == f"/posts/{rows.post.pk}/"
    assert urls["post_page"] == f"/posts/{rows.post.pk}/page/2/"
    assert urls["comments_last"] == "/comments/page/3/"
    for kind, url in urls.items():
        status = 404 if kind.endswith("_beyond") else 200
        assert client.get(url, follow=kind.endswith("_redirect")).status_code == status, kind


def test_kinds_without_an_example_are_left_out(db: None):
    author = Author.objects.create(name="A", city="B")
    post = Post.objects.create(author=author, title="T", body="B")
    Comment.objects.create(post=post, name="N", body="B", rating=1)
    urls = json.loads(run("siteurls"))
    assert not [kind for kind in urls if kind.endswith(("_page", "_middle", "_last"))]
    assert urls["list"] == "/posts/"


def test_siteurls_of_an_empty_site_says_what_to_do(db: None):
    with pytest.raises(CommandError, match=r"^the tables are empty: run ./manage.py loadfixtures$"):
        run("siteurls")


@pytest.mark.parametrize("command", [["siteurls"], ["siterows"], ["verifyaccount", "create"]])
def test_commands_without_tables_say_what_to_do(tmp_path: Path, command: list[str]):
    done = manage(*command, BENCHAPP_PROBES="1", DATABASE_URL=f"sqlite:///{tmp_path / 'new.sqlite3'}")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no such table" in done.stderr
    assert done.stderr.endswith("run ./manage.py migrate\n")


# -- renderpages -------------------------------------------------------------------------------------


def test_pages_are_what_an_anonymous_reader_gets(rows: Rows, client: Client):
    paths = ["/", "/posts/", f"/posts/{rows.post.pk}/", "/nowhere/", "/posts/page/1/", "/healthz"]
    pages = json.loads(run("renderpages", *paths))
    assert list(pages) == paths
    for path in paths:
        response = client.get(path)
        assert "host" in pages[path].pop("reads")["headers"]
        assert pages[path] == {
            "status": response.status_code,
            "content_type": response["Content-Type"],
            "body": response.content.decode(),
            **({"location": response["Location"]} if response.has_header("Location") else {}),
        }


def test_the_names_that_a_rendering_looks_for_are_noted(db: None, settings: Any):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.bench.serve.inside.test_commands.looking"]
    reads = json.loads(run("renderpages", "/login/"))["/login/"]["reads"]
    assert {"x-country", "x-device", "cf-ipcountry", "x-region", "host"} <= set(reads["headers"])
    assert {"theme", "currency"} <= set(reads["cookies"])
    assert "any" not in reads["headers"]


def looking(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that looks for headers and cookies in each way."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.META.get("HTTP_X_COUNTRY")
        request.headers.get("X-Device")
        assert "CF-IPCountry" not in request.headers
        assert "theme" not in request.COOKIES
        request.COOKIES.get("currency")
        request.environ.get("HTTP_X_REGION")
        assert "x-plan" not in dict(request.headers)
        assert request.get_host()
        return get_response(request)

    return middleware


def test_a_second_rendering_is_there_if_it_differs(rows: Rows):
    pages = json.loads(run("renderpages", "/", "/login/"))
    assert "again" not in pages["/"]
    bodies = [pages["/login/"]["body"], *pages["/login/"]["again"]]
    assert len(set(bodies)) == len(bodies) > renderpages.LEAST


def test_layers_and_https_do_not_matter(rows: Rows, site_with: Site, tmp_path: Path):
    bare = json.loads(run("renderpages", "/", "/posts/"))
    with site_with(
        BENCHAPP_PROBES="1",
        CACHING_PAGE_CACHE="1",
        CACHING_FRAGMENTS="1",
        CACHING_STATICGENERATOR_ROOT=str(tmp_path / "pages"),
        BENCHAPP_HTTPS="1",
        ALLOWED_HOSTS="example.org",
    ):
        cache.clear()
        Comment.objects.filter(post=rows.post).update(body="changed behind the layers' back")
        pages = json.loads(run("renderpages", "/", "/posts/"))
        assert pages["/posts/"] == bare["/posts/"]
        assert "behind the layers" in pages["/"]["body"]
        assert not cache._cache
    assert not (tmp_path / "pages").exists()


def odd(*words: str) -> dict[str, Any]:
    """A page of tests.bench.serve.inside.odd_pages."""
    with override_settings(ROOT_URLCONF="tests.bench.serve.inside.odd_pages"):
        (page,) = json.loads(run("renderpages", *words)).values()
    return page


def test_a_request_in_process_has_what_a_real_one_has():
    assert odd("/request/")["body"] == "127.0.0.1 verify */* HTTP/1.1 127.0.0.1"


def test_what_the_port_changes_differs_from_rendering_to_rendering():
    page = odd("/port/")
    assert page["body"] == "http://127.0.0.1/port/ port 80"
    assert page["again"] == [page["body"].replace("port 80", f"port {renderpages.PORT}")]


def test_what_the_project_s_own_cache_changes_differs():
    page = odd("/seen/")
    assert (page["body"], page["again"], page["varying"]) == ("seen None", ["seen True"], ["x-first"])


@pytest.mark.parametrize(("cheap_s", "times"), [(0, 3), (60, 9)])
def test_what_is_cheap_is_rendered_more_often(monkeypatch: pytest.MonkeyPatch, cheap_s: float, times: int):
    monkeypatch.setattr(renderpages, "CHEAP_S", cheap_s)
    page = odd("/chance/")
    assert len({page["body"], *page["again"]}) == times


def test_rendered_often_a_page_shows_its_clock():
    assert odd("--often", "/second/")["varying"] == ["x-second"]
    assert "varying" not in odd("--often", "/stream/")


def test_bytes_and_streams_come_as_they_are():
    assert odd("/latin/")["body"].encode("utf-8", "surrogateescape") == b"K\xf6ln"
    page = odd("/stream/")
    assert (page["body"], page["streams"]) == ("ab", True)


def test_a_write_to_the_database_is_reported(tmp_path: Path):
    env = {"BENCHAPP_PROBES": "1", "DATABASE_URL": f"sqlite:///{tmp_path / 'new.sqlite3'}"}
    manage("migrate", "--verbosity", "0", **env)
    written = []
    for words in ([], ["createsuperuser", "--noinput", "--username", "ann", "--email", "ann@example.org"], []):
        if words:
            assert manage(*words, DJANGO_SUPERUSER_PASSWORD="secret", **env).returncode == 0
        written.append(json.loads(manage("writtenrows", **env).stdout)["written"])
    assert written[0] != written[1] == written[2]


def test_static_files_are_read_too(db: None):
    page = json.loads(run("renderpages", "/static/small.txt"))["/static/small.txt"]
    assert (page["status"], len(page["body"])) == (200, 99)


def test_a_stream_that_does_not_end_is_read_for_a_while(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bench.serve.inside.management.commands.renderpages.STREAM_S", 0.1)
    monkeypatch.setattr(Client, "get", lambda *_: StreamingHttpResponse(itertools.repeat(b"x")))
    page = json.loads(run("renderpages", "/events/"))["/events/"]
    assert (page["status"], page["body"][:3], page["error"]) == (200, "xxx", "its stream does not end within 3 s")


def test_a_page_that_breaks_is_a_500_of_the_site(rows: Rows, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchapp.pagination.TablePaginator.page", lambda paginator, number: 1 / 0)
    assert json.loads(run("renderpages", "/posts/"))["/posts/"]["status"] == 500


def test_a_word_that_is_not_a_path_is_refused(db: None):
    with pytest.raises(CommandError, match="'posts/' is not a path: begin it with a slash"):
        run("renderpages", "posts/")


# -- verifyaccount -----------------------------------------------------------------------------------


def contents() -> dict[str, list]:
    """Everything in the database that a check may have changed."""
    models = (Author, Post, Comment, get_user_model(), Session)
    return {model.__name__: sorted(map(str, model.objects.values_list())) for model in models}


def created(*options: str) -> list[dict[str, str]]:
    """The accounts that `verifyaccount create` makes with these options."""
    return json.loads(run("verifyaccount", "create", *options))["accounts"]


def test_account_logs_in_posts_and_leaves_no_trace(rows: Rows):
    account("somebody")  # their session stays
    before = contents()
    (new_account,) = created()
    client = Client()
    response = client.post("/login/", new_account)
    assert response.status_code == 302
    other = Post.objects.exclude(pk=rows.post.pk).latest("id")
    for post in (rows.post, other):
        assert client.post(f"/posts/{post.pk}/comment/", {"body": "x", "rating": 1}).status_code == 302
    assert contents() != before
    assert run("verifyaccount", "delete", new_account["username"]) == ""
    after = contents()
    for name in ("Author", "Post", "Comment", "User", "Session"):
        assert after[name] == before[name], name


def test_accounts_are_ordinary_and_each_one_new(db: None):
    one, other = created("--count", "2")
    assert one["username"] != other["username"]
    user = get_user_model().objects.get(username=one["username"])
    assert not (user.is_staff or user.is_superuser)
    assert user.check_password(one["password"])
    # If the login form takes a mail address.
    assert user.email == user.username + MAIL
    # Pages that show a person's name show this one: the admin, Wagtail's sidebar.
    assert user.get_short_name() == user.username and user.username in user.get_full_name()


def test_superusers_are_made_if_the_description_says_so(db: None):
    (account,) = created("--superuser")
    user = get_user_model().objects.get(username=account["username"])
    assert user.is_staff and user.is_superuser and user.check_password(account["password"])
    run("verifyaccount", "delete", account["username"])
    assert not get_user_model().objects.filter(is_superuser=True).exists()


def test_accounts_may_be_known_by_their_address(db: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(get_user_model(), "USERNAME_FIELD", "email")
    (account,) = created()
    user = get_user_model().objects.get(email=account["username"])
    assert account["username"].endswith(MAIL) and user.check_password(account["password"])
    run("verifyaccount", "delete", account["username"])
    assert not get_user_model().objects.filter(pk=user.pk).exists()


@pytest.mark.parametrize("name", ["margaret", "verify-bob"])
def test_people_are_not_deleted(db: None, name: str):
    account(name)
    with pytest.raises(CommandError, match=f"^'{name}' is not an account of this command"):
        run("verifyaccount", "delete", name)
    assert get_user_model().objects.filter(username=name).exists()


def test_only_abandoned_accounts_are_deleted(rows: Rows, db: None):
    left = created("--owner", "killed")[0]["username"]
    used = json.loads(run("verifyaccount", "create", "--owner", "at work"))
    assert used["others"] == [{"username": left, "owner": "killed"}]
    account("verify-a-person")
    for name in (left, "verify-a-person"):
        user = get_user_model().objects.get(username=name)
        Comment.objects.create(post=rows.post, user=user, name=name, body="B", rating=1)
    run("verifyaccount", "delete", left, "verify-0123456789abcdef")
    names = set(get_user_model().objects.values_list("username", flat=True))
    assert names >= {used["accounts"][0]["username"], "verify-a-person"}
    assert left not in names
    assert list(Comment.objects.filter(name__startswith="verify-").values_list("name", flat=True)) == [
        "verify-a-person"
    ]
    with pytest.raises(CommandError, match=r"^'verify-a-person' is not an account of this command"):
        run("verifyaccount", "delete", "verify-a-person")


# -- sitecheck ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "sqlite:///{}/none.sqlite3",
            "SQLite database {}/none.sqlite3: there is no such file: run ./manage.py migrate",
        ),
        ("oracle://user:secret@host/name", "DATABASE_URL: 'oracle' is not a database of this site: use sqlite:///FILE"),
        (
            "postgresql://user:secret@127.0.0.1:1/name",
            "PostgreSQL database name at 127.0.0.1:1: connection to server",
        ),
    ],
)
def test_sitecheck_says_in_one_line_what_is_wrong_with_the_database(tmp_path: Path, url: str, message: str):
    done = manage("sitecheck", BENCHAPP_PROBES="1", DATABASE_URL=url.format(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert message.format(tmp_path) in done.stderr
    assert "secret" not in done.stderr


def test_sitecheck_passes_a_site_that_can_be_served(site_database: str):
    assert run("sitecheck").endswith(" can be served.\n")


def test_wrong_settings_are_one_line_of_any_command():
    wrong = manage("diffsettings", BENCHAPP_PROBES="1", CACHING_FRAGMENTS="perhaps")
    assert wrong.stderr == "manage.py: CACHING_FRAGMENTS='perhaps': use 1 or 0\n"


def test_an_early_interrupt_is_one_line(tmp_path: Path):
    # A settings module that interrupts itself, as Ctrl-C would while the site is still being read.
    (tmp_path / "early.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = manage("loadfixtures", BENCHAPP_PROBES="1", DJANGO_SETTINGS_MODULE="early", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (130, "manage.py: interrupted\n")


# -- wrong arguments ---------------------------------------------------------------------------------


def test_wrong_arguments_end_without_a_traceback():
    done = manage("siteurls", "x", BENCHAPP_PROBES="1")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "error:" in done.stderr
