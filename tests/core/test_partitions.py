"""Roll-ups of many combinations: the same result in partitions, in chunks and on any number of cores."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from problems import Case, cases
from shoal.core.counts import in_memory, partitions
from shoal.core.counts.counts import numbered
from shoal.core.counts.kernels import roll_up_word
from shoal.core.counts.partitions import rolled_up
from shoal.core.evaluator import Evaluator
from shoal.core.lattice import walk
from shoal.core.recoding.lowering import keys_at

NO_INVERSE = np.empty(0, np.int64)


def small_limits(patch: pytest.MonkeyPatch, cores: int, merging: float) -> None:
    """Treat every table as a large one; 0 groups in partitions, above 1 in place."""
    patch.setattr(partitions, "MANY", 1)
    patch.setattr(in_memory, "LARGE", 1)
    patch.setattr(walk, "LARGE", 1)
    patch.setattr(partitions, "_DISTINCT_SHARE", merging)
    patch.setattr(partitions, "cores", lambda: cores)


@pytest.mark.parametrize("merging", [0, 2])
@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(1, 3000),
    values=st.sampled_from([1, 3, 50, 4000]),
    cores=st.integers(1, 5),
)
def test_any_number_of_cores_returns_the_same_arrays(
    merging: float, seed: int, rows: int, values: int, cores: int
) -> None:
    random = np.random.default_rng(seed)
    keys = random.integers(0, values, rows) * int(random.integers(1, 2**40)) & (2**62 - 1)
    counts = random.integers(1, 9, rows)
    groups = random.integers(0, 8, 16)
    field = np.array([(0, int(random.integers(0, 58)), 15, 0)])
    expected_keys, expected = roll_up_word.machine(keys, counts, field, groups, NO_INVERSE)
    results = []
    for used in (1, cores):
        with pytest.MonkeyPatch.context() as patch:
            small_limits(patch, used, merging)
            results.append(rolled_up(keys, counts, field, groups))
    assert all(map(np.array_equal, *results))
    rolled = dict(zip(*map(np.ndarray.tolist, results[0]), strict=True))
    assert len(rolled) == len(results[0][0])
    assert rolled == dict(zip(expected_keys.tolist(), expected.tolist(), strict=True))
    if merging:  # rows stay in place, and their order with them
        assert np.array_equal(results[0][0], expected_keys)


@settings(max_examples=examples(60), deadline=None)
@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=200),
    least=st.integers(0, 60),
    cores=st.integers(1, 4),
)
def test_sums_are_those_of_all_sizes(sizes: list[int], least: int, cores: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_limits(patch, cores, 0)
        squares, short, short_squares = partitions.sums_of_many(np.array(sizes), least)
    small = [size for size in sizes if size < least]
    assert (squares, short) == (sum(size**2 for size in sizes), sum(small))
    assert short_squares == sum(size**2 for size in small)


@pytest.mark.parametrize("merging", [0, 2])
@pytest.mark.parametrize("search", ["contour", "exhaustive"])
@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), cores=st.integers(1, 3))
def test_a_walk_over_large_tables_is_the_same_walk(
    search: str, merging: float, case: Case, cores: int
) -> None:
    """The same node and loss, and the same counters."""
    expected = outcome(case, search)
    with pytest.MonkeyPatch.context() as patch:
        small_limits(patch, cores, merging)
        assert outcome(case, search) == expected


def outcome(case: Case, search: str) -> Any:
    from shoal.algorithms import ALGORITHMS
    from shoal.errors import Infeasible, UsageError

    problem = case.problem()
    try:
        found = ALGORITHMS.create(search).search(problem, Evaluator(problem))
    except (Infeasible, UsageError) as error:
        return type(error)
    return found.node, found.loss, found.suppressed, found.work


@pytest.mark.parametrize("merging", [0, 2])
@settings(max_examples=examples(40), deadline=None)
@given(case=cases())
def test_a_large_table_is_spread_as_a_small_one(merging: float, case: Case) -> None:
    problem = case.problem()
    counts = problem.counts.bare()
    nodes = np.array(list(np.ndindex(*problem.lattice.shape)))

    def spread() -> list[Any]:
        tree = walk.Walk(counts, problem.hierarchies, problem.lattice)
        ordered = nodes[np.lexsort(nodes[:, tree.order[::-1]].T)[::-1]]
        return [part.tolist() for part in vars(tree.spread(ordered, -1, len(case.rows) + 1)).values()]

    expected = spread()
    with pytest.MonkeyPatch.context() as patch:
        small_limits(patch, 2, merging)
        assert spread() == expected


def test_counts_of_many_combinations_are_rolled_up_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    keys = np.unique(random.integers(0, 1 << 12, 3000)).reshape(1, -1)
    fields = tuple(in_memory.layout([4, 4, 4]))
    counts = in_memory.InMemoryCounts(fields, keys, random.integers(1, 5, keys.shape[1]), {})
    groups = {1: np.arange(16) // 4}

    def sizes(rolled: in_memory.InMemoryCounts) -> dict[int, int]:
        return dict(zip(rolled.keys[0].tolist(), rolled.sizes.tolist(), strict=True))

    expected = sizes(counts.roll_up(groups)), sizes(counts.project([2, 0]))
    small_limits(monkeypatch, 2, 0)
    assert (sizes(counts.roll_up(groups)), sizes(counts.project([2, 0]))) == expected


@settings(max_examples=examples(60), deadline=None)
@given(case=cases())
def test_the_classes_of_a_node_are_in_order_of_first_appearance(case: Case) -> None:
    """Local recoding, refine and cells find the class of a combination by its number."""
    problem = case.problem()
    problem = replace(problem, counts=problem.counts.bare())
    with pytest.MonkeyPatch.context() as patch:
        small_limits(patch, 2, 0)
        for node in problem.lattice.nodes():
            levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
            class_of = numbered(keys_at(problem, levels))
            sizes = np.bincount(class_of, problem.counts.sizes)
            assert problem.classes(node).sizes.tolist() == sizes.tolist()


def test_an_error_on_another_core_is_raised() -> None:
    def fail() -> None:
        raise MemoryError

    before = set(threading.enumerate())  # those of other tests may end meanwhile
    with pytest.raises(MemoryError):
        partitions._on_cores([lambda: None, fail])
    assert set(threading.enumerate()) <= before
