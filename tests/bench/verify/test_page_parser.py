"""Tokens are found in a page without parsing it, and are those of its forms."""

from __future__ import annotations

from bench.verify import page_parser

PAGE = """<html><body>csrfmiddlewaretoken
<form action="/logout/" method="post"><input type="hidden" name="csrfmiddlewaretoken" value="one"></form>
<form action="/comment/" method="post"><input value='two' name=csrfmiddlewaretoken type=hidden>
<input name="body" value="csrfmiddlewaretoken"></form>
<form><input name="csrfmiddlewaretoken" value=""></form></body></html>"""


def test_tokens_are_those_of_the_forms():
    forms = page_parser.parse(PAGE).forms
    assert page_parser.tokens(PAGE) == {"one", "two"}
    assert page_parser.tokens(PAGE) == {form.values["csrfmiddlewaretoken"] for form in forms} - {""}


def test_without_their_values_two_renderings_are_equal():
    assert page_parser.normalised(PAGE) == page_parser.normalised(PAGE.replace("one", "three"))
    assert page_parser.normalised(PAGE) != page_parser.normalised(PAGE.replace("body", "title"))
