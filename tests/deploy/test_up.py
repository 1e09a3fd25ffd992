"""`bench up` as a user runs it: it says ready, serves, and leaves nothing behind."""

from __future__ import annotations

import signal

import httpx
import pytest

from bench.machine.supervise import Address
from tests.deploy.running import Up, alive, client_of, closed, command, get, idle_connection, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers


def test_up_says_ready_and_leaves_nothing_behind(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi", "--database", site_url) as up:
        assert up.line == f"ready {up.url}\n"
        assert up.url.startswith("http://127.0.0.1:")
        assert get(up.url + "posts/").status_code == 200
        tree = up.tree()
        assert len(tree) >= 4, "two masters, two workers"
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(timeout=60) == 0
        assert alive(tree) == []
        assert closed(up.url)


def test_two_stacks_are_up_at_once_on_a_port_each(site_url):
    runnable("nginx-gunicorn")
    with Up("gunicorn", "--database", site_url) as one, Up("nginx-gunicorn", "--database", site_url) as other:
        assert one.url != other.url
        port = str(httpx.URL(one.url).port)
        done = command("-m", "bench", "up", "gunicorn", "--database", site_url, "--port", port)
        assert done.returncode == 2
        assert f"port {port} is in use; name another with --port or leave it out" in done.stderr
        for url in (one.url, other.url):
            assert get(url).status_code == 200


def test_the_next_command_cleans_up_after_a_killed_up(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi", "--database", site_url) as up:
        tree = up.tree()
        up.process.kill()
        up.process.wait()
        with Up("gunicorn", "--database", site_url) as other:
            assert get(other.url).status_code == 200
        until(lambda: alive(tree) == [], "all that the killed one left is gone")
        assert closed(up.url)


def test_up_ends_when_a_server_ends(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi", "--database", site_url) as up:
        master = next(item for item in up.tree() if "master process" in " ".join(item.cmdline()))
        master.kill()
        assert up.process.wait(timeout=60) == 2
        assert "was killed by SIGKILL" in up.process.stderr.read()
        assert closed(up.url)


def test_processes_and_site_environment_come_from_the_command_line(site_url):
    with Up(
        "gunicorn", "--database", site_url, "--set", "processes=2", "--env", "ALLOWED_HOSTS=127.0.0.1,other.test"
    ) as up:
        assert get(up.url, headers={"Host": "other.test"}).status_code == 200
        # The first worker answers before the second one is there.
        master = up.tree()[0]
        until(lambda: len(master.children()) == 2, "gunicorn has two workers")


def test_tls_is_a_setting_of_a_variant(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi@listener=tls", "--database", site_url) as up:
        assert up.url.startswith("https://127.0.0.1:")
        answer = get(up.url + "posts")
        assert answer.headers["Location"] == "/posts/"


def test_granian_closes_an_idle_connection_when_the_others_do(site_url):
    with Up("granian", "--database", site_url, "--set", "client_keepalive_s=1") as up:
        url = httpx.URL(up.url)
        with idle_connection(Address(url.host, url.port)) as idle:
            # By itself it would take 30 s.
            idle.settimeout(20)
            assert idle.recv(1) == b""


def test_pages_on_disk_are_no_older_than_the_time_to_live(site_url):
    runnable("nginx-gunicorn", "staticgenerator")
    words = ["nginx-gunicorn", "--layer", "staticgenerator", "--database", site_url, "--set", "cache_seconds=1"]
    with Up(*words) as up, client_of(up.url) as client:
        assert "X-Render-Id" in client.get("/posts/").headers
        assert "X-Render-Id" not in client.get("/posts/").headers, "the second answer is the file"
        until(lambda: "X-Render-Id" in client.get("/posts/").headers, "the file is gone after its time to live")
