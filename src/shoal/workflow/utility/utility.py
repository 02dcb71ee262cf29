"""Utility of a release: compare its columns, associations and the accuracy of a classifier with the input's.

Each table is counted once; the order of its rows does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shoal.columns.header import check_not_swapped, check_record_numbers
from shoal.core.contracts import Engine, Role
from shoal.core.progress import Progress, quiet
from shoal.document.document import Document, Fact, HasDocument, Name
from shoal.errors import DataError, PolicyError, UnknownName, UsageError
from shoal.policy.policy import Policy
from shoal.wording import plural
from shoal.workflow.release.recovery import load_policy, recover
from shoal.workflow.session import AUTO, OpenTable, session
from shoal.workflow.utility.associations import (
    Association,
    Contingency,
    associations_of,
    associations_table,
    contingency_of,
    contingency_table,
    strongest,
)
from shoal.workflow.utility.classifier import NEEDED, Prediction, available, predicted
from shoal.workflow.utility.columns import ColumnUtility, column_utility, columns_table, means_table
from shoal.workflow.utility.tally import Sides, sides_of


def utility(
    table: Any,
    release: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    target: str | None = None,
    pair: Sequence[str] | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Utility:
    """Compare a table with its release, and return what an analyst loses.

    `target` is the column to predict from the quasi-identifiers (default: the policy's label).
    `pair` names the columns of the contingency table (default: the two most strongly associated ones).
    """
    policy = load_policy(policy, engine)
    with session(table, engine, memory_limit, progress) as s:
        recover(release, s.engine)
        released = s.open(release)
        check_not_swapped(policy.roles.identifiers, released.columns, s.columns)
        return compared(s.table, released, policy, target=target, pair=pair, progress=s.progress)


MOST_COLUMNS = 30  # maximum number of columns that are compared by default


@dataclass(frozen=True)
class Utility(HasDocument):
    """What an analyst loses: measures of the table and of its release."""

    records_before: int
    records_after: int
    columns: tuple[ColumnUtility, ...]
    associations: tuple[Association, ...]
    contingency: Contingency | None
    prediction: Prediction | None
    notes: tuple[str, ...]  # what was left out, and why

    @property
    def associated(self) -> tuple[str, ...]:
        """The columns whose associations were measured, in order."""
        return tuple(dict.fromkeys(name for association in self.associations for name in association.columns))

    @property
    def with_means(self) -> tuple[ColumnUtility, ...]:
        """The columns whose values are numbers."""
        return tuple(column for column in self.columns if column.mean_before is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the utility as plain values."""
        result = asdict(self)
        for entry, association in zip(result["associations"], self.associations, strict=True):
            entry["change"] = association.change
        return result

    def document(self, *, pair: bool = False) -> Document:
        """Describe what is left of columns and associations; with `pair`, also the records of the pair."""
        tables = [columns_table(self.columns)]
        if self.with_means:
            tables.append(means_table(self.with_means))
        if self.associations:
            tables.append(associations_table(self.associations))
        if pair and self.contingency:
            tables.append(contingency_table(self.contingency))
        counts = f"{self.records_before:,} before, {self.records_after:,} after"
        facts = [Fact("records", "records", counts)]
        if self.prediction:
            both = {"before": self.prediction.before, "after": self.prediction.after}
            for when, accuracy in both.items():
                right = f"{accuracy.accuracy:.1%} right; the most frequent value is {accuracy.majority:.1%}"
                facts.append(Fact("prediction", (Name(self.prediction.target), f" predicted {when}"), right))
        return Document("What an analyst loses", facts, tables, self.notes)


def compared(
    table: OpenTable,
    release: OpenTable,
    policy: Policy,
    *,
    target: str | None = None,
    pair: Sequence[str] | None = None,
    progress: Progress | None = None,
    lenient: bool = False,
) -> Utility:
    """Compare two open tables; if `lenient`, a target that cannot be predicted is only noted."""
    progress = progress or quiet
    progress("compare", 0, None)
    lenient = lenient or target is None  # the user did not request a target that comes from the policy
    target = target or policy.label
    names = _names(policy, table.columns, release.columns)
    if not lenient and target is not None:
        _check_target(policy, names, target)
    chosen = _pair(names, pair)
    requested = [name for name in (target, *(chosen or ())) if name in names[MOST_COLUMNS:]]
    column_names = [*names[:MOST_COLUMNS], *dict.fromkeys(requested)]
    left = len(names) - len(column_names)
    notes = [f"{left} of {len(names)} columns are not compared."] if left else []
    try:
        sides = sides_of(table, release, policy, column_names)
    except DataError:  # for example a column of lists, which only this comparison counts
        column_names = [name for name in column_names if name in policy.roles.quasi_identifiers]
        if not column_names or not set(chosen or ()) <= set(column_names):
            raise
        sides = sides_of(table, release, policy, column_names)
        notes.append("Only quasi-identifiers are compared: some other column does not hold single values.")
    check_record_numbers(sides.after.records, sides.before.records)
    columns = tuple(column_utility(sides, policy, name) for name in column_names)
    associations = associations_of(sides, columns, progress)
    chosen = chosen or strongest(columns, associations)
    progress("predict", 0, None)
    prediction, why = _prediction(sides, policy, column_names, target, lenient=lenient)
    return Utility(
        records_before=sides.before.records,
        records_after=sides.after.records,
        columns=columns,
        associations=associations,
        contingency=contingency_of(sides, chosen) if chosen else None,
        prediction=prediction,
        notes=(*notes, *_estimates(sides, columns), *why),
    )


def _names(policy: Policy, before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the columns that both tables have: quasi-identifiers, then sensitive ones, then others."""
    roles = policy.roles
    names = [*roles.quasi_identifiers, *roles.sensitive, *roles.of(Role.OTHER)]
    shared_names = [name for name in names if name in before and set(policy.released(name)) <= set(after)]
    if not shared_names:
        raise PolicyError(
            "The table and the release have no column of the policy in common. Give a table, its release and "
            "the policy of both."
        )
    return shared_names


def _check_target(policy: Policy, names: Sequence[str], target: str) -> None:
    """Raise if a target is not in both tables or is generalized, or if scikit-learn is not installed."""
    if target in policy.roles.quasi_identifiers:
        raise UsageError(
            f"The target {target!r} is a quasi-identifier, whose labels may be fewer after. Name a column "
            "that is released as it is."
        )
    if target not in names:
        others = [name for name in names if name not in policy.roles.quasi_identifiers]
        raise UnknownName(target, "target", others)
    if not available():
        raise UsageError(NEEDED)


def _pair(names: Sequence[str], pair: Sequence[str] | None) -> tuple[str, str] | None:
    if pair is None:
        return None
    for name in pair:
        if name not in names:
            raise UnknownName(name, "column of the pair", names)
    if len(pair) != 2 or pair[0] == pair[1]:
        raise UsageError(
            f"A pair is two different columns, such as age,sex; got {', '.join(map(repr, pair)) or 'none'}."
        )
    return pair[0], pair[1]


def _estimates(sides: Sides, columns: Sequence[ColumnUtility]) -> Iterator[str]:
    """Yield notes on estimates, labels that could not be parsed, and missing means."""
    overlapping = [item.column for item in columns if item.estimated]
    if overlapping:
        yield (
            f"Labels of {', '.join(overlapping)} overlap: a value may have other labels in other classes. "
            "A label's records are spread over the values that it covers, in proportion to the "
            "input's records of these values. Records before, shift, means after and associations after are "
            "estimates there."
        )
    unread = {item.column: sides.spreads[item.column].covers.unread for item in columns}
    for name, number in unread.items():
        if number:
            count = "counts" if number == 1 else "count"
            labels = plural(number, "label")
            yield f"{labels} of {name} could not be read and {count} as covering every value."
    means = [item.column for item in columns if item.mean_before is not None and item.mean_after is None]
    if means:
        yield f"There is no mean after of {', '.join(means)}: no number is left in the release."


def _prediction(
    sides: Sides, policy: Policy, column_names: Sequence[str], target: str | None, *, lenient: bool
) -> tuple[Prediction | None, tuple[str, ...]]:
    """Predict the target from the quasi-identifiers; if `lenient`, return an error's text as a note."""
    if target is None:
        return None, ()
    features = [name for name in column_names if name in policy.roles.quasi_identifiers]
    try:
        if target not in column_names or not features:
            raise DataError(
                f"The target {target!r} is not predicted: it is not in both tables, or alone. Name another."
            )
        return predicted(sides, target, features), ()
    except UsageError as error:
        if not lenient:
            raise
        return None, (str(error),)
