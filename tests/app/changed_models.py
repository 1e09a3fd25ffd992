"""Changes of the site's models as an editor would make them: of each field, of indexes, of tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

MODELS = ("Author", "Post", "Comment")


class Source:
    """The text of models.py, with the places of a model's fields."""

    def __init__(self, text: str):
        self.text = text

    def fields(self, model: str) -> dict[str, ast.Assign]:
        """The statements that make the fields of a model."""
        statements = {}
        for statement in self._class(model).body:
            if isinstance(statement, ast.Assign):
                statements[statement.targets[0].id] = statement
        return statements

    def add(self, model: str, line: str) -> Source:
        """A new field in front of the first one."""
        first = next(iter(self.fields(model).values()))
        lines = self.text.splitlines()
        lines.insert(first.lineno - 1, f"    {line}")
        return Source("\n".join(lines) + "\n")

    def add_option(self, model: str, name: str, option: str) -> Source:
        """One more option of a field."""
        call = self.fields(model)[name].value
        last = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not last:
            return self._edit(call.end_lineno, call.end_col_offset - 1, option)
        end = max(last, key=lambda node: (node.end_lineno, node.end_col_offset))
        return self._edit(end.end_lineno, end.end_col_offset, f", {option}")

    def remove(self, model: str, name: str) -> Source:
        """The model without a field, and without the indexes and constraints that name it."""
        return self._without(self.fields(model)[name])._remove_from_meta(model, name)

    def _remove_from_meta(self, model: str, name: str) -> Source:
        for part in self._parts_of_meta(model):
            if re.search(rf"\b{name}(\b|__)", ast.unparse(part)):
                return self._without(part)._remove_from_meta(model, name)
        return self

    def rename(self, model: str, name: str) -> Source:
        """The model with another name for a field, in Meta too."""
        lines = self.text.splitlines()
        meta = self._meta(model)
        statement = self.fields(model)[name]
        for number in [statement.lineno - 1, *range(meta.lineno - 1, meta.end_lineno)]:
            lines[number] = re.sub(rf'(^    |"){name}\b|\b{name}(?=__)', rf"\1renamed_{name}", lines[number])
        return Source("\n".join(lines) + "\n")

    def add_meta(self, model: str, line: str) -> Source:
        """One more option of a model."""
        lines = self.text.splitlines()
        lines.insert(self._meta(model).lineno, f"        {line}")
        return Source("\n".join(lines) + "\n")

    def retype(self, model: str, name: str, old: str, new: str) -> Source:
        """The model with a field of another type."""
        lines = self.text.splitlines(keepends=True)
        number = self.fields(model)[name].lineno - 1
        lines[number] = lines[number].replace(old, new)
        return Source("".join(lines))

    def without_indexes(self, model: str) -> Source:
        """The model without any index or constraint."""
        parts = list(self._parts_of_meta(model))
        return self._without(parts[0]).without_indexes(model) if parts else self

    def _class(self, model: str) -> ast.ClassDef:
        body = ast.parse(self.text).body
        return next(node for node in body if isinstance(node, ast.ClassDef) and node.name == model)

    def _meta(self, model: str) -> ast.ClassDef:
        return next(node for node in self._class(model).body if isinstance(node, ast.ClassDef))

    def _parts_of_meta(self, model: str) -> Iterator[ast.expr]:
        for statement in self._meta(model).body:
            if statement.targets[0].id in ("indexes", "constraints"):
                yield from statement.value.elts

    def _without(self, node: ast.stmt | ast.expr) -> Source:
        lines = self.text.splitlines(keepends=True)
        first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
        rest = last[node.end_col_offset :].removeprefix(",")
        lines[node.lineno - 1 : node.end_lineno] = [first[: node.col_offset] + rest]
        return Source("".join(lines))

    def _edit(self, line: int, column: int, text: str) -> Source:
        lines = self.text.splitlines(keepends=True)
        before = lines[line - 1].encode()
        lines[line - 1] = before[:column].decode() + text + before[column:].decode()
        return Source("".join(lines))


Change = Callable[[Source], Source]

# A relation, and the count of its rows.
COUNTS = {("Post", "author"): ("Author", "post_count"), ("Comment", "post"): ("Post", "comment_count")}
OTHER_TYPES = {
    "CharField": ("models.CharField", "models.TextField"),
    "TextField": ("models.TextField(", "models.CharField(max_length=9000, "),
    "DateField": ("models.DateField", "models.DateTimeField"),
    "PositiveIntegerField": ("models.PositiveIntegerField", "models.BigIntegerField"),
    "PositiveSmallIntegerField": ("models.PositiveSmallIntegerField", "models.IntegerField"),
}


def odd(name: str) -> str:
    """A name of a table or a column with a quotation mark, as long as a name may be."""
    return f"the editor's {name} ".ljust(63, "-")


def changes(text: str) -> dict[str, Change]:
    """All changes by their names, such as `Post.title removed`.

    Another type of a primary key is left out: blocks are of integers.
    """
    source = Source(text)
    field = 'mood = models.CharField(max_length=9, default="")'
    key = 'id = models.BigAutoField(primary_key=True, db_column="number")'
    replies = 'reply_count = ChildCount(children="replies")'
    parent = 'parent = models.ForeignKey("self", models.CASCADE, null=True, related_name="replies")'
    all_changes: dict[str, Change] = {}
    for model in MODELS:
        all_changes[f"{model} with replies"] = lambda s, m=model: s.add(m, replies).add(m, parent)
        all_changes[f"{model} with a field"] = lambda s, m=model: s.add(m, field)
        all_changes[f"{model} in another table"] = lambda s, m=model: s.add_meta(m, f'db_table = "{odd(m)}"')
        all_changes[f"{model} without indexes"] = lambda s, m=model: s.without_indexes(m)
        all_changes[f"{model} with another key column"] = lambda s, m=model: s.add(m, key)
        for name, statement in source.fields(model).items():
            all_changes |= _changes_of_field(model, name, statement)
    return all_changes


def _changes_of_field(model: str, name: str, statement: ast.Assign) -> dict[str, Change]:
    by_effect = {
        "removed": lambda s: _removed(s, model, name),
        "renamed": lambda s: s.rename(model, name),
        "in another column": lambda s: s.add_option(model, name, f'db_column="{odd(name)}"'),
        "with an index": lambda s: s.add_option(model, name, "db_index=True"),
    }
    call = ast.unparse(statement.value)
    if "db_index=" in call:
        del by_effect["with an index"]
    if "null=" not in call and "ChildCount" not in call:
        by_effect["that may be null"] = lambda s: s.add_option(model, name, "null=True")
    kind = call.partition("(")[0].removeprefix("models.")
    if kind in OTHER_TYPES:
        by_effect["of another type"] = lambda s: s.retype(model, name, *OTHER_TYPES[kind])
    return {f"{model}.{name} {what}": change for what, change in by_effect.items()}


def _removed(source: Source, model: str, name: str) -> Source:
    """The models without a field; with a foreign key goes the count of its rows."""
    if (model, name) in COUNTS:
        source = source.remove(*COUNTS[model, name])
    return source.remove(model, name)
