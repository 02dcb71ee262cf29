"""Finer than a node: what a search suppresses is served better, and classes are lowered one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.blanking import blanked
from shoal.core.contracts import Guarantee
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation, below
from shoal.core.groups import of_levels
from shoal.core.lowering import lowered
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding
from shoal.core.regions import regions_of


def refined(evaluate: Evaluator, found: Evaluation) -> Evaluation:
    """Recode what a node suppresses anew and lower levels class by class; never worse than the node.

    Where the suppressed would cost more as they can be recoded, they stay suppressed.
    """
    for again in (True, False):
        levels, gone = lowered(evaluate.problem, found.node, again=again, check=evaluate.check_time)
        judged = evaluate.recoded(recoding_of(evaluate.problem, levels, gone), found.node)
        if judged.acceptable and not below(found.loss, judged.loss):
            return _instead(found, judged)
    return found


def hidden(evaluate: Evaluator, found: Evaluation) -> Evaluation:
    """Blank few cells of the records that a node suppresses instead, as far as that hides them."""
    problem = evaluate.problem
    blanks, gone = blanked(problem, found.node, check=evaluate.check_time)
    levels = np.repeat(np.array(found.node)[:, None], len(problem.counts), axis=1)
    judged = evaluate.recoded(recoding_of(problem, levels, gone, blanks), found.node)
    return _instead(found, judged) if judged.acceptable and blanks.any() else found


def _instead(found: Evaluation, judged: Evaluation) -> Evaluation:
    """Let the work of the search be that of what came out of it; more than that it will do is not proven."""
    return replace(judged, proven=Guarantee.ACCEPTABLE, candidates=found.candidates, work=found.work)


def recoding_of(
    problem: Problem,
    levels: IntArray,  # (columns, combinations)
    suppressed: BoolArray,  # (combinations,)
    blanks: BoolArray | None = None,  # (columns, combinations)
) -> Recoding:
    """Recode every combination to levels of its own, and blank some cells."""
    about, codes = [], []
    for column, hierarchy in enumerate(problem.hierarchies):
        blank = None if blanks is None else blanks[column]
        groups, maps = of_levels(
            hierarchy,
            problem.value_counts[column],
            np.unique(levels[column]).tolist(),
            bounds=hierarchy.name in problem.as_bounds,
            blanks=blank is not None and bool(blank.any()),
        )
        values = problem.counts.codes(column)
        own = np.empty(len(values), np.int64)
        for level, map_ in maps.items():
            here = levels[column] == level
            own[here] = map_[values[here]]
        if blank is not None and groups.blank is not None:
            own[blank] = groups.blank
        about.append(groups)
        codes.append(own)
    names = [hierarchy.name for hierarchy in problem.hierarchies]
    return Recoding.from_regions(names, about, regions_of(problem.counts, codes, suppressed))
