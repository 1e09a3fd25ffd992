"""The table of options: combinations, refusals in one line, and one spelling for every command."""

from __future__ import annotations

import argparse
import ast
import importlib
from collections import Counter

import pytest

from bench import paths
from bench.cli import argument_types, main, options
from bench.errors import BenchError

TABLES = {name: getattr(importlib.import_module(f"bench.cli.{name}"), "OPTIONS", ()) for name in main.COMMANDS}
SOURCES = [
    (name, option, source)
    for name, table in TABLES.items()
    for option in table
    for source in ("--resume", "--inventory", "--target")
    if any(item.name == source and item.source for item in table)
]


def given(name: str, *names: str) -> argparse.Namespace:
    """The command line of a command with these options, whatever their values."""
    table = {option.name: option for option in TABLES[name]}
    args = argparse.Namespace(**{option.dest: option.usual for option in table.values()})
    for option in names:
        value: object = "x"
        if table[option].many:
            value = ("x",)
        if table[option].by_name:
            value = {"x": "x"}
        setattr(args, table[option].dest, value)
    return args


@pytest.mark.parametrize(("name", "option", "source"), SOURCES)
def test_a_source_of_the_plan_refuses_what_it_settles(name, option, source):
    args = given(name, source, option.name)
    settles = {"--resume": option.resumes, "--inventory": option.hosts, "--target": option.target}
    if settles[source] or option.name == source:
        options.refuse(args, TABLES[name])
        return
    with pytest.raises(BenchError) as refused:
        options.refuse(args, TABLES[name])
    # Of two sources either may be the one to leave out.
    names = {source, option.name if option.name in options.SOURCES else source}
    assert str(refused.value).split()[0] in names and str(refused.value).split("; leave out ")[1] in {
        option.name,
        *names,
    }


OPENING = {
    "up": ["nosuch"],
    "run": ["nosuch"],
    "verify": ["nosuch", "--json"],
    "faults": ["nosuch", "--json"],
    "tune": ["nosuch", "--capacity", "p95=200ms", "--json"],
    "render": ["nosuch", "--output", "out"],
}


@pytest.mark.parametrize("name", OPENING)
def test_a_command_without_a_project_says_that_it_takes_the_demo_site(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main.main([name, *OPENING[name]]) == 2
    printed = capsys.readouterr()
    note, refusal = printed.err.splitlines()
    assert note == f"note: the project is the demo site, because {tmp_path} has no manage.py"
    assert refusal.startswith(f"benchapp {name}: no stack called 'nosuch'") and not printed.out

    monkeypatch.chdir(paths.KIT)
    assert main.main([name, *OPENING[name]]) == 2
    assert capsys.readouterr().err.splitlines() == [refusal]


def test_a_resumed_run_names_its_project_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert options.demo_site(given("run"))
    assert not options.demo_site(given("run", "--resume"))


def test_each_option_is_declared_once():
    """Other commands derive theirs from the same declaration, by `replace`."""
    declared = Counter[str]()
    for path in sorted((paths.KIT / "bench" / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Option":
                declared.update(ast.literal_eval(node.args[0]))
    assert len(declared) > 40
    assert [name for name, times in declared.items() if times > 1] == []


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [("run", "--layer", "varnish"), ("run", "--workload", "session-close"), ("up", "--size", "bronze")],
)
def test_the_values_of_an_option_are_known_to_a_shell(name, option, value):
    """A shell completes names in test_main.py."""
    (completed,) = [item for item in TABLES[name] if item.name == option]
    assert value in completed.complete(given(name))


def test_the_last_value_of_a_name_counts():
    words = ["up", "gunicorn", "--set", "processes=1", "--set", "processes=2", "--set", "processes=1", "--env", "A=b=c"]
    args = main.parser().parse_args(words)
    assert (args.set, args.env) == ({"processes": 1}, {"A": "b=c"})


@pytest.mark.parametrize("name", TABLES)
def test_what_an_option_excludes_or_needs_exists(name):
    known = {option.name for table in TABLES.values() for option in table}
    own = {option.name for option in TABLES[name]}
    for option in TABLES[name]:
        assert known >= set(option.excludes)
        assert not option.needs or option.needs in own
        for other in own & set(option.excludes):
            with pytest.raises(BenchError, match=f"^{option.name} and {other} exclude each other"):
                options.refuse(given(name, option.name, other, *filter(None, [option.needs])), TABLES[name])
        if option.needs:
            with pytest.raises(BenchError, match=f"^{option.name} goes with {option.needs}; add that"):
                options.refuse(given(name, option.name), TABLES[name])
            options.refuse(given(name, option.name, option.needs), TABLES[name])


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if "STACK" in [it.name for it in table]])
@pytest.mark.parametrize(
    "words", [["uwsgi", "--layer=none"], ["--layer=none", "uwsgi"], ["--stack", "uwsgi", "--layer=none"]]
)
def test_a_stack_is_an_argument_anywhere_or_an_option(name, words):
    output = ["--output", "x"] if name == "render" else []
    words = [word for word in words if name != "check" or not word.startswith("--layer")]
    assert main.parser().parse_args([name, *words, *output]).stack == ("uwsgi",)


def test_an_option_without_its_value_is_refused(bench):
    for command in ("up", "run"):
        done = bench(command, "--stack", "--layer", "none")
        assert done.returncode == 2 and "argument --stack: expected " in done.stderr
    assert main.parser().parse_args(["run", "--stack", "gunicorn", "uwsgi", "--all"]).stack == ("gunicorn", "uwsgi")


def test_several_stacks_may_stand_apart_and_each_counts_once():
    words = ["run", "uwsgi", "--layer", "none", "gunicorn", "--stack", "waitress", "--connections", "4", "uwsgi"]
    args = main.parser().parse_args(words)
    assert sorted(args.stack) == ["gunicorn", "uwsgi", "waitress"]
    assert (args.layer, args.connections) == (("none",), (4,))


@pytest.mark.parametrize(
    ("words", "unnamed"),
    [
        ("run", "STACK and --layer"),
        ("run gunicorn", "--layer"),
        ("run --layer none", "STACK"),
        ("verify", "STACK and --layer"),
        ("verify gunicorn --quick", "--layer"),
        ("faults", "STACK"),
    ],
)
def test_nobody_starts_everything_by_leaving_out_a_name(words, unnamed, bench, tmp_path):
    done = bench(*words.split(), *(() if words.startswith("verify") else ("--output", str(tmp_path / "out"))))
    assert done.returncode == 2
    assert done.stderr.startswith(f"benchapp {words.split()[0]}: without {unnamed} it ")
    assert " in about " in done.stderr and done.stderr.endswith(f"; name {unnamed}, or add --all\n")
    assert not (tmp_path / "out").exists()


def test_all_is_what_is_not_named(bench):
    assert "without" not in bench("run", "--all", "--dry-run").stderr
    args = main.parser().parse_args(["run", "gunicorn", "--all"])
    assert options.unnamed(args, "--layer") == ""


def test_a_port_that_servers_may_not_have_is_refused_at_once(bench, monkeypatch, tmp_path):
    first = tmp_path / "first"
    first.write_text("1024\n")
    monkeypatch.setattr(argument_types, "FIRST_PORT", first)
    done = bench("up", "gunicorn", "--port", "80")
    assert done.returncode == 2
    assert "argument --port: 80: servers have no right to ports below 1024; use 8000, for example" in done.stderr
    assert argument_types.port("1024") == 1024
