"""What differs by nature between two renderings of a page is masked, and nothing else."""

from __future__ import annotations

import pytest

from bench.verify.in_process import Expected, as_in_process
from bench.verify.wire import Target

HTML = "text/html;charset=utf-8"
PAGE = '<script nonce="{nonce}">f()</script><ul><li>{one}</li><li>three</li></ul><p>words that stay</p>{end}'
ONE, TWO = PAGE.format(nonce="a1b2", one="x1", end="<b>7</b>"), PAGE.format(nonce="zz9", one="y22", end="<b>8</b>")


def expected(body=ONE, again=TWO):
    return Expected(200, HTML, body, again)


def test_a_rendering_with_its_own_nonce_is_the_same_page():
    third = PAGE.format(nonce="another-one", one="z", end="<b>10</b>")
    assert expected().difference(third) is None
    assert expected().same(Expected(200, HTML, third))


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
    page = Expected(200, HTML, "<p>one</p>")
    assert page.difference("<p>one</p>") is None
    assert page.difference("<p>one</p>x") == ("from character 0 on '<p>one</p>'", "'<p>one</p>x', of 11 characters")
    assert page.difference("<p>on") is not None


def test_tokens_are_masked_even_in_a_single_rendering():
    token = '<input type="hidden" name="csrfmiddlewaretoken" value="{}">'
    page = Expected(200, HTML, token.format("one"))
    assert page.difference(token.format("two")) is None
    assert not page.lasts and Expected(200, HTML, "<p>one</p>").lasts


def test_another_status_or_type_is_another_page():
    assert not expected().same(Expected(404, HTML, ONE))
    assert not expected().same(Expected(200, "text/plain", ONE))


def test_the_address_of_a_deployment_is_that_of_the_page_in_process():
    target = Target.parse("http://127.0.0.1:8123/")
    text = '<link rel="canonical" href="http://127.0.0.1:8123/"> on 127.0.0.1:8123'
    assert as_in_process(text, target) == '<link rel="canonical" href="http://127.0.0.1/"> on 127.0.0.1'
