"""Documents that describe the answers of a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from shoal.core.counts.diversity import kind_prefix
from shoal.document.document import (
    Code,
    Document,
    Fact,
    Name,
    Table,
    Text,
    Verdict,
    name_list,
    of_records,
    without_markup,
)
from shoal.wording import percent, plural
from shoal.workflow.diagnosis.questions import QUESTIONS, number_of_sets, written

if TYPE_CHECKING:
    from shoal.workflow.diagnosis.questions import Answer

_ROWS = 15  # maximum number of rows of a table
_OVERVIEW_ROWS = 8  # maximum number of unsafe sets of columns in an overview
_KS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000)
_MOST_KS = 5

_AnswerValues = Mapping[str, Any]  # an answer as plain values


def answer_document(answer: Answer) -> Document:
    """Describe an answer; each question has its own form."""
    document = _DOCUMENTS[QUESTIONS[str(answer.question)].method](answer.to_dict())
    if answer.complete:
        return document
    stopped = "Stopped before all sets were counted: this is what was found so far."
    omitted = [f"Omitted: {omitted}." for omitted in answer.omitted]
    return replace(document, notes=[*document.notes, stopped, *omitted])


def _is_anonymous(values: _AnswerValues) -> Document:
    measure, yes = values["measure"], values["answer"]
    bound = f"at {'most' if values.get('at_most') else 'least'} {values[measure]}"
    claim = f"{bound} for {without_markup(name_list(values['columns']))}"
    sentence = f"Yes: {measure} is {claim}." if yes else f"No: {measure} is not {claim}."
    small = _small_classes(values, values[measure])
    below = f"{of_records(values['suppressed'], values['records'])} are in {small}"
    return Document(
        values["text"],
        [
            Fact(measure, measure, f"{values['reached']:,}{_after_suppression(values)}"),
            Fact("suppressed", "records", below),
        ],
        verdict=Verdict("good" if yes else "warn", sentence),
    )


def _anonymity(values: _AnswerValues) -> Document:
    reached = f"{values['answer']:,}{_after_suppression(values)}"
    return Document(values["text"], [_columns_fact(values), Fact("answer", values["measure"], reached)])


def _sets(values: _AnswerValues) -> Document:
    """List the maximal safe sets (largest first) or the minimal unsafe sets (smallest first)."""
    measure = values["measure"]
    kind = "maximal" if "maximal" in values else "minimal"
    sets = values[kind]
    condition = f"{measure} is {_bound(values, kind)}{_after_suppression(values)}"
    columns = len(values["columns"])
    most = min(values.get("max_size", columns), columns)
    total = written(number_of_sets(columns, most))
    counted = f"{values['counts']:,} of {total} sets{_at_most_columns(values)} were counted."
    if not sets:
        return Document(values["text"], notes=[_no_set(values, condition), counted])
    size = len(sets[0]["columns"])
    best = sum(len(finding["columns"]) == size for finding in sets)
    which = "largest" if kind == "maximal" else "smallest"
    number = f"{len(sets):,} {kind}{_at_most_columns(values)}{_so_far(values)}"
    title = f"Sets whose {condition}: {number}; {best:,} of the {which} size, {plural(size, 'column')}"
    if kind == "minimal":
        sets = sorted(sets, key=lambda finding: (len(finding["columns"]), -finding["suppressed"]))
    below = values[measure] + (1 if values.get("at_most") else 0)
    rows = [(*_set(finding), finding[measure], finding["suppressed"]) for finding in sets]
    headers = ("columns", "set", measure, f"records below {below}")
    return Document(values["text"], tables=[_table(title, headers, rows, len(rows))], notes=[counted])


def _no_set(values: _AnswerValues, condition: str) -> str:
    """State that no set of columns meets the condition, or that no counted set does."""
    measure, of_all_columns = values["measure"], values["whole"]
    safe = of_all_columns >= values[measure] + (1 if values.get("at_most") else 0)
    bounded = _at_most_columns(values)
    if safe or (values["complete"] and not bounded):
        return f"There is no set of columns whose {condition}."
    if values["complete"]:
        message = f"None among sets{bounded} whose {condition}."
    else:
        message = f"None found so far whose {condition}{f', among sets{bounded}' if bounded else ''}."
    after = _after_suppression(values)
    return f"{message} All columns together are unsafe: their {measure} is {of_all_columns:,}{after}."


def _anonymity_of_sets(values: _AnswerValues) -> Document:
    measure, sets = values["measure"], values["answer"]
    first = nsmallest(_ROWS, sets, key=lambda finding: (finding[measure], len(finding["columns"])))
    title = f"{measure} of {_number_of_sets(values)}{_after_suppression(values)}, the smallest first"
    rows = [(*_set(finding), finding[measure]) for finding in first]
    others = f"; the others contain one whose {measure} is 1" if values["counts"] < len(sets) else ""
    counted = f"{plural(values['counts'], 'set was counted', 'sets were counted')}{others}."
    table = _table(title, ("columns", "set", measure), rows, len(sets))
    return Document(values["text"], tables=[table], notes=[counted])


def _suppression(values: _AnswerValues) -> Document:
    measure, suppression, records = values["measure"], values["answer"], values["records"]
    k, columns = values[measure], _columns_fact(values)
    if suppression is None:
        return Document(values["text"], [columns], notes=[f"{measure} is above {k}, whatever is suppressed."])
    suppressed = of_records(suppression["suppressed"], records)
    if values.get("at_most"):
        limit = f"up to {suppressed} may be suppressed"
        return Document(values["text"], [columns, Fact("limit", f"{measure} at most {k}", limit)])
    # With all digits, the parsed share gives the same number of records.
    limit = f"{Decimal(repr(suppression['share'])):f}, as a share"
    if not suppression["remaining"]:
        limit = f"none works: no class reaches {measure} {k}"
    return Document(
        values["text"],
        [
            columns,
            Fact("suppressed", "suppressed", suppressed),
            Fact("remaining", "remaining", f"{suppression['remaining']:,}"),
            Fact("limit", "limit", limit),
        ],
    )


def _suppression_of_sets(values: _AnswerValues) -> Document:
    sets, records = values["answer"], values["records"]
    first = nsmallest(_ROWS, sets, key=lambda item: (-(item["suppressed"] or 0), len(item["columns"])))
    shares = ["" if item["suppressed"] is None else percent(item["suppressed"] / records) for item in first]
    rows = [(*_set(item), item["suppressed"], share) for item, share in zip(first, shares, strict=True)]
    verb = "may be suppressed with at most" if values.get("at_most") else "to suppress for"
    title = f"Records {verb} {_strength(values)}: {_number_of_sets(values)}, the most first"
    return Document(
        values["text"], tables=[_table(title, ("columns", "set", "records", "share"), rows, len(sets))]
    )


def _suppression_by_k(values: _AnswerValues) -> Document:
    measure, records = values["measure"], values["records"]
    rows = [
        (step[measure], step["suppressed"], percent(step["suppressed"] / records), step["remaining"])
        for step in values["answer"][:_ROWS]
    ]
    # Without `most`, each row has the largest k for its number of suppressed records.
    header = measure if "most" in values else f"{measure} up to"
    title = f"Records to suppress for each {measure}: {without_markup(name_list(values['columns']))}"
    headers = (header, "suppressed", "share", "remaining")
    return Document(values["text"], tables=[_table(title, headers, rows, len(values["answer"]), left=())])


def _suppression_of_sets_by_k(values: _AnswerValues) -> Document:
    most, sets = values["most"], values["answer"]
    inside = [k for k in _KS if k < most]
    ks = [*inside[:: -(-len(inside) // _MOST_KS) or 1], most]
    first = nsmallest(_ROWS, sets, key=lambda finding: (-finding["suppressed"][-1], len(finding["columns"])))
    rows = [(*_set(finding), *[finding["suppressed"][k - 1] for k in ks]) for finding in first]
    title = f"Records to suppress for some {values['measure']}: {_number_of_sets(values)}, the most first"
    headers = ("columns", "set", *[f"{values['measure']}={k}" for k in ks])
    return Document(values["text"], tables=[_table(title, headers, rows, len(sets))])


def _rows(values: _AnswerValues) -> Document:
    count = of_records(values["answer"], values["records"])
    label = f"to suppress for {_strength(values)}"
    return Document(values["text"], [_columns_fact(values), Fact("answer", label, count)])


def _suggest(values: _AnswerValues) -> Document:
    columns, policy = values["answer"]["columns"], values["answer"]["policy"]
    return Document(values["text"], tables=[_columns_table(columns, len(columns))], notes=[Code(policy)])


def _overview(values: _AnswerValues) -> Document:
    measure, overview, records = values["measure"], values["answer"], values["records"]
    k = values[measure]
    columns = plural(len(values["columns"]), "column")
    combinations = f"{records:,} in {plural(overview['combinations'], 'combination')} of {columns}"
    unique = f"{of_records(overview['alone'], records)} are in {_small_classes(values, 2)}"
    below = f"{of_records(overview['suppressed'], records)} are in {_small_classes(values, k)}"
    tables, notes = [_columns_table(overview["columns"], _ROWS)], []
    if overview["minimal"]:
        tables.append(_unsafe_table(values))
    elif values["complete"]:
        notes.append(f"No set of columns breaks {measure} {k}.")
    else:
        notes.append(f"None found so far that breaks {measure} {k}; all columns together do.")
    return Document(
        values["text"],
        [
            Fact("records", "records", combinations),
            Fact(
                measure,
                measure,
                f"{overview[measure]:,} for all columns together{_after_suppression(values)}",
            ),
            Fact("alone", "alone", unique),
            Fact("suppressed", f"below {k}", below),
        ],
        tables,
        notes,
    )


def _unsafe_table(values: _AnswerValues) -> Table:
    measure, minimal, records = values["measure"], values["answer"]["minimal"], values["records"]
    k = values[measure]
    first = sorted(minimal, key=lambda item: (len(item["columns"]), -item["suppressed"]))[:_OVERVIEW_ROWS]
    rows = [(*_set(item), item[measure], of_records(item["suppressed"], records)) for item in first]
    sets = f"{len(minimal):,} smallest sets{_so_far(values)}"
    title = f"The {sets} that, known from outside, break {measure} {k}"
    return _table(title, ("columns", "set", measure, f"records below {k}"), rows, len(minimal))


def _columns_table(columns: Sequence[_AnswerValues], most: int) -> Table:
    rows = [
        (
            Name(column["column"]),
            column["distinct"],
            *[percent(column[name]) for name in ("distinct_share", "uniqueness", "separation")],
            column["role"],
        )
        for column in sorted(columns, key=lambda column: -column["separation"])[:most]
    ]
    title = "How well each column separates records: its separation is the share of pairs that differ in it"
    headers = ("column", "distinct", "share", "unique", "separation", "looks like")
    return _table(title, headers, rows, len(columns), left=(0, 5))


def _table(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[Any]], total: int, left: Sequence[int] = (1,)
) -> Table:
    return Table(title, headers, [list(map(_cell, row)) for row in rows[:_ROWS]], left=left, total=total)


def _cell(value: Any) -> Text:
    if isinstance(value, str | tuple):
        return value
    return "never" if value is None else f"{value:,}"


def _set(finding: _AnswerValues) -> tuple[int, tuple[str, ...]]:
    return len(finding["columns"]), name_list(finding["columns"])


def _columns_fact(values: _AnswerValues) -> Fact:
    return Fact("columns", "columns", name_list(values["columns"]))


def _strength(values: _AnswerValues) -> str:
    return f"{values['measure']} {values[values['measure']]}"


def _number_of_sets(values: _AnswerValues) -> str:
    return f"{plural(len(values['answer']), 'set')}{_at_most_columns(values)}"


def _at_most_columns(values: _AnswerValues) -> str:
    size = values.get("max_size")
    return f" of at most {plural(size, 'column')}" if size and size < len(values["columns"]) else ""


def _so_far(values: _AnswerValues) -> str:
    return "" if values["complete"] else " found so far"


def _bound(values: _AnswerValues, kind: str) -> str:
    k = values[values["measure"]]
    if kind == "maximal":
        return f"at least {k}"
    return f"at most {k}" if values.get("at_most") else f"below {k}"


def _small_classes(values: _AnswerValues, k: float) -> str:
    measure, sensitive = values["measure"], values["sensitive"]
    kind = values.get("diversity", "distinct")
    prefix = kind_prefix(kind, values.get("c"))
    if measure == "k":
        l_text = f" or with {prefix}l of {sensitive} below {values['l']:g}" if "l" in values else ""
        return f"classes of fewer than {k:,} records{l_text}"
    if kind == "distinct":
        return f"classes with fewer than {k:,} values of {sensitive}"
    return f"classes with {prefix}l of {sensitive} below {k:,}"


def _after_suppression(values: _AnswerValues) -> str:
    limit = values.get("limit")
    return f" after suppressing at most {limit:,} records" if limit else ""


_DOCUMENTS: dict[str, Callable[[_AnswerValues], Document]] = {  # by method of Diagnosis
    "is_anonymous": _is_anonymous,
    "anonymity": _anonymity,
    "largest_sets": _sets,
    "unsafe_sets": _sets,
    "anonymity_of_sets": _anonymity_of_sets,
    "suppression": _suppression,
    "suppression_of_sets": _suppression_of_sets,
    "suppression_by_k": _suppression_by_k,
    "suppression_of_sets_by_k": _suppression_of_sets_by_k,
    "rows_to_suppress": _rows,
    "suggest": _suggest,
    "overview": _overview,
}
