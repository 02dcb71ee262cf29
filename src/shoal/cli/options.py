"""Options that several commands share, also as groups. `make reference` copies their help to docs/cli.md.

A command declares a group as one parameter, such as `reading: TableReading`. `with_groups` replaces this
parameter by the options of the group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from shoal.cli.messages import reporting
from shoal.document.document import Document
from shoal.document.terminal import print_json, show, show_facts


def _names(kind: str) -> Callable[[str], list[str]]:
    """Return the shell completion for names of plug-ins."""

    def complete(incomplete: str) -> list[str]:
        registered = getattr(import_module(f"shoal.{kind}"), kind.upper())
        extra = ["auto"] if kind in ("algorithms", "engines") else []
        return [name for name in (*extra, *registered) if name.startswith(incomplete)]

    return complete


Data = Annotated[
    Path,
    typer.Argument(help="The table: CSV, TSV, Parquet or Arrow; with another engine, a table's name."),
]
ReleasedTable = Annotated[Path, typer.Argument(help="The released table.")]
PolicyOrGuess = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        "-p",
        help="The policy, a YAML file. Without it, a policy is guessed from `--known` and `--keep`.",
        show_default="guessed",
    ),
]
PolicyFile = Annotated[Path, typer.Option("--policy", "-p", help="The policy, a YAML file.")]
Known = Annotated[
    list[str] | None,
    typer.Option(
        "--known",
        help="What an outsider could know about a person, such as `age,sex,postcode`: these columns are the "
        "quasi-identifiers; may be repeated. Quote a name that contains a comma.",
        show_default="guessed",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        help="Columns that the analyst needs, such as `survived,fare`; may be repeated. They are released "
        "unchanged, or with at least two labels if also in `--known`.",
    ),
]
GuessedK = Annotated[
    int | None,
    typer.Option("--k", help="The k of k-anonymity in the policy that is guessed.", show_default="5"),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else there.")
]
Reveal = Annotated[bool, typer.Option(help="Let error messages show values of the data.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="A privacy model, such as `k-anonymity:k=5`; may be repeated. They replace the policy's models.",
        show_default="the policy's",
        autocompletion=_names("models"),
    ),
]
SuppressionLimitOption = Annotated[
    str | None,
    typer.Option(
        "--suppression-limit",
        help="How many records may be suppressed: `5%`, `0.05`, or a number of records.",
        show_default="the policy's",
    ),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="The loss to minimize, such as `coverage:aggregate=geometric`; `composite` "
        "is a weighted mean of several metrics; its page shows the notation.",
        show_default="the policy's",
        autocompletion=_names("metrics"),
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", help="A column to remove, whatever its role; may be repeated."),
]
WithAdvice = Annotated[
    bool | None,
    typer.Option(
        "--advice/--no-advice",
        help="Afterwards, search for choices that retain more, for at most 10 seconds.",
        show_default="in a terminal",
    ),
]
LocalRecoding = Annotated[
    bool,
    typer.Option("--local", help="After the search for a node, choose levels separately for each class."),
]
LocalLabelsOption = Annotated[
    int | None,
    typer.Option(
        "--local-labels", help="Like `--local`; a cell may have up to this many labels of one level, 1 to 8."
    ),
]
AlgorithmName = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        help="The search, such as `ola`; `auto` selects one.",
        show_default="the policy's",
        autocompletion=_names("algorithms"),
    ),
]
NodeLevels = Annotated[
    str | None,
    typer.Option("--node", help="Levels to fix, such as `age=2,sex=0`; the other columns are searched."),
]
NodeOrOffer = Annotated[
    str | None,
    typer.Option(
        "--node",
        help="Levels to fix, such as `age=2,sex=0`; the other columns are searched. Or an offer of "
        "`shoal negotiate --json`: its JSON, or a file that contains it.",
    ),
]
Generalize = Annotated[
    list[str] | None,
    typer.Option(
        help="Lowest levels for `mu-argus`, such as `age=2,zip=1`; may be repeated. The highest level of a "
        "column, including the policy's, is used."
    ),
]
Interactive = Annotated[
    bool,
    typer.Option(
        "--interactive",
        help="Show in a terminal what is rare for `mu-argus`, and ask which column to generalize, until you "
        "accept.",
    ),
]
SEARCH_SECONDS = 20.0


def _seconds(text: str | float) -> float:
    """Read a number of seconds; `none` means no limit."""
    return math.inf if text == "none" else float(text)


SearchSeconds = Annotated[
    float,
    typer.Option(
        parser=_seconds,
        metavar="SECONDS",
        help="Stop each search after this many seconds with the best result so far (`proven` is then "
        "`acceptable`, and `lower_bound` limits how far it is from the optimum); `none`: never.",
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="Where tables are counted and recoded, such as `spark`; `auto` is `duckdb`, for files. "
        "`shoal list` names all.",
        autocompletion=_names("engines"),
    ),
]
SparkMaster = Annotated[
    str | None,
    typer.Option("--spark-master", help="The master of `--engine spark`.", show_default="local[*]"),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        help="Memory for data that grows with the table, such as `4GB`.",
        show_default="half of the machine's",
    ),
]
ReleaseOutput = Annotated[
    Path, typer.Option("--output", "-o", help="The file of the release; its extension sets the format.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]
WithMapping = Annotated[
    bool,
    typer.Option(
        "--mapping", help="Add a CSV per column to the private folder that lists the label of each value."
    ),
]
WithReport = Annotated[
    bool,
    typer.Option(
        "--report",
        help="Add two pages about the release to the private folder: `report.html`, and `certificate.html` "
        "to print, without values of the data.",
    ),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="In a CSV or TSV, put an apostrophe before cells that begin with `=`, `+`, `-`, `@`, a tab or a "
        "carriage return, which a spreadsheet would run as formulas.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="The delimiter of a CSV and its codebook: `comma`, `semicolon`, `tab` or `pipe`. Excel in much "
        "of Europe expects a semicolon.",
        show_default="comma",
    ),
]
Bom = Annotated[
    bool,
    typer.Option(
        "--bom",
        help="Begin a CSV or TSV, and its codebook, with a byte order mark, so that Excel reads it as UTF-8.",
    ),
]
Plots = Annotated[
    Path | None,
    typer.Option("--plots", help="A folder for plots, PNG and SVG; files of the same names are replaced."),
]


@dataclass(frozen=True)
class Display:
    """How a command shows its result and its errors."""

    as_json: AsJson = False
    reveal: Reveal = False

    def reporting(self) -> AbstractContextManager[None]:
        """Report errors of shoal as text or JSON, and print notes as they occur."""
        return reporting(self.as_json, self.reveal)

    def show(self, result: Any) -> None:
        """Print a result as JSON, or its document."""
        print_json(result.to_dict()) if self.as_json else show(result.document())

    def show_drawn(self, result: Any, document: Document, plots: str | None) -> None:
        """Print a result as JSON, or its document and where its plots are."""
        if self.as_json:
            print_json(result.to_dict())
            return
        show(document)
        if plots:
            show_facts({"plots": plots})


@dataclass(frozen=True)
class EngineChoice:
    """The engine that reads the table."""

    engine: EngineName = "auto"
    spark_master: SparkMaster = None

    def create(self) -> Any:
        """Return the name of the engine. If a Spark master is given, return a Spark engine with it."""
        if self.spark_master is None:
            return self.engine
        from shoal.workflow.session import choose_engine

        return choose_engine(self.engine, None, getattr(self, "memory_limit", None), self.spark_master)


@dataclass(frozen=True)
class TableReading(EngineChoice):
    """The engine that reads the table, and the memory that it may use."""

    memory_limit: MemoryLimit = None

    def options(self) -> dict[str, Any]:
        """Return the arguments for a function of the library."""
        return {"engine": self.create(), "memory_limit": self.memory_limit}


@dataclass(frozen=True)
class FileOptions:
    """The files of a release besides its table, and how a text file is written."""

    mapping: WithMapping = False
    report: WithReport = False
    spreadsheet_safe: SpreadsheetSafe = False
    delimiter: Delimiter = None
    bom: Bom = False
    force: Force = False

    def options(self) -> dict[str, Any]:
        """Return the arguments for a function of the library."""
        return asdict(self)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which each group is replaced by its options, after all other options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    options = {name: (hints[name], option.default) for name, option in signature(command).parameters.items()}
    for name, group in groups.items():
        del options[name]
        types = get_type_hints(group, include_extras=True)
        options |= {field.name: (types[field.name], field.default) for field in fields(group)}

    @wraps(command)
    def called(**arguments: Any) -> None:
        made = {
            name: group(**{f.name: arguments.pop(f.name) for f in fields(group)})
            for name, group in groups.items()
        }
        command(**arguments, **made)

    called.__annotations__ = {name: kind for name, (kind, _) in options.items()}
    called.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in options.items()
        ]
    )
    return called
