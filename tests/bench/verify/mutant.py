"""The real site as a deployment in a test: mutant_server.py in a separate process, and its commands."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from bench import paths
from bench.errors import DeploymentError
from bench.serve.deployment.case import Case
from bench.serve.machine.ports import free_port
from bench.serve.project import commands
from bench.serve.project.description import read
from bench.serve.project.run_command import INHERITED, Interpreter
from bench.verify import site as sites
from bench.verify.in_process import ExpectedPage
from bench.verify.site import Account, Site
from tests.bench.verify.mutant_server import CONTROL
from tests.cases import kit
from tests.waiting import until

ROWS = 2000
READY_S = 60
TRIES = 20


def environment(folder: Path) -> dict[str, str]:
    """The site's environment, with its probes, on a database and static files in this folder."""
    own = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return own | {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": f"sqlite:///{folder}/site.sqlite3",
        "BENCHAPP_STATIC_ROOT": str(folder / "static"),
        "BENCHAPP_PROBES": "1",
        "SECRET_KEY": "of-tests",
    }


def make(folder: Path) -> None:
    """Fill a database, and copy the static files of the kit's site: to compress them takes seconds."""
    folder.mkdir()
    commands.collect_static(kit(), kit().worker())
    shutil.copytree(kit().static_root, folder / "static")
    for command in (["migrate", "-v", "0"], ["loadfixtures", "--rows", str(ROWS)]):
        done = subprocess.run(
            [sys.executable, "manage.py", *command], cwd=paths.KIT, env=environment(folder), capture_output=True
        )
        assert done.returncode == 0, done.stderr.decode()


@dataclass(frozen=True)
class MutantSite(Site):
    """The site's expected pages and commands; its accounts are made once for all tests."""

    accounts: ClassVar[list[Account]] = []
    removed: ClassVar[list[list[str]]] = []
    on_write: Any = field(default=None, compare=False)

    def rendered_now(self, *paths: str, often: bool = False) -> dict[str, ExpectedPage]:
        """As at first: nobody else writes, and the command takes seconds."""
        return dict(self.pages) if often else super().rendered_now(*paths)

    def create_accounts(self, count: int, env: Any = None) -> list[Account]:
        if not self.accounts:
            self.accounts.extend(super().create_accounts(3, env))
        return self.accounts[:count]

    def remove_accounts(self, accounts: list[Account], env: Any = None) -> None:
        self.removed.append([account.username for account in accounts])

    def run_write(self, words: list[str], env: Any) -> None:
        super().run_write(words, env)
        if self.on_write:
            self.on_write()

    def write_row(self, author: int, what: str, env: Any) -> dict[str, Any]:
        written = super().write_row(author, what, env)
        if self.on_write:
            self.on_write()
        return written


def prepared(folder: Path) -> MutantSite:
    """The site with its expected pages."""
    static = folder / "static"
    description = read(paths.KIT).description
    place = (static, "/static/", Interpreter((), Path(sys.executable), paths.KIT / "manage.py"))
    site = MutantSite({}, {}, *place, environment(folder), description=description, may_write=True, is_copy=True)
    return sites.prepare(sites.with_urls(site))


class Mutant:
    """The server; `reset` gives it mutations by name."""

    def __init__(self, url: str, folder: Path, site_folder: Path, process: subprocess.Popen):
        self.url, self.folder, self.site_folder, self.process = url, folder, site_folder, process
        self.log = folder / "logs" / "site.log"

    def say(self, **changes: Any) -> dict[str, Any]:
        """Change the server; send again if its mutation is impatience, or its worker was killed."""
        request = urllib.request.Request(self.url + CONTROL, json.dumps(changes).encode())
        for _ in range(TRIES):
            with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)
            time.sleep(0.05)
        raise OSError("the mutant does not respond")

    def reset(self, *wrong: str, caches: bool = False) -> None:
        """Reset to these mutations, without leftover rows."""
        self.log.unlink(missing_ok=True)
        self.say(wrong=[name for name in wrong if name], caches=caches)

    @property
    def rows_left(self) -> int:
        return self.say()["rows"]


@contextlib.contextmanager
def started(argv: list[str], folder: Path, env: dict[str, str], log: Path, url: str) -> Iterator[subprocess.Popen]:
    """A server in a separate process, once it responds at the URL."""

    def responses() -> bool:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            assert process.poll() is None, log.read_text()
            return False
        return True

    with log.open("w") as output:
        process = subprocess.Popen(argv, cwd=folder, env=env, stdout=output, stderr=output)
    try:
        until(responses, log, READY_S)
        yield process
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def serving(site_folder: Path, folder: Path) -> Iterator[Mutant]:
    """The server on a copy of the site in `site_folder`."""
    site_folder = Path(shutil.copytree(site_folder, folder / "site"))
    (folder / "store").mkdir()
    (folder / "conf").mkdir()
    (folder / "logs").mkdir()
    (folder / "conf" / "server.conf").write_text("set req.http.X-Token-Cookie = req.http.Cookie;")
    port = free_port()
    argv = [sys.executable, "-m", "tests.bench.verify.mutant_server", str(port), str(folder)]
    url = f"http://127.0.0.1:{port}"
    with started(argv, paths.KIT, environment(site_folder), folder / "errors.log", f"{url}/") as process:
        mutant = Mutant(url, folder, site_folder, process)
        mutant.reset()
        yield mutant


class FakeRunning:
    """The deployment of the mutant: the parts that checks and commands use; a command gives its case."""

    def __init__(self, mutant: Mutant, threads: int = 8, case: Case | None = None):
        self.mutant, self.url, self.env = mutant, mutant.url, dict[str, str]()
        self.notes: list[str] = []
        self.store, self.ready_s, self.pids = mutant.folder / "store", 0.0, {"app": mutant.process.pid}
        self.logs = mutant.folder / "logs"
        self.layout = SimpleNamespace(conf=mutant.folder / "conf")
        self.case = case or SimpleNamespace(
            servers=(SimpleNamespace(name="app", prefix_headers=("X-Root-Path",)),),
            services=(SimpleNamespace(name="memory"),),
            threads=threads,
            web_server_has_static_files=True,
            settings={"cache_seconds": 60, "max_body_mb": 1, "server_names": "127.0.0.1 localhost"},
        )

    def died(self) -> DeploymentError | None:
        return None

    def empty_layer(self) -> None:
        """The mutant caches nothing across a reset."""

    def log_bytes(self) -> int:
        return self.mutant.log.stat().st_size if self.mutant.log.exists() else 0

    def entries(self) -> int:
        return 0

    @contextlib.contextmanager
    def again(self, changes: dict[str, Any], **env: str) -> Iterator[FakeRunning]:
        if "cache_seconds" in changes:
            self.mutant.say(ttl_s=changes["cache_seconds"])
        if "listener" in changes:
            self.mutant.say(behind=True)
        yield self

    @contextlib.contextmanager
    def beside(self) -> Iterator[FakeRunning]:
        yield self

    def restart(self, name: str) -> None:
        self.mutant.say(restart=True)

    @contextlib.contextmanager
    def without_service(self, name: str, how: str = "stopped") -> Iterator[None]:
        self.mutant.say(service=how)
        yield
        self.mutant.say(service="up")

    def hung(self, name: str) -> contextlib.AbstractContextManager[None]:
        return self.without_service(name, "hangs")

    @contextlib.contextmanager
    def on_small_disk(self) -> Iterator[SimpleNamespace]:
        fill = lambda: self.mutant.say(room=False)  # noqa: E731
        yield SimpleNamespace(fill=fill, fill_names=fill, free=lambda: self.mutant.say(room=True))
