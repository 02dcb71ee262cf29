"""Measure which privacy models an unchanged table satisfies, for the classes of some columns.

Each measure is the strictest setting of a privacy model that all classes meet. Models that compare classes
with the whole input compare them with the table itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.columns.header import check_asked
from shoal.core.arrays import FloatArray
from shoal.core.classes import Classes, Sensitive
from shoal.core.contracts import Engine
from shoal.core.counts.counts import Counts, Domain
from shoal.document.document import Document, Fact, HasDocument, Name, Table, name_list, of_records
from shoal.errors import UsageError
from shoal.models.alpha_k_anonymity import greatest_shares
from shoal.models.delta_disclosure import changes, lacking_a_value
from shoal.models.enhanced_beta_likeness import enhanced_gains
from shoal.models.entropy_l_diversity import entropies
from shoal.models.likeness import greatest_gains
from shoal.models.recursive_cl_diversity import least_c
from shoal.models.t_closeness import distances
from shoal.policy.policy import Policy
from shoal.wording import plural
from shoal.workflow.problem import count, order_of, reference_of
from shoal.workflow.release.recovery import load_policy, recover
from shoal.workflow.session import AUTO, session

_MOST_CELLS = 10**9  # classes times values: the ordered distance visits every value in every class


@dataclass(frozen=True)
class ColumnMeasurement:
    """The strictest settings that all classes meet for a sensitive column; None, with a note: no setting."""

    column: str
    distinct_l: int
    entropy_l: float
    recursive_c: float  # with l = distinct_l; every larger c holds
    t_equal: float
    t_ordered: float | None
    alpha: float
    basic_beta: float
    enhanced_beta: float | None
    delta: float | None  # every larger delta holds
    delta_present_only: float  # every larger delta holds
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Measurement(HasDocument):
    """What an unchanged table satisfies."""

    columns: tuple[str, ...]
    records: int
    classes: int
    k: int
    unique_records: int
    sensitive: tuple[ColumnMeasurement, ...]

    def document(self) -> Document:
        """Describe the measurement: the classes, and what each sensitive column satisfies."""
        smallest = f"{self.classes:,}, the smallest of {plural(self.k, 'record')}"
        return Document(
            title=f"Measurement of {plural(self.records, 'record')}",
            facts=[
                Fact("columns", "columns", name_list(self.columns)),
                Fact("classes", "classes", smallest),
                Fact("k", "k", f"{self.k:,}"),
                Fact("unique_records", "unique records", of_records(self.unique_records, self.records)),
            ],
            tables=[self._table()] if self.sensitive else [],
            notes=[(Name(column.column), f": {note}") for column in self.sensitive for note in column.notes],
        )

    def _table(self) -> Table:
        rows = []
        for measure, (model, parameter) in _MODELS.items():
            cells = [_rounded(getattr(item, measure), down=measure == "entropy_l") for item in self.sensitive]
            if measure == "recursive_c":  # for the l of each column
                pairs = zip(cells, self.sensitive, strict=True)
                cells = [f"{cell} (l={item.distinct_l})" for cell, item in pairs]
            rows.append((model, parameter, *cells))
        headers = ("model", "parameter", *[Name(item.column) for item in self.sensitive])
        return Table("What every class satisfies", headers, rows, left=range(2))


# The model of each measure, and the model's parameter that is measured.
_MODELS = {
    "distinct_l": ("distinct l-diversity", "l"),
    "entropy_l": ("entropy l-diversity", "l"),
    "recursive_c": ("recursive (c,l)-diversity", "c above"),
    "t_equal": ("t-closeness, equal distance", "t"),
    "t_ordered": ("t-closeness, ordered distance", "t"),
    "alpha": ("(alpha,k)-anonymity", "alpha"),
    "basic_beta": ("basic beta-likeness", "beta"),
    "enhanced_beta": ("enhanced beta-likeness", "beta"),
    "delta": ("delta-disclosure", "delta above"),
    "delta_present_only": ("delta-disclosure, present only", "delta above"),
}


def _rounded(value: float | None, *, down: bool) -> str:
    """Format with four decimals, rounded to the side on which the model holds."""
    if value is None or isinstance(value, int):
        return "none" if value is None else f"{value:,}"
    units = math.floor(value * 10_000 + 1e-6) if down else math.ceil(value * 10_000 - 1e-6)
    return f"{units / 10_000:,.4f}"


def measure(
    table: Any,
    columns: str | Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    *,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
) -> Measurement:
    """Measure which models a table satisfies over the classes of some columns, for each sensitive column.

    If no columns (or sensitive columns) are named, the quasi-identifiers (or sensitive columns) of the policy
    are used. The table may be the input or the release of the policy.
    """
    columns = (columns,) if isinstance(columns, str) else tuple(columns)
    sensitive = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    rules = None if policy is None else load_policy(policy, engine)
    with session(table, engine, memory_limit) as s:
        recover(table, s.engine)  # the table may be a release
        if rules is not None:
            columns = columns or tuple(_shown(rules, s.columns))
            sensitive = sensitive or tuple(name for name in rules.roles.sensitive if name not in columns)
        _check(columns, sensitive, s.columns)
        return measured(columns, *count(s.table, columns, sensitive, ()))


def _shown(policy: Policy, available: Sequence[str]) -> Iterator[str]:
    """Yield the names of the quasi-identifiers in an input, or in its release."""
    for name in policy.roles.quasi_identifiers:
        bounds = policy.released(name)
        yield from bounds if name not in available and set(bounds) <= set(available) else (name,)


def measured(columns: Sequence[str], counts: Counts, domains: Mapping[str, Domain]) -> Measurement:
    """Measure a counted table; the combinations of the columns are the classes."""
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
    """Describe sensitive columns without a policy: the reference is the table, and values sort naturally."""
    described = {}
    for name, frequencies in reference_of(counts, domains).items():
        totals = np.array([number for _, number in frequencies], np.int64)
        described[name] = Sensitive(totals, order_of([text for text, _ in frequencies]))
    return described


def _measure(classes: Classes, column: str) -> ColumnMeasurement:
    spread, sensitive = classes.distribution(column), classes.column(column)
    l = int(spread.distinct.min())
    change = changes(classes, column)
    missing = int(lacking_a_value(classes, column).sum())
    enhanced = enhanced_gains(classes, column)
    unbounded = int(np.isinf(enhanced).sum())
    too_many = len(classes) * len(sensitive.ordered) > _MOST_CELLS
    notes = []
    total = f"of {plural(len(classes), 'class')}"
    if unbounded:
        notes.append(f"enhanced_beta: no beta holds; a value gains more than -ln p in {unbounded:,} {total}.")
    if missing:
        notes.append(f"delta: no delta holds; {missing:,} {total} lack a value that the table has.")
    if too_many:
        notes.append(
            f"t_ordered: left out; {plural(len(sensitive.ordered), 'value')} in "
            f"{plural(len(classes), 'class')} take too long. Round the column first."
        )
    return ColumnMeasurement(
        column=column,
        distinct_l=l,
        # The entropy l of a class is at most its number of distinct values, despite rounding errors.
        entropy_l=min(math.exp(entropies(classes, column).min()), float(l)),
        recursive_c=_greatest(least_c(classes, column, l)),
        t_equal=_greatest(distances(classes, column, "equal")),
        t_ordered=None if too_many else _greatest(distances(classes, column, "ordered")),
        alpha=_greatest(greatest_shares(classes, column)),
        basic_beta=_greatest(greatest_gains(classes, column)),
        enhanced_beta=None if unbounded else _greatest(enhanced),
        delta=None if missing else _greatest(change),
        delta_present_only=_greatest(change),
        notes=tuple(notes),
    )


def _greatest(numbers: FloatArray) -> float:
    return float(numbers.max())


def _check(columns: Sequence[str], sensitive: Sequence[str], available: Sequence[str]) -> None:
    check_asked(columns, available, beside=sensitive)
    if sensitive:
        check_asked(sensitive, available, kind="sensitive column", beside=columns)
    for name in sensitive:
        if name in columns:
            raise UsageError(
                f"{name!r} is both among the columns and sensitive: every class would hold one value of it. "
                "Leave it out of one."
            )
