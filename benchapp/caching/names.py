"""The name of a page, by one function for storing, serving and invalidating.

A name is the page's URL path as browsers send it, percent-encoded: `/blog/%C3%BCber/`. A server in front looks a page
up by the client's path, without decoding. Another spelling of the path is a miss, never another page.
"""

from __future__ import annotations

import re
from hashlib import md5
from urllib.parse import unquote

from django.utils.encoding import escape_uri_path

# The servers' configurations have the same regular expression, `page_re`. It has each page in one spelling: letters are
# not encoded, and no segment begins with a dot or is empty.
LETTERS, ESCAPE = "[A-Za-z0-9_.~@-]*", "%(?:20|[89A-F][0-9A-F])"
SEGMENT = f"(?:[A-Za-z0-9_~@-]|{ESCAPE}){LETTERS}(?:{ESCAPE}{LETTERS})*"
PAGE = re.compile(f"/(?:{SEGMENT}/)*(?:{SEGMENT})?", re.ASCII)
# Short enough for a key of memcached (250 bytes) and a file.
MAX_NAME = 200


def page_name(path: str) -> str:
    """The name of the page at a decoded path, as Django has it."""
    return escape_uri_path(path)


def as_written(path: str) -> str:
    """The name of the page at a path that a person wrote, percent-encoded or not."""
    return escape_uri_path(unquote(path))


def can_be_served(name: str) -> bool:
    """True if a server in front can find a page of this name in a store of bodies."""
    return len(name) <= MAX_NAME and PAGE.fullmatch(name) is not None


def digest(text: str) -> str:
    """A key for every cache, from a text of any length and form. The key is not a secret."""
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
