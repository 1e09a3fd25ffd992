"""The page index: exact counts of rows by block of ids, maintained by the database itself.

A page far down a list is cheap when the database knows the id it begins with. The index finds that id. The
table `benchapp_pageblock` holds the number of rows of each block of 256 ids (`id >> 8`) and of each 256 of
these blocks (`id >> 16`). Add up the large blocks, from the nearer end of the list, until the one with the
wanted row is reached, then the small ones within it; an OFFSET of at most 255 does the rest. The sum of the
large blocks is the length of the list. Ids may have gaps of any size.

Two levels, because neither size would do alone: SQLite passes whole rows on its way through a block, and
4,096 posts make a page 1.4 times as expensive; small blocks are too many to add up.

Triggers, in `sqlite.sql` and `postgresql.sql`, keep the blocks and the counts of children on each parent
(`post_count`, `comment_count`) right for every kind of write: the ORM one by one or in bulk, `QuerySet.update`,
cascades, raw SQL, COPY and TRUNCATE. They undo attempts to overwrite a count (`author.save()` on an instance
that was read a while ago) and refuse to change an id.

Cost of a write: SQLite updates two small rows for each row written. PostgreSQL appends an entry a statement
and block to a log, and about one statement in a hundred folds the log; no writer waits for another one there,
not even for an open transaction. A parent's row is locked as long as a transaction that adds or removes
children of it is open. Within a statement parents are locked in order of id, so single writes of children do
not deadlock; transactions of several writes can, as always. Entries stay until VACUUM can remove them: a
transaction that is open for hours makes pages slower in the meantime.

A sqlite3 program of its own that runs INSERT OR REPLACE should first set `PRAGMA recursive_triggers = ON`, as
the site's connections do, or SQLite hides the deletion from the triggers. A migration that alters one of the
tables begins with `RunPython(page_index.remove, page_index.install)` and ends with `RunPython(page_index.install,
page_index.remove)`, since SQLite rebuilds a table to alter it. `manage.py recount --check` compares the index
with the rows, `manage.py recount` rebuilds it.
"""

from __future__ import annotations

from benchapp.page_index.locate import Place, locate, total
from benchapp.page_index.migrate import install, remove
from benchapp.page_index.rebuild import differences, fill, fill_without_gaps, rebuild
from benchapp.page_index.sql import create_triggers, drop_triggers, missing_triggers

__all__ = [
    "Place",
    "create_triggers",
    "differences",
    "drop_triggers",
    "fill",
    "fill_without_gaps",
    "install",
    "locate",
    "missing_triggers",
    "rebuild",
    "remove",
    "total",
]
