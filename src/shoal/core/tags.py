"""Tags: what is known of every node of a lattice, as one array.

In a monotone problem everything above an accepted node is accepted and everything below a refused one
is refused (predictive tagging, El Emam et al. 2009); each is one slice assignment.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import BoolArray
from shoal.core.lattice import Lattice, Node

UNKNOWN, ACCEPTED, REFUSED = 0, 1, 2


class Tags:
    """The known state of each node."""

    def __init__(self, lattice: Lattice) -> None:
        """Begin with every node unknown."""
        self.lattice = lattice
        self.state: NDArray[np.int8] = np.zeros(lattice.shape, np.int8)

    def __getitem__(self, node: Node) -> int:
        """Return what is known of a node."""
        return int(self.state[self.lattice.index(node)])

    def accept(self, node: Node) -> None:
        """Tag a node and everything above it as accepted."""
        self.state[self.lattice.above(node)] = ACCEPTED

    def refuse(self, node: Node) -> None:
        """Tag a node and everything below it as refused."""
        self.state[self.lattice.below(node)] = REFUSED

    @property
    def settled(self) -> int:
        """The number of nodes of which something is known."""
        return int(np.count_nonzero(self.state))

    def minimal(self) -> list[Node]:
        """Return the accepted nodes below which no node is accepted, in lexicographic order."""
        return list(nodes_of(self.lattice, minimal(self.state == ACCEPTED)))


def minimal(members: BoolArray) -> BoolArray:
    """Keep the members of an up-closed set that have no member one step below."""
    kept = members.copy()
    for axis in range(members.ndim):
        rest = (slice(None),) * axis
        kept[(*rest, slice(1, None))] &= ~members[(*rest, slice(None, -1))]
    return kept


def maximal(members: BoolArray) -> BoolArray:
    """Keep the members of a down-closed set that have no member one step above."""
    kept = members.copy()
    for axis in range(members.ndim):
        rest = (slice(None),) * axis
        kept[(*rest, slice(None, -1))] &= ~members[(*rest, slice(1, None))]
    return kept


def nodes_of(lattice: Lattice, members: BoolArray) -> Iterator[Node]:
    """Yield the nodes of a mask, in lexicographic order."""
    for index in np.argwhere(members).tolist():
        yield lattice.node(index)
