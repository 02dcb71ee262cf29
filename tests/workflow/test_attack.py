"""Attacks: match sets by a naive double loop, real releases that must withstand, and what may be printed."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import adult
import shoal
from cpu_time import fastest
from example_counts import examples
from list_engine import ListEngine
from shoal.cli.app import app
from shoal.engines import ENGINES
from shoal.errors import DataError, UnknownName, UsageError
from shoal.sample import bundled
from shoal.workflow.attack.labels import Reader
from shoal.workflow.attack.linking import Compatible, link
from shoal.workflow.risk.exposure import exposure_of

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

ENGINE = ENGINES.create("duckdb")
LIST_ENGINE = ListEngine()  # counts frames of text
SECRET = "SECRETVAL7"
QUASI = "quasi-identifier"
TREE = {"warm": ["red", "orange"], "cold": ["blue", "green"]}
COLUMNS: dict[str, Any] = {
    "age": {"role": QUASI, "hierarchy": {"intervals": [5, 10, 20]}},
    "zip": {"role": QUASI, "hierarchy": {"prefix": [2, 1]}},
    "colour": {"role": QUASI, "hierarchy": {"tree": TREE}},
    "day": {"role": QUASI, "hierarchy": {"dates": ["month", "year"]}},
    "ill": {"role": "sensitive"},
}
POLICY = {"columns": COLUMNS, "models": [{"k-anonymity": {"k": 2}}]}
GROUPS = {leaf: group for group, leaves in TREE.items() for leaf in leaves}
# What each level makes of a value, written down without shoal.
LABELS: dict[str, list[Any]] = {
    "age": [
        str,
        *[lambda v, w=w: f"{int(v) // w * w}-{int(v) // w * w + w - 1}" for w in (5, 10, 20)],
        lambda _: "*",
    ],
    "zip": [str, lambda v: v[:2] + "*", lambda v: v[:1] + "*", lambda _: "*"],
    "colour": [str, GROUPS.__getitem__, lambda _: "*"],
    "day": [str, lambda v: v[:7], lambda v: v[:4], lambda _: "*"],
}
VALUES: dict[str, list[Any]] = {
    "age": [str(n) for n in (0, 4, 5, 9, 12, 19, 20, 33)],
    "zip": ["111", "112", "121", "211", "212"],
    "colour": list(GROUPS),
    "day": ["2024-01-31", "2024-02-01", "2024-02-29", "2025-02-01"],
}


@st.composite
def linked(draw: Any, names: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    """Rows of a release whose cells have levels of their own, some blanked; and persons, not all known."""
    record = st.tuples(*[st.sampled_from(VALUES[name]) for name in names])
    rows = []
    for values in draw(st.lists(record, min_size=1, max_size=12)):
        cells = []
        for name, value in zip(names, values, strict=True):
            level = draw(st.integers(0, len(LABELS[name])))
            cells.append(None if level == len(LABELS[name]) else LABELS[name][level](value))
        rows.append((*cells, draw(st.sampled_from(["flu", "gout", None]))))
    person = st.tuples(*[st.sampled_from([*VALUES[name], None]) for name in names])
    return rows, draw(st.lists(person, min_size=1, max_size=12))


def covers(name: str, cell: str | None, value: str | None) -> bool:
    """Return whether some level makes the cell of the value."""
    return cell is None or value is None or any(label(value) == cell for label in LABELS[name])


def naive(names: tuple[str, ...], rows: list[Any], persons: list[Any]) -> dict[str, Any]:
    """Match by two loops."""
    sizes, learnt = [], 0
    for person in persons:
        own = [row for row in rows if all(map(covers, names, row, person))]
        sizes.append(len(own))
        values = {row[-1] for row in own}
        learnt += len(values) == 1 and None not in values
    return {
        "matched": sum(size > 0 for size in sizes),
        "singled_out": sizes.count(1),
        "below_k": sum(0 < size < 3 for size in sizes),
        "smallest": min([size for size in sizes if size], default=0),
        "learnt": {"ill": learnt},
        "sizes": [{"records": s, "persons": n} for s, n in sorted(Counter(sizes).items()) if s],
    }


def lonely(names: tuple[str, ...], rows: list[Any], persons: list[Any]) -> tuple[str, ...]:
    """Note columns of which at least half of the known values match no record but by empty cells."""
    notes = []
    for place, name in enumerate(names):
        cells = {row[place] for row in rows} - {None, "*"}
        known = {person[place] for person in persons} - {None}
        alone = [value for value in known if not any(covers(name, cell, value) for cell in cells)]
        if cells and known and 2 * len(alone) >= len(known):
            many = f"{len(alone)} of {len(known)} known value{'s' * (len(known) > 1)}"
            notes.append(
                f"{many} of {name!r} match no record by that column alone. Does the release "
                "write them in another way?"
            )
    return tuple(notes)


def frame(rows: list[Any], names: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(names), dtype="string")


def check(names: tuple[str, ...], rows: list[Any], persons: list[Any], **told: Any) -> shoal.Attack:
    release, known = frame(rows, (*names, "ill")), frame(persons, names)
    found = shoal.attack(release, known, names, k=3, sensitive="ill", engine=LIST_ENGINE, **told)
    expected = naive(names, rows, persons)
    assert {key: value for key, value in found.to_dict().items() if key in expected} == expected
    assert (found.persons, found.unmatched) == (len(persons), len(persons) - found.matched)
    return found


@settings(max_examples=examples(60), deadline=None)
@given(linked(("age", "zip", "colour", "day")))
def test_match_sets_are_those_of_two_loops(tables: tuple[list[Any], list[Any]]) -> None:
    names = ("age", "zip", "colour", "day")
    assert check(names, *tables, policy=POLICY).notes == lonely(names, *tables)


@settings(max_examples=examples(60), deadline=None)
@given(linked(("age", "zip", "day")))
def test_labels_are_read_where_nothing_tells(tables: tuple[list[Any], list[Any]]) -> None:
    names = ("age", "zip", "day")
    assert check(names, *tables).notes == lonely(names, *tables)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_linking_is_two_loops_over_any_compatibility(data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.workflow.attack.linking._WORDS", data.draw(st.sampled_from([0, 4, 1000])))
        _link_anything(data)


def _link_anything(data: Any) -> None:
    columns = data.draw(st.integers(1, 4))
    tables = []
    for _ in range(columns):
        labels, values = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
        cells = st.lists(st.booleans(), min_size=labels, max_size=labels)
        wild = np.array(data.draw(cells)) & np.array(data.draw(cells))
        free = np.array(
            data.draw(st.lists(st.sampled_from([True, False, False]), min_size=values, max_size=values))
        )
        pairs = np.array([data.draw(cells) for _ in range(values)]) & ~wild
        starts = np.append(0, np.cumsum(pairs.sum(axis=1)))
        tables.append((Compatible(wild, free, starts, np.nonzero(pairs)[1]), pairs | wild | free[:, None]))
    look = st.tuples(*[st.integers(0, t[1].shape[1] - 1) for t in tables])
    released = np.array(data.draw(st.lists(look, min_size=1, max_size=20, unique=True))).T
    person = st.tuples(*[st.integers(0, t[1].shape[0] - 1) for t in tables])
    known = np.array(data.draw(st.lists(person, min_size=1, max_size=15))).T
    sizes = np.array(
        data.draw(st.lists(st.integers(1, 9), min_size=released.shape[1], max_size=released.shape[1]))
    )
    only = np.array(
        [data.draw(st.lists(st.sampled_from([-2, 0, 1]), min_size=len(sizes), max_size=len(sizes)))]
    )
    found, learnt = link(released, sizes, only, known, [table for table, _ in tables])
    for row, person_ in enumerate(known.T):
        own = np.array(
            [all(t[1][v, l] for t, v, l in zip(tables, person_, c, strict=True)) for c in released.T]
        )
        assert found[row] == sizes[own].sum()
        codes = set(only[0][own].tolist())
        assert learnt[0, row] == (-1 if not codes else codes.pop() if len(codes) == 1 else -2)


@pytest.mark.parametrize(
    ("label", "inside", "outside"),
    [
        ("45-49", ["45", "49.0", "49.5"], ["44", "50", "x"]),
        ("-5--1", ["-5", "-1"], ["0"]),
        ("-5 to -1", ["-5", "-1"], ["0"]),
        ("[45, 50)", ["45", "49.9"], ["50"]),
        ("(45, 50]", ["50", "45.1"], ["45"]),
        ("<18", ["17", "-2"], ["18"]),
        (">=18", ["18"], ["17"]),
        ("90+", ["90", "104"], ["89"]),
        ("[25-28]", ["25", "28"], ["24", "29"]),
        ("[-3 to 5]", ["-3", "5"], ["6"]),
        ("[2020-01-31 to 2020-02-03]", ["2020-02-03", "2020-02-03 23:00:00"], ["2020-02-04"]),
        ("[2020-01-31 to 2020-02-03] or missing", ["1999-01-01"], []),
        ("2024-Q1", ["2024-03-31"], ["2024-04-01"]),
        ("2024-H2", ["2024-12-31"], ["2024-06-30"]),
        ("2024-02 week 5", ["2024-02-29"], ["2024-02-28"]),
        ("2020s", ["2020-01-01", "2029-12-31"], ["2030-01-01"]),
        ("2024", ["2024", "2024-05-05"], ["2025-01-01"]),
        ("14:00-14:59", ["14:00", "14:59:30"], ["15:00"]),
        ("night", ["05:59"], ["06:00"]),
        ("12***", ["12345"], ["13345"]),
        ('{a, "b, c"}', ["a", "b, c"], ["b"]),
        ('"{a, b}"', ["{a, b}"], ["a"]),
        ("{1, 2}", ["1", "2.0"], ["3"]),
        ("007", ["007", "7"], ["70"]),
        ("*", ["anything"], []),
        ("", ["anything"], []),
        ("missing", ["anything"], []),
    ],
)
def test_an_intruder_reads_labels(label: str, inside: list[str], outside: list[str]) -> None:
    release = frame([(label,)], ("x",))
    for value in inside:
        assert shoal.attack(release, frame([(value,)], ("x",)), "x", engine=LIST_ENGINE).matched == 1, value
    if outside:  # together, so that none of them is thought to be read as a value of the release
        told = shoal.attack(release, frame([(value,) for value in outside], ("x",)), "x", engine=LIST_ENGINE)
        assert told.matched == 0


def test_words_that_nobody_can_read_cover_everything_and_are_told() -> None:
    release = frame([("spouse",), ("no spouse",), ("*",)], ("status",))
    found = shoal.attack(
        release, frame([("married",), ("single",)], ("status",)), "status", engine=LIST_ENGINE
    )
    assert (found.smallest, found.matched) == (3, 2)
    assert found.notes == (
        "2 labels of 'status' could not be read and may cover any value. Give the policy or the recipe.",
    )


def test_words_beside_known_values_are_values_that_nobody_known_has() -> None:
    release = frame([("female",), ("male",), ("male",)], ("sex",))
    found = shoal.attack(release, frame([("female",)], ("sex",)), "sex", engine=LIST_ENGINE)
    assert (found.singled_out, found.smallest) == (1, 1)
    assert found.notes[0].startswith("1 label of 'sex' equal no known value and were taken for values")


def test_unknown_codes_may_be_anything_on_both_sides() -> None:
    policy = {
        "columns": {"zip": {"role": QUASI, "hierarchy": {"prefix": [1], "unknown": ["999"]}}},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    release, known = frame([("111",), ("211",), ("999",)], ("zip",)), frame([("111",), ("999",)], ("zip",))
    found = shoal.attack(release, known, "zip", policy=policy, engine=LIST_ENGINE)
    assert found.exposure.sizes == (2, 3)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("fractions", [False, True])
def test_bounds_are_joined_as_the_bands_they_are(level: int, fractions: bool) -> None:
    rule: dict[str, Any] = {"intervals": [5, 10], "bottom_coding": 5, "top_coding": 30}
    policy = {
        "columns": {"age": {"role": QUASI, "hierarchy": rule, "release_as": "bounds"}},
        "models": [{"k-anonymity": {"k": 1}}],
    }
    ages = [1.0, 4.0, 5.0, 9.0, 10.0, 14.0, 15.0, 29.0, 30.0, 80.0] + [9.5] * fractions
    table = pd.DataFrame({"age": ages})
    release = shoal.anonymize(table, policy, node={"age": level}, engine=ENGINE)
    found = shoal.attack(release.table, table, "age", policy=policy, engine=ENGINE)
    sizes = Counter(_band(age, level) for age in ages)
    assert found.exposure == exposure_of(np.array(list(sizes.values())))


def _band(age: float, level: int) -> object:
    if level == 0:
        return age
    width = 5 * level
    return "low" if age < 5 else "high" if age >= 30 else max(5, age // width * width)


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(list(GROUPS))), min_size=4, max_size=40))
def test_regions_are_read_as_they_are_written(records: list[Any]) -> None:
    """Ranges and sets, read by expressions of the test's own."""
    columns = {"age": COLUMNS["age"], "colour": COLUMNS["colour"]}
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "algorithm": "mondrian"}
    table = pd.DataFrame(records, columns=["age", "colour"])
    release = shoal.anonymize(table, policy, engine=ENGINE).table

    def within(age: int, label: Any) -> bool:
        low, *high = re.findall(r"\d+", str(label))
        return str(label) == "*" or int(low) <= age <= int((high or [low])[0])

    def inside(colour: str, label: str) -> bool:
        return label == "*" or colour in re.findall(r"\w+", label)

    rows = list(release.itertuples(index=False))
    sizes = [
        sum(within(age, row.age) and inside(colour, row.colour) for row in rows) for age, colour in records
    ]
    for told in ({}, {"policy": policy}):
        found = shoal.attack(
            release.astype("string"),
            table.astype("string"),
            ["age", "colour"],
            k=2,
            engine=LIST_ENGINE,
            **told,
        )
        expected = Counter(sizes)
        assert dict(zip(found.exposure.sizes, found.exposure.records, strict=True)) == expected
        assert found.below_k == 0


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        {"suppressed": "mask"},
        {"algorithm": {"auto": {"cells": True}}},
        {"algorithm": {"auto": {"refine": True}}},
        {"algorithm": "mondrian"},
    ],
    ids=["node", "mask", "cells", "refine", "mondrian"],
)
def test_the_sample_s_releases_withstand_who_knows_every_quasi_identifier(
    wishes: dict[str, Any], tmp_path: Path
) -> None:
    data, written = bundled(tmp_path, force=False)
    entries = shoal.Policy.load(written).written() | wishes
    policy = shoal.Policy.load(entries)
    release = shoal.anonymize(data, policy, output=tmp_path / "release.csv", engine=ENGINE)
    quasi = policy.roles.quasi_identifiers
    for told in ({"policy": policy}, {"recipe": release.recipe}):
        found = shoal.attack(tmp_path / "release.csv", data, quasi, engine=ENGINE, **told)
        assert (found.k, found.below_k, found.singled_out) == (5, 0, 0)
        assert found.learnt == {"diagnosis": 0}  # l-diversity with l = 2
        assert found.matched >= release.records - release.suppressed
        # All records of two rare values are suppressed: they match none.
        assert all("known values of 'sex' match no record" in note for note in found.notes)


@adult.needs_adult
def test_raw_adult_has_the_uniques_that_it_has_in_two_seconds() -> None:
    root = adult.folder()
    assert root is not None
    counts, _ = adult.counted(adult.COLUMNS)
    found = shoal.attack(root / "adult.csv", root / "adult.csv", adult.COLUMNS, engine=ENGINE)
    assert fastest(lambda: shoal.attack(*[root / "adult.csv"] * 2, adult.COLUMNS, engine=ENGINE), 2) < 2
    assert found.singled_out == (counts.sizes == 1).sum()
    assert found.exposure == exposure_of(counts.sizes)


@adult.needs_adult
@pytest.mark.parametrize(
    "wishes", [{"suppression_limit": "5%"}, {"algorithm": "mondrian"}], ids=["node", "mondrian"]
)
def test_a_release_of_adult_withstands(wishes: dict[str, Any]) -> None:
    root = adult.folder()
    assert root is not None
    policy = adult.policy(**wishes)
    release = shoal.anonymize(root / "adult.csv", policy, engine=ENGINE)
    found = shoal.attack(release.table, root / "adult.csv", adult.COLUMNS, policy=policy, engine=ENGINE)
    assert (found.below_k, found.notes) == (0, ())
    assert found.smallest >= 5
    assert found.matched >= release.records - release.suppressed


@pytest.mark.parametrize(
    ("on", "sensitive", "kind", "text"),
    [
        ([], [], UsageError, "No columns to join on. Name those known of persons"),
        (["agee"], [], UnknownName, "Unknown column of the release 'agee'. Did you mean 'age'?"),
        (["age=year"], [], UnknownName, "Unknown column of what is known 'year'. Did you mean 'years'?"),
        (["age=years", "age=years"], [], UsageError, "The column of the release 'age' is named twice."),
        (["age=years", ""], [], UsageError, "A column to join on has an empty name."),
        (["age="], [], UsageError, "A column to join on has an empty name."),
        (["age=years"], ["il"], UnknownName, "Unknown sensitive column 'il'. Did you mean 'ill'?"),
        (["age=years"], ["age"], UsageError, "'age' is both known and sensitive"),
        (["age=years"], ["ill", "ill"], UsageError, "The sensitive column 'ill' is named twice."),
    ],
)
def test_bad_names_say_what_to_do(on: list[str], sensitive: list[str], kind: type, text: str) -> None:
    release, known = frame([(SECRET, SECRET)], ("age", "ill")), frame([(SECRET,)], ("years",))
    with pytest.raises(kind) as caught:
        shoal.attack(release, known, on, sensitive=sensitive, engine=ENGINE)
    assert str(caught.value).startswith(text)
    assert SECRET not in str(caught.value)


def test_empty_tables_and_a_k_of_0_are_refused() -> None:
    one = frame([("1",)], ("x",))
    with pytest.raises(DataError, match=r"The release has no rows."):
        shoal.attack(one.iloc[:0], one, "x", engine=ENGINE)
    with pytest.raises(DataError, match=r"The table of known persons has no rows."):
        shoal.attack(one, one.iloc[:0], "x", engine=ENGINE)
    with pytest.raises(UsageError, match=r"k must be at least 1, got 0."):
        shoal.attack(one, one, "x", k=0, engine=ENGINE)


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.workflow.attack.covering._MOST_PAIRS", 3)
    known = frame([(str(n),) for n in range(4)], ("x",))
    with pytest.raises(DataError, match="Column 'x' has too many labels for too many values"):
        shoal.attack(frame([("0-9",)], ("x",)), known, "x", engine=ENGINE)


def test_a_group_of_a_tree_stands_for_its_leaves() -> None:
    from shoal.core.hierarchy.builders import parse

    reader = Reader(parse("colour", {"tree": TREE}))
    assert reader.label("warm").texts == {"warm", "red", "orange"}
    assert reader.label("teal").understood is False


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    release = [("30-39", "flu"), ("30-39", "gout"), ("40-49", f"{SECRET} pox")]
    known = [
        (f"{SECRET} Ann", 31, 1),
        (f"{SECRET} Bob", 45, 2),
        (f"{SECRET} Cid", 45, 3),
        (f"{SECRET} Dee", 9, 4),
    ]
    paths = {name: tmp_path / f"{name}.csv" for name in ("release", "known")}
    pd.DataFrame(release, columns=["age", "ill"]).to_csv(paths["release"], index=False)
    pd.DataFrame(known, columns=["name", "years", "card"]).to_csv(paths["known"], index=False)
    return paths


def run(files: dict[str, Path], *options: str) -> Any:
    arguments = ["attack", str(files["release"]), "--known", str(files["known"]), *options]
    return CliRunner(env={"COLUMNS": "140"}).invoke(app, arguments)


def test_json_is_what_python_returns(files: dict[str, Path]) -> None:
    told = run(files, "--on", "age=years", "--sensitive", "ill", "--k", "2", "--json")
    assert told.exit_code == 1
    found = shoal.attack(files["release"], files["known"], "age=years", sensitive="ill", k=2)
    assert json.loads(told.stdout) == json.loads(json.dumps(found.to_dict()))
    assert (found.persons, found.matched, found.singled_out, found.below_k) == (4, 3, 2, 2)
    assert (found.learnt, found.smallest) == ({"ill": 2}, 1)
    assert SECRET not in told.stdout


def test_plain_words_and_no_value_unless_revealed(files: dict[str, Path]) -> None:
    shown = run(files, "--on", "age=years", "--sensitive", "ill")
    assert shown.exit_code == 1
    assert "3 persons match fewer than 5 records." in shown.stdout
    assert SECRET not in shown.stdout + shown.stderr
    revealed = run(files, "--on", "age=years", "--sensitive", "ill", "--reveal").stdout
    for text in (f"{SECRET} Bob", f"{SECRET} Cid", f"{SECRET} pox", "card"):
        assert text in revealed
    assert f"{SECRET} Ann" not in revealed
    assert f"{SECRET} Dee" not in revealed


def test_nobody_below_k_is_exit_code_0(files: dict[str, Path]) -> None:
    told = run(files, "--on", "age=years", "--k", "1")
    assert (told.exit_code, "No person matches fewer than 1 record." in told.stdout) == (0, True)


def test_reveal_shows_twenty_and_counts_the_rest(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": range(30)})
    paths = {name: tmp_path / f"{name}.csv" for name in ("release", "known")}
    for path in paths.values():
        table.to_csv(path, index=False)
    assert "and 10 more" in run(paths, "--on", "x", "--reveal").stdout
    assert len(json.loads(run(paths, "--on", "x", "--reveal", "--json").stdout)["revealed"]) == 20


def test_errors_hold_no_value_of_the_data(files: dict[str, Path]) -> None:
    told = run(files, "--on", "age=year", "--json")
    assert told.exit_code == 2
    assert json.loads(told.stdout)["error"] == "UnknownName"
    assert SECRET not in told.stdout + told.stderr


def test_groups_of_rare_prefixes_and_early_years_are_read() -> None:
    people = pd.DataFrame(
        {
            "zip": ["03601", "03602", "05901", "10001", "10002", "10003"] * 2,
            "born": ["1930-01-01", "1925-02-02", "1990-01-01", "1990-05-05", "1990-02-01", "1928-02-02"] * 2,
        }
    )
    rules = {
        "zip": {"prefix": [3], "together": ["036", "059"], "label": "000"},
        "born": {"dates": ["year"], "bottom_coding": 1936},
    }
    policy = {
        "columns": {
            name: {"role": "quasi-identifier", "hierarchy": rule, "min_level": 1}
            for name, rule in rules.items()
        },
        "models": [{"k-anonymity": {"k": 2}}],
    }
    release = shoal.anonymize(people, policy)
    assert release.levels == {"zip": 1, "born": 1}
    found = shoal.attack(release.table, people, ["zip", "born"], policy=policy)
    assert found.notes == ()
    sizes = {size["records"]: size["persons"] for size in found.to_dict()["sizes"]}
    assert sizes == {2: 4, 4: 8}  # 000 in 1990, 100* before 1936; 000 before 1936, 100* in 1990


def test_a_prefix_does_not_cover_codes_that_the_rule_puts_elsewhere() -> None:
    rule = {"prefix": [2, 1], "together": ["03", "10"], "label": "rare", "pad": [3]}
    policy = {"columns": {"zip": {"role": QUASI, "hierarchy": rule}}, "models": [{"k-anonymity": {"k": 2}}]}
    release = pd.DataFrame({"zip": ["0*", "0*", "1*", "1*", "1*", "rare", "12***"]})
    known = pd.DataFrame({"zip": ["031", "041", "103", "123", "12", "31"]})
    # 031, 103 and 31, which lost its zero, are among the rare; 12 is 012; another tool wrote the last label.
    for text, size in zip(known["zip"], (1, 2, 1, 4, 3, 1), strict=True):
        found = shoal.attack(release, known[known["zip"] == text], ["zip"], policy=policy)
        assert (text, found.smallest, found.notes) == (text, size, ())
