"""Evaluation: acceptability and loss of a node or another recoding, and the comparison of evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import overload

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.contracts import Guarantee
from shoal.core.lattice.lattice import Node
from shoal.core.recoding.recoding import Recoding


@dataclass
class SearchCost:
    """The cost of a search so far."""

    rows_scanned: int = 0  # combinations read
    subset_evaluations: int = 0  # counts over fewer columns
    column_counts: int = 0  # roll-ups of one column each, which order the columns
    # The sum of generalized columns times combinations read, plus n log2 n for each node with n combinations.
    score: float = 0.0

    def add_read(self, combinations: int, columns: int) -> None:
        """Add the cost of generalizing this number of columns in this number of combinations."""
        self.rows_scanned += combinations
        self.score += combinations * columns

    def add_made(self, combinations: int) -> None:
        """Add the cost of the combinations of an evaluated node."""
        self.score += combinations * math.log2(combinations) if combinations else 0.0


_EQUAL = 1e-12  # losses with at most this relative difference are a tie


@dataclass(frozen=True)
class CandidateGraph:
    """The size of the graphs that incognito searches, one for each set of columns."""

    nodes: int = 0  # combinations of levels whose projections to fewer columns are all acceptable
    edges: int = 0  # from a node to one that is a level higher in one column


@dataclass(frozen=True)
class SearchWork:
    """The cost of a search, independent of the machine."""

    nodes_evaluated: int = 0  # nodes of the full lattice
    loss_evaluations: int = 0  # further nodes, known to be acceptable and counted only for their loss
    nodes_tagged: int = 0  # nodes accepted or refused without being evaluated
    nodes_compared: int = 0  # nodes compared on loss
    subset_evaluations: int = 0  # counts over fewer columns
    column_counts: int = 0  # roll-ups of one column each, which order the columns
    rows_scanned: int = 0  # combinations read, except for `column_counts`
    node_score: float = 0.0
    candidate_graph: CandidateGraph | None = None  # of incognito


@dataclass(frozen=True)
class SearchSpace:
    """How far incognito narrows its search over all sets of this number of columns."""

    columns: int  # columns that share their level count as one
    nodes: int  # the number of nodes in the lattices of these sets
    candidates: int  # nodes whose projections to fewer columns are all acceptable
    counted: int  # candidates that were counted; the others lie above an acceptable node


@dataclass(frozen=True)
class Evaluation:
    """Acceptability and loss of a node or another recoding; a search adds its guarantee and cost."""

    node: Node  # if the recoding is not a node: the node from which it was refined, or empty
    acceptable: bool
    suppressed: int  # number of records; for a refused node, a lower bound
    classes: int  # number of all classes, before suppression
    loss: float  # infinite if the node is refused
    bound: float  # lower bound on the loss of every node above
    refuses_below: bool = False  # every node below is refused too
    recoding: Recoding | None = field(default=None, compare=False, repr=False)  # if it is not a node
    proven: Guarantee = Guarantee.NONE
    candidates: tuple[Node, ...] = ()  # the nodes among which the metric chose
    evaluated_candidates: tuple[Evaluation, ...] = field(default=(), compare=False, repr=False)
    work: SearchWork = SearchWork()
    complete: bool = True  # whether the search ended before its time limit
    lower_bound: float | None = None  # no recoding of this search's kind has a smaller loss
    search_space: tuple[SearchSpace, ...] = ()  # of incognito, by the number of columns

    @property
    def height(self) -> int:
        return sum(self.node)


def tie(first: float, second: float) -> bool:
    """Return whether two losses are equal up to rounding."""
    return first == second or abs(first - second) <= _EQUAL * max(abs(first), abs(second))


def better(candidate: Evaluation, other: Evaluation | None) -> bool:
    """Return whether a candidate is better: by loss, suppressed records, height and lexicographic order."""
    if other is None:
        return True
    if not tie(candidate.loss, other.loss):
        return candidate.loss < other.loss
    return (candidate.suppressed, candidate.height, candidate.node) < (
        other.suppressed,
        other.height,
        other.node,
    )


def below(loss: float, incumbent: float) -> bool:
    """Return whether a loss is smaller than the incumbent's by more than a tie."""
    return loss < incumbent - _EQUAL * abs(incumbent) if math.isfinite(incumbent) else loss < incumbent


@overload
def exceeds(loss: float, incumbent: float) -> bool: ...
@overload
def exceeds(loss: FloatArray, incumbent: float) -> BoolArray: ...
def exceeds(loss: float | FloatArray, incumbent: float) -> bool | BoolArray:
    """Return whether a loss is larger than the incumbent's by more than a tie."""
    return loss > incumbent + _EQUAL * abs(incumbent)


def best(evaluations: Iterable[Evaluation]) -> Evaluation | None:
    """Return the best acceptable evaluation."""
    chosen: Evaluation | None = None
    for evaluation in evaluations:
        if evaluation.acceptable and better(evaluation, chosen):
            chosen = evaluation
    return chosen
