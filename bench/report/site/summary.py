"""What a site shows of one run, from its report. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from bench.report import conditions, pick, ratings, safety
from bench.report.faults import model as faults
from bench.report.faults import texts
from bench.report.findings import standing
from bench.report.model import BASELINE, CaseRow, Panel, Report
from bench.report.redact import redacted
from bench.results.faults import FaultsRun
from bench.results.records import Environment
from bench.results.site import FORMAT, SiteCase, SiteFailure, SiteFault, SiteGroup, SiteRun


def file_name(run: SiteRun) -> str:
    """The name of its file: when it began, and its folder."""
    began = re.sub(r"\D", "", run.started_at[:19])
    return f"{began}-{re.sub(r'[^A-Za-z0-9.-]+', '-', run.name).strip('.-') or 'run'}.json"


def of_run(report: Report, name: str) -> SiteRun:
    """A measured run."""
    said = pick.pick(report)
    plan = report.run.info.plan
    made = faults.arrange(report.faults) if report.faults else None
    return SiteRun(
        **_conditions(report.run.environment),
        format=FORMAT,
        name=name,
        started_at=report.run.info.started_at,
        command=conditions.command(report),
        project=PurePath(plan.project).name,
        question=pick.question(report),
        answer=said[0].sentence,
        advice=tuple((item.topic, item.sentence) for item in said[1:]),
        cases=tuple(_cases(report)),
        checks=tuple(_checks(report)),
        failures=tuple(_failures(report)),
        faults=tuple(_faults(made)) if made else (),
    )


def of_faults(run: FaultsRun, name: str) -> SiteRun:
    """A folder of faults."""
    found = faults.arrange(run)
    return SiteRun(
        **_conditions(run.info.environment),
        format=FORMAT,
        name=name,
        started_at=run.info.started_at,
        command=texts.command(found),
        project=PurePath(run.info.plan.project).name,
        question="What do visitors notice when something is replaced or breaks?",
        answer=f"{texts.summary(found)}.",
        advice=tuple(texts.findings(found)),
        faults=tuple(_faults(found)),
    )


def _conditions(environment: Environment) -> dict[str, Any]:
    facts = dict(conditions.machine_of(environment))
    versions = {"Python": environment.python, **environment.programs, **environment.packages}
    return {
        "machine": facts["Machine"],
        "system": facts["System"],
        "commit": (environment.commit or "")[:12] + ("+" if environment.dirty else ""),
        "versions": versions,
    }


def _cases(report: Report) -> Iterator[SiteCase]:
    rated = {(item.stack, item.layer, item.workload, item.size): item.rating.word for item in ratings.rated(report)}
    for panel in report.panels:
        for row in panel.ranked:
            if row.rate:
                yield _case(panel, row, rated.get((row.stack, row.layer, row.setting.workload, row.setting.size), ""))


def _case(panel: Panel, row: CaseRow, rating: str) -> SiteCase:
    high = row.figure("latency_p99_ms")
    assert row.rate
    return SiteCase(
        row.stack,
        row.layer,
        row.setting.workload,
        row.setting.size,
        row.setting.database,
        row.setting.load,
        row.rate.median,
        row.rate.low,
        row.rate.high,
        row.rate.count,
        times_none=row.times_none.median if row.times_none and row.layer != BASELINE else None,
        latency_p99_ms=high.median if high else None,
        memory_peak_bytes=row.memory_total.median if row.memory_total else None,
        cpu_seconds_per_1000=row.cpu_total.median if row.cpu_total else None,
        stability=rating,
        standing=standing(panel, row),
    )


def _checks(report: Report) -> Iterator[SiteGroup]:
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for check in report.run.checks:
        counts.setdefault((check.stack, check.layer, check.group), Counter())[safety.word(check)] += 1
    for key, count in counts.items():
        yield SiteGroup(*key, dict(count))


def _failures(report: Report) -> Iterator[SiteFailure]:
    for check in report.run.checks:
        if not check.ok:
            expected, got = redacted(check.expected or ""), redacted(check.got or "")
            yield SiteFailure(check.stack, check.layer, check.check, expected, got, check.request)


def _faults(found: faults.Faults) -> Iterator[SiteFault]:
    for place, made in found.made.items():
        for name, item in made.items():
            if item.first.status == "skipped":
                continue
            noticed = ", ".join(filter(None, (faults.lost(item), faults.back(item)))) if item.usable else ""
            reason = item.first.declared or item.first.reason
            where = (place.stack, place.layer, place.size, place.database)
            yield SiteFault(*where, name, item.word, noticed, redacted(reason) if reason else None, item.first.request)
