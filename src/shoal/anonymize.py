"""Anonymize: from a table and a policy to a proven release."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.codebook import codebook_path, write_codebook, write_mapping
from shoal.core.arrays import BoolArray
from shoal.core.classes import UNIT, Classes
from shoal.core.contracts import Engine
from shoal.core.counts import Domain
from shoal.core.evaluate import Evaluation, Problem, Progress
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Node
from shoal.core.recoding import Recoding
from shoal.core.warm import to_compile
from shoal.engines import ENGINES
from shoal.errors import (
    InternalError,
    OutputError,
    UsageError,
)
from shoal.offer import Chosen, adopted
from shoal.policy import Policy, named
from shoal.problem import counted, problem_of
from shoal.publish import CODEBOOK, Draft, draft
from shoal.recipe import audit_of, recipe_of
from shoal.search import search
from shoal.sensitive import reference_of
from shoal.verify import Verification, judge


@dataclass(frozen=True)
class Release:
    """A de-identified table, what was proven of it and what it cost."""

    policy: Policy
    evaluation: Evaluation
    algorithm: str
    hierarchies: tuple[Hierarchy, ...]
    labels: Mapping[str, tuple[str, ...]]  # those that occur in the release
    lattice_size: int
    records: int
    suppressed: int  # dropped or masked
    masked: int
    verification: Verification
    seconds: Mapping[str, float]
    table: Any = field(default=None, repr=False)  # None where it was written to a file
    output: Path | None = None
    recipe: Path | None = None
    codebook: Path | None = None

    @property
    def levels(self) -> dict[str, int]:
        """The level of each quasi-identifier."""
        return dict(zip(self.policy.roles.quasi_identifiers, self.evaluation.node, strict=True))

    @property
    def loss(self) -> float:
        """The information loss, by the policy's metric."""
        return self.evaluation.loss

    def examples(self) -> dict[str, str]:
        """Show a few of each column's labels as they are released; a column at level 0 stays as is."""
        shown = {}
        for name, labels in self.labels.items():
            more = ", ..." if len(labels) > 3 else ""
            shown[name] = ", ".join(labels[:3]) + more if self.levels[name] else "as is"
        return shown

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        work = self.evaluation.work
        metric = self.policy.metric
        return {
            "levels": self.levels,
            "loss": self.loss,
            "metric": metric if isinstance(metric, str) else next(iter(metric)),
            "algorithm": self.algorithm,
            "proven": str(self.evaluation.proven),
            "records": self.records,
            "suppressed": self.suppressed,
            "masked": self.masked,
            "classes": self.verification.classes,
            "smallest_class": self.verification.smallest_class,
            "lattice_size": self.lattice_size,
            "nodes_evaluated": work.nodes_evaluated,
            "candidates": len(self.evaluation.candidates) or None,
            "rows_scanned": work.rows_scanned,
            "node_score": work.node_score,
            "seconds": dict(self.seconds),
            "verified": self.verification.verified,
            "unchecked": list(self.verification.unchecked),
            "output": str(self.output) if self.output else None,
            "recipe": str(self.recipe) if self.recipe else None,
            "codebook": str(self.codebook) if self.codebook else None,
        }


def anonymize(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    output: str | Path | None = None,
    force: bool = False,
    node: Chosen = None,
    mapping: bool = False,
    engine: str | Engine = "duckdb",
    memory_limit: str | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Release:
    """Find the acceptable recoding of least loss, apply it, count the result afresh and release it.

    Without an output the release's table is of the same kind as the table that came in. `node` fixes
    the levels of the columns it names; the others are searched. It may be an offer of a negotiation, its
    JSON or a file of it: then its k (or l) and its limit stand in for the policy's. `mapping` adds, to the
    private folder, what became of every value.
    """
    if seconds is not None and not seconds > 0:
        message = f"seconds must be above 0, got {seconds}."
        raise UsageError(message)
    policy, levels = adopted(Policy.load(policy), node)
    if isinstance(engine, str):
        engine = ENGINES.create(engine, {"memory_limit": memory_limit} if memory_limit else {})
    run = _Run(policy, engine, progress or (lambda *_: None))
    if output is None:
        return run.in_memory(table, levels, seconds)
    path = Path(output)
    ending = engine.format_of(path)
    book = codebook_path(path)
    for written in (path, book):
        if (
            isinstance(table, str | Path)
            and written.exists()
            and Path(table).exists()
            and written.samefile(table)
        ):
            message = f"{str(written)!r} is the input and would be replaced. Name another output."
            raise OutputError(message)
    with draft(path, ending, force=force, codebook=book) as begun:
        engine.spill(begun.spill)
        return run.to_file(table, levels, seconds, begun, book=book, mapping=mapping)


class _Run:
    """One run: count, search, recode, verify, each timed."""

    def __init__(self, policy: Policy, engine: Engine, progress: Progress) -> None:
        self.policy = policy
        self.engine = engine
        self.progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.progress(name, 0, None)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def in_memory(self, source: Any, node: Mapping[str, int] | None, seconds: float | None) -> Release:
        found = self.find(source, node, seconds)
        with self.phase("recode"):
            levels = found.recoding.levels or {}
            bounds = self.policy.as_bounds
            kept = [n for n in self.kept(found) if not levels.get(n) and n not in bounds]
            table = self.engine.materialize(self.recode(found), source, kept)
        verification = self.check(found, table)
        return self.release(found, verification, table=table)

    def to_file(
        self,
        source: Any,
        node: Mapping[str, int] | None,
        seconds: float | None,
        begun: Draft,
        *,
        book: Path,
        mapping: bool,
    ) -> Release:
        found = self.find(source, node, seconds)
        with self.phase("recode"):
            self.engine.write(self.recode(found), begun.temporary)
        verification = self.check(found, begun.temporary)
        release = self.release(found, verification, output=begun.output, codebook=book)
        recipe = recipe_of(self.policy, found.problem, found.recoding, found.domains)
        if mapping:
            write_mapping(
                begun.private / "mapping", found.problem.hierarchies, found.evaluation.node, found.domains
            )
        write_codebook(begun.private / CODEBOOK, self.policy, found.labels, release.levels)
        home = begun.commit(recipe, audit_of(release.to_dict(), verification))
        return replace(release, recipe=home)

    def find(self, source: Any, node: Mapping[str, int] | None, seconds: float | None) -> _Found:
        policy = self.policy
        table = self.engine.open(source)
        with self.phase("count"):
            counts, domains = counted(table, policy, self.engine)
        problem = problem_of(policy, counts, domains, node)
        self.warm(problem)
        with self.phase("search"):
            name, evaluation = search(
                problem, policy.search_algorithm, seconds=seconds, progress=self.progress
            )
        classes = problem.classes(evaluation.node)
        gone = problem.violations(classes)
        recoding = Recoding.from_node(problem.hierarchies, evaluation.node, policy.as_bounds)
        recoding = recoding.suppressing(classes.counts.keys[:, gone])
        labels = {}
        for column, hierarchy in enumerate(problem.hierarchies):
            present = np.unique(classes.counts.codes(column)[~gone]).tolist()
            every = hierarchy.labels[evaluation.node[column]]
            labels[hierarchy.name] = tuple(every[code] for code in present)
        sizes = classes.sizes[~gone]
        kept = len(sizes), int(sizes.min())
        alone = not (_empty(problem, evaluation.node, classes, domains) & ~gone).any()
        maskable = alone and _crowd(problem, classes, gone)
        return _Found(table, domains, problem, name, evaluation, recoding, labels, kept, maskable)

    def warm(self, problem: Problem) -> None:
        """Compile the kernels that will be needed, where this has not been done on this machine."""
        name, _ = named(self.policy.algorithm)
        waiting = to_compile(words=len(problem.counts.keys), everything=name == "exhaustive")
        if waiting:
            with self.phase("compile"):
                for compile_one in waiting:
                    compile_one()

    def kept(self, found: _Found) -> list[str]:
        """Name the columns that a release keeps: all but identifiers."""
        dropped = set(self.policy.roles.identifiers)
        return [name for name in self.engine.columns(found.table) if name not in dropped]

    def recode(self, found: _Found) -> Any:
        roles = self.policy.roles
        keep = self.kept(found)
        quasi = [shown for name in roles.quasi_identifiers for shown in self.policy.released(name)]
        blank = [*quasi, *roles.sensitive] if self.masks(found) else None
        return self.engine.recode(found.table, found.recoding, found.domains, keep=keep, blank=blank)

    def masks(self, found: _Found) -> bool:
        """Masked records are kept only where they can be a class of their own."""
        return self.policy.suppressed == "mask" and found.maskable

    def check(self, found: _Found, released: Any) -> Verification:
        """Count what was released; what does not hold is our own defect."""
        with self.phase("verify"):
            told = reference_of(found.problem.counts, found.domains)
            verification = judge(released, self.policy, self.engine, told)
        expected = found.problem.records
        if not self.masks(found):
            expected -= found.evaluation.suppressed
        wrong = verification.records != expected
        if verification.unchecked:  # what the release does not show holds for the classes judged, or merged
            wrong |= verification.classes > found.kept[0] or verification.smallest_class < found.kept[1]
            verification = replace(verification, verified=not verification.reasons)
        if not verification.verified or wrong:
            reasons = "; ".join(verification.reasons) or "the number of records is wrong"
            message = (
                f"The release failed its fresh count and was not written: {reasons}. Please report this."
            )
            raise InternalError(message)
        return verification

    def release(self, found: _Found, verification: Verification, **where: Any) -> Release:
        return Release(
            policy=self.policy,
            evaluation=found.evaluation,
            algorithm=found.algorithm,
            hierarchies=found.problem.hierarchies,
            labels=found.labels,
            lattice_size=found.problem.lattice.size,
            records=found.problem.records,
            suppressed=found.evaluation.suppressed,
            masked=found.evaluation.suppressed if self.masks(found) else 0,
            verification=verification,
            seconds=dict(self.seconds),
            **where,
        )


@dataclass(frozen=True)
class _Found:
    """What the search left for recoding."""

    table: Any
    domains: Mapping[str, Domain]
    problem: Problem
    algorithm: str
    evaluation: Evaluation
    recoding: Recoding
    labels: Mapping[str, tuple[str, ...]]
    kept: tuple[int, int]  # classes that remain, and the smallest of them
    maskable: bool  # the suppressed are enough for a class, in persons too, and would join no other


def _crowd(problem: Problem, classes: Classes, gone: BoolArray) -> bool:
    """Tell whether suppressed records taken together are as many as every model wants in a class."""
    enough = bool(classes.sizes[gone].sum() >= problem.least_size)
    for model in problem.models:
        if model.unit_column is not None:
            spread = classes.distribution(UNIT + model.unit_column)
            enough &= len(np.unique(spread.codes[gone[spread.rows]])) >= model.least_size
    return enough


def _empty(problem: Problem, node: Node, classes: Classes, domains: Mapping[str, Domain]) -> BoolArray:
    """Mark the classes that are released with every quasi-identifier empty, as masked records are."""
    empty = np.ones(len(classes), np.bool_)
    for column, (hierarchy, level) in enumerate(zip(problem.hierarchies, node, strict=True)):
        shown = hierarchy.labels[level] if level else domains[hierarchy.name].texts
        empty &= np.array([not label for label in shown])[classes.counts.codes(column)]
    return empty
