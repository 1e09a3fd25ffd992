"""The fake site and layer with rows that a probe writes, slow pages, and the answers of the advisories' probes.

`FakeWrites.wrong` holds the names of its mistakes; test_writes.py says which check must notice which.
"""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.verify.fake_http import HttpHandler
from tests.bench.verify.fake_layer import FakeLayer
from tests.bench.verify.fake_probes import LARGE, ProbeHandler

# The longest wait at a gate that nobody opens.
GATE_S = 15.0
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
        self.gate_opened = float("-inf")
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
        texts = "".join(f"<p>{value}</p>" for value in [self.totals(), *words])
        return f"{super().page(path, user, cookie)}{texts}</html>"

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
            "probe_page": f"/__probe__/author/{pk}/",
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


class WritesHandler(ProbeHandler):
    """One connection to it."""

    generation = 0

    def route(self, path: str) -> None:
        stub, wrong = self.stub, self.stub.wrong
        if "breaks" in wrong and "/slow/" in path:
            self.html(500, stub.not_found())
            return
        if not stub.service_up and "breaks-without-service" in wrong and self.command == "GET":
            self.html(500, stub.not_found())
            return
        if stub.disk_full and "full-disk-breaks" in wrong and path.startswith("/__probe__/page/"):
            self.hang_up()
            return
        if stub.hangs and "waits-for-service" in wrong and self.command == "GET":
            time.sleep(LONG_S)
        if "waits-for-the-dead" in wrong and path.startswith("/__probe__/page/") and stub.killed:
            time.sleep(LONG_S)
        self.generation = stub.generation
        if "uncacheable-wait" in wrong and path.startswith("/__probe__/odd/private/"):
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
        # The short time to live of one check is that of all: on a busy machine many clients may take longer.
        if age_s > self.stub.ttl_s and not stays and "/slow/" not in key:
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
