"""From a table and a policy to a release: worked examples, and where other packages are silently wrong."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
import shoal
from example_counts import examples
from shoal.errors import Infeasible, PolicyError
from shoal.policy.limits import limit_in_records

pytestmark = pytest.mark.usefixtures("both_modes")

# Eight records (race, marital status, age).
EIGHT = [
    ("asian", "married", 47), ("black", "single", 21), ("asian", "married", 49), ("white", "widow", 45),
    ("white", "married", 45), ("white", "married", 47), ("black", "single", 24), ("asian", "married", 49),
]  # fmt: skip
MARITAL = {"once": {"been married": ["married", "widow", "divorced"], "never married": ["single"]}}


def quasi(hierarchy: Any, **entries: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "hierarchy": hierarchy, **entries}


def eight(limit: int, metric: str = "height") -> dict[str, Any]:
    return {
        "columns": {
            "race": quasi({"tree": {"person": ["asian", "black", "white"]}, "top": False}),
            "marital": quasi({"tree": MARITAL["once"]}),
            "age": quasi({"intervals": [5, 10, 20]}),
        },
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": limit,
        "metric": metric,
    }


def table(rows: list[tuple[Any, ...]], names: str) -> pa.Table:
    columns = names.split()
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(columns)})


@pytest.mark.parametrize("algorithm", ["exhaustive", "ola", "contour"])
def test_the_eight_record_example(algorithm: str) -> None:
    data = table(EIGHT, "race marital age")
    release = shoal.anonymize(data, {**eight(0), "algorithm": algorithm})
    assert release.levels == {"race": 0, "marital": 1, "age": 1}
    assert release.suppressed == 0
    release = shoal.anonymize(data, {**eight(1), "algorithm": algorithm})
    assert release.levels == {"race": 0, "marital": 0, "age": 1}
    assert release.suppressed == 1
    assert "widow" not in release.table["marital"].to_pylist()


def test_nulls_are_a_value_and_no_record_vanishes(tmp_path: Path) -> None:
    """Three nulls and four values: k = 3 holds as is only if the nulls are one class of three."""
    data = tmp_path / "in.csv"
    data.write_text("city,n\nA,1\n,2\nA,3\n,4\nA,5\n,6\nA,7\n", encoding="utf-8")
    policy = {
        "columns": {"city": quasi("flat"), "n": {"role": "other"}},
        "models": [{"k-anonymity": {"k": 3}}],
    }
    release = shoal.anonymize(data, policy, output=tmp_path / "out.csv")
    assert release.levels == {"city": 0}
    assert release.verification.classes == 2
    rows = list(csv.reader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))[1:]
    assert Counter(row[0] for row in rows) == {"A": 4, "": 3}
    stricter = {**policy, "models": [{"k-anonymity": {"k": 4}}]}
    assert shoal.anonymize(data, stricter, output=tmp_path / "o2.csv").levels == {"city": 1}


def test_age_may_be_a_number_in_the_table_and_text_in_the_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("1;low;*\n2;low;*\n3;high;*\n4;high;*\n", encoding="utf-8")
    policy = {
        "columns": {"age": quasi({"csv": str(tmp_path / "age.csv")})},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    for ages in ([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], ["1", "2", "3", "4"]):
        release = shoal.anonymize(pa.table({"age": ages}), policy)
        assert sorted(release.table["age"].to_pylist()) == ["high", "high", "low", "low"]


def test_k_above_the_rows_is_infeasible() -> None:
    with pytest.raises(Infeasible, match="8 records and every class needs 9"):
        shoal.anonymize(table(EIGHT, "race marital age"), {**eight(0), "models": [{"k-anonymity": {"k": 9}}]})


def test_another_row_order_gives_the_same_recoding() -> None:
    one = shoal.anonymize(table(EIGHT, "race marital age"), eight(1))
    other = shoal.anonymize(table(EIGHT[::-1], "race marital age"), eight(1))
    assert one.levels == other.levels
    assert Counter(map(str, one.table.to_pylist())) == Counter(map(str, other.table.to_pylist()))


def test_no_row_number_of_the_original_is_in_the_release() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(EIGHT, columns=["race", "marital", "age"], index=range(100, 108))
    release = shoal.anonymize(frame, eight(1))
    assert list(release.table.columns) == ["race", "marital", "age"]
    assert release.table.index.tolist() == list(range(7))


def test_a_node_fixes_some_levels_and_the_rest_is_searched() -> None:
    release = shoal.anonymize(table(EIGHT, "race marital age"), eight(0), node={"age": 3})
    assert release.levels["age"] == 3
    with pytest.raises(PolicyError, match=r"Level 9 of 'age' is outside 0..4"):
        shoal.anonymize(table(EIGHT, "race marital age"), eight(0), node={"age": 9})


@pytest.mark.parametrize(
    ("limit", "records", "expected"),
    [("29%", 100, 29), (0.29, 100, 29), ("5%", 30_162, 1508), (7, 100, 7), (1.0, 10, 10), ("100%", 3, 3)],
)
def test_a_limit_is_computed_in_decimals(limit: Any, records: int, expected: int) -> None:
    assert limit_in_records(limit, records) == expected


@pytest.mark.parametrize("limit", [-1, "-1%", "101%", 1.5, 11, "x", "nan", True])
def test_a_limit_out_of_range_is_refused(limit: Any) -> None:
    with pytest.raises(PolicyError, match="suppression_limit must"):
        limit_in_records(limit, 10)


def test_everything_suppressed_is_not_a_release() -> None:
    data = pa.table({"a": ["x", "y"]})
    policy = {"columns": {"a": quasi("flat", max_level=0)}, "models": [{"k-anonymity": {"k": 2}}]}
    with pytest.raises(Infeasible, match=r"max_level raised: a to 1"):
        shoal.anonymize(data, {**policy, "suppression_limit": 2})


VALUES = st.sampled_from(["a", "b", "c", "ü", "O'x", 'q"t', None])


@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(
        st.tuples(VALUES, st.integers(0, 40) | st.none(), st.sampled_from("xyz")), min_size=1, max_size=30
    ),
    k=st.integers(1, 4),
    l=st.integers(1, 2),
    share=st.sampled_from(["0%", "20%", "60%"]),
    suppressed=st.sampled_from(["drop", "mask"]),
    metric=st.sampled_from(["coverage", "non-uniform-entropy", "discernibility"]),
)
def test_every_written_release_satisfies_the_oracle(
    tmp_path: Path, rows: list, k: int, l: int, share: str, suppressed: str, metric: str
) -> None:
    policy = {
        "columns": {
            "select": quasi("flat"),
            "my age": quasi({"intervals": [10, 20]}),
            "illness": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": k}}, {"distinct-l-diversity": {"l": l}}],
        "suppression_limit": share,
        "suppressed": suppressed,
        "metric": metric,
    }
    data = table(rows, "select my_age illness").rename_columns(["select", "my age", "illness"])
    output = tmp_path / "release.csv"
    try:
        release = shoal.anonymize(data, policy, output=output, force=True)
    except Infeasible:
        return
    with open(output, newline="", encoding="utf-8") as file:
        written = [tuple(row) for row in csv.reader(file)][1:]
    masked = [row for row in written if row == ("", "", "")]
    kept = [row for row in written if row != ("", "", "")]
    assert len(kept) + len(masked) + (0 if release.masked else release.suppressed) == len(rows)
    assert len(masked) in (0, release.masked)
    if release.masked:
        assert len(masked) >= max(k, l)
    flat = [{v: [v] for v in {row[c] for row in kept}} for c in range(2)]
    assert oracle.suppressed([r[:2] for r in kept], flat, (0, 0), k, l, [r[2] for r in kept]) == 0
