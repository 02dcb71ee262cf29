"""Refuse many nodes at once through their joins, if the loss of every node without suppression is known.

A node is *open* if it is neither evaluated nor refused, and its loss does not exceed the best. Every open
node is a maximal open node or below one. The *join* of some nodes is the lowest node above all of them. If
the join of a group of maximal open nodes is refused, these nodes and all nodes below are refused. Otherwise
the group is split.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.evaluation import Evaluation, exceeds
from shoal.core.evaluator import Evaluator
from shoal.core.lattice.lattice import Index, maximal
from shoal.core.problem import Problem


class OpenNodes:
    """The open nodes of a lattice."""

    def __init__(self, problem: Problem, evaluate: Evaluator) -> None:
        self.evaluate, self.lattice = evaluate, problem.lattice
        self.losses: FloatArray = problem.losses()  # without suppression
        self.closed: BoolArray = np.zeros(self.lattice.shape, np.bool_)  # evaluated or refused
        self.passed: BoolArray = np.zeros(self.lattice.shape, np.bool_)  # does not refuse all below
        # The loss by axis and level, with the other axes at the bottom:
        bottom = (0,) * (self.losses.ndim - 1)
        axes = range(self.losses.ndim)
        self.parts = [np.moveaxis(self.losses, axis, -1)[bottom].tolist() for axis in axes]

    def search(self) -> None:
        """Close all open nodes."""
        self.descend(self.lattice.index(self.lattice.top))
        while (nodes := ~self.closed & ~exceeds(self.losses, self.evaluate.best_loss)).any():
            self.refuse(np.argwhere(maximal(nodes)))

    def is_open(self, index: Index) -> bool:
        return not self.closed[index] and not exceeds(float(self.losses[index]), self.evaluate.best_loss)

    def descend(self, index: Index) -> None:
        """Go down from an acceptable node while an open node one step below is acceptable."""
        while True:
            below = self.lattice.specializations(self.lattice.node(index))
            lower = [self.lattice.index(node) for node in below]
            lower.sort(key=lambda at: self.losses[at])
            better = next((at for at in lower if self.is_open(at) and self.close(at).acceptable), None)
            if better is None:
                return
            index = better

    def close(self, index: Index) -> Evaluation:
        """Evaluate a node and close it; if it refuses all nodes below, close these, too."""
        node = self.lattice.node(index)
        evaluation = self.evaluate(node)
        if evaluation.refuses_below:
            self.closed[self.lattice.below(node)] = True
        else:
            self.closed[index] = True
            self.passed[self.lattice.above(node)] = True
        return evaluation

    def refuse(self, points: IntArray) -> None:
        """Close `points`, (nodes, axes), in groups. Stop at an acceptable node, because it closes others."""
        groups = [points]
        while groups:
            group = groups.pop()
            join = tuple(group.max(axis=0).tolist())
            if len(group) > 1 and self.passed[join]:
                groups += self.split(group)
                continue
            evaluation = self.close(join)
            if len(group) > 1 and not evaluation.refuses_below:
                groups += self.split(group)
            elif len(group) == 1 and evaluation.acceptable:
                return self.descend(join)

    def split(self, group: IntArray) -> list[IntArray]:
        """Split nodes at the axis with the largest difference in loss, and there at the largest step."""
        low, high = group.min(axis=0).tolist(), group.max(axis=0).tolist()
        axes = [axis for axis in range(len(low)) if low[axis] < high[axis]]
        axis = max(axes, key=lambda axis: self.parts[axis][high[axis]] - self.parts[axis][low[axis]])
        part = self.parts[axis]
        cut = max(range(low[axis], high[axis]), key=lambda level: part[level + 1] - part[level])
        is_below_cut = group[:, axis] <= cut
        return [group[~is_below_cut], group[is_below_cut]]
