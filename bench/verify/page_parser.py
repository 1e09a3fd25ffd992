"""Parse a page: its links, its forms, and what differs from one rendering to the next."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_TOKEN = re.compile(r"""(<[^<>]*\bname=["']?csrfmiddlewaretoken["']?[^<>]*>)""")
_VALUE = re.compile(r"""\bvalue=(["'])([^"']*)\1""")


def normalised(text: str) -> str:
    """The page without the values of its CSRF tokens, which are new in each rendering."""
    return _TOKEN.sub(lambda match: _VALUE.sub('value="*"', match[1]), text)


def tokens(text: str) -> set[str]:
    """The CSRF tokens of the page: found without parsing it, which takes a hundred times as long."""
    values = (_VALUE.search(tag) for tag in _TOKEN.findall(text))
    return {value[2] for value in values if value and value[2]}


@dataclass
class Form:
    """A form of a page with the values that a browser sends unless its user changes them.

    texts  names of the fields for typed text, and areas those of several lines
    names  names of the fields that may take an account's name, and passwords of those that take a password
    emails those among `names` that take an address of mail alone
    """

    action: str
    method: str
    values: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    areas: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    passwords: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)


@dataclass
class Page:
    """The addresses a page refers to and its forms, in document order."""

    styles: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    forms: list[Form] = field(default_factory=list)

    def comment_form(self) -> Form | None:
        """The first form that posts a text of several lines, or None."""
        return next((form for form in self.forms if form.areas and form.method == "post"), None)

    def login_form(self) -> Form | None:
        """The first form with a field for a name and one for a password, or None."""
        return next((form for form in self.forms if form.names and form.passwords), None)

    def form_with(self, field_name: str) -> Form | None:
        """The first form with a field of that name, or None."""
        return next((form for form in self.forms if field_name in form.values), None)


class _Parser(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.page = Page()
        self.form: Form | None = None
        self.select: str | None = None

    def updatepos(self, i: int, j: int) -> int:
        """Count no lines: nobody asks where in the page something stands."""
        return j

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        present = {name for name, _ in attributes}
        if tag == "link" and "stylesheet" in values.get("rel", "").lower().split():
            self.page.styles.append(values.get("href", ""))
        elif tag == "script" and "src" in values:
            self.page.scripts.append(values["src"])
        elif tag == "img" and "src" in values:
            self.page.images.append(values["src"])
        elif tag == "a" and "href" in values:
            self.page.links.append(values["href"])
        elif tag == "form":
            self.form = Form(values.get("action") or self.base, values.get("method", "get").lower())
            self.page.forms.append(self.form)
        elif self.form is not None:
            self._field(tag, values, present)

    def _field(self, tag: str, values: dict[str, str], present: set[str]) -> None:
        form, name = self.form, values.get("name", "")
        assert form is not None
        if tag == "option" and self.select and ("selected" in present or not form.values.get(self.select)):
            form.values[self.select] = values.get("value", "")
        if not name:
            return
        if tag == "textarea":
            form.values[name] = ""
            form.texts.append(name)
            form.areas.append(name)
        elif tag == "select":
            self.select = name
            form.values[name] = ""
        elif tag == "input":
            kind = values.get("type", "text").lower()
            if kind in ("radio", "checkbox"):
                if "checked" in present or (kind == "radio" and name not in form.values):
                    form.values[name] = values.get("value", "on")
            elif kind not in ("submit", "button", "image", "reset", "file"):
                form.values[name] = values.get("value", "")
                if kind in ("text", "search"):
                    form.texts.append(name)
                if kind in ("text", "email", "tel"):
                    form.names.append(name)
                    if kind == "email":
                        form.emails.append(name)
                elif kind == "password":
                    form.passwords.append(name)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.form = None
        elif tag == "select":
            self.select = None


def parse(text: str, base: str = "/") -> Page:
    """Parse the page at path `base`."""
    parser = _Parser(base)
    parser.feed(text)
    parser.close()
    return parser.page
