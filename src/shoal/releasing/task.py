"""The task of a run: what is wanted of a release, and the search for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.matching import Saved, matched
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.core.warm import to_compile
from shoal.policy import Policy, named
from shoal.problem import check_label
from shoal.release import Release
from shoal.search import search
from shoal.spreadsheet import AS_IT_IS, Sheet


@dataclass(frozen=True)
class Task:
    """What is wanted: a recoding by a policy, some levels or all regions of it given; and extras."""

    policy: Policy
    levels: Mapping[str, int] | None = None
    seconds: float | None = None
    regions: Saved | None = None
    mapping: bool = False  # to the private folder: what became of every value
    report: Callable[[Release], str] | None = None  # likewise: writes the page that tells of the release
    sheet: Sheet = AS_IT_IS  # how a text file is written

    def found(self, problem: Problem, progress: Progress) -> tuple[str, Evaluation]:
        """Search for the recoding, or put the one that is given on the problem."""
        if self.regions is not None:
            name, _ = named(self.policy.algorithm)
            return name, matched(Evaluator(problem, seconds=self.seconds, progress=progress), self.regions)
        check_label(problem)
        algorithm = self.policy.search_algorithm
        finishing = self.policy.finishing
        return search(problem, algorithm, seconds=self.seconds, progress=progress, **finishing)

    def to_compile(self, problem: Problem) -> list[Callable[[], object]]:
        """Return what compiles the kernels that will be needed and are not compiled on this machine."""
        waiting = to_compile(problem.counts.words)
        if self.regions is None and self.policy.search_algorithm is not None:
            waiting += self.policy.search_algorithm.to_compile()
        return waiting
