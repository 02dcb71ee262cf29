"""The reference: what options mean stands once, in the program, and the docs are made from it."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, make_dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

import reference
from shoal.algorithms.anatomy import Anatomy
from shoal.algorithms.ola import Ola
from shoal.columns.presets import PRESETS
from shoal.core.contracts import Metric
from shoal.core.hierarchy.builders import BUILDERS
from shoal.engines.postgres.engine import Postgres
from shoal.engines.spark.engine import Spark
from shoal.errors import UnknownName
from shoal.metrics.height import Height
from shoal.models.k_anonymity import KAnonymity
from shoal.policy.policy import Column, Policy
from shoal.policy.schema import policy_schema
from shoal.registry import Option, Registry, in_words, options_of
from shoal.workflow.catalogue import REGISTRIES, builder_options, catalogue, describe

PAGES = reference.pages()
PARAMETERS = [
    pytest.param(parameter, id=f"{name}-{parameter.name}")
    for name, command in reference.commands()
    for parameter in command.params
]
OPTIONS = [
    *[(name, option) for registry in REGISTRIES for name in registry for option in registry.options(name)],
    *[(name, option) for name in BUILDERS for option in builder_options(name)],
    *[(kind.__name__, entry) for kind in (Policy, Column) for entry in reference.entries(kind)],
]


@pytest.mark.parametrize("page", list(PAGES), ids=lambda page: page.name)
def test_the_page_says_what_the_program_does(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "run make reference"


def test_no_other_page_has_parts_that_the_program_writes() -> None:
    """Figures are written by benchmarks."""
    others = set(reference.DOCS.rglob("*.md")) - set(PAGES)
    parts = re.compile(r"<!-- (?!figures of )[^>]+ -->\n.*?<!-- end -->", re.DOTALL)
    assert not [page for page in others if parts.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("kind", ["model", "metric", "engine"])
def test_every_promise_of_a_contract_is_told(kind: str) -> None:
    annotated = inspect.get_annotations(reference.CONTRACTS[kind])
    assert list(reference.promises(kind)) == [name for name in annotated if name != "plain_summary"]


def test_of_algorithms_the_guarantee_is_told() -> None:
    assert reference.promises("algorithm") == ("guarantee",)


def test_a_promise_is_told_in_the_words_of_who_knows_most() -> None:
    assert reference.promise(Ola, "guarantee") == ("least loss", "No acceptable node has a smaller loss.")
    assert reference.promise(Anatomy, "guarantee")[1].startswith("Every group satisfies every model")
    assert reference.promise(KAnonymity, "by_size")[1].count("Not with `unit`") == 1
    assert reference.promise(Height, "weighted") == ("false", reference.meanings_of(Metric)["weighted"])
    assert reference.promise(Spark, "formats")[0] == "`.csv`, `.tsv`, `.parquet`"
    assert reference.promise(Postgres, "formats")[0] == "none"


@pytest.mark.parametrize(
    ("registry", "name"), [(kind, name) for kind in REGISTRIES for name in kind.built_in]
)
def test_every_promise_is_told_in_a_sentence(registry: Registry[Any], name: str) -> None:
    """And what the contract says of any guarantee is not enough."""
    for one in reference.promises(registry.kind):
        meaning = reference.promise(registry.load(name), one)[1]
        assert meaning.endswith(".")
        assert meaning != "What is proven of the result."


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=lambda one: getattr(one, "name", one))
def test_every_option_of_a_plug_in_has_a_meaning(name: str, option: Option) -> None:
    assert option.meaning.endswith("."), name
    assert option.meaning[0].isupper() or option.meaning[0] == "`"
    assert option.type


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_every_option_of_a_command_has_help_that_a_terminal_shows_whole(parameter: Any) -> None:
    assert parameter.help
    assert parameter.help.endswith((".", "?"))
    assert "[" not in parameter.help, "rich takes brackets for markup"


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_an_option_that_may_be_repeated_says_so(parameter: Any) -> None:
    assert ("may be repeated" in parameter.help) is bool(getattr(parameter, "multiple", False))


def test_names_that_help_lists_are_those_there_are() -> None:
    helps = {
        (name, parameter.name): parameter.help
        for name, command in reference.commands()
        for parameter in command.params
    }
    (engines,) = (registry for registry in REGISTRIES if registry.kind == "engine")
    named = re.findall(r"`(\w+)`", helps["anonymize", "engine"])
    assert {*named} <= {*engines, "auto"}
    assert "`shoal list` names all" in helps["anonymize", "engine"]
    assert all(f"`{name}`" in helps["init", "preset"] for name in PRESETS)


@dataclass(frozen=True)
class Base:
    """What others inherit from."""

    shared: int = 1
    """Said by the base."""
    changed: str = "a"
    """Said by the base, and not for long."""


@dataclass(frozen=True, kw_only=True)
class Own(Base):
    """A plug-in."""

    own: Literal["x", "y"]
    """Said in
    two lines.
    """
    changed: str = "b"
    """Said anew."""
    silent: bool = False
    many: list[float] = field(default_factory=list)
    """Said of a list."""


def test_options_are_told_with_the_text_below_them_own_ones_first() -> None:
    assert options_of(Own) == (
        Option("own", "`x` or `y`", ..., "Said in two lines.", "choice", ("x", "y")),
        Option("changed", "text", "b", "Said anew."),
        Option("silent", "true or false", False, "", "flag"),
        Option("many", "list of numbers", [], "Said of a list.", "structure"),
        Option("shared", "whole number", 1, "Said by the base.", "whole"),
    )


def test_a_class_without_source_has_options_without_meaning() -> None:
    foreign = make_dataclass("Foreign", [("k", int, 5)])
    assert options_of(foreign) == (Option("k", "whole number", 5, "", "whole"),)


class Colour(Enum):
    """An enumeration."""

    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int | None, "whole number"),
        (float, "number"),
        (Decimal | None, "number"),
        (str | dict[str, Any] | None, "text or mapping"),
        (list[str | dict[str, int]], "list of texts or mappings"),
        (tuple[tuple[Decimal, ...], ...], "list of lists of numbers"),
        (Literal[1, 2, 3], "`1`, `2` or `3`"),
        (Colour, "`red` or `blue`"),
        (Path, "Path"),
    ],
)
def test_types_are_told_in_words(kind: Any, words: str) -> None:
    assert in_words(kind) == words


@pytest.mark.parametrize(
    ("default", "told"),
    [
        (..., "required"),
        (None, "none"),
        ((), "none"),
        (0, "`0`"),
        (0.0, "`0`"),
        (False, "`false`"),
        ("a", "`a`"),
    ],
)
def test_defaults_are_told_in_words(default: object, told: str) -> None:
    assert Option("x", "text", default, "").default_text == told


def test_a_part_has_one_place_and_a_place_one_part() -> None:
    place = "<!-- options of x -->\nold\n<!-- end -->"
    new = "before\n<!-- options of x -->\n\nnew\n\n<!-- end -->\nafter"
    assert reference.rewritten(f"before\n{place}\nafter", {"options of x": "new"}) == new
    assert reference.rewritten(new, {"options of x": "new"}) == new
    for text, parts in (("", {"options of x": ""}), (place, {}), (place + place, {"options of x": ""})):
        with pytest.raises(ValueError, match="options of x"):
            reference.rewritten(text, parts)


def test_a_page_without_its_comments_is_named_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    (tmp_path / "page.md").write_text("# x\n", encoding="utf-8")
    monkeypatch.setattr(reference, "parts", lambda: iter([("page.md", "promises of x", "text")]))
    with pytest.raises(SystemExit) as stopped:
        reference.main()
    assert stopped.value.code == (
        "page.md must have these two lines once, and has them 0 times:\n<!-- promises of x -->\n<!-- end -->"
    )


def test_everything_that_is_listed_can_be_described() -> None:
    for kinds, names in catalogue().items():
        for name, about in names.items():
            found = describe(name)
            assert (found.kind, found.about) == (kinds.removesuffix("s"), about)


def test_a_builder_needs_what_its_policy_must_give() -> None:
    needed = {name: [one.name for one in builder_options(name) if one.required] for name in BUILDERS}
    assert needed == {name: [name] for name in BUILDERS} | {"flat": [], "order": ["order", "sizes"]}


def test_a_name_that_is_nothing_is_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'coverage'"):
        describe("coverag")


def test_an_editor_is_told_what_entries_of_a_policy_mean() -> None:
    schema = policy_schema()
    assert "suppressed at most" in schema["properties"]["suppression_limit"]["description"]
    assert "removed" in schema["$defs"]["Column"]["properties"]["role"]["description"]


def test_the_python_reference_is_up_to_date() -> None:
    import python_reference

    assert python_reference.PAGE.read_text(encoding="utf-8") == python_reference.reference(), (
        "run make reference"
    )
