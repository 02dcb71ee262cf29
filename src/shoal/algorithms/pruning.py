"""What the searches that prune share: the problems in which a node says nothing of those above or below."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.core.evaluate import LARGEST_HELD, Evaluator
from shoal.core.evaluation import Evaluation, best
from shoal.core.problem import Problem
from shoal.errors import Infeasible, InternalError


def unfit(problem: Problem, held: str = "tagged", *, by_loss: bool = False) -> str | None:
    """Say why a search that prunes would be wrong, or could not hold the lattice, where that is so.

    One that chooses among minimal nodes `by_loss` also needs a loss that never falls going up.
    """
    if not problem.monotone_models:
        return "a privacy model is not monotone here"
    if problem.lattice.size > LARGEST_HELD:
        return f"the lattice has {problem.lattice.size:,} nodes, more than can be {held}"
    return "the metric is not monotone here" if by_loss and not problem.monotone_metric else None


def check_top(evaluate: Evaluator) -> None:
    """Judge the top: where even that is refused, no node of a monotone problem is acceptable."""
    if not evaluate(evaluate.problem.lattice.top).acceptable:
        raise no_node()


def least_loss(accepted: Iterable[Evaluation]) -> Evaluation:
    """Return the one of least loss; that there is none, though the top is acceptable, is a defect."""
    chosen = best(accepted)
    if chosen is None:
        message = "The search ended without an acceptable node."
        raise InternalError(message)
    return chosen


def no_node() -> Infeasible:
    """Return the error that nothing in the lattice is acceptable."""
    return Infeasible("No node is acceptable.")
