"""What is said of a policy and a release is true for the algorithm and the models that made it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Guarantee
from shoal.policy.policy import Policy
from shoal.wording import percent
from shoal.workflow import statements
from shoal.workflow.report.report import report
from shoal.workflow.verify import ModelCheck

LOOKS_ALIKE = "looks like at least"
LEAST_LOSS = "of least loss"


def people(records: int = 300, seed: int = 1) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            "age": [str(chance.randrange(20, 60)) for _ in range(records)],
            "ward": [chance.choice("abcdef") for _ in range(records)],
            "sex": [chance.choice("fm") for _ in range(records)],
            "illness": [chance.choice(["flu", "asthma", "cold", "burn"]) for _ in range(records)],
        }
    )


def policy(algorithm: str, **entries: Any) -> Policy:
    quasi = {"role": "quasi-identifier"}
    columns: dict[str, Any] = {
        "age": {**quasi, "hierarchy": {"intervals": [5, 10]}},
        "ward": {**quasi, "hierarchy": "flat"},
        "sex": {**quasi, "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
    }
    models: list[Any] = [{"k-anonymity": {"k": 4}}]
    if algorithm == "anatomy":
        models = [{"distinct-l-diversity": {"l": 2}}]
        entries.setdefault("metric", "discernibility")
    if algorithm in ("k-optimize", "greedy-cuts"):
        entries.setdefault("metric", "discernibility")
    if algorithm in ("tds", "bottom-up"):
        entries.setdefault("label", "illness")
    return Policy.load(
        {"columns": columns, "models": models, "suppression_limit": "20%", "algorithm": algorithm, **entries}
    )


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_no_statement_promises_more_than_the_algorithm(name: str) -> None:
    chosen = ALGORITHMS.create(name)
    models = " ".join(statements.model_statements(policy(name)))
    choice = statements.choice_statement(policy(name))
    keeps_classes = chosen.guarantee is not Guarantee.NONE and not chosen.separates_sensitive
    assert (LOOKS_ALIKE in models) == keeps_classes
    if chosen.guarantee is Guarantee.NONE:
        assert "does not promise k-anonymity (k 4)" in models
    assert ("Among the acceptable recodings, the one of least loss" in choice) == (
        chosen.guarantee is Guarantee.LEAST_LOSS
    )
    if chosen.guarantee is Guarantee.ACCEPTABLE:
        assert LEAST_LOSS not in choice
        assert "Another choice may lose less" in choice


def test_what_becomes_of_a_column_is_what_the_algorithm_does() -> None:
    said = statements.column_statements(policy("contour", models=[{"distinct-l-diversity": {"l": 2}}]))
    assert said[1:3] == [
        "Generalized: age, ward, sex.",
        "Kept as they are, and protected by the models: illness.",
    ]
    said = statements.column_statements(policy("contour"))  # k-anonymity looks at no sensitive column
    assert said[2:4] == [
        "No column is protected by the models.",
        "Kept as they are, and protected by no model: illness.",
    ]
    said = statements.column_statements(policy("anatomy"))
    assert said[1:3] == [
        "Kept as they are, and known to others: age, ward, sex.",
        "Released by groups, in a second table: illness.",
    ]


@pytest.mark.parametrize("labels", [0, 1, 3])
def test_levels_are_fixed_only_where_classes_have_none_of_their_own(labels: int) -> None:
    node = {"age": 2, "ward": 0, "sex": 1}
    wanted = policy("contour", local={"labels": labels} if labels else False)
    release = shoal.anonymize(people(), wanted, node=node)
    assert (release.levels == node) == (labels == 0)
    said = statements.choice_statement(wanted, node)
    assert said.startswith("The search begins at the levels: " if labels else "Levels are fixed: ")
    html = report(release)
    for text in (said, statements.choice_statement(wanted), html):
        assert ("up to 3 labels" in text) == (labels == 3)
    several = any(" or " in cell for cell in release.table["age"].to_pylist())
    assert several == (labels == 3)


def test_blanked_cells_are_not_called_finer() -> None:
    wanted = policy("contour").model_copy(update={"algorithm": {"contour": {"cells": True}}})
    release = shoal.anonymize(people(), wanted)
    assert release.cells
    assert "finer" not in str(release)
    assert "with blanked cells" in str(release)


def test_anatomy_does_not_claim_to_retain_what_it_separates() -> None:
    release = shoal.anonymize(people(), policy("anatomy"))
    for text in (statements.release_verdict(release).text, str(release), report(release)):
        assert "which record has which illness" in text
        assert "100% of the information is retained" not in text


def test_automatic_search_promises_the_least_loss() -> None:
    said = statements.choice_statement(policy("auto"))
    assert LEAST_LOSS in said
    assert "if time runs out" in said


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_a_verdict_is_good_only_where_every_model_holds(name: str) -> None:
    release = shoal.anonymize(people(), policy(name))
    verdict = statements.release_verdict(release)
    holds = all(check.passed for check in release.verification.models)
    assert (verdict.tone != "bad") == holds
    nothing_lost = not release.columns_without_information
    assert (verdict.tone == "good") == (holds and release.retained_overall >= 0.5 and nothing_lost)
    left = " in the quasi-identifiers" if release.separate_column else ""
    left = f"{percent(release.retained_overall)} of the information{left} is retained"
    assert not holds or left in verdict.text
    html = report(release)
    assert "is safe" not in html.lower()
    assert f"verdict {verdict.tone}" in html


def test_an_unverified_release_is_not_good_news_anywhere() -> None:
    release = shoal.anonymize(people(), policy("contour"))
    broken = ModelCheck("k-anonymity", {"k": 4}, passed=False, violating_classes=1, violating_records=2)
    checked = replace(release.verification, verified=False, models=(broken,), reasons=("k-anonymity: 2",))
    release = replace(release, verification=checked, algorithm="mu-argus")
    verdict = statements.release_verdict(release)
    assert verdict.tone == "bad"
    assert "mu-argus does not promise this" in verdict.text
    assert "verdict bad" in report(release)
    assert "shoal-block bad" in release._repr_html_()


def test_a_lost_column_is_a_warning_however_much_is_retained() -> None:
    release = shoal.anonymize(people(), policy("contour"), node={"age": 1, "ward": 1, "sex": 0})
    assert release.columns_without_information == ("ward",)
    kept = {name: replace(loss, coverage=0.1) for name, loss in release.losses.items()}
    verdict = statements.release_verdict(replace(release, losses=kept, suppressed=0))
    assert verdict.tone == "warn"
    assert "nothing is left of ward; 90% of the information is retained" in verdict.text


def test_a_release_of_hardly_any_record_is_a_warning() -> None:
    release = shoal.anonymize(people(), policy("contour", suppression_limit="100%"))
    release = replace(release, suppressed=290)
    verdict = statements.release_verdict(release)
    assert verdict.tone == "warn"
    assert "290 of 300 records (96.7%) were suppressed" in verdict.text


def test_a_request_that_loses_most_records_is_no_plain_yes() -> None:
    profile = shoal.profile(people(), policy("contour"))
    answer = profile.negotiate(k=4, suppression_limit="100%", max_level={"age": 0, "ward": 0, "sex": 0})
    assert answer.exact is not None
    assert answer.exact.suppressed > 150
    verdict = statements.negotiation_verdict(answer, profile.records)
    assert verdict.tone == "warn"
    assert not verdict.text.startswith("Yes")


def test_a_model_that_was_not_counted_is_no_plain_yes() -> None:
    both = [{"k-anonymity": {"k": 2}}, {"distinct-l-diversity": {"l": 2}}]
    profile = shoal.profile(people(), policy("contour", models=both))
    answer = profile.negotiate(k=2, suppression_limit="20%")
    assert answer.exact is not None
    assert answer.besides
    assert statements.negotiation_verdict(answer, profile.records).tone == "warn"


def test_a_suggestion_names_the_columns_of_which_nothing_is_left() -> None:
    profile = shoal.profile(people(), policy("contour"))
    assert statements.removal_statement(profile, {"age": 2, "ward": 0, "sex": 1}) == "Nothing is left of sex."
    assert statements.removal_statement(profile, {"age": 3, "ward": 1, "sex": 0}) == (
        "Nothing is left of age, ward."
    )
    assert statements.removal_statement(profile, {"age": 2, "ward": 0, "sex": 0}) == ""
    unnamed = replace(profile, problem=None)
    assert statements.removal_statement(unnamed, {"age": 0, "ward": 0, "sex": 1}) == "Highest level: sex."


def test_a_partial_profile_does_not_claim_to_answer_everything() -> None:
    whole = shoal.profile(people(), policy("contour"))
    assert "another node may be better" not in whole._repr_html_()
    part = replace(whole, numbers=whole.numbers[:5].copy())
    assert "another node may be better" in part._repr_html_()
    assert "another node may be better" in str(part)


def test_no_summary_promises_a_proof_that_time_may_prevent() -> None:
    proofs = [text for name in ALGORITHMS if "prove" in (text := ALGORITHMS.load(name).plain_summary)]
    assert proofs
    assert all("time" in text for text in proofs)
