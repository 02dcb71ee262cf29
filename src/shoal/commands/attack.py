"""The command that joins a release with what is known of persons, as an intruder would."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import AsJson, EngineName, SparkMaster, read_engine
from shoal.display import console, escaped, print_json, show_pairs

_SHOWN = 20  # persons that are revealed


def attack(
    release: Annotated[Path, typer.Argument(help="The released table.")],
    known: Annotated[Path, typer.Option(help="The table of what is known: a row for each person.")],
    on: Annotated[str, typer.Option(help="The columns that are known, as age,sex,zip or age=years,sex.")],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="The policy, whose hierarchies tell what labels cover."),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="The release's recipe, or its private folder; instead of the policy.")
    ] = None,
    k: Annotated[
        int | None, typer.Option(help="Records that a person should match at least; the policy's, else 5.")
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of which something may be learnt, as illness,ward; the policy's without it."
        ),
    ] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    as_json: AsJson = False,
    reveal: Annotated[
        bool, typer.Option(help="Show persons who are singled out, and values of the data in error messages.")
    ] = False,
) -> None:
    """Join a release with what is known of persons; exit code 1 where one matches fewer than k records."""
    from shoal.attack import attack as run

    with reporting(as_json, reveal), progress_bar() as progress:
        progress("attack", 0, None)
        found = run(
            release,
            known,
            _names(on),
            policy=policy,
            recipe=recipe,
            k=k,
            sensitive=[name for text in sensitive or () for name in _names(text)],
            engine=read_engine(engine, spark_master),
            reveal=_SHOWN if reveal else 0,
        )
    print_json(found.to_dict()) if as_json else show_attack(found)
    raise typer.Exit(1 if found.below_k else 0)


def _names(text: str) -> list[str]:
    """Read names between commas; one that has a comma itself stands in quotes."""
    return next(csv.reader([text], skipinitialspace=True), [])


def show_attack(found: Any) -> None:
    """Show whom the release gives away, in plain words."""
    screen = console()
    rows = {
        "persons": f"{found.persons:,}, of whom {found.matched:,} match some record",
        "singled out": f"{found.singled_out:,} match exactly one record",
        f"fewer than {found.k:,}": f"{found.below_k:,} match fewer than {found.k:,} records",
        "smallest": _records(found.smallest) if found.matched else "nobody is matched",
    }
    for column, persons in found.learnt.items():
        rows[f"learnt: {column}"] = f"of {persons:,} persons, with certainty"
    show_pairs(rows)
    if found.below_k:
        many = "1 person matches" if found.below_k == 1 else f"{found.below_k:,} persons match"
        line = f"{many} fewer than {_records(found.k)}."
    else:
        line = f"No person matches fewer than {_records(found.k)}."
    screen.print(line, highlight=False)
    for note in found.notes:
        screen.print(f"Note: {note}", markup=False, highlight=False, soft_wrap=True)
    if found.revealed:
        _show_persons(found)


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"


def _show_persons(found: Any) -> None:
    from rich.table import Table

    table = Table(title="Persons who are singled out, and what is learnt", title_justify="left")
    known, learnt = list(found.revealed[0].known), list(found.learnt)
    for name in known:
        table.add_column(escaped(name))
    for name in learnt:
        table.add_column(escaped(f"{name} (learnt)"))
    for one in found.revealed:
        cells = [*[one.known[name] or "" for name in known], *[one.learnt.get(name, "") for name in learnt]]
        table.add_row(*map(escaped, cells))
    console().print(table)
    rest = found.singled_out - len(found.revealed)
    if rest:
        console().print(f"and {rest:,} more", highlight=False)
