"""Bad input on the command line: one line with the problem, and status 2."""

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
    ("words", "message"),
    [
        (["up", "nosuch"], "benchapp up: no stack called 'nosuch'; `python -m bench list` prints all"),
        (["up", "gunicorn", "--layer", "fragmets"], "benchapp up: no layer called 'fragmets'; did you mean fragments?"),
        (["up", "gunicorn", "--port", "0"], "argument --port: '0' is not a whole number from 1 to 65535"),
        (
            ["up", "gunicorn", "--env", "DEBUG"],
            "argument --env: DEBUG: write it as NAME=VALUE, for example BENCHAPP_CONN_MAX_AGE=0",
        ),
        (
            ["up", "gunicorn", "--env", "ALLOWED_HOSTS=other.test"],
            "argument --env: ALLOWED_HOSTS=other.test: the instrument requests the site as 127.0.0.1; write",
        ),
        (["up", "gunicorn", "--database", "oracle"], "--database oracle: use sqlite, postgresql or a URL"),
        (
            ["up", "gunicorn", "--database", "oracle://user:secret@host/name"],
            "benchapp up: DATABASE_URL: 'oracle' is not a database of this site: use sqlite:///FILE or postgresql://",
        ),
        (
            ["up", "gunicorn", "--database", "postgresql://user:secret@127.0.0.1:1/name"],
            "benchapp up: PostgreSQL database name at 127.0.0.1:1: connection to server",
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
        (["tune", "gunicorn"], "benchapp tune: name a STACK and a limit of its latency"),
        (
            ["tune", "gunicorn", "--capacity", "p95=fast"],
            "benchapp tune: argument --capacity: p95=fast: write it as p95=200ms",
        ),
        (["up", "gunicorn", "--keep-going"], "benchapp up: --keep-going: no such option; did you mean --restart?"),
        (["doctor", "--project", "nosuch"], "benchapp doctor: --project /"),
        (["doctor", "--project", "manage.py"], f"/manage.py: a file; name its folder: --project {paths.KIT}\n"),
        (["doctor", "--config", "nosuch.toml"], "--config nosuch.toml: no such file; name one with"),
        (["report", "README.md"], "benchapp report: README.md: a file; give the folder that "),
        (
            ["run", "gunicorn", "--layer", "none", "--guard", "noise=off"],
            "no guard is called 'noise'; there are: tool, ",
        ),
        (
            ["verify", "--check", "nosuch"],
            "no check is called 'nosuch'; `python -m bench verify --list-checks` prints all",
        ),
        (
            ["faults", "gunicorn", "--fault", "x"],
            "no fault is called 'x'; `python -m bench faults --list-faults` prints",
        ),
        (["hosts", "check", "--inventory", "nosuch.yml"], "nosuch.yml: no such file; write an Ansible inventory"),
        (
            ["run", "gunicorn", "--layer", "none", "--output", "bench", "--dry-run"],
            "bench: not empty, and not a run; name",
        ),
        (
            ["faults", "gunicorn", "--output", "bench", "--dry-run"],
            "bench: not empty, and not a run; name a new folder",
        ),
        (["frobnicate"], "benchapp: no command called 'frobnicate'; there are: list, doctor, "),
        (["verfy", "gunicorn"], "benchapp: no command called 'verfy'; did you mean verify?"),
        (["serve", "gunicorn"], "benchapp: no command called 'serve'; did you mean up?"),
        (["help", "benchmark"], "benchapp: no command called 'benchmark'; did you mean run?"),
        (["-v"], "benchapp: -v: no such option; did you mean --version?"),
        (["--project", "x", "doctor"], "benchapp: --project: name the command first: list, doctor, "),
        (["run", "--version"], "benchapp run: --version: write it without a command: python -m bench --version"),
        (["run", "-v"], "benchapp run: -v: no such option; logs "),
        (
            ["run", "--until", "5m"],
            "benchapp run: --until: no such option; did you mean --until-decided or --max-time?",
        ),
        (["run", "--until=5m"], "benchapp run: --until: no such option; did you mean --until-decided or --max-time?"),
        (["run", "--conections", "8"], "benchapp run: --conections: no such option; did you mean --connections?"),
        (["run", "--concurrency", "8"], "benchapp run: --concurrency: no such option; did you mean --connections?"),
        (["report", "x", "--out", "y"], "benchapp report: --out: no such option; did you mean --output?"),
        (["tune", "--dry-run"], "benchapp tune: --dry-run is an option of faults, run; see python -m bench help tune"),
        (["up", "gunicorn", "--host", "0.0.0.0"], "benchapp up: --host: no such option; `up` serves on 127.0.0.1"),
        (["doctor", "nosuch"], "benchapp doctor: nosuch: name the folder of a project by --project nosuch; see "),
        (["faults", "--resume", "nosuch"], "benchapp faults: nosuch: no such directory; give a folder that "),
        (["verify", "gunicorn", "--layer", "none", "--group", "cach"], "--group: 'cach': did you mean caching?"),
        (["render", "gunicorn", "-o", "x", "--format", "docker"], "'docker': use one of systemd, compose, kubernetes"),
        (["doctor", "tests"], "benchapp doctor: tests: name the folder of a project by --project tests; see "),
        (["compare", "a", "b", "c"], "benchapp compare: c: one argument too many; see python -m bench help compare"),
    ],
)
def test_bad_input_is_refused_in_one_line(words, message, bench):
    done = bench(*words)
    assert done.returncode == 2
    assert message in done.stderr
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
    # A request as by argcomplete's shell function, with the response on file descriptor 8.
    asks = {"_ARGCOMPLETE": "3", "_ARGCOMPLETE_IFS": " ", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = f"exec {shlex.quote(sys.executable)} -m bench 8>&1 9>/dev/null >/dev/null 2>&1"
    done = subprocess.run(
        ["sh", "-c", command], cwd=paths.KIT, env={**os.environ, **asks}, capture_output=True, text=True, timeout=60
    )
    assert set(done.stdout.split()) == found


def test_help_waits_for_no_module_that_it_does_not_need():
    code = "import sys; from bench.__main__ import run\ntry: run()\n"
    code += "except SystemExit: print(set(sys.argv[2:]) & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, "--help", *NEEDLESS],
        cwd=paths.KIT,
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
    done = bench(*command.split(), *given, "--frobnicate")
    assert done.returncode == 2
    assert done.stderr == f"benchapp {command}: --frobnicate: no such option; see python -m bench help {command}\n"


def test_the_command_alone_names_all_commands(bench):
    done = bench()
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert listed == list(main.COMMANDS)
    assert bench("--help").stdout == bench("help").stdout == done.stdout


@pytest.mark.parametrize("command", main.COMMANDS)
def test_the_help_of_a_command_fits_one_screen_and_its_examples_are_command_lines(bench, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = bench("help", command)
    assert (done.returncode, done.stdout) == (0, bench(command, "--help").stdout)
    assert done.stdout.startswith(f"usage: benchapp {command}")
    assert len(done.stdout.splitlines()) <= 55
    examples = [line.strip() for line in done.stdout.splitlines() if line.startswith("  python -m bench ")]
    assert examples and "exit status: 0 done" in done.stdout
    for line in examples:
        assert len(line) <= 100
        assert main.parser().parse_args(shlex.split(line)[3:]).command == command


def test_a_printed_command_is_called_as_this_one_was():
    code = "import sys; sys.argv = [sys.argv[1], 'help', 'list']; from bench.__main__ import run; run()"
    for called, shown in (("/usr/bin/benchapp", "benchapp list"), ("/x/bench/__main__.py", "python -m bench list")):
        done = subprocess.run(
            [sys.executable, "-c", code, called], cwd=paths.KIT, capture_output=True, text=True, timeout=180
        )
        assert f"\n  {shown}\n" in done.stdout
