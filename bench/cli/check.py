"""Check the manifests and the rendered files: every template renders, each server's own configuration test passes."""

from __future__ import annotations

import argparse
from dataclasses import replace

from bench.cli import options
from bench.printer import Printer
from bench.serve.catalog import catalog
from bench.serve.deployment.config_check import ConfigCheck, check
from bench.serve.project.opened import open_project

OPTIONS = (replace(options.STACKS, help="stacks to check (default: all)"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `check`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Print a line a check; returns 1 when one failed."""
    known, project = catalog.read(), open_project()
    chosen = [known.stack(name) for name in args.stack] or list(known.stacks.values())
    failed = 0
    with Printer() as printer:
        for stack in chosen:
            for layer in known.layers.values():
                printer.show(f"checking {stack.name} with layer {layer.name}")
                for finding in check(project, stack, layer):
                    failed += bool(finding.problem and not finding.skipped)
                    printer.say(_line(finding))
    if failed:
        return 1
    return 0


def _line(finding: ConfigCheck) -> str:
    word = "ok"
    if finding.skipped:
        word = "skip"
    elif finding.problem:
        word = "FAIL"
    line = f"{word:4}  {finding.stack} {finding.layer} {finding.server}".rstrip()
    problems = finding.problem.splitlines()
    if len(problems) > 1:
        return "\n      ".join([f"{line}:", *problems])
    if problems:
        return f"{line}: {finding.problem}"
    return line
