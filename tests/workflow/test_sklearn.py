"""The transformer: scikit-learn's own checks, and what they cannot compare: texts, rows and k."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import shoal
from example_counts import usual_or_nightly
from shoal.errors import HierarchyError, PolicyError, UsageError

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks  # noqa: E402

from shoal.integrations.sklearn import Anonymizer  # noqa: E402

_TEXT = "it subtracts outputs, and generalized values are texts; run below with numbers, and in texts"
TEXTS = {
    "check_estimators_pickle": _TEXT,
    "check_transformer_data_not_an_array": _TEXT,
    "check_transformer_general": _TEXT,
    "check_methods_sample_order_invariance": _TEXT,
    "check_fit_idempotent": _TEXT,
    "check_methods_subset_invariance": _TEXT,
}


@parametrize_with_checks([Anonymizer()], expected_failed_checks=lambda _: TEXTS, xfail_strict=True)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


NUMBERS = [
    pytest.param(estimator, check, id=f"{check.func.__name__}-{number}")
    for number, (estimator, check) in enumerate(estimator_checks_generator(Anonymizer(k=1)))
    if check.func.__name__ in TEXTS
]


@pytest.mark.parametrize(("estimator", "check"), NUMBERS)
def test_checks_of_outputs_hold_where_values_stay_numbers(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_checks_that_fail_for_texts_are_run_with_numbers() -> None:
    assert {param.values[1].func.__name__ for param in NUMBERS} == set(TEXTS)  # type: ignore[attr-defined]


def people(rows: int = 300, seed: int = 1) -> Any:
    some = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "age": some.integers(18, 80, rows),
            "sex": some.choice(["f", "m"], rows),
            "zip": some.choice(["10115", "10117", "20095", "20097", "80331", "80333", "80335"], rows),
            "income": some.integers(1, 9, rows) * 500,
        },
        index=[f"row {n}" for n in range(rows)],
    )


QUASI = ["age", "sex", "zip"]
FITTED: dict[str, Anonymizer] = {}


def classes(table: Any, columns: list[str] = QUASI) -> Counter[tuple[Any, ...]]:
    rows = table[columns].astype(object).where(table[columns].notna(), None)
    return Counter(rows.itertuples(index=False, name=None))


def fitted(**more: Any) -> Anonymizer:
    """Fit once for each set of parameters."""
    key = repr(more)
    if key not in FITTED:
        options: dict[str, Any] = {"quasi_identifiers": QUASI, **more}
        FITTED[key] = Anonymizer(**options).set_output(transform="pandas").fit(people())
    return FITTED[key]


def test_the_table_is_that_of_a_release_with_its_rows_in_order() -> None:
    table = people()
    anonymizer = fitted()
    found = anonymizer.transform(table)
    assert list(found.index) == list(table.index)
    assert (found["income"].to_numpy() == table["income"].to_numpy()).all()
    release = shoal.anonymize(table, anonymizer.release_.policy)
    assert anonymizer.levels_ == release.levels
    assert anonymizer.release_.loss == release.loss
    names = [*QUASI, "income"]
    assert classes(found, names) == classes(release.table, names)
    assert min(classes(found).values()) >= 5


def test_each_row_is_recoded_as_its_own_values_climb() -> None:
    from shoal.workflow.inspect import labels_by_level

    table = people()
    anonymizer = fitted()
    assert anonymizer.levels_ is not None
    found = anonymizer.transform(table)
    for name, level in anonymizer.levels_.items():
        texts = [str(value) for value in table[name]]
        labels = dict(
            zip(dict.fromkeys(texts), labels_by_level(anonymizer.release_.policy, name, texts), strict=True)
        )
        assert [str(value) for value in found[name]] == [labels[text][level] for text in texts]


def test_fitting_twice_copying_and_pickling_change_nothing() -> None:
    table = people()
    anonymizer = fitted()
    first = anonymizer.transform(table)
    for other in (
        pickle.loads(pickle.dumps(anonymizer)),
        clone(anonymizer).fit(table).fit(table),
    ):
        assert other.transform(table).equals(first)
    assert clone(anonymizer).fit_transform(table).equals(first)
    order = np.random.default_rng(0).permutation(len(table))
    assert anonymizer.transform(table.iloc[order]).equals(first.iloc[order])


def test_a_fitted_transformer_holds_no_row() -> None:
    assert fitted().release_.table is None
    assert b"row 17" not in pickle.dumps(fitted())


ROWWISE = ["auto", "ola", "datafly", "mondrian", "tds", "bottom-up", "k-optimize", "greedy-cuts"]
WHOLE = {
    "refine": {"auto": {"refine": True}},
    "cells": {"auto": {"cells": True}},
    "relaxed": {"mondrian": {"relaxed": True}},
    "mu-argus": {"mu-argus": {}},
}


def drawn(rows: int, some: np.random.Generator) -> Any:
    """Draw rows with missing values, a mixture of types and values of which a column has few."""
    return pandas.DataFrame(
        {
            "age": pandas.array(some.integers(15, 60, rows), dtype="Int64"),
            "kind": some.choice(["a", "b", "c", "rare"], rows, p=[0.5, 0.3, 0.15, 0.05]),
            "mixed": pandas.Series([[1, "1", 2.5, None][n] for n in some.integers(0, 4, rows)], dtype=object),
            "label": some.choice(["yes", "no"], rows),
            "count": some.integers(2**53, 2**53 + 9, rows),
        }
    ).mask(some.random((rows, 5)) < [0.1, 0.1, 0, 0, 0])


def learned(algorithm: Any, seed: int, **more: Any) -> tuple[Anonymizer, Any]:
    tree = {"x": ["a", "b"], "y": ["c", "rare", "new"]}
    metrics = {"k-optimize": "discernibility", "greedy-cuts": "discernibility", "ola": "non-uniform-entropy"}
    roles: dict[str, Any] = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}},
        "kind": {"role": "quasi-identifier", "hierarchy": {"tree": tree}},
        "mixed": {"role": "quasi-identifier", "hierarchy": "flat"},
        "label": {"role": "sensitive"},
        "count": {"role": "other"},
    }
    policy = {
        "columns": roles,
        "models": [{"k-anonymity": {"k": 4}}],
        "suppression_limit": "30%",
        "algorithm": algorithm,
        "label": "label",
        "metric": metrics.get(str(algorithm), "coverage"),
    }
    table = drawn(120, np.random.default_rng(seed))
    return Anonymizer(policy, **more).set_output(transform="pandas").fit(table), table


def plain(frame: Any) -> list[tuple[Any, ...]]:
    """Return rows that can be compared: one None for whatever is missing, and the type of each value."""
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return [tuple((type(value).__name__, value) for value in row) for row in rows]


@pytest.mark.parametrize("suppressed", ["mask", "keep"])
@pytest.mark.parametrize("algorithm", ROWWISE)
@pytest.mark.parametrize("seed", range(usual_or_nightly(1, 20)))
def test_a_row_comes_out_the_same_whatever_rows_come_with_it(
    algorithm: str, suppressed: str, seed: int
) -> None:
    anonymizer, table = learned(algorithm, seed, suppressed=suppressed)
    some = np.random.default_rng(seed + 100)
    new = drawn(usual_or_nightly(25, 60), some)
    new.loc[:1, "kind"] = "new"
    new.loc[2:3, "age"] = 99
    whole = plain(anonymizer.transform(new))
    assert [plain(anonymizer.transform(new.iloc[[row]]))[0] for row in range(len(new))] == whole
    order = some.permutation(len(new))
    assert plain(anonymizer.transform(new.iloc[order])) == [whole[row] for row in order]
    both = plain(anonymizer.transform(pandas.concat([table, new])))
    assert both[len(table) :] == whole
    arrays = [anonymizer.set_output(transform="default").transform(some) for some in (new, new.iloc[[5]])]
    assert list(arrays[0][5]) == list(arrays[1][0])


@pytest.mark.parametrize("algorithm", ROWWISE)
@pytest.mark.parametrize("seed", range(usual_or_nightly(1, 20)))
def test_a_row_is_shown_only_in_a_class_that_fit_released(algorithm: str, seed: int) -> None:
    anonymizer, table = learned(algorithm, seed)
    names = ["age", "kind", "mixed"]
    sizes = classes(anonymizer.transform(table), names)
    masked = sizes.pop((None, None, None), 0)
    assert masked == 0 or masked >= 4
    assert min(sizes.values()) >= 4
    assert masked >= anonymizer.release_.suppressed
    found = anonymizer.transform(drawn(200, np.random.default_rng(seed + 7)))
    assert set(classes(found, names)) <= {*sizes, (None, None, None)}
    blank = found[names].isna().all(axis=1)
    assert found["label"][blank].isna().all()
    assert found["label"][~blank].notna().all()
    assert found["count"].dtype == table["count"].dtype


@pytest.mark.parametrize("name", WHOLE)
def test_a_recoding_that_depends_on_the_whole_table_takes_only_the_fitted_data(name: str) -> None:
    anonymizer, table = learned(WHOLE[name], 1)
    found = anonymizer.transform(table.iloc[::-1])
    assert len(found) == len(table)
    assert found["count"].tolist() == table["count"].tolist()[::-1]
    for other in (table.iloc[[0]], table[:-1], drawn(120, np.random.default_rng(2))):
        with pytest.raises(UsageError, match="transform takes only the data that was fitted") as caught:
            anonymizer.transform(other)
        assert ("at random" in str(caught.value)) == (name == "relaxed")


def test_a_single_row_of_a_released_class_is_not_masked() -> None:
    anonymizer = fitted()
    table = people()
    whole = anonymizer.transform(table)
    for row in range(0, 300, 60):
        assert anonymizer.transform(table.iloc[[row]]).equals(whole.iloc[[row]])


def test_a_class_that_fit_did_not_see_is_masked() -> None:
    table = pandas.DataFrame({"sex": ["f"] * 6 + ["m"] * 9})
    anonymizer = Anonymizer(k=5, hierarchies={"sex": "flat"}).set_output(transform="pandas").fit(table)
    assert anonymizer.levels_ == {"sex": 0}
    new = pandas.DataFrame({"sex": ["f"] * 6 + ["m"] * 2 + ["x"] * 7})
    found = anonymizer.transform(new)["sex"]
    assert list(found[:8]) == ["f"] * 6 + ["m"] * 2
    assert found[8:].isna().all()


def test_persons_are_counted_among_masked_rows_where_a_model_counts_them() -> None:
    policy = {
        "columns": {"id": {"role": "identifier"}, "sex": {"role": "quasi-identifier", "hierarchy": "flat"}},
        "models": [{"k-anonymity": {"k": 3, "unit": "id"}}],
        "suppression_limit": 4,
    }
    table = pandas.DataFrame({"id": list("aaaabcdefghi"), "sex": list("xxxxfffmmmmm")})
    found = Anonymizer(policy).set_output(transform="pandas").fit_transform(table)["sex"]
    assert found.isna().tolist() == [True] * 7 + [False] * 5  # four records of one person, and a class


def test_rows_of_other_classes_are_kept_only_where_that_is_asked() -> None:
    kept = fitted(suppressed="keep", hierarchies={"age": {"intervals": [5]}, "sex": "flat", "zip": "flat"})
    masked = fitted(hierarchies={"age": {"intervals": [5]}, "sex": "flat", "zip": "flat"})
    new = people(6, seed=9)
    new["zip"] = "99999"
    assert kept.levels_ == masked.levels_
    if masked.levels_["zip"] == 0:
        assert masked.transform(new)[QUASI].isna().all().all()
    assert kept.transform(new)[QUASI].notna().all().all()


def test_rows_that_lie_in_no_region_are_masked_and_the_others_kept() -> None:
    anonymizer = fitted(algorithm="mondrian", suppressed="keep")
    new = people()[:30]
    new.loc["row 3", "sex"] = "x"
    found = anonymizer.transform(new)
    assert np.flatnonzero(found["sex"].isna()).tolist() == [3]
    assert np.flatnonzero(found["age"].isna()).tolist() == [3]


def test_records_suppressed_in_fit_are_masked_in_their_places() -> None:
    table = people()
    table["age"] = table["age"].clip(20, 79)
    table.loc["row 7":"row 13", "age"] = 250  # seven far off
    options: dict[str, Any] = {"hierarchies": {"age": {"intervals": [20], "top": False}}, "k": 8}
    anonymizer = Anonymizer(quasi_identifiers=["age"], suppression_limit="5%", **options)
    found = anonymizer.set_output(transform="pandas").fit_transform(table)
    assert anonymizer.release_.suppressed == 7
    blank = np.flatnonzero(found["age"].isna())
    assert set(range(7, 14)) <= set(blank)
    assert len(blank) >= 8  # a smallest class went with them
    sizes = classes(found, ["age"])
    assert all(size >= 8 for size in sizes.values())


def test_sensitive_columns_are_masked_with_their_records_and_models_hold() -> None:
    policy = {
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 40]}},
            "illness": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": 3}}, {"distinct-l-diversity": {"l": 2}}],
        "suppression_limit": "20%",
    }
    some = np.random.default_rng(3)
    table = pandas.DataFrame(
        {
            "name": [f"p{n}" for n in range(60)],
            "age": some.integers(0, 80, 60),
            "illness": some.choice(list("abc"), 60),
        }
    )
    anonymizer = Anonymizer(policy).set_output(transform="pandas").fit(table)
    assert list(anonymizer.get_feature_names_out()) == ["age", "illness"]
    found = anonymizer.transform(table)
    assert list(found.columns) == ["age", "illness"]
    blank = found["age"].isna()
    assert found["illness"][blank].isna().all()
    assert (found["illness"][~blank] == table["illness"][~blank]).all()
    for _, some_class in found[~blank].groupby("age"):
        assert len(some_class) >= 3
        assert some_class["illness"].nunique() >= 2


@pytest.mark.parametrize(
    "algorithm", ["mondrian", {"auto": {"refine": True}}, {"auto": {"cells": True}}, "ola"]
)
def test_other_recodings_work_too(algorithm: Any) -> None:
    table = people()
    anonymizer = fitted(algorithm=algorithm)
    found = anonymizer.transform(table)
    names = [*QUASI, "income"]
    release = shoal.anonymize(table, anonymizer.release_.policy)
    assert anonymizer.levels_ == release.levels
    assert classes(found, names) == classes(release.table, names)
    assert (found["income"].to_numpy() == table["income"].to_numpy()).all()


def test_metrics_that_are_not_monotone_do_not_stop_a_transform() -> None:
    anonymizer = fitted(algorithm="ola", metric="discernibility")
    assert len(anonymizer.transform(people(50, seed=4))) == 50


def test_values_that_fit_has_not_seen_follow_the_rules_of_the_hierarchies() -> None:
    rules = {"age": {"intervals": [20]}, "sex": {"tree": {"any": ["f", "m"]}}, "zip": {"prefix": [2]}}
    anonymizer = fitted(hierarchies=rules, suppressed="keep")
    new = people(20, seed=5)
    new.loc[:, "age"] = 17
    assert len(set(anonymizer.transform(new)["age"])) == 1
    new.loc["row 3", "sex"] = "secret"
    with pytest.raises(HierarchyError, match="1 value is not covered") as caught:
        anonymizer.transform(new)
    assert "secret" not in str(caught.value)


def test_bounds_come_out_as_two_columns() -> None:
    policy = {
        "columns": {
            "x0": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}, "release_as": "bounds"},
            "x1": {"role": "other"},
        },
        "models": [{"k-anonymity": {"k": 4}}],
    }
    values = np.arange(40).reshape(-1, 2)
    anonymizer = Anonymizer(policy).fit(values)
    found = anonymizer.transform(values)
    assert list(anonymizer.get_feature_names_out()) == ["x0_lower", "x0_upper", "x1"]
    assert np.issubdtype(found.dtype, np.number)
    assert (found[:, 0] <= values[:, 0]).all()
    assert (values[:, 0] <= found[:, 1]).all()
    assert (found[:, 2] == values[:, 1]).all()


def test_a_pipeline_learns_from_what_it_releases() -> None:
    table = people(400)
    label = (table["income"] > 2000).to_numpy()
    table["income"] += np.where(table["sex"] == "f", 10_000, 0)
    pipeline = make_pipeline(
        Anonymizer(k=5, quasi_identifiers=QUASI),
        OneHotEncoder(handle_unknown="ignore"),
        LogisticRegression(),
    )
    scores = cross_val_score(pipeline, table, label, cv=2, error_score="raise")
    assert len(scores) == 2
    assert pipeline.fit(table, label).score(table, label) > 0.9
    assert clone(pipeline).set_params(anonymizer__k=9)[0].get_params()["k"] == 9
    names = pipeline[:-1].get_feature_names_out()
    assert any(name.startswith("income_") for name in names)


def test_frames_go_in_and_come_out_as_asked() -> None:
    table = people()
    text = Anonymizer(k=5, quasi_identifiers=QUASI).fit_transform(table)
    assert isinstance(text, np.ndarray)
    assert text.dtype == object
    other = polars.from_pandas(table)
    from_polars = Anonymizer(k=5, quasi_identifiers=QUASI).set_output(transform="polars").fit_transform(other)
    assert isinstance(from_polars, polars.DataFrame)
    assert from_polars.columns == [*QUASI, "income"]
    assert from_polars["income"].dtype == other["income"].dtype
    assert from_polars.rows() == [tuple(row) for row in text.tolist()]
    assert list(Anonymizer().fit(table[QUASI]).feature_names_in_) == QUASI


def test_other_tables_go_in_too() -> None:
    table = people()[QUASI]
    expected = Anonymizer().fit_transform(table).tolist()
    arrow = polars.from_pandas(table).to_arrow()
    assert Anonymizer().fit_transform(arrow).tolist() == expected
    unnamed = table.set_axis([10, 20, 30], axis=1)
    anonymizer = Anonymizer().fit(unnamed)
    assert list(anonymizer.get_feature_names_out()) == ["x0", "x1", "x2"]
    assert list(anonymizer.get_feature_names_out(["a", "b", "c"])) == ["a", "b", "c"]
    named = table.set_axis(["x0", "x1", "x2"], axis=1)  # a name such as age decides on the hierarchy, too
    assert anonymizer.transform(unnamed).tolist() == Anonymizer().fit_transform(named).tolist()


def test_missing_values_stay_missing_or_climb_with_the_rest() -> None:
    values = np.array([[1.0, np.nan]] * 10 + [[2.0, 5.0]] * 10)
    found = Anonymizer(k=5).fit_transform(values)
    assert np.isnan(found[:10, 1]).all()
    assert (found[10:] == [2.0, 5.0]).all()


def test_what_cannot_be_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="'mask' or 'keep', got 'drop'"):
        fitted(suppressed="drop")
    with pytest.raises(ValueError, match="n_samples=3, fewer than the 5 records"):
        Anonymizer().fit(people(3))
    with pytest.raises(PolicyError, match="hierarchies names columns"):
        fitted(hierarchies={"agee": "flat"})
    with pytest.raises(PolicyError, match="sensitive names columns"):
        fitted(sensitive=["none"])
    policy = {
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": "flat"},
            "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
            "zip": {"role": "quasi-identifier", "hierarchy": "flat"},
            "income": {"role": "sensitive"},
        },
        "models": [{"distinct-l-diversity": {"l": 2}}],
        "algorithm": "anatomy",
    }
    with pytest.raises(UsageError, match="two tables"):
        Anonymizer(policy).fit(people())
    with pytest.raises(ValueError, match="feature names"):
        fitted().transform(people().rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="0 sample"):
        fitted().transform(people()[:0])


def test_the_recipe_is_one_that_shoal_applies() -> None:
    anonymizer = fitted()
    release = shoal.apply(anonymizer.recipe_, people())
    assert release.levels == anonymizer.levels_


def test_shoal_does_not_import_scikit_learn() -> None:
    code = "import shoal, shoal.cli, sys; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
