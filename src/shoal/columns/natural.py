"""Suggest a hierarchy for a column by its name, its kind, its values and their numbers of records.

Every level merges some values. If possible, the last level below the top has two or more groups, and no group
has nearly all records. A hierarchy contains no value of the table, except well-known codes for "unknown".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow.compute as pc

from shoal.columns.date_units import DateFormat, date_units
from shoal.columns.evidence import CODES, WrittenForm, are_flags, postcodes, written_form
from shoal.columns.identifiers import is_age
from shoal.columns.kinds import Kind
from shoal.columns.names import is_postcode
from shoal.columns.number_bands import FEW, bands_for, useful
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.arrow import numbers_of, texts_of_list
from shoal.core.hierarchy.builder import POINT, number_of, plain_numbers
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.calendar import TIME_UNITS, minute_of
from shoal.core.hierarchy.hierarchy import MISSING
from shoal.wording import plural

UNKNOWN = "unknown"  # the group of cells that a hierarchy of dates or countries does not cover
_MOST_NUMBERS = 20_000  # bands are made from at most this number of distinct numbers, evenly spaced
_THRESHOLDS = (5, 10, 20, 50, 100, 150, 200)  # a value is rare below this number of records in a thousand
_AGE_NAME = re.compile(r"(?i)(?:[fm]?age|age_?[a-z])_?\d{0,2}")  # also age_2, the age of a second person
_STATE_NAME = re.compile(r"(?i)state|bundesstaat|[eé]tat|estado")
_COUNTRY_NAME = re.compile(
    r"(?i)countr|c(?:oun)?try|cntry|nation|land|pays|pa[ií]s|paese|birth|origin|citizen|citoyen"
)
_DISEASE_NAME = re.compile(r"(?i)icd|diag|disease|cause|illness|death|dx|code|cim|cie")
_CLASSIFICATIONS = (  # keyword, units, column names that suggest it
    ("us_states", ("division", "region"), _STATE_NAME),
    ("countries", ("subregion", "region"), _COUNTRY_NAME),
    ("icd_10", ("category", "block", "chapter"), _DISEASE_NAME),
)
_MAX_UNLISTED = 0.1  # maximum share of unlisted values, such as former countries, in a column of countries
_TRIED = 100  # number of values tried first; if none is in a classification, the rest is not tried
_MANY = 20  # a column with fewer values may have unlisted countries only if it is named as countries
_MANY_CODES = 6  # minimum number of distinct codes of states, if the column is not named as states
_ZEROS_OR_NINES = re.compile("0+|99+")

HierarchySpec = str | dict[str, Any]


def natural_hierarchy(
    name: str,
    kind: Kind,
    texts: Sequence[str],
    counts: Sequence[int],
    unknown: Sequence[str] = (),
    *,
    today: date | None = None,
    form: WrittenForm | None = None,
) -> tuple[str, HierarchySpec]:
    """Return how values are written (number, date, time, code, category, empty) and a hierarchy for them.

    `texts` are the distinct values, without nulls and codes for unknown. `counts` has the records of each.
    Two-digit years are read so that no date is after `today`. `form` is how the texts are written, if known.
    """
    if not texts:
        return "empty", "flat"
    records = np.array(counts, np.float64)
    if not records.sum():
        records = np.ones(len(texts))
        form = None  # it depends on the records
    written, read = form or written_form(name, texts, records, today)
    spec: dict[str, Any] | None
    if isinstance(read, DateFormat):
        spec = _dates(read, records)
    elif written == "number":
        spec = number_hierarchy(texts, records, read or POINT, are_ages=_are_ages(name, kind))
    elif written == "time":
        units = _time_units(texts, records)
        spec = {"times": units} if units else None
    else:
        spec = _textual(name, written, texts, records)
    if spec is None:
        return written, "flat"
    codes = [code for code in unknown if code != spec.get("uncovered")]
    return written, spec | ({"unknown": codes} if codes else {})


def _dates(dated: DateFormat, records: FloatArray) -> dict[str, Any]:
    extra: dict[str, Any] = {} if dated.style is None else {"format": dated.style}
    extra |= {"latest": dated.latest.isoformat()} if dated.latest else {}
    extra |= {} if dated.read.all() else {"uncovered": UNKNOWN}
    return {"dates": date_units(dated, records), **extra}


def _textual(name: str, written: str, texts: Sequence[str], records: FloatArray) -> dict[str, Any] | None:
    """Return the hierarchy of postcodes, of a classification, of codes, or of categories."""
    if is_postcode(name) and (codes := postcodes(texts)):
        return codes  # the digit positions have a meaning, even if a table contains few codes
    if classified := _classified(name, texts, records):
        return classified
    if written == "code":
        return _prefixes({"prefix": list(range(len(texts[0]) - 2, 0, -1))[:4]}, texts, records)
    if len(texts) <= FEW or are_flags(texts):
        return None
    rare = _rare(texts, records)
    has_many_codes = rare is None and len(texts) > CODES
    return _prefixes({"prefix": [4, 3, 2, 1]}, texts, records) if has_many_codes else rare


def number_hierarchy(
    texts: Sequence[str], counts: Sequence[float] | FloatArray, decimal: str, *, are_ages: bool = False
) -> dict[str, Any] | None:
    """Return bands for numbers, with their decimal sign if it is not a point."""
    if decimal == POINT and len(texts) > _MOST_NUMBERS and (floats := plain_numbers(texts)) is not None:
        texts, counts = _thinned(texts, floats, np.asarray(counts, np.float64))
    numbers = [number_of(text, decimal) for text in texts]
    pairs = [(n, count) for n, count in zip(numbers, counts, strict=True) if n is not None]
    spec = bands_for([n for n, _ in pairs], [count for _, count in pairs], are_ages=are_ages)
    if spec is None:
        return None
    return spec if decimal == POINT else spec | {"decimal": decimal}


def _thinned(texts: Sequence[str], floats: FloatArray, counts: FloatArray) -> tuple[list[str], FloatArray]:
    """Return numbers at evenly spaced ranks. Records of an omitted number count for the number before it."""
    order = np.argsort(floats, kind="stable")
    starts = np.unique(np.linspace(0, len(order) - 1, _MOST_NUMBERS).astype(np.int64))
    return [texts[index] for index in order[starts].tolist()], np.add.reduceat(counts[order], starts)


def uncovered_note(name: str, spec: object, texts: Sequence[str], counts: Sequence[int]) -> str | None:
    """Return a note on cells that are not dates or countries, and on two-digit years."""
    if not isinstance(spec, dict) or not {"dates", "countries"} & spec.keys():
        return None
    notes = []
    if "countries" in spec and "uncovered" in spec:
        covered = parse(name, spec).labels(list(texts))
        cells = sum(number for labels, number in zip(covered, counts, strict=True) if labels is None)
        notes.append(
            f"Column {name!r} holds countries, except {plural(cells, 'cell')} whose text is not a country of "
            f"today. They become {spec['uncovered']!r} from level 1 up."
        )
    elif "uncovered" in spec:
        covered = parse(name, spec).labels(list(texts))
        cells = sum(number for labels, number in zip(covered, counts, strict=True) if labels is None)
        how = f"dates as {spec['format']}" if "format" in spec else "ISO dates such as 2025-01-31"
        are = "is not a date" if cells == 1 else "are not dates"
        notes.append(
            f"Column {name!r} holds {how}. {plural(cells, 'cell')} {are} of this format. They become "
            f"{spec['uncovered']!r} from level 1 up: correct them in the table if they are mistakes."
        )
    if "latest" in spec:
        notes.append(
            f"Column {name!r} has dates whose years have two digits, which can be of two centuries. They "
            f"are read so that no date is after {spec['latest']}. If that is wrong, change 'latest', or "
            "write the years with four digits in the table."
        )
    return " ".join(notes) or None


def _are_ages(name: str, kind: Kind) -> bool:
    return kind is Kind.AGE or is_age(name) or _AGE_NAME.fullmatch(name) is not None


def _rare(texts: Sequence[str], records: FloatArray) -> dict[str, Any] | None:
    """Return the thresholds that each merge more values than the one before; None if no threshold does."""
    # A value that equals the label of nulls cannot be grouped separately.
    if MISSING in texts or len(texts) <= FEW:
        return None
    total = records.sum()
    partitions = []
    for threshold in _THRESHOLDS:
        rare = records * 1000 < threshold * total
        partitions.append(np.where(rare, 0, np.cumsum(~rare)))
    levels = useful(partitions, records)
    if not levels or levels == [len(_THRESHOLDS) - 1]:  # a fifth of the records is not rare
        return None
    label, values = "other", {text.strip().casefold() for text in texts}
    while label in values:
        label += " values"
    shares = [f"{_THRESHOLDS[level] / 10:g}%" for level in levels]
    return {"rare": shares} | ({} if label == "other" else {"label": label})


def _prefixes(spec: dict[str, Any], texts: Sequence[str], records: FloatArray) -> dict[str, Any] | None:
    lengths = spec["prefix"]
    array = texts_of_list(texts)
    prefixes = [pc.utf8_slice_codeunits(array, 0, length).dictionary_encode() for length in lengths]
    levels = useful([numbers_of(prefix.indices) for prefix in prefixes], records)
    return spec | {"prefix": [lengths[level] for level in levels]} if levels else None


def _numbered(labels: Sequence[str]) -> IntArray:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int64)


def _time_units(texts: Sequence[str], records: FloatArray) -> list[str]:
    minutes = [minute_of(text) or 0 for text in texts]
    units = [unit for unit in TIME_UNITS if unit != "minute"]
    partitions = [_numbered([TIME_UNITS[unit](minute) for minute in minutes]) for unit in units]
    return [units[level] for level in useful(partitions, records)]


def _classified(name: str, texts: Sequence[str], records: FloatArray) -> dict[str, Any] | None:
    """Return the hierarchy of a public classification that contains all values, if the evidence is enough.

    A few values, such as former countries, may be missing in the classification if the column is named as
    countries or has many countries.
    """
    candidates = []
    for keyword, units, name_pattern in _CLASSIFICATIONS:
        rule = parse("", {keyword: list(units)})
        if not any(rule.labels(texts[:_TRIED])):
            continue
        rows = rule.labels(texts)
        name_fits = name_pattern.search(name) is not None
        missing = sum(row is None for row in rows)
        written_out = keyword != "icd_10" and all(len(text.strip()) > 3 for text in texts)
        named_or_many = name_fits or (written_out and len(texts) >= _MANY)
        may_miss = named_or_many and keyword == "countries" and missing <= _MAX_UNLISTED * len(texts)
        if missing and not may_miss:
            continue
        if name_fits or written_out or (keyword == "us_states" and len(texts) >= _MANY_CODES):
            labels = [row or (UNKNOWN,) * len(units) for row in rows]
            partitions = [_numbered([row[level] for row in labels]) for level in range(len(units))]
            levels = useful(partitions, records)
            if levels:
                extra = {"uncovered": UNKNOWN} if missing else {}
                candidates.append((name_fits, {keyword: [units[level] for level in levels], **extra}))
    return max(candidates, key=lambda pair: pair[0])[1] if candidates else None


def unknown_postcodes(texts: Sequence[str], unknown: Sequence[str]) -> list[str]:
    """Return the codes for "unknown" among postcodes; these include texts of only nines or only zeros.

    >>> unknown_postcodes(["1067", "80331", "999", "99999", "0"], [])
    ['999', '99999', '0']
    """
    others = [text for text in texts if text not in unknown and not _ZEROS_OR_NINES.fullmatch(text)]
    if postcodes(others) is None or max(map(len, others)) < 4:
        return list(unknown)
    return [text for text in texts if text in unknown or _ZEROS_OR_NINES.fullmatch(text)]


def short_postcodes(texts: Sequence[str]) -> bool:
    """Return whether the hierarchy restores leading zeros, and a postcode is two or more digits too short."""
    hierarchy = postcodes(texts)
    return (
        hierarchy is not None
        and "pad" in hierarchy
        and min(map(len, texts)) < min(5, hierarchy["pad"][0]) - 1
    )
