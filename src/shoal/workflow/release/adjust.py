"""Recipes for new data: search with a safety margin, and repair of recipes by raising levels."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np

from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Guarantee, Model
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.lattice.lattice import Node
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.errors import CannotHonour, Infeasible
from shoal.models import MODELS
from shoal.models.distinct_l_diversity import DistinctLDiversity
from shoal.policy.policy import Policy
from shoal.wording import Change, percent
from shoal.workflow.infeasible import NO_RECODING
from shoal.workflow.release.search_result import SearchOutcome
from shoal.workflow.search import automatic, find, search


def search_with_margin(
    policy: Policy, problem: Problem, margin: float, seconds: float | None, progress: Progress
) -> SearchOutcome:
    """Search with stricter parameters (see `with_margin`), then suppress records by the original policy."""
    strict = with_margin(problem, margin)
    try:
        name, evaluation = find(policy, strict, seconds=seconds, progress=progress)
    except Infeasible as error:
        if error.code != NO_RECODING:
            raise
        raise Infeasible(
            f"with a margin of {percent(margin)} ({_changes(problem, strict)}) no recoding is acceptable.",
            [Change("margin", action="Lower {} or leave it out")],
        ) from None
    note = f"Searched with a margin of {percent(margin)}: {_changes(problem, strict)}."
    return SearchOutcome(problem, name, _judged_by_policy(problem, evaluation), {}, (note,))


def _judged_by_policy(problem: Problem, evaluation: Evaluation) -> Evaluation:
    """Evaluate the node by the original policy, which suppresses fewer records; optimality is not proven."""
    evaluate = Evaluator(problem)
    judged = evaluation if evaluation.recoding else evaluate(evaluation.node)
    proven = Guarantee.NONE if evaluation.proven is Guarantee.NONE else Guarantee.ACCEPTABLE
    # Candidates are evaluated later on demand, but a remote engine may be closed by then.
    candidates = evaluation.candidates if problem.counts.remote else ()
    return replace(
        judged,
        proven=proven,
        work=evaluation.work,
        candidates=evaluation.candidates,
        evaluated_candidates=tuple(evaluate(node) for node in candidates),
    )


def with_margin(problem: Problem, margin: float) -> Problem:
    """Raise k and distinct l (rounded up) and lower the suppression limit (rounded down) by `margin`."""
    models = tuple(_raised(problem, model, margin) for model in problem.models)
    return replace(problem, models=models, limit=math.floor(problem.limit * (1 - margin) + _ROUNDING))


_ROUNDING = 1e-9


def _raised(problem: Problem, model: Model, margin: float) -> Model:
    """Raise k, or raise distinct l to at most the number of distinct values in the table."""
    options: dict[str, Any] = {field.name: getattr(model, field.name) for field in fields(model)}  # type: ignore[arg-type]
    name = "l" if isinstance(model, DistinctLDiversity) else "k"
    if name not in options:
        return model
    raised = math.ceil(options[name] * (1 + margin) - _ROUNDING)
    if name == "l":
        values = [
            len(np.unique(problem.counts.sensitive[column].codes))
            for column in model.sensitive(list(problem.counts.sensitive))
            if column in problem.counts.sensitive
        ]
        raised = max(options[name], min([raised, *values]))
    return replace(model, **{name: raised})  # type: ignore[type-var]


def _changes(problem: Problem, strict: Problem) -> str:
    parts = []
    for model, other in zip(problem.models, strict.models, strict=True):
        for field in fields(model):  # type: ignore[arg-type]
            before, after = getattr(model, field.name), getattr(other, field.name)
            if before != after:
                parts.append(f"{MODELS.name_of(model)} with {field.name}={after} instead of {before}")
    if problem.limit != strict.limit:
        parts.append(f"{strict.limit:,} instead of {problem.limit:,} records suppressed at most")
    return ", ".join(parts) or "nothing to raise or to lower"


def repaired(policy: Policy, problem: Problem, seconds: float | None, progress: Progress) -> SearchOutcome:
    """Keep the node of a recipe if it is acceptable; else search the nodes above it for the least loss.

    The problem's lattice contains only this node.
    """
    algorithm = policy.search_algorithm
    if algorithm is not None and algorithm.guarantee is Guarantee.NONE:
        raise CannotHonour(
            f"repair raises levels until the models hold, and {ALGORITHMS.name_of(algorithm)!r} promises no "
            "model. Anonymize the table anew."
        )
    node: Node = problem.lattice.bottom
    if not Evaluator(problem)(node).acceptable:
        low = tuple(node[axis[0]] for axis in problem.lattice.axes)
        problem = replace(problem, lattice=replace(problem.free, low=low))
    name, evaluation = search(
        problem,
        automatic(problem),
        seconds=seconds,
        fallback=True,
        progress=progress,
        **policy.finishing,
    )
    names, levels = problem.lattice.columns, evaluation.node
    changed = zip(names, node, levels, strict=True)
    raised = {column: (before, after) for column, before, after in changed if before != after}
    notes = tuple(f"{column} was raised from level {a} to {b}." for column, (a, b) in raised.items())
    return SearchOutcome(problem, name, evaluation, raised, notes)
