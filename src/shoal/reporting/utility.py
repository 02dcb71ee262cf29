"""The section of a report on what the analyst loses: distributions, associations, a pair, a classifier.

It shows labels of the release and counts, never a value that the release does not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

from shoal.analysing.bars import OTHER, Bar, bars_of, number, shown
from shoal.analysing.classifier import FOLDS, Prediction
from shoal.analysing.columns import ColumnUtility
from shoal.analysing.compared import Utility
from shoal.analysing.pairs import Cells, Contingency
from shoal.core.markup import Html, own, table, tag

_SHADES = 10
_NUMBERED = 10  # labels across a table whose cells still show their numbers


def analyst_loses(found: Utility) -> Iterator[Html]:
    """Tell what an analyst finds in the release, beside the input."""
    words = (
        "Before is the input, by the labels of the release where values fall into one; after is the release."
    )
    yield tag("p", words)
    yield _columns(found.columns)
    words = (
        "Information kept is the entropy of the labels beside that of the values: 100% where every value is "
        "told. Shift is how far suppression moved the distribution of labels: 0% where it is as before."
    )
    yield tag("p", words, class_="quiet")
    numbers = [one for one in found.columns if one.mean_before is not None]
    if numbers:
        yield _numbers(numbers)
        words = (
            "After, a band counts as its middle, and an open one as its end. Missing values and codes for "
            "unknown are left out, before and after."
        )
        yield tag("p", words, class_="quiet")
    yield from _distributions(found.columns)
    if found.associations:
        yield from _associations(found)
    if found.contingency:
        yield from _contingency(found.contingency)
    if found.prediction:
        yield from _prediction(found.prediction)
    for note in found.notes:
        yield tag("p", note, class_="quiet")


def _columns(columns: Sequence[ColumnUtility]) -> Html:
    rows = [
        (own(one.column), f"{one.entropy_before:.2f}", f"{one.entropy_after:.2f}",
         _share(one.kept_information), _share(one.suppressed_shift))
        for one in columns
    ]  # fmt: skip
    headings = ("Column", "Bits before", "Bits after", "Information kept", "Shift")
    return table("What is left of each column", headings, rows, numbers=range(1, 5))


def _numbers(columns: Sequence[ColumnUtility]) -> Html:
    rows = []
    for one in columns:
        found = one.mean_before, one.mean_after, one.deviation_before, one.deviation_after
        rows.append([own(one.column), *map(number, found)])
    headings = ("Column", "Mean before", "Mean after", "Deviation before", "Deviation after")
    return table("Means and standard deviations of numbers", headings, rows, numbers=range(1, 5))


def _share(share: float | None) -> str:
    """Write a share in percent; a question mark where it cannot be told."""
    if share is None:
        return "?"
    return f"{100 * share:.2g}%" if 0 < share < 0.01 else f"{100 * share:.1f}%".replace(".0%", "%")


# Distributions


def _distributions(columns: Sequence[ColumnUtility]) -> Iterator[Html]:
    several = {one.column: bars_of(one) for one in columns if one.labels > 1}
    yield tag("h3", "Distributions")
    yield tag("div", *[_card(name, bars) for name, bars in several.items() if bars], class_="cards")
    alike = [one.column for one in columns if one.labels <= 1]
    many = [name for name, bars in several.items() if not bars]
    for words, names in (("One label for all records", alike), ("Too many labels to draw", many)):
        if names:
            told = [part for name in names for part in (", ", own(name))][1:]
            yield tag("p", f"{words}: ", *told, ".", class_="quiet")


def _card(name: str, bars: Sequence[Bar]) -> Html:
    most = max(max(before or 0, after) for _, before, after in bars) or 1
    rows = []
    for label, before, after in bars:
        drawn = [
            tag("rect", class_=kind, x=0, y=y, width=f"{100 * records / most:.1f}", height=5, rx=0.5)
            for kind, records, y in (("before", before, 0), ("after", after, 6))
            if records
        ]
        said = tag("title", f"before: {_number(before)}, after: {after:,}")
        shape = tag("svg", said, *drawn, viewBox="0 0 100 11", preserveAspectRatio="none", role="img")
        numbers = [tag("td", _number(records), class_="number") for records in (before, after)]
        rows.append(tag("tr", tag("th", own(label), scope="row"), tag("td", shape), *numbers))
    kinds = {"label": None, "": None, "before": "number before", "after": "number after"}
    heads = [tag("th", words, scope="col", class_=kind) for words, kind in kinds.items()]
    parts = tag("caption", own(name)), tag("thead", tag("tr", *heads)), tag("tbody", *rows)
    return tag("figure", tag("table", *parts, class_="bars"))


def _number(records: int | None) -> str:
    return "?" if records is None else f"{records:,}"


# Pairs of columns


def _associations(found: Utility) -> Iterator[Html]:
    yield tag("h3", "How much columns tell of each other")
    names = found.associated
    both = []
    for kind in ("before", "after"):
        values = {one.columns: getattr(one, kind) for one in found.associations}
        rows = []
        for place, name in enumerate(names[1:], 1):
            cells = [_shaded(f"{values[other, name]:.2f}", values[other, name]) for other in names[:place]]
            cells += [tag("td")] * (len(names) - 1 - place)
            rows.append(tag("tr", tag("th", own(name), scope="row"), *cells))
        both.append(_heat(f"Cramer's V {kind}", kind, names[:-1], rows))
    yield tag("div", *both, class_="beside")
    words = (
        "Cramer's V, corrected for bias, is 0 where two columns tell nothing of each other and 1 where each "
        "tells the other; before by values, after by labels."
    )
    yield tag("p", words, class_="quiet")


def _contingency(found: Contingency) -> Iterator[Html]:
    one, other = found.columns
    rows, across, tables = found.rows, found.across, {"before": found.before, "after": found.after}
    if len(across) > len(rows):
        one, other, rows, across = other, one, across, rows
        tables = {kind: cells and tuple(zip(*cells, strict=True)) for kind, cells in tables.items()}
    yield tag("h3", "Records by ", own(one), " and ", own(other))
    both = [cells for cells in tables.values() if cells]
    most = max(max(map(max, cells)) for cells in both) or 1
    below = any(any(cells[-1]) for cells in both)
    beside = any(any(row[-1] for row in cells) for cells in both)
    heads = [*map(shown, across), *([OTHER] if beside else [])]
    sides = [*map(shown, rows), *([OTHER] if below else [])]
    drawn = [
        _heat(f"Records {kind}", kind, heads, _counted(cells, heads, sides, most))
        for kind, cells in tables.items()
        if cells
    ]
    yield tag("div", *drawn, class_="beside")
    words = "The stronger its colour, the more records a cell has."
    if len(both) == 1:
        words += " Before is not told: classes have labels of their own."
    yield tag("p", words, class_="quiet")


def _counted(cells: Cells, heads: Sequence[str], sides: Sequence[str], most: int) -> list[Html]:
    rows = []
    for label, row in zip(sides, cells, strict=False):
        told = row[: len(heads)]
        words = [f"{records:,}" if len(heads) <= _NUMBERED else "" for records in told]
        pairs = zip(words, told, strict=True)
        drawn = [_shaded(number, sqrt(records / most), f"{records:,}") for number, records in pairs]
        rows.append(tag("tr", tag("th", own(label), scope="row"), *drawn))
    return rows


def _shaded(words: str, share: float, title: str | None = None) -> Html:
    """Return a cell that is the darker the larger a share is; none that is something looks like nothing."""
    shade = min(_SHADES, max(round(share * _SHADES), 1 if share else 0))
    return tag("td", words, class_=f"s{shade}", title=None if words else title)


def _heat(caption: str, kind: str, heads: Sequence[str], rows: Sequence[Html]) -> Html:
    top = [tag("th", tag("span", own(name)), scope="col") for name in heads]
    head = tag("thead", tag("tr", tag("td"), *top))
    made = tag("table", tag("caption", caption), head, tag("tbody", *rows), class_=f"heat {kind}")
    return tag("div", made, class_="wide", role="region", aria_label=caption, tabindex=0)


# A classifier


def _prediction(found: Prediction) -> Iterator[Html]:
    yield tag("h3", "A classifier")
    before, after = found.before, found.after
    yield tag(
        "p",
        "Tried on records that it has not seen, a decision tree that predicts ",
        own(found.target),
        " from the quasi-identifiers is right in ",
        tag("strong", _share(before.accuracy)),
        " before and in ",
        tag("strong", _share(after.accuracy)),
        f" after. Who always says the most frequent value is right in {_share(before.majority)} and "
        f"{_share(after.majority)}.",
    )
    words = f"Cross-validation over {FOLDS} parts"
    words += f", of {before.records:,} records before and {after.records:,} after."
    yield tag("p", words, class_="quiet")
