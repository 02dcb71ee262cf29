"""An estimate of the loss of every node, learned from the nodes evaluated so far.

The logarithm of the loss is taken as a sum of one number per axis and level, fitted by least squares to
what was measured, with most weight near the loss in question. It guides a search and proves nothing.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.lattice import Index, Lattice

_SMALLEST = 1e-300  # a loss of 0 has a logarithm too
_CLOSE, _FAR = 2.0, 1e-3  # twice the squared distance that still counts; the weight of all others
_SHRINK = 0.003  # how strongly the fit is held to what was expected beforehand
_PRIOR = 0.5  # nats by which the loss grows for each bit that an axis loses


class Estimate:
    """What the losses seen so far say of all nodes."""

    def __init__(self, lattice: Lattice, retained: FloatArray) -> None:
        """Begin with the bits that each axis retains at each level, (axes, levels)."""
        self.shape = lattice.shape
        self.starts = np.cumsum([0, *lattice.shape[:-1]])
        parts = [retained[axis, 0] - retained[axis, :levels] for axis, levels in enumerate(self.shape)]
        self.expected = _PRIOR * np.concatenate(parts)
        self.indices: list[Index] = []
        self.values: list[float] = []

    def learn(self, index: Index, loss: float) -> None:
        """Note the loss of a node."""
        self.indices.append(index)
        self.values.append(float(np.log(max(loss, _SMALLEST))))

    def losses(self, near: float) -> FloatArray:
        """Return every node's loss as estimated, best near the loss given; it never falls going up."""
        seen = np.zeros((len(self.values), len(self.expected)))
        seen[np.arange(len(seen))[:, None], np.array(self.indices) + self.starts] = 1
        values = np.array(self.values)
        weight = np.exp(-((values - np.log(max(near, _SMALLEST))) ** 2) / _CLOSE) + _FAR
        rest = values - seen @ self.expected
        middle = float(np.average(rest, weights=weight))
        weighted = seen * weight[:, None]
        normal = seen.T @ weighted + _SHRINK * np.eye(len(self.expected))
        parts = self.expected + np.linalg.solve(normal, weighted.T @ (rest - middle))
        total = np.full(self.shape, middle)
        for axis, levels in enumerate(self.shape):
            part = np.maximum.accumulate(parts[self.starts[axis] : self.starts[axis] + levels])
            total += part.reshape([-1 if a == axis else 1 for a in range(len(self.shape))])
        losses: FloatArray = np.exp(np.minimum(total, 700))
        return losses
