"""Reports contain no secret and no path of the machine."""

from __future__ import annotations

import pytest

from bench.measure.report import redact
from bench.measure.report.redact import redacted


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
