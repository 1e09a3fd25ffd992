"""./manage.py backup and restore, on both databases."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from benchapp.models import Author
from tests.managing import manage_on

pytestmark = pytest.mark.servers


def test_what_a_backup_holds_comes_back(site_database: str, tmp_path: Path):
    if site_database.startswith("postgres") and shutil.which("pg_dump") is None:
        pytest.skip("program not installed: pg_dump")
    Author.objects.create(name="Ann", city="Ghent")
    get_user_model().objects.create_user("margaret")
    done = manage_on(site_database, "backup", tmp_path / "backups")
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "backups").iterdir()
    assert done.stdout == f"{file}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    Author.objects.update(name="Bob")
    get_user_model().objects.all().delete()

    done = manage_on(site_database, "restore", file)
    assert "the database has rows, which would be lost; --force replaces them" in done.stderr
    assert (done.returncode, Author.objects.get().name) == (1, "Bob")
    done = manage_on(site_database, "restore", file, "--force")
    assert (done.returncode, done.stderr) == (0, "")
    assert (Author.objects.get().name, get_user_model().objects.get().get_username()) == ("Ann", "margaret")


@pytest.fixture
def sqlite_site(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'site.sqlite3'}"
    assert manage_on(url, "migrate", "--verbosity", "0").returncode == 0
    return url


def test_the_oldest_backups_go(sqlite_site: str, tmp_path: Path):
    made = [manage_on(sqlite_site, "backup", tmp_path / "b", "--keep", 2).stdout.strip() for _ in range(3)]
    assert sorted(map(str, (tmp_path / "b").iterdir())) == made[1:]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["backup", "/dev/null/b"], "/dev/null/b: no backup was made: "),
        (["backup", "b", "--keep", "0"], "0: use a whole number, 1 or more"),
        (["restore", "nosuch.sqlite3"], "nosuch.sqlite3: no backup of this database"),
        (["restore", "site.dump"], "a file whose name ends in .sqlite3"),
    ],
)
def test_what_cannot_be_done_is_one_line(sqlite_site: str, words: list[str], says: str):
    done = manage_on(sqlite_site, *words)
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_backup_changes_nothing(sqlite_site: str, tmp_path: Path):
    (tmp_path / "bad.sqlite3").write_bytes(b"no database" * 1000)
    done = manage_on(sqlite_site, "restore", tmp_path / "bad.sqlite3")
    assert (done.returncode, "nothing is changed" in done.stderr) == (1, True)
    assert manage_on(sqlite_site, "check", "--database", "default").returncode == 0
