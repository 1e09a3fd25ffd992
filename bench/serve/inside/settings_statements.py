"""The statements of a project that gave its settings their values; a part of inspect_project.

A settings module has several for one setting: in branches that did not run, and in imported modules. Only statements
that ran count, and the last of them wins.
"""

import ast
import contextlib
import inspect
import operator
import os
import sys
import threading
from pathlib import Path


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
    places_by_name = {}
    for file in sorted({file for file, _ in ran}):
        for name, statement, in_debug in _assignments(_parsed(file).body):
            lines = range(statement.lineno, statement.end_lineno + 1)
            when = max(ran.get((file, line), 0) for line in lines)
            if when:
                place = {"file": os.path.relpath(file), "line": statement.lineno, "end": statement.end_lineno}
                chosen = [it for it in ast.walk(statement) if isinstance(it, ast.IfExp)]
                place["in_debug"] = in_debug or any(_names_debug(it.test) for it in chosen)
                places_by_name.setdefault(name, []).append((when, place))
    in_order = {}
    for name, places in places_by_name.items():
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
        targets = []
        if isinstance(called, ast.Attribute):
            targets = [called.value]
    for target in targets:
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        names = [target]
        if isinstance(target, (ast.Tuple, ast.List)):
            names = target.elts
        for name in names:
            if isinstance(name, ast.Name) and name.id.isupper():
                yield name.id


def _names_debug(node):
    return any("DEBUG" in (getattr(it, "id", ""), getattr(it, "attr", "")) for it in ast.walk(node))


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
