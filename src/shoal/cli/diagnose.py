"""The command that shows how exposed a table is before any change."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.messages import progress_bar
from shoal.cli.options import Data, Display, Force, Plots, TableReading
from shoal.cli.parsing import check_plots, plot_summary, read_limit, read_names
from shoal.document.terminal import print_json, say, show, show_facts
from shoal.errors import UsageError
from shoal.files.signals import stopping
from shoal.wording import quote
from shoal.workflow.plain_words import QUESTION_SENTENCES, question_sentence

_OVERVIEW_SECONDS = 10.0  # seconds in which the overview searches for unsafe sets
_COUNT_SECONDS = 1.0  # minimum time for counting, in seconds: an answer needs counts
_MINIMUM_SECONDS = 1e-6  # minimum time of a question, in seconds: it counts one set
_PLOTTED = ("suppression_limit", "max_size", "seconds")


_NEXT = """\
Next: --question suggest for a first policy, --question 3 --k 5 for the largest safe sets,
      --question 11 for what suppression costs; docs: diagnose."""


_EPILOG = "\n\n".join(
    ["Questions:", *(f"{name}: {question_sentence(name, 'cli')}" for name in QUESTION_SENTENCES)]
)
COMMAND = {"epilog": _EPILOG}

QuestionOption = Annotated[
    str,
    typer.Option(help="`1` to `12`, `unsafe`, `rows` or `suggest`, explained below; by default an overview."),
]
_ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The columns, such as `age,sex`; may be repeated. Quote a name that contains a comma.",
        show_default="all but the sensitive one",
    ),
]
_KOption = Annotated[
    float | None,
    typer.Option("--k", help="The k asked about (l with `--sensitive`).", show_default="5 for the overview"),
]
AtMostOption = Annotated[
    bool, typer.Option("--at-most", help="Ask for a k of at most this value, not at least.")
]
_SuppressionLimitOption = Annotated[
    str | None,
    typer.Option(
        "--suppression-limit",
        help="How many records may be suppressed: `5%`, `0.05`, or a number of records.",
    ),
]
_SensitiveOption = Annotated[
    str | None,
    typer.Option(help="Ask about the l of this column in a class, not about k; `--k` then sets the l."),
]
_DiversityOption = Annotated[
    str,
    typer.Option(
        "--diversity", help="The kind of l: `distinct` values, `entropy`, or `recursive` for a `--c`."
    ),
]
_COption = Annotated[float | None, typer.Option("--c", help="The c of recursive (c,l)-diversity.")]
_LOption = Annotated[
    float | None,
    typer.Option(
        "--l", help="Ask about k and l together: a class needs k records and this l of the sensitive column."
    ),
]
MaxSizeOption = Annotated[int | None, typer.Option(help="Examine sets of at most this many columns.")]
MostOption = Annotated[int | None, typer.Option(help="The largest k of questions 11 and 12.")]
RowsOption = Annotated[
    Path | None,
    typer.Option(help="A private file for the numbers of the records to suppress; they are never printed."),
]
_SecondsOption = Annotated[
    float | None,
    typer.Option(
        help="Stop after this many seconds with the results so far; this includes counting the table.",
        show_default="10 for the overview",
    ),
]


def diagnose(
    data: Data,
    reading: TableReading,
    display: Display,
    question: QuestionOption = "overview",
    columns: _ColumnsOption = None,
    k: _KOption = None,
    at_most: AtMostOption = False,
    suppression_limit: _SuppressionLimitOption = None,
    sensitive: _SensitiveOption = None,
    diversity: _DiversityOption = "distinct",
    c: _COption = None,
    l: _LOption = None,
    max_size: MaxSizeOption = None,
    most: MostOption = None,
    rows: RowsOption = None,
    plots: Plots = None,
    seconds: _SecondsOption = None,
    force: Force = False,
) -> None:
    """Diagnose a table before any change: which columns, alone or together, single people out."""
    from shoal.files.outputs import check_file
    from shoal.workflow.diagnosis.diagnose import check_diversity
    from shoal.workflow.diagnosis.diagnose import diagnose as count
    from shoal.workflow.diagnosis.questions import check_options

    question = "rows" if rows and question == "overview" else question
    limit = read_limit(suppression_limit)
    k, l = _whole(k), _whole(l)
    options: dict[str, Any] = {"k": k, "at_most": at_most, "suppression_limit": limit, "most": most}
    options |= {"max_size": max_size, "seconds": seconds}
    files: dict[str, str] = {}
    with display.reporting(), progress_bar() as progress:
        _check_rows(question, rows)
        check_diversity(sensitive, diversity, c, l)
        if isinstance(k, float) and (diversity != "entropy" or l is not None):
            raise UsageError(f"--k takes a whole number, such as --k 5; got {quote(str(k))}.")
        # Options that the question does not take may be for the plots.
        arguments = check_options(question, options, ignored=_PLOTTED if plots else ())
        if rows:
            check_file(rows, force=force, table=data)
        check_plots(plots)
        start = time.monotonic()
        diagnosis = count(
            data,
            partial(read_names, columns) if columns else None,
            sensitive=sensitive,
            diversity=diversity,
            c=c,
            l=l,
            progress=progress,
            seconds=max(arguments["seconds"], _COUNT_SECONDS) if "seconds" in arguments else None,
            **reading.options(),
        )
        answer = _answer(diagnosis, question, arguments, start)
        if rows:
            diagnosis.write_rows(rows, arguments["k"], force=force)
            files["rows"] = str(rows)
        if plots:
            plot_files = _draw(diagnosis, plots, limit or 0, max_size, seconds)
            files["plots"] = plot_summary(plots, plot_files) or ""
    if display.as_json:
        omitted = {"plots"} if seconds is not None else {"plots", "seconds"}  # not part of the answer
        print_json({name: value for name, value in (answer.to_dict() | files).items() if name not in omitted})
    else:
        _show(answer, files)
    if stopping():  # the answer contains the results so far
        raise typer.Exit(130)


def _show(answer: Any, files: dict[str, str]) -> None:
    show(answer.document())
    if answer.question == "overview":
        say(_NEXT)
    if files:
        show_facts(files)


def _whole(number: float | None) -> float | None:
    return int(number) if number is not None and number.is_integer() else number


def _answer(diagnosis: Any, question: str, arguments: dict[str, Any], start: float) -> Any:
    """Answer a question in the seconds that remain after counting."""
    if "seconds" in arguments:
        left = {"seconds": max(arguments["seconds"] - (time.monotonic() - start), _MINIMUM_SECONDS)}
    else:
        left = {"seconds": _OVERVIEW_SECONDS} if question == "overview" else {}
    answer = diagnosis.ask(question, **arguments | left)
    options = {**answer.options, **({"seconds": arguments["seconds"]} if "seconds" in arguments else {})}
    return replace(answer, options=options)


def _draw(
    diagnosis: Any, folder: Path, limit: int | str, max_size: int | None, seconds: float | None
) -> list[Path]:
    """Draw the results of a diagnosis, and print what could not be drawn."""
    from shoal.document.figures import save
    from shoal.workflow.diagnosis.diagnose import diagnosis_plots

    figures, missing = diagnosis_plots(diagnosis, limit, max_size, seconds)
    files = save(figures, folder)
    if missing:
        say(f"Plots: {missing}.", stderr=True)
    return files


def _check_rows(question: str, rows: Path | None) -> None:
    if rows and question != "rows":
        raise UsageError(f"--rows goes with --question rows, not with {question!r}.")
