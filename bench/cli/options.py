"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import argparse

from bench.catalog import sizes


def add_size(parser: argparse.ArgumentParser) -> None:
    """The argument that limits a deployment."""
    parser.add_argument(
        "--size",
        default=sizes.UNLIMITED,
        metavar="S",
        help="limit memory and processor time: a size of deploy/sizes.toml, such as bronze (default: no limit)",
    )


def add_set(parser: argparse.ArgumentParser) -> None:
    """The argument that changes a value for every stack."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="change a value of deploy/values/bench.toml"
    )


def port_number(text: str) -> int:
    """A TCP port from 1 to 65535, for argparse."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; use a number from 1 to 65535")
    return int(text)
