"""A run's folder full of invented figures, for the tests of reports and comparisons. Nothing here was measured."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from bench.measure.records import records, trials
from bench.measure.records.folder import ADDRESSES_FILE, Folder, read_info, write_json
from bench.measure.stats.rate_search import Limit
from bench.verify.outcome import Outcome, Skip
from tests.bench.measure.records.run_data import ENVIRONMENT, INFO, TRIAL, at_rate, changed

MIB = 1024 * 1024

STACKS = ("gunicorn", "uwsgi", "nginx-gunicorn", "nginx-uwsgi")
LAYERS = ("none", "fragments", "page-cache", "staticgenerator")
WORKLOADS = ("session", "home")
ROUNDS = 3
LEVEL = 50

HOSTILE = (
    "\"><script>alert('x')</script><img src=http://evil.example/x.png onerror=alert(1)> | `tick` @someone \x1b[31m"
)
EVIL_LOG = "javascript:alert(1)"

FACTOR = {"gunicorn": 1.0, "uwsgi": 1.08, "nginx-gunicorn": 0.93, "nginx-uwsgi": 1.12}
RATE = {
    ("home", "none"): 104.0,
    ("home", "fragments"): 430.0,
    ("home", "page-cache"): 1530.0,
    ("home", "staticgenerator"): 38_000.0,
    ("session", "none"): 320.0,
    ("session", "fragments"): 335.0,
    ("session", "page-cache"): 1210.0,
    ("session", "staticgenerator"): 9400.0,
}
MEMORY = {"gunicorn": 118, "uwsgi": 84, "nginx": 9, "memcached": 14}

SKIPPED = tuple(
    Skip(stack, "staticgenerator", None, f"no web server in front: {stack} cannot serve the finished pages")
    for stack in ("gunicorn", "uwsgi")
)


def environment(**changes) -> records.Environment:
    """An invented machine."""
    usual = {"cpu_model": "Example 3000 (test data)", "memory_bytes": 8 * 1024 * MIB, "commit": "0123456789abcdef" * 2}
    usual |= {"packages": {"Django": "5.2.19", "gunicorn": "27.0.1"}, "programs": {"nginx": "1.22.1"}}
    return replace(ENVIRONMENT, **{**usual, **changes})


def make(
    directory: Path,
    *,
    rounds: int = ROUNDS,
    levels: tuple[int, ...] = (LEVEL,),
    workloads: tuple[str, ...] = WORKLOADS,
    database: str = "sqlite",
    factor: float = 1.0,
    seed: int = 7,
    hostile: bool = False,
    machine: records.Environment | None = None,
    change: Callable[[trials.Trial], trials.Trial | None] | None = None,
) -> Path:
    """Write the folder and return it. `change` may alter each trial, or return None to drop the trial."""
    chance = random.Random(seed)
    folder = Folder(directory)
    note = "memcached is not installed: a cache in each process's memory is used"
    cases = tuple(
        records.CaseRecord("~".join((*where, "unlimited", database)), *where, "unlimited", database, notes)
        for where in itertools.product(STACKS, LAYERS, workloads)
        if not any((skip.stack, skip.layer) == where[:2] for skip in SKIPPED)
        for notes in [(note,) if where[1] == "fragments" else ()]
    )
    plan = records.Plan(STACKS, LAYERS, workloads, levels, rounds, 10.0, ("unlimited",), database, 1_020_000, 7)
    machine = machine or environment()
    machine = replace(machine, cpu_model=HOSTILE) if hostile else machine
    command = ("python", "-m", "bench", "run", "--rounds", str(rounds))
    info = replace(INFO, command=command, plan=plan, cases=cases, skips=SKIPPED, notes=())
    info = replace(info, started_at="2026-11-21T08:07:00+00:00", finished_at="2026-11-21T08:19:30+00:00")
    if hostile:
        skip = Skip("nginx-uwsgi", "<b>bold</b>", "home", HOSTILE)
        info = replace(info, skips=(*SKIPPED, skip), notes=(HOSTILE,))
    folder.create(info, machine)
    order = itertools.product(range(1, rounds + 1), cases, levels)
    measured = [_trial(case, level, number, chance, factor, hostile) for number, case, level in order]
    folder.append(*filter(None, map(change, measured) if change else measured))
    folder.append(*_checks(hostile))
    for case in cases:
        (folder.configs / f"{case.stack}~{case.layer}").mkdir(exist_ok=True)
    return directory


def capacity(
    directory: Path,
    held: Mapping[str, tuple[int, ...]],
    change: Callable[[trials.Trial], trials.Trial] = lambda trial: trial,
    sizes: tuple[str, ...] = ("unlimited",),
) -> Path:
    """A run of gunicorn with layers; staircases are cut down to the rates around their ends.

    held  layer -> highest rate of each round
    """
    run = Folder(make(directory, workloads=("home",), change=lambda trial: None))
    info = read_info(directory)
    cases = [case for case in info.cases if case.stack == "gunicorn" and case.layer in held]
    cases = [
        replace(case, size=size, case_id=case.case_id.replace("unlimited", size)) for case in cases for size in sizes
    ]
    plan = replace(info.plan, mode="open", levels=(), capacity=Limit("p95", 200.0), sizes=sizes)
    run.write(replace(info, plan=plan, cases=tuple(cases), skips=()))
    write_json(directory / ADDRESSES_FILE, {"home": ["/", "/static/site.css"]})
    (directory / "verify.jsonl").unlink()
    for case in cases:
        identity = {name: getattr(case, name) for name in ("case_id", "stack", "layer", "workload", "size")}
        for number, most in enumerate(held[case.layer], 1):
            for rate, latency in ((50, 20.0), (most, 90.0), (most * 1.06 // 1, 450.0)):
                run.append(change(replace(at_rate(int(rate), latency, number), **identity)))
    return directory


def _trial(
    case: records.CaseRecord, level: int, number: int, chance: random.Random, factor: float, hostile: bool
) -> trials.Trial:
    where = (case.stack, case.layer, case.workload)
    if where == ("nginx-gunicorn", "fragments", "session"):
        reason = HOSTILE if hostile else "server stopped during the trial: worker was killed (signal 9)"
        return failed(case, level, number, reason, EVIL_LOG if hostile else None)
    if where == ("uwsgi", "fragments", "home") and number == 2:
        return failed(case, level, number, "not ready after 20 s on its port")
    rate = RATE[case.workload, case.layer] * FACTOR[case.stack] * factor * (1 - 8 / (8 + level))
    if case.layer == "staticgenerator" and case.stack == "nginx-gunicorn":
        rate *= FACTOR["nginx-uwsgi"] / FACTOR["nginx-gunicorn"]
    rate *= chance.uniform(0.96, 1.04)
    servers = [*case.stack.split("-"), *(["memcached"] if case.layer == "fragments" else [])]
    memory = {name: MEMORY[name] * MIB for name in servers}
    cpu = {name: 0.9 if name in ("nginx", "memcached") else 8.1 for name in servers}
    # One has responses without a cost.
    is_known = where != ("uwsgi", "page-cache", "home")
    trial = changed(
        TRIAL,
        **_identity(case, level, number),
        duration_s=10.0,
        requests_total=int(rate * 10),
        requests_per_second=rate,
        bytes_per_second=rate * 9400,
        errors_timeout=3 if (case.stack, case.layer) == ("gunicorn", "none") and number == 1 else 0,
        memory={name: ((0.0, used),) for name, used in memory.items()},
        memory_peak_bytes=memory,
        cpu_seconds=cpu,
        processes=dict.fromkeys(servers, 5),
    )
    return trial if is_known else changed(trial, memory=None, memory_peak_bytes=None, cpu_seconds=None)


def failed(case, level: int, number: int, reason: str, log: str | None = None) -> trials.Trial:
    """A failed trial of a case, without figures."""
    identity = trials.TrialIdentity(**_identity(case, level, number))
    log = log or f"raw/{identity.trial_id}/server.log"
    return trials.Trial(**vars(identity), status="failed", reason=reason, evidence=trials.Evidence(log=log))


def _identity(case, level: int, number: int) -> dict:
    names = ("case_id", "stack", "layer", "workload", "size", "database")
    return {name: getattr(case, name) for name in names} | {
        "trial_id": f"{case.case_id}~c{level}~r{number}",
        "level_connections": level,
        "round": number,
        "started_at": "2026-11-21T08:08:00+00:00",
        "tool": "wrk",
    }


def _checks(hostile: bool) -> list[Outcome]:
    kinds = ("status", "content", "static files", "404", "HEAD", "login", "comment")
    skipped = {(skip.stack, skip.layer) for skip in SKIPPED}
    checks = [
        Outcome(stack, layer, kind, True, "as rendered", "as rendered")
        for stack in STACKS
        for layer in LAYERS
        if (stack, layer) not in skipped
        for kind in kinds
    ]
    known = "chunked bodies are refused by design"
    checks.append(Outcome("uwsgi", "none", "chunked body", True, None, f"declared: {known}", known))
    wrong = HOSTILE if hostile else "the greeting of another account"
    checks.append(Outcome("gunicorn", "page-cache", "login", False, "Hello, alice", wrong))
    return checks
