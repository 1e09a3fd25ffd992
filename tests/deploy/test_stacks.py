"""Every folder of deploy/stacks, on real ports: its files pass its servers' tests, it serves right answers, it goes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import httpx
import psutil
import pytest

from bench import paths
from bench.catalog import catalog, compose
from bench.catalog.compose import Skip
from bench.errors import BenchError
from bench.host.identity import worker
from bench.host.supervise import Address
from bench.project import commands
from bench.results.records import Outcome
from bench.serve import config_check, deployment, export
from bench.verify import Verifier
from tests.deploy.conftest import command

STACKS = list(catalog.read().stacks)
LAYERS = list(catalog.read().layers)
PAIRS = [
    (stack, layer)
    for stack in STACKS
    for layer in LAYERS
    if not compose.misfit(catalog.read().stacks[stack], catalog.read().layers[layer])
]

# Each layer once on a stack that it fits, the usual one if it can be, and layers that are laid over each other.
LAYERED = list({layer: (stack, layer) for stack, layer in PAIRS if layer != "none"}.values())
LAYERED = [("nginx-uwsgi", layer) if ("nginx-uwsgi", layer) in PAIRS else (stack, layer) for stack, layer in LAYERED]
LAYERED += [("nginx-uwsgi", "fragments+varnish"), ("nginx-uwsgi", "fragments+nginx-microcache")]
# The checks that take seconds are made once, of a layer with a service that can stop.
FULL = ("nginx-uwsgi", "nginx-memcached")
# Layers whose stale pages a write invalidates.
INVALIDATED = [
    (stack, layer) for stack, layer in LAYERED if layer in LAYERS and catalog.read().layers[layer].invalidation
]


def runnable(stack: str, layer: str = "none") -> None:
    """Skip the test when a program that it needs is not installed, naming it."""
    composed = compose.compose(stack, layer)
    if isinstance(composed, Skip):
        pytest.skip(composed.reason)


@pytest.mark.servers
@pytest.mark.parametrize(("stack", "layer"), PAIRS)
def test_the_servers_accept_their_files(stack, layer):
    runnable(stack, layer)
    findings = config_check.check(catalog.read().stacks[stack], catalog.read().layers[layer])
    assert [finding for finding in findings if finding.problem] == []


@pytest.mark.servers
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_gives_the_right_answers(stack, site_url, verifier):
    runnable(stack)
    assert wrong_answers(verifier, stack, "none", site_url) == []


def wrong_answers(verifier: Verifier, stack: str, layer: str, database: str) -> list[Outcome]:
    """The checks that fail on a deployment of the stack with the layer."""
    with deployment.deployed(compose.must_compose(stack, layer), database=database) as running:
        outcomes = verifier.verify(running)
        assert running.died() is None
    assert outcomes
    return [item for item in outcomes if not item.ok]


@pytest.mark.servers
def test_the_answers_are_right_on_postgresql_too(postgresql_url):
    runnable("nginx-uwsgi")
    for words in (["migrate", "--verbosity", "0"], ["loadfixtures", "--rows", "2000"]):
        done = command("manage.py", *words, database=postgresql_url)
        assert done.returncode == 0, done.stderr
    done = command("-m", "bench", "verify", "nginx-uwsgi", "--layer", "none", "--database", postgresql_url, "--json")
    problems = [item for item in json.loads(done.stdout or "{}").get("outcomes", []) if not item["ok"]]
    assert (problems, done.returncode) == ([], 0), done.stderr


@pytest.mark.servers
@pytest.mark.parametrize(("stack", "layer"), [pair for pair in LAYERED if pair != FULL])
def test_a_layer_gives_the_right_answers(stack, layer, site_url, verifier):
    runnable(stack, layer)
    assert wrong_answers(verifier, stack, layer, site_url) == []


@pytest.mark.servers
def test_a_layer_passes_the_thorough_checks_too(site_url):
    stack, layer = FULL
    runnable(stack, layer)
    done = command("-m", "bench", "verify", stack, "--layer", layer, "--database", site_url, "--json")
    problems = [item for item in json.loads(done.stdout or "{}").get("outcomes", []) if not item["ok"]]
    assert (problems, done.returncode) == ([], 0), done.stderr


@pytest.mark.servers
@pytest.mark.parametrize(("stack", "layer"), INVALIDATED)
def test_a_layer_that_a_write_invalidates_shows_a_comment_soon(stack, layer, site_url):
    runnable(stack, layer)
    with deployment.deployed(compose.must_compose(stack, layer), database=site_url) as running:
        made = json.loads(commands.manage(["verifyaccount", "create"], site_url, worker()).splitlines()[-1])
        (account,) = made["accounts"]
        try:
            with httpx.Client(base_url=running.url) as visitor:
                values = {**account, "csrfmiddlewaretoken": token(visitor.get("/login/"))}
                assert visitor.post("/login/", data=values).status_code == 302
                for path in ("/", "/comments/", "/comments/page/2/"):
                    kept = [httpx.get(running.url + path) for _ in range(2)][1]
                    assert "fresh words" not in kept.text
                values = {"csrfmiddlewaretoken": token(visitor.get("/posts/1/")), "body": "fresh words", "rating": "3"}
                assert visitor.post("/posts/1/comment/", data=values).status_code == 302
            # Long before the time to live is up; a web server may keep a file open for a second.
            deadline = time.monotonic() + 5
            for path in ("/", "/comments/"):
                while "fresh words" not in httpx.get(running.url + path).text:
                    assert time.monotonic() < deadline, f"{path} is stale"
                    time.sleep(0.05)
        finally:
            commands.manage(["verifyaccount", "delete", account["username"], "--post", "1"], site_url, worker())


def token(answer: httpx.Response) -> str:
    return re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.text)[1]


class Up:
    """`bench up`, started as a user would and stopped in the end."""

    def __init__(self, *words: str):
        argv = [sys.executable, "-m", "bench", "up", *words]
        self.process = subprocess.Popen(
            argv, cwd=paths.PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
        )
        self.line = self.process.stdout.readline()

    @property
    def url(self) -> str:
        return self.line.removeprefix("ready ").strip()

    def tree(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=20)


def alive(processes) -> list[psutil.Process]:
    return [item for item in processes if item.is_running() and item.status() != psutil.STATUS_ZOMBIE]


def until(holds: Callable[[], bool], what: str, limit_s: float = 20) -> None:
    """Wait until it holds; fails, saying what was waited for, when it does not within the limit."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"not so after {limit_s:g} s: {what}"
        time.sleep(0.05)


def closed(url: str) -> bool:
    parts = httpx.URL(url)
    return not Address(parts.host, parts.port).accepts()


@pytest.mark.servers
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_up_says_ready_and_leaves_nothing_behind(signum, site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi", "--database", site_url) as up:
        assert up.line == f"ready {up.url}\n"
        assert up.url.startswith("http://127.0.0.1:")
        assert httpx.get(up.url + "posts/").status_code == 200
        tree = up.tree()
        assert len(tree) > 4
        up.process.send_signal(signum)
        assert up.process.wait(timeout=20) == 0
        assert alive(tree) == []
        assert closed(up.url)


@pytest.mark.servers
def test_two_stacks_are_up_at_once(site_url):
    runnable("nginx-gunicorn")
    with Up("gunicorn", "--database", site_url) as one, Up("nginx-gunicorn", "--database", site_url) as other:
        assert one.url != other.url
        for url in (one.url, other.url):
            assert httpx.get(url).status_code == 200


@pytest.mark.servers
def test_what_a_killed_up_leaves_is_cleaned_up_by_the_next(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi", "--database", site_url) as up:
        tree = up.tree()
        up.process.kill()
        up.process.wait()
        with Up("gunicorn", "--database", site_url) as other:
            assert httpx.get(other.url).status_code == 200
        until(lambda: alive(tree) == [], "all that the killed one left is gone")
        assert closed(up.url)


@pytest.mark.servers
def test_up_ends_when_a_server_ends(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi", "--database", site_url) as up:
        master = next(item for item in up.tree() if "master process" in " ".join(item.cmdline()))
        master.kill()
        assert up.process.wait(timeout=20) == 2
        assert "was killed by SIGKILL" in up.process.stderr.read()
        assert closed(up.url)


@pytest.mark.servers
def test_a_port_in_use_is_told(site_url):
    with Up("gunicorn", "--database", site_url) as up:
        port = str(httpx.URL(up.url).port)
        done = command("-m", "bench", "up", "gunicorn", "--database", site_url, "--port", port)
        assert done.returncode == 2
        assert f"port {port} is in use; name another with --port or leave it out" in done.stderr


@pytest.mark.servers
def test_processes_and_site_environment_come_from_the_command_line(site_url):
    with Up(
        "gunicorn", "--database", site_url, "--set", "processes=2", "--env", "ALLOWED_HOSTS=127.0.0.1,other.test"
    ) as up:
        assert httpx.get(up.url, headers={"Host": "other.test"}).status_code == 200
        # The first worker answers before the second one is there.
        master = up.tree()[0]
        until(lambda: len(master.children()) == 2, "gunicorn has two workers")


@pytest.mark.servers
@pytest.mark.parametrize("words", [["nginx-uwsgi", "--set", "listener=tls"], ["nginx-uwsgi@listener=tls"]], ids=str)
def test_tls_is_a_setting_and_a_variant(site_url, words):
    runnable("nginx-uwsgi")
    with Up(*words, "--database", site_url) as up:
        assert up.url.startswith("https://127.0.0.1:")
        answer = httpx.get(up.url + "posts", verify=False)
        assert answer.headers["Location"] == "/posts/"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["up", "nosuch"], "bench up: no stack called 'nosuch'; there are: "),
        (["up", "gunicorn", "--layer", "fragmets"], "bench up: no layer called 'fragmets'; did you mean fragments?"),
        (["up", "gunicorn", "--size", "goldd"], "bench up: --size goldd: no such size; did you mean gold?"),
        (["up", "gunicorn", "--port", "0"], "argument --port: '0' is no port; use a number from 1 to 65535"),
        (
            ["up", "gunicorn", "--set", "workers=3"],
            "bench up: --set workers: no such value; deploy/values/bench.toml has",
        ),
        (["up", "gunicorn", "--set", "processes"], "--set processes: write it as NAME=VALUE"),
        (
            ["up", "gunicorn", "--env", "ALLOWED_HOSTS=other.test"],
            "--env ALLOWED_HOSTS=other.test: the instrument requests the site as 127.0.0.1; write ALLOWED_HOSTS=",
        ),
        (["up", "gunicorn", "--env", "DEBUG"], "--env DEBUG: write it as NAME=VALUE, for example --env DEBUG=1"),
        (["up", "gunicorn", "--database", "oracle"], "--database oracle: use sqlite, postgresql or a URL"),
        (
            ["up", "gunicorn", "--database", "oracle://user:secret@host/name"],
            "bench up: DATABASE_URL: 'oracle' is not a database of this site: use sqlite:///FILE or postgresql://",
        ),
        (
            ["up", "gunicorn", "--database", "postgresql://user:secret@127.0.0.1:1/name"],
            "bench up: PostgreSQL database name at 127.0.0.1:1: connection to server",
        ),
        (["up", "gunicorn", "--database", "postgresql://["], "--database: not a readable URL; write postgresql:"),
        (["up", "gunicorn", "--env", "DEBUG=perhaps"], "bench up: DEBUG='perhaps' is not a switch: use 1 or 0"),
        (
            ["up", "gunicorn", "--database", "sqlite:////nowhere/x"],
            "/nowhere/x: no such database; run ./manage.py migrate",
        ),
        (
            ["up", "gunicorn", "--layer", "staticgenerator"],
            "cannot run here: staticgenerator needs apache or cherokee or lighttpd or nginx in the chain",
        ),
        (["up", "gunicorn", "--set", "listener=tls"], "gunicorn: gunicorn has no TLS listener; use listener=plain"),
        (["render", "gunicorn", "--to", "bench"], "/bench: not empty; name a new or empty directory"),
        (["render", "gunicorn", "--to", "Makefile"], "/Makefile: is a file; name a new or empty directory"),
        (["render", "gunicorn", "--to", "/tmp/x", "--values", "nosuch"], "no values called 'nosuch' in deploy/values"),
        (["render", "gunicorn", "--to", "/tmp/x", "--values", "../values/bench"], "no values called '../values/bench'"),
        (["frobnicate"], "python -m bench: argument COMMAND: invalid choice: 'frobnicate'"),
    ],
)
def test_bad_input_is_told_in_one_line(words, says):
    done = command("-m", "bench", *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr
    assert done.stdout == ""


def test_list_says_what_fits_and_why_not():
    done = command("-m", "bench", "list", "--json")
    listing = json.loads(done.stdout)
    assert listing["stacks"].keys() == set(STACKS)
    assert listing["layers"].keys() == set(LAYERS)
    assert listing["fits"]["gunicorn"]["none"] is None
    assert "it has no snippet for another server" in listing["fits"]["gunicorn"]["staticgenerator"]
    text = command("-m", "bench", "list").stdout
    assert all(name in text for name in [*STACKS, *LAYERS])


@pytest.mark.parametrize("stack", STACKS)
def test_production_files_do_not_mention_the_instrument(stack, tmp_path):
    layer = "fragments"
    written = export.write(
        compose.compose_for_files(stack, layer, catalog.read().values["production"]), tmp_path / "out"
    )
    names = {str(path.relative_to(tmp_path / "out")) for path in written}
    assert {"site.env", "INSTALL.md", "logrotate.conf", "systemd/benchapp.target"} <= names
    for server in catalog.read().stacks[stack].servers:
        assert f"systemd/benchapp-{server.name}.service" in names
    for path in written:
        text = path.read_text("utf-8")
        assert not re.search(r"\bbench\b|benchmark|`verify`", text), f"{path} mentions the instrument"
        assert str(paths.PROJECT) not in text, f"{path} names this checkout"
        assert str(paths.VENV) not in text, f"{path} names this virtual environment"
        assert "127.0.0.1:0" not in text


def test_rendering_for_this_machine_writes_what_up_uses(tmp_path):
    done = command("-m", "bench", "render", "nginx-uwsgi", "--to", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "out" / "conf" / "nginx.conf") in done.stdout.splitlines()
    assert os.environ.get("HOME", "/root") not in (tmp_path / "out" / "conf" / "nginx.conf").read_text()


@pytest.mark.servers
@pytest.mark.parametrize(("stack", "inner"), [("nginx-apache-modwsgi", "apache"), ("nginx-cherrypy", "cheroot")])
def test_kept_connections_behind_nginx_are_not_closed_under_it(stack, inner, site_url, tmp_path):
    runnable(stack)
    composed = compose.must_compose(stack, changes={"client_keepalive_s": 1})
    with (
        deployment.deployed(composed, database=site_url, run_dir=tmp_path / "run") as running,
        idle_connection(running.chain.wiring.listens[inner][0]) as idle,
        pytest.raises(TimeoutError),
    ):
        # Clients' idle connections are closed after a second.
        idle.settimeout(3)
        assert idle.recv(1) != b"", "closed"


@pytest.mark.servers
def test_granian_closes_an_idle_connection_when_the_others_do(site_url):
    with Up("granian", "--database", site_url, "--set", "client_keepalive_s=1") as up:
        url = httpx.URL(up.url)
        with idle_connection(Address(url.host, url.port)) as idle:
            # By itself it would take 30 s.
            idle.settimeout(20)
            assert idle.recv(1) == b""


@contextlib.contextmanager
def idle_connection(address: Address):
    """A connection on which a request was answered."""
    family = socket.AF_UNIX if address.path else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as opened:
        opened.settimeout(20)
        opened.connect(address.path or (address.host, address.port))
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = http.client.HTTPResponse(opened)
        answer.begin()
        answer.read()
        assert answer.status == 200
        yield opened


def test_files_that_cannot_be_rendered_leave_the_directory_as_it_was(tmp_path, monkeypatch, tmp_path_factory):
    # The server's own file comes first and can be written; the install note cannot.
    host_files = tmp_path_factory.mktemp("host")
    (host_files / "INSTALL.md").write_text("{{ nosuch }}")
    monkeypatch.setattr(export, "HOST", host_files)
    composition = compose.compose_for_files("gunicorn", "none", catalog.read().values["production"])
    for folder in (tmp_path / "new", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(BenchError):
            export.write(composition, folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


@pytest.mark.servers
def test_pages_on_disk_are_no_older_than_the_time_to_live(site_url):
    runnable("nginx-gunicorn", "staticgenerator")
    words = ["nginx-gunicorn", "--layer", "staticgenerator", "--database", site_url, "--set", "cache_seconds=1"]
    with Up(*words) as up, httpx.Client(base_url=up.url) as client:
        assert "X-Render-Id" in client.get("/posts/").headers
        assert "X-Render-Id" not in client.get("/posts/").headers, "the second answer is the file"
        until(lambda: "X-Render-Id" in client.get("/posts/").headers, "the file is gone after its time to live")


@pytest.mark.servers
def test_an_emptied_layer_begins_anew_on_the_same_address(site_url, tmp_path):
    runnable("nginx-uwsgi", "site-middleware+staticgenerator")
    composed = compose.must_compose("nginx-uwsgi", "site-middleware+staticgenerator")
    with deployment.deployed(composed, database=site_url, run_dir=tmp_path / "run") as running:
        before = {name: psutil.Process(pid) for name, pid in running.pids.items()}
        url = running.url
        assert "X-Render-Id" not in [httpx.get(url + "/posts/") for _ in range(2)][1].headers, "served from a file"
        running.empty_layer()
        assert running.url == url
        assert running.pids.keys() == before.keys()
        assert alive(before.values()) == []
        assert "X-Render-Id" in httpx.get(url + "/posts/").headers, "rendered anew"
