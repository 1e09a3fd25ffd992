"""The request of a command line, the same for every command that measures."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from bench import PROGRAM
from bench.cli import options
from bench.measure.records.folder import read_run
from bench.measure.run.plan import Request
from bench.serve.project.opened import UnderTest, recorded_project


def request(args: argparse.Namespace, project: UnderTest, **more: Any) -> Request:
    """The request of a command line: the options common to all commands that measure, and `more` of this one."""
    return Request(
        project=project,
        database=options.database_of(args, project),
        env=args.env,
        changes=args.set,
        command=command_line(),
        **more,
    )


def project(args: argparse.Namespace) -> UnderTest:
    """The project of the command line; a resumed run names its own.

    Raises BenchError if unusable, or if the command line names another one than the run.
    """
    named = options.project_of(args)
    if not args.resume:
        return named
    plan = read_run(args.resume).info.plan
    return recorded_project(named, plan.project, plan.describe)


def command_line() -> tuple[str, ...]:
    """The command line as stored in results."""
    return tuple(without_password(word) for word in (*PROGRAM.split(), *sys.argv[1:]))


def without_password(word: str) -> str:
    """A word of a command line, with user and password removed from URLs."""
    return re.sub(r"://[^/@\s]*@", "://...@", word)
