"""Bad input on the command line: one line that says what is wrong, and status 2."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from bench import __version__, paths
from bench.cli import main

NEEDLESS = ("argcomplete", "rich", "jinja2", "psutil", "msgspec")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["up", "nosuch"], "bench up: no stack called 'nosuch'; there are: "),
        (["up", "gunicorn", "--layer", "fragmets"], "bench up: no layer called 'fragmets'; did you mean fragments?"),
        (["up", "gunicorn", "--port", "0"], "argument --port: '0' is not a whole number from 1 to 65535"),
        (
            ["up", "gunicorn", "--env", "DEBUG"],
            "--env DEBUG: write it as NAME=VALUE, for example --env BENCHAPP_CONN_MAX_AGE=0",
        ),
        (
            ["up", "gunicorn", "--env", "ALLOWED_HOSTS=other.test"],
            "--env ALLOWED_HOSTS=other.test: the instrument requests the site as 127.0.0.1; write ALLOWED_HOSTS=",
        ),
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
        (
            ["up", "gunicorn", "--database", "sqlite:////nowhere/x"],
            "/nowhere/x: no such database; run ./manage.py migrate",
        ),
        (["up", "gunicorn", "--set", "listener=tls"], "gunicorn: gunicorn has no TLS listener; use listener=plain"),
        (["render", "gunicorn", "--output", "bench"], "/bench: not empty; name a new or empty directory"),
        (["render", "gunicorn", "--output", "Makefile"], "/Makefile: is a file; name a new or empty directory"),
        (
            ["render", "gunicorn", "--output", "/tmp/x", "--values", "nosuch"],
            "no values called 'nosuch' in deploy/values",
        ),
        (["tune", "gunicorn"], "bench tune: name a STACK and a limit of its latency"),
        (
            ["tune", "gunicorn", "--capacity", "p95=fast"],
            "bench tune: --capacity p95=fast: write it as p95=200ms",
        ),
        (["up", "gunicorn", "--keep-going"], "bench up: --keep-going is called --restart now"),
        (["frobnicate"], "python -m bench: argument COMMAND: invalid choice: 'frobnicate'"),
    ],
)
def test_bad_input_is_refused_in_one_line(words, says, bench):
    done = bench(*words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("python -m bench up nginx-uw", {"nginx-uwsgi"}),
        ("python -m bench run --layer var", {"varnish"}),
        ("python -m bench run --workload session-", {"session-close"}),
        ("python -m bench verify --check slow-rend", {"slow-rendering"}),
        ("python -m bench run --config gone.toml --workload ", set()),
    ],
)
def test_a_shell_completes_commands_options_and_names(line, found):
    # As the shell function of argcomplete asks; it takes the answer from file descriptor 8.
    asks = {"_ARGCOMPLETE": "3", "_ARGCOMPLETE_IFS": " ", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = f"exec {shlex.quote(sys.executable)} -m bench 8>&1 9>/dev/null >/dev/null 2>&1"
    done = subprocess.run(
        ["sh", "-c", command], cwd=paths.PROJECT, env={**os.environ, **asks}, capture_output=True, text=True, timeout=60
    )
    assert set(done.stdout.split()) == found


def test_help_waits_for_no_module_that_it_does_not_need():
    code = "import sys; from bench.__main__ import run\ntry: run()\n"
    code += "except SystemExit: print(set(sys.argv[2:]) & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, "--help", *NEEDLESS],
        cwd=paths.PROJECT,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_version_is_the_projects(bench):
    done = bench("--version")
    assert (done.returncode, done.stdout) == (0, f"benchapp {__version__}\n")


@pytest.mark.parametrize("command, given", [("run", ()), ("hosts check", ("--inventory", "x"))])
def test_what_a_command_does_not_know_is_refused_with_the_name_of_its_help(bench, command, given):
    done = bench(*command.split(), *given, "--thin")
    assert done.returncode == 2
    assert done.stderr.startswith(f"python -m bench {command}: unrecognized arguments: ")
    assert done.stderr.endswith(f"; see python -m bench {command} --help\n")


@pytest.mark.parametrize("command", main.COMMANDS)
def test_the_help_of_a_command_fits_one_screen(bench, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = bench(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: python -m bench {command}")
    assert len(done.stdout.splitlines()) <= 40
