"""Anonymize a table, or apply a recoding from an earlier run: count, search, recode, verify, publish."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.core.compilation import compile_events
from shoal.core.contracts import Engine, Guarantee, ReleaseColumns
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.core.targets import Target
from shoal.errors import (
    DataError,
    HierarchyError,
    Infeasible,
    InternalError,
    OutputError,
    PolicyError,
    UsageError,
)
from shoal.files.outputs import (
    CERTIFICATE,
    POLICY,
    REPORT,
    check_inputs,
    private_folder,
    write_private,
    writing,
)
from shoal.files.signals import cleanup
from shoal.policy.limits import check_seconds, share_of
from shoal.policy.policy import Policy
from shoal.workflow.policy_request import DEFAULT_K, PolicyRequest, check_alone
from shoal.workflow.problem import counted, problem_of, reference_of, separate_column, without_unused_label
from shoal.workflow.release.codebook import write_codebook, write_mapping
from shoal.workflow.release.notes import mask_notes, review_columns
from shoal.workflow.release.publish import Draft, check_private_inputs, draft
from shoal.workflow.release.recipe import Recipe, audit_of, recipe_of
from shoal.workflow.release.recovery import load_policy, recover_recipe
from shoal.workflow.release.release import Basis, Release
from shoal.workflow.release.revealed import unchanged_in
from shoal.workflow.release.search_result import (
    ChangeGuard,
    SearchOutcome,
    SearchResult,
    recount_differs,
    refuse_if_revealed,
    search_result,
    table_changed,
)
from shoal.workflow.release.spreadsheet import PLAIN_SHEET, Sheet, is_sheet
from shoal.workflow.release.stage import CODEBOOK, SENSITIVE, companions, recorded_companions
from shoal.workflow.risk.exposure import exposure_at
from shoal.workflow.search import find
from shoal.workflow.session import AUTO, Session, session
from shoal.workflow.verify import Verification, judge

if TYPE_CHECKING:
    from shoal.core.recoding.matching import Saved
    from shoal.workflow.first_policy import FirstPolicy
    from shoal.workflow.outliers import Outliers
    from shoal.workflow.profile.offer import NodeChoice


def anonymize(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    *,
    known: Sequence[str] | str | None = None,
    keep: Sequence[str] | str | None = None,
    k: int | None = None,
    drop: Sequence[str] = (),
    output: str | Path | None = None,
    force: bool = False,
    node: NodeChoice = None,
    mapping: bool = False,
    report: bool = False,
    spreadsheet_safe: bool = False,
    delimiter: str | None = None,
    bom: bool = False,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    seconds: float | None = 20.0,
    margin: float | str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Find the acceptable recoding with the least loss, apply it, check the result and release it.

    If no policy is given, it is guessed like in `shoal.init`, from `known`, `keep` and `k` (default: 5).
    Columns named in `drop` are removed, whatever their role.

    `seconds` limits the search (None: no limit). At the limit, the best result so far is released, with its
    guarantee. Without `output` the released table has the same type as the input. `node` fixes the levels of
    the columns that it names; the search chooses the other levels. `node` may also be an offer from a
    negotiation, as an object, JSON or a file; its k (or l) and its limit then replace those of the policy.
    `mapping` writes the label of every value, and `report` an HTML page about the release, to the private
    folder. `spreadsheet_safe` puts an apostrophe before cells of a CSV or TSV file that begin like a formula;
    `delimiter` (comma, semicolon, tab, pipe) separates its values, and `bom` adds a byte order mark.

    With a `margin` such as "20%", the search raises k and distinct l and lowers the limit by that share, so
    that the recipe is more likely to fit new data. Records are then suppressed, and the release is verified,
    with the policy's own k, l and limit.
    """
    check_seconds(seconds)
    stricter = None if margin is None else share_of(margin, "margin")
    if policy is not None:
        check_alone(known=known, keep=keep, k=k)
    request = PolicyRequest(known, keep, DEFAULT_K if k is None else k) if policy is None else policy
    sheet = Sheet(spreadsheet_safe, delimiter, bom)
    written: dict[str, Any] = {"mapping": mapping, "report": report, "margin": stricter, "sheet": sheet}
    with session(table, engine, memory_limit, progress) as s:
        chosen, levels, guessed = _requested(s, request, node)
        task = Task(chosen.dropping(drop) if drop else chosen, levels, seconds, guessed=guessed, **written)
        return release_table(s, task, output=output, force=force)


def _requested(
    s: Session, request: Any, node: NodeChoice
) -> tuple[Policy, dict[str, int], FirstPolicy | None]:
    """Return the policy, the levels that `node` fixes, and the guessed policy if none was given."""
    guessed = None
    if isinstance(request, PolicyRequest):
        from shoal.workflow.first_policy import first_policy

        guessed = first_policy(s, request)
    policy = guessed.policy if guessed else load_policy(request, s.engine)
    if node is None:
        return policy, {}, guessed
    from shoal.workflow.profile.offer import adopted

    return *adopted(policy, node), guessed


def apply(
    recipe: Recipe | Mapping[str, Any] | str | Path,
    table: Any,
    *,
    output: str | Path | None = None,
    force: bool = False,
    mapping: bool = False,
    report: bool = False,
    spreadsheet_safe: bool = False,
    delimiter: str | None = None,
    bom: bool = False,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    suppression_limit: float | str | None = None,
    repair: bool = False,
    local: bool | Mapping[str, int] = False,
    seconds: float | None = 20.0,
    progress: Progress | None = None,
) -> Release:
    """Recode a table by a recipe, suppress violating records within the limit, and check the result.

    The recipe's levels or regions are fixed. If the policy refines levels or blanks cells, this is done for
    the new data. `suppression_limit` replaces the policy's limit. With `repair`, levels that no longer
    satisfy the policy are raised to the node of least loss above them; `seconds` limits this search, and
    `Release.raised` lists the changes. `local` gives every class of this table its own labels, starting from
    the recipe's levels, like the policy option `local`. `mapping`, `report`, `spreadsheet_safe`, `delimiter`
    and `bom` are as in `anonymize`.

    Raises Infeasible if the recoding no longer satisfies the policy; its `nearest` has settings that work.
    """
    with session(table, engine, memory_limit, progress) as s:
        recover_recipe(recipe, s.engine)
        loaded = Recipe.load(recipe)
        _check_levels(loaded, repair=repair, local=bool(local))
        task = Task(
            loaded.policy.with_(suppression_limit=suppression_limit, local=local or None),
            loaded.levels,
            check_seconds(seconds) if repair else None,
            regions=loaded.regions,
            repair=repair,
            mapping=mapping,
            report=report,
            sheet=Sheet(spreadsheet_safe, delimiter, bom),
            recipe=Path(recipe) if isinstance(recipe, str | Path) else None,
        )
        return _apply(s, task, output, force=force)


def _check_levels(recipe: Recipe, *, repair: bool, local: bool) -> None:
    """Raise if an option needs levels and the recipe has none."""
    if recipe.levels is not None:
        return
    for option, requested, needs in (("repair", repair, "raises"), ("local", local, "starts from")):
        if requested:
            raise UsageError(
                f"{option} {needs} levels, and this recipe has none. Anonymize the table again.", field=option
            )


def _apply(s: Session, task: Task, output: str | Path | None, *, force: bool) -> Release:
    """Release with a recipe's recoding; error messages say that the recipe fixes the recoding."""
    names = task.policy.columns
    unnamed = [name for name in s.columns if name not in names]
    if unnamed and set(names) <= set(s.columns):
        raise PolicyError(
            f"The table has columns that the recipe's policy does not name: {', '.join(map(repr, unnamed))}. "
            "Remove them from the table, or anonymize it with a policy that gives each a role."
        )
    try:
        return release_table(s, task, output=output, force=force)
    except Infeasible as error:
        from shoal.workflow.infeasible import NO_RECODING

        if error.code != NO_RECODING:
            raise
        raise _outdated(error, task) from None
    except HierarchyError as error:
        raise HierarchyError(
            f"{error} A recipe fixes its hierarchies: correct this table, or anonymize it again.",
            error.values,
        ) from None


def _outdated(error: Infeasible, task: Task) -> Infeasible:
    """Return the error for a recipe that no longer fits a table: levels, models and limit are fixed."""
    if task.repair:
        return Infeasible(
            f"{error.reason} No higher level is enough.",
            error.advice,
            heading="The recipe cannot be repaired",
            advice_intro=error.advice_intro,
            code="recipe-outdated",
        )
    or_repair = ", or apply the recipe with the option repair, which raises levels"
    has_levels = task.levels is not None
    return Infeasible(
        f"{error.reason} A recipe fixes levels, models and limit: anonymize this table again, with its "
        f"policy or one that asks for less{or_repair if has_levels else ''}.",
        # The levels of a recipe are fixed, not bounded by max_level.
        [replace(change, action="", label="a higher level") for change in error.advice if change.option],
        heading="The recipe no longer holds",
        advice_intro="Nearest to the recipe, any one of these changes works:",
        code="recipe-outdated",
    )


@dataclass(frozen=True)
class Task:
    """A request for a release: the policy, fixed levels or regions, and additional outputs."""

    policy: Policy
    levels: Mapping[str, int] | None = None
    seconds: float | None = None
    regions: Saved | None = None
    mapping: bool = False  # write the label of every value to the private folder
    report: bool = False  # write an HTML page about the release to the private folder
    margin: float | None = None  # share by which the search is stricter than the policy
    repair: bool = False  # raise the given levels if the policy requires it
    sheet: Sheet = PLAIN_SHEET  # how a text file is written
    guessed: FirstPolicy | None = None  # if no policy was given
    recipe: Path | None = None  # the file or folder that the levels or regions were read from

    def search(self, problem: Problem, progress: Progress) -> SearchOutcome:
        """Search for a recoding, apply the given regions, or repair the given levels."""
        if self.repair:
            from shoal.workflow.release.adjust import repaired

            return repaired(self.policy, problem, self.seconds, progress)
        if self.margin is not None:
            from shoal.workflow.release.adjust import search_with_margin

            return search_with_margin(self.policy, problem, self.margin, self.seconds, progress)
        name, evaluation = find(self.policy, problem, self.regions, seconds=self.seconds, progress=progress)
        return SearchOutcome(problem, name, evaluation, {})


def release_table(s: Session, task: Task, *, output: str | Path | None, force: bool) -> Release:
    """Release the table of a session, to memory or to a file."""
    separate_column(task.policy)  # raises for an unsuitable policy before the work begins
    with ChangeGuard(s.source) as watch:
        task.sheet.check(task.policy, None if output is None else s.target(output))
        run = Run(task, s, watch)
        return run.in_memory() if output is None else _to_file(run, output, force=force)


def _to_file(run: Run, output: str | Path, *, force: bool) -> Release:
    """Release to a file or to a table of a database; the input cannot be the output."""
    target = run.task.sheet.on(run.session.target(output))
    names = [CODEBOOK]
    if separate_column(run.policy) is not None:
        if target.kind == "table":
            raise OutputError(
                f"Algorithm 'anatomy' releases two tables, which {target.name!r} is not. Name a file."
            )
        names.append(f"{SENSITIVE}{target.ending}")
    _check_inputs(run, target, {*companions(target.path, names).values()})
    policy = private_folder(target.path) / POLICY
    keep = policy.exists() and any(p.exists() and p.samefile(policy) for p in run.policy.read_files)
    with (
        draft(
            target, run.session.writer(target), force=force, beside=names, keep_policy=keep
        ) as release_draft,
        cleanup(release_draft.discard),
    ):
        run.engine.spill(target.path)
        return run.to_file(release_draft)


def _check_inputs(run: Run, target: Target, beside: set[Path]) -> None:
    """Raise if the run would overwrite one of its inputs, or remove it together with an old release."""
    paths = sorted(beside | {*recorded_companions(target.path).values()})
    for written in (target, *[Target(str(path), "file") for path in paths]):
        if run.engine.same(run.source, written):
            raise OutputError(f"{written.name!r} is the input and would be replaced. Name another output.")
    files = run.policy.read_files
    recipe = {run.task.recipe: "the recipe"} if run.task.recipe else {}
    check_inputs([*([] if target.kind == "table" else [target.path]), *paths], files | recipe)
    if (private := private_folder(target.path)).exists():
        table = Path(run.source) if isinstance(run.source, str | Path) else None
        check_private_inputs(private, table, files, guessed=run.task.guessed is not None)


class Run:
    """One run: count, search, check unchanged columns, recode, verify; each phase is timed."""

    def __init__(self, task: Task, s: Session, watch: ChangeGuard) -> None:
        self.task = task
        self.policy = task.policy
        self.session = s
        self.engine = s.engine
        self.source = s.source
        self.progress = s.progress
        self.watch = watch
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report the start of a phase and record its duration; compilation time is recorded separately."""
        self.progress(name, 0, None)
        start = time.perf_counter()
        with compile_events(self.progress) as timer:
            yield
        self.seconds[name] = time.perf_counter() - start - timer.seconds
        if timer.seconds:
            self.seconds["compile"] = self.seconds.get("compile", 0.0) + timer.seconds

    def in_memory(self) -> Release:
        """Release to a table of the same type as the input."""
        if self.task.report:
            raise UsageError(
                "report is written to the private folder of an output. Name one, or use shoal.report."
            )
        result = self.find()
        with self.phase("recode"):
            input_table = result.opened.table
            numbered = replace(result, opened=result.opened.with_table(self.engine.number_rows(input_table)))
            columns = self.release_columns(result)
            table, notes = self.engine.materialize(self.recode(numbered), self.source, input_table, columns)
            second = self.second(result)
            if second is not None:
                columns = ReleaseColumns(self.engine.columns(second), self.policy.roles.sensitive)
                second, second_notes = self.engine.materialize(second, self.source, input_table, columns)
                notes += second_notes
        result = replace(result, notes=(*result.notes, *notes))
        verification = self.check(result, table, second)
        self.watch.check()
        return self.release(result, verification, table=table, sensitive_table=second)

    def to_file(self, draft: Draft) -> Release:
        """Write the release to the draft, read it back, check it and publish it."""
        target = draft.stage.target
        result = self.find(formulas_run=is_sheet(target) and not self.task.sheet.safe)
        name = f"{SENSITIVE}{target.ending}"
        with self.phase("recode"), writing(draft.output):
            draft.stage.write(self.recode(result))
            second = self.second(result)
            if second is not None:
                self.session.writer(target).write(second, replace(target, name=str(draft.private / name)))
        staged, written = (draft.stage.waiting, None if second is None else draft.private / name)
        report_parts: dict[str, Any] = {}
        if self.task.report:  # before cells are escaped, because the page compares them with the input
            from shoal.workflow.report.report import report_data

            report_parts = {**report_data(self.policy, result, staged, self.phase, self.progress)}
        if self.task.sheet.rewrites:
            with self.phase("escape"), writing(draft.output):
                for path in (staged, *([] if written is None else [written])):
                    self.task.sheet.finish(Path(path), target)
        verification = self.check(result, staged, written)
        self.watch.check()
        release = self.release(
            result,
            verification,
            **report_parts,
            output=target.name if target.kind == "table" else draft.output,
            codebook=draft.beside[CODEBOOK],
            report=private_folder(draft.output) / REPORT if self.task.report else None,
            sensitive_table=draft.beside.get(name),
        )
        return self.commit(draft, result, release)

    def commit(self, draft: Draft, result: SearchResult, release: Release) -> Release:
        """Write the files that belong to a release, and publish all of them."""
        recipe = recipe_of(self.policy, result.problem, result.evaluation, result.domains, release.masked)
        codebook = self.task.sheet.on(Target(str(draft.private / CODEBOOK), "file", ".csv"))
        pages: dict[str, str] = {}
        if self.task.report:
            from shoal.workflow.report.certificate import certificate
            from shoal.workflow.report.report import report

            digest = draft.stage.digest() if isinstance(release.output, Path) else None
            pages = {REPORT: report(release)}
            if release.verification.verified:
                pages[CERTIFICATE] = certificate(release, digest)
        with writing(draft.output):
            if self.task.guessed:
                write_private(draft.private / POLICY, self.task.guessed.text)
            if self.task.mapping:
                write_mapping(draft.private / "mapping", result.problem, result.recoding, result.domains)
            write_codebook(codebook, self.policy, result.recoding, result.labels, result.problem.hierarchies)
            self.task.sheet.finish(codebook.path, codebook)
            for name, page in pages.items():
                write_private(draft.private / name, page)
        path = draft.commit(recipe, audit_of(release.to_dict(losses=False), release.verification))
        keeps = self.task.guessed or draft.keep_policy
        return replace(release, recipe=path, policy_file=path.parent / POLICY if keeps else None)

    def find(self, *, formulas_run: bool = False) -> SearchResult:
        """Count, search and check unchanged columns; `formulas_run` adds notes on formula-like cells."""
        table = self.session.table
        with self.phase("count"):
            labelled, domains = counted(table, self.policy, label=self.policy.label)
            counts = labelled
            if self.policy.label_needed is None and self.policy.label is not None:
                counts, domains = without_unused_label(self.policy, labelled, domains)
        if self.task.report:
            from shoal.workflow.report.report import check_population

            check_population(self.policy, counts.records)
        problem = problem_of(self.policy, counts, domains, self.task.levels, self.engine.memory)
        with self.phase("search"):
            chosen = self.task.search(problem, self.progress)
        result = search_result(
            table,
            domains,
            chosen.problem,
            chosen.algorithm,
            chosen.evaluation,
            mask=self.policy.masks,
            labelled=labelled,
        )
        with self.phase("exposure"):
            review = review_columns(self.policy, table, counts, domains, formulas=formulas_run)
            unchanged = unchanged_in(self.policy, result)
        refuse_if_revealed(unchanged, self.policy.fail)
        formulas = review.formulas(result.labels) if formulas_run else ()
        masking = mask_notes(self.policy, result.evaluation.suppressed, masked=result.masks)
        notes = (*self.engine.notes_on(table.table), *chosen.notes, *review.notes(), *masking, *formulas)
        return replace(result, notes=notes, unchanged=unchanged, raised=chosen.raised)

    def kept_columns(self, result: SearchResult) -> list[str]:
        """Return the columns of the release: all except identifiers."""
        dropped = set(self.policy.roles.identifiers)
        return [name for name in result.opened.columns if name not in dropped]

    def release_columns(self, result: SearchResult) -> ReleaseColumns:
        names, as_is = self.kept_columns(result), result.recoding.as_is()
        labels = dict(zip(result.recoding.columns, result.recoding.labels, strict=True))
        order = [column for name in names for column in (labels.get(name) or [name])]
        unchanged = [name for name in names if labels.get(name) is None]
        return ReleaseColumns(tuple(order), tuple(unchanged), tuple(name for name in names if name in as_is))

    def recode(self, result: SearchResult) -> Any:
        roles = self.policy.roles
        keep = self.kept_columns(result)
        quasi = [shown for name in roles.quasi_identifiers for shown in self.policy.released(name)]
        blank = [*quasi, *roles.sensitive] if result.masks else None
        return self.engine.recode(
            result.opened.table, result.recoding, result.domains, keep=keep, blank=blank
        )

    def second(self, result: SearchResult) -> Any:
        """Return the second table, if the sensitive column is released separately."""
        if not result.recoding.separate_column:
            return None
        from shoal.workflow.release.sensitive_table import sensitive_table

        return sensitive_table(self.engine, result.recoding, result.domains)

    def check(self, result: SearchResult, released: Any, second: Any) -> Verification:
        """Read the release back and check it; a violation here is a bug in shoal."""
        with self.phase("verify"):
            reference = reference_of(result.problem.counts, result.domains)
            try:
                verification = judge(
                    released, self.policy, self.session, reference, second, masks=result.masks
                )
                faults = self.faults(result, verification, released)
            except DataError:
                self.check_recount(result)
                raise
        wrong = verification.records != result.records
        wrong |= result.masks and verification.masked != result.evaluation.suppressed
        if verification.unchecked:  # the search checked them, so the classes must not be finer than there
            wrong |= verification.classes > result.remaining_classes[0]
            wrong |= verification.smallest_class < result.remaining_classes[1]
            verification = replace(verification, verified=not verification.reasons)
        if faults or wrong:
            self.check_recount(result)
            reasons = "; ".join(faults) or "the number of records is wrong"
            raise InternalError(
                f"The release failed its check and was not written: {reasons}. Please report this."
            )
        return verification

    def check_recount(self, result: SearchResult) -> None:
        """Raise if the table changed since the start of the run, or is a damaged file."""
        if recount_differs(result.opened, self.policy, result.problem.counts, result.domains):
            raise table_changed()
        if isinstance(self.source, str | Path) and str(self.source).lower().endswith(".parquet"):
            from shoal.engines.file_checks import check_statistics

            check_statistics(Path(self.source))

    def faults(self, result: SearchResult, verification: Verification, released: Any) -> list[str]:
        """Return the faults of a release; violated models count only if the search guarantees the models."""
        algorithm = self.policy.search_algorithm
        if algorithm is None or algorithm.guarantee is not Guarantee.NONE:
            return list(verification.reasons)
        violations = {check.violation for check in verification.models if check.passed is False}
        faults = [reason for reason in verification.reasons if reason not in violations]
        if not self.policy.tested_sets:
            return faults
        from shoal.workflow.outliers import rare_in

        rare = rare_in(self.policy, self.session, released, result.recoding)
        return [*faults, rare] if rare else faults

    def outliers(self, result: SearchResult) -> Outliers | None:
        if not self.policy.tested_sets:
            return None
        from shoal.workflow.outliers import outliers_of

        return outliers_of(self.policy, result.problem, result.evaluation.node)

    def release(self, result: SearchResult, verification: Verification, **where: Any) -> Release:
        guessed = self.task.guessed.release_notes if self.task.guessed else ()
        return Release(
            policy=self.policy,
            evaluation=result.evaluation,
            algorithm=result.algorithm,
            hierarchies=result.problem.hierarchies,
            labels=result.labels,
            as_is=result.recoding.as_is(),
            lattice_size=result.problem.lattice.size,
            records=result.problem.records,
            limit=result.problem.limit,
            suppressed=result.evaluation.suppressed,
            masked=result.evaluation.suppressed if result.masks else 0,
            verification=verification,
            seconds=dict(self.seconds),
            exposure=exposure_at(result.problem.counts),
            unchanged=result.unchanged,
            losses=result.losses,
            lost_values=result.lost_values,
            raised=result.raised,
            notes=(*guessed, *result.notes, *self.task.sheet.notes),
            outliers=self.outliers(result),
            basis=Basis(result.problem, result.domains, result.recoded),
            **where,
        )
