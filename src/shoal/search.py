"""Search: run an algorithm on a problem, or say which can honour it and what would be feasible."""

from __future__ import annotations

from dataclasses import replace

from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Algorithm, Guarantee, NodeSearch
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.finer import hidden, refined
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.errors import CannotHonour, Infeasible, OutOfTime, interruptible, so_many
from shoal.infeasible import nearest_miss, out_of_reach


def search(
    problem: Problem,
    algorithm: Algorithm | None = None,
    *,
    refine: bool = False,
    cells: bool = False,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> tuple[str, Evaluation]:
    """Search with an algorithm, or with the first that can prove the optimum; return its name too.

    `refine` and `cells` serve better what the node of least loss suppresses.
    """
    chosen = algorithm or automatic(problem)
    name = ALGORITHMS.name_of(chosen)
    reason = _too_far(problem, chosen) or chosen.refuses(problem)
    reason = reason or _too_fine(problem, refine=refine, cells=cells)
    if reason:
        raise _refusal("auto" if algorithm is None else name, reason, problem)
    if problem.records < problem.least_size:
        least = f"{problem.least_size:,}"
        short = f"The table has {so_many(problem.records, 'record')} and every class needs {least}."
        sizes_alone = all(model.sizes_suffice for model in problem.models)
        one_class = len(problem.classes(problem.lattice.top)) == 1
        beyond = [found.told for found in out_of_reach(problem)]
        advice = " ".join(["Use a smaller k (or l), or more records.", *beyond])
        raise Infeasible(short, {"k": problem.records} if sizes_alone and one_class else {}, advice)
    asked = without_idle_levels(problem) if algorithm is None else problem  # who names one, means all nodes
    evaluate = Evaluator(asked, seconds=seconds, progress=progress)
    try:
        with interruptible():
            found = chosen.search(asked, evaluate)
            return name, _finished(evaluate, found, refine=refine, cells=cells)
    except Infeasible:
        if chosen.explains:
            raise
        if chosen.guarantee is not Guarantee.LEAST_LOSS and not problem.monotone_models:
            able = ALGORITHMS.name_of(automatic(problem))
            message = (
                f"Algorithm {name!r} found no acceptable recoding, and others may be: "
                f"a privacy model is not monotone here. Use {able!r} or 'auto'."
            )
            raise Infeasible(message) from None
        raise nearest_miss(problem) from None
    except OutOfTime:
        if evaluate.best is None:
            nodes = isinstance(chosen, NodeSearch)
            what, advice = ("node", "Allow more, or lower max_level") if nodes else ("recoding", "Allow more")
            message = f"No acceptable {what} was found within {seconds} seconds. {advice}."
            raise OutOfTime(message) from None
        found = evaluate.finish(evaluate.best, Guarantee.ACCEPTABLE, compared=evaluate.nodes_accepted)
        return name, found


def without_idle_levels(problem: Problem) -> Problem:
    """Keep columns with one value at their lowest level: others make the same classes, and lose no less."""
    lattice = problem.lattice
    alone = [len(hierarchy.labels[0]) == 1 for hierarchy in problem.hierarchies]
    idle = [axis for axis, columns in enumerate(lattice.axes) if all(alone[column] for column in columns)]
    levels = {lattice.columns[lattice.axes[axis][0]]: lattice.low[axis] for axis in idle}
    return replace(problem, lattice=lattice.narrowed(levels)) if levels else problem


def _refusal(name: str, reason: str, problem: Problem) -> CannotHonour:
    """Say what would do: what the reason says itself in a second sentence, else an algorithm that can."""
    able = ALGORITHMS.name_of(automatic(problem))
    advice = "" if ". " in reason else f" Use {able!r} or 'auto'."
    return CannotHonour(f"Algorithm {name!r} cannot honour this policy: {reason}.{advice}")


def _too_far(problem: Problem, algorithm: Algorithm) -> str | None:
    """Say why a search cannot be done where the combinations are in the engine, if it cannot."""
    if problem.counts.held or algorithm.far:
        return None
    return (
        f"it needs all {len(problem.counts):,} combinations in memory, and they do not fit. "
        "Raise memory_limit, or use 'contour'"
    )


def _too_fine(problem: Problem, *, refine: bool, cells: bool) -> str | None:
    """Say why classes cannot have levels or blanks of their own, where they cannot."""
    for asked, name in ((refine, "refine"), (cells, "cells")):
        if asked and not problem.counts.held:
            return (
                f"{name} needs all {len(problem.counts):,} combinations in memory, and they do not fit. "
                f"Raise memory_limit, or leave out {name}"
            )
        if asked and problem.counts.population is not None:
            return (
                f"{name} makes classes of their own levels, and a population has none such to look up. "
                f"Leave out {name}"
            )
    return None


def _finished(evaluate: Evaluator, found: Evaluation, *, refine: bool, cells: bool) -> Evaluation:
    """Go on from a node as far as there is time; the node itself will do."""
    try:
        if refine:
            return refined(evaluate, found)
        return hidden(evaluate, found) if cells else found
    except OutOfTime:
        return found


def automatic(problem: Problem) -> Algorithm:
    """Return the first algorithm that can prove the optimum of a problem."""
    contour = ALGORITHMS.create("contour")
    return ALGORITHMS.create("exhaustive") if contour.refuses(problem) else contour
