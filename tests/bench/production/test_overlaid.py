"""What a host needs for another project: complete, of the project alone, and without its secrets."""

from __future__ import annotations

import ast
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bench import paths
from bench.catalog import catalog
from bench.production import host as one_host
from bench.project.under_test import open_project
from bench.serve import render
from tests.cases import for_files
from tests.projects import SAID

# Each starts several programs.
pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("own_var")]

# Modules of the kit that a host of another project may import.
OURS = re.compile(r"benchapp_overlay(\..*)?|benchapp\.(caching|serving)(\..*)?")

UPLOADS = 'MEDIA_URL, MEDIA_ROOT = "/media/", BASE_DIR / "media"'


def rendered(folder: Path, stack: str, layer: str, target: Path) -> dict[str, str]:
    """The text of each file that production needs for the project, by its name."""
    written = one_host.write(for_files(stack, layer, "production", open_project(folder)), target)
    assert set(written) == {path for path in target.rglob("*") if path.is_file()}
    return {str(path.relative_to(target)): path.read_text("utf-8") for path in written}


def test_the_host_of_another_project_gets_what_it_needs(new_project, tmp_path):
    folder = new_project("import os\nSECRET_KEY = os.environ['SHOP_KEY']", SAID)
    (folder / ".env").write_text("SHOP_KEY=k3pt-secret\nSHOP_MAIL='also secret'\n")
    files = rendered(folder, "nginx-uwsgi", "nginx-microcache", tmp_path / "out")
    for name, text in files.items():
        assert "k3pt-secret" not in text and "also secret" not in text
        assert not re.search(
            r"\bbench\b|benchmark|`verify`|\bprobes\b|_probe_|PROBES|config\.\w*sgi|config\.settings", text
        ), name
        assert not re.search(r"readyz|loadfixtures|requirements\.lock|benchapp-backup", text), name
        assert str(paths.PROJECT) not in text and str(folder) not in text and str(paths.VENV) not in text, name
    assert "module = shop.wsgi:application\n" in files["uwsgi.ini"]
    assert 'shell -c "import shop.wsgi"' in files["benchapp-deploy"]
    assert "https://example.org:443/health/; do" in files["benchapp-deploy"]
    assert "/(health/|" in files["nginx.conf"]
    assert files["requirements-servers.txt"].splitlines()[1:] == [
        f"pyuwsgi=={locked('pyuwsgi')}",
        f"django-environ=={locked('django-environ')}",
    ]
    assert "`SHOP_KEY`, `SHOP_MAIL`" in files["INSTALL.md"] and "`pyproject.toml`, then those" in files["INSTALL.md"]


@pytest.mark.parametrize("stack", catalog.read().stacks)
def test_the_packages_that_an_application_server_names_are_installed_for_it(stack):
    """Those that its command and its files name outside of comments, as they are imported; h2 is also a protocol.

    Django is the project's own.
    """
    case, places, wiring = one_host.in_production(for_files(stack, values="production"), "127.0.0.1")
    server = case.servers[0]
    written = "\n".join(render.texts(server, case, places, wiring).values())
    lines = [line for line in written.splitlines() if not re.match(r"\s*(#|\"\"\")", line)]
    named = set(re.findall(r"\w+", "\n".join([*lines, *server.start])))
    lock = (paths.PROJECT / "requirements.lock").read_text("utf-8")
    known = set(re.findall(r"(?m)^([\w.-]+)==", lock)) - {"h2", "django"}
    assert {name for name in known if name.replace("-", "_") in named} <= set(
        server.requirements or [server.distribution]
    )


def locked(name: str) -> str:
    lock = (paths.PROJECT / "requirements.lock").read_text("utf-8")
    return re.search(rf"(?m)^{name}==(\S+)", lock)[1]


def test_its_environment_is_read_and_its_packages_are_there(new_project, tmp_path):
    files = rendered(new_project(), "nginx-gunicorn", "page-cache", tmp_path / "out")
    lines = [line for line in files["site.env"].splitlines() if not line.startswith("#")]
    env = dict(line.split("=", 1) for line in lines)
    assert (env["DJANGO_SETTINGS_MODULE"], env["OVERLAID_SETTINGS"]) == ("benchapp_overlay.settings", "shop.settings")
    assert env["BENCHAPP_STATIC_ROOT"] == "var/static"
    assert env["BENCHAPP_DATABASE_FILES"] == '{"default":"/var/lib/benchapp/default.sqlite3"}'
    assert env["BENCHAPP_CACHE_URL"] == "pymemcache:///run/benchapp/memcached.sock"
    read = "".join(text for name, text in files.items() if name.startswith("python/"))
    assert [name for name in env if name.startswith("BENCHAPP_") and name not in read] == []
    for name in ("systemd/benchapp-gunicorn.service", "timers/benchapp-clearsessions.service"):
        assert "\nEnvironment=PYTHONPATH=/etc/benchapp/python\n" in files[name]
    assert "--setenv=PYTHONPATH=/etc/benchapp/python" in files["benchapp-manage"]
    assert "benchapp-manage invalidatepages" in files["benchapp-deploy"]
    assert "pymemcache==" in files["requirements-servers.txt"]
    modules = {name.removesuffix(".py").replace("/", ".") for name in files if name.startswith("python/")}
    for name in (name for name in files if name.startswith("python/")):
        tree = ast.parse(files[name])
        imports = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        # Of middleware and the like, too.
        imports |= set(re.findall(r"[\"'](benchapp\.(?!caching\b|serving\b)[a-z.]+)", files[name]))
        imports |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        ours = {
            module
            for module in imports
            if module.partition(".")[0] in ("benchapp", "benchapp_overlay", "config", "bench")
        }
        assert all(OURS.fullmatch(module) for module in ours), name
        there = {f"python.{module}" for module in ours} | {f"python.{module}.__init__" for module in ours}
        assert len(there & modules) == len(ours), f"{name}: {ours}"


# What the servers import on a host: the settings, their middleware, the application.
IMPORTS = """
import sys
import django
from django.conf import settings
from django.utils.module_loading import import_string

django.setup()
for name in settings.MIDDLEWARE:
    import_string(name)
import shop.wsgi
from benchapp_overlay.asgi import application

print(*sorted({module.partition(".")[0] for module in sys.modules} & {"benchapp_overlay", "bench", "config", "shop"}))
"""


def test_the_packages_of_a_host_work_without_the_rest_of_the_kit(new_project, tmp_path):
    folder = new_project()
    (folder / "var" / "static").mkdir(parents=True)
    files = rendered(folder, "uvicorn", "page-cache", tmp_path / "out")
    lines = [line for line in files["site.env"].splitlines() if line and not line.startswith("#")]
    env = dict(line.split("=", 1) for line in lines)
    assert env["OVERLAID_ASGI"] == "shop.asgi:application"
    env |= {"PYTHONPATH": f"{tmp_path / 'out' / 'python'}:{folder}", "BENCHAPP_DATABASE_FILES": "{}"}
    done = subprocess.run([sys.executable, "-c", IMPORTS], cwd=folder, env=env, capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", "benchapp_overlay shop\n")


def test_the_note_copies_a_live_sqlite_file_whole(new_project, tmp_path):
    """`cp` may read a file of which a half is of before a write."""
    files = rendered(new_project(), "nginx-gunicorn", "none", tmp_path / "out")
    (command,) = re.findall(r"`(python3 -c '.*') FROM TO`", files["INSTALL.md"])
    live, copy = tmp_path / "live.sqlite3", tmp_path / "copy.sqlite3"
    with closing(sqlite3.connect(live)) as site:
        # What is written is in a second file until it is moved to the first, which `cp` would not take.
        site.execute("PRAGMA journal_mode=WAL")
        site.execute("CREATE TABLE page (title TEXT)")
        site.execute("INSERT INTO page VALUES ('new')")
        site.commit()
        subprocess.run(["sh", "-c", f"{command} {live} {copy}"], check=True)
    with closing(sqlite3.connect(copy)) as found:
        assert found.execute("SELECT title FROM page").fetchall() == [("new",)]


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize(
    ("stack", "reader"),
    [("nginx-gunicorn", "benchapp-web"), ("apache-modwsgi", "benchapp-app"), ("gunicorn", "benchapp-app")],
)
def test_uploads_are_outside_of_releases_and_closed_to_all_but_two(new_project, tmp_path, stack, reader):
    files = rendered(new_project(UPLOADS), stack, "none", tmp_path / "out")
    media = "/var/lib/benchapp-media"
    assert f"BENCHAPP_MEDIA_ROOT={media}" in lines_of(files["site.env"])
    # Set-group: what the application makes below is its web server's to read, too.
    assert f"d {media} 2750 benchapp-app {reader} -" in lines_of(files["tmpfiles.conf"])
    writes = {
        name.removeprefix("systemd/benchapp-"): media in re.search("(?m)^ReadWritePaths=(.*)", text)[1].split()
        for name, text in files.items()
        if name.startswith("systemd/") and name.endswith(".service")
    }
    assert writes.pop(f"{'apache' if stack == 'apache-modwsgi' else 'gunicorn'}.service", None) is True, writes
    assert set(writes.values()) <= {False}, "the web server only reads"
    if stack == "nginx-gunicorn":
        assert f"alias {media}/;" in files["nginx.conf"]
    # The application's own files, its SQLite database among them, are in a directory that is its user's alone.
    assert "StateDirectory=benchapp\nStateDirectoryMode=0750\n" in "".join(files.values())


def test_uploads_are_copied_each_day_and_can_be_put_back(new_project, tmp_path):
    files = rendered(new_project(UPLOADS), "nginx-gunicorn", "none", tmp_path / "out")
    assert "timers/benchapp-backup-media.timer" in files
    assert "benchapp-backup-media.timer" in files["INSTALL.md"]
    job = files["timers/benchapp-backup-media.service"]
    assert "\nUser=benchapp-app\n" in job
    # `cp` makes directories with the bits of those that it copies, which the sandbox else refuses.
    assert re.findall("(?m)^RestrictSUIDSGID=(.*)", job)[-1] == "no"
    media, copied = tmp_path / "media", tmp_path / "state" / "backups-media"
    (media / "photos").mkdir(parents=True)
    copied.parent.mkdir()
    (media / "photos" / "one.jpg").write_text("one")
    (media / "gone.jpg").write_text("gone")

    def run(command: str) -> None:
        moved = command.replace("/var/lib/benchapp-media", str(media)).replace(
            "/var/lib/benchapp/", f"{copied.parent}/"
        )
        subprocess.run(["sh", "-c", moved], check=True)

    command = re.search("(?m)^ExecStart=(.*)", job)[1]
    run(command)
    # Removed on the site, while a backup of the database may name it.
    (media / "gone.jpg").unlink()
    (media / "photos" / "two.jpg").write_text("two")
    run(command)
    shutil.rmtree(media)
    media.mkdir()
    restore = re.search("(?m)^`setpriv .* (cp -r --no-clobber .*)`", files["INSTALL.md"])[1]
    run(restore)
    assert {path.name: path.read_text() for path in media.rglob("*.jpg")} == {
        "one.jpg": "one",
        "two.jpg": "two",
        "gone.jpg": "gone",
    }


def test_what_a_project_has_not_is_left_out(new_project, tmp_path):
    folder = new_project("INSTALLED_APPS = ['django.contrib.staticfiles']\nMIDDLEWARE = []\nDATABASES = {}")
    files = rendered(folder, "nginx-gunicorn", "none", tmp_path / "out")
    assert not [name for name in files if name.startswith("timers/")]
    scripts = "".join(files[name] for name in ("INSTALL.md", "benchapp-deploy", "benchapp-manage", "site.env"))
    assert not re.search(
        r"clearsessions|invalidatepages|benchapp-backup|DATABASE_FILES|MEDIA|[Uu]ploads|sqlite", scripts
    )
    # The home page is the health check, and no page is served in maintenance.
    assert "https://example.org:443/; do" in files["benchapp-deploy"]
    assert "/([.]health|" in files["nginx.conf"] and "answer as before" not in files["INSTALL.md"]
    assert "has **not** yet" in files["INSTALL.md"]


def test_a_server_that_the_project_brings_itself_stays_its_own(new_project, tmp_path, monkeypatch):
    monkeypatch.setattr("bench.project.layered.Layered.own_packages", frozenset({"gunicorn"}))
    files = rendered(new_project(), "gunicorn", "none", tmp_path / "out")
    assert [line.partition("==")[0] for line in files["requirements-servers.txt"].splitlines()[1:]] == [
        "django-environ",
        "whitenoise",
    ]
    assert "its own list must have `gunicorn`" in files["INSTALL.md"]
