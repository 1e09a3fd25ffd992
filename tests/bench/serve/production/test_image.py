"""The image of another project: its own packages and those of the servers, the kit's settings over its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.production import containers, one_host
from bench.serve.project.opened import UnderTest, open_project
from tests.bench.serve.production.test_containers import (
    of_compose,
    of_docker_compose,
    of_one_user,
    of_pod,
    on_a_host,
    one,
    read,
    validate_manifests,
)
from tests.cases import for_files
from tests.projects import DESCRIPTION, write

# Each starts several programs.
pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("own_var")]

SETTINGS = "import os\nSECRET_KEY = os.environ['SHOP_KEY']"


def with_variable(folder: Path, factory: pytest.TempPathFactory) -> UnderTest:
    """A project with a variable for its settings."""
    write(folder, factory, SETTINGS, DESCRIPTION + "build = ['compress --force']\n")
    (folder / ".env").write_text("SHOP_KEY=k3pt-secret\n")
    return open_project(folder)


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> UnderTest:
    """One for the tests that change nothing of it, inspected once."""
    folder = tmp_path_factory.mktemp("image")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "STATE", folder / "var")
        return with_variable(folder / "shop", tmp_path_factory)


def rendered(project: UnderTest, stack: str, layer: str, form: str, target: Path) -> Path:
    case = for_files(stack, layer, "production", project)
    written = containers.write(replace(case, size=catalog.read().size("silver")), target, form)
    assert set(written) == {path for path in target.rglob("*") if path.is_file()}
    return target


CASES = [("nginx-gunicorn", "page-cache"), ("apache-modwsgi", "none"), ("uvicorn", "varnish")]


@pytest.mark.parametrize(("stack", "layer"), CASES)
def test_the_files_are_of_the_project_only_and_tools_accept_them(shop, tmp_path, stack, layer):
    host = tmp_path / "host"
    one_host.write(for_files(stack, layer, "production", shop), host)
    folders = {form: rendered(shop, stack, layer, form, tmp_path / form) for form in containers.FORMS}
    for folder in folders.values():
        for path in (path for path in folder.rglob("*") if path.is_file()):
            text = path.read_text("utf-8")
            assert "k3pt-secret" not in text and not re.search(r"\bbench\b|benchmark|\bprobes\b|config\.settings", text)
            # The note says how a project can do without the kit's settings, by the kit's own variables.
            ours = text.partition("To run your own settings instead")[0]
            assert not re.search(r"readyz|healthz|loadfixtures|requirements\.lock|[^_]DATABASE_URL", ours), path
            assert all(str(place) not in text for place in (paths.KIT, paths.VENV, shop.folder)), path
            assert path.suffix == ".py" or ("{{" not in text and "{%" not in text), path
            name = path.relative_to(folder).as_posix()
            # What servers and the project's processes read is that of a host.
            if name.startswith("conf/") and not name.endswith("requirements-servers.txt"):
                of_host = (host / name.removeprefix("conf/")).read_text("utf-8")
                assert on_a_host(text) == of_one_user(of_host), name
    validate_manifests(folders["kubernetes"])
    application = of_compose(folders["compose"])[catalog.read().stack(stack).servers[0].name]
    assert application["environment"]["PYTHONPATH"].split(":")[-1] == "/etc/benchapp/python"
    assert list(of_pod(folders["kubernetes"])) == list(of_compose(folders["compose"]))
    servers = (folders["compose"] / "conf" / "requirements-servers.txt").read_text("utf-8")
    # Its own settings have an SQLite file, which a container has no disk for.
    assert "psycopg2-binary==" in servers and "django-environ==" in servers


def test_compose_accepts_its_file(shop, tmp_path):
    folder = rendered(shop, "nginx-gunicorn", "none", "compose", tmp_path / "out")
    env = of_docker_compose(folder, "SHOP_KEY=x\n")["gunicorn"]["environment"]
    assert (env["DJANGO_SETTINGS_MODULE"], env["OVERLAID_SETTINGS"]) == ("benchapp_overlay.settings", "shop.settings")
    assert (env["SHOP_KEY"], env["PYTHONPATH"]) == ("x", "/etc/benchapp/python")
    assert "BENCHAPP_DATABASE_FILES" not in env


def test_the_static_files_are_collected_as_the_image_does_it(shop, tmp_path):
    folder = rendered(shop, "nginx-gunicorn", "none", "compose", tmp_path / "out")
    image = (folder / "Containerfile").read_text("utf-8")
    version = "{}.{}".format(*sys.version_info[:2])
    assert f"\nARG BASE=python:{version}-slim-bookworm\n" in image
    assert "\nARG SHOP_KEY=none\n" in image and "ENV PYTHONPATH=/etc/benchapp/python\n" in image
    assert image.index("-r requirements.txt") < image.index("-r /etc/benchapp/requirements-servers.txt")
    ignored = (folder / ".dockerignore").read_text("utf-8").splitlines()
    assert {"project/.env", "project/db.sqlite3", "project/.git"} <= set(ignored)
    assert 0 < image.index("collectstatic --noinput ") < image.index("manage.py compress --force ")
    command = re.search(r"(?m)^RUN ([^&]*collectstatic .*)", image)[1].replace("\\\n", " ")
    words = shlex.split(command.replace("/etc/benchapp", str(folder / "conf")))
    env = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    env |= {"PATH": os.environ["PATH"], "SHOP_KEY": "none", "BENCHAPP_STATIC_ROOT": str(tmp_path / "static")}
    done = subprocess.run(
        [sys.executable, *words[words.index("manage.py") :]], cwd=shop.folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "static" / "admin" / "css" / "base.css").is_file()


def test_a_manage_py_that_sets_its_settings_runs_with_those_of_the_kit(tmp_path, tmp_path_factory):
    shop = with_variable(tmp_path / "shop", tmp_path_factory)
    manage_py = shop.folder / "manage.py"
    set_there = manage_py.read_text().replace(
        ".setdefault('DJANGO_SETTINGS_MODULE', ", ".update(DJANGO_SETTINGS_MODULE="
    )
    manage_py.write_text(set_there)
    compose, cluster = (
        rendered(shop, "nginx-gunicorn", "none", form, tmp_path / form) for form in ("compose", "kubernetes")
    )
    host, database = tmp_path / "host", tmp_path / "other.sqlite3"
    one_host.write(for_files("nginx-gunicorn", "none", "production", shop), host)
    lines = [line for line in (host / "site.env").read_text().splitlines() if not line.startswith("#")]
    env = {**dict(line.split("=", 1) for line in lines), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    env |= {"BENCHAPP_DATABASE_URL": f"sqlite:///{database}", "SHOP_KEY": "none", "PYTHONPATH": f"{host}/python"}
    # The script of a host ends with this command, by systemd.
    systemd_run = tmp_path / "systemd-run"
    systemd_run.write_text('#!/bin/sh\nwhile case $1 in --*) ;; *) false;; esac; do shift; done\nexec "$@"\n')
    systemd_run.chmod(0o755)
    manage = read(compose / "compose.yaml")["services"]["manage"]
    sessions = (host / "timers" / "benchapp-clearsessions.service").read_text()
    for words in (
        ["sh", "-c", (host / "benchapp-manage").read_text(), "benchapp-manage", "migrate", "--noinput"],
        [word.replace("$$", "$") for word in manage["entrypoint"][2:] + manage["command"]],
        one(cluster, "Job", "jobs.yaml")["spec"]["template"]["spec"]["containers"][0]["args"],
        re.search("(?m)^ExecStart=(.*)", sessions)[1].split(),
    ):
        here = [re.sub(r"[^\s\"]+/bin/python", sys.executable, word) for word in words]
        here = [word.replace("/srv/benchapp/current", str(shop.folder)) for word in here]
        done = subprocess.run(here, cwd=shop.folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        # Its own settings have another database.
        assert database.exists() and not (shop.folder / "db.sqlite3").exists(), words


def test_a_project_without_sessions_has_no_job_for_them(new_project, tmp_path):
    apps = "INSTALLED_APPS = ['django.contrib.staticfiles']\nMIDDLEWARE = []\nDATABASES = {}"
    project = open_project(new_project(apps, DESCRIPTION.replace('env_file = ".env"', "")))
    folder = rendered(project, "nginx-gunicorn", "none", "kubernetes", tmp_path / "out")
    assert "CronJob" not in (folder / "jobs.yaml").read_text("utf-8")


SECOND = "DATABASES['old'] = {'ENGINE': 'django.db.backends.sqlite3', 'NAME': BASE_DIR / 'old.sqlite3'}"


@pytest.mark.parametrize(
    ("settings", "description", "reason"),
    [
        ("", "", "no list of its packages for the image: add requirements.txt, or dependencies to its pyproject.toml"),
        (
            SECOND,
            DESCRIPTION.replace('env_file = ".env"', ""),
            "its database old is an SQLite file, and containers have no",
        ),
    ],
)
def test_what_no_image_can_serve_is_one_line(new_project, tmp_path, settings, description, reason):
    folder = new_project(settings, description)
    project = open_project(folder)
    with pytest.raises(BenchError) as refused:
        rendered(project, "nginx-gunicorn", "none", "compose", tmp_path / "out")
    assert str(refused.value).startswith(f"{folder}: --format compose: {reason}") and "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()
