"""What the searches over cuts by order have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shoal.core.contracts import Algorithm
from shoal.core.cut_ground import Ground, ground_of
from shoal.core.problem import Problem
from shoal.core.warm import to_cut
from shoal.errors import Infeasible, PolicyError


@dataclass(frozen=True)
class OrderCuts(Algorithm):
    """A search that begins with a greedy one from some random starts."""

    starts: int = 20
    """Random sets of cuts to begin with, beside none; 0 or more."""
    seed: int = 0
    """What they are drawn with, 0 or more; a seed always gives the same result."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if min(self.starts, self.seed) < 0:
            message = f"starts and seed must be at least 0, got {min(self.starts, self.seed)}."
            raise PolicyError(message)

    def refuses(self, problem: Problem) -> str | None:
        """Refuse what is said of levels, of a population, or not of the records of a class."""
        return next(_limits(problem), None)

    def to_compile(self) -> list[Callable[[], object]]:
        """Cuts are weighed in kernels of their own."""
        return to_cut()

    def ground(self, problem: Problem) -> Ground:
        """Lay out the cuts; without any of them the table is one class, which must do."""
        if problem.records < problem.least_size:
            message = "The table as one class is not acceptable."
            raise Infeasible(message)
        return ground_of(problem)


def _limits(problem: Problem) -> Iterator[str]:
    """Say what searches over cuts cannot honour."""
    lattice = problem.lattice
    if problem.metric.charge is None:
        yield "it bounds costs of records by their classes: its metrics are discernibility and classification"
    if lattice.constrained:
        yield "a cut has no level, so max_level, min_level, same_level and fixed levels say nothing of it"
    if problem.counts.population is not None:
        yield "a population has no cuts to look up"
    if not all(model.sizes_suffice for model in problem.models):
        yield "only models that count the records of a class can be checked cut by cut"
