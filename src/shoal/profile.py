"""Profile: what every k, or l, suppresses at every node of the lattice, tabulated once, looked up at once."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.choose import AUTO
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.classes import own_name
from shoal.core.contracts import Engine
from shoal.core.lattice import Index, Lattice
from shoal.core.problem import Problem
from shoal.core.progress import Progress, quiet
from shoal.core.tabulate import Table, Tabulation, spread_of_classes, table_of
from shoal.core.warm import to_tabulate
from shoal.errors import DataError, UnknownName, UsageError, interruptible
from shoal.policy import Policy
from shoal.profiling.grouping import SCORES, Grouping, grouping_of, ranked, share_of
from shoal.profiling.order import check_size, slices
from shoal.profiling.separable import losses_kept, metric_of
from shoal.profiling.source import PolicyWish, source, wish_of

if TYPE_CHECKING:
    from shoal.negotiate import Negotiation

_KEPT = 4_000_000  # numbers of the last strengths asked for that are kept


@dataclass(frozen=True)
class Profile:
    """The counts of a lattice: of each node, how records spread over classes. No value of the data."""

    lattice: Lattice  # of the whole hierarchies
    records: int
    combinations: int
    numbers: IntArray  # the nodes tabulated, by their place in the lattice
    tables: Mapping[str | None, Table]  # by size (None), and by distinct values of each sensitive column
    losses: Mapping[str, tuple[FloatArray, ...]]  # each separable metric's part of each column and level
    grouping: Grouping
    wish: PolicyWish
    key: str = field(repr=False)  # under which the input's fingerprint is made
    fingerprint: str
    problem: Problem | None = field(default=None, repr=False, compare=False)  # where the data is at hand
    stopped: bool = field(default=False, compare=False)  # by Ctrl-C, before all that was asked for

    def __post_init__(self) -> None:
        """Let the nodes stay as they are, as what a file maps does: compiled code knows one kind."""
        self.numbers.flags.writeable = False

    @property
    def complete(self) -> bool:
        """Whether every node is tabulated."""
        return len(self.numbers) == self.lattice.size

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns for which l is tabulated."""
        return tuple(name for name in self.tables if name is not None)

    def table(self, sensitive: str | None) -> Table:
        """Return the table of one measure."""
        if sensitive not in self.tables:
            raise UnknownName(str(sensitive), "sensitive column of the profile", self.sensitive)
        return self.tables[sensitive]

    def by_node(self, least: int, sensitive: str | None = None) -> IntArray:
        """Return what k (or, for a sensitive column, l) suppresses at each node tabulated."""
        least = min(least, self.records + 1)  # which suppresses all of them
        known = self._kept.get((least, sensitive))
        if known is None:
            known = self.table(sensitive).suppressed(least, self.records)
            while self._kept and (len(self._kept) + 1) * len(known) > _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[least, sensitive] = known
        return known

    @cached_property
    def _kept(self) -> dict[tuple[int, str | None], IntArray]:
        return {}

    def suppressed(self, least: int, sensitive: str | None = None) -> IntArray:
        """Return what k (or, for a sensitive column, l) suppresses at each node, in the lattice's shape.

        A node that is not tabulated has one more than all records.
        """
        flat = np.full(self.lattice.size, self.records + 1, np.int64)
        flat[self.numbers] = self.by_node(least, sensitive)
        return flat.reshape(self.lattice.shape)

    @cached_property
    def classes(self) -> IntArray:
        """The classes of each node, all of them, in the lattice's shape; 0 where it is not tabulated."""
        flat = np.zeros(self.lattice.size, np.int64)
        flat[self.numbers] = self.tables[None].classes
        return flat.reshape(self.lattice.shape)

    @cached_property
    def levels(self) -> IntArray:
        """The level of each axis at each node tabulated, (nodes, axes)."""
        found = np.stack(np.unravel_index(self.numbers, self.lattice.shape), axis=1).astype(np.int16)
        return np.ascontiguousarray(found)

    @cached_property
    def heights(self) -> IntArray:
        """The height of each node tabulated."""
        members = [len(axis) for axis in self.lattice.axes]
        heights: IntArray = self.levels.astype(np.int64) @ np.array(members)
        return heights

    @cached_property
    def merged(self) -> IntArray:
        """The classes of each node tabulated, below 0: the fewer, the more classes."""
        return -self.tables[None].classes.astype(np.int64)

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        order = np.argsort(self.numbers)
        return order, self.numbers[order]

    def place(self, index: Index) -> int | None:
        """Return where a node of the lattice stands in the tables."""
        number = int(np.ravel_multi_index(index, self.lattice.shape))
        order, numbers = self._sorted
        at = int(np.searchsorted(numbers, number))
        return int(order[at]) if at < len(order) and numbers[at] == number else None

    def loss(self, metric: str) -> FloatArray:
        """Return a separable metric's loss of every node, where nothing is suppressed if it counts that."""
        losses: FloatArray = metric_of(metric).total(self.lattice.sums(self._loss_parts(metric)))
        return losses

    def loss_by_node(self, metric: str) -> FloatArray:
        """Return a separable metric's loss of each node tabulated."""
        parts = self._loss_parts(metric)
        total = np.zeros(len(self.numbers))
        for axis, members in enumerate(self.lattice.axes):
            for column in members:
                total += parts[column][self.levels[:, axis]]
        losses: FloatArray = metric_of(metric).total(total)
        return losses

    def _loss_parts(self, metric: str) -> tuple[FloatArray, ...]:
        if metric not in self.losses:
            raise UnknownName(metric, "separable metric", self.losses)
        return self.losses[metric]

    def ranks(self, metric: str | None) -> tuple[IntArray, FloatArray | None]:
        """Rank the nodes tabulated, by height or by the loss that comes along; the least is the best."""
        if metric is None:
            return self.heights, None
        if metric not in self._ranks:
            losses = self.loss_by_node(metric)
            order = np.argsort(losses, kind="stable")
            higher = np.diff(losses[order]) > 1e-12 * np.abs(losses[order[1:]])  # else a tie
            rank = np.empty(len(order), np.int64)
            rank[order] = np.concatenate([[0], np.cumsum(higher)])
            self._ranks[metric] = rank, losses
        return self._ranks[metric]

    @cached_property
    def _ranks(self) -> dict[str, tuple[IntArray, FloatArray]]:
        return {}

    def negotiate(self, **wishes: Any) -> Negotiation:
        """Answer a request, or suggest what would do: see shoal.negotiate.negotiate."""
        from shoal.negotiate import negotiate

        return negotiate(self, **wishes)

    def best(self, share: float | str, score: str = "weighted-log") -> Profile:
        """Return the profile that has only the best share of the lattice, as far as it is tabulated."""
        if score not in SCORES:
            raise UnknownName(score, "score", SCORES)
        order = ranked(self.lattice, self.grouping, score)
        wanted = order[: math.ceil(share_of(share) * self.lattice.size)]
        places = np.flatnonzero(np.isin(self.numbers, wanted))
        tables = {name: table.some(places) for name, table in self.tables.items()}
        return replace(self, numbers=self.numbers[places], tables=tables)

    def with_node(self, index: Index) -> Profile:
        """Return the profile with one more node, counted now; the data must be at hand."""
        if self.problem is None:
            message = "To count a node at the request the data is needed: give the table and the policy."
            raise UsageError(message)
        classes = self.problem.classes(self.lattice.node(index))
        number = np.ravel_multi_index(index, self.lattice.shape)
        tables = {
            name: table.and_(table_of(spread_of_classes(classes, name)))
            for name, table in self.tables.items()
        }
        return replace(self, numbers=np.append(self.numbers, number), tables=tables)

    def with_data(
        self,
        table: Any,
        policy: Policy | Mapping[str, Any] | str | Path,
        *,
        engine: str | Engine = AUTO,
        memory_limit: str | None = None,
        progress: Progress | None = None,
    ) -> Profile:
        """Return the profile with its data at hand, so that a request can count a node that is missing."""
        loaded, tell = Policy.load(policy), progress or quiet
        problem, told = source(table, loaded, engine, memory_limit, self.key, tell)
        if told != self.fingerprint:
            message = "The profile is of another table, or of other hierarchies. Name those it was made from."
            raise DataError(message)
        return replace(self, problem=problem)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the profile to one file, which only its owner may read."""
        from shoal.profiling.file import save

        return save(self, Path(path), force=force)

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Open a profile's file."""
        from shoal.profiling.file import load

        return load(Path(path), cls)

    def plot(self, *, k: int | None = None, l: int | None = None, sensitive: str | None = None) -> Any:
        """Draw the least, mean and largest share suppressed at each height, as a figure of matplotlib.

        What is left out is the policy's wish.
        """
        from shoal.core.figure import check_matplotlib
        from shoal.plots import together
        from shoal.profiling.study_plots import study_plots
        from shoal.study import study

        check_matplotlib()
        return together(study_plots(study(self, k=k, l=l, sensitive=sensitive, requests=0))[:1])

    def _repr_html_(self) -> str:
        from shoal.notebook import profile_block

        return profile_block(self)


def profile(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    share: float | str | None = None,
    seconds: float | None = None,
    score: str = "weighted-log",
    extend: Profile | str | Path | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Profile:
    """Tabulate the lattice of a table and a policy: all of it, its best share, or what the seconds allow.

    The lattice is that of the whole hierarchies; the policy's levels, k or l and limit are the wishes that
    a request may leave out. `extend` goes on from a profile, or from its file, of the same table. Ctrl-C ends
    with what is tabulated by then.
    """
    _check(share, seconds, score)
    if isinstance(extend, str | Path):
        extend = Profile.load(extend)
    policy = Policy.load(policy)
    tell = progress or quiet
    key = extend.key if extend else secrets.token_hex(32)
    problem, told = source(table, policy, engine, memory_limit, key, tell)
    if extend and extend.fingerprint != told:
        message = "The profile to extend is of another table, or of other hierarchies. Make a new one."
        raise DataError(message)
    for place, compile_one in enumerate(waiting := to_tabulate()):
        tell("compile", place, len(waiting))
        compile_one()
    return tabulated(
        problem,
        wish_of(policy, problem),
        share=share,
        seconds=seconds,
        score=score,
        extend=extend,
        told=(key, told),
        progress=tell,
    )


def tabulated(
    problem: Problem,
    wish: PolicyWish,
    *,
    share: float | str | None = None,
    seconds: float | None = None,
    score: str = "weighted-log",
    extend: Profile | None = None,
    told: tuple[str, str] = ("", ""),  # a key, and the input's fingerprint under it
    progress: Progress | None = None,
) -> Profile:
    """Tabulate a problem's lattice, or part of it."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    tell = progress or quiet
    lattice, counts = problem.lattice, problem.counts
    check_size(lattice, seconds)
    grouping = extend.grouping if extend else grouping_of(problem)
    sensitive = tuple(filter(own_name, counts.sensitive))
    tabulation = Tabulation(counts, problem.hierarchies, lattice, sensitive, problem.memory)
    if extend:
        tabulation.take(extend.numbers, extend.tables)
    stopped = False
    try:
        with interruptible():
            tell("tabulate", tabulation.nodes, None)
            for done, total in slices(tabulation, grouping, share, seconds, score):
                tell("tabulate", done, total)
                if time.monotonic() > until:
                    break
    except KeyboardInterrupt:
        if not tabulation.nodes:
            raise
        stopped = True
    numbers, tables = tabulation.tables()
    return Profile(
        lattice=lattice,
        records=problem.records,
        combinations=len(counts),
        numbers=numbers,
        tables=tables,
        losses={name: metric_of(name).table(problem) for name in losses_kept(wish.metric)},
        grouping=grouping,
        wish=wish,
        key=told[0],
        fingerprint=told[1],
        problem=problem,
        stopped=stopped,
    )


def _check(share: float | str | None, seconds: float | None, score: str) -> None:
    if seconds is not None and (not isinstance(seconds, Real) or not seconds > 0):
        message = f"seconds must be a number above 0, got {seconds!r}."
        raise UsageError(message)
    if share is not None:
        share_of(share)
    if score not in SCORES:
        raise UnknownName(score, "score", SCORES)
