"""The evaluator of a search: it evaluates each node once, adds up the cost, and enforces the time limit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import Guarantee, When
from shoal.core.counts.counts import Counts
from shoal.core.counts.in_memory import of_sizes
from shoal.core.evaluation import CandidateGraph, Evaluation, SearchCost, SearchWork, best, better
from shoal.core.lattice.lattice import Node, nodes_of
from shoal.core.lattice.rollup_cache import RollupCache, rollup_cache
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.core.recoding.recoding import Recoding
from shoal.errors import OutOfTime
from shoal.files.signals import offers_best
from shoal.wording import above_optimum

_ROUNDING = 1e-9  # rounding error of sums of shares in a class


def evaluate_node(
    problem: Problem, node: Node, classes: Classes, suppressed: int | None = None
) -> Evaluation:
    """Evaluate a node from its classes; `suppressed` is given if the sizes of classes determine it."""
    mask = None
    if suppressed is None:
        mask = problem.violations(classes)
        suppressed = int(classes.sizes[mask].sum())
    acceptable = problem.acceptable(suppressed)
    if acceptable and mask is not None:
        acceptable = all(model.holds(classes, mask) for model in problem.models)
    refuses_below = not acceptable and (
        problem.monotone_models or mask is None or _refuses_below(problem, classes)
    )
    bound, loss = _losses(problem, node, classes, mask, acceptable)
    return Evaluation(node, acceptable, suppressed, len(classes), loss, bound, refuses_below)


def evaluate_recoding(problem: Problem, recoding: Recoding, node: Node, *, check_models: bool) -> Evaluation:
    """Evaluate a recoding that states which classes are suppressed; `check_models` also checks the models."""
    classes = problem.classes_of(recoding)
    suppressed_classes = classes.nothing() if recoding.regions is None else recoding.regions.suppressed
    suppressed = int(classes.sizes[suppressed_classes].sum())
    checked_classes = Classes(of_sizes(recoding.matches())) if recoding.wildcards else classes
    refused = check_models and (problem.violations(checked_classes) & ~suppressed_classes).any()
    acceptable = not refused and problem.acceptable(suppressed)
    if check_models:
        acceptable = acceptable and all(model.holds(classes, suppressed_classes) for model in problem.models)
    loss = problem.metric.loss(problem, recoding, classes, suppressed_classes) if acceptable else math.inf
    return Evaluation(node, acceptable, suppressed, len(classes), loss, loss, recoding=recoding)


def in_whole_records(refused: FloatArray, classes: Classes) -> int:
    """Sum lower bounds on the refused records of each class, rounded up to whole records."""
    return int(np.ceil(refused - _ROUNDING * (1 + classes.sizes)).sum())


def _refuses_below(problem: Problem, classes: Classes) -> bool:
    """Return whether more records than allowed are refused here and at every node below."""
    unavoidable = np.max([model.unavoidable(classes) for model in problem.models], axis=0)
    return not problem.acceptable(in_whole_records(unavoidable, classes))


def _losses(
    problem: Problem, node: Node, classes: Classes, mask: BoolArray | None, acceptable: bool
) -> tuple[float, float]:
    """Return the losses without and with suppression; the second is infinite if the node is refused."""
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


MAX_STORED_NODES = 2_000_000  # in a larger lattice, no array has an element for every node
_REPORT_EVERY = 0.05  # seconds between two reports of progress


class Evaluator:
    """Evaluates each node once, and adds up the cost of the search."""

    def __init__(
        self, problem: Problem, *, seconds: float | None = None, progress: Progress | None = None
    ) -> None:
        self.problem = problem
        self.best: Evaluation | None = None
        self.lower_bound: float | None = None  # no acceptable node has a smaller loss
        self.out_of_time = False
        self.compiling: Callable[[], float] = lambda: 0.0  # seconds of compilation, which are not limited
        self.stopped = False  # whether a signal stopped the search; its best result so far is then offered
        self._evaluations: dict[Node, Evaluation] = {}
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self._progress = progress
        self._reported = 0.0
        self._nodes = 0
        self._loss_evaluations = 0
        self._cost = SearchCost()
        self.nodes_accepted = 0
        self._walked = False

    @cached_property
    def _rollups(self) -> RollupCache:
        problem = self.problem
        return rollup_cache(problem.counts, problem.hierarchies, self._cost, problem.memory)

    @property
    def order(self) -> tuple[int, ...]:
        """The columns in the order in which they are rolled up."""
        return self._rollups.order

    @cached_property
    def walk(self) -> tuple[int, ...]:
        """The axes of the lattice in the order in which nodes share most roll-ups."""
        return self._rollups.walk(self.problem.lattice)

    @property
    def best_loss(self) -> float:
        return self.best.loss if self.best else math.inf

    @property
    def nodes_evaluated(self) -> int:
        """The number of nodes evaluated so far, except those that were evaluated only for their loss."""
        return self._nodes - self._loss_evaluations

    @property
    def rows_scanned(self) -> int:
        return self._cost.rows_scanned

    def __call__(self, node: Node) -> Evaluation:
        evaluation = self._evaluations.get(node)
        if evaluation is None:
            self.check_time()
            evaluation = self._record(self._evaluate(node))
        return evaluation

    def rolled(self, counts: Counts, groups: Mapping[int, IntArray], *, subset: bool = False) -> Counts:
        """Roll up counts for a search that caches counts itself, and add the cost.

        `subset` marks an evaluation over fewer columns.
        """
        self.check_time()
        self._cost.subset_evaluations += subset
        if not groups:
            return counts
        self._cost.add_read(len(counts), len(groups))
        return counts.roll_up(groups)

    def from_counts(self, node: Node, counts: Counts) -> Evaluation:
        """Evaluate a node from its counts."""
        evaluation = self._evaluations.get(node)
        return evaluation or self._record(
            evaluate_node(self.problem, node, Classes(counts, self.problem.sensitive_info))
        )

    def recoding(self, recoding: Recoding, node: Node = (), *, check_models: bool = True) -> Evaluation:
        """Evaluate a recoding by regions, which states which classes are suppressed.

        A search without a guarantee sets `check_models` to False.
        """
        evaluation = evaluate_recoding(self.problem, recoding, node, check_models=check_models)
        self._cost.add_made(evaluation.classes)
        return evaluation

    def add_cost(self, rows: int, sets: int) -> None:
        """Add the cost of counts over `sets` subsets of columns, in `rows` rows each."""
        self._cost.subset_evaluations += sets
        self._cost.rows_scanned += rows * sets

    def holds(self, counts: Counts) -> bool:
        """Return whether counts over fewer columns are acceptable."""
        classes = Classes(counts, self.problem.sensitive_info)
        suppressed = int(classes.sizes[self.problem.violations(classes)].sum())
        self._cost.add_made(len(counts))
        self._cost.subset_evaluations += 1
        return self.problem.acceptable(suppressed)

    def _record(self, evaluation: Evaluation) -> Evaluation:
        if len(self._evaluations) >= MAX_STORED_NODES // 10 and self.problem.lattice.size > MAX_STORED_NODES:
            self._evaluations.clear()  # a node is seldom needed again after a long time
        self._evaluations[evaluation.node] = evaluation
        self._nodes += 1
        self._cost.add_made(evaluation.classes)
        if evaluation.acceptable:
            self.nodes_accepted += 1
            if better(evaluation, self.best):
                self.best = evaluation
        return evaluation

    def _evaluate(self, node: Node) -> Evaluation:
        """Evaluate a node; if too many records are in small classes, the other models are not checked."""
        problem = self.problem
        if problem.sizes_decide or (problem.sizes_bound and problem.least_size > 1):
            counts = self._sizes.counts(node)
            in_small_classes = counts.records_below(problem.least_size)
            if problem.sizes_decide or not problem.acceptable(in_small_classes):
                return evaluate_node(problem, node, Classes(counts, problem.sensitive_info), in_small_classes)
        return evaluate_node(problem, node, self.classes(node))

    @cached_property
    def _sizes(self) -> RollupCache:
        """The cache for counts without sensitive values, which are rolled up faster."""
        problem = self.problem
        if problem.counts.remote or not (problem.counts.sensitive or problem.counts.population):
            return self._rollups
        bare = problem.counts.in_memory().bare()
        return RollupCache(bare, problem.hierarchies, self._cost, problem.memory, self.order)

    @property
    def walkable(self) -> bool:
        """Whether compiled code can walk the lattice: class sizes decide acceptability and loss."""
        metric = self.problem.metric
        return self.problem.sizes_decide and not (metric.by_size and metric.size_terms(self.problem) is None)

    def walk_all(self, *, skip: bool) -> bool:
        """Find the best node by a walk in compiled code; return False if that is not possible.

        With `skip`, the walk leaves out nodes that are known to be refused or worse than the best.
        """
        self.check_time()
        problem, lattice = self.problem, self.problem.lattice
        terms = problem.metric.size_terms(problem)
        if not self.walkable or (terms is None and not lattice.has_array):
            return False
        from shoal.core.lattice.walk import Walk

        if lattice.size > MAX_STORED_NODES or not Walk.possible(
            problem.counts, problem.hierarchies, lattice, problem.memory // 2
        ):
            return False
        walk = Walk(problem.counts, problem.hierarchies, lattice)
        losses = problem.losses() if terms is None else None
        if terms is not None and terms.table is not None:
            losses = lattice.sums(terms.table)
        objective = walk.objective(problem.least_size, problem.most_suppressed, terms, losses, skip=skip)
        for result in walk.search(objective):
            self._nodes, self.nodes_accepted = result.nodes, result.accepted
            self._cost.rows_scanned, self._cost.score = result.rows_scanned, result.score
            time_is_up = self.seconds_left < 0
            if result.best is not None and (time_is_up or result.complete):
                node = lattice.node(result.best)
                self.best = evaluate_node(problem, node, problem.classes(node), result.suppressed)
            if time_is_up and not result.complete:
                self.out_of_time = True
                raise OutOfTime
            self._report(None if skip else lattice.size)
        self._walked = True
        return True

    def best_of(self, accepted: BoolArray) -> Evaluation | None:
        """Return the accepted node of least loss; nodes are evaluated only if their loss is not known."""
        problem, lattice = self.problem, self.problem.lattice
        if accepted.any() and problem.metric.separable.given(problem.limit > 0):
            losses = np.where(accepted, problem.losses(), np.inf)
            least_loss = float(losses.min())
            accepted = losses <= least_loss + 1e-9 * abs(
                least_loss
            )  # these are evaluated next, to decide ties
        nodes_before = self._nodes
        chosen = best(self(node) for node in nodes_of(lattice, accepted))
        self._loss_evaluations += self._nodes - nodes_before
        return chosen

    def classes(self, node: Node) -> Classes:
        """Return the classes at a node without evaluating it."""
        return Classes(self._rollups.counts(node).in_memory(), self.problem.sensitive_info)

    @property
    def seconds_left(self) -> float:
        return self._deadline + self.compiling() - time.monotonic()

    def allow(self, seconds: float) -> None:
        """Extend the time limit so that at least this many seconds are left."""
        self._deadline += max(0.0, seconds - self.seconds_left)

    @contextmanager
    def part(self, problem: Problem, seconds: float) -> Iterator[Evaluator]:
        """Yield an evaluator for a problem over fewer columns, and add its cost to that of this search."""
        evaluate = Evaluator(problem, seconds=seconds, progress=lambda *_: self._report())
        seconds_before = self.compiling()
        evaluate.compiling = lambda: self.compiling() - seconds_before
        try:
            yield evaluate
        finally:
            self._cost.subset_evaluations += evaluate.nodes_evaluated
            self._cost.rows_scanned += evaluate.rows_scanned

    def check_time(self) -> None:
        """Raise OutOfTime if the time limit is reached, and report progress."""
        if self.seconds_left < 0:
            self.out_of_time = True
            raise OutOfTime
        self._report()

    def _report(self, total: int | None = None) -> None:
        """Report progress: the number of nodes evaluated, and the gap to the optimum if it is known.

        `total` is the number of all nodes, if all are evaluated.
        """
        now = time.monotonic()
        if not self._progress or now - self._reported <= _REPORT_EVERY:
            return
        self._reported = now
        phase = "search"
        if self.lower_bound is not None and self.best:
            phase += f", {above_optimum(self.best.loss, self.lower_bound)}"
        try:
            self._progress(phase, self._nodes, total)
        except KeyboardInterrupt:
            if self.stopped or not offers_best():
                raise
            self.stopped = self.out_of_time = True
            raise OutOfTime from None

    def finish(
        self,
        chosen: Evaluation,
        proven: Guarantee,
        candidates: Sequence[Node] = (),
        *,
        tagged: int = 0,
        compared: int = 0,
        graph: CandidateGraph | None = None,
    ) -> Evaluation:
        """Return the chosen evaluation with its guarantee and the cost of the search."""
        if not self._walked:
            _ = self._rollups  # add the cost of ordering the columns, as in every other search
        cost = self._cost
        work = SearchWork(
            nodes_evaluated=self.nodes_evaluated,
            loss_evaluations=self._loss_evaluations,
            nodes_tagged=tagged,
            nodes_compared=compared,
            subset_evaluations=cost.subset_evaluations,
            column_counts=cost.column_counts,
            rows_scanned=cost.rows_scanned,
            node_score=cost.score,
            candidate_graph=graph,
        )
        evaluated = tuple(self._evaluations[node] for node in candidates if node in self._evaluations)
        return replace(
            chosen, proven=proven, candidates=tuple(candidates), evaluated_candidates=evaluated, work=work
        )
