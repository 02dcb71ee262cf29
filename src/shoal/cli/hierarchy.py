"""The commands that show and check hierarchies before a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from shoal.cli.messages import report, values_text
from shoal.cli.options import Data, Display, EngineChoice, PolicyFile, with_groups
from shoal.document.document import Table
from shoal.document.terminal import print_json, say, show_table
from shoal.errors import HierarchyError

hierarchy_app = typer.Typer(
    help="Show and check hierarchies before a run.", no_args_is_help=True, add_completion=False
)


ColumnOption = Annotated[str, typer.Option(help="The quasi-identifier.")]
ValuesArgument = Annotated[list[str], typer.Argument(help="Values to generalize, such as `17 45 91`.")]


@hierarchy_app.command()
@with_groups
def show(
    policy: PolicyFile,
    column: ColumnOption,
    values: ValuesArgument,
    display: Display,
) -> None:
    """Print the labels of values at each level of a column's hierarchy."""
    from shoal.workflow.inspect import labels_by_level
    from shoal.workflow.release.recovery import load_policy

    with display.reporting():
        try:
            rows = labels_by_level(load_policy(policy), column, values)
        except HierarchyError as error:
            if not set(error.values) <= set(values):  # values of a hierarchy file may be values of the data
                raise
            raise typer.Exit(report(error, as_json=display.as_json, reveal=True)) from None
    if display.as_json:
        print_json({"column": column, "labels": rows})
        return
    levels = [f"level {level}" for level in range(len(rows[0]))]
    show_table(Table(f"{column}: what each value becomes", levels, rows, left=range(len(levels))))


_RevealOption = Annotated[
    bool, typer.Option(help="List the values that do not fit, and let error messages show values.")
]


@dataclass(frozen=True)
class _Display(Display):
    reveal: _RevealOption = False


@hierarchy_app.command()
@with_groups
def check(
    data: Data,
    policy: PolicyFile,
    reading: EngineChoice,
    display: _Display,
) -> None:
    """Check that every hierarchy fits its column before a long run; exit code 2 if one does not."""
    from shoal.workflow.inspect import check_hierarchies

    with display.reporting():
        checks = check_hierarchies(data, policy, engine=reading.create())
    if display.as_json:
        print_json({"columns": [result.to_dict(reveal=display.reveal) for result in checks]})
    else:
        headings = ("column", "builder", "distinct", "missing", "groups per level", "fits")
        rows = [
            (
                result.column,
                result.builder,
                str(result.distinct),
                str(result.missing),
                " > ".join(map(str, result.groups)),
                "no" if result.problem else "yes",
            )
            for result in checks
        ]
        show_table(Table("How each hierarchy fits", headings, rows, left=range(len(headings))))
        for result in checks:
            if result.problem:
                say(result.problem + values_text(result.values, display.reveal), stderr=True)
            if result.note:
                say(f"Note: {result.note}", stderr=True)
    raise typer.Exit(2 if any(result.problem for result in checks) else 0)
