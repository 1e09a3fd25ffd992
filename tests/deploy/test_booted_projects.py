"""On a booted host: another application server, packages that are built, and another project than the kit's."""

from __future__ import annotations

import pytest

from bench.serve.project.opened import open_project
from tests.deploy.installing import (
    SERVERS,
    SOURCE,
    commit,
    impatient_deploy,
    install,
    prepare,
    refused,
    replace,
    response_of,
    uninstall,
    version,
    visited,
)
from tests.deploy.machine import Machine, booted
from tests.projects import CACHE_IN_DATABASE, HASHED, ICON

pytestmark = [pytest.mark.hosts, pytest.mark.servers]

APP = "benchapp-app"


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    with booted(tmp_path_factory.mktemp("machine")) as machine:
        prepare(machine, (*SERVERS, "granian", "click"))
        install(machine, "nginx-gunicorn")
        yield machine


def test_uwsgi_stops_at_any_moment_and_a_restart_loses_no_request(host):
    uninstall(host)
    install(host, "nginx-uwsgi")
    # What has not loaded the application yet ends as well.
    for pause_s in (0, 0.05, 0.3):
        host.run(f"systemctl restart benchapp-uwsgi; sleep {pause_s}; systemctl stop benchapp-uwsgi")
        assert host.run("systemctl show --value --property=Result benchapp-uwsgi").strip() == "success"
    host.run("systemctl start benchapp-uwsgi benchapp-nginx")
    before = host.main_process("benchapp-uwsgi")
    with visited(host) as noticed:
        host.run("systemctl restart benchapp-uwsgi")
    assert (noticed["failed"], host.main_process("benchapp-uwsgi") != before) == ([], True)


def test_a_release_that_does_not_get_ready_is_taken_back(host):
    """An old process would say that it is, if the request came too soon."""
    uninstall(host)
    install(host, "nginx-granian")
    views = host.root / SOURCE[1:] / "benchapp/views.py"
    right = views.read_text()
    views.write_text(f"{right}\ndef readyz(request):\n    return HttpResponse(status=500)\n")
    commit(host, "not-ready")
    old, deploy = version(host), impatient_deploy(host)
    with visited(host) as noticed:
        done = host.try_run(deploy)
        seen = {version(host) for _ in range(12)}
    views.write_text(right)
    commit(host, "ready")
    assert done.returncode == 1 and "does not serve, so it is not in service: curl: (22)" in done.stdout
    assert (noticed["failed"], seen) == ([], {old})


# A package without a wheel: who builds it writes down who that is, and tries to write elsewhere.
BACKEND = """
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    try:
        open("/srv/evil", "w").close()
    except OSError:
        pass
    name = "builder-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("builder.py", f"UID = {os.getuid()}\\n")
        info = "builder-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: builder\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def with_package(host: Machine, *lines: str) -> None:
    """Put a package without a wheel where packages come from, and lines into the list of the site's."""
    host.write("/srv/builder/builder-1.0/backend.py", BACKEND)
    host.write("/srv/builder/builder-1.0/pyproject.toml", PYPROJECT)
    host.write("/srv/builder/builder-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: builder\nVersion: 1.0\n")
    host.run(
        "[ -e /srv/wheels/builder-1.0.tar.gz ] || tar -C /srv/builder -czf /srv/wheels/builder-1.0.tar.gz builder-1.0"
    )
    digest = host.run("sha256sum /srv/wheels/builder-1.0.tar.gz").split()[0]
    named = [line.format(digest=digest) for line in lines]
    host.write(
        f"{SOURCE}/requirements.lock", (host.root / SOURCE[1:] / "requirements.lock").read_text() + "\n".join(named)
    )


def test_packages_are_wheels_and_nothing_that_builds_one_is_root(host):
    right = (host.root / SOURCE[1:] / "requirements.lock").read_text()
    with_package(host, "builder==1.0 --hash=sha256:{digest}\n")
    commit(host, "no-wheel")
    assert "No matching distribution found for builder" in refused(host, f"benchapp-deploy {SOURCE}")
    with_package(host, "--no-binary builder\n")
    commit(host, "named")
    assert host.run(f"benchapp-deploy {SOURCE}").endswith(" serves\n")
    (builder,) = host.run("ls /srv/benchapp/current/.venv/lib/python3*/site-packages/builder.py").split()
    assert host.run(f"cat {builder}").strip() == f"UID = {host.run('id -u benchapp-build').strip()}"
    assert host.try_run("ls /srv/evil").returncode != 0
    # None of the site's users can change what runs.
    assert host.run("find -L /srv/benchapp/current/.venv/ -maxdepth 4 ! -user root") == ""
    host.write(f"{SOURCE}/requirements.lock", right)
    commit(host, "all-wheels")


@pytest.mark.usefixtures("own_var")
def test_a_deploy_during_maintenance_needs_no_health_page(host, new_project):
    folder = new_project(description='[project]\nname = "shop"\ndependencies = ["Django"]\n')
    uninstall(host)
    replace(host, folder)
    install(host, "nginx-gunicorn", project=open_project(folder))
    host.run("touch /etc/benchapp/maintenance")
    # Not tried again: curl would wait as long as the page's Retry-After says.
    assert [response_of(host, path, "--retry", "0")[0] for path in ("/", "/.health", "/.ready")] == [503, 200, 200]
    before = host.main_process("benchapp-gunicorn")
    assert host.run(f"benchapp-deploy {SOURCE}").endswith(" serves\n")
    assert host.main_process("benchapp-gunicorn") != before
    host.run("rm /etc/benchapp/maintenance")
    assert response_of(host, "/")[0] != 503


@pytest.mark.usefixtures("own_var")
def test_the_note_of_another_project_ends_with_a_site_that_serves(host, new_project):
    description = '[project]\nname = "shop"\ndependencies = ["Django"]\n[tool.benchapp]\nhealth = "/who/"\n'
    folder = new_project(HASHED + CACHE_IN_DATABASE, description)
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(ICON)
    uninstall(host)
    replace(host, folder)
    install(host, "nginx-gunicorn", project=open_project(folder))
    assert response_of(host, "/who/")[0] == 200
    assert "No module named" in host.try_run("benchapp-manage shell -c 'import bench.serve.inside'").stdout
    # Its own packages, and its database beside the releases.
    assert len(host.run("ls -d /srv/benchapp/venvs/*").split()) == 1
    assert host.run("stat -c %U /var/lib/benchapp/default.sqlite3").strip() == APP
    assert response_of(host, "/static/admin/css/base.css")[0] == 200
    checked = host.run("benchapp-check").splitlines()
    assert checked == ["ok    benchapp-gunicorn", "ok    benchapp-nginx", "ok    application"]


OWN_SETTINGS = """
import os
SECRET_KEY = os.environ.get("SECRET_KEY", "only-here")
DEBUG = os.environ.get("DEBUG", "1") == "1"
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "127.0.0.1").split(",")
DATABASES["default"]["NAME"] = os.environ.get("DATABASE_URL", "sqlite:///db.sqlite3").removeprefix("sqlite:///")
STATIC_ROOT = BASE_DIR / os.environ.get("BENCHAPP_STATIC_ROOT", "static")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
SECURE_HSTS_SECONDS, SECURE_HSTS_INCLUDE_SUBDOMAINS, SECURE_HSTS_PRELOAD = 300, True, True
SECURE_REDIRECT_EXEMPT = ["^who/$"]
"""


@pytest.mark.usefixtures("own_var")
def test_a_project_runs_its_own_settings_on_a_plain_host(host, new_project):
    folder = new_project(OWN_SETTINGS, '[tool.benchapp]\nhealth = "/who/"\n')
    (folder / "requirements.txt").write_text("Django\ngunicorn\n")
    uninstall(host)
    replace(host, folder)
    install(host, "nginx-gunicorn", project=open_project(folder, plain=True))
    assert response_of(host, "/who/")[0] == 200
    settings = host.run("benchapp-manage shell -c 'from django.conf import settings; print(settings.SETTINGS_MODULE)'")
    assert settings.strip().splitlines()[-1] == "shop.settings"
    assert response_of(host, "/static/admin/css/base.css")[0] == 200
    assert host.try_run("ls /etc/benchapp/python").returncode != 0
    assert host.run("benchapp-check").splitlines() == [
        "ok    benchapp-gunicorn",
        "ok    benchapp-nginx",
        "ok    application",
    ]
