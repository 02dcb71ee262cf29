"""mu-Argus (Hundepool and Willenborg 1996): generalize columns one by one, then blank what is rare together.

Every column is generalized until each of its values has k records. Then combinations of two and three
columns are counted, chosen by how identifying the columns are (as Sweeney 2002 describes the system), and
cells of those that fewer than k records share are blanked. Larger combinations are never looked at: what
comes out need not be k-anonymous, and nothing is proven of it but that no tested combination is rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

import numpy as np

from shoal.core.combinations import Columns, blank_rare, shown_at
from shoal.core.contracts import Algorithm, Guarantee
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.finer import recoding_of
from shoal.core.lattice import Node
from shoal.core.problem import Problem
from shoal.errors import PolicyError, UnknownName

IDENTIFYING, MORE, MOST = 1, 2, 3
# The categories whose columns are tested together, each pair and triple in ascending order.
_TESTED = {
    (IDENTIFYING, MORE),
    (IDENTIFYING, MOST),
    (MORE, MOST),
    (MOST, MOST),
    (IDENTIFYING, MORE, MOST),
    (IDENTIFYING, MOST, MOST),
    (MORE, MOST, MOST),
    (MOST, MOST, MOST),
}


@dataclass(frozen=True)
class MuArgus(Algorithm):
    """Generalize until each value has k records, then blank cells of rare combinations of 2 and 3 columns."""

    generalize: Mapping[str, int] | None = field(
        default=None, metadata={"takes": "columns with levels, as {born: 2}, or --generalize born=2"}
    )
    """Columns that go further up, to these levels at least."""

    guarantee: ClassVar[Guarantee] = Guarantee.NONE
    """The policy's models need not hold; no tested combination of visible values has fewer than k records."""

    def refuses(self, problem: Problem) -> str | None:
        """Refuse what is more than a number of records, and bounds, which a blank looks like."""
        if not all(model.sizes_suffice and not model.about_table for model in problem.models):
            return "it counts how many records share few values, so k-anonymity is the only model it knows"
        if problem.as_bounds:
            return "a blank cannot be told from bounds that are empty: use release_as: text"
        return None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Generalize, blank, and measure what comes out; it is taken whatever the models say of it."""
        node = self.start(problem)
        shown, of = shown_at(problem, node)
        identifying = identifying_of(problem)
        order = sorted(range(len(identifying)), key=lambda column: (-identifying[column], column))

        def check(sets: int) -> None:
            evaluate.check_time()
            evaluate.book(len(shown.sizes), sets)

        blanks = blank_rare(shown, self.tested(identifying), problem.least_size, order, check=check)
        levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
        nothing = np.zeros(len(problem.counts), np.bool_)
        recoding = recoding_of(problem, levels, nothing, blanks[:, of])
        return evaluate.finish(evaluate.recoded(recoding, node, judged=False), self.guarantee)

    def tested(self, identifying: Sequence[int]) -> list[Columns]:
        """Return the sets of columns that are tested: each alone, then pairs, then triples.

        Where all columns are alike there is nothing to choose by, and every pair and triple is tested.

        >>> [len(MuArgus().tested(columns)) for columns in ([1, 3, 2, 2], [1, 1, 1, 1], [1, 1, 2])]
        [11, 14, 5]
        """
        places = range(len(identifying))
        alike = len(set(identifying)) == 1
        return [
            columns
            for size in (1, 2, 3)
            for columns in combinations(places, size)
            if size == 1 or alike or tuple(sorted(identifying[column] for column in columns)) in _TESTED
        ]

    def start(self, problem: Problem) -> Node:
        """Return the lowest levels at which each value of a column has k records, or the highest allowed."""
        lattice = problem.lattice
        least = list(lattice.low)
        for name, level in (self.generalize or {}).items():
            axis = _axis(problem, name)
            if not 0 <= level <= lattice.high[axis]:
                message = f"Level {level} to generalize {name!r} to is outside 0..{lattice.high[axis]}."
                raise PolicyError(message)
            least[axis] = max(least[axis], level)
        found = []
        for axis, (low, high) in enumerate(zip(least, lattice.high, strict=True)):
            enough = (level for level in range(low, high) if _frequent(problem, axis, level))
            found.append(next(enough, high) - lattice.low[axis])
        return lattice.node(found)


def identifying_of(problem: Problem) -> tuple[int, ...]:
    """Return how identifying each column is; where nothing is said, all alike."""
    return problem.identifying or (IDENTIFYING,) * len(problem.hierarchies)


def _axis(problem: Problem, name: str) -> int:
    lattice = problem.lattice
    if name not in lattice.columns:
        raise UnknownName(name, "quasi-identifier to generalize:", lattice.columns)
    place = lattice.columns.index(name)
    return next(number for number, axis in enumerate(lattice.axes) if place in axis)


def _frequent(problem: Problem, axis: int, level: int) -> bool:
    """Tell whether each value of the columns of an axis has k records at a level."""
    for column in problem.lattice.axes[axis]:
        hierarchy, counts = problem.hierarchies[column], problem.value_counts[column]
        if level == 0 and hierarchy.null is not None:
            counts = np.delete(counts, hierarchy.null)  # what is missing stays blank
            groups = np.delete(hierarchy.groups(0), hierarchy.null)
        else:
            groups = hierarchy.groups(level)
        sizes = np.bincount(groups, counts)
        if ((sizes > 0) & (sizes < problem.least_size)).any():
            return False
    return True
