"""Dropped columns: what becomes possible if one or two quasi-identifiers are not released.

If the top level of a column has only one group, a column at that level is dropped: the nodes of a profile
give the answer. For any other column, the lattice without the column is tabulated once. This needs the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.lattice.lattice import build
from shoal.document.document import Table, Text, name_list
from shoal.wording import percent
from shoal.workflow.profile.negotiate import RequestAnswer
from shoal.workflow.profile.offer import Offer, Request

if TYPE_CHECKING:
    from shoal.workflow.profile.profile import Profile

_MOST_NODES = 200_000  # maximum size of a lattice that is tabulated for a request
_ROWS = 15  # maximum number of rows of a table


@dataclass(frozen=True)
class Dropped:
    """What becomes possible without some columns; each offer changes only one setting of the request."""

    columns: tuple[str, ...]
    levels: Offer | None = None  # the lowest node within the other columns' levels
    suppression: Offer | None = None  # the least suppression within the other columns' levels
    k: Offer | None = None  # the largest k within the limit and the other columns' levels
    l: Offer | None = None
    counted: bool = True  # False: the profile cannot answer, and the data is not available

    def to_dict(self) -> dict[str, Any]:
        """Return the offers as plain values."""
        offers = {name: getattr(self, name) for name in ("levels", "suppression", "k", "l")}
        plain = {name: offer and offer.to_dict() for name, offer in offers.items()}
        return {"columns": list(self.columns), **plain, "counted": self.counted}


def dropped(profile: Profile, request: Request) -> tuple[Dropped, ...]:
    """Answer the request for each column and each pair of columns left out, best answers first."""
    names = profile.lattice.columns
    sets = [pair for size in (1, 2) for pair in combinations(names, size) if size < len(names)]
    inside = [columns for columns in sets if _is_node(profile, columns)]
    answers = {answer.columns: answer for answer in _from_nodes(profile, request, inside)}
    for columns in sets:
        if columns not in answers:
            answers[columns] = _from_data(profile, request, columns)
    order = {columns: number for number, columns in enumerate(sets)}
    return tuple(sorted(answers.values(), key=lambda answer: (*_best_first(answer), order[answer.columns])))


def _best_first(answer: Dropped) -> tuple[float, ...]:
    """Sort key: exact answers first, then fewer columns, lower nodes, fewer suppressed records."""
    best = answer.levels or answer.suppression
    if best is None:
        return (2, len(answer.columns), 0, 0)
    if answer.levels is None:
        return (1, len(answer.columns), best.suppressed, best.height)
    return (0, len(answer.columns), best.height, best.suppressed)


def _is_node(profile: Profile, columns: Sequence[str]) -> bool:
    """Return whether a node of the lattice drops only these columns."""
    lattice = profile.lattice
    single_columns = {lattice.columns[axis[0]] for axis in lattice.axes if len(axis) == 1}
    return all(name in single_columns and name in profile.removable for name in columns)


def _from_nodes(profile: Profile, request: Request, sets: Sequence[Sequence[str]]) -> Iterator[Dropped]:
    from shoal.workflow.profile.choose import choose_dropped

    if not sets:
        return
    answer = RequestAnswer(profile, request, runtime=False)
    lattice = profile.lattice
    axis_of = {lattice.columns[axis[0]]: number for number, axis in enumerate(lattice.axes)}
    pairs = np.array([[axis_of[columns[0]], axis_of[columns[-1]]] for columns in sets]).reshape(-1, 2)
    low, high, top = np.array(answer.low), np.array(answer.high), np.array(lattice.shape) - 1
    limit = min(request.limit, profile.records - 1)  # keeps at least one class
    orders = (answer.rank, answer.suppressed, profile.merged, profile.numbers)
    chosen = choose_dropped(profile.levels, *orders, low, high, top, pairs, limit)
    for columns, axes, (levels, least) in zip(sets, pairs, chosen.tolist(), strict=True):
        lowest, highest = low.copy(), high.copy()
        lowest[axes] = highest[axes] = top[axes]
        yield _offers(tuple(columns), answer, levels, least, lowest, highest)


def _from_data(profile: Profile, request: Request, columns: tuple[str, ...]) -> Dropped:
    smaller = profile.without(columns)
    if smaller is None:
        return Dropped(columns, counted=False)
    max_levels = {name: level for name, level in request.max_level.items() if name not in columns}
    answer = RequestAnswer(smaller, replace(request, max_level=max_levels), runtime=False)
    levels, least, *_ = answer.chosen(answer.rank)
    return _offers(columns, answer, levels, least, np.array(answer.low), np.array(answer.high))


def _offers(
    columns: tuple[str, ...], answer: RequestAnswer, levels: int, least: int, low: IntArray, high: IntArray
) -> Dropped:
    """Describe two nodes, given by row (-1: none): an acceptable one, and the one that suppresses least."""
    return Dropped(
        columns,
        levels=answer.offer(levels) if levels >= 0 else None,
        suppression=answer.more_suppression(least),
        k=answer.less_privacy("k", low, high),
        l=answer.less_privacy("l", low, high),
    )


def profile_without(profile: Profile, columns: Sequence[str]) -> Profile | None:
    """Tabulate the lattice of the other columns; None if it is too large or the data is not available."""
    from shoal.workflow.profile.profile import tabulated

    problem, lattice, defaults = profile.problem, profile.lattice, profile.defaults
    if problem is None or problem.counts.remote:
        return None
    remaining = [name for name in lattice.columns if name not in columns]
    heights = {name: lattice.heights[lattice.columns.index(name)] for name in remaining}
    groups = [[lattice.columns[number] for number in axis] for axis in lattice.axes]
    groups = [[name for name in group if name in remaining] for group in groups]
    smaller = build(heights, same_level=[group for group in groups if len(group) > 1])
    if smaller.size > _MOST_NODES:
        return None
    without = problem.onto(smaller)
    limits = [
        {n: v for n, v in levels.items() if n in heights}
        for levels in (defaults.max_level, defaults.min_level)
    ]
    return tabulated(without, replace(defaults, max_level=limits[0], min_level=limits[1]))


def dropped_table(answers: Sequence[Dropped], columns: Sequence[str], records: int) -> Table | None:
    """List the columns without which there is an exact answer.

    A pair is listed only if it is not enough to leave out one of its columns.
    """
    enough = [item for item in answers if item.levels is not None]
    single = {item.columns[0] for item in enough if len(item.columns) == 1}
    rows = [item for item in enough if len(item.columns) == 1 or not single & set(item.columns)]
    if not rows:
        return None
    lines: list[list[Text]] = []
    for item in rows[:_ROWS]:
        offer = item.levels
        assert offer is not None
        levels = " ".join("-" if name in item.columns else str(offer.node[name]) for name in columns)
        suppressed = f"{offer.suppressed:,} ({percent(offer.suppressed / records)})"
        most = ", ".join(filter(None, (_most(item, "k"), _most(item, "l"))))
        lines.append([name_list(item.columns), levels, str(offer.height), suppressed, most])
    title = "Without one column, or two, everything else can stay as asked"
    note = "at most: the largest k (and l) within the limit and the levels"
    headers = ["dropped", "node", "height", "suppressed", "at most"]
    return Table(title, headers, lines, left=(0, 1), total=len(rows), note=note)


def _most(answer: Dropped, name: Literal["k", "l"]) -> str:
    offer = getattr(answer, name)
    return f"{name} = {getattr(offer.privacy, name):,}" if offer else ""
