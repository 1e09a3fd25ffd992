"""Printed next commands can be pasted, whatever the names of folders."""

import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.cli import main, tune
from bench.cli.options import served_words
from bench.measure.records.folder import read_run
from bench.measure.run.local import LocalTestBed
from bench.serve.machine.http import Sent
from bench.verify import suite
from bench.verify.mismatch import Mismatch
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


def served_again(options):
    """The printed request of a wrong response, and the printed command to serve the site again."""
    context = SimpleNamespace(
        stack="gunicorn", layer="view-cache", layers=("view-cache",), options=options, clones=[], running=object()
    )
    sent = Sent("http://127.0.0.1:1234", "GET", "/")
    return suite._again(context, [Mismatch("200", "500", sent)])


def test_what_was_verified_is_served_again_by_the_command_that_verify_prints():
    words = ["up", "--project", "/srv/my site", "--env", "NAME=it's", "--set", "processes=2"]
    options = served_words(main.parser().parse_args([*words, "gunicorn"]))
    request, serve = served_again(options)
    command, args = parsed(serve)
    assert (command, args.layer, args.port) == ("up", "view-cache", 8000)
    assert served_words(args) == options
    assert shlex.split(request)[-1] == "http://127.0.0.1:8000/"


@pytest.mark.parametrize(("given", "database"), [(False, "postgresql"), (True, "URL")])
def test_what_a_run_verified_is_served_again_with_the_project_of_the_run(folder, given, database):
    more = {"env": {"NAME": "it's"}, "changes": {"processes": 2}, "database": "postgresql", "database_given": given}
    run = read_run(folder)
    plan = replace(run.info.plan, project="/srv/my site", describe="/srv/it's.toml", **more)
    journal = SimpleNamespace(info=replace(run.info, plan=plan), environment=run.environment)
    project = SimpleNamespace(description=SimpleNamespace(login=None))
    bed = LocalTestBed(journal, progress=SimpleNamespace(outlook=None), load=None, project=project, rows=None)
    _, args = parsed(served_again(bed._verifier.options)[1])
    assert (args.project, args.config) == (Path("/srv/my site"), Path("/srv/it's.toml"))
    assert (args.env, args.set, args.database) == ({"NAME": "it's"}, {"processes": 2}, database)
