"""Render a stack's files into a directory: for this machine, or with production's values for systemd on a host, for
Compose or for Kubernetes, with a note that says how to install them. Nothing is started."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from bench.catalog import catalog, compose, values
from bench.cli import options
from bench.cli.hosts import add_inventory
from bench.errors import BenchError
from bench.fleet import export as fleet
from bench.fleet import inventory
from bench.serve import containers, export

SYSTEMD = "systemd"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `render`."""
    options.add_stacks(parser, "stack", metavar="STACK", help="a stack of `list`")
    options.add_layer(parser)
    options.add_project(parser)
    parser.add_argument(
        "--values",
        default="bench",
        metavar="NAME|FILE",
        help="a file of deploy/values, or your own FILE.toml (default: bench)",
    )
    parser.add_argument(
        "--as",
        dest="form",
        choices=(SYSTEMD, *containers.FORMS),
        help="what runs it in production: systemd on a host, or containers (default: systemd)",
    )
    add_inventory(parser)
    options.add_size(parser)
    parser.add_argument("--force", action="store_true", help="render for production a stack that nobody should deploy")
    parser.add_argument("--to", required=True, type=Path, metavar="DIR", help="a new or empty directory")
    options.add_set(parser)


def main(args: argparse.Namespace) -> int:
    """Write the files and print their paths."""
    given = catalog.read().value_set(args.values)
    asked = values.parse_changes(args.set)
    chosen = given.changed(asked)
    composition = compose.compose_for_files(args.stack, args.layer, chosen)
    if (refusal := composition.stack.production) and chosen.places and not args.force:
        raise BenchError(f"{args.stack} for production: {refusal}; --force renders it all the same")
    _check_changes(composition, given, asked)
    for path in _write(composition, args):
        print(path)
    if lost := export.lost_tls(composition):
        print(f"note: {lost}; put a server before it that has them, as INSTALL.md says", file=sys.stderr)
    if wrong := export.wrong_port(composition):
        print(f"note: {wrong}", file=sys.stderr)
    if python := composition.stack.python:
        print(f"note: these files name no version: make the environment there with Python {python}", file=sys.stderr)
    return 0


def _check_changes(composition: compose.Composition, given: values.Values, asked: Collection[str]) -> None:
    """Say which values of a file do nothing here; raises BenchError for one of --set."""
    for name in export.idle_changes(composition, catalog.read().values[given.name]):
        happens = f"it changes no file of {composition.stack.name} with layer {composition.layer_name}"
        if name in asked:
            raise BenchError(f"--set {name}: {happens}; leave it out, or choose a stack whose servers have it")
        print(f"note: {name}: {happens}", file=sys.stderr)


def _write(composition: compose.Composition, args: argparse.Namespace) -> list[Path]:
    """The files, written in the form that was asked for; raises BenchError for an option that would do nothing."""
    size = catalog.read().size(args.size)
    if size and (problem := export.too_large_cache(composition, size)):
        raise BenchError(f"{problem}; --set cache_memory_mb={size.burstable_mb // 4}")
    if args.inventory and args.form:
        raise BenchError("--inventory renders for systemd on hosts; leave out --as")
    if args.inventory:
        return fleet.write(composition, inventory.read(args.inventory), args.to, size)
    if args.form in containers.FORMS:
        return containers.write(composition, args.to, args.form, size)
    if size and not composition.values.places:
        raise BenchError(f"--size {args.size}: limits what production runs; use --values production")
    if args.form and not composition.values.places:
        raise BenchError(f"--as {args.form} needs the places of a host: use --values production")
    return export.write(composition, args.to, size)
