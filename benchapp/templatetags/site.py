"""Shared template tags and filters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.core.paginator import Page
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from benchapp.models import Post
from benchapp.pagination import page_url

NEIGHBOURS = 2
register = template.Library()


@register.simple_tag(takes_context=True)
def section_link(context: Context, name: str, text: str) -> SafeString:
    """A link to a section of the site, marked as current on its first page and all pages below."""
    url = reverse(name)
    path = context["request"].path
    if not path.startswith(url):
        return format_html('<a href="{}">{}</a>', url, text)
    return format_html('<a href="{}" aria-current="{}">{}</a>', url, "page" if path == url else "true", text)


@register.inclusion_tag("pager.html")
def pager(page: Page, base: str, anchor: str = "") -> dict[str, Any]:
    """Links from one page of a list to the others; `base` is the list's URL, `anchor` a fragment such as #posts."""
    last, number = page.paginator.num_pages, page.number

    def url(number: int) -> str:
        return page_url(base, number) + anchor

    return {
        "page": page,
        "first": url(1),
        "previous": url(number - 1) if page.has_previous() else None,
        # The page numbers around this one; a narrow screen hides the farther ones.
        "neighbours": [
            (near, url(near), abs(near - number) == NEIGHBOURS)
            for near in range(max(1, number - NEIGHBOURS), min(last, number + NEIGHBOURS) + 1)
        ],
        "next": url(number + 1) if page.has_next() else None,
        "last": url(last),
        "jump": f"{base}jump/",
    }


@register.filter(expects_localtime=True)
def iso(moment: datetime) -> str:
    """A time for HTML: `|date:"c"` has microseconds, which HTML does not allow."""
    return moment.isoformat(timespec="seconds")


@register.filter
def stars(rating: int) -> SafeString:
    """A rating from 1 to 5 as stars, with a label for screen readers."""
    filled, empty = "★" * rating, "☆" * (5 - rating)
    return format_html('<span class="stars" role="img" aria-label="{} of 5 stars">{}{}</span>', rating, filled, empty)


@register.filter
def teaser(post: Post, length: int) -> str:
    """The beginning of a post; `length` characters with its title, so that all entries of a page are equally long."""
    return cut(post.body, length - len(post.title))


@register.filter
def cut(text: str, length: int) -> str:
    """The beginning of a text on one line, at most `length` characters, ending with a whole word."""
    line = " ".join(text[: 2 * length].split())
    if len(line) <= length:
        return line
    whole_words = line[:length].rsplit(" ", 1)[0].rstrip(" ,.;:")
    return f"{whole_words[: length - 1]}…"
