"""The project under test: what templates and processes are told of it, and what it cannot be served with."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.deployment.case import CannotRun, resolve
from bench.serve.project.environments import INSTALL_OF_KIT
from bench.serve.project.opened import bypass_re, open_project, page_headers, recorded_project, refusal

pytestmark = pytest.mark.usefixtures("own_var")


def test_the_kit_s_own_site_needs_nothing_laid_over_it():
    kit = open_project()
    assert (kit.recorded, kit.settings, kit.health) == ("", "config.settings", "/healthz")
    assert kit.environment({"DATABASE_URL": "x"}) == {"DATABASE_URL": "x"}
    assert kit.names["wsgi_folder"] == "config" and kit.names["asgi"] == "config.asgi:application"
    assert (kit.names["asgi_module"], kit.names["asgi_name"]) == ("config.asgi", "application")


def test_another_project_is_described_by_what_is_found_in_it(new_project):
    folder = new_project(
        "STATIC_URL = 'assets/'\nSESSION_COOKIE_NAME = 'shop.session|$1'",
        '[tool.benchapp]\npublic = ["/"]\nstale = {"auth.User" = ["/", "/people/{username}/"]}\n',
    )
    project = open_project(folder)
    assert project.recorded == str(folder) and open_project().recorded == ""
    assert project.static_root != open_project().static_root
    assert project.names["wsgi"] == "shop.wsgi:application"
    assert (project.names["wsgi_folder"], project.names["wsgi_file"]) == ("shop", "wsgi.py")
    # Its ASGI application is wrapped: Django has no response to a WebSocket.
    assert project.names["asgi"] == "benchapp_overlay.asgi:application"
    assert project.environment({})["OVERLAID_ASGI"] == "shop.asgi:application"
    assert (project.names["static_url"], project.names["static_path"]) == ("/assets/", "/assets")
    assert (project.names["session_cookie"], project.names["csrf_cookie"]) == ("shop.session|$1", "csrftoken")
    assert project.names["session_cookie_re"] == r"shop\x2esession\x7c\x241"
    assert page_headers(project)["X-Frame-Options"] == "DENY" and "Content-Type" not in page_headers(project)
    # None of its pages has it, but a server that sends a stored page looks at the cookie.
    assert page_headers(project)["Vary"] == "Cookie" and "Vary" not in project.facts.pages[0].headers
    env = project.environment({"DATABASE_URL": "x", "CACHING_PAGE_CACHE": "1", "SECRET_KEY": "y"})
    assert env["BENCHAPP_DATABASE_URL"] == "x" and "DATABASE_URL" not in env and "SECRET_KEY" not in env
    assert (env["DJANGO_SETTINGS_MODULE"], env["OVERLAID_SETTINGS"]) == (
        "bench.serve.inside.serving.settings",
        "shop.settings",
    )
    assert json.loads(env["BENCHAPP_DATABASE_FILES"]) == {}
    assert json.loads(env["BENCHAPP_PUBLIC"]) == ["/"]
    assert json.loads(env["BENCHAPP_STALE"]) == {"auth.User": ["/", "/people/{username}/"]}
    known = catalog.read()
    assert refusal(project, known.stack("uvicorn"), known.joined_layers("none")) == ""
    skip = resolve(project, "uvicorn", "fragments")
    assert isinstance(skip, CannotRun) and skip.reason.startswith("fragments: ")


def test_each_database_that_setup_fills_is_a_separate_file(new_project):
    second = "DATABASES['log'] = {**DATABASES['default'], 'NAME': BASE_DIR / 'log.sqlite3'}"
    project = open_project(new_project(second, "[tool.benchapp]\ngenerated = true\n"))
    (second,) = json.loads(project.environment({})["BENCHAPP_DATABASE_FILES"]).values()
    assert second != str(project.copy_of("default"))


def test_a_layer_in_the_code_of_a_project_is_one_that_it_says_it_has(new_project):
    known = catalog.read()
    project = open_project(new_project(description='[tool.benchapp]\nlayers = ["fragments"]\n'))
    stack = known.stack("gunicorn")
    assert refusal(project, stack, known.joined_layers("fragments+varnish")) == ""
    assert 'write layers = ["view-cache"]' in refusal(project, stack, known.joined_layers("view-cache"))


def test_layers_that_any_project_can_have_are_not_named(new_project):
    folder = new_project(description='[tool.benchapp]\nlayers = ["fragments", "varnish"]\n')
    with pytest.raises(BenchError) as error:
        open_project(folder)
    assert str(error.value) == f"{folder}/pyproject.toml: layers names varnish; use fragments, view-cache"


def test_settings_that_do_not_read_the_environment_are_refused_before_setup_fills_them(new_project):
    folder = new_project(description="[tool.benchapp]\nreads_environment = true\ngenerated = true\n")
    with pytest.raises(BenchError) as error:
        open_project(folder)
    message = f"{folder}/pyproject.toml: reads_environment: its settings do not read DATABASE_URL; leave it out"
    assert str(error.value) == message


def test_what_no_cache_is_read_for(new_project):
    kit = re.compile(bypass_re(open_project(), True))
    for path in ("static/site.css", "login/", "login/?next=/", "healthz", "healthz?x=1"):
        assert kit.match(path), path
    for path in ("", "posts/", "posts/7/", "healthz-of-the-nation/", "__probe__/page/1/"):
        assert not kit.match(path), path
    # Of another project all except its public pages, and in production the probes, too.
    folder = new_project("", '[tool.benchapp]\npublic = ["/", "/blog/", "/about"]\nlogin.url = "/blog/login/"\n')
    project = open_project(folder)
    pattern = re.compile(bypass_re(project, True))
    for path in ("", "|/", " HTTP/1.1", "?page=2", "blog/", "blog/7/|", "about", "about/us/", "__probe__/page/1/"):
        assert not pattern.match(path), path
    for path in ("account/", "blogs/", "blog/login/", "about-us/", "static/site.css"):
        assert pattern.match(path), path
    assert re.match(bypass_re(project, False), "__probe__/page/1/")


@pytest.mark.parametrize(
    ("stale", "message"),
    [
        ("auth.Users = ['/']", "names auth.Users, which is no model of it; correct it"),
        ("auth.User = ['/{usernam}/']", "names usernam, which auth.User has not; correct it"),
    ],
)
def test_what_a_write_makes_stale_is_of_its_models(new_project, stale, message):
    model, _, pages = stale.partition(" = ")
    folder = new_project(description=f'[tool.benchapp.stale]\n"{model}" = {pages}\n')
    with pytest.raises(BenchError, match=re.escape(f"{folder}/pyproject.toml: [tool.benchapp.stale] {message}")):
        open_project(folder)


def test_what_is_harmless_reaches_the_settings_and_its_middleware_is_one_of_the_project(new_project):
    folder = new_project(
        description='[tool.benchapp]\nharmless = ["DNT", "django.middleware.common.CommonMiddleware"]\n'
    )
    harmless = ["DNT", "django.middleware.common.CommonMiddleware"]
    assert json.loads(open_project(folder).environment({})["BENCHAPP_HARMLESS"]) == harmless
    (folder / "pyproject.toml").write_text('[tool.benchapp]\nharmless = ["shop.middleware.Log"]\n')
    with pytest.raises(BenchError, match=r"pyproject\.toml: harmless names shop\.middleware\.Log, which is not in "):
        open_project(folder)


def test_static_files_that_no_server_can_have_are_one_line(new_project):
    with pytest.raises(BenchError, match=r"STATIC_URL is 'https://cdn\.example/': only a path such as "):
        _ = open_project(new_project("STATIC_URL = 'https://cdn.example/'")).names


def test_a_package_with_a_name_of_the_kits_is_refused(new_project):
    folder = new_project()
    (folder / "bench").mkdir()
    (folder / "bench" / "__init__.py").touch()
    with pytest.raises(BenchError, match="its package bench has the name of one of the kit's; rename it"):
        open_project(folder)


def test_a_copy_of_an_app_is_for_a_project_that_is_served_by_its_own_settings(new_project, own_var):
    folder = new_project("INSTALLED_APPS += ['benchapp.caching']")
    shutil.copytree(paths.KIT / "benchapp" / "caching", folder / "benchapp" / "caching")
    (folder / "benchapp" / "__init__.py").touch()
    with pytest.raises(BenchError, match=f"benchapp while it is served; remove it: {INSTALL_OF_KIT}"):
        open_project(folder)
    assert open_project(folder, plain=True).facts.application
    shutil.rmtree(folder / "benchapp")
    assert open_project(folder).facts.application


def test_results_are_gone_on_with_by_the_project_that_they_name(new_project):
    kit, folder = open_project(), new_project()
    assert recorded_project(kit, "") is kit
    reopened = recorded_project(kit, str(folder))
    assert reopened.recorded == str(folder) and recorded_project(reopened, str(folder)) is reopened
    with pytest.raises(BenchError) as error:
        recorded_project(reopened, "")
    assert str(error.value) == "it was begun with the project of the kit; leave out --project and --config"
