"""Random frames through every algorithm: what comes back is counted naively, as its recipient would count it.

Nothing of the core is used here: rows are lists of plain values, and a cell is compared with its type. So 1
and 1.0, None and "None", True and "True" are different, and whoever tells them apart is counted for.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from example_counts import NIGHTLY, usual_or_nightly
from shoal.algorithms import ALGORITHMS
from shoal.errors import Infeasible

Table = dict[str, list[Any]]
QUASI = ("age", "flag", "town", "day")
SENSITIVE = ("illness", "score")
BLANK = "blank"
BIG = 2**53 + 1
LIMITS: dict[str, list[Any]] = {"mask": ["20%", "40%", "60%"], "drop": [0, "20%", "40%", "60%"]}

DISCERNIBILITY = {"metric": "discernibility"}
OPTIONS: dict[str, dict[str, Any]] = {
    "greedy-cuts": DISCERNIBILITY,
    "k-optimize": DISCERNIBILITY,
    "tds": {"label": "illness"},
    "bottom-up": {"label": "illness"},
    "samarati": {"metric": "height"},
    "mondrian": {"metric": "coverage"},
    "local": {"local": True},
    "local labels": {"local": {"labels": 3}},
}
SEARCHES: dict[str, Any] = {name: name for name in ALGORITHMS if name != "anatomy"} | {
    "refine": {"auto": {"refine": True}},
    "cells": {"auto": {"cells": True}},
    "relaxed mondrian": {"mondrian": {"relaxed": True}},
    "local": "contour",
    "local labels": "contour",
}
EXCLUDED = {("cells", "mask")}  # a policy refuses both together


def drawn(some: random.Random) -> Table:
    """Draw the columns of a table; some quasi-identifiers are unique, some are missing."""
    size = some.randint(20, 45)
    missing = some.choice([0, 0.1, 0.3])

    def column(draw: Callable[[], Any]) -> list[Any]:
        return [None if some.random() < missing else draw() for _ in range(size)]

    first = dt.date(1970 + some.randint(-200, 60), 1, 1)
    return {
        "age": column(lambda: some.choice([20, 21, 22, 35, 36, 61, BIG, BIG + 1])),
        "name": [f"person {n}" for n in range(size)],
        "flag": column(lambda: some.random() < 0.6),
        "town": column(lambda: some.choice(["a", "a", "b", "c", "", " ", "missing", "None"])),
        "day": column(lambda: first + dt.timedelta(days=some.choice([0, 0, 1, 40, 400]))),
        "illness": column(lambda: some.choice(["flu", "cold", "gout", "none"])),
        "score": column(lambda: some.choice([BIG, BIG + 2, 3, 4])),
        "key": some.sample(range(BIG, BIG + 10 * size), size),
        "amount": column(lambda: some.choice([0.1, 1.0, 1e300, -5e-324, float("inf")])),
        "switch": column(lambda: some.random() < 0.5),
        "price": column(lambda: Decimal(some.randint(-999, 999)) / 100),
        "at": column(lambda: dt.datetime(2024, 10, 27, some.randint(0, 2), 30, 1, tzinfo=dt.UTC)),
        "group": column(lambda: some.choice(["x", "y", "z"])),
        "data": column(lambda: bytes([some.randrange(256)])),
        "large": column(lambda: 2**64 - some.randint(1, 9)),
    }


ARROW = {
    "age": pa.int64(), "flag": pa.bool_(), "day": pa.date32(), "score": pa.int64(), "key": pa.uint64(),
    "amount": pa.float64(), "switch": pa.bool_(), "price": pa.decimal128(20, 2), "data": pa.binary(),
    "at": pa.timestamp("ns", "Europe/Berlin"), "large": pa.uint64(),
    "group": pa.dictionary(pa.int8(), pa.string()),
}  # fmt: skip


def arrow(table: Table) -> pa.Table:
    return pa.table({name: pa.array(values, ARROW.get(name, pa.string())) for name, values in table.items()})


def arrow_variant(table: Table) -> pa.Table:
    """Return the table in chunks, and in types that are read in another form than they have."""
    kinds = {
        "town": pa.dictionary(pa.int32(), pa.string()), "illness": pa.large_string(),
        "name": pa.string_view(),
        "day": pa.date64(), "amount": pa.float32(), "data": pa.large_binary(),
        "price": pa.decimal256(50, 2), "at": pa.timestamp("s"), "score": pa.decimal128(38, 0),
    }  # fmt: skip
    columns = {}
    for name, values in table.items():
        if name == "at":
            values = [None if one is None else one.replace(tzinfo=None) for one in values]
        columns[name] = pa.array(values, kinds.get(name, ARROW.get(name, pa.string())))
    whole = pa.table(columns)
    return pa.concat_tables([whole.slice(0, 7), whole.slice(7)]).unify_dictionaries()


def numpy_backed(table: Table) -> pd.DataFrame:
    """Return what pandas makes of complete columns by itself; of others, objects."""
    columns = {}
    for name, values in table.items():
        if None in values or name in ("price", "data", "day"):
            columns[name] = pd.Series(values, dtype=object)
        else:
            columns[name] = pd.Series(values)
    return pd.DataFrame(columns).set_axis([3] * len(table["key"]), axis=0)


def nullable(table: Table) -> pd.DataFrame:
    kinds = {"age": "Int64", "flag": "boolean", "score": "Int64", "key": "uint64", "switch": "boolean"}
    kinds |= {"amount": "Float64", "large": "UInt64", "town": "string", "illness": "category"}
    found = pd.DataFrame({name: pd.Series(v, dtype=kinds.get(name, object)) for name, v in table.items()})
    found["at"] = pd.to_datetime(pd.Series(table["at"])).dt.tz_convert("Europe/Berlin")
    found["group"] = pd.Categorical(table["group"], categories=["z", "y", "x", "w"], ordered=True)
    found["day"] = pd.PeriodIndex(pd.Series(table["day"], dtype=object), freq="D")
    return found


FRAMES: dict[str, Callable[[Table], Any]] = {
    "pandas": numpy_backed,
    "pandas nullable": nullable,
    "pandas arrow": lambda table: arrow(table).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas objects": lambda table: pd.DataFrame(table, dtype=object),
    "polars": lambda table: pl.from_arrow(arrow(table)),
    "polars lazy": lambda table: pl.from_arrow(arrow(table)).lazy(),
    "pyarrow": arrow,
    "pyarrow variant": arrow_variant,
}


def cell(value: Any) -> str:
    """Write a cell with its type; numpy's numbers as Python's."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value):
        return BLANK
    return repr(
        value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value
    )


def cells(frame: Any) -> dict[str, list[str]]:
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pa.Table):
        columns: dict[str, Any] = {name: frame[name].to_pylist() for name in frame.column_names}
    elif isinstance(frame, pl.DataFrame):
        columns = {name: frame[name].to_list() for name in frame.columns}
    else:
        columns = {str(name): list(values) for name, values in frame.items()}
    return {name: [cell(value) for value in values] for name, values in columns.items()}


def kind_of(frame: Any, name: str) -> Any:
    if isinstance(frame, pa.Table):
        return frame.schema.field(name).type
    return frame.collect_schema()[name] if isinstance(frame, pl.LazyFrame) else frame[name].dtype


def policy(search: str, suppressed: str, k: int, limit: Any) -> dict[str, Any]:
    rules = {"age": {"cuts": [[22, 36, 100], [36]]}, "flag": "flat", "town": "flat", "day": "flat"}
    columns: dict[str, Any] = {
        name: {"role": "quasi-identifier", "hierarchy": rule} for name, rule in rules.items()
    }
    columns |= {name: {"role": "sensitive"} for name in SENSITIVE} | {"name": {"role": "identifier"}}
    others = ("key", "amount", "switch", "price", "at", "group", "data", "large")
    algorithm = SEARCHES[search]
    name = algorithm if isinstance(algorithm, str) else next(iter(algorithm))
    known = OPTIONS.get(search) or OPTIONS.get(name, {})
    return {
        "columns": columns | {name: {"role": "other"} for name in others},
        "models": [{"k-anonymity": {"k": k}}],
        "suppression_limit": limit,
        "suppressed": suppressed,
        "algorithm": algorithm,
    } | known


def released(kind: str, search: str, suppressed: str, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Release a random frame; where a draw cannot be released, the next one."""
    for more in itertools.count():
        some = random.Random(zlib.crc32(f"{kind}{search}{suppressed}{seed}{more}".encode()))
        frame = FRAMES[kind](drawn(some))
        wanted = policy(search, suppressed, some.choice([2, 3, 5]), some.choice(LIMITS[suppressed]))
        try:
            return frame, shoal.anonymize(frame, wanted), wanted
        except Infeasible:
            assert more < 20


def check_unchanged(before: Any, after: Any, names: list[str], release: Any, rows: list[int]) -> None:
    """Compare values with those of the input row by row, and types."""
    old, new = cells(before), cells(after)
    for name in names:
        assert [old[name][row] for row in rows] == new[name], name
        if kind_of(before, name) != kind_of(after, name):
            assert set(old[name]) - set(new[name]), name  # a list of categories without those of nobody
            assert any(f"{name!r}: categories" in note for note in release.notes)


def check_counts(frame: Any, release: Any, wanted: dict[str, Any], *, promised: bool) -> None:
    """Count classes and masked records in what came back; compare what is not generalized."""
    k = wanted["models"][0]["k-anonymity"]["k"]
    old, new = cells(frame), cells(release.table)
    place = {key: row for row, key in enumerate(old["key"])}
    rows = [place[key] for key in new["key"]]
    assert len(set(rows)) == len(rows) == len(old["key"]) - release.suppressed + release.masked
    assert list(new) == [name for name in old if name != "name"]
    others = [name for name, column in wanted["columns"].items() if column["role"] == "other"]
    check_unchanged(frame, release.table, others, release, rows)
    blank = [all(new[name][row] == BLANK for name in (*QUASI, *SENSITIVE)) for row in range(len(rows))]
    if release.masked:
        assert sum(blank) == release.masked >= k
    classes = Counter(
        tuple(new[name][row] for name in QUASI)
        for row in range(len(rows))
        if not (release.masked and blank[row])
    )
    assert not promised or min(classes.values()) >= k
    assert not promised or release.verification.verified
    may_blank = release.cells > 0 or release.outliers is not None
    for row, source in enumerate(rows):
        masked = release.masked > 0 and blank[row]
        for name in SENSITIVE:
            assert new[name][row] == (BLANK if masked else old[name][source]), name
        for name in release.as_is:
            equal = new[name][row] == old[name][source]
            assert equal or (new[name][row] == BLANK and (masked or may_blank)), name
    for name in (*SENSITIVE, *release.as_is):
        same = kind_of(frame, name) == kind_of(release.table, name)
        assert same or [note for note in release.notes if note.startswith(f"Column {name!r}: ")], name


CASES = [
    (search, suppressed)
    for search in SEARCHES
    for suppressed in ("mask", "drop")
    if (search, suppressed) not in EXCLUDED
]
KINDS = list(FRAMES)


@pytest.mark.parametrize("seed", range(usual_or_nightly(1, 5)))
@pytest.mark.parametrize(
    ("kind", "search", "suppressed"),
    [
        (kind, *case)
        for number, case in enumerate(CASES)
        for kind in (KINDS if NIGHTLY else [KINDS[number % len(KINDS)]])
    ],
)
def test_what_comes_back_is_what_was_promised(kind: str, search: str, suppressed: str, seed: int) -> None:
    frame, release, wanted = released(kind, search, suppressed, seed)
    check_counts(frame, release, wanted, promised=search != "mu-argus")


@pytest.mark.parametrize("seed", range(usual_or_nightly(1, 20)))
@pytest.mark.parametrize("kind", KINDS if NIGHTLY else KINDS[1::3])
def test_groups_of_anatomy_have_the_values_of_their_records(kind: str, seed: int) -> None:
    some = random.Random(seed)
    table = drawn(some)
    size = len(table["key"])
    table["illness"] = some.sample((["flu", "cold", "gout", "none"] * size)[:size], size)
    frame = FRAMES[kind](table)
    wanted = policy("mondrian", "drop", 2, "40%") | {
        "models": [{"distinct-l-diversity": {"l": 2, "column": "illness"}}],
        "algorithm": "anatomy",
    }
    wanted["columns"]["score"] = {"role": "other"}
    release = shoal.anonymize(frame, wanted)
    old, new, second = cells(frame), cells(release.table), cells(release.sensitive_table)
    place = {key: row for row, key in enumerate(old["key"])}
    rows = [place[key] for key in new["key"]]
    assert len(rows) == len(old["key"]) - release.suppressed
    unchanged = [name for name in new if name in old]
    check_unchanged(frame, release.table, unchanged, release, rows)
    assert kind_of(release.sensitive_table, "illness") == kind_of(frame, "illness") or release.notes
    groups = defaultdict(Counter)
    for group, value, records in zip(
        *(second[c] for c in ("illness_group", "illness", "records")), strict=True
    ):
        groups[group][value] += int(records)
    assert min(map(len, groups.values())) >= 2
    assert Counter(new["illness_group"]) == {group: values.total() for group, values in groups.items()}
    assert sum(groups.values(), Counter()) == Counter(old["illness"][row] for row in rows)
