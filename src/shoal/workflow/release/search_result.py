"""The result of a search: the recoding with its labels and losses, and what unchanged columns reveal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Counts, Domain
from shoal.core.evaluation import Evaluation
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.problem import Problem
from shoal.core.recoding.groups import CellValue, in_order
from shoal.core.recoding.recoding import Recoding
from shoal.document.document import PlainValues
from shoal.errors import DataError, HierarchyError, InternalError, PolicyError, ReleaseRefused, ShoalError
from shoal.policy.policy import Policy
from shoal.wording import plural
from shoal.workflow.problem import counted
from shoal.workflow.release.codebook import ColumnLoss, count_lost_values, losses_of
from shoal.workflow.search import Recoded, recode
from shoal.workflow.session import OpenTable

EMPTY_CELL = "(empty)"  # the label of a cell that is released without a value
FileState = tuple[tuple[str, int, int, int], ...]


class ChangeGuard:
    """Detects changes of an input file during a run, and reports them instead of the errors they cause."""

    def __init__(self, source: Any) -> None:
        self.path = Path(source) if isinstance(source, str | Path) else None
        self._before = self._state()

    def check(self) -> None:
        """Raise DataError if the file was changed or removed."""
        now = self._state()
        if self._before and not now:
            raise DataError(f"{str(self.path)!r} was removed while it was read. Put it back and run again.")
        if now != self._before:
            raise table_changed(repr(str(self.path)))

    def __enter__(self) -> ChangeGuard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise DataError in place of another error if the file was changed."""
        if isinstance(error, DataError | HierarchyError | InternalError | PolicyError):
            try:
                self.check()
            except DataError as reason:
                raise reason from None

    def _state(self) -> FileState:
        """Return name, inode, size and modification time of each file; empty if the source is not a file."""
        if self.path is None:
            return ()
        try:
            files = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
            stats = [(str(file), file.stat()) for file in files]
        except OSError:
            return ()
        return tuple((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def table_changed(name: str = "The table") -> DataError:
    """Return the error for a table that was changed while it was read."""
    return DataError(
        f"{name} was changed while it was read, so nothing was released. Run again when nothing writes to "
        "it, or give a copy."
    )


def recount_differs(table: OpenTable, policy: Policy, counts: Counts, domains: Mapping[str, Domain]) -> bool:
    """Count a table again and return whether the counts differ; False if it cannot be counted."""
    try:
        now, values = counted(table, policy)
    except ShoalError:
        return False
    texts = {name: domain.texts for name, domain in domains.items()}
    if texts != {name: domain.texts for name, domain in values.items()}:
        return True
    return list(counts.fingerprint_parts()) != list(now.fingerprint_parts())


_PLURALS = {False: "records are", True: "persons are"}


@dataclass(frozen=True)
class Revealed(PlainValues):
    """An unchanged column that reveals a generalized one."""

    column: str
    reveals: str
    level: int  # in the hierarchy of the revealed column; 0 is the value itself
    records: int  # the number of records whose finer value it reveals
    share: float  # `records` as a share of all whose finer value is hidden, by a label or by masking

    @property
    def message(self) -> str:
        """What is revealed, for how many records, and what to do about it."""
        finer = "the original value" if self.level == 0 else f"the value at level {self.level}"
        return (
            f"{self.column!r} is released unchanged and reveals {self.reveals!r}: it determines {finer}, "
            f"which the release hides, for {plural(self.records, 'record')} ({self.share:.0%} of the "
            f"records that hide it). Give {self.column!r} the role quasi-identifier or identifier."
        )


@dataclass(frozen=True)
class Unchanged:
    """What the columns that are released unchanged reveal together with the quasi-identifiers."""

    revealed: tuple[Revealed, ...] = ()
    unique: int | None = None  # records, or persons, unique by all released columns; None if not counted
    by_unit: bool = False  # whether `unique` counts persons

    @property
    def sentence(self) -> str:
        """The number of records or persons that are unique for someone who knows all released columns."""
        if self.unique is None:
            return "This engine cannot count the records that are unique by all released columns."
        subject = plural(self.unique, "person is" if self.by_unit else "record is", _PLURALS[self.by_unit])
        return (
            f"{subject} unique for someone who knows every released column, including those released "
            "unchanged."
        )


def refuse_if_revealed(unchanged: Unchanged, fail: Iterable[str]) -> None:
    """Raise ReleaseRefused if `fail` has "revealed" and a column reveals another or was not checked."""
    if "revealed" not in fail:
        return
    if unchanged.unique is None:
        raise ReleaseRefused(
            "The policy has fail: [revealed], and this engine cannot count what unchanged columns reveal. "
            "Nothing was released. Use another engine, or remove revealed from fail."
        )
    if unchanged.revealed:
        messages = " ".join(finding.message for finding in unchanged.revealed)
        raise ReleaseRefused(
            f"Nothing was released, because the policy has fail: [revealed]. {messages}",
            {"revealed": [finding.to_dict() for finding in unchanged.revealed]},
        )


@dataclass(frozen=True)
class SearchOutcome:
    """A problem and the evaluation that was chosen for it."""

    problem: Problem
    algorithm: str
    evaluation: Evaluation
    raised: Mapping[str, tuple[int, int]]  # by column: its level in the recipe, and the level that it needs
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchResult:
    """The recoding that a search found, and its effect on the table."""

    opened: OpenTable
    domains: Mapping[str, Domain]
    problem: Problem
    algorithm: str
    evaluation: Evaluation
    recoding: Recoding
    labels: Mapping[str, tuple[str, ...]]
    remaining_classes: tuple[int, int]  # the number of classes, and the size of the smallest
    masks: bool  # whether suppressed records are kept and masked
    losses: Mapping[str, ColumnLoss]
    lost_values: Mapping[str, int]  # by column: the number of values that no released record has
    recoded: Recoded
    notes: tuple[str, ...] = ()  # for the custodian
    unchanged: Unchanged = field(default_factory=Unchanged)
    raised: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # by column: old and new level

    @property
    def records(self) -> int:
        """The number of records of the release."""
        return self.problem.records - (0 if self.masks else self.evaluation.suppressed)


def search_result(
    opened: OpenTable,
    domains: Mapping[str, Domain],
    problem: Problem,
    algorithm: str,
    evaluation: Evaluation,
    *,
    mask: bool,
    labelled: Counts | None = None,
) -> SearchResult:
    """Derive labels, losses and lost values from a recoding; with `mask`, mask records if possible.

    If the search used counts without the label column, `labelled` are the counts with it.
    """
    recoded = replace(recode(problem, evaluation), labelled=labelled)
    recoding, classes, suppressed = recoded.recoding, recoded.classes, recoded.suppressed
    labels = {
        hierarchy.name: _labels(hierarchy, recoding, column, classes.counts.codes(column)[~suppressed])
        for column, hierarchy in enumerate(problem.hierarchies)
    }
    sizes = classes.sizes[~suppressed]
    remaining_classes = len(sizes), int(sizes.min())
    masks = mask and recoded.can_mask(domains)
    losses = losses_of(problem, recoding, classes, suppressed)
    lost_values = count_lost_values(problem, recoding, classes, suppressed)
    if problem.counts.remote:
        _ = recoded.losses  # must be computed while the engine is open
    derived = labels, remaining_classes, masks, losses, lost_values, recoded
    return SearchResult(opened, domains, problem, algorithm, evaluation, recoding, *derived)


def _labels(hierarchy: Hierarchy, recoding: Recoding, column: int, codes: IntArray) -> tuple[str, ...]:
    groups = np.flatnonzero(np.bincount(codes))
    if recoding.node is not None:
        level = recoding.node[column]
        return tuple(hierarchy.labels[level][group] for group in hierarchy.ordered(level, groups))
    ordered = in_order(hierarchy, recoding.column_groups[column], groups.tolist())
    shown = recoding.labels[column]
    if shown is None:
        values = hierarchy.labels[0]
        if recoding.separate_column:
            return values  # with a second table, all values are released
        return tuple(values[code] for code in ordered if code < len(values))
    return tuple(_in_words([ends[code] for ends in shown.values()]) for code in ordered)


def _in_words(bounds: Sequence[CellValue]) -> str:
    """Format a label, or a lower and an upper bound, each of which may be None.

    >>> [_in_words(ends) for ends in (["20-29"], [20, 29], [42, 42], [90, None], [None, 19], [None, None])]
    ['20-29', '20 to 29', '42', 'from 90', 'up to 19', '(empty)']
    """
    lower, upper = bounds[0], bounds[-1]
    if lower == upper:
        return EMPTY_CELL if lower is None else str(lower)
    if lower is None:
        return f"up to {upper}"
    return f"from {lower}" if upper is None else f"{lower} to {upper}"
