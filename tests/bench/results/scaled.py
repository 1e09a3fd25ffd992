"""Runs on several web hosts with invented figures, for the tests of what is projected from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.results import records
from bench.results.folder import Folder
from bench.results.hosts import HostCosts
from tests.bench.results.run_data import ENVIRONMENT, INFO, TRIAL

CASE = records.Case("two~none~home~gold~sqlite", "two", "none", "home", "gold", "sqlite")


def costs(share: float) -> HostCosts:
    """Of a host of two cores that was busy for a share of 2 s."""
    return HostCosts(sampled_s=2.0, cores=2, cpu_seconds=share * 4.0)


def groups(web: int) -> dict[str, tuple[str, ...]]:
    return {"front1": ("front",), **{f"web{n}": ("web",) for n in range(1, web + 1)}, "db1": ("db", "cache")}


def make(directory: Path, web: int, rates, *, hosts=None, plan=None, trial=TRIAL, **environment) -> Path:
    """A run on so many web hosts with these requests/s, each round one; each tier takes some time for a request."""
    folder = Folder(directory)
    folder.create()
    hosts = groups(web) if hosts is None else hosts
    folder.write_environment(replace(ENVIRONMENT, hosts=hosts or None, **environment))
    folder.write_info(replace(INFO, plan=replace(INFO.plan, rounds=len(rates), **(plan or {}))))
    for number, rate in enumerate(rates, 1):
        share = rate / 2000
        used = {name: costs(share / 2 / web if "web" in of else share) for name, of in hosts.items()}
        made = replace(trial, trial_id=f"{trial.trial_id}{number}", round=number, requests_total=2 * rate)
        folder.append_trial(replace(made, requests_per_second=float(rate), hosts=used or None))
    return directory
