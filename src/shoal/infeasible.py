"""When nothing is acceptable: which limit, which setting of a model, or which level would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from shoal.core.classes import Classes
from shoal.core.contracts import Model
from shoal.core.evaluate import Evaluator
from shoal.core.judgement import in_whole_records
from shoal.core.lattice import build
from shoal.core.problem import Problem
from shoal.errors import Infeasible, so_many
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
        told.append(f"a suppression limit of {so_many(suppressed, 'record')} (now {problem.limit:,})")
    labels = _labels(problem.models)
    for place, weaker in _weaker(problem, classes):
        model = problem.models[place]
        for option, value in _changed(model, weaker).items():
            several = sum(hasattr(other, option) for other in problem.models) > 1
            nearest[f"{labels[place]}.{option}" if several else option] = value
            whose = f"{labels[place]} with " if several else ""
            told.append(f"{whose}{option}={value} (now {getattr(model, option)})")
    levels = _levels(problem)
    if levels:
        nearest["max_level"] = levels
        columns = " or ".join(f"{name} to {level}" for name, level in levels.items())
        told.append(f"max_level raised: {columns}")
    beyond = out_of_reach(problem)
    if told:
        advice = [f"Any one of these would do: {'; '.join(told)}."]
    elif beyond:
        advice = [found.advice for found in beyond]
    else:
        advice = ["Use fewer quasi-identifiers or a weaker model, such as a smaller k."]
    reasons = [_reason(problem, suppressed), *(found.told for found in beyond)]
    return Infeasible(" ".join(reasons), nearest, " ".join(advice))


def _reason(problem: Problem, suppressed: int) -> str:
    """Say what is refused, and why at the most general node."""
    several = problem.lattice.size > 1
    others = several and not problem.monotone_models
    every = f"all {problem.lattice.size:,} nodes are refused; " if others else ""
    where = "the most general node" if several else "these levels"
    if not problem.acceptable(suppressed):
        return (
            f"No acceptable recoding: {every}at {where} {suppressed:,} of {problem.records:,} "
            f"records would have to be suppressed, and the limit is {problem.limit:,}."
        )
    classes = problem.classes(problem.lattice.top)
    gone = problem.violations(classes)
    pairs = zip(problem.models, _labels(problem.models), strict=True)
    names = [label for model, label in pairs if not model.holds(classes, gone)]
    return f"No acceptable recoding: {every}at {where} what remains violates {' and '.join(names)}."


@dataclass(frozen=True)
class OutOfReach:
    """A model that no recoding of the table satisfies."""

    told: str
    advice: str


def out_of_reach(problem: Problem) -> list[OutOfReach]:
    """Find the models that no recoding of this table satisfies, for one class of all records falls short.

    Those that look at sizes alone ask for more records, and that is told elsewhere.
    """
    everything = {
        column: np.zeros(len(hierarchy.labels[0]), np.int64)
        for column, hierarchy in enumerate(problem.hierarchies)
    }
    whole = Classes(problem.counts.roll_up(everything), problem.about)
    found = []
    for model, label in zip(problem.models, _labels(problem.models), strict=True):
        if model.sizes_suffice or in_whole_records(model.unavoidable(whole), whole) < problem.records:
            continue
        why, advice = _why(model, label, whole)
        found.append(OutOfReach(f"No recoding of this table satisfies {label}{why}.", advice))
    return found


def _why(model: Model, label: str, whole: Classes) -> tuple[str, str]:
    """Say why one class of all records falls short, and what to do where no setting would help."""
    alone = [repr(name) for name in model.sensitive(whole.sensitive) if whole.distinct(name)[0] == 1]
    if alone:
        columns = f"column {alone[0]} has" if len(alone) == 1 else f"columns {', '.join(alone)} have"
        return f": {columns} one value", f"Leave out {label}, or let it look at a column of several values."
    if model.population_table is not None and whole.in_population[0] == whole.records:
        advice = f"Leave out {label}, or give a population that holds more than the table."
        return ": the table is the whole population", advice
    best = model.nearest(whole, 0)
    reached = " and ".join(f"{name}={value}" for name, value in _changed(model, best).items()) if best else ""
    why = f": one class of all records reaches {reached}" if reached else ""
    return why, f"Leave out {label}, or ask less of it."


def _weaker(problem: Problem, classes: Classes) -> list[tuple[int, Model]]:
    """Find, for each model alone, by its place, the strongest setting that the most general node reaches."""
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
            found.append((place, weaker))
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


def _labels(models: Sequence[Model]) -> list[str]:
    """Name models so that each is told apart: by its column where the name repeats, else by its place."""
    labels = [MODELS.name_of(model) for model in models]
    about = [getattr(model, "column", None) or model.unit_column for model in models]
    pairs = zip(labels, about, strict=True)
    full = [f"{name} of {column}" if column and labels.count(name) > 1 else name for name, column in pairs]
    return [f"{name} #{place}" if full.count(name) > 1 else name for place, name in enumerate(full, 1)]
