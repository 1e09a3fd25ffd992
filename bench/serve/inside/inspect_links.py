"""The links of a page with a query string; a part of inspect_project."""

import contextlib
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urljoin, urlsplit


class Links(HTMLParser):
    """Collects the addresses of all links."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        address = dict(attributes).get("href")
        if tag == "a" and address:
            self.addresses.append(address)


def linked_parameters(path, host, html):
    """Path of the site -> names of the parameters with which links of the page at `path` lead there."""
    links, names_by_path = Links(), {}
    # It gives up at some declarations of word processors, such as <![x[.
    with contextlib.suppress(AssertionError):
        links.feed(html)
    for address in links.addresses:
        try:
            target = urlsplit(urljoin(f"http://{host}{path}", address))
        except ValueError:
            continue
        names = [name for name, _ in parse_qsl(target.query, keep_blank_values=True)]
        if names and target.netloc == host and target.scheme in ("http", "https"):
            names_by_path.setdefault(target.path, set()).update(names)
    return {target: sorted(names) for target, names in names_by_path.items()}
