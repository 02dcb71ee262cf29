"""What an analyst loses between two open tables: in columns, associations, one pair and a classifier.

The two tables are counted, each once; nothing is asked of the order of their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shoal.analysing.classifier import NEEDED, Prediction, available, predicted
from shoal.analysing.columns import ColumnUtility, column_utility
from shoal.analysing.pairs import Association, Contingency, associations_of, contingency_of, strongest
from shoal.analysing.sides import Sides, sides_of
from shoal.core.contracts import Engine
from shoal.core.progress import Progress, quiet
from shoal.core.schema import Role
from shoal.errors import DataError, PolicyError, UnknownName, UsageError
from shoal.policy import Policy

MOST_COLUMNS = 30


@dataclass(frozen=True)
class Utility:
    """What an analyst loses, before and after."""

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
        return tuple(dict.fromkeys(name for one in self.associations for name in one.columns))

    def to_dict(self) -> dict[str, Any]:
        """Return the utility as plain values."""
        found = asdict(self)
        for told, one in zip(found["associations"], self.associations, strict=True):
            told["change"] = one.change
        return found


def compared(
    engine: Engine,
    table: Any,
    release: Any,
    policy: Policy,
    *,
    target: str | None = None,
    pair: Sequence[str] | None = None,
    progress: Progress | None = None,
    lenient: bool = False,
) -> Utility:
    """Compare two open tables; what cannot be predicted is a note, where lenient, and else an error."""
    progress = progress or quiet
    progress("compare", 0, None)
    lenient = lenient or target is None  # nobody asked for a target that is the policy's
    target = target or policy.label
    names = _names(policy, engine.columns(table), engine.columns(release))
    if not lenient and target is not None:
        _check_target(policy, names, target)
    chosen = _pair(names, pair)
    wanted = [name for name in (target, *(chosen or ())) if name in names[MOST_COLUMNS:]]
    told = [*names[:MOST_COLUMNS], *dict.fromkeys(wanted)]
    left = len(names) - len(told)
    notes = [f"{left} of {len(names)} columns are not compared."] if left else []
    try:
        sides = sides_of(engine, table, release, policy, told)
    except DataError:  # a column of lists, say, which nothing but this would count
        told = [name for name in told if name in policy.roles.quasi_identifiers]
        if not told or not set(chosen or ()) <= set(told):
            raise
        sides = sides_of(engine, table, release, policy, told)
        notes.append("Only quasi-identifiers are compared: some other column does not hold single values.")
    columns = tuple(column_utility(sides, policy, name) for name in told)
    associations = associations_of(sides, columns, progress)
    chosen = chosen or strongest(columns, associations)
    progress("predict", 0, None)
    prediction, why = _prediction(sides, policy, told, target, lenient=lenient)
    return Utility(
        records_before=sides.before.records,
        records_after=sides.after.records,
        columns=columns,
        associations=associations,
        contingency=contingency_of(sides, chosen) if chosen else None,
        prediction=prediction,
        notes=(*notes, *_untold(columns), *why),
    )


def _names(policy: Policy, before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Name the columns that both tables have: quasi-identifiers, then sensitive ones, then others."""
    roles = policy.roles
    names = [*roles.quasi_identifiers, *roles.sensitive, *roles.of(Role.OTHER)]
    found = [name for name in names if name in before and set(policy.released(name)) <= set(after)]
    if not found:
        message = (
            "The table and the release have no column of the policy in common. Give a table, its release and "
            "the policy of both."
        )
        raise PolicyError(message)
    return found


def _check_target(policy: Policy, names: Sequence[str], target: str) -> None:
    """Refuse a target that is not in both tables or is generalized, and one that nothing can predict."""
    if target in policy.roles.quasi_identifiers:
        message = (
            f"The target {target!r} is a quasi-identifier, whose labels may be fewer after. Name a column "
            "that is released as it is."
        )
        raise UsageError(message)
    if target not in names:
        others = [name for name in names if name not in policy.roles.quasi_identifiers]
        raise UnknownName(target, "target", others)
    if not available():
        raise UsageError(NEEDED)


def _pair(names: Sequence[str], pair: Sequence[str] | None) -> tuple[str, str] | None:
    """Refuse a pair that is none."""
    if pair is None:
        return None
    for name in pair:
        if name not in names:
            raise UnknownName(name, "column of the pair", names)
    if len(pair) != 2 or pair[0] == pair[1]:
        message = f"A pair is two different columns, as age,sex; got {', '.join(map(repr, pair)) or 'none'}."
        raise UsageError(message)
    return pair[0], pair[1]


def _untold(columns: Sequence[ColumnUtility]) -> Iterator[str]:
    """Say why figures of some columns are missing."""
    means = [one.column for one in columns if one.mean_before is not None and one.mean_after is None]
    if means:
        yield (
            f"There is no mean after of {', '.join(means)}: some labels in the release are no numbers or "
            "bands, as * or `20-29 or missing`, or no number is left."
        )
    places = [one.column for one in columns if one.suppressed_shift is None]
    if places:
        yield (
            f"What is kept and the shift are not told of {', '.join(places)}: it cannot be said which values "
            "fall into which label, as where classes have labels of their own."
        )


def _prediction(
    sides: Sides, policy: Policy, told: Sequence[str], target: str | None, *, lenient: bool
) -> tuple[Prediction | None, tuple[str, ...]]:
    """Predict the target from the quasi-identifiers; where lenient, say what stands in the way."""
    if target is None:
        return None, ()
    features = [name for name in told if name in policy.roles.quasi_identifiers]
    try:
        if target not in told or not features:
            message = (
                f"The target {target!r} is not predicted: it is not in both tables, or alone. Name another."
            )
            raise DataError(message)
        return predicted(sides, target, features), ()
    except UsageError as error:
        if not lenient:
            raise
        return None, (str(error),)
