"""The commands that look at hierarchies before a run."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.commands.messages import reporting, values_of
from shoal.commands.options import AsJson, Data, EngineName, PolicyFile, SparkMaster
from shoal.commands.reading import read_engine
from shoal.display import print_json, say, show_table

hierarchy_app = typer.Typer(help="Look at hierarchies before a run.", no_args_is_help=True)


@hierarchy_app.command()
def show(
    policy: PolicyFile,
    column: Annotated[str, typer.Option(help="The quasi-identifier.")],
    values: Annotated[list[str], typer.Argument(help="Values to see climb, as `17 45 91`.")],
    as_json: AsJson = False,
) -> None:
    """Print how values climb the levels of a column's hierarchy."""
    from shoal.hierarchies import climb
    from shoal.policy import Policy

    with reporting(as_json, reveal=True):
        rows = climb(Policy.load(policy), column, values)
    if as_json:
        print_json({"column": column, "labels": rows})
        return
    levels = [f"level {level}" for level in range(len(rows[0]))]
    show_table(f"{column}: what each value becomes", levels, rows, left=len(levels))


@hierarchy_app.command()
def check(
    data: Data,
    policy: PolicyFile,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    as_json: AsJson = False,
    reveal: Annotated[
        bool, typer.Option(help="List the values that do not fit, and let error messages show values.")
    ] = False,
) -> None:
    """Check that every hierarchy fits its column before a long run; exit code 2 when one does not."""
    from shoal.hierarchies import check_hierarchies

    with reporting(as_json, reveal):
        found = check_hierarchies(data, policy, engine=read_engine(engine, spark_master))
    if as_json:
        print_json({"columns": [one.to_dict(reveal=reveal) for one in found]})
    else:
        headings = ("column", "builder", "distinct", "missing", "groups per level", "fits")
        rows = [
            (
                one.column,
                one.builder,
                str(one.distinct),
                str(one.missing),
                " > ".join(map(str, one.groups)),
                "no" if one.problem else "yes",
            )
            for one in found
        ]
        show_table("How each hierarchy fits", headings, rows, left=len(headings))
        for one in found:
            if one.problem:
                say(one.problem + values_of(one.values, reveal), stderr=True)
            if one.note:
                say(f"Note: {one.note}", stderr=True)
    raise typer.Exit(2 if any(one.problem for one in found) else 0)
