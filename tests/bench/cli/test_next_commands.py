"""Printed next commands can be pasted, whatever the names of folders."""

import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.cli import main, tune
from bench.cli.options import served_words
from bench.measure.records.folder import read_run
from bench.verify import suite
from bench.verify.finding import Mismatch, Sent
from tests.bench.measure.report import report_folder


def parsed(line):
    """The arguments of a printed command."""
    *program, command = shlex.split(line)[:4]
    assert program == ["python", "-m", "bench"]
    return command, main.parser().parse_args(shlex.split(line)[3:])


@pytest.fixture
def folder(tmp_path):
    return report_folder.make(tmp_path / "bob's run", rounds=2, workloads=("home",))


@pytest.mark.parametrize(
    ("word", "more"), [("run", {}), ("tune", {"tunes": "uwsgi"}), ("faults", {"faults": ("reload",)})]
)
def test_a_stopped_run_is_resumed_by_the_command_that_it_prints(folder, word, more):
    run = read_run(folder)
    plan = replace(run.info.plan, **more)
    command, args = parsed(replace(run, info=replace(run.info, plan=plan)).resume_command())
    assert (command, args.resume) == (word, folder)


def test_the_values_of_a_search_are_rendered_for_its_project(folder):
    plan = replace(
        read_run(folder).info.plan, layers=("view-cache",), project="/srv/my site", describe="/srv/it's.toml"
    )
    command, args = parsed(tune.render_command(plan, "gunicorn", folder / "values.toml"))
    assert (command, args.layer, args.values) == ("render", "view-cache", str(folder / "values.toml"))
    assert (args.project, args.config) == (Path("/srv/my site"), Path("/srv/it's.toml"))


def test_what_was_verified_is_served_again_by_the_command_that_verify_prints():
    words = ["up", "--project", "/srv/my site", "--env", "NAME=it's", "--set", "processes=2"]
    options = served_words(main.parser().parse_args([*words, "gunicorn"]))
    sent = Sent("http://127.0.0.1:1234", "GET", "/")
    context = SimpleNamespace(
        stack="gunicorn", layer="view-cache", layers=("view-cache",), options=options, clones=[], running=object()
    )
    request, serve = suite._again(context, [Mismatch("200", "500", sent)])
    command, args = parsed(serve)
    assert (command, args.layer, args.port) == ("up", "view-cache", 8000)
    assert served_words(args) == options
    assert shlex.split(request)[-1] == "http://127.0.0.1:8000/"
