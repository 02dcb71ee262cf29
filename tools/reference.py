"""Write the generated parts of the docs: the options of commands, plug-ins and policies, and promises.

A generated part stands between two comments such as `<!-- options of anonymize -->` and `<!-- end -->`. Run
this by `make reference` after a change; a test fails if a page is out of date.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel
from typer.core import TyperGroup

from shoal.cli.app import app
from shoal.core.contracts import Algorithm, Engine, Guarantee, Metric, Model
from shoal.core.hierarchy.builder import Builder
from shoal.core.hierarchy.builders import BUILDERS
from shoal.metrics import METRICS
from shoal.policy.policy import Column, Policy
from shoal.registry import Option, Registry, in_words, meanings_of, options_of
from shoal.workflow.catalogue import REGISTRIES, builder_options
from shoal.workflow.plain_words import glossary

DOCS = Path(__file__).parents[1] / "docs"
CONTRACTS = {"model": Model, "metric": Metric, "algorithm": Algorithm, "engine": Engine}
PAGES = {name: f"{registry.kind}s/{name}.md" for registry in REGISTRIES for name in registry.built_in}
# Pages with more information about an option.
SEE = {
    "--against": "release.md#successive-releases",
    "--policy": "policy.md",
    "--preset": "safe-harbor.md",
    "--question": "diagnose.md",
    "--recipe": "recipes.md",
    "--report": "report.md",
    "--study": "profile.md#the-study",
    "cells": "finer.md#cells",
    "decimal": "hierarchies.md#decimal",
    "format": "https://docs.python.org/3/library/datetime.html#format-codes",
    "fractions": "hierarchies.md#fractions",
    "hierarchy": "hierarchies.md",
    "identifying": "algorithms/mu-argus.md#what-is-tested",
    "metric": "metrics/index.md",
    "models": "models/k-anonymity.md",
    "fail": "release.md#columns-that-reveal-others",
    "population_size": "risk.md",
    "refine": "finer.md#refine",
    "release_as": "policy.md#release_as",
    "sampling_share": "risk.md",
    "suppressed": "policy.md#suppressed",
    "suppression_limit": "policy.md#suppression_limit",
}
_PART = re.compile(r"<!-- ((?:options|promises|synopsis|entries) of [^>]+) -->\n.*?<!-- end -->", re.DOTALL)


def main() -> None:
    """Update every page, and print the names of those that changed."""
    try:
        written = pages()
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    for page, text in written.items():
        if page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(DOCS.parent)}\n")


def pages() -> dict[Path, str]:
    """Return the updated text of every page that has generated parts."""
    parts_by_page: dict[str, dict[str, str]] = {}
    for page, name, text in parts():
        parts_by_page.setdefault(page, {})[name] = text
    texts = {page: (DOCS / page).read_text(encoding="utf-8") for page in parts_by_page}
    return {
        DOCS / page: rewritten(texts[page], page_parts, page) for page, page_parts in parts_by_page.items()
    }


def parts() -> Iterator[tuple[str, str, str]]:
    """Yield every generated part: its page, its name and its text."""
    for name, command in commands():
        yield "cli.md", f"synopsis of {name}", synopsis(name, command)
        if command.params:
            yield "cli.md", f"options of {name}", command_table(command, "cli.md")
    for registry in REGISTRIES:
        for name in registry.built_in:
            yield PAGES[name], f"options of {name}", option_table(registry.options(name), PAGES[name])
            promise_rows = [(item, *promise(registry.load(name), item)) for item in promises(registry.kind)]
            yield PAGES[name], f"promises of {name}", table(("promise", "holds", "meaning"), promise_rows)
    yield "metrics/index.md", "promises of every metric", promises_of_all(METRICS, "metrics/index.md")
    shared = options_of(Builder)
    yield "hierarchies.md", "options of every builder", option_table(shared, "hierarchies.md")
    for name in BUILDERS:
        own_options = [option for option in builder_options(name) if option not in shared]
        if own_options:
            yield "hierarchies.md", f"options of {name}", option_table(own_options, "hierarchies.md")
    yield "policy.md", "entries of a policy", option_table(entries(Policy), "policy.md", "entry")
    words = [(f"[{term.term}]({term.page})" if term.page else term.term, term.meaning) for term in glossary()]
    yield "glossary.md", "entries of the glossary", table(("term", "meaning"), words)
    yield "policy.md", "entries of a column", option_table(entries(Column), "policy.md", "entry")


def rewritten(text: str, parts: Mapping[str, str], page: str = "the page") -> str:
    """Return a page with its generated parts replaced; every part must be on the page exactly once."""
    places = _PART.findall(text)
    for name in [*parts, *places]:
        number = places.count(name)
        if name not in parts:
            message = f"{page}: <!-- {name} --> names nothing that the program has. Check the name."
            raise ValueError(message)
        if number != 1:
            message = (
                f"{page} must have these two lines once, and has them {number} times:\n"
                f"<!-- {name} -->\n<!-- end -->"
            )
            raise ValueError(message)
    return _PART.sub(lambda match: f"<!-- {match[1]} -->\n\n{parts[match[1]]}\n\n<!-- end -->", text)


def entries(kind: type[BaseModel]) -> Iterator[Option]:
    """Yield the entries of a policy, or of a column in it, as options."""
    for name, field in kind.model_fields.items():
        default = ... if field.is_required() else field.default
        yield Option(name, in_words(field.annotation), default, field.description or "")


def option_table(options: Iterable[Option], page: str, heading: str = "option") -> str:
    """Format the options of a plug-in, or the entries of a policy, as a table."""
    rows = [
        (option_link(option.name, page), option.type, option.default_text, with_links(option.meaning, page))
        for option in options
    ]
    return table((heading, "type", "default", "meaning"), rows) if rows else "It has no options."


def promises(kind: str) -> tuple[str, ...]:
    """Return the promises of a kind of plug-in: class attributes whose meaning the contract states."""
    return tuple(meanings_of(CONTRACTS[kind]))


def promise(plugin: type, name: str) -> tuple[str, str]:
    """Return when a plug-in's promise holds, and its meaning: the plug-in's own text, else the contract's."""
    value = getattr(plugin, name)
    meaning = meanings_of(plugin)[name]
    if name in getattr(plugin, "by_parts", ()):
        return "by its parts", meaning
    if isinstance(value, Guarantee) and meaning == meanings_of(Algorithm)[name]:
        meaning = meanings_of(Guarantee)[value.name]
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value) or "none", meaning
    return str(value).lower(), meaning


def promises_of_all(registry: Registry[Any], page: str) -> str:
    """Format the promises of all plug-ins of a kind as one table."""
    names = promises(registry.kind)
    rows = [
        (
            f"[{name}]({relative_link(PAGES[name], page)})",
            *[promise(registry.load(name), item)[0] for item in names],
        )
        for name in registry.built_in
    ]
    return table((registry.kind, *names), rows)


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name, such as `hierarchy show`."""
    group: Any = typer.main.get_command(app)
    for name, command_or_group in group.commands.items():
        if not isinstance(command_or_group, TyperGroup):
            yield name, command_or_group
        for inner, command in getattr(command_or_group, "commands", {}).items():
            yield f"{name} {inner}", command


def synopsis(name: str, command: Any) -> str:
    """Format the usage of a command: its arguments and required options."""
    arguments = [
        _argument(parameter) for parameter in command.params if parameter.param_type_name == "argument"
    ]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    needed = [f"{parameter.opts[0]} {parameter.name.upper()}" for parameter in options if parameter.required]
    others = ["[OPTIONS]"] if len(options) > len(needed) else []
    return f"`{' '.join(['shoal', name, *arguments, *needed, *others])}`"


def command_table(command: Any, page: str) -> str:
    """Format the arguments and options of a command as a table."""
    arguments_first = sorted(command.params, key=lambda parameter: parameter.param_type_name)
    rows = [
        (_written(parameter, page), _default(parameter), with_links(parameter.help, page))
        for parameter in arguments_first
    ]
    return table(("option", "default", "meaning"), rows)


def _argument(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _written(parameter: Any, page: str) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_argument(parameter)}`"
    names: list[str] = parameter.opts + parameter.secondary_opts
    return ", ".join([option_link(names[0], page), *[f"`{name}`" for name in names[1:]]])


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    shown = parameter.show_default
    if isinstance(shown, str):
        return shown if " " in shown else f"`{shown}`"
    if isinstance(parameter.default, bool):
        return "on" if parameter.default else "off"
    return "" if parameter.default is None else f"`{parameter.default}`"


def option_link(name: str, page: str) -> str:
    """Format the name of an option; it is a link if `SEE` has a page for it."""
    return f"[`{name}`]({relative_link(SEE[name], page)})" if name in SEE else f"`{name}`"


def with_links(text: str, page: str) -> str:
    """Replace names of plug-ins by links to their pages."""

    def link(match: re.Match[str]) -> str:
        plugin_page = PAGES.get(match[1])
        return (
            match[0] if plugin_page in (None, page) else f"[{match[0]}]({relative_link(plugin_page, page)})"
        )

    return re.sub(r"`([^`]+)`", link, text)


def relative_link(target: str, page: str) -> str:
    """Return the relative link from a page to a target in the docs."""
    if "://" in target:
        return target
    file, _, anchor = target.partition("#")
    relative = "" if file == page else posixpath.relpath(file, posixpath.dirname(page) or ".")
    return f"{relative}#{anchor}" if anchor else relative


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table in Markdown."""
    lines = [headings, *[[cell.replace("|", "\\|") for cell in row] for row in rows]]
    head, *body = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([head, f"|{'---|' * len(headings)}", *body])


if __name__ == "__main__":
    main()
