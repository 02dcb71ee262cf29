"""The command that lists models, metrics, algorithms and so on, or describes the options of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from shoal.cli.messages import reporting
from shoal.cli.options import AsJson
from shoal.document.terminal import console, escaped, print_json, say


def _every_name(incomplete: str) -> list[str]:
    from shoal.workflow.catalogue import catalogue

    return [name for names in catalogue().values() for name in names if name.startswith(incomplete)]


_NameArgument = Annotated[
    str | None,
    typer.Argument(help="A name, such as `k-anonymity`, to show its options.", autocompletion=_every_name),
]


def list_(
    name: _NameArgument = None,
    as_json: AsJson = False,
) -> None:
    """List models, metrics, algorithms, engines, hierarchy builders and presets, or the options of one."""
    from shoal.workflow.catalogue import catalogue, describe

    if name is None:
        print_json(catalogue()) if as_json else _show_all(catalogue())
        return
    with reporting(as_json):
        plugin = describe(name)
    print_json(plugin.to_dict()) if as_json else _show_one(plugin)


def _show_all(plugins_by_kind: Mapping[str, Mapping[str, str]]) -> None:
    from rich.table import Table

    for kind, plugins in plugins_by_kind.items():
        table = Table(title=kind, title_justify="left", show_header=False, box=None, padding=(0, 2))
        for name, line in plugins.items():
            table.add_row(f"[bold]{name}[/bold]", line)
        console().print(table)


def _show_one(plugin: Any) -> None:
    from rich import box
    from rich.table import Table

    say(f"{plugin.name} ({plugin.kind}): {plugin.about}")
    if not plugin.options:
        say("It has no options.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("option", "type", "default", "meaning"):
        table.add_column(heading)
    for option in plugin.options:
        cells = (option.name, option.type, option.default_text, option.meaning)
        table.add_row(*[escaped(cell.replace("`", "")) for cell in cells])
    console().print(table)
