"""Render a stack's files into a directory: for this machine, or with production's values for systemd on a host, for
Compose or for Kubernetes, with installation notes. Nothing is started."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from bench import PROGRAM
from bench.cli import options
from bench.errors import BenchError
from bench.printer import working
from bench.serve.catalog import catalog, values
from bench.serve.catalog.names import NO_LAYER
from bench.serve.deployment.case import Case, for_files
from bench.serve.production import advice, containers, inventory, one_host, project_files, several_hosts, target
from bench.serve.project.findings.code import production_settings

# Django's check of the secret key: https://docs.djangoproject.com/en/stable/ref/checks/#security
PUBLIC_KEY = "security.W009"

OUTPUT = replace(options.OUTPUT, required=True)
FORMATS = ("systemd", *containers.FORMS)
FORMAT = replace(
    options.format_of(FORMATS, f"{', '.join(FORMATS)} (default: {FORMATS[0]})"),
    group="files",
    hosts=True,
    excludes=("--local", "--inventory"),
)
PLAIN = replace(options.PLAIN, hosts=True, excludes=("--local",))

OPTIONS = (
    *(options.STACK, options.LAYER, options.SIZE, options.DATABASE, options.ENV, options.SET, options.PYTHON),
    *(options.PROJECT, options.CONFIG, replace(options.INVENTORY, help="for the hosts of that inventory", source="")),
    *(OUTPUT, options.VALUES, options.LOCAL, PLAIN, FORMAT, options.FORCE),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `render`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Write the files and print their paths."""
    options.refuse(args, OPTIONS)
    name = args.values
    if args.local:
        name = values.BENCH
    given = catalog.read().value_set(name)
    changes = args.set
    chosen = given.changed(changes)
    if args.database:
        raise BenchError("--database is for a site that runs: write its URL into secrets.env, as INSTALL.md says")
    if args.env and not chosen.places:
        raise BenchError("--env is in the files of a host only: leave out --local")
    with working("looking at the project"):
        case, notes = _case(args, chosen, args.env)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if (refusal := case.stack.production) and chosen.places and not args.force:
        raise BenchError(f"{case.stack.name} for production: {refusal}; --force renders it all the same")
    if chosen.places:
        _check_settings(case)
    if args.plain:
        _check_plain(case)
    _check_changes(case, given, changes)
    for layer in case.layers:
        if layer.unsafe:
            print(f"note: {layer.name}: {layer.unsafe}", file=sys.stderr)
    for note in case.notes:
        print(f"note: {note}", file=sys.stderr)
    # The install note comes last, so that the end of a long list names the next step.
    files = sorted(_write(case, args), key=lambda path: path.name == one_host.NOTE)
    for path in files:
        print(path)
    if wrong := advice.wrong_port(case):
        print(f"note: {wrong}", file=sys.stderr)
    if args.format in containers.FORMS and (lost := advice.lost_database(case)):
        print(f"note: {lost}", file=sys.stderr)
    if chosen.places and (names := advice.refused_hosts(case)):
        print(f"note: {names}", file=sys.stderr)
    if python := case.stack.python:
        print(f"note: these files name no version: make the environment there with Python {python}", file=sys.stderr)
    if files[-1].name == one_host.NOTE:
        print(f"{len(files)} files; next, read {files[-1]}", file=sys.stderr)
    return 0


def _case(args: argparse.Namespace, chosen: values.Values, env: dict[str, str]) -> tuple[Case, list[str]]:
    """The stack with its values for the host that suits the project, and notes on that host."""
    project = options.project_of(args).only_inspected
    notes = []
    if chosen.places and args.format not in containers.FORMS:
        chosen, release = target.for_project(project, chosen)
        notes = [note for note in (release, target.compiled_here(project)) if note]
    chosen = replace(chosen, user_env=env)
    return for_files(project, options.one_stack(args), args.layer, chosen, args.size), notes


def _check_settings(case: Case) -> None:
    """Raise BenchError without settings for production; warn if their key is public."""
    project = case.project.project
    if other := production_settings(project):
        raise BenchError(
            f"{project.folder}: manage.py names {project.settings}, and there is {other}, too; write settings = "
            f'"{other}", or the other, into [tool.benchapp]'
        )
    if case.project.overlaid and any(check.id == PUBLIC_KEY for check in case.project.facts.checks):
        where = case.project.facts.lines.get("SECRET_KEY", project.settings)
        reason = "is public or weak: the key in secrets.env replaces it"
        print(f"note: SECRET_KEY ({where}) {reason}", file=sys.stderr)


def _check_plain(case: Case) -> None:
    """Raise BenchError for a layer, or without a health check; print the packages to add to the project's list."""
    if case.layer_name != NO_LAYER:
        raise BenchError(
            f"--plain: layer {case.layer_name} needs benchapp's settings; leave --plain out, or add benchapp.caching "
            "to your own settings and set reads_environment in [tool.benchapp]"
        )
    if not case.project.description.health_checks:
        raise BenchError(
            "--plain: benchapp's health checks are in its settings; name a path that responds for any host and over "
            'plain HTTP: health = "/up/" in [tool.benchapp]'
        )
    if lacking := project_files.missing(case):
        print(f"note: --plain: add {', '.join(lacking)} to the project's requirements.txt", file=sys.stderr)
    print(f"note: {PROGRAM} doctor --plain --all lists what its settings lack", file=sys.stderr)


def _check_changes(case: Case, chosen: values.Values, changes: Collection[str]) -> None:
    """Print values of a file without effect; raises BenchError for such a --set."""
    for name in advice.idle_changes(case, catalog.read().values[chosen.name]):
        happens = f"it changes no file of {case.stack.name} with layer {case.layer_name}"
        if name in changes:
            raise BenchError(f"--set {name}: {happens}; leave it out, or choose a stack whose servers have it")
        print(f"note: {name}: {happens}", file=sys.stderr)


def _write(case: Case, args: argparse.Namespace) -> list[Path]:
    """Write the files in the form of --format; raises BenchError for an option without effect."""
    if problem := advice.too_large_cache(case, memory_disk=args.format in containers.FORMS):
        raise BenchError(f"{problem}; --set cache_memory_mb={case.size.burstable_mb // 4}")
    if args.inventory:
        return several_hosts.write(case, inventory.read(args.inventory), args.output)
    if args.format in containers.FORMS:
        return containers.write(case, args.output, args.format)
    if case.size.is_limited and not case.values.places:
        raise BenchError(f"--size {args.size}: limits what production runs; leave out --local")
    return one_host.write(case, args.output)
