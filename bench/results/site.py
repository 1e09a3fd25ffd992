"""One run in a site of several: ``runs/NAME.json``, what `bench report --site` shows of it. The numbers are medians.

A site is made from these files alone, so that others can add theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from bench.results.folder import convert, read_json
from bench.results.records import ResultsError, means

FORMAT = 1
RUNS_DIRECTORY = "runs"


@dataclass(frozen=True)
class SiteCase:
    """A case at a level with its figures."""

    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    workload: Annotated[str, means("Name of the workload.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    load: Annotated[str, means("The level with its unit, or the limit of the latency, in words.")]
    requests_per_second: Annotated[float, means("Answers a second: the median of the rounds, or the capacity.")]
    requests_low: Annotated[float, means("Low end of its 95 % confidence interval.")]
    requests_high: Annotated[float, means("High end of its 95 % confidence interval.")]
    rounds: Annotated[int, means("Rounds behind it.")]
    times_none: Annotated[float | None, means("Its ratio to the same stack without a layer; null for that itself.")] = (
        None
    )
    latency_p99_ms: Annotated[float | None, means("99 in 100 answers came within this many milliseconds.")] = None
    memory_peak_bytes: Annotated[float | None, means("Peak memory of all servers and services (PSS), in bytes.")] = None
    cpu_seconds_per_1000: Annotated[float | None, means("CPU seconds of all of them per 1,000 requests.")] = None
    stability: Annotated[str, means("HIGH, MEDIUM, LOW or not rated.")] = "not rated"
    standing: Annotated[str, means("Against the fastest case of the same panel: fastest, tie, or how far behind.")] = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes cases of two runs the same."""
        return (self.workload, self.load, self.size, self.database, self.stack, self.layer)


@dataclass(frozen=True)
class SiteGroup:
    """The checks of one group on one deployment: how many ended how."""

    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    group: Annotated[str, means("Group of the checks: behaviour, caching, privacy, ...")]
    counts: Annotated[dict[str, int], means("pass, declared, fail or not tried -> how many checks.")]


@dataclass(frozen=True)
class SiteFailure:
    """A check that found a wrong answer."""

    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    check: Annotated[str, means("Name of the check.")]
    expected: Annotated[str, means("The right answer.")]
    got: Annotated[str, means("The wrong answer received.")]
    request: Annotated[str | None, means("The request as a curl command for `up --port 8000`.")] = None


@dataclass(frozen=True)
class SiteFault:
    """What visitors noticed of a fault on a deployment, over its rounds."""

    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    fault: Annotated[str, means("Name of the fault.")]
    word: Annotated[str, means("pass, declared, FAIL or VOIDED.")]
    noticed: Annotated[str, means("Requests lost and seconds until all was right again, in words.")]
    reason: Annotated[str | None, means("Why it failed, is void or declared.")] = None
    request: Annotated[str | None, means("The first request without a right answer, as a curl command.")] = None


@dataclass(frozen=True)
class SiteRun:
    """A run, or the faults of one invocation, with its machine and date."""

    format: Annotated[int, means("Version of this file's format."), Meta(ge=1, le=FORMAT)]
    name: Annotated[str, means("Name of its folder.")]
    started_at: Annotated[str, means("When it began, ISO 8601 with offset.")]
    machine: Annotated[str, means("Processor, cores and memory.")]
    system: Annotated[str, means("Distribution and kernel.")]
    commit: Annotated[str, means("Git commit of the kit; empty when not known.")]
    versions: Annotated[dict[str, str], means("Program or package -> version.")]
    command: Annotated[str, means("Command that repeats it.")]
    project: Annotated[str, means("Name of the project's folder; empty for the site that the kit ships.")] = ""
    question: Annotated[str, means("What was asked.")] = ""
    answer: Annotated[str, means("The answer in one sentence; names between backticks.")] = ""
    advice: Annotated[tuple[tuple[str, str], ...], means("Topic and sentence of what else there is to say.")] = ()
    cases: Annotated[tuple[SiteCase, ...], means("The cases with figures.")] = ()
    checks: Annotated[tuple[SiteGroup, ...], means("The checks by deployment and group.")] = ()
    failures: Annotated[tuple[SiteFailure, ...], means("The checks that found a wrong answer.")] = ()
    faults: Annotated[tuple[SiteFault, ...], means("What visitors noticed of faults.")] = ()


def read_site(directory: Path) -> dict[str, SiteRun]:
    """File name -> run, of every JSON file in the folder of runs, newest first. Raises ResultsError for a wrong one."""
    found = {}
    for path in sorted((directory / RUNS_DIRECTORY).glob("*.json")):
        content = read_json(path)
        if content.get("format") != FORMAT:
            raise ResultsError(
                f"{path}: format is {content.get('format')!r} and this program reads {FORMAT}; remove the file, or "
                "make it with `python -m bench report --site`"
            )
        found[path.name] = convert(SiteRun, content, path)
    return dict(sorted(found.items(), key=lambda item: item[1].started_at, reverse=True))
