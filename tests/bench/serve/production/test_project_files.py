"""The host's files for another project: complete, without other parts, and without its secrets."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import paths
from bench.cli.main import main
from bench.serve.catalog import catalog
from bench.serve.deployment import render
from bench.serve.production import one_host
from bench.serve.project.opened import open_project
from tests.cases import for_files
from tests.projects import DESCRIPTION

# Each starts several programs.
pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("own_var")]

# Modules of the kit that a host of another project may import.
OURS = re.compile(r"benchapp_overlay(\..*)?|benchapp\.(caching|serving|login_limit)(\..*)?")

UPLOADS = 'MEDIA_URL, MEDIA_ROOT = "/media/", BASE_DIR / "media"'


def rendered(folder: Path, stack: str, layer: str, target: Path) -> dict[str, str]:
    """The text of each file that production needs for the project, by its name."""
    written = one_host.write(for_files(stack, layer, "production", open_project(folder)), target)
    assert set(written) == {path for path in target.rglob("*") if path.is_file()}
    return {str(path.relative_to(target)): path.read_text("utf-8") for path in written}


def test_the_host_of_another_project_gets_what_it_needs(new_project, tmp_path):
    folder = new_project("import os\nSECRET_KEY = os.environ['SHOP_KEY']", DESCRIPTION)
    (folder / ".env").write_text("SHOP_KEY=k3pt-secret\nSHOP_MAIL='also secret'\n")
    files = rendered(folder, "nginx-uwsgi", "nginx-microcache", tmp_path / "out")
    for name, text in files.items():
        assert "k3pt-secret" not in text and "also secret" not in text
        assert not re.search(
            r"\bbench\b|benchmark|`verify`|\bprobes\b|_probe_|PROBES|config\.\w*sgi|config\.settings", text
        ), name
        assert not re.search(r"readyz|loadfixtures|requirements\.lock", text), name
        assert str(paths.KIT) not in text and str(folder) not in text and str(paths.VENV) not in text, name
    assert "module = shop.wsgi:application\n" in files["uwsgi.ini"]
    assert 'shell -c "import shop.wsgi"' in files["benchapp-deploy"]
    assert "https://example.org:443/health/; do" in files["benchapp-deploy"]
    assert "/(health/|" in files["nginx.conf"]
    assert files["requirements-servers.txt"].splitlines()[1:] == [
        f"pyuwsgi=={locked('pyuwsgi')}",
        f"django-environ=={locked('django-environ')}",
    ]
    added = files["INSTALL.md"].partition("\n## What benchapp adds to your project\n")[2].partition("\n## ")[0]
    for needed in ("benchapp_overlay.settings", "shop.settings", "/etc/benchapp/python", "reads_environment = true"):
        assert needed in added
    assert "`SHOP_KEY`, `SHOP_MAIL`" in files["INSTALL.md"] and "`pyproject.toml`, then from" in files["INSTALL.md"]


HEALTH = '[tool.benchapp]\nhealth = "/healthz/"\n'


def test_a_plain_host_runs_the_projects_own_settings_only(new_project, tmp_path, capsys):
    folder = new_project(description=HEALTH)
    out = tmp_path / "out"
    assert main(["render", "nginx-gunicorn", "--project", str(folder), "--plain", "--output", str(out)]) == 0
    assert "add gunicorn to the project's requirements.txt" in capsys.readouterr().err
    files = {str(path.relative_to(out)): path.read_text("utf-8") for path in out.rglob("*") if path.is_file()}
    assert {"DJANGO_SETTINGS_MODULE=shop.settings", "BENCHAPP_STATIC_ROOT=var/static"} <= {*files["site.env"].split()}
    variables = {line.partition("=")[0] for line in files["site.env"].splitlines() if not line.startswith("#")}
    # What docs/production.md names, and nothing that only benchapp's settings read.
    assert variables == {"DJANGO_SETTINGS_MODULE", "DEBUG", "ALLOWED_HOSTS", "BENCHAPP_STATIC_ROOT"}
    for name, text in files.items():
        assert "benchapp_overlay" not in text and "OVERLAID" not in text and "/etc/benchapp/python" not in text, name
    unit = files["systemd/benchapp-gunicorn.service"]
    assert "EnvironmentFile=/etc/benchapp/secrets.env\n" in unit and "LoadCredential" not in unit
    # No process tells that it has loaded, so the unit waits for none.
    assert "benchapp-loaded /run/benchapp-gunicorn 0\n" in unit
    assert "`shop.settings`" in files["INSTALL.md"] and "benchapp doctor --plain --all" in files["INSTALL.md"]


def test_a_plain_host_has_the_variables_that_its_code_names(new_project, tmp_path):
    folder = new_project("import os\nSTEPS = os.environ.get('BENCHAPP_HSTS_SECONDS')", HEALTH)
    with (folder / "shop" / "wsgi.py").open("a") as file:
        file.write("\nimport os, pathlib\n")
        file.write("pathlib.Path(os.environ.get('BENCHAPP_LOADED', '/nowhere'), str(os.getpid())).touch()\n")
    for stack, waits in (("nginx-gunicorn", True), ("nginx-uvicorn", False)):
        out = tmp_path / stack
        given = ["render", stack, "--project", str(folder), "--plain", "--env", "BENCHAPP_OWN=1"]
        assert main([*given, "--output", str(out)]) == 0
        env = (out / "site.env").read_text("utf-8")
        assert "BENCHAPP_HSTS_SECONDS=300\n" in env and "BENCHAPP_OWN=1\n" in env and "BENCHAPP_POOL" not in env
        (unit,) = (path for path in (out / "systemd").glob("*.service") if path.name in UNITS)
        # Only wsgi.py tells that it has loaded: a unit with the other application would wait in vain.
        assert (re.search(r"-loaded /run/\S+ 0\b", unit.read_text("utf-8")) is None) == waits


UNITS = ("benchapp-gunicorn.service", "benchapp-uvicorn.service")


@pytest.mark.parametrize(
    ("description", "words", "message"),
    [
        ("", [], "--plain: benchapp's health checks are in its settings; name a path"),
        (HEALTH, ["--layer", "varnish"], "--plain: layer varnish needs benchapp's settings; leave --plain out"),
        (HEALTH, ["--local"], "--plain and --local exclude each other"),
    ],
)
def test_what_needs_benchapps_settings_is_refused_for_a_plain_host(
    new_project, tmp_path, capsys, description, words, message
):
    folder = new_project(description=description)
    given = ["render", "nginx-gunicorn", "--project", str(folder), "--plain", "--output", str(tmp_path / "out")]
    assert main([*given, *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_demo_site_has_no_settings_of_benchapps(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(paths.KIT)
    assert main(["render", "nginx-gunicorn", "--plain", "--output", str(tmp_path / "out")]) == 2
    assert "--plain: the demo site runs its own settings in any case" in capsys.readouterr().err


@pytest.mark.parametrize("stack", catalog.read().stacks)
def test_the_packages_that_an_application_server_names_are_installed_for_it(stack):
    """The names in its command and its files outside of comments, as imported; h2 is also a protocol.

    Django is the project's own.
    """
    placed = one_host.in_production(for_files(stack, values="production"), "127.0.0.1")
    server = placed.case.servers[0]
    written = "\n".join(render.texts(server, placed).values())
    lines = [line for line in written.splitlines() if not re.match(r"\s*(#|\"\"\")", line)]
    named = set(re.findall(r"\w+", "\n".join([*lines, *server.start])))
    lock = (paths.KIT / "requirements.lock").read_text("utf-8")
    known = set(re.findall(r"(?m)^([\w.-]+)==", lock)) - {"h2", "django"}
    assert {name for name in known if name.replace("-", "_") in named} <= set(
        server.requirements or [server.distribution]
    )


def locked(name: str) -> str:
    lock = (paths.KIT / "requirements.lock").read_text("utf-8")
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
        imports |= set(re.findall(r"[\"'](benchapp\.(?!caching\b|serving\b|login_limit\b)[a-z.]+)", files[name]))
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
        if name.startswith("systemd/") and name.endswith(".service") and "@" not in name
    }
    application = "apache" if stack == "apache-modwsgi" else "gunicorn"
    for name in (application, f"{application}-standin"):
        assert writes.pop(f"{name}.service", None) is True, writes
    assert set(writes.values()) <= {False}, "the web server only reads"
    if stack == "nginx-gunicorn":
        assert f"alias {media}/;" in files["nginx.conf"]
    # The application's own files, its SQLite database among them, are in a directory that only its user has.
    assert "StateDirectory=benchapp\nStateDirectoryMode=0750\n" in "".join(files.values())


def test_a_project_has_backups_of_its_databases_each_day(new_project, tmp_path):
    """Of those that the kit can copy; the note names the others."""
    server = "{'ENGINE': 'django.db.backends.postgresql', 'NAME': 'x', 'HOST': '127.0.0.1', 'PORT': '1'}"
    folder = new_project(
        f"DATABASES['places'] = {server}\nDATABASES['legacy'] = {{'ENGINE': 'shop.odd', 'NAME': 'x'}}\n"
    )
    (folder / "shop" / "odd").mkdir()
    (folder / "shop" / "odd" / "base.py").write_text("from django.db.backends.dummy.base import DatabaseWrapper\n")
    files = rendered(folder, "nginx-gunicorn", "page-cache", tmp_path / "out")
    job = lines_of(files["timers/benchapp-backup.service"])
    python = "/srv/benchapp/current/.venv/bin/python"
    assert f"ExecStart={python} /etc/benchapp/backups.py backup /var/lib/benchapp/backups" in job
    assert {"User=benchapp-app", "Environment=PYTHONPATH=/etc/benchapp/python"} <= set(job)
    assert "EnvironmentFile=/etc/benchapp/secrets.env" in job
    assert "`benchapp-backup`" in files["INSTALL.md"] and "postgresql-client" in files["INSTALL.md"]
    assert "`default`, `places`" in files["INSTALL.md"]
    assert "Nothing backs up the database `legacy`: do it yourself." in files["INSTALL.md"]
    # As it stands below deploy/, as a template that parses as Python.
    assert files["backups.py"] == (paths.DEPLOY / "production/one-host/backups.py").read_text("utf-8")
    assert "\nif ! benchapp-manage invalidatepages; then\n" in files["benchapp-restore"]


def test_a_project_may_name_its_commands_for_backups(new_project, tmp_path):
    description = '[tool.benchapp]\nbackup = "dumpall --keep 3"\nrestore = "putback"\n'
    files = rendered(new_project("", description), "nginx-gunicorn", "none", tmp_path / "out")
    command = re.search("(?m)^ExecStart=(.*)", files["timers/benchapp-backup.service"])[1]
    assert command.split()[1:] == [
        "/srv/benchapp/current/manage.py",
        "dumpall",
        "--keep",
        "3",
        "/var/lib/benchapp/backups",
        "--settings=benchapp_overlay.settings",
    ]
    assert "`benchapp-manage putback /var/lib/benchapp/backups/FILE`" in files["INSTALL.md"]
    assert not {"backups.py", "benchapp-restore"} & files.keys()
    assert "benchapp-restore" not in files["INSTALL.md"] and "No backup" not in files["INSTALL.md"]


def test_a_project_that_the_kit_cannot_copy_is_reported(new_project, tmp_path):
    folder = new_project("DATABASES = {'default': {'ENGINE': 'shop.odd', 'NAME': 'x'}}")
    (folder / "shop" / "odd").mkdir()
    (folder / "shop" / "odd" / "base.py").write_text("from django.db.backends.dummy.base import DatabaseWrapper\n")
    files = rendered(folder, "nginx-gunicorn", "none", tmp_path / "out")
    assert "Nothing backs up the database `default`: do it yourself." in files["INSTALL.md"]
    assert "benchapp-backup" not in files["INSTALL.md"]
    assert not [name for name in files if "backup" in name or "restore" in name]


# What systemd-run does: the command behind its options, as it was called.
SYSTEMD_RUN = """#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac; do shift; done
shift
printf '%s\\n' "$@" > $FOLDER/words
echo "Restored database default from it." && exit $STATUS
"""


@pytest.fixture(scope="module")
def restore(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command that restores a backup on a host."""
    folder = tmp_path_factory.mktemp("host") / "files"
    one_host.write(for_files("gunicorn", "page-cache", "production"), folder)
    return folder / "benchapp-restore"


@pytest.mark.parametrize(
    ("words", "status", "invalidated", "left"),
    [
        (["{at}/my file.dump"], 0, 0, 0),
        (["--force", "my file.dump"], 0, 0, 0),
        (["my file.dump"], 1, None, 1),
        (["my file.dump"], 0, 1, 1),
        ([], 0, None, 2),
        (["a", "b"], 0, None, 2),
    ],
)
def test_a_restore_has_the_projects_environment_and_invalidates_pages(
    restore, tmp_path, words, status, invalidated, left
):
    (tmp_path / "my file.dump").touch()
    manage = f"#!/bin/sh\necho $* > {tmp_path}/managed\nexit {invalidated or 0}\n"
    for name, text in (("systemd-run", SYSTEMD_RUN), ("benchapp-manage", manage)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "FOLDER": str(tmp_path), "STATUS": str(status)}
    argv = [restore, *(word.format(at=tmp_path) for word in words)]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == left
    assert (tmp_path / "managed").exists() == (invalidated is not None)
    if left != 2:
        given = (tmp_path / "words").read_text().splitlines()
        assert given[1:] == ["restore", *words[:-1], f"{tmp_path}/my file.dump"]
    else:
        assert not (tmp_path / "words").exists() and len(done.stderr.splitlines()) == 1


def test_uploads_are_copied_each_day_and_can_be_put_back(new_project, tmp_path):
    files = rendered(new_project(UPLOADS), "nginx-gunicorn", "none", tmp_path / "out")
    assert "timers/benchapp-backup-media.timer" in files
    assert "`benchapp-backup-media`" in files["INSTALL.md"]
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
    # The kit's own health check is requested.
    assert "https://example.org:443/.ready; do" in files["benchapp-deploy"]
    assert "/([.]health|" in files["nginx.conf"] and "answer as before" not in files["INSTALL.md"]
    assert "does **not** have yet" in files["INSTALL.md"]


@pytest.mark.parametrize("login", ["/door/", "door", "/accounts/login/"])
def test_logins_are_limited_on_the_pages_that_the_project_has(new_project, tmp_path, login):
    folder = new_project(f"LOGIN_URL = {login!r}")
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("\nfrom django.contrib.auth.views import LoginView\n")
        urls.write("urlpatterns += [path('door/', LoginView.as_view(), name='door')]\n")
    match = re.search(
        r'"~(.POST .*)" \$binary_remote_addr',
        rendered(folder, "nginx-gunicorn", "none", tmp_path / "out")["nginx.conf"],
    )
    limited = re.compile(match[1])
    for path in ("/admin/login/", "/en/accounts/login", "/signin/", "/sign-in/", "/login/"):
        assert limited.search(f"POST {path}"), path
    for request in ("GET /login/", "POST /blog/login-tips/", "POST /", "POST /doors/"):
        assert not limited.search(request), request
    assert bool(limited.search("POST /door/")) == ("door" in login)


def test_a_server_that_the_project_brings_itself_stays_its_own(new_project, tmp_path, monkeypatch):
    monkeypatch.setattr("bench.serve.project.opened.UnderTest.own_packages", frozenset({"gunicorn"}))
    files = rendered(new_project(), "gunicorn", "none", tmp_path / "out")
    assert [line.partition("==")[0] for line in files["requirements-servers.txt"].splitlines()[1:]] == [
        "django-environ",
        "whitenoise",
    ]
    assert "list must have `gunicorn`" in files["INSTALL.md"]


@pytest.mark.parametrize(
    ("key", "allow", "stops_at"),
    [("k7-Xz_" * 10, [], "security.W002"), ("k7-Xz_" * 10, ["security.W002"], ""), ("weak", ["security.W002"], "W009")],
)
def test_a_deploy_stops_at_what_is_not_ready_for_production(new_project, tmp_path, key, allow, stops_at):
    """By Django's own checks, in the environment of the host; `startproject` itself passes."""
    more = "MIDDLEWARE.remove('django.middleware.clickjacking.XFrameOptionsMiddleware')"
    folder = new_project(more, f"[tool.benchapp]\nallow = {allow}\n")
    files = rendered(folder, "nginx-gunicorn", "none", tmp_path / "out")
    words = re.search(r"manage (check --deploy --tag security .*)", files["benchapp-deploy"])[1].split()
    lines = [line.partition("=") for line in files["site.env"].splitlines() if not line.startswith("#")]
    env = {name: value for name, _, value in lines} | {"SECRET_KEY": key, "PYTHONPATH": str(tmp_path / "out/python")}
    settings = f"--settings={env['DJANGO_SETTINGS_MODULE']}"
    done = subprocess.run(
        [sys.executable, "manage.py", *words, settings], env=env, cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, stops_at in done.stderr) == (int(bool(stops_at)), True), done.stderr
