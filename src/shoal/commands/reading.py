"""How text is read: plug-ins with their options, levels, limits, numbers and names; and a line typed."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from shoal.errors import UnknownName, UsageError

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
        if "=" in name:
            raise UsageError(_with_colon(name))
        return name
    options = {}
    for pair in rest.split(","):
        option, equals, value = pair.partition("=")
        if not equals:
            message = f"Expected option=value after {name!r}, as k-anonymity:k=5, got {pair!r}."
            raise UsageError(message)
        try:
            options[option.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            message = (
                f"Cannot read the value of {option.strip()!r} after {name!r}: {value!r}. Put text in quotes."
            )
            raise UsageError(message) from None
    return {name: options}


def _with_colon(text: str) -> str:
    """Say how options follow the name of a plug-in.

    >>> _with_colon("k-anonymity=10")
    "'k-anonymity=10' is no name. Write k-anonymity:k=10."
    """
    from shoal.catalogue import describe

    name, value = re.split(r"[=,\s]", text)[0], text.rpartition("=")[2].strip()
    options = []
    with suppress(UnknownName):
        options = [option.name for option in describe(name).options]
    known = f"{name}:{options[0]}" if options else "name:option"
    return f"{text!r} is no name. Write {known}={value}."


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
    """Read limits from lists such as '1%,5%'; a comma is no decimal sign there."""
    for text in texts or ():
        if found := re.search(r"(?:^|,)\s*(([0-9]+),([0-9]+%|0[0-9]+))", text):
            message = (
                f"--suppression-limit {found[1]!r} can be a share, or two limits. Write "
                f"{found[2]}.{found[3]}, or --suppression-limit {found[2]} --suppression-limit {found[3]}."
            )
            raise UsageError(message)
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


def read_names(
    texts: Sequence[str], available: Sequence[str] | None = None, *, option: str = "--columns"
) -> list[str]:
    """Read names of columns: each text is one, or a list such as 'age,sex', where one with a comma is quoted.

    >>> read_names(["age, sex", "a,b", '"a,b"'], ["age", "sex", "a,b"])
    ['age', 'sex', 'a,b', 'a,b']
    >>> read_names(["age, sex", '"a,b"', "x,,y"])
    ['age', 'sex', 'a,b', 'x', '', 'y']
    """
    found: list[str] = []
    for text in texts:
        if available is not None and text in available:
            found.append(text)
            continue
        try:
            rows = list(csv.reader([text], skipinitialspace=True, strict=True))
        except csv.Error as error:
            message = (
                f"{option} {text!r} cannot be read: {error}. "
                "Write names as age,sex; quote one that holds a comma."
            )
            raise UsageError(message) from None
        names = [name for row in rows for name in row]
        if available is None:  # whoever reads the table judges them
            found += names
            continue
        # A quoted name may begin or end with spaces.
        names = [name if name in available else name.strip() for name in names]
        found += [name for name in names if name]
    return found


def typed() -> str:
    """Read a line from the terminal, with its history where the system has one."""
    with suppress(ImportError):
        import readline  # noqa: F401 - being imported is all it takes
    return input("shoal> ")
