"""Documents: the content of a result, independent of where it is shown.

A result describes itself with `document()`. `html`, `terminal` and `figures` show a document, so that the
notebook and the command line show the same text. This module does not depend on any kind of result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from shoal.wording import percent

Tone = Literal["good", "warn", "bad"]


class Name(str):
    """A name or label from the data. HTML isolates its writing direction from the surrounding text."""

    __slots__ = ()


class Code(str):
    """Code or a command to type."""

    __slots__ = ()


Text = str | tuple[str, ...]  # a tuple contains the parts of one sentence: str, Name or Code


def without_markup(text: Text) -> str:
    """Return a text without markup."""
    return text if isinstance(text, str) else "".join(text)


def name_list(values: Iterable[str]) -> tuple[str, ...]:
    """List names of the data, separated by commas.

    >>> without_markup(name_list(["age", "sex"]))
    'age, sex'
    """
    return tuple(part for value in values for part in (", ", Name(value)))[1:]


def levels_text(levels: Mapping[str, int]) -> tuple[str, ...]:
    """List columns with their levels.

    >>> without_markup(levels_text({"age": 2, "sex": 0}))
    'age 2, sex 0'
    """
    return tuple(part for name, level in levels.items() for part in (", ", Name(name), f" {level}"))[1:]


def of_records(count: int, records: int) -> str:
    """Return a number of records and their share of all records.

    >>> of_records(250, 5000)
    '250 of 5,000 records (5%)'
    """
    return f"{count:,} of {records:,} records ({percent(count / records)})"


@dataclass(frozen=True)
class Verdict:
    """One sentence about a result, and whether the result is good."""

    tone: Tone
    text: str


@dataclass(frozen=True)
class Fact:
    """A label and its value. The key identifies the fact even if the label is reworded."""

    key: str
    label: Text
    value: Text


@dataclass(frozen=True)
class Table:
    """Rows of text under headers."""

    title: Text
    headers: Sequence[Text]
    rows: Sequence[Sequence[Text]]
    left: Collection[int] = (0,)  # columns of text, aligned left; all others are aligned right
    total: int | None = None  # the number of all rows, if only the first are listed
    note: Text = ""  # a sentence below the table
    optional: Sequence[int] = ()  # columns that a narrow screen leaves out, in this order

    @property
    def omitted(self) -> int:
        """The number of rows that are not listed."""
        return 0 if self.total is None else max(self.total - len(self.rows), 0)


Line = Sequence[tuple[float, float]]  # points in order of x


@dataclass(frozen=True)
class Strip:
    """Panels side by side that share the vertical axis."""

    label: str
    panels: Sequence[Mapping[str, Line]]  # lines by name
    percent: bool


@dataclass(frozen=True)
class Figure:
    """Strips one below the other that share the horizontal axis."""

    name: str  # the name of its files, without extension
    title: str
    headings: Sequence[str]  # of the panels
    across: str  # the label of the horizontal axis
    ticks: dict[float, str]  # positions on the horizontal axis, with their labels
    strips: Sequence[Strip]
    order: Sequence[str]  # line names; the position of a name sets its colour and marker in all figures
    drawn: Mapping[str, str] = field(default_factory=dict)  # lines drawn as "dots" or "steps"
    notes: Sequence[str] = ()  # one per panel: which data are missing in the panel, and why
    bars: bool = False  # bars instead of lines: one point per name, and the strips side by side
    scale: Literal["auto", "linear", "log"] = "auto"  # of both axes; auto: logarithmic beyond a factor of 10


def round_ticks(most: float, longest: int = 8) -> dict[float, str]:
    """Return the numbers 1, 2, 5, 10, 20, 50, ... up to `most`; only powers of ten if there are too many.

    >>> round_ticks(6), round_ticks(2000, 4)
    ({1.0: '1', 2.0: '2', 5.0: '5'}, {1.0: '1', 10.0: '10', 100.0: '100', 1000.0: '1,000'})
    """
    ticks = [value for power in range(16) for step in (1, 2, 5) if (value := step * 10**power) <= most]
    if len(ticks) > longest:
        ticks = [value for value in ticks if str(value)[0] == "1"]
    return {float(value): f"{value:,}" for value in ticks}


@dataclass(frozen=True)
class Document:
    """The content of a result. Shown in order: warnings, verdict (or title), facts, tables, notes, hints."""

    title: Text
    facts: Sequence[Fact] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[Text] = ()
    verdict: Verdict | None = None
    warnings: Sequence[str] = ()
    hints: Sequence[Text] = ()  # what to call next in Python; not shown on the command line
    figures: Sequence[Figure] = ()

    @property
    def headline(self) -> Text:
        """The verdict, or the title if there is no verdict."""
        return self.verdict.text if self.verdict else self.title

    def summary(self) -> str:
        """Return the document without its tables, as lines of text."""
        width = max((len(without_markup(fact.label)) for fact in self.facts), default=0)
        facts = [
            f"{without_markup(fact.label):<{width}}  {without_markup(fact.value)}" for fact in self.facts
        ]
        warnings = [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join([*warnings, without_markup(self.headline), *facts, *map(without_markup, self.notes)])


class PlainValues:
    """A dataclass that is written to JSON as its fields."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


class HasDocument(PlainValues):
    """A result that describes itself. `print` shows a summary, and a notebook shows the whole document."""

    def document(self) -> Document:
        """Describe the result."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.document().summary()

    def _repr_html_(self) -> str:
        from shoal.document.html import render

        return render(self.document())
