"""Compare: what each search finds, and at what cost, for every k, limit and metric on one table.

The table is counted once. What is finished can be kept in a journal, from which the same comparison goes on.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any

from shoal.algorithms import ALGORITHMS
from shoal.choose import AUTO, engine_for
from shoal.comparing.journal import Journal, open_journal
from shoal.comparing.policies import policies
from shoal.comparing.row import Row
from shoal.comparing.rows import alike, empty_row, figures, key_of, mean, of_nodes, problem_key, relative
from shoal.comparison import Comparison, Stopped
from shoal.core.contracts import Algorithm, Engine, Guarantee
from shoal.core.counts import Domain
from shoal.core.problem import Problem
from shoal.core.progress import Progress, quiet
from shoal.core.warm import to_compile
from shoal.errors import (
    CannotHonour,
    Infeasible,
    OutOfTime,
    OutputError,
    PolicyError,
    ShoalError,
    UsageError,
)
from shoal.models.k_anonymity import KAnonymity
from shoal.policy import Finishing, Named, Policy, named
from shoal.problem import check_label, counted, problem_of, with_wishes
from shoal.recipe import fingerprint
from shoal.search import automatic, search
from shoal.sensitive_table import separated

Limit = int | float | str
Posed = tuple[Policy, Problem]  # what a row is asked for, and the problem that it poses
RANDOM_RUNS = 100  # of a search that draws lots: seeds 0..99
_FEW = 64  # nodes, and combinations, that are enough to warm up
_NO_RESULT: dict[type[ShoalError], str] = {
    CannotHonour: "refused",
    PolicyError: "refused",
    Infeasible: "infeasible",
    OutOfTime: "out of time",
}


def compare(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    algorithms: Named | Sequence[Named] | None = None,
    k: int | Sequence[int] | None = None,
    suppression_limits: Limit | Sequence[Limit] | None = None,
    metrics: Named | Sequence[Named] | None = None,
    node: Mapping[str, int] | None = None,
    journal: str | Path | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Search with every algorithm for every k, limit and metric; say what each found and what it cost.

    What is not given is the policy's own; without algorithms all there are take part. `k` stands in for
    that of the policy's k-anonymity. `seconds` bound each search. With a `journal` finished rows are kept
    there, and the same comparison goes on where it was stopped. Ctrl-C raises `Stopped`, a KeyboardInterrupt
    that holds the finished rows.
    """
    if seconds is not None:
        if not (isinstance(seconds, Real) and seconds > 0):
            message = f"seconds must be above 0, got {seconds}."
            raise UsageError(message)
        seconds = float(seconds)
    policy = Policy.load(policy)
    groups = policies(policy, algorithms, k, suppression_limits, metrics)
    engine = engine_for(engine, table, memory_limit)
    tell = progress or quiet
    tell("count", 0, None)
    label = next((one.label_needed for group in groups for one in group if one.label_needed), None)
    counts, domains = counted(engine.open(table), groups[0][0], engine, label=label)
    base = problem_of(groups[0][0], counts, domains, node, engine.memory)
    check_label(base)
    posed = [[(one, with_wishes(base, one)) for one in group] for group in groups]
    known = _fingerprint(base, domains, policy, seconds)
    with open_journal(None if journal is None else Path(journal), known) as kept:
        run = _Run(kept, posed, seconds, tell)
        try:
            run.finish()
        except KeyboardInterrupt:
            raise Stopped(run.comparison(), run.total) from None
        return run.comparison()


class _Run:
    """Searches row by row, past those that the journal holds."""

    def __init__(
        self, journal: Journal, posed: list[list[Posed]], seconds: float | None, tell: Progress
    ) -> None:
        self.journal = journal
        self.posed = posed
        self.seconds = seconds
        self.tell = tell
        self.rows: dict[object, Row] = {}  # finished, now or before
        self.optima: dict[object, float | None] = {}
        try:
            for entry in journal.entries:
                if "optimum" in entry:
                    self.optima[entry["metric"], entry["limit_records"], entry["k"]] = entry["optimum"]
                else:
                    row = Row(**entry)
                    self.rows[key_of(row)] = row
        except (KeyError, TypeError):
            message = "The journal is damaged: a line is no row. Remove it or name another file."
            raise OutputError(message) from None
        asked = {key_of(empty_row(*one)) for group in posed for one in group}
        self.total = len(asked)
        self.done = len(asked & self.rows.keys())

    def finish(self) -> None:
        """Search for every row, and every optimum, that is not there yet."""
        self.tell("compare", self.done, self.total)
        if self.done < self.total:
            self.warm()
            self.tell("compare", self.done, self.total)
        for group in self.posed:
            rows = [self.row(*one) for one in group]
            for row, (_, problem) in zip(rows, group, strict=True):
                self.measure(problem, alike(row, rows))

    def comparison(self) -> Comparison:
        """Return the rows that are finished, each beside the optimum of its problem where that is known.

        What need not be acceptable is not beside it: it may lose less by promising nothing.
        """
        found = []
        for group in self.posed:
            keys = [key_of(empty_row(*one)) for one in group]
            rows = [self.rows[key] for key in keys if key in self.rows]
            found += [
                row
                if row.proven == Guarantee.NONE
                else replace(row, relative_loss=relative(row.loss, self.optimum(alike(row, rows))))
                for row in rows
            ]
        return Comparison(tuple(found))

    def warm(self) -> None:
        """Compile what is not compiled, then let every search run once on little: no row pays for that."""
        problem = self.posed[0][0][1]
        waiting = to_compile(problem.counts.words)
        asked_for = [policy.search_algorithm for group in self.posed for policy, _ in group]
        for algorithm in {type(one): one for one in asked_for if one is not None}.values():
            waiting += algorithm.to_compile()
        for number, compile_one in enumerate(waiting):
            self.tell("compile", number, len(waiting))
            compile_one()
        for of_metric in {asked.metric: group for group in self.posed for _, asked in group}.values():
            for policy, asked in of_metric:
                with suppress(ShoalError):
                    search(_little(asked), policy.search_algorithm, **policy.finishing)

    def row(self, policy: Policy, problem: Problem) -> Row:
        """Return a row that is there, else search for it and keep it."""
        empty = empty_row(policy, problem)
        key = key_of(empty)
        if key not in self.rows:
            row = self.searched(empty, policy, problem)
            self.journal.add(row.to_dict())
            self.rows[key] = row
            self.done += 1
            self.tell("compare", self.done, self.total)
        return self.rows[key]

    def searched(self, empty: Row, policy: Policy, problem: Problem) -> Row:
        """Search, as often as it takes, and fill the row in."""
        runs = _runs(policy)
        try:
            separated(policy)  # what anonymize would refuse has no result
            found = [self.timed(problem, algorithm, policy.finishing) for algorithm in runs]
        except tuple(_NO_RESULT) as error:
            return replace(empty, note=f"{_NO_RESULT[type(error)]}: {error}")
        return replace(empty, runs=len(runs), **mean(found))

    def timed(self, problem: Problem, algorithm: Algorithm | None, finishing: Finishing) -> dict[str, Any]:
        fresh = replace(problem)  # without what an earlier search had it remember
        start = time.perf_counter()
        _, evaluation = search(fresh, algorithm, seconds=self.seconds, progress=self.beat, **finishing)
        seconds = time.perf_counter() - start
        return figures(evaluation, problem.lattice.columns) | {"seconds": seconds}

    def beat(self, _phase: str, _done: int, _total: int | None) -> None:
        """Say during a long search that it goes on, so that whoever listens can end it."""
        self.tell("search", self.done, self.total)

    def optimum(self, rows: Sequence[Row]) -> float | None:
        """Return the least loss of a node that a row has proven, else what was searched for, if it was."""
        proven = [row.loss for row in rows if row.proven == Guarantee.LEAST_LOSS and of_nodes(row)]
        return proven[0] if proven else self.optima.get(problem_key(rows[0]))

    def measure(self, problem: Problem, rows: Sequence[Row]) -> None:
        """Search for the optimum of a problem where none of its rows has proven it."""
        key = problem_key(rows[0])
        nothing = all(row.loss is None or row.proven == Guarantee.NONE for row in rows)
        if nothing or key in self.optima or self.optimum(rows) is not None:
            return
        able, least = automatic(problem), None
        tried = {row.algorithm for row in rows}
        if not {ALGORITHMS.name_of(able), "auto"} & tried:  # else it has tried in vain
            with suppress(OutOfTime):
                _, found = search(problem, able, seconds=self.seconds, progress=self.beat)
                least = found.loss if found.proven is Guarantee.LEAST_LOSS else None
        self.optima[key] = least
        metric, records, k = key
        self.journal.add({"optimum": least, "metric": metric, "limit_records": records, "k": k})


def _runs(policy: Policy) -> list[Algorithm | None]:
    """Return the search, with many seeds where it draws lots and none was asked for; None chooses."""
    algorithm = policy.search_algorithm
    name, options = named(policy.algorithm)
    if getattr(algorithm, "ties", None) != "random" or "seed" in options:
        return [algorithm]
    return [ALGORITHMS.create(name, options | {"seed": seed}) for seed in range(RANDOM_RUNS)]


def _little(problem: Problem) -> Problem:
    """Return a problem of few nodes and few combinations, on which every search ends at once."""
    lattice = problem.lattice
    for axis in lattice.axes:
        if lattice.size > _FEW:
            lattice = lattice.narrowed({lattice.columns[axis[0]]: lattice.top[axis[0]]})
    counts = problem.counts.sample(_FEW)  # without sensitive values, so sizes alone are judged
    return replace(
        problem, counts=counts, lattice=lattice, models=(KAnonymity(2),), limit=counts.records // 2
    )


def _fingerprint(
    problem: Problem, domains: Mapping[str, Domain], policy: Policy, seconds: float | None
) -> Callable[[str], str]:
    """Return what recognizes the same request on the same table, under a salt."""

    def known(salt: str) -> str:
        lattice, counts = problem.lattice, problem.counts
        asked = (version("shoal"), policy.to_yaml(), seconds, lattice.low, lattice.high)
        digest = hmac.new(bytes.fromhex(salt), repr(asked).encode(), hashlib.sha256)
        digest.update(fingerprint(salt, problem, domains).encode())
        for hierarchy in problem.hierarchies:  # a file that the policy names may have changed
            digest.update(repr((hierarchy.name, hierarchy.size, hierarchy.height)).encode())
            for numbers in (*hierarchy.steps, *hierarchy.leaves):
                digest.update(numbers.tobytes())
        for name, entries in counts.sensitive.items():
            digest.update(repr((name, entries.bits)).encode())
            digest.update(entries.keys.tobytes())
            digest.update(entries.counts.tobytes())
        for name, sensitive in problem.about.items():
            digest.update(repr((name, sensitive.order.tolist())).encode())
            for step in sensitive.hierarchy.steps if sensitive.hierarchy else ():
                digest.update(step.tobytes())
        if counts.population:
            for part in counts.population.parts():
                digest.update(part)
        return digest.hexdigest()

    return known
