"""The fake site and layer with rows that a probe writes, slow pages, and the answers of the advisories' probes.

`FakeWrites.wrong` holds the names of its mistakes; test_writes.py says which check must notice which.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.bench.verify.fake_http import HttpHandler
from tests.bench.verify.fake_layer import HTML, FakeLayer, LayerHandler

LARGE = 40_000
GATE_S = 2.0
UNCACHEABLE_S = 0.3
# How long a page is served after a write to it.
MOMENT_S = 0.1
# How long a page takes while the service hangs.
LONG_S = 2.2


class FakeWrites(FakeLayer):
    """A site that is written to, and its layer."""

    @property
    def handler(self) -> type[HttpHandler]:
        return WritesHandler

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.timers: list[threading.Timer] = []

    def reset(self, *wrong: str) -> None:
        for timer in self.timers:
            timer.cancel()
        self.timers = []
        self.rows: dict[int, dict] = {}
        self.first_title = self.uncommitted = ""
        super().reset(*wrong)
        self.gates: dict[int, list[str]] = {}
        self.lock, self.files_lock = threading.Lock(), threading.Lock()
        self.generation = 0
        self.ttl_s = 60.0
        self.files = self.folder / "store"
        shutil.rmtree(self.files, ignore_errors=True)
        self.files.mkdir()
        self.service_up = self.hits_return = True
        self.hangs = False
        self.kept_at: dict[str, float] = {}
        self.full = self.disk_full = False
        self.purged: dict[str, tuple] = {}
        self.workers: Callable[[], list[int]] = list
        self.rendering: list[int] = []

    def totals(self) -> str:
        posts = [row for row in self.rows.values() if row["title"]]
        return f"{len(self.rows)} authors, {len(posts)} posts and {sum(row['comments'] for row in posts)} comments"

    def page(self, path: str, user: str, cookie: str = "") -> str:
        words = [value for row in self.rows.values() for value in self.texts_of(row)]
        return super().page(path, user, cookie) + "".join(f"<p>{value}</p>" for value in [self.totals(), *words])

    def texts_of(self, row: dict) -> list:
        return [row["name"], *((row["title"], row["comment"]) if row["title"] else ()), self.uncommitted]

    def make(self) -> int:
        pk = len(self.rows) + 1 + secrets.randbelow(10**6)
        self.rows[pk] = {"name": words(), "title": words(), "comment": words(), "comments": 1}
        self.purge("make")
        return pk

    def state(self, pk: int) -> dict:
        row = self.rows.get(pk) or {"name": None, "title": None, "comment": None, "comments": 0}
        title = row["title"]
        return {
            "author": pk,
            "name": row["name"],
            "title": title,
            "comment": row["comment"] if title else None,
            "posts": f"{int(bool(title))} post{'s' * (not title)}",
            "comments": f"{row['comments']} comment{'s' * (row['comments'] != 1)}",
            "totals": self.totals(),
            "author_page": f"/authors/{pk}/",
            "post_page": f"/posts/{pk}00/" if title else None,
            "probe_page": f"/probe/author/{pk}/",
            "never": [],
        }

    def write(self, pk: int, what: str) -> None:
        row, wrong = self.rows[pk], self.wrong
        if what in ("edit", "update", "update-silently"):
            row["title"] = words()
        elif what == "comment":
            row["comment"], row["comments"] = words(), row["comments"] + 1
        elif what in ("delete", "delete-silently"):
            row["title"] = None
        elif what == "rename":
            row["name"] = words()
        elif what in ("remove", "remove-silently"):
            del self.rows[pk]
        elif what == "roll-back" and "shows-rolled-back" in wrong:
            row["title"] = words()
        if what not in ("look", "roll-back") and not what.endswith("-silently"):
            self.purge(what)

    def roll_back(self, pk: int) -> str:
        """The words of a write that is rolled back, once the gate is open."""
        written = words()
        if "shows-uncommitted" in self.wrong:
            self.store, self.uncommitted = {}, written
        self.wait_at(pk, "roll-back")
        self.uncommitted = ""
        return written

    def wait_at(self, pk: int, who: str) -> None:
        if pk in self.gates:
            self.rendering = self.rendering if self.gates[pk] else self.workers()
            self.gates[pk].append(who)
            deadline = time.monotonic() + GATE_S
            while pk in self.gates and time.monotonic() < deadline:
                time.sleep(0.005)

    @property
    def killed(self) -> bool:
        """Whether the workers were killed since the first rendering waited at a gate."""
        return self.rendering != self.workers()

    def purge(self, what: str) -> None:
        self.generation += 1
        if "not-told" in self.wrong or ("updates-not-told" in self.wrong and what == "update"):
            return
        if self.disk_full and "full-disk-stale" in self.wrong:
            return
        if "old-for-a-moment" in self.wrong:
            self.later(MOMENT_S, lambda: self.drop(what))
        else:
            self.drop(what)

    def later(self, seconds: float, task: Callable[[], None]) -> None:
        """Do it then, unless the site starts anew before."""
        timer = threading.Timer(seconds, task)
        timer.daemon = True
        self.timers.append(timer)
        timer.start()

    def drop(self, what: str) -> None:
        """Remove the pages that a write makes stale."""
        stays = {path: kept for path, kept in self.store.items() if self.forgets(path, what)}
        self.purged |= {path: kept for path, kept in self.store.items() if path not in stays}
        self.store = stays

    def fill(self) -> None:
        """The store is full from now on."""
        self.full = True
        if "full-brings-back" in self.wrong:
            self.store = self.purged

    def is_gone(self, path: str) -> bool:
        """Whether the page of a row is 404 now."""
        found = re.fullmatch(r"/posts/(\d+)00/|/authors/(\d+)/", path)
        return bool(found and not self.rows.get(int(found[1] or found[2]), {}).get("title" if found[1] else "name"))

    def forgets(self, path: str, what: str) -> bool:
        """Whether the layer forgets to purge a page that a write made stale."""
        return (
            ("forgets-home" in self.wrong and path == "/")
            or ("forgets-names" in self.wrong and what == "rename" and path.startswith("/posts/"))
            or ("forgets-posts" in self.wrong and what == "remove" and path.endswith("00/"))
        )


def words() -> str:
    return f"probe-{secrets.token_hex(8)}"


class WritesHandler(LayerHandler):
    """One connection to it."""

    stub: FakeWrites
    generation = 0

    def route(self, path: str) -> None:
        stub, wrong = self.stub, self.stub.wrong
        if "breaks" in wrong and "/slow/" in path:
            self.html(500, stub.not_found())
            return
        if not stub.service_up and "breaks-without-service" in wrong and self.command == "GET":
            self.html(500, stub.not_found())
            return
        if stub.disk_full and "full-disk-breaks" in wrong and path.startswith("/probe/page/"):
            self.hang_up()
            return
        if stub.hangs and "waits-for-service" in wrong and self.command == "GET":
            time.sleep(LONG_S)
        if "waits-for-the-dead" in wrong and path.startswith("/probe/page/") and stub.killed:
            time.sleep(LONG_S)
        self.generation = stub.generation
        if "uncacheable-wait" in wrong and path.startswith("/probe/odd/private/"):
            # Each waits for the rendering of the one before.
            with stub.lock:
                time.sleep(UNCACHEABLE_S)
        waits = "each-renders" not in wrong and not ("slow-render-each" in wrong and "/slow/300/" in path)
        if self.command == "GET" and self.may_be_answered() and waits and "/slow/" in path:
            # One of many requests at once renders; the others find its page in the cache.
            with stub.lock:
                super().route(path)
        elif not (self.command == "GET" and self.key() not in self.stub.store and self.row_page(path)):
            super().route(path)

    def key(self) -> str:
        key = super().key()
        return key.partition("%")[0].rstrip("/") + "/" if "cuts-keys" in self.stub.wrong else key

    def may_be_answered(self) -> bool:
        key = self.key()
        now = time.monotonic()
        age_s = now - self.stub.kept_at.get(key, now)
        stays = "never-expires" in self.stub.wrong or (
            "keeps-what-is-gone" in self.stub.wrong and self.stub.is_gone(key)
        )
        if age_s > self.stub.ttl_s and not stays:
            self.stub.store.pop(key, None)
        return super().may_be_answered()

    def as_kept(self, status, body, kind, headers):
        if "tears" in self.stub.wrong and len(body) > LARGE:
            body = body[: len(body) // 2]
        return super().as_kept(status, body, kind, headers)

    def may_be_stored(self, status, kind, headers) -> bool:
        keeps_late = "full-keeps-late" if self.stub.full else "keeps-late"
        late = self.generation != self.stub.generation and keeps_late not in self.stub.wrong
        keeps = self.stub.service_up and not self.stub.disk_full and self.stub.hits_return and not late
        may = keeps and super().may_be_stored(status, kind, headers)
        if may:
            self.stub.kept_at[self.key()] = time.monotonic()
        return may

    def send(self, status, body, kind, headers=(), *, whole=True) -> None:
        content = body.encode() if isinstance(body, str) else body
        if self.may_be_stored(status, kind, {name.lower(): value for name, value in headers}):
            self.keep_file(self.key(), content)
        elif self.stub.disk_full and "full-disk-leaves" in self.stub.wrong:
            (self.stub.files / f".{secrets.token_hex(8)}").touch()
        super().send(status, body, kind, headers, whole=whole)

    def keep_file(self, key: str, body: bytes) -> None:
        """Store a page as a layer with files does."""
        wrong, name = self.stub.wrong, key.strip("/").replace("/", "-")[-100:] or "home"
        if "hoards" in wrong:
            name += secrets.token_hex(4)
        folder = self.stub.files / "pages"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777 if "open-folders" in wrong else 0o755)
        path = folder / name
        # One at a time: of many temporary files at once the store would be too large.
        with self.stub.files_lock:
            new = folder / f".{secrets.token_hex(8)}"
            new.write_bytes(body[: len(body) // 2] if "leaves-halves" in wrong else body)
            new.chmod(0o666 if "open-files" in wrong else 0o644)
            new.replace(path)
        if "hoards" not in wrong and "leaves-halves" not in wrong:
            self.stub.later(self.stub.ttl_s, lambda: path.unlink(missing_ok=True))

    # ------------------------------------------------------------------ pages

    def post(self, path: str) -> None:
        self.probe(path) if path.startswith("/probe/") else super().post(path)

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
        if "gated" in more and number in self.stub.gates:
            if "late-gets-old" in self.stub.wrong:
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

    def row_page(self, path: str) -> bool:
        """Answer with the page of a probe's row; False when there is no such row."""
        found = re.fullmatch(r"/(authors)/(\d+)/", path) or re.fullmatch(r"/(posts)/(\d+)00/", path)
        row = self.stub.rows.get(int(found[2])) if found else None
        if not row:
            return False
        state = self.stub.state(int(found[2]))
        if found[1] == "posts" and not row["title"]:
            self.html(404, self.stub.not_found())
        else:
            shown = " ".join(str(value) for value in state.values())
            self.html(200, self.stub.frame(f"<p>{shown}</p><b>{self.user}</b>"), [("Vary", "Cookie")])
        return True


class FakeRunning:
    """The parts of a deployment that the checks use."""

    def __init__(self, stub: FakeWrites, url: str, composition: object, pids: dict[str, int]):
        self.stub, self.url, self.composition, self.pids = stub, url, composition, pids
        self.env = {"FAKE_URL": url}
        self.store: Path = stub.files
        self.ready_s = 0.0
        stub.workers = lambda: [child.pid for pid in pids.values() for child in psutil.Process(pid).children()]

    @contextlib.contextmanager
    def again(self, changes: dict):
        self.stub.ttl_s = changes.get("cache_seconds", self.stub.ttl_s)
        yield self

    @contextlib.contextmanager
    def on_small_disk(self):
        self.stub.store = {}
        yield FakeDisk(self.stub)
        self.stub.hits_return = True

    def restart(self, name: str) -> None:
        self.stub.store = self.stub.purged if "restart-brings-back" in self.stub.wrong else {}

    @contextlib.contextmanager
    def without_service(self, name: str):
        self.stub.service_up, self.stub.store = False, {}
        try:
            yield
        finally:
            self.stub.service_up = True
            self.stub.hits_return = "no-hits-after" not in self.stub.wrong

    @contextlib.contextmanager
    def hung_service(self, name: str):
        held = self.stub.store
        with self.without_service(name):
            self.stub.hangs = True
            yield
        self.stub.hangs = False
        if "forgets-what-it-was-not-told" in self.stub.wrong:
            self.stub.store = held


class FakeDisk:
    """The disk under the store of the fake layer."""

    def __init__(self, stub: FakeWrites):
        self.stub = stub

    def fill(self) -> None:
        self.stub.disk_full = True

    fill_names = fill

    def free(self) -> None:
        self.stub.disk_full = False
        self.stub.hits_return = "full-disk-forever" not in self.stub.wrong
