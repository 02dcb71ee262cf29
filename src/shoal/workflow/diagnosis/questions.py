"""The questions of a diagnosis, their results, and answers as plain values.

Questions 5 to 8 repeat questions 1 to 4 after suppression.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from shoal.columns.guesses import Guess
from shoal.columns.header import check_asked
from shoal.core.arrays import IntArray
from shoal.core.counts.diversity import kind_prefix
from shoal.document.document import Document, HasDocument
from shoal.errors import UnknownName, UsageError
from shoal.files.outputs import written_whole
from shoal.policy.limits import check_whole, limit_in_records
from shoal.wording import Change, plural

if TYPE_CHECKING:
    from shoal.workflow.diagnosis.diagnosis import Diagnosis

T = TypeVar("T")
ColumnSet = tuple[str, ...]  # in the order of the diagnosis's columns
MOST_SETS = 1 << 20  # maximum number of sets in a table: all sets of 20 columns


def number_of_sets(columns: int, max_size: int | None = None) -> int:
    """Count the sets of columns up to a size."""
    most = min(max_size or columns, columns)
    if most == columns:
        return (1 << columns) - 1
    return sum(math.comb(columns, size) for size in range(1, most + 1))


def written(number: int) -> str:
    """Write a number; if it has too many digits to read, write a power of ten that it exceeds.

    >>> written(12345), written(2**300)
    ('12,345', 'more than 10^90')
    """
    return f"{number:,}" if number < 10**15 else f"more than 10^{int(math.log10(number))}"


@dataclass(frozen=True)
class Suppression:
    """The records to suppress so that a set of columns reaches a k: all if no class reaches this k."""

    k: float
    suppressed: int
    share: float  # the smallest suppression limit that allows this number of records
    remaining: int

    @classmethod
    def of(cls, k: float, suppressed: int, records: int) -> Suppression:
        """Compute the share: rounded up, but with enough digits that it allows no further record."""
        digits = 10 ** (len(str(records)) + 2)
        share = -(-suppressed * digits // records) / digits
        return cls(k, suppressed, share, records - suppressed)


@dataclass(frozen=True)
class SetFinding:
    """The result for one set of columns."""

    columns: ColumnSet
    k: float  # reached within the suppression limit
    suppressed: int  # records in classes below the requested k


@dataclass(frozen=True)
class Sets:
    """The maximal safe sets, or the minimal unsafe sets."""

    kind: Literal["maximal", "minimal"]
    findings: tuple[SetFinding, ...]  # safe sets: most columns first; unsafe sets: fewest columns first
    counts: int  # sets counted
    complete: bool  # False if stopped: there may be more sets, and larger safe sets
    whole: SetFinding  # all columns together
    full_size: int = 0  # all sets with at most this number of columns were counted

    @property
    def sets(self) -> tuple[ColumnSet, ...]:
        """The safe sets with the most columns, or the unsafe sets with the fewest columns."""
        return tuple(
            finding.columns
            for finding in self.findings
            if len(finding.columns) == len(self.findings[0].columns)
        )


@dataclass(frozen=True, eq=False)
class SetTable(Mapping[ColumnSet, T]):
    """A value for every set of columns, the smallest sets first."""

    table: Mapping[ColumnSet, T] = field(repr=False)
    counts: int  # sets counted
    complete: bool

    def __getitem__(self, columns: ColumnSet) -> T:
        return self.table[columns]

    def __iter__(self) -> Iterator[ColumnSet]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


@dataclass(frozen=True, eq=False)
class Pruned(Mapping[ColumnSet, T]):
    """A value for every set up to a size; all sets that were not counted have the same value."""

    counted: Mapping[ColumnSet, T] = field(repr=False)
    columns: ColumnSet
    size: int
    other: T

    def __getitem__(self, columns: ColumnSet) -> T:
        if columns in self.counted:
            return self.counted[columns]
        left = iter(self.columns)  # a key has its columns in the table's order
        if isinstance(columns, tuple) and 0 < len(columns) <= self.size and all(c in left for c in columns):
            return self.other
        raise KeyError(columns)

    def __iter__(self) -> Iterator[ColumnSet]:
        return (s for size in range(1, self.size + 1) for s in combinations(self.columns, size))

    def __len__(self) -> int:
        return sum(math.comb(len(self.columns), size) for size in range(1, self.size + 1))


@dataclass(frozen=True)
class Suggestion:
    """The guessed role of each column, and the policy with these roles."""

    columns: tuple[Guess, ...]
    policy: str
    counts: int = 0  # sets counted


@dataclass(frozen=True)
class Overview:
    """A summary of the exposure by all columns together."""

    k: float  # the requested k
    combinations: int
    reached: float  # the k of the table
    unique: int  # unique records; if the measure is l, records in classes whose l is below 2
    suppressed: int  # records in classes below k
    unsafe: Sets  # the minimal sets of columns that violate k
    columns: tuple[Guess, ...]
    missing: int = 0  # columns that were not examined in time

    @property
    def counts(self) -> int:
        """The number of sets counted."""
        return self.unsafe.counts

    @property
    def complete(self) -> bool:
        """Whether all unsafe sets were found and all columns examined."""
        return self.unsafe.complete and not self.missing


def write_rows_file(path: Path, numbers: IntArray) -> None:
    """Write one number per line; the file appears only when it is complete."""
    with written_whole(path) as file:
        file.writelines(b"%d\n" % number for number in numbers.tolist())


@dataclass(frozen=True)
class Question:
    """A question, and the method of a diagnosis that answers it. The method defines the options."""

    template: str  # may contain {anonymous} and {k}
    method: str
    at_most_template: str = ""  # the question with `at_most`
    after_suppression: bool = False  # the suppression limit must be given

    @property
    def text(self) -> str:
        """The question about k."""
        return self.worded()

    def worded(self, *, at_most: bool = False, anonymous: str = "k-anonymous", k: str = "k") -> str:
        """Return the question with `anonymous` and `k` filled in."""
        return (self.at_most_template if at_most else self.template).format(anonymous=anonymous, k=k)

    @property
    def needs(self) -> tuple[str, ...]:
        """The options that must be given."""
        required = [name for name, option in self._options.items() if option.default is Parameter.empty]
        return (*required, "suppression_limit") if self.after_suppression else tuple(required)

    @property
    def takes(self) -> tuple[str, ...]:
        """The options that may be given."""
        return tuple(name for name in self._options if name not in self.needs)

    @property
    def _options(self) -> dict[str, Parameter]:
        from shoal.workflow.diagnosis.diagnosis import Diagnosis

        parameters = signature(getattr(Diagnosis, self.method)).parameters
        return {name: parameter for name, parameter in parameters.items() if name != "self"}

    def after(self) -> Question:
        """Return this question about the table after suppression."""
        texts = (
            text and f"{text[:-1]} after suppression?" for text in (self.template, self.at_most_template)
        )
        return Question(next(texts), self.method, next(texts), after_suppression=True)


_ANONYMITY = (
    Question("Is it {anonymous}?", "is_anonymous", "Is {k} at most this?"),
    Question("For which {k}?", "anonymity"),
    Question("For which largest sets?", "largest_sets", "Which smallest sets have {k} at most this?"),
    Question("Which {k} does every set have?", "anonymity_of_sets"),
)
_SUPPRESSION = (
    Question(
        "Which suppression makes it {anonymous}?", "suppression", "Which suppression leaves {k} at most this?"
    ),
    Question(
        "Which suppression for every set?",
        "suppression_of_sets",
        "Which suppression leaves {k} at most this, for every set?",
    ),
    Question("Which suppression for every {k}?", "suppression_by_k"),
    Question("Which suppression for every {k} and every set?", "suppression_of_sets_by_k"),
)
_NUMBERED = (*_ANONYMITY, *(question.after() for question in _ANONYMITY), *_SUPPRESSION)
QUESTIONS = {
    "overview": Question("How exposed is the table as it is?", "overview"),
    **{str(number): question for number, question in enumerate(_NUMBERED, 1)},
    "unsafe": Question(
        "Which smallest sets, known from outside, break it?",
        "unsafe_sets",
        "Which smallest sets, known from outside, have {k} at most this?",
    ),
    "rows": Question("How many records would have to go?", "rows_to_suppress"),
    "suggest": Question("What does each column look like?", "suggest"),
}


@dataclass(frozen=True)
class Answer(HasDocument):
    """An answer as plain values, with the options of the question and the number of sets counted."""

    question: int | str
    text: str
    answer: Any
    counts: int
    complete: bool  # False if counting was stopped
    measure: str  # k or l
    records: int
    columns: list[str]
    sensitive: str | None
    options: Mapping[str, Any]
    details: Mapping[str, Any]  # further values that explain the answer
    omitted: tuple[str, ...] = ()  # what the answer lacks if counting was stopped
    privacy: Mapping[str, Any] = field(default_factory=dict)  # diversity and c, and the l in addition to k

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as one flat mapping."""
        merged = ("options", "details", "omitted", "privacy")
        plain = {name: value for name, value in vars(self).items() if name not in merged}
        omitted = {"omitted": list(self.omitted)} if self.omitted else {}
        return {**plain, **self.privacy, **self.options, **self.details, **omitted}

    def document(self) -> Document:
        """Describe the answer."""
        from shoal.workflow.diagnosis.answers import answer_document

        return answer_document(self)


def ask(diagnosis: Diagnosis, question: int | str, **options: Any) -> Answer:
    """Answer a question by its number or name. An option that is None counts as not given."""
    arguments = check_options(question, options)
    question_asked = QUESTIONS[str(question)]
    if "columns" in arguments:
        arguments["columns"] = check_asked(arguments["columns"], diagnosis.columns)
    if "most" in arguments:
        arguments["most"] = min(arguments["most"], diagnosis.records)
    result = getattr(diagnosis, question_asked.method)(**arguments)
    measure = diagnosis.measure
    shown = {measure if name == "k" else name: value for name, value in arguments.items()}
    if "suppression_limit" in arguments:
        shown["limit"] = limit_in_records(arguments["suppression_limit"], diagnosis.records)
    return Answer(
        question=int(question) if str(question).isdecimal() else question,
        text=question_asked.worded(at_most="at_most" in arguments, **_words(diagnosis)),
        answer=_result_values(result, measure, all_sets=question_asked.method == "unsafe_sets"),
        counts=getattr(result, "counts", 1),
        complete=getattr(result, "complete", True),
        measure=measure,
        records=diagnosis.records,
        columns=arguments.get("columns", list(diagnosis.columns)),
        sensitive=diagnosis.sensitive,
        options=shown,
        details=_details(diagnosis, result, arguments),
        omitted=_omitted(diagnosis, result, arguments.get("max_size")),
        privacy=_privacy(diagnosis),
    )


def _omitted(diagnosis: Diagnosis, result: Any, max_size: int | None) -> tuple[str, ...]:
    """Describe what an answer does not cover because counting was stopped."""
    if getattr(result, "complete", True):
        return ()
    total = diagnosis.number_of_sets(max_size)
    if isinstance(result, SetTable):
        return (f"{written(total - result.counts)} of {written(total)} sets",)
    sets = result.unsafe if isinstance(result, Overview) else result
    omitted = []
    if not sets.complete:
        size = plural(sets.full_size + 1, "column")
        omitted.append(f"some of the sets of {size}, and all larger ones")
    if isinstance(result, Overview) and result.missing:
        omitted.append(f"what {result.missing:,} of {len(diagnosis.columns):,} columns look like")
    return tuple(omitted)


def check_options(
    question: int | str, options: Mapping[str, Any], *, ignored: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the given options; raise if a required option is missing or an option is not accepted."""
    question_asked = QUESTIONS.get(str(question))
    if question_asked is None:
        raise UnknownName(str(question), "question", QUESTIONS)
    allowed = (*question_asked.needs, *question_asked.takes)
    arguments = {name: value for name, value in options.items() if value is not None and value is not False}
    arguments = {name: value for name, value in arguments.items() if name in allowed or name not in ignored}
    for name in question_asked.needs:
        if name not in arguments:
            advice = [Change(name, action="Give {}")]
            raise UsageError(f"Question {question} lacks a setting.", field=name, advice=advice)
    for name in arguments:
        if name not in allowed:
            advice = [Change(name, action="Leave out {}")]
            text = f"Question {question} does not take all of these settings."
            raise UsageError(text, field=name, advice=advice)
    whole = ["max_size", "most"] if isinstance(arguments.get("k"), float) else ["k", "max_size", "most"]
    arguments |= {name: check_whole(name, arguments[name]) for name in whole if name in arguments}
    if "suppression_limit" in arguments and isinstance(arguments["suppression_limit"], str):
        limit_in_records(arguments["suppression_limit"], 1)
    return arguments


def _words(diagnosis: Diagnosis) -> dict[str, str]:
    """Return the words for k, l, or both that fill in a question's template."""
    diversity, l = diagnosis.diversity, diagnosis.l
    prefix = kind_prefix(diversity.kind, diversity.c)
    if l is not None:
        return {"anonymous": f"k-anonymous with {prefix}l = {l:g}"}
    return {} if diagnosis.measure == "k" else {"anonymous": f"{prefix}l-diverse", "k": "l"}


def _privacy(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the kind of l, and the l required in addition to k, unless they are the defaults."""
    diversity = diagnosis.diversity
    kind = {} if diversity.kind == "distinct" else {"diversity": diversity.kind}
    c = {"c": diversity.c} if diversity.kind == "recursive" else {}
    return {**kind, **c, **({} if diagnosis.l is None else {"l": diagnosis.l})}


def _result_values(result: Any, measure: str, *, all_sets: bool) -> Any:
    if isinstance(result, Sets):
        all_sets = all_sets or result.kind == "maximal"  # the paper's algorithm lists all maximal sets
        chosen = [finding.columns for finding in result.findings] if all_sets else result.sets
        return [list(columns) for columns in chosen]
    if isinstance(result, SetTable):
        return [{"columns": list(columns), **_entry(value, measure)} for columns, value in result.items()]
    if isinstance(result, tuple):
        return [{measure: entry.k, **_entry(entry, measure)} for entry in result]
    if isinstance(result, Suggestion):
        return {"columns": [_column(guess) for guess in result.columns], "policy": result.policy}
    if isinstance(result, Overview):
        return {
            "combinations": result.combinations,
            measure: result.reached,
            "alone": result.unique,
            "suppressed": result.suppressed,
            "minimal": _listed(result.unsafe, measure),
            "columns": [_column(guess) for guess in result.columns],
        }
    return _entry(result, measure) if isinstance(result, Suppression) else result


def _listed(sets: Sets, measure: str) -> list[dict[str, Any]]:
    return [
        {"columns": list(finding.columns), measure: finding.k, "suppressed": finding.suppressed}
        for finding in sets.findings
    ]


def _entry(value: Any, measure: str) -> dict[str, Any]:
    if isinstance(value, Suppression):
        return {"suppressed": value.suppressed, "share": value.share, "remaining": value.remaining}
    if isinstance(value, int | float):
        return {measure: value}
    return {"suppressed": None if value is None else list(value)}


def _column(guess: Guess) -> dict[str, Any]:
    shares = {"uniqueness": guess.unique_share, "separation": guess.separation}
    names = ("column", "reason", "kind", "distinct", "missing", "distinct_share")
    return {"role": guess.role.value, **{name: getattr(guess, name) for name in names}, **shares}


def _details(diagnosis: Diagnosis, result: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(result, Sets):
        return {result.kind: _listed(result, diagnosis.measure), "whole": result.whole.k}
    if isinstance(result, Overview):
        return {diagnosis.measure: result.k, "whole": result.reached}
    if isinstance(result, bool):
        reached = diagnosis.anonymity(arguments.get("columns"), arguments.get("suppression_limit", 0))
        suppressed = diagnosis.rows_to_suppress(arguments["k"], arguments.get("columns"))
        return {"reached": reached, "suppressed": suppressed}
    return {}
