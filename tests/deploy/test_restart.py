"""`benchapp up --restart`: what dies is started again as under its unit, and the site goes on."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.deploy.running import Up, alive, closed, get, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers


class KeepGoing(Up):
    """`benchapp up --restart`, and every line that it has written to its standard error."""

    def __init__(self, *words: str):
        super().__init__(*words, "--restart")
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line)

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=60)
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def main_of(self, words: str) -> psutil.Process:
        """The process of a server nearest to `up` whose command has these words."""
        return next(item for item in self.tree() if words in " ".join(item.cmdline()))

    def says(self, *lines: str) -> None:
        for line in lines:
            until(lambda line=line: any(line in printed for printed in self.lines), f"{line} in {self.lines}")

    def serves(self, path: str = "posts/") -> None:
        until(lambda: self._status(path) == 200, f"{path} is served; {self.lines}")

    def _status(self, path: str) -> int | None:
        try:
            return get(self.url + path).status_code
        except httpx2.HTTPError:
            return None


def test_what_is_killed_is_started_again(site_url):
    runnable("nginx-gunicorn")
    with KeepGoing("nginx-gunicorn", "--database", site_url) as up:
        up.serves()
        before = up.tree()
        a_worker_is_the_business_of_its_master(up)
        for server, words in (("nginx", "master process"), ("gunicorn", "bin/gunicorn")):
            up.main_of(words).kill()
            up.says(f"benchapp up: {server} was killed by SIGKILL", f"benchapp up: {server} was started again")
            up.serves()
        is_tried_again_until_it_can_come_back(up)
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(timeout=60) == 0
        assert alive(before) == []
        assert closed(up.url)
        assert not any("Traceback" in line for line in up.lines)


def a_worker_is_the_business_of_its_master(up: KeepGoing) -> None:
    master = up.main_of("bin/gunicorn")
    worker = master.children()[0]
    worker.kill()
    until(lambda: not worker.is_running(), "it is gone")
    up.serves()
    assert master.is_running()
    assert not any("started again" in line for line in up.lines)


def is_tried_again_until_it_can_come_back(up: KeepGoing) -> None:
    """Its configuration is wrong: nginx fails for as long as it is."""
    main = up.main_of("master process")
    config = Path(next(word for word in " ".join(main.cmdline()).split() if word.endswith("nginx.conf")))
    text = config.read_text("utf-8")
    config.write_text("no such directive;\n" + text, "utf-8")
    main.kill()
    # It has died once before.
    up.says("unknown directive", "nginx was started again, for the 3rd time")
    config.write_text(text, "utf-8")
    up.serves()


def test_the_death_of_a_caching_service_does_not_end_the_site(site_url):
    runnable("nginx-uwsgi", "nginx-memcached")
    with KeepGoing("nginx-uwsgi", "--layer", "nginx-memcached", "--database", site_url) as up:
        up.serves()
        up.main_of("memcached").kill()
        up.serves()
        up.says("memcached was killed by SIGKILL", "memcached was started again")
        up.serves()
        tree = up.tree()
    assert up.process.returncode == 0
    assert alive(tree) == []
