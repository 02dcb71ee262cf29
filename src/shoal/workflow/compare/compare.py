"""Compare the results and costs of searches on one table, for every k, limit and metric.

The table is counted once. A journal can store finished rows, so that a stopped comparison can continue.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib.metadata import version
from itertools import product
from numbers import Integral, Real
from pathlib import Path
from statistics import fmean
from typing import Any

from shoal.algorithms import ALGORITHMS
from shoal.core.compilation import compile_events
from shoal.core.contracts import Algorithm, Engine, Guarantee, NodeSearch
from shoal.core.counts.counts import Counts, Domain
from shoal.core.evaluation import Evaluation, tie
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.errors import CannotHonour, Infeasible, OutOfTime, OutputError, PolicyError, ShoalError, UsageError
from shoal.files.signals import keeping
from shoal.models.k_anonymity import KAnonymity
from shoal.policy.limits import check_seconds
from shoal.policy.policy import Finishing, Named, Policy, named, plugin_text
from shoal.wording import advice_text
from shoal.workflow.candidates import FIRST, candidate_nodes
from shoal.workflow.compare.comparison import Comparison, ComparisonRow, Stopped
from shoal.workflow.compare.journal import Journal, open_journal
from shoal.workflow.problem import (
    check_label,
    counted,
    problem_of,
    separate_column,
    with_settings,
    without_unused_label,
)
from shoal.workflow.release.recipe import fingerprint
from shoal.workflow.release.recovery import load_policy
from shoal.workflow.search import automatic, losses_by_metric, recode, retained, search
from shoal.workflow.session import AUTO, session

_Limit = int | float | str
Posed = tuple[Policy, Problem]  # the policy of a row, and its problem
RANDOM_RUNS = 100  # runs of a random search: seeds 0..99
_FEW = 64  # maximum number of nodes, and of combinations, of a warm-up search
_OUT_OF_TIME = "out of time"
_WARM_SECONDS = 1.0  # limit of a warm-up search: with many columns, even a small problem can take long
_NO_RESULT: dict[type[ShoalError], str] = {
    CannotHonour: "refused",
    PolicyError: "refused",
    Infeasible: "infeasible",
    OutOfTime: _OUT_OF_TIME,
}
_OUTCOME = ("outcome", "reason", "note")


def compare(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    algorithms: Named | Sequence[Named] | None = None,
    k: int | Sequence[int] | None = None,
    suppression_limits: _Limit | Sequence[_Limit] | None = None,
    metrics: Named | Sequence[Named] | None = None,
    node: Mapping[str, int] | None = None,
    candidates: bool = False,
    journal: str | Path | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    seconds: float | None = 20.0,
    progress: Progress | None = None,
) -> Comparison:
    """Search with every algorithm for every k, limit and metric, and compare results and costs.

    Settings that are not given are taken from the policy. Without `algorithms`, all algorithms are compared.
    `k` replaces the k of the policy's k-anonymity. `seconds` limits each search (None: no limit); the note
    of a row states whether the limit was reached. With `candidates`, each row lists the best of the nodes
    from which the metric chose. With a `journal`, finished rows are stored, and the same comparison continues
    where it was stopped. Ctrl-C raises `Stopped`, a KeyboardInterrupt that has the finished rows.
    """
    seconds = check_seconds(seconds)
    policy = load_policy(policy, engine)
    refused: dict[str, ShoalError] = {}  # by algorithm: why the policy does not allow it
    groups = _policies(policy, algorithms, k, suppression_limits, metrics, refused)
    label = next((item.label_needed for group in groups for item in group if item.label_needed), None)
    with session(table, engine, memory_limit, progress) as s:
        s.progress("count", 0, None)
        labelled, domains = counted(s.table, groups[0][0], label=label or policy.label)
        counts = labelled
        if label is None and policy.label is not None:
            counts, domains = without_unused_label(groups[0][0], labelled, domains)
        base = problem_of(groups[0][0], counts, domains, node, s.engine.memory)
        check_label(base)
        tasks = [[(item, with_settings(base, item)) for item in group] for group in groups]
        known = _fingerprint(base, domains, policy, seconds, candidates)
        with open_journal(None if journal is None else Path(journal), known) as file:
            run = _Run(file, tasks, seconds, s.progress, refused, candidates=candidates, labelled=labelled)
            try:
                with keeping():
                    run.finish()
            except KeyboardInterrupt:
                raise Stopped(run.comparison(), run.total) from None
            return run.comparison()


class _Run:
    """Searches row by row. A row that is in the journal is not searched again."""

    def __init__(
        self,
        journal: Journal,
        tasks: list[list[Posed]],
        seconds: float | None,
        progress: Progress,
        refused: Mapping[str, ShoalError],
        *,
        candidates: bool,
        labelled: Counts,
    ) -> None:
        self.labelled = labelled
        self.journal = journal
        self.posed = tasks
        self.seconds = seconds
        self.candidates = candidates
        self.progress = progress
        self.refused = refused
        self.rows: dict[object, ComparisonRow] = {}  # finished rows, also those of the journal
        self.optima: dict[object, float | None] = {}
        try:
            for entry in journal.entries:
                if "optimum" in entry:
                    self.optima[entry["metric"], entry["limit_records"], entry["k"]] = entry["optimum"]
                else:
                    row = ComparisonRow(**entry)
                    self.rows[_key_of(row)] = row
        except (KeyError, TypeError):
            raise OutputError(
                "The journal is damaged: a line is not a row. Remove it or name another file."
            ) from None
        requested = {_key_of(_empty_row(*pair)) for group in tasks for pair in group}
        self.total = len(requested)
        self.done = len(requested & self.rows.keys())

    def finish(self) -> None:
        """Search for every missing row and every missing optimum."""
        self.progress("compare", self.done, self.total)
        if self.done < self.total:
            with compile_events(self.progress):
                self.warm_up()
            self.progress("compare", self.done, self.total)
        for group in self.posed:
            rows = [self.row(*pair) for pair in group]
            for row, (_, problem) in zip(rows, group, strict=True):
                self.measure(problem, _rows_of_limit(row, rows))

    def comparison(self) -> Comparison:
        """Return the finished rows, with their loss relative to the optimum if the optimum is known.

        A search without a guarantee has no relative loss: it may lose less than the optimum, the best node.
        """
        finished = []
        for group in self.posed:
            keys = [_key_of(_empty_row(*pair)) for pair in group]
            rows = [self.rows[key] for key in keys if key in self.rows]
            finished += [
                row
                if row.proven == Guarantee.NONE
                else replace(row, relative_loss=relative(row.loss, self.optimum(_rows_of_limit(row, rows))))
                for row in rows
            ]
            empty = _empty_row(*group[0])
            finished += [
                replace(empty, algorithm=name, **_without_result(error))
                for name, error in self.refused.items()
            ]
        return Comparison(tuple(finished))

    def warm_up(self) -> None:
        """Run every search once on a small problem, so that no row includes compilation or imports."""
        for of_metric in {problem.metric: group for group in self.posed for _, problem in group}.values():
            for policy, problem in of_metric:
                with suppress(ShoalError):
                    small_problem, algorithm = _small_part(problem), policy.search_algorithm
                    search(
                        small_problem,
                        algorithm,
                        seconds=_WARM_SECONDS,
                        progress=self.report_searching,
                        **policy.finishing,
                    )

    def row(self, policy: Policy, problem: Problem) -> ComparisonRow:
        """Return a finished row, or search for it and add it to the journal."""
        empty = _empty_row(policy, problem)
        key = _key_of(empty)
        if key not in self.rows:
            row = self.search_row(empty, policy, problem)
            self.journal.add(row.to_dict())
            self.rows[key] = row
            self.done += 1
            self.progress("compare", self.done, self.total)
        return self.rows[key]

    def search_row(self, empty: ComparisonRow, policy: Policy, problem: Problem) -> ComparisonRow:
        """Search and fill in the row; a random search runs several times."""
        runs = _runs(policy)
        try:
            separate_column(policy)  # raises if anonymize would reject the policy
            results = [self.search_timed(problem, algorithm, policy.finishing) for algorithm in runs]
        except tuple(_NO_RESULT) as error:
            return replace(empty, **_without_result(error))
        return replace(empty, runs=len(runs), **_mean(results))

    def search_timed(
        self, problem: Problem, algorithm: Algorithm | None, finishing: Finishing
    ) -> dict[str, Any]:
        fresh = replace(problem)  # a copy has no caches of an earlier search
        start = time.perf_counter()
        with compile_events(self.progress) as timer:
            _, evaluation = search(
                fresh, algorithm, seconds=self.seconds, progress=self.report_searching, **finishing
            )
        seconds = time.perf_counter() - start - timer.seconds
        stopped = (
            {} if evaluation.complete else _outcome(_OUT_OF_TIME, f"the best after {self.seconds:g} seconds")
        )
        result = None if problem.counts.remote else recode(fresh, evaluation)
        measured: dict[str, Any] = {
            "retained": None if result is None else retained(result),
            "losses": None if result is None else losses_by_metric(result, self.labelled),
        }
        if self.candidates:
            nodes = candidate_nodes(fresh, evaluation, FIRST)
            measured["candidate_nodes"] = [candidate.to_dict() for candidate in nodes] or None
        return {**_figures(evaluation, problem.lattice.columns), **measured, "seconds": seconds, **stopped}

    def report_searching(self, _phase: str, _done: int, _total: int | None) -> None:
        """Report progress during a long search, so that the progress callback can stop it."""
        self.progress("search", self.done, self.total)

    def optimum(self, rows: Sequence[ComparisonRow]) -> float | None:
        """Return the least loss of all nodes: proven by a row, or found by a separate search."""
        proven = [row.loss for row in rows if row.proven == Guarantee.LEAST_LOSS and _searches_nodes(row)]
        return proven[0] if proven else self.optima.get(_problem_key(rows[0]))

    def measure(self, problem: Problem, rows: Sequence[ComparisonRow]) -> None:
        """Search for the optimum of a problem if none of its rows has proven it."""
        key = _problem_key(rows[0])
        nothing = all(row.loss is None or row.proven == Guarantee.NONE for row in rows)
        if nothing or key in self.optima or self.optimum(rows) is not None:
            return
        algorithm, least = automatic(problem), None
        tried = {row.algorithm for row in rows}
        if not {ALGORITHMS.name_of(algorithm), "auto"} & tried:  # else it ran and proved nothing
            with suppress(OutOfTime):
                _, evaluation = search(
                    problem, algorithm, seconds=self.seconds, progress=self.report_searching
                )
                least = evaluation.loss if evaluation.proven is Guarantee.LEAST_LOSS else None
        self.optima[key] = least
        metric, records, k = key
        self.journal.add({"optimum": least, "metric": metric, "limit_records": records, "k": k})


def _runs(policy: Policy) -> list[Algorithm | None]:
    """Return the search; if it is random and has no seed, return it once for each of several seeds."""
    algorithm = policy.search_algorithm
    name, options = named(policy.algorithm)
    if getattr(algorithm, "ties", None) != "random" or "seed" in options:
        return [algorithm]
    return [ALGORITHMS.create(name, options | {"seed": seed}) for seed in range(RANDOM_RUNS)]


def _small_part(problem: Problem) -> Problem:
    lattice = problem.lattice
    for axis in lattice.axes:
        if lattice.size > _FEW:
            lattice = lattice.narrowed({lattice.columns[axis[0]]: lattice.top[axis[0]]})
    counts = problem.counts.sample(_FEW)  # no sensitive values, so the model may need only sizes
    return replace(
        problem, counts=counts, lattice=lattice, models=(KAnonymity(2),), limit=counts.records // 2
    )


def _fingerprint(
    problem: Problem,
    domains: Mapping[str, Domain],
    policy: Policy,
    seconds: float | None,
    candidates: bool,
) -> Callable[[str], str]:
    """Return a function that computes a digest of the request and the table with a given salt."""

    def known(salt: str) -> str:
        lattice, counts = problem.lattice, problem.counts
        request = (version("shoal"), policy.to_yaml(), seconds, candidates, lattice.low, lattice.high)
        digest = hmac.new(bytes.fromhex(salt), repr(request).encode(), hashlib.sha256)
        digest.update(fingerprint(salt, problem, domains).encode())
        for hierarchy in problem.hierarchies:  # a file that the policy names may have changed
            digest.update(repr((hierarchy.name, hierarchy.size, hierarchy.height)).encode())
            for numbers in (*hierarchy.steps, *hierarchy.leaves):
                digest.update(numbers.tobytes())
        for name, entries in counts.sensitive.items():
            digest.update(repr((name, entries.bits)).encode())
            digest.update(entries.keys.tobytes())
            digest.update(entries.counts.tobytes())
        for name, sensitive in problem.sensitive_info.items():
            digest.update(repr((name, sensitive.order.tolist())).encode())
            for step in sensitive.hierarchy.steps if sensitive.hierarchy else ():
                digest.update(step.tobytes())
        if counts.population:
            for part in counts.population.fingerprint_parts():
                digest.update(part)
        return digest.hexdigest()

    return known


def _policies(
    policy: Policy, algorithms: Any, k: Any, limits: Any, metrics: Any, refused: dict[str, ShoalError]
) -> list[list[Policy]]:
    """Return the policy of every row, grouped by metric, limit and k.

    An algorithm that the policy does not allow is added to `refused`. Raise if all algorithms are refused.
    """
    default = [name for name in ALGORITHMS if policy.label or not ALGORITHMS.create(name).needs_label]
    searches = _distinct("algorithms", algorithms, default)
    suitable = []
    for algorithm in searches:
        try:
            _ = policy.with_(algorithm=algorithm)
        except PolicyError as error:
            refused[plugin_text(algorithm)] = error
            if len(refused) == len(searches):
                raise
        else:
            suitable.append(algorithm)
    combinations = product(
        _distinct("metrics", metrics, [None]),
        _distinct("suppression_limits", limits, [None]),
        _distinct("k", k, [None]),
    )
    return [
        [
            policy.with_(
                algorithm=algorithm,
                metric=metric,
                suppression_limit=limit,
                models=None if least is None else _with_k(policy.models, least),
            )
            for algorithm in suitable
        ]
        for metric, limit, least in combinations
    ]


def _distinct(what: str, requested: Any, default: list[Any]) -> list[Any]:
    if requested is None:
        return default
    if isinstance(requested, str | Real | Mapping):
        requested = [requested]
    try:
        values = [_plain_number(value) for value in requested]
    except TypeError:
        raise UsageError(f"{what} takes one or a list, got {type(requested).__name__}.", field=what) from None
    if not values:
        raise UsageError(f"{what} is empty. Name at least one, or leave it out.", field=what)
    return list({json.dumps(value, default=str): value for value in values}.values())


def _plain_number(value: Any) -> Any:
    if isinstance(value, Real) and not isinstance(value, bool):
        return int(value) if isinstance(value, Integral) else float(value)
    return value


def _with_k(models: Sequence[Named], k: int) -> list[Named]:
    pairs = [named(model) for model in models]
    changed: list[Named] = [{n: o | {"k": k}} if n == "k-anonymity" else {n: o} for n, o in pairs]
    return changed if any(n == "k-anonymity" for n, _ in pairs) else [*changed, {"k-anonymity": {"k": k}}]


def _empty_row(policy: Policy, problem: Problem) -> ComparisonRow:
    least = [model.k for model in problem.models if isinstance(model, KAnonymity)]
    return ComparisonRow(
        algorithm=plugin_text(policy.algorithm),
        k=max(least, default=None),
        limit=policy.suppression_limit,
        limit_records=problem.limit,
        metric=plugin_text(policy.metric),
        records=problem.records,
        lattice_size=problem.lattice.size,
    )


def _key_of(row: ComparisonRow) -> object:
    return row.algorithm, row.k, row.limit_asked, row.metric


def _problem_key(row: ComparisonRow) -> tuple[str, int, int | None]:
    return row.metric, row.limit_records, row.k


def _rows_of_limit(row: ComparisonRow, rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Return the rows with the same limit in records: an algorithm may replace the given limit."""
    return [other for other in rows if other.limit_records == row.limit_records]


def _searches_nodes(row: ComparisonRow) -> bool:
    """Return whether a row's search is for a node. Other recodings may lose less than the best node."""
    name = row.algorithm.partition(":")[0]
    return name == "auto" or issubclass(ALGORITHMS.load(name), NodeSearch)


def _figures(evaluation: Evaluation, columns: Sequence[str]) -> dict[str, Any]:
    work = evaluation.work
    return {
        "loss": evaluation.loss,
        "levels": None if evaluation.recoding else dict(zip(columns, evaluation.node, strict=True)),
        "suppressed": evaluation.suppressed,
        "candidates": len(evaluation.candidates) or None,
        "search_space": [asdict(of_size) for of_size in evaluation.search_space] or None,
        "nodes_evaluated": work.nodes_evaluated,
        "loss_evaluations": work.loss_evaluations,
        "nodes_tagged": work.nodes_tagged,
        "nodes_compared": work.nodes_compared,
        "subset_evaluations": work.subset_evaluations,
        "column_counts": work.column_counts,
        "candidate_graph": asdict(work.candidate_graph) if work.candidate_graph else None,
        "rows_scanned": work.rows_scanned,
        "node_score": work.node_score,
        "proven": str(evaluation.proven),
    }


def _outcome(outcome: str, reason: str, text: str = "") -> dict[str, Any]:
    return {"outcome": outcome, "reason": reason, "note": f"{outcome}: {text or reason}"}


def _without_result(error: ShoalError) -> dict[str, Any]:
    text = str(error)
    reason = text
    if isinstance(error, CannotHonour):
        reason = f"{error.reason} {advice_text(error.advice)}".rstrip()
    return _outcome(_NO_RESULT[type(error)], reason, text)


def _mean(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Combine runs: keep equal values, average numbers, and take the weakest guarantee."""
    result: dict[str, Any] = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        values: list[Any] = [run.get(name) for run in runs]
        if name == "proven":
            result[name] = max(values, key=list(Guarantee).index)
        elif name in _OUTCOME:
            result[name] = next((value for value in values if value is not None), None)
        elif all(value == values[0] for value in values):
            result[name] = values[0]
        elif name == "losses":
            metrics = [metric for metric in values[0] if all(metric in losses for losses in values)]
            result[name] = {metric: fmean(losses[metric] for losses in values) for metric in metrics}
        else:
            result[name] = fmean(values) if all(isinstance(v, int | float) for v in values) else None
    return result


def relative(loss: float | None, optimum: float | None) -> float | None:
    """Return the loss as a multiple of the optimum: 1 is optimal; None if unknown or the optimum is 0."""
    if loss is None or optimum is None:
        return None
    if tie(loss, optimum):
        return 1.0
    return loss / optimum if optimum > 0 else None
