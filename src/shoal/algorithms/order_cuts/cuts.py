"""The base class of searches over cuts by order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shoal.algorithms.order_cuts.problem_cuts import ProblemCuts, cuts_of
from shoal.core.contracts import Algorithm
from shoal.core.problem import Problem
from shoal.errors import Infeasible, PolicyError, Refusal


@dataclass(frozen=True)
class OrderCuts(Algorithm):
    """A search that starts with a greedy search from random sets of cuts."""

    starts: int = 20
    """The number of random sets of cuts to start from, in addition to the empty set; 0 or more."""
    seed: int = 0
    """The random seed of these sets, 0 or more; the same seed always gives the same result."""

    def __post_init__(self) -> None:
        if min(self.starts, self.seed) < 0:
            raise PolicyError(f"starts and seed must be at least 0, got {min(self.starts, self.seed)}.")

    def refuses(self, problem: Problem) -> Refusal | None:
        reason = next(_limits(problem), None)
        return Refusal(reason) if reason else None

    def problem_cuts(self, problem: Problem) -> ProblemCuts:
        """Return the cuts of a problem; raise Infeasible if the whole table is too small to be one class."""
        if problem.records < problem.least_size:
            raise Infeasible("The table as one class is not acceptable.")
        return cuts_of(problem)


def _limits(problem: Problem) -> Iterator[str]:
    """Yield the reasons for which searches over cuts cannot handle a problem."""
    lattice = problem.lattice
    if problem.metric.record_cost is None:
        yield "it bounds costs of records by their classes: its metrics are discernibility and classification"
    if lattice.constrained:
        yield "a cut has no level, so max_level, min_level, same_level and fixed levels do not apply"
    if problem.counts.population is not None:
        yield "it cannot count the population of the classes of a cut"
    if not all(model.sizes_suffice for model in problem.models):
        yield "only models that count the records of a class can be checked cut by cut"
