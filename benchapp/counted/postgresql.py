"""The triggers in PostgreSQL: numbers row by row before a write, counts once for a statement after it.

Functions loop over few rows and look each up by its key, rather than join: PL/pgSQL keeps the plan it
made for the first statement of a session, and a join planned for one row is ruinous for a million, or
the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchapp.counted.trees import BITS, LEVELS, MARK, TABLE, TABLES, Tree, refusal

DESCEND = "benchapp_descend"

# Counts of a bucket change often and alone: room on the page keeps such updates out of the indexes.
ROOM = f"ALTER TABLE {TABLE} SET (fillfactor = 50)"


@dataclass(frozen=True)
class Trigger:
    """A function and the trigger that calls it, named alike."""

    table: str
    name: str
    event: str  # between the trigger's name and its table
    action: str  # after the table
    body: str

    @property
    def full_name(self) -> str:
        return f"{self.table}_{self.name}"

    def create(self) -> Iterator[str]:
        yield (
            f"CREATE OR REPLACE FUNCTION {self.full_name}() RETURNS trigger LANGUAGE plpgsql AS $$\n"
            f"DECLARE\n  k record;\nBEGIN\n{self.body}\nEND $$"
        )
        # Replacing lets readers go on, dropping first would not; a disabled trigger is enabled again.
        yield (
            f"CREATE OR REPLACE TRIGGER {self.full_name} {self.event} ON {self.table} {self.action}"
            f" EXECUTE FUNCTION {self.full_name}()"
        )


def newest(tree: Tree, scope: str) -> str:
    """The highest number in use, 0 when there is none."""
    return (
        f"coalesce((SELECT number FROM {tree.table} WHERE {tree.scope} = {scope} AND number IS NOT NULL"
        " ORDER BY number DESC LIMIT 1), 0)"
    )


def next_number(tree: Tree, scope: str) -> str:
    marked = f"SELECT rows FROM {TABLE} WHERE {mark_row(tree, scope)}"
    return f"1 + greatest({newest(tree, scope)}, coalesce(({marked}), 0))"


def mark_row(tree: Tree, scope: str) -> str:
    return f"tree = {tree.number} AND scope = {scope} AND level = {MARK}"


def remember(tree: Tree, scope: str, number: str) -> str:
    """Mark a number as given, so that it is not given again; a parent that is gone gives none."""
    return f"""\
      INSERT INTO {TABLE} AS c (tree, scope, level, bucket, rows)
      SELECT {tree.number}, id, {MARK}, 0, {number} FROM {tree.parent} WHERE id = {scope}
      ON CONFLICT (tree, scope, level, bucket) DO UPDATE SET rows = greatest(c.rows, excluded.rows);"""


def lock_parents(tree: Tree, *ids: str) -> str:
    return f"  PERFORM 1 FROM {tree.parent} WHERE id IN ({', '.join(ids)}) ORDER BY id FOR NO KEY UPDATE;"


def keep_parents(tree: Tree, changes: str) -> str:
    """Each parent in order of id: its count, and the highest number given if that one is gone."""
    return f"""\
  FOR k IN
    SELECT scope, sum(delta)::bigint AS delta, max(key) FILTER (WHERE delta < 0) AS gone
    FROM (
      SELECT scope, key, sum(delta) AS delta FROM ({changes}) AS changes GROUP BY scope, key HAVING sum(delta) <> 0
    ) AS net
    GROUP BY scope ORDER BY scope
  LOOP
    UPDATE {tree.parent} SET {tree.count} = greatest({tree.count} + k.delta, 0) WHERE id = k.scope AND k.delta <> 0;
    IF k.gone > {newest(tree, "k.scope")} THEN
{remember(tree, "k.scope", "k.gone")}
    END IF;
  END LOOP;"""


def keep_buckets(changes: str) -> str:
    """All buckets of (tree, scope, key, delta) in one fixed order; those that become empty go."""
    levels = ", ".join(f"({level})" for level in LEVELS)
    return f"""\
  FOR k IN
    INSERT INTO {TABLE} AS c (tree, scope, level, bucket, rows)
    SELECT tree, scope, level, key >> (level * {BITS}), sum(delta)
    FROM ({changes}) AS changes CROSS JOIN (VALUES {levels}) AS levels (level)
    WHERE scope = 0 OR key >> (level * {BITS}) > 0
    GROUP BY 1, 2, 3, 4 HAVING sum(delta) <> 0
    ORDER BY 1, 2, 3 DESC, 4
    ON CONFLICT (tree, scope, level, bucket) DO UPDATE SET rows = c.rows + excluded.rows
    RETURNING c.tree, c.scope, c.level, c.bucket, c.rows
  LOOP
    IF k.rows <= 0 THEN
      DELETE FROM {TABLE}
      WHERE tree = k.tree AND scope = k.scope AND level = k.level AND bucket = k.bucket AND rows <= 0;
    END IF;
  END LOOP;"""


def changes_of(tree: Tree, rows: str, delta: int) -> str:
    scope = tree.scope or "0::bigint"
    return f"SELECT {tree.number} AS tree, {scope} AS scope, {tree.key}::bigint AS key, {delta} AS delta FROM {rows}"


def union(*selects: str) -> str:
    return " UNION ALL ".join(selects)


def written(whole: Tree, as_child: Tree | None, rows: str, delta: int) -> str:
    """The body of what follows an INSERT (`delta` 1) or a DELETE (-1)."""
    trees = [tree for tree in (whole, as_child) if tree]
    statements = [keep_parents(as_child, changes_of(as_child, rows, delta))] if as_child else []
    statements.append(keep_buckets(union(*(changes_of(tree, rows, delta) for tree in trees))))
    return "\n".join(statements)


def inserting(whole: Tree, as_child: Tree | None, as_parent: Tree | None) -> Iterator[Trigger]:
    body = []
    if as_child:
        new = f"NEW.{as_child.scope}"
        body.append(lock_parents(as_child, new))
        body.append(f"  IF NEW.number IS NULL THEN\n    NEW.number := {next_number(as_child, new)};\n  END IF;")
    if as_parent:
        # Children may come first, since the foreign keys are checked at commit.
        body.append(
            f"  NEW.{as_parent.count} := (SELECT count(*) FROM {as_parent.table} WHERE {as_parent.scope} = NEW.id);"
        )
    body.append("  RETURN NEW;")
    yield Trigger(whole.table, "inserting", "BEFORE INSERT", "FOR EACH ROW", "\n".join(body))
    yield Trigger(
        whole.table,
        "inserted",
        "AFTER INSERT",
        "REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT",
        written(whole, as_child, "new_rows", 1) + "\n  RETURN NULL;",
    )


def updating(whole: Tree, as_child: Tree | None, as_parent: Tree | None) -> Iterator[Trigger]:
    conditions = ["NEW.id <> OLD.id"]
    body = [
        "  IF NEW.id <> OLD.id THEN",
        f"    RAISE EXCEPTION '{refusal(whole)}' USING ERRCODE = 'integrity_constraint_violation';",
        "  END IF;",
    ]
    if as_child:
        old, new = f"OLD.{as_child.scope}", f"NEW.{as_child.scope}"
        conditions += [f"{new} IS DISTINCT FROM {old}", "NEW.number IS NULL"]
        body += [
            f"  IF {new} IS DISTINCT FROM {old} THEN",
            "  " + lock_parents(as_child, old, new),
            # Noted at once: another row of the same statement may move in.
            f"    IF OLD.number >= {newest(as_child, old)} THEN",
            remember(as_child, old, "OLD.number"),
            "    END IF;",
            f"    NEW.number := {next_number(as_child, new)};",
            "  ELSIF NEW.number IS NULL THEN",
            "    NEW.number := OLD.number;",
            "  END IF;",
        ]
    if as_parent:
        old, new = f"OLD.{as_parent.count}", f"NEW.{as_parent.count}"
        # The triggers' own UPDATE of a count comes from within another trigger.
        conditions.append(f"({new} IS DISTINCT FROM {old} AND pg_trigger_depth() = 0)")
        body += [
            "  IF pg_trigger_depth() = 1 THEN",
            f"    {new} := {old};",
            "  END IF;",
        ]
    body.append("  RETURN NEW;")
    yield Trigger(
        whole.table,
        "updating",
        "BEFORE UPDATE",
        f"FOR EACH ROW WHEN ({' OR '.join(conditions)})",
        "\n".join(body),
    )
    if not as_child:
        return
    changes = union(changes_of(as_child, "old_rows", -1), changes_of(as_child, "new_rows", 1))
    yield Trigger(
        whole.table,
        "updated",
        "AFTER UPDATE",
        "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT",
        "\n".join(
            [
                keep_parents(as_child, changes),
                "  IF NOT FOUND THEN\n    RETURN NULL; -- no row was moved or renumbered\n  END IF;",
                keep_buckets(changes),
                "  RETURN NULL;",
            ]
        ),
    )


def deleted(whole: Tree, as_child: Tree | None, as_parent: Tree | None) -> Iterator[Trigger]:
    body = [written(whole, as_child, "old_rows", -1)]
    if as_parent:
        body.append(
            f"  FOR k IN SELECT id FROM old_rows LOOP\n"
            f"    DELETE FROM {TABLE} WHERE {mark_row(as_parent, 'k.id')};\n"
            "  END LOOP;"
        )
    yield Trigger(
        whole.table,
        "deleted",
        "AFTER DELETE",
        "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT",
        "\n".join([*body, "  RETURN NULL;"]),
    )
    trees = [whole] + ([as_child] if as_child else [])
    body = [f"  DELETE FROM {TABLE} WHERE tree IN ({', '.join(str(tree.number) for tree in trees)});"]
    if as_child:
        body.append(f"  UPDATE {as_child.parent} SET {as_child.count} = 0 WHERE {as_child.count} <> 0;")
    yield Trigger(
        whole.table, "truncated", "AFTER TRUNCATE", "FOR EACH STATEMENT", "\n".join([*body, "  RETURN NULL;"])
    )


def all_triggers() -> Iterator[Trigger]:
    for whole, as_child, as_parent in TABLES:
        yield from inserting(whole, as_child, as_parent)
        yield from updating(whole, as_child, as_parent)
        yield from deleted(whole, as_child, as_parent)


def descend_function() -> str:
    """Down one tree to the 256 keys (`low` to `high`) with the row that has `skip` rows above it.

    `rest` is how many of these rows are within `low` to `high`; `total` the rows of all stored buckets.
    """
    return f"""\
CREATE OR REPLACE FUNCTION {DESCEND}(
  a_tree integer, a_scope bigint, skip bigint,
  OUT total bigint, OUT low bigint, OUT high bigint, OUT rest bigint
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  k record;
  here bigint; -- the bucket of this level, and its rows
  held bigint;
BEGIN
  SELECT coalesce(sum(c.rows), 0) INTO total FROM {TABLE} c
  WHERE c.tree = a_tree AND c.scope = a_scope AND c.level = {LEVELS[0]};
  low := {-(1 << 63)};
  high := {(1 << 63) - 1};
  held := total;
  rest := skip;
  FOR depth IN REVERSE {LEVELS[0]}..{LEVELS[-1]} LOOP
    here := NULL;
    IF a_scope = 0 AND rest > held / 2 THEN -- nearer to the end: from below, where rows below count
      rest := held - 1 - rest;
{walk("ASC")}
      rest := held - 1 - rest;
    ELSE
{walk("DESC")}
    END IF;
    here := coalesce(here, 0); -- bucket 0 is not stored: the parent's rows beyond the stored buckets
    low := here << {BITS};
    high := low + {(1 << BITS) - 1};
  END LOOP;
END $$"""


def walk(order: str) -> str:
    """Buckets of one level until the one that holds the row with `rest` rows before it."""
    return f"""\
      FOR k IN
        SELECT c.bucket, c.rows FROM {TABLE} c
        WHERE c.tree = a_tree AND c.scope = a_scope AND c.level = depth AND c.bucket BETWEEN low AND high
        ORDER BY c.bucket {order}
      LOOP
        IF rest < k.rows THEN
          here := k.bucket;
          held := k.rows;
          EXIT;
        END IF;
        rest := rest - k.rows;
      END LOOP;"""


def create_statements() -> list[str]:
    statements = [ROOM, descend_function()]
    for trigger in all_triggers():
        statements.extend(trigger.create())
    return statements


def disable_statements(names: list[str]) -> list[str]:
    return [f"ALTER TABLE {t.table} DISABLE TRIGGER {t.full_name}" for t in all_triggers() if t.full_name in names]


def drop_statements() -> list[str]:
    """Triggers only: pages can still be read."""
    return [f"DROP TRIGGER IF EXISTS {t.full_name} ON {t.table}" for t in all_triggers()]


def remove_statements() -> list[str]:
    """Everything, with the functions."""
    functions = [f"DROP FUNCTION IF EXISTS {t.full_name}()" for t in all_triggers()]
    descend = f"DROP FUNCTION IF EXISTS {DESCEND}(integer, bigint, bigint)"
    reset = f"ALTER TABLE {TABLE} RESET (fillfactor)"
    return [*drop_statements(), *functions, descend, reset]


def trigger_names() -> list[str]:
    return [trigger.full_name for trigger in all_triggers()]


INSTALLED_TRIGGERS = """\
SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND pg_table_is_visible(c.oid)"""
