"""Help, version and shell completion of the command line."""

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
    ("line", "completions"),
    [
        ("python -m bench up nginx-uw", {"nginx-uwsgi"}),
        ("python -m bench verify --check slow-rend", {"slow-rendering"}),
        ("python -m bench run --config gone.toml --workload ", set()),
    ],
)
def test_a_shell_completes_commands_options_and_names(line, completions):
    # A request as by argcomplete's shell function, with the response on file descriptor 8.
    request = {"_ARGCOMPLETE": "3", "_ARGCOMPLETE_IFS": " ", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = f"exec {shlex.quote(sys.executable)} -m bench 8>&1 9>/dev/null >/dev/null 2>&1"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=paths.KIT,
        env={**os.environ, **request},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert set(done.stdout.split()) == completions


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


def test_the_bare_command_names_all_commands(bench):
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
