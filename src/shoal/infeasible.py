"""When nothing is acceptable: which limit, which setting of a model, or which level would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shoal.core.classes import Classes
from shoal.core.contracts import Model
from shoal.core.evaluate import Evaluator, Problem
from shoal.core.lattice import build
from shoal.errors import Infeasible


def nearest_miss(problem: Problem) -> Infeasible:
    """Describe what each single relaxation would have to be."""
    lattice = problem.lattice
    evaluate = Evaluator(problem)
    at_top = evaluate(lattice.top)
    classes = evaluate.classes(lattice.top)
    nearest: dict[str, Any] = {}
    told = []
    if at_top.suppressed < problem.records:
        nearest["suppression_limit"] = at_top.suppressed
        told.append(f"a suppression limit of {at_top.suppressed} records (now {problem.limit})")
    for model, weaker in _weaker(problem, classes):
        changed = {name: value for name, value in vars(weaker).items() if value != getattr(model, name)}
        nearest |= changed
        told += [f"{name}={value} (now {getattr(model, name)})" for name, value in changed.items()]
    levels = _levels(problem)
    if levels:
        nearest["max_level"] = levels
        columns = " or ".join(f"{name} to {level}" for name, level in levels.items())
        told.append(f"max_level raised: {columns}")
    where = "the most general node" if lattice.size > 1 else "these levels"
    head = (
        f"No acceptable recoding: at {where} {at_top.suppressed} of {problem.records} records "
        f"would have to be suppressed, and the limit is {problem.limit}."
    )
    advice = (
        f" Any one of these would do: {'; '.join(told)}."
        if told
        else " Use fewer quasi-identifiers or a smaller k."
    )
    return Infeasible(head + advice, nearest)


def _weaker(problem: Problem, classes: Classes) -> list[tuple[Model, Model]]:
    """Find, for each model alone, the strongest setting that the most general node reaches."""
    found = []
    for place, model in enumerate(problem.models):
        weaker = model.nearest(classes, problem.limit)
        if weaker is None or weaker == model or weaker.least_size <= 1:
            continue
        models = (*problem.models[:place], weaker, *problem.models[place + 1 :])
        if Evaluator(replace(problem, models=models))(problem.lattice.top).acceptable:
            found.append((model, weaker))
    return found


def _levels(problem: Problem) -> dict[str, int]:
    """Find, for each column alone, the lowest level that would do if it were allowed."""
    lattice = problem.lattice
    groups = [[lattice.columns[c] for c in axis] for axis in lattice.axes]
    heights = dict(zip(lattice.columns, lattice.heights, strict=True))
    top = dict(zip(lattice.columns, lattice.top, strict=True))
    found = {}
    for group in groups:
        for level in range(top[group[0]] + 1, heights[group[0]] + 1):
            allowed = top | dict.fromkeys(group, level)
            wider = replace(problem, lattice=build(heights, max_level=allowed, same_level=groups))
            if Evaluator(wider)(wider.lattice.top).acceptable:
                found[group[0]] = level
                break
    return found
