"""Options that several commands take, and how their text is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.errors import UsageError


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
PolicyFile = Annotated[Path, typer.Option("--policy", "-p", help="The policy, a YAML file.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else there.")
]
Reveal = Annotated[bool, typer.Option(help="Let error messages show values of the data.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="A privacy model, as k-anonymity:k=5; may be repeated.",
        autocompletion=_names("models"),
    ),
]
Limit = Annotated[
    str | None,
    typer.Option("--suppression-limit", help="Records that may be suppressed: 5%, 0.05, or a number."),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="The loss to minimize, as coverage:aggregate=geometric.",
        autocompletion=_names("metrics"),
    ),
]
AlgorithmName = Annotated[
    str | None,
    typer.Option(
        "--algorithm", help="The search, as ola; auto chooses.", autocompletion=_names("algorithms")
    ),
]
NodeLevels = Annotated[
    str | None, typer.Option("--node", help="Levels to fix, as age=2,sex=0; the rest is searched.")
]
NodeOrOffer = Annotated[
    str | None,
    typer.Option(
        "--node",
        help="Levels to fix, as age=2,sex=0; the rest is searched. Or an offer of `shoal negotiate --json`: "
        "its JSON, or a file of it.",
    ),
]
Generalize = Annotated[
    list[str] | None,
    typer.Option(help="Levels that mu-argus takes columns up to, as age=2,zip=1. May be repeated."),
]
Interactive = Annotated[
    bool,
    typer.Option("--interactive", help="Look at what mu-argus finds rare and choose what to generalize."),
]
Seconds = Annotated[
    float | None, typer.Option(help="Stop searching after so many seconds, with the best so far.")
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="Where the table is counted and recoded; auto is duckdb, for files.",
        autocompletion=_names("engines"),
    ),
]
SparkMaster = Annotated[
    str | None, typer.Option("--spark-master", help="The master of --engine spark. [default: local[*]]")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option("--memory-limit", help="Memory for all of it, as 4GB; half of the machine's without it."),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where the release goes.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an output that exists.")]
Mapping_ = Annotated[
    bool, typer.Option("--mapping", help="Add what became of each value to the private folder.")
]

Report = Annotated[
    bool,
    typer.Option(
        "--report", help="Add a page that tells of the release, report.html, to the private folder."
    ),
]

_MOST = 1000  # values of k in one range
_NUMBER = re.compile(r"[0-9]{1,18}")  # not ², which is a digit too, nor more than int() takes
_LEVEL = re.compile(r"(.*?)=\s*([0-9]{1,9})\s*(?:,\s*|$)")


def read_policy(
    path: Path, models: list[str] | None, limit: str | None, metric: str | None, algorithm: str | None
) -> Any:
    """Read a policy and let options stand in for its lines."""
    from shoal.policy import Policy

    return Policy.load(path).with_(
        models=[read_plugin(model) for model in models] if models else None,
        suppression_limit=read_limit(limit),
        metric=read_plugin(metric) if metric else None,
        algorithm=read_plugin(algorithm) if algorithm else None,
    )


def read_engine(engine: str, master: str | None, memory_limit: str | None = None) -> Any:
    """Read the name of an engine, with the master that only Spark has."""
    if master is None:
        return engine
    from shoal.choose import engine_for

    return engine_for(engine, None, memory_limit, master)


def read_limit(text: str | None) -> int | str | None:
    """Read a whole number as records; the policy reads the rest."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return text


def read_plugin(text: str) -> str | dict[str, dict[str, Any]]:
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
        try:
            options[option.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            message = f"Cannot read the value of {option.strip()!r} after {name!r}: {value!r}."
            raise UsageError(message) from None
    return {name: options}


def read_levels(text: str | None, option: str = "--node") -> dict[str, int]:
    """Read 'age=2,sex=0'; a name may hold commas."""
    return {name: level for one in _each_level(text, option) for name, level in one.items()}


def _each_level(text: str | None, option: str) -> Iterator[dict[str, int]]:
    rest = (text or "").strip()
    while rest:
        found = _LEVEL.match(rest)
        if not found:
            message = f"{option} takes column=level, as age=2,sex=0; got {rest!r}."
            raise UsageError(message)
        if not found[1].strip():
            message = (
                f"{option} has a level without a column, {rest!r}. It takes column=level, as age=2,sex=0."
            )
            raise UsageError(message)
        yield {found[1].strip(): int(found[2])}
        rest = rest[found.end() :]


def read_generalize(policy: Any, texts: list[str] | None) -> Any:
    """Let a policy's mu-argus take some columns further up."""
    from shoal.outliers import generalizing, highest

    levels = highest(*[level for text in texts or () for level in _each_level(text, "--generalize")])
    return generalizing(policy, levels) if texts else policy


def read_node(text: str | None) -> Any:
    """Read 'age=2,sex=0', the JSON of an offer, or a file of it."""
    if text is None:
        return {}
    if text.lstrip().startswith("{"):
        return text
    try:
        return read_levels(text)
    except UsageError:
        if os.path.exists(text):  # which takes a text of any length
            return Path(text)
    message = (
        "--node takes column=level, as age=2,sex=0, or an offer of `shoal negotiate --json`: its JSON, or a "
        f"file of it; got {text!r}."
    )
    raise UsageError(message)


def read_plugins(texts: list[str] | None) -> list[Any] | None:
    """Read plug-ins from lists such as 'ola,contour', in which options may follow a name."""
    found: list[str] = []
    for text in texts or ():
        for number, part in enumerate(text.split(",")):
            if number and "=" in part and ":" not in part:
                found[-1] += f",{part}"
            else:
                found.append(part.strip())
    return [read_plugin(text) for text in found] or None


def read_limits(texts: list[str] | None) -> list[Any] | None:
    """Read limits from lists such as '1%,5%'."""
    return [read_limit(part.strip()) for text in texts or () for part in text.split(",")] or None


def read_numbers(texts: list[str] | None) -> list[int] | None:
    """Read values of k from '2..15' and '2,5,10'."""
    found: list[int] = []
    for part in [part.strip() for text in texts or () for part in text.split(",")]:
        first, dots, last = part.partition("..")
        if not (_NUMBER.fullmatch(first) and (_NUMBER.fullmatch(last) if dots else True)):
            message = f"--k takes whole numbers, as 5, 2,5,10 or 2..15; got {part!r}."
            raise UsageError(message)
        low, high = int(first), int(last or first)
        if low > high:
            message = f"--k runs upwards, got {part!r}. Write {high}..{low}."
            raise UsageError(message)
        if high - low >= _MOST:
            message = f"--k takes at most {_MOST:,} values in a range, got {part!r}."
            raise UsageError(message)
        found += range(low, high + 1)
    return found or None
