"""The command line: parse, call, print. Results go to stdout; progress and messages to stderr."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.errors import Infeasible, ShoalError, UsageError

app = typer.Typer(
    help="De-identify tables of people's records: every record looks like at least k-1 others.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Data = Annotated[Path, typer.Argument(help="The table: CSV, TSV, Parquet or Arrow.")]
PolicyFile = Annotated[Path, typer.Option("--policy", "-p", help="The policy, a YAML file.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else there.")
]
Reveal = Annotated[bool, typer.Option(help="Let error messages show values of the data.")]
Models = Annotated[
    list[str] | None, typer.Option("--model", help="A privacy model, as k-anonymity:k=5; may be repeated.")
]
Limit = Annotated[
    str | None,
    typer.Option("--suppression-limit", help="Records that may be suppressed: 5%, 0.05, or a number."),
]
MetricName = Annotated[
    str | None, typer.Option("--metric", help="The loss to minimize, as coverage:aggregate=geometric.")
]
AlgorithmName = Annotated[str | None, typer.Option("--algorithm", help="The search, as ola; auto chooses.")]
NodeLevels = Annotated[
    str | None, typer.Option("--node", help="Levels to fix, as age=2,sex=0; the rest is searched.")
]
Seconds = Annotated[
    float | None, typer.Option(help="Stop searching after so many seconds, with the best so far.")
]
EngineName = Annotated[str, typer.Option("--engine", help="Where the table is counted and recoded.")]
MemoryLimit = Annotated[str | None, typer.Option("--memory-limit", help="Memory for the engine, as 4GB.")]


def main() -> None:
    """Run the command line; deliberate errors become one line and an exit code."""
    try:
        sys.exit(app(standalone_mode=False))
    except ShoalError as error:
        sys.exit(_report(error))
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        # Usage errors of the parser itself: click's own exceptions know how to show themselves.
        if not hasattr(error, "exit_code"):
            raise
        if hasattr(error, "show"):
            error.show()
        sys.exit(error.exit_code)


@app.command()
def anonymize(
    data: Data,
    policy: PolicyFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the release goes.")],
    model: Models = None,
    suppression_limit: Limit = None,
    metric: MetricName = None,
    algorithm: AlgorithmName = None,
    node: NodeLevels = None,
    seconds: Seconds = None,
    engine: EngineName = "duckdb",
    memory_limit: MemoryLimit = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an output that exists.")] = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """De-identify a table: find the least loss, recode, count afresh, release."""
    from shoal.anonymize import anonymize as run
    from shoal.engines import ENGINES

    with _errors(as_json, reveal), _progress() as progress:
        release = run(
            data,
            _policy(policy, model, suppression_limit, metric, algorithm),
            output=output,
            force=force,
            node=_levels(node),
            engine=ENGINES.create(engine, {"memory_limit": memory_limit} if memory_limit else {}),
            seconds=seconds,
            progress=progress,
        )
    _print(release.to_dict()) if as_json else _show_release(release)


@app.command()
def verify(
    release: Annotated[Path, typer.Argument(help="The released table.")],
    policy: PolicyFile,
    engine: EngineName = "duckdb",
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Count a release afresh and check it against the policy's models; exit code 1 when it fails."""
    from shoal.verify import verify as run

    with _errors(as_json, reveal):
        found = run(release, policy, engine=engine)
    if as_json:
        _print(found.to_dict())
    else:
        _show_verification(found)
    raise typer.Exit(0 if found.verified else 1)


@app.command(name="list")
def list_(as_json: AsJson = False) -> None:
    """List the models, metrics, algorithms, engines and hierarchy builders."""
    from shoal.algorithms import ALGORITHMS
    from shoal.core.builders import BUILDERS
    from shoal.engines import ENGINES
    from shoal.metrics import METRICS
    from shoal.models import MODELS

    found: dict[str, dict[str, str]] = {}
    for registry in (MODELS, METRICS, ALGORITHMS, ENGINES):
        found[f"{registry.kind}s"] = {name: _first_line(registry.load(name)) for name in registry}
    found["hierarchy builders"] = {name: _first_line(kind) for name, kind in sorted(BUILDERS.items())}
    if as_json:
        _print(found)
        return
    from rich.table import Table

    for kind, plugins in found.items():
        table = Table(title=kind, title_justify="left", show_header=False, box=None, padding=(0, 2))
        for name, line in plugins.items():
            table.add_row(f"[bold]{name}[/bold]", line)
        _console().print(table)


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Where to leave the sample, its policy and the release.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """De-identify the bundled sample of hospital admissions and show what was done."""
    from shoal.anonymize import anonymize as run
    from shoal.sample import bundled

    target = folder or Path(tempfile.mkdtemp(prefix="shoal-demo-"))
    target.mkdir(parents=True, exist_ok=True)
    with _errors(as_json, reveal=False), _progress() as progress:
        data, policy = bundled(target)
        release = run(data, policy, output=target / "release.csv", force=True, progress=progress)
    if as_json:
        _print(release.to_dict())
        return
    _show_rows("Before: 5,000 made-up hospital admissions", data)
    _show_rows("After: what may leave the house", target / "release.csv")
    _show_release(release)
    line = f"shoal anonymize {data} --policy {policy} --output mine.csv"
    _console().print(f"\nTry it yourself:\n  {_escaped(line)}", soft_wrap=True, highlight=False)


def _policy(
    path: Path, models: list[str] | None, limit: str | None, metric: str | None, algorithm: str | None
) -> Any:
    """Read a policy and let options stand in for its lines."""
    from shoal.policy import Policy

    return Policy.load(path).with_(
        models=[_plugin(model) for model in models] if models else None,
        suppression_limit=_limit(limit),
        metric=_plugin(metric) if metric else None,
        algorithm=_plugin(algorithm) if algorithm else None,
    )


def _limit(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else text


def _plugin(text: str) -> str | dict[str, dict[str, Any]]:
    """Read 'name:option=value,option=value'."""
    import yaml

    name, _, rest = text.partition(":")
    if not rest:
        return name
    options = {}
    for pair in rest.split(","):
        option, equals, value = pair.partition("=")
        if not equals:
            message = f"Expected option=value after {name!r}, got {pair!r}."
            raise UsageError(message)
        options[option.strip()] = yaml.safe_load(value)
    return {name: options}


def _levels(text: str | None) -> dict[str, int]:
    """Read 'age=2,sex=0'."""
    levels = {}
    for pair in text.split(",") if text else ():
        name, equals, level = pair.rpartition("=")
        if not equals or not level.strip().isdigit():
            message = f"--node takes column=level, as age=2,sex=0; got {pair!r}."
            raise UsageError(message)
        levels[name.strip()] = int(level)
    return levels


@contextmanager
def _errors(as_json: bool, reveal: bool) -> Iterator[None]:
    """Report deliberate errors the way the caller reads them."""
    try:
        yield
    except ShoalError as error:
        raise typer.Exit(_report(error, as_json=as_json, reveal=reveal)) from None


def _report(error: ShoalError, *, as_json: bool = False, reveal: bool = False) -> int:
    values = list(error.values) if reveal else []
    if as_json:
        nearest = error.nearest if isinstance(error, Infeasible) else {}
        _print({"error": type(error).__name__, "message": str(error), "nearest": nearest, "values": values})
    console = _console(stderr=True)
    console.print(f"[bold red]{type(error).__name__}[/bold red] ", end="")
    console.print(str(error), markup=False, highlight=False)
    if values:
        console.print("Values: " + ", ".join(values[:50]), markup=False, highlight=False)
    return 2 if isinstance(error, UsageError) else 1


@contextmanager
def _progress() -> Iterator[Any]:
    """Show phases on stderr: a bar in a terminal, nothing elsewhere but word of a long compilation."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    console = _console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def tell(phase: str, done: int, total: int | None) -> None:
            if phase == "compile" and done == 0:
                bar.console.print("Compiling for this machine; this happens once and takes a few seconds.")
            bar.update(task, description=phase, completed=done, total=total)

        yield tell


def _show_release(release: Any) -> None:
    from rich.table import Table

    console = _console()
    examples = release.examples()
    table = Table(title="What became of each column", title_justify="left")
    for heading in ("column", "role", "level", "released as"):
        table.add_column(heading)
    for name, column in release.policy.columns.items():
        if name in release.levels:
            hierarchy = next(h for h in release.hierarchies if h.name == name)
            level = f"{release.levels[name]} of {hierarchy.height}"
            table.add_row(name, column.role.value, level, _escaped(examples[name]))
        else:
            table.add_row(
                name, column.role.value, "", "removed" if column.role.value == "identifier" else "as is"
            )
    console.print(table)
    result = release.to_dict()
    suppressed = release.suppressed
    fate = f"{release.masked:,} masked" if release.masked else f"{suppressed:,} suppressed"
    rows = {
        "records": f"{release.records - suppressed:,} kept, {fate} ({suppressed / release.records:.1%})",
        "classes": f"{result['classes']:,}, the smallest of {result['smallest_class']} records",
        "loss": f"{release.loss:,.10g} ({result['metric']})",
        "proven": f"{result['proven']} among {release.lattice_size:,} nodes ({release.algorithm}, "
        f"{result['nodes_evaluated']:,} evaluated)",
        "verified": "yes, counted afresh from what was written",
        "seconds": ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in release.seconds.items()),
        "release": str(release.output),
        "recipe": f"{release.recipe} (private: keep it)",
    }
    _show_pairs(rows)


def _show_verification(found: Any) -> None:
    rows = {
        "verified": "yes" if found.verified else "NO",
        "records": f"{found.records:,}" + (f", of which {found.masked:,} masked" if found.masked else ""),
        "classes": f"{found.classes:,}, the smallest of {found.smallest_class} records",
    }
    for check in found.models:
        verdict = "passed" if check.passed else f"{check.violating_records:,} records violate it"
        rows[check.model] = verdict
    for number, reason in enumerate(found.reasons, 1):
        rows[f"reason {number}"] = reason
    _show_pairs(rows)


def _show_rows(title: str, path: Path) -> None:
    """Show a few records of a text table, a column each."""
    import csv

    from rich.table import Table

    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    table = Table(title=title, title_justify="left", show_header=False)
    few = rows[:: max(1, len(rows) // 3)][:3]
    for name, *cells in zip(header, *few, strict=True):
        table.add_row(f"[bold]{_escaped(name)}[/bold]", *map(_escaped, cells))
    _console().print(table)


def _show_pairs(rows: Mapping[str, str]) -> None:
    """Print names and values, a line each however long, so that paths can be copied."""
    width = max(map(len, rows))
    for name, value in rows.items():
        _console().print(f"[bold]{name:<{width}}[/bold]  {_escaped(value)}", soft_wrap=True, highlight=False)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _console(*, stderr: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=stderr)


def _print(data: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")


def _first_line(plugin: type) -> str:
    return (plugin.__doc__ or "").strip().splitlines()[0]
