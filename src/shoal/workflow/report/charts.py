"""Sections of a report: what a release retains and loses, and what the analyst loses, with charts.

They show counts and the labels of the release, but no other value of the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from shoal.document.document import name_list
from shoal.document.figures import styled
from shoal.document.html import Html, cut, document_table, isolated, marked, quiet, table, tag
from shoal.policy.policy import named
from shoal.wording import percent, plural
from shoal.workflow.advice import Advice, advice_table
from shoal.workflow.release.release import Release
from shoal.workflow.risk.exposure import Exposure
from shoal.workflow.statements import listed
from shoal.workflow.utility.classifier import FOLDS, Prediction
from shoal.workflow.utility.columns import BarCounts, columns_table, means_table
from shoal.workflow.utility.figures import COLOURS, HeatMap, distributions_of, heat_maps
from shoal.workflow.utility.utility import Utility

_LONGEST = 30  # maximum number of characters of a column's name
_MOST = 14  # with more bars, the labels do not fit side by side


@dataclass(frozen=True)
class HistogramBar:
    """The number of records in classes of a range of sizes, before and after."""

    low: int
    high: int  # inclusive
    before: int
    after: int

    @property
    def label(self) -> str:
        """The range of sizes, abbreviated."""
        return (
            _abbreviated(self.low)
            if self.low == self.high
            else f"{_abbreviated(self.low)}\u2013{_abbreviated(self.high)}"
        )

    @property
    def words(self) -> str:
        """The range of sizes, in full."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"


def bars(before: Exposure, after: Exposure, k: int) -> tuple[HistogramBar, ...]:
    """Group records by the size of their class; a bar begins at k if any class is that large.

    >>> [bar.label for bar in bars(Exposure((1, 7), (4, 7)), Exposure((30,), (30,)), 6)]
    ['1', '2', '3\u20134', '5', '6\u20139', '10\u201319', '20\u201349']
    """
    largest = max((*before.sizes, *after.sizes), default=1)
    edges = _edges(largest, k, (1, 2, 5))
    if len(edges) - 1 > _MOST:
        edges = _edges(largest, k, (1,))
    return tuple(
        HistogramBar(low, high - 1, before.records_between(low, high), after.records_between(low, high))
        for low, high in pairwise(edges)
    )


def _edges(largest: int, k: int, steps: tuple[int, ...]) -> list[int]:
    starts = {1, 2, 3, 5} if len(steps) > 1 else {1, 2, 5}
    ten = 10
    while ten <= 10 * largest:
        starts |= {ten * step for step in steps}
        ten *= 10
    edges = sorted(starts | ({k} if 1 < k <= largest else set()))
    return [edge for edge in edges if edge <= largest] + [next(edge for edge in edges if edge > largest)]


def size_bars(bins: Sequence[HistogramBar], k: int) -> Html:
    """Draw how many records are in classes of each size, and mark the smallest size that k allows."""
    labels = [f"{bar.words} (k = {k:,})" if bar.low == k > 1 else bar.words for bar in bins]
    numbers = [(bar.before, bar.after) for bar in bins]
    bars_of_size = [(label, *pair) for label, pair in zip(labels, numbers, strict=True)]
    return _bar_table("Records by the size of their class", bars_of_size, "size of the class")


def _abbreviated(number: int) -> str:
    """Abbreviate a large size; different sizes such as 1,999 and 2,000 may get the same text."""
    for size, sign in ((10**9, "G"), (10**6, "M"), (1000, "k")):
        if number >= size:
            return f"{round(number / size, 1):g}{sign}"
    return str(number)


def share_bar(share: float, title: str) -> Html:
    """Draw a share as a number and a bar; `title` describes it."""
    words = percent(share)
    bar = tag("rect", class_="after", x=0, y=0, width=f"{100 * share:.1f}", height=8, rx=1)
    track = tag("rect", class_="track", x=0, y=0, width=100, height=8, rx=1)
    svg_title = tag("title", f"{title}: {words}")
    svg = tag("svg", svg_title, track, bar, viewBox="0 0 100 8", preserveAspectRatio="none", role="img")
    return tag("div", tag("span", words), svg, class_="amount")


def release_figure(release: Release) -> Any:
    """Draw a release: records by the size of their class, and the loss of each quasi-identifier."""

    def onto(figure: Any) -> None:
        sizes, losses = figure.subplots(1, 2, width_ratios=(3, 2))
        _sizes(sizes, release)
        _losses(losses, release)

    return styled(10, max(3.4, 1.1 + 0.26 * len(release.losses)), onto)


def _sizes(axes: Any, release: Release) -> None:
    k = release.least_class
    groups = bars(release.exposure, release.exposure_after, k)
    for name, side in (("before", -0.2), ("after", 0.2)):
        records = [getattr(bar, name) for bar in groups]
        axes.bar(
            [index + side for index in range(len(groups))], records, 0.38, color=COLOURS[name], label=name
        )
    axes.set_xticks(range(len(groups)), [bar.label for bar in groups])
    axes.set_xlabel("size of the class")
    axes.set_ylabel("records")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)
    axes.set_title("Records by the size of their class", fontsize="medium")
    first_allowed = next((index for index, bar in enumerate(groups) if bar.low == k > 1), None)
    if first_allowed is not None:
        axes.axvline(first_allowed - 0.5, color="#333333", linewidth=1, linestyle=(0, (5, 4)))
        axes.text(first_allowed - 0.45, 0.98, f"k = {k:,}", transform=axes.get_xaxis_transform(), va="top")
    axes.legend(frameon=False)


def _losses(axes: Any, release: Release) -> None:
    names = [cut(name, _LONGEST) for name in release.losses]
    lost = [loss.coverage for loss in release.losses.values()]
    plotted_bars = axes.barh(range(len(names)), lost, color=COLOURS["after"], height=0.65)
    axes.bar_label(plotted_bars, [percent(share) for share in lost], padding=3, fontsize="small")
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1.18)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    axes.set_xlabel("0%: every value is kept; 100%: none is")
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    axes.set_title("What was lost of each column", fontsize="medium")


_SHADES = 10


def analyst_loses(utility: Utility) -> Iterator[Html]:
    """Describe the release as an analyst sees it, compared with the input."""
    yield tag(
        "p",
        "Before is the input, by the labels of the release where values fall into one; after is the release.",
    )
    yield document_table(columns_table(utility.columns))
    yield quiet(
        "Information kept is 100% where every record has its value, and 0% where no cell says anything: "
        "a label takes the entropy of the values that it covers, a suppressed record the whole. Shift is how "
        "far the distribution moved: 0% where it is as before."
    )
    if utility.with_means:
        yield document_table(means_table(utility.with_means))
        yield quiet(
            "After, a band counts as its middle. A label that is neither a number nor a band counts as the "
            "mean of the input's values that it covers, and so does every label where labels overlap. "
            "Missing values and codes for unknown are left out, before and after."
        )
    yield from _distributions(utility)
    for heat in heat_maps(utility):
        yield tag("h3", marked(heat.title))
        yield tag("div", *[_heat_table(heat, kind) for kind in heat.tables], class_="beside")
        yield quiet(heat.note)
    if utility.prediction:
        yield from _prediction(utility.prediction)
    yield from map(quiet, utility.notes)


def _distributions(utility: Utility) -> Iterator[Html]:
    bars = distributions_of(utility).columns
    yield tag("h3", "Distributions")
    yield tag(
        "div",
        *[_bar_table(isolated(name), column_bars) for name, column_bars in bars.items()],
        class_="cards",
    )
    single = [column.column for column in utility.columns if column.labels <= 1]
    undrawn = [column.column for column in utility.columns if column.labels > 1 and column.column not in bars]
    for words, names in (("One label for all records", single), ("Too many labels to draw", undrawn)):
        if names:
            yield quiet(f"{words}: ", marked(name_list(names)), ".")


def _bar_table(caption: object, bars: Sequence[BarCounts], heading: str = "label") -> Html:
    """Draw two bars for each label, the one before the release above the one after, with their numbers."""
    most = max(max(before, after) for _, before, after in bars) or 1
    rows = []
    for label, before, after in bars:
        table_rows = [
            tag(
                "rect", class_=kind, x=0, y=y, width=f"{max(100 * records / most, 0.5):.1f}", height=5, rx=0.5
            )
            for kind, records, y in (("before", before, 0), ("after", after, 6))
            if records
        ]
        texts = [f"{records:,}" for records in (before, after)]
        title = tag("title", f"before: {texts[0]}, after: {texts[1]}")
        shape = tag("svg", title, *table_rows, viewBox="0 0 100 11", preserveAspectRatio="none", role="img")
        numbers = [tag("td", text, class_="number") for text in texts]
        rows.append(tag("tr", tag("th", isolated(label), scope="row"), tag("td", shape), *numbers))
    kinds = {heading: None, "": None, "before": "number before", "after": "number after"}
    heads = [tag("th", words, scope="col", class_=kind) for words, kind in kinds.items()]
    parts = tag("caption", caption), tag("thead", tag("tr", *heads)), tag("tbody", *rows)
    return tag("figure", tag("table", *parts, class_="bars"))


def _heat_table(heat: HeatMap, kind: str) -> Html:
    caption = f"{heat.quantity} {kind}"
    rows = []
    for label, values, shades in zip(heat.rows, heat.tables[kind], heat.shades(kind), strict=True):
        pairs = zip(values.tolist(), shades.tolist(), strict=True)
        cells = [_heat_cell(heat, value, shade) for value, shade in pairs]
        rows.append(tag("tr", tag("th", isolated(label), scope="row"), *cells))
    names = [tag("th", tag("span", isolated(name)), scope="col") for name in heat.across]
    head = tag("thead", tag("tr", tag("td"), *names))
    made = tag("table", tag("caption", caption), head, tag("tbody", *rows), class_=f"heat {kind}")
    return tag("div", made, class_="wide", role="region", aria_label=caption, tabindex=0)


def _heat_cell(heat: HeatMap, value: float, shade: float) -> Html:
    """Return a cell that is darker if its value is larger; only the value 0 has no colour."""
    text = heat.text(value)
    if not text:
        return tag("td")
    step = min(_SHADES, max(round(shade * _SHADES), 1 if shade else 0))
    if heat.numbered:
        return tag("td", text, class_=f"s{step}")
    return tag("td", class_=f"s{step}", title=text)


def _prediction(prediction: Prediction) -> Iterator[Html]:
    before, after = prediction.before, prediction.after
    yield tag("h3", "A classifier")
    yield tag(
        "p",
        "Tried on records that it has not seen, a decision tree that predicts ",
        isolated(prediction.target),
        " from the quasi-identifiers is right in ",
        tag("strong", percent(before.accuracy)),
        " before and in ",
        tag("strong", percent(after.accuracy)),
        f" after. Always predicting the most frequent value is right in {percent(before.majority)} and "
        f"{percent(after.majority)}.",
    )
    records = f"{before.records:,} records before and {after.records:,} after"
    yield quiet(f"Cross-validation over {FOLDS} parts, of {records}.")


def retained(release: Release) -> Iterator[Html]:
    """Yield the share retained overall and by each quasi-identifier, and the columns that retain nothing."""
    without, columns = release.columns_without_information, plural(len(release.losses), "quasi-identifier")
    yield tag(
        "p",
        tag("strong", percent(release.retained_overall)),
        f" of the information of {columns} is retained: 1 minus the coverage loss, the mean over the "
        "columns. Suppressed records count as lost.",
    )
    if without:
        yield tag("p", "Nothing is left of ", listed(without), ".", class_="bad")
    single_valued = release.columns_with_one_value
    if single_valued:
        yield tag("p", "One value in the input, so that nothing can be lost: ", listed(single_valued), ".")
    rows = [
        (isolated(name), tag("span", "lost", class_="bad") if name in without else _bar(name, share))
        for name, share in release.retained.items()
        if name not in single_valued
    ]
    yield table("What was retained of each quasi-identifier", ("Column", "Retained"), rows)


def other_choices(release: Release, advice: Sequence[Advice]) -> Iterator[Html]:
    """Yield the share that each other choice retains, with its drawback and its options."""
    yield document_table(advice_table(advice, release.retained_overall))
    options = [" ".join(" ".join(pair).strip() for pair in entry.options) for entry in advice]
    yield tag("p", "Options of ", tag("code", "shoal anonymize"), ", in the same order:")
    yield tag("pre", tag("code", "\n".join(options)))


def _bar(name: str, share: float) -> Html:
    return share_bar(share, f"Retained of {name}")


def lost(release: Release) -> Iterator[Html]:
    """Yield the loss by the metric, and the loss of each quasi-identifier."""
    metric, _ = named(release.policy.metric)
    shares = any(loss.share is not None for loss in release.losses.values())
    yield tag(
        "p", "The loss is ", tag("strong", f"{release.loss:,.10g}"), f" by the policy's metric, {metric}."
    )
    levels = {fate.column: fate.level for fate in release.fates()}
    rows = []
    for name, loss in release.losses.items():
        labels = f"{len(release.labels[name]):,}"
        row: list[object] = [isolated(name), levels[name] or "as is", f"{loss.values:,}", labels]
        row.append(share_bar(loss.coverage, f"Coverage loss of {name}"))
        rows.append([*row, percent(loss.share)] if shares and loss.share is not None else row)
    headings = ["Column", "Level", "Values before", "Labels after", "Coverage loss"]
    headings += [f"Share of {metric}"] if shares else []
    yield table("What was lost of each quasi-identifier", headings, rows, numbers=(2, 3, 5))
    words = (
        "Coverage loss is 0% where every value is kept and 100% where none is: the share of a column's "
        "values that a label covers, on average over all records. A suppressed record counts as 100%."
    )
    yield tag("p", words, class_="quiet")
