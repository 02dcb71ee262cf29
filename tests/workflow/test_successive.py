"""Two releases of one table: what remains of k, by brute force; and how `verify --against` tells it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import adult
import shoal
from example_counts import examples
from list_engine import ListEngine
from shoal.cli.app import app
from shoal.errors import DataError, PolicyError, UsageError
from shoal.policy.policy import Policy
from shoal.sample import bundled
from shoal.workflow.release.recipe import Recipe

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

LIST_ENGINE = ListEngine()
SECRET = "SECRETVAL7"
QUASI = "quasi-identifier"
TREE = {"warm": ["red", "orange"], "cold": ["blue", "green"]}
GROUPS = {leaf: group for group, leaves in TREE.items() for leaf in leaves}
HIERARCHIES: dict[str, Any] = {
    "age": {"intervals": [5, 10]},
    "zip": {"prefix": [2, 1]},
    "colour": {"tree": TREE},
}
# What each level makes of a value, written down without shoal.
LABELS: dict[str, list[Any]] = {
    "age": [
        str,
        *[lambda v, w=w: f"{int(v) // w * w}-{int(v) // w * w + w - 1}" for w in (5, 10)],
        lambda _: "*",
    ],
    "zip": [str, lambda v: v[:2] + "*", lambda v: v[:1] + "*", lambda _: "*"],
    "colour": [str, GROUPS.__getitem__, lambda _: "*"],
}
EVERY = {"age": [str(n) for n in range(30)], "zip": [f"{n:03}" for n in range(1000)], "colour": list(GROUPS)}
RECORD = st.tuples(
    st.sampled_from(["0", "4", "5", "12", "19", "20"]),
    st.sampled_from(["111", "112", "121", "211"]),
    st.sampled_from(list(GROUPS)),
    st.sampled_from(["flu", "gout"]),
)
NAMES = ("age", "zip", "colour")
Levels = dict[str, int]


def policy_of(k: int, quasi: tuple[str, ...] = NAMES, **entries: Any) -> Policy:
    columns: dict[str, Any] = {name: {"role": "other"} for name in NAMES}
    columns |= {name: {"role": QUASI, "hierarchy": HIERARCHIES[name]} for name in quasi}
    columns["ill"] = {"role": "sensitive"}
    wanted = {"columns": columns, "models": [{"k-anonymity": {"k": k}}], "suppression_limit": "100%"}
    return Policy.load(wanted | entries)


def released(records: list[Any], levels: Levels, k: int) -> list[tuple[str, ...] | None]:
    """Return what each record looks like, None where it is suppressed."""
    looks = [
        tuple(LABELS[name][levels[name]](value) for name, value in zip(NAMES, r, strict=False))
        for r in records
    ]
    sizes = Counter(looks)
    return [look if sizes[look] >= k else None for look in looks]


def frame_of(records: list[Any], looks: list[Any]) -> pd.DataFrame:
    rows = [(*look, record[-1]) for look, record in zip(looks, records, strict=True) if look]
    return pd.DataFrame(rows, columns=[*NAMES, "ill"], dtype="string")


@st.composite
def two_releases(draw: Any) -> tuple[list[Any], int, list[Levels]]:
    records = draw(st.lists(RECORD, min_size=2, max_size=25))
    node = st.fixed_dictionaries({name: st.integers(0, len(LABELS[name]) - 1) for name in NAMES})
    return records, draw(st.integers(1, 3)), [draw(node), draw(node)]


@settings(max_examples=examples(50), deadline=None)
@given(two_releases())
def test_with_the_input_the_smallest_part_is_that_of_brute_force(case: Any) -> None:
    records, k, nodes = case
    looks = [released(records, levels, k) for levels in nodes]
    assume(all(any(side) for side in looks))
    cells = Counter(pair for pair in zip(*looks, strict=True) if any(pair))
    policy = policy_of(k)
    new, old = (frame_of(records, side) for side in looks)
    recipes = [Recipe(policy, levels, None, {}) for levels in nodes]
    table = pd.DataFrame(records, columns=[*NAMES, "ill"], dtype="string")
    found = shoal.intersect(
        new, old, policy, table=table, recipe=recipes[0], old_recipe=recipes[1], engine=LIST_ENGINE
    )
    few = [size for size in cells.values() if size < k]
    assert (found.k, found.remaining, found.exact) == (k, min(cells.values()), True)
    assert (found.pairs, found.records) == (len(cells), sum(few))
    assert found.holds == (not few) == (found.warning is None)


def compatible(name: str, one: str, other: str) -> bool:
    """Return whether some value can be released as both labels."""
    made = ({label(value) for label in LABELS[name]} for value in EVERY[name])
    return any(one in labels and other in labels for labels in made)


@settings(max_examples=examples(40), deadline=None)
@given(two_releases())
def test_without_it_every_pair_of_classes_is_bounded_as_by_brute_force(case: Any) -> None:
    records, k, nodes = case
    looks = [released(records, levels, k) for levels in nodes]
    assume(all(any(side) for side in looks))
    classes: list[dict[Any, Counter[str]]] = [defaultdict(Counter), defaultdict(Counter)]
    for side, own in zip(looks, classes, strict=True):
        for look, record in zip(side, records, strict=True):
            if look:
                own[look][record[-1]] += 1
    same = set(classes[0]) == set(classes[1])
    bounds = [
        (classes[0][a] & classes[1][b]).total()
        for a, b in product(*classes)
        if (a == b if same else all(map(compatible, NAMES, a, b)))
    ]
    for own, others, way in ((classes[0], classes[1], 1), (classes[1], classes[0], -1)):
        for look, counts in own.items():  # what is not in the other release
            met: Counter[str] = Counter()
            for other in others:
                if look == other if same else all(map(compatible, NAMES, *(look, other)[::way])):
                    met += others[other]
            bounds.append((counts - met).total())
    bounds = [bound for bound in bounds if bound]
    new, old = (frame_of(records, side) for side in looks)
    found = shoal.intersect(new, old, policy_of(k), engine=LIST_ENGINE)
    assert (found.remaining, found.exact) == (min(bounds, default=None), False)
    assert (found.pairs, found.records) == (len(bounds), sum(bound for bound in bounds if bound < k))
    if nodes[0] == nodes[1]:
        assert (found.remaining, found.holds) == (min(Counter(filter(None, looks[0])).values()), True)


def test_a_quasi_identifier_of_one_release_alone_divides_its_classes() -> None:
    """The other release does not have it, so it links nothing."""
    new = pd.DataFrame(
        {"age": ["0-9"] * 4, "zip": ["1*", "1*", "2*", "2*"], "colour": "red", "ill": list("aabb")}
    )
    old = new.drop(columns="zip")
    found = shoal.intersect(
        new, old, policy_of(2), old_policy=policy_of(2, ("age", "colour")), engine=LIST_ENGINE
    )
    assert (found.remaining, found.pairs) == (2, 2)
    turned = shoal.intersect(
        old, new, policy_of(2, ("age", "colour")), old_policy=policy_of(2), engine=LIST_ENGINE
    )
    assert (turned.remaining, turned.pairs) == (2, 2)


def test_releases_of_nothing_in_common_are_refused() -> None:
    one = pd.DataFrame({"age": ["1"], "ill": ["a"]})
    with pytest.raises(PolicyError, match="no quasi-identifier of the policies in common"):
        shoal.intersect(one, one.drop(columns="age"), policy_of(2), engine=LIST_ENGINE)
    with pytest.raises(DataError, match=r"The older release has no rows."):
        shoal.intersect(one, one.iloc[:0], policy_of(2), engine=LIST_ENGINE)
    other = one.assign(age="2")
    found = shoal.intersect(one, other, policy_of(2), engine=LIST_ENGINE)
    assert (found.remaining, found.pairs, found.holds) == (1, 2, False)  # each is missing from the other


def test_an_input_that_is_not_the_releases_own_is_refused() -> None:
    records = [("1", "111", "red", "a")] * 4
    looks = released(records, dict.fromkeys(NAMES, 0), 2)
    release = frame_of(records, looks)
    recipe = Recipe(policy_of(2), dict.fromkeys(NAMES, 0), None, {})
    table = pd.DataFrame(records * 2, columns=[*NAMES, "ill"], dtype="string")
    with pytest.raises(DataError, match=r"A release has 4 .* keeps 8 of the input.* of its own"):
        shoal.intersect(
            release, release, policy_of(2), table=table, recipe=recipe, old_recipe=recipe, engine=LIST_ENGINE
        )
    both = {"recipe": recipe, "old_recipe": recipe, "engine": LIST_ENGINE}
    with pytest.raises(PolicyError, match="zip"):  # a table that lacks a column
        shoal.intersect(release, release, policy_of(2), table=table.drop(columns="zip"), **both)
    with pytest.raises(UsageError, match="the recipes of both releases are needed"):
        shoal.intersect(release, release, policy_of(2), table=table, engine=LIST_ENGINE)
    chance = Recipe(policy_of(2), None, None, {})
    with pytest.raises(UsageError, match="leaves to chance"):
        shoal.intersect(
            release, release, policy_of(2), table=table, recipe=chance, old_recipe=chance, engine=LIST_ENGINE
        )


def test_a_recipe_that_divides_equal_records_by_chance_has_no_exact_answer(tmp_path: Path) -> None:
    table = pd.DataFrame({"age": [30] * 7 + [31, 32, 33], "ill": list("abcdefghij")})
    columns = {"age": {"role": QUASI, "hierarchy": {"intervals": [5]}}, "ill": {"role": "sensitive"}}
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 3}}]}
    for name, relaxed in (("old", False), ("new", True)):
        search = {"mondrian": {"relaxed": relaxed}}
        shoal.anonymize(table, policy | {"algorithm": search}, output=tmp_path / f"{name}.csv")
    releases = tmp_path / "new.csv", tmp_path / "old.csv"
    with pytest.raises(UsageError, match="leaves to chance which records form a class"):
        shoal.intersect(*releases, policy, table=table)
    assert not shoal.intersect(*releases, policy).exact


def test_a_recipe_that_makes_other_classes_of_the_input_has_no_exact_answer(tmp_path: Path) -> None:
    # Missing values join regions, so that regions overlap and the recipe does not tell who was in which.
    text = """19:03,,1.47 22:29,y,2.0 12:20,m,1.7 06:07,m,1.69 01:12,f,1.6 21:04,f,1.49 ,x, ,U, 14:20,m,1.5
        19:00,y, 15:52,,1.8 06:36,, ,,1.5 12:23,U, 15:50,m,1.77 04:27,m,1.94 09:34,m,1.4 06:53,m,1.9"""
    table = pd.DataFrame([row.split(",") for row in text.split()], columns=["time", "code", "size"])
    table = table.replace({"": None}).astype({"size": float})
    rules = {"time": {"times": ["hour"]}, "code": "flat", "size": {"intervals": [0.1, 0.2, 0.4]}}
    columns: dict[str, Any] = {name: {"role": QUASI, "hierarchy": rule} for name, rule in rules.items()}
    columns["size"]["release_as"] = "bounds"
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 3}}], "algorithm": "mondrian"}
    release = tmp_path / "release.csv"
    shoal.anonymize(table, policy, output=release)
    with pytest.raises(UsageError, match="other classes than its recipe makes from the input"):
        shoal.intersect(release, release, policy, table=table)
    other = table.assign(code="m", time="23:59")  # an input that the recipe covers nothing of
    with pytest.raises(UsageError, match="Is it the table that both were made from"):
        shoal.intersect(release, release, policy, table=other)


def test_a_group_of_rare_prefixes_can_hold_the_codes_of_the_other_release() -> None:
    rule = {"prefix": [2], "together": ["03", "10"], "label": "rare"}
    columns = {
        "zip": {"role": QUASI, "hierarchy": rule},
        "age": {"role": QUASI, "hierarchy": {"cuts": [[40]]}},
    }
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]}
    new = pd.DataFrame({"zip": ["rare"] * 4, "age": ["30"] * 2 + ["50"] * 2})
    old = pd.DataFrame({"zip": ["103"] * 4, "age": ["*"] * 4})
    found = shoal.intersect(new, old, policy, engine=LIST_ENGINE)
    assert found.pairs == 2  # and no class of which no record is in the other release


def test_an_estimate_that_proves_nothing_says_so() -> None:
    policy = policy_of(2, ("age",))
    new = pd.DataFrame({"age": ["0-9"] * 4 + ["10-19"] * 4, "zip": "1", "colour": "red", "ill": "flu"})
    old = new.assign(age=["0-4"] * 2 + ["5-9"] * 2 + ["10-14"] * 2 + ["15-19"] * 2)
    found = shoal.intersect(new, old, policy, engine=LIST_ENGINE)
    assert (found.remaining, found.exact, found.holds) == (2, False, True)
    assert found.note is not None
    assert found.note.endswith("The input gives the exact number.")
    assert shoal.intersect(new, new, policy, engine=LIST_ENGINE).note is None
    warned = shoal.intersect(new, old.iloc[1:], policy, engine=LIST_ENGINE)
    assert (warned.holds, warned.note) == (False, None)


def test_a_release_made_safe_for_a_spreadsheet_is_read_as_the_other_is() -> None:
    columns = dict(policy_of(2).written()["columns"])
    columns["zip"] = {"role": QUASI, "hierarchy": {"prefix": [2, 1], "unknown": ["-"]}}
    policy = policy_of(2, columns=columns)
    new = pd.DataFrame({"age": "0-9", "zip": ["-"] * 2 + ["1*"] * 2, "colour": "red", "ill": ["=a"] * 4})
    old = new.assign(zip=["'-"] * 2 + ["1*"] * 2, ill="'=a")
    for pair in ((new, old), (old, new), (old, old)):
        found = shoal.intersect(*pair, policy, engine=LIST_ENGINE)
        assert (found.remaining, found.pairs, found.holds, found.note) == (2, 2, True, None)
    coarse = old.assign(age="*")  # other classes: every pair is walked
    assert shoal.intersect(coarse, new, policy, engine=LIST_ENGINE).holds


def test_a_value_listed_with_its_apostrophe_keeps_it() -> None:
    columns = dict(policy_of(2).written()["columns"])
    columns["colour"] = {"role": QUASI, "hierarchy": {"tree": {"odd": ["'-"], "even": ["-"]}}}
    new = pd.DataFrame({"age": "0-9", "zip": "1", "colour": ["-"] * 2, "ill": "a"})
    found = shoal.intersect(new, new.assign(colour="'-"), policy_of(2, columns=columns), engine=LIST_ENGINE)
    assert found.pairs == 2  # neither is in the other release


def test_a_series_of_different_persons_is_told_from_one_of_the_same() -> None:
    """Advice that was followed is not given, and the check is about persons in both."""
    new = pd.DataFrame({"age": ["0-9"] * 3, "zip": "1", "colour": "red", "ill": list("aab")})
    old = new.assign(ill=list("abc"))
    levels = {"age": 2, "zip": 0, "colour": 0}
    same, other = (Recipe(policy_of(2), own, None, {}) for own in (levels, levels | {"age": 1}))
    alike = shoal.intersect(new, old, policy_of(2), recipe=same, old_recipe=same, engine=LIST_ENGINE)
    differ = shoal.intersect(new, old, policy_of(2), recipe=same, old_recipe=other, engine=LIST_ENGINE)
    unknown = shoal.intersect(new, old, policy_of(2), engine=LIST_ENGINE)
    assert [one.same_recoding for one in (alike, differ, unknown)] == [True, False, None]
    for one in (alike, differ, unknown):
        assert one.warning is not None
        assert one.warning.startswith(
            "If the same persons are in both releases, someone with both may be left with"
        )
        assert "If they are of different persons, as in a series, this check does not apply." in one.warning
        assert ("Release with the recoding of the other" in one.warning) == (one is not alike)
    assert "Both already have the same recoding" in (alike.warning or "")


def test_recipes_recode_alike_where_hierarchies_and_finish_are_the_same(tmp_path: Path) -> None:
    rows = tmp_path / "a.csv", tmp_path / "b.csv"
    for path in rows:
        path.write_text("red,warm\nblue,cold\n", encoding="utf-8")
    columns = dict(policy_of(2).written()["columns"])
    levels = dict.fromkeys(NAMES, 0)
    frame = pd.DataFrame({"age": ["1"] * 2, "zip": "1", "colour": "red", "ill": "a"})

    def alike(*policies: Policy) -> bool | None:
        told = [Recipe(policy, levels, None, {}) for policy in policies]
        pair = {"recipe": told[0], "old_recipe": told[1]}
        return shoal.intersect(frame, frame, policies[0], engine=LIST_ENGINE, **pair).same_recoding

    files = [
        policy_of(2, columns=columns | {"colour": {"role": QUASI, "hierarchy": {"csv": str(path)}}})
        for path in rows
    ]
    assert alike(*files)
    assert not alike(files[0], policy_of(2))
    assert not alike(policy_of(2), policy_of(2, algorithm={"auto": {"refine": True}}))
    assert not alike(policy_of(2), policy_of(2, ("age", "zip")))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sample, and three releases of it: two alike in their recoding, one by other levels."""
    folder = tmp_path_factory.mktemp("two")
    data, policy = bundled(folder, force=False)
    found = {"data": data, "policy": policy}
    for name, node in (("new", {"age": 3}), ("again", {"age": 3}), ("old", {"age": 2})):
        found[name] = folder / f"{name}.csv"
        shoal.anonymize(data, policy, node=node, output=found[name])
    return found


def run(files: dict[str, Path], *options: object) -> Any:
    arguments = ["verify", str(files["new"]), "--policy", str(files["policy"]), *map(str, options)]
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, arguments)


def test_verify_alone_has_nothing_to_compare_with(files: dict[str, Path]) -> None:
    told = run(files, "--json")
    assert (told.exit_code, json.loads(told.stdout)["against"]) == (0, None)


def test_the_same_recoding_keeps_its_k(files: dict[str, Path]) -> None:
    alone = json.loads(run(files, "--json").stdout)
    for more in ((), ("--input", files["data"])):
        told = run(files, "--against", files["again"], *more, "--json")
        against = json.loads(told.stdout)["against"]
        assert told.exit_code == 0
        assert (against["remaining"], against["warning"]) == (alone["smallest_class"], None)
        assert against["exact"] == bool(more)


def test_another_recoding_fails_closed_without_a_value(files: dict[str, Path]) -> None:
    exact = run(files, "--against", files["old"], "--input", files["data"], "--json")
    against = json.loads(exact.stdout)["against"]
    assert exact.exit_code == 1
    assert json.loads(exact.stdout)["verified"]
    assert against["remaining"] < against["k"] == 5
    told = f"is left with {against['remaining']} record"
    assert told in against["warning"]
    estimate = run(files, "--against", files["old"])
    assert estimate.exit_code == 1
    assert "may be left with as few as" in estimate.stdout
    for text in ("female", "heart", "2024"):
        assert text not in estimate.stdout + exact.stdout


def test_which_release_is_older_does_not_matter(files: dict[str, Path]) -> None:
    found = shoal.intersect(files["new"], files["old"], files["policy"], table=files["data"])
    again = shoal.intersect(files["old"], files["new"], files["policy"], table=files["data"])
    assert (found.remaining, found.pairs, found.records) == (again.remaining, again.pairs, again.records)


def test_the_terminal_says_of_whom_the_check_is(files: dict[str, Path]) -> None:
    told = run(files, "--against", files["again"]).stdout
    assert "(if the same persons are in both; estimated from the releases alone)" in told
    assert (
        "the table that both were made from (--input) gives the exact k"
        in run(files, "--against", files["old"]).stdout
    )


def test_other_models_than_the_policys_are_noted(files: dict[str, Path], tmp_path: Path) -> None:
    assert run(files).stderr == ""
    looser = tmp_path / "p.yaml"
    policy = Policy.load(files["policy"]).written()
    looser.write_text(json.dumps(policy | {"models": [{"k-anonymity": {"k": 3}}]}), encoding="utf-8")
    told = run(files | {"policy": looser})
    assert told.exit_code == 0
    assert told.stderr.startswith("Note: The release was made under other models: k-anonymity k 5")
    assert told.stderr.endswith("The models of the policy were checked: k-anonymity k 3.\n")


def test_options_about_an_older_release_need_one(files: dict[str, Path]) -> None:
    told = run(files, "--input", files["data"])
    assert (told.exit_code, "Name it with --against." in told.stderr) == (2, True)


@adult.needs_adult
@pytest.mark.parametrize("algorithm", ["mondrian", {"auto": {"cells": True}}], ids=["mondrian", "cells"])
def test_regions_and_cells_are_intersected_too(algorithm: Any, tmp_path: Path) -> None:
    root = adult.folder()
    assert root is not None
    columns = ["sex", "age", "race", "education"]
    looks, paths = [], []
    for k, search, limit in ((5, algorithm, 0 if algorithm == "mondrian" else "1%"), (7, "mondrian", 0)):
        models = [{"k-anonymity": {"k": k}}]
        policy = adult.policy(tuple(columns), algorithm=search, suppression_limit=limit) | {"models": models}
        paths.append(tmp_path / f"{k}.csv")
        shoal.anonymize(root / "adult.csv", policy, output=paths[-1], mapping=True)
        mapping = pd.read_csv(f"{paths[-1]}.private/mapping/combinations.csv", dtype=str).fillna("")
        shown = mapping[[f"{name} (released)" for name in columns]].agg("|".join, axis=1)
        looks.append(
            mapping.assign(look=shown.where(mapping["fate"] == "kept", "suppressed")).set_index(columns)
        )
    both = looks[0][["look", "records"]].join(looks[1]["look"].rename("old")).astype({"records": int})
    sizes = both.groupby(["look", "old"])["records"].sum()
    exact = shoal.intersect(*paths, policy, table=root / "adult.csv")
    assert exact.exact
    assert (exact.remaining, exact.pairs) == (sizes.min(), len(sizes))
    estimate = shoal.intersect(*paths, policy)
    assert estimate.remaining is not None
    assert not estimate.exact
    itself = shoal.intersect(paths[0], paths[0], policy)
    assert itself.remaining == shoal.verify(paths[0], policy).smallest_class
