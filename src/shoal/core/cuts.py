"""Cuts: recodings that divide a column's values anywhere, alike in every class.

By order: a column's values stand in a row, which is cut into stretches. By a hierarchy: every value is
taken to a level of its own, such that a group is taken whole (an antichain of the hierarchy's tree).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.groups import Groups, of_levels
from shoal.core.problem import Problem
from shoal.core.ranges import Arrangement, arranged
from shoal.core.recoding import Recoding
from shoal.core.regions import regions_of


def arrangements(problem: Problem) -> list[Arrangement]:
    """Put every column's values into the order in which they are cut."""
    pairs = zip(problem.hierarchies, problem.value_counts, strict=True)
    return [arranged(hierarchy, counts) for hierarchy, counts in pairs]


def by_order(problem: Problem, starts: Sequence[IntArray]) -> Recoding:
    """Cut each column's row of values where these places begin a new stretch; the first always does."""
    about, maps = [], []
    for column, own in zip(arrangements(problem), starts, strict=True):
        begins = np.zeros(len(column.positions), np.int64)
        begins[own] = 1
        begins[:1] = 0
        stretch = np.cumsum(begins)[column.places]  # of each value
        bounds = column.hierarchy.name in problem.as_bounds
        groups, codes = column.groups(column.values, stretch[column.values], tree=False, bounds=bounds)
        about.append(groups)
        maps.append(codes[stretch])
    return _recoding(problem, about, maps)


def by_levels(problem: Problem, levels: Sequence[IntArray]) -> Recoding:
    """Take every value of each column to a level of its own."""
    about, maps = [], []
    for hierarchy, counts, own in zip(problem.hierarchies, problem.value_counts, levels, strict=True):
        bounds = hierarchy.name in problem.as_bounds
        groups, at = of_levels(hierarchy, counts, np.unique(own).tolist(), bounds=bounds, blanks=False)
        codes = np.empty(len(own), np.int64)
        for level, group in at.items():
            codes[own == level] = group[own == level]
        about.append(groups)
        maps.append(codes)
    return _recoding(problem, about, maps)


def _recoding(problem: Problem, about: Sequence[Groups], maps: Sequence[IntArray]) -> Recoding:
    """Put together the groups of all columns; the classes that some model refuses are suppressed."""
    codes = [own[problem.counts.codes(column)] for column, own in enumerate(maps)]
    regions = regions_of(problem.counts, codes, np.zeros(len(problem.counts), np.bool_))
    names = [hierarchy.name for hierarchy in problem.hierarchies]
    recoding = replace(Recoding.from_regions(names, about, regions), uniform=True)
    gone = problem.violations(problem.classes_of(recoding))
    return replace(recoding, regions=replace(regions, suppressed=gone))
