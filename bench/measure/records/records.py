"""The records of a run, each declared once: field, type, and a sentence on the meaning.

`folder` writes and reads the records, `schema` makes their JSON Schema; msgspec derives both from these declarations.

``None`` means "not measured". The record of a trial is in `trials`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from bench.errors import BenchError
from bench.means import means
from bench.measure.stats.rate_search import Limit
from bench.serve.catalog.names import NO_LAYER
from bench.verify.outcome import Skip
from bench.words import case_name, option_words, setting_words

# No earlier one is read: its guards and figures have other names and meanings.
FORMAT = 6
# Of the duration of a trial, and of seconds.
WARMUP_SHARE, MAX_WARMUP_S = 0.2, 2.0


def options_of(layer: str) -> list[str]:
    """The words that name a layer on a command line; none without one."""
    if layer == NO_LAYER:
        return []
    return ["--layer", layer]


class ResultsError(BenchError, ValueError):
    """A folder or a line is not readable as results; one line says what, where and what to do next."""


def warmup_s(duration_s: float) -> float:
    """Seconds of unmeasured load before a trial of this duration."""
    return min(MAX_WARMUP_S, WARMUP_SHARE * duration_s)


@dataclass(frozen=True)
class LoadTool:
    """The program that made the load."""

    name: Annotated[str, means("Name of the load tool, such as wrk.")]
    version: Annotated[str | None, means("Version the load tool printed.")]
    fallback: Annotated[bool, means("True if the tool is the fallback, used if no faster load tool is installed.")]


@dataclass(frozen=True)
class Environment:
    """The machine and the programs of a run; two runs are comparable only if equal in this record."""

    cpu_model: Annotated[str | None, means("Model name of the processor.")]
    cores: Annotated[int, means("Processor cores this process may use.")]
    memory_bytes: Annotated[int, means("Memory of the machine, in bytes.")]
    kernel: Annotated[str, means("Name and release of the kernel.")]
    os: Annotated[str | None, means("Name of the operating system's distribution.")]
    python: Annotated[str, means("Implementation and version of the Python that runs the site and the instrument.")]
    packages: Annotated[dict[str, str], means("Python package -> version, of the instrument and the servers.")]
    programs: Annotated[dict[str, str], means("Server or service program -> the version it printed.")]
    load_tool: Annotated[LoadTool, means("The program that made the load.")]
    commit: Annotated[str | None, means("Git commit of the working tree.")]
    dirty: Annotated[bool | None, means("True when the working tree had changes that are not in that commit.")]
    governor: Annotated[str | None, means("Frequency governor of the processor, such as performance.")] = None
    limits: Annotated[dict[str, str] | None, means("Kernel or process limit on load -> its value.")] = None
    configs: Annotated[
        dict[str, str] | None,
        means(
            "Rendered configuration file, by deployment -> SHA-256 of it with the run's own paths and ports left out."
        ),
    ] = None
    rows_seed: Annotated[int | None, means("Seed of the site's rows.")] = None
    rows_total: Annotated[int | None, means("Rows in the site's three tables together.")] = None
    affinity: Annotated[
        dict[str, tuple[int, ...]] | None,
        means("load, stack, services -> processor cores it was pinned to; null: any core."),
    ] = None
    pythons: Annotated[
        dict[str, str] | None,
        means("Version of another Python -> its implementation and full version, and the version of its Django."),
    ] = None
    hosts: Annotated[
        dict[str, tuple[str, ...]] | None, means("Host of the inventory -> its groups; null when one host served.")
    ] = None
    missing_web_server: Annotated[
        str, means("Web server to install before choosing, and how; empty: one was installed, or hosts served.")
    ] = ""


@dataclass(frozen=True)
class Plan:
    """The requested measurements of a run."""

    stacks: Annotated[tuple[str, ...], means("Requested stacks.")]
    layers: Annotated[tuple[str, ...], means("Requested layers.")]
    workloads: Annotated[tuple[str, ...], means("Requested workloads.")]
    levels: Annotated[
        tuple[int, ...], means("Levels: connections of a closed loop, or requests a second of an open one.")
    ]
    rounds: Annotated[int, means("Number of measurements of each case at each level.")]
    duration_s: Annotated[float, means("Seconds of load in a trial.")]
    sizes: Annotated[tuple[str, ...], means("Requested resource limits.")]
    database: Annotated[str, means("Database behind the site.")]
    rows_total: Annotated[int | None, means("Rows in the site's three tables together.")]
    order_seed: Annotated[int | None, means("Seed of the shuffled order in which deployments are measured.")] = None
    database_given: Annotated[bool, means("True if the database was named by its URL; the URL is not recorded.")] = (
        False
    )
    changes: Annotated[dict[str, int | str], means("Name of a value -> its value, changed for every stack.")] = field(
        default_factory=dict
    )
    env: Annotated[dict[str, str], means("Name of a variable -> its text, added to the site's environment.")] = field(
        default_factory=dict
    )
    project: Annotated[str, means("Folder of the project under test; empty for the site that the kit ships.")] = ""
    describe: Annotated[str, means("File with its description, if given by --config; else empty.")] = ""
    mode: Annotated[
        str,
        means(
            "closed: connections, as fast as responses come; open: requests leave on a schedule whatever comes back."
        ),
    ] = "closed"
    replay: Annotated[
        float, means("Speed of the requests of an open loop as a multiple of the recorded speed; 0 at a steady rate.")
    ] = 0
    margin: Annotated[float, means("Share by which a figure must differ to be called faster or slower.")] = 0.05
    refs: Annotated[
        dict[str, str] | None,
        means("Label of a commit of the project, as in its stacks' names -> its hash; empty: the working tree."),
    ] = None
    same_responses: Annotated[bool, means("True: a case fails if its pages differ from the first commit's.")] = False
    guards: Annotated[
        dict[str, float] | None, means("Guard's setting -> the bound beyond which it discards a trial.")
    ] = None
    capacity: Annotated[
        Limit | None, means("Limit of the latency within which the highest rate was sought; null in other runs.")
    ] = None
    until: Annotated[
        Literal["decided"] | None,
        means(
            "decided: cases that cannot be the best are dropped, rounds are those at most; null: every round is made."
        ),
    ] = None
    inventory: Annotated[bool, means("True when hosts of an inventory were measured as they were deployed.")] = False
    budget_s: Annotated[
        float | None, means("Seconds within which a run until decided begins another round; null: no limit.")
    ] = None
    latency: Annotated[
        bool,
        means("True when each case of a closed loop is also measured in an open loop, at one rate for all."),
    ] = False
    tunes: Annotated[str, means("Stack whose processes and threads were sought; empty in other runs.")] = ""
    faults: Annotated[tuple[str, ...], means("Names of the faults made; empty in other runs.")] = ()
    named: Annotated[tuple[str, ...], means("Faults requested by name, and not by a group or all.")] = ()

    @property
    def command(self) -> str:
        """The command that made the folder and resumes it."""
        if self.tunes:
            return "tune"
        if self.faults:
            return "faults"
        return "run"

    @property
    def size(self) -> str:
        """The resource limit of a plan with one limit."""
        return self.sizes[0]


def project_words(plan: Plan) -> list[str]:
    """The words that name the project of a run on a command line; none for the kit's own."""
    return option_words({"--project": plan.project or None, "--config": plan.describe or None})


def served_words(plan: Plan) -> list[str]:
    """The words that serve the project of a run again, after a stack and its layers; the URL of a database is not
    recorded."""
    database = plan.database
    if plan.database_given:
        database = "URL"
    settings = {"--env": setting_words(plan.env), "--set": setting_words(plan.changes)}
    return [*project_words(plan), *option_words({"--database": database, **settings})]


@dataclass(frozen=True)
class CaseRecord:
    """Stack x layer x workload x size x database."""

    case_id: Annotated[str, means("Stack, layer, workload, size and database joined with ~.")]
    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    workload: Annotated[str, means("Name of the workload.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    notes: Annotated[tuple[str, ...], means("Differences from the other cases, with reasons.")] = ()
    python: Annotated[str, means("Version of the serving Python, as in the stack's name; or empty.")] = ""
    needs_proxy: Annotated[
        bool, means("True if its server in front speaks no TLS, so that production needs a proxy.")
    ] = False
    caches: Annotated[
        str, means("Content in the caches of its layers: pages, parts (of pages) or nothing; empty: not known.")
    ] = ""

    @property
    def name(self) -> str:
        """The stack with its layer, in words."""
        return case_name(self.stack, self.layer)


# Reasons for the end of a run until decided.
Ended = Literal["decided", "rounds", "budget"]


@dataclass(frozen=True)
class Dropped:
    """A case not measured further at a level of a run until decided."""

    case_id: Annotated[str, means("The case.")]
    level: Annotated[int, means("Connections of a closed loop, or requests a second of an open one.")]
    round: Annotated[int, means("Round after which it was dropped.")]
    reason: Annotated[str, means("Reason why it was dropped.")]


@dataclass(frozen=True)
class RunInfo:
    """The request, its times, and the cases and skips of its plan."""

    format: Annotated[int, means("Version of the folder's format."), Meta(ge=FORMAT, le=FORMAT)]
    command: Annotated[tuple[str, ...], means("Command line of the run.")]
    started_at: Annotated[str, means("When the run began, ISO 8601 with offset.")]
    finished_at: Annotated[str | None, means("When the run ended; null when it was stopped and can be resumed.")]
    plan: Annotated[Plan, means("The request.")]
    cases: Annotated[tuple[CaseRecord, ...], means("Cases that can run here.")]
    skips: Annotated[tuple[Skip, ...], means("Cases that cannot run here, with reasons.")]
    notes: Annotated[tuple[str, ...], means("Notes on the whole run, for its readers.")] = ()
    dropped: Annotated[tuple[Dropped, ...], means("Cases that a run until decided measured no further.")] = ()
    ended_by: Annotated[
        Ended | None,
        means("Reason why a run until decided made no more rounds; null for others, and before the end."),
    ] = None
