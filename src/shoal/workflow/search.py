"""Search for a recoding of a problem, and compute its classes, suppressed classes and losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.algorithms import ALGORITHMS
from shoal.core.arrays import BoolArray
from shoal.core.classes import UNIT, Classes, label_of
from shoal.core.compilation import compile_events
from shoal.core.contracts import Algorithm, Cells, Guarantee, Metric, NodeSearch
from shoal.core.counts.counts import Counts, Domain
from shoal.core.counts.in_memory import gathered
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.progress import Progress, quiet
from shoal.core.recoding.recoding import Recoding
from shoal.errors import CannotHonour, Infeasible, OutOfTime, Refusal, ShoalError, interruptible
from shoal.files.signals import accepts_best
from shoal.metrics import METRICS
from shoal.metrics.coverage import Coverage
from shoal.policy.policy import Policy, named, plugin_text
from shoal.wording import Change
from shoal.workflow.problem import check_label

if TYPE_CHECKING:
    from shoal.core.recoding.matching import Saved


_DESCENT_SECONDS = 2.0  # to find a node if the search has found none in its time
_FINISHING_SECONDS = 10.0  # for refine, cells and local, even if the search has used all its time
_RAISE_MEMORY = Change("memory_limit", action="Raise {}")


def search(
    problem: Problem,
    algorithm: Algorithm | None = None,
    *,
    refine: bool = False,
    cells: Cells = False,
    local: int = 0,
    seconds: float | None = None,
    fallback: bool = False,
    progress: Progress | None = None,
) -> tuple[str, Evaluation]:
    """Search with an algorithm (default: the first that can prove the optimum); return its name, too.

    `refine` and `cells` release records that the node of least loss suppresses. If `local` is above 0, every
    class gets labels at its own levels, at most `local` labels in a cell. With `fallback`, steepest descent
    finds a node if the search finds none in time and the most general node is acceptable.
    """
    chosen = algorithm or automatic(problem)
    name = ALGORITHMS.name_of(chosen)
    refusal = _needs_memory(problem, chosen) or chosen.refuses(problem)
    refusal = refusal or _cannot_finish(problem, refine=refine, cells=cells, local=local > 0)
    if refusal:
        raise _cannot_honour("auto" if algorithm is None else name, refusal, problem)
    if problem.records < problem.least_size:
        from shoal.workflow.infeasible import too_few_records

        raise too_few_records(problem)
    searched = without_idle_levels(problem) if algorithm is None else problem  # else: all nodes
    evaluate = Evaluator(searched, seconds=seconds, progress=progress)
    try:
        with interruptible(), compile_events(quiet) as timer:
            evaluate.compiling = lambda: timer.seconds
            result = _search_in_time(evaluate, chosen, seconds, fallback=fallback)
            stopped_early = evaluate.stopped  # before the result was refined
            if not stopped_early:
                result = _finished(evaluate, result, refine=refine, cells=cells, local=local)
            if evaluate.stopped and not accepts_best(retained(recode(searched, result))):
                raise KeyboardInterrupt
            if stopped_early:
                result = _finished(evaluate, result, refine=refine, cells=cells, local=local)
            return name, result
    except Infeasible:
        if chosen.reports_infeasible:
            raise
        raise _infeasible(problem, chosen, name) from None


def _infeasible(problem: Problem, chosen: Algorithm, name: str) -> Infeasible:
    """Return the error for a search without a result: what works, or which search may find more."""
    if chosen.guarantee is not Guarantee.LEAST_LOSS and not problem.monotone_models:
        suitable = ALGORITHMS.name_of(automatic(problem))
        return Infeasible(
            f"algorithm {name!r} found no acceptable recoding, but others may find one: a privacy model "
            "is not monotone here.",
            [Change(action=f"Use {suitable!r} or 'auto'")],
        )
    from shoal.workflow.infeasible import nearest_miss

    return nearest_miss(problem)


def _search_in_time(
    evaluate: Evaluator, chosen: Algorithm, seconds: float | None, *, fallback: bool
) -> Evaluation:
    """Search; at the time limit, return the best node found so far with a lower bound of the loss."""
    problem, nodes = evaluate.problem, isinstance(chosen, NodeSearch)
    try:
        result = chosen.search(problem, evaluate)
        # A search for cuts returns its result at the time limit without an exception.
        return replace(result, complete=not evaluate.out_of_time)
    except OutOfTime:
        if evaluate.best is None and nodes and fallback and not evaluate.stopped:
            from shoal.algorithms.descent import descend

            evaluate.allow(_DESCENT_SECONDS)
            with suppress(OutOfTime):
                descend(problem, evaluate)
        if evaluate.best is None:
            if evaluate.stopped:
                raise KeyboardInterrupt from None
            raise OutOfTime(
                f"No acceptable {'node' if nodes else 'recoding'} was found within {seconds} seconds.",
                advice=[Change(action="Allow more"), *([Change(action="Lower max_level")] if nodes else [])],
            ) from None
    if evaluate.lower_bound is None and not evaluate.stopped:
        from shoal.algorithms.projection import BOUND_SECONDS, projected_bound

        with suppress(OutOfTime):
            contour = ALGORITHMS.create("contour")
            evaluate.lower_bound = projected_bound(evaluate, contour, BOUND_SECONDS)
    result = evaluate.finish(evaluate.best, Guarantee.ACCEPTABLE, compared=evaluate.nodes_accepted)
    least = None if evaluate.lower_bound is None else min(evaluate.lower_bound, result.loss)
    return replace(result, lower_bound=least, complete=False)


def retained(result: Recoded) -> float:
    """Return the share of the information that a result retains: see Release.retained_overall."""
    lost = Coverage().by_column(result.problem, result.recoding, result.classes, result.suppressed)
    return 1 - sum(lost) / len(lost)


def without_idle_levels(problem: Problem) -> Problem:
    """Fix columns with one value at their lowest level: higher levels change no class and lose no less."""
    lattice = problem.lattice
    single = [len(hierarchy.labels[0]) == 1 for hierarchy in problem.hierarchies]
    idle = [axis for axis, columns in enumerate(lattice.axes) if all(single[column] for column in columns)]
    levels = {lattice.columns[lattice.axes[axis][0]]: lattice.low[axis] for axis in idle}
    return replace(problem, lattice=lattice.narrowed(levels)) if levels else problem


def _cannot_honour(name: str, refusal: Refusal, problem: Problem) -> CannotHonour:
    """Return the error for a refusal. If the refusal has no advice, the error names a suitable algorithm."""
    suitable = ALGORITHMS.name_of(automatic(problem))
    advice = refusal.advice or (Change(action=f"Use {suitable!r} or 'auto'"),)
    return CannotHonour(refusal.reason, algorithm=name, advice=advice)


def _needs_memory(problem: Problem, algorithm: Algorithm) -> Refusal | None:
    """Return why an algorithm cannot search if the combinations stay in the engine; None if it can."""
    if not problem.counts.remote or algorithm.supports_remote:
        return None
    return Refusal(
        f"it needs all {len(problem.counts):,} combinations in memory, and they do not fit",
        (_RAISE_MEMORY, Change(action="Use 'contour'")),
    )


def _cannot_finish(problem: Problem, *, refine: bool, cells: Cells, local: bool) -> Refusal | None:
    """Return why classes cannot get their own levels or blanked cells, or None if they can."""
    if cells == "any" and not all(model.sizes_suffice for model in problem.models):
        return Refusal(
            "with cells: any, each record has its own number of matches, which only k-anonymity without a "
            "unit can use",
            (Change(action="Use cells: true"),),
        )
    for requested, name in ((refine, "refine"), (bool(cells), "cells"), (local, "local")):
        omit = Change(action=f"Leave out {name}")
        if requested and problem.counts.remote:
            return Refusal(
                f"{name} needs all {len(problem.counts):,} combinations in memory, and they do not fit",
                (_RAISE_MEMORY, omit),
            )
        if requested and problem.counts.population is not None:
            return Refusal(
                f"{name} gives classes their own levels, which cannot be looked up in a population",
                (omit,),
            )
    return None


def _finished(
    evaluate: Evaluator, result: Evaluation, *, refine: bool, cells: Cells, local: int
) -> Evaluation:
    """Refine a node within a separate time limit, even if the search has used all its time."""
    evaluate.allow(_FINISHING_SECONDS)
    try:
        if local:
            from shoal.core.recoding.local.search import localized

            return localized(evaluate, result, local)
        if refine or cells:
            from shoal.core.recoding.refine import hidden, refined

            if refine:
                return refined(evaluate, result)
            return hidden(evaluate, result, wildcards=cells == "any")
        return result
    except OutOfTime:
        return result


def automatic(problem: Problem) -> Algorithm:
    """Return the first algorithm that can prove the optimum of a problem."""
    contour = ALGORITHMS.create("contour")
    return ALGORITHMS.create("exhaustive") if contour.refuses(problem) else contour


def find(
    policy: Policy,
    problem: Problem,
    regions: Saved | None = None,
    *,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> tuple[str, Evaluation]:
    """Search for a recoding, or apply saved regions; also return the name of the algorithm."""
    if regions is not None:
        from shoal.core.recoding.matching import matched

        name, _ = named(policy.algorithm)
        return name, matched(Evaluator(problem, seconds=seconds, progress=progress), regions)
    check_label(problem)
    if policy.local and not policy.finishing["local"]:
        raise CannotHonour(
            f"local starts from a node, and {named(policy.algorithm)[0]!r} does not search for one.",
            advice=[
                Change(action="Use a search for a node, such as 'auto'"),
                Change("local", action="Leave out {}"),
            ],
        )
    algorithm, finishing = policy.search_algorithm, policy.finishing
    return search(problem, algorithm, seconds=seconds, fallback=True, progress=progress, **finishing)


@dataclass(frozen=True)
class Recoded:
    """A recoding, the classes it makes, and which of them are suppressed."""

    problem: Problem
    recoding: Recoding
    classes: Classes
    suppressed: BoolArray  # (classes,)
    labelled: Counts | None = None  # the same counts with labels, if the search used counts without labels

    @cached_property
    def losses(self) -> dict[str, float]:
        """The loss by every metric that applies."""
        return losses_by_metric(self, self.labelled)

    def can_mask(self, domains: Mapping[str, Domain]) -> bool:
        """Return whether suppressed records can be kept masked.

        Every model must accept a class with their numbers of records and persons. Models of the whole table
        must hold with the masked records as a further class. No released class may equal masked records.
        """
        if self.classes.sizes[self.suppressed].sum() < self.problem.least_size:
            return False
        for model in self.problem.models:
            if model.unit_column is not None:
                spread = self.classes.distribution(UNIT + model.unit_column)
                persons = np.unique(spread.codes[self.suppressed[spread.rows]])
                if len(persons) < model.least_size:
                    return False
        class_numbers = np.cumsum(~self.suppressed)
        merged = Classes(gathered(self.classes.counts, np.where(self.suppressed, 0, class_numbers)))
        if not all(model.holds(merged, merged.nothing()) for model in self.problem.models):
            return False
        return not (self._empty(domains) & ~self.suppressed).any()

    def _empty(self, domains: Mapping[str, Domain]) -> BoolArray:
        """Mark the classes that are released with every quasi-identifier empty, like masked records."""
        empty = np.ones(len(self.classes), np.bool_)
        for column, (name, labels) in enumerate(
            zip(self.recoding.columns, self.recoding.labels, strict=True)
        ):
            if labels is None:  # groups are values; the last is of blanked cells
                shown = np.array([*[not text for text in domains[name].texts], True])
            else:
                cell_labels = zip(*labels.values(), strict=True)
                shown = np.array([all(end in (None, "") for end in label) for label in cell_labels])
            empty &= shown[self.classes.counts.codes(column)]
        return empty


def recode(problem: Problem, evaluation: Evaluation) -> Recoded:
    """Apply the recoding of an evaluation to a problem."""
    recoding = evaluation.recoding or problem.recoding(evaluation.node)
    classes = problem.classes_of(recoding)
    if recoding.regions is not None:
        return Recoded(problem, recoding, classes, recoding.regions.suppressed)
    suppressed = problem.violations(classes)
    return Recoded(problem, recoding.suppressing(classes.counts.keys[:, suppressed]), classes, suppressed)


def losses_by_metric(recoded: Recoded, labelled: Counts | None = None) -> dict[str, float]:
    """Measure a result by every registered metric with its default options, and by the policy's.

    A metric that needs the label is left out if labels were not counted. A metric that needs levels is left
    out if a group belongs to no level. `labelled`: the counts with labels, if the search used others.
    """
    if labelled is not None and label_of(labelled) is not None and label_of(recoded.problem.counts) is None:
        problem = replace(recoded.problem, counts=labelled)
        recoded = replace(recoded, problem=problem, classes=problem.classes_of(recoded.recoding))
    problem, recoding = recoded.problem, recoded.recoding
    levels = recoding.node is not None or (
        recoding.separate_column is None
        and all(groups.levels is not None for groups in recoding.column_groups)
    )
    labels = label_of(problem.counts) is not None
    return {
        name: metric.loss(problem, recoding, recoded.classes, recoded.suppressed)
        for name, metric in _metrics(problem.metric)
        if (levels or not metric.by_level) and (labels or not metric.needs_label)
    }


def _metrics(of_policy: Metric) -> Iterator[tuple[str, Metric]]:
    """Yield every metric that needs no options, and the policy's metric if it has options."""
    plain = []
    for name in METRICS:
        try:
            plain.append(METRICS.create(name))
        except ShoalError:  # an option must be given
            continue
        yield name, plain[-1]
    if of_policy not in plain:
        yield _written(of_policy), of_policy


def _written(metric: Metric) -> str:
    """Write a metric as the command line reads it, with the options that are not defaults."""
    values = {
        field.name: getattr(metric, field.name)
        for field in fields(metric)  # type: ignore[arg-type]
        if getattr(metric, field.name) != field.default
    }
    return plugin_text({METRICS.name_of(metric): values})
