"""Mondrian (LeFevre, DeWitt and Ramakrishnan 2006): cut the table into regions, one column at a time.

Each region is cut where its columns are widest, as long as both sides may be released; its records are
released with the range, the set or the group that covers them. Greedy: it proves no more than that its
regions are acceptable, and that none of them can be cut further.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Algorithm, Guarantee
from shoal.core.counts import Counts
from shoal.core.cuts import arrangements
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.partition import Axis, Parts, partition
from shoal.core.problem import Problem
from shoal.core.ranges import Arrangement
from shoal.core.recoding import Recoding
from shoal.core.regions import regions_of
from shoal.core.warm import to_partition
from shoal.errors import Infeasible


@dataclass(frozen=True)
class Mondrian(Algorithm):
    """Cut regions at medians until no cut is left that all models allow."""

    relaxed: bool = False
    """Cut at the very median, dividing equal records by chance."""
    choose: Literal["width", "entropy", "loss"] = "width"
    """Cut the column that is widest; whose values tell most; or the column, at the place, where a cut
    lowers the share of values covered most.
    """
    categorical: Literal["order", "hierarchy"] = "order"
    """How columns without a scale are cut."""

    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every class is acceptable, and none can be cut further; another partition may lose less."""

    def refuses(self, problem: Problem) -> str | None:
        """Refuse what is said of levels, of the whole table or of a population."""
        lattice = problem.lattice
        if problem.metric.by_level:
            return "its metric needs a level of every group, and a range has none"
        if lattice.constrained:
            return "regions have no levels: max_level, min_level, same_level and fixed levels say nothing"
        if problem.counts.population is not None:
            return "a population has no regions to look up"
        if any(model.about_table for model in problem.models):
            return "a model about the whole table cannot be checked region by region"
        if self.relaxed and (
            problem.metric.needs_label or not all(model.sizes_suffice for model in problem.models)
        ):
            return (
                "relaxed regions divide equal records by chance, so only their number can be checked. "
                "Use relaxed: false"
            )
        return None

    def to_compile(self) -> list[Callable[[], object]]:
        """Regions are cut in kernels of their own."""
        return to_partition()

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Cut, then judge what came out like any other recoding."""
        whole = {place: np.zeros(len(counts), np.int64) for place, counts in enumerate(problem.value_counts)}
        if problem.violations(Classes(problem.counts.roll_up(whole), problem.about)).any():
            message = "The table as one region is not acceptable."
            raise Infeasible(message)
        columns = arrangements(problem)

        def accepts(counts: Counts) -> BoolArray:
            return ~problem.violations(Classes(counts, problem.about))

        parts = partition(
            problem.counts,
            [self._axis(column) for column in columns],
            None if all(model.sizes_suffice for model in problem.models) else accepts,
            problem.least_size,
            choose=self.choose,
            relaxed=self.relaxed,
            check=evaluate.check_time,
        )
        return evaluate.finish(evaluate.recoded(self._recoding(problem, columns, parts)), self.guarantee)

    def _axis(self, column: Arrangement) -> Axis:
        tree = self.categorical == "hierarchy" and not column.scaled
        return Axis(column.places, column.positions, column.levels if tree else ())

    def _recoding(self, problem: Problem, columns: list[Arrangement], parts: Parts) -> Recoding:
        about, codes = [], []
        for place, column in enumerate(columns):
            name = column.hierarchy.name
            values = problem.counts.codes(place)[parts.rows]
            groups, own = column.groups(
                values,
                parts.regions,
                tree=self.categorical == "hierarchy",
                bounds=name in problem.as_bounds,
            )
            about.append(groups)
            codes.append(own[parts.regions])
        split = len(parts.rows) > len(problem.counts)
        if not split:  # in the order of the combinations, which sensitive values follow
            back = np.argsort(parts.rows)
            codes = [own[back] for own in codes]
        rows, sizes = (parts.rows, parts.sizes) if split else (None, None)
        nothing = np.zeros(len(parts.rows), np.bool_)
        regions = regions_of(problem.counts, codes, nothing, rows, sizes)
        return Recoding.from_regions([h.name for h in problem.hierarchies], about, regions)
