"""Missing static files that templates, style sheets or scripts name; a part of inspect_project."""

import contextlib
import fnmatch
import posixpath
import re
import time
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from error_words import own_path

# Of templates: what names a file, and what is no markup.
STATIC_TAG = re.compile(r"""{%-?\s*static\s+(["'])([^"'{}]+)\1\s*(?:as\s+\w+\s*)?-?%}""")
COMMENT = re.compile(
    r"{#.*?#}|{%\s*comment\b.*?%}.*?{%\s*endcomment\s*%}|{%\s*verbatim\b.*?%}.*?{%\s*endverbatim", re.S
)
TEMPLATE_ENDS = (".html", ".htm", ".txt", ".xml", ".svg", ".jinja", ".js", ".css")
LEFT_OUT = {"node_modules", "site-packages", ".git", "tests", "test"}
# In style sheets and scripts, as Django's storage reads them when it collects.
CSS_COMMENT = re.compile(r"/\*(?!# sourceMappingURL).*?\*/", re.S)
REFERENCES = {
    "*.css": (
        re.compile(r"""url\(['"]{0,1}\s*(?P<url>.*?)["']{0,1}\)""", re.I),
        re.compile(r"""@import\s*["']\s*(?P<url>.*?)["']""", re.I),
        re.compile(r"(?m)^/\*#[ \t](?-i:sourceMappingURL)=(?P<url>.*)[ \t]*\*/$", re.I),
    ),
    "*.js": (re.compile(r"(?m)^//# (?-i:sourceMappingURL)=(?P<url>.*)$", re.I),),
}
HAS_SCHEME = re.compile("[a-z]+:", re.I)
# A project may have thousands of files, which nobody waits for.
MAX_S, MAX_BYTES, MAX_TEMPLATES = 2.0, 3_000_000, 5000
# Classes of these packages collect as Django does; another one may forgive.
KNOWN = ("django.", "whitenoise.")


def static_files(settings):
    """Static files named in templates but found by no finder, each with its line; and missing files referenced by
    style sheets and scripts, for a storage that follows references."""
    if "django.contrib.staticfiles" not in settings.INSTALLED_APPS:
        return {"missing_static": {}, "dangling_references": {}, "static_strict": False}
    hashing, dangling = hashing_storage(settings), {}
    if hashing:
        dangling = dangling_references(settings)
    return {
        "missing_static": missing_in_templates(),
        "dangling_references": dangling,
        "static_strict": bool(getattr(hashing, "manifest_strict", False)),
    }


def hashing_storage(settings):
    """The class of the storage that gives static files hashed names like Django's; else None."""
    from django.contrib.staticfiles.storage import ManifestFilesMixin
    from django.utils.module_loading import import_string

    storages = getattr(settings, "STORAGES", {})
    name = storages.get("staticfiles", {}).get("BACKEND") or getattr(settings, "STATICFILES_STORAGE", "")
    with contextlib.suppress(Exception):
        kind = import_string(name)
        own = [base for base in kind.__mro__ if not f"{base.__module__}.".startswith((*KNOWN, "builtins."))]
        forgives = any(set(vars(base)) & {"hashed_name", "post_process", "stored_name", "url"} for base in own)
        if issubclass(kind, ManifestFilesMixin) and not forgives:
            return kind
    return None


def is_missing(name):
    """True if no finder has a file of that name: what only STATIC_ROOT has is not collected on another host."""
    from django.contrib.staticfiles import finders

    name = urlsplit(urldefrag(name)[0]).path
    if not name or name.endswith("/") or HAS_SCHEME.match(name) or name.startswith("/"):
        return False
    try:
        return finders.find(name) is None
    except Exception:
        return False


def missing_in_templates():
    """Name -> `base.html:12` of each missing file that a template of the project names."""
    places, known = {}, {}
    until = time.monotonic() + MAX_S
    for path in templates():
        if time.monotonic() > until:
            break
        # A comment becomes empty lines, so that the numbers of lines stay.
        text = COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), path.read_text("utf-8", "replace"))
        for match in STATIC_TAG.finditer(text):
            name = match[2]
            if name not in known:
                known[name] = is_missing(name)
            if known[name]:
                line = text.count("\n", 0, match.start()) + 1
                places.setdefault(name, f"{own_path(path) or path}:{line}")
    return places


def templates():
    """The path of each template of the project."""
    from django.template import engines

    number = 0
    for engine in engines.all():
        for folder in getattr(engine, "template_dirs", ()):
            folder = Path(folder).absolute()
            if not _is_own(folder):
                continue
            for path in sorted(folder.rglob("*")):
                inside = set(path.relative_to(folder).parts)
                if path.suffix in TEMPLATE_ENDS and not inside & LEFT_OUT and path.is_file():
                    number += 1
                    if number > MAX_TEMPLATES:
                        return
                    yield path


def _is_own(folder):
    inside = folder == Path.cwd() or Path.cwd() in folder.parents
    return inside and "site-packages" not in folder.parts


def dangling_references(settings):
    """File -> the first reference in it to a missing file, at which collecting static files would fail."""
    from django.contrib.staticfiles import finders

    first_references, until = {}, time.monotonic() + MAX_S
    for finder in finders.get_finders():
        for name, storage in finder.list([]):
            if time.monotonic() > until:
                return first_references
            patterns = []
            for glob, of_files in REFERENCES.items():
                if fnmatch.fnmatch(name, glob):
                    patterns += of_files
            if patterns and name not in first_references:
                reference = _first_dangling(settings, name, storage, patterns)
                if reference:
                    first_references[name] = reference
    return first_references


def _first_dangling(settings, name, storage, patterns):
    with contextlib.suppress(Exception):
        if storage.size(name) > MAX_BYTES:
            return ""
        with storage.open(name) as file:
            text = file.read().decode("utf-8")
        if name.endswith(".css"):
            text = CSS_COMMENT.sub("", text)
        for pattern in patterns:
            for match in pattern.finditer(text):
                url = match["url"].strip()
                target = _target(settings, name, url)
                if target and is_missing(target):
                    return url
    return ""


def _target(settings, name, url):
    """The name of the referenced file; empty for a reference outside of the collected files."""
    if HAS_SCHEME.match(url) or url.startswith("//"):
        return ""
    path = urldefrag(url)[0]
    if path.startswith("/"):
        static = settings.STATIC_URL or ""
        if static and path.startswith(static):
            return unquote(path[len(static) :])
        return ""
    if not path:
        return ""
    return unquote(posixpath.normpath(posixpath.join(posixpath.dirname(name), path)))
