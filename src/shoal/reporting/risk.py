"""The part of a report about risk: before and after, and the sizes of classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shoal.assessing.rows import Unit, measures, rows_of
from shoal.assessing.special import Special
from shoal.core.markup import Html, table, tag
from shoal.core.schema import Role
from shoal.errors import so_many
from shoal.reporting.histogram import bars, histogram
from shoal.reporting.words import listed, percent

if TYPE_CHECKING:
    from shoal.release import Release
    from shoal.risk import Risk

_SETS = 8  # of columns that are shown


def risks(release: Release, found: Risk, k: int) -> Iterator[Html]:
    """Tell the risks before and after, and what they mean."""
    persons = found.population
    told = [one for one in measures(found, k) if persons is not None or one.about != "journalist"]
    rows = [(f"{name[0].upper()}{name[1:]}", *cells) for name, *cells in rows_of(found, told, _in_percent)]
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
    rows = [(listed(columns), f"{records:,}") for columns, records in found.sets[:_SETS]]
    yield table(
        "What made records unique before: sets of columns", ("Columns", "Records"), rows, numbers=(1,)
    )
    more = len(found.sets) - _SETS
    words = f"{so_many(found.records, 'record')} ({percent(found.share)}) can be told apart by "
    words += f"{so_many(found.size, 'column')} or fewer"
    words += f"; {more:,} more sets do so." if more > 0 else "."
    yield tag("p", f"{words} No column of a set can be left out of it.", class_="quiet")


def _in_percent(unit: Unit, value: float | None, total: int) -> str:
    """Write a value for one who reads words: chances and shares in percent."""
    if value is None:
        return "no estimate"
    if unit in (Unit.CHANCE, Unit.SHARE):
        return percent(value)
    share = percent(value / total if total else 0.0)
    return f"{round(value):,}" if unit is Unit.NUMBER else f"{round(value):,} ({share})"


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
            f"groups, the smallest of {so_many(release.verification.smallest_class, 'record')}, were counted "
            "afresh."
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
