"""Utility of a recoding that is not written yet, computed from the counts of its search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.core.counts.in_memory import InMemoryCounts
from shoal.core.hierarchy.hierarchy import MISSING
from shoal.policy.policy import Policy
from shoal.workflow.risk.exposure import Exposure, exposure_at
from shoal.workflow.search import Recoded
from shoal.workflow.utility.associations import Contingency, contingency_of
from shoal.workflow.utility.columns import ColumnUtility, column_utility
from shoal.workflow.utility.labels import CellText, label_of_ends
from shoal.workflow.utility.tally import Sides, Tally, sides_between


@dataclass(frozen=True)
class UnwrittenUtility:
    """The quasi-identifiers and the class sizes, before and after a recoding."""

    columns: tuple[ColumnUtility, ...]
    contingency: Contingency | None  # of two of the columns
    exposure: Exposure
    exposure_after: Exposure


def unwritten_utility(
    recoded: Recoded, policy: Policy, pair: Sequence[str] | None = None
) -> UnwrittenUtility:
    """Compare a table with its recoding; `pair` names two columns (default: the first two)."""
    sides = _sides(recoded, policy)
    names = list(sides.spreads)
    chosen = tuple(pair or names[:2])
    return UnwrittenUtility(
        columns=tuple(column_utility(sides, policy, name) for name in names),
        contingency=contingency_of(sides, (chosen[0], chosen[1])) if len(set(chosen)) == 2 else None,
        exposure=exposure_at(recoded.problem.counts),
        exposure_after=exposure_at(sides.after.counts),
    )


def _sides(recoded: Recoded, policy: Policy) -> Sides:
    rules = {rule.name: rule for rule in recoded.problem.hierarchies}
    fields = {name: (index,) for index, name in enumerate(rules)}
    before = {
        name: tuple(None if text == MISSING else text for text in rule.labels[0])
        for name, rule in rules.items()
    }
    counts, is_released = recoded.classes.counts.in_memory(), ~recoded.suppressed
    released = InMemoryCounts(counts.fields, counts.keys[:, is_released], counts.sizes[is_released], {})
    after = {name: _labels(recoded, index, before[name]) for index, name in enumerate(rules)}
    return sides_between(
        Tally(recoded.problem.counts, fields, before, {}, {}),
        Tally(released, fields, after, {}, {}),
        policy,
        rules,
    )


def _labels(recoded: Recoded, index: int, values: tuple[CellText, ...]) -> tuple[CellText, ...]:
    """Return the text of each group of a column."""
    labels = recoded.recoding.labels[index]
    if labels is None:
        return (*values, None)  # the group of blanked cells comes last
    texts = [[None if cell is None else str(cell) for cell in cells] for cells in labels.values()]
    if len(texts) == 1:
        return tuple(texts[0])
    return tuple(label_of_ends(low, high) for low, high in zip(*texts, strict=True))
