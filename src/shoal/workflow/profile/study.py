"""Study of a profile: suppression by height, k and number of columns, and answers of partial profiles.

Suppression is summarized over the nodes that a profile holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.core.arrays import IntArray
from shoal.document.document import Document, Figure, HasDocument, Name, Strip, Table
from shoal.policy.limits import check_whole
from shoal.wording import plural
from shoal.workflow.profile.agreement import SHARES, Agreement, agreement, agreement_tables, answered, drawn
from shoal.workflow.profile.grouping import SCORES, check_ranking
from shoal.workflow.profile.offer import Request

if TYPE_CHECKING:
    from shoal.workflow.profile.profile import Profile


_LINES = ("largest", "mean", "least")


def study_plots(study: Study) -> list[Figure]:
    """Return the plots of a study."""
    return [*(_suppression_plot(study, *view) for view in _views(study)), _grouping_plot(study.grouping)]


def _views(study: Study) -> list[tuple[str, str, str, Sequence[SuppressionSummary]]]:
    """Return what each view of suppression needs: the quantity that varies, a title, an axis and the rows."""
    model, columns = study.model, "quasi-identifiers below their top level"
    strength_text = f"{model} = {study.least}" + (f" of {study.sensitive}" if study.sensitive else "")
    return [
        ("height", f"Suppression by height, {strength_text}", "height", study.by_height),
        (model, f"Suppression by {model}", model, study.by_strength),
        ("columns", f"Suppression by {columns}, {strength_text}", columns, study.by_columns),
    ]


def _suppression_plot(
    study: Study, name: str, title: str, across: str, rows: Sequence[SuppressionSummary]
) -> Figure:
    lines = {line: [(row.at, getattr(row, line) / study.records) for row in rows] for line in _LINES}
    ticks = {float(row.at): str(row.at) for row in rows}
    strip = Strip("records suppressed", [lines], percent=True)
    return Figure(f"suppression-by-{name}", title, [""], across, ticks, [strip], _LINES)


def _grouping_plot(powers: Sequence[Power]) -> Figure:
    columns = list(dict.fromkeys(power.column for power in powers))
    strips = []
    for label, name in (("average group size", "size"), ("relative importance", "importance")):
        lines = {
            column: [(power.level, getattr(power, name)) for power in powers if power.column == column]
            for column in columns
        }
        strips.append(Strip(label, [lines], percent=False))
    ticks = {float(level): str(level) for level in sorted({power.level for power in powers})}
    title = "Grouping power of each level"
    return Figure("grouping-power", title, [""], "level", ticks, strips, columns)


STRENGTHS = {"k": (2, 3, 5, 10, 15, 20, 25, 50, 100), "l": (2, 3, 4, 5, 6, 8, 10, 15, 20)}
REQUESTS = 1000


@dataclass(frozen=True)
class SuppressionSummary:
    """The number of records suppressed at some nodes: the least, the mean and the largest."""

    at: float  # the height, the k (or l), or the number of columns
    nodes: int
    least: int
    mean: float
    largest: int


@dataclass(frozen=True)
class Power:
    """The grouping power of one level of one column, while the other columns stay unchanged."""

    column: str
    level: int
    groups: int
    size: float  # records in a group, on average
    importance: float


@dataclass(frozen=True)
class Study(HasDocument):
    """Suppression and grouping power in a lattice, and the agreement of partial profiles."""

    model: str  # k or l
    least: float
    sensitive: str | None
    records: int
    nodes: int
    lattice_size: int
    by_height: tuple[SuppressionSummary, ...]  # at this k (or l)
    by_strength: tuple[SuppressionSummary, ...]  # over all nodes
    by_columns: tuple[SuppressionSummary, ...]  # at this k (or l), by columns that are not at their top level
    grouping: tuple[Power, ...]
    requests: int = 0  # number of requests tried on a complete profile
    answered: int = 0  # number of these that have an exact answer
    agreement: tuple[Agreement, ...] = ()  # of partial profiles with the profile

    def document(self) -> Document:
        """Describe suppression by height, k and columns, grouping power, and partial profiles."""
        nodes = f"{self.nodes:,} of {self.lattice_size:,} nodes"
        tables = [
            _suppression_table(f"{title} ({nodes})", header, rows, self.records)
            for header, title, _, rows in _views(self)
        ]
        tables.append(_grouping_table(self.grouping))
        if self.agreement:
            tables += agreement_tables(self.agreement, self.requests, self.answered)
        title = f"Study of {nodes}, {plural(self.records, 'record')}"
        return Document(title, tables=tables, figures=study_plots(self))


def _suppression_table(title: str, header: str, rows: Sequence[SuppressionSummary], records: int) -> Table:
    lines = []
    for row in rows:
        cells = [str(row.at), f"{row.nodes:,}"]
        for text, count in (
            (f"{row.least:,}", row.least),
            (f"{row.mean:,.1f}", row.mean),
            (f"{row.largest:,}", row.largest),
        ):
            cells += [text, f"{count / records:.2%}"]
        lines.append(cells)
    headers = (header, "nodes", "least", "share", "mean", "share", "largest", "share")
    return Table(title, headers, lines, left=())


def _grouping_table(powers: Sequence[Power]) -> Table:
    rows = []
    previous = None
    for power in powers:
        name = "" if power.column == previous else power.column
        previous = power.column
        numbers = f"{power.groups:,}", f"{power.size:,.2f}", f"{power.importance:.3f}"
        rows.append((Name(name), str(power.level), *numbers))
    title = "Grouping power of each level, with the other columns unchanged"
    return Table(title, ("column", "level", "groups", "average size", "relative importance"), rows)


def study(
    profile: Profile,
    *,
    k: int | None = None,
    l: int | None = None,
    sensitive: str | None = None,
    strengths: Sequence[int] | None = None,
    requests: int = REQUESTS,
    by: str = "height",
) -> Study:
    """Study a profile. Settings that are not given are taken from the policy.

    `strengths` are the k (or l) to compare, by default a useful range. `by` is the ranking that selects the
    nodes of the partial profiles; see shoal.profile.
    """
    check_ranking(next(iter(SCORES)), by)
    defaults = profile.defaults
    if sensitive is None and k is None and (l or defaults.model == "l") and not defaults.sensitive:
        sensitive = next(iter(profile.sensitive), None)
    if k is None and l is None and defaults.model == "k":
        k = int(defaults.least)  # k alone, even if the policy also has an l
    request = profile.negotiate(k=k, l=l, sensitive=sensitive, runtime=False).request
    suppressed = profile.by_privacy(request.privacy)
    usual_strengths = _strengths(profile, request, None)
    drawn_requests = drawn(profile, request, usual_strengths, requests) if profile.complete else []
    answers = answered(profile, drawn_requests)
    exact = sum(answer.exact is not None for _, answer in answers)
    return Study(
        model=request.model,
        least=request.least,
        sensitive=request.sensitive,
        records=profile.records,
        nodes=len(profile.numbers),
        lattice_size=profile.lattice.size,
        by_height=_grouped(suppressed, profile.heights),
        by_strength=tuple(
            _suppression(strength, profile.by_privacy(replace(request, least=strength).privacy))
            for strength in _strengths(profile, request, strengths)
        ),
        by_columns=_grouped(suppressed, _kept_columns(profile)),
        grouping=tuple(_powers(profile)),
        requests=len(drawn_requests),
        answered=exact,
        agreement=tuple(
            row
            for share in (SHARES if answers else ())
            for score in SCORES
            for row in agreement(profile, share, answers, score, by)
        ),
    )


def _suppression(at: float, counts: IntArray) -> SuppressionSummary:
    return SuppressionSummary(at, len(counts), int(counts.min()), float(counts.mean()), int(counts.max()))


def _grouped(suppressed: IntArray, groups: IntArray) -> tuple[SuppressionSummary, ...]:
    return tuple(_suppression(int(at), suppressed[groups == at]) for at in np.unique(groups))


def _kept_columns(profile: Profile) -> IntArray:
    """Count the columns of each node that are not at their top level."""
    lattice = profile.lattice
    members = np.array([len(axis) for axis in lattice.axes])
    column_counts: IntArray = (profile.levels < np.array(lattice.high)) @ members
    return column_counts


def _strengths(profile: Profile, request: Request, requested: Sequence[int] | None) -> list[float]:
    for least in requested or ():
        check_whole(request.model, least)
    most = int(profile.table(request.sensitive).values.max())  # no node has a larger k (or l)
    usual = [least for least in STRENGTHS[request.model] if least <= most]
    return sorted({*(requested or usual), request.least})


def _powers(profile: Profile) -> Iterator[Power]:
    grouping = profile.grouping
    columns = zip(profile.lattice.columns, grouping.groups, grouping.sizes, grouping.importances, strict=True)
    for column, *levels in columns:
        for level, (groups, size, importance) in enumerate(zip(*levels, strict=True)):
            yield Power(column, level, groups, size, importance)
