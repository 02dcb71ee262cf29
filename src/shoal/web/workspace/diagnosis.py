"""The diagnosis of a table, and questions about any of its columns."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

from pydantic import Field

from shoal.columns.header import check_asked
from shoal.core.counts.diversity import DiversityKind
from shoal.core.progress import Progress
from shoal.policy.limits import limit_in_records
from shoal.web.errors import NotReady, error_field
from shoal.web.fields import Diverse, Names, PositiveReal, PositiveSeconds, ShortText, SuppressionLimit
from shoal.web.workspace.draft import CachedResult, PolicyDraft
from shoal.web.workspace.step import Step
from shoal.web.workspace.table import NO_COLUMNS
from shoal.workflow.diagnosis.diagnose import check_diversity, diagnose
from shoal.workflow.diagnosis.diagnosis import Diagnosis
from shoal.workflow.diagnosis.questions import QUESTIONS, Answer, Sets, Suppression, check_options

QuestionName = Literal[
    "overview", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "unsafe", "rows", "suggest"
]  # fmt: skip
_MOST_SETS = 10_000  # sets that are listed in an answer


class QuestionOptions(TypedDict, total=False):
    """Options of a question; each question takes some of them."""

    k: Diverse | None
    at_most: bool | None
    suppression_limit: SuppressionLimit | None
    max_size: Annotated[int, Field(ge=1, le=5_000, strict=True)] | None
    most: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None


@dataclass(frozen=True)
class Protection:
    """The protection that a diagnosis or question assumes: k, or the l of a sensitive column, or both."""

    sensitive: str | None = None
    diversity: DiversityKind = "distinct"
    c: float | None = None
    l: float | None = None

    def check(self) -> None:
        """Raise an error if the settings are incompatible."""
        check_diversity(self.sensitive, self.diversity, self.c, self.l)


class DiagnosisCounts:
    """The counts that the diagnosis and the questions share; the last counts are cached."""

    def __init__(self, draft: PolicyDraft) -> None:
        self.draft = draft
        self._counted: CachedResult[Diagnosis] = CachedResult()

    def count(
        self, columns: Sequence[str], protection: Protection, progress: Progress | None = None
    ) -> Diagnosis:
        """Count the combinations of some columns. The counts of the last call are cached."""
        table = self.draft.table
        with table.changes.lock:
            key, path = (table.revision, tuple(columns), protection), table.path
        counted = self._counted.get(key)
        if counted is None:
            counted = diagnose(path, tuple(columns), **vars(protection), progress=progress)
            self._counted = CachedResult(key, counted.telling(None))
        return counted.telling(progress)


@dataclass(frozen=True)
class RiskSummary:
    """How exposed the records are."""

    records: int
    classes: int
    k: float  # l, if a sensitive column was given; 0 if a class satisfies no l
    unique: int
    highest: float  # risk of the most exposed record
    average: float


@dataclass(frozen=True)
class Findings:
    """The result of a diagnosis."""

    measure: str  # k or l
    columns: tuple[str, ...]
    k: float  # as requested
    limit: int
    suppressed: int  # records in classes below k
    risk: RiskSummary
    unsafe: Sets
    safe: Sets
    l: float | None = None  # the l that every class needs in addition to its k


class DiagnosisStep(Step[tuple[Findings, Diagnosis]]):
    """The step that diagnoses the quasi-identifiers before any generalization."""

    missing_result = "Diagnose first."

    def __init__(self, draft: PolicyDraft, counts: DiagnosisCounts) -> None:
        super().__init__(draft)
        self.counts = counts

    def key(self) -> object:
        return self.draft.columns_key()

    def check(self, columns: Sequence[str] | None = None, **request: Any) -> None:
        Protection(**{name: request[name] for name in vars(Protection()) if name in request}).check()
        if columns is None:
            self.draft.table.require_quasi_identifiers("columns")

    def run(
        self,
        k: Diverse = 5,
        suppression_limit: SuppressionLimit = 0,
        columns: list[ShortText] | None = None,
        sensitive: ShortText | None = None,
        diversity: DiversityKind = "distinct",
        c: PositiveReal | None = None,
        l: Diverse | None = None,
        seconds: PositiveSeconds = 60.0,
        *,
        progress: Progress | None = None,
    ) -> Findings:
        """Find the risk, the smallest unsafe sets of columns and the largest safe ones.

        Without `columns`, the quasi-identifiers are diagnosed. With `sensitive`, k is the l of this column by
        `diversity`. If `l` is also given, k is the class size, and every class must satisfy both k and l.
        """
        table = self.draft.table
        chosen = table.require_quasi_identifiers("columns") if columns is None else tuple(columns)
        if not chosen:
            raise NotReady(NO_COLUMNS, "columns")
        if columns is None:
            chosen = tuple(name for name in chosen if name != sensitive)
        key, limit = self.key(), limit_in_records(suppression_limit, table.records)
        counted = self.counts.count(chosen, Protection(sensitive, diversity, c, l), progress)
        unsafe = counted.unsafe_sets(k, limit, seconds=seconds)
        safe = counted.largest_sets(k, limit, seconds=seconds)
        summary, below = _risk_summary(counted), counted.rows_to_suppress(k)
        findings = Findings(counted.measure, counted.columns, k, limit, below, summary, unsafe, safe, l)
        self._store(key, (findings, counted.telling(None)), progress)
        return findings

    def to_dict(self) -> dict[str, Any]:
        """Return the findings of the diagnosis."""
        return asdict(self.required_result[0])

    @property
    def findings(self) -> Findings | None:
        """The findings for the current quasi-identifiers."""
        result = self.result
        return result and result[0]

    def curve(self, columns: Sequence[str] | None = None, most: int | None = 100) -> tuple[Suppression, ...]:
        """Return the number of records that each k up to `most` suppresses, for some diagnosed columns."""
        return self.required_result[1].suppression_by_k(columns, most)


def _risk_summary(counted: Diagnosis) -> RiskSummary:
    k, classes, records = counted.anonymity(), counted.combinations, counted.records
    return RiskSummary(records, classes, k, counted.records_alone(), 1 / max(k, 1), classes / records)


@dataclass(frozen=True)
class QuestionResult:
    """An answer, and the file with the row numbers of the affected records, if the question asks for them."""

    answer: Answer
    rows: Path | None = None


class QuestionStep(Step[QuestionResult]):
    """The last question and its answer. A question names its columns, which may have any role."""

    missing_result = "Ask a question first."

    def __init__(self, draft: PolicyDraft, counts: DiagnosisCounts) -> None:
        super().__init__(draft)
        self.counts = counts

    def key(self) -> object:
        return self.draft.table.revision

    def check(self, question: str, columns: Sequence[str] | None = None, **request: Any) -> None:
        """Raise an error if the options or columns of a question are invalid."""
        protection_options = {name: request.pop(name) for name in vars(Protection()) if name in request}
        self._columns(question, columns, Protection(**protection_options), request)

    def _columns(
        self, question: str, columns: Sequence[str] | None, protection: Protection, options: Mapping[str, Any]
    ) -> tuple[str, ...]:
        protection.check()
        check_options(question, {name: value for name, value in options.items() if name != "seconds"})
        table = self.draft.table
        with error_field("columns"):
            chosen = table.require_quasi_identifiers() if columns is None else tuple(columns)
            chosen = tuple(name for name in chosen if name != protection.sensitive)
            return tuple(check_asked(chosen, table.loaded.names))

    def run(
        self,
        question: QuestionName,
        columns: Names | None = None,
        sensitive: ShortText | None = None,
        diversity: DiversityKind = "distinct",
        c: PositiveReal | None = None,
        l: Diverse | None = None,
        seconds: PositiveSeconds = 60.0,
        *,
        progress: Progress | None = None,
        **options: Unpack[QuestionOptions],
    ) -> Answer:
        """Answer one of the questions of a diagnosis for any set of columns, whatever their roles are.

        Without `columns`, the question is about the quasi-identifiers. With `sensitive`, k is the l of that
        column, unless `l` is also given. With `rows`, the row numbers of the affected records are written to
        the download `affected-rows`.
        """
        protection = Protection(sensitive, diversity, c, l)
        chosen, key = self._columns(question, columns, protection, options), self.key()
        counted = self.counts.count(chosen, protection, progress)
        limit = {"seconds": seconds} if "seconds" in QUESTIONS[question].takes else {}
        answer = counted.ask(question, **options, **limit)
        rows = None
        if question == "rows":
            rows = self.draft.table.folder / f"rows-{secrets.token_hex(6)}.txt"
            counted.write_rows(rows, options["k"] or 1)
        old = self._result.result
        try:
            self._store(key, QuestionResult(answer, rows), progress)
        except BaseException:
            _remove(rows)
            raise
        _remove(old.rows if old else None)
        return answer

    def to_dict(self) -> dict[str, Any]:
        """Return the last answer. A list of sets is cut after 10,000 sets."""
        values = self.required_result.answer.to_dict()
        if isinstance(values["answer"], list):
            values["answer"] = values["answer"][:_MOST_SETS]
        return values


def _remove(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)
