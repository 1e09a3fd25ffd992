"""Natural differences between two renderings of a page are masked, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.serve.machine.http import Target
from bench.verify.in_process import ExpectedPage, as_in_process, expected_page
from bench.verify.page_parser import decoded
from bench.verify.wire import PageResponse

HTML = "text/html;charset=utf-8"
PAGE = '<script nonce="{nonce}">f()</script><ul><li>{one}</li><li>three</li></ul><p>words that stay</p>{end}'
ONE, TWO = PAGE.format(nonce="a1b2", one="x1", end="<b>7</b>"), PAGE.format(nonce="zz9", one="y22", end="<b>8</b>")


def expected(body=ONE, *again):
    return ExpectedPage(200, HTML, body, again or (TWO,))


def test_a_rendering_with_its_own_nonce_is_the_same_page():
    third = PAGE.format(nonce="another-one", one="z", end="<b>10</b>")
    assert expected().difference(third) is None
    assert expected().same(ExpectedPage(200, HTML, third))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<li>one</li><li>two</li>", "<li>two</li><li>one</li>"),
        ("<li>one</li><li>two</li><p>17:02:59</p>", "<li>two</li><li>one</li><p>17:03:00</p>"),
        ("<li>one</li><li>two</li><li>three</li>", "<li>three</li><li>four</li><li>one</li>"),
        ("<p>tags: red, blue</p>", "<p>tags: blue, red</p>"),
    ],
)
def test_a_page_in_another_order_each_time_is_not_compared(one, other):
    """Parts common to two of its renderings say nothing of the next one."""
    page = expected(one, other)
    assert (page.compared, page.varies, page.lasts) == (False, True, False)
    assert page.difference("<li>five</li>") is None


def test_other_words_in_the_same_places_are_compared():
    page = expected("<p>17:02:59</p><p>ad 12 of 7</p>", "<p>17:03:00</p><p>ad 7 of 3</p>")
    assert page.compared
    assert page.difference("<p>17:03:01</p>") is not None


@pytest.mark.parametrize(
    ("was", "got"),
    [("words that stay", "words that went"), ("<li>three</li>", ""), ("f()", "g()"), ("</p>", "</p><p>more</p>")],
)
def test_any_other_change_is_a_difference(was, got):
    page = expected(ONE.replace("<b>7</b>", ""), TWO.replace("<b>8</b>", ""))
    assert page.difference(page.body) is None
    wrong = page.difference(page.body.replace(was, got))
    assert wrong is not None
    assert wrong[0].startswith("from character ")


def test_a_page_that_is_always_the_same_is_compared_whole():
    page = ExpectedPage(200, HTML, "<p>one</p>")
    assert page.difference("<p>one</p>") is None
    assert page.difference("<p>one</p>x") == ("from character 0 on '<p>one</p>'", "'<p>one</p>x', of 11 characters")
    assert page.difference("<p>on") is not None


def test_tokens_are_masked_even_in_a_single_rendering():
    token = '<input type="hidden" name="csrfmiddlewaretoken" value="{}">'
    page = ExpectedPage(200, HTML, token.format("one"))
    assert page.difference(token.format("two")) is None
    assert not page.lasts and ExpectedPage(200, HTML, "<p>one</p>").lasts


CLOCK = "<p>17:28:{} words</p>"


def test_a_time_of_day_is_another_one_an_hour_later():
    page = expected(CLOCK.format("55"), CLOCK.format("56"))
    assert page.difference("<p>18:30:01 words</p>") is None
    assert page.difference("<p>18:30:01 others</p>") is not None


def test_what_any_of_several_renderings_has_otherwise_is_masked():
    page = expected("<b>1</b><i>1</i><u>1</u>", "<b>2</b><i>1</i><u>1</u>", "<b>1</b><i>2</i><u>1</u>")
    assert page.difference("<b>3</b><i>4</i><u>1</u>") is None
    assert page.difference("<b>3</b><i>4</i><u>2</u>") is not None


def test_a_page_that_is_not_compared_differs_in_nothing():
    page = replace(expected(), confirmed=False)
    assert page.difference("anything") is None
    assert (page.varies, page.lasts) == (True, False)


@pytest.mark.parametrize(
    ("content", "content_type", "text"),
    [
        (b"K\xf6ln", "text/html; charset=ISO-8859-1", "K\xf6ln"),
        (b"\x80", 'text/html; charset="windows-1252"', "\u20ac"),
        ("K\xf6ln".encode("utf-16"), "text/html", "K\xf6ln"),
        ("K\xf6ln".encode("utf-16-le"), "text/html; charset=utf-16le", "K\xf6ln"),
        (b'<meta charset="latin-1">\xf6', "text/html", '<meta charset="latin-1">\xf6'),
        (b'<meta charset="latin-1">\xf6', "text/plain", '<meta charset="latin-1">\\xf6'),
        ("K\xf6ln".encode(), "text/html", "K\xf6ln"),
        ("K\xf6ln".encode(), "text/html; charset=utf-8", "K\xf6ln"),
        *((b"K\xf6ln", f"text/html; charset={name}", "K\\xf6ln") for name in ("no-such", "hex", "undefined")),
    ],
)
def test_a_page_is_read_in_its_charset(content, content_type, text):
    assert decoded(content, content_type) == text
    assert PageResponse(200, "HTTP/1.1", (("Content-Type", content_type),), content).text == text
    printed = {"status": 200, "content_type": content_type, "body": content.decode("utf-8", "surrogateescape")}
    assert expected_page("/", {"/": printed}).body == text


def test_another_status_or_type_is_another_page():
    assert not expected().same(ExpectedPage(404, HTML, ONE))
    assert not expected().same(ExpectedPage(200, "text/plain", ONE))


def test_the_address_of_a_deployment_is_that_of_the_page_in_process():
    target = Target.parse("http://127.0.0.1:8123/")
    text = '<link rel="canonical" href="http://127.0.0.1:8123/"> on 127.0.0.1:8123'
    assert as_in_process(text, target) == '<link rel="canonical" href="http://127.0.0.1/"> on 127.0.0.1'
