"""Judgement: are classes acceptable, and at what loss? A function of the problem and the classes alone."""

from __future__ import annotations

import math

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.core.evaluation import Evaluation
from shoal.core.lattice import Node
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding

_ROUNDING = 1e-9  # what sums of shares of a class may be off by


def judged(problem: Problem, node: Node, classes: Classes, suppressed: int | None = None) -> Evaluation:
    """Judge a node by its classes; what their sizes alone suppress may be known, where that settles it."""
    mask = None
    if suppressed is None:
        mask = problem.violations(classes)
        suppressed = int(classes.sizes[mask].sum())
    acceptable = problem.acceptable(suppressed)
    if acceptable and mask is not None:
        acceptable = all(model.holds(classes, mask) for model in problem.models)
    hopeless = not acceptable and (problem.monotone_models or mask is None or _hopeless(problem, classes))
    bound, loss = _losses(problem, node, classes, mask, acceptable)
    return Evaluation(node, acceptable, suppressed, len(classes), loss, bound, hopeless)


def recoded(problem: Problem, recoding: Recoding, node: Node, *, asked: bool) -> Evaluation:
    """Judge a recoding, which says itself what it suppresses; models are `asked`, or it is measured only."""
    classes = problem.classes_of(recoding)
    gone = classes.nothing() if recoding.regions is None else recoding.regions.suppressed
    suppressed = int(classes.sizes[gone].sum())
    refused = asked and (problem.violations(classes) & ~gone).any()
    acceptable = not refused and problem.acceptable(suppressed)
    if asked:
        acceptable = acceptable and all(model.holds(classes, gone) for model in problem.models)
    loss = problem.metric.loss(problem, recoding, classes, gone) if acceptable else math.inf
    return Evaluation(node, acceptable, suppressed, len(classes), loss, loss, recoding=recoding)


def in_whole_records(refused: FloatArray, classes: Classes) -> int:
    """Add up what is refused of each class, at least; records are refused whole."""
    return int(np.ceil(refused - _ROUNDING * (1 + classes.sizes)).sum())


def _hopeless(problem: Problem, classes: Classes) -> bool:
    """Tell whether more than the limit, or everything, is refused here and at every node below."""
    certain = np.max([model.unavoidable(classes) for model in problem.models], axis=0)
    return not problem.acceptable(in_whole_records(certain, classes))


def _losses(
    problem: Problem, node: Node, classes: Classes, mask: BoolArray | None, acceptable: bool
) -> tuple[float, float]:
    """Return the loss without suppression and, where the node is acceptable, with it."""
    metric = problem.metric
    if metric.separable.given(problem.limit > 0):
        loss = problem.loss_of(node)
        return loss, loss if acceptable else math.inf
    recoding = problem.recoding(node)
    if metric.separable is When.NEVER:
        bound = metric.loss(problem, recoding, classes, classes.nothing())
    else:
        bound = problem.loss_of(node)
    if not acceptable:
        return bound, math.inf
    mask = problem.violations(classes) if mask is None else mask
    return bound, metric.loss(problem, recoding, classes, mask) if mask.any() else bound
