"""Models that change: `makemigrations` and `migrate` are enough, and the page index stays right."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import checks
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations import RenameModel
from django.db.migrations.recorder import MigrationRecorder
from django.test import TransactionTestCase
from django.test.utils import CaptureQueriesContext

from benchapp import page_index
from benchapp.models import Author, Comment, Post
from benchapp.pagination import total
from tests.app.changed_models import Source, changes
from tests.app.conftest import Rows, make_rows

MODELS = Path(settings.BASE_DIR) / "benchapp" / "models.py"
CHANGES = changes(MODELS.read_text())
# One of each kind of change; the others are these for other fields.
FEW = {
    "Author with a field",
    "Comment with replies",
    "Comment without indexes",
    "Post in another table",
    "Post.author removed",
    "Post.author renamed",
    "Post.comment_count removed",
    "Post.title of another type",
}
CASES = [pytest.param(name, marks=[] if name in FEW else [pytest.mark.matrix], id=name) for name in CHANGES]


@pytest.fixture
def changed_site(tmp_path: Path) -> Path:
    """A folder with a copy of the application, without what names its fields: admin, forms and views."""
    site = tmp_path / "site"
    shutil.copytree(MODELS.parent, site / "benchapp", ignore=shutil.ignore_patterns("__pycache__"))
    site.joinpath("changed_urls.py").write_text("urlpatterns = []\n")
    site.joinpath("changed_settings.py").write_text(
        "from config.settings import *\n"
        "INSTALLED_APPS = [app for app in INSTALLED_APPS if app != 'django.contrib.admin']\n"
        "ROOT_URLCONF = 'changed_urls'\n"
    )
    return site


def migrate(site: Path, url: str, source: Source) -> dict:
    """Run the migrations of a change on a database; what the database has then."""
    (site / "benchapp" / "models.py").write_text(source.text)
    output = run_in(site, url, str(Path(__file__).with_name("migrate_changed_models.py")))
    return json.loads(output[output.index("{") :])


def run_in(site: Path, url: str, *arguments: str) -> str:
    """Run Python in a changed site on a database; what it prints."""
    environment = {
        "DATABASE_URL": url,
        "DEBUG": "0",
        "DJANGO_SETTINGS_MODULE": "changed_settings",
        "PYTHONPATH": f"{site}:{settings.BASE_DIR}",
    }
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=site,
        env=os.environ | environment,
        input="y\n" * 9,  # the question whether a field is renamed
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_case_of_every_kind_is_among_the_few():
    assert CHANGES.keys() >= FEW


@pytest.mark.parametrize("change", CASES)
def test_any_change_of_a_model_is_migrated(site_database: str, changed_site: Path, change: str):
    make_rows()
    source = CHANGES[change](Source(MODELS.read_text()))
    assert source.text != MODELS.read_text()
    result = migrate(changed_site, site_database, source)
    assert (result["wrong"], result["wrong_created"], result["wrong_changed"]) == ([], [], [])
    assert [rows[:2] for rows in result["migrated"]] == [[30, 30], [60, 60], [60, 60]]
    assert [rows[:2] for rows in result["created"]] == [[330, 330], [360, 360], [360, 360]]
    for rows, children in zip(result["created"], result["created"][1:], strict=False):
        # A parent that still counts its children counts all of them.
        assert not rows[2:] or children[0] in rows[2:]


MIGRATE_AND_CHECK = """
import django

django.setup()
from django.core.management import call_command

call_command("migrate", verbosity=0)
call_command("makemigrations", "benchapp", "--check", verbosity=0)
call_command("check", "--database", "default", "--fail-level", "WARNING")
call_command("loadfixtures", "--rows", "510")
call_command("recount", "--check")
"""


def test_squashed_migrations_make_the_same_site(changed_site: Path, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/squashed.sqlite3"
    *_, last = sorted(path.stem for path in (changed_site / "benchapp" / "migrations").glob("0*.py"))
    run_in(changed_site, url, "-m", "django", "squashmigrations", "benchapp", last, "--no-input")
    assert "The page index is right." in run_in(changed_site, url, "-c", MIGRATE_AND_CHECK)


POINTS = ["in a migration", "all migrated", "counted"]
OTHER_POINTS = ["triggers dropped", "between migrations", "triggers created"]
POINTS += [pytest.param(name, marks=pytest.mark.matrix) for name in OTHER_POINTS]


@pytest.mark.parametrize("point", POINTS)
def test_after_a_migration_that_was_killed_the_next_one_counts_right(site_database: str, point: str):
    make_rows()
    call_command("migrate", "benchapp", "0003", verbosity=0)
    killed = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_migrate.py")), point],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DATABASE_URL": site_database, "PYTHONPATH": str(settings.BASE_DIR)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    # What is written before the next one is counted by it, whether triggers are there or not.
    run_sql("INSERT INTO benchapp_author (name, city, bio, joined) VALUES ('n', 'c', 'b', '2024-01-01')")
    call_command("migrate", verbosity=0)
    assert page_index.differences(connection) == []
    assert (total(Author), total(Post), total(Comment)) == (31, 60, 60)


# --- The history of this site -------------------------------------------------------------------


def names_in_database() -> set[str]:
    """Names of all tables, triggers and functions that the page index could have made."""
    query = {
        "sqlite": "SELECT name FROM sqlite_master",
        "postgresql": (
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal UNION SELECT relname FROM pg_class"
            " UNION SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        ),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(query)
        names = {name for (name,) in cursor.fetchall()}
    return {name for name in names if name.startswith(("benchapp_", "pageindex_"))}


def run_sql(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def more_comments(rows: int) -> None:
    post = Post.objects.latest("id")
    Comment.objects.bulk_create(Comment(post=post, name="n", body="b", rating=1) for _ in range(rows))


def assert_right(comments: int) -> None:
    assert page_index.differences(connection) == []
    assert (Comment.objects.count(), total(Comment)) == (comments, comments)


def test_a_database_with_the_first_page_index_is_migrated(site_database: str):
    new = names_in_database()
    call_command("migrate", "benchapp", "0001", verbosity=0)
    before = names_in_database()
    assert not [name for name in before if "page" in name]
    frozen = Path(__file__).with_name("first_page_index") / f"{connection.vendor}.sql"
    run_sql(*frozen.read_text().split("\n----\n"))
    MigrationRecorder(connection).record_applied("benchapp", "0002_page_index")
    run_sql(
        "INSERT INTO benchapp_author (name, city, bio, joined) VALUES ('Ann', 'Oslo', '', '2024-01-01')",
        "INSERT INTO benchapp_post (author_id, title, body, published) VALUES (1, 't', 'b', '2024-01-01')",
        "INSERT INTO benchapp_comment (post_id, name, body, created, rating) VALUES (1, 'n', 'b', '2024-01-01', 5)",
    )
    call_command("migrate", verbosity=0)
    assert names_in_database() == new
    assert_right(1)
    assert (Author.objects.get().post_count, Post.objects.get().comment_count) == (1, 1)
    more_comments(300)
    assert_right(301)


def test_a_comment_keeps_its_account_when_that_is_renamed(site_database: str):
    make_rows()
    user = get_user_model().objects.create_user("margaret")
    Comment.objects.filter(pk=5).update(user=user)
    call_command("migrate", "benchapp", "0003", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM benchapp_comment WHERE author_id = %s", [user.pk])
        assert cursor.fetchall() == [(5,)]
    call_command("migrate", verbosity=0)
    assert [comment.pk for comment in user.comments.all()] == [5]
    assert Comment.objects.filter(user=None).count() == 59


@pytest.mark.parametrize("target", ["zero", "0001", "0002"])
def test_migrations_go_back_and_forth(site_database: str, target: str):
    make_rows()
    before = names_in_database()
    call_command("migrate", "benchapp", target, verbosity=0)
    left = names_in_database()
    assert not [name for name in left if name.startswith("pageindex") or "pageblock" in name]
    if target == "zero":
        assert left == set()
    else:
        more = "INSERT INTO benchapp_author (name, city, bio, joined) VALUES ('Ann', 'Oslo', '', '2024-01-01')"
        run_sql(more)
    call_command("migrate", "benchapp", verbosity=0)
    assert names_in_database() == before
    assert total(Author) == Author.objects.count() == (0 if target == "zero" else 31)
    assert page_index.differences(connection) == []


def test_a_migration_that_fails_is_named_and_repaired(site_database: str, monkeypatch: pytest.MonkeyPatch):
    make_rows()

    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("the power is off")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="the power is off"):
        patch.setattr(MigrationExecutor, "migrate", fail)
        call_command("migrate", "benchapp", "0002", verbosity=0)
    more_comments(600)
    messages = checks.run_checks(databases=["default"], tags=["database"])
    assert [message.id for message in messages] == ["benchapp.W001"]
    assert "migrate" in messages[0].hint
    call_command("migrate", verbosity=0)
    assert checks.run_checks(databases=["default"], tags=["database"]) == []
    assert_right(660)


def test_a_database_without_the_sites_tables_has_no_triggers_to_miss(site_database: str):
    call_command("migrate", "benchapp", "zero", verbosity=0)
    assert checks.run_checks(databases=["default"], tags=["database"]) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions", "zero"],
        ["benchapp", "0002", "--plan"],
        ["benchapp", "0002", "--fake"],
        [],
    ],
    ids=" ".join,
)
def test_a_migration_that_does_not_change_the_site_counts_nothing(site_database: str, arguments: list[str]):
    make_rows()
    run_sql("UPDATE benchapp_pageblock SET rows = 7 WHERE list = 'benchapp_comment'")
    call_command("migrate", *arguments, verbosity=0)
    assert total(Comment) == 7
    assert page_index.missing_triggers(connection) == []
    call_command("migrate", "benchapp", "--fake", verbosity=0)
    call_command("migrate", "benchapp", "0002", verbosity=0)
    call_command("migrate", verbosity=0)
    assert_right(60)


def test_a_renamed_model_is_still_counted(site_database: str):
    make_rows()
    state = MigrationExecutor(connection).loader.project_state()
    operation = RenameModel("Author", "Writer")
    changed = state.clone()
    operation.state_forwards("benchapp", changed)
    page_index.drop_triggers(connection)
    with connection.schema_editor() as editor:
        operation.database_forwards("benchapp", editor, state, changed)
    page_index.rebuild(connection, changed.apps)
    writer = changed.apps.get_model("benchapp", "writer")
    writer.objects.create(name="Ann", city="Oslo")
    assert (total(writer), sum(writer.objects.values_list("post_count", flat=True))) == (31, 60)
    assert "pageindex_benchapp_writer_insert" in names_in_database()


# --- Tables that are emptied --------------------------------------------------------------------


class Emptied(TransactionTestCase):
    """A test case whose end empties the database; with `available_apps` it sends no `post_migrate`."""

    available_apps = None

    def runTest(self) -> None:
        make_rows()


class EmptiedInSilence(Emptied):
    available_apps = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "benchapp"]


def flush() -> None:
    call_command("flush", interactive=False, verbosity=0)


def flush_in_silence() -> None:
    call_command("flush", interactive=False, verbosity=0, inhibit_post_migrate=True, allow_cascade=True)


def run_test_case() -> None:
    Emptied().debug()


def run_silent_test_case() -> None:
    EmptiedInSilence().debug()


@pytest.mark.parametrize("empty", [flush, flush_in_silence, run_test_case, run_silent_test_case])
def test_an_emptied_site_has_no_rows_and_counts_new_ones(site_database: str, empty: Callable):
    make_rows()
    empty()
    assert [total(model) for model in (Author, Post, Comment)] == [0, 0, 0]
    assert page_index.differences(connection) == []
    make_rows()
    assert [total(model) for model in (Author, Post, Comment)] == [30, 60, 60]
    assert_right(60)


def test_a_site_that_a_test_case_puts_back_is_counted_once(site_database: str):
    make_rows()
    # As TransactionTestCase does with `serialized_rollback`.
    contents = connection.creation.serialize_db_to_string()
    flush()
    connection.creation.deserialize_db_from_string(contents)
    assert_right(60)


@pytest.mark.parametrize("tables", ["benchapp_comment", "benchapp_post CASCADE", "benchapp_author CASCADE"])
def test_a_truncated_table_has_no_rows_and_counts_new_ones(postgresql_site: str, tables: str):
    make_rows()
    run_sql(f"TRUNCATE {tables}")
    assert_right(0)
    assert set(Post.objects.values_list("comment_count", flat=True)) <= {0}
    make_rows()
    assert_right(60)


def test_a_database_of_another_kind_has_no_triggers(rows: Rows, monkeypatch: pytest.MonkeyPatch):
    plan = [(MigrationExecutor(connection).loader.get_migration("benchapp", "0001_initial"), False)]
    monkeypatch.setattr(connection, "vendor", "mysql")
    with CaptureQueriesContext(connection) as queries:
        page_index.before_migrations(connection.alias, plan)
        page_index.after_migrations(connection.alias, plan)
    assert [query["sql"] for query in queries] == []
    assert page_index.missing_triggers(connection) == []
