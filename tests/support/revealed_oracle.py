"""What unchanged columns reveal, counted record by record in plain Python; imports nothing of shoal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

CHANCE = 1e-3


@dataclass(frozen=True)
class Record:
    """One released record."""

    unchanged: Mapping[str, Any]
    labels: Mapping[str, Any]  # per quasi-identifier: what is released
    groups: Mapping[str, Sequence[str]]  # per quasi-identifier: its group at each level from 0


def guess_of(records: Sequence[Record], column: str, level: int) -> dict[Any, tuple[int, float]]:
    """Return the records of each label that covers several groups, and how often a guess is right."""
    seen: dict[Any, Counter[str]] = defaultdict(Counter)
    for record in records:
        seen[record.labels[column]][record.groups[column][level]] += 1
    return {
        label: (sum(own.values()), max(own.values()) / sum(own.values()))
        for label, own in seen.items()
        if len(own) > 1
    }


def by_chance(guess: Mapping[Any, tuple[int, float]], size: int) -> float:
    """Return the chance that a group of so many records agrees."""
    total = sum(number for number, _ in guess.values())
    return sum(number / total * hit ** (size - 1) for number, hit in guess.values())


def convincing(records: float, of: float, chance: float) -> bool:
    return of > chance and records - chance >= (of - chance) / 2


def unlikely(number: int, expected: float) -> bool:
    if expected <= 0 or number <= expected:
        return number > 0 and expected <= 0
    return number * log(number / expected) - number + expected >= -log(CHANCE)


def revealed(
    records: Sequence[Record], values: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return (unchanged column, quasi-identifier) -> (level, records).

    `values` has the groups of every value of every quasi-identifier.
    """
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for used in records[0].unchanged if records else ():
        shared: dict[Any, list[Record]] = defaultdict(list)
        for record in records:
            shared[record.unchanged[used]].append(record)
        for column, known in values.items():
            for level in range(len(next(iter(known.values())))):
                guess = guess_of(records, column, level)
                number = max(
                    agreement(shared.values(), column, level, guess),
                    content(records, used, column, level, guess, known),
                )
                if number > found.get((used, column), (0, 0))[1]:
                    found[used, column] = level, number
    return found


def agreement(groups: Any, column: str, level: int, guess: Mapping[Any, tuple[int, float]]) -> int:
    """Count the generalized records that share their unchanged value with others who agree with them."""
    everybody = agreeing = of = agreeing_groups = 0
    chance = expected = information = surprise = 0.0
    for group in groups:
        generalized = sum(record.labels[column] in guess for record in group)
        everybody += generalized
        if len(group) < 2 or not generalized:
            continue
        agrees = len({record.groups[column][level] for record in group}) == 1
        odds = by_chance(guess, len(group))
        of += generalized
        chance += generalized * odds
        expected += odds
        surprise += log(2)
        agreeing += generalized * agrees
        agreeing_groups += agrees
        information -= agrees * log(max(odds, 1e-300))
    if not agreeing or 2 * agreeing < everybody or not convincing(agreeing, of, chance):
        return 0
    return agreeing if unlikely(agreeing_groups, expected) or information - surprise >= -log(CHANCE) else 0


def content(
    records: Sequence[Record],
    used: str,
    column: str,
    level: int,
    guess: Mapping[Any, tuple[int, float]],
    known: Mapping[str, Sequence[str]],
) -> int:
    """Count the generalized records whose unchanged value names their group.

    A value names a group as its label, or as a value of the quasi-identifier that is in it.
    """
    generalized = [record for record in records if record.labels[column] in guess]
    hits = sum(
        record.groups[column][level]
        in (record.unchanged[used], *known.get(record.unchanged[used], ())[level : level + 1])
        for record in generalized
    )
    if not hits:
        return 0
    guessed = len(generalized) * by_chance(guess, 2)
    good = 2 * hits >= len(generalized) and convincing(hits, len(generalized), guessed)
    return hits if good and unlikely(hits, guessed) else 0


def unique(records: Sequence[Record]) -> int:
    """Count the records that nobody else shares all released and unchanged values with."""
    looks = Counter((*record.labels.values(), *record.unchanged.values()) for record in records)
    return sum(number == 1 for number in looks.values())
