"""The lattice of generalization levels, and tags: the known state of every node, in one array.

In a monotone problem, every node above an accepted node is accepted, and every node below a refused node is
refused (predictive tagging, El Emam et al. 2009). Each rule is one slice assignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.errors import PolicyError, UnknownName
from shoal.wording import match_trimmed

Node = tuple[int, ...]
Index = tuple[int, ...]
MOST_AXES = 64  # maximum number of axes of a NumPy array


@dataclass(frozen=True)
class Lattice:
    """The nodes that the constraints allow, and their order."""

    columns: tuple[str, ...]
    heights: tuple[int, ...]  # the height of each column's hierarchy, without constraints
    axes: tuple[tuple[int, ...], ...]  # per axis: the columns that share its level
    low: tuple[int, ...]  # the lowest level of each axis
    high: tuple[int, ...]  # the highest level of each axis

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of levels on each axis."""
        return tuple(high - low + 1 for low, high in zip(self.low, self.high, strict=True))

    @cached_property
    def size(self) -> int:
        """The number of nodes."""
        return prod(self.shape)

    @property
    def has_array(self) -> bool:
        """Whether a NumPy array can have the shape of the lattice."""
        return len(self.axes) <= MOST_AXES

    @property
    def constrained(self) -> bool:
        """Whether constraints exclude some combination of levels."""
        return any(self.low) or self.high != self.heights or len(self.axes) < len(self.columns)

    @cached_property
    def _axis_of(self) -> tuple[int, ...]:
        owner = {column: axis for axis, members in enumerate(self.axes) for column in members}
        return tuple(owner[column] for column in range(len(self.columns)))

    def node(self, index: Sequence[int]) -> Node:
        """Return the node at an index."""
        return tuple([int(index[axis]) + self.low[axis] for axis in self._axis_of])

    def index(self, node: Node) -> Index:
        """Return the index of a node."""
        return tuple([node[axis[0]] - low for axis, low in zip(self.axes, self.low, strict=True)])

    @property
    def bottom(self) -> Node:
        """The least general node."""
        return self.node([0] * len(self.axes))

    @property
    def top(self) -> Node:
        """The most general node."""
        return self.node([levels - 1 for levels in self.shape])

    def __contains__(self, node: object) -> bool:
        if not isinstance(node, tuple) or len(node) != len(self.columns):
            return False
        inside = all(self.low[a] <= node[c] <= self.high[a] for c, a in enumerate(self._axis_of))
        return inside and self.node(self.index(node)) == node

    def generalizations(self, node: Node) -> list[Node]:
        """Return the nodes one step above."""
        return self._steps(node, 1)

    def specializations(self, node: Node) -> list[Node]:
        """Return the nodes one step below."""
        return self._steps(node, -1)

    def _steps(self, node: Node, step: int) -> list[Node]:
        index = self.index(node)
        nodes = []
        for axis, levels in enumerate(self.shape):
            if 0 <= index[axis] + step < levels:
                nodes.append(self.node([*index[:axis], index[axis] + step, *index[axis + 1 :]]))
        return nodes

    def above(self, node: Node) -> tuple[slice, ...]:
        """Return the slices that select a node and all nodes above it, in an array of the lattice's shape."""
        return tuple([slice(at, None) for at in self.index(node)])

    def below(self, node: Node) -> tuple[slice, ...]:
        """Return the slices that select a node and all nodes below it, in an array of the lattice's shape."""
        return tuple([slice(0, at + 1) for at in self.index(node)])

    def sums(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Return the sum over the columns at every node, in the lattice's shape.

        `parts` has one number per level, for each column.
        """
        total = np.zeros(self.shape)
        for axis, members in enumerate(self.axes):
            for column in members:
                part = parts[column][self.low[axis] : self.high[axis] + 1]
                total += np.reshape(part, [-1 if a == axis else 1 for a in range(len(self.axes))])
        return total

    def heights_of_nodes(self) -> IntArray:
        """Return the height of every node (the sum of its levels), in the lattice's shape."""
        return self.sums([np.arange(height + 1.0) for height in self.heights]).astype(np.int64)

    def nodes(self, order: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield every node; the first axis in `order` changes slowest."""
        order = range(len(self.axes)) if order is None else order
        index = [0] * len(self.axes)
        while True:
            yield self.node(index)
            for axis in reversed(order):
                index[axis] += 1
                if index[axis] < self.shape[axis]:
                    break
                index[axis] = 0
            else:
                return

    def projected(self, axes: Sequence[int]) -> Lattice:
        """Return the lattice of the columns of some axes, in their order."""
        columns = sorted(column for axis in axes for column in self.axes[axis])
        index_of = {column: at for at, column in enumerate(columns)}
        return Lattice(
            columns=tuple(self.columns[column] for column in columns),
            heights=tuple(self.heights[column] for column in columns),
            axes=tuple(tuple(index_of[column] for column in self.axes[axis]) for axis in axes),
            low=tuple(self.low[axis] for axis in axes),
            high=tuple(self.high[axis] for axis in axes),
        )

    def narrowed(self, levels: Mapping[str, int]) -> Lattice:
        """Return the sublattice in which some columns have a fixed level."""
        low, high = list(self.low), list(self.high)
        for key, level in levels.items():
            name = match_trimmed(key, self.columns)
            if name not in self.columns:
                raise UnknownName(name, "quasi-identifier", self.columns)
            axis = self._axis_of[self.columns.index(name)]
            if not low[axis] <= level <= high[axis]:
                raise PolicyError(
                    f"Level {level} of {name!r} is outside {low[axis]}..{high[axis]}. Name one of these."
                )
            low[axis] = high[axis] = level
        return Lattice(self.columns, self.heights, self.axes, tuple(low), tuple(high))


def build(
    heights: Mapping[str, int],
    max_level: Mapping[str, int] | None = None,
    min_level: Mapping[str, int] | None = None,
    same_level: Sequence[Sequence[str]] = (),
) -> Lattice:
    """Build the lattice of some columns under constraints.

    >>> build({"age": 3, "sex": 1}, max_level={"age": 2}).size
    6
    """
    columns = tuple(heights)
    groups = _groups(columns, heights, same_level)
    highest = {c: min(heights[c], (max_level or {}).get(c, heights[c])) for c in columns}
    lowest = {c: (min_level or {}).get(c, 0) for c in columns}
    low = tuple(max(lowest[c] for c in group) for group in groups)
    high = tuple(min(highest[c] for c in group) for group in groups)
    for group, minimum, maximum in zip(groups, low, high, strict=True):
        if minimum > maximum:
            raise PolicyError(
                f"Column {group[0]!r}: min_level {minimum} is above its highest level {maximum}. "
                "Lower min_level or raise max_level."
            )
    axes = tuple(tuple(columns.index(c) for c in group) for group in groups)
    return Lattice(columns, tuple(heights[c] for c in columns), axes, low, high)


def _groups(
    columns: Sequence[str], heights: Mapping[str, int], same_level: Sequence[Sequence[str]]
) -> list[list[str]]:
    owner: dict[str, list[str]] = {}
    for group in same_level:
        for name in group:
            if name not in columns:
                raise UnknownName(name, "quasi-identifier in same_level", columns)
            if name in owner:
                raise PolicyError(
                    f"Column {name!r} appears twice in same_level; a column has one level. Name it once."
                )
            owner[name] = list(group)
        if len({heights[name] for name in group}) > 1:
            heights_text = ", ".join(f"{name!r} has {heights[name]}" for name in group)
            raise PolicyError(
                f"same_level needs hierarchies of one height: {heights_text}. Give them the same levels.",
                field="same_level",
            )
    groups: list[list[str]] = []
    for name in columns:
        group = owner.get(name, [name])
        if group not in groups:
            groups.append(group)
    return groups


UNKNOWN, ACCEPTED, REFUSED = 0, 1, 2


class Tags:
    """The known state of each node."""

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.state: NDArray[np.int8] = np.zeros(lattice.shape, np.int8)

    def __getitem__(self, node: Node) -> int:
        return int(self.state[self.lattice.index(node)])

    def accept(self, node: Node) -> None:
        """Tag a node and everything above it as accepted."""
        self.state[self.lattice.above(node)] = ACCEPTED

    def refuse(self, node: Node) -> None:
        """Tag a node and everything below it as refused."""
        self.state[self.lattice.below(node)] = REFUSED

    @property
    def tagged(self) -> int:
        """The number of nodes whose state is known."""
        return int(np.count_nonzero(self.state))

    def minimal(self) -> list[Node]:
        """Return the accepted nodes below which no node is accepted, in lexicographic order."""
        return list(nodes_of(self.lattice, minimal(self.state == ACCEPTED)))


def minimal(members: BoolArray) -> BoolArray:
    """Keep members without a member one step below; `members` must contain all nodes above a member."""
    kept = members.copy()
    for axis in range(members.ndim):
        leading = (slice(None),) * axis
        kept[(*leading, slice(1, None))] &= ~members[(*leading, slice(None, -1))]
    return kept


def maximal(members: BoolArray) -> BoolArray:
    """Keep the members that have no member one step above."""
    kept = members.copy()
    for axis in range(members.ndim):
        leading = (slice(None),) * axis
        kept[(*leading, slice(None, -1))] &= ~members[(*leading, slice(1, None))]
    return kept


def nodes_of(lattice: Lattice, members: BoolArray) -> Iterator[Node]:
    """Yield the nodes of a mask, in lexicographic order."""
    for index in np.argwhere(members).tolist():
        yield lattice.node(index)
