"""Tags and filters that templates share."""

from __future__ import annotations

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from benchapp.models import Post

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
    """A rating from 1 to 5 as stars, with a label for screen readers."""
    filled, empty = "★" * rating, "☆" * (5 - rating)
    return format_html('<span class="stars" role="img" aria-label="{} of 5 stars">{}{}</span>', rating, filled, empty)


@register.filter
def teaser(post: Post, length: int) -> str:
    """The beginning of a post; with its title `length` characters, so that all entries of a page are equally long."""
    return cut(post.body, length - len(post.title))


@register.filter
def cut(text: str, length: int) -> str:
    """The beginning of a text on one line, at most `length` characters, ending with a whole word."""
    line = " ".join(text[: 2 * length].split())
    if len(line) <= length:
        return line
    whole_words = line[:length].rsplit(" ", 1)[0].rstrip(" ,.;:")
    return f"{whole_words[: length - 1]}…"
