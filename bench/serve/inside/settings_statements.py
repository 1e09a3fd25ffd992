"""The statements of a project that gave its settings their values; a part of inspect_project.

A settings module has several for one setting: in branches that did not run, and in imported modules. Only statements
that ran count, and the last of them wins.
"""

import ast
import contextlib
import inspect
import operator
import os
import re
import sys
import threading
from pathlib import Path

# What reads a variable of one kind, as env.int("NAME").
OF_KIND = ("str", "int", "bool", "float", "list", "tuple", "dict", "json", "url", "db", "cache", "path", "bytes")

# What reads variables, with a default or without.
READERS = {"getenv", "environ", "env", "config"}


@contextlib.contextmanager
def lines_that_run():
    """Yields a dictionary that gets each line of the project's modules and classes that runs: (file, line) -> when."""
    root, ran = str(Path.cwd()) + os.sep, {}
    count = 0

    def on_call(frame, event, argument):
        file = frame.f_code.co_filename
        in_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if in_function or not file.startswith(root) or "site-packages" in file:
            return None
        return on_line

    def on_line(frame, event, argument):
        nonlocal count
        if event == "line":
            count += 1
            ran[frame.f_code.co_filename, frame.f_lineno] = count
        return on_line

    own = sys.gettrace()
    # dynaconf imports settings in a thread.
    threading.settrace(on_call)
    sys.settrace(on_call)
    try:
        yield ran
    finally:
        sys.settrace(own)
        threading.settrace(own)


def statements(ran):
    """Statements that set each setting, in order of execution."""
    found = {}
    for file in sorted({file for file, _ in ran}):
        for name, statement, in_debug in _assignments(_parsed(file).body):
            lines = range(statement.lineno, statement.end_lineno + 1)
            when = max(ran.get((file, line), 0) for line in lines)
            if when:
                place = {"file": os.path.relpath(file), "line": statement.lineno, "end": statement.end_lineno}
                place["in_debug"] = in_debug or _chooses_by_debug(statement)
                found.setdefault(name, []).append((when, place))
    in_order = {}
    for name, places in found.items():
        # Those that ran at one time keep their order.
        places.sort(key=operator.itemgetter(0))
        in_order[name] = [place for _, place in places]
    return in_order


def _parsed(file):
    try:
        return ast.parse(Path(file).read_text("utf-8", "replace"))
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _assignments(body, in_debug=False):
    """Each statement that sets a setting: its name, the statement, and whether a condition on DEBUG holds."""
    for statement in body:
        for name in _settings_of(statement):
            yield name, statement, in_debug
        inner = in_debug or (isinstance(statement, ast.If) and _names_debug(statement.test))
        for part in ("body", "orelse", "finalbody"):
            yield from _assignments(getattr(statement, part, []), inner)
        for handler in getattr(statement, "handlers", []):
            yield from _assignments(handler.body, inner)


def _settings_of(statement):
    """The names of settings that a statement sets, or changes in place."""
    targets = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        # MIDDLEWARE.append(...)
        called = statement.value.func
        targets = [called.value] if isinstance(called, ast.Attribute) else []
    for target in targets:
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for name in names:
            if isinstance(name, ast.Name) and name.id.isupper():
                yield name.id


def _names_debug(node):
    return any("DEBUG" in _dotted(it) for it in ast.walk(node))


def _chooses_by_debug(statement):
    return any(isinstance(it, ast.IfExp) and _names_debug(it.test) for it in ast.walk(statement))


def secret_in_code(key, places):
    """The place of the secret key in the code, `shop/settings.py:12`, and whether it is the default of a variable."""
    for place in reversed(places):
        for statement in ast.walk(_parsed(place["file"])):
            if isinstance(statement, ast.stmt) and statement.lineno == place["line"]:
                return _literal(key, place["file"], statement)
    return "", False


def _literal(key, file, statement):
    for node in ast.walk(statement):
        if isinstance(node, ast.Constant) and node.value == key:
            calls = any(isinstance(it, ast.Call) for it in ast.walk(statement))
            return f"{file}:{node.lineno}", calls
    return "", False


def missing_variables(ran, settings_file):
    """The variables without a default that the settings read and the environment lacks, in order.

    Only unconditional statements count, and statements of branches that ran.
    """
    names = []
    for file in dict.fromkeys([*(file for file, _ in ran), settings_file]):
        tree = _parsed(file)
        known = {*os.environ, *names, *_with_defaults(tree)}
        ran_there = {line for own, line in ran if own == file}
        names += [name for name in dict.fromkeys(_variables(tree.body, ran_there)) if name not in known]
    return names


def mentioned_variables(error, ran, settings_file):
    """The variables that the settings read, also with a default, and that the text of an error names."""
    words, names = set(re.findall(r"[A-Z][A-Z\d_]+", error)), []
    for file in dict.fromkeys([*(file for file, _ in ran), settings_file]):
        for node in ast.walk(_parsed(file)):
            if isinstance(node, ast.Call) and {*_dotted(node.func)} & READERS:
                names += [it.value for it in node.args[:1] if isinstance(it, ast.Constant)]
    return [name for name in dict.fromkeys(names) if name in words]


def _with_defaults(tree):
    """The variables with a default from the making of their reader: Env(DEBUG=(bool, False))."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _dotted(node.func)[-1:] == ["Env"]]
    for call in calls:
        yield from (keyword.arg for keyword in call.keywords if isinstance(keyword.value, ast.Tuple))


def _variables(body, ran):
    """The variables that statements read without a default."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _read_in(statement.test)
            for branch in (statement.body, statement.orelse):
                if any(it.lineno in ran for it in branch):
                    yield from _variables(branch, ran)
        elif isinstance(statement, (ast.With, ast.ClassDef)):
            yield from _variables(statement.body, ran)
        # A `try` has something else to do without the variable; a function may never be called.
        elif not isinstance(statement, (ast.Try, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _read_in(statement)


def _read_in(node):
    """The variables that a node reads, without those of a conditional expression."""
    if isinstance(node, (ast.IfExp, ast.Lambda)):
        return
    names = []
    if isinstance(node, ast.Subscript) and _dotted(node.value)[-1:] == ["environ"]:
        # Before Python 3.9 an index has a node around it.
        names = [node.slice.value if type(node.slice).__name__ == "Index" else node.slice]
    elif isinstance(node, ast.Call) and _reads_environment(node):
        names = node.args[:1]
    for name in names:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value
    for child in ast.iter_child_nodes(node):
        yield from _read_in(child)


def _reads_environment(call):
    """True if a call such as env("NAME") or env.int("NAME") reads a variable without a default."""
    *owner, name = _dotted(call.func) or [""]
    is_reader = name in ("env", "config") or (owner[-1:] == ["env"] and name in OF_KIND)
    has_default = len(call.args) > 1 or any(keyword.arg in ("default", None) for keyword in call.keywords)
    return is_reader and not has_default


def _dotted(node):
    """The names of `os.environ` in their order; none of another expression."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return []
