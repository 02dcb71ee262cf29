"""Lowering: levels go down class by class, every model holds, and nobody loses."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import adult
import oracle
from example_counts import examples
from problems import POPULATION, Case, combination_of, larger, starts
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.lowering import lower_levels
from shoal.core.recoding.refine import refined
from shoal.errors import OutOfTime


def nothing() -> None:
    """Time is never up."""


def shown(case: Case, row: tuple[int, ...], levels: Any) -> tuple[Any, ...]:
    return tuple((int(v), case.hierarchies[c][row[c]][v]) for c, v in enumerate(levels))


def kept_classes(case: Case, of: list[int], levels: Any, gone: Any) -> dict[Any, list[int]]:
    found = defaultdict(list)
    for position, row in enumerate(case.rows):
        if not gone[of[position]]:
            found[shown(case, row, levels[:, of[position]])].append(position)
    return found


def losses(case: Case, of: list[int], levels: Any, gone: Any) -> tuple[float, float]:
    """Coverage and entropy, record by record; a suppressed record has lost everything."""
    coverage = entropy = 0.0
    for column, weight in enumerate(case.weights):
        tree, counts = case.hierarchies[column], Counter(row[column] for row in case.rows)
        for position, row in enumerate(case.rows):
            level = levels[column][of[position]]
            lost = gone[of[position]]
            group = [v for v in counts if lost or tree[v][level] == tree[row[column]][level]]
            if lost:
                coverage += weight
            elif len(counts) > 1:
                coverage += weight * (len(group) - 1) / (len(counts) - 1)
            entropy -= weight * math.log2(counts[row[column]] / sum(counts[v] for v in group))
    return coverage, entropy


@settings(deadline=None, max_examples=examples(300))
@given(start=starts())
def test_every_class_passes_every_model(start: Any) -> None:
    case, problem, node = start
    of = combination_of(case, problem)
    levels, gone = lower_levels(problem, node, check=nothing)
    found = kept_classes(case, of, levels, gone)
    extra = case.extra()
    for labels, positions in found.items():
        assert not oracle.violates(labels, positions, case.k, case.l, case.sensitive, extra)
    at, before = np.repeat(np.array(node)[:, None], len(gone), 1), flagged(case, problem, of, node)
    assert not (gone & ~before).any()
    held = kept_classes(case, of, at, before)
    names = [
        (name, options) for name, options in case.models if name in ("average-risk", "sample-uniqueness")
    ]
    if held and all(oracle.holds(name, options, held, 0, extra) for name, options in names):
        assert all(oracle.holds(name, options, found, 0, extra) for name, options in names)


def flagged(case: Case, problem: Problem, of: list[int], node: tuple[int, ...]) -> Any:
    found = np.zeros(len(problem.counts), np.bool_)
    for labels, positions in oracle.classes(case.rows, case.hierarchies, node).items():
        if oracle.violates(labels, positions, case.k, case.l, case.sensitive, case.extra()):
            found[[of[p] for p in positions]] = True
    return found


@settings(deadline=None, max_examples=examples(200))
@given(start=starts())
def test_no_loss_rises_and_constraints_hold(start: Any) -> None:
    case, problem, node = start
    of = combination_of(case, problem)
    levels, gone = lower_levels(problem, node, check=nothing)
    at, before = np.repeat(np.array(node)[:, None], len(gone), 1), flagged(case, problem, of, node)
    pairs = zip(losses(case, of, levels, gone), losses(case, of, at, before), strict=True)
    assert all(now <= then + 1e-9 for now, then in pairs)
    assert (levels[:, ~before] <= at[:, ~before]).all()
    lattice = problem.lattice
    for members, low, high in zip(lattice.axes, lattice.low, lattice.high, strict=True):
        for column in members:
            assert (levels[column] >= low).all()
            assert (levels[column] <= high).all()
        if len(members) > 1:  # columns that share their level are as they were, or at the top
            assert (levels[list(members)] == levels[members[0]]).all()
            assert (levels[members[0]][~before] == node[members[0]]).all()


@settings(deadline=None, max_examples=examples(200))
@given(start=starts(models=None))
def test_it_does_what_the_naive_one_does(start: Any) -> None:
    case, problem, node = start
    levels, gone = lower_levels(problem, node, check=nothing)
    expected, lost = naive(case, problem, node)
    assert levels.T.tolist() == expected
    assert gone.tolist() == lost


@pytest.mark.parametrize("seed", range(6))
def test_larger_tables_go_down_as_the_naive_one_does(seed: int) -> None:
    case = larger(seed, "coverage")
    case.rows, case.sensitive = case.rows[:200], case.sensitive[:200]
    case.k = 3
    problem = case.problem()
    for node in (problem.lattice.top, problem.lattice.node([n // 2 for n in problem.lattice.shape])):
        levels, gone = lower_levels(problem, node, check=nothing)
        expected, lost = naive(case, problem, node)
        assert levels.T.tolist() == expected
        assert gone.tolist() == lost


def naive(case: Case, problem: Problem, node: tuple[int, ...]) -> tuple[list[list[int]], list[bool]]:
    """Lower levels with dicts and lists; models are k and distinct l, so a class that grew still passes."""
    of = combination_of(case, problem)
    rows = {i: [p for p, other in enumerate(of) if other == i] for i in range(len(problem.counts))}
    value = {i: case.rows[positions[0]] for i, positions in rows.items()}
    present = [{row[c] for row in case.rows} for c in range(len(node))]

    def passes(members: list[int]) -> bool:
        positions = [p for i in members for p in rows[i]]
        return not oracle.violates(None, positions, case.k, case.l, case.sensitive)

    def share(column: int, level: int, i: int) -> float:
        tree = case.hierarchies[column]
        alike = [v for v in present[column] if tree[v][level] == tree[value[i][column]][level]]
        return (len(alike) - 1) / max(1, len(present[column]) - 1)

    def regions() -> list[list[int]]:
        found = defaultdict(list)
        for i, at in levels.items():
            if not lost[i]:
                found[shown(case, value[i], at)].append(i)
        return list(found.values())

    levels = {i: list(node) for i in rows}
    lost = flagged(case, problem, of, node).tolist()
    first = list(lost)
    raised = defaultdict(list)
    for i in rows:
        if first[i]:
            raised[shown(case, value[i], problem.lattice.top)].append(i)
    for members in raised.values():
        if passes(members):
            for i in members:
                levels[i], lost[i] = list(problem.lattice.top), False
    while True:
        moves = []
        for members in regions():
            best, chosen = 0.0, None
            for axis, low in zip(problem.lattice.axes, problem.lattice.low, strict=True):
                column, level = axis[0], levels[members[0]][axis[0]]
                if len(axis) > 1 or level <= low:
                    continue
                children = defaultdict(list)
                for i in members:
                    children[case.hierarchies[column][value[i][column]][level - 1]].append(i)
                size = {g: sum(len(rows[i]) for i in c) for g, c in children.items()}
                leave = [g for g, c in children.items() if passes(c)]
                behind = [i for g, c in children.items() if g not in leave for i in c]
                order = list(problem.hierarchies[column].labels[level - 1])
                while leave and behind and not passes(behind):
                    smallest = min(leave, key=lambda g: (size[g], order.index(g)))
                    leave.remove(smallest)
                    behind += children[smallest]
                gain = 0.0
                for g in children:
                    if g in leave:
                        i = children[g][0]
                        fall = share(column, level, i) - share(column, level - 1, i)
                        gain += case.weights[column] * size[g] * fall
                gain += 1e-9 * bool(leave)
                if gain > best:
                    best, chosen = gain, [(i, column) for g in leave for i in children[g]]
            moves += chosen or []
        if not moves:
            return [levels[i] for i in rows], lost
        before = {i: number for number, members in enumerate(regions()) for i in members}
        for i, column in moves:
            levels[i][column] -= 1
        assert all(len({before[i] for i in members}) == 1 for members in regions())  # none met again


@settings(deadline=None, max_examples=examples(50))
@given(start=starts(), random=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(start: Any, random: Any) -> None:
    case, problem, node = start
    order = list(range(len(case.rows)))
    random.shuffle(order)
    for one, other in zip(
        lower_levels(problem, node, check=nothing),
        lower_levels(case.problem(order), node, check=nothing),
        strict=True,
    ):
        assert np.array_equal(one, other)


@settings(deadline=None, max_examples=examples(30))
@given(start=starts(models=POPULATION))
def test_a_population_leaves_the_node_as_it_is(start: Any) -> None:
    case, problem, node = start
    if case.population is None:
        return
    levels, gone = lower_levels(problem, node, check=nothing)
    classes = problem.classes(node)
    assert (levels == np.array(node)[:, None]).all()
    assert problem.counts.sizes[gone].sum() == classes.sizes[problem.violations(classes)].sum()


def test_what_the_whole_table_must_be_stops_it() -> None:
    case = flat([(value,) for value in (0, 0, 1, 1)])
    case.models = [("average-risk", {"risk": 0.3})]  # one class of four passes, two of two do not
    levels, gone = lower_levels(case.problem(), (1,), check=nothing)
    assert (levels == 1).all()
    assert not gone.any()
    case.models = [("average-risk", {"risk": 0.5})]
    assert (lower_levels(case.problem(), (1,), check=nothing)[0] == 0).all()


def flat(rows: list[tuple[int, ...]]) -> Case:
    columns = len(rows[0])
    trees = [{v: [str(v), "*"] for v in {row[c] for row in rows}} for c in range(columns)]
    return Case(
        rows=rows, hierarchies=trees, sensitive=[], k=2, l=1, limit=0, metric="coverage",
        weights=[1.0] * columns, low=[0] * columns, high=[1] * columns, same_level=[],
    )  # fmt: skip


@settings(deadline=None, max_examples=examples(150))
@given(start=starts())
def test_one_node_is_reported_as_a_node(start: Any) -> None:
    """The result is a node exactly if one node releases the same labels of the same records."""
    case, problem, node = start
    evaluate = Evaluator(problem)
    at_node = evaluate(node)
    assume(at_node.acceptable)
    found = refined(evaluate, at_node)
    assert found.loss <= at_node.loss + 1e-12 * abs(at_node.loss)
    if found.recoding is None:
        assert found.node in problem.lattice
        same = Evaluator(problem)(found.node)
        assert (found.suppressed, found.loss) == (same.suppressed, same.loss)
        if found.node == node:
            assert found.proven == at_node.proven
        return
    of, regions = combination_of(case, problem), found.recoding.regions
    gone = regions.suppressed[regions.classes]
    columns = zip(found.recoding.column_groups, regions.groups, strict=True)
    levels = np.array([groups.levels[codes[regions.classes]] for groups, codes in columns])
    kept = {tuple(levels[:, row].tolist()) for row in range(levels.shape[1]) if not gone[row]}
    for one in kept if len(kept) == 1 else ():
        at_one = {shown(case, row, one): [] for row in case.rows}
        for position, row in enumerate(case.rows):
            at_one[shown(case, row, one)].append(bool(gone[of[position]]))
        mixed = any(len(set(flags)) > 1 for flags in at_one.values())
        same = Evaluator(problem)(one) if one in problem.lattice else None
        assert mixed or same is None or not same.acceptable or same.suppressed != found.suppressed


def test_time_can_run_out() -> None:
    def up() -> None:
        raise OutOfTime

    case = flat([(0,), (0,), (1,), (1,)])
    with pytest.raises(OutOfTime):
        lower_levels(case.problem(), (1,), check=up)
    assert lower_levels(case.problem(), (1,), check=nothing)[0].tolist() == [[0, 0]]


@adult.needs_adult
@pytest.mark.parametrize(
    ("limit", "expected", "classes"), [("100%", 0.06988970436216418, 3784), ("5%", 0.06968376418070293, 3778)]
)
def test_adult_goes_down_to_a_third_of_the_loss(limit: str, expected: float, classes: int) -> None:
    from shoal.algorithms import ALGORITHMS

    problem = adult.problem(metric="coverage", suppression_limit=limit)
    node = ALGORITHMS.create("contour").search(problem, Evaluator(problem)).node
    levels, gone = lower_levels(problem, node, check=nothing)
    assert not gone.any()
    counts = problem.counts
    groups = np.stack(
        [np.stack([h.groups(v) for v in range(h.height + 1)])[levels[c], counts.codes(c)]
         for c, h in enumerate(problem.hierarchies)]
    )  # fmt: skip
    _, of = np.unique(np.concatenate((groups, levels)), axis=1, return_inverse=True)
    sizes = np.bincount(of.ravel(), counts.sizes)
    assert (len(sizes), sizes.min()) == (classes, 5)
    total = 0.0
    for c, h in enumerate(problem.hierarchies):
        leaves = np.array([h.leaves[v][g] for v, g in zip(levels[c], groups[c], strict=True)])
        total += (counts.sizes * (leaves - 1) / (h.size - 1)).sum()
    assert total / counts.records / len(levels) == pytest.approx(expected, rel=1e-12)
