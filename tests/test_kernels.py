"""Each kernel equals its plain NumPy twin."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import Case, cases

from shoal.core import cells, kernels
from shoal.core.arrays import IntArray
from shoal.core.batch import BatchCounter
from shoal.core.evaluate import Evaluator

NOBODY = np.empty(0, np.int64)


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


@settings(max_examples=150, deadline=None)
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
        one, sums = kernels.roll_up_word(keys[0], counts, field, groups, NOBODY)
        assert {(k,): c for k, c in zip(one.tolist(), sums.tolist(), strict=True)} == expected


def test_roll_up_tells_many_keys_apart() -> None:
    """Enough rows, of keys that differ in any bit, for keys to meet in the table."""
    random = np.random.default_rng(1)
    pool = random.integers(0, 2**62, (2, 5000))
    keys = np.ascontiguousarray(pool[:, random.integers(0, 5000, 20_000)])
    counts = random.integers(1, 9, 20_000)
    groups = np.arange(16) // 3
    field = np.array([(0, 20, 15, 0)])
    for words in (1, 2):
        found, sums = kernels.roll_up_words(keys[:words], counts, field, groups, NOBODY)
        expected = twin(keys[:words], counts, 0, 20, 15, groups)
        assert dict(zip(map(tuple, found.T.tolist()), sums.tolist(), strict=True)) == expected
    one, sums = kernels.roll_up_word(keys[0], counts, field, groups, NOBODY)
    expected = twin(keys[:1], counts, 0, 20, 15, groups)
    assert {(k,): c for k, c in zip(one.tolist(), sums.tolist(), strict=True)} == expected


@settings(max_examples=100, deadline=None)
@given(cases())
def test_a_batch_equals_every_node_counted_alone(case: Case) -> None:
    problem = case.problem()
    assume(len(problem.counts.keys) == 1)
    evaluate = Evaluator(problem)
    lattice = problem.lattice
    indices = np.array(list(product(*map(range, lattice.shape))))[::-1]
    batches = BatchCounter(problem.counts, problem.hierarchies, lattice, evaluate.walk)
    found = batches.count(indices, case.k)
    for place, index in enumerate(indices):
        sizes = evaluate.classes(lattice.node(index)).sizes
        assert found.short[place] == sizes[sizes < case.k].sum()
        assert found.classes[place] == len(sizes)


@pytest.mark.parametrize("chunk_bits", [1, 3, 11])
@settings(max_examples=60, deadline=None)
@given(case=cases(), data=st.data())
def test_cells_equal_every_node_rolled_up(chunk_bits: int, case: Case, data: st.DataObject) -> None:
    """From any node below, whichever columns are looked up together; a space is left as it was found."""
    problem = case.problem()
    assume(len(problem.counts.keys) == 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "_CHUNK_BITS", chunk_bits)
        counter = cells.Cells(problem.counts, problem.hierarchies)
    for node in list(problem.lattice.nodes())[::-1][:20]:
        lower = tuple(data.draw(st.integers(0, level)) for level in node)
        sizes, short = counter.count(problem.classes(lower).counts, lower, node, case.k)
        expected = problem.classes(node).sizes
        assert sorted(sizes.tolist()) == sorted(expected.tolist())
        assert short == expected[expected < case.k].sum()


def test_cells_refuse_what_they_have_no_room_for() -> None:
    problem = Case(
        rows=[(0, 0), (1, 1), (2, 2)], hierarchies=[{v: [str(v), "*"] for v in range(3)}] * 2,
        sensitive=[0, 0, 0], k=1, l=1, limit=0, metric="height", weights=[1.0, 1.0], low=[0, 0],
        high=[1, 1], same_level=[],
    ).problem()  # fmt: skip
    counter = cells.Cells(problem.counts, problem.hierarchies)
    counter._room = 8
    assert [counter.fits(node) for node in ((0, 0), (1, 0), (1, 1))] == [False, True, True]


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
