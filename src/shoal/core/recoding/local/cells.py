"""Cells with several labels of one level: "Europe or Asia"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.hierarchy.hierarchy import MISSING, Hierarchy
from shoal.core.hierarchy.numbers import Banded
from shoal.core.problem import Problem
from shoal.core.recoding.groups import CellValue, Cover, Groups, groups_of_levels, values_of
from shoal.core.recoding.recoding import Recoding, regions_of
from shoal.core.recoding.wording import joined

Cell = tuple[int, tuple[int, ...]]  # a level, and groups of it


def recoding_of_cells(problem: Problem, levels: IntArray, class_of: IntArray) -> Recoding:
    """Return a recoding in which a cell shows all groups of its class at one level; class -1 is suppressed.

    `levels` has the shape (columns, combinations), and `class_of` (combinations,).
    """
    columns, codes = [], []
    for column, hierarchy in enumerate(problem.hierarchies):
        values = problem.counts.codes(column)
        groups, column_codes = _column(
            hierarchy, problem.value_counts[column], levels[column], values, class_of
        )
        columns.append(groups)
        codes.append(column_codes)
    names = [hierarchy.name for hierarchy in problem.hierarchies]
    return Recoding.from_regions(names, columns, regions_of(problem.counts, codes, class_of < 0))


def _column(
    hierarchy: Hierarchy, counts: IntArray, levels: IntArray, values: IntArray, class_of: IntArray
) -> tuple[Groups, IntArray]:
    """Return the groups of a column, and the group of each combination."""
    groups_by_level = np.stack([hierarchy.groups(level) for level in range(hierarchy.height + 1)])
    group_of_row = groups_by_level[levels, values]
    kept = np.flatnonzero(class_of >= 0)
    pairs = np.unique(np.stack((class_of[kept], group_of_row[kept])), axis=1)
    if pairs.shape[1] == len(np.unique(pairs[0])):  # one label in every cell
        groups, maps = groups_of_levels(
            hierarchy, counts, np.unique(levels).tolist(), bounds=False, blanks=False
        )
        codes = np.empty(len(values), np.int64)
        for level, group_of_value in maps.items():
            codes[levels == level] = group_of_value[values[levels == level]]
        return groups, codes
    members: dict[int, list[int]] = {}
    for number, group in pairs.T.tolist():
        members.setdefault(number, []).append(group)
    rows = zip(class_of.tolist(), levels.tolist(), group_of_row.tolist(), strict=True)
    cells = [(level, (group,) if number < 0 else tuple(members[number])) for number, level, group in rows]
    return groups_of_cells(hierarchy, counts, cells)


def groups_of_cells(hierarchy: Hierarchy, counts: IntArray, cells: Sequence[Cell]) -> tuple[Groups, IntArray]:
    """Return the groups of some cells, and the group of each cell; equal texts are one group."""
    distinct = list(dict.fromkeys(cells))
    cells_by_text: dict[CellValue, list[Cell]] = {}
    for cell in distinct:
        cells_by_text.setdefault(text_of(hierarchy, *cell), []).append(cell)
    cells_by_code = list(cells_by_text.values())
    codes = {cell: code for code, same_text in enumerate(cells_by_code) for cell in same_text}

    def value_count(cell: Cell) -> int:
        return int(hierarchy.leaves[cell[0]][list(cell[1])].sum())

    def inside(code: int) -> IntArray:
        masks = [np.isin(hierarchy.groups(level), members) for level, members in cells_by_code[code]]
        return np.flatnonzero(np.logical_or.reduce(masks))

    def cover(code: int) -> Cover:
        (level, members), *others = cells_by_code[code]
        labels = [hierarchy.labels[level][group] for group in hierarchy.ordered(level, np.array(members))]
        level_and_labels = (
            {"level": level, "label": labels[0]} if len(labels) == 1 else {"level": level, "labels": labels}
        )
        if level and not others:
            return level_and_labels
        values = values_of(hierarchy)
        return {**level_and_labels, "values": [values[value] for value in inside(code).tolist()]}

    groups = Groups(
        {hierarchy.name: list(cells_by_text)},
        np.array([max(map(value_count, same_text)) for same_text in cells_by_code]),
        np.array([int(counts[inside(code)].sum()) for code in range(len(cells_by_code))]),
        cover,
        np.array([max(level for level, _ in same_text) for same_text in cells_by_code]),
    )
    return groups, np.array([codes[cell] for cell in cells])


def text_of(hierarchy: Hierarchy, level: int, members: Sequence[int]) -> CellValue:
    """Return the content of a released cell with some groups of a level."""
    labels = values_of(hierarchy) if level == 0 else hierarchy.labels[level]
    if len(members) == 1:
        return labels[members[0]]
    ordered = hierarchy.ordered(level, np.array(members))
    texts = _bands(hierarchy, level, ordered) if level else [labels[group] for group in ordered]
    if len(texts) == 1:
        return texts[0]
    present = [text for text in texts if text is not None and not (level and text == MISSING)]
    return joined(present, missing=len(present) < len(texts))


def _bands(hierarchy: Hierarchy, level: int, ordered: Sequence[int]) -> list[str]:
    """Return the labels of groups, with adjacent bands of numbers joined into one band."""
    labels = hierarchy.labels[level]
    texts: list[str] = []
    start = last = None  # the ends of the previous band, which may be extended
    for group in ordered:
        low, high = hierarchy.bounds[level][group] if hierarchy.bounds else (None, None)
        fractions = labels[group].startswith("[")
        end = high if high is None or fractions else high + 1
        if texts and low is not None and last == low:
            texts[-1] = Banded(fractions=fractions).label((start, end))
        else:
            texts.append(labels[group])
            start = low
        last = end if low is not None or high is not None else None
    return texts
