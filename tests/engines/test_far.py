"""Counts that stay in an engine: the same answers as in memory, whatever of them fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from problems import Case, cases
from shoal.algorithms import ALGORITHMS
from shoal.core import memory
from shoal.core.arrays import IntArray
from shoal.core.counts import remote as far
from shoal.core.counts.counts import Counts, layout
from shoal.core.counts.remote import RemoteCounts, Store
from shoal.core.counts.subsets import Source
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.engines.duckdb.engine import DuckDb
from shoal.engines.relational import relations
from shoal.engines.relational.key_table import KeyTable
from shoal.errors import CannotHonour, DataError, Infeasible
from shoal.sample import bundled
from shoal.workflow.profile.tabulate import Tabulation
from shoal.workflow.search import search

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

FAR = [name for name in ALGORITHMS if ALGORITHMS.load(name).supports_remote]


class Listed(Store):
    """A store that is a list of rows: codes of every field, and records."""

    def __init__(self, counts: Counts) -> None:
        widths = [field.mask.bit_length() for field in counts.fields]
        columns = [counts.codes(column)[:, None] for column in range(len(counts.fields))]
        self.rows: dict[tuple[int, ...], int] = {}
        if counts.sensitive:
            self._spread_over(counts, np.concatenate(columns, axis=1))
            widths += [entries.bits for entries in counts.sensitive.values()]
        else:
            for row, size in zip(
                np.concatenate(columns, axis=1).tolist(), counts.sizes.tolist(), strict=True
            ):
                self.rows[tuple(row)] = size
        self.fields = layout(widths)
        self.sizes = tuple(1 << bits for bits in widths)
        self.combinations = len(self.rows)
        self.records = counts.records
        self.queries = self.samples = 0

    def _spread_over(self, counts: Counts, codes: IntArray) -> None:
        """Pair the sensitive values of each combination in any way: only their counts are known."""
        lists: list[list[list[int]]] = []
        for entries in counts.sensitive.values():
            own: list[list[int]] = [[] for _ in range(len(counts))]
            for row, code, number in zip(entries.rows, entries.codes, entries.counts, strict=True):
                own[row] += [int(code)] * int(number)
            lists.append(own)
        for row, quasi in enumerate(codes.tolist()):
            for beside in zip(*(own[row] for own in lists), strict=True):
                key = (*quasi, *beside)
                self.rows[key] = self.rows.get(key, 0) + 1

    def _groups(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> dict[tuple[int, ...], int]:
        self.queries += 1
        found: dict[tuple[int, ...], int] = {}
        for row, size in self.rows.items():
            key = tuple(int(maps[place][row[place]]) if place in maps else row[place] for place in kept)
            found[key] = found.get(key, 0) + size
        return found

    def grouped(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        return self._packed(self._groups(maps, kept), kept)

    def _packed(self, found: Mapping[tuple[int, ...], int], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        fields = layout([self.fields[place].mask.bit_length() for place in kept])
        keys = np.zeros((fields[-1].word + 1, len(found)), np.int64)
        for column, at in enumerate(fields):
            keys[at.word] |= np.array([key[column] for key in found], np.int64) << at.shift
        return keys, np.array(list(found.values()), np.int64)

    def size_counts(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        sizes = np.array(list(self._groups(maps, kept).values()), np.int64)
        return np.unique(sizes, return_counts=True)

    def distinct_counts(
        self, maps: Mapping[int, IntArray], kept: Sequence[int], beside: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        classes: dict[tuple[int, ...], tuple[set[int], int]] = {}
        for key, size in self._groups(maps, [*kept, beside]).items():
            codes, records = classes.setdefault(key[:-1], (set(), 0))
            classes[key[:-1]] = (codes | {key[-1]}, records + size)
        values = sorted({len(codes) for codes, _ in classes.values()})
        own = [[records for codes, records in classes.values() if len(codes) == value] for value in values]
        return np.array(values), np.array([sum(part) for part in own]), np.array([len(part) for part in own])

    def sample(self, step: int, kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        self.samples += 1
        return self.grouped({}, kept)


def far_problem(problem: Problem) -> tuple[Problem, Listed]:
    counts = problem.counts
    store = Listed(counts)
    quasi = len(counts.fields)
    places = {name: quasi + place for place, name in enumerate(counts.sensitive)}
    return replace(problem, counts=RemoteCounts(store, places, 0, range(quasi))), store


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let so many combinations fit, and no more."""
    most = [10]
    for module in (far, relations, memory):
        monkeypatch.setattr(module, "fits", lambda combinations, words, limit: combinations <= most[0])
    return most


def outcome(problem: Problem, name: str) -> Any:
    """What a search makes of a problem; in memory contour walks a tree of levels, and counts other nodes."""
    try:
        _, found = search(problem, ALGORITHMS.create(name))
    except (Infeasible, CannotHonour) as error:
        return type(error), str(error)
    return (
        found.node,
        found.suppressed,
        found.loss,
        found.proven,
        found.candidates,
        None if name == "contour" else found.work.nodes_evaluated,
    )


@pytest.mark.parametrize("name", FAR)
@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=cases(), most=st.sampled_from([25, 60]))
def test_searches_answer_as_in_memory(name: str, few: list[int], case: Case, most: int) -> None:
    """Every class of a node may have to come here, so that all of them fit; that of the bottom need not."""
    assume(case.population is None)
    few[0] = most
    problem = case.problem()
    there, _ = far_problem(problem)
    assert outcome(there, name) == outcome(problem, name)


@settings(
    max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=cases(models=None))
def test_sizes_alone_are_judged_though_nothing_fits(few: list[int], case: Case) -> None:
    few[0] = 0
    case = replace(case, l=1, labels=[], metric="precision")
    problem = case.problem()
    there, _ = far_problem(problem)
    here, far_away = Evaluator(problem), Evaluator(there)
    for node in problem.lattice.nodes():
        one, other = here(node), far_away(node)
        assert (one.acceptable, one.loss, one.bound) == (other.acceptable, other.loss, other.bound)
        assert not one.acceptable or (one.suppressed, one.classes) == (other.suppressed, other.classes)


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=cases(models=None), most=st.sampled_from([0, 4, 12]), name=st.sampled_from([None, "l"]))
def test_a_tabulation_is_the_same(few: list[int], case: Case, most: int, name: str | None) -> None:
    few[0] = most
    problem = replace(case, l=2, labels=[]).problem()
    there, _ = far_problem(problem)
    tables = []
    for own in (problem, there):
        tabulation = Tabulation(own.counts, own.hierarchies, own.lattice, ["l"], own.memory)
        for _ in tabulation.slices():
            pass
        numbers, found = tabulation.tables()
        table = found[name].select(np.argsort(numbers))
        tables.append(
            [table.begins.tolist(), table.values.tolist(), table.below.tolist(), table.classes.tolist()]
        )
    assert tables[0] == tables[1]


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=cases(models=None), data=st.data(), most=st.sampled_from([0, 4, 12]))
def test_sets_of_columns_are_the_same(few: list[int], case: Case, data: st.DataObject, most: int) -> None:
    few[0] = most
    problem = replace(case, l=1, labels=[]).problem()
    there, _ = far_problem(problem)
    every = tuple(range(len(problem.hierarchies)))
    chosen = tuple(sorted(data.draw(st.sets(st.sampled_from(every), min_size=1))))
    curves = [Source(own.counts, every).onto(chosen).curve() for own in (problem, there)]
    assert curves[0].measures.tolist() == curves[1].measures.tolist()
    assert curves[0].below.tolist() == curves[1].below.tolist()


def test_what_is_held_serves_the_nodes_above(few: list[int]) -> None:
    """Once classes fit, the nodes above them cost no query."""
    rows = [(a, b, a % 3) for a in range(20) for b in range(20)]
    top = ["g0", "g1"]
    tree = {v: [str(v), top[v % 2], "*"] for v in range(20)}
    case = Case(
        rows=rows, hierarchies=[tree, tree, {v: [str(v), "*"] for v in range(3)}], sensitive=[],
        k=2, l=1, limit=0, metric="precision", weights=[1.0] * 3, low=[0] * 3, high=[2, 2, 1], same_level=[],
    )  # fmt: skip
    few[0] = 50
    there, store = far_problem(case.problem())
    evaluate = Evaluator(there)
    nodes = sorted(there.lattice.nodes(), key=sum)
    for node in nodes:
        evaluate(node)
    assert evaluate.nodes_evaluated == len(nodes) == 18
    assert store.queries < 3 * len(nodes)
    assert store.samples == 1


# A real backend


def coded(rows: int, seed: int) -> pa.Table:
    draw = np.random.default_rng(seed)
    sizes = {"a": 5, "b": 40, "c": 3, "d": 300, "e": 7, "f": 2, "s": 4}
    return pa.table({name: draw.integers(0, size, rows) for name, size in sizes.items()})


def wide(rows: int) -> pa.Table:
    draw = np.random.default_rng(9)
    return pa.table({name: draw.permutation(rows) for name in "abcdef"} | {"s": np.arange(rows) % 4})


@pytest.mark.parametrize("table", [coded(3000, 1), wide(1500)], ids=["one word", "two words"])
def test_a_table_of_keys_answers_as_a_list_does(few: list[int], table: pa.Table) -> None:
    names = list("abcdef")
    few[0] = 10**9
    engine = DuckDb()
    held, domains = engine.count(engine.open(table), names, ["s"])
    few[0] = 100
    there, _ = engine.count(engine.open(table), names, ["s"])
    assert isinstance(there, RemoteCounts)
    assert isinstance(there.store, KeyTable)
    listed = Listed(held)
    assert (there.store.combinations, there.store.records) == (listed.combinations, len(table))
    draw = np.random.default_rng(4)
    for _ in range(30):
        kept = sorted(draw.choice(7, draw.integers(1, 8), replace=False).tolist())
        draw.shuffle(kept)
        maps = {}
        for place in kept:
            codes = len(domains[[*names, "s"][place]])
            kind = draw.integers(0, 4)
            if kind:
                groups = np.arange(codes) // (1 << kind) if kind < 3 else np.zeros(codes, np.int64)
                maps[place] = groups
        assert sorted_pairs(there.store.grouped(maps, kept)) == sorted_pairs(listed.grouped(maps, kept))
        one, other = there.store.size_counts(maps, kept), listed.size_counts(maps, kept)
        assert [part.tolist() for part in one] == [part.tolist() for part in other]
        beside, rest = kept[0], kept[1:]
        if rest:
            ours, theirs = (own.distinct_counts(maps, rest, beside) for own in (there.store, listed))
            assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]
    some = there.store.sample(5, range(7))
    assert 0 < len(some[1]) < there.store.combinations
    assert set(sorted_pairs(some)) <= set(sorted_pairs(listed.grouped({}, range(7))))


def sorted_pairs(found: tuple[IntArray, IntArray]) -> list[tuple[int, ...]]:
    return sorted(map(tuple, np.concatenate([found[0], found[1][None]]).T.tolist()))


WISHES: dict[str, dict[str, Any]] = {
    "sizes": {"models": [{"k-anonymity": {"k": 5}}]},
    "coverage": {"models": [{"k-anonymity": {"k": 5}}], "metric": "coverage"},
    "l": {"models": [{"k-anonymity": {"k": 3}}, {"distinct-l-diversity": {"l": 2}}]},
    "t": {"models": [{"k-anonymity": {"k": 3}}, {"t-closeness": {"t": 0.6}}]},
}


@pytest.mark.parametrize("wish", WISHES)
def test_a_release_is_the_same(few: list[int], tmp_path: Path, wish: str) -> None:
    data, policy = bundled(tmp_path)
    loaded = shoal.Policy.load(policy).with_(**WISHES[wish])
    few[0] = 10**9
    here = shoal.anonymize(data, loaded, output=tmp_path / "here.csv")
    few[0] = 4000
    there = shoal.anonymize(data, loaded, output=tmp_path / "there.csv")
    assert (here.levels, here.suppressed) == (there.levels, there.suppressed)
    assert here.loss == pytest.approx(there.loss, rel=1e-12)  # sums in another order
    read = [sorted((tmp_path / name).read_text().splitlines()) for name in ("here.csv", "there.csv")]
    assert read[0] == read[1]


def test_profile_and_diagnosis_are_the_same(few: list[int], tmp_path: Path) -> None:
    data, file = bundled(tmp_path)
    policy = yaml.safe_load(file.read_text())
    # A query for every node is slow: three columns make 50 of them, and 4,060 combinations.
    for name in ("admitted", "discharged", "ethnicity", "marital_status", "insurance"):
        policy["columns"][name] = {"role": "other"}
    answers = []
    for most in (10**9, 1500):
        few[0] = most
        profile = shoal.profile(data, policy)
        offer = profile.negotiate(k=7, suppression_limit=100)
        diagnosis = shoal.diagnose(data, ["age", "sex", "postcode"], sensitive="diagnosis")
        answers.append(
            (
                offer.to_dict(),
                diagnosis.anonymity(),
                diagnosis.ask(3, k=3).answer,
                diagnosis.ask(12, most=4).answer,
            )
        )
    assert answers[0] == answers[1]


def test_rows_are_named_where_the_classes_of_their_columns_fit(few: list[int], tmp_path: Path) -> None:
    data, _ = bundled(tmp_path)
    few[0] = 200
    diagnosis = shoal.diagnose(data, ["age", "sex", "postcode"])
    rows = diagnosis.write_rows(tmp_path / "rows.txt", k=100, columns=["age"])
    assert rows == diagnosis.rows_to_suppress(100, ["age"]) > 0
    with pytest.raises(DataError, match=r"do not fit.*memory_limit"):
        diagnosis.write_rows(tmp_path / "more.txt", k=100)


def test_what_needs_everything_in_memory_says_so(few: list[int], tmp_path: Path) -> None:
    data, policy = bundled(tmp_path)
    few[0] = 1000
    for algorithm in ("mondrian", "incognito", {"contour": {"cells": True}}):
        with pytest.raises(CannotHonour, match=r"in memory.*memory_limit"):
            shoal.anonymize(data, shoal.Policy.load(policy).with_(algorithm=algorithm))
    few[0] = 0
    with pytest.raises(DataError, match=r"do not fit.*memory_limit"):
        shoal.anonymize(data, shoal.Policy.load(policy).with_(metric="coverage"))


@pytest.mark.parametrize("text", ["", "0GB", "4", "GB", "-1GB", "4 XB", "1e3MB"])
def test_a_limit_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(shoal.errors.PolicyError, match="memory_limit must be a size"):
        memory.limit_of(text)


def test_without_a_limit_half_of_the_machine_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "machine", lambda: 10 << 30)
    assert memory.limit_of(None) == 5 << 30


def test_a_map_is_put_into_the_database_once(few: list[int]) -> None:
    """What is looked up must not pile up there with every node that is asked for."""
    few[0] = 100
    engine = DuckDb()
    there, _ = engine.count(engine.open(coded(3000, 1)), list("abcdef"))
    assert isinstance(there, RemoteCounts)
    held: list[pa.Table] = []
    upload = engine.upload
    vars(engine)["upload"] = lambda table: held.append(table) or upload(table)
    halves = {place: np.arange(1 << 9) // 2 for place in range(6)}
    for _ in range(3):
        for place in range(6):
            there.store.size_counts({place: halves[place]}, range(6))
            there.store.grouped({place: halves[place], 0: halves[0]}, [0, place] if place else [0])
    assert len(held) == 6
