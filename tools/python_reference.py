"""Write docs/python.md: the public functions and classes of shoal, from their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path

import shoal

PAGE = Path(__file__).resolve().parents[1] / "docs" / "python.md"
INTRODUCTION = """# Python reference

`import shoal` gives every name on this page. A table is a path, a pandas, polars or pyarrow table, or an Ibis
table. A policy is a path, a mapping, or a `shoal.Policy`. Errors are in [`shoal.errors`](errors.md). This
page is written by `make reference` from the docstrings.
"""


def reference() -> str:
    """Return the page."""
    names = [name for name in shoal.__all__ if not name.startswith("_")]
    functions = [name for name in names if not inspect.isclass(getattr(shoal, name))]
    classes = [name for name in names if inspect.isclass(getattr(shoal, name))]
    parts = [INTRODUCTION, "## Functions\n", *map(_function, functions), "## Results and policies\n"]
    return "\n".join([*parts, *map(_class, classes)]).rstrip() + "\n"


def _function(name: str) -> str:
    function = getattr(shoal, name)
    return f"### shoal.{name}\n\n```text\n{_call(name, function)}\n```\n\n{_text(function)}\n"


def _call(name: str, function: object) -> str:
    """Format a signature, one parameter per line."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    lines, named = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not named:
            lines.append("    *,")
            named = True
        default = parameter.default
        default_text = "" if default is inspect.Parameter.empty else f" = {default!r}"
        lines.append(f"    {parameter.name}: {parameter.annotation}{default_text},")
    returned = signature.return_annotation
    result = "" if returned is inspect.Signature.empty else f" -> {returned}"
    return "\n".join([f"{name}(", *lines, f"){result}"])


def _class(name: str) -> str:
    kind = getattr(shoal, name)
    members = "\n".join(f"| `{member}` | {text} |" for member, text in _members(kind))
    table = f"\n| attribute or method | |\n|---|---|\n{members}\n" if members else ""
    return f"### shoal.{name}\n\n{_text(kind)}\n{table}"


def _members(kind: type) -> Iterator[tuple[str, str]]:
    if is_dataclass(kind):
        for field in kind.__dataclass_fields__.values():
            if not field.name.startswith("_") and field.init:
                yield field.name, f"`{field.type}`".replace("|", "\\|")
    for name, member in vars(kind).items():
        if name.startswith("_") or name in getattr(kind, "model_fields", {}):
            continue
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        called = inspect.isfunction(member)
        if called or isinstance(member, property | cached_property):
            text = (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " ")
            yield f"{name}()" if called else name, text.replace("|", "\\|")


def _text(documented: object) -> str:
    """Return the docstring without its examples."""
    paragraphs = (inspect.getdoc(documented) or "").split("\n\n")
    return "\n\n".join(paragraph for paragraph in paragraphs if not paragraph.lstrip().startswith(">>>"))


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
