"""Each kernel equals its plain NumPy twin."""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys
from copy import deepcopy
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from problems import Case, cases
from shoal.core import compilation
from shoal.core.arrays import IntArray
from shoal.core.compilation import Kernel
from shoal.core.counts import kernels, numpy_kernels
from shoal.core.lattice import walk, walk_kernels

NO_INVERSE = np.empty(0, np.int64)


def twin(
    keys: IntArray, counts: IntArray, word: int, shift: int, mask: int, groups: IntArray
) -> dict[tuple, int]:
    """Roll up with NumPy: rewrite the field, then np.unique."""
    rolled = keys.copy()
    rolled[word] = (rolled[word] & ~(mask << shift)) | (groups[(rolled[word] >> shift) & mask] << shift)
    unique, inverse = np.unique(rolled, axis=1, return_inverse=True)
    sums = np.bincount(inverse.ravel(), counts).astype(np.int64)
    return dict(zip(map(tuple, unique.T.tolist()), sums.tolist(), strict=True))


@st.composite
def packed(draw: st.DrawFn) -> tuple[IntArray, IntArray, int, int, int, IntArray]:
    words = draw(st.integers(1, 3))
    rows = draw(st.integers(1, 60))
    bits = draw(st.integers(1, 4))
    shift = draw(st.integers(0, 58))
    word = draw(st.integers(0, words - 1))
    keys = np.array(
        draw(
            st.lists(
                st.lists(st.integers(0, 31), min_size=rows, max_size=rows), min_size=words, max_size=words
            )
        )
    )
    keys = keys | (keys % (1 << bits)) << shift
    counts = np.array(draw(st.lists(st.integers(1, 9), min_size=rows, max_size=rows)))
    groups = np.array(draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=1 << bits, max_size=1 << bits)))
    return keys.astype(np.int64), counts, word, shift, (1 << bits) - 1, groups


@settings(max_examples=examples(150), deadline=None)
@given(packed())
def test_roll_up_equals_its_twin(given_: tuple) -> None:
    keys, counts, word, shift, mask, groups = given_
    expected = twin(keys, counts, word, shift, mask, groups)
    inverse = np.empty(keys.shape[1], np.int64)
    field = np.array([(word, shift, mask, 0)])
    found, sums = kernels.roll_up_words(keys, counts, field, groups, inverse)
    assert dict(zip(map(tuple, found.T.tolist()), sums.tolist(), strict=True)) == expected
    assert np.array_equal(np.bincount(inverse, counts, found.shape[1]).astype(np.int64), sums)
    if len(keys) == 1:
        one, sums = kernels.roll_up_word(keys[0], counts, field, groups, NO_INVERSE)
        assert {(k,): c for k, c in zip(one.tolist(), sums.tolist(), strict=True)} == expected


@settings(max_examples=examples(150), deadline=None)
@given(packed())
def test_numpy_returns_the_same_arrays_as_the_compiled_kernels(given_: tuple) -> None:
    """Also in the same order, so that sums of rounded numbers are the same."""
    keys, counts, word, shift, mask, groups = given_
    field = np.array([(word, shift, mask, 0)])
    moves = np.array([(word, shift, mask, 0, 3), (0, 0, 1, 1, 0)])
    rolled = [(kernels.roll_up_words, (keys, counts, field, groups))]
    rolled += [(kernels.roll_up_word, (keys[0], counts, field, groups))] * (len(keys) == 1)
    for kernel, arguments in rolled:
        inverses = np.empty((2, keys.shape[1]), np.int64)
        compiled, plain = kernel.machine(*arguments, inverses[0]), kernel.uncompiled(*arguments, inverses[1])
        assert np.array_equal(*inverses)
        assert all(map(np.array_equal, compiled, plain))
    assert np.array_equal(kernels.pack.machine(keys, moves, 2), kernels.pack.uncompiled(keys, moves, 2))
    cells = (keys[word] & 31, counts, 32)
    assert all(
        map(np.array_equal, kernels.add_up_cells.machine(*cells), kernels.add_up_cells.uncompiled(*cells))
    )


def test_roll_up_tells_many_keys_apart() -> None:
    """Enough rows, of keys that differ in any bit, for keys to meet in the table."""
    random = np.random.default_rng(1)
    pool = random.integers(0, 2**62, (2, 5000))
    keys = np.ascontiguousarray(pool[:, random.integers(0, 5000, 20_000)])
    counts = random.integers(1, 9, 20_000)
    groups = np.arange(16) // 3
    field = np.array([(0, 20, 15, 0)])
    for words in (1, 2):
        found, sums = kernels.roll_up_words(keys[:words], counts, field, groups, NO_INVERSE)
        expected = twin(keys[:words], counts, 0, 20, 15, groups)
        assert dict(zip(map(tuple, found.T.tolist()), sums.tolist(), strict=True)) == expected
    one, sums = kernels.roll_up_word(keys[0], counts, field, groups, NO_INVERSE)
    expected = twin(keys[:1], counts, 0, 20, 15, groups)
    assert {(k,): c for k, c in zip(one.tolist(), sums.tolist(), strict=True)} == expected


@pytest.mark.parametrize("room", [1, 1 << 20])
@settings(max_examples=examples(100), deadline=None)
@given(case=cases(), data=st.data())
def test_a_walk_spreads_what_every_node_counted_alone_has(room: int, case: Case, data: st.DataObject) -> None:
    """Also keys of several words, as long as the codes at the lowest levels fit in one."""
    problem = case.problem()
    lattice, counts = problem.lattice, problem.counts.bare()
    wide = data.draw(st.sampled_from([counts, counts.widened([40] * len(counts.fields))]))
    nodes = np.array(list(product(*map(range, lattice.shape))))
    some = nodes[data.draw(st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes)))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "_OUTPUT_SIZE", room)
        patch.setattr(compilation.work, "loaded", data.draw(st.booleans()))
        patch.setattr(compilation.work, "numpy_rows", 0)
        tree = walk.Walk(wide, problem.hierarchies, lattice)
        order = np.lexsort(some[:, tree.order[::-1]].T)[::-1] if len(some) else []
        found = tree.spread(some[order], -1, len(case.rows) + 1)
    assert len(found.classes) == len(some)
    for place, index in enumerate(some[order]):
        sizes = problem.classes(lattice.node(index)).sizes
        here = slice(found.begins[place], found.begins[place + 1])
        expected = {size: int(sizes[sizes == size].sum()) for size in sizes.tolist()}
        assert dict(zip(found.values[here].tolist(), found.records[here].tolist(), strict=True)) == expected
        assert found.classes[place] == len(sizes)


@st.composite
def sensitive_rows(draw: st.DrawFn) -> tuple[IntArray, IntArray, int]:
    """Draw distinct keys of a class and a sensitive code, their records, and the mask of the class."""
    bits, above = draw(st.integers(1, 5)), draw(st.booleans())
    pairs = draw(
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, (1 << bits) - 1)), min_size=1, unique=True)
    )
    codes = (1 << bits) - 1
    keys = np.array([code << 3 | class_ if above else class_ << bits | code for class_, code in pairs])
    counts = draw(st.lists(st.sampled_from([1, 1, 2, 3, 4, 7, 50]), min_size=len(pairs), max_size=len(pairs)))
    return keys, np.array(counts), ~(codes << (3 if above else 0))


def output_of(kept: int, room: int, most: int, *measured: object) -> kernels.Output:
    ends, classes = np.zeros(3, np.int64), np.zeros(2, np.int64)
    return kernels.Output(
        kept, ends, classes, *np.zeros((2, room), np.int64), np.zeros(most, np.int64), *measured
    )


@settings(max_examples=examples(300), deadline=None)
@given(
    given_=sensitive_rows(),
    measured=st.one_of(
        st.just((numpy_kernels.DISTINCT, 0.0, 1)),
        st.tuples(st.just(numpy_kernels.ENTROPY), st.just(0.0), st.sampled_from([1, 20])),
        st.tuples(st.just(numpy_kernels.RECURSIVE), st.sampled_from([0.5, 1.0, 1.5, 3.0]), st.just(1)),
    ),
    bare=st.booleans(),
    most=st.sampled_from([1, 8, 400]),
)
def test_the_spread_of_classes_equals_its_numpy_twin(
    given_: tuple[IntArray, IntArray, int], measured: tuple[int, float, int], bare: bool, most: int
) -> None:
    """By size alone, and by size and each kind of l; of one node after another; also without room."""
    keys, counts, kept = given_
    kept = -1 if bare else kept
    found = []
    for kernel in (kernels.spread_classes.machine, kernels.spread_classes.uncompiled):
        output = output_of(kept, 2 * len(keys), most, *measured)
        slots = np.empty(kernels.table_size.machine(len(keys)), np.int32)
        for node in range(2):
            assert kernel(keys, counts, slots, *np.empty((3, len(keys)), np.int64), output) is True, node
        used = output.ends[2]
        found.append((output.ends, output.classes, output.values[:used], output.records[:used]))
        tight = output_of(kept, int(output.ends[1]) - 1, most, *measured)
        assert not kernel(keys, counts, slots, *np.empty((3, len(keys)), np.int64), tight)
        assert tight.ends[0] == 0
    assert all(map(np.array_equal, *found))


@settings(max_examples=examples(300), deadline=None)
@given(given_=sensitive_rows(), kind=st.sampled_from([0, 1, 2]), c=st.sampled_from([0.5, 1, 2.5, 1e9]))
def test_the_measure_of_diversity_equals_its_numpy_twin(
    given_: tuple[IntArray, IntArray, int], kind: int, c: float
) -> None:
    keys, counts, kept = given_
    rows = np.unique(keys & kept, return_inverse=True)[1]
    for steps in (1, 20) if kind == numpy_kernels.ENTROPY else (1,):
        arguments = rows, counts, np.bincount(rows, counts).astype(np.int64)
        one, other = np.bincount(rows), np.bincount(rows)
        kernels.measure_diversity.machine(*arguments, one, kind, c, steps)
        kernels.measure_diversity.uncompiled(*arguments, other, kind, c, steps)
        assert np.array_equal(one, other)


def outcome(run: Any, arguments: tuple[Any, ...]) -> list[Any]:
    """Return a result, and the arrays that a function was given as it leaves them."""
    copies = deepcopy(arguments)
    result = run(*copies)
    arrays = [field for item in copies for field in (item if isinstance(item, tuple) else [item])]
    return [np.asarray(item).tolist() for item in [result if result is not None else 0, *arrays]]


@cache
def callable_from_python(kernel: Kernel) -> Any:
    from numba import njit

    machine = kernel.machine
    return njit(lambda *arguments: machine(*arguments))


@settings(max_examples=examples(300), deadline=None)
@given(packed(), st.booleans())
def test_rewriting_and_grouping_equal_their_twins(given_: tuple, inverted: bool) -> None:
    """The order of groups alone is free."""
    keys, counts, word, shift, mask, groups = given_
    arguments = keys[word], shift, mask, groups
    assert outcome(kernels.rewrite.machine, arguments) == outcome(kernels.rewrite.uncompiled, arguments)
    found = []
    for run in (kernels.group.machine, kernels.group.uncompiled):
        slots = np.empty(kernels.table_size.machine(len(counts)), np.int32)
        out_keys, out_counts, inverse = np.zeros((3, len(counts)), np.int64)
        distinct = run(keys[word], counts, slots, out_keys, out_counts, inverse if inverted else NO_INVERSE)
        found.append(sorted(zip(out_keys[:distinct].tolist(), out_counts[:distinct].tolist(), strict=True)))
        assert not inverted or np.array_equal(out_keys[inverse], keys[word])
    assert found[0] == found[1]


NUMBERS = st.lists(st.integers(0, 40), min_size=1, max_size=20).map(np.array)


@settings(max_examples=examples(300), deadline=None)
@given(NUMBERS, st.integers(0, 50), st.integers(-64, 63))
def test_small_loops_of_a_walk_equal_their_twins(numbers: IntArray, least: int, kept: int) -> None:
    half = len(numbers) // 2
    for kernel, arguments in [
        (walk_kernels._copy, (numbers, numbers[::-1].copy())),
        (walk_kernels._clear, (numbers, kept, np.empty_like(numbers))),
        (walk_kernels._sums, (numbers, least)),
        (walk_kernels._inherit, (numbers, 0, half, half)),
        *(
            (walk_kernels._first, (np.append(numbers, 1), numbers, depth))
            for depth in {0, half, len(numbers)}
        ),
    ]:
        assert outcome(callable_from_python(kernel), arguments) == outcome(kernel.uncompiled, arguments)


@settings(max_examples=examples(300), deadline=None)
@given(case=cases(), data=st.data())
def test_joins_of_nodes_and_refusals_below_equal_their_twins(case: Case, data: st.DataObject) -> None:
    problem = case.problem()
    tree = walk.Walk(problem.counts, problem.hierarchies, problem.lattice)
    nodes, dice = int(tree.tree.strides[0]), np.random.default_rng(data.draw(st.integers(0, 2**32)))
    state = tree._state(np.zeros(nodes + 1, np.int64))
    state.short[:], state.counted[:] = dice.integers(0, 4, nodes), dice.integers(0, 3, nodes) == 0
    state.values[walk_kernels.LOSS] = data.draw(st.sampled_from([math.inf, 0.0, -1.0, 1.0, 2.0]))
    losses = dice.integers(-2, 4, problem.lattice.shape).astype(float)
    objective = tree.objective(2, data.draw(st.integers(0, 3)), None, losses, skip=True)
    stride = int(data.draw(st.sampled_from(tree.tree.strides.tolist())))
    begin = stride * data.draw(st.integers(0, nodes // stride - 1))
    join = data.draw(st.integers(begin, begin + stride - 1))
    for kernel, arguments in [
        (walk_kernels._join, (tree.tree, objective, state, begin, begin + stride)),
        (walk_kernels._refuse_below, (tree.tree, state, begin, join)),
    ]:
        assert outcome(callable_from_python(kernel), arguments) == outcome(kernel.uncompiled, arguments)


def test_every_kernel_with_a_twin_is_compared_with_it() -> None:
    """A new twin is added to a test of this file, and then to this list."""
    sources = [
        path for path in Path(shoal.__file__).parent.rglob("*.py") if "numpy=" in path.read_text("utf-8")
    ]
    names = [
        ".".join(path.relative_to(Path(shoal.__file__).parents[1]).with_suffix("").parts) for path in sources
    ]
    modules = [importlib.import_module(name) for name in names]
    twins = {
        kernel.py_func.__name__
        for module in modules
        for kernel in vars(module).values()
        if isinstance(kernel, Kernel) and kernel.numpy
    }
    compared = {
        "roll_up_word", "roll_up_words", "pack", "add_up_cells", "spread_classes", "measure_diversity",
        "rewrite", "group", "_copy", "_clear", "_sums", "_inherit", "_first", "_join", "_refuse_below",
    }  # fmt: skip
    assert twins == compared | {"table_size"}  # NumPy needs no hash table


def test_a_kernel_is_compiled_anew_when_another_file_that_it_calls_changes(tmp_path: Path) -> None:
    lines = "from shoal.core.compilation import compiled\n\n@compiled\ndef "
    (tmp_path / "outer.py").write_text(f"from inner import inner\n{lines}outer(x):\n    return inner(x)\n")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": paths}
    told = "import outer; print(outer.outer(1), sum(outer.outer.stats.cache_hits.values()))"
    found = []
    for more in (1, 1, 10):
        (tmp_path / "inner.py").write_text(f"{lines}inner(x):\n    return x + {more}\n")
        os.utime(tmp_path / "inner.py", (more, more))
        run = [sys.executable, "-c", told]
        found.append(
            subprocess.run(run, env=place, capture_output=True, text=True, check=True).stdout.strip()
        )
    assert found == ["2 0", "2 1", "11 0"]


def test_a_cache_that_names_a_type_which_is_gone_is_not_used(tmp_path: Path) -> None:
    """A new version may rename a type in one file and leave the file of the kernel as it was."""
    lines = "from shoal.core.compilation import compiled\nimport pair\n\n@compiled\n"
    (tmp_path / "kernel.py").write_text(f"{lines}def total(x):\n    return x[0] + x[1]\n")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}
    for name in ("Pair", "Couple"):
        (tmp_path / "pair.py").write_text(
            f"from typing import NamedTuple\n\nclass {name}(NamedTuple):\n    a: int\n    b: int\n"
        )
        code = f"import kernel, pair; print(kernel.total(pair.{name}(1, 2)))"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout.strip() == "3", done.stderr
