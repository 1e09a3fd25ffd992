"""The page at which visitors begin is found where `/` shows them none."""

import pytest

from bench.errors import BenchError
from bench.measure.run.workload import workloads
from bench.serve.project import description, health, inspection
from bench.serve.project.opened import open_project
from bench.verify.site import described_urls
from tests import projects
from tests.projects import new_project, own_var

__all__ = ["new_project", "own_var"]

# Each starts another interpreter.
pytestmark = pytest.mark.servers

HEAD = """
from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import include, path, re_path


def page(request):
    return HttpResponse("<p>a page</p>")


def api(request):
    return JsonResponse({"things": []})


def missing(request):
    raise Http404


def broken(request):
    return HttpResponse(1 / 0)


def style(request):
    return HttpResponse("p {}", content_type="text/css")


def refused(request):
    return HttpResponse("no", status=403)


"""
LOCALE = "MIDDLEWARE.insert(2, 'django.middleware.locale.LocaleMiddleware')"
ADMIN = "path('admin/', admin.site.urls)"


@pytest.fixture
def make(tmp_path, tmp_path_factory):
    def write(patterns, settings="", description=""):
        urls = f"{HEAD}urlpatterns = {patterns}\n"
        return projects.write(tmp_path / "shop", tmp_path_factory, settings, description, urls)

    return write


@pytest.mark.parametrize(
    ("patterns", "settings", "lines", "start", "health"),
    [
        (f"[{ADMIN}]", "", "", "/admin/login/", "/admin/login/"),
        (f"[{ADMIN}, path('deep/down/', page), path('polls/', page)]", "", "", "/polls/", "/polls/"),
        ("i18n_patterns(path('', page))", LOCALE, "", "/en/", "/en/"),
        # Visitors see the form to log in first, whatever else there is.
        (
            f"[path('', login_required(page)), path('about/', page), {ADMIN}]",
            "LOGIN_URL = '/admin/login/'",
            "",
            "/admin/login/",
            "/admin/login/",
        ),
        (f"[path('style/', style), re_path('^things/$', api), {ADMIN}]", "", "", "/things/", "/things/"),
        ("[path('', api), path('about/', page)]", "", "", "/", "/"),
        # A named check of health is no page, if there is one.
        ("[path('up/', page), path('polls/', page)]", "", 'health = "/up/"', "/polls/", "/up/"),
        ("[path('polls/', page)]", "", 'health = "/polls/"', "/polls/", "/polls/"),
        # An error is said as it is.
        ("[path('', broken), path('about/', page)]", "", "", "/", "/"),
        ("[path('', missing)]", "DATABASES = {}", "", None, "/"),
    ],
)
def test_it_is_found(make, patterns, settings, lines, start, health):
    project = description.read(make(patterns, settings, f"[tool.benchapp]\n{lines}"))
    facts = inspection.inspect(project)
    assert facts.start == start
    assert inspection.beginning_at(project.description, facts.start).health == health


def test_it_is_verified_and_measured(make, own_var):
    project = open_project(make("[path('polls/', page)]"))
    assert described_urls(project.description)["home"] == "/polls/"
    assert workloads(project)["public"].steps == ("/polls/",)
    # Visitors get it, so that layers may store it.
    assert project.description.health_checks == ()
    assert any("begin at /polls/" in note for note in project.notes)


def test_a_project_without_any_page_is_refused_in_one_line(make, own_var):
    project = open_project(make("[path('', missing)]", "DATABASES = {}"))
    with pytest.raises(BenchError, match="GET / returns status 404, and no URL pattern") as refusal:
        health.require_page(project, its_rows=True)
    assert "\n" not in str(refusal.value)
