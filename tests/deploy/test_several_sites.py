"""Two sites of one host behind the server in front that the page on several sites sets up."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from bench import paths
from bench.serve.machine import ports
from tests.deploy.running import Up, runnable
from tests.skips import needs
from tests.waiting import until

pytestmark = pytest.mark.servers

PAGE = (paths.KIT / "docs" / "how-to" / "several-sites.md").read_text("utf-8")
CADDYFILE = re.search(r"```\n   (shop\.example\.org \{.*?)```", PAGE, re.S)[1]
BEHIND = ("--set", "listener=behind", "--set", "trusted_proxies=127.0.0.1/32")
SITES = {"shop": ("nginx-gunicorn", 8100), "blog": ("granian", 8200)}


@contextmanager
def front(backends: dict[int, str]) -> Iterator[int]:
    """Caddy by the file of the page, with these backends for its ports; the port where it serves HTTPS."""
    port = ports.free_port()
    text = CADDYFILE
    for number, url in backends.items():
        text = text.replace(f"127.0.0.1:{number}", url.removeprefix("http://").rstrip("/"))
    text = re.sub(r"(?m)^ *(\w+\.example\.org) \{", r"\1 {\ntls internal", text)
    options = f"{{\nadmin off\nskip_install_trust\nauto_https disable_redirects\nhttps_port {port}\n}}\n"
    folder = Path(tempfile.mkdtemp(prefix="benchapp-front-", dir="/tmp"))
    (folder / "Caddyfile").write_text(options + text)
    argv = ["caddy", "run", "--adapter", "caddyfile", "--config", folder / "Caddyfile"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(argv, env={"HOME": str(folder), "PATH": "/usr/bin:/bin:/usr/local/bin"}, stderr=log)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


def status(port: int, name: str) -> int:
    """The status of the home page of a site, asked of the front by its name; 0 if there is no response."""
    url = f"https://{name}.example.org:{port}/login/"
    resolved = f"{name}.example.org:{port}:127.0.0.1"
    argv = ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20", "--resolve", resolved, url]
    return int(subprocess.run(argv, capture_output=True, text=True).stdout)


def test_one_front_serves_two_sites(site_url):
    needs("caddy")
    with ExitStack() as running:
        backends = {}
        for name, (stack, number) in SITES.items():
            runnable(stack)
            names = ["127.0.0.1", f"{name}.example.org"]
            of_site = ("--set", f"server_names={' '.join(names)}", "--env", f"ALLOWED_HOSTS={','.join(names)}")
            https = ("--env", "BENCHAPP_HTTPS=1")
            up = running.enter_context(Up(stack, "--database", site_url, *BEHIND, *of_site, *https))
            assert up.url, up.process.stderr.read()
            backends[number] = up.url
        port = running.enter_context(front(backends))
        until(lambda: status(port, "shop") == 200, "the front serves the first site")
        assert status(port, "blog") == 200
        # What it was not told is that the client came over HTTPS: the site sends it there, or refuses the name.
        assert httpx2.get(f"{backends[8100]}login/", headers={"Host": "shop.example.org"}).status_code in (301, 308)
        assert httpx2.get(f"{backends[8100]}login/", headers={"Host": "blog.example.org"}).status_code >= 400
