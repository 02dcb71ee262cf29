"""Measure: what a table satisfies as it is, over the classes of some columns.

Every measure is the strictest setting of a privacy model that all classes pass. The whole input that models
compare with is the table itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.choose import AUTO, engine_for
from shoal.column_names import check_asked
from shoal.core.arrays import FloatArray
from shoal.core.classes import Classes, Sensitive
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.errors import DataError, UsageError, so_many
from shoal.models.alpha_k_anonymity import greatest_shares
from shoal.models.delta_disclosure import changes, lacking_a_value
from shoal.models.enhanced_beta_likeness import enhanced_gains
from shoal.models.entropy_l_diversity import entropies
from shoal.models.likeness import greatest_gains
from shoal.models.recursive_cl_diversity import least_c
from shoal.models.t_closeness import distances
from shoal.policy import Policy
from shoal.sensitive import count, order_of, reference_of

_MOST_CELLS = 10**9  # classes times values: the ordered distance looks at every value in every class


@dataclass(frozen=True)
class ColumnMeasurement:
    """What all classes satisfy for one sensitive column; None where no setting would do, with a note."""

    column: str
    distinct_l: int
    entropy_l: float
    recursive_c: float  # with l = distinct_l; any c above it holds
    t_equal: float
    t_ordered: float | None
    alpha: float
    basic_beta: float
    enhanced_beta: float | None
    delta: float | None  # any delta above it holds
    delta_present_only: float  # likewise
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Measurement:
    """What a table satisfies as it is."""

    columns: tuple[str, ...]
    records: int
    classes: int
    k: int
    unique_records: int
    sensitive: tuple[ColumnMeasurement, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the measurement as plain values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        from shoal.notebook import measurement_block

        return measurement_block(self)


def measure(
    table: Any,
    columns: str | Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    *,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
) -> Measurement:
    """Say what a table satisfies over the classes of some columns, for each sensitive column.

    Of a policy, its quasi-identifiers are the columns and its sensitive columns the sensitive ones, where
    none are named; the table may be its input or its release.
    """
    columns = (columns,) if isinstance(columns, str) else tuple(columns)
    sensitive = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    rules = None if policy is None else Policy.load(policy)
    engine = engine_for(engine, table, memory_limit)
    opened = engine.open(table)
    if rules is not None:
        columns = columns or tuple(_shown(rules, engine.columns(opened)))
        sensitive = sensitive or tuple(name for name in rules.roles.sensitive if name not in columns)
    _check(columns, sensitive, engine.columns(opened))
    counts, domains = count(engine, opened, columns, sensitive, ())
    if not len(counts):
        message = "The table has no rows. Give one that has records."
        raise DataError(message)
    return measured(columns, counts, domains)


def _shown(policy: Policy, available: Sequence[str]) -> Iterator[str]:
    """Name the quasi-identifiers as an input has them, or as its release does."""
    for name in policy.roles.quasi_identifiers:
        bounds = policy.released(name)
        yield from bounds if name not in available and set(bounds) <= set(available) else (name,)


def measured(columns: Sequence[str], counts: Counts, domains: Mapping[str, Domain]) -> Measurement:
    """Measure what was counted; the combinations of the columns are the classes."""
    classes = Classes(counts, about_itself(counts, domains))
    return Measurement(
        columns=tuple(columns),
        records=classes.records,
        classes=len(classes),
        k=int(classes.sizes.min()),
        unique_records=int((classes.sizes == 1).sum()),
        sensitive=tuple(_measure(classes, column) for column in classes.sensitive),
    )


def about_itself(counts: Counts, domains: Mapping[str, Domain]) -> dict[str, Sensitive]:
    """Describe sensitive columns without a policy: the reference is the table, the order the values' own."""
    found = {}
    for name, own in reference_of(counts, domains).items():
        totals = np.array([number for _, number in own], np.int64)
        found[name] = Sensitive(totals, order_of([text for text, _ in own]))
    return found


def _measure(classes: Classes, column: str) -> ColumnMeasurement:
    spread, about = classes.distribution(column), classes.column(column)
    l = int(spread.distinct.min())
    change = changes(classes, column)
    lacking = int(lacking_a_value(classes, column).sum())
    enhanced = enhanced_gains(classes, column)
    beyond = int(np.isinf(enhanced).sum())
    too_many = len(classes) * len(about.ordered) > _MOST_CELLS
    notes = []
    every = f"of {so_many(len(classes), 'class')}"
    if beyond:
        notes.append(f"enhanced_beta: no beta would do; a value gains more than -ln p in {beyond:,} {every}.")
    if lacking:
        notes.append(f"delta: no delta would do; {lacking:,} {every} lack a value that the table has.")
    if too_many:
        notes.append(
            f"t_ordered: left out; {so_many(len(about.ordered), 'value')} in "
            f"{so_many(len(classes), 'class')} take too long. Round the column first."
        )
    return ColumnMeasurement(
        column=column,
        distinct_l=l,
        # No class is more mixed than its distinct values, whatever the last bit of the logarithms says.
        entropy_l=min(math.exp(entropies(classes, column).min()), float(l)),
        recursive_c=_greatest(least_c(classes, column, l)),
        t_equal=_greatest(distances(classes, column, "equal")),
        t_ordered=None if too_many else _greatest(distances(classes, column, "ordered")),
        alpha=_greatest(greatest_shares(classes, column)),
        basic_beta=_greatest(greatest_gains(classes, column)),
        enhanced_beta=None if beyond else _greatest(enhanced),
        delta=None if lacking else _greatest(change),
        delta_present_only=_greatest(change),
        notes=tuple(notes),
    )


def _greatest(numbers: FloatArray) -> float:
    return float(numbers.max())


def _check(columns: Sequence[str], sensitive: Sequence[str], available: Sequence[str]) -> None:
    """Refuse names that the table does not have, or that stand twice."""
    check_asked(columns, available, beside=sensitive)
    if sensitive:
        check_asked(sensitive, available, kind="sensitive column", beside=columns)
    for name in sensitive:
        if name in columns:
            message = (
                f"{name!r} is both among the columns and sensitive: every class would hold one value of it. "
                "Leave it out of one."
            )
            raise UsageError(message)
