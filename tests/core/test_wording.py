"""How errors are worded for each audience, and that nothing looks into a message."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal
from shoal.errors import (
    DataError,
    Infeasible,
    Note,
    OutputError,
    ShoalError,
    UnknownName,
    UsageError,
    invalid,
)
from shoal.wording import Change, message

ROOT = Path(shoal.__file__).parent
METHODS = {
    "count", "endswith", "find", "index", "lower", "partition", "removeprefix", "removesuffix", "replace",
    "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip",
}  # fmt: skip
SEARCHES = {"search", "match", "fullmatch", "sub", "split", "findall", "finditer"}


@pytest.mark.parametrize(
    ("error", "python", "cli"),
    [
        (
            OutputError("'o.csv' exists.", advice=[Change("force", True, "Use {} to replace it")]),
            "'o.csv' exists. Use force=True to replace it.",
            "'o.csv' exists. Use --force to replace it.",
        ),
        (
            DataError(
                "It does not fit.",
                advice=[Change("memory_limit", action="Raise {}"), Change(action="Take fewer columns")],
            ),
            "It does not fit. Raise memory_limit, or take fewer columns.",
            "It does not fit. Raise --memory-limit, or take fewer columns.",
        ),
        (
            UsageError("must be a size, got 'x'.", option="memory_limit"),
            "memory_limit must be a size, got 'x'.",
            "--memory-limit must be a size, got 'x'.",
        ),
        (
            UsageError(
                "No file.", advice=[Change("delimiter", action="Leave out {}", others=("bom", "max_size"))]
            ),
            "No file. Leave out delimiter and bom and max_size.",
            "No file. Leave out --delimiter and --bom and --max-size.",
        ),
        (
            Note("It begins like a formula.", [Change("spreadsheet_safe", True, "Use {}")]),
            "It begins like a formula. Use spreadsheet_safe=True.",
            "It begins like a formula. Use --spreadsheet-safe.",
        ),
    ],
)
def test_each_audience_has_its_names_of_options(error: ShoalError | Note, python: str, cli: str) -> None:
    assert (str(error), message(error, "python"), message(error, "cli")) == (python, python, cli)
    assert message(error, "web") == python


def test_names_in_quotes_stay_as_they_are() -> None:
    error = UsageError("'force=True' is 'memory_limit' of a/{}.", advice=[Change("force", True, "Use {}")])
    assert message(error, "cli") == "'force=True' is 'memory_limit' of a/{}. Use --force."


def test_what_works_is_data_and_text() -> None:
    error = Infeasible(
        "at these levels 3 of 9 records would have to be suppressed.",
        [
            Change("suppression_limit", 3, current=1),
            Change("k", 2, current=5, subject="k-anonymity"),
            Change("max_level", {"age": 2, "sex": 1}),
        ],
        heading="No acceptable recoding",
        advice_intro="Any one of these changes works:",
    )
    assert error.nearest == {"suppression_limit": 3, "k-anonymity.k": 2, "max_level": {"age": 2, "sex": 1}}
    assert str(error) == (
        "No acceptable recoding: at these levels 3 of 9 records would have to be suppressed. Any one of "
        "these changes works: a suppression limit of 3 records (now 1); k-anonymity with k=2 (now 5); "
        "max_level raised: age to 2 or sex to 1."
    )


def test_errors_carry_their_parts() -> None:
    assert (UsageError("x").code, UsageError("x", code="y").code) == ("usage", "y")
    assert invalid("k", "at least 1", 0).field == "k"
    assert UnknownName("olaa", "algorithm", ["ola"], field="algorithm").field == "algorithm"
    assert DataError("must be a size.", option="memory_limit").field == "memory_limit"
    assert DataError("x", ["Anna"]).values == ("Anna",)


def test_every_class_of_error_has_its_code() -> None:
    def classes(kind: type[ShoalError]) -> Iterator[type[ShoalError]]:
        yield kind
        for below in kind.__subclasses__():
            yield from classes(below)

    codes = [kind.code for kind in classes(ShoalError) if kind.__module__ == "shoal.errors"]
    assert len(set(codes)) == len(codes)


def inspections(path: Path) -> Iterator[int]:
    """Yield the lines that look into the text of an error: compare, search, split or replace it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    errors = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    errors |= {
        argument.arg
        for argument in ast.walk(tree)
        if isinstance(argument, ast.arg)
        and argument.annotation is not None
        and any(part in ast.unparse(argument.annotation) for part in ("Error", "Exception", "Infeasible"))
    }

    def is_text(node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="str" | "repr" | "message"), args=[ast.Name(id=name), *_]):
                return name in errors
            case ast.Attribute(value=ast.Name(id=name), attr="args" | "text" | "reason"):
                return name in errors
            case ast.Subscript(value=value):
                return is_text(value)
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                return method in METHODS and is_text(value)
        return False

    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                inspected = any(map(is_text, [left, *others]))
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=arguments):
                inspected = method in METHODS and is_text(value)
                inspected |= method in SEARCHES and any(map(is_text, arguments))
            case _:
                inspected = False
        if inspected:
            yield node.lineno


# Drivers of databases say some things in their messages alone.
FOREIGN = {"engines"}


@pytest.mark.parametrize("package", sorted({path.relative_to(ROOT).parts[0] for path in ROOT.rglob("*.py")}))
def test_no_code_looks_into_the_text_of_an_error(package: str) -> None:
    files = [ROOT / package] if package.endswith(".py") else sorted((ROOT / package).rglob("*.py"))
    lines = [f"{path.relative_to(ROOT)}:{line}" for path in files for line in inspections(path)]
    assert package in FOREIGN or not lines


def test_an_inspection_is_noticed(tmp_path: Path) -> None:
    source = """
try:
    run()
except ValueError as error:
    if "limit" in str(error) or str(error).lower().startswith("k"):
        raise
    text = error.args[0].replace("a", "b")
    re.search("x", str(error))
    print(str(error))
"""
    path = tmp_path / "module.py"
    path.write_text(source, encoding="utf-8")
    assert sorted(set(inspections(path))) == [5, 7, 8]
