"""Small pieces of HTML that templates share."""

from __future__ import annotations

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(takes_context=True)
def section_link(context: Context, name: str, text: str) -> SafeString:
    """A link to a section of the site, marked as current on its first page and on all below it."""
    url = reverse(name)
    path = context["request"].path
    if not path.startswith(url):
        return format_html('<a href="{}">{}</a>', url, text)
    return format_html('<a href="{}" aria-current="{}">{}</a>', url, "page" if path == url else "true", text)


@register.filter
def stars(rating: int) -> SafeString:
    """A rating from 1 to 5 as stars to see and as words to hear."""
    filled, empty = "★" * rating, "☆" * (5 - rating)
    return format_html('<span class="stars" role="img" aria-label="{} of 5 stars">{}{}</span>', rating, filled, empty)


@register.filter
def teaser(text: str, title: str) -> str:
    """The beginning of a text, shorter under a long title, so that every teaser takes the same room."""
    return _cut(text, 230 - len(title))


@register.filter
def cut(text: str, length: int) -> str:
    """The beginning of a text, at most `length` characters, on one line, ending with a word."""
    return _cut(text, length)


def _cut(text: str, length: int) -> str:
    line = " ".join(text[: length * 2].split())
    if len(line) <= length:
        return line
    whole_words = line[: length - 1].rsplit(" ", 1)[0].rstrip(" ,.;:")
    return f"{whole_words}…"
