"""The second table of a release by anatomy: the sensitive values of each group, with their counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.columns.header import check_released
from shoal.core.arrays import IntArray
from shoal.core.contracts import Engine
from shoal.core.counts.counts import Counts, Domain, layout
from shoal.core.counts.in_memory import from_joint
from shoal.core.recoding.groups import group_column
from shoal.core.recoding.recoding import Recoding
from shoal.errors import DataError, PolicyError, UsageError
from shoal.policy.policy import Policy
from shoal.wording import Change
from shoal.workflow.problem import RECORDS
from shoal.workflow.release.stage import second_table_path
from shoal.workflow.session import Session


def sensitive_table(engine: Engine, recoding: Recoding, domains: Mapping[str, Domain]) -> Any:
    """Return the second table: group, value, records; sorted by group, then by value."""
    import pyarrow as pa

    if recoding.regions is None or recoding.regions.sensitive is None or recoding.labels[-1] is None:
        raise TypeError
    ((name, entries),) = recoding.regions.sensitive.items()
    ((column, numbers),) = recoding.labels[-1].items()
    values = domains[name].values
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return engine.open(
        pa.table(
            {
                column: pa.array(numbers).take(pa.array(entries.rows)),
                name: array.take(pa.array(entries.codes)),
                RECORDS: pa.array(entries.counts),
            }
        )
    )


_GIVE_SECOND = Change("sensitive_table", action="Give it as {}")


def find_second_table(release: Any, engine: Engine, given: Any) -> Any:
    """Return the second table of a release: the given one, or the file next to the release."""
    if given is not None:
        return given
    if not isinstance(release, str | Path):
        raise UsageError("The release's sensitive values are in a second table.", advice=[_GIVE_SECOND])
    path = Path(release)
    second_path = second_table_path(path, engine.target(path).ending)
    if not second_path.exists():
        raise DataError(
            f"The release's sensitive values are in a second table, and there is no {str(second_path)!r}.",
            advice=[_GIVE_SECOND],
        )
    return second_path


def count_groups(
    s: Session, release: Any, second: Any, policy: Policy, name: str
) -> tuple[Counts, dict[str, Domain], list[str]]:
    """Count the sensitive values of each group, and list differences between release and second table."""
    algorithm = policy.search_algorithm
    refusal = algorithm.refuses_models(policy.privacy_models, policy.roles.sensitive) if algorithm else None
    if refusal:
        raise PolicyError(
            f"Algorithm 'anatomy' cannot honour this policy: {refusal.reason}.", advice=refusal.advice
        )
    first, other = s.open(release), s.open(second, "second table")
    group = group_column(name)
    reasons = _unexpected_columns(policy, first.columns, name, group)
    _check_second(other.columns, (group, name, RECORDS))
    counts, release_domains = first.count([group])
    second_counts, domains = other.count([group, name, RECORDS])
    records = _numbers(domains[RECORDS])[second_counts.codes(2)] * second_counts.sizes
    sums = np.bincount(second_counts.codes(0), records, len(domains[group])).astype(np.int64)
    expected = dict(zip(domains[group].texts, sums.tolist(), strict=True))
    actual = dict(
        zip(
            [release_domains[group].texts[code] for code in counts.codes(0)],
            counts.sizes.tolist(),
            strict=True,
        )
    )
    reasons += _disagreements(actual, expected)
    return _counts(domains, (group, name), second_counts, records), domains, reasons


def _unexpected_columns(policy: Policy, columns: Sequence[str], name: str, group: str) -> list[str]:
    """Return a reason for each column that must not be in the release."""
    roles = policy.roles
    check_released(columns, {*roles.roles, group}, (*roles.quasi_identifiers, group))
    reasons = [
        f"identifier {column!r} is in the release" for column in roles.identifiers if column in columns
    ]
    if name in columns:
        reasons.append(f"sensitive column {name!r} is in the release itself")
    return reasons


def _check_second(columns: Sequence[str], expected: Sequence[str]) -> None:
    if set(columns) != set(expected):
        raise PolicyError(
            f"The second table must have the columns {', '.join(map(repr, expected))} and no others."
        )


def _numbers(domain: Domain) -> IntArray:
    if not all(text and re.fullmatch(r"[1-9][0-9]{0,17}", text) for text in domain.texts):
        raise DataError(f"Column {RECORDS!r} of the second table must hold whole numbers above 0.")
    return np.array([int(text or 0) for text in domain.texts], np.int64)


def _disagreements(actual: Mapping[str | None, int], expected: Mapping[str | None, int]) -> list[str]:
    """Describe groups that do not have the same number of records in both tables."""
    unknown = sum(group not in expected for group in actual)
    unused = sum(group not in actual for group in expected)
    unequal = sum(actual[group] != expected[group] for group in actual.keys() & expected.keys())
    numbers = {
        "groups of the release are not in the second table": unknown,
        "groups of the second table are not in the release": unused,
        "groups have a different number of records in the second table": unequal,
    }
    reasons = [f"{number:,} {words}" for words, number in numbers.items() if number]
    return [*reasons, "some records have no group"] if None in {*actual, *expected} else reasons


def _counts(
    domains: Mapping[str, Domain], names: tuple[str, str], second_counts: Counts, records: IntArray
) -> Counts:
    """Return counts whose classes are the groups, with their sensitive values."""
    group, name = names
    widths = [domains[group].bits, domains[name].bits]
    fields = layout(widths)
    keys = np.zeros((fields[-1].word + 1, len(records)), np.int64)
    for column, field in enumerate(fields):
        keys[field.word] |= second_counts.codes(column) << field.shift
    return from_joint(widths[:1], {name: widths[1]}, keys, records)
