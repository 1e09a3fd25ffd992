"""Read a page in its charset, and parse links, forms, and parts that differ between renderings."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cached_property

from lxml import etree, html

TOKEN = "csrfmiddlewaretoken"
# Kinds of fields for an account's name, and kinds of fields for text.
NAMES, TEXTS = ("text", "email", "tel"), ("text", "search", "textarea")
_TOKEN_TAG = re.compile(rf"""<[^<>]*\bname=["']?{TOKEN}["']?[^<>]*>""")
_VALUE = re.compile(r"""\bvalue=(["']?)([^"'\s>]*)\1""")


# Charset of a page (https://html.spec.whatwg.org/#determining-the-character-encoding): from the first bytes, a
# parameter of Content-Type, or a tag near the beginning.
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_PARAMETER = re.compile(r"""\bcharset\s*=\s*["']?([^\s"';,]+)""", re.I)
_META = re.compile(rb"""<meta\b[^<>]*\bcharset\s*=\s*["']?([\w.:-]+)""", re.I)
_META_BYTES = 1024


def decoded(content: bytes, content_type: str) -> str:
    """The text of a body in its own charset, or in UTF-8 if the charset is missing or unknown; other bytes are
    escaped."""
    try:
        return content.decode(_charset(content, content_type), "backslashreplace")
    except (LookupError, ValueError):
        return content.decode("utf-8", "backslashreplace")


def _charset(content: bytes, content_type: str) -> str:
    for mark, charset in _MARKS.items():
        if content.startswith(mark):
            return charset
    if named := _PARAMETER.search(content_type):
        return named[1]
    if "html" in content_type.lower() and (tag := _META.search(content[:_META_BYTES])):
        return tag[1].decode("ascii", "replace")
    return "utf-8"


def normalised(text: str) -> str:
    """The page without its CSRF tokens, which are new in each rendering."""
    return _TOKEN_TAG.sub(lambda tag: _VALUE.sub('value="*"', tag[0]), text)


def tokens(text: str) -> set[str]:
    """The CSRF tokens of the page, found without parsing, which takes ten times as long."""
    values = (_VALUE.search(tag) for tag in _TOKEN_TAG.findall(text))
    return {value[2] for value in values if value and value[2]}


@dataclass(frozen=True)
class Form:
    """A form of a page with the values sent by a browser if the user changes nothing.

    kinds  of the fields, by name: the type of an input, `textarea` or `select`
    """

    action: str
    method: str
    values: dict[str, str]
    kinds: dict[str, str]

    def names(self, *kinds: str) -> list[str]:
        """Names of the fields of these kinds."""
        return [name for name, kind in self.kinds.items() if kind in kinds]


class ParsedPage:
    """A page at the path `base`: its links and forms, in document order."""

    def __init__(self, text: str, base: str = "/"):
        self.base = base
        try:
            # As bytes: lxml refuses a str with an encoding declaration.
            self.root = html.document_fromstring(
                text.encode("utf-8", "replace"), parser=html.HTMLParser(encoding="utf-8")
            )
        except etree.ParserError:
            self.root = html.fromstring("<html></html>")

    def _all(self, path: str) -> list[str]:
        return [str(value) for value in self.root.xpath(path)]

    @cached_property
    def styles(self) -> list[str]:
        return self._all("//link[contains(concat(' ', @rel, ' '), ' stylesheet ')]/@href")

    @cached_property
    def scripts(self) -> list[str]:
        return self._all("//script/@src")

    @cached_property
    def pictures(self) -> list[str]:
        """Pictures of <img>, <picture>, <video> and icons."""
        items = ",".join(self._all("//@srcset")).split(",")
        several = [item.split()[0] for item in items if item.strip()]
        one = self._all("//img/@src | //video/@poster | //input[@type='image']/@src | //link[@rel='icon']/@href")
        return list(dict.fromkeys([*one, *several]))

    @cached_property
    def links(self) -> list[str]:
        return self._all("//a/@href")

    @cached_property
    def nonces(self) -> list[str]:
        """Nonces of scripts and styles, and of a Content-Security-Policy in a <meta> tag."""
        return self._all("//@nonce | //meta[@name='csp-nonce' or contains(@content, \"'nonce-\")]/@content")

    @cached_property
    def paragraphs(self) -> dict[str, str]:
        """The text of each paragraph by its id: in a probe page they describe the request."""
        return {item.get("id"): item.text_content() for item in self.root.xpath("//p[@id]")}

    @cached_property
    def forms(self) -> list[Form]:
        return [_form(item, self.base) for item in self.root.forms]

    def comment_form(self) -> Form | None:
        """The first form that posts a text of several lines, or None."""
        return next((form for form in self.forms if form.names("textarea") and form.method == "post"), None)

    def login_form(self) -> Form | None:
        """The first form with a field for a name and one for a password, or None."""
        return next((form for form in self.forms if form.names(*NAMES) and form.names("password")), None)

    def form_with(self, field_name: str) -> Form | None:
        """The first form with such a field, or None."""
        return next((form for form in self.forms if field_name in form.values), None)


def _form(element: html.FormElement, base: str) -> Form:
    values, kinds = {name: str(value) for name, value in element.form_values()}, {}
    for item in element.inputs:
        name, kind = item.name, item.tag
        if kind == "input":
            kind = (item.get("type") or "text").lower()
        if not name:
            continue
        kinds[name] = kind
        if kind == "textarea":
            values[name] = ""
        elif kind in (*NAMES, "search", "password", "number", "hidden"):
            values.setdefault(name, item.get("value") or "")
        elif kind == "radio":
            values.setdefault(name, item.get("value") or "on")
        elif kind == "select" and not values.get(name):
            values[name] = next(iter(filter(None, item.value_options)), "")
    return Form(element.get("action") or base, element.get("method", "get").lower(), values, kinds)
