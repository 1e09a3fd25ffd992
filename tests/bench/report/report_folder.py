"""A run's folder full of invented figures, for the tests of reports and comparisons. Nothing here was measured."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.records import records, trials
from bench.records.folder import Folder

MIB = 1024 * 1024

STACKS = ("gunicorn", "uwsgi", "nginx-gunicorn", "nginx-uwsgi")
LAYERS = ("none", "fragments", "site-middleware", "staticgenerator")
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
    ("home", "site-middleware"): 1530.0,
    ("home", "staticgenerator"): 38_000.0,
    ("session", "none"): 320.0,
    ("session", "fragments"): 335.0,
    ("session", "site-middleware"): 1210.0,
    ("session", "staticgenerator"): 9400.0,
}
BASE_MEMORY = {"gunicorn": 118, "uwsgi": 84, "nginx": 9, "memcached": 14}

SKIPPED = tuple(
    records.Skip(stack, "staticgenerator", None, f"no web server in front: {stack} cannot serve the finished pages")
    for stack in ("gunicorn", "uwsgi")
)


def environment(**changes) -> records.Environment:
    """An invented machine."""
    return replace(
        records.Environment(
            cpu_model="Example 3000 (test data)",
            cores=2,
            memory_bytes=8 * 1024 * MIB,
            kernel="Linux 6.1.0-example",
            os="Debian GNU/Linux 12 (bookworm)",
            python="CPython 3.11.7",
            packages={"Django": "5.2.19", "gunicorn": "27.0.1", "pyuwsgi": "2.0.30"},
            programs={"nginx": "1.22.1", "gunicorn": "27.0.1", "uwsgi": "2.0.30"},
            load_tool=records.LoadTool("wrk", "4.1.0", False),
            commit="0123456789abcdef0123456789abcdef01234567",
            dirty=False,
        ),
        **changes,
    )


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
    finished: bool = True,
    machine: records.Environment | None = None,
    change: Callable[[trials.Trial], trials.Trial | None] | None = None,
) -> Path:
    """Write the folder and return it. `change` may alter each trial, or drop it by returning None."""
    chance = random.Random(seed)
    folder = Folder(directory)
    cases = _cases(workloads, database)
    plan = records.Plan(STACKS, LAYERS, workloads, levels, rounds, 10.0, ("unlimited",), database, 1_020_000, 7)
    machine = machine or environment()
    machine = replace(machine, cpu_model=HOSTILE) if hostile else machine
    folder.create(_info(plan, cases, hostile, finished), machine)
    for number, case, level in itertools.product(range(1, rounds + 1), cases, levels):
        trial = _trial(case, level, number, chance, factor, hostile)
        trial = change(trial) if change else trial
        if trial is not None:
            folder.append(trial)
    folder.append(*_checks(hostile))
    _configs(folder, hostile)
    return directory


def _cases(workloads: tuple[str, ...], database: str) -> tuple[records.Case, ...]:
    return tuple(
        records.Case(
            _id(stack, layer, workload, database), stack, layer, workload, "unlimited", database, _notes(layer)
        )
        for stack in STACKS
        for layer in LAYERS
        if not any((skip.stack, skip.layer) == (stack, layer) for skip in SKIPPED)
        for workload in workloads
    )


def _info(plan: records.Plan, cases: tuple[records.Case, ...], hostile: bool, finished: bool) -> records.RunInfo:
    return records.RunInfo(
        format=records.FORMAT,
        command=("python", "-m", "bench", "run", "--rounds", str(plan.rounds)),
        started_at="2026-11-21T08:07:00+00:00",
        finished_at="2026-11-21T08:19:30+00:00" if finished else None,
        plan=plan,
        cases=cases,
        skips=(*SKIPPED, records.Skip("nginx-uwsgi", "<b>bold</b>", "home", HOSTILE)) if hostile else SKIPPED,
        notes=(HOSTILE,) if hostile else (),
    )


def _id(*parts: str) -> str:
    return "~".join((*parts[:3], "unlimited", parts[3]))


def _notes(layer: str) -> tuple[str, ...]:
    return ("memcached is not installed: a cache in each process's memory is used",) if layer == "fragments" else ()


def _trial(
    case: records.Case, level: int, number: int, chance: random.Random, factor: float, hostile: bool
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
    return _partly_unmeasured(_measured(case, level, number, rate, chance), where)


def _measured(case: records.Case, level: int, number: int, rate: float, chance: random.Random) -> trials.Trial:
    mean = level / rate * 1000
    servers = _servers(case)
    memory = {name: _samples(name, base, chance) for name, base in servers.items()}
    return trials.Trial(
        **_identity(case, level, number),
        status="ok",
        reason=None,
        log=None,
        duration_s=10.0,
        requests_total=int(rate * 10),
        requests_per_second=rate,
        bytes_per_second=rate * 9400,
        latency_p50_ms=mean * 0.92,
        latency_p99_ms=mean * chance.uniform(2.5, 6),
        latency_max_ms=mean * chance.uniform(8, 12),
        errors_connect=0,
        errors_read=0,
        errors_timeout=3 if (case.stack, case.layer) == ("gunicorn", "none") and number == 1 else 0,
        responses_not_2xx=0,
        memory=memory,
        memory_peak_bytes={name: max(pss for _, pss in samples) for name, samples in memory.items()},
        cpu_seconds={name: 9.0 * (0.9 if name not in ("nginx", "memcached") else 0.1) for name in servers},
        processes={name: 5 if name in ("gunicorn", "uwsgi") else 2 for name in servers},
        time_to_ready_s=chance.uniform(0.4, 1.2),
        keep_alive=True,
    )


def _partly_unmeasured(trial: trials.Trial, where: tuple[str, str, str]) -> trials.Trial:
    if where == ("uwsgi", "site-middleware", "home"):
        return replace(trial, latency_p99_ms=None, memory=None, memory_peak_bytes=None, cpu_seconds=None)
    if where == ("gunicorn", "site-middleware", "session"):
        return replace(trial, latency_p50_ms=None, latency_p99_ms=None, latency_max_ms=None)
    return trial


def failed(case, level: int, number: int, reason: str, log: str | None = None) -> trials.Trial:
    """A failed trial of a case, which has no figures."""
    identity = trials.TrialIdentity(**_identity(case, level, number))
    log = log or f"raw/{identity.trial_id}/server.log"
    return trials.Trial.of(identity, status="failed", reason=reason, log=log)


def _identity(case, level: int, number: int) -> dict:
    names = ("case_id", "stack", "layer", "workload", "size", "database")
    return {name: getattr(case, name) for name in names} | {
        "trial_id": f"{case.case_id}~c{level}~r{number}",
        "level_connections": level,
        "round": number,
        "started_at": "2026-11-21T08:08:00+00:00",
        "tool": "wrk",
    }


def _servers(case: records.Case) -> dict[str, int]:
    names = case.stack.split("-")[::-1] + (["memcached"] if case.layer == "fragments" else [])
    return {name: BASE_MEMORY[name] for name in names}


def _samples(name: str, base: int, chance: random.Random) -> tuple[tuple[float, int], ...]:
    growth = chance.uniform(0.05, 0.3) if name != "nginx" else 0.02
    return tuple(
        (float(at), int(base * MIB * (1 + growth * (1 - 0.6**at)) + chance.uniform(0, 0.4) * MIB)) for at in range(11)
    )


def _checks(hostile: bool) -> list[records.Outcome]:
    kinds = ("status", "content", "static files", "404", "HEAD", "login", "comment")
    skipped = {(skip.stack, skip.layer) for skip in SKIPPED}
    checks = [
        records.Outcome(stack, layer, kind, True, "as rendered", "as rendered")
        for stack in STACKS
        for layer in LAYERS
        if (stack, layer) not in skipped
        for kind in kinds
    ]
    known = "chunked bodies are refused by design"
    checks.append(records.Outcome("uwsgi", "none", "chunked body", True, None, f"declared: {known}", known))
    wrong = HOSTILE if hostile else "the greeting of another account"
    checks.append(records.Outcome("gunicorn", "site-middleware", "login", False, "Hello, alice", wrong))
    return checks


def _configs(folder: Folder, hostile: bool) -> None:
    for stack in STACKS:
        for layer in LAYERS:
            deployment = folder.configs / f"{stack}~{layer}"
            for name in stack.split("-"):
                path = deployment / name / f"{name}.conf"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"# {name}, as rendered (test data)\nprocesses = 4\nlisten = 127.0.0.1:8000\n")
    if hostile:
        (deployment / "evil.conf").write_text(
            f"</pre>{HOSTILE}\nSECRET_KEY=very-private\nurl postgres://me:hush@host/db\n"
        )
        (deployment / "binary.bin").write_bytes(b"\x00\x01\x02")
        (deployment / "link.conf").symlink_to("/etc/hostname")
