"""Searched: a table that was counted and the recoding that was found, with what follows from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import UNIT, Classes
from shoal.core.counts import Domain
from shoal.core.evaluation import Evaluation
from shoal.core.groups import Shown, in_order
from shoal.core.hierarchy import Hierarchy
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding
from shoal.releasing.losses import ColumnLoss, losses_of, vanished_in


@dataclass(frozen=True)
class Searched:
    """What a search leaves for recoding."""

    table: Any
    domains: Mapping[str, Domain]
    problem: Problem
    algorithm: str
    evaluation: Evaluation
    recoding: Recoding
    labels: Mapping[str, tuple[str, ...]]
    kept: tuple[int, int]  # classes that remain, and the smallest of them
    masks: bool  # the suppressed are kept masked: enough for a class, in persons too, that join no other
    losses: Mapping[str, ColumnLoss]
    vanished: Mapping[str, int]  # by column: the values of which nothing is left
    notes: tuple[str, ...] = ()  # what the custodian should look at again

    @property
    def records(self) -> int:
        """The records that the release will have."""
        return self.problem.records - (0 if self.masks else self.evaluation.suppressed)


def searched(
    table: Any,
    domains: Mapping[str, Domain],
    problem: Problem,
    algorithm: str,
    evaluation: Evaluation,
    *,
    mask: bool,
) -> Searched:
    """Work out what the found recoding does to an open table; `mask`: the suppressed are wished masked."""
    recoding = evaluation.recoding or problem.recoding(evaluation.node)
    classes = problem.classes_of(recoding)
    if recoding.regions is None:
        gone = problem.violations(classes)
        recoding = recoding.suppressing(classes.counts.keys[:, gone])
    else:
        gone = recoding.regions.suppressed
    labels = {
        hierarchy.name: _labels(hierarchy, recoding, column, classes.counts.codes(column)[~gone])
        for column, hierarchy in enumerate(problem.hierarchies)
    }
    sizes = classes.sizes[~gone]
    kept = len(sizes), int(sizes.min())
    masks = mask and _crowd(problem, classes, gone)
    masks = masks and not (_empty(recoding, classes, domains) & ~gone).any()
    losses = losses_of(problem, recoding, classes, gone)
    vanished = vanished_in(problem, recoding, classes, gone)
    told = labels, kept, masks, losses, vanished
    return Searched(table, domains, problem, algorithm, evaluation, recoding, *told)


def _labels(hierarchy: Hierarchy, recoding: Recoding, column: int, codes: IntArray) -> tuple[str, ...]:
    """Return the labels, in words, of the groups that occur in a column."""
    groups = np.unique(codes)
    if recoding.node is not None:
        level = recoding.node[column]
        return tuple(hierarchy.labels[level][group] for group in hierarchy.ordered(level, groups))
    present = in_order(hierarchy, recoding.about[column], groups.tolist())
    shown = recoding.labels[column]
    if shown is None:
        values = hierarchy.labels[0]
        if recoding.apart:
            return values  # all of them are released
        return tuple(values[code] for code in present if code < len(values))
    return tuple(_in_words([ends[code] for ends in shown.values()]) for code in present)


def _in_words(look: Sequence[Shown]) -> str:
    """Say what a group looks like: its label, or its bounds, of which any may be missing.

    >>> [_in_words(look) for look in (["20-29"], [20, 29], [42, 42], [90, None], [None, 19], [None, None])]
    ['20-29', '20 to 29', '42', 'from 90', 'up to 19', '(empty)']
    """
    lower, upper = look[0], look[-1]
    if lower == upper:
        return "(empty)" if lower is None else str(lower)
    if lower is None:
        return f"up to {upper}"
    return f"from {lower}" if upper is None else f"{lower} to {upper}"


def _crowd(problem: Problem, classes: Classes, gone: BoolArray) -> bool:
    """Tell whether suppressed records taken together are as many as every model wants in a class."""
    enough = bool(classes.sizes[gone].sum() >= problem.least_size)
    for model in problem.models:
        if model.unit_column is not None:
            spread = classes.distribution(UNIT + model.unit_column)
            enough &= len(np.unique(spread.codes[gone[spread.rows]])) >= model.least_size
    return enough


def _empty(recoding: Recoding, classes: Classes, domains: Mapping[str, Domain]) -> BoolArray:
    """Mark the classes that are released with every quasi-identifier empty, as masked records are."""
    empty = np.ones(len(classes), np.bool_)
    for column, (name, labels) in enumerate(zip(recoding.columns, recoding.labels, strict=True)):
        if labels is None:
            shown = np.array([*[not text for text in domains[name].texts], True])  # a blank comes last
        else:
            looks = zip(*labels.values(), strict=True)
            shown = np.array([all(end in (None, "") for end in look) for look in looks])
        empty &= shown[classes.counts.codes(column)]
    return empty
