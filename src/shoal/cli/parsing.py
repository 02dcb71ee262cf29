"""Parsing of text: plug-ins with their options, levels, limits, numbers, names, and typed lines."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from shoal.errors import UnknownName, UsageError
from shoal.files.signals import raising
from shoal.wording import plural, quote


def check_plots(folder: Path | None) -> None:
    """If plots are requested, check that they can be drawn and that their folder can be created."""
    if folder:
        from shoal.document.figures import check_folder

        check_folder(folder)


def plot_summary(folder: Path | None, files: Sequence[Path]) -> str | None:
    """Return the folder and the number of the plot files; None if there are none."""
    return f"{folder} ({plural(len(files), 'file')})" if files else None


_MOST = 1000  # maximum number of values in a range of k
_NUMBER = re.compile(r"[0-9]{1,18}")  # excludes other digits such as ², and numbers of over 18 digits
_LEVEL = re.compile(r"(.*?)=\s*([0-9]{1,9})\s*(?:,\s*|$)")


def read_policy(path: Path, changes: Mapping[str, Any], engine: Any = "auto") -> Any:
    """Read a policy, with entries replaced by options."""
    from shoal.workflow.release.recovery import load_policy

    return load_policy(path, engine).with_(**changes)


def read_changes(
    models: list[str] | None = None,
    limit: str | None = None,
    metric: str | None = None,
    algorithm: str | None = None,
    *,
    local: bool = False,
    labels: int | None = None,
) -> dict[str, Any]:
    """Read the options that replace entries of a policy."""
    changes = {
        "models": [read_plugin(model) for model in models] if models else None,
        "suppression_limit": read_limit(limit),
        "metric": read_plugin(metric) if metric else None,
        "algorithm": read_plugin(algorithm) if algorithm else None,
        "local": {"labels": labels} if labels is not None else local or None,
    }
    return {name: value for name, value in changes.items() if value is not None}


def read_request(
    known: Sequence[str] | None, keep: Sequence[str] | None, k: int | None, changes: Mapping[str, Any]
) -> Any:
    """Read the request for a first policy. `--known a,b` is split later, when the columns are known."""
    from shoal.workflow.policy_request import DEFAULT_K, PolicyRequest

    columns = partial(read_names, known, option="--known") if known else None
    needed = partial(read_names, keep, option="--keep") if keep else None
    return PolicyRequest(columns, needed, DEFAULT_K if k is None else k, changes)


def read_limit(text: str | None) -> int | str | None:
    """Read a whole number as a number of records. Other text is returned unchanged: the policy parses it."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return text


def read_plugin(text: str) -> str | dict[str, dict[str, Any]]:
    """Read 'name:option=value,option=value'."""
    from shoal.files.yaml import LoadError, load_yaml
    from shoal.policy.policy import split_options

    name, _, options_text = text.partition(":")
    if not options_text:
        if "=" in name:
            raise UsageError(_with_colon(name))
        return name
    options = {}
    for pair in split_options(options_text):
        option, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(
                f"Expected option=value after {quote(name)}, as k-anonymity:k=5, got {quote(pair)}."
            )
        try:
            options[option.strip()] = load_yaml(value)
        except LoadError:
            raise UsageError(
                f"Cannot read the value of {quote(option.strip())} after {quote(name)}: "
                f"{quote(value)}. Put text in quotes."
            ) from None
    return {name: options}


def _with_colon(text: str) -> str:
    """Return the message for options that follow a plug-in's name without a colon.

    >>> _with_colon("k-anonymity=10")
    "'k-anonymity=10' is no name. Write k-anonymity:k=10."
    """
    from shoal.workflow.catalogue import describe

    name, value = re.split(r"[=,\s]", text)[0], text.rpartition("=")[2].strip()
    options = []
    with suppress(UnknownName):
        options = [option.name for option in describe(name).options]
    known = f"{name}:{options[0]}" if options else "name:option"
    return f"{quote(text)} is no name. Write {known}={value}."


def read_levels(*texts: str | None, option: str = "--node") -> dict[str, int]:
    """Read 'age=2,sex=0'; a name may contain commas."""
    return _one_per_column([level for text in texts for level in _each_level(text, option)], option)


def _one_per_column(each: list[dict[str, int]], option: str) -> dict[str, int]:
    levels: dict[str, int] = {}
    for name, level in (pair for levels_of_text in each for pair in levels_of_text.items()):
        if levels.setdefault(name, level) != level:
            raise UsageError(
                f"{option} names {quote(name)} twice, with the levels {levels[name]} and {level}. Give one."
            )
    return levels


def _each_level(text: str | None, option: str) -> Iterator[dict[str, int]]:
    remaining = (text or "").strip()
    while remaining:
        match = _LEVEL.match(remaining)
        if not match:
            raise UsageError(f"{option} takes column=level, as age=2,sex=0; got {quote(remaining)}.")
        if not match[1].strip():
            raise UsageError(
                f"{option} has a level without a column, {quote(remaining)}. It takes "
                "column=level, as age=2,sex=0."
            )
        yield {match[1].strip(): int(match[2])}
        remaining = remaining[match.end() :]


def read_generalize(policy: Any, texts: list[str] | None) -> Any:
    """Return a policy in which mu-argus generalizes some columns to higher levels."""
    from shoal.workflow.outliers import generalizing, highest

    levels = highest(*[level for text in texts or () for level in _each_level(text, "--generalize")])
    return generalizing(policy, levels) if texts else policy


def read_node(text: str | None) -> Any:
    """Read 'age=2,sex=0', the JSON of an offer, or a file that contains it."""
    if text is None:
        return {}
    if text.lstrip().startswith("{"):
        return text
    try:
        each = list(_each_level(text, "--node"))
    except UsageError:
        if os.path.exists(text):  # unlike Path.exists, never fails for a long text
            return Path(text)
        raise UsageError(
            "--node takes column=level, as age=2,sex=0, or an offer of `shoal negotiate --json`: its JSON, "
            f"or a file of it; got {quote(text)}."
        ) from None
    return _one_per_column(each, "--node")


def read_plugins(texts: list[str] | None) -> list[Any] | None:
    """Read plug-ins from lists such as 'ola,contour', in which options may follow a name."""
    from shoal.policy.policy import split_options

    parts: list[str] = []
    for text in texts or ():
        for number, part in enumerate(split_options(text)):
            if number and "=" in part and ":" not in part:
                parts[-1] += f",{part}"
            else:
                parts.append(part.strip())
    return [read_plugin(text) for text in parts] or None


def read_limits(texts: list[str] | None) -> list[Any] | None:
    """Read limits from lists such as '1%,5%'. A comma separates limits; it is no decimal point."""
    for text in texts or ():
        if match := re.search(r"(?:^|,)\s*(([0-9]+),([0-9]+%|0[0-9]+))", text):
            raise UsageError(
                f"--suppression-limit {quote(match[1])} can be a share, or two limits. Write "
                f"{match[2]}.{match[3]}, or --suppression-limit {match[2]} --suppression-limit {match[3]}."
            )
    return [read_limit(part.strip()) for text in texts or () for part in text.split(",")] or None


def read_numbers(texts: list[str] | None) -> list[int] | None:
    """Read values of k from '2..15' and '2,5,10'."""
    numbers: list[int] = []
    for part in [part.strip() for text in texts or () for part in text.split(",")]:
        first, dots, last = part.partition("..")
        if not (_NUMBER.fullmatch(first) and (_NUMBER.fullmatch(last) if dots else True)):
            raise UsageError(f"--k takes whole numbers, such as 5, 2,5,10 or 2..15; got {quote(part)}.")
        low, high = int(first), int(last or first)
        if low > high:
            raise UsageError(f"--k runs upwards, got {quote(part)}. Write {high}..{low}.")
        if high - low >= _MOST:
            raise UsageError(f"--k takes at most {_MOST:,} values in a range, got {quote(part)}.")
        numbers += range(low, high + 1)
    return numbers or None


def read_names(
    texts: Sequence[str], available: Sequence[str] | None = None, *, option: str = "--columns"
) -> list[str]:
    """Read names of columns: each text is one name, or a list such as 'age,sex' with optional quotes.

    >>> read_names(["age, sex", "a,b", '"a,b"'], ["age", "sex", "a,b"])
    ['age', 'sex', 'a,b', 'a,b']
    >>> read_names(["age, sex", '"a,b"', "x,,y"])
    ['age', 'sex', 'a,b', 'x', '', 'y']
    """
    columns: list[str] = []
    for text in texts:
        if available is not None and text in available:
            columns.append(text)
            continue
        try:
            rows = list(csv.reader([text], skipinitialspace=True, strict=True))
        except csv.Error as error:
            raise UsageError(
                f"{option} {quote(text)} cannot be read: {error}. "
                "Write names as age,sex; quote one that contains a comma."
            ) from None
        names = [name for row in rows for name in row]
        if available is None:  # the names are checked when the table is read
            columns += names
            continue
        # A quoted name may begin or end with spaces.
        names = [name if name in available else name.strip() for name in names]
        columns += [name for name in names if name]
    return columns


def read_line() -> str:
    """Read a line from the terminal, with a history if the system supports it."""
    with suppress(ImportError):
        import readline  # noqa: F401 - importing it suffices
    with raising():
        return input("shoal> ")
