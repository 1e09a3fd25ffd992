"""`benchapp up` as a user runs it: it says ready, serves, and leaves nothing behind."""

from __future__ import annotations

import signal

import httpx2
import pytest

from bench.serve.machine.supervise import Address
from tests.deploy.running import Up, alive, client_of, closed, command, get, idle_connection, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers


def test_two_stacks_are_up_at_once_on_a_port_each_and_leave_nothing_behind(site_url):
    runnable("nginx-gunicorn")
    own = ("--set", "processes=2", "--env", "ALLOWED_HOSTS=127.0.0.1,other.test")
    with Up("gunicorn", "--database", site_url, *own) as one, Up("nginx-gunicorn", "--database", site_url) as other:
        assert [up.line for up in (one, other)] == [f"ready {up.url}\n" for up in (one, other)]
        assert other.url.startswith("http://127.0.0.1:") and one.url != other.url
        port = str(httpx2.URL(one.url).port)
        done = command("-m", "bench", "up", "gunicorn", "--database", site_url, "--port", port)
        assert done.returncode == 2
        assert f"port {port} is in use; name another with --port or leave it out" in done.stderr
        assert get(one.url, headers={"Host": "other.test"}).status_code == 200
        # The first worker responds before the second one is there.
        master = one.tree()[0]
        until(lambda: len(master.children()) == 2, "gunicorn has two workers")
        assert get(other.url + "posts/").status_code == 200
        tree = other.tree()
        assert len(tree) >= 4, "two masters, two workers"
        other.process.send_signal(signal.SIGTERM)
        assert other.process.wait(timeout=60) == 0
        assert alive(tree) == []
        assert closed(other.url)
        assert get(one.url).status_code == 200


def test_tls_is_a_setting_of_a_variant_and_up_ends_when_a_server_ends(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi@listener=tls", "--database", site_url) as up:
        assert up.url.startswith("https://127.0.0.1:")
        assert get(up.url + "posts").headers["Location"] == "/posts/"
        next(item for item in up.tree() if "master process" in " ".join(item.cmdline())).kill()
        assert up.process.wait(timeout=60) == 2
        assert "was killed by SIGKILL" in up.process.stderr.read()
        assert closed(up.url)


def test_granian_closes_an_idle_connection_when_the_others_do(site_url):
    with Up("granian", "--database", site_url, "--set", "client_keepalive_s=1") as up:
        url = httpx2.URL(up.url)
        with idle_connection(Address(url.host, url.port)) as idle:
            # By itself it would take 30 s.
            idle.settimeout(20)
            assert idle.recv(1) == b""


def test_pages_on_disk_are_no_older_than_the_time_to_live(site_url):
    runnable("nginx-gunicorn", "staticgenerator")
    words = ["nginx-gunicorn", "--layer", "staticgenerator", "--database", site_url, "--set", "cache_seconds=1"]
    with Up(*words) as up, client_of(up.url) as client:
        assert "X-Render-Id" in client.get("/posts/").headers
        assert "X-Render-Id" not in client.get("/posts/").headers, "the second response is the file"
        until(lambda: "X-Render-Id" in client.get("/posts/").headers, "the file is gone after its time to live")
