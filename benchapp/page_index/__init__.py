"""The page index: how many rows each block of ids has, and how many children each parent, counted by triggers.

A page far down a list is cheap when the database knows the id it begins with. The table `benchapp_pageblock` holds the
number of rows of each block of 256 ids (`id >> 8`) and of each 64 of these blocks (`id >> 14`). Adding up the large
blocks, then the small ones within one of them, leads to the block that a page begins in; an OFFSET of at most 255 does
the rest. The sum of the large blocks is the length of the list. Ids may have gaps of any size.

Triggers count what INSERT and DELETE do, and an UPDATE that gives a row another parent, whoever writes: the ORM one by
one or in bulk, cascades, raw SQL, COPY. A writer holds the counts of its blocks and parents until its transaction
ends, so writers of one list take turns; of two statements that move rows between many parents one can deadlock.

Not counted: TRUNCATE, a changed id, a child that is inserted before its parent, a count that raw SQL sets, INSERT OR
REPLACE in SQLite, and what is written while triggers are disabled. After these run `./manage.py recount`. Until then a
page that does not have the rows that the index promises is found as Django's paginator does it: right, but slow. Only
pages beyond a count that is too small are not found.

A migration that rebuilds one of the tables in SQLite ends with `RunPython(page_index.install, page_index.remove)`:
the triggers go with the old table.
"""

from __future__ import annotations

from benchapp.page_index.blocks import Blocks
from benchapp.page_index.recount import differences, fill, install, rebuild
from benchapp.page_index.triggers import create_triggers, drop_triggers, missing_triggers, remove

__all__ = [
    "Blocks",
    "create_triggers",
    "differences",
    "drop_triggers",
    "fill",
    "install",
    "missing_triggers",
    "rebuild",
    "remove",
]
