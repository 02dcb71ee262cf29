"""Anonymize: from a table and a policy to a proven release."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.choose import AUTO, engine_for
from shoal.codebook import codebook_path, write_codebook, write_mapping
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import UNIT, Classes
from shoal.core.contracts import Engine, Guarantee, Target
from shoal.core.counts import Domain
from shoal.core.evaluate import Evaluation, Evaluator, Problem, Progress
from shoal.core.groups import Shown
from shoal.core.hierarchy import Hierarchy
from shoal.core.matching import Saved, matched
from shoal.core.recoding import Recoding
from shoal.core.warm import to_compile
from shoal.errors import (
    DataError,
    InternalError,
    OutputError,
    UsageError,
)
from shoal.exposure import exposure_at
from shoal.losses import ColumnLoss, losses_of
from shoal.offer import Chosen, adopted
from shoal.outliers import argus, broken, outliers_at
from shoal.policy import Policy, named
from shoal.problem import check_label, counted, problem_of
from shoal.publish import CODEBOOK, REPORT, SENSITIVE, Draft, draft, private_folder, write_private
from shoal.recipe import audit_of, recipe_of
from shoal.release import Release
from shoal.report import report as report_of
from shoal.risk import persons_of
from shoal.search import search
from shoal.sensitive import reference_of
from shoal.sensitive_table import path_beside, sensitive_table, separated
from shoal.special import SPECIAL_SIZE, Special, special_uniques
from shoal.utility import Utility, compared
from shoal.verify import Verification, judge


def anonymize(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    output: str | Path | None = None,
    force: bool = False,
    node: Chosen = None,
    mapping: bool = False,
    report: bool = False,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Release:
    """Find the acceptable recoding of least loss, apply it, count the result afresh and release it.

    Without an output the release's table is of the same kind as the table that came in. `node` fixes
    the levels of the columns it names; the others are searched. It may be an offer of a negotiation, its
    JSON or a file of it: then its k (or l) and its limit stand in for the policy's. `mapping` adds, to the
    private folder, what became of every value; `report` adds a page that tells of the release.
    """
    if seconds is not None and not seconds > 0:
        message = f"seconds must be above 0, got {seconds}."
        raise UsageError(message)
    policy, levels = adopted(Policy.load(policy), node)
    engine = engine_for(engine, table, memory_limit)
    wish = Wish(policy, levels, seconds, mapping=mapping, report=report)
    return released(table, wish, engine, output=output, force=force, progress=progress)


@dataclass(frozen=True)
class Wish:
    """What is wanted: a recoding by a policy, some levels or all regions of it given; and extras."""

    policy: Policy
    levels: Mapping[str, int] | None = None
    seconds: float | None = None
    regions: Saved | None = None
    mapping: bool = False  # to the private folder: what became of every value
    report: bool = False  # likewise: the page that tells of the release

    def found(self, problem: Problem, progress: Progress) -> tuple[str, Evaluation]:
        """Search for the recoding, or put the one that is given on the problem."""
        if self.regions is not None:
            name, _ = named(self.policy.algorithm)
            return name, matched(Evaluator(problem, seconds=self.seconds, progress=progress), self.regions)
        check_label(problem)
        algorithm = self.policy.search_algorithm
        finishing = self.policy.finishing
        return search(problem, algorithm, seconds=self.seconds, progress=progress, **finishing)


def released(
    table: Any,
    wish: Wish,
    engine: Engine,
    *,
    output: str | Path | None,
    force: bool,
    progress: Progress | None,
) -> Release:
    """Release a table as wished, in memory or to a file."""
    apart = separated(wish.policy)
    run = _Run(wish, engine, progress or (lambda *_: None))
    if output is None:
        if wish.report:
            message = "report is written to the private folder of an output. Name one, or use shoal.report."
            raise UsageError(message)
        try:
            return run.in_memory(table)
        finally:
            engine.close()
    target = engine.target(output)
    beside = {CODEBOOK: codebook_path(target.path)}
    if apart:
        if target.kind == "table":
            message = f"Algorithm 'anatomy' releases two tables, which {target.name!r} is not. Name a file."
            raise OutputError(message)
        beside[f"{SENSITIVE}{target.ending}"] = path_beside(target.path, target.ending)
    try:
        for written in (target, *[Target(str(path), "file") for path in beside.values()]):
            if engine.same(table, written):
                message = f"{written.name!r} is the input and would be replaced. Name another output."
                raise OutputError(message)
        with draft(target, engine, force=force, beside=beside) as begun:
            engine.spill(begun.spill)
            return run.to_file(table, begun)
    finally:
        engine.close()


class _Run:
    """One run: count, search, recode, verify, each timed."""

    def __init__(self, wish: Wish, engine: Engine, progress: Progress) -> None:
        self.wish = wish
        self.policy = wish.policy
        self.engine = engine
        self.progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.progress(name, 0, None)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def in_memory(self, source: Any) -> Release:
        found = self.find(source)
        with self.phase("recode"):
            changed = set(found.recoding.columns) - set(found.recoding.as_is())
            kept = [name for name in self.kept(found) if name not in changed]
            table = self.engine.materialize(self.recode(found), source, kept)
            second = self.second(found)
            if second is not None:
                second = self.engine.materialize(second, source, self.policy.roles.sensitive)
        verification = self.check(found, table, second)
        return self.release(found, verification, table=table, sensitive_table=second)

    def to_file(self, source: Any, begun: Draft) -> Release:
        found = self.find(source)
        target = begun.stage.target
        waiting = f"{SENSITIVE}{target.ending}"
        with self.phase("recode"):
            begun.stage.write(self.recode(found))
            second = self.second(found)
            if second is not None:
                self.engine.write(second, replace(target, name=str(begun.private / waiting)))
        written = None if second is None else begun.private / waiting
        verification = self.check(found, begun.stage.waiting, written)
        measured = self.utility(found, begun.stage.waiting) if self.wish.report else None
        release = self.release(
            found,
            verification,
            utility=measured,
            special=self.special(found) if self.wish.report else None,
            output=target.name if target.kind == "table" else begun.output,
            codebook=begun.beside[CODEBOOK],
            report=private_folder(begun.output) / REPORT if self.wish.report else None,
            sensitive_table=begun.beside.get(waiting),
        )
        recipe = recipe_of(self.policy, found.problem, found.evaluation, found.domains)
        if self.wish.mapping:
            write_mapping(begun.private / "mapping", found.problem, found.recoding, found.domains)
        write_codebook(begun.private / CODEBOOK, self.policy, found.recoding, found.labels)
        if self.wish.report:
            write_private(begun.private / REPORT, report_of(release))
        home = begun.commit(recipe, audit_of(release.to_dict(), verification))
        return replace(release, recipe=home)

    def find(self, source: Any) -> _Found:
        policy = self.policy
        table = self.engine.open(source)
        with self.phase("count"):
            counts, domains = counted(table, policy, self.engine)
        if self.wish.report:
            _ = persons_of(policy, counts.records)  # refuses a population smaller than the table
        problem = problem_of(policy, counts, domains, self.wish.levels, self.engine.memory)
        self.warm(problem)
        with self.phase("search"):
            name, evaluation = self.wish.found(problem, self.progress)
        recoding = evaluation.recoding or problem.recoding(evaluation.node)
        classes = problem.classes_of(recoding)
        if recoding.regions is None:
            gone = problem.violations(classes)
            recoding = recoding.suppressing(classes.counts.keys[:, gone])
        else:
            gone = recoding.regions.suppressed
        labels = {
            hierarchy.name: _labels(hierarchy, recoding, column, classes.counts.codes(column)[~gone])
            for column, hierarchy in enumerate(problem.hierarchies)
        }
        sizes = classes.sizes[~gone]
        kept = len(sizes), int(sizes.min())
        masks = policy.suppressed == "mask" and _crowd(problem, classes, gone)
        masks = masks and not (_empty(recoding, classes, domains) & ~gone).any()
        losses = losses_of(problem, recoding, classes, gone)
        return _Found(table, domains, problem, name, evaluation, recoding, labels, kept, masks, losses)

    def warm(self, problem: Problem) -> None:
        """Compile the kernels that will be needed, where this has not been done on this machine."""
        waiting = to_compile(problem.counts.words)
        if self.wish.regions is None and self.policy.search_algorithm is not None:
            waiting += self.policy.search_algorithm.to_compile()
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
        blank = [*quasi, *roles.sensitive] if found.masks else None
        return self.engine.recode(found.table, found.recoding, found.domains, keep=keep, blank=blank)

    def second(self, found: _Found) -> Any:
        """Make the table of a sensitive column that is released apart, if one is."""
        return sensitive_table(self.engine, found.recoding, found.domains) if found.recoding.apart else None

    def check(self, found: _Found, released: Any, second: Any) -> Verification:
        """Count what was released; what was promised and does not hold is our own defect."""
        with self.phase("verify"):
            told = reference_of(found.problem.counts, found.domains)
            verification = judge(released, self.policy, self.engine, told, second)
            faults = self.faults(found, verification, released)
        expected = found.problem.records
        if not found.masks:
            expected -= found.evaluation.suppressed
        wrong = verification.records != expected
        if verification.unchecked:  # what the release does not show holds for the classes judged, or merged
            wrong |= verification.classes > found.kept[0] or verification.smallest_class < found.kept[1]
            verification = replace(verification, verified=not verification.reasons)
        if faults or wrong:
            reasons = "; ".join(faults) or "the number of records is wrong"
            message = (
                f"The release failed its fresh count and was not written: {reasons}. Please report this."
            )
            raise InternalError(message)
        return verification

    def utility(self, found: _Found, released: Any) -> Utility | None:
        """Measure what the analyst loses, for the report; no release fails because of it."""
        with self.phase("compare"), suppress(DataError):
            opened, told = self.engine.open(released), self.progress
            return compared(self.engine, found.table, opened, self.policy, progress=told, lenient=True)
        return None

    def special(self, found: _Found) -> Special | None:
        """Look for what makes records unique, for the report."""
        counts = found.problem.counts
        if not counts.held:
            return None
        columns = self.policy.roles.quasi_identifiers
        with self.phase("uniques"):
            return special_uniques(counts, columns, SPECIAL_SIZE, progress=self.progress)

    def faults(self, found: _Found, verification: Verification, released: Any) -> list[str]:
        """Say what must not be: that models are violated, unless the search promises nothing of them."""
        algorithm = self.policy.search_algorithm
        if algorithm is None or algorithm.guarantee is not Guarantee.NONE:
            return list(verification.reasons)
        models = tuple(f"{check.model}: " for check in verification.models if check.passed is False)
        faults = [reason for reason in verification.reasons if not reason.startswith(models)]
        rare = broken(self.policy, self.engine, released, found.recoding) if argus(self.policy) else None
        return [*faults, rare] if rare else faults

    def release(self, found: _Found, verification: Verification, **where: Any) -> Release:
        looked = outliers_at(found.problem, found.evaluation.node) if argus(self.policy) else None
        return Release(
            policy=self.policy,
            evaluation=found.evaluation,
            algorithm=found.algorithm,
            hierarchies=found.problem.hierarchies,
            labels=found.labels,
            as_is=found.recoding.as_is(),
            lattice_size=found.problem.lattice.size,
            records=found.problem.records,
            suppressed=found.evaluation.suppressed,
            masked=found.evaluation.suppressed if found.masks else 0,
            verification=verification,
            seconds=dict(self.seconds),
            exposure=exposure_at(found.problem.counts),
            losses=found.losses,
            outliers=looked,
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
    masks: bool  # the suppressed are kept masked: enough for a class, in persons too, that join no other
    losses: Mapping[str, ColumnLoss]


def _labels(hierarchy: Hierarchy, recoding: Recoding, column: int, codes: IntArray) -> tuple[str, ...]:
    """Return the labels, in words, of the groups that occur in a column."""
    present = np.unique(codes).tolist()
    if recoding.node is not None:
        return tuple(hierarchy.labels[recoding.node[column]][code] for code in present)
    shown = recoding.labels[column]
    if shown is None:
        values = hierarchy.labels[0]
        if recoding.apart:
            return values  # all of them are released
        return tuple(values[code] for code in present if code < len(values))
    return tuple(_in_words([ends[code] for ends in shown.values()]) for code in present)


def _in_words(look: Sequence[Shown]) -> str:
    """Say what a group looks like: its label, or its bounds, of which any may be missing.

    >>> [_in_words(look) for look in (["20-29"], [20, 29], [42, 42], [90, None], [None, 19], [None, None])]
    ['20-29', '20 to 29', '42', 'from 90', 'up to 19', '(empty)']
    """
    lower, upper = look[0], look[-1]
    if lower == upper:
        return "(empty)" if lower is None else str(lower)
    if lower is None:
        return f"up to {upper}"
    return f"from {lower}" if upper is None else f"{lower} to {upper}"


def _crowd(problem: Problem, classes: Classes, gone: BoolArray) -> bool:
    """Tell whether suppressed records taken together are as many as every model wants in a class."""
    enough = bool(classes.sizes[gone].sum() >= problem.least_size)
    for model in problem.models:
        if model.unit_column is not None:
            spread = classes.distribution(UNIT + model.unit_column)
            enough &= len(np.unique(spread.codes[gone[spread.rows]])) >= model.least_size
    return enough


def _empty(recoding: Recoding, classes: Classes, domains: Mapping[str, Domain]) -> BoolArray:
    """Mark the classes that are released with every quasi-identifier empty, as masked records are."""
    empty = np.ones(len(classes), np.bool_)
    for column, (name, labels) in enumerate(zip(recoding.columns, recoding.labels, strict=True)):
        if labels is None:
            shown = np.array([*[not text for text in domains[name].texts], True])  # a blank comes last
        else:
            looks = zip(*labels.values(), strict=True)
            shown = np.array([all(end in (None, "") for end in look) for look in looks])
        empty &= shown[classes.counts.codes(column)]
    return empty
