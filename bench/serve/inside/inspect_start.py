"""The start page of a project: the home page, else a page of the URL patterns; a part of inspect_project."""

import re
import time
from urllib.parse import urlsplit

from inspect_pages import LOCAL

HOME = "/"
PLAIN = re.compile(r"(/[\w.~-]+)*/?")
# Regular expressions of routes that name one path have these besides it.
ANCHORS = re.compile(r"\^|\$|\\Z")
LOGIN = re.compile(r"\b(log|sign)[-_]?in\b", re.I)
SERVER_ERROR = 500
MAX_REDIRECTS = 5
# At most so many pages of a project, for so long.
MAX_PAGES, MAX_S = 20, 5


class Search:
    """Pages requested in turn until one is a start page.

    get_page    returns the response for an anonymous visitor at a path
    is_settled  whether the database has the rows of the later deployment, so that an error now is an error then
    """

    def __init__(self, get_page, is_settled):
        self.get_page = get_page
        self.is_settled = is_settled
        self.until = time.monotonic() + MAX_S
        self.requested = []
        self.logins = []
        # The first one that is data, such as the root of an API.
        self.other = None

    def begins(self, path):
        """True if visitors can begin at this path: a page without a log-in form."""
        if path in self.requested or len(self.requested) == MAX_PAGES or time.monotonic() > self.until:
            return False
        self.requested.append(path)
        page = self.get_page(path)
        if not is_shown(page):
            return False
        if LOGIN.search(path):
            self.logins.append(path)
            return False
        kind = page["headers"].get("Content-Type", "")
        if kind.startswith("application/") and "javascript" not in kind and "." not in path and not self.other:
            self.other = path
        return kind.startswith("text/html")

    def end_of_redirects(self):
        """The last path of the home page's redirects; None for a target outside of this site."""
        path = HOME
        for _ in range(MAX_REDIRECTS):
            page = self.get_page(path)
            if not page["location"]:
                # It may lack rows only.
                waits = page["status"] >= SERVER_ERROR and not self.is_settled
                if is_shown(page) or waits:
                    return path
                return None
            url = urlsplit(page["location"])
            if url.hostname not in (None, *LOCAL) or not PLAIN.fullmatch(url.path):
                return None
            path = url.path
        return None


def is_shown(page):
    """True if an anonymous visitor from this machine gets a page with status 200."""
    return page["status"] == 200 and page.get("here", 200) == 200


def start_page(search, named, routes, login_paths):
    """The path at which visitors begin; None if no known path shows them anything.

    named        paths that the project names
    routes       the URL patterns, without tools
    login_paths  possible paths of a log-in form
    """
    home = search.get_page(HOME)
    may_have_rows = home["status"] == 404 and not search.is_settled and has_view(HOME)
    if is_shown(home) or home["status"] >= SERVER_ERROR or may_have_rows:
        return HOME

    # If it leads to a form to log in, visitors see the form first.
    end = search.end_of_redirects()
    if end and end != HOME:
        return end

    paths = [ANCHORS.sub("", route) for route in routes]
    plain = [path for path in paths if PLAIN.fullmatch(path)]
    for path in [*named, *sorted(plain, key=lambda path: path.count("/"))]:
        if search.begins(path):
            return path
    if search.other:
        return search.other

    for path in login_paths:
        if not search.logins and is_shown(search.get_page(path)):
            return path
    return next(iter(search.logins), None)


def has_view(path):
    """True if the URL patterns name a view for this path."""
    from django.urls import Resolver404, resolve

    try:
        resolve(path)
    except Resolver404:
        return False
    return True
