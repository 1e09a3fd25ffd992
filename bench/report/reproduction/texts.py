"""The sentences and cells that every form of a reproduction's report shows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bench.figures import words
from bench.figures.stats import Estimate
from bench.report import conditions, findings, numbers, pick
from bench.report.charts import Drawing
from bench.report.model import MEASURED
from bench.report.numbers import DASH, NOT_MEASURED, as_published, range_of, times
from bench.report.reproduction import charts, claims
from bench.report.reproduction.left_out import left_out
from bench.report.reproduction.side_by_side import PublishedColumn, PublishedFigure, PublishedRow, Reproduced, RunPart
from bench.results.records import NO_LAYER

SIGNS = {
    claims.HOLDS: "\N{CHECK MARK}",
    claims.NOT: "\N{BALLOT X}",
    claims.INCONCLUSIVE: "?",
    claims.NOT_MEASURED: DASH,
}


# ------------------------------------------------------------------------------------------------ cells


def shown(figure: PublishedFigure, column: PublishedColumn) -> str:
    """The measured figure as text."""
    if isinstance(figure.measured, Estimate):
        return numbers.median(figure.measured, column.show)
    return figure.measured or NOT_MEASURED


def interval(figure: PublishedFigure, column: PublishedColumn) -> str:
    """The 95 % confidence interval of the measured figure as text."""
    return range_of(figure.measured, column.show) if isinstance(figure.measured, Estimate) else DASH


def published(figure: PublishedFigure) -> str:
    """The published figure as text."""
    if figure.published is None:
        return DASH
    return figure.published if isinstance(figure.published, str) else as_published(figure.published)


def ratio(row: PublishedRow, figure: PublishedFigure) -> str:
    """The measured ratio to the baseline."""
    if row.baseline:
        return "1" if figure.measured else DASH
    return times(figure.ratio.median) if figure.ratio else DASH


def ratio_range(row: PublishedRow, figure: PublishedFigure) -> str:
    """The 95 % confidence interval of that ratio; empty without one."""
    return "" if row.baseline or figure.ratio is None or figure.ratio.count < 2 else range_of(figure.ratio)


def published_ratio(row: PublishedRow, figure: PublishedFigure) -> str:
    """The published ratio to the baseline."""
    if row.baseline:
        return "1" if figure.published is not None else DASH
    return DASH if figure.published_ratio is None else times(figure.published_ratio)


def _added(part: RunPart) -> list[str]:
    """That rounds were added where a conclusion was open."""
    info = part.report.run.info if part.report else None
    if info is None or not info.added:
        return []
    cases, rounds = len({item.case_id for item in info.added}), info.rounds - info.plan.rounds
    more = f"{words.plural(cases, 'case')} with up to {words.plural(rounds, 'more round')}"
    return [f"Part `{part.name}` has {more}, because a conclusion was open after the planned ones."]


# -------------------------------------------------------------------------------------------- sentences


@dataclass(frozen=True)
class ReproductionTexts:
    """The sentences of a reproduction's report."""

    found: Reproduced

    @property
    def heading(self) -> str:
        """Which benchmark is repeated."""
        return f"{self.found.data['title']}, repeated"

    @property
    def opening(self) -> str:
        """Source, question, machine and load of the publication."""
        data = self.found.data
        machine = f" Its machine: {data['machine']}." if "machine" in data else ""
        source = f"{data['source'][:1].upper()}{data['source'][1:]}, {data['year']}."
        return f"{source} It asked: {data['question']}{machine} Its load: {data['load']}."

    @property
    def summary(self) -> str:
        """How many of the published conclusions hold here."""
        return claims.summary(list(self.found.verdicts))

    @cached_property
    def caveats(self) -> list[str]:
        """What a reader must know first."""
        notes = []
        if self.found.record.quick:
            notes.append("Made with --quick: fewer and shorter rounds. Trust the ranking, not the absolute figures.")
        if self.found.record.finished_at is None:
            notes.append("This reproduction did not finish. It shows the trials made so far.")
        notes.append(
            "The machines and versions of the publication are gone. Do not compare absolute figures; compare ratios, "
            "each to the baseline of its own side."
        )
        for part in self.found.parts:
            if part.reason:
                notes.append(f"Part `{part.name}` is left out: {part.reason}.")
            notes += [f"Part `{part.name}`: {note}." for note in part.notes]
            notes += _added(part)
        return notes + [note for note in conditions.caveats(*self.found.reports) if note not in notes]

    @property
    def machine(self) -> list[tuple[str, str]]:
        """Facts about the machine of all parts; with several parts load and database are listed by part."""
        facts = conditions.machine(self.found.reports[0])
        return (
            facts if len(self.found.reports) == 1 else [fact for fact in facts if fact[0] not in ("Load", "Database")]
        )

    @cached_property
    def gaps(self) -> list[tuple[str, str, str]]:
        """What has no figure: name, outcome and reason."""
        return list(left_out(self.found, self.deployment))

    @cached_property
    def has_layers(self) -> bool:
        """Whether any run has a layer other than `none`, so that layers must be named."""
        return any(layer != NO_LAYER for report in self.found.reports for layer in report.layers)

    def deployment(self, stack: str, layer: str) -> str:
        """A deployment, with its layer where the reproduction has layers."""
        return f"{stack} with {layer}" if self.has_layers else stack

    def without_layer(self, sentence: str) -> str:
        """A sentence about deployments, without ` with none` where no other layer exists."""
        return sentence if self.has_layers else sentence.replace(f" with `{NO_LAYER}`", "")

    def sentences(self, answer: findings.PanelAnswer) -> list[str]:
        """The sentences of one panel's answer."""
        return [self.without_layer(sentence) for sentence in answer.sentences]

    @cached_property
    def pick(self) -> list[str]:
        """What to pick and what it costs, from the first run, which repeats the main part of the publication."""
        report = self.found.reports[0]
        if not any(len(panel.ranked) > 1 for panel in report.main_panels):
            return []
        return [self.without_layer(advice.sentence) for advice in pick.pick(report, short=True)]

    @property
    def without_graph(self) -> list[str]:
        """Deployments without memory over time at the highest level, each with its outcome."""
        return [
            f"{self.deployment(row.stack, row.layer)} ({row.outcome})"
            for report in self.found.reports
            for panel in report.main_panels
            for row in panel.rows
            if row.outcome != MEASURED
        ]

    def without_ratio(self, column: PublishedColumn) -> list[str]:
        """Why rows with a figure have no ratio: each baseline that was not measured."""
        index = self.found.columns.index(column)
        if column.is_rating:
            return []
        return [
            f"The baseline {self.where(row)} has no figure here ({row.figures[index].why}): no ratios."
            for row in self.found.rows
            if row.baseline and row.figures[index].measured is None
        ]

    @property
    def ratios_note(self) -> str:
        """What the ratios refer to, and why a ratio may differ from the quotient of the figures beside it."""
        names = list(dict.fromkeys(self.where(row) for row in self.found.rows if row.baseline))
        return (
            f"Ratios are to {words.joined(names)}: published to published, measured to measured. A measured ratio is "
            "the median of the ratios round by round, so it may differ from the quotient of the two medians. Rounds of "
            "two runs cannot be paired: there it is the quotient."
        )

    def where(self, row: PublishedRow) -> str:
        """The title of a row, with its size where sizes differ."""
        return f"{row.title} ({row.size})" if self._sizes_differ else row.title

    def against(self, row: PublishedRow) -> str:
        """The title of the row's baseline, with its size where sizes differ."""
        return f"{row.against} ({row.against_size})" if self._sizes_differ else row.against

    @property
    def _sizes_differ(self) -> bool:
        return len({row.size for row in self.found.rows}) > 1

    def drawing(self, column: PublishedColumn) -> Drawing | None:
        """The chart of a column; None when it has no figure to draw."""
        index = self.found.columns.index(column)
        if column.is_rating or not any(row.figures[index].measured for row in self.found.rows):
            return None
        return charts.column(self.found, column, self.where, self.against)
