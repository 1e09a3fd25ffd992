"""Bring each deployment up, run the checks through its front port, and print each wrong answer."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterable

from bench.catalog import catalog, compose, manifest, values
from bench.cli import options, verify_hosts
from bench.cli.hosts import add_inventory
from bench.errors import BenchError, DeploymentError
from bench.figures.columns import columns
from bench.machine.identity import worker
from bench.measure.printer import Printer, say
from bench.measure.progress import show_check
from bench.project import commands, pythons, under_test
from bench.results.records import GROUPS, Outcome, Skip
from bench.serve import database, deployment
from bench.verify import table
from bench.verify.site import Site, learn, permitted, prepare
from bench.verify.suite import Selection, Subject, all_checks, layer_names, run_suite
from bench.verify.target_site import require_answer, target_site
from bench.verify.verifier import Verifier
from bench.verify.wire import Target

UP = "up"
TARGET = "target"
# Outcomes, skips, and notes for those who read them.
Found = tuple[list[Outcome], list[Skip], list[str]]
NEEDS_LAYER = "these checks are made only where there is a layer"
# How long many clients ask at once.
LOAD_S = 2.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `verify`."""
    stacks = f"stacks of `list` (default: {options.USUAL})"
    options.add_stacks(parser, "stacks", nargs="*", metavar="STACK", help=stacks)
    options.add_layer(parser, several=True)
    check = parser.add_argument(
        "--check", action="append", default=[], metavar="NAME", help="run only this check (repeatable)"
    )
    options.completed(check, lambda: (item.name for item in all_checks()))
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        choices=GROUPS,
        metavar="G",
        help=f"run only this group (repeatable): {', '.join(GROUPS)}",
    )
    parser.add_argument("--quick", action="store_true", help="leave out the checks that take seconds, as `run` does")
    parser.add_argument("--list-checks", action="store_true", help="print the checks with what each proves, and stop")
    options.add_project(parser)
    options.add_database(parser)
    options.add_size(parser)
    options.add_env(parser)
    options.add_write(parser, "let checks write")
    parser.add_argument(
        "--target",
        metavar="URL",
        help="verify a site of this project that runs already; --layer names its layer, --database its database. "
        "Without --database, checks that need expected pages or an account are not tried",
    )
    add_inventory(parser, "verify what is deployed on these hosts: one STACK with one --layer")
    options.add_json(parser)
    options.add_set(parser)
    options.add_python(parser, several=True)


def main(args: argparse.Namespace) -> int:
    """Run the command; returns 1 when a check fails or a deployment does not come up, 2 with nothing to verify."""
    if args.list_checks:
        return _print_checks(args.json)
    options.check_write(args)
    selection = Selection(tuple(args.check), tuple(args.group), LOAD_S, thorough=not args.quick)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    skips: list[Skip] = []
    notes: list[str] = []
    if args.inventory:
        outcomes = verify_hosts.verify(args)
    else:
        outcomes, skips, notes = (
            _verify_target(args, selection) if args.target else _verify_deployments(args, selection)
        )
    if args.json:
        print(json.dumps(table.as_document(outcomes, skips, notes), indent=2))
    elif outcomes:
        say(table.as_text(outcomes, skips))
    if not outcomes:
        print(f"bench verify: nothing to verify here: {'; '.join(table.by_reason(skips))}", file=sys.stderr)
        return 2
    return 0 if all(item.ok for item in outcomes) else 1


def _print_checks(as_json: bool) -> int:
    checks = [{"check": item.name, "group": item.group, "proves": item.title} for item in all_checks()]
    if as_json:
        print(json.dumps(checks, indent=2))
    else:
        printer = Printer()
        printer.say("\n".join(columns([tuple(item.values()) for item in checks], width=printer.width)))
    return 0


def _verify_target(args: argparse.Namespace, selection: Selection) -> Found:
    """Run the suite against a site that runs already."""
    if args.stacks:
        raise BenchError(f"--target {args.target}: it runs already, so name no STACK")
    if args.write and not args.database:
        raise BenchError(f"--target {args.target}: without --database nothing is written, so leave out --write")
    if args.python:
        raise BenchError(f"--target {args.target}: it runs already, so leave out --python")
    if args.layer and len(args.layer) > 1:
        raise BenchError(f"--target {args.target}: name the one layer it runs under, joined with + if several")
    target = Target.parse(args.target)
    layer = args.layer[0] if args.layer else manifest.NO_LAYER
    declared = {item.check: item.reason for item in compose.declared((), catalog.read().joined_layers(layer))}
    require_answer(target, under_test.current().health)
    # The site that runs already may be `bench up`, which shares its database.
    lock = database.in_use(args.database, alone=False) if args.database else contextlib.nullcontext()
    with lock, Printer(sys.stderr, f"{target.origin} with layer {layer}: ") as printer:
        site, env = _site_of(target, args)
        subject = Subject(target, site, TARGET, layer, env, declared)
        notes = database.notes(database.parse(args.database)) if args.database else []
        _say_notes(notes, printer, {})
        return run_suite(subject, selection, show_check(printer)), [], notes


def _site_of(target: Target, args: argparse.Namespace) -> tuple[Site, dict[str, str]]:
    """The site, with its expected pages if --database is given, and the environment of its commands."""
    project, given = under_test.current(), values.environment(args.env)
    if not args.database:
        return target_site(target, project.folder / "static", project.description), given
    chosen = database.parse(args.database)
    if not chosen.url:
        raise BenchError(f"--target {args.target}: give --database as the URL that the running site uses")
    env = project.environment({**commands.site_environment(chosen.url, project.var), **given})
    commands.make_files(worker())
    commands.warm_up()
    site = learn(None, env, project.python, project.manage_py, prefix=worker().prefix, description=project.description)
    return prepare(permitted(site, chosen, args.write)), given


def _verify_deployments(args: argparse.Namespace, selection: Selection) -> Found:
    """Bring up each deployment that can run here, one after another, and verify it."""
    stacks = args.stacks
    if versions := pythons.choose(args.python):
        stacks = pythons.variants(stacks or catalog.read().usual_stacks, versions)
    runnable, skips = plan(stacks, args.layer or [], args.set, args.env)
    compositions = []
    for item in runnable:
        if selection.of(layer_names(item.layer_name)):
            compositions.append(item)
        else:
            skips.append(Skip(item.stack.name, item.layer_name, None, NEEDS_LAYER))
    if not compositions:
        return [], skips, []
    with database.in_use(args.database, alone=True):
        outcomes, notes = _verify_all(compositions, selection, args)
        return outcomes, skips, notes


def _verify_all(
    compositions: list[compose.Composition], selection: Selection, args: argparse.Namespace
) -> tuple[list[Outcome], list[str]]:
    """The outcomes, and what a reader of them must know, each note once."""
    verifier = Verifier(selection, args.write)
    outcomes: list[Outcome] = []
    noted: dict[str, None] = {}
    for number, composition in enumerate(compositions, 1):
        started = time.monotonic()
        what = f"{composition.stack.name} with layer {composition.layer_name}"
        with Printer(sys.stderr, f"{number} of {len(compositions)}: ") as printer:
            found = _verify_one(verifier, composition, args, printer, noted)
            took_s = time.monotonic() - started
            printer.say(f"{what}: {table.count(found)} ({took_s:.1f} s with starting and stopping)")
        outcomes += found
    return outcomes, list(noted)


def _verify_one(
    verifier: Verifier,
    composition: compose.Composition,
    args: argparse.Namespace,
    printer: Printer,
    noted: dict[str, None],
) -> list[Outcome]:
    stack, layer = composition.stack.name, composition.layer_name
    try:
        with deployment.deployed(composition, database=args.database, size=args.size, progress=printer.show) as running:
            _say_notes(running.notes, printer, noted)
            found = verifier.verify(running, show_check(printer, f"{stack} with layer {layer}: "))
            if died := running.died():
                found.append(_not_up(stack, layer, died))
            printer.show(f"stopping {stack}")
            return found
    except DeploymentError as error:
        return [_not_up(stack, layer, error)]


def _say_notes(notes: list[str], printer: Printer, noted: dict[str, None]) -> None:
    """Say what has not been noted yet, and note it."""
    for note in notes:
        if note not in noted:
            printer.clear()
            print(f"note: {note}", file=sys.stderr, flush=True)
    noted.update(dict.fromkeys(notes))


def _not_up(stack: str, layer: str, error: DeploymentError) -> Outcome:
    return Outcome(stack, layer, UP, False, "the deployment comes up and stays up", str(error))


def plan(
    stacks: Iterable[str], layers: Iterable[str], changes: list[str], env: list[str]
) -> tuple[list[compose.Composition], list[Skip]]:
    """The stacks with layers that can run here, and a Skip for each that cannot.

    No names mean the usual stacks and all layers; `changes` and `env` are what --set and --env give.
    """
    new_values, environment = values.parse_changes(changes), values.environment(env)
    found: list[compose.Composition] = []
    skips: list[Skip] = []
    chosen_layers = list(layers) or list(catalog.read().layers)
    for name in list(stacks) or catalog.read().usual_stacks:
        for layer in chosen_layers:
            composed = compose.compose(name, layer, new_values, environment)
            if isinstance(composed, compose.CannotRun):
                skips.append(Skip(name, layer, None, composed.reason))
            else:
                found.append(composed)
    return found, skips
