"""The five trees of the page index, as data for the SQL of every database."""

from __future__ import annotations

from dataclasses import dataclass

TABLE = "benchapp_rangecount"

# A bucket of level n covers 256 ** n keys: key >> (BITS * n) is its number, also of a negative key.
BITS = 8
LEVELS = (3, 2, 1)  # from the root down, which is also the order in which locks are taken

# The level of the row that remembers the highest number given, in the trees of children.
MARK = 0


@dataclass(frozen=True)
class Tree:
    """One list of rows in the order of a key; of children, one list for each parent (`scope`)."""

    number: int
    name: str
    table: str
    key: str
    scope: str | None = None  # the column that holds the parent's id
    parent: str | None = None  # the parent's table
    count: str | None = None  # the parent's column with the number of its children


AUTHORS = Tree(1, "authors", "benchapp_author", "id")
POSTS = Tree(2, "posts", "benchapp_post", "id")
COMMENTS = Tree(3, "comments", "benchapp_comment", "id")
AUTHOR_POSTS = Tree(4, "posts of an author", "benchapp_post", "number", "author_id", "benchapp_author", "post_count")
POST_COMMENTS = Tree(5, "comments on a post", "benchapp_comment", "number", "post_id", "benchapp_post", "comment_count")

TREES = (AUTHORS, POSTS, COMMENTS, AUTHOR_POSTS, POST_COMMENTS)

# What the triggers are made of: a table's own tree, the tree it is a child in, the tree it is a parent in.
TABLES = (
    (AUTHORS, None, AUTHOR_POSTS),
    (POSTS, AUTHOR_POSTS, POST_COMMENTS),
    (COMMENTS, POST_COMMENTS, None),
)


def refusal(tree: Tree) -> str:
    """The error of an UPDATE that changes an id. It holds no quote: it stands inside SQL."""
    return f"{tree.table}: an id cannot be changed; insert a new row and delete the old one"
