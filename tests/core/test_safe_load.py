"""The loader of YAML and JSON: limits hold before anything large is built, and no message holds a value."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from shoal.errors import PolicyError, UsageError
from shoal.files.yaml import (
    MAX_DEPTH,
    MAX_JSON_BYTES,
    MAX_YAML_BYTES,
    LoadError,
    load_json,
    load_yaml,
    read_bytes,
)
from shoal.policy.policy import Policy
from shoal.workflow.profile.offer import offer_of
from shoal.workflow.release.recipe import Recipe

SECRET = "s3cr3t"
LETTERS = st.text("abno1.:-'\"#&*!%@ ü", min_size=1, max_size=6)


def alias_bomb(levels: int = 9) -> str:
    lines = [f"a0: &a0 [{', '.join([SECRET] * 10)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merge_bomb(levels: int = 20) -> str:
    lines = ["m0: &m0 {s3cr3t: 1}"]
    lines += [f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}], k{n}: 1}}" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (alias_bomb(), "its aliases (*name) stand for more than 10,000 values"),
        (merge_bomb(), "its aliases (*name) stand for more than 10,000 values"),
        ("a: &a [*a]", "an alias is inside the part that it names at line 1"),
        ("[" * 100_000, f"nested more than {MAX_DEPTH} levels deep at line 1"),
        ("{a: " * 100_000, f"nested more than {MAX_DEPTH} levels deep"),
        ("\n".join(" " * n + "- " for n in range(200)), "nested more than"),
        ("- " * 1000, "nested more than"),
        (f"a: !!python/object/apply:os.system [{SECRET}]", "text that begins with ! needs quotes"),
        (f"a: !!binary {SECRET}", "text that begins with ! needs quotes"),
        (f"columns:\n  {SECRET}: 1\n  {SECRET}: 2\n", "at line 3: a key appears twice"),
        ("models: 1\nmodels: 2\n", "at line 2: 'models' appears twice"),
        ("a: " + "7" * 5000, "at line 1: a number is too large"),
        ("a: 1.0e+999", "at line 1: a number is too large"),
        ('a: "\\ud800"', "a character in it is not text"),
        ('a: "\\UFFFFFFFF"', "a character in it is not text"),
        ("? [a]\n: 1", "a key is a list or a mapping"),
        ("a: " + "x" * MAX_YAML_BYTES, "larger than 2 MB, which is the limit"),
    ],
)
def test_yaml_beyond_a_limit_is_refused(text: str, reason: str) -> None:
    with pytest.raises(LoadError) as caught:
        load_yaml(text)
    assert reason in str(caught.value)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, f"nested more than {MAX_DEPTH} levels deep"),
        ("[" * 100 + "]" * 100, f"nested more than {MAX_DEPTH} levels deep"),
        ('{"a":' * 100 + "1" + "}" * 100, f"nested more than {MAX_DEPTH} levels deep"),
        (f'{{"{SECRET}": 1, "{SECRET}": 2}}', "a name occurs twice in one object"),
        ('{"a": NaN}', "not finite"),
        ('{"a": -Infinity}', "not finite"),
        ('{"a": 1e999}', "not finite"),
        ('{"a": ' + "7" * 5000 + "}", "not JSON"),
        ('{"a": "\\ud800"}', "a character in it is not text"),
        (f'{{"a": {SECRET}}}', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (" " * (MAX_JSON_BYTES + 1), "larger than 16 MB, which is the limit"),
    ],
)
def test_json_beyond_a_limit_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(LoadError) as caught:
        load_json(text)
    assert reason in str(caught.value)
    assert SECRET not in str(caught.value)


def test_what_is_within_the_limits_is_loaded() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert load_yaml(deep) == load_json(deep)
    assert load_yaml("a: &x {b: 1}\nc: *x\nd: [*x, *x]") == {
        "a": {"b": 1},
        "c": {"b": 1},
        "d": [{"b": 1}] * 2,
    }
    assert load_json('"\\ud83d\\udc1f"') == "\N{FISH}"


@settings(max_examples=examples(60), deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
def test_plain_values_come_back_from_json(value: Any) -> None:
    assert load_json(json.dumps(value)) == value


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(LETTERS, st.lists(st.integers() | LETTERS, max_size=4)))
def test_what_the_program_writes_as_yaml_comes_back(value: Any) -> None:
    assert load_yaml(yaml.safe_dump(value, allow_unicode=True)) == value


def test_a_file_is_read_no_further_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 10)
    assert read_bytes(tmp_path / "f", 10) == b"x" * 10
    with pytest.raises(LoadError, match="which is the limit"):
        read_bytes(tmp_path / "f", 9)
    with pytest.raises(LoadError, match="which is the limit"):
        read_bytes(Path("/dev/zero"), 1000)


def test_a_policy_that_is_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f"columns: {{}}  # {'x' * MAX_YAML_BYTES}", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"The policy .* is larger than 2 MB, which is the limit\."):
        Policy.load(path)


def test_an_alias_bomb_is_no_policy(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(alias_bomb(), encoding="utf-8")
    with pytest.raises(PolicyError, match=r"The policy .* is too large: its aliases"):
        Policy.load(path)


@pytest.mark.parametrize("text", ["[" * 50_000, '{"exact":' * 50_000])
def test_nested_brackets_are_neither_a_recipe_nor_an_offer(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError, match="nested more than 64 levels deep"):
        Recipe.load(path)
    with pytest.raises(UsageError, match="nested more than 64 levels deep"):
        offer_of(path)


# A recipe is data: what it names is not opened.


def recipe(**changes: Any) -> dict[str, Any]:
    return {
        "recipe": 1,
        "levels": {"a": 1},
        "hierarchy_files": {},
        "policy": {
            "columns": {"a": {"role": "quasi-identifier", "hierarchy": "flat"}},
            "models": [{"k-anonymity": {"k": 2}}],
        },
    } | changes


def test_the_policy_of_a_recipe_is_not_opened_as_a_path(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(recipe()["policy"]), encoding="utf-8")
    assert Recipe.load(recipe()).levels == {"a": 1}
    for policy in (str(path), path, [str(path)], None):
        with pytest.raises(PolicyError, match="its policy is not a mapping"):
            Recipe.load(recipe(policy=policy))


@pytest.mark.parametrize(
    "rule",
    [
        {"intervals": [[SECRET, 3]]},
        {"cuts": SECRET},
        {"dates": [SECRET]},
        {SECRET: 1},
        SECRET,
        {"tree": [SECRET]},
    ],
)
def test_an_error_of_a_damaged_recipe_quotes_nothing_of_it(rule: Any) -> None:
    """A recipe holds values of the data, and damage may move them anywhere."""
    policy = {"columns": {"a": {"role": "quasi-identifier", "hierarchy": rule}}, "models": []}
    with pytest.raises(PolicyError, match=r"The recipe is damaged: its policy is not valid\.") as caught:
        Recipe.load(recipe(policy=policy))
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("rows", [None, [], [[]], [["x", "*"], ["y"]], [[1, "*"]], "x", [["x", None]]])
def test_the_hierarchy_file_of_a_recipe_is_not_opened_as_a_path(tmp_path: Path, rows: Any) -> None:
    path = tmp_path / "h.csv"
    path.write_text(f"{SECRET};*\n", encoding="utf-8")
    policy = recipe()["policy"] | {
        "columns": {"a": {"role": "quasi-identifier", "hierarchy": {"csv": str(path)}}}
    }
    assert Recipe.load(recipe(policy=policy, hierarchy_files={"a": [["x", "*"]]}))
    with pytest.raises(PolicyError, match="it lacks the rows of a hierarchy file"):
        Recipe.load(recipe(policy=policy, hierarchy_files={} if rows is None else {"a": rows}))


def test_aliases_are_as_deep_as_what_they_name() -> None:
    nested = "[" * 40 + "1" + "]" * 40
    deep = f"a: &a {nested}\nb: &b {'[' * 40}*a{']' * 40}\n"
    with pytest.raises(LoadError, match="nested"):
        load_yaml(deep)


def test_merge_keys_are_resolved() -> None:
    text = "a: &a {role: other, weight: 2}\nb: {<<: *a, role: sensitive}\n"
    assert load_yaml(text)["b"] == {"role": "sensitive", "weight": 2}


BASES = (
    (files("shoal") / "data" / "policy.yaml").read_text(encoding="utf-8"),
    "columns: {a: {role: other}, b: [1, 2.5, 'x']}\nx: &a [1, 2]\ny: *a\n- d",
    "a: |\n  text\n  more\nb: >-\n  folded\n   x\n",
    "a: \"q\\n\\x41\"\nb: 'it''s'\n# c\nc: ~\n",
)


def outcome(text: str) -> tuple[str, Any]:
    try:
        return "read", load_yaml(text)
    except LoadError as error:
        return "refused", str(error)


@given(st.randoms(use_true_random=False))
@settings(max_examples=examples(400))
def test_both_parsers_read_a_text_alike(random: Random) -> None:
    text = BASES[random.randrange(len(BASES))]
    for _ in range(random.randrange(6)):
        at = random.randrange(len(text) + 1)
        text = (
            text[:at]
            + random.choice(" \t\n:-{}[],&*!|>'\"#?%@a0.~\\é\u2028")
            + text[at + random.randrange(2) :]
        )
    fast = outcome(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.files.yaml._FastLoader", None)
        assert outcome(text) == fast
