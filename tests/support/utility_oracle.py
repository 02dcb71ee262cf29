"""What an analyst loses, in plain Python: from the values before, and the values that each cell covers.

An empty cell is None. Nothing is imported of shoal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

Cover = frozenset[Any] | None


def bits(counts: Iterable[int]) -> float:
    shares = [one for one in counts if one]
    whole = sum(shares)
    return sum(-one / whole * math.log2(one / whole) for one in shares)


def kept_information(before: Mapping[Any, int], cells: Sequence[Any]) -> float:
    whole, number = bits(before.values()), sum(before.values())
    if not whole:
        return 1.0
    lost = sum(whole if cell is None else bits(before[value] for value in cell) for cell in cells)
    lost += (number - len(cells)) * whole
    return min(1.0, max(0.0, 1 - lost / (number * whole)))


def spread(before: Mapping[Any, int], cell: Any) -> dict[Any, float]:
    """One record over the values of its cell."""
    whole = sum(before[value] for value in cell)
    return {value: before[value] / whole for value in cell}


def shift(before: Mapping[Any, int], cells: Sequence[Any]) -> float:
    after: Counter[Any] = Counter()
    there = [cell for cell in cells if cell is not None]
    for cell in there:
        for value, share in spread(before, cell).items():
            after[value] += share
    number = sum(before.values())
    return sum(abs(before[value] / number - after[value] / len(there)) for value in before) / 2


def mean(before: Mapping[Any, int], cells: Sequence[Any]) -> tuple[float, float]:
    """The mean and the deviation of the expected value of each cell."""
    numbers = [
        sum(value * share for value, share in spread(before, cell).items())
        for cell in cells
        if cell is not None
    ]
    middle = sum(numbers) / len(numbers)
    return middle, math.sqrt(sum((number - middle) ** 2 for number in numbers) / len(numbers))


def shares_of_labels(
    before: Mapping[Any, int], covers: Mapping[Any, Any], records: Mapping[Any, int]
) -> dict[Any, dict[Any, float]]:
    """Of each value that is covered, the share of its records that each label has."""
    parts: dict[Any, dict[Any, float]] = {value: {} for value in before}
    for label, cover in covers.items():
        for value, share in spread(before, cover).items():
            parts[value][label] = records[label] * share
    return {
        value: {label: part / sum(held.values()) for label, part in held.items()}
        for value, held in parts.items()
    }


def joint(
    befores: Sequence[Mapping[Any, int]], pairs: Sequence[tuple[Any, Any]]
) -> dict[tuple[Any, Any], float]:
    """Spread records over pairs of values."""
    cells: Counter[tuple[Any, Any]] = Counter()
    for one, other in pairs:
        for a, share in spread(befores[0], one).items():
            for b, part in spread(befores[1], other).items():
                cells[a, b] += share * part
    return dict(cells)


def effective(before: Mapping[Any, int], cells: Sequence[Any]) -> float:
    """How many groups labels tell apart: as many as there are, where they do not overlap."""
    after: Counter[Any] = Counter()
    squares: Counter[Any] = Counter()
    for cell in cells:
        for value, share in spread(before, cell).items():
            after[value] += share
            squares[value] += share**2
    return sum(squares[value] / after[value] for value in after if after[value])


def cramers_v(befores: Sequence[Mapping[Any, int]], pairs: Sequence[tuple[Any, Any]]) -> float:
    """Cramer's V of the spread records, corrected for bias by effective numbers of groups."""
    n = len(pairs)
    if n < 2:
        return 0.0
    cells = joint(befores, pairs)
    rows, columns = margins(cells)
    phi = sum(mass**2 / (rows[a] * columns[b]) for (a, b), mass in cells.items() if mass) - 1
    r, c = (effective(before, [pair[side] for pair in pairs]) - 1 for side, before in enumerate(befores))
    most = min(r - r * r / (n - 1), c - c * c / (n - 1))
    phi = max(0.0, phi - r * c / (n - 1))
    return min(1.0, math.sqrt(phi / most)) if most > 1e-9 and phi > 1e-12 else 0.0


def margins(cells: Mapping[tuple[Any, Any], float]) -> tuple[Counter[Any], Counter[Any]]:
    rows: Counter[Any] = Counter()
    columns: Counter[Any] = Counter()
    for (a, b), mass in cells.items():
        rows[a] += mass
        columns[b] += mass
    return rows, columns


def groups(values: Sequence[Any], cells: Sequence[Any]) -> dict[Any, int]:
    """Number the groups of neighbouring values that no label separates."""
    number, last, numbers = -1, None, {}
    for value in values:
        labels = frozenset(cell for cell in cells if cell is not None and value in cell)
        number += labels != last
        last = labels
        numbers[value] = number
    return numbers


def spearman(
    befores: Sequence[Mapping[Any, int]],
    group_of: Sequence[Mapping[Any, int]],
    pairs: Sequence[tuple[Any, Any]],
) -> float | None:
    """The correlation of ranks of groups of values, over the spread records."""
    cells: Counter[tuple[int, int]] = Counter()
    for (a, b), mass in joint(befores, pairs).items():
        cells[group_of[0][a], group_of[1][b]] += mass
    return correlation(cells, [middle_ranks(margin) for margin in margins(cells)])


def middle_ranks(masses: Mapping[Hashable, float]) -> dict[Any, float]:
    below, ranks = 0.0, {}
    for group in sorted(masses):  # type: ignore[type-var]
        ranks[group] = below + (masses[group] + 1) / 2
        below += masses[group]
    return ranks


def correlation(cells: Mapping[tuple[Any, Any], float], ranks: Sequence[Mapping[Any, float]]) -> float | None:
    number = sum(cells.values())

    def average(of: Callable[[float, float], float]) -> float:
        return sum(mass * of(ranks[0][a], ranks[1][b]) for (a, b), mass in cells.items()) / number

    x, y = average(lambda a, _: a), average(lambda _, b: b)
    first, second = average(lambda a, _: (a - x) ** 2), average(lambda _, b: (b - y) ** 2)
    if first * second <= 1e-9:
        return None
    return average(lambda a, b: (a - x) * (b - y)) / math.sqrt(first * second)
