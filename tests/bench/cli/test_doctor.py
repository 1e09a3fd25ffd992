"""Output and exit status of `python -m bench doctor`."""

import contextlib
import json
import re
import sqlite3
import sys

import pytest
from msgspec.structs import replace

from bench import paths
from bench.cli import doctor
from bench.serve.project import description
from bench.serve.project.findings.finding import Finding
from tests.bench.serve.project.test_findings import GOOD, HOME
from tests.deploy.running import command
from tests.projects import CACHE_IN_DATABASE, HASHED, ICON, URLS, open_folder, write

SECRET = {"PASSWORD": "aXq7Lw"}


def test_it_prints_errors_and_warnings_within_a_screen(bench, new_project, monkeypatch):
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setenv("COLUMNS", "80")
    folder = new_project("DEBUG = True")
    # A database without the tables of Django: a missing one would be filled.
    with contextlib.closing(sqlite3.connect(folder / "db.sqlite3")) as database:
        database.execute("CREATE TABLE other (id)")
    done = bench("doctor", "--project", folder)
    assert done.returncode == 1, done.stderr
    assert "settings shop.settings, Django " in done.stdout
    assert done.stdout.index("ERRORS: data\n  migrations-unapplied: ") < done.stdout.index("WARNINGS: ")
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines[1:])) <= 80
    full_output = bench("doctor", "--all", "--project", folder).stdout
    assert "  security.W018: You should not have DEBUG set to True" in full_output
    ids = re.findall(r"(?m)^  ([\w.-]+): ", full_output)
    # Findings without room are named, and counted.
    assert [name for name in ids if name not in done.stdout] == []
    shown = [name for name in ids if f"  {name}: " in done.stdout]
    assert f"{len(ids) - len(shown)} more (--all shows them):" in lines and shown
    assert lines[-1] == full_output.splitlines()[-1] == f"1 error, {len(ids) - 1} warnings"


def test_warnings_are_no_failure_and_json_says_the_same(bench, new_project):
    folder = new_project("INSTALLED_APPS = ['django.contrib.staticfiles']\nMIDDLEWARE = []")
    done = bench("doctor", "--project", folder, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["project"]["settings"]) == (0, "shop.settings"), document
    assert {item["severity"] for item in document["findings"]} == {"warning"}
    # Without named pages, URL patterns without parameters are examined.
    pages = [(page["path"], page["status"]) for page in document["facts"]["pages"]]
    looked_at = [("/", 200), ("/form/", 200), ("/visits/", 500), ("/who/", 500)]
    assert pages == [*looked_at, ("/no/such/page/", 404)]


def test_it_names_pages_that_fail_and_documentation_that_the_reader_can_open(new_project, monkeypatch):
    project = description.read(new_project())
    looked_at = [replace(HOME, path="/"), *(replace(HOME, path=f"/{name}/", status=500) for name in "abcd")]
    facts = replace(GOOD, pages=tuple(looked_at))
    item = Finding("an-id", "warning", "security", "It is wrong", "", "mend it", "docs/caching.md#query-strings")
    text = "\n".join(doctor.as_text(project, facts, [item], sys.maxsize))
    failed = "/a/ (500), /b/ (500), /c/ (500) and 1 more"
    assert f"; 1 page of 5 rendered with status 200, but not {failed}" in " ".join(text.split())
    assert f"\n    {paths.KIT}/docs/caching.md#query-strings\n" in text
    monkeypatch.setattr(paths, "IS_CLONE", False)
    text = "\n".join(doctor.as_text(project, facts, [item], sys.maxsize))
    assert "\n    benchapp's docs/caching.md#query-strings\n" in text


def test_what_a_project_lacks_without_benchapps_settings_is_listed(bench, new_project):
    folder = new_project()
    done = bench("doctor", "--plain", "--project", folder, "--json")
    plain = [item for item in json.loads(done.stdout)["findings"] if item["group"] == "plain"]
    unread = [item["what"].split()[0] for item in plain if item["id"] == "variable-not-read"]
    # DEBUG is off in any case.
    assert (done.returncode, unread) == (1, ["DATABASE_URL", "BENCHAPP_STATIC_ROOT", "ALLOWED_HOSTS"])
    others = {item["id"] for item in plain} - {"variable-not-read"}
    assert others == {"health-check-missing", "start-not-told", "proxy-header-unread"}
    usual = json.loads(bench("doctor", "--project", folder, "--json").stdout)["findings"]
    assert "plain" not in {item["group"] for item in usual}


def test_all_that_it_can_find_is_listed_without_a_project(bench, tmp_path):
    listed = bench("doctor", "--list", "--project", tmp_path)
    assert listed.returncode == 0, listed.stderr
    rules = json.loads(bench("doctor", "--list", "--json").stdout)["findings"]
    assert len(rules) > 60
    for rule in rules:
        assert f"  {rule['id']} ({rule['severity']}, {rule['found_in']}): " in listed.stdout


def test_a_finding_is_left_out_by_its_id_and_an_unknown_id_is_one_line(bench, new_project):
    folder = new_project("", '[tool.benchapp]\nignore = ["static-root"]\n')
    assert "static-root" not in bench("doctor", "--all", "--project", folder).stdout
    (folder / "pyproject.toml").write_text('[tool.benchapp]\nignore = ["static-rot"]\n')
    done = bench("doctor", "--project", folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("; did you mean static-root?\n")


def test_as_many_processes_as_fit_are_too_many_for_nobody(bench, new_project):
    done = bench("doctor", "--json", "--set", "processes=auto", "--project", new_project())
    assert done.returncode in (0, 1), done.stderr
    assert "too-many-workers" not in {item["id"] for item in json.loads(done.stdout)["findings"]}


@pytest.mark.servers
def test_a_database_is_filled_for_urls_that_name_collected_files_and_for_a_cache(tmp_path_factory):
    with open_folder() as parent:
        # The name of the folder is that of what the kit keeps of it.
        # Hosts as some templates of projects have them.
        settings = HASHED + CACHE_IN_DATABASE + "ALLOWED_HOSTS = ['localhost', '127.0.0.1', '::1']\n"
        folder = write(parent / parent.name, tmp_path_factory, settings, "", URLS + ICON)
        done = command("-m", "bench", "doctor", "--database", "sqlite", "--json", "--project", str(folder))
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)["facts"]
    assert (facts["migrations_left"], facts["silent"]) == (0, {})


def test_the_password_of_a_database_is_not_shown(bench, new_project):
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": "s", "HOST": "127.0.0.1", "PORT": 1}
    done = bench("doctor", "--json", "--project", new_project(f"DATABASES = {{'default': {database | SECRET}}}"))
    assert json.loads(done.stdout)["facts"]["databases"] == {"default": database["ENGINE"]}
    assert done.returncode == 1 and SECRET["PASSWORD"] not in done.stdout


def test_a_folder_that_is_no_project_is_one_line(bench, tmp_path):
    done = bench("doctor", "--project", tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"benchapp doctor: {tmp_path}: no manage.py there; name the folder of a Django project, which has one\n"
    )
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "manage.py").touch()
    assert bench("doctor", "--project", tmp_path).stderr.endswith(f"name {tmp_path / 'site'}\n")
    # In a repository of several parts, and not in installed packages.
    (tmp_path / "site").rename(tmp_path / "node_modules")
    (tmp_path / "apps" / "api").mkdir(parents=True)
    (tmp_path / "apps" / "api" / "manage.py").touch()
    assert bench("doctor", "--project", tmp_path).stderr.endswith(f"name {tmp_path / 'apps' / 'api'}\n")


def test_settings_that_nobody_chooses_are_named_with_those_for_production_first(bench, new_project):
    folder = new_project()
    manage = folder / "manage.py"
    manage.write_text(manage.read_text().replace("os.environ.setdefault(", "print("))
    (folder / "shop" / "settings").mkdir()
    for name in ("base", "production"):
        (folder / "shop" / "settings" / f"{name}.py").touch()
    (folder / "shop" / "settings.py").unlink()
    done = bench("doctor", "--project", folder)
    assert done.returncode == 2
    assert 'write settings = "shop.settings.production" into [tool.benchapp]' in done.stderr
    assert "or shop.settings.base\n" in done.stderr
