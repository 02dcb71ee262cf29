"""Evaluation: is a node acceptable, and at what loss? Each node once, counted, within a budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.batch import CORES, BatchCounter, room_for
from shoal.core.books import Books
from shoal.core.cells import Cells
from shoal.core.classes import Classes, Sensitive
from shoal.core.contracts import Guarantee, Metric, Model, When
from shoal.core.counts import Counts, of_sizes
from shoal.core.far import FarCounts
from shoal.core.far_hubs import hubs_over
from shoal.core.hierarchy import Hierarchy
from shoal.core.hubs import Hubs
from shoal.core.lattice import Lattice, Node
from shoal.core.memory import limit_of
from shoal.core.recoding import Recoding
from shoal.core.tags import nodes_of
from shoal.errors import OutOfTime

Progress = Callable[[str, int, int | None], None]  # phase, done, of how many


def quiet(_phase: str, _done: int, _total: int | None) -> None:
    """Tell nobody how far it is."""


LARGEST_HELD = 2_000_000  # nodes; a larger lattice is walked without arrays
_SLICE = 4096  # nodes counted between two looks at the clock
_WIDE = 200_000  # combinations; below, handing a node to another core costs more than counting it
_EQUAL = 1e-12  # losses this close, relatively, are a tie
_ROUNDING = 1e-9  # what sums of shares of a class may be off by


@dataclass(frozen=True)
class Problem:
    """What a search is given: counts, hierarchies, lattice and wishes; never the data."""

    counts: Counts
    hierarchies: tuple[Hierarchy, ...]
    lattice: Lattice
    models: tuple[Model, ...]
    metric: Metric
    limit: int  # records that may be suppressed
    weights: tuple[float, ...]
    about: Mapping[str, Sensitive] = field(default_factory=dict)
    as_bounds: tuple[str, ...] = ()  # columns released as the ends of their bands
    whole: Lattice | None = None  # where the lattice was narrowed to a wish: what it was before
    identifying: tuple[int, ...] = ()  # how identifying each column is, from 1 to 3; none: all alike
    memory: int = field(default_factory=lambda: limit_of(None))  # bytes that a search may take

    @property
    def records(self) -> int:
        """The number of records."""
        return self.counts.records

    @property
    def free(self) -> Lattice:
        """The levels that single classes may have, whatever the search was narrowed to."""
        return self.whole or self.lattice

    @cached_property
    def monotone_models(self) -> bool:
        """Whether everything above an acceptable node is acceptable."""
        return all(model.is_monotone(suppression=self.limit > 0) for model in self.models)

    @cached_property
    def monotone_metric(self) -> bool:
        """Whether the loss never falls going up."""
        return self.metric.monotone.given(self.limit > 0)

    @cached_property
    def least_size(self) -> int:
        """The records that every acceptable class has at least."""
        return max((model.least_size for model in self.models), default=1)

    @cached_property
    def value_counts(self) -> tuple[IntArray, ...]:
        """How many records have each value, per column."""
        return tuple(
            self.counts.totals(column, len(hierarchy.labels[0]))
            for column, hierarchy in enumerate(self.hierarchies)
        )

    def recoding(self, node: Node) -> Recoding:
        """Return the recoding of a node."""
        return Recoding.from_node(self.hierarchies, node, self.as_bounds)

    def classes(self, node: Node) -> Classes:
        """Return the classes at one node, rolled up in one pass; an Evaluator serves many nodes."""
        pairs = enumerate(zip(self.hierarchies, node, strict=True))
        groups = {column: hierarchy.groups(level) for column, (hierarchy, level) in pairs if level}
        counts = self.counts.roll_up(groups) if groups else self.counts
        return Classes(counts.near(), self.about)

    def classes_of(self, recoding: Recoding) -> Classes:
        """Return the classes that a recoding makes."""
        if recoding.regions is not None:
            return Classes(recoding.regions.counts(self.counts), self.about)
        return Classes(self.counts.roll_up(dict(enumerate(recoding.groups))).near(), self.about)

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes that some model refuses."""
        first, *others = self.models
        mask = first.violations(classes)
        for model in others:
            mask |= model.violations(classes)
        return mask

    def losses(self) -> FloatArray:
        """Return the separable metric's loss of every node, in the lattice's shape."""
        losses: FloatArray = self.metric.total(self.lattice.sums(self.metric.table(self)))
        return losses

    def loss_of(self, node: Node) -> float:
        """Return the separable metric's loss of one node."""
        parts = sum([column[level] for column, level in zip(self._table, node, strict=True)])
        return float(self.metric.total(parts))

    @cached_property
    def _table(self) -> tuple[list[float], ...]:
        return tuple(column.tolist() for column in self.metric.table(self))


@dataclass(frozen=True)
class Work:
    """What a search cost, independent of the machine."""

    nodes_evaluated: int = 0  # nodes of the full lattice
    nodes_tagged: int = 0  # nodes settled without being evaluated
    nodes_compared: int = 0  # nodes compared on loss
    subset_evaluations: int = 0  # counts over fewer columns
    rows_scanned: int = 0  # combinations read
    node_score: float = 0.0


@dataclass(frozen=True)
class Evaluation:
    """A node, or another recoding, judged; what a search returns also says what was proven and its cost."""

    node: Node  # where there is another recoding: the node that it began with, or none
    acceptable: bool
    suppressed: int  # records; of a refused node at least so many, for a refusal may stop early
    classes: int  # all, before suppression
    loss: float  # infinite where the node is refused
    bound: float  # no node above has a smaller loss
    hopeless: bool = False  # every node below is refused too
    recoding: Recoding | None = field(default=None, compare=False, repr=False)  # where it is no node
    proven: Guarantee = Guarantee.NONE
    candidates: tuple[Node, ...] = ()  # the nodes among which the metric chose
    work: Work = Work()
    lower_bound: float | None = None  # no recoding of this search's kind has a smaller loss

    @property
    def height(self) -> int:
        """The sum of the levels."""
        return sum(self.node)


def tie(one: float, other: float) -> bool:
    """Tell whether two losses are equal."""
    return one == other or abs(one - other) <= _EQUAL * max(abs(one), abs(other))


def better(one: Evaluation, other: Evaluation | None) -> bool:
    """Tell whether one is chosen over the other: loss, suppressed, height, lexicographic order."""
    if other is None:
        return True
    if not tie(one.loss, other.loss):
        return one.loss < other.loss
    return (one.suppressed, one.height, one.node) < (other.suppressed, other.height, other.node)


@overload
def below(loss: float, incumbent: float) -> bool: ...
@overload
def below(loss: FloatArray, incumbent: float) -> BoolArray: ...
def below(loss: Any, incumbent: float) -> Any:
    """Tell which losses are smaller than the incumbent's by more than a tie."""
    return loss < incumbent - _EQUAL * abs(incumbent) if np.isfinite(incumbent) else loss < incumbent


def in_whole_records(refused: FloatArray, classes: Classes) -> int:
    """Add up what is refused of each class, at least; records are refused whole."""
    return int(np.ceil(refused - _ROUNDING * (1 + classes.sizes)).sum())


def best(evaluations: Iterable[Evaluation]) -> Evaluation | None:
    """Return the acceptable evaluation that is better than all others."""
    found: Evaluation | None = None
    for evaluation in evaluations:
        if evaluation.acceptable and better(evaluation, found):
            found = evaluation
    return found


class Evaluator:
    """Judges nodes, each once, and keeps the books."""

    def __init__(
        self, problem: Problem, *, seconds: float | None = None, progress: Progress | None = None
    ) -> None:
        """Judge nodes of one problem within so many seconds."""
        self.problem = problem
        self.best: Evaluation | None = None
        self._known: dict[Node, Evaluation] = {}
        self._until = math.inf if seconds is None else time.monotonic() + seconds
        self._progress = progress
        self._told = 0.0
        self._nodes = 0
        self._everywhere = False  # every node was judged at once; what comes after are the same nodes
        self._books = Books()
        self.nodes_accepted = 0

    @cached_property
    def _hubs(self) -> Hubs:
        problem = self.problem
        return hubs_over(problem.counts, problem.hierarchies, self._books, problem.memory)

    @property
    def order(self) -> tuple[int, ...]:
        """The columns in the order in which nodes are rolled up."""
        return self._hubs.order

    @cached_property
    def walk(self) -> tuple[int, ...]:
        """The lattice's axes in the order in which nodes share most of their roll-ups."""
        axes = self.problem.lattice.axes
        rank = {column: place for place, column in enumerate(self.order)}
        return tuple(sorted(range(len(axes)), key=lambda axis: min(rank[c] for c in axes[axis])))

    @property
    def best_loss(self) -> float:
        """The least loss of the acceptable nodes judged so far."""
        return self.best.loss if self.best else math.inf

    @property
    def nodes_evaluated(self) -> int:
        """The number of nodes judged so far."""
        return self._nodes

    def __call__(self, node: Node) -> Evaluation:
        """Judge a node."""
        known = self._known.get(node)
        if known is None:
            self.check_time()
            known = self._note(self._judge(node)())
        return known

    def rolled(self, counts: Counts, groups: Mapping[int, IntArray], *, subset: bool = False) -> Counts:
        """Roll counts up; a search that walks its own way keeps its own counts.

        `subset` books a count over fewer columns that is not judged.
        """
        self.check_time()
        self._books.subset_evaluations += subset
        if not groups:
            return counts
        self._books.read(len(counts), len(groups))
        return counts.roll_up(groups)

    def judged(self, node: Node, counts: Counts) -> Evaluation:
        """Judge a node whose counts are at hand."""
        return self._known.get(node) or self._note(self._judgement(node, Classes(counts, self.problem.about)))

    def recoded(self, recoding: Recoding, node: Node = (), *, judged: bool = True) -> Evaluation:
        """Judge a recoding by regions, which says itself what it suppresses.

        A search that promises nothing has it measured only: it is not `judged`, and taken as it is.
        """
        problem = self.problem
        classes = problem.classes_of(recoding)
        gone = classes.nothing() if recoding.regions is None else recoding.regions.suppressed
        suppressed = int(classes.sizes[gone].sum())
        refused = judged and (problem.violations(classes) & ~gone).any()
        acceptable = not refused and self._acceptable(suppressed)
        if judged:
            acceptable = acceptable and all(model.holds(classes, gone) for model in problem.models)
        loss = problem.metric.loss(problem, recoding, classes, gone) if acceptable else math.inf
        self._books.made(len(classes))
        return Evaluation(node, acceptable, suppressed, len(classes), loss, loss, recoding=recoding)

    def book(self, rows: int, sets: int) -> None:
        """Book that a search itself counted so many sets of fewer columns, in so many rows each."""
        self._books.subset_evaluations += sets
        self._books.rows_scanned += rows * sets

    def holds(self, counts: Counts) -> bool:
        """Tell whether counts over fewer columns are acceptable."""
        classes = Classes(counts, self.problem.about)
        suppressed = int(classes.sizes[self.problem.violations(classes)].sum())
        self._books.made(len(counts))
        self._books.subset_evaluations += 1
        return self._acceptable(suppressed)

    def _acceptable(self, suppressed: int) -> bool:
        return suppressed <= self.problem.limit and suppressed < self.problem.records

    def _note(self, evaluation: Evaluation) -> Evaluation:
        if len(self._known) >= LARGEST_HELD // 10 and self.problem.lattice.size > LARGEST_HELD:
            self._known.clear()  # what is asked for again is asked for soon
        self._known[evaluation.node] = evaluation
        if not self._everywhere:
            self._nodes += 1
            self._books.made(evaluation.classes)
        if evaluation.acceptable:
            self.nodes_accepted += 1
            if better(evaluation, self.best):
                self.best = evaluation
        return evaluation

    def ahead(self, nodes: Sequence[Node]) -> None:
        """Judge nodes that will be asked for, on all cores; it pays where counts are `wide`."""
        fresh = [node for node in nodes if node not in self._known]
        if len(fresh) < 2:
            return
        self.check_time()
        for evaluation in self._pool.map(lambda judge: judge(), list(map(self._judge, fresh))):
            self._note(evaluation)

    @property
    def wide(self) -> bool:
        """Whether counting a node takes so long that other cores should help."""
        return len(self.problem.counts) >= _WIDE

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(CORES)

    def _judge(self, node: Node) -> Callable[[], Evaluation]:
        """Prepare a node's evaluation; what is left to do may run beside others."""
        cells = self._cells
        if not self.problem.counts.held:
            there = self._judged_there(node)
            return lambda: there
        if not cells or not cells.fits(node):
            found = self._judgement(node, self.classes(node))
            return lambda: found
        lower, counts = self._hubs.below(node)
        self._books.read(len(counts), sum([low < high for low, high in zip(lower, node, strict=True)]))
        if not self._by_size:
            sizes, short = cells.count(counts, lower, node, self.problem.least_size)
            # Too many are in small classes: whatever the other models say, this refuses the node.
            known = short if short > self.problem.limit else None
            found = self._judgement(
                node, self.classes(node) if known is None else Classes(of_sizes(sizes)), known
            )
            return lambda: found

        def finish() -> Evaluation:
            sizes, short = cells.count(counts, lower, node, self.problem.least_size)
            return self._judgement(node, Classes(of_sizes(sizes)), short)

        return finish

    def _judged_there(self, node: Node) -> Evaluation:
        """Judge a node that may be counted in the engine: how many records lie in small classes may do."""
        counts, known = self._hubs.counts(node), None
        if isinstance(counts, FarCounts):
            short = counts.short(self.problem.least_size)
            if self._by_size or (self._bounded and not self._acceptable(short)):
                known = short
            else:
                counts = counts.near()
        elif self._by_size:
            known = int(counts.sizes[counts.sizes < self.problem.least_size].sum())
        return self._judgement(node, Classes(counts, self.problem.about), known)

    def _judgement(self, node: Node, classes: Classes, suppressed: int | None = None) -> Evaluation:
        """Judge classes; what their sizes alone suppress may be known, where that settles it."""
        problem = self.problem
        mask = None
        if suppressed is None:
            mask = problem.violations(classes)
            suppressed = int(classes.sizes[mask].sum())
        acceptable = self._acceptable(suppressed)
        if acceptable and mask is not None:
            acceptable = all(model.holds(classes, mask) for model in problem.models)
        hopeless = not acceptable and (problem.monotone_models or mask is None or self._hopeless(classes))
        bound, loss = self._losses(node, classes, mask, acceptable)
        return Evaluation(node, acceptable, suppressed, len(classes), loss, bound, hopeless)

    def _hopeless(self, classes: Classes) -> bool:
        """Tell whether more than the limit, or everything, is refused here and at every node below."""
        certain = np.max([model.unavoidable(classes) for model in self.problem.models], axis=0)
        return not self._acceptable(in_whole_records(certain, classes))

    @cached_property
    def _by_size(self) -> bool:
        """Whether the sizes of classes settle everything."""
        metric = self.problem.metric
        enough = metric.by_size or metric.separable.given(self.problem.limit > 0)
        return enough and all(model.sizes_suffice for model in self.problem.models)

    @property
    def _bounded(self) -> bool:
        """Whether the sizes of classes settle the bound of a refused node."""
        metric = self.problem.metric
        return metric.by_size or metric.separable is not When.NEVER

    @cached_property
    def _cells(self) -> Cells | None:
        """What counts a node's class sizes, where they may settle it and keys fit one word."""
        problem = self.problem
        if not self._bounded or problem.counts.words > 1:
            return None
        refuses = problem.least_size > 1 and problem.limit < problem.records  # else sizes refuse nothing
        if not (self._by_size or refuses):
            return None
        return Cells(problem.counts, problem.hierarchies)

    @cached_property
    def _batches(self) -> BatchCounter | None:
        """What counts many nodes at once, where models look at sizes alone and keys fit one word."""
        problem = self.problem
        counts = problem.counts
        if not counts.held or counts.words > 1 or not all(model.sizes_suffice for model in problem.models):
            return None
        if room_for(counts, problem.lattice) > problem.memory // 2:
            return None
        return BatchCounter(problem.counts, problem.hierarchies, problem.lattice, self.walk)

    def acceptable_everywhere(self) -> BoolArray | None:
        """Judge all nodes at once without keeping what was found of each, where that can be done."""
        problem = self.problem
        known = problem.metric.separable.given(problem.limit > 0)  # else each is counted again for its loss
        if not known or self._batches is None or problem.lattice.size > LARGEST_HELD:
            return None
        shape = problem.lattice.shape
        turned = [shape[axis] for axis in self.walk]
        accepted = np.zeros(shape, np.bool_)
        for start in range(0, problem.lattice.size, _SLICE):
            self.check_time(done=start)
            numbers = np.arange(start, min(start + _SLICE, problem.lattice.size))
            indices = np.empty((len(numbers), len(shape)), np.int64)
            indices[:, self.walk] = np.stack(np.unravel_index(numbers, turned), axis=1)
            found = self._batches.count(indices, problem.least_size)
            accepted[tuple(indices.T)] = (found.short <= problem.limit) & (found.short < problem.records)
            self._books.rows_scanned += found.rows_scanned
            self._books.score += found.cost + float((found.classes * np.log2(found.classes)).sum())
            self._nodes = max(self._nodes, start + len(numbers))
        self._everywhere = True
        return accepted

    def best_of(self, accepted: BoolArray) -> Evaluation | None:
        """Compare acceptable nodes on loss; only those are counted whose loss must be."""
        problem, lattice = self.problem, self.problem.lattice
        if accepted.any() and problem.metric.separable.given(problem.limit > 0):
            losses = np.where(accepted, problem.losses(), np.inf)
            accepted = losses <= losses.min() * (1 + 1e-9)  # evaluated next, which settles ties
        return best(self(node) for node in nodes_of(lattice, accepted))

    def _losses(
        self, node: Node, classes: Classes, mask: BoolArray | None, acceptable: bool
    ) -> tuple[float, float]:
        """Return the loss without suppression and, where the node is acceptable, with it."""
        problem = self.problem
        metric = problem.metric
        if metric.separable.given(problem.limit > 0):
            loss = problem.loss_of(node)
            return loss, loss if acceptable else math.inf
        recoding = problem.recoding(node)
        if metric.separable is When.NEVER:
            bound = metric.loss(problem, recoding, classes, classes.nothing())
        else:
            bound = problem.loss_of(node)
        if not acceptable:
            return bound, math.inf
        mask = problem.violations(classes) if mask is None else mask
        return bound, metric.loss(problem, recoding, classes, mask) if mask.any() else bound

    def classes(self, node: Node) -> Classes:
        """Return the classes at a node, without judging them."""
        return Classes(self._hubs.counts(node).near(), self.problem.about)

    def check_time(self, done: int | None = None) -> None:
        """Raise OutOfTime where the time is up, and tell how far the search is."""
        now = time.monotonic()
        if now > self._until:
            raise OutOfTime
        if self._progress and now - self._told > 0.05:
            self._told = now
            self._progress("search", self._nodes if done is None else done, self.problem.lattice.size)

    def finish(
        self,
        chosen: Evaluation,
        proven: Guarantee,
        candidates: Sequence[Node] = (),
        *,
        tagged: int = 0,
        compared: int = 0,
    ) -> Evaluation:
        """Return the chosen evaluation with what was proven and what it cost."""
        _ = self._hubs  # ordering the columns is booked for every search alike
        books = self._books
        work = Work(
            nodes_evaluated=self._nodes,
            nodes_tagged=tagged,
            nodes_compared=compared,
            subset_evaluations=books.subset_evaluations,
            rows_scanned=books.rows_scanned,
            node_score=books.score,
        )
        return replace(chosen, proven=proven, candidates=tuple(candidates), work=work)
