"""Profiles: tables of how many records each k, or l, suppresses at each node of the lattice."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.classes import is_sensitive_name
from shoal.core.compilation import compile_events
from shoal.core.contracts import Engine
from shoal.core.counts.diversity import Measure
from shoal.core.lattice.lattice import Index, Lattice
from shoal.core.problem import Problem
from shoal.core.progress import Progress, quiet
from shoal.document.document import Code, Document, Fact, HasDocument, Name
from shoal.document.document import Table as DocumentTable
from shoal.errors import DataError, UnknownName, UsageError, interruptible
from shoal.files.signals import keeping
from shoal.policy.limits import check_seconds
from shoal.policy.policy import Policy
from shoal.wording import percent, plural
from shoal.workflow.profile.grouping import (
    Grouping,
    best_nodes,
    check_ranking,
    check_size,
    grouping_of,
    share_of,
    slices,
)
from shoal.workflow.profile.source import (
    PolicyDefaults,
    PolicyModel,
    losses_kept,
    measures_in,
    metric_of,
    policy_defaults,
    source,
)
from shoal.workflow.profile.tables import (
    JointTable,
    SizeTable,
    joined_tables,
    joint_spread,
    joint_table,
    table_of,
)
from shoal.workflow.profile.tabulate import Tabulation, spread_of_classes
from shoal.workflow.release.recovery import load_policy
from shoal.workflow.session import AUTO

if TYPE_CHECKING:
    from shoal.workflow.profile.distribution import NodeDistribution
    from shoal.workflow.profile.negotiate import Negotiation
    from shoal.workflow.profile.offer import PrivacyLevel

_KEPT = 4_000_000  # maximum total length of the cached arrays


@dataclass(frozen=True)
class Profile(HasDocument):
    """For each node of a lattice, how the records spread over classes. It has no values of the data."""

    lattice: Lattice  # of the whole hierarchies, without the policy's limits on levels
    records: int
    combinations: int
    numbers: IntArray  # the tabulated nodes, by their number in the lattice
    tables: Mapping[str | None, SizeTable]  # by class size (None), and by distinct sensitive values
    losses: Mapping[str, tuple[FloatArray, ...]]  # by separable metric: the loss of each level of each column
    grouping: Grouping
    defaults: PolicyDefaults
    key: str = field(repr=False)  # the key with which `fingerprint` was computed from the input
    fingerprint: str
    problem: Problem | None = field(default=None, repr=False, compare=False)  # if the data is available
    stopped: bool = field(default=False, compare=False)  # by Ctrl-C, before all requested nodes were counted
    joints: Mapping[Measure, JointTable] = field(default_factory=dict)  # records by size and l of their class
    removable: tuple[str, ...] = ()  # columns whose top level is one group

    def __post_init__(self) -> None:
        """Make `numbers` read-only, as in a memory-mapped file, so that functions compile for one type."""
        self.numbers.flags.writeable = False

    @property
    def complete(self) -> bool:
        """Whether every node is tabulated."""
        return len(self.numbers) == self.lattice.size

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns for which l is tabulated."""
        return tuple(name for name in self.tables if name is not None)

    def table(self, sensitive: str | None) -> SizeTable:
        """Return the table of one measure."""
        if sensitive not in self.tables:
            raise UnknownName(str(sensitive), "sensitive column of the profile", self.sensitive)
        return self.tables[sensitive]

    def by_node(self, least: int, sensitive: str | None = None) -> IntArray:
        """Return how many records k (or, for a sensitive column, l) suppresses at each tabulated node."""
        least = min(least, self.records + 1)  # records + 1 suppresses all records
        known = self._suppressed_cache.get((least, sensitive))
        if known is None:
            known = self.table(sensitive).suppressed(least, self.records)
            self._keep((least, sensitive), known)
        return known

    def _keep(self, key: object, known: IntArray) -> None:
        while self._suppressed_cache and (len(self._suppressed_cache) + 1) * len(known) > _KEPT:
            del self._suppressed_cache[next(iter(self._suppressed_cache))]
        self._suppressed_cache[key] = known

    @cached_property
    def _suppressed_cache(self) -> dict[object, IntArray]:
        return {}

    def by_privacy(self, privacy: PrivacyLevel) -> IntArray:
        """Return the number of records that a k, an l or both suppress at each tabulated node."""
        k, l, column = privacy.k, privacy.l, privacy.sensitive
        if l is None:
            return self.by_node(k or 1)
        if k is None and privacy.diversity == "distinct":
            return self.by_node(int(l), column)
        measure = self.measure(privacy)
        known = self._suppressed_cache.get(privacy)
        if known is None:
            least = min(k or 1, self.records + 1)
            known = self.joints[measure].suppressed(least, measure.diversity.in_steps(l))
            self._keep(privacy, known)
        return known

    def measure(self, privacy: PrivacyLevel) -> Measure:
        """Return the measure for the l of a privacy level."""
        from shoal.workflow.profile.offer import measure_of

        beside_k = privacy.k is not None
        return measure_of(self, privacy.sensitive, privacy.diversity, privacy.c, beside_k=beside_k)

    def suppressed(self, least: int, sensitive: str | None = None) -> IntArray:
        """Return how many records k (or, for a sensitive column, l) suppresses, in the lattice's shape.

        Nodes that are not tabulated have the value records + 1.
        """
        flat = np.full(self.lattice.size, self.records + 1, np.int64)
        flat[self.numbers] = self.by_node(least, sensitive)
        return flat.reshape(self.lattice.shape)

    @cached_property
    def classes(self) -> IntArray:
        """The classes of each node before suppression, in the lattice's shape; 0 if not tabulated."""
        flat = np.zeros(self.lattice.size, np.int64)
        flat[self.numbers] = self.tables[None].classes
        return flat.reshape(self.lattice.shape)

    @cached_property
    def levels(self) -> IntArray:
        """The level of each axis at each tabulated node, (nodes, axes)."""
        levels = np.stack(np.unravel_index(self.numbers, self.lattice.shape), axis=1).astype(np.int16)
        return np.ascontiguousarray(levels)

    @cached_property
    def heights(self) -> IntArray:
        """The height of each tabulated node."""
        members = [len(axis) for axis in self.lattice.axes]
        heights: IntArray = self.levels.astype(np.int64) @ np.array(members)
        return heights

    @cached_property
    def merged(self) -> IntArray:
        """The negated number of classes of each tabulated node: smaller means more classes."""
        return -self.tables[None].classes.astype(np.int64)

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        order = np.argsort(self.numbers)
        return order, self.numbers[order]

    def row_of(self, index: Index) -> int | None:
        """Return the row of a node of the lattice in the tables."""
        number = int(np.ravel_multi_index(index, self.lattice.shape))
        order, numbers = self._sorted
        position = int(np.searchsorted(numbers, number))
        return int(order[position]) if position < len(order) and numbers[position] == number else None

    def loss(self, metric: str) -> FloatArray:
        """Return a separable metric's loss of every node, assuming that no record is suppressed."""
        losses: FloatArray = metric_of(metric).total(self.lattice.sums(self._loss_parts(metric)))
        return losses

    def loss_by_node(self, metric: str) -> FloatArray:
        """Return a separable metric's loss of each tabulated node."""
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
        """Rank the tabulated nodes by height or by a metric's loss, and return the loss. Rank 0 is best."""
        if metric is None:
            return self.heights, None
        if metric not in self._ranks:
            losses = self.loss_by_node(metric)
            order = np.argsort(losses, kind="stable")
            higher = np.diff(losses[order]) > 1e-12 * np.abs(losses[order[1:]])  # less is a tie
            rank = np.empty(len(order), np.int64)
            rank[order] = np.concatenate([[0], np.cumsum(higher)])
            self._ranks[metric] = rank, losses
        return self._ranks[metric]

    @cached_property
    def _ranks(self) -> dict[str, tuple[IntArray, FloatArray]]:
        return {}

    def negotiate(self, **options: Any) -> Negotiation:
        """Answer a request, or suggest what works: see shoal.workflow.profile.negotiate.negotiate."""
        from shoal.workflow.profile.negotiate import negotiate

        return negotiate(self, **options)

    def distribution(self, node: Mapping[str, int], **marks: Any) -> NodeDistribution:
        """Return how the records of one node spread over class sizes.

        `node` has levels by column, {"age": 2}; a column without a level is at level 0. `marks` are k, l and
        suppression_limit, which the histograms mark.
        """
        from shoal.workflow.profile.distribution import distribution

        return distribution(self, node, **marks)

    @property
    def tabulated(self) -> tuple[str, ...]:
        """The measures that requests can use. k and l can be combined, unless `unanswered` lists this."""
        others = [measure.label for measure in self.joints if measure.diversity.kind != "distinct"]
        return ("k", *[f"l of {name}" for name in self.sensitive], *others)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The policy's models that requests cannot use, and "k and l together" if not tabulated."""
        models = [model for model in self.defaults.models if not self._answers(model)]
        names = [f"{model.name} of {model.column}" if model.column else model.name for model in models]
        together = ["k and l together"] if self.sensitive and not self.joints else []
        return tuple(dict.fromkeys([*names, *together]))

    def _answers(self, model: PolicyModel) -> bool:
        if model.name == "k-anonymity":
            return model.column is None  # the units of a column are not counted
        if model.name == "distinct-l-diversity":
            return True
        return any(measure.diversity.model == model.name for measure in self.joints)

    def best(self, share: float | str, score: str = "weighted-log", by: str = "height") -> Profile:
        """Return the profile with only the best share of its nodes; see shoal.profile."""
        check_ranking(score, by)
        selected = best_nodes(self.lattice, self.grouping, share, score, by)
        rows = np.flatnonzero(np.isin(self.numbers, selected))
        tables = {name: table.select(rows) for name, table in self.tables.items()}
        joints = {measure: joint.select(rows) for measure, joint in self.joints.items()}
        return replace(self, numbers=self.numbers[rows], tables=tables, joints=joints)

    @property
    def has_columns_to_count(self) -> bool:
        """Whether there is a column that no node drops alone. Answers without this column need the data."""
        single_columns = {self.lattice.columns[axis[0]] for axis in self.lattice.axes if len(axis) == 1}
        return not set(self.lattice.columns) <= single_columns & set(self.removable)

    def without(self, columns: tuple[str, ...]) -> Profile | None:
        """Return the profile of the other columns; None if it is too large or the data is not available."""
        from shoal.workflow.profile.dropped import profile_without

        if columns not in self._without:
            self._without[columns] = profile_without(self, columns)
        return self._without[columns]

    @cached_property
    def _without(self) -> dict[tuple[str, ...], Profile | None]:
        return {}

    def with_node(self, index: Index) -> Profile:
        """Return the profile with one more node, counted now; this needs the data."""
        if self.problem is None:
            raise UsageError(
                "To count a node that the profile lacks the data is needed: give the table and the policy."
            )
        classes = self.problem.classes(self.lattice.node(index))
        number = np.ravel_multi_index(index, self.lattice.shape)
        tables = {
            name: table.followed_by(table_of(spread_of_classes(classes, name)))
            for name, table in self.tables.items()
        }
        joints = {
            measure: joined_tables([joint, joint_table(joint_spread(classes.counts, measure))])
            for measure, joint in self.joints.items()
        }
        return replace(self, numbers=np.append(self.numbers, number), tables=tables, joints=joints)

    def with_data(
        self,
        table: Any,
        policy: Policy | Mapping[str, Any] | str | Path,
        *,
        engine: str | Engine = AUTO,
        memory_limit: str | None = None,
        progress: Progress | None = None,
    ) -> Profile:
        """Return the profile with its data attached, so that a request can count a missing node."""
        loaded, tell = load_policy(policy, engine), progress or quiet
        problem, fingerprint = source(table, loaded, engine, memory_limit, self.key, tell)
        if fingerprint != self.fingerprint:
            raise DataError(
                "The profile is of another table, or of other hierarchies. Name those it was made from."
            )
        return replace(self, problem=problem)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the profile to one file, which only its owner may read."""
        from shoal.workflow.profile.file import save

        return save(self, Path(path), force=force)

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Open a profile's file."""
        from shoal.workflow.profile.file import load

        return load(Path(path), cls)

    def plot(self, *, k: int | None = None, l: int | None = None, sensitive: str | None = None) -> Any:
        """Draw the least, mean and largest share suppressed at each height, as a figure of matplotlib.

        Settings that are not given are taken from the policy.
        """
        from shoal.document.figures import check_matplotlib, draw_all
        from shoal.workflow.profile.study import study, study_plots

        check_matplotlib()
        return draw_all(study_plots(study(self, k=k, l=l, sensitive=sensitive, requests=0))[:1])

    def document(self) -> Document:
        """Describe what is tabulated, and how to query the profile."""
        nodes, size, defaults = len(self.numbers), self.lattice.size, self.defaults
        share = "" if self.complete else f" ({percent(nodes / size)}); another node may be better"
        request = f"{defaults.text}, at most {plural(defaults.limit, 'record')} suppressed"
        heights = zip(self.lattice.columns, self.lattice.heights, strict=True)
        call = f'negotiate({defaults.model}={defaults.least}, suppression_limit="5%")'
        unanswered = self.unanswered
        return Document(
            title=f"Profile of {plural(self.records, 'record')} at {plural(nodes, 'node')}",
            facts=[
                Fact("records", "records", f"{self.records:,}"),
                Fact("combinations", "combinations", f"{self.combinations:,}"),
                Fact("nodes", "nodes", f"{nodes:,} of {size:,}{share}"),
                Fact("tabulated", "tabulated", ", ".join(self.tabulated)),
                *([Fact("unanswered", "not answered", ", ".join(unanswered))] if unanswered else []),
                Fact("request", "policy", request),
            ],
            tables=[
                DocumentTable(
                    "Highest level of each column",
                    ("column", "level"),
                    [(Name(name), str(height)) for name, height in heights],
                )
            ],
            hints=[("Ask: ", Code(call), ", or draw it: ", Code("plot()"), ".")],
        )


def profile(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    share: float | str | None = None,
    seconds: float | None = None,
    score: str = "weighted-log",
    by: str = "height",
    extend: Profile | str | Path | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Profile:
    """Tabulate the lattice of a table and a policy.

    All nodes are tabulated, or only the best `share`, or as many as `seconds` allow. With `by="height"`, the
    share is taken of each height (rounded up, so that every height has a node), and the best node of each
    height is counted first, then the second best, and so on. With `by="lattice"`, the share is taken of the
    whole lattice. The lattice covers the whole hierarchies. The policy's levels, k or l and limit are the
    defaults of requests. `extend` is a profile of the same table, or its file, to which nodes are added.
    Ctrl-C returns the nodes tabulated so far.
    """
    _check(share, seconds, score, by)
    if isinstance(extend, str | Path):
        extend = Profile.load(extend)
    policy = load_policy(policy, engine)
    tell = progress or quiet
    key = extend.key if extend else secrets.token_hex(32)
    problem, fingerprint = source(table, policy, engine, memory_limit, key, tell)
    if extend and extend.fingerprint != fingerprint:
        raise DataError("The profile to extend is of another table, or of other hierarchies. Make a new one.")
    with compile_events(tell):
        return tabulated(
            problem,
            policy_defaults(policy, problem),
            share=share,
            seconds=seconds,
            score=score,
            by=by,
            extend=extend,
            identity=(key, fingerprint),
            progress=tell,
        )


def tabulated(
    problem: Problem,
    defaults: PolicyDefaults,
    *,
    share: float | str | None = None,
    seconds: float | None = None,
    score: str = "weighted-log",
    by: str = "height",
    extend: Profile | None = None,
    identity: tuple[str, str] = ("", ""),  # a key, and the input's fingerprint with this key
    progress: Progress | None = None,
) -> Profile:
    """Tabulate a problem's lattice, or part of it."""
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    tell = progress or quiet
    lattice, counts = problem.lattice, problem.counts
    check_size(lattice, seconds)
    grouping = extend.grouping if extend else grouping_of(problem)
    tabulation = _tabulation(problem, defaults, extend)
    stopped = False
    try:
        with interruptible(), keeping():
            tell("tabulate", tabulation.nodes, None)
            for done, total in slices(tabulation, grouping, share, seconds, score, by):
                tell("tabulate", done, total)
                if time.monotonic() > deadline:
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
        losses={name: metric_of(name).table(problem) for name in losses_kept(defaults.metric)},
        grouping=grouping,
        defaults=defaults,
        key=identity[0],
        fingerprint=identity[1],
        problem=problem,
        stopped=stopped,
        joints=tabulation.joints(),
        removable=tuple(bound.name for bound in problem.hierarchies if len(bound.labels[-1]) == 1),
    )


def _tabulation(problem: Problem, defaults: PolicyDefaults, extend: Profile | None) -> Tabulation:
    sensitive = tuple(filter(is_sensitive_name, problem.counts.sensitive))
    others = [Measure(*measure) for measure in measures_in(defaults.models, sensitive)]
    if extend and (unknown := [other.label for other in others if other not in extend.joints]):
        raise UsageError(
            f"The profile to extend does not hold what the policy asks for: {', '.join(unknown)}. "
            "Make a new one."
        )
    tabulation = Tabulation(
        problem.counts, problem.hierarchies, problem.lattice, sensitive, problem.memory, others
    )
    if extend:
        tabulation.take(extend.numbers, extend.tables, extend.joints)
    return tabulation


def _check(share: float | str | None, seconds: float | None, score: str, by: str) -> None:
    check_seconds(seconds)
    if share is not None:
        share_of(share)
    check_ranking(score, by)
