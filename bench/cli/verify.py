"""Bring each deployment up, run the checks through its front port, and print each wrong response."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from dataclasses import replace
from itertools import product

from bench.cli import argument_types, options
from bench.cli.options import Option
from bench.errors import BenchError, DeploymentError
from bench.printer import Printer, say, working
from bench.serve.catalog import catalog, compatibility, values
from bench.serve.catalog.names import NO_LAYER, variants
from bench.serve.deployment import database, deployment
from bench.serve.deployment.case import CannotRun, Case, for_files, resolve
from bench.serve.deployment.database import Database
from bench.serve.machine.http import Target
from bench.serve.production import inventory
from bench.serve.project import commands, health, pythons
from bench.serve.project.opened import UnderTest
from bench.verify import changing, summary
from bench.verify.context import Accounts, Context
from bench.verify.hosts import proofs
from bench.verify.hosts.deployed import reached
from bench.verify.outcome import GROUPS, Outcome, Skip
from bench.verify.site import Site, discover_site, prepare
from bench.verify.suite import Selection, all_checks, run_suite
from bench.verify.target_site import require_response, target_site
from bench.verify.verifier import Verifier
from bench.words import estimate, plural

UP = "up"
# Outcomes, skips, and notes for the reader.
Results = tuple[list[Outcome], list[Skip], list[str]]
NEEDS_LAYER = "these checks run only with a layer"
# About how long a case takes to come up and be verified, with and without the checks that take seconds.
THOROUGH_S, QUICK_S = 60, 15
# Seconds of requests by many clients at once.
LOAD_S = 2.5

CHECK = Option(
    ("--check",),
    "only this check (repeatable)",
    "checks",
    "CHECK",
    argument_types.name,
    many=True,
    usual=(),
    complete=lambda _: [check.name for check in all_checks()],
    target=True,
)
GROUP = Option(
    ("--group",),
    f"only this group (repeatable): {', '.join(GROUPS)}",
    "checks",
    "GROUP",
    argument_types.choice(tuple(GROUPS)),
    complete=lambda _: GROUPS,
    many=True,
    usual=(),
    target=True,
)
QUICK = Option(("--quick",), "leave out the checks that take seconds, as `run` does", "checks", target=True)
LIST_CHECKS = Option(("--list-checks",), "print the checks, and what each proves", "checks", hosts=True, target=True)

OPTIONS = (
    *(options.STACKS, options.LAYERS, options.ALL, options.SIZE, options.DATABASE, options.ENV),
    # With hosts, --set describes the values at rendering.
    replace(options.SET, hosts=True),
    *(options.PYTHON, options.PROJECT, options.CONFIG, options.ALLOW_WRITES),
    *(options.TARGET, options.INVENTORY),
    *(CHECK, GROUP, QUICK, LIST_CHECKS, options.JSON),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `verify`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Run the command; returns 1 when a check fails or a deployment does not come up, 2 with nothing to verify."""
    if args.list_checks:
        checks = [{"check": it.name, "group": it.group, "proves": it.title} for it in all_checks()]
        return options.print_names(checks, args.json)
    options.refuse(args, OPTIONS)
    options.check_writes(args)
    selection = Selection(args.check, args.group, LOAD_S, thorough=not args.quick)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if args.inventory:
        outcomes, skips, notes = _verify_hosts(args)
    elif args.target:
        outcomes, skips, notes = _verify_target(args, selection)
    else:
        outcomes, skips, notes = _verify_deployments(args, selection)
    if args.json:
        print(json.dumps(summary.as_document(outcomes, skips, notes), indent=2))
    elif outcomes:
        say(summary.as_text(outcomes, skips))
    if not outcomes:
        print(f"benchapp verify: nothing to verify here: {'; '.join(summary.by_reason(skips))}", file=sys.stderr)
        return 2
    if all(item.ok for item in outcomes):
        return 0
    return 1


def _verify_hosts(args: argparse.Namespace) -> Results:
    """Prove a layer's promises for several hosts, on deployed hosts.

    Raises BenchError for an option without effect, and for unreachable hosts.
    """
    if len(args.stack) != 1 or len(args.layer) != 1:
        raise BenchError(f"--inventory {args.inventory}: name the one STACK that is deployed, and its --layer")
    chosen = catalog.read().value_set(values.PRODUCTION).changed(args.set)
    case = for_files(options.project_of(args), args.stack[0], args.layer[0], chosen)
    site_hosts = inventory.read(args.inventory)
    started = time.monotonic()
    with Printer(sys.stderr) as printer:
        for promise in proofs.promises(case):
            printer.say(f"promise of {promise}")
        what = f"{args.stack[0]} with layer {args.layer[0]}"
        with reached(case, site_hosts) as deployed:
            outcomes = proofs.prove(deployed, summary.show_check(printer, f"{what}: "))
        printer.say(
            f"{what} on {len(site_hosts.hosts)} hosts: {summary.count(outcomes)} ({time.monotonic() - started:.1f} s)"
        )
    return outcomes, [], []


def _verify_target(args: argparse.Namespace, selection: Selection) -> Results:
    """Run the suite against a running site."""
    if args.allow_writes and not args.database:
        raise BenchError(
            f"--target {args.target.origin}: without --database nothing is written, so leave out --allow-writes"
        )
    if len(args.layer) > 1:
        raise BenchError(f"--target {args.target.origin}: name the one layer it runs under, joined with + if several")
    target: Target = args.target
    (layer,) = args.layer or (NO_LAYER,)
    env = args.env
    layers = tuple(compatibility.in_own_cache(item, env) for item in catalog.read().joined_layers(layer))
    declared = {item.check: item.reason for item in compatibility.declared(layers)}
    project = options.project_of(args)
    require_response(target, project.health)
    chosen = None
    lock = contextlib.ExitStack()
    if args.database:
        chosen = options.database_of(args, project)
        # The running site may be `benchapp up`, which shares its database.
        lock.enter_context(database.in_use(project, chosen, is_exclusive=False))
    with lock, Printer(sys.stderr, f"{target.origin} with layer {layer}: ") as printer:
        printer.show("rendering its pages")
        site = _site_of(target, project, chosen, env, args.allow_writes)
        context = Context(target, site, layers, Accounts(site, env), env, summary.TARGET, declared)
        notes = []
        if chosen:
            notes = database.notes(project, chosen)
        _print_notes(notes, printer, {})
        outcomes = run_suite(context, selection, summary.show_check(printer))
        return outcomes, [], [*notes, *changing.notes(context.site)]


def _site_of(target: Target, project: UnderTest, chosen: Database | None, env: dict[str, str], may_write: bool) -> Site:
    """The site, with its expected pages if its database is known."""
    if chosen is None:
        return target_site(target, project)
    if not chosen.url:
        raise BenchError(f"--target {target.origin}: give --database as the URL that the running site uses")
    commands.make_files(project, project.worker())
    commands.warm_up(project)
    return prepare(discover_site(project, chosen, chosen.url, may_write, env))


def _verify_deployments(args: argparse.Namespace, selection: Selection) -> Results:
    """Bring up each deployment that can run here, one after another, and verify it."""
    stacks = args.stack
    with working("looking at the project"):
        project = options.project_of(args)
        rows = options.database_of(args, project)
        # Before servers are installed for it.
        health.require_page(project, rows.of_project)
        health.require_sessions(project)
    if versions := pythons.choose(args.python):
        stacks = variants(stacks or catalog.read().usual_stacks, "python", versions)
    chosen = catalog.read().of_user(args.set, args.env)
    cases: list[Case] = []
    skips: list[Skip] = []
    for stack, layer in product(stacks or catalog.read().usual_stacks, args.layer or catalog.read().layers):
        case = resolve(project, stack, layer, size=args.size, database=rows, chosen=chosen)
        if isinstance(case, CannotRun):
            skips.append(Skip(stack, layer, None, case.reason))
        elif selection.of(case.layers):
            cases.append(case)
        else:
            skips.append(Skip(stack, layer, None, NEEDS_LAYER))
    if not cases:
        return [], skips, []
    if unnamed := options.unnamed(args, "--layer"):
        each_s = THOROUGH_S
        if args.quick:
            each_s = QUICK_S
        what = f"{plural(len(cases), 'case')}, in about {estimate(len(cases) * each_s)}"
        raise BenchError(f"without {unnamed} it verifies {what}; name {unnamed}, or add --all")
    with database.in_use(project, rows, is_exclusive=True):
        outcomes, notes = _verify_all(
            cases, Verifier(project, selection, args.allow_writes, options.served_words(args))
        )
        return outcomes, skips, notes


def _verify_all(cases: list[Case], verifier: Verifier) -> tuple[list[Outcome], list[str]]:
    """The outcomes, and notes for the reader, each once."""
    outcomes: list[Outcome] = []
    noted: dict[str, None] = {}
    for number, case in enumerate(cases, 1):
        started = time.monotonic()
        with Printer(sys.stderr, f"{number} of {len(cases)}: ") as printer:
            case_outcomes = _verify_one(verifier, case, printer, noted)
            took_s = time.monotonic() - started
            printer.say(f"{case.name}: {summary.count(case_outcomes)} ({took_s:.1f} s with starting and stopping)")
        outcomes += case_outcomes
    return outcomes, list(noted)


def _verify_one(verifier: Verifier, case: Case, printer: Printer, noted: dict[str, None]) -> list[Outcome]:
    stack, layer = case.stack.name, case.layer_name
    try:
        with deployment.deployed(case, progress=printer.show) as running:
            _print_notes(running.notes, printer, noted)
            printer.show(f"{case.name}: rendering its pages")
            outcomes = verifier.verify(running, summary.show_check(printer, f"{case.name}: "))
            _print_notes(verifier.notes, printer, noted)
            if died := running.died():
                outcomes.append(_not_up(stack, layer, died))
            printer.show(f"stopping {stack}")
            return outcomes
    except DeploymentError as error:
        return [_not_up(stack, layer, error)]


def _print_notes(notes: list[str], printer: Printer, noted: dict[str, None]) -> None:
    """Print new notes, and remember them."""
    for note in notes:
        if note not in noted:
            printer.say(f"note: {note}")
    noted.update(dict.fromkeys(notes))


def _not_up(stack: str, layer: str, error: DeploymentError) -> Outcome:
    return Outcome(stack, layer, UP, False, "the deployment comes up and stays up", str(error))
