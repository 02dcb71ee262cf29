"""The command that answers from a profile: which node is acceptable, or which settings must change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.messages import progress_bar
from shoal.cli.options import Display, SuppressionLimitOption, TableReading
from shoal.cli.parsing import read_levels, read_limit
from shoal.cli.prompt import DATA, POLICY, Prompt, show_negotiation
from shoal.document.terminal import print_json
from shoal.errors import UsageError

ProfileArgument = Annotated[Path, typer.Argument(help="The profile, written by `shoal profile`.")]
_KOption = Annotated[
    int | None,
    typer.Option("--k", help="The least number of records that look alike.", show_default="the policy's"),
]
_LOption = Annotated[
    float | None,
    typer.Option(
        "--l",
        help="The least l of a sensitive column: distinct values among the records that look alike. With "
        "`--k` both must hold.",
        show_default="the policy's",
    ),
]
_DiversityOption = Annotated[
    str | None,
    typer.Option(
        "--diversity",
        help="The kind of l: `distinct`; `entropy` or `recursive` if the profile's policy names them.",
        show_default="distinct",
    ),
]
_COption = Annotated[
    float | None,
    typer.Option("--c", help="The c of recursive (c,l)-diversity.", show_default="the policy's"),
]
_SensitiveOption = Annotated[
    str | None, typer.Option(help="The sensitive column for l, if there are several.")
]
MaxLevelOption = Annotated[
    list[str] | None,
    typer.Option(help="Highest levels, such as `age=2,sex=1`; may be repeated.", show_default="the policy's"),
]
PreferOption = Annotated[str, typer.Option(help="Prefer the node of least `height` or of least `loss`.")]
_MetricOption = Annotated[
    str | None,
    typer.Option(
        help="The loss of `--prefer loss`; it must be a sum over columns.", show_default="non-uniform-entropy"
    ),
]
RuntimeOption = Annotated[
    bool | None,
    typer.Option(
        "--runtime/--no-runtime",
        help="Count the node at the highest levels if a partial profile lacks it; needs `--data` and "
        "`--policy`.",
        show_default="if the files of `--data` and `--policy` exist",
    ),
]
_DataOption = Annotated[
    Path | None,
    typer.Option(help="The table of the profile; its name is also used in the suggested commands."),
]
_PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        "-p",
        help="The policy of the profile; its name is also used in the suggested commands.",
    ),
]


def negotiate(
    profile: ProfileArgument,
    reading: TableReading,
    display: Display,
    k: _KOption = None,
    l: _LOption = None,
    diversity: _DiversityOption = None,
    c: _COption = None,
    sensitive: _SensitiveOption = None,
    suppression_limit: SuppressionLimitOption = None,
    max_level: MaxLevelOption = None,
    prefer: PreferOption = "height",
    metric: _MetricOption = None,
    runtime: RuntimeOption = None,
    data: _DataOption = None,
    policy: _PolicyOption = None,
) -> None:
    """Negotiate k, l, suppression and levels; exit code 1 if nothing is acceptable. No settings: a prompt."""
    requested = (k, l, suppression_limit, max_level or None)
    settings: dict[str, Any] = {
        "k": k,
        "l": int(l) if l is not None and l.is_integer() else l,
        "diversity": diversity,
        "c": c,
        "sensitive": sensitive,
        "suppression_limit": read_limit(suppression_limit),
        "prefer": prefer,
        "metric": metric,
        "runtime": runtime,
    }
    files = (str(data or DATA), str(policy or POLICY))
    with display.reporting():
        settings["max_level"] = _read_max_levels(max_level)
        table_profile = _open(profile, runtime, data, policy, reading)
        in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not display.as_json
        if in_terminal and all(value is None for value in requested):
            raise typer.Exit(Prompt(table_profile, settings, *files).run())
        answer = table_profile.negotiate(**settings)
    if display.as_json:
        print_json(answer.to_dict())
    else:
        show_negotiation(answer, *files)
    raise typer.Exit(0 if answer.exact else 1)


def _open(
    profile: Path, runtime: bool | None, data: Path | None, policy: Path | None, reading: TableReading
) -> Any:
    """Read a profile, together with its table if a node may have to be counted."""
    from shoal.workflow.profile.profile import Profile

    if runtime and (data is None or policy is None):
        raise UsageError("--runtime counts a node of the table: give --data and --policy too.")
    table_profile = Profile.load(profile)
    if data is None or policy is None:
        return table_profile
    needed = not table_profile.complete or table_profile.has_columns_to_count
    if not (runtime or (runtime is None and needed and data.exists() and policy.exists())):
        return table_profile
    with progress_bar() as progress:
        return table_profile.with_data(data, policy, progress=progress, **reading.options())


def _read_max_levels(texts: list[str] | None) -> dict[str, int] | None:
    return read_levels(*texts or (), option="--max-level") or None
