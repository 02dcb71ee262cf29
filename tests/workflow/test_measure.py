"""Measuring a table as it is: naive definitions in plain dicts, the models' own word, and bad input."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import adult
import shoal
from cpu_time import fastest
from example_counts import examples
from shoal.cli.app import app
from shoal.core.classes import Classes
from shoal.engines import ENGINES
from shoal.errors import DataError, PolicyError, UnknownName, UsageError
from shoal.models import MODELS
from shoal.workflow.measure import about_itself, measured
from shoal.workflow.problem import count
from shoal.workflow.session import session

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

SECRET = "SECRETVAL7"
Record = tuple[str, int, int | None]
ENGINE = ENGINES.create("duckdb")
records_of = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.sampled_from([9, 10, 11, 100, None])),
    min_size=1,
    max_size=30,
)


def frame(records: list[Record]) -> pd.DataFrame:
    found = pd.DataFrame(records, columns=["x", "y", "s"])
    return found.astype({"s": "Int64"})


def naive(records: list[Record]) -> dict[str, Any]:
    """Measure by the textbook: lists, counters and sums."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for x, y, s in records:
        groups[x, y].append(s)
    whole = Counter(s for _, _, s in records)
    values = sorted(whole, key=lambda s: (s is None, s or 0))  # what is missing comes last
    p = {s: whole[s] / len(records) for s in values}
    q = {key: {s: Counter(own)[s] / len(own) for s in values} for key, own in groups.items()}
    l = min(len(set(own)) for own in groups.values())
    tops = [[n for _, n in Counter(own).most_common()] for own in groups.values()]
    gains = [(one[s] - p[s]) / p[s] for one in q.values() for s in values if one[s] > p[s]]
    present = [abs(math.log(one[s] / p[s])) for one in q.values() for s in values if one[s]]
    absent = any(one[s] == 0 for one in q.values() for s in values)
    refuses_below = any((one[s] - p[s]) / p[s] > -math.log(p[s]) + 1e-9 for one in q.values() for s in values)

    def ordered(one: dict[Any, float]) -> float:
        carried, moved = 0.0, 0.0
        for s in values:
            carried += one[s] - p[s]
            moved += abs(carried)
        return moved / (len(values) - 1) if len(values) > 1 else 0.0

    return {
        "k": min(map(len, groups.values())),
        "unique_records": sum(len(own) == 1 for own in groups.values()),
        "classes": len(groups),
        "distinct_l": l,
        "entropy_l": math.exp(
            min(-sum(share * math.log(share) for share in one.values() if share) for one in q.values())
        ),
        "recursive_c": max(top[0] / sum(top[l - 1 :]) for top in tops),
        "t_equal": max(sum(abs(one[s] - p[s]) for s in values) / 2 for one in q.values()),
        "t_ordered": max(map(ordered, q.values())),
        "alpha": max(max(one.values()) for one in q.values()),
        "basic_beta": max(gains, default=0.0),
        "enhanced_beta": None if refuses_below else max(gains, default=0.0),
        "delta": None if absent else max(present),
        "delta_present_only": max(present),
    }


@settings(max_examples=examples(150), deadline=None)
@given(records_of)
def test_every_measure_is_the_textbook_s(records: list[Record]) -> None:
    found = shoal.measure(frame(records), ["x", "y"], ["s"], engine=ENGINE)
    (one,) = found.sensitive
    told = {**found.to_dict(), **found.to_dict()["sensitive"][0]}
    assert found.records == len(records)
    for name, expected in naive(records).items():
        wanted = None if expected is None else pytest.approx(expected, abs=1e-9)
        assert told[name] == wanted, name
    assert ["enhanced_beta" in n for n in one.notes].count(True) == (one.enhanced_beta is None)
    assert [n.startswith("delta") for n in one.notes].count(True) == (one.delta is None)


@settings(max_examples=examples(100), deadline=None)
@given(records_of)
def test_models_pass_at_what_is_measured_and_fail_just_short_of_it(records: list[Record]) -> None:
    counts, domains = count(session(frame(records), ENGINE).table, ["x", "y"], ["s"], ())
    classes = Classes(counts, about_itself(counts, domains))
    (one,) = measured(["x", "y"], counts, domains).sensitive
    bit = 1e-6

    def check(model: str, passing: dict[str, Any], failing: dict[str, Any]) -> None:
        assert not MODELS.create(model, passing).violations(classes).any(), (model, passing)
        try:
            strict = MODELS.create(model, failing)
        except PolicyError:
            return  # there is no stricter setting
        assert strict.violations(classes).any(), (model, failing)

    l, c = one.distinct_l, one.recursive_c
    check("distinct-l-diversity", {"l": l}, {"l": l + 1})
    check("entropy-l-diversity", {"l": one.entropy_l}, {"l": one.entropy_l + bit})
    check("recursive-cl-diversity", {"c": c + bit, "l": l}, {"c": c, "l": l})
    for kind, t in (("equal", one.t_equal), ("ordered", one.t_ordered)):
        assert t is not None
        check("t-closeness", {"t": min(t, 1), "distance": kind}, {"t": t - bit, "distance": kind})
    check("alpha-k-anonymity", {"alpha": one.alpha, "k": 1}, {"alpha": one.alpha - bit, "k": 1})
    beta = one.basic_beta
    check("basic-beta-likeness", {"beta": max(beta, bit)}, {"beta": beta - bit})
    if one.enhanced_beta is None:
        assert MODELS.create("enhanced-beta-likeness", {"beta": 1e9}).violations(classes).any()
    else:
        check("enhanced-beta-likeness", {"beta": max(beta, bit)}, {"beta": beta - bit})
    for delta, present in ((one.delta, False), (one.delta_present_only, True)):
        if delta is None:
            assert MODELS.create("delta-disclosure", {"delta": 1e9}).violations(classes).any()
        else:
            options = {"present_only": present}
            check("delta-disclosure", {"delta": delta + bit, **options}, {"delta": delta, **options})


def test_without_sensitive_columns_only_classes_are_measured() -> None:
    found = shoal.measure(frame([("a", 0, 9), ("a", 0, 9), ("b", 0, 9)]), "x")
    assert (found.columns, found.records, found.classes, found.k) == (("x",), 3, 2, 1)
    assert (found.unique_records, found.sensitive) == (1, ())


def test_several_sensitive_columns_are_measured_each_on_its_own() -> None:
    table = frame([("a", 0, 9), ("a", 1, 9), ("b", 0, 10), ("b", 1, 9)])
    both = shoal.measure(table, ["x"], ["y", "s"])
    assert [one.column for one in both.sensitive] == ["y", "s"]
    assert both.sensitive == tuple(shoal.measure(table, ["x"], name).sensitive[0] for name in ("y", "s"))


def test_an_ordered_distance_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["shoal.workflow.measure"], "_MOST_CELLS", 3)
    (one,) = shoal.measure(frame([("a", 0, 9), ("b", 0, 10)]), ["x"], ["s"]).sensitive
    assert one.t_ordered is None
    assert any(note.startswith("t_ordered: left out; 2 values in 2 classes") for note in one.notes)


@adult.needs_adult
@pytest.mark.parametrize("sensitive", ["salary-class", "hours-per-week"])
def test_adult_is_measured_within_half_a_second_of_counting(sensitive: str) -> None:
    columns = adult.COLUMNS[:-1]
    counts, domains = adult.counted(columns, (sensitive,))
    found = measured(columns, counts, domains)
    assert fastest(lambda: measured(columns, counts, domains), 0.5) < 0.5
    assert (found.records, found.k) == (30162, 1)


@pytest.mark.parametrize(
    ("columns", "sensitive", "kind", "text"),
    [
        ([], ["s"], UsageError, "No columns are named. Name those that somebody could know of a person"),
        (["x", "yy"], [], UnknownName, "Unknown column 'yy'. Did you mean 'y'? Available: x, y, s."),
        (["x"], ["ss"], UnknownName, "Unknown sensitive column 'ss'. Did you mean 's'?"),
        (["x", ""], [], UsageError, "A column has an empty name. Is there a comma too many?"),
        (["x"], [""], UsageError, "A sensitive column has an empty name. Is there a comma too many?"),
        (["x", "x"], [], UsageError, "The column 'x' is named twice. Name it once."),
        (["x"], ["s", "s"], UsageError, "The sensitive column 's' is named twice. Name it once."),
        (["x", "s"], ["s"], UsageError, "'s' is both among the columns and sensitive"),
    ],
)
def test_bad_names_say_what_to_do(columns: list[str], sensitive: list[str], kind: type, text: str) -> None:
    with pytest.raises(kind) as caught:
        shoal.measure(frame([(SECRET, 0, 9)]), columns, sensitive)
    assert str(caught.value).startswith(text)
    assert SECRET not in str(caught.value)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(DataError, match=r"The table has no rows. Give one that has records."):
        shoal.measure(frame([("a", 0, 9)]).iloc[:0], ["x"], ["s"])


def test_a_memory_limit_is_the_engine_s() -> None:
    with pytest.raises(PolicyError, match="memory_limit must be a size"):
        shoal.measure(frame([("a", 0, 9)]), ["x"], memory_limit="much")


def run(*arguments: object) -> Any:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["measure", *map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [(f"{SECRET}a", 1, "flu", "u"), (f"{SECRET}a", 1, "flu", "v"), (f"{SECRET}b", 2, "gout", "u")]
    path = tmp_path / "table.csv"
    pd.DataFrame(rows, columns=["x", "y,z", "ill", "ward"]).to_csv(path, index=False)
    return path


def test_json_is_what_python_returns(data: Path) -> None:
    told = run(data, "--columns", 'x, "y,z"', "--sensitive", "ill", "--sensitive", "ward", "--json")
    assert told.exit_code == 0
    found = shoal.measure(data, ["x", "y,z"], ["ill", "ward"])
    assert json.loads(told.stdout) == json.loads(json.dumps(found.to_dict()))
    assert json.loads(told.stdout)["sensitive"][0]["delta"] is None
    listed = run(data, "--columns", 'x,"y,z"', "--sensitive", "ill, ward", "--json")
    assert listed.stdout == told.stdout


def test_the_table_shows_every_measure_and_no_value(data: Path) -> None:
    shown = run(data, "--columns", "x", "--sensitive", "ill", "--sensitive", "ward").stdout
    for text in (
        "unique records",
        "1 of 3 records (33.3%)",
        "entropy l-diversity",
        "ward",
        "none",
        "ill: delta: no delta",
    ):
        assert text in shown
    assert SECRET not in shown
    assert "gout" not in shown
    alone = run(data, "--columns", "x").stdout
    assert "k " in alone
    assert "diversity" not in alone


def test_what_is_shown_is_rounded_to_the_side_that_holds(tmp_path: Path) -> None:
    path = tmp_path / "thirds.csv"
    pd.DataFrame({"x": [1] * 3, "s": list("aab")}).to_csv(path, index=False)
    shown = run(path, "--columns", "x", "--sensitive", "s").stdout
    assert "0.6667" in shown  # alpha: two thirds
    assert "1.8898" in shown  # entropy l: 3 / 2 ** (2 / 3) is 1.88988
    assert "2.0000 (l=2)" in shown  # recursive c: two of the first value over one from the second on


def test_the_command_tells_errors_as_others_do(data: Path) -> None:
    told = run(data, "--columns", "x,il", "--json")
    assert told.exit_code == 2
    assert json.loads(told.stdout)["error"] == "UnknownName"
    assert "Did you mean 'ill'?" in told.stderr
    assert "No columns are named." in run(data, "--columns", "").stderr
    assert run(data).exit_code == 2
