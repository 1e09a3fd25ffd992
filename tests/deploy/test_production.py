"""Production's files pass the servers' and systemd's own tests, redirect to HTTPS and refuse what is not ours."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.serve.catalog import catalog
from bench.serve.machine import supervise
from tests.deploy import few, test_edge
from tests.deploy.production_host import (
    NAME,
    WILDCARD,
    WILDCARD_HOSTS,
    Host,
    Notified,
    accepts_ciphers,
    redirects,
    refused_by_servers,
    refused_by_systemd,
    response_of,
    serving,
    start,
)
from tests.deploy.running import command

pytestmark = pytest.mark.servers

STACKS = list(catalog.read().stacks)
SECRET_KEY = "a key of tests, which a server needs: 0123456789 abcdefgh"
# Stacks that need a server before them to terminate TLS.
ASGI = ("uvicorn", "gunicorn-uvicorn", "gunicorn-asgi", "granian-asgi", "hypercorn", "daphne")
WITHOUT_TLS = ("gunicorn", "gunicorn-gevent", "uwsgi", "granian", "waitress", *ASGI)


@pytest.fixture
def make_host(tmp_path, certificate):
    def make(stack: str, layer: str = "none", **changes: str) -> Host:
        return Host(stack, layer, tmp_path, certificate, **changes)

    return make


OFF = {"listener": "tls", **dict.fromkeys(("http2", "strict_sni", "redirect", "maintenance_file"), "off")}
# The other stacks serve from their files below.
ACCEPTED = [(stack, "none", {}) for stack in WITHOUT_TLS]
ACCEPTED += [
    (stack, layer, {"server_names": WILDCARD})
    for stack, layer in (
        ("nginx-uwsgi", "none"),
        ("nginx-uwsgi", "varnish"),
        ("nginx-uwsgi", "uwsgi-cache"),
        ("apache-modwsgi", "apache-cache"),
        ("apache-modwsgi", "staticgenerator"),
        ("lighttpd-fastcgi", "staticgenerator"),
        ("cherokee-uwsgi", "staticgenerator"),
        ("caddy-gunicorn", "none"),
        ("haproxy-gunicorn", "none"),
    )
]
ACCEPTED += [(stack, layer, OFF) for stack, layer in test_edge.STACKS]


@pytest.mark.parametrize(("stack", "layer", "changes"), ACCEPTED)
def test_the_servers_accept_the_files(make_host, stack, layer, changes):
    """Also with every name below a domain, and with all switched off."""
    assert refused_by_servers(make_host(stack, layer, **changes)) == {}


@pytest.mark.parametrize("stack", few.few(STACKS, few.of_stack))
def test_systemd_accepts_the_units(make_host, stack):
    assert refused_by_systemd(make_host(stack)) == []


@pytest.mark.parametrize(
    "stack",
    few.few([name for name in STACKS if name not in (*WITHOUT_TLS, *dict(test_edge.STACKS))], few.of_stack),
)
def test_plain_http_redirects_and_https_serves(make_host, stack):
    """The other stacks with TLS do so in test_edge, beside what else their web servers do."""
    host = make_host(stack, server_names=WILDCARD)
    with serving(host, ALLOWED_HOSTS=WILDCARD_HOSTS) as processes:
        redirects(host, processes)
        assert not accepts_ciphers(host, "AES256-SHA:AES128-GCM-SHA256:ECDHE-RSA-AES256-SHA")
        assert accepts_ciphers(host, host.values.names["tls_ciphers"])
    assert "/healthz" in Path(host.values.names["access_log"]).read_text()


@pytest.mark.parametrize(
    ("stack", "server"),
    [
        ("nginx-uwsgi", "nginx"),
        ("nginx-uwsgi", "uwsgi"),
        ("apache-modwsgi", "apache"),
        ("lighttpd-scgi", "lighttpd"),
        ("haproxy-gunicorn", "haproxy"),
        ("nginx-cherrypy", "cheroot"),
        ("nginx-waitress", "waitress"),
    ],
)
def test_a_server_that_is_stopped_finishes_the_request_under_way(make_host, stack, server):
    host = make_host(stack)
    assert any(finished_while_stopping(host, server) for _ in range(4))


def finished_while_stopping(host: Host, server: str) -> bool:
    """True if a request gets its response although the server's units are stopped meanwhile.

    On a busy machine it may not have arrived by then, so that once is no proof that it is not.
    """
    units = [name for name in host.services() if name.split("-")[1] == server]
    with serving(host, BENCHAPP_PROBES="1") as processes, ThreadPoolExecutor(1) as pool:
        response = pool.submit(lambda: response_of(host, "/__probe__/slow/3000/page/", NAME)[0])
        with contextlib.suppress(TimeoutError):
            response.result(timeout=1.5)
        for name in units:
            processes[name].popen.send_signal(getattr(signal, host.lines(name, "KillSignal")[0]))
        for name in units:
            processes[name].popen.wait(60)
        with contextlib.suppress(OSError, http.client.HTTPException):
            return response.result() == 200
    return False


@pytest.mark.parametrize(("stack", "server"), [("nginx-uwsgi", "uwsgi"), ("nginx-gunicorn", "gunicorn")])
def test_a_server_that_is_stopped_the_moment_it_is_ready_ends(make_host, stack, server):
    """It may not have loaded the application by then."""
    host = make_host(stack)
    unit = f"benchapp-{server}"
    with Notified() as notified:
        process = start(host, unit, notified.env)
        try:
            notified.wait_ready()
            process.popen.send_signal(getattr(signal, host.lines(unit, "KillSignal")[0]))
            status = process.popen.wait(60)
        finally:
            supervise.stop([process])
    good = [int(word) for word in host.lines(unit, "SuccessExitStatus")[0].split() if word.isdecimal()]
    assert status in (0, *good)


def test_what_a_layer_runs_beside_the_servers_is_a_unit(make_host):
    host = make_host("nginx-uwsgi", "staticgenerator")
    assert host.command("benchapp-expirepages")[-2:] == ["django", "expirepages"]
    assert "CACHING_STATICGENERATOR_ROOT" in host.environment("benchapp-expirepages")


def test_packages_are_installed_and_the_note_says_who_terminates_tls(make_host):
    conf = Path(make_host("nginx-gunicorn", "fragments").places.conf)
    (line,) = re.findall(r"(?m)^ +apt-get install (.*)$", (conf / "benchapp-install").read_text())
    packages = [word for word in line.split() if not word.startswith("-")]
    tools = ["git", "python3-venv", "curl", "logrotate", "procps", "openssl"]
    assert packages == [*tools, "postgresql-client", "nginx", "memcached"]
    assert "privkey.pem" in (conf / "INSTALL.md").read_text()


@pytest.mark.parametrize("name", ["benchapp-manage", "benchapp-restore"])
def test_the_sites_commands_get_the_environment_of_the_unit(make_host, name):
    host = make_host("nginx-gunicorn")
    script = (Path(host.places.conf) / name).read_text()
    named = [word.partition("EnvironmentFile=")[2] for word in script.split() if "EnvironmentFile=" in word]
    assert named == host.lines("benchapp-gunicorn", "EnvironmentFile")
    secrets = [word.partition("LoadCredential=")[2] for word in script.split() if "LoadCredential=" in word]
    assert secrets == host.lines("benchapp-gunicorn", "LoadCredential") != []
    assert subprocess.run(["sh", "-n", f"{host.places.conf}/{name}"]).returncode == 0
    # Only systemd reads these files; with nothing to quote or to escape there is only one way to read them.
    assert not set("\"'\\") & set((Path(host.places.conf) / "site.env").read_text())


def test_a_module_built_on_the_host_is_where_a_deploy_puts_it(make_host):
    host = make_host("apache-modwsgi")
    conf = host.places.conf
    script = Path(conf, "benchapp-deploy").read_text()
    # Without a program of the package: root runs this.
    built = "$venv/lib/python3*/site-packages/mod_wsgi/server/mod_wsgi-py*.so"
    assert f"ln -sf {built} {conf}/mod_wsgi.so || return\n" in script
    lines = [line.split() for line in Path(conf, "httpd.conf").read_text().splitlines()]
    assert ["LoadModule", "wsgi_module", f"{conf}/mod_wsgi.so"] in lines


@pytest.mark.parametrize("stack", WITHOUT_TLS)
def test_a_stack_without_tls_waits_on_loopback_for_a_server_that_ends_it(make_host, stack):
    host = make_host(stack)
    note = (Path(host.places.conf) / "INSTALL.md").read_text()
    assert "This stack speaks plain HTTP on 127.0.0.1:8000." in note
    assert host.environment(f"benchapp-{host.case.servers[0].name}")["BENCHAPP_BEHIND_PROXY"] == "1"
    files = [path.read_text() for path in host.written if path.suffix in (".service", ".py", ".ini", ".toml")]
    assert any("8000" in text for text in files)


def test_the_check_runs_each_servers_own_test_as_its_unit(make_host, tmp_path):
    host = make_host("nginx-uwsgi")
    conf = Path(host.places.conf)
    # What runs as root here must not make it.
    Path(host.values.names["access_log"]).touch()
    host.identity.give_tree(Path(host.places.logs))
    # Stands in for systemd: without its options, with the environment of the files.
    systemd_run = tmp_path / "bin" / "systemd-run"
    systemd_run.parent.mkdir()
    systemd_run.write_text(
        "#!/bin/sh\nset -a\nwhile case $1 in --*) true;; *) false;; esac; do\n"
        'case $1 in --property=EnvironmentFile=*) . "${1#*EnvironmentFile=}";; esac\nshift\ndone\nexec "$@"\n'
    )
    systemd_run.chmod(0o755)

    def check() -> tuple[list[str], int]:
        done = subprocess.run(
            ["sh", str(conf / "benchapp-check")],
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": f"{systemd_run.parent}:{os.environ['PATH']}", "SECRET_KEY": SECRET_KEY},
        )
        return done.stdout.splitlines(), done.returncode

    assert check() == (["ok    benchapp-uwsgi", "ok    benchapp-nginx", "ok    application"], 0)
    (conf / "nginx.conf").write_text("nonsense")
    (*lines, nginx, application), status = check()
    assert (lines[0], nginx, application, status) == (
        "ok    benchapp-uwsgi",
        "FAIL  benchapp-nginx",
        "ok    application",
        1,
    )
    # Why.
    assert "nginx.conf test failed" in lines[-1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_the_check_finds_a_log_of_another_user(make_host):
    """Its server would end, and be started again for ever: no test of a server's own opens the log."""
    host = make_host("nginx-uwsgi")
    log = Path(host.values.names["access_log"])
    log.touch()
    os.chown(log, 12345, 12345)
    script = Path(host.places.conf, "benchapp-check").read_text().replace("systemd-run ", "true ")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    message = f"FAIL  {log}: it is not {host.places.web_user}'s, who writes it: systemd-tmpfiles --create benchapp.conf"
    assert (done.stdout.splitlines()[-1], done.returncode) == (message, 1)


@pytest.mark.parametrize("stack", ["lighttpd-flup", "cherokee-scgi"])
def test_a_stack_that_nobody_should_deploy_is_refused(stack, tmp_path):
    words = ("-m", "bench", "render", stack, "--output", str(tmp_path / "out"))
    done = command(*words)
    assert done.stderr.startswith(f"benchapp render: {stack} for production: no, because ")
    assert done.stderr.endswith("; --force renders it all the same\n")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
