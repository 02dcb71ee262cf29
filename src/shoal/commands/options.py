"""Options that several commands take. Their help is also the reference in docs/cli.md: `make reference`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer


def _names(kind: str) -> Callable[[str], list[str]]:
    """Return what completes the name of a plug-in in a shell."""

    def complete(incomplete: str) -> list[str]:
        found = getattr(import_module(f"shoal.{kind}"), kind.upper())
        own = ["auto"] if kind in ("algorithms", "engines") else []
        return [name for name in (*own, *found) if name.startswith(incomplete)]

    return complete


Data = Annotated[
    Path,
    typer.Argument(help="The table: CSV, TSV, Parquet or Arrow; with another engine, a table's name."),
]
ReleasedTable = Annotated[Path, typer.Argument(help="The released table.")]
PolicyFile = Annotated[Path, typer.Option("--policy", "-p", help="The policy, a YAML file.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else there.")
]
Reveal = Annotated[bool, typer.Option(help="Let error messages show values of the data.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="A privacy model, as `k-anonymity:k=5`; may be repeated: together they replace the policy's.",
        show_default="the policy's",
        autocompletion=_names("models"),
    ),
]
Limit = Annotated[
    str | None,
    typer.Option(
        "--suppression-limit",
        help="Records that may be suppressed: `5%`, `0.05`, or a number of records.",
        show_default="the policy's",
    ),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="The loss to make as small as possible, as `coverage:aggregate=geometric`.",
        show_default="the policy's",
        autocompletion=_names("metrics"),
    ),
]
AlgorithmName = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        help="The search, as `ola`; `auto` chooses.",
        show_default="the policy's",
        autocompletion=_names("algorithms"),
    ),
]
NodeLevels = Annotated[
    str | None,
    typer.Option("--node", help="Levels to fix, as `age=2,sex=0`; the other columns are searched."),
]
NodeOrOffer = Annotated[
    str | None,
    typer.Option(
        "--node",
        help="Levels to fix, as `age=2,sex=0`; the other columns are searched. Or an offer of "
        "`shoal negotiate --json`: its JSON, or a file of it.",
    ),
]
Generalize = Annotated[
    list[str] | None,
    typer.Option(
        help="Levels that `mu-argus` takes columns up to, at least, as `age=2,zip=1`; may be repeated: the "
        "highest level for a column holds, also beside the policy's own."
    ),
]
Interactive = Annotated[
    bool,
    typer.Option(
        "--interactive",
        help="Show in a terminal what `mu-argus` finds rare, and ask which column to generalize, until you "
        "accept.",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        help="Stop searching after so many seconds, with the best node so far (`proven` is then "
        "`acceptable`)."
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="Where tables are counted and recoded: `duckdb`, `spark` or `postgres`; `auto` is `duckdb`, for "
        "files.",
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
        help="Memory for all that grows with the table, as `4GB`.",
        show_default="half of the machine's",
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="Where the release goes; its ending is its format.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an output that exists.")]
WithMapping = Annotated[
    bool,
    typer.Option(
        "--mapping", help="Add, to the private folder, a CSV per column of what became of each value."
    ),
]
WithReport = Annotated[
    bool,
    typer.Option(
        "--report",
        help="Add, to the private folder, a page that tells of the release, `report.html`.",
    ),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="Put an apostrophe before cells that begin with `=`, `+`, `-`, `@`, a tab or a carriage return, "
        "which a spreadsheet would run as formulas; of a CSV or TSV.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="What parts the values of a CSV and its codebook: `comma`, `semicolon`, `tab` or `pipe`. Excel "
        "in much of Europe expects a semicolon.",
        show_default="comma",
    ),
]
Bom = Annotated[
    bool,
    typer.Option(
        "--bom",
        help="Begin a CSV or TSV, and its codebook, with a byte order mark, by which Excel knows that "
        "letters are UTF-8.",
    ),
]
Plots = Annotated[
    Path | None,
    typer.Option("--plots", help="A folder for plots, PNG and SVG; those of the same names are replaced."),
]
