"""Evaluation: a node, or another recoding, that was judged, and which of several is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.contracts import Guarantee
from shoal.core.lattice import Node
from shoal.core.recoding import Recoding

_EQUAL = 1e-12  # losses this close, relatively, are a tie


@dataclass(frozen=True)
class Work:
    """What a search cost, independent of the machine."""

    nodes_evaluated: int = 0  # nodes of the full lattice
    nodes_tagged: int = 0  # nodes settled without being evaluated
    nodes_compared: int = 0  # nodes compared on loss
    subset_evaluations: int = 0  # counts over fewer columns
    rows_scanned: int = 0  # combinations read
    node_score: float = 0.0


@dataclass(frozen=True)
class Evaluation:
    """A node, or another recoding, judged; what a search returns also says what was proven and its cost."""

    node: Node  # where there is another recoding: the node that it began with, or none
    acceptable: bool
    suppressed: int  # records; of a refused node at least so many, for a refusal may stop early
    classes: int  # all, before suppression
    loss: float  # infinite where the node is refused
    bound: float  # no node above has a smaller loss
    hopeless: bool = False  # every node below is refused too
    recoding: Recoding | None = field(default=None, compare=False, repr=False)  # where it is no node
    proven: Guarantee = Guarantee.NONE
    candidates: tuple[Node, ...] = ()  # the nodes among which the metric chose
    work: Work = Work()
    lower_bound: float | None = None  # no recoding of this search's kind has a smaller loss

    @property
    def height(self) -> int:
        """The sum of the levels."""
        return sum(self.node)


def tie(one: float, other: float) -> bool:
    """Tell whether two losses are equal."""
    return one == other or abs(one - other) <= _EQUAL * max(abs(one), abs(other))


def better(one: Evaluation, other: Evaluation | None) -> bool:
    """Tell whether one is chosen over the other: loss, suppressed, height, lexicographic order."""
    if other is None:
        return True
    if not tie(one.loss, other.loss):
        return one.loss < other.loss
    return (one.suppressed, one.height, one.node) < (other.suppressed, other.height, other.node)


@overload
def below(loss: float, incumbent: float) -> bool: ...
@overload
def below(loss: FloatArray, incumbent: float) -> BoolArray: ...
def below(loss: Any, incumbent: float) -> Any:
    """Tell which losses are smaller than the incumbent's by more than a tie."""
    return loss < incumbent - _EQUAL * abs(incumbent) if np.isfinite(incumbent) else loss < incumbent


def best(evaluations: Iterable[Evaluation]) -> Evaluation | None:
    """Return the acceptable evaluation that is better than all others."""
    found: Evaluation | None = None
    for evaluation in evaluations:
        if evaluation.acceptable and better(evaluation, found):
            found = evaluation
    return found
