"""The part of a report about risk: before and after, and the sizes of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.core.markup import Html, joined, own, percent, table, tag
from shoal.core.schema import Role
from shoal.core.uniqueness import UNIQUENESS_MODELS
from shoal.release import Release
from shoal.report_histogram import bars, histogram
from shoal.risk import TableRisk, risk_of
from shoal.special import Special

_SETS = 8  # of columns that are shown


def risks(release: Release, k: int) -> Iterator[Html]:
    """Tell the risks before and after, and what they mean."""
    found = risk_of(release)
    persons, both = found.population, [one for one in (found.before, found.after) if one is not None]
    rows: list[Sequence[object]] = [
        ("Records in classes", *[f"{one.records:,}" for one in both]),
        ("Classes", *[f"{one.exposure.classes:,}" for one in both]),
        ("Smallest class (k)", *[f"{one.exposure.smallest:,}" for one in both]),
        ("Unique records", *[_of(one, one.exposure.unique) for one in both]),
        ("Highest prosecutor risk", *[percent(one.prosecutor.highest) for one in both]),
        ("Average prosecutor risk", *[percent(one.prosecutor.average) for one in both]),
    ]
    if k > 1:
        rows.append(
            (f"Records in classes below {k:,}", *[_of(one, one.exposure.below(k)) for one in both]),
        )
    rows += _in_population(both, persons)
    rows.append(
        ("Marketer risk, records told rightly", *[_of(one, one.marketer * one.records) for one in both])
    )
    yield table(
        "Before: the input's quasi-identifiers as they are. After: the release",
        ("Measure", "Before", "After"),
        rows,
        numbers=(1, 2),
    )
    yield from _notes(release, persons)
    if release.special is not None:
        yield from _special(release.special)


def _special(found: Special) -> Iterator[Html]:
    """Tell which sets of columns made records of the input unique."""
    if not found.sets:
        return
    rows = [(joined(_between(columns)), f"{records:,}") for columns, records in found.sets[:_SETS]]
    yield table(
        "What made records unique before: sets of columns", ("Columns", "Records"), rows, numbers=(1,)
    )
    more = len(found.sets) - _SETS
    words = (
        f"{found.records:,} records ({percent(found.share)}) are told apart by {found.size} columns or fewer"
    )
    words += f"; {more:,} more sets do so." if more > 0 else "."
    yield tag("p", f"{words} No column of a set can be left out of it.", class_="quiet")


def _between(columns: Sequence[str]) -> Iterator[object]:
    for place, name in enumerate(columns):
        yield ", " if place else ""
        yield own(name)


def _in_population(both: Sequence[TableRisk], persons: int | None) -> Iterator[Sequence[object]]:
    """Yield what depends on how many persons the population has."""
    if persons is None:
        return
    yield "Highest journalist risk, estimated", *[percent(one.journalist.highest) for one in both]
    yield "Average journalist risk, estimated", *[percent(one.journalist.average) for one in both]
    for place, model in enumerate(UNIQUENESS_MODELS):
        found = [one.uniques[place].in_sample for one in both]
        told = [
            "no estimate" if number is None else _of(one, number)
            for one, number in zip(both, found, strict=True)
        ]
        yield f"Unique in the population too, by {model}", *told


def _of(one: TableRisk, records: float) -> str:
    return f"{round(records):,} ({percent(records / one.records)})" if one.records else "0"


def _notes(release: Release, persons: int | None) -> Iterator[Html]:
    words = (
        "Prosecutor risk is the chance of picking a known person's record out of its class: one in its size. "
        "A marketer matches everyone, right or wrong."
    )
    if persons is not None:
        words += (
            f" A journalist knows only that a person is among the {persons:,} of the population. What is "
            "said of the population is estimated as if the table were a random sample of it."
        )
    yield tag("p", words, class_="quiet")
    for unit in release.policy.units:
        words = f"Risk is told by records; a model counts the different values of {unit} instead."
        yield tag("p", words, class_="quiet")
    if release.masked:
        words = f"The {release.masked:,} masked records show no quasi-identifier and are in no class after."
        yield tag("p", words, class_="quiet")
    if release.apart:
        words = (
            "Quasi-identifiers are released as they are: a known person's record can be found as before. "
            f"What is hidden is which value of {release.apart} is whose: {release.verification.classes:,} "
            f"groups, the smallest of {release.verification.smallest_class:,} records, were counted afresh."
        )
        yield tag("p", words, class_="bad")
    if any(column.role in (Role.SENSITIVE, Role.OTHER) for column in release.policy.columns.values()):
        words = "Sensitive and other columns make no class; the models above say what is asked of them."
        yield tag("p", words, class_="quiet")


def sizes(release: Release, k: int) -> Iterator[Html]:
    """Draw how many records are in classes of each size."""
    found = bars(release.exposure, release.exposure_after, k)
    yield tag("figure", histogram(found, k))
    rows = [(bar.words, f"{bar.before:,}", f"{bar.after:,}") for bar in found]
    headings = ("Size of the class", "Records before", "Records after")
    yield table("Records by the size of their class", headings, rows, numbers=(1, 2))
