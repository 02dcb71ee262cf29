"""Distribution of the records of one node by class size, and by number of distinct sensitive values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from shoal.document.document import (
    Document,
    Fact,
    Figure,
    HasDocument,
    Line,
    Strip,
    Table,
    levels_text,
    of_records,
    round_ticks,
)
from shoal.errors import UnknownName, UsageError
from shoal.policy.limits import check_whole, limit_in_records
from shoal.wording import match_trimmed, plural
from shoal.workflow.profile.offer import check_level

if TYPE_CHECKING:
    from shoal.core.lattice.lattice import Index, Lattice
    from shoal.workflow.profile.profile import Profile

_ROWS = 20
_TICKS = 6


@dataclass(frozen=True)
class Bar:
    """The classes of one size, or with one number of distinct sensitive values."""

    value: int
    records: int
    cumulative: int  # records in all classes up to this value
    classes: int | None = None  # None for sensitive values: a profile has only their records


@dataclass(frozen=True)
class Histogram:
    """The records of a node by the size of their class (k), or by its distinct sensitive values (l)."""

    model: Literal["k", "l"]
    sensitive: str | None  # the column that l is about
    least: int | None  # the k or l to mark
    suppressed: int | None  # the records in classes below this k or l
    bars: tuple[Bar, ...]

    @property
    def quantity(self) -> str:
        """The quantity by which records are grouped."""
        return "class size" if self.sensitive is None else f"distinct values of {self.sensitive}"


@dataclass(frozen=True)
class NodeDistribution(HasDocument):
    """How the records of one node spread over its classes."""

    node: Mapping[str, int]
    height: int
    records: int
    classes: int
    limit: int  # records that may be suppressed
    histograms: tuple[Histogram, ...] = field(default=())  # class sizes first, then each sensitive column

    def document(self) -> Document:
        """Describe the node and its histograms."""
        facts = [
            Fact("node", "node", levels_text(self.node)),
            Fact("height", "height", str(self.height)),
            Fact("classes", "classes", f"{self.classes:,}"),
            Fact("limit", "limit", of_records(self.limit, self.records)),
        ]
        for item in self.histograms:
            if item.least is not None and item.suppressed is not None:
                label = f"{item.model} = {item.least:,}" + (f" of {item.sensitive}" if item.sensitive else "")
                within = "within" if item.suppressed <= self.limit else "above"
                suppressed = f"{of_records(item.suppressed, self.records)} below, {within} the limit"
                facts.append(Fact(f"{item.model}-{item.sensitive}", label, suppressed))
        return Document(
            title=f"Distribution of {plural(self.records, 'record')} over {plural(self.classes, 'class')}",
            facts=facts,
            tables=[_table(item, self.records) for item in self.histograms],
            figures=distribution_plots(self),
        )

    def plot(self) -> Any:
        """Draw the histograms, linear and logarithmic, as one figure of matplotlib."""
        from shoal.document.figures import check_matplotlib, draw_all

        check_matplotlib()
        return draw_all(distribution_plots(self))


def distribution(
    profile: Profile,
    node: Mapping[str, int],
    *,
    k: int | None = None,
    l: int | None = None,
    suppression_limit: float | str | None = None,
) -> NodeDistribution:
    """Describe one node. A column that `node` does not name is at level 0.

    The histograms mark k, l and the limit. Their defaults are those of the policy.
    """
    lattice, defaults = profile.lattice, profile.defaults
    index = index_of(lattice, node)
    marks = {"k": k if k is None else check_whole("k", k), "l": l if l is None else check_whole("l", l)}
    limit = (
        defaults.limit if suppression_limit is None else limit_in_records(suppression_limit, profile.records)
    )
    counted = profile if profile.row_of(index) is not None else profile.with_node(index)
    position = counted.row_of(index)
    assert position is not None
    levels = lattice.node(index)
    return NodeDistribution(
        node=dict(zip(lattice.columns, levels, strict=True)),
        height=sum(levels),
        records=profile.records,
        classes=int(counted.tables[None].classes[position]),
        limit=limit,
        histograms=tuple(_histogram(counted, position, name, marks) for name in counted.tables),
    )


def index_of(lattice: Lattice, node: Mapping[str, int]) -> Index:
    """Return the index of a node from its levels by column; a column without a level is at level 0."""
    if not isinstance(node, Mapping):
        raise UsageError(f"A node is levels by column, such as {{'age': 2}}, got {type(node).__name__}.")
    heights = dict(zip(lattice.columns, lattice.heights, strict=True))
    levels: dict[str, int] = {}
    for written, level in node.items():
        name = match_trimmed(written, heights)
        if name not in heights:
            raise UnknownName(str(name), "quasi-identifier", heights, field="node")
        levels[name] = check_level(level, heights[name], f"The level of {name!r} must be", "node")
    index = []
    for members in lattice.axes:
        names = [lattice.columns[column] for column in members]
        axis_levels = {levels[name] for name in names if name in levels}
        if len(axis_levels) > 1:
            raise UsageError(
                f"Columns that share their level must have equal levels: {', '.join(names)}.", field="node"
            )
        index.append(axis_levels.pop() if axis_levels else 0)
    return tuple(index)


def _histogram(
    profile: Profile, position: int, sensitive: str | None, marks: Mapping[str, int | None]
) -> Histogram:
    table = profile.tables[sensitive]
    begin, end = int(table.begins[position]), int(table.begins[position + 1])
    values = table.values[begin:end].tolist()
    cumulative = [*table.below[begin + 1 : end].tolist(), profile.records]
    bars, before = [], 0
    for value, up_to in zip(values, cumulative, strict=True):
        classes = (up_to - before) // value if sensitive is None else None
        bars.append(Bar(value, up_to - before, up_to, classes))
        before = up_to
    model: Literal["k", "l"] = "k" if sensitive is None else "l"
    least = marks[model] or _policy_mark(profile, sensitive)
    suppressed = None if least is None else sum(bar.records for bar in bars if bar.value < least)
    return Histogram(model, sensitive, least, suppressed, tuple(bars))


def _policy_mark(profile: Profile, sensitive: str | None) -> int | None:
    name = "k-anonymity" if sensitive is None else "distinct-l-diversity"
    columns = {None} if sensitive is None else {None, sensitive}
    return max(
        (
            int(model.least)
            for model in profile.defaults.models
            if model.name == name and model.column in columns and model.least
        ),
        default=None,
    )


def _table(histogram: Histogram, records: int) -> Table:
    rows = []
    for bar in histogram.bars[:_ROWS]:
        mark = "below" if histogram.least is not None and bar.value < histogram.least else ""
        classes = [] if bar.classes is None else [f"{bar.classes:,}"]
        shares = [f"{bar.records / records:.2%}", f"{bar.cumulative:,}", f"{bar.cumulative / records:.2%}"]
        rows.append([f"{bar.value:,}", *classes, f"{bar.records:,}", *shares, mark])
    classes = ["classes"] if histogram.sensitive is None else []
    mark = "" if histogram.least is None else f"{histogram.model} = {histogram.least:,}"
    headers = [histogram.quantity, *classes, "records", "share", "cumulative", "share", mark]
    return Table(f"Records by {histogram.quantity}", headers, rows, left=(), total=len(histogram.bars))


def distribution_plots(node: NodeDistribution) -> list[Figure]:
    """Return a linear and a logarithmic figure of each histogram."""
    return [
        _figure(node, histogram, number, scale)
        for number, histogram in enumerate(node.histograms)
        for scale in ("linear", "log")
    ]


def _figure(
    node: NodeDistribution, histogram: Histogram, number: int, scale: Literal["linear", "log"]
) -> Figure:
    bottom = 1.0 if scale == "log" else 0.0
    most = max(float(histogram.bars[-1].value), 2.0, float(histogram.least or 1))
    by_value: list[dict[str, Line]] = [
        {"records": [(float(bar.value), float(bar.records)) for bar in histogram.bars]},
        {"cumulative": [(float(bar.value), float(bar.cumulative)) for bar in histogram.bars]},
    ]
    marks = []
    if histogram.least is not None:
        marks.append(f"{histogram.model} = {histogram.least:,}")
        for panel in by_value:
            highest = max(y for line in panel.values() for _, y in line)
            panel[marks[-1]] = [(float(histogram.least), bottom), (float(histogram.least), highest)]
    if node.limit >= bottom:
        marks.append(f"limit {node.limit:,}")
        by_value[1][marks[-1]] = [(1.0, float(node.limit)), (most, float(node.limit))]
    name = "class-sizes" if histogram.sensitive is None else f"sensitive-values-{number}"
    return Figure(
        f"{name}-{scale}",
        f"Records by {histogram.quantity}",
        [""],
        histogram.quantity,
        _ticks(most, scale),
        [
            Strip("records", [by_value[0]], percent=False),
            Strip("records up to\nthis value", [by_value[1]], percent=False),
        ],
        ["records", "cumulative", *marks],
        {"records": "dots", "cumulative": "steps-post"},
        scale=scale,
    )


def _ticks(most: float, scale: str) -> dict[float, str]:
    if scale == "log":
        return round_ticks(most, 2 * _TICKS)
    step = next(int(value) for value in round_ticks(10 * most, 99) if most / value <= _TICKS)
    return {float(value): f"{value:,}" for value in range(0, int(most) + 1, step)}
