"""Reads of a visitor that doctor finds: in middleware and views of a project, with their lines."""

from __future__ import annotations

from bench.serve.project import description, inspection

READERS = """
class Country:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        request.country = request.headers.get("CF-IPCountry")
        return self.get_response(request)


def log(get_response):
    def middleware(request):
        request.META.get("HTTP_USER_AGENT"), request.META["REMOTE_ADDR"]
        return get_response(request)

    return middleware
"""
VIEWS_THAT_READ = """
def office(request):
    return HttpResponse(request.META["REMOTE_ADDR"])


def named(request):
    return HttpResponse(request.build_absolute_uri())


urlpatterns += [path("office/", office), path("named/", named)]
"""


def test_what_middleware_and_views_read_is_found_with_its_line_unless_it_is_harmless(new_project):
    middleware = "MIDDLEWARE = [MIDDLEWARE[0], 'shop.readers.log', *MIDDLEWARE[1:], 'shop.readers.Country']"
    public = '[tool.benchapp]\npublic = ["/", "/office/", "/named/"]\n'
    folder = new_project(middleware, public)
    (folder / "shop" / "readers.py").write_text(READERS)
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(VIEWS_THAT_READ)

    def pages():
        return {page.path: page for page in inspection.inspect(description.read(folder)).pages}

    def line(name, text):
        lines = (folder / "shop" / name).read_text().splitlines()
        return f"shop/{name}:{next(number for number, content in enumerate(lines, 1) if text in content)}"

    inspected = pages()
    everywhere = {"cf-ipcountry": "shop.readers.Country", "user-agent": "shop.readers.middleware"}
    everywhere["remote-addr"] = "shop.readers.middleware"
    assert inspected["/"].readers == inspected["/office/"].readers == inspected["/named/"].readers == everywhere
    assert inspected["/"].causes["header cf-ipcountry"] == line("readers.py", "CF-IPCountry")
    harmless = public + 'harmless = ["cf-ipcountry", "shop.readers.log"]\n'
    (folder / "pyproject.toml").write_text(harmless)
    inspected = pages()
    assert not inspected["/"].readers and not inspected["/named/"].readers
    assert inspected["/office/"].readers == {"remote-addr": "shop.urls.office"}
    assert inspected["/office/"].causes["header remote-addr"] == line("urls.py", "REMOTE_ADDR")
    with (folder / "shop" / "settings.py").open("a") as settings:
        settings.write("ALLOWED_HOSTS = ['a.example', 'b.example']\n")
    assert pages()["/named/"].readers == {"host": "shop.urls.named"}
    assert not pages()["/"].readers
    with (folder / "shop" / "settings.py").open("a") as settings:
        settings.write("import re\nDISALLOWED_USER_AGENTS = [re.compile('Crawler')]\n")
    assert pages()["/"].readers == {"user-agent": ""}
