"""The command that asks how exposed a table is as it is."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.answers import show_answer
from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import AsJson, Data, EngineName, Force, MemoryLimit, Plots, Reveal, SparkMaster
from shoal.commands.plots import prepare_plots, where_drawn
from shoal.commands.reading import read_engine, read_limit, read_names
from shoal.display import print_json, say, show_pairs
from shoal.errors import UsageError

_GLANCE = 10.0  # seconds that the overview may look for unsafe sets
_PLOTTED = ("suppression_limit", "max_size", "seconds")


def diagnose(
    data: Data,
    question: Annotated[
        str, typer.Option(help="`1` to `12`, `unsafe`, `rows` or `suggest`; without it, an overview.")
    ] = "overview",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="The columns, as `age,sex`; may be repeated; a name with a comma in quotes.",
            show_default="all but the sensitive one",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k", help="The k asked about (l with `--sensitive`).", show_default="5 for the overview"
        ),
    ] = None,
    at_most: Annotated[
        bool, typer.Option("--at-most", help="Ask for a k of at most this instead of at least.")
    ] = False,
    suppression_limit: Annotated[
        str | None,
        typer.Option(
            "--suppression-limit",
            help="Records that may be suppressed: `5%`, `0.05`, or a number of records.",
        ),
    ] = None,
    sensitive: Annotated[
        str | None,
        typer.Option(help="Ask about the distinct values of this column in a class (l) instead of k."),
    ] = None,
    max_size: Annotated[int | None, typer.Option(help="Look at sets of at most so many columns.")] = None,
    most: Annotated[int | None, typer.Option(help="The largest k of questions 11 and 12.")] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            help="A file for the numbers of the records that would have to go; closed to others, never "
            "printed."
        ),
    ] = None,
    plots: Plots = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Stop counting sets after so many seconds, with what was found.",
            show_default="10 for the overview",
        ),
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
    from shoal.diagnosing.questions import check_wishes
    from shoal.outputs import check_file

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
        prepare_plots(plots)
        found = count(
            data,
            partial(read_names, columns) if columns else None,
            sensitive=sensitive,
            engine=read_engine(engine, spark_master, memory_limit),
            memory_limit=memory_limit,
            progress=progress,
        )
        answer, stopped = _answer(found, question, asked)
        if rows:
            found.write_rows(rows, asked["k"], force=force)
            where["rows"] = str(rows)
        if plots:
            where["plots"] = where_drawn(plots, _draw(found, plots, limit or 0, max_size, seconds))
    if as_json:
        told = answer.to_dict()
        if seconds is None:
            told.pop("seconds", None)  # nobody gave the overview's
        print_json({**told, **({"rows": where["rows"]} if rows else {})})
    else:
        show_answer(answer)
        if where:
            show_pairs(where)
    if stopped:
        raise typer.Exit(130)


def _answer(found: Any, question: str, asked: dict[str, Any]) -> tuple[Any, bool]:
    """Answer a question, and tell whether Ctrl-C cut it short."""
    if question == "overview":
        asked.setdefault("seconds", _GLANCE)
    start = time.monotonic()
    answer = found.ask(question, **asked)
    in_time = time.monotonic() - start < asked.get("seconds", float("inf"))
    return answer, in_time and not answer.complete


def _draw(
    found: Any, folder: Path, limit: int | str, max_size: int | None, seconds: float | None
) -> list[Path]:
    """Draw what a diagnosis finds, and say what could not be drawn."""
    from shoal.diagnosing.plots import diagnosis_plots
    from shoal.plots import save

    drawn, missing = diagnosis_plots(found, limit, max_size, seconds)
    files = save(drawn, folder)
    if missing:
        say(f"Plots: {missing}.", stderr=True)
    return files


def _check_rows(question: str, rows: Path | None) -> None:
    if rows and question != "rows":
        message = f"--rows goes with --question rows, not with {question!r}."
        raise UsageError(message)
