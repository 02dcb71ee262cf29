"""The command that lists what there is to choose from, and tells the options of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from shoal.commands.messages import reporting
from shoal.commands.options import AsJson
from shoal.display import console, escaped, print_json, say


def _every_name(incomplete: str) -> list[str]:
    """Complete a name in a shell."""
    from shoal.catalogue import catalogue

    return [name for names in catalogue().values() for name in names if name.startswith(incomplete)]


def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            help="One of them, as `k-anonymity`: then its options are told.", autocompletion=_every_name
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List models, metrics, algorithms, engines, hierarchy builders and presets, or the options of one."""
    from shoal.catalogue import catalogue, describe

    if name is None:
        print_json(catalogue()) if as_json else _show_all(catalogue())
        return
    with reporting(as_json):
        found = describe(name)
    print_json(found.to_dict()) if as_json else _show_one(found)


def _show_all(found: Mapping[str, Mapping[str, str]]) -> None:
    from rich.table import Table

    for kind, plugins in found.items():
        table = Table(title=kind, title_justify="left", show_header=False, box=None, padding=(0, 2))
        for name, line in plugins.items():
            table.add_row(f"[bold]{name}[/bold]", line)
        console().print(table)


def _show_one(found: Any) -> None:
    """Show what a choice is, and its options."""
    from rich import box
    from rich.table import Table

    say(f"{found.name} ({found.kind}): {found.about}")
    if not found.options:
        say("It has no options.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("option", "type", "default", "meaning"):
        table.add_column(heading)
    for one in found.options:
        cells = (one.name, one.type, one.default_text, one.meaning)
        table.add_row(*[escaped(cell.replace("`", "")) for cell in cells])
    console().print(table)
