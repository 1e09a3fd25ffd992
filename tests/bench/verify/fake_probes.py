"""The probe views of the fake site: rows, gates, slow pages, and the answers of the advisories' probes."""

from __future__ import annotations

import json
import re
import secrets
import time
import uuid
from typing import TYPE_CHECKING

from tests.bench.verify.fake_layer import LayerHandler
from tests.bench.verify.fake_odd_pages import HTML

if TYPE_CHECKING:
    from tests.bench.verify.fake_writes import FakeWrites

LARGE = 40_000
# A request that comes so soon after a gate opened was sent before.
LATE_S = 0.2


class ProbeHandler(LayerHandler):
    """One connection to the site of FakeWrites."""

    stub: FakeWrites

    def post(self, path: str) -> None:
        self.probe(path) if path.startswith("/__probe__/") else super().post(path)

    def probe(self, path: str) -> None:
        words = path.strip("/").split("/")[1:]
        if words[0] in ("rows", "gate", "author", "slow", "advisory", "fill"):
            getattr(self, f"probe_{words[0]}")(path, *words[1:])
        else:
            super().probe(path)

    def json(self, value: dict) -> None:
        self.send(200, json.dumps(value), "application/json", [("Cache-Control", "no-store")])

    def probe_rows(self, path: str, pk: str = "", what: str = "") -> None:
        if "no-rows" in self.stub.wrong:
            self.send(404, "", HTML)
            return
        number = int(pk) if pk else self.stub.make()
        if "commands-not-told" in self.stub.wrong and self.headers.get("X-Command"):
            what = {"edit": "update-silently"}.get(what, what)
        never = [self.stub.roll_back(number)] if what == "roll-back" else []
        if what:
            self.stub.write(number, what)
        self.json(self.stub.state(number) | {"never": never})

    def probe_gate(self, path: str, pk: str, what: str) -> None:
        gates, number = self.stub.gates, int(pk)
        if what == "close":
            gates[number] = []
        waiting = len(gates.get(number, []))
        if what == "open":
            gates.pop(number, None)
            self.stub.gate_opened = time.monotonic()
        self.json({"waiting": waiting})

    def probe_fill(self, path: str) -> None:
        self.stub.fill()
        self.json({"caches": 1})

    def probe_author(self, path: str, pk: str, *more: str) -> None:
        number = int(pk)
        title = self.stub.rows[number]["title"]
        if "large" in more or "halting" in more:
            lines = "\n".join([title] * (2 * LARGE // (len(title) + 1)))
            shown = f'<p id="begin">{title}</p>\n<p id="lines">{lines}</p>\n<p id="end">{title}</p>'
            text = self.text(path, shown)
            if "halting" in more and number in self.stub.gates:
                self.halt(number, path, text)
            else:
                self.send(200, text, HTML, self.usual())
            return
        if "gated" in more:
            late = number in self.stub.gates or time.monotonic() - self.stub.gate_opened < LATE_S
            if late and "late-gets-old" in self.stub.wrong:
                title = self.stub.first_title = self.stub.first_title or title
            self.stub.wait_at(number, path)
        self.send(200, self.text(path, f'<p id="title">{title}</p>'), HTML, self.usual())

    def halt(self, number: int, path: str, text: str) -> None:
        """Send one half of a page, and the other when the gate opens; not if the worker is killed before."""
        half = text[: len(text) // 2]
        self.stub.wait_at(number, path)
        if not self.stub.killed:
            self.send(200, text, HTML, self.usual())
        elif "halves-look-whole" in self.stub.wrong:
            self.send(200, half, HTML, self.usual())
        else:
            if "keeps-halves" in self.stub.wrong:
                self.stub.store[self.key()] = (200, half.encode(), HTML, self.usual())
            self.hang_up()

    def probe_slow(self, path: str, milliseconds: str, name: str) -> None:
        time.sleep(int(milliseconds) / 1000)
        self.send(200, self.text(path, f'<p id="part-id">{uuid.uuid4().hex}</p>'), HTML, self.usual())

    def probe_advisory(self, path: str, kind: str, name: str) -> None:
        said = {"vary-any": ("Vary", "*"), "vary-any-spaced": ("Vary", " Accept-Encoding ,  * ")}
        said |= {
            "private-upper": ("Cache-Control", "PRIVATE"),
            "private-mixed": ("Cache-Control", "max-age=60, Private"),
        }
        said |= {"no-store-upper": ("Cache-Control", "NO-STORE"), "no-cache-mixed": ("Cache-Control", "No-Cache")}
        if kind in said:
            self.send(200, self.text(path), HTML, [said[kind]])
        else:
            getattr(self, "advise_" + kind.replace("-", "_"))(path)

    def advise_form(self, path: str) -> None:
        cookie = self.cookies.get("csrftoken") or secrets.token_hex(8)
        if self.command == "POST":
            given = re.search(r"csrfmiddlewaretoken=([^&]*)", self.body.decode())
            right = given and self.stub.token_right(given[1], cookie)
            self.send(200 if right else 403, self.text(path), HTML, [("Cache-Control", "no-store")])
            return
        form = f'<form method="post"><input name="csrfmiddlewaretoken" value="{self.stub.token(cookie)}"></form>'
        self.send(200, self.text(path, form), HTML, [("Vary", "Cookie"), ("Set-Cookie", f"csrftoken={cookie}; Path=/")])

    def advise_session(self, path: str) -> None:
        old = "strips-for-old" in self.stub.wrong and "MSIE" in self.headers["User-Agent"]
        said = [] if old else [("Vary", "Cookie"), ("Cache-Control", "private")]
        shown = f'<p id="session">{self.cookies.get("sessionid", "nobody")}</p>'
        self.send(200, self.text(path, shown), HTML, said)

    def advise_query(self, path: str) -> None:
        self.send(200, self.text(path), HTML, self.usual())

    def advise_saves_session(self, path: str) -> None:
        self.send(200, self.text(path), HTML, [("Set-Cookie", f"sessionid={secrets.token_hex(8)}")])

    def advise_sets_cookie(self, path: str) -> None:
        self.send(200, self.text(path), HTML, [("Vary", "Cookie"), ("Set-Cookie", f"probe={secrets.token_hex(8)}")])

    advise_sets_cookie_spaced = advise_sets_cookie

    def advise_authorized(self, path: str) -> None:
        self.send(200, self.text(path).replace('id="authorization"></p>', 'id="authorization">nobody</p>'), HTML)

    def advise_varies(self, path: str) -> None:
        value = self.headers.get("X-Probe")
        shown = "absent" if value is None else f"[{value}]"
        self.send(200, self.text(path, f'<p id="x-probe">{shown}</p>'), HTML, [("Vary", "X-Probe")])
