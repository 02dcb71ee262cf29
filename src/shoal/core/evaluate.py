"""The evaluator: judges nodes, each once, from counts rolled up, within a budget, and keeps the books."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.batch import CORES, BatchCounter, room_for
from shoal.core.books import Books
from shoal.core.cells import Cells
from shoal.core.classes import Classes
from shoal.core.contracts import Guarantee
from shoal.core.counts import Counts
from shoal.core.evaluation import Evaluation, Work, best, better
from shoal.core.far_hubs import hubs_over
from shoal.core.held import of_sizes
from shoal.core.hubs import Hubs
from shoal.core.judgement import judged, recoded
from shoal.core.lattice import Node
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.core.recoding import Recoding
from shoal.core.tags import nodes_of
from shoal.errors import OutOfTime

LARGEST_HELD = 2_000_000  # nodes; a larger lattice is walked without arrays
_SLICE = 4096  # nodes counted between two looks at the clock
_WIDE = 200_000  # combinations; below, handing a node to another core costs more than counting it


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
        return self._hubs.walk(self.problem.lattice)

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
        known = self._known.get(node)
        return known or self._note(judged(self.problem, node, Classes(counts, self.problem.about)))

    def recoded(self, recoding: Recoding, node: Node = (), *, judged: bool = True) -> Evaluation:
        """Judge a recoding by regions, which says itself what it suppresses.

        A search that promises nothing has it measured only: it is not `judged`, and taken as it is.
        """
        found = recoded(self.problem, recoding, node, asked=judged)
        self._books.made(found.classes)
        return found

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
        return self.problem.acceptable(suppressed)

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
        problem = self.problem
        if not problem.counts.held:
            there = self._judged_there(node)
            return lambda: there
        cells = self._cells
        if not cells or not cells.fits(node):
            found = judged(problem, node, self.classes(node))
            return lambda: found
        lower, counts = self._hubs.below(node)
        self._books.read(len(counts), sum([low < high for low, high in zip(lower, node, strict=True)]))
        if not problem.sizes_settle:
            sizes, short = cells.count(counts, lower, node, problem.least_size)
            # Too many are in small classes: whatever the other models say, this refuses the node.
            refused = short > problem.limit
            classes = Classes(of_sizes(sizes)) if refused else self.classes(node)
            found = judged(problem, node, classes, short if refused else None)
            return lambda: found

        def finish() -> Evaluation:
            sizes, short = cells.count(counts, lower, node, problem.least_size)
            return judged(problem, node, Classes(of_sizes(sizes)), short)

        return finish

    def _judged_there(self, node: Node) -> Evaluation:
        """Judge a node that may be counted in the engine: how many records lie in small classes may do."""
        problem, counts = self.problem, self._hubs.counts(node)
        short = counts.short(problem.least_size)
        if problem.sizes_settle or (problem.sizes_bound and not problem.acceptable(short)):
            return judged(problem, node, Classes(counts, problem.about), short)
        return judged(problem, node, Classes(counts.near(), problem.about))

    @cached_property
    def _cells(self) -> Cells | None:
        """What counts a node's class sizes, where they may settle it and keys fit one word."""
        problem = self.problem
        if not problem.sizes_bound or problem.counts.words > 1:
            return None
        refuses = problem.least_size > 1 and problem.limit < problem.records  # else sizes refuse nothing
        if not (problem.sizes_settle or refuses):
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
            accepted[tuple(indices.T)] = found.short <= problem.most_suppressed
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
