"""Clients that differ from the usual one: few that differ in many things stand for all."""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace

from bench.serve.machine.http import Target
from bench.verify.context import Context
from bench.verify.in_process import ExpectedPage
from bench.verify.odd_clients import KINDS, merged

PAGE = ExpectedPage(200, "text/html", "", reads={"headers": ["X-Tenant"], "cookies": ["shop"]})
SITE = SimpleNamespace(session_cookie="sessionid", token_cookie="csrftoken", has_database=True, pages={"/": PAGE})
SERVERS = (SimpleNamespace(prefix_headers=("X-Root-Path",)),)
NAMES = {"server_names": "127.0.0.1 a.example *.b.example"}
RUNNING = SimpleNamespace(case=SimpleNamespace(settings=NAMES, servers=SERVERS))


def test_merged_clients_differ_in_all_that_the_others_do_and_are_as_few_as_those_of_a_kind():
    context = Context(Target.parse("http://127.0.0.1:8000"), SITE, (), None, running=RUNNING)
    kinds = [list(clients(context)) for clients in KINDS]
    merged_clients = merged(context)
    assert len(merged_clients) == max(len(clients) for clients in kinds)
    for client in chain.from_iterable(kinds):
        assert any(
            {*client.headers} <= {*other.headers}
            and {*client.cookies} <= {*other.cookies}
            and client.host in ("", other.host)
            and client.source in ("", other.source)
            and client.version >= other.version
            for other in merged_clients
        ), client.name
