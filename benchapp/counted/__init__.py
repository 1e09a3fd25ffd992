"""The page index: counts of rows by range of keys, kept by the database itself.

A page far down a list is cheap when the database can be told the key it begins with. Finding that key
is a question of order statistics ("which row is the 19,000,001st?"), and a tree that knows how many rows
each of its branches holds answers it in as many steps as it has levels. This is such a tree, kept in an
ordinary table, `benchapp_rangecount`: at level 1 a bucket covers 256 keys, at level 2 256 buckets of
level 1, at level 3 256 of level 2 (16.7 million keys). `benchapp.pagination` walks down it.

There is one tree for each whole list (authors, posts and comments, by id) and one for each parent's
children (posts of an author, comments on a post, by `number`). The children's trees leave out bucket 0
of each level: what the other buckets do not hold of the parent's own count is in it, so the many parents
with fewer than 256 children take no rows here at all. Keys may have gaps of any size; a bucket that
becomes empty is removed.

Triggers keep the counts, the `number` of each child and the count on each parent right whatever writes:
the ORM one by one or in bulk, `QuerySet.update` of a parent, cascades, raw SQL, COPY and TRUNCATE. They
undo attempts to overwrite a kept count (`author.save()` on an instance read a while ago) and refuse to
change an id. A level 0 row remembers the highest number a parent has given away, from the moment its
newest child is deleted, so that no number is given twice.

The price is paid by writes. Each insert or delete updates three small rows (and its parent's count), and
in PostgreSQL those rows stay locked until the transaction ends: writers of one table wait for each other,
because new rows all fall into the newest bucket. Within one statement locks are taken in a fixed order
(the parent, then buckets from the widest to the narrowest, in order of key), so that single statements
do not deadlock; a transaction of several writes can, as always, and PostgreSQL then ends one of them. An
insert of rows for several parents locks these in the order of the rows. A bulk statement pays once for
all its rows. A sqlite3 program of its own that runs INSERT OR REPLACE should first set `PRAGMA
recursive_triggers = ON`, as the site's connections do, or SQLite hides the deletion from the triggers.

A migration that alters one of the tables must set the triggers aside, since SQLite rebuilds a table to
alter it: `RunPython(counted.pause, counted.resume)`, its own operations, `RunPython(counted.resume,
counted.pause)`. `manage.py recount --check` proves the index right, `manage.py recount` rebuilds it.
"""

from __future__ import annotations

from benchapp.counted.check import differences
from benchapp.counted.descent import locate, total
from benchapp.counted.install import (
    create_triggers,
    drop_triggers,
    missing_triggers,
    pause,
    rebuild,
    resume,
)
from benchapp.counted.rebuild import fill_counts
from benchapp.counted.trees import (
    AUTHOR_POSTS,
    AUTHORS,
    COMMENTS,
    POST_COMMENTS,
    POSTS,
    TREES,
    Tree,
)

__all__ = [
    "AUTHORS",
    "AUTHOR_POSTS",
    "COMMENTS",
    "POSTS",
    "POST_COMMENTS",
    "TREES",
    "Tree",
    "create_triggers",
    "differences",
    "drop_triggers",
    "fill_counts",
    "locate",
    "missing_triggers",
    "pause",
    "rebuild",
    "resume",
    "total",
]
