"""Mondrian (LeFevre, DeWitt and Ramakrishnan 2006): cut the table into regions, one column at a time.

Each region is cut at its widest column, as long as both sides are acceptable. A region is released as the
range, set or group that covers its values. The search is greedy: it proves that its regions are acceptable,
and that none of them can be cut further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from shoal.algorithms.mondrian.columns import CutColumn, columns_of
from shoal.algorithms.mondrian.partition import Partition, partition
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import Algorithm, Guarantee
from shoal.core.counts.counts import Counts, numbered, packed
from shoal.core.counts.in_memory import gathered
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding, regions_of
from shoal.errors import Infeasible, Refusal
from shoal.wording import Change


@dataclass(frozen=True)
class Mondrian(Algorithm):
    """Cut regions at medians, as long as all models allow it."""

    relaxed: bool = False
    """Cut exactly at the median, dividing equal records at random."""
    choose: Literal["width", "entropy", "loss"] = "width"
    """The column to cut: the widest one, the one with the greatest entropy, or the one whose best cut most
    reduces the share of values that a label covers.
    """
    categorical: Literal["order", "hierarchy"] = "order"
    """How columns without a scale are cut."""

    plain_summary: ClassVar[str] = (
        "Divides the records in halves again and again, as long as the parts stay large enough."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every class is acceptable, and none can be cut further; another partition may lose less."""

    def refuses(self, problem: Problem) -> Refusal | None:
        lattice = problem.lattice
        if problem.metric.by_level:
            return Refusal("the metric needs a level of every group, and a range has none")
        if len(lattice.axes) < len(lattice.columns):
            return Refusal("same_level needs a level of every column, and a range has none")
        if problem.counts.population is not None:
            return Refusal("it cannot count the population of a region")
        if any(model.judges_table for model in problem.models):
            return Refusal("a model about the whole table cannot be checked region by region")
        if self.relaxed and (
            problem.metric.needs_label or not all(model.sizes_suffice for model in problem.models)
        ):
            return Refusal(
                "relaxed regions divide equal records at random, so only the size of classes can be checked",
                (Change(action="Use relaxed: false"),),
            )
        return None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Cut the table, then evaluate the result like any other recoding."""
        columns = columns_of(problem, by_tree=self.categorical == "hierarchy")
        begin, suppressed = _first_regions(problem, columns)

        def accepts(counts: Counts) -> BoolArray:
            return ~problem.violations(Classes(counts, problem.sensitive_info))

        parts = partition(
            problem.counts,
            [column.axis for column in columns],
            None if all(model.sizes_suffice for model in problem.models) else accepts,
            problem.least_size,
            choose=self.choose,
            relaxed=self.relaxed,
            begin=np.where(suppressed, -1, begin),
            check=evaluate.check_time,
        )
        recoding = _recoding(problem, columns, parts, np.where(suppressed, begin, -1))
        return evaluate.finish(evaluate.recoding(recoding), self.guarantee)


def _first_regions(problem: Problem, columns: Sequence[CutColumn]) -> tuple[IntArray, BoolArray]:
    """Return the first region of each combination, and whether it is suppressed.

    All records of a region that a model refuses are suppressed. Kept and suppressed regions have separate
    numbers.
    """
    codes = [column.begin[problem.counts.codes(number)] for number, column in enumerate(columns)]
    region_of = numbered(packed(codes))
    classes = Classes(gathered(problem.counts, region_of), problem.sensitive_info)
    refused = problem.violations(classes)
    suppressed = int(classes.sizes[refused].sum())
    if not problem.acceptable(suppressed):
        raise Infeasible("The first regions are not acceptable: the whole table, or the groups at max_level.")
    numbers = np.where(refused, np.cumsum(refused), np.cumsum(~refused)) - 1
    return numbers[region_of], refused[region_of]


def _recoding(
    problem: Problem,
    columns: Sequence[CutColumn],
    parts: Partition,
    suppressed_region: IntArray,  # (combinations,): the suppressed region, or -1
) -> Recoding:
    suppressed_rows = np.flatnonzero(suppressed_region >= 0)
    suppressed_rows = suppressed_rows[np.argsort(suppressed_region[suppressed_rows], kind="stable")]
    rows = np.concatenate((parts.rows, suppressed_rows))
    sizes = np.concatenate((parts.sizes, problem.counts.sizes[suppressed_rows]))
    regions = np.concatenate((parts.regions, parts.regions[-1] + 1 + suppressed_region[suppressed_rows]))
    suppressed = np.arange(len(rows)) >= len(parts.rows)
    column_groups, codes = [], []
    for number, column in enumerate(columns):
        groups, group_of_region = column.groups(problem.counts.codes(number)[rows], regions)
        column_groups.append(groups)
        codes.append(group_of_region[regions])
    if len(rows) > len(problem.counts):
        merged = regions_of(problem.counts, codes, suppressed, rows, sizes)
    else:  # sensitive values are in the order of the combinations
        order = np.argsort(rows)
        merged = regions_of(problem.counts, [code[order] for code in codes], suppressed[order])
    return Recoding.from_regions([h.name for h in problem.hierarchies], column_groups, merged)
