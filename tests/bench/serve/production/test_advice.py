"""Advice printed with a render: values without effect, a cache too large, host names that the site refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.serve.catalog import catalog, values
from bench.serve.deployment import case as cases
from bench.serve.production import advice
from bench.serve.project.opened import open_project
from tests.cases import for_files, kit


@pytest.mark.parametrize(
    ("layer", "form"),
    [
        *((layer, "systemd") for layer in ("nginx-memcached", "fragments", "varnish", "uwsgi-cache")),
        # There, files are in memory.
        *((layer, "compose") for layer in ("nginx-microcache", "staticgenerator")),
    ],
)
def test_a_cache_that_fills_the_size_is_refused(tmp_path, bench, layer, form):
    words = ("nginx-uwsgi", "--format", form, "--layer", layer)
    words = (*words, "--size", "bronze", "--output", tmp_path / "out")
    run = bench("render", *words)
    message = "size bronze has 256 MB for all, and the cache may take 256 MB of them; --set cache_memory_mb=64"
    assert (run.returncode, run.stderr) == (2, f"benchapp render: {message}\n")
    assert bench("render", *words, "--set", "cache_memory_mb=64").returncode == 0


def test_a_project_on_sqlite_is_told_that_containers_have_no_lasting_disk(tmp_path, bench, new_project):
    folder = new_project(description='[project]\nname = "shop"\ndependencies = ["Django"]\n')
    words = ("render", "gunicorn", "--project", str(folder), "--output")
    alike = "its database default is an SQLite file"
    assert alike in bench(*words, str(tmp_path / "containers"), "--format", "compose").stderr
    assert alike not in bench(*words, str(tmp_path / "host")).stderr
    for variable in ("BENCHAPP_DATABASE_URL", "DATABASE_URL"):
        named = ("--format", "compose", "--env", f"{variable}=postgresql://shop@db.example.org/shop")
        run = bench(*words, str(tmp_path / variable), *named)
        assert run.returncode == 0 and alike not in run.stderr


@pytest.mark.parametrize("change", ["http2=off", "web_processes=7", "http_port=8080"])
def test_a_value_that_no_server_has_is_refused(tmp_path, bench, change):
    name, files = change.partition("=")[0], tmp_path / "out"
    run = bench("render", "gunicorn", "--set", change, "--output", str(files))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"benchapp render: --set {name}: it changes no file of gunicorn with layer none; "
        "leave it out, or choose a stack whose servers have it\n"
    )
    assert not files.exists()


def test_a_file_of_values_says_which_of_them_do_nothing(tmp_path, bench):
    (tmp_path / "mine.toml").write_text('processes = 7\nhttp2 = "off"\n', "utf-8")
    out = tmp_path / "out"
    run = bench("render", "gunicorn", "--values", str(tmp_path / "mine.toml"), "--output", str(out))
    assert run.returncode == 0
    assert run.stdout.splitlines()[-1] == str(out / "INSTALL.md")
    note, last = run.stderr.splitlines()
    assert note == "note: http2: it changes no file of gunicorn with layer none"
    assert last == f"{len(run.stdout.splitlines())} files; next, read {out / 'INSTALL.md'}"


@pytest.mark.parametrize(
    ("stack", "change"),
    [
        ("nginx-gunicorn", "http2=off"),
        ("gunicorn", "hsts_seconds=7"),  # of the site's environment
        ("nginx-gunicorn", "http_port=1081"),  # of the unit's capabilities
        ("gunicorn", "threads=4"),  # what the stack has by itself
    ],
)
def test_a_value_that_something_has_is_not_idle(stack, change):
    usual = catalog.read().values["production"]
    changed = usual.changed(dict([values.parse_change(change)]))
    assert advice.idle_changes(for_files(stack, values=changed), usual) == []


def of_names(server_names, allowed=None, project=None, *, env=None, served_by=("nginx-gunicorn", "none"), **more):
    """The advice on these values of production, with the user's environment, for a stack and a layer."""
    chosen = catalog.read().values["production"]
    if server_names:
        chosen = chosen.changed({"server_names": server_names, **more})
    if allowed is not None:
        chosen = replace(chosen, env={**chosen.env, "ALLOWED_HOSTS": allowed})
    chosen = replace(chosen, user_env=env or {})
    return advice.refused_hosts(cases.for_files(project or kit(), *served_by, chosen))


@pytest.mark.parametrize(
    ("server_names", "allowed"),
    [
        (None, None),
        ("shop.example.org", "www.example.org, shop.example.org"),
        ("Shop.example.org", "shop.EXAMPLE.org"),
        ("shop.example.org example.org", ".example.org"),
        ("*.example.org", ".example.org"),
        (".shop.example.org", ".example.org"),
        ("shop.example.org", "*"),
        # Redirected to the first one by the web server.
        ("shop.example.org www.example.org", "shop.example.org"),
    ],
)
def test_names_that_server_and_settings_have_need_no_advice(server_names, allowed):
    assert of_names(server_names, allowed) == ""


@pytest.mark.parametrize(
    ("server_names", "allowed", "refused"),
    [
        ("shop.example.org", None, "shop.example.org"),
        ("shop.example.org", "example.org", "shop.example.org"),
        ("shopexample.org", ".example.org", "shopexample.org"),
        ("*.example.org", "example.org,www.example.org", "*.example.org"),
        (".example.org", "example.org", ".example.org"),
        ("*.example.org", ".shop.example.org", "*.example.org"),
        ("a.example b.example", "c.example", "a.example"),
    ],
)
def test_a_name_that_the_settings_refuse_is_advised(server_names, allowed, refused):
    note = of_names(server_names, allowed)
    assert note.startswith(f"server_names has {refused}, which ALLOWED_HOSTS ({(allowed or '').replace(',', ', ')}")
    assert note.endswith(" refuses with 400; write ALLOWED_HOSTS with it under [env] of a file of values")


def test_without_a_redirect_each_name_counts():
    assert "www.example.org, which" in of_names("example.org www.example.org", "example.org", canonical_host="off")


@pytest.mark.parametrize(
    ("served_by", "refused"),
    [
        (("gunicorn", "none"), "www.example.org"),
        (("nginx-gunicorn", "none"), ""),
        # The layer's server redirects.
        (("gunicorn", "varnish"), ""),
    ],
)
def test_names_that_no_server_redirects_count(served_by, refused):
    note = of_names("example.org www.example.org", "example.org", served_by=served_by)
    assert note.partition(", which")[0].removeprefix("server_names has ") == refused


READS = "import os\nALLOWED_HOSTS = os.environ.get('ALLOWED_HOSTS', '').split(',')"
OWN = "ALLOWED_HOSTS = ['shop.example.com']"


@pytest.mark.servers
@pytest.mark.usefixtures("own_var")
def test_the_settings_of_a_plain_host_are_read_with_its_environment(new_project):
    plain = open_project(new_project(OWN), plain=True)
    note = of_names("shop.example.org", "shop.example.org", plain)
    assert note.startswith(
        "server_names has shop.example.org, which ALLOWED_HOSTS of shop.settings (shop.example.com) refuses with 400"
    )
    assert of_names("shop.example.com", "shop.example.org", plain) == ""


@pytest.mark.servers
@pytest.mark.usefixtures("own_var")
def test_settings_that_read_the_variable_have_the_names_of_the_values(new_project):
    reading = open_project(new_project(READS), plain=True)
    assert of_names("shop.example.org", "shop.example.org", reading) == ""
    assert "(example.org, www.example.org) refuses with 400" in of_names("shop.example.org", None, reading)


OTHER_NAME = "import os\nALLOWED_HOSTS = [os.environ.get('DJANGO_ALLOWED_HOSTS', 'localhost')]"
IN_DEBUG = """
import os
DEBUG = os.environ.get('DEBUG') == '1'
ALLOWED_HOSTS = ['*'] if DEBUG else ['shop.example.com']
if not DEBUG:
    SECRET_KEY = os.environ['SECRET_KEY']
"""
ENV_FILE = '[tool.benchapp]\nenv_file = ".env"\n'


@pytest.mark.servers
@pytest.mark.usefixtures("own_var")
def test_settings_are_read_with_all_variables_of_the_host(new_project):
    folder = new_project(OTHER_NAME)
    reading = open_project(folder, plain=True)
    assert of_names(None, None, reading, env={"DJANGO_ALLOWED_HOSTS": "example.org"}) == ""
    assert "shop.settings (localhost) refuses with 400" in of_names(None, None, reading)


@pytest.mark.servers
@pytest.mark.usefixtures("own_var")
def test_settings_are_read_without_debug(new_project):
    folder = new_project(IN_DEBUG, ENV_FILE)
    (folder / ".env").write_text("DEBUG=1\n")
    debugging = open_project(folder, plain=True)
    assert "ALLOWED_HOSTS of shop.settings (shop.example.com) refuses with 400" in of_names(None, None, debugging)
    assert of_names("shop.example.com", None, debugging) == ""


HEALTH = '[project]\nname = "shop"\ndependencies = ["Django"]\n[tool.benchapp]\nhealth = "/up/"\n'
AS_JSON = "import json, os\nALLOWED_HOSTS = json.loads(os.environ.get('ALLOWED_HOSTS', '[]'))"


def test_settings_that_refuse_the_value_of_the_host_are_a_note(tmp_path, bench, new_project):
    folder, out = new_project(AS_JSON, HEALTH), tmp_path / "out"
    run = bench("render", "gunicorn", "--plain", "--project", str(folder), "--output", str(out))
    assert run.returncode == 0
    *_, note, last = run.stderr.splitlines()
    beginning = f"note: with the host's ALLOWED_HOSTS=example.org,www.example.org and DEBUG=0, {folder}: settings "
    assert note.startswith(f"{beginning}shop.settings cannot be imported: JSONDecodeError")
    assert last.endswith(f"files; next, read {out / 'INSTALL.md'}")


@pytest.mark.servers
@pytest.mark.usefixtures("own_var")
def test_a_project_with_names_is_not_served_under_the_names_of_the_example(new_project):
    overlaid = open_project(new_project(OWN))
    note = of_names(None, None, overlaid)
    assert note.startswith("server_names has example.org, and ALLOWED_HOSTS (shop/settings.py:")
    assert ") has shop.example.com: write the site's names into server_names" in note
    # A file of values replaces the project's names, with others as well.
    assert of_names("staging.example.org", "staging.example.org", overlaid) == ""
    assert of_names("shop.example.com", "shop.example.com", overlaid) == ""


def test_a_render_prints_the_advice(tmp_path, bench):
    run = bench("render", "gunicorn", "--set", "server_names=shop.example.org", "--output", str(tmp_path / "out"))
    assert run.returncode == 0
    assert "note: server_names has shop.example.org, which ALLOWED_HOSTS (" in run.stderr
