"""The command that answers from a profile: which node will do, or what would have to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.negotiations import DATA, POLICY, show_negotiation
from shoal.commands.options import AsJson, EngineName, Limit, MemoryLimit, Reveal, SparkMaster
from shoal.commands.prompt import Prompt
from shoal.commands.reading import read_engine, read_levels, read_limit
from shoal.display import print_json
from shoal.errors import UsageError


def negotiate(
    profile: Annotated[Path, typer.Argument(help="The profile, as `shoal profile` writes it.")],
    k: Annotated[
        int | None,
        typer.Option("--k", help="Records that look alike, at least.", show_default="the policy's"),
    ] = None,
    l: Annotated[
        int | None,
        typer.Option(
            "--l",
            help="Distinct values of a sensitive column among those, at least; instead of `--k`.",
            show_default="the policy's",
        ),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="The sensitive column that l is about, where there are several.")
    ] = None,
    suppression_limit: Limit = None,
    max_level: Annotated[
        list[str] | None,
        typer.Option(
            help="The highest levels, as `age=2,sex=1`; may be repeated.", show_default="the policy's"
        ),
    ] = None,
    prefer: Annotated[str, typer.Option(help="The node of least `height`, or of least `loss`.")] = "height",
    metric: Annotated[
        str | None,
        typer.Option(
            help="The loss to prefer by, where it is a sum over columns.", show_default="non-uniform-entropy"
        ),
    ] = None,
    runtime: Annotated[
        bool,
        typer.Option(
            "--runtime",
            help="Count the node at the highest levels where a partial profile lacks it; needs `--data` and "
            "`--policy`.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The table that the profile is of; also written into the command lines that are shown."
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            "-p",
            help="The policy that the profile was made with; also written into the command lines.",
        ),
    ] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Negotiate k or l, suppression and levels; exit code 1 when nothing will do. No wishes: a prompt."""
    asked = (k, l, suppression_limit, max_level or None)
    wishes: dict[str, Any] = {
        "k": k,
        "l": l,
        "sensitive": sensitive,
        "suppression_limit": read_limit(suppression_limit),
        "prefer": prefer,
        "metric": metric,
        "runtime": runtime,
    }
    where = (str(data or DATA), str(policy or POLICY))
    with reporting(as_json, reveal):
        wishes["max_level"] = _read_max_levels(max_level)
        opened = _open(profile, runtime, data, policy, (engine, spark_master, memory_limit))
        in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
        if in_terminal and all(wish is None for wish in asked):
            raise typer.Exit(Prompt(opened, wishes, *where).run())
        found = opened.negotiate(**wishes)
    if as_json:
        print_json(found.to_dict())
    else:
        show_negotiation(found, opened, *where)
    raise typer.Exit(0 if found.exact else 1)


def _open(
    profile: Path,
    runtime: bool,
    data: Path | None,
    policy: Path | None,
    engine: tuple[str, str | None, str | None],
) -> Any:
    """Read a profile, with its table where a node may have to be counted."""
    from shoal.profile import Profile

    if not runtime:
        return Profile.load(profile)
    if data is None or policy is None:
        message = "--runtime counts a node of the table: give --data and --policy too."
        raise UsageError(message)
    opened = Profile.load(profile)
    with progress_bar() as progress:
        return opened.with_data(
            data, policy, engine=read_engine(*engine), memory_limit=engine[2], progress=progress
        )


def _read_max_levels(texts: list[str] | None) -> dict[str, int] | None:
    levels: dict[str, int] = {}
    for text in texts or ():
        levels |= read_levels(text, "--max-level")
    return levels or None
