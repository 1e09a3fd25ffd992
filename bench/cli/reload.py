"""Reload the servers of `up`: files rendered again from deploy/, and a new version of the site's code.

New processes of the application serve before the old ones finish their requests; other servers reload by their
server.toml, or are restarted if they cannot reload. Nothing changes if the site fails its own check or a server
refuses a file.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from bench.cli import options
from bench.printer import working
from bench.serve.deployment import reload

OPTIONS = (replace(options.PORT, help="the port that `up` serves on"), options.PID)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `reload`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Reload, and print a line a server."""
    options.refuse(args, OPTIONS)
    served = reload.find(port=args.port, pid=args.pid)
    with working("reloading"):
        done_by = reload.request_reload(served).done
    for server, done in done_by.items():
        print(f"{server}: {done}")
    return 0
