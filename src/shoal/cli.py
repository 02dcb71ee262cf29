"""The command line: parse, call, print. Results go to stdout; progress and messages to stderr."""

from __future__ import annotations

import signal
import sys
import tempfile
from importlib.metadata import version as installed
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.argus import talk
from shoal.commands.arx import import_arx
from shoal.commands.attack import attack
from shoal.commands.compare import compare
from shoal.commands.diagnose import diagnose
from shoal.commands.measure import measure
from shoal.commands.messages import progress_bar, reporting
from shoal.commands.messages import report as tell
from shoal.commands.negotiate import negotiate
from shoal.commands.options import (
    AlgorithmName,
    AsJson,
    Data,
    EngineName,
    Force,
    Generalize,
    Interactive,
    Limit,
    Mapping_,
    MemoryLimit,
    MetricName,
    Models,
    NodeOrOffer,
    Output,
    PolicyFile,
    Report,
    Reveal,
    Seconds,
    SparkMaster,
    read_engine,
    read_generalize,
    read_node,
    read_policy,
)
from shoal.commands.profile import profile
from shoal.commands.risk import risk
from shoal.commands.studio import studio
from shoal.commands.successive import (
    Against,
    AgainstPolicy,
    AgainstRecipe,
    InputTable,
    show_intersection,
    side_by_side,
)
from shoal.commands.utility import utility
from shoal.display import console, escaped, print_json, show_release, show_rows, show_verification
from shoal.errors import ShoalError, interruptible

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

hierarchy_app = typer.Typer(help="Look at hierarchies before a run.", no_args_is_help=True)
app.add_typer(hierarchy_app, name="hierarchy")
app.command()(compare)
app.command()(diagnose)
app.command()(profile)
app.command()(negotiate)
app.command()(measure)
app.command()(risk)
app.command()(attack)
app.command()(utility)
app.command()(studio)
app.command(name="import-arx")(import_arx)


def _say_version(asked: bool) -> None:
    if asked:
        console().print(f"shoal {installed('shoal')}", highlight=False)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say which shoal this is."),
    ] = False,
) -> None:
    """De-identify tables of people's records: every record looks like at least k-1 others."""


def main() -> None:
    """Run the command line; deliberate errors become one line and an exit code."""
    stopped = _stop_politely()
    try:
        with interruptible():
            code = app(standalone_mode=False)
        sys.exit(stopped[0] if stopped else code)
    except KeyboardInterrupt:
        sys.exit(stopped[0] if stopped else 130)
    except ShoalError as error:
        sys.exit(tell(error))
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        # Usage errors of the parser itself: click's own exceptions know how to show themselves.
        if not hasattr(error, "exit_code"):
            raise
        if hasattr(error, "show"):
            error.show()
        sys.exit(error.exit_code)


def _stop_politely() -> list[int]:
    """Let a polite kill, or a terminal that closes, end as Ctrl-C does; hold the exit code for it."""
    stopped: list[int] = []

    def stop(number: int, _: object) -> None:
        stopped.append(128 + number)
        raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores one
            signal.signal(number, stop)
    return stopped


@app.command()
def anonymize(
    data: Data,
    policy: PolicyFile,
    output: Output,
    model: Models = None,
    suppression_limit: Limit = None,
    metric: MetricName = None,
    algorithm: AlgorithmName = None,
    node: NodeOrOffer = None,
    generalize: Generalize = None,
    interactive: Interactive = False,
    seconds: Seconds = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    mapping: Mapping_ = False,
    report: Report = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """De-identify a table: find the least loss, recode, count afresh, release."""
    from shoal.anonymize import anonymize as run

    with reporting(as_json, reveal):
        wanted = read_policy(policy, model, suppression_limit, metric, algorithm)
        wanted = read_generalize(wanted, generalize)
        if interactive:
            wanted = talk(
                data,
                wanted,
                read_node(node),
                read_engine(engine, spark_master, memory_limit),
                memory_limit,
                as_json=as_json,
            )
    with reporting(as_json, reveal), progress_bar() as progress:
        release = run(
            data,
            wanted,
            output=output,
            force=force,
            node=read_node(node),
            mapping=mapping,
            report=report,
            engine=read_engine(engine, spark_master, memory_limit),
            memory_limit=memory_limit,
            seconds=seconds,
            progress=progress,
        )
    print_json(release.to_dict()) if as_json else show_release(release)


@app.command()
def verify(
    release: Annotated[Path, typer.Argument(help="The released table.")],
    policy: PolicyFile,
    recipe: Annotated[
        Path | None, typer.Option(help="The release's recipe, for models that compare with the whole input.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="The whole input, for such models, where there is no recipe.")
    ] = None,
    sensitive_table: Annotated[
        Path | None, typer.Option(help="The second table of a release by anatomy, where it is not beside it.")
    ] = None,
    against: Against = None,
    against_policy: AgainstPolicy = None,
    against_recipe: AgainstRecipe = None,
    table: InputTable = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Count a release afresh and check it against the policy's models; exit code 1 when it fails."""
    from shoal.verify import verify as run

    with reporting(as_json, reveal), progress_bar() as progress:
        progress("verify", 0, None)
        found = run(
            release,
            policy,
            recipe=recipe,
            reference=reference,
            sensitive_table=sensitive_table,
            engine=read_engine(engine, spark_master),
        )
        beside = side_by_side(
            release,
            policy,
            against,
            old_policy=against_policy,
            table=table,
            recipe=recipe,
            old_recipe=against_recipe,
            engine=read_engine(engine, spark_master),
        )
    if as_json:
        print_json(found.to_dict() | {"against": beside.to_dict() if beside else None})
    else:
        show_verification(found)
        show_intersection(beside)
    raise typer.Exit(0 if found.verified and (beside is None or beside.holds) else 1)


@app.command()
def apply(
    recipe: Annotated[Path, typer.Argument(help="The recipe of an earlier release, or its private folder.")],
    data: Data,
    output: Output,
    mapping: Mapping_ = False,
    report: Report = False,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Recode new data with a saved recipe; exit code 1 when it no longer holds."""
    from shoal.apply import apply as run

    with reporting(as_json, reveal), progress_bar() as progress:
        release = run(
            recipe,
            data,
            output=output,
            force=force,
            mapping=mapping,
            report=report,
            engine=read_engine(engine, spark_master, memory_limit),
            memory_limit=memory_limit,
            progress=progress,
        )
    print_json(release.to_dict()) if as_json else show_release(release)


@app.command()
def init(
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The policy to write; else to stdout.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="A published rule to follow: safe-harbor, health-0.09 or health-0.05.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    force: Force = False,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Write a first policy for a table, to edit: guessed roles with the reason, and fitting hierarchies."""
    from shoal.errors import OutputError
    from shoal.init import ask_roles, guess
    from shoal.presets import check_preset, preset_text

    with reporting(as_json, reveal):
        check_preset(preset)
        if output and output.exists() and data.exists() and output.samefile(data):
            message = f"The output {str(output)!r} is the input. Name another file."
            raise OutputError(message)
        if output and output.exists() and not force:
            message = f"{str(output)!r} exists. Use --force to replace it."
            raise OutputError(message)
        found = guess(data, engine=read_engine(engine, spark_master))
        if sys.stdin.isatty() and not yes and not as_json:
            found = ask_roles(found, _ask)
        text = preset_text(preset, found)
        if output:
            try:
                output.write_text(text, encoding="utf-8")
            except OSError as error:
                message = f"Cannot write {str(output)!r}: {error.strerror}."
                raise OutputError(message) from None
    if as_json:
        columns = {
            one.column: {
                "role": one.role.value,
                "kind": one.kind,
                "reason": one.reason,
                "identifier": one.identifier.to_dict() if one.identifier else None,
            }
            for one in found
        }
        print_json({"columns": columns, "policy": text, "output": str(output) if output else None})
    elif output:
        console(stderr=True).print(
            f"Wrote {output}. Check every role, then: shoal hierarchy check", highlight=False
        )
    else:
        sys.stdout.write(text)


@app.command(name="policy-schema")
def policy_schema() -> None:
    """Print the JSON Schema of a policy, for editors."""
    from shoal.init import policy_schema as schema

    print_json(schema())


@hierarchy_app.command()
def show(
    policy: PolicyFile,
    column: Annotated[str, typer.Option(help="The quasi-identifier.")],
    values: Annotated[list[str], typer.Argument(help="Values to see climb, as 17 45 91.")],
    as_json: AsJson = False,
) -> None:
    """Print how values climb the levels of a column's hierarchy."""
    from rich.table import Table

    from shoal.hierarchies import climb
    from shoal.policy import Policy

    with reporting(as_json, reveal=True):
        rows = climb(Policy.load(policy), column, values)
    if as_json:
        print_json({"column": column, "labels": rows})
        return
    table = Table(title=f"{column}: what each value becomes", title_justify="left")
    for level in range(len(rows[0])):
        table.add_column(f"level {level}")
    for row in rows:
        table.add_row(*map(escaped, row))
    console().print(table)


@hierarchy_app.command()
def check(
    data: Data,
    policy: PolicyFile,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Check that every hierarchy fits its column before a long run; exit code 2 when one does not."""
    from rich.table import Table

    from shoal.hierarchies import check_hierarchies

    with reporting(as_json, reveal):
        found = check_hierarchies(data, policy, engine=read_engine(engine, spark_master))
    if as_json:
        print_json({"columns": [one.to_dict(reveal=reveal) for one in found]})
    else:
        table = Table(title="How each hierarchy fits", title_justify="left")
        for heading in ("column", "builder", "distinct", "missing", "groups per level", "fits"):
            table.add_column(heading)
        for one in found:
            groups = " > ".join(map(str, one.groups))
            fits = "no" if one.problem else "yes"
            table.add_row(escaped(one.column), one.builder, str(one.distinct), str(one.missing), groups, fits)
        console().print(table)
        for one in found:
            if one.problem:
                shown = f" Values: {', '.join(one.values[:50])}" if reveal and one.values else ""
                console(stderr=True).print(one.problem + shown, markup=False, highlight=False)
    raise typer.Exit(2 if any(one.problem for one in found) else 0)


@app.command(name="list")
def list_(as_json: AsJson = False) -> None:
    """List the models, metrics, algorithms, engines, hierarchy builders and presets."""
    from shoal.catalogue import catalogue

    found = catalogue()
    if as_json:
        print_json(found)
        return
    from rich.table import Table

    for kind, plugins in found.items():
        table = Table(title=kind, title_justify="left", show_header=False, box=None, padding=(0, 2))
        for name, line in plugins.items():
            table.add_row(f"[bold]{name}[/bold]", line)
        console().print(table)


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Where to leave the sample, its policy and the release.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """De-identify the bundled sample of hospital admissions and show what was done."""
    from shoal.anonymize import anonymize as run
    from shoal.sample import bundled

    with reporting(as_json, reveal=False), progress_bar() as progress:
        target = folder or Path(tempfile.mkdtemp(prefix="shoal-demo-"))
        data, policy = bundled(target, force=force)
        release = run(data, policy, output=target / "release.csv", force=force, progress=progress)
    if as_json:
        print_json(release.to_dict())
        return
    show_rows("Before: 5,000 made-up hospital admissions", data)
    show_rows("After: what may leave the house", target / "release.csv")
    show_release(release)
    line = f"shoal anonymize {data} --policy {policy} --output mine.csv"
    console().print(f"\nTry it yourself:\n  {escaped(line)}", soft_wrap=True, highlight=False)


def _ask(question: str, default: str, choices: Any) -> str:
    while True:
        found: str = typer.prompt(f"{question} [{', '.join(choices)}]", default=default, err=True).strip()
        if found in choices:
            return found
        typer.echo(f"Choose one of {', '.join(choices)}.", err=True)
