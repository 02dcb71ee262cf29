"""Fuzzed policies and tables: every end is a release or a deliberate error, and no message holds a value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from shoal.errors import InternalError, ShoalError

SECRET = "s3cr3t"
CELLS = st.one_of(
    st.none(),
    st.integers(0, 3).map(lambda n: f"{SECRET}{n}"),
    st.sampled_from(
        [f"{SECRET}'", f'{SECRET}"', f"{SECRET};", f"{SECRET}\n", f"{SECRET}é", f"{SECRET}%s", f"{SECRET}[b]"]
    ),
)
NUMBERS = st.one_of(st.none(), st.integers(7_770_000, 7_770_040))
NAMES = ["select", "a b", "ü", 'q"', "x", "group", "1", "%", "a.b"]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 9), st.floats(allow_nan=True), st.text(max_size=5)
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
FITTING = st.sampled_from(["flat", {"prefix": [9, 7]}, {"prefix": [8], "top": False}])
TREE = {"g": [f"{SECRET}0", f"{SECRET}1"], "h": [f"{SECRET}2", f"{SECRET}3"]}
POINTS = st.lists(st.integers(7_770_000, 7_770_040), max_size=3)
UNITS = st.lists(st.sampled_from(["day", "month", "year", "week"]), max_size=3)
ORDER = st.lists(st.sampled_from([f"{SECRET}{n}" for n in range(4)]), max_size=4)
HIERARCHIES = st.one_of(
    st.just("flat"),
    st.just({"tree": TREE}),
    st.just({"csv": "nowhere.csv"}),
    st.fixed_dictionaries({"prefix": st.lists(st.integers(0, 8), max_size=3)}),
    st.fixed_dictionaries({"intervals": st.lists(st.integers(-1, 30), max_size=3)}),
    st.fixed_dictionaries({"cuts": st.lists(POINTS, max_size=2)}),
    st.fixed_dictionaries({"dates": UNITS}),
    st.fixed_dictionaries({"order": ORDER, "sizes": st.just([2])}),
    JUNK,
)


def seldom(draw: st.DrawFn, usual: st.SearchStrategy[Any], junk: st.SearchStrategy[Any] = JUNK) -> Any:
    """Draw nonsense one time in thirty, so that most requests reach the search."""
    return draw(junk if draw(st.integers(0, 29)) == 17 else usual)


ROLES = st.sampled_from(["quasi-identifier"] * 3 + ["sensitive", "identifier", "other"])


@st.composite
def columns(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    found = {}
    for name in names:
        entry: dict[str, Any] = {"role": seldom(draw, ROLES)}
        if entry["role"] == "quasi-identifier":
            entry["hierarchy"] = seldom(draw, FITTING, HIERARCHIES)
        if draw(st.integers(0, 19)) == 0:
            option = draw(st.sampled_from(["max_level", "min_level", "weight", "release_as", "levle"]))
            entry[option] = draw(st.integers(-1, 3) | st.just("bounds") | JUNK)
        found[name] = entry
    return found


@st.composite
def requests(draw: st.DrawFn) -> tuple[pa.Table, Any]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    rows = draw(st.integers(1, 14)) if draw(st.integers(0, 29)) else 0
    data = {}
    for name in names:
        cells = draw(st.sampled_from([CELLS, CELLS, NUMBERS]))
        values = draw(st.lists(cells, min_size=rows, max_size=rows))
        data[name] = pa.array(values, pa.string() if cells is CELLS else pa.int64())
    asked = seldom(draw, st.just(names), st.just([*names[1:], "missing"]))
    k = seldom(draw, st.integers(1, 4), st.integers(-1, 99) | JUNK)
    models = st.sampled_from(
        [[{"k-anonymity": {"k": k}}], [{"k-anonymity": {"k": k}}, {"distinct-l-diversity": {"l": 2}}]]
    )
    policy: Any = {
        "columns": draw(columns(asked)),
        "models": seldom(draw, models),
        "suppression_limit": seldom(draw, st.sampled_from([0, 1, "20%", 0.5, "100%"])),
        "metric": seldom(draw, st.sampled_from(["precision", "coverage", "discernibility", "class-size"])),
        "algorithm": seldom(draw, st.sampled_from(["auto", "ola", "exhaustive"])),
        "suppressed": seldom(draw, st.sampled_from(["drop", "mask"])),
    }  # fmt: skip
    if draw(st.integers(0, 9)) == 0:
        policy["same_level"] = draw(st.just([names[:2]]) | JUNK)
    return pa.table(data), policy if draw(st.integers(0, 30)) else draw(JUNK)


@settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_every_request_ends_well(request: tuple[pa.Table, Any]) -> None:
    table, policy = request
    try:
        release = shoal.anonymize(table, policy)
    except InternalError:
        raise
    except ShoalError as error:
        told = str(error)
        assert told.endswith((".", "?"))
        assert SECRET not in told
        cells = {str(cell) for column in table.columns for cell in column.to_pylist() if cell is not None}
        assert not [cell for cell in cells if cell in told and cell not in repr(policy)]
    else:
        assert release.verification.verified
