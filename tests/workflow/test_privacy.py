"""Models from the policy to the written release: anonymized, verified, refused, and in which words."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import oracle
import shoal
from example_counts import examples
from plugin_examples import example
from shoal.cli.app import app
from shoal.engines import ENGINES
from shoal.errors import DataError, HierarchyError, Infeasible, PolicyError, ShoalError, UnknownName
from shoal.models import MODELS
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, order_of, problem_of
from shoal.workflow.session import session

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

SECRET = "SECRETVAL7"
ILLNESSES = ("flu", "cold", "asthma", "gout")
TREE = {"lungs": ["flu", "cold", "asthma"], "joints": ["gout"]}


def quasi(hierarchy: Any = "flat", **entries: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "hierarchy": hierarchy, **entries}


def people(number: int = 120) -> dict[str, list[Any]]:
    """A hundred and twenty records of sixty persons; the illnesses of the old differ from the young's."""
    return {
        "person": [f"{SECRET}{i // 2}" for i in range(number)],
        "age": [20 + (i * 7) % 40 for i in range(number)],
        "sex": ["fm"[i % 2] for i in range(number)],
        "illness": [ILLNESSES[(i * i // 3 + (i * 7) % 40 // 20) % 4] for i in range(number)],
        "cost": [float(i * 13 % 5) * 100 for i in range(number)],
    }


COLUMNS: dict[str, Any] = {
    "person": {"role": "identifier"},
    "age": quasi({"intervals": [5, 10, 20]}),
    "sex": quasi(),
    "illness": {"role": "sensitive", "hierarchy": {"tree": TREE}},
    "cost": {"role": "sensitive"},
}
ILLNESS = {"column": "illness"}
# One setting of each model that the table reaches with some generalization or suppression.
WISHES: dict[str, list[dict[str, Any]]] = {
    "alpha-k-anonymity": [{"alpha": 0.6, "k": 4, **ILLNESS}],
    "average-risk": [{"risk": 0.1}],
    "basic-beta-likeness": [{"beta": 1.0, **ILLNESS}],
    "delta-disclosure": [{"delta": 1.5, **ILLNESS}, {"delta": 1.2, "present_only": True}],
    "delta-presence": [{"maximum": 0.6, "population": "population.csv"}],
    "distinct-l-diversity": [{"l": 3}],
    "enhanced-beta-likeness": [{"beta": 2.0, **ILLNESS}],
    "entropy-l-diversity": [{"l": 2.2}],
    "k-anonymity": [{"k": 4}, {"k": 4, "unit": "person"}],
    "k-map": [{"k": 9, "population": "population.csv"}],
    "p-sensitive": [{"p": 3, "k": 4}],
    "recursive-cl-diversity": [{"c": 3.0, "l": 2}],
    "sample-uniqueness": [{"share": 0.02}],
    "t-closeness": [
        {"t": 0.3},
        {"t": 0.3, "distance": "ordered", "column": "cost"},
        {"t": 0.3, "distance": "hierarchical", **ILLNESS},
    ],
}
EVERY = [(name, options) for name, several in WISHES.items() for options in several]
REFERENCE = {"basic-beta-likeness", "delta-disclosure", "enhanced-beta-likeness", "t-closeness"}


class Workspace:
    """A folder with a table, its population and a policy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = write(folder / "people.csv", people())
        self.population = write(folder / "population.csv", crowd())
        self.policy = folder / "policy.yaml"
        self.output = folder / "release.csv"

    def wish(self, *models: tuple[str, Mapping[str, Any]], **entries: Any) -> Path:
        written: dict[str, Any] = {"columns": COLUMNS, "suppression_limit": "10%"}
        written["models"] = [{name: dict(options)} for name, options in models]
        self.policy.write_text(yaml.safe_dump(written | entries, sort_keys=False), encoding="utf-8")
        return self.policy

    def call(self, *arguments: object) -> Any:
        result = CliRunner(env={"COLUMNS": "250"}).invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        assert SECRET not in result.output
        return result

    def verify(self, *options: object) -> tuple[int, dict[str, Any]]:
        result = self.call("verify", self.output, "--policy", self.policy, "--json", *options)
        return result.exit_code, json.loads(result.stdout)


def write(path: Path, table: Mapping[str, list[Any]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


def crowd() -> dict[str, list[Any]]:
    """The population: the table twice, and some of ages that the table does not have."""
    table = people()
    ages = [*table["age"], *table["age"], *range(60, 100)]
    sexes = [*table["sex"], *table["sex"], *["fm"[i % 2] for i in range(40)]]
    return {"age": ages, "sex": sexes}


@pytest.fixture
def desk(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_every_model_is_released_here() -> None:
    """A model with a file in `tests/plugins/examples/` is tested by that."""
    assert set(WISHES) == {name for name in MODELS if example(name) is None}
    assert {name for name, options in EVERY if MODELS.create(name, options).needs_reference} == REFERENCE


@pytest.mark.parametrize(("name", "options"), EVERY)
@pytest.mark.parametrize("suppressed", ["drop", "mask"])
def test_a_release_holds_and_is_verified_by_its_recipe(
    desk: Workspace, name: str, options: dict[str, Any], suppressed: str
) -> None:
    policy = desk.wish(("k-anonymity", {"k": 2}), (name, options), suppressed=suppressed)
    release = shoal.anonymize(desk.data, policy, output=desk.output)
    assert release.evaluation.proven == "least loss"
    assert release.verification.verified
    hidden = options.get("unit") or "population" in options
    for given_ in (("--recipe", release.recipe), ("--reference", desk.data)):
        code, found = desk.verify(*given_)
        if hidden:
            assert (code, found["verified"], found["models"][1]["passed"]) == (1, False, None)
            assert f"{name} cannot be checked" in found["unchecked"][0]
        else:
            assert (code, found["verified"]) == (0, True), found
    code, found = desk.verify()
    checked = name not in REFERENCE and not hidden
    assert (code, found["verified"]) == ((0, True) if checked else (1, False))
    check = found["models"][1]
    assert (check.pop("reason") is None) == checked
    assert (check.pop("command") is None) == (checked or "population" in options)
    assert check == {
        "model": name,
        "options": options,
        "passed": True if checked else None,
        "violating_classes": 0,
        "violating_records": 0,
    }
    assert found["models"][0]["passed"] is True
    assert found["reasons"] == []
    shown = desk.call("verify", desk.output, "--policy", policy).stdout
    assert ("not checkable" in shown) == (not checked)
    assert len(found["unchecked"]) == (not checked)
    held = oracle_agrees(desk, release, name, options)
    assert held == release.records - release.suppressed


def oracle_agrees(desk: Workspace, release: shoal.Release, name: str, options: dict[str, Any]) -> int:
    """Judge every written class by the plain definition; return how many records they have."""
    with open(desk.output, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["age"] or row["illness"]]
    input_ = people()
    whole = {"illness": input_["illness"], "cost": [str(v) for v in input_["cost"]]}
    order = {v: float(v) for v in whole["cost"]}
    found: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        found.setdefault((row["age"], row["sex"]), []).append(place)
    if options.get("unit") or "population" in options:
        return len(rows)
    tree = {leaf: [leaf, group, "*"] for group, leaves in TREE.items() for leaf in leaves}
    for positions in found.values():
        assert len(positions) >= 2
        for column in [options["column"]] if options.get("column") else ["illness", "cost"]:
            here = [rows[p][column] for p in positions]
            there = whole[column]
            if options.get("distance") == "ordered":
                here, there = [order[v] for v in here], [order[v] for v in there]
            if name not in ("k-anonymity", "average-risk", "sample-uniqueness"):
                assert not oracle.violating(name, options, here, there, tree)
    if name in ("average-risk", "sample-uniqueness"):
        assert oracle.holds(name, options, found, 0, None)
    return len(rows)


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_a_table_that_violates_a_model_is_refused_with_a_reference(desk: Workspace, name: str) -> None:
    options = WISHES[name][0]
    tight = {o: v / 50 if o in ("t", "beta", "delta") else v for o, v in options.items()}
    policy = desk.wish(("k-anonymity", {"k": 1}), (name, tight))
    columns = {n: c for n, c in people().items() if n != "person"}
    write(desk.output, columns)
    code, found = desk.verify("--reference", desk.data)
    assert (code, found["verified"], found["models"][1]["passed"]) == (1, False, False)
    assert f"{name}: " in found["reasons"][0]
    assert "violate it" in found["reasons"][0]
    shown = desk.call("verify", desk.output, "--policy", policy, "--reference", desk.data)
    assert shown.exit_code == 1
    assert "records violate it" in shown.stdout


def test_the_whole_release_may_violate_a_model(desk: Workspace) -> None:
    policy = desk.wish(("average-risk", {"risk": 0.01}))
    write(desk.output, {n: c for n, c in people().items() if n != "person"})
    code, found = desk.verify()
    assert (code, found["reasons"]) == (1, ["average-risk: the release as a whole violates it"])
    shown = desk.call("verify", desk.output, "--policy", policy).stdout
    assert "violated by the release as a whole" in shown


def test_two_settings_of_one_model_are_told_apart(desk: Workspace) -> None:
    policy = desk.wish(
        ("t-closeness", {"t": 0.3, "column": "illness"}),
        ("t-closeness", {"t": 0.4, "column": "cost", "distance": "ordered"}),
    )
    release = shoal.anonymize(desk.data, policy, output=desk.output)
    shown = desk.call("verify", desk.output, "--policy", policy, "--recipe", release.recipe).stdout
    assert "t-closeness (t = 0.3, column = illness)" in shown
    assert "t-closeness (t = 0.4, column = cost, distance = ordered)" in shown
    assert shown.count("passed") == 2


def test_a_recipe_and_a_reference_may_be_given_together(desk: Workspace) -> None:
    policy = desk.wish(("t-closeness", {"t": 0.3, **ILLNESS}))
    release = shoal.anonymize(desk.data, policy, output=desk.output)
    assert shoal.verify(desk.output, policy, recipe=release.recipe, reference=desk.data).verified
    result = desk.call(
        "verify", desk.output, "--policy", policy, "--recipe", release.recipe, "--reference", desk.data
    )
    assert result.exit_code == 0


def test_a_reference_that_is_not_the_input_is_refused(desk: Workspace) -> None:
    policy = desk.wish(("t-closeness", {"t": 0.3, **ILLNESS}))
    shoal.anonymize(desk.data, policy, output=desk.output)
    other = people()
    other["illness"] = ["gout"] * 120
    wrong = write(desk.folder / "other.csv", other)
    with pytest.raises(DataError, match="The release has 3 values of 'illness' that the recipe or"):
        shoal.verify(desk.output, policy, reference=wrong)
    few = write(desk.folder / "few.csv", {name: column[:60] for name, column in people().items()})
    with pytest.raises(DataError, match=r"values of 'illness' that .* does not have, or has less often"):
        shoal.verify(desk.output, policy, reference=few)
    lacking = write(desk.folder / "lacking.csv", {"age": [1]})
    with pytest.raises(PolicyError, match="The reference lacks sensitive columns of the policy: 'illness'"):
        shoal.verify(desk.output, policy, reference=lacking)


def test_masked_records_are_no_values_of_the_input(desk: Workspace) -> None:
    """What is blank in the release was no null of the input: it is neither judged nor unknown."""
    table = {"a": ["x"] * 10 + ["y"] * 4, "s": [1, 2, 3, 4, 5] * 2 + [1, 1, 1, 1]}
    data = write(desk.folder / "few.csv", table)
    policy = {
        "columns": {"a": quasi(max_level=0), "s": {"role": "sensitive"}},
        "models": [{"k-anonymity": {"k": 3}}, {"t-closeness": {"t": 0.3, "distance": "ordered"}}],
        "suppression_limit": 4,
        "suppressed": "mask",
    }
    release = shoal.anonymize(data, policy, output=desk.output)
    assert release.masked == 4
    found = shoal.verify(desk.output, policy, recipe=release.recipe)
    assert (found.verified, found.masked) == (True, 4)
    drop = policy | {"suppressed": "drop"}
    with pytest.raises(DataError, match="The release has 1 value of 's'"):
        shoal.verify(desk.output, drop, recipe=release.recipe)


def test_values_that_the_release_lacks_still_count(desk: Workspace) -> None:
    """Without those of 9 the row of values is shorter, and the same classes would lie farther apart."""
    table = {"a": ["x"] * 4 + ["y"] * 4 + ["z"], "s": [1, 1, 2, 2, 2, 2, 3, 3, 9]}
    write(desk.output, {name: column[:8] for name, column in table.items()})
    whole = write(desk.folder / "whole.csv", table)
    columns = {"a": quasi(), "s": {"role": "sensitive"}}
    here, there = [1, 1, 2, 2], table["s"]
    far = oracle.distance("ordered", here, there)
    for t, passed in ((far + 0.001, True), (far - 0.001, False)):
        model = {"t-closeness": {"t": t, "distance": "ordered"}}
        found = shoal.verify(desk.output, {"columns": columns, "models": [model]}, reference=whole)
        assert found.verified is passed
    everywhere = {"columns": columns, "models": [{"delta-disclosure": {"delta": 5.0}}]}
    assert not shoal.verify(desk.output, everywhere, reference=whole).verified


def test_a_recipe_without_a_column_leaves_its_model_unchecked(desk: Workspace) -> None:
    release = shoal.anonymize(
        desk.data, desk.wish(("t-closeness", {"t": 0.3, **ILLNESS})), output=desk.output
    )
    desk.wish(("t-closeness", {"t": 0.3, **ILLNESS}), ("t-closeness", {"t": 1, "column": "cost"}))
    code, found = desk.verify("--recipe", release.recipe)
    assert (code, [check["passed"] for check in found["models"]]) == (1, [True, None])


@pytest.mark.parametrize(
    "damage",
    [
        [1],
        {"illness": 3},
        {"illness": [["flu", "many"]]},
        {"illness": [[1, 2]]},
        {"illness": [["flu", 0], ["cold", 0], ["gout", 0]]},
        {"illness": [["flu", 119]]},
        {"illness": [["flu", 60], ["flu", 60]]},
        {"illness": [["flu", 121], ["cold", -1]]},
    ],
)
def test_a_damaged_reference_in_a_recipe_is_told(desk: Workspace, damage: Any) -> None:
    policy = desk.wish(("t-closeness", {"t": 0.3, **ILLNESS}))
    release = shoal.anonymize(desk.data, policy, output=desk.output)
    assert release.recipe is not None
    recipe = json.loads(release.recipe.read_text())
    recipe["reference"] = damage
    release.recipe.write_text(json.dumps(recipe))
    with pytest.raises(PolicyError, match="damaged: it does not say how often sensitive values occurred"):
        shoal.verify(desk.output, policy, recipe=release.recipe)


def test_numbers_are_known_again_however_the_release_writes_them(tmp_path: Path) -> None:
    """100.0 in Arrow is 100 to a hierarchy, and 100.0 in a CSV."""
    table = pa.table({n: c for n, c in people().items() if n in ("age", "cost")})
    policy = {
        "columns": {"age": COLUMNS["age"], "cost": {"role": "sensitive"}},
        "models": [{"t-closeness": {"t": 0.4, "distance": "ordered"}}],
    }
    release = shoal.anonymize(table, policy, output=tmp_path / "release.csv")
    assert "100.0" in (tmp_path / "release.csv").read_text()
    assert shoal.verify(tmp_path / "release.csv", policy, recipe=release.recipe).verified
    assert shoal.verify(tmp_path / "release.csv", policy, reference=table).verified


def test_the_order_of_a_sensitive_column_may_be_its_hierarchy(tmp_path: Path) -> None:
    """low, mid, high: in the order of the alphabet low would lie between the others."""
    table = pa.table({"a": ["x"] * 10 + ["y"] * 10, "s": ["low"] * 5 + ["mid"] * 10 + ["high"] * 5})
    columns = {"a": quasi(max_level=0), "s": {"role": "sensitive"}}
    wish = [{"t-closeness": {"t": 0.2, "distance": "ordered"}}]
    assert shoal.anonymize(table, {"columns": columns, "models": wish}).levels == {"a": 0}
    columns["s"] = {"role": "sensitive", "hierarchy": {"order": ["low", "mid", "high"], "sizes": [3]}}
    with pytest.raises(Infeasible, match=r"t=0\.25 \(now 0\.2\)"):
        shoal.anonymize(table, {"columns": columns, "models": wish})


def test_numbers_are_ordered_as_numbers() -> None:
    """9 and 10 are neighbours, though not in the order of the alphabet."""
    table = pa.table({"a": ["x"] * 2 + ["y"] * 2 + ["z"] * 2, "s": ["9", "10", "100", "1000", "9", "1000"]})
    policy = {
        "columns": {"a": quasi(), "s": {"role": "sensitive"}},
        "models": [{"t-closeness": {"t": 0.2, "distance": "ordered"}}],
    }
    opened = ENGINES.create("duckdb")
    loaded = Policy.load(policy)
    problem = problem_of(loaded, *counted(session(table, opened).table, loaded))
    assert problem.sensitive_info["s"].order.tolist() == [1, 2, 3, 0]  # of the texts 10, 100, 1000, 9


# Persons with several records


@pytest.mark.parametrize(
    ("texts", "listed", "ordered"),
    [
        (["8", "9", "10", "11", "?"], [], ["8", "9", "10", "11", "?"]),
        (["b", "10", None, "9", "a", ""], [], ["9", "10", "", "a", "b", None]),
        (["-1", "", "5"], [], ["-1", "5", ""]),
        (["1", "2", "3", "x"], ["1", "3"], ["1", "3", "2", "x"]),
    ],
)
def test_numbers_come_first_in_their_order_and_texts_behind(
    texts: list[str | None], listed: list[str], ordered: list[str | None]
) -> None:
    """One code for what is unknown does not make the numbers alphabetical."""
    assert [texts[code] for code in order_of(texts, listed).argsort()] == ordered


def test_persons_are_counted_not_records(desk: Workspace) -> None:
    """Every person has two records of consecutive ages; k persons need wider classes than k records."""
    records = shoal.anonymize(desk.data, desk.wish(("k-anonymity", {"k": 4})), output=desk.output)
    policy = desk.wish(("k-anonymity", {"k": 4, "unit": "person"}))
    release = shoal.anonymize(desk.data, policy, output=desk.folder / "persons.csv")
    assert release.loss >= records.loss
    code, found = desk.verify()
    assert (code, found["models"][0]["passed"]) == (1, None)
    assert found["unchecked"][0].startswith(
        "k-anonymity cannot be checked: the release does not have 'person'"
    )


def test_a_class_of_one_person_does_not_pass() -> None:
    table = pa.table({"person": [1, 1, 1, 1, 2, 3, 4, 5], "a": ["x"] * 4 + ["y"] * 4})
    columns = {"person": {"role": "identifier"}, "a": quasi()}
    fake = shoal.anonymize(table, {"columns": columns, "models": [{"k-anonymity": {"k": 4}}]})
    assert fake.levels == {"a": 0}
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 4, "unit": "person"}}]}
    assert shoal.anonymize(table, policy).levels == {"a": 1}
    within = shoal.anonymize(table, policy | {"suppression_limit": 4})
    assert (within.levels, within.suppressed) == ({"a": 0}, 4)
    kept = columns | {"person": {"role": "other"}}  # where the unit is released, verify counts it
    found = shoal.verify(table, policy | {"columns": kept})
    assert [(check.passed, check.violating_records) for check in found.models] == [(False, 4)]
    with pytest.raises(Infeasible, match=r"k=5 \(now 6\)"):
        shoal.anonymize(table, policy | {"models": [{"k-anonymity": {"k": 6, "unit": "person"}}]})


def test_masked_records_of_one_person_are_dropped() -> None:
    """Four records may hide among each other if they are four persons', not one's."""
    for persons, masked in (([1, 1, 1, 1], 0), ([1, 6, 7, 8], 4)):
        table = pa.table({"person": [*persons, 2, 3, 4, 5], "a": ["v", "w", "x", "z"] + ["y"] * 4})
        policy = {
            "columns": {"person": {"role": "identifier"}, "a": quasi(max_level=0)},
            "models": [{"k-anonymity": {"k": 4, "unit": "person"}}],
            "suppression_limit": 4,
            "suppressed": "mask",
        }
        release = shoal.anonymize(table, policy)
        assert (release.suppressed, release.masked) == (4, masked)


# Populations


@pytest.mark.parametrize("empty", [None, ""])
def test_masked_records_that_would_join_an_empty_class_are_dropped(empty: str | None, tmp_path: Path) -> None:
    """Records without a value at level 0 look as masked ones do: together they would violate the model."""
    secret = ["x", "y"] * 3 + ["x"] * 3 + ["x", "y"] * 3

    def of(first: str | None) -> pa.Table:
        return pa.table({"a": [first] * 6 + ["1"] * 3 + ["2"] * 6, "s": secret})

    flat = {"role": "quasi-identifier", "hierarchy": "flat", "max_level": 0}
    policy = {
        "columns": {"a": flat, "s": {"role": "sensitive"}},
        "models": [{"t-closeness": {"t": 0.2}}],
        "suppression_limit": 3,
        "suppressed": "mask",
    }
    for output in (None, tmp_path / "release.csv"):
        release = shoal.anonymize(of(empty), policy, output=output)
        assert (release.suppressed, release.masked, release.verification.records) == (3, 0, 12)
    assert shoal.anonymize(of("0"), policy).masked == 3


def test_k_map_looks_up_the_population(desk: Workspace) -> None:
    """The table alone has few of each age; the population has twice as many, and ages of its own."""
    policy = desk.wish(("k-map", {"k": 4, "population": "population.csv"}), suppression_limit=0)
    release = shoal.anonymize(desk.data, policy, output=desk.output)
    alone = desk.folder / "alone.csv"
    own = shoal.anonymize(desk.data, desk.wish(("k-anonymity", {"k": 4}), suppression_limit=0), output=alone)
    assert (release.levels, own.levels) == ({"age": 0, "sex": 0}, {"age": 1, "sex": 0})
    with open(desk.output, newline="", encoding="utf-8") as file:
        kept = [(int(row["age"]), row["sex"]) for row in csv.DictReader(file)]
    inside = Counter(zip(*crowd().values(), strict=True))
    assert len(kept) == 120
    assert min(inside[pair] for pair in kept) >= 4 > min(Counter(kept).values())


def test_what_the_fresh_count_cannot_show_is_said(desk: Workspace) -> None:
    """A release shows neither its population nor its persons: these were judged before it was written."""
    persons = {"name": {"role": "identifier"}}
    policy = {
        "columns": {"a": quasi()} | persons,
        "models": [
            {"k-anonymity": {"k": 2, "unit": "name"}},
            {"k-map": {"k": 2, "population": "some.csv"}},
            {"k-anonymity": {"k": 2}},
        ],
    }
    desk.policy.write_text(yaml.safe_dump(policy), encoding="utf-8")
    data = write(desk.folder / "some.csv", {"a": ["x", "x", "y", "y"], "name": [1, 2, 3, 4]})
    asked = ("anonymize", data, "--policy", desk.policy, "--output", desk.output)
    told = json.loads(desk.call(*asked, "--json").stdout)
    assert told["verified"]
    assert [text.split(" cannot")[0] for text in told["unchecked"]] == ["k-anonymity", "k-map"]
    shown = " ".join(desk.call(*asked, "--force").stdout.split())
    assert "k-anonymity and k-map cannot be seen in the release alone and were checked before" in shown
    plain = ("--model", "k-anonymity:k=2", "--force")
    assert json.loads(desk.call(*asked, *plain, "--json").stdout)["unchecked"] == []
    assert "checked before" not in desk.call(*asked, *plain).stdout


def test_a_recipe_finds_the_population_again(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = desk.wish(("k-map", {"k": 4, "population": "population.csv"}))
    release = shoal.anonymize(desk.data, policy, output=desk.output)
    elsewhere = desk.folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    again = shoal.apply(release.recipe, desk.data, output=elsewhere / "again.csv")
    assert again.levels == release.levels


def test_a_population_that_does_not_cover_the_table_is_refused(desk: Workspace) -> None:
    few = people()
    write(desk.population, {"age": few["age"][:-1], "sex": few["sex"][:-1]})
    policy = desk.wish(("k-map", {"k": 2, "population": "population.csv"}))
    with pytest.raises(DataError, match=r"1 of 40 combinations .* fewer records in it, 0 of them none"):
        shoal.anonymize(desk.data, policy)
    write(desk.population, {"age": few["age"]})
    with pytest.raises(PolicyError, match="The population lacks quasi-identifiers of the policy: 'sex'"):
        shoal.anonymize(desk.data, policy)
    write(desk.population, {"age": [], "sex": []})
    with pytest.raises(DataError, match="The population has no rows"):
        shoal.anonymize(desk.data, policy)
    desk.population.unlink()
    with pytest.raises(DataError, match="No such file"):
        shoal.anonymize(desk.data, policy)


def test_a_value_of_the_population_that_a_hierarchy_lacks_is_told_as_such(tmp_path: Path) -> None:
    path = write(tmp_path / "population.csv", {"a": ["x", "y", "z", "z"]})
    models = [{"k-map": {"k": 1, "population": str(path)}}]
    both = r"2 values \(1 of the population\) are not"
    for listed, says in ((["x", "y"], "1 value of the population is not"), (["x"], both)):
        policy = {"columns": {"a": quasi({"tree": {"g": listed}})}, "models": models}
        with pytest.raises(HierarchyError, match=says):
            shoal.anonymize(pa.table({"a": ["x", "y"]}), policy)


@pytest.mark.parametrize(
    ("rule", "loss"),
    [({"intervals": [2, 4]}, 0.25), ({"tree": {"g": ["1", "2", "3", "4"], "h": ["5"]}}, 0.75)],
)
def test_values_of_the_population_alone_are_no_leaves_unless_listed(
    tmp_path: Path, rule: Any, loss: float
) -> None:
    """The loss of the table's records does not depend on whom they were drawn from."""
    path = write(tmp_path / "population.csv", {"a": [1, 1, 2, 3, 4, 5]})
    for model in ({"k-anonymity": {"k": 1}}, {"k-map": {"k": 1, "population": str(path)}}):
        policy = {"columns": {"a": quasi(rule)}, "models": [model], "metric": "coverage"}
        found = shoal.anonymize(pa.table({"a": [1, 1, 2, 3]}), policy, node={"a": 1})
        assert found.loss == pytest.approx(loss)


def test_a_population_may_have_many_more_values(tmp_path: Path) -> None:
    """The sample needs one bit, the population eleven, and a second word in all."""
    columns = {f"c{n}": quasi() for n in range(6)}
    sample = {name: ["a", "b"] for name in columns}
    crowded = {name: [*["a", "b"] * 3, *[f"v{i}" for i in range(2000)]] for name in columns}
    write(tmp_path / "population.csv", crowded)
    policy = {
        "columns": columns,
        "models": [{"k-map": {"k": 3, "population": str(tmp_path / "population.csv")}}],
        "metric": "coverage",
    }
    release = shoal.anonymize(pa.table(sample), policy, output=tmp_path / "release.csv", mapping=True)
    assert set(release.levels.values()) == {0}
    assert release.loss == 0
    again = shoal.anonymize(
        pa.table(sample), policy | {"models": [policy["models"][0], {"k-anonymity": {"k": 2}}]}
    )
    assert sum(again.levels.values()) == 6
    assert again.table.to_pylist() == [dict.fromkeys(columns, "*")] * 2


VALUES = st.sampled_from(["a", "b", "c", None])


@settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(VALUES, st.integers(0, 30)), min_size=1, max_size=15),
    others=st.lists(st.tuples(VALUES | st.just("d"), st.integers(0, 60)), max_size=20),
    k=st.integers(1, 6),
    share=st.sampled_from(["0%", "30%"]),
)
def test_a_counted_population_equals_the_oracles(
    tmp_path: Path, rows: list[Any], others: list[Any], k: int, share: str
) -> None:
    names = ("letter", "number")
    everything = [*rows, *others]
    held = {name: [row[place] for row in everything] for place, name in enumerate(names)}
    path = write(tmp_path / "population.csv", held)
    policy = Policy.load(
        {
            "columns": {"letter": quasi(), "number": quasi({"intervals": [10, 20]})},
            "models": [{"k-map": {"k": k, "population": str(path)}}],
            "suppression_limit": share,
        }
    )
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    engine = ENGINES.create("duckdb")
    problem = problem_of(policy, *counted(session(table, engine).table, policy))
    trees = []
    for column, bound in enumerate(problem.hierarchies):
        texts = dict.fromkeys(row[column] for row in everything)
        labels = {label: code for code, label in enumerate(bound.labels[0])}
        trees.append(
            {
                value: [bound.labels[lv][bound.groups(lv)[labels["missing" if value is None else str(value)]]]
                        for lv in range(bound.height + 1)]
                for value in texts
            }
        )  # fmt: skip
    extra = {"models": [("k-map", {"k": k})], "population": everything, "columns": {}, "trees": {}}
    for node in problem.lattice.nodes():
        classes = problem.classes(node)
        gone = int(classes.sizes[problem.violations(classes)].sum())
        assert gone == oracle.suppressed(rows, trees, node, extra=extra)


# Policies


def test_a_policy_with_models_of_all_kinds_survives_yaml(desk: Workspace) -> None:
    written = desk.wish(*[(name, options) for name, options in EVERY if options.get("unit") is None])
    policy = Policy.load(written)
    again = desk.folder / "again.yaml"
    again.write_text(policy.to_yaml(), encoding="utf-8")
    assert Policy.load(again) == policy
    assert [type(model) for model in Policy.load(again).privacy_models] == [
        type(model) for model in policy.privacy_models
    ]
    assert Policy.load(again).sensitive_needed == ("illness", "cost")


def test_a_sensitive_hierarchy_file_is_kept_in_the_recipe(desk: Workspace) -> None:
    file = desk.folder / "illness.csv"
    file.write_text("flu;lungs;*\ncold;lungs;*\nasthma;lungs;*\ngout;joints;*\n", encoding="utf-8")
    columns = COLUMNS | {"illness": {"role": "sensitive", "hierarchy": {"csv": "illness.csv"}}}
    wish = ("t-closeness", {"t": 0.3, "distance": "hierarchical", **ILLNESS})
    release = shoal.anonymize(desk.data, desk.wish(wish, columns=columns), output=desk.output)
    assert desk.verify("--recipe", release.recipe)[0] == 0
    file.unlink()
    again = shoal.apply(release.recipe, desk.data, output=desk.folder / "again.csv")
    assert again.levels == release.levels


def test_the_hierarchy_of_a_sensitive_column_is_checked_before_a_run(desk: Workspace) -> None:
    desk.wish(("t-closeness", {"t": 0.3, "distance": "hierarchical", **ILLNESS}))
    found = {one.column: one for one in shoal.check_hierarchies(desk.data, desk.policy)}
    assert set(found) == {"age", "sex", "illness"}
    assert found["illness"].groups == (4, 2, 1)
    columns = COLUMNS | {"illness": {"role": "sensitive", "hierarchy": {"tree": {"lungs": ["flu"]}}}}
    policy = desk.wish(("distinct-l-diversity", {"l": 2, **ILLNESS}), columns=columns)
    result = desk.call("hierarchy", "check", desk.data, "--policy", policy)
    assert (result.exit_code, "3 values are not covered" in result.stderr) == (2, True)
    lacking = write(desk.folder / "lacking.csv", {n: c for n, c in people().items() if n != "illness"})
    with pytest.raises(PolicyError, match="The table lacks sensitive columns of the policy: 'illness'"):
        shoal.check_hierarchies(lacking, policy)


def test_options_of_a_model_can_be_given_on_the_command_line(desk: Workspace) -> None:
    desk.wish(("k-anonymity", {"k": 2}))
    result = desk.call(
        "anonymize", desk.data, "--policy", desk.policy, "--output", desk.output, "--json", "--model",
        "t-closeness:t=0.3,distance=hierarchical,column=illness", "--model",
        "k-map:k=5,population=population.csv",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["proven"] == "least loss"


BAD: list[tuple[dict[str, Any], type[ShoalError], str]] = [
    ({"columns": {"illness": None}}, UnknownName, "Unknown sensitive column 'illness'. Available: cost"),
    ({"columns": {"illness": quasi()}}, UnknownName, "Unknown sensitive column 'illness'"),
    ({"columns": {"illness": {"role": "other"}, "cost": {"role": "other"}}}, UnknownName, "Available: none"),
    (
        {
            "columns": {"illness": {"role": "other"}, "cost": {"role": "other"}},
            "models": [{"t-closeness": {"t": 0.2}}],
        },
        PolicyError,
        "t-closeness needs a column whose role is sensitive",
    ),
    ({"models": [{"t-closeness": {"t": 1.01}}]}, PolicyError, "t must be from 0 to 1, got 1.01"),
    (
        {"models": [{"t-closeness": {"t": 0.2, "distance": "hierarchical"}}]},
        PolicyError,
        "Column 'cost': a model measures distances along its hierarchy. Give it one",
    ),
    (
        {"models": [{"k-anonymity": {"k": 2, "unit": "persn"}}]},
        UnknownName,
        "Unknown column for unit: 'persn'. Did you mean 'person'",
    ),
    (
        {"models": [{"k-anonymity": {"k": 2, "unit": "sex"}}]},
        PolicyError,
        "Column 'sex' is a quasi-identifier and cannot tell persons apart as unit",
    ),
    (
        {"models": [{"k-map": {"k": 2, "population": "a"}}, {"k-map": {"k": 2, "population": "b"}}]},
        PolicyError,
        "Models name several populations: 'a', 'b'. Name one",
    ),
    ({"models": [{"k-map": {"k": 2}}]}, PolicyError, "Model k-map needs population"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_a_wrong_wish_says_what_is_wrong(
    change: dict[str, Any], error: type[ShoalError], message: str
) -> None:
    policy: dict[str, Any] = {"columns": COLUMNS, "models": [{"t-closeness": {"t": 0.2, **ILLNESS}}]}
    columns = {n: c for n, c in (COLUMNS | change.get("columns", {})).items() if c is not None}
    with pytest.raises(error, match=message):
        Policy.load(policy | change | {"columns": columns})


def test_a_sensitive_column_that_the_table_lacks_is_told(desk: Workspace) -> None:
    policy = desk.wish(
        ("t-closeness", {"t": 0.2, "column": "secret"}), columns=COLUMNS | {"secret": {"role": "sensitive"}}
    )
    with pytest.raises(PolicyError, match="names columns that the table does not have: 'secret'"):
        shoal.anonymize(desk.data, policy)


def test_nulls_of_a_sensitive_column_are_a_value_of_their_own(tmp_path: Path) -> None:
    table = pa.table({"a": ["x"] * 4 + ["y"] * 4, "s": ["u", None, "u", None, "u", "u", None, None]})
    columns = {"a": quasi(), "s": {"role": "sensitive"}}
    for model in (
        {"distinct-l-diversity": {"l": 2}},
        {"entropy-l-diversity": {"l": 2}},
        {"t-closeness": {"t": 0.0}},
        {"t-closeness": {"t": 0.0, "distance": "ordered"}},
    ):
        policy = {"columns": columns, "models": [model]}
        release = shoal.anonymize(table, policy, output=tmp_path / "out.csv", force=True)
        assert release.levels == {"a": 0}
        assert shoal.verify(tmp_path / "out.csv", policy, recipe=release.recipe).verified


def test_no_message_holds_a_value(desk: Workspace) -> None:
    table = people()
    table["illness"] = [f"{SECRET}{i % 3}" for i in range(120)]
    write(desk.data, table)
    columns = COLUMNS | {"illness": {"role": "sensitive"}}
    for wish in (
        ("distinct-l-diversity", {"l": 9, **ILLNESS}),
        ("entropy-l-diversity", {"l": 4, **ILLNESS}),
        ("recursive-cl-diversity", {"c": 0.1, "l": 2, **ILLNESS}),
        ("k-map", {"k": 10_000, "population": "population.csv"}),
        ("average-risk", {"risk": 0.0001}),
    ):
        desk.wish(wish, columns=columns)
        result = desk.call("anonymize", desk.data, "--policy", desk.policy, "--output", desk.output)
        assert result.exit_code == 1
        assert "No acceptable recoding" in result.stderr
    tree = {"tree": {"all": ["flu"]}}
    columns = COLUMNS | {"illness": {"role": "sensitive", "hierarchy": tree}}
    desk.wish(("t-closeness", {"t": 0.1, "distance": "hierarchical", **ILLNESS}), columns=columns)
    result = desk.call("anonymize", desk.data, "--policy", desk.policy, "--output", desk.output)
    assert (result.exit_code, "3 values are not covered" in result.stderr) == (2, True)
