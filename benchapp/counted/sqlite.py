"""The triggers in SQLite, which has them for each row only and cannot change the new row's values.

While the triggers themselves write to a table that has triggers, a row of tree 0 says so; the triggers
that undo a foreign hand's changes look for it. Every trigger ends up the same whether or not
`recursive_triggers` is on.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchapp.counted.trees import BITS, LEVELS, MARK, TABLE, TABLES, Tree, refusal

BEGIN_OWN = f"INSERT INTO {TABLE} (tree, scope, level, bucket, rows) VALUES (0, 0, 0, 0, 0);"
END_OWN = f"DELETE FROM {TABLE} WHERE tree = 0;"
FOREIGN = f"NOT EXISTS (SELECT 1 FROM {TABLE} WHERE tree = 0)"


def own(*statements: str) -> str:
    """Statements whose changes the undoing triggers shall leave alone."""
    return "\n  ".join([BEGIN_OWN, *statements, END_OWN])


def add(tree: Tree, scope: str, key: str) -> str:
    """Count one row more in the buckets of a key; a NULL key is in none."""
    levels = " UNION ALL ".join(f"SELECT {level} AS level, {level * BITS} AS bits" for level in LEVELS)
    # Bucket 0 of children is never stored, and a WHERE keeps ON CONFLICT from reading as a join.
    stored = f"{key} >> bits > 0" if tree.scope else f"{key} IS NOT NULL"
    return (
        f"INSERT INTO {TABLE} (tree, scope, level, bucket, rows)"
        f" SELECT {tree.number}, {scope}, level, {key} >> bits, 1 FROM ({levels}) WHERE {stored}"
        " ON CONFLICT (tree, scope, level, bucket) DO UPDATE SET rows = rows + 1;"
    )


def subtract(tree: Tree, scope: str, key: str) -> str:
    """Count one row less; buckets that become empty go."""
    statements = []
    for level in LEVELS:
        bucket = f"tree = {tree.number} AND scope = {scope} AND level = {level} AND bucket = {key} >> {level * BITS}"
        statements.append(f"UPDATE {TABLE} SET rows = rows - 1 WHERE {bucket};")
        statements.append(f"DELETE FROM {TABLE} WHERE {bucket} AND rows <= 0;")
    return "\n  ".join(statements)


def mark_row(tree: Tree, scope: str) -> str:
    return f"tree = {tree.number} AND scope = {scope} AND level = {MARK}"


def newest(tree: Tree, scope: str) -> str:
    """The highest number in use, 0 when there is none."""
    return f"coalesce((SELECT number FROM {tree.table} WHERE {tree.scope} = {scope} ORDER BY number DESC LIMIT 1), 0)"


def next_number(tree: Tree, scope: str) -> str:
    marked = f"coalesce((SELECT rows FROM {TABLE} WHERE {mark_row(tree, scope)}), 0)"
    return f"1 + max({newest(tree, scope)}, {marked})"


def remember(tree: Tree) -> str:
    """Mark the number of the old row if it was the highest, so that it is not given again."""
    scope = f"OLD.{tree.scope}"
    return (
        f"INSERT INTO {TABLE} (tree, scope, level, bucket, rows)"
        f" SELECT {tree.number}, {scope}, {MARK}, 0, OLD.number"
        f" WHERE OLD.number > {newest(tree, scope)}"
        f" AND EXISTS (SELECT 1 FROM {tree.parent} WHERE id = {scope})"
        " ON CONFLICT (tree, scope, level, bucket) DO UPDATE SET rows = max(rows, excluded.rows);"
    )


def change_count(tree: Tree, scope: str, by: str) -> str:
    return f"UPDATE {tree.parent} SET {tree.count} = {tree.count} {by} WHERE id = {scope};"


def trigger(tree: Tree, name: str, event: str, when: str | None, *statements: str) -> str:
    condition = f" WHEN {when}" if when else ""
    body = "\n  ".join(statements)
    return f"CREATE TRIGGER {tree.table}_{name} {event} ON {tree.table} FOR EACH ROW{condition}\nBEGIN\n  {body}\nEND"


def own_triggers(whole: Tree) -> Iterator[str]:
    """The table's list as a whole: its ids."""
    yield trigger(whole, "insert", "AFTER INSERT", None, add(whole, "0", "NEW.id"))
    yield trigger(whole, "delete", "AFTER DELETE", None, subtract(whole, "0", "OLD.id"))
    yield trigger(
        whole,
        "id",
        "BEFORE UPDATE OF id",
        "NEW.id IS NOT OLD.id",
        f"SELECT RAISE(ABORT, '{refusal(whole)}');",
    )


def child_triggers(tree: Tree) -> Iterator[str]:
    """The table as children: number, buckets, the parent's count."""
    old, new = f"OLD.{tree.scope}", f"NEW.{tree.scope}"
    number = f"(SELECT number FROM {tree.table} WHERE id = NEW.id)"
    give_number = f"UPDATE {tree.table} SET number = {next_number(tree, new)} WHERE id = NEW.id"
    yield trigger(
        tree,
        "child_insert",
        "AFTER INSERT",
        None,
        own(change_count(tree, new, "+ 1"), f"{give_number} AND number IS NULL;"),
        add(tree, new, number),
    )
    yield trigger(
        tree,
        "child_delete",
        "AFTER DELETE",
        None,
        subtract(tree, old, "OLD.number"),
        own(change_count(tree, old, "- 1")),
        remember(tree),
    )
    # A moved row arrives with the number it had, which a child of the new parent may hold: that one
    # steps aside (NULL clashes with nothing) until the moved row has its new number.
    yield trigger(
        tree,
        "make_room",
        f"BEFORE UPDATE OF {tree.scope}",
        f"{new} IS NOT {old} AND {FOREIGN}",
        own(
            f"UPDATE {tree.table} SET number = NULL"
            f" WHERE {tree.scope} = {new} AND number = NEW.number AND id <> NEW.id;"
        ),
    )
    yield trigger(
        tree,
        "move",
        f"AFTER UPDATE OF {tree.scope}",
        f"{new} IS NOT {old} AND {FOREIGN}",
        subtract(tree, old, "OLD.number"),
        remember(tree),
        own(
            f"UPDATE {tree.table} SET number = NULL WHERE id = NEW.id;",
            f"UPDATE {tree.table} SET number = NEW.number"
            f" WHERE {tree.scope} = {new} AND number IS NULL AND id <> NEW.id;",
            f"{give_number};",
            change_count(tree, old, "- 1"),
            change_count(tree, new, "+ 1"),
        ),
        add(tree, new, number),
    )
    yield trigger(
        tree,
        "renumber",
        "AFTER UPDATE OF number",
        f"{new} IS {old} AND NEW.number IS NOT OLD.number AND NEW.number IS NOT NULL AND {FOREIGN}",
        subtract(tree, old, "OLD.number"),
        remember(tree),
        add(tree, new, "NEW.number"),
    )
    yield trigger(
        tree,
        "keep_number",
        "AFTER UPDATE OF number",
        f"{new} IS {old} AND NEW.number IS NULL AND OLD.number IS NOT NULL AND {FOREIGN}",
        own(f"UPDATE {tree.table} SET number = OLD.number WHERE id = NEW.id;"),
    )


def parent_triggers(whole: Tree, children: Tree) -> Iterator[str]:
    """The table as parents: the count of children is what the triggers say, not what a writer says."""
    count = f"(SELECT count(*) FROM {children.table} WHERE {children.scope} = NEW.id)"
    yield trigger(
        whole,
        "parent_insert",
        "AFTER INSERT",
        # Children may come first, since the foreign keys are checked at commit.
        f"NEW.{children.count} <> 0 OR EXISTS (SELECT 1 FROM {children.table} WHERE {children.scope} = NEW.id)",
        own(f"UPDATE {whole.table} SET {children.count} = {count} WHERE id = NEW.id;"),
    )
    yield trigger(
        whole,
        "parent_delete",
        "AFTER DELETE",
        None,
        f"DELETE FROM {TABLE} WHERE {mark_row(children, 'OLD.id')};",
    )
    yield trigger(
        whole,
        "keep_count",
        f"AFTER UPDATE OF {children.count}",
        f"NEW.{children.count} <> OLD.{children.count} AND {FOREIGN}",
        own(f"UPDATE {whole.table} SET {children.count} = OLD.{children.count} WHERE id = NEW.id;"),
    )


def all_triggers() -> Iterator[str]:
    for whole, as_child, as_parent in TABLES:
        yield from own_triggers(whole)
        if as_child:
            yield from child_triggers(as_child)
        if as_parent:
            yield from parent_triggers(whole, as_parent)


def trigger_names() -> list[str]:
    return [statement.split(" ", 3)[2] for statement in all_triggers()]


def create_statements() -> list[str]:
    return [*drop_statements(), *all_triggers()]


def disable_statements(names: list[str]) -> list[str]:
    """SQLite cannot disable a trigger, and its readers do not mind a transaction that drops some."""
    return [f"DROP TRIGGER {name}" for name in names]


def drop_statements() -> list[str]:
    return [f"DROP TRIGGER IF EXISTS {name}" for name in trigger_names()]


def remove_statements() -> list[str]:
    return drop_statements()


INSTALLED_TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
