"""The command that joins a release with what is known of persons, as an intruder would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import AsJson, EngineName, ReleasedTable, SparkMaster
from shoal.commands.reading import read_engine, read_names
from shoal.display import fits, print_json, say, show_pairs, show_table
from shoal.errors import so_many

_SHOWN = 20  # persons that are revealed


def attack(
    release: ReleasedTable,
    known: Annotated[Path, typer.Option(help="The table of what is known: a row for each person.")],
    on: Annotated[
        str,
        typer.Option(
            help="The columns that are known, as `age,sex`, or `age=years` where the known table names one "
            "otherwise; a name with a comma in quotes."
        ),
    ],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="The policy, whose hierarchies tell what labels cover."),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="The release's recipe, or its private folder; instead of the policy.")
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            help="Records that a person should match at least.", show_default="the policy's, else 5"
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of which something may be learnt, as `illness,ward`; may be repeated.",
            show_default="the policy's",
        ),
    ] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    as_json: AsJson = False,
    reveal: Annotated[
        bool,
        typer.Option(
            help=f"Show up to {_SHOWN} persons who are singled out with what is learnt, and let error "
            "messages show values of the data."
        ),
    ] = False,
) -> None:
    """Join a release with what is known of persons; exit code 1 if one matches fewer than k, or none any."""
    from shoal.attack import attack as run

    with reporting(as_json, reveal), progress_bar() as progress:
        progress("attack", 0, None)
        found = run(
            release,
            known,
            read_names([on], option="--on"),
            policy=policy,
            recipe=recipe,
            k=k,
            sensitive=read_names(sensitive or (), option="--sensitive"),
            engine=read_engine(engine, spark_master),
            reveal=_SHOWN if reveal else 0,
        )
    print_json(found.to_dict()) if as_json else show_attack(found)
    raise typer.Exit(1 if found.below_k or not found.conclusive else 0)


def show_attack(found: Any) -> None:
    """Show whom the release gives away, in plain words."""
    rows = {
        "persons": f"{found.persons:,}, of whom {found.matched:,} match some record",
        "singled out": f"{found.singled_out:,} match exactly one record",
        f"fewer than {found.k:,}": f"{found.below_k:,} match fewer than {found.k:,} records",
        "smallest": so_many(found.smallest, "record") if found.matched else "nobody is matched",
    }
    for column, persons in found.learnt.items():
        rows[f"learnt: {column}"] = f"of {so_many(persons, 'person')}, with certainty"
    show_pairs(rows)
    if found.below_k:
        many = so_many(found.below_k, "person matches", "persons match")
        say(f"{many} fewer than {so_many(found.k, 'record')}.")
    elif found.conclusive:
        say(f"No person matches fewer than {so_many(found.k, 'record')}.")
    if not found.conclusive:
        say(_nothing(found))
    for note in found.notes:
        say(f"Note: {note}")
    if found.revealed:
        _show_persons(found)


def _nothing(found: Any) -> str:
    """Say why an attack that gives few away proves nothing."""
    if found.matched:
        return "Of a column no known value could be read: the attack proves nothing."
    return (
        "Nobody matches any record, which proves nothing: the known table may be of other persons, or write "
        "values otherwise. Is somebody in it whom you know to be in the release?"
    )


def _show_persons(found: Any) -> None:
    known, learnt = list(found.revealed[0].known), list(found.learnt)
    headings = [*known, *[f"{name} (learnt)" for name in learnt]]
    rows = [
        [*[one.known[name] or "" for name in known], *[one.learnt.get(name, "") for name in learnt]]
        for one in found.revealed
    ]
    if not fits(headings, rows):  # then a person has two cells
        cut = len(known)
        rows = [[_listed(known, row[:cut]), _listed(learnt, row[cut:])] for row in rows]
        headings = ["known", "learnt"]
    show_table("Persons who are singled out, and what is learnt", headings, rows, left=len(headings))
    rest = found.singled_out - len(found.revealed)
    if rest:
        say(f"and {rest:,} more")


def _listed(names: Sequence[str], values: Sequence[str]) -> str:
    """Write values with their columns' names; what is missing is left out."""
    return "; ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True) if value)
