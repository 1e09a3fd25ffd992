"""The site's own responses, through its commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.errors import BenchError
from bench.serve.machine import http
from bench.serve.project.description import Description, Login
from bench.serve.project.health import CORRECT, UNKNOWN_PATH
from bench.serve.project.run_command import Interpreter
from bench.verify import site as sites
from bench.verify import wire
from bench.verify.mismatch import NotTried
from bench.verify.site import INSIDE, PROBE_PAGE, Site
from bench.verify.target_site import target_site

# Output of the site's commands; `broken` names the defect.
MANAGE = """
import json, os, pathlib, sys, time
words = sys.argv[1:]
broken = os.environ.get("BROKEN", "")
(pathlib.Path(__file__).parent / f"{words[0]}.json").write_text(json.dumps([words, dict(os.environ)]))
if broken == f"{words[0]} fails":
    print("Traceback", file=sys.stderr)
    sys.exit("CommandError: the tables are empty: run ./manage.py loadfixtures")
if broken == f"{words[0]} prints":
    print("Loading...")
elif words[0] == "siteurls":
    print(json.dumps({"home": "/", "section": "/posts/", "css": "/static/site.css"}))
elif words[0] == "writtenrows":
    print(json.dumps({"written": "as at first"}))
elif words[0] == "renderpages":
    status = 500 if broken == "home" else 200
    page = {"status": status, "content_type": "Text/HTML; charset=utf-8", "body": "a page"}
    pages = {path: page for path in words[1:]}
    if broken == "redirects":
        pages["/"] |= {"status": 302, "location": "/login/?next=/"}
    if broken == "handler":
        pages[words[-1]] = {**page, "status": 500, "error": "KeyError: 'x' (shop/urls.py:7)"}
    if broken == "gate":
        pages[words[1]] = {**page, "status": 302}
    if broken == "page":
        del pages["/posts/"]["body"]
    print(json.dumps(pages))
elif words[1] == "create":
    print(json.dumps({"accounts": [{"username": "verify-1", "password": "secret"}]}))
"""

LOGIN = Description(login=Login("/login/"))


def prepare(manage_py: Path, env: dict[str, str] | None = None, python: str = sys.executable, prefix=(), **how) -> Site:
    """The site with its expected pages."""
    place = (manage_py.parent / "static", "/static/", Interpreter(prefix, Path(python), manage_py))
    return sites.prepare(sites.with_urls(Site({}, {}, *place, env or {}, may_write=True, is_copy=True, **how)))


@pytest.fixture
def manage_py(tmp_path):
    path = tmp_path / "manage.py"
    path.write_text(MANAGE)
    return path


def last_run(manage_py: Path, command: str) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of the last run of a command."""
    return tuple(json.loads((manage_py.parent / f"{command}.json").read_text()))


def test_two_commands_render_pages_of_every_kind(manage_py):
    site = prepare(manage_py, {"LAYER": "no"})
    words, environment = last_run(manage_py, "renderpages")
    assert words == ["renderpages", INSIDE, PROBE_PAGE, "/", "/posts/", UNKNOWN_PATH]
    assert environment["LAYER"] == "no"
    assert site.pages["/"].body == "a page"
    assert site.pages["/"].content_type == "text/html;charset=utf-8"


def test_a_health_check_is_no_page_that_a_layer_should_cache(manage_py):
    named = Description(public=("/",), health="/health/")
    site = prepare(manage_py, description=named)
    assert site.pages["/health/"].status == 200
    assert site.main_paths == ["/", "/posts/"]


def test_commands_have_the_environment_of_the_deployment_and_no_other(manage_py, monkeypatch):
    monkeypatch.setenv("DEBUG", "1")
    site = prepare(manage_py, {"CACHE": "none"}, prefix=("env", "PREFIXED=1"), description=LOGIN)
    _, environment = last_run(manage_py, "siteurls")
    assert (environment["CACHE"], environment["PREFIXED"]) == ("none", "1")
    assert not {"DEBUG", "DATABASE_URL"} & environment.keys()
    (account,) = site.create_accounts(1, {"CACHE": "files"})
    assert (account.username, account.password) == ("verify-1", "secret")
    site.remove_accounts([account], {"CACHE": "files"})
    words, environment = last_run(manage_py, "verifyaccount")
    assert words == ["verifyaccount", "delete", "verify-1"]
    assert environment["CACHE"] == "files"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            "siteurls fails",
            "manage.py siteurls exited with status 1: CommandError: the tables are empty: run ./manage.py loadfixtures",
        ),
        ("siteurls prints", "manage.py siteurls: printed 'Loading...\\n', not a JSON object"),
        (
            "home",
            f"manage.py renderpages /: status 500, not 200; {CORRECT}, or correct public in [tool.benchapp] of "
            "pyproject.toml, then try again",
        ),
        (
            "redirects",
            "manage.py renderpages /: it redirects to /login/?next=/; describe the login, and measure pages that need "
            'none: in [tool.benchapp] of pyproject.toml public = [...], then [tool.benchapp.login], url = "/login/", '
            'page = "/", proof = "{name}", then try again',
        ),
        (
            "handler",
            "manage.py renderpages /no/such/page/: status 500: KeyError: 'x' (shop/urls.py:7); correct its page for "
            "errors, then try again",
        ),
        (
            "gate",
            "manage.py renderpages /__probe__/inside: status 302: let paths below /__probe__/ through its own "
            "middleware if BENCHAPP_PROBES is 1 in the environment, then try again",
        ),
        ("page", "manage.py renderpages /: no status, content_type and body in its output"),
    ],
)
def test_a_failing_command_is_reported_in_one_line(manage_py, broken, message):
    with pytest.raises(BenchError) as caught:
        prepare(manage_py, {"BROKEN": broken})
    assert str(caught.value) == message


def test_an_interpreter_that_is_not_there_is_named(manage_py):
    with pytest.raises(BenchError, match=r"^manage.py siteurls: cannot start /no/python: No such file or directory$"):
        prepare(manage_py, python="/no/python")


def test_a_kind_that_the_site_does_not_have_is_not_tried(manage_py):
    site = prepare(manage_py)
    assert site.url("posts_page", "section") == "/posts/"
    with pytest.raises(NotTried, match=r"^only the kit's own site has such pages$"):
        site.url("next_year")
    with pytest.raises(NotTried, match=r"^the project describes no login: \[tool.benchapp.login\] in its"):
        site.url("login")


def test_a_site_that_runs_already_has_the_static_url_of_its_project(tmp_path, monkeypatch):
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "site.css").write_text("x" * sites.SMALL_BYTES)
    project = SimpleNamespace(description=Description(public=("/",)), folder=tmp_path, names={"static_url": "/assets/"})
    monkeypatch.setattr(wire, "fetch", lambda target, path: SimpleNamespace(text="<p>Home"))
    site = target_site(http.Target.parse("http://127.0.0.1:1/"), project)
    assert (site.static_url, site.urls["static_small"]) == ("/assets/", "/assets/site.css")
