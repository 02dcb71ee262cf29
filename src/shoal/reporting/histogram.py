"""The histogram of class sizes, before and after, drawn as SVG without help."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from shoal.assessing.exposure import Exposure
from shoal.core.markup import Html, joined, tag
from shoal.errors import so_many

_WIDTH, _HEIGHT = 960, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 8, 44, 52
_MOST = 14  # bars beside each other that can still be labelled


@dataclass(frozen=True)
class Bar:
    """The records in classes of some sizes, before and after."""

    low: int
    high: int  # the largest size of all
    before: int
    after: int

    @property
    def label(self) -> str:
        """The sizes, in short."""
        return _short(self.low) if self.low == self.high else f"{_short(self.low)}\u2013{_short(self.high)}"

    @property
    def words(self) -> str:
        """The sizes, in full."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"


def bars(before: Exposure, after: Exposure, k: int) -> tuple[Bar, ...]:
    """Sort records by the size of their class; no bar holds both what is below k and what is not.

    >>> [bar.label for bar in bars(Exposure((1, 7), (4, 7)), Exposure((30,), (30,)), 6)]
    ['1', '2', '3\u20134', '5', '6\u20139', '10\u201319', '20\u201349']
    """
    largest = max((*before.sizes, *after.sizes), default=1)
    edges = _edges(largest, k, (1, 2, 5))
    if len(edges) - 1 > _MOST:
        edges = _edges(largest, k, (1,))
    return tuple(
        Bar(low, high - 1, before.within(low, high), after.within(low, high)) for low, high in pairwise(edges)
    )


def _edges(largest: int, k: int, steps: tuple[int, ...]) -> list[int]:
    """Return where bars begin, and where the last one ends."""
    found = {1, 2, 3, 5} if len(steps) > 1 else {1, 2, 5}
    ten = 10
    while ten <= 10 * largest:
        found |= {ten * step for step in steps}
        ten *= 10
    edges = sorted(found | ({k} if 1 < k <= largest else set()))
    return [edge for edge in edges if edge <= largest] + [next(edge for edge in edges if edge > largest)]


def histogram(found: tuple[Bar, ...], k: int) -> Html:
    """Draw the bars, those before beside those after."""
    most = max([1, *(bar.before for bar in found), *(bar.after for bar in found)])
    step = _step(most)
    top = -(-most // step) * step
    width = (_WIDTH - _LEFT - _RIGHT) / len(found)
    thick = min(width * 0.38, 44)
    floor = _HEIGHT - _BOTTOM

    def y(records: float) -> float:
        return floor - (floor - _TOP) * records / top

    drawn = [_text("records", _LEFT - 10, _TOP - 22, "end")]
    for records in range(0, top + 1, step):
        drawn.append(_line("axis", _LEFT, y(records), _WIDTH - _RIGHT, y(records)))
        drawn.append(_text(f"{records:,}", _LEFT - 10, y(records) + 4, "end"))
    for place, bar in enumerate(found):
        middle = _LEFT + width * (place + 0.5)
        for kind, records, x in (
            ("before", bar.before, middle - thick - 1),
            ("after", bar.after, middle + 1),
        ):
            height = max(floor - y(records), 1.5) if records else 0.0
            said = f"{kind}: {so_many(records, 'record')} in classes of {bar.words}"
            shape = tag("rect", tag("title", said), class_=kind, x=_at(x), y=_at(floor - height),
                        width=_at(thick), height=_at(height), data_records=records)  # fmt: skip
            drawn.append(shape)
        drawn.append(_text(bar.label, middle, floor + 20, "middle"))
        if bar.low == k > 1:
            x = _LEFT + width * place
            drawn.append(_line("limit", x, _TOP - 12, x, floor))
            drawn.append(_text(f"k = {k:,}", x + 7, _TOP - 4, "start", "told"))
    drawn.append(_text("size of the class", (_LEFT + _WIDTH) / 2, _HEIGHT - 8, "middle"))
    title = tag("title", "Records by the size of their class, before and after", id="histogram-title")
    words = (
        "Before and after, how many records are in classes of each size. The table below holds the numbers."
    )
    return tag(
        "svg", title, tag("desc", words, id="histogram-words"), _legend(), joined(drawn), role="img",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", aria_labelledby="histogram-title histogram-words",
    )  # fmt: skip


def _legend() -> Html:
    parts = []
    for place, kind in enumerate(("before", "after")):
        x = _WIDTH - 190 + place * 100
        parts.append(tag("rect", class_=kind, x=x, y=4, width=14, height=14, rx=2))
        parts.append(_text(kind, x + 21, 16, "start", "told"))
    return joined(parts)


def _step(most: int) -> int:
    """Return the round number by which about four lines reach so many records."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if most <= 5 * step * factor:
                return step * factor
        step *= 10


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Html:
    return tag("line", class_=kind, x1=_at(x1), y1=_at(y1), x2=_at(x2), y2=_at(y2))


def _text(words: str, x: float, y: float, anchor: str, kind: str | None = None) -> Html:
    return tag("text", words, x=_at(x), y=_at(y), text_anchor=anchor, class_=kind)


def _at(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")


def _short(number: int) -> str:
    """Write a large size in few characters; 1,999 and 2,000 are both 2k where bars meet."""
    for size, sign in ((10**9, "G"), (10**6, "M"), (1000, "k")):
        if number >= size:
            return f"{round(number / size, 1):g}{sign}"
    return str(number)
