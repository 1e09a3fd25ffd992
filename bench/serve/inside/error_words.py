"""An error in words, with the causing line of the project. Runs in any project's interpreter."""

import traceback
from pathlib import Path

NODE, TEMPLATE = ("django.template.base", "Node"), ("django.template.base", "Template")
# Of an error's text so much is shown.
LONGEST = 400


def in_a_line(error):
    """An error in one line: `KeyError: 'x'`; with the missing file or server, if another error hides the cause."""
    hidden = ""
    if isinstance(error.__cause__, OSError):
        hidden = f": {in_a_line(error.__cause__)}"
    # A message may name what is missing in its next lines.
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}..."
    return text + hidden


def in_words(error):
    """The same with the line of the project that raised the error."""
    at = where(error)
    if not at:
        return in_a_line(error)
    return f"{in_a_line(error)} ({at})"


def where(error):
    """The last line of the project, or of a template, on the way to where an error was raised; None without one."""
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        place = line_of(frame, line) or line_in_template(frame, error) or place
    return place


def line_in_template(frame, error):
    """`base.html:12` for a frame that reads a template whose syntax is wrong; None elsewhere."""
    template, token = frame.f_locals.get("self"), getattr(error, "token", None)
    if token is None or (type(template).__module__, type(template).__name__) != TEMPLATE:
        return None
    return f"{template.origin.template_name}:{token.lineno}"


def line_of(frame, line):
    """`base.html:12` or `shop/views.py:7` for a frame of a template or of the project; None elsewhere."""
    node = frame.f_locals.get("self")
    # By its type: reading an attribute of a lazy object would evaluate it.
    is_node = any((kind.__module__, kind.__name__) == NODE for kind in type(node).__mro__)
    if is_node and getattr(node, "origin", None) and hasattr(node, "token"):
        return f"{node.origin.template_name}:{node.token.lineno}"
    path = own_path(Path(frame.f_code.co_filename))
    if path:
        return f"{path}:{line}"
    return None


def own_path(path):
    """The path of a file of the project, relative to its folder; None for a file of a package."""
    if Path.cwd() in path.parents and "site-packages" not in path.parts:
        return path.relative_to(Path.cwd())
    return None
