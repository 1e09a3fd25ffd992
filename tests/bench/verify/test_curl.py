"""The failing request of a check as a command that a reader can paste."""

from __future__ import annotations

import contextlib
import shlex

import pytest

from bench.verify import curl, wire
from tests.bench.verify.fake_http import serving


@pytest.fixture
def sent(stub):
    """What the command says after one request to the fake site."""

    def send(path, headers=(), **how):
        with serving(stub) as url, contextlib.suppress(wire.BadAnswer):
            wire.fetch(wire.Target.parse(url), path, headers, **how)
        return curl.command()

    curl.forget()
    yield send
    curl.forget()


def test_a_request_becomes_a_command_for_up(sent):
    command = sent("/posts/../?a=b c", {"Cookie": "sessionid=nobody", "X-Empty": ""}, host="evil.example")
    assert shlex.split(command) == [
        *("curl", "-i", "--path-as-is", "-H", "Host: evil.example", "-H", "Cookie: sessionid=nobody", "-H", "X-Empty;"),
        "http://127.0.0.1:8000/posts/../?a=b c",
    ]


def test_sessions_tokens_and_bodies_are_not_in_it(sent):
    secret = "s" * 32
    command = sent("/login/", {"Cookie": f"csrftoken={secret}; a=b"}, method="POST", body=b"password=hush")
    assert secret not in command and "hush" not in command
    assert shlex.split(command)[3:] == [
        *("-X", "POST", "-H", "Cookie: csrftoken=...; a=b", "--data", "...", "http://127.0.0.1:8000/login/")
    ]


def test_what_curl_cannot_send_has_no_command(sent):
    assert sent(b"/odd/\xff") is None
    curl.forget()
    assert curl.command() is None
