"""Reports contain no secret and no path of the machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.report import (
    redact,
)
from bench.report.redact import redacted
from bench.report.write import write_report
from bench.results.folder import Folder, read_run
from tests.bench.report import report_folder
from tests.bench.report.pages import Page, shown


def test_secrets_do_not_travel_with_the_report(hostile):
    text = shown(hostile)
    assert "very-private" not in text
    assert "hush" not in text
    assert "SECRET_KEY=(hidden)" in text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("env = SECRET_KEY=abc", "env = SECRET_KEY=(hidden)"),
        ('"db_password": "x y"', '"db_password": (hidden)'),
        ("postgres://user:pa@localhost/db", "postgres://user:(hidden)@localhost/db"),
        ("processes = 4", "processes = 4"),
        ("# tokens are not used", "# tokens are not used"),
    ],
)
def test_secrets_are_hidden(line, shown):
    assert redacted(line) == shown


def test_reports_hold_no_path_of_the_machine(tmp_path):
    folder = report_folder.make(tmp_path / "elsewhere" / "run", rounds=1)
    path = folder / "configs" / "uwsgi~none" / "uwsgi" / "uwsgi.ini"
    path.write_text(
        "chdir = /srv/me/checkout\nhome = /srv/me/checkout/.venv\n"
        "socket = /srv/me/results/1/raw/uwsgi~none~r1/run/a.sock\n"
        f"stats = {folder}/raw/uwsgi~none~r1/x\n"
        "long = /tmp/benchapp-run-ab12_x/a.sock\nmodule = /usr/lib/uwsgi\n"
    )
    run = read_run(folder)
    command = ("python", "-m", "bench", "run", "--to", "/srv/me/results/1")
    Folder(folder).write_info(replace(run.info, command=command, notes=(f"kept in {folder}/raw",)))
    text = write_report(folder).read_text("utf-8")
    rendered = next(text for text in Page(text).texts("pre") if "chdir" in text)
    assert rendered == (
        "chdir = $PROJECT home = $PROJECT/.venv socket = $DEPLOYMENT/run/a.sock "
        "stats = $DEPLOYMENT/x long = $RUN/run/a.sock module = /usr/lib/uwsgi"
    )
    assert "/srv/me" not in text
    assert str(tmp_path) not in text
    assert "kept in $RUN/raw." in Page(text).texts("li")
    # Its folder is taken: repeated, the run makes a new one.
    assert "python -m bench run" in Page(text).texts("code")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("unix:/srv/site/a.sock;", "unix:$PROJECT/a.sock;"),
        ("/srv/site-other/a", "/srv/site-other/a"),
        ("x/srv/site/a", "x/srv/site/a"),
        ('"/srv/site"', '"$PROJECT"'),
        ("/srv/site/results/1/x", "$RUN/x"),
    ],
)
def test_only_whole_paths_are_replaced(text, shown):
    assert redact.placed(text, {"/srv/site": "$PROJECT", "/srv/site/results/1": "$RUN"}) == shown
