"""A lower bound of the loss: the sum of the least losses over groups of columns.

Lemma: let the loss be the sum (or weighted mean) of one loss per column, and split the columns into groups.
The loss of any acceptable node x is at least the sum over the groups of the least loss of an acceptable node
over only the columns of the group, with the same models and the same limit.

Proof: leaving out columns merges classes. If the models are monotone, merging them suppresses no record that
was kept. So the levels of x in a group are acceptable there, and their loss is at least the least loss of
the group. In x, the loss of these columns is no smaller, because suppressing more records never lowers the
loss of a column (see Metric.over_columns). The sum over the groups is the loss of x.

Leaving out a model accepts more nodes. So models that are not monotone are left out, and the bound holds.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from shoal.core.contracts import Algorithm
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.errors import Infeasible, OutOfTime

BOUND_SECONDS = 5.0  # for all groups together
_SIZES = (500, 5_000)  # the most nodes of a group: larger groups give better bounds and take longer
_ROUNDING = 1e-9
Group = tuple[int, ...]  # axes


def projected_bound(evaluate: Evaluator, search: Algorithm, seconds: float) -> float | None:
    """Return a lower bound of the loss of all acceptable nodes, or None if none is known.

    `search` must prove the optimum. Groups that it does not finish in time count with the loss of their
    lowest node.
    """
    problem = evaluate.problem
    models = [model for model in problem.models if model.is_monotone(suppression=problem.limit > 0)]
    if problem.metric.over_columns is None or problem.counts.remote or not models:
        return None
    until = time.monotonic() + seconds
    known: dict[Group, float] = {}
    bounds = []
    for size in _SIZES:
        groups = _groups(problem, size)
        if len(groups) == 1:  # no simpler than the whole problem
            break
        for group in groups:
            if group not in known:
                part = problem.projected(group, tuple(models))
                metric, factor = problem.metric.onto(problem, part)
                part = replace(part, metric=metric)
                known[group] = factor * _least_loss(evaluate, part, search, until)
        bounds.append(sum(known[group] for group in groups) + problem.metric.constant(problem))
    return max(bounds, default=None)


def _least_loss(evaluate: Evaluator, part: Problem, search: Algorithm, until: float) -> float:
    """Return the least loss over the columns of a group, or a lower bound of it if the time is up."""
    lowest = part.loss_of(part.lattice.bottom)
    left = until - time.monotonic()
    if left <= 0:
        return lowest
    try:
        with evaluate.part(part, left) as evaluate_part:
            return max(lowest, search.search(part, evaluate_part).loss)
    except (OutOfTime, Infeasible):
        if evaluate.stopped:
            raise OutOfTime from None
        return lowest


def _groups(problem: Problem, size: int) -> list[Group]:
    """Split the axes into few groups of at most `size` nodes; large columns are distributed evenly.

    Groups of equal size are fastest. On a table with 24 columns they took a quarter of the time that one
    group with all large columns took, for a bound that is 2% lower.
    """
    lattice = problem.lattice
    values = [max(len(problem.hierarchies[column].labels[0]) for column in axis) for axis in lattice.axes]
    order = sorted(range(len(lattice.axes)), key=lambda axis: (-values[axis], axis))
    number = max(1, math.ceil(math.log(lattice.size) / math.log(size) - _ROUNDING))
    while True:
        groups: list[list[int]] = [[] for _ in range(number)]
        nodes = [1] * number
        for axis in order:
            group = nodes.index(min(nodes))
            groups[group].append(axis)
            nodes[group] *= lattice.shape[axis]
        if max(nodes) <= size or number >= len(order):
            return [tuple(sorted(group)) for group in groups if group]
        number += 1
