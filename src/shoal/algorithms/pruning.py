"""Shared code of searches that skip nodes: when that is valid, and the errors if it is not."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.core.evaluation import Evaluation, best
from shoal.core.evaluator import MAX_STORED_NODES, Evaluator
from shoal.core.lattice.lattice import MOST_AXES
from shoal.core.problem import Problem
from shoal.errors import Infeasible, InternalError, Refusal


def refuse_unless_monotone(
    problem: Problem, stored: str = "tagged", *, by_loss: bool = False
) -> Refusal | None:
    """Return why a search must not skip nodes, or cannot store the state of every node; or None.

    With `by_loss`, the search considers only minimal nodes, so generalizing must never lower the loss.
    """
    if not problem.monotone_models:
        return Refusal("a privacy model is not monotone here")
    if problem.lattice.size > MAX_STORED_NODES:
        return Refusal(f"the lattice has {problem.lattice.size:,} nodes, more than can be {stored}")
    if not problem.lattice.has_array:
        axes = len(problem.lattice.axes)
        return Refusal(f"the policy has {axes} quasi-identifiers, more than the {MOST_AXES} of a node array")
    if by_loss and not problem.monotone_metric:
        return Refusal("the metric is not monotone here")
    return None


def check_top(evaluate: Evaluator) -> None:
    """Raise Infeasible if the top is refused: then no node of a monotone problem is acceptable."""
    if not evaluate(evaluate.problem.lattice.top).acceptable:
        raise no_node()


def least_loss(accepted: Iterable[Evaluation]) -> Evaluation:
    """Return the evaluation of least loss; if the top is acceptable, there is one."""
    chosen = best(accepted)
    if chosen is None:
        raise InternalError("The search ended without an acceptable node.")
    return chosen


def no_node() -> Infeasible:
    """Return the error for a lattice without an acceptable node."""
    return Infeasible("No node is acceptable.")
