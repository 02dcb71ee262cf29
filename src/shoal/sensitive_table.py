"""The second table of a release whose sensitive column stands apart: each group's values, and how often."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.column_names import check_released
from shoal.core.arrays import IntArray
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain, layout
from shoal.core.groups import group_column
from shoal.core.held import from_joint
from shoal.core.recoding import Recoding
from shoal.core.targets import Target
from shoal.errors import DataError, OutputError, PolicyError, UsageError
from shoal.policy import Policy

RECORDS = "records"  # the column of the second table that tells how often a value occurs in a group


def separated(policy: Policy) -> str | None:
    """Name the sensitive column that is released in a table of its own, where the algorithm does so."""
    algorithm = policy.search_algorithm
    if algorithm is None or not algorithm.apart:
        return None
    names = policy.roles.sensitive
    if len(names) != 1:
        advice = "Change the other columns' roles." if names else "Give one column the role sensitive."
        message = (
            "With algorithm anatomy exactly one column is sensitive, for any other would stand beside "
            f"quasi-identifiers as they are; the policy has {len(names)}. {advice}"
        )
        raise PolicyError(message)
    (name,) = names
    if name.lower() == RECORDS:
        message = f"Column {name!r}: its table has a column {RECORDS!r} of its own. Rename yours."
        raise PolicyError(message)
    taken = [column for column in policy.columns if column.lower() == group_column(name).lower()]
    if taken:
        message = f"Column {taken[0]!r} has a name that the groups of {name!r} need. Rename it."
        raise PolicyError(message)
    return name


def second_path(policy: Policy, target: Target) -> Path | None:
    """Return where the second table of a release goes, where it has one; a table has nothing beside it."""
    if separated(policy) is None:
        return None
    if target.kind == "table":
        message = f"Algorithm 'anatomy' releases two tables, which {target.name!r} is not. Name a file."
        raise OutputError(message)
    return path_beside(target.path, target.ending)


def path_beside(output: Path, ending: str) -> Path:
    """Return where the second table of a release goes: beside it.

    >>> path_beside(Path("out.csv.gz"), ".csv.gz").name
    'out.sensitive.csv.gz'
    """
    own = output.name[: -len(ending)]
    return output.with_name(f"{own}.sensitive{output.name[-len(ending) :]}")


def sensitive_table(engine: Engine, recoding: Recoding, domains: Mapping[str, Domain]) -> Any:
    """Make the second table of a recoding: group, value, records; sorted by group, then by value."""
    import pyarrow as pa

    if recoding.regions is None or recoding.regions.sensitive is None or recoding.labels[-1] is None:
        raise TypeError
    ((name, entries),) = recoding.regions.sensitive.items()
    ((column, numbers),) = recoding.labels[-1].items()
    values = domains[name].values
    held = values if isinstance(values, pa.Array) else pa.array(values)
    return engine.open(
        pa.table(
            {
                column: pa.array(numbers).take(pa.array(entries.rows)),
                name: held.take(pa.array(entries.codes)),
                RECORDS: pa.array(entries.counts),
            }
        )
    )


def second_of(release: Any, engine: Engine, given: Any) -> Any:
    """Return the second table of a release: the one that is given, else the file beside it."""
    if given is not None:
        return given
    if not isinstance(release, str | Path):
        message = "The release's sensitive values are in a second table. Give it as sensitive_table."
        raise UsageError(message)
    path = Path(release)
    beside = path_beside(path, engine.target(path).ending)
    if not beside.exists():
        message = (
            f"The release's sensitive values are in a second table, and there is no {str(beside)!r}. "
            "Give it as sensitive_table."
        )
        raise DataError(message)
    return beside


def grouped(
    engine: Engine, release: Any, second: Any, policy: Policy, name: str
) -> tuple[Counts, dict[str, Domain], list[str]]:
    """Count the groups' sensitive values in the second table, and say where the release disagrees."""
    algorithm = policy.search_algorithm
    reason = algorithm.unfit(policy.privacy_models, policy.roles.sensitive) if algorithm else None
    if reason:
        message = f"Algorithm 'anatomy' cannot honour this policy: {reason}."
        raise PolicyError(message)
    first, other = engine.open(release), engine.open(second)
    group = group_column(name)
    reasons = _strange(policy, engine.columns(first), name, group)
    _check_second(engine.columns(other), (group, name, RECORDS))
    counts, there = engine.count(first, [group])
    listed, domains = engine.count(other, [group, name, RECORDS])
    if not len(counts) or not len(listed):
        message = (
            f"The {'second table' if len(counts) else 'release'} has no rows. Give one that has records."
        )
        raise DataError(message)
    records = _numbers(domains[RECORDS])[listed.codes(2)] * listed.sizes
    sums = np.bincount(listed.codes(0), records, len(domains[group])).astype(np.int64)
    told = dict(zip(domains[group].texts, sums.tolist(), strict=True))
    found = dict(
        zip([there[group].texts[code] for code in counts.codes(0)], counts.sizes.tolist(), strict=True)
    )
    reasons += _disagreements(found, told)
    return _counts(domains, (group, name), listed, records), domains, reasons


def _strange(policy: Policy, columns: Sequence[str], name: str, group: str) -> list[str]:
    """Refuse a release of other columns; say which should not be in it."""
    roles = policy.roles
    check_released(columns, {*roles.roles, group}, (*roles.quasi_identifiers, group))
    reasons = [
        f"identifier {column!r} is in the release" for column in roles.identifiers if column in columns
    ]
    if name in columns:
        reasons.append(f"sensitive column {name!r} is in the release itself")
    return reasons


def _check_second(columns: Sequence[str], wanted: Sequence[str]) -> None:
    if set(columns) != set(wanted):
        message = f"The second table must have the columns {', '.join(map(repr, wanted))} and no others."
        raise PolicyError(message)


def _numbers(domain: Domain) -> IntArray:
    """Read how many records each row of the second table stands for."""
    if not all(text and re.fullmatch(r"[1-9][0-9]{0,17}", text) for text in domain.texts):
        message = f"Column {RECORDS!r} of the second table must hold whole numbers above 0."
        raise DataError(message)
    return np.array([int(text or 0) for text in domain.texts], np.int64)


def _disagreements(found: Mapping[str | None, int], told: Mapping[str | None, int]) -> list[str]:
    """Say where the records of groups in the release are not those that the second table tells."""
    unknown = sum(group not in told for group in found)
    unused = sum(group not in found for group in told)
    unequal = sum(found[group] != told[group] for group in found.keys() & told.keys())
    said = {
        "groups of the release are not in the second table": unknown,
        "groups of the second table are not in the release": unused,
        "groups have another number of records than the second table tells": unequal,
    }
    reasons = [f"{number:,} {words}" for words, number in said.items() if number]
    return [*reasons, "some records have no group"] if None in {*found, *told} else reasons


def _counts(
    domains: Mapping[str, Domain], names: tuple[str, str], listed: Counts, records: IntArray
) -> Counts:
    """Return the groups as classes, each with its sensitive values."""
    group, name = names
    widths = [domains[group].bits, domains[name].bits]
    fields = layout(widths)
    keys = np.zeros((fields[-1].word + 1, len(records)), np.int64)
    for column, field in enumerate(fields):
        keys[field.word] |= listed.codes(column) << field.shift
    return from_joint(widths[:1], {name: widths[1]}, keys, records)
