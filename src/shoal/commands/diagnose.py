"""The command that asks how exposed a table is as it is."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.answers import show_answer
from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import (
    AsJson,
    Data,
    EngineName,
    Force,
    Limit,
    MemoryLimit,
    Reveal,
    SparkMaster,
    read_engine,
    read_limit,
)
from shoal.display import console, print_json, show_pairs
from shoal.errors import UsageError

_GLANCE = 10.0  # seconds that the overview may look for unsafe sets
_PLOTTED = ("suppression_limit", "max_size", "seconds")


def diagnose(
    data: Data,
    question: Annotated[
        str, typer.Option(help="1 to 12, unsafe, rows, suggest; without it, an overview.")
    ] = "overview",
    columns: Annotated[
        list[str] | None, typer.Option(help="The columns, as age,sex; all without it. May be repeated.")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", help="The k asked about; l with --sensitive.")] = None,
    at_most: Annotated[bool, typer.Option("--at-most", help="Ask for k at most this, not at least.")] = False,
    suppression_limit: Limit = None,
    sensitive: Annotated[
        str | None, typer.Option(help="Ask about distinct values of this column (l) instead of k.")
    ] = None,
    max_size: Annotated[int | None, typer.Option(help="Look at sets of at most so many columns.")] = None,
    most: Annotated[int | None, typer.Option(help="The largest k of questions 11 and 12.")] = None,
    rows: Annotated[
        Path | None, typer.Option(help="A file for the numbers of the records that would have to go.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="A folder for plots, PNG and SVG.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Stop counting sets after so many seconds, with what was found.")
    ] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Diagnose a table as it is: which columns, alone or together, single people out."""
    from shoal.diagnose import diagnose as count
    from shoal.diagnosis_plots import diagnosis_plots
    from shoal.plots import prepare, save
    from shoal.publish import check_file
    from shoal.questions import check_wishes

    question = "rows" if rows and question == "overview" else question
    limit = read_limit(suppression_limit)
    wishes: dict[str, Any] = {"k": k, "at_most": at_most, "suppression_limit": limit, "most": most}
    wishes |= {"max_size": max_size, "seconds": seconds}
    where: dict[str, str] = {}
    with reporting(as_json, reveal), progress_bar() as progress:
        _check_rows(question, rows)
        # What the question does not take may be for the plots.
        asked = check_wishes(question, wishes, ignored=_PLOTTED if plots else ())
        if rows:
            check_file(rows, force=force, table=data)
        if plots:
            prepare(plots)
        found = count(
            data,
            partial(read_names, columns) if columns else None,
            sensitive=sensitive,
            engine=read_engine(engine, spark_master, memory_limit),
            memory_limit=memory_limit,
            progress=progress,
        )
        if question == "overview":
            asked.setdefault("seconds", _GLANCE)
        start = time.monotonic()
        answer = found.ask(question, **asked)
        in_time = time.monotonic() - start < asked.get("seconds", float("inf"))
        if rows:
            found.write_rows(rows, asked["k"], force=force)
            where["rows"] = str(rows)
        if plots:
            drawn, missing = diagnosis_plots(found, limit or 0, max_size, seconds)
            where["plots"] = f"{plots} ({len(save(drawn, plots))} files)"
            if missing:
                console(stderr=True).print(f"Plots: {missing}.", markup=False, highlight=False)
    if as_json:
        told = answer.to_dict()
        if seconds is None:
            told.pop("seconds", None)  # nobody gave the overview's
        print_json({**told, **({"rows": where["rows"]} if rows else {})})
    else:
        show_answer(answer)
        if where:
            show_pairs(where)
    if not answer.complete and in_time:  # Ctrl-C
        raise typer.Exit(130)


def read_names(texts: Sequence[str], available: Sequence[str]) -> list[str]:
    """Read names of columns: each text is one, or a list such as 'age,sex', where one with a comma is quoted.

    >>> read_names(["age, sex", "a,b", '"a,b"'], ["age", "sex", "a,b"])
    ['age', 'sex', 'a,b', 'a,b']
    """
    found: list[str] = []
    for text in texts:
        if text in available:
            found.append(text)
            continue
        try:
            rows = list(csv.reader([text], skipinitialspace=True, strict=True))
        except csv.Error as error:
            message = (
                f"--columns {text!r} cannot be read: {error}. "
                "Write names as age,sex; quote one that holds a comma."
            )
            raise UsageError(message) from None
        # A quoted name may begin or end with spaces.
        names = [name if name in available else name.strip() for row in rows for name in row]
        found += [name for name in names if name]
    return found


def _check_rows(question: str, rows: Path | None) -> None:
    if rows and question != "rows":
        message = f"--rows goes with --question rows, not with {question!r}."
        raise UsageError(message)
