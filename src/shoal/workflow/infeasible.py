"""Errors if no recoding is acceptable, with the limit, the option of a model or the level that works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from shoal.core.classes import Classes
from shoal.core.contracts import Model
from shoal.core.evaluator import Evaluator, in_whole_records
from shoal.core.lattice.lattice import build
from shoal.core.problem import Problem
from shoal.errors import ANY_CHANGE, Infeasible
from shoal.models import MODELS
from shoal.wording import Change, number_text, plural

NO_RECODING = "no-acceptable-recoding"  # the code of the errors made here
_ASK_LESS = "Use fewer quasi-identifiers or a weaker model, such as a smaller k"


def nearest_miss(problem: Problem) -> Infeasible:
    """Return the error with every change that alone makes the most general node acceptable.

    If a model is not monotone, a lower node may need a smaller change. Lower nodes are not examined.
    """
    classes = problem.classes(problem.lattice.top)
    suppressed = int(classes.sizes[problem.violations(classes)].sum())
    changes = []
    if problem.limit < suppressed < problem.records and _top_acceptable(replace(problem, limit=suppressed)):
        changes.append(Change("suppression_limit", suppressed, current=problem.limit))
    labels = _labels(problem.models)
    for index, weaker in _weaker_models(problem, classes):
        model = problem.models[index]
        for option, value in _changed_options(model, weaker).items():
            shared = sum(hasattr(other, option) for other in problem.models) > 1
            subject = labels[index] if shared else ""
            changes.append(Change(option, value, current=getattr(model, option), subject=subject))
    if levels := _levels_needed(problem):
        changes.append(Change("max_level", levels))
    unsatisfiable = unsatisfiable_models(problem)
    reasons = [_reason(problem, suppressed), *(model.reason for model in unsatisfiable)]
    remedies = [model.remedy for model in unsatisfiable] or [_ASK_LESS]
    return Infeasible(
        " ".join(reasons),
        changes or [Change(action=". ".join(remedies))],
        heading="No acceptable recoding",
        advice_intro=ANY_CHANGE if changes else "",
        code=NO_RECODING,
    )


def too_few_records(problem: Problem) -> Infeasible:
    """Return the error for a table that has fewer records than every class needs."""
    records = problem.records
    sizes_decide = all(model.sizes_suffice for model in problem.models)
    one_class = len(problem.classes(problem.lattice.top)) == 1
    reasons = [model.reason for model in unsatisfiable_models(problem)]
    smaller_k = "Use a smaller k (or l), or more records"
    return Infeasible(
        " ".join(
            [
                f"the table has {plural(records, 'record')} and every class needs {problem.least_size:,}.",
                *reasons,
            ]
        ),
        [Change("k", records, smaller_k) if sizes_decide and one_class else Change(action=smaller_k)],
        code=NO_RECODING,
    )


def _reason(problem: Problem, suppressed: int) -> str:
    """State which nodes are refused, and why the most general node is refused."""
    has_several_nodes = problem.lattice.size > 1
    others = has_several_nodes and not problem.monotone_models
    all_nodes_text = f"all {number_text(problem.lattice.size)} nodes are refused; " if others else ""
    where = "the highest levels" if has_several_nodes else "these levels"
    if not problem.acceptable(suppressed):
        return (
            f"{all_nodes_text}at {where} {suppressed:,} of {problem.records:,} "
            f"records would have to be suppressed, and the limit is {problem.limit:,}."
        )
    classes = problem.classes(problem.lattice.top)
    violating = problem.violations(classes)
    pairs = zip(problem.models, _labels(problem.models), strict=True)
    names = [label for model, label in pairs if not model.holds(classes, violating)]
    return f"{all_nodes_text}at {where} what remains violates {' and '.join(names)}."


@dataclass(frozen=True)
class UnsatisfiableModel:
    """A model that no recoding of the table satisfies."""

    reason: str
    remedy: str


def unsatisfiable_models(problem: Problem) -> list[UnsatisfiableModel]:
    """Find the models that even one class of all records violates.

    Models that depend only on class sizes are left out: they need more records, which another error states.
    """
    everything = {
        column: np.zeros(len(hierarchy.labels[0]), np.int64)
        for column, hierarchy in enumerate(problem.hierarchies)
    }
    one_class = Classes(problem.counts.roll_up(everything), problem.sensitive_info)
    models = []
    for model, label in zip(problem.models, _labels(problem.models), strict=True):
        if model.sizes_suffice or in_whole_records(model.unavoidable(one_class), one_class) < problem.records:
            continue
        reason, remedy = _unsatisfiable(model, label, one_class)
        models.append(UnsatisfiableModel(f"No recoding of this table satisfies {label}{reason}.", remedy))
    return models


def _unsatisfiable(model: Model, label: str, one_class: Classes) -> tuple[str, str]:
    """Return why one class of all records violates a model, and what to do if no setting helps."""
    single = [repr(name) for name in model.sensitive(one_class.sensitive) if one_class.distinct(name)[0] == 1]
    if single:
        columns = f"column {single[0]} has" if len(single) == 1 else f"columns {', '.join(single)} have"
        return f": {columns} one value", f"Leave out {label}, or apply it to a column with several values"
    if model.population_table is not None and one_class.in_population[0] == one_class.records:
        remedy = f"Leave out {label}, or give a population that holds more than the table"
        return ": the table is the whole population", remedy
    best = model.nearest(one_class, 0)
    options = _changed_options(model, best) if best else {}
    reached = " and ".join(f"{name}={value}" for name, value in options.items())
    reason = f": one class of all records reaches {reached}" if reached else ""
    return reason, f"Leave out {label}, or ask less of it"


def _weaker_models(problem: Problem, classes: Classes) -> list[tuple[int, Model]]:
    """Return, for each model separately, its index and the strongest options that the top node meets."""
    weaker_models = []
    suppressed = problem.violations(classes)
    for index, model in enumerate(problem.models):
        weaker = model.nearest(classes, problem.limit)
        if weaker is None or weaker.least_size <= 1 < model.least_size:
            continue  # a k or l of 1 requires nothing
        may_pass = model.violations(classes) & ~weaker.violations(classes)
        if not may_pass.any() and model.holds(classes, suppressed):
            continue  # it is not weaker
        models = (*problem.models[:index], weaker, *problem.models[index + 1 :])
        if _top_acceptable(replace(problem, models=models)):
            weaker_models.append((index, weaker))
    return weaker_models


def _levels_needed(problem: Problem) -> dict[str, int]:
    """Return, for each column alone, the lowest max_level that makes the most general node acceptable."""
    lattice = problem.lattice
    groups = [[lattice.columns[c] for c in axis] for axis in lattice.axes]
    heights = dict(zip(lattice.columns, lattice.heights, strict=True))
    top = dict(zip(lattice.columns, lattice.top, strict=True))
    levels = {}
    for group in groups:
        for level in range(top[group[0]] + 1, heights[group[0]] + 1):
            allowed = top | dict.fromkeys(group, level)
            lattice = build(heights, max_level=allowed, same_level=groups)
            if _top_acceptable(replace(problem, lattice=lattice)):
                levels[group[0]] = level
                break
    return levels


def _top_acceptable(problem: Problem) -> bool:
    return Evaluator(problem)(problem.lattice.top).acceptable


def _changed_options(model: Model, other: Model) -> dict[str, Any]:
    names = [field.name for field in fields(model)]  # type: ignore[arg-type]
    return {name: getattr(other, name) for name in names if getattr(other, name) != getattr(model, name)}


def _labels(models: Sequence[Model]) -> list[str]:
    """Return distinct labels: the name, with its column if the name repeats, and a number if both repeat."""
    labels = [MODELS.name_of(model) for model in models]
    columns = [getattr(model, "column", None) or model.unit_column for model in models]
    pairs = zip(labels, columns, strict=True)
    full = [f"{name} of {column}" if column and labels.count(name) > 1 else name for name, column in pairs]
    return [f"{name} #{number}" if full.count(name) > 1 else name for number, name in enumerate(full, 1)]
