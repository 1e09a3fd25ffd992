"""`python -m bench doctor`: what it prints, and its exit status."""

import json

SECRET = {"PASSWORD": "aXq7Lw"}


def test_it_says_what_blocks_and_what_hurts(bench, new_project):
    folder = new_project("DEBUG = True")
    # A file without tables: a missing one would be filled.
    (folder / "db.sqlite3").touch()
    done = bench("doctor", "--project", folder)
    assert done.returncode == 1, done.stderr
    assert "settings shop.settings, Django " in done.stdout
    assert "\nhurts  security.W018: You should not have DEBUG set to True" in done.stdout
    assert "\nblocks migrations: " in done.stdout
    assert "\nhurts  CACHES: " in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()[1:] if "https://" not in line) <= 80


def test_what_only_hurts_is_no_failure_and_json_says_the_same(bench, new_project):
    folder = new_project("INSTALLED_APPS = ['django.contrib.staticfiles']\nMIDDLEWARE = []")
    done = bench("doctor", "--project", folder, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["project"]["settings"]) == (0, "shop.settings"), found
    assert {item["level"] for item in found["advice"]} == {"hurts"}
    # Its description names no pages: those of URL patterns without parameters are looked at.
    pages = [(page["path"], page["status"]) for page in found["facts"]["pages"]]
    looked_at = [("/", 200), ("/form/", 200), ("/visits/", 500), ("/who/", 500)]
    assert pages == [*looked_at, ("/no/such/page/", 404)]


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
