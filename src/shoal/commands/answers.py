"""How the answers of a diagnosis are shown: the sets that matter first, and no more than a screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from heapq import nsmallest
from typing import Any

from shoal.display import say, show_pairs, show_table
from shoal.errors import so_many

_ROWS = 15  # of a table; the JSON has all
_KS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000)
_MOST_KS = 5

Row = Sequence[object]


def show_answer(answer: Any) -> None:
    """Show an answer the way its question asks for."""
    told = answer.to_dict()
    _SHOWN[str(answer.question)](told)
    if not answer.complete:
        say("Stopped before all sets were counted: this is what was found so far.")


def _anonymous(told: Mapping[str, Any]) -> None:
    measure, yes = told["measure"], told["answer"]
    asked = f"at {'most' if told.get('at_most') else 'least'} {told[measure]} for {_names(told['columns'])}"
    say(f"Yes: {measure} is {asked}." if yes else f"No: {measure} is not {asked}.")
    show_pairs(
        {
            measure: f"{told['reached']:,}{_after(told)}",
            "records": f"{_share(told['suppressed'], told['records'])} are in {_small(told, told[measure])}",
        }
    )


def _anonymity(told: Mapping[str, Any]) -> None:
    show_pairs({"columns": ", ".join(told["columns"]), told["measure"]: f"{told['answer']:,}{_after(told)}"})


def _sets(told: Mapping[str, Any]) -> None:
    """Show maximal safe sets, or minimal unsafe ones; what answers a question for the largest is first."""
    measure = told["measure"]
    kind = "maximal" if "maximal" in told else "minimal"
    found = told[kind]
    asked = f"{measure} is {_bound(told, kind)}{_after(told)}"
    if not found:
        say(_none(told, asked))
    else:
        size = len(found[0]["columns"])
        which = "the largest" if kind == "maximal" else "the smallest"
        best = sum(len(one["columns"]) == size for one in found)
        number = f"{len(found):,} {kind}{_bounded(told)}{_so_far(told)}"
        title = f"Sets whose {asked}: {number}; {best:,} of {which} size, {_columns(size)}"
        rows = [(len(s["columns"]), _names(s["columns"]), s[measure], s["suppressed"]) for s in found]
        if kind == "minimal":
            rows.sort(key=lambda row: (row[0], -int(row[3])))
        short = told[measure] + (1 if told.get("at_most") else 0)
        _table(title, ("columns", "set", measure, f"records below {short}"), rows, {1})
    columns = len(told["columns"])
    most = min(told.get("max_size", columns), columns)
    every = sum(math.comb(columns, size) for size in range(1, most + 1))
    say(f"{told['counts']:,} of {every:,} sets{_bounded(told)} were counted.")


def _none(told: Mapping[str, Any], asked: str) -> str:
    """Say that no set was found; where not all were looked at, no more than that."""
    measure, whole = told["measure"], told["whole"]
    safe = whole >= told[measure] + (1 if told.get("at_most") else 0)
    if safe or (told["complete"] and not _bounded(told)):
        return f"There is no set of columns whose {asked}."
    if told["complete"]:
        none = f"None among sets{_bounded(told)} whose {asked}."
    else:
        none = f"None found so far whose {asked}{f', among sets{_bounded(told)}' if _bounded(told) else ''}."
    return f"{none} All columns together are unsafe: their {measure} is {whole:,}{_after(told)}."


def _bounded(told: Mapping[str, Any]) -> str:
    """Say how many columns the sets may have, where not all may."""
    size = told.get("max_size")
    return f" of at most {_columns(size)}" if size and size < len(told["columns"]) else ""


def _so_far(told: Mapping[str, Any]) -> str:
    return "" if told["complete"] else " found so far"


def _bound(told: Mapping[str, Any], kind: str) -> str:
    k = told[told["measure"]]
    if kind == "maximal":
        return f"at least {k}"
    return f"at most {k}" if told.get("at_most") else f"below {k}"


def _anonymity_of_sets(told: Mapping[str, Any]) -> None:
    measure = told["measure"]
    found = nsmallest(_ROWS, told["answer"], key=lambda one: (one[measure], len(one["columns"])))
    rows = [(len(s["columns"]), _names(s["columns"]), s[measure]) for s in found]
    title = f"{measure} of {_of_sets(told)}{_after(told)}, the smallest first"
    _table(title, ("columns", "set", measure), rows, {1}, of=len(told["answer"]))
    pruned = told["counts"] < len(told["answer"])
    others = f"; the others contain one whose {measure} is 1" if pruned else ""
    say(so_many(told["counts"], "set was counted", "sets were counted") + f"{others}.")


def _suppression(told: Mapping[str, Any]) -> None:
    measure, found = told["measure"], told["answer"]
    k, columns = told[measure], ", ".join(told["columns"])
    if found is None:
        say(f"{measure} is above {k} for {columns}, whatever is suppressed.")
        return
    if told.get("at_most"):
        limit = f"up to {_share(found['suppressed'], told['records'])} may be suppressed"
        show_pairs({"columns": columns, f"{measure} at most {k}": limit})
        return
    rows = {"columns": columns, "suppressed": _share(found["suppressed"], told["records"])}
    rows["remaining"] = f"{found['remaining']:,}"
    # All digits, so that it reads back as these records.
    rows["limit"] = f"{Decimal(repr(found['share'])):f}, as a share"
    if not found["remaining"]:
        rows |= {"limit": f"none would do: no class reaches {measure} {k}"}
    show_pairs(rows)


def _suppression_of_sets(told: Mapping[str, Any]) -> None:
    k, records = f"{told['measure']} {told[told['measure']]}", told["records"]
    found = nsmallest(_ROWS, told["answer"], key=lambda one: (-(one["suppressed"] or 0), len(one["columns"])))
    rows = [
        (len(s["columns"]), _names(s["columns"]), s["suppressed"], _percent(s["suppressed"], records))
        for s in found
    ]
    what = "may be suppressed with at most" if told.get("at_most") else "to suppress for"
    title = f"Records {what} {k}: {_of_sets(told)}, the most first"
    _table(title, ("columns", "set", "records", "share"), rows, {1}, of=len(told["answer"]))


def _suppression_by_k(told: Mapping[str, Any]) -> None:
    measure, records = told["measure"], told["records"]
    rows = [
        (s[measure], s["suppressed"], _percent(s["suppressed"], records), s["remaining"])
        for s in told["answer"]
    ]
    # Without a most, a row is the largest k at its cost.
    heading = measure if "most" in told else f"{measure} up to"
    title = f"Records to suppress for each {measure}: {', '.join(told['columns'])}"
    _table(title, (heading, "suppressed", "share", "remaining"), rows, set())


def _suppression_of_sets_by_k(told: Mapping[str, Any]) -> None:
    most = told["most"]
    inside = [k for k in _KS if k < most]
    ks = [*inside[:: -(-len(inside) // _MOST_KS) or 1], most]
    found = nsmallest(_ROWS, told["answer"], key=lambda one: (-one["suppressed"][-1], len(one["columns"])))
    rows = [(len(s["columns"]), _names(s["columns"]), *[s["suppressed"][k - 1] for k in ks]) for s in found]
    title = f"Records to suppress for some {told['measure']}: {_of_sets(told)}, the most first"
    headings = ("columns", "set", *[f"{told['measure']}={k}" for k in ks])
    _table(title, headings, rows, {1}, of=len(told["answer"]))


def _rows(told: Mapping[str, Any]) -> None:
    k = f"{told['measure']} {told[told['measure']]}"
    show_pairs(
        {"columns": ", ".join(told["columns"]), f"to go for {k}": _share(told["answer"], told["records"])}
    )


def _suggest(told: Mapping[str, Any]) -> None:
    _columns_table(told["answer"]["columns"], len(told["answer"]["columns"]))
    say(told["answer"]["policy"])


def _overview(told: Mapping[str, Any]) -> None:
    """Show the table at a glance, and what to do next."""
    measure, found, records = told["measure"], told["answer"], told["records"]
    k = told[measure]
    together = f"{so_many(found['combinations'], 'combination')} of {_columns(len(told['columns']))}"
    show_pairs(
        {
            "records": f"{records:,} in {together}",
            measure: f"{found[measure]:,} for all columns together{_after(told)}",
            "alone": f"{_share(found['alone'], records)} are in {_small(told, 2)}",
            f"below {k}": f"{_share(found['suppressed'], records)} are in {_small(told, k)}",
        }
    )
    _columns_table(found["columns"], _ROWS)
    if found["minimal"]:
        rows = [
            (len(s["columns"]), _names(s["columns"]), s[measure], _share(s["suppressed"], records))
            for s in sorted(found["minimal"], key=lambda s: (len(s["columns"]), -s["suppressed"]))
        ]
        sets = f"{len(rows):,} smallest sets{_so_far(told)}"
        title = f"The {sets} that, known from outside, break {measure} {k}"
        _table(title, ("columns", "set", measure, f"records below {k}"), rows, {1}, most=8)
    elif told["complete"]:
        say(f"No set of columns breaks {measure} {k}.")
    else:
        say(f"None found so far that breaks {measure} {k}; all columns together do.")
    say("Next: --question suggest for a first policy, --question 3 --k 5 for the largest safe sets,")
    say("      --question 11 for what suppression would cost; docs: diagnose.")


def _columns_table(columns: Sequence[Mapping[str, Any]], most: int) -> None:
    headings = ("column", "distinct", "share", "unique", "separation", "looks like")
    rows = [
        (
            one["column"],
            one["distinct"],
            _rounded(one["distinct_share"]),
            _rounded(one["uniqueness"]),
            _rounded(one["separation"]),
            one["role"],
        )
        for one in sorted(columns, key=lambda one: -one["separation"])
    ]
    title = "How far each column tells records apart: the share of pairs that differ in it is its separation"
    _table(title, headings, rows, {0, 5}, most=most)


def _table(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Row],
    left: set[int],
    most: int = _ROWS,
    of: int | None = None,
) -> None:
    """Show the first rows, and say how many more there are of all, where these are not all."""
    number = len(rows) if of is None else of
    show_table(title, headings, [list(map(_cell, row)) for row in rows[:most]], left=left, plain=True)
    if number > most:
        say(f"and {number - most:,} more; --json has all.")


def _cell(value: object) -> str:
    return "never" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _names(columns: Sequence[str]) -> str:
    return ", ".join(columns)


def _columns(number: int) -> str:
    return so_many(number, "column")


def _of_sets(told: Mapping[str, Any]) -> str:
    return f"{so_many(len(told['answer']), 'set')}{_bounded(told)}"


def _small(told: Mapping[str, Any], k: int) -> str:
    """Describe the classes below a k."""
    if told["measure"] == "k":
        return f"classes of fewer than {k:,} records"
    return f"classes with fewer than {k:,} values of {told['sensitive']}"


def _after(told: Mapping[str, Any]) -> str:
    """Say what may be suppressed, where anything may."""
    limit = told.get("limit")
    return f" after suppressing at most {limit:,} records" if limit else ""


def _share(number: int, records: int) -> str:
    return f"{number:,} of {records:,} records ({_percent(number, records)})"


def _percent(number: int | None, records: int) -> str:
    return "" if number is None else _rounded(number / records)


def _rounded(share: float) -> str:
    """Write a share as percent; what is not quite all or nothing does not look so."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= share < 1 else f"{share:.1%}"


_SHOWN: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "1": _anonymous,
    "2": _anonymity,
    "3": _sets,
    "4": _anonymity_of_sets,
    "5": _anonymous,
    "6": _anonymity,
    "7": _sets,
    "8": _anonymity_of_sets,
    "9": _suppression,
    "10": _suppression_of_sets,
    "11": _suppression_by_k,
    "12": _suppression_of_sets_by_k,
    "unsafe": _sets,
    "rows": _rows,
    "suggest": _suggest,
    "overview": _overview,
}
