"""Releasing: one run from a table to a release, in memory or to a file, each phase of it timed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.assessing.exposure import exposure_at
from shoal.core.contracts import Engine, Guarantee
from shoal.core.problem import Problem
from shoal.core.progress import Progress, quiet
from shoal.core.targets import Target
from shoal.errors import InternalError, OutputError, UsageError
from shoal.outliers import outliers_of, rare_in
from shoal.outputs import REPORT, private_folder, write_private
from shoal.problem import counted, problem_of
from shoal.recipe import audit_of, recipe_of
from shoal.release import Release
from shoal.releasing.codebook import codebook_path, write_codebook, write_mapping
from shoal.releasing.notes import see
from shoal.releasing.publish import CODEBOOK, SENSITIVE, Draft, draft
from shoal.releasing.searched import Searched, searched
from shoal.releasing.task import Task
from shoal.reporting.figures import Figures, check_population, figures
from shoal.sensitive import reference_of
from shoal.sensitive_table import second_path, sensitive_table, separated
from shoal.spreadsheet import is_sheet
from shoal.verify import Verification, judge


def released(
    table: Any,
    task: Task,
    engine: Engine,
    *,
    output: str | Path | None,
    force: bool,
    progress: Progress | None,
) -> Release:
    """Do a task: release a table, in memory or to a file; the engine is let go."""
    separated(task.policy)  # what it refuses is refused before the work
    run = Run(task, engine, progress or quiet)
    with closing(engine):
        task.sheet.check(task.policy, None if output is None else engine.target(output))
        return run.in_memory(table) if output is None else _to_file(table, run, output, force=force)


def _to_file(table: Any, run: Run, output: str | Path, *, force: bool) -> Release:
    """Release to a file, or to a table of a database, unless that is what is read."""
    target = run.task.sheet.on(run.engine.target(output))
    beside = {CODEBOOK: codebook_path(target.path)}
    if (second := second_path(run.policy, target)) is not None:
        beside[f"{SENSITIVE}{target.ending}"] = second
    for written in (target, *[Target(str(path), "file") for path in beside.values()]):
        if run.engine.same(table, written):
            message = f"{written.name!r} is the input and would be replaced. Name another output."
            raise OutputError(message)
    with draft(target, run.engine, force=force, beside=beside) as begun:
        run.engine.spill(begun.spill)
        return run.to_file(table, begun)


class Run:
    """One run: count, search, recode, verify, each timed."""

    def __init__(self, task: Task, engine: Engine, progress: Progress) -> None:
        self.task = task
        self.policy = task.policy
        self.engine = engine
        self.progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Tell that a phase begins, and keep how long it takes."""
        self.progress(name, 0, None)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def in_memory(self, source: Any) -> Release:
        """Release to a table of the kind that came in."""
        if self.task.report:
            message = "report is written to the private folder of an output. Name one, or use shoal.report."
            raise UsageError(message)
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
        """Release to what a draft waits for, counted from what was written."""
        target = begun.stage.target
        found = self.find(source, runs=is_sheet(target) and not self.task.sheet.safe)
        waiting = f"{SENSITIVE}{target.ending}"
        with self.phase("recode"):
            begun.stage.write(self.recode(found))
            second = self.second(found)
            if second is not None:
                self.engine.write(second, replace(target, name=str(begun.private / waiting)))
        waits, written = begun.stage.waiting, None if second is None else begun.private / waiting
        told: Figures = {}
        if self.task.report:  # before cells are made safe: they are compared with those of the input
            told = figures(self.engine, self.policy, found, waits, self.phase, self.progress)
        if self.task.sheet.rewrites:
            with self.phase("escape"):
                for path in (waits, *([] if written is None else [written])):
                    self.task.sheet.finish(Path(path), target)
        verification = self.check(found, waits, written)
        release = self.release(
            found,
            verification,
            **told,
            output=target.name if target.kind == "table" else begun.output,
            codebook=begun.beside[CODEBOOK],
            report=private_folder(begun.output) / REPORT if self.task.report else None,
            sensitive_table=begun.beside.get(waiting),
        )
        return self.commit(begun, found, release)

    def commit(self, begun: Draft, found: Searched, release: Release) -> Release:
        """Write what goes with a release, and put all of it in place."""
        recipe = recipe_of(self.policy, found.problem, found.evaluation, found.domains)
        if self.task.mapping:
            write_mapping(begun.private / "mapping", found.problem, found.recoding, found.domains)
        book = self.task.sheet.on(Target(str(begun.private / CODEBOOK), "file", ".csv"))
        write_codebook(book, self.policy, found.recoding, found.labels, found.problem.hierarchies)
        self.task.sheet.finish(book.path, book)
        if self.task.report:
            write_private(begun.private / REPORT, self.task.report(release))
        home = begun.commit(recipe, audit_of(release.to_dict(), release.verification))
        return replace(release, recipe=home)

    def find(self, source: Any, *, runs: bool = False) -> Searched:
        """Count and search; `runs`: what is released may be opened by what runs formulas."""
        table = self.engine.open(source)
        with self.phase("count"):
            counts, domains = counted(table, self.policy, self.engine)
            seen = see(self.policy, self.engine, table, counts, domains.values(), formulas=runs)
        if self.task.report:
            check_population(self.policy, counts.records)
        problem = problem_of(self.policy, counts, domains, self.task.levels, self.engine.memory)
        self.warm(problem)
        with self.phase("search"):
            name, evaluation = self.task.found(problem, self.progress)
        mask = self.policy.suppressed == "mask"
        found = searched(table, domains, problem, name, evaluation, mask=mask)
        formulas = seen.formulas(found.labels) if runs else ()
        return replace(found, notes=(*seen.notes(), *formulas))

    def warm(self, problem: Problem) -> None:
        """Compile the kernels that will be needed, where this has not been done on this machine."""
        waiting = self.task.to_compile(problem)
        if waiting:
            with self.phase("compile"):
                for compile_one in waiting:
                    compile_one()

    def kept(self, found: Searched) -> list[str]:
        """Name the columns that a release keeps: all but identifiers."""
        dropped = set(self.policy.roles.identifiers)
        return [name for name in self.engine.columns(found.table) if name not in dropped]

    def recode(self, found: Searched) -> Any:
        """Recode the rows, as the engine does it."""
        roles = self.policy.roles
        keep = self.kept(found)
        quasi = [shown for name in roles.quasi_identifiers for shown in self.policy.released(name)]
        blank = [*quasi, *roles.sensitive] if found.masks else None
        return self.engine.recode(found.table, found.recoding, found.domains, keep=keep, blank=blank)

    def second(self, found: Searched) -> Any:
        """Make the table of a sensitive column that is released apart, if one is."""
        return sensitive_table(self.engine, found.recoding, found.domains) if found.recoding.apart else None

    def check(self, found: Searched, released: Any, second: Any) -> Verification:
        """Count what was released; what was promised and does not hold is our own defect."""
        with self.phase("verify"):
            told = reference_of(found.problem.counts, found.domains)
            verification = judge(released, self.policy, self.engine, told, second)
            faults = self.faults(found, verification, released)
        wrong = verification.records != found.records
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

    def faults(self, found: Searched, verification: Verification, released: Any) -> list[str]:
        """Say what must not be: that models are violated, unless the search promises nothing of them."""
        algorithm = self.policy.search_algorithm
        if algorithm is None or algorithm.guarantee is not Guarantee.NONE:
            return list(verification.reasons)
        models = tuple(f"{check.model}: " for check in verification.models if check.passed is False)
        faults = [reason for reason in verification.reasons if not reason.startswith(models)]
        rare = rare_in(self.policy, self.engine, released, found.recoding)
        return [*faults, rare] if rare else faults

    def release(self, found: Searched, verification: Verification, **where: Any) -> Release:
        """Gather what is told of the release."""
        return Release(
            policy=self.policy,
            evaluation=found.evaluation,
            algorithm=found.algorithm,
            hierarchies=found.problem.hierarchies,
            labels=found.labels,
            as_is=found.recoding.as_is(),
            lattice_size=found.problem.lattice.size,
            records=found.problem.records,
            limit=found.problem.limit,
            suppressed=found.evaluation.suppressed,
            masked=found.evaluation.suppressed if found.masks else 0,
            verification=verification,
            seconds=dict(self.seconds),
            exposure=exposure_at(found.problem.counts),
            losses=found.losses,
            vanished=found.vanished,
            notes=(*found.notes, *self.task.sheet.notes),
            outliers=outliers_of(self.policy, found.problem, found.evaluation.node),
            **where,
        )
