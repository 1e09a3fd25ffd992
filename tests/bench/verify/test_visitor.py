"""Pages read by a visitor, texts typed into forms, and repeated requests."""

from __future__ import annotations

import shlex
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from bench.serve.machine.http import Sent
from bench.verify import page_parser
from bench.verify.site import Account
from bench.verify.visitor import MAIL, Visitor

FORM = '<form method="post"><input name="login" type="{}"><input name="password" type="password"></form>'
PAGE = """<html><body>csrfmiddlewaretoken
<form action="/logout/" method="post"><input type="hidden" name="csrfmiddlewaretoken" value="one"></form>
<form action="/comment/" method="post"><input value='two' name=csrfmiddlewaretoken type=hidden>
<input name="body" value="csrfmiddlewaretoken"><textarea name="text"></textarea>
<select name="rating"><option value="">-</option><option value="5">5</option></select>
<input type="radio" name="kind" value="a"><input type="radio" name="kind" value="b" checked></form>
<form><input name="csrfmiddlewaretoken" value=""></form></body></html>"""
MINIFIED = "<!doctype html><html lang=en><title>t</title><p id=render-id>abc<p id=path>/x/&lt;y&gt;<p id=whole>abc"


@pytest.mark.parametrize(
    ("kind", "name", "typed"),
    [
        ("text", "verify-1", "verify-1"),
        ("email", "verify-1", f"verify-1{MAIL}"),
        ("email", "ann@shop.example", "ann@shop.example"),
    ],
)
def test_a_form_that_has_a_mail_address_gets_one(monkeypatch, kind, name, typed):
    visitor, sent = Visitor(SimpleNamespace()), []
    monkeypatch.setattr(visitor, "get", lambda path: SimpleNamespace(text=FORM.format(kind)))
    monkeypatch.setattr(visitor, "post", lambda path, values: sent.append((path, values)))
    visitor.log_in("/login/", Account(name, "secret"))
    assert sent == [("/login/", {"login": typed, "password": "secret"})]


def test_forms_are_sent_as_a_browser_fills_them_in():
    form = page_parser.ParsedPage(PAGE, "/posts/1/").comment_form()
    assert form.action == "/comment/" and form.names(*page_parser.TEXTS) == ["body", "text"]
    assert form.values == {
        "csrfmiddlewaretoken": "two",
        "body": "csrfmiddlewaretoken",
        "text": "",
        "rating": "5",
        "kind": "b",
    }


def test_tokens_are_those_of_the_forms():
    forms = page_parser.ParsedPage(PAGE).forms
    assert page_parser.tokens(PAGE) == {"one", "two"}
    assert page_parser.tokens(PAGE) == {form.values["csrfmiddlewaretoken"] for form in forms} - {""}


def test_without_their_values_two_renderings_are_equal():
    assert page_parser.normalised(PAGE) == page_parser.normalised(PAGE.replace("one", "three"))
    assert page_parser.normalised(PAGE) != page_parser.normalised(PAGE.replace("body", "title"))


def test_paragraphs_of_a_minified_page_are_those_of_the_page():
    assert page_parser.ParsedPage(MINIFIED).paragraphs == {"render-id": "abc", "path": "/x/<y>", "whole": "abc"}


@pytest.mark.parametrize("text", ["", "<!-- -->", "\0", "no page"])
def test_what_is_no_page_has_no_forms(text):
    assert page_parser.ParsedPage(text).forms == []


def command(path, headers=(), **how) -> list[str]:
    sent = Sent("http://127.0.0.1:8000", how.pop("method", "GET"), path, tuple(headers), **how)
    return shlex.split(sent.command)


def test_a_request_becomes_a_command():
    headers = [("Cookie", "sessionid=nobody"), ("X-Empty", "")]
    assert command("/posts/../?a=b", headers, host="evil.example") == [
        *("curl", "-i", "--path-as-is", "-H", "Host: evil.example", "-H", "Cookie: sessionid=nobody", "-H", "X-Empty;"),
        "http://127.0.0.1:8000/posts/../?a=b",
    ]
    assert command("/", [("X-Empty", "")], host=None)[3:7] == ["-H", "Host:", "-H", "X-Empty;"]


def test_sessions_tokens_and_bodies_with_secrets_are_not_in_it():
    headers = [("Cookie", f"csrftoken={'s' * 32}; a=b")]
    words = command("/login/", headers, method="POST", body=b"username=ann&password=x")
    assert words[3:] == [
        *("-X", "POST", "-H", "Cookie: csrftoken=...; a=b", "--data", "...", "http://127.0.0.1:8000/login/")
    ]


ODD = (b"/odd/\xff", b"/a b/", b"/?x[1]={a,b}", b"generation", b"/a#b", b"/a\x01'\\\t", "/caf\u00e9/".encode(), b"*")


@pytest.mark.parametrize(
    ("path", "how"),
    [
        *((path, {}) for path in ODD),
        (ODD[0], {"version": "1.0"}),
        (ODD[0], {"method": "POST", "body": b"a='1'"}),
        (ODD[0], {"method": "POST", "body": b"\0" * 3000}),
    ],
)
def test_the_command_sends_the_very_bytes(path, how):
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(10)
        sent = Sent(f"http://127.0.0.1:{server.getsockname()[1]}", path=path, **{"method": "GET", **how})
        running = pool.submit(subprocess.run, ["bash", "-c", sent.command], capture_output=True, timeout=10)
        with server.accept()[0] as client, client.makefile("rb") as request:
            line = request.readline()
            while request.readline().strip():
                pass
            body = request.read(len(how.get("body", b"")))
            client.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        assert running.result().returncode == 0
    assert line == b"%s %s HTTP/%s\r\n" % (sent.method.encode(), path, sent.version.encode())
    assert body == how.get("body", b"")
