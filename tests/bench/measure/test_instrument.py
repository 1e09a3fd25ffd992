"""What the instrument says of a database that the servers cannot use."""

from __future__ import annotations

import pytest

from bench.errors import GlobalFault
from bench.machine.identity import worker
from bench.measure.instrument import Instrument
from bench.serve.database import Database
from tests.cases import kit


@pytest.mark.parametrize("name", ["site.sqlite3", "site.sqlite3-wal"])
def test_a_file_that_the_servers_may_not_write_is_named(tmp_path, name):
    (tmp_path / "site.sqlite3").touch()
    worker().give_tree(tmp_path)
    closed = tmp_path / name
    closed.unlink(missing_ok=True)
    closed.touch()
    closed.chmod(0o444)
    with pytest.raises(GlobalFault) as error:
        Instrument(kit()).check_database(Database("sqlite", f"sqlite:///{tmp_path / 'site.sqlite3'}"))
    user = worker().user
    assert str(error.value) == (
        f"the database cannot be used: {closed}: not writable by user {user}, which the servers run as; "
        f"chown it to {user} or set BENCH_USER"
    )
