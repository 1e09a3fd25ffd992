"""Sites with LocaleMiddleware: pages are cached by the language of the request, and only by that."""

from __future__ import annotations

import pytest

from tests.app.caching.fresh import FreshProject

VIEWS = """
import itertools

from django.conf.urls.i18n import i18n_patterns
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.urls import include, path
from django.utils.translation import get_language, gettext

numbers = itertools.count(1)


def home(request):
    return HttpResponse(f"<p>{next(numbers)} {get_language()} {request.LANGUAGE_CODE} {gettext('Yes')}")


def cookie(request):
    return HttpResponse(f"<p>{next(numbers)} {request.COOKIES.get('django_language')} {dict(request.COOKIES)}")


def choice(request):
    return HttpResponse(f"<p>{next(numbers)} {request.COOKIES.get('django_language')}")


def theme(request):
    return HttpResponse(f"<p>{next(numbers)} {request.COOKIES.get('theme')}")


def region(request):
    return HttpResponse(f"<p>{next(numbers)} {request.headers.get('Accept-Language')}")


def varying(request):
    return HttpResponse(f"<p>{next(numbers)} varies", headers={"Vary": "Accept-Language"})


def regional(get_response):
    def middleware(request):
        if request.path == "/by-middleware/":
            request.region = request.META.get("HTTP_ACCEPT_LANGUAGE")
        return get_response(request)

    return middleware


# No browser chooses the language.
def forced(get_response):
    def middleware(request):
        if request.path == "/forced/":
            request.META["HTTP_ACCEPT_LANGUAGE"] = "en"
        if request.path == "/written/":
            request.COOKIES["django_language"] = "de"
        return get_response(request)

    return middleware


def by_middleware(request):
    return HttpResponse(f"<p>{next(numbers)} {request.region}")


pages = [
    path("", home),
    path("cookie/", cookie),
    path("choice/", choice),
    path("theme/", theme),
    path("region/", region),
    path("varying/", varying),
    path("by-middleware/", by_middleware),
    path("forced/", home),
    path("written/", region),
]
urlpatterns = [*pages, path("i18n/", include("django.conf.urls.i18n"))]
"""
SETTINGS = """
LANGUAGES = [("en", "English"), ("de", "German"), ("pt-br", "Brazilian")]
LANGUAGE_CODE = "en"
MIDDLEWARE.insert(3, "fresh.urls.forced")
MIDDLEWARE.insert(4, "django.middleware.locale.LocaleMiddleware")
MIDDLEWARE.insert(5, "fresh.urls.regional")
CACHING_X_CACHE = True
"""
# What a visitor says, and what the page shows.
VISITS = """
def visit(path="/", accept="", **cookies):
    client = Client()
    client.cookies.load({name.replace("-", "_"): value for name, value in cookies.items()})
    response = client.get(path, headers={"accept-language": accept} if accept else {})
    return [response.text.split(" ", 1)[1], response["X-Cache"], response.get("Vary", "")]
"""


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> FreshProject:
    fresh_project = FreshProject(tmp_path_factory.mktemp("languages") / "project")
    (fresh_project.folder / "fresh/urls.py").write_text(VIEWS)
    return fresh_project


def responses_of(project: FreshProject, requests: list[str], more: str = "") -> list:
    lines = ", ".join(f"visit({arguments})" for arguments in requests)
    return project.results(f"{VISITS}\nresults['pages'] = [{lines}]", SETTINGS + more)["pages"]


def test_a_page_is_cached_once_for_each_language(project: FreshProject):
    requests = [
        "",
        "accept='de'",
        "accept='fr'",
        "accept='de-AT,de;q=0.9,en;q=0.8'",
        "accept='pt-BR'",
        "accept='en', django_language='de'",
        "accept='pt-br', django_language='nonsense'",
        "django_language='<script>'",
        "django_language='en', accept='de'",
    ]
    responses = responses_of(project, requests)
    texts = [text for text, *_ in responses]
    english, german, brazilian = "en en Yes", "de de Ja", "pt-br pt-br Sim"
    assert texts == [english, german, english, german, brazilian, german, brazilian, english, english]
    assert [outcome for _, outcome, _ in responses] == [
        "miss",
        "miss",
        "hit",
        "hit",
        "miss",
        "hit",
        "hit",
        "hit",
        "hit",
    ]
    assert {vary for *_, vary in responses} == {"Accept-Language"}


def test_a_page_that_reads_a_cookie_is_private_in_each_language(project: FreshProject):
    requests = [f"'/choice/', {more}" for more in ("accept='de'", "accept='en', django_language='de'")]
    requests += ["'/cookie/'", "'/theme/', theme='dark'", "'/theme/'", "'/theme/', django_language='de', theme='light'"]
    responses = responses_of(project, requests)
    assert [text for text, *_ in responses[:2]] == ["None", "de"]
    assert [outcome for _, outcome, _ in responses[:2]] == ["pass; reads-cookie=django_language"] * 2
    assert [text for text, *_ in responses[3:]] == ["dark", "None", "light"]
    outcomes = [outcome for _, outcome, _ in responses[2:]]
    assert outcomes == ["pass; reads-cookie=any", *["pass; reads-cookie=theme"] * 3]


def test_a_view_that_reads_the_header_has_the_visitor_s_own_and_is_private(project: FreshProject):
    responses = responses_of(project, [f"'/region/', accept='{accept}'" for accept in ("en-GB", "en-AU")])
    assert [text for text, *_ in responses] == ["en-GB", "en-AU"]
    assert [outcome for _, outcome, _ in responses] == ["pass; reads-header=accept-language"] * 2


def test_a_view_that_varies_by_the_header_itself_is_not_cached(project: FreshProject):
    assert [outcome for _, outcome, _ in responses_of(project, ["'/varying/'"] * 2)] == ["pass; vary"] * 2


def test_middleware_that_reads_the_header_has_the_visitor_s_own_and_makes_the_page_private(project: FreshProject):
    responses = responses_of(
        project, [f"'/by-middleware/', accept='{accept}'" for accept in ("en-GB", "en-AU", "de-AT")]
    )
    assert [text for text, *_ in responses] == ["en-GB", "en-AU", "de-AT"]
    assert [outcome for _, outcome, _ in responses] == ["pass; reads-header=accept-language"] * 3


def test_a_language_that_middleware_writes_is_that_of_the_page_and_of_no_other_name(project: FreshProject):
    requests = ["'/forced/', accept='de'", "'/forced/', accept='en'", "'/forced/'", "'/forced/', django_language='de'"]
    # The view reads the header once, as LocaleMiddleware would without the cookie.
    requests += [f"'/written/', accept='{accept}'" for accept in ("de-AT", "de-CH")]
    responses = responses_of(project, requests)
    english, german = "en en Yes", "de de Ja"
    assert [text for text, *_ in responses] == [english, english, english, german, "de-AT", "de-CH"]
    language = "pass; reads-header=language"
    assert [outcome for _, outcome, _ in responses] == [language, "miss", "hit", *[language] * 3]


def test_a_view_may_not_read_the_header_that_harmless_middleware_read(project: FreshProject):
    locale = "django.middleware.locale.LocaleMiddleware"
    harmless = f"""
CACHING_HARMLESS = ["{locale}"]
MIDDLEWARE[4:5] = ["benchapp.caching.harmless.Pause", "{locale}", "benchapp.caching.harmless.Resume"]
"""
    requests = ["", "accept='de'", *(f"'/region/', accept='{accept}'" for accept in ("de-AT", "de-CH"))]
    responses = responses_of(project, requests, harmless)
    assert [text for text, *_ in responses] == ["en en Yes", "de de Ja", "de-AT", "de-CH"]
    assert [outcome for _, outcome, _ in responses] == ["miss", "miss", *["pass; reads-header=accept-language"] * 2]


def test_a_page_with_its_language_in_the_url_is_that_of_the_url(project: FreshProject):
    with (project.folder / "fresh/urls.py").open("a") as urls:
        urls.write("urlpatterns = i18n_patterns(*pages, prefix_default_language=False)\n")
    requests = ["'/de/', accept='en'", "'/de/', accept='de'", "'/', accept='de'", "'/', django_language='de'"]
    responses = responses_of(project, requests)
    assert [text for text, *_ in responses] == ["de de Ja", "de de Ja", "en en Yes", "en en Yes"]
    assert [outcome for _, outcome, _ in responses] == ["miss", "hit", "miss", "hit"]
    assert [vary for *_, vary in responses][:2] == ["", ""]


def test_the_language_of_the_url_is_enough_for_a_layer_that_a_server_reads(project: FreshProject):
    with (project.folder / "fresh/urls.py").open("a") as urls:
        urls.write("urlpatterns = i18n_patterns(*pages)\n")
    # This layer has no language in its names.
    files = "CACHING_LAYERS = {'staticgenerator': {'root': BASE_DIR / 'pages'}}\n"
    files += "CACHING_PAGE_HEADERS = {'Content-Language': 'de', 'X-Content-Type-Options': 'nosniff'}\n"
    files += "CACHING_PAGE_HEADERS |= {'Referrer-Policy': 'same-origin', 'Cross-Origin-Opener-Policy': 'same-origin'}\n"
    assert [outcome for _, outcome, _ in responses_of(project, ["'/de/'"], files)] == ["miss"]
    (project.folder / "fresh/urls.py").write_text(VIEWS)
    outcomes = [outcome for _, outcome, _ in responses_of(project, ["'/'", "'/', accept='de'"], files)]
    assert outcomes == ["pass; reads-cookie=django_language"] * 2


def test_a_class_of_the_project_s_own_that_chooses_the_language_is_not_trusted(project: FreshProject):
    with (project.folder / "fresh/urls.py").open("a") as urls:
        urls.write("""
from django.middleware.locale import LocaleMiddleware


class Own(LocaleMiddleware):
    pass
""")
    own = "MIDDLEWARE[4] = 'fresh.urls.Own'"
    assert [outcome for _, outcome, _ in responses_of(project, [""] * 2, own)] == [
        "pass; reads-cookie=django_language"
    ] * 2
