"""The questions of a diagnosis about entropy and recursive l, and k and l together, by plain definitions."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import oracle
import shoal
from example_counts import examples
from list_engine import ListEngine
from shoal.cli.app import app
from shoal.errors import UnknownName, UsageError
from shoal.workflow.diagnosis.diagnosis import Diagnosis

pytestmark = pytest.mark.usefixtures("both_modes")

C = 1.5
STEPS = 10_000


def l_of(values: list[int], kind: str) -> float:
    """Return the largest l that a class satisfies, by entropy rounded down to the steps of a diagnosis."""
    counts = sorted(Counter(values).values(), reverse=True)
    if kind == "distinct":
        return len(counts)
    if kind == "entropy":
        l = min(math.exp(oracle.entropy(values) + oracle.CLOSE), len(counts))
        return math.floor(l * STEPS + 1e-7) / STEPS
    return max((l for l in range(1, len(counts) + 1) if counts[0] < C * sum(counts[l - 1 :])), default=0)


class Naive:
    """The definitions, in plain dicts."""

    def __init__(self, rows: list[Any], sensitive: list[int], kind: str, l: float | None) -> None:
        self.rows, self.sensitive, self.kind, self.l = rows, sensitive, kind, l

    def measures(self, columns: tuple[int, ...]) -> list[tuple[float, int]]:
        classes = defaultdict(list)
        for row, value in zip(self.rows, self.sensitive, strict=True):
            classes[tuple(row[c] for c in columns)].append(value)
        return [(self.measure(values), len(values)) for values in classes.values()]

    def measure(self, values: list[int]) -> float:
        if self.l is None:
            return l_of(values, self.kind)
        return len(values) if l_of(values, self.kind) >= self.l else 0

    def below(self, columns: tuple[int, ...], k: float) -> int:
        return sum(size for measure, size in self.measures(columns) if measure < k)

    def reached(self, columns: tuple[int, ...], limit: int) -> float:
        return max(k for k, _ in self.measures(columns) if self.below(columns, k) <= limit)

    def sets(self) -> list[tuple[int, ...]]:
        columns = range(len(self.rows[0]))
        return [s for size in range(1, len(columns) + 1) for s in combinations(columns, size)]


@st.composite
def diagnoses(draw: Any) -> tuple[Diagnosis, Naive]:
    columns = draw(st.integers(1, 3))
    row = st.tuples(*[st.integers(0, 2)] * columns)
    rows = draw(st.lists(row, min_size=1, max_size=24))
    sensitive = [draw(st.integers(0, 3)) for _ in rows]
    kind = draw(st.sampled_from(["distinct", "entropy", "recursive"]))
    l: float | None = draw(st.sampled_from([None, 1.5, 2, 2.5])) if kind == "entropy" else None
    if kind != "entropy":
        l = draw(st.sampled_from([None, 1, 2, 3]))
    if kind == "distinct" and l is None:
        l = 2
    names = [f"c{c}" for c in range(columns)]
    cells = [(*row, value) for row, value in zip(rows, sensitive, strict=True)]
    table = pd.DataFrame(cells, columns=[*names, "s"]).astype(str)
    options = {"diversity": kind, "c": C if kind == "recursive" else None, "l": l}
    return shoal.diagnose(table, sensitive="s", engine=ListEngine(), **options), Naive(
        rows, sensitive, kind, l
    )


def named(columns: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"c{column}" for column in columns)


@settings(max_examples=examples(300), deadline=None)
@given(diagnoses(), st.data())
def test_the_twelve_questions_match_the_definitions(
    both: tuple[Diagnosis, Naive], data: st.DataObject
) -> None:
    asked, naive = both
    limit = data.draw(st.one_of(st.just(0), st.integers(0, len(naive.rows))))
    real = asked.measure == "l" and naive.kind == "entropy"
    k = data.draw(st.sampled_from([1, 1.5, 1.8899, 2, 2.5, 3] if real else [1, 2, 3, 4]))
    sets = naive.sets()
    columns = data.draw(st.sampled_from(sets))
    reached = naive.reached(columns, limit)
    assert asked.anonymity(named(columns), limit) == pytest.approx(reached, abs=1.01 / STEPS)  # 2 and 6
    assert asked.is_anonymous(k, named(columns), limit) == (reached >= k)  # 1 and 5
    safe = {s for s in sets if naive.reached(s, limit) >= k}
    unsafe = set(sets) - safe
    maximal = {s for s in safe if not any(set(s) < set(other) for other in safe)}
    minimal = {s for s in unsafe if not any(set(other) < set(s) for other in unsafe)}
    largest = asked.largest_sets(k, limit)  # 3 and 7
    assert {one.columns for one in largest.findings} == {named(s) for s in maximal}
    sizes = [len(one) for one in asked.ask(7, k=k, suppression_limit=limit).answer]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == len(maximal)
    found = asked.unsafe_sets(k, limit)
    assert {one.columns for one in found.findings} == {named(s) for s in minimal}
    assert all(
        one.suppressed == naive.below(tuple(int(n[1:]) for n in one.columns), k) for one in found.findings
    )
    table = asked.anonymity_of_sets(limit)  # 4 and 8
    assert set(table) == {named(s) for s in sets}
    for s in sets:
        assert table[named(s)] == pytest.approx(naive.reached(s, limit), abs=1.01 / STEPS)
    below = {named(s): naive.below(s, k) for s in sets}
    assert asked.suppression(k, named(columns)).suppressed == below[named(columns)]  # 9
    assert {s: one.suppressed for s, one in asked.suppression_of_sets(k).items()} == below  # 10
    most = min(4, len(naive.rows))
    costs = [(whole, naive.below(columns, whole)) for whole in range(1, most + 1)]
    assert [(one.k, one.suppressed) for one in asked.suppression_by_k(named(columns), 4)] == costs  # 11
    steps = asked.suppression_by_k(named(columns))
    assert len(steps) == len({measure for measure, _ in naive.measures(columns) if measure})
    by_k = asked.suppression_of_sets_by_k(4)  # 12
    assert by_k == {named(s): tuple(naive.below(s, whole) for whole in range(1, most + 1)) for s in sets}
    assert asked.rows_to_suppress(k, named(columns)) == below[named(columns)]
    assert str(asked.overview(k, limit).suppressed)
    for question in (*range(1, 13), "unsafe", "rows", "overview"):
        wishes: dict[str, Any] = {"k": k} if question in (1, 3, 5, 7, 9, 10, "unsafe", "rows") else {}
        wishes |= {"suppression_limit": limit} if question in (5, 6, 7, 8) else {}
        wishes |= {"most": 3} if question == 12 else {}
        answer = asked.ask(question, **wishes)
        assert str(answer)
        assert json.dumps(answer.to_dict())


ILLNESS = ["flu", "gout", "flu", "flu", "flu", "gout", "ms", "flu"]
TABLE = pa.table({"sex": list("ffffmmmm"), "ward": list("aabbaabb"), "illness": ILLNESS})


def test_the_kind_of_l_is_in_the_answer() -> None:
    entropy = shoal.diagnose(TABLE, sensitive="illness", diversity="entropy")
    answer = entropy.ask(1, k=1.5, columns=["sex"])
    assert answer.text == "Is it entropy l-diverse?"
    assert answer.answer
    assert answer.to_dict()["diversity"] == "entropy"
    assert answer.to_dict()["l"] == 1.5
    both = shoal.diagnose(TABLE, sensitive="illness", l=3)
    answer = both.ask(3, k=4)
    assert (answer.text, answer.measure) == ("For which largest sets?", "k")
    assert answer.to_dict()["l"] == 3
    assert both.ask(1, k=2).text == "Is it k-anonymous with l = 3?"
    assert "or with l of illness below 3" in str(both.ask(1, k=2))
    assert shoal.diagnose(TABLE, sensitive="illness", diversity="recursive", c=1).ask(2).answer == 0


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"diversity": "entropy"}, UsageError, "l is about a sensitive column"),
        ({"l": 2}, UsageError, "l is about a sensitive column"),
        ({"sensitive": "illness", "diversity": "entropi"}, UnknownName, "Did you mean 'entropy'"),
        ({"sensitive": "illness", "diversity": "recursive"}, UsageError, "needs a c"),
        (
            {"sensitive": "illness", "diversity": "recursive", "c": 0},
            UsageError,
            "c must be a number above 0",
        ),
        ({"sensitive": "illness", "c": 2}, UsageError, "c is for recursive diversity"),
        ({"sensitive": "illness", "l": 0}, UsageError, "l must be at least 1, got 0"),
        ({"sensitive": "illness", "l": 1.5}, UsageError, "l must be a whole number, got 1.5"),
        ({"sensitive": "illness", "l": 1.00001, "diversity": "entropy"}, UsageError, "a multiple of 0.0001"),
    ],
)
def test_impossible_kinds_are_refused(options: dict[str, Any], kind: type, text: str) -> None:
    with pytest.raises(kind, match=text):
        shoal.diagnose(TABLE, **options)


def test_the_command_asks_about_every_kind(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    pyarrow.csv.write_csv(TABLE, data)

    def run(*options: object) -> Any:
        return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["diagnose", str(data), *map(str, options)])

    about = ("--sensitive", "illness")
    done = run(*about, "--diversity", "entropy", "--question", 3, "--k", 1.5, "--json")
    told = json.loads(done.stdout)
    found = shoal.diagnose(TABLE, sensitive="illness", diversity="entropy").ask(3, k=1.5)
    assert told == json.loads(json.dumps(found.to_dict()))
    told = json.loads(run(*about, "--l", 2, "--question", 9, "--k", 2, "--json").stdout)
    assert (told["k"], told["l"], told["answer"]["suppressed"]) == (2, 2, 2)
    told = json.loads(run(*about, "--diversity", "recursive", "--c", 3, "--question", 2, "--json").stdout)
    assert told["c"] == 3
    rows = tmp_path / "rows"
    for options, says in [
        (("--l", 2, "--question", 9, "--k", 2), "l is about a sensitive column. Name one with --sensitive."),
        ((*about, "--diversity", "recursive", "--rows", rows, "--k", 2), "needs a c. Give --c."),
        ((*about, "--rows", rows, "--k", 2.5), "--k takes a whole number, such as --k 5; got '2.5'"),
        ((*about, "--diversity", "entropy", "--rows", rows, "--k", 0), "must be at least 1, got 0"),
    ]:
        done = run(*options)
        assert done.exit_code == 2, options
        assert says in done.stderr, done.stderr
    assert not rows.exists()
    assert run(*about, "--l", 2, "--rows", rows, "--k", 2).exit_code == 0
    assert rows.read_text() == "3\n4\n"


def test_a_safe_set_may_contain_an_unsafe_one_once_records_are_suppressed() -> None:
    """Of (x, y) and (x) the second is suppressed; together they are (x, x, y), not worth 2 values."""
    table = pa.table({"a": [0, 0, 1], "b": [0, 0, 0], "s": ["x", "y", "x"]})
    asked = shoal.diagnose(table, sensitive="s", diversity="entropy")
    assert asked.anonymity(["a"], 1) == 2
    assert asked.anonymity(["b"], 1) == 1.8898
    assert [one.columns for one in asked.largest_sets(2, 1).findings] == [("a", "b")]
    assert [one.columns for one in asked.unsafe_sets(2, 1).findings] == [("b",)]
    assert dict(asked.anonymity_of_sets(1)) == {("a",): 2, ("b",): 1.8898, ("a", "b"): 2}
    assert [one.columns for one in asked.unsafe_sets(1.5).findings] == [("a",)]  # nothing may be suppressed
