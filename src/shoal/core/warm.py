"""Compiling the kernels once for a machine, and knowing whether that was done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts import layout
from shoal.core.cut_greedy import Greedy
from shoal.core.cut_ground import Ground
from shoal.core.cut_search import Tree
from shoal.core.held import HeldCounts
from shoal.core.partition import Axis, partition
from shoal.core.suda import suda


def to_compile(words: int) -> list[Callable[[], object]]:
    """Return what compiles the kernels that keys of so many words need and numba's cache does not hold."""
    from shoal.core import cell_kernels, kernels

    needed: list[tuple[Any, Callable[[], object]]] = [(kernels.roll_up_word, _roll_up_word)]
    if words > 1:
        needed.append((kernels.roll_up_words, _roll_up_words))
    else:
        needed.append((cell_kernels.class_sizes, _class_sizes))
    return [compile_one for kernel, compile_one in needed if not _compiled(kernel)]


def to_count_everywhere() -> list[Callable[[], object]]:
    """Return what compiles the kernel that counts every node, where numba's cache does not hold it."""
    from shoal.core import walks

    return [] if _compiled(walks.count_nodes) else [_count_nodes]


def to_tabulate() -> list[Callable[[], object]]:
    """Return what compiles the kernels that tabulate a lattice, look it up, and numba's cache lacks."""
    from shoal.core import kernels, table_kernels, walks

    needed: list[tuple[Any, Callable[[], object]]] = [
        (kernels.roll_up_word, _roll_up_word),
        (walks.spread_nodes, _spread_nodes),
        (table_kernels.first_at_least, _first_at_least),
        (table_kernels.choose, _choose),
    ]
    return [compile_one for kernel, compile_one in needed if not _compiled(kernel)]


def to_project() -> list[Callable[[], object]]:
    """Return what compiles the kernels that count sets of columns and numba's cache does not hold."""
    from shoal.core import kernels

    needed: list[tuple[Any, Callable[[], object]]] = [
        (kernels.pack, lambda: kernels.pack(_zeros(1, 1), _zeros(1, 5), 1)),
        (kernels.add_up_cells, lambda: kernels.add_up_cells(_zeros(1), _zeros(1), 1)),
        (kernels.roll_up_word, _roll_up_word),
    ]
    return [compile_one for kernel, compile_one in needed if not _compiled(kernel)]


def to_partition() -> list[Callable[[], object]]:
    """Return what compiles the kernels that cut regions, where numba's cache does not hold them."""
    from shoal.core import partition_choice, partition_moves

    kernels = (partition_choice.propose, partition_moves.measure, partition_moves.divide)
    return [] if all(map(_compiled, kernels)) else [_partition]


def to_cut() -> list[Callable[[], object]]:
    """Return what compiles the kernels that search over cuts, where numba's cache does not hold them."""
    from shoal.core import cut_nodes, cut_steps, cut_tables

    kernels = (cut_tables.divide, cut_tables.merge, cut_steps.added, cut_steps.removed)
    return [] if all(map(_compiled, (*kernels, cut_nodes.settle))) else [_cut]


def to_find_uniques() -> list[Callable[[], object]]:
    """Return what compiles the kernels that look for special uniques, where numba's cache lacks them."""
    from shoal.core import suda_kernels

    return [] if _compiled(suda_kernels.explore) else [_find_uniques]


def _compiled(kernel: Any) -> bool:
    cache = kernel._cache
    return Path(cache._cache_path, cache._cache_file._index_name).exists()


def _zeros(*shape: int) -> IntArray:
    return np.zeros(shape, np.int64)


def _roll_up_word() -> object:
    from shoal.core import kernels

    return kernels.roll_up_word(_zeros(1), _zeros(1), _zeros(1, 4), _zeros(1), _zeros(0))


def _roll_up_words() -> object:
    from shoal.core import kernels

    return kernels.roll_up_words(_zeros(2, 1), _zeros(1), _zeros(1, 4), _zeros(1), _zeros(0))


def _class_sizes() -> object:
    from shoal.core import cell_kernels

    tables = (_zeros(1, 2), _zeros(1, 1), _zeros(1, 1, 1), _zeros(1), np.zeros((4, 4), np.int64))
    return cell_kernels.class_sizes(
        _zeros(1), _zeros(1), _zeros(1), _zeros(1), *tables, 1, *[_zeros(4) for _ in range(4)]
    )


def _count_nodes() -> object:
    from shoal.core import walks

    tables = (_zeros(1, 3), _zeros(1, 1, 1), _zeros(1))
    space = (_zeros(4, 1), _zeros(3, 1), np.zeros(16, np.int32))
    return walks.count_nodes(_zeros(1), _zeros(1), _zeros(1, 1), *tables, 1, *space)


def _partition() -> object:
    """Cut a region of four records in two, which calls every kernel."""
    places = np.arange(4)
    counts = HeldCounts(layout([2]), places.reshape(1, -1), np.ones(4, np.int64), {})
    axis = Axis(places, np.arange(4.0))
    return partition(counts, [axis], None, 1, choose="width", relaxed=False)


def _find_uniques() -> object:
    """Look for the uniques of two records of two columns."""
    return suda(HeldCounts(layout([1, 1]), np.array([[0, 3]]), np.ones(2, np.int64), {}))


def _cut() -> object:
    """Search over the cuts of four records, which calls every kernel."""
    codes = np.arange(4, dtype=np.int32).reshape(1, -1)
    sizes, labels = np.ones(4, np.int64), _zeros(4, 0)
    ground = Ground((), np.array([0, 3]), np.arange(1, 4), codes, sizes, labels, 2, 0, minority=False)
    greedy = Greedy(ground, lambda: None)
    greedy.from_starts(1, 0)
    tree = Tree(ground, greedy.best)
    tree.search(lambda: None)
    return tree


def _first_at_least() -> object:
    from shoal.core import table_kernels

    begins, values = _zeros(2), np.zeros(1, np.uint16)
    begins.flags.writeable = values.flags.writeable = False  # as a table's are
    return table_kernels.first_at_least(begins, values, 1)


def _choose() -> object:
    from shoal.core import table_kernels

    levels, numbers = np.zeros((1, 1), np.int16), _zeros(1)
    numbers.flags.writeable = False  # as a profile's are
    return table_kernels.choose(levels, _zeros(1), _zeros(1), _zeros(1), numbers, _zeros(1), _zeros(1), 0)


def _spread_nodes() -> object:
    from shoal.core import walks

    tables = (_zeros(1, 3), _zeros(1, 1, 1), _zeros(1))
    space = (_zeros(4, 1), _zeros(3, 1), np.zeros(16, np.int32))
    return walks.spread_nodes(
        _zeros(1), _zeros(1), _zeros(1, 1), *tables, -1, *space, *map(_zeros, (2, 2, 2))
    )
