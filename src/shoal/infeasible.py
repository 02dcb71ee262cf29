"""When nothing is acceptable: which limit, which setting of a model, or which level would do."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from shoal.core.classes import Classes
from shoal.core.contracts import Model
from shoal.core.evaluate import Evaluator, Problem
from shoal.core.lattice import build
from shoal.errors import Infeasible
from shoal.models import MODELS


def nearest_miss(problem: Problem) -> Infeasible:
    """Describe what each single relaxation would have to be, of those that the most general node shows.

    Where a model is not monotone a node below may need less; nothing is said of those.
    """
    classes = problem.classes(problem.lattice.top)
    suppressed = int(classes.sizes[problem.violations(classes)].sum())
    nearest: dict[str, Any] = {}
    told = []
    if problem.limit < suppressed < problem.records and _would_do(replace(problem, limit=suppressed)):
        nearest["suppression_limit"] = suppressed
        told.append(f"a suppression limit of {suppressed} records (now {problem.limit})")
    for model, weaker in _weaker(problem, classes):
        for option, value in _changed(model, weaker).items():
            several = sum(hasattr(other, option) for other in problem.models) > 1
            nearest[f"{_name(model)}.{option}" if several else option] = value
            whose = f"{_name(model)} with " if several else ""
            told.append(f"{whose}{option}={value} (now {getattr(model, option)})")
    levels = _levels(problem)
    if levels:
        nearest["max_level"] = levels
        columns = " or ".join(f"{name} to {level}" for name, level in levels.items())
        told.append(f"max_level raised: {columns}")
    advice = (
        f"Any one of these would do: {'; '.join(told)}."
        if told
        else "Use fewer quasi-identifiers or a weaker model, such as a smaller k."
    )
    return Infeasible(" ".join([_reason(problem, suppressed), *_out_of_reach(problem), advice]), nearest)


def _reason(problem: Problem, suppressed: int) -> str:
    """Say what is refused, and why at the most general node."""
    every = "" if problem.monotone_models else f"all {problem.lattice.size} nodes are refused; "
    where = "the most general node" if problem.lattice.size > 1 else "these levels"
    if suppressed > problem.limit or suppressed == problem.records:
        return (
            f"No acceptable recoding: {every}at {where} {suppressed} of {problem.records} records "
            f"would have to be suppressed, and the limit is {problem.limit}."
        )
    classes = problem.classes(problem.lattice.top)
    gone = problem.violations(classes)
    names = [_name(model) for model in problem.models if not model.holds(classes, gone)]
    return f"No acceptable recoding: {every}at {where} what remains violates {' and '.join(names)}."


def _out_of_reach(problem: Problem) -> list[str]:
    """Name the models that no recoding of this table satisfies, for one class of all records falls short."""
    everything = {
        column: np.zeros(len(hierarchy.labels[0]), np.int64)
        for column, hierarchy in enumerate(problem.hierarchies)
    }
    whole = Classes(problem.counts.roll_up(everything), problem.about)
    found = []
    for model in problem.models:
        if np.ceil(model.unavoidable(whole)).sum() >= problem.records:
            best = model.nearest(whole, 0)
            reached = " and ".join(f"{n}={v}" for n, v in _changed(model, best).items()) if best else ""
            only = f": one class of all records reaches {reached}" if reached else ""
            found.append(f"No recoding of this table satisfies {_name(model)}{only}.")
    return found


def _weaker(problem: Problem, classes: Classes) -> list[tuple[Model, Model]]:
    """Find, for each model alone, the strongest setting that the most general node reaches."""
    found = []
    gone = problem.violations(classes)
    for place, model in enumerate(problem.models):
        weaker = model.nearest(classes, problem.limit)
        if weaker is None or weaker.least_size <= 1 < model.least_size:
            continue  # a k or l of 1 asks for nothing
        spared = model.violations(classes) & ~weaker.violations(classes)
        if not spared.any() and model.holds(classes, gone):
            continue  # it is no weaker
        models = (*problem.models[:place], weaker, *problem.models[place + 1 :])
        if _would_do(replace(problem, models=models)):
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
            if _would_do(replace(problem, lattice=build(heights, max_level=allowed, same_level=groups))):
                found[group[0]] = level
                break
    return found


def _would_do(problem: Problem) -> bool:
    """Tell whether the most general node of a problem is acceptable."""
    return Evaluator(problem)(problem.lattice.top).acceptable


def _changed(model: Model, other: Model) -> dict[str, Any]:
    """Return the options in which two settings of a model differ, as the other has them."""
    names = [field.name for field in fields(model)]  # type: ignore[arg-type]
    return {name: getattr(other, name) for name in names if getattr(other, name) != getattr(model, name)}


def _name(model: Model) -> str:
    """Return the registered name of a model."""
    return next((name for name in MODELS if MODELS.load(name) is type(model)), type(model).__name__)
