"""Notes on a table: what its custodian should know before the first policy is used, without a value of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.core.schema import Role
from shoal.identifiers.looks import is_age, is_birth
from shoal.identifiers.names import is_foreign_postcode
from shoal.policies.guesses import Guess


def notes_on(guesses: Sequence[Guess]) -> list[str]:
    """Say what is doubtful about columns, and about some beside others."""
    own = [note for found in guesses for note in found.notes]
    return [*_twins([found.column for found in guesses]), *own, *_ages(guesses)]


def _twins(names: Sequence[str]) -> Iterator[str]:
    """Name columns that are easily taken for each other."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.strip().casefold(), []).append(name)
    for group in groups.values():
        if len(group) > 1:
            told = " and ".join(map(repr, group))
            yield f"Columns {told} differ only by case or by spaces around the name. Rename all but one."
    for name in names:
        if name != name.strip() and len(groups[name.strip().casefold()]) == 1:
            yield f"Column {name!r} has spaces around its name: write them in the policy too, or rename it."


def _ages(guesses: Sequence[Guess]) -> Iterator[str]:
    """Name an age beside a date or year of birth."""
    quasi = [found.column for found in guesses if found.role is Role.QUASI_IDENTIFIER]
    births = [name for name in quasi if is_birth(name)]
    for age in filter(is_age, quasi):
        for birth in births:
            yield (
                f"Columns {age!r} and {birth!r} tell nearly the same, so that the one shows what is coarse "
                "in the other. Keep one of them, and give the other the role identifier, which removes it."
            )


def postcode_notes(guesses: Sequence[Guess]) -> Iterator[str]:
    """Name postcodes that a rule of the United States does not fit."""
    for found in guesses:
        if found.role is not Role.IDENTIFIER and is_foreign_postcode(found.column):
            yield (
                f"Column {found.column!r} is named as a postcode of another country. Safe Harbor is a rule "
                "of the United States: its list of small areas, under `together`, says nothing about other "
                "countries. List the areas of yours that have few people, or remove the column."
            )
