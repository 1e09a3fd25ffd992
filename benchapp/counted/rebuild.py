"""The page index made from the rows themselves, and compared with them. Set-based: seconds for millions."""

from __future__ import annotations

from typing import Any

from benchapp.counted.trees import BITS, LEVELS, MARK, TABLE, TREES, Tree

COLUMNS = "tree, scope, level, bucket, rows"


def leaf_select(tree: Tree) -> str:
    """Level 1 counted from the table."""
    bucket = f"{tree.key} >> {BITS}"
    if tree.scope is None:
        return f"SELECT {tree.number}, 0, 1, {bucket}, count(*) FROM {tree.table} GROUP BY {bucket}"
    return (
        f"SELECT {tree.number}, {tree.scope}, 1, {bucket}, count(*) FROM {tree.table}"
        f" WHERE {bucket} > 0 GROUP BY {tree.scope}, {bucket}"
    )


def branch_select(tree: Tree, level: int) -> str:
    """A level counted from the one below it, as stored."""
    bucket = f"bucket >> {BITS}"
    stored = f" AND {bucket} > 0" if tree.scope else ""
    # A sum of bigint is numeric in PostgreSQL.
    return (
        f"SELECT {tree.number}, scope, {level}, {bucket}, CAST(sum(rows) AS bigint) FROM {TABLE}"
        f" WHERE tree = {tree.number} AND level = {level - 1}{stored} GROUP BY scope, {bucket}"
    )


def fill_counts(cursor: Any) -> None:
    """Make all counts of key ranges from the rows; the triggers need not be there, and do not mind.

    Forgets the marks of numbers given away (use `rebuild` on a site with a past), and leaves `number`
    and the counts on the parents alone. `cursor` may be Django's or the driver's own.
    """
    cursor.execute(f"DELETE FROM {TABLE}")
    insert_counts(cursor)


def insert_counts(cursor: Any) -> None:
    for tree in TREES:
        cursor.execute(f"INSERT INTO {TABLE} ({COLUMNS}) {leaf_select(tree)}")
        for level in sorted(LEVELS)[1:]:
            cursor.execute(f"INSERT INTO {TABLE} ({COLUMNS}) {branch_select(tree, level)}")


def parent_counts(tree: Tree, vendor: str) -> str:
    """UPDATE of the counts on the parents that are wrong."""
    if vendor == "postgresql":
        # One pass over each table, where a subquery for each parent would be as many searches.
        return (
            f"UPDATE {tree.parent} AS p SET {tree.count} = t.n FROM ("
            f"SELECT q.id, count(c.id) AS n FROM {tree.parent} q"
            f" LEFT JOIN {tree.table} c ON c.{tree.scope} = q.id GROUP BY q.id"
            f") AS t WHERE t.id = p.id AND p.{tree.count} <> t.n"
        )
    count = f"(SELECT count(*) FROM {tree.table} WHERE {tree.scope} = {tree.parent}.id)"
    return f"UPDATE {tree.parent} SET {tree.count} = {count} WHERE {tree.count} <> {count}"


def missing_numbers(tree: Tree, vendor: str) -> str:
    """UPDATE of rows without a number, written while there were no triggers: they follow the others by id."""
    highest = f"(SELECT coalesce(max(number), 0) FROM {tree.table} WHERE {tree.scope} = m.{tree.scope})"
    marked = (
        f"coalesce((SELECT rows FROM {TABLE} WHERE tree = {tree.number} AND scope = m.{tree.scope}"
        f" AND level = {MARK}), 0)"
    )
    greatest = "greatest" if vendor == "postgresql" else "max"
    numbered = (
        f"SELECT m.id, {greatest}({highest}, {marked})"
        f" + row_number() OVER (PARTITION BY m.{tree.scope} ORDER BY m.id) AS number"
        f" FROM {tree.table} m WHERE m.number IS NULL"
    )
    if vendor == "postgresql":
        return f"UPDATE {tree.table} AS u SET number = n.number FROM ({numbered}) AS n WHERE n.id = u.id"
    return (
        f"WITH n AS MATERIALIZED ({numbered}) UPDATE {tree.table}"
        f" SET number = (SELECT n.number FROM n WHERE n.id = {tree.table}.id) WHERE number IS NULL"
    )


def repair(cursor: Any, vendor: str) -> None:
    """Counts, numbers and marks from the rows, in a database whose triggers are set aside."""
    cursor.execute(f"DELETE FROM {TABLE} WHERE level <> {MARK} OR tree = 0")
    for tree in TREES:
        if tree.scope:
            cursor.execute(missing_numbers(tree, vendor))
            cursor.execute(parent_counts(tree, vendor))
            cursor.execute(
                f"DELETE FROM {TABLE} WHERE tree = {tree.number} AND level = {MARK}"
                f" AND scope NOT IN (SELECT id FROM {tree.parent})"
            )
    insert_counts(cursor)
