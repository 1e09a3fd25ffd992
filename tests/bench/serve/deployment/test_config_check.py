"""`benchapp check`: what a server says of a broken file is shown, with the template's path."""

from __future__ import annotations

import re
import shutil

import pytest

from bench import paths
from bench.cli import check as check_command
from bench.serve.catalog import manifest
from bench.serve.deployment import case as cases
from bench.serve.deployment import config_check, render
from bench.serve.deployment.case import CannotRun
from bench.serve.deployment.config_check import ConfigCheck
from bench.serve.deployment.database import NO_DATABASE
from tests.cases import kit

BROKEN = [
    # stack, layer, file below deploy/, a line that breaks it, what is said
    ("nginx-uwsgi", "none", "servers/nginx/nginx.conf.j2", "gzip maybe;", '"gzip" directive is not allowed here'),
    (
        "apache-modwsgi",
        "none",
        "servers/apache/httpd.conf.j2",
        "NoSuch on",
        "httpd.conf.j2:\nInvalid command 'NoSuch'",
    ),
    (
        "lighttpd-fastcgi",
        "none",
        "servers/lighttpd/lighttpd.conf.j2",
        'no.such = "x"',
        "WARNING: unknown config-key: no.such",
    ),
    (
        "lighttpd-fastcgi",
        "none",
        "servers/lighttpd/lighttpd.conf.j2",
        "server.port = (",
        "lighttpd/lighttpd.conf.j2 line: * failed",
    ),
    (
        "haproxy-gunicorn",
        "none",
        "servers/haproxy/haproxy.cfg.j2",
        "    nosuch",
        "[ALERT] * : unknown keyword",
    ),
    (
        "caddy-gunicorn",
        "none",
        "servers/caddy/Caddyfile.j2",
        "nosuch {\n\tnosuch\n}",
        "unrecognized directive: nosuch",
    ),
    (
        "nginx-uwsgi",
        "varnish",
        "servers/varnish/varnish.vcl.j2",
        "sub vcl_recv { set req.no = 1; }",
        "not found: 'req.no'",
    ),
    ("nginx-uwsgi", "none", "servers/uwsgi/uwsgi.ini.j2", "nosuch = true", "unknown config directive: nosuch"),
    (
        "gunicorn",
        "none",
        "servers/gunicorn/gunicorn.conf.py.j2",
        "workers = (",
        'gunicorn.conf.py.j2", line * was never closed',
    ),
    ("cherokee-uwsgi", "none", "servers/cherokee/cherokee.conf.j2", "server!nosuch = 1", "Unknown key\n    'nosuch'"),
]


@pytest.mark.servers
@pytest.mark.parametrize(("stack", "layer", "name", "line", "message"), BROKEN, ids=lambda it: it if "/" in it else "")
def test_the_message_of_a_server_about_a_broken_file_is_shown(stack, layer, name, line, message, tmp_path, monkeypatch):
    deploy = shutil.copytree(paths.DEPLOY, tmp_path / "deploy")
    monkeypatch.setattr(paths, "DEPLOY", deploy)
    monkeypatch.setattr(render, "SERVERS", deploy / "servers")
    monkeypatch.setattr(render.ENGINE, "home", deploy / "servers")
    composed = cases.resolve(kit(), stack, layer, database=NO_DATABASE)
    if isinstance(composed, CannotRun):
        pytest.skip(composed.reason)
    with (deploy / name).open("a") as file:
        file.write(f"\n{line}\n")
    problems = [item.problem for item in config_check.check(kit(), composed.stack, *composed.layers) if item.problem]
    assert len(problems) == 1
    assert re.search(".*".join(map(re.escape, message.split(" * "))), problems[0], re.S)
    assert len(problems[0].splitlines()) <= config_check.MAX_LINES
    assert "/conf/" not in problems[0], "a rendered file is named that is gone"


@pytest.mark.parametrize(
    ("output", "status", "good_status", "bad_output", "problem"),
    [
        ("all is well", 0, 0, "", ""),
        ("all is well", 2, 2, "(?i)error", ""),
        ("all is well", 1, 2, "", "all is well"),
        ("WARNING: odd", 0, 0, "(?i)warning", "WARNING: odd"),
        ("", 3, 0, "", "exit status 3"),
        ("one\n\n  two  \n", 1, 0, "", "one\n  two"),
        ("\n".join(map(str, range(20))), 1, 0, "", "\n".join(map(str, range(8, 20)))),
    ],
)
def test_a_check_fails_by_its_status_or_its_words(output, status, good_status, bad_output, problem):
    server = manifest.Server("x", ("x",), "http", ("x",), good_status=good_status, bad_output=bad_output)
    argv = ["sh", "-c", 'printf %s "$1"; exit "$2"', "sh", output, str(status)]
    assert config_check.run_check(argv, {"PATH": "/usr/bin:/bin"}, server) == problem


def test_a_problem_of_several_lines_is_indented_below_its_stack():
    assert check_command._line(ConfigCheck("a", "none", "x")) == "ok    a none x"
    assert check_command._line(ConfigCheck("a", "none", "x", "bad")) == "FAIL  a none x: bad"
    assert check_command._line(ConfigCheck("a", "none", "x", "one\ntwo")) == "FAIL  a none x:\n      one\n      two"
