"""Two web servers on one cache: what the check says of servers that do not share it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from bench.verify.checks import shared
from bench.verify.finding import NotTried


@dataclass
class Server:
    """A web server with a cache of rendered pages by path; `renders` none of them from it when it is None."""

    cache: dict[str, int] | None
    name: str = "first"
    rendered: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def target(self):
        return SimpleNamespace(netloc=f"{self.name}.example:80")

    def get(self, path, headers=(), host="", **_):
        self.asked.append(host)
        known = self.cache if self.cache is not None else {}
        if path not in known:
            self.rendered += 1
            known[path] = id(self) + self.rendered
        page = f'<p id="render-id">{known[path]}</p>'.encode()
        return SimpleNamespace(status=200, content=page, render_id=None)


def test_servers_that_share_a_cache_are_well():
    cache: dict[str, int] = {}
    first, second = Server(cache), Server(cache, "second")
    assert list(shared._answered_by(first, second)) == []
    # Behind one balancer both are asked for the same host.
    assert (second.rendered, second.asked) == (0, ["first.example:80"])


def test_servers_with_a_cache_each_do_not_share_it():
    (found,) = shared._answered_by(Server({}), Server({}, "second"))
    assert found.expected.endswith("at the second server: the page that the first stored")
    assert found.got == "status 200, rendered again"


def test_a_server_that_caches_nothing_is_named():
    (found,) = shared._answered_by(Server(None), Server({}, "second"))
    assert (found.expected.endswith("at the first server: a hit in the end"), found.got) == (True, "rendered each time")


@pytest.mark.parametrize(
    ("running", "reason"),
    [
        (None, shared.NEEDS_OWN),
        (
            SimpleNamespace(case=SimpleNamespace(services=())),
            "its layers cache in no service, which is what two web servers could share",
        ),
    ],
)
def test_where_nothing_can_be_shared_it_is_not_tried(running, reason):
    with pytest.raises(NotTried) as found:
        list(shared.shared_cache.run(SimpleNamespace(running=running)))
    assert found.value.reason == reason
