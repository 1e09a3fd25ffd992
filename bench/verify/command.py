"""The `verify` command: bring each deployment up, run the suite through its front port, say what is wrong."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from bench import compose, database, deployment, manifest, paths, site, values
from bench.deployment import Running
from bench.errors import BenchError, DeploymentError
from bench.identity import worker
from bench.up import add_set, environment
from bench.verify.site import Site, prepare
from bench.verify.suite import LOAD_S, Outcome, all_checks, must_know, verify_url
from bench.verify.wire import Target

SUMMARY = "prove that stacks and layers give right answers"
UP = "up"
TARGET = "target"


@dataclass(frozen=True)
class Skip:
    """A deployment that cannot run here, and why."""

    stack: str
    layer: str
    reason: str


class Verifier:
    """Verifies one deployment after another of the same database; the site is asked for its answers once."""

    def __init__(self, only: Iterable[str] = (), load_s: float = LOAD_S):
        self.only = tuple(only)
        self.load_s = load_s
        self._site: Site | None = None

    def verify(self, running: Running) -> list[Outcome]:
        """One Outcome a check; raises BenchError when the site's own commands fail."""
        if self._site is None:
            url = running.env["DATABASE_URL"]
            env = site.site_environment(url, paths.VAR)
            self._site = prepare(url, env, paths.PYTHON, paths.MANAGE, prefix=worker().prefix)
        composition = running.composition
        return verify_url(
            running.url,
            self._site,
            stack=composition.stack.name,
            layer=composition.layer_name,
            env=running.env,
            declared={item.check: item.reason for item in composition.declares},
            only=self.only,
            load_s=self.load_s,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `verify`."""
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="stacks of `list` (default: all)")
    parser.add_argument(
        "--layer", action="append", metavar="L", help="a layer, or several joined with + (repeatable; default: all)"
    )
    parser.add_argument("--check", action="append", default=[], metavar="NAME", help="run only this check (repeatable)")
    parser.add_argument("--list-checks", action="store_true", help="print the checks with what each proves, and stop")
    parser.add_argument(
        "--database", metavar="URL|postgresql", help="sqlite (default), postgresql (a private cluster) or a URL"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="K=V", help="a variable of the site's environment"
    )
    parser.add_argument(
        "--target",
        metavar="URL",
        help="a site of this project that runs already, on the database that --database names; --layer says its layer",
    )
    parser.add_argument(
        "--load", type=seconds, default=2.5, metavar="SEC", help="how long 100 clients ask at once (default: 2.5)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    add_set(parser)


def seconds(text: str) -> float:
    """A number of seconds from 0.1 to 60, for argparse."""
    with contextlib.suppress(ValueError):
        if 0.1 <= float(text) <= 60:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.1 to 60")


def main(args: argparse.Namespace) -> int:
    """Verify what is asked for; returns 1 when a check fails or a deployment does not come up."""
    if args.list_checks:
        return _print_checks(args.json)
    must_know(args.check)
    signal.signal(signal.SIGTERM, _stop)
    if args.target:
        outcomes, skips = _verify_target(args), []
    else:
        outcomes, skips = _verify_deployments(args)
    failed = [item for item in outcomes if not item.ok]
    if args.json:
        document = {
            "ok": not failed,
            "outcomes": [asdict(item) for item in outcomes],
            "skips": [asdict(s) for s in skips],
        }
        print(json.dumps(document, indent=2))
    else:
        print(as_text(outcomes, skips))
    return 1 if failed else 0


def _stop(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


def _print_checks(as_json: bool) -> int:
    checks = [{"check": item.name, "proves": item.title} for item in all_checks()]
    if as_json:
        print(json.dumps(checks, indent=2))
    else:
        width = max(len(item["check"]) for item in checks)
        print("\n".join(f"{item['check']:{width}}  {item['proves']}" for item in checks))
    return 0


def _verify_target(args: argparse.Namespace) -> list[Outcome]:
    """Run the suite against a site that somebody else has brought up."""
    if args.stacks:
        raise BenchError(f"--target {args.target}: it runs already, so name no STACK")
    if args.layer and len(args.layer) > 1:
        raise BenchError(f"--target {args.target}: name the one layer it runs under, joined with + if several")
    target = Target.parse(args.target)
    chosen = database.parse(args.database, manifest.services())
    if not chosen.url:
        raise BenchError(f"--target {args.target}: give --database as the URL that the running site uses")
    env = {**site.site_environment(chosen.url, paths.VAR), **environment(args.env)}
    asked = prepare(chosen.url, env, paths.PYTHON, paths.MANAGE, prefix=worker().prefix)
    layer = args.layer[0] if args.layer else manifest.NO_LAYER
    return verify_url(target, asked, stack=TARGET, layer=layer, only=args.check, load_s=args.load)


def _verify_deployments(args: argparse.Namespace) -> tuple[list[Outcome], list[Skip]]:
    """Bring up each deployment asked for that can run here, one after another, and verify it."""
    pairs, skips = plan(args.stacks, args.layer or [])
    if not pairs:
        raise BenchError("nothing to verify here: " + "; ".join(f"{s.stack} with {s.layer}: {s.reason}" for s in skips))
    verifier, outcomes = Verifier(args.check, args.load), []
    for stack, layer in pairs:
        started = time.monotonic()
        found = _verify_one(verifier, stack, layer, args)
        outcomes += found
        wrong = sum(not item.ok for item in found)
        result = f"{wrong} of {len(found)} checks failed" if wrong else f"{len(found)} checks passed"
        took = time.monotonic() - started
        print(
            f"{stack} with layer {layer}: {result} ({took:.1f} s with starting and stopping)",
            file=sys.stderr,
            flush=True,
        )
    return outcomes, skips


def _verify_one(verifier: Verifier, stack: str, layer: str, args: argparse.Namespace) -> list[Outcome]:
    try:
        with deployment.deployed(
            stack,
            layer,
            database=args.database,
            env=environment(args.env),
            changes=values.parse_changes(args.set),
        ) as running:
            found = verifier.verify(running)
            if died := running.died():
                found.append(_not_up(stack, layer, died))
            return found
    except DeploymentError as error:
        return [_not_up(stack, layer, error)]


def _not_up(stack: str, layer: str, error: DeploymentError) -> Outcome:
    return Outcome(stack, layer, UP, False, "the deployment comes up and stays up", str(error))


def plan(stacks: Iterable[str], layers: Iterable[str]) -> tuple[list[tuple[str, str]], list[Skip]]:
    """Which pairs of stack and layer can run here, and which of those asked for cannot; nothing named means all."""
    pairs, skips = [], []
    chosen_layers = list(layers) or list(manifest.layers())
    for name in list(stacks) or list(manifest.stacks()):
        for layer in chosen_layers:
            composed = compose.compose(compose.stack(name), compose.layers(layer))
            if isinstance(composed, compose.Skip):
                skips.append(Skip(name, layer, composed.reason))
            else:
                pairs.append((name, layer))
    return pairs, skips


def as_text(outcomes: list[Outcome], skips: list[Skip]) -> str:
    """The table of checks by deployment, then each failure in detail, what is declared, and what was skipped."""
    deployments = list(dict.fromkeys((item.stack, item.layer) for item in outcomes))
    cells = {(item.stack, item.layer, item.check): _word(item) for item in outcomes}
    names = list(dict.fromkeys(item.check for item in outcomes))
    lines = ["DEPLOYMENTS"]
    for number, (stack, layer) in enumerate(deployments, 1):
        words = [cells[key] for key in cells if key[:2] == (stack, layer)]
        lines.append(f"  {number:>2}  {stack} with layer {layer}: {_count(words)}")
    width = max(map(len, names), default=0)
    lines += ["", f"{'CHECK':{width}}  " + " ".join(f"{number:>8}" for number in range(1, len(deployments) + 1))]
    for name in names:
        row = [cells.get((*key, name), "-") for key in deployments]
        lines.append(f"{name:{width}}  " + " ".join(f"{word:>8}" for word in row))
    for item in outcomes:
        if not item.ok:
            lines += ["", f"FAIL {item.stack} with layer {item.layer}, {item.check}"]
            lines += [f"  expected  {item.expected}", f"  got       {item.got}"]
    if any(item.declared for item in outcomes):
        lines += ["", "DECLARED"]
        lines += [f"  {i.stack} with layer {i.layer}, {i.check}: {i.declared}" for i in outcomes if i.declared]
    if skips:
        lines += ["", "SKIPPED"]
        lines += [f"  {skip.stack} with layer {skip.layer}: {skip.reason}" for skip in skips]
    return "\n".join(lines)


def _word(item: Outcome) -> str:
    if item.declared:
        return "declared"
    return "pass" if item.ok else "FAIL"


def _count(words: list[str]) -> str:
    failed, declared = words.count("FAIL"), words.count("declared")
    if failed:
        return f"{failed} of {len(words)} checks failed"
    return f"{len(words)} checks passed" + (f", {declared} of them declared" if declared else "")
