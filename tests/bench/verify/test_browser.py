"""What a visitor types into a login form."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.verify.browser import MAIL, Browser
from bench.verify.site import Account

FORM = '<form method="post"><input name="login" type="{}"><input name="password" type="password"></form>'


@pytest.mark.parametrize(
    ("kind", "name", "typed"),
    [
        ("text", "verify-1", "verify-1"),
        ("email", "verify-1", f"verify-1{MAIL}"),
        ("email", "ann@shop.example", "ann@shop.example"),
    ],
)
def test_a_form_that_asks_for_a_mail_address_gets_one(monkeypatch, kind, name, typed):
    browser, sent = Browser(SimpleNamespace()), []
    monkeypatch.setattr(browser, "get", lambda path: SimpleNamespace(text=FORM.format(kind)))
    monkeypatch.setattr(browser, "post", lambda path, values: sent.append((path, values)))
    browser.log_in("/login/", Account(name, "secret"))
    assert sent == [("/login/", {"login": typed, "password": "secret"})]
