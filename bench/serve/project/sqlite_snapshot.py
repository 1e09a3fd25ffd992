"""A copy of an SQLite database at one moment. Needs Python 3.8 and no package."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

# The byte of the header that says how a file is written, and what it says of a write-ahead log.
# https://www.sqlite.org/fileformat.html#the_database_header
WRITE_VERSION, WITH_LOG = 18, 2


def has_content(file: "str | Path") -> bool:
    """True if a database file has a table: a command of Django's that only looks at one makes an empty file."""
    file = Path(file)
    return file.is_file() and file.stat().st_size > 0


def snapshot(source: "str | Path", copy: "str | Path") -> None:
    """Copy the database file `source` to the path `copy`, and leave nothing beside the source.

    A plain copy of a file in use can be torn; SQLite's own backup is consistent.
    """
    source, copy = Path(source), Path(copy)
    with source.open("rb") as file:
        with_log = file.read(WRITE_VERSION + 1)[WRITE_VERSION:] == bytes([WITH_LOG])
    if with_log and not Path(f"{source}-shm").exists():
        # Nobody has it open, and a reader would make the files of the log beside it.
        for ending in ("", "-wal"):
            if Path(f"{source}{ending}").is_file():
                shutil.copyfile(f"{source}{ending}", f"{copy}{ending}")
        with closing(sqlite3.connect(copy)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return
    reading = sqlite3.connect(f"file:{quote(str(source.absolute()))}?mode=ro", uri=True)
    with closing(reading), closing(sqlite3.connect(copy)) as target:
        reading.backup(target)
