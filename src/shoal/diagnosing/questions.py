"""Questions: the diagnosis asked by number or name, and answers as plain values.

A question says which wishes it needs and which it takes; 5 to 8 are 1 to 4 after suppression.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from shoal.column_names import check_asked
from shoal.diagnosing.findings import Overview, Sets, SetTable, Suggestion, Suppression
from shoal.errors import UnknownName, UsageError
from shoal.policies.guesses import Guess
from shoal.policies.shares import limit_in_records

if TYPE_CHECKING:
    from shoal.diagnosis import Diagnosis


@dataclass(frozen=True)
class Question:
    """A question, the method that answers it, and the wishes that go with it."""

    text: str
    method: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    turned: str = ""  # the text with at_most


_LIMIT = ("suppression_limit",)
QUESTIONS = {
    "overview": Question("How exposed is the table as it is?", "overview", (), ("k", *_LIMIT, "seconds")),
    "1": Question(
        "Is it k-anonymous?",
        "is_anonymous",
        ("k",),
        ("columns", *_LIMIT, "at_most"),
        turned="Is k at most this?",
    ),
    "2": Question("For which k?", "anonymity", (), ("columns", *_LIMIT)),
    "3": Question(
        "For which largest sets?",
        "largest_sets",
        ("k",),
        (*_LIMIT, "at_most", "seconds"),
        turned="Which smallest sets have k at most this?",
    ),
    "4": Question("Which k has every set?", "anonymity_of_sets", (), (*_LIMIT, "max_size", "seconds")),
    "5": Question(
        "Is it k-anonymous after suppression?",
        "is_anonymous",
        ("k", *_LIMIT),
        ("columns", "at_most"),
        turned="Is k at most this after suppression?",
    ),
    "6": Question("For which k after suppression?", "anonymity", _LIMIT, ("columns",)),
    "7": Question(
        "For which largest sets after suppression?",
        "largest_sets",
        ("k", *_LIMIT),
        ("at_most", "seconds"),
        turned="Which smallest sets have k at most this after suppression?",
    ),
    "8": Question(
        "Which k has every set after suppression?", "anonymity_of_sets", _LIMIT, ("max_size", "seconds")
    ),
    "9": Question(
        "Which suppression makes it k-anonymous?",
        "suppression",
        ("k",),
        ("columns", "at_most"),
        turned="Which suppression leaves k at most this?",
    ),
    "10": Question(
        "Which suppression for every set?",
        "suppression_of_sets",
        ("k",),
        ("max_size", "at_most", "seconds"),
        turned="Which suppression leaves k at most this, for every set?",
    ),
    "11": Question("Which suppression for every k?", "suppression_by_k", (), ("columns", "most")),
    "12": Question(
        "Which suppression for every k and every set?",
        "suppression_of_sets_by_k",
        ("most",),
        ("max_size", "seconds"),
    ),
    "unsafe": Question(
        "Which smallest sets, known from outside, break it?",
        "unsafe_sets",
        ("k",),
        (*_LIMIT, "max_size", "at_most", "seconds"),
        turned="Which smallest sets, known from outside, have k at most this?",
    ),
    "rows": Question("How many records would have to go?", "rows_to_suppress", ("k",), ("columns",)),
    "suggest": Question("What does each column look like?", "suggest"),
}


@dataclass(frozen=True)
class Answer:
    """An answer as plain values, with the wishes it was asked with and how many sets were counted."""

    question: int | str
    text: str
    answer: Any
    counts: int
    complete: bool  # False where the counting was stopped
    measure: str  # k or l
    records: int
    columns: list[str]
    sensitive: str | None
    wishes: Mapping[str, Any]
    details: Mapping[str, Any]  # what helps to understand the answer

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in one mapping."""
        apart = ("wishes", "details")
        own = {name: value for name, value in vars(self).items() if name not in apart}
        return {**own, **self.wishes, **self.details}


def ask(diagnosis: Diagnosis, question: int | str, **wishes: Any) -> Answer:
    """Ask a question by its number or name; a wish that is None is not given."""
    given = check_wishes(question, wishes)
    asked = QUESTIONS[str(question)]
    if "columns" in given:
        given["columns"] = check_asked(given["columns"], diagnosis.columns)
    if "most" in given:
        given["most"] = min(given["most"], diagnosis.records)
    found = getattr(diagnosis, asked.method)(**given)
    measure = diagnosis.measure
    told = {measure if name == "k" else name: wish for name, wish in given.items()}
    if "suppression_limit" in given:
        told["limit"] = limit_in_records(given["suppression_limit"], diagnosis.records)
    return Answer(
        question=int(question) if str(question).isdecimal() else question,
        text=_worded(asked.turned if "at_most" in given else asked.text, measure),
        answer=_plain(found, measure, every=asked.method == "unsafe_sets"),
        counts=getattr(found, "counts", 1),
        complete=getattr(found, "complete", True),
        measure=measure,
        records=diagnosis.records,
        columns=given.get("columns", list(diagnosis.columns)),
        sensitive=diagnosis.sensitive,
        wishes=told,
        details=_details(diagnosis, found, given),
    )


def check_wishes(
    question: int | str, wishes: Mapping[str, Any], *, ignored: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the wishes that are given, where the question needs and takes them and they mean something."""
    asked = QUESTIONS.get(str(question))
    if asked is None:
        raise UnknownName(str(question), "question", QUESTIONS)
    taken = (*asked.needs, *asked.takes)
    given = {name: wish for name, wish in wishes.items() if wish is not None and wish is not False}
    given = {name: wish for name, wish in given.items() if name in taken or name not in ignored}
    for name in asked.needs:
        if name not in given:
            message = f"Question {question} needs {_spelt(name)}."
            raise UsageError(message)
    for name in given:
        if name not in taken:
            message = f"Question {question} does not take {_spelt(name)}. Leave it out."
            raise UsageError(message)
    given |= {name: check_whole(name, given[name]) for name in ("k", "max_size", "most") if name in given}
    if "suppression_limit" in given and isinstance(given["suppression_limit"], str):
        limit_in_records(given["suppression_limit"], 1)
    return given


def check_whole(name: str, number: object) -> int:
    """Take a whole number from 1 on, NumPy's too."""
    if isinstance(number, bool) or not isinstance(number, Integral):
        message = f"{name} must be a whole number, got {number!r}."
        raise UsageError(message)
    if number < 1:
        message = f"{name} must be at least 1, got {number}."
        raise UsageError(message)
    return int(number)


def _worded(text: str, measure: str) -> str:
    return re.sub(r"\bk\b", measure, text if measure == "k" else text.replace("k-anonymous", "l-diverse"))


def _spelt(wish: str) -> str:
    return f"{wish} (--{wish.replace('_', '-')})"


def _plain(found: Any, measure: str, *, every: bool) -> Any:
    if isinstance(found, Sets):
        chosen = [one.columns for one in found.found] if every else found.sets
        return [list(columns) for columns in chosen]
    if isinstance(found, SetTable):
        return [{"columns": list(columns), **_entry(value, measure)} for columns, value in found.items()]
    if isinstance(found, tuple):
        return [{measure: one.k, **_entry(one, measure)} for one in found]
    if isinstance(found, Suggestion):
        return {"columns": [_column(guess) for guess in found.columns], "policy": found.policy}
    if isinstance(found, Overview):
        return {
            "combinations": found.combinations,
            measure: found.reached,
            "alone": found.alone,
            "suppressed": found.suppressed,
            "minimal": _listed(found.unsafe, measure),
            "columns": [_column(guess) for guess in found.columns],
        }
    return _entry(found, measure) if isinstance(found, Suppression) else found


def _listed(found: Sets, measure: str) -> list[dict[str, Any]]:
    return [
        {"columns": list(one.columns), measure: one.k, "suppressed": one.suppressed} for one in found.found
    ]


def _entry(value: Any, measure: str) -> dict[str, Any]:
    if isinstance(value, Suppression):
        return {"suppressed": value.suppressed, "share": value.share, "remaining": value.remaining}
    if isinstance(value, int):
        return {measure: value}
    return {"suppressed": None if value is None else list(value)}


def _column(guess: Guess) -> dict[str, Any]:
    return {
        "column": guess.column,
        "role": guess.role.value,
        "reason": guess.reason,
        "kind": guess.kind,
        "distinct": guess.distinct,
        "missing": guess.missing,
        "distinct_share": guess.distinct_share,
        "uniqueness": guess.unique_share,
        "separation": guess.separation,
    }


def _details(diagnosis: Diagnosis, found: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(found, Sets):
        return {found.kind: _listed(found, diagnosis.measure), "whole": found.whole.k}
    if isinstance(found, Overview):
        return {diagnosis.measure: found.k, "whole": found.reached}
    if isinstance(found, bool):
        reached = diagnosis.anonymity(given.get("columns"), given.get("suppression_limit", 0))
        gone = diagnosis.rows_to_suppress(given["k"], given.get("columns"))
        return {"reached": reached, "suppressed": gone}
    return {}
