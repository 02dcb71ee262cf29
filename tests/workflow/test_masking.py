"""Records that are kept masked: which are, who can be told apart from them, and what verify says of both."""

from __future__ import annotations

import math
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from example_counts import usual_or_nightly
from shoal.errors import CannotHonour, Infeasible

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

QUASI = {"role": "quasi-identifier", "hierarchy": "flat"}
SENSITIVE = {"role": "sensitive"}


def masking(*models: Any, **entries: Any) -> dict[str, Any]:
    columns = {"a": QUASI, "b": QUASI, "illness": SENSITIVE, "salary": SENSITIVE}
    return {"columns": columns, "models": list(models), "suppressed": "mask"} | entries


def released(*rows: tuple[Any, ...]) -> pa.Table:
    kinds = [("a", pa.string()), ("b", pa.string()), ("illness", pa.string()), ("salary", pa.int64())]
    return pa.table(
        [pa.array(values, kind) for values, (_, kind) in zip(zip(*rows, strict=True), kinds, strict=True)],
        names=[name for name, _ in kinds],
    )


CLASS = [("x", "y", "flu", 1), ("x", "y", "cold", 2)] * 3
MASKED = [(None, None, None, None)] * 5


@pytest.mark.parametrize(
    "model",
    [
        {"sample-uniqueness": {"share": 0}},
        {"average-risk": {"risk": 0.17}},
        {"distinct-l-diversity": {"l": 2, "column": "illness"}},
        {"k-anonymity": {"k": 5}},
    ],
)
@pytest.mark.parametrize("beside", [[], MASKED], ids=["alone", "beside masked records"])
@pytest.mark.parametrize("seen", [(None, 50_000), ("flu", None), ("flu", 50_000)])
def test_a_visible_record_without_quasi_identifiers_is_not_masked(
    model: dict[str, Any], beside: list[Any], seen: tuple[Any, Any]
) -> None:
    """The attack: one person's sensitive value stands in the release beside empty quasi-identifiers."""
    if seen[0] is None and "distinct-l-diversity" in model:
        seen = ("flu", 50_000)
    unique = (None, None, *seen)
    found = shoal.verify(released(*CLASS, *beside, unique), masking(model))
    assert not found.verified
    assert (found.masked, found.classes, found.smallest_class) == (len(beside), 2, 1)
    assert [check.passed for check in found.models] == [False]


def test_masked_records_are_a_class_of_their_own_beside_visible_ones() -> None:
    visible = [(None, None, "flu", None), (None, None, None, 7), (None, None, "cold", 8)]
    table = released(*CLASS, *MASKED, *visible)
    found = shoal.verify(table, masking({"k-anonymity": {"k": 3}}))
    assert (found.verified, found.masked, found.classes, found.smallest_class) == (True, 5, 2, 3)
    found = shoal.verify(table, masking({"k-anonymity": {"k": 4}}))
    assert not found.verified
    assert (found.models[0].violating_classes, found.models[0].violating_records) == (1, 3)


def test_every_sensitive_column_counts_and_not_only_those_of_the_models() -> None:
    rows = [(None, None, None, salary) for salary in range(5)]
    found = shoal.verify(released(*CLASS, *rows), masking({"k-anonymity": {"k": 5}}))
    assert (found.masked, found.classes) == (0, 2)
    table = released(*CLASS, *rows)
    risk = shoal.risk(table, masking({"k-anonymity": {"k": 5}}), release=table)
    assert risk.after is not None
    assert risk.after.records == 11


def test_nulls_and_codes_for_unknown_that_are_released_alike_are_one_class() -> None:
    """Both have no bounds: 10 flu, and 1 flu beside 1 cold, may be classes; together they may not."""
    rows = [(None, "flu")] * 10 + [("99", "cold"), ("99", "flu")] + [("1", "cold")] * 10 + [("1", "flu")] * 2
    table = pa.table({"b": [b for b, _ in rows], "illness": [illness for _, illness in rows]})
    bounds = {"intervals": [2], "unknown": ["99"]}
    wish = {
        "columns": {
            "b": {"role": "quasi-identifier", "hierarchy": bounds, "release_as": "bounds", "max_level": 1},
            "illness": SENSITIVE,
        },
        "models": [{"delta-disclosure": {"delta": 1.5, "present_only": True}}],
        "suppression_limit": 0.6,
    }
    release = shoal.anonymize(table, wish)
    assert (release.suppressed, release.verification.verified, release.verification.classes) == (12, True, 1)


@pytest.mark.parametrize("algorithm", ["contour", "mondrian", "tds", "bottom-up"])
def test_equal_numbers_written_differently_have_the_same_bounds(algorithm: str) -> None:
    table = pa.table({"b": ["5", "5.0", "5.00", None, "U", "8"] * 2, "label": ["u", "v"] * 6})
    bounds = {"intervals": [2], "unknown": ["U"]}
    wish = {
        "columns": {
            "b": {"role": "quasi-identifier", "hierarchy": bounds, "release_as": "bounds"},
            "label": {"role": "other"},
        },
        "models": [{"k-anonymity": {"k": 2}}],
        "algorithm": algorithm,
        "label": "label",
        "metric": "coverage",
    }
    release = shoal.anonymize(table, wish)
    rows = release.table.to_pylist()
    assert sorted((row["b_lower"] or 0, row["b_upper"] or 0) for row in rows) == (
        [(0, 0)] * 4 + [(5, 5)] * 6 + [(8, 8)] * 2
    )


@pytest.mark.parametrize("empty", [3, 6])
def test_a_release_in_memory_is_verified_by_what_it_knows_of_its_empty_records(empty: int) -> None:
    """Rows that are empty in the input are a class like any other; they are not masked."""
    wish = masking({"k-anonymity": {"k": 3}}, suppression_limit=1)
    rows = [*CLASS, *MASKED[:1] * empty]
    for more, masked in (([], 0), ([("z", "z", "flu", 3)], 0)):
        release = shoal.anonymize(released(*rows, *more), wish, node={"a": 0, "b": 0})
        found = shoal.verify(release, wish)
        assert (found.verified, found.masked, found.classes) == (True, masked, 2)
        assert release.masked == masked
    gone = shoal.anonymize(
        released(*CLASS, *[("z", "z", "flu", 3)] * 3),
        wish
        | {
            "models": [{"k-anonymity": {"k": 2}}, {"distinct-l-diversity": {"l": 2, "column": "illness"}}],
            "suppression_limit": 3,
        },
        node={"a": 0, "b": 0},
    )
    assert (gone.masked, shoal.verify(gone, gone.policy).masked) == (3, 3)
    diverse = wish | {"models": [{"distinct-l-diversity": {"l": 2, "column": "illness"}}]}
    release = shoal.anonymize(released(*rows), wish, node={"a": 0, "b": 0})
    assert not shoal.verify(release, diverse).verified  # one class has a single value: missing
    assert shoal.verify(release.table, diverse).verified  # of the table alone nothing else is known


@pytest.mark.parametrize("output", [None, "out.csv"])
@pytest.mark.parametrize("model", [{"t-closeness": {"t": 0.5}}, {"k-anonymity": {"k": 3}}])
def test_a_release_brings_its_own_reference_and_second_table(
    tmp_path: Path, output: str | None, model: dict[str, Any]
) -> None:
    where = None if output is None else tmp_path / output
    wish = masking(model)
    wish["columns"]["salary"] = {"role": "other"}
    release = shoal.anonymize(released(*CLASS), wish, output=where)
    assert shoal.verify(release, wish).verified
    if output is None and "t-closeness" in model:
        assert shoal.verify(release.table, wish).unchecked
    parted = wish | {"models": [{"distinct-l-diversity": {"l": 2}}], "algorithm": "anatomy"}
    parted["columns"]["illness"] = SENSITIVE
    release = shoal.anonymize(released(*CLASS), parted | {"suppressed": "drop"}, output=where, force=True)
    assert shoal.verify(release, parted | {"suppressed": "drop"}).verified


def delta_disclosed(classes: list[list[str | None]], whole: list[str | None], delta: float) -> bool:
    """Return whether the share of some value that a class has differs by a factor, by its definition."""
    shares = {value: number / len(whole) for value, number in Counter(whole).items()}
    return any(
        abs(math.log(number / len(one) / shares[value])) >= delta
        for one in classes
        for value, number in Counter(one).items()
    )


@pytest.mark.parametrize("algorithm", ["contour", "exhaustive", "mondrian", "tds", "bottom-up"])
def test_bounds_of_nulls_and_unknown_codes_are_classes_as_the_recipient_counts_them(
    algorithm: str, tmp_path: Path
) -> None:
    """Released to a file, to a frame, and by the recipe to new data with other codes."""
    rule = {"intervals": [2, 4], "unknown": ["99", "U"]}
    flat = QUASI | {"hierarchy": rule, "release_as": "bounds"}
    columns = {"b": flat, "c": flat, "illness": SENSITIVE, "label": {"role": "other"}}
    codes = [None, "99", "U", "0", "0.0", "-0", "2", "3", "5", "5.0", "5.00"]
    released_tables = 0
    for seed in range(usual_or_nightly(12, 200)):
        rng = random.Random(f"{algorithm} {seed}")
        delta, weights = rng.choice([0.4, 0.8, 1.5]), [rng.choice([0.2, 1, 3]) for _ in codes]
        wish = {
            "columns": columns,
            "models": [{"delta-disclosure": {"delta": delta, "present_only": True}}],
            "suppression_limit": rng.choice([0.3, 0.6, 0.9]),
            "algorithm": algorithm,
            "metric": "coverage",
            "label": "label",
        }

        def drawn(rng: random.Random = rng, weights: list[float] = weights) -> pa.Table:
            size = rng.randint(10, 50)
            values = {name: rng.choices(codes, weights, k=size) for name in "bc"}
            values["illness"] = rng.choices([None, "flu", "cold"], [1, 4, 2], k=size)
            return pa.table(values | {"label": rng.choices("uv", k=size)})

        def counted(release: shoal.Release, table: pa.Table, delta: float = delta) -> None:
            classes: dict[tuple[Any, ...], list[str | None]] = {}
            for row in release.table.to_pylist():
                key = tuple(row[f"{name}_{end}"] for name in "bc" for end in ("lower", "upper"))
                classes.setdefault(key, []).append(row["illness"])
            assert sum(map(len, classes.values())) == table.num_rows - release.suppressed
            assert len(classes) == release.verification.classes
            assert not delta_disclosed(list(classes.values()), table["illness"].to_pylist(), delta)

        table = drawn()
        with suppress(Infeasible):
            counted(shoal.anonymize(table, wish), table)
            kept = shoal.anonymize(table, wish, output=tmp_path / f"{seed}.csv")
            released_tables += 1
            after = drawn()
            counted(shoal.apply(kept.recipe, after, suppression_limit=0.95), after)
    assert released_tables > 3


# Values that look like what stands for a null, or for everything


def cities(*values: str | None) -> pa.Table:
    return pa.table({"city": list(values), "label": ["u", "v"] * (len(values) // 2)})


def city_policy(algorithm: Any, hierarchy: Any = "flat", k: int = 3, **entries: Any) -> dict[str, Any]:
    columns = {"city": QUASI | {"hierarchy": hierarchy}, "label": {"role": "other"}}
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": k}}], "algorithm": algorithm}
    return wish | {"label": "label", "metric": "coverage"} | entries


TREE = {"tree": {"g": ["x", "y"], "h": ["z", "w", "v"], "i": ["missing"]}}


@pytest.mark.parametrize("algorithm", [{"contour": {"refine": True}}, "tds", "bottom-up"])
def test_a_null_that_is_not_generalized_is_released_as_null(algorithm: Any) -> None:
    table = cities(*[None] * 4, *["x"] * 4, "y", "z", "w", "v")
    shown = shoal.anonymize(table, city_policy(algorithm, TREE)).table["city"].to_pylist()
    assert sorted(shown, key=str) == [None] * 4 + ["g"] * 5 + ["h"] * 3


@pytest.mark.parametrize("algorithm", ["tds", "bottom-up"])
@pytest.mark.parametrize(("before", "after"), [("missing", None), (None, "missing")])
def test_a_recipe_tells_null_and_the_text_missing_apart(
    tmp_path: Path, algorithm: str, before: str | None, after: str | None
) -> None:
    """No class of the recipe covers the other one of the two, so its records are suppressed."""
    rest = [*["x"] * 4, "y", "z", "w", "v"]
    wish = city_policy(algorithm, TREE, suppression_limit=0.9)
    recipe = shoal.anonymize(cities(*[before] * 4, *rest), wish, output=tmp_path / "o.csv").recipe
    assert recipe is not None
    release = shoal.apply(recipe, cities(*[after] * 4, *rest))
    assert release.suppressed >= 4
    assert set(release.table["city"].to_pylist()).isdisjoint({None, "missing"})


@pytest.mark.parametrize("algorithm", ["mondrian", "k-optimize", "greedy-cuts"])
@pytest.mark.parametrize("hierarchy", ["flat", {"prefix": [1]}, {"csv": ""}])
def test_codes_that_are_equal_as_numbers_stay_apart(algorithm: str, hierarchy: Any, tmp_path: Path) -> None:
    codes = ["0", "-0", "00", "5"]
    if "csv" in hierarchy:
        (tmp_path / "codes.csv").write_text("".join(f"{code};*\n" for code in codes))
        hierarchy = {"csv": str(tmp_path / "codes.csv")}
    wish = city_policy(algorithm, hierarchy, k=4, metric="discernibility")
    shown = shoal.anonymize(cities(*codes * 4), wish).table["city"].to_pylist()
    assert sorted(shown) == sorted(codes * 4)


def test_a_star_of_the_data_is_not_the_group_of_all_values() -> None:
    """A hierarchy without a top has no group for a class of everything; it must not look like a value."""
    hierarchy = {"tree": {"g": ["x"], "h": ["y"], "i": ["*"]}, "top": False}
    table = pa.table({"a": ["*"] * 3 + ["x", "y", "*"], "b": ["1"] * 3 + ["2"] * 3})
    wish = {
        "columns": {"a": QUASI | {"hierarchy": hierarchy}, "b": QUASI},
        "models": [{"k-anonymity": {"k": 3}}],
        "algorithm": {"mondrian": {"categorical": "hierarchy"}},
    }
    shown = shoal.anonymize(table, wish).table.to_pylist()
    assert Counter(row["a"] for row in shown) in (Counter({"*": 3, "**": 3}), Counter({"i": 3, "*": 3}))


@pytest.mark.parametrize("told", ["nothing", "policy", "recipe"])
def test_a_value_missing_is_read_as_a_value_by_an_attack(told: str, tmp_path: Path) -> None:
    table = cities(*["missing"] * 4, *["Ulm"] * 3, *["Bern"] * 3)
    wish = city_policy("auto")
    release = shoal.anonymize(table, wish, output=tmp_path / "o.csv", node={"city": 0})
    known: dict[str, Any] = {"nothing": {}, "policy": {"policy": wish}, "recipe": {"recipe": release.recipe}}
    found = shoal.attack(tmp_path / "o.csv", table, "city", **known[told])
    assert (found.smallest, found.exposure.sizes) == (3, (3, 4))
    if told == "recipe":  # also where nobody known has it
        found = shoal.attack(tmp_path / "o.csv", cities("Ulm", "Bern"), "city", **known[told])
        assert found.exposure.sizes == (3,)


def test_a_single_masked_record_is_unique() -> None:
    found = shoal.verify(released(*CLASS, MASKED[0]), masking({"sample-uniqueness": {"share": 0}}))
    assert (found.verified, found.masked) == (False, 1)
    found = shoal.verify(released(*CLASS, MASKED[0]), masking({"k-anonymity": {"k": 3}}))
    assert "1 masked record is fewer than 3" in found.reasons


@pytest.mark.parametrize("kind", ["file", "arrow", "pandas", "polars"])
def test_records_that_are_empty_by_themselves_are_a_class(kind: str, tmp_path: Path) -> None:
    rows = [("x", "u", 1), ("x", "v", 2), ("x", "u", 3), (None, "u", 4), (None, "v", 5), (None, None, 6)]
    table: Any = pa.table(dict(zip(("a", "s", "id"), map(list, zip(*rows, strict=True)), strict=True)))
    wish = {
        "columns": {"a": QUASI | {"max_level": 0}, "s": SENSITIVE, "id": {"role": "other"}},
        "models": [{"k-anonymity": {"k": 3}}],
        "suppression_limit": "50%",
        "suppressed": "mask",
    }
    output = {"output": tmp_path / "r.csv"} if kind == "file" else {}
    if kind in ("pandas", "polars"):
        table = table.to_pandas() if kind == "pandas" else pytest.importorskip("polars").from_arrow(table)
    release = shoal.anonymize(table, wish, **output)
    assert release.verification.verified
    written = output["output"] if output else release.table
    for known in ({}, {"recipe": release.recipe}, {"reference": table}):
        found = shoal.verify(written, wish, **known)
        assert (found.verified, found.masked, found.smallest_class) == (True, 0, 3), known
    fewer = wish | {"models": [{"k-anonymity": {"k": 4}}]}
    assert not shoal.verify(written, fewer).verified


# Random tables against plain Python

ALGORITHMS: list[Any] = [
    "contour", {"contour": {"refine": True}}, "datafly", "samarati", "mondrian",
    {"mondrian": {"categorical": "hierarchy"}}, {"mondrian": {"relaxed": True}}, "tds", "bottom-up",
    "k-optimize", "greedy-cuts", "mu-argus", {"local": 1}, {"local": 3},
]  # fmt: skip
K3 = [{"k-anonymity": {"k": 3}}]
DIVERSE = [{"k-anonymity": {"k": 2}}, {"distinct-l-diversity": {"l": 2, "column": "illness"}}]
PRESENT = [
    {"k-anonymity": {"k": 2}},
    {"delta-disclosure": {"delta": 1.5, "present_only": True, "column": "illness"}},
]
WHOLE = [{"sample-uniqueness": {"share": 0}}, {"average-risk": {"risk": 0.4}}]
Row = dict[str, Any]


def random_rows(rng: random.Random, number: int) -> list[Row]:
    texts, numbers = [None, "x", "y", "missing", "*"], [None, 0, 1, 2, 99]
    often = [[rng.random() + rng.choice([0, 1, 3]) * (not place) for place in range(5)] for _ in range(2)]
    return [
        {
            "a": rng.choices(texts, often[0])[0],
            "b": rng.choices(numbers, often[1])[0],
            "illness": rng.choice([None, "flu", "cold"]),
            "salary": rng.choice([None, None, 1, 2]),
            "label": rng.choice("uv"),
        }
        for _ in range(number)
    ]


def arrow(rows: list[Row]) -> pa.Table:
    kinds = {"a": pa.string(), "b": pa.int64(), "illness": pa.string(), "salary": pa.int64()}
    kinds["label"] = pa.string()
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def random_policy(rng: random.Random, algorithm: Any) -> dict[str, Any]:
    name = str(algorithm)
    models, metric = [K3, DIVERSE, PRESENT, WHOLE], "coverage"
    if "k-optimize" in name or "greedy" in name:
        models, metric = [K3], "discernibility"
    elif "mu-argus" in name or "relaxed" in name:
        models = [K3]
    elif "mondrian" in name or "datafly" in name or "samarati" in name:
        models = [K3, DIVERSE] if "mondrian" not in name else [K3, DIVERSE, PRESENT]
    local = {"algorithm": "contour", "local": {"labels": algorithm["local"]}} if "local" in name else {}
    groups = {"g": ["x", "y"], "h": ["*"], "i": ["missing"]}
    texts = rng.choice(["flat", {"tree": groups}, {"tree": groups, "top": False}])
    numbers: Any = rng.choice([{"intervals": [2], "unknown": ["99"]}, "flat"])
    bounds = numbers != "flat" and rng.random() < 0.3 and "mu-argus" not in name and not local
    numeric = QUASI | {"hierarchy": numbers} | ({"release_as": "bounds"} if bounds else {})
    columns = {
        "a": QUASI | {"hierarchy": texts},
        "b": numeric,
        "illness": SENSITIVE,
        "salary": SENSITIVE,
        "label": {"role": "other"},
    }
    return {
        "columns": columns,
        "models": rng.choice(models),
        "suppression_limit": rng.choice([0, 2, 4, 0.5, 0.9]),
        "suppressed": "drop" if bounds else "mask",
        "algorithm": algorithm,
        "metric": metric,
        "label": "label",
    } | local


def divide(rows: list[Row], quasi: list[str]) -> tuple[list[list[Row]], int]:
    """Return the classes of the visible records, and how many records are masked."""
    blank = [all(row[name] is None for name in (*quasi, "illness", "salary")) for row in rows]
    classes: dict[tuple[Any, ...], list[Row]] = {}
    for row, masked in zip(rows, blank, strict=True):
        if not masked:
            classes.setdefault(tuple(row[name] for name in quasi), []).append(row)
    return list(classes.values()), sum(blank)


def holds(models: list[dict[str, Any]], classes: list[list[Row]], masked: int) -> bool:
    """Judge visible classes, and masked records, which are a class whose values do not count."""
    sizes = list(map(len, classes))
    every = [*sizes, *([masked] if masked else [])]
    for model in models:
        ((name, options),) = model.items()
        if name == "k-anonymity" and min(every) < options["k"]:
            return False
        if name == "distinct-l-diversity" and (
            min(len({row["illness"] for row in own}) for own in classes) < options["l"]
            or 0 < masked < options["l"]
        ):
            return False
        if name == "sample-uniqueness" and 1 in every:
            return False
        if name == "average-risk" and any(
            len(own) > options["risk"] * sum(own) + 1e-9 for own in (sizes, every)
        ):
            return False
    return True


def check_release(wish: dict[str, Any], release: shoal.Release, number: int) -> None:
    rows = release.table.to_pylist()
    quasi = [name for name in ("a", "b", "b_lower", "b_upper") if name in rows[0]]
    assert len(rows) == number - release.suppressed + release.masked
    if wish["algorithm"] == "mu-argus":
        assert release.masked == 0
        return
    if release.masked:
        classes, masked = divide(rows, quasi)
        assert masked == release.masked
        found = shoal.verify(release.table, wish, reference=None)
        assert (found.masked, found.classes) == (masked, len(classes))
    else:  # nobody is masked, also where a record is empty by itself
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in quasi), []).append(row)
        classes, masked = list(groups.values()), 0
    assert holds(wish["models"], classes, masked)
    seen = release.verification
    assert (seen.masked, seen.classes, seen.smallest_class) == (masked, len(classes), min(map(len, classes)))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_releases_and_applied_recipes_satisfy_the_models(algorithm: Any, tmp_path: Path) -> None:
    for seed in range(usual_or_nightly(2, 100)):
        rng = random.Random(f"{algorithm} {seed}")
        wish = random_policy(rng, algorithm)
        one, two = (random_rows(rng, rng.randint(5, 16)) for _ in range(2))
        if len({row["label"] for row in one}) < 2:  # searches that predict the label refuse the table
            continue
        try:
            release = shoal.anonymize(arrow(one), wish)
            check_release(wish, release, len(one))
            kept = shoal.anonymize(arrow(one), wish, output=tmp_path / f"{seed}.parquet")
        except (Infeasible, CannotHonour):
            continue
        assert kept.recipe is not None
        if wish["algorithm"] != "mu-argus":
            for known in ({}, {"recipe": kept.recipe}):
                assert kept.output is not None
                found = shoal.verify(kept.output, wish, **known)
                assert found.verified == kept.verification.verified or not found.reasons, (seed, known)
        with suppress(Infeasible):
            check_release(wish, shoal.apply(kept.recipe, arrow(two)), len(two))


@pytest.mark.parametrize("models", [K3, DIVERSE, WHOLE], ids=["k", "l", "whole"])
def test_verify_agrees_with_plain_python_on_any_table(models: list[dict[str, Any]]) -> None:
    for seed in range(usual_or_nightly(8, 300)):
        rng = random.Random(seed)
        rows = [
            {name: value for name, value in row.items() if name != "label"}
            | ({"a": None, "b": None, "illness": None, "salary": None} if rng.random() < 0.3 else {})
            for row in random_rows(rng, rng.randint(1, 40))
        ]
        for row in rows:
            row["a"], row["b"] = row["a"] and "x", None if row["b"] is None else 1
        columns = {"a": QUASI, "b": QUASI, "illness": SENSITIVE, "salary": SENSITIVE}
        classes, masked = divide(rows, ["a", "b"])
        if not classes:
            continue
        table = arrow([row | {"label": "u"} for row in rows]).drop_columns(["label"])
        found = shoal.verify(table, {"columns": columns, "models": models, "suppressed": "mask"})
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault((row["a"], row["b"]), []).append(row)
        as_masked, as_class = holds(models, classes, masked), holds(models, list(groups.values()), 0)
        least = max(next(iter(model.values())).get("k", 0) or 1 for model in models)
        taken_as_class = as_class and 0 < masked < max(least, 2 if models is DIVERSE else 1)
        assert found.verified == (as_masked or taken_as_class)
        seen = (found.masked, found.classes, found.smallest_class)
        if as_masked or not taken_as_class:
            assert seen == (masked, len(classes), min(map(len, classes)))
        else:  # shoal masks no record, or at least k
            assert seen == (0, len(groups), min(map(len, groups.values())))


def test_records_that_could_not_be_masked_are_noted() -> None:
    from shoal.policy.policy import Policy
    from shoal.workflow.release.notes import mask_notes

    quasi = {"role": "quasi-identifier", "hierarchy": "flat"}
    written = {"columns": {"age": quasi, "ward": {"role": "other"}}, "models": [{"k-anonymity": {"k": 2}}]}
    masking = Policy.load(written | {"suppressed": "mask"})
    assert list(mask_notes(masking, 3, masked=True)) == []
    assert ["had to be dropped" in note for note in mask_notes(masking, 1, masked=False)] == [True]
    assert list(mask_notes(masking, 0, masked=False)) == []
    assert list(mask_notes(Policy.load(written), 3, masked=False)) == []
