"""Groups by columns that are released unchanged.

The bitwise AND and OR of the packed paths in a group show in which columns and at which levels its records
agree: see `shoal.core.agreement`. The rows of the release stay in the backend and are grouped there. Only
counts are fetched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.core.agreement import AgreementQuestion, AgreementQuestions, ColumnAgreement, GroupTally
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.arrow import column_of, numbers_of
from shoal.core.counts.counts import Domain
from shoal.core.recoding.recoding import Regions
from shoal.engines.relational.few_rows import FewGroups, has_few_rows
from shoal.engines.relational.recode import CLASS, TableRecoding
from shoal.engines.relational.relations import (
    CODE,
    COUNT,
    INTERNAL,
    WORD,
    Backend,
    BackendTable,
    domain_of,
    is_scalar,
    joined,
    words_of,
)

_USED, _STEP, _PATH, _FLAG, _KEY, _UNIT, _SHOWN, _AND, _OR, _LOW, _HIGH, _UNITS, _VALUE, _WANTED = (
    INTERNAL + name
    for name in (
        "used_", "step_", "path_", "flag_", "key_", "unit", "shown", "and_", "or_", "low", "high", "units",
        "value", "wanted_",
    )
)  # fmt: skip
_SUMS = ("eligible", "eligible_groups", "agreeing", "agreeing_groups")


def group_unchanged(
    recoded: TableRecoding, questions: AgreementQuestions, unchanged: Sequence[str], unit: str | None
) -> ColumnAgreement:
    """Group the rows of a release: in memory if they are few, otherwise in the backend."""
    rows = _released_rows(recoded, questions, unchanged, unit)
    if has_few_rows(recoded.backend, recoded.table):
        with suppress(pa.ArrowNotImplementedError):  # a type that only the backend groups by
            fetched = recoded.backend.fetch(rows)
            names = fetched.column_names
            return FewGroups(
                fetched,
                questions,
                {name: f"{_USED}{position}" for position, name in enumerate(unchanged)},
                {name.removeprefix(_PATH): name for name in names if name.startswith(_PATH)},
                [f"{_FLAG}{number}" for number in range(len(questions.flags))],
                [name for name in names if name.startswith(_KEY)],
                _SHOWN,
                _UNIT if _UNIT in names else None,
            )
    return UnchangedGroups(recoded.backend, rows, questions, unchanged)


class UnchangedGroups(ColumnAgreement):
    """Groups the rows of a release in the backend, which caches them if it can."""

    def __init__(
        self, backend: Backend, rows: BackendTable, questions: AgreementQuestions, unchanged: Sequence[str]
    ) -> None:
        self.backend, self.unchanged, self.questions = backend, tuple(unchanged), questions
        self._rows = rows
        self._is_cached = self.backend.caches_rows
        if self._is_cached:
            self._rows = self.backend.cache_table(self._rows)
        try:
            self.unique, self.records, self.released = self._unique()
        except BaseException:
            self.close()
            raise

    def _unique(self) -> tuple[int, int, int]:
        """Count the unique records or persons, the rows of the release, and the rows that are not masked."""
        rows = self._rows
        counted: dict[str, Any] = {COUNT: rows.count(), _SHOWN: rows[_SHOWN].sum()}
        if _UNIT in rows.columns:
            unit = rows[_UNIT]
            counted |= {_LOW: unit.min(), _HIGH: unit.max(), _UNITS: unit.count()}
        keys = [name for name in rows.columns if name.startswith((_KEY, _USED))]
        groups = rows.group_by(keys).aggregate(**counted)
        expressions = {
            COUNT: groups[COUNT].sum(),
            _SHOWN: groups[_SHOWN].sum(),
            _KEY: (groups[COUNT] == 1).sum(),
        }
        if _UNIT in rows.columns:
            one_person = (groups[_LOW] == groups[_HIGH]) & (groups[_UNITS] == groups[COUNT])
            expressions |= {
                _LOW: groups[_LOW].nunique(where=one_person),
                _UNITS: (groups[_UNITS] == 0).sum(),  # records without a person count as one person
            }
        (row,) = self._fetch(groups.aggregate(**_whole_numbers(expressions))).to_pylist()
        unique = row[_LOW] + (row[_UNITS] > 0) if _LOW in row else row[_KEY]
        return int(unique or 0), int(row[COUNT] or 0), int(row[_SHOWN] or 0)

    def _fetch(self, table: BackendTable) -> pa.Table:
        with self.backend.translate_errors():
            return self.backend.fetch(table)

    def _groups(self, column: int) -> BackendTable:
        """Group by an unchanged column: count the records and flags of each group, and combine its paths."""
        rows = self._rows
        counted: dict[str, Any] = {COUNT: rows.count()}
        for name in rows.columns:
            if name.startswith(_PATH):
                word = name.removeprefix(_PATH)
                counted[f"{_AND}{word}"], counted[f"{_OR}{word}"] = self.backend.bits(rows[name])
            elif name.startswith(_FLAG):
                counted[name] = rows[name].sum().cast("int64")
        return rows.group_by(f"{_USED}{column}").aggregate(**counted)

    def tallies(self) -> list[GroupTally]:
        return [self._tally(self._groups(column)) for column in range(len(self.unchanged))]

    def _tally(self, groups: BackendTable) -> GroupTally:
        question_list = self.questions.asked
        expressions = {
            f"{name}{number}": expression
            for number, question in enumerate(question_list)
            for name, expression in zip(_SUMS, _sums(self.backend, groups, question), strict=True)
        }
        by_size = self._fetch(groups.group_by(COUNT).aggregate(**_whole_numbers(expressions))).sort_by(COUNT)
        columns = {
            name: numbers_of(column) for name, column in zip(by_size.column_names, by_size, strict=True)
        }
        sums = {
            name: np.stack([columns[f"{name}{number}"] for number in range(len(question_list))])
            for name in _SUMS
        }
        return GroupTally(columns[COUNT], **sums)

    def values(self, column: int, most: int) -> Domain:
        name = f"{_USED}{column}"
        present = self._rows.filter(self._rows[name].notnull()).select(name).distinct()
        return domain_of(self.unchanged[column], self._fetch(present.limit(most))[name].combine_chunks())[0]

    def matching(
        self, column: int, values: Domain, wanted: Mapping[int, IntArray]
    ) -> dict[int, tuple[int, int]]:
        rows, name = self._rows, f"{_USED}{column}"
        bits = {f"{_WANTED}{number}": column_of(masks) for number, masks in wanted.items()}
        uploaded = self.backend.upload(pa.table({_VALUE: values.values, **bits}))
        joined_rows = rows.inner_join(uploaded, rows[name] == uploaded[_VALUE])
        literal = self.backend.expressions.literal
        sums: dict[str, Any] = {}
        for number in wanted:
            question = self.questions.asked[number]
            flag = None if question.flag is None else joined_rows[f"{_FLAG}{question.flag}"].cast("int64")
            eligible = literal(1, "int64") if flag is None else flag
            path = joined_rows[f"{_PATH}{question.word}"] & literal(question.mask, "int64")
            in_group = path == joined_rows[f"{_WANTED}{number}"]
            sums |= {
                f"eligible{number}": joined_rows.count() if flag is None else flag.sum(),
                f"agreeing{number}": in_group.ifelse(eligible, 0).sum(),
            }
        (row,) = self._fetch(joined_rows.aggregate(**_whole_numbers(sums))).to_pylist()
        return {n: (row[f"eligible{n}"] or 0, row[f"agreeing{n}"] or 0) for n in wanted}

    def close(self) -> None:
        if self._is_cached:
            self.backend.discard(self._rows)


def _released_rows(
    recoded: TableRecoding, questions: AgreementQuestions, unchanged: Sequence[str], unit: str | None
) -> BackendTable:
    """Return the rows of a release: unchanged columns, paths, flags, class keys, and the unit.

    A masked row has its path, but no class key.
    """
    regions = recoded.recoding.regions
    joined_rows = joined(recoded.backend, recoded.table, recoded.domains, _looked_up(recoded, questions))
    words = words_of(recoded.backend, joined_rows, _STEP, questions.fields)
    joined_rows = joined_rows.mutate(**{name.replace(WORD, _PATH): word for name, word in words.items()})
    paths = {name: joined_rows[name] for name in joined_rows.columns if name.startswith(_PATH)}
    if regions is None:
        joined_rows, shown = _by_levels(recoded, joined_rows, questions)
    else:
        joined_rows, shown = _by_regions(recoded, regions, joined_rows, questions)
    if recoded.recoding.separate_column:  # the group in the separate table does not identify anyone
        shown = {name.replace(_PATH, _KEY): joined_rows[name] for name in paths}
    flags = {f"{_FLAG}{number}": joined_rows[f"{_FLAG}{number}"] for number in range(len(questions.flags))}
    kept = {f"{_USED}{position}": _groupable(joined_rows[name]) for position, name in enumerate(unchanged)}
    expressions = recoded.backend.expressions
    shown[_SHOWN] = expressions.literal(1)
    is_suppressed = recoded.masked(joined_rows)
    if is_suppressed is not None:
        shown = {
            name: is_suppressed.ifelse(expressions.null(), expression) for name, expression in shown.items()
        }
        shown[_SHOWN] = is_suppressed.ifelse(0, 1)
        flags = {
            name: is_suppressed.ifelse(int(flag.masked), flags[name])
            for name, flag in zip(flags, questions.flags, strict=True)
        }
        blanks = [f"{_USED}{index}" for index, name in enumerate(unchanged) if name in (recoded.blank or ())]
        kept |= {name: is_suppressed.ifelse(expressions.null(), kept[name]) for name in blanks}
    persons = {} if unit is None else {_UNIT: _ordered(joined_rows[unit])}
    return joined_rows.select(
        **kept, **{name: joined_rows[name] for name in paths}, **flags, **shown, **persons
    )


def _by_levels(
    recoded: TableRecoding, joined_rows: BackendTable, questions: AgreementQuestions
) -> tuple[BackendTable, dict[str, Any]]:
    """Return the rows of a release by levels, and their class keys."""
    masks = _by_word(questions)
    keys = {
        f"{WORD}{word}": joined_rows[f"{_PATH}{word}"] & recoded.backend.expressions.literal(mask, "int64")
        for word, mask in masks.items()
    }
    if questions.suppressed is None:
        joined_rows = joined_rows.mutate(**keys)
    else:
        joined_rows = recoded.without(joined_rows, keys, questions.suppressed)
    return joined_rows, {name.replace(WORD, _KEY): joined_rows[name] for name in keys}


def _by_regions(
    recoded: TableRecoding, regions: Regions, joined_rows: BackendTable, questions: AgreementQuestions
) -> tuple[BackendTable, dict[str, Any]]:
    """Return the rows of a release by regions, and their class keys."""
    words = words_of(recoded.backend, joined_rows, CODE, recoded.fields)
    joined_rows = recoded.with_classes(joined_rows.mutate(**words), list(words), regions)
    flags = {f"{_FLAG}{number}": _whole(flag.eligible) for number, flag in enumerate(questions.flags)}
    joined_rows = recoded.with_class_values(joined_rows, flags, regions)
    return joined_rows, {f"{_KEY}0": joined_rows[CLASS]}


def _looked_up(recoded: TableRecoding, questions: AgreementQuestions) -> dict[str, dict[str, pa.Array]]:
    """Return the arrays to look up by each column's values: paths, flags, and codes of regions."""
    looked_up = {}
    for position, name in enumerate(recoded.recoding.columns):
        extra = {}
        if position < len(questions.paths) and questions.paths[position].any():
            extra[f"{_STEP}{position}"] = column_of(questions.paths[position])
        if recoded.recoding.regions is None:
            extra |= {
                f"{_FLAG}{number}": _whole(flag.eligible)
                for number, flag in enumerate(questions.flags)
                if flag.column == position
            }
        elif len(recoded.domains[name]) > 1:
            codes = np.arange(len(recoded.domains[name])) << recoded.fields[position].shift
            extra[f"{CODE}{position}"] = column_of(codes)
        if extra:
            looked_up[name] = extra
    return looked_up


def _whole(flags: BoolArray) -> pa.Array:
    return column_of(flags)


def _by_word(questions: AgreementQuestions) -> dict[int, int]:
    masks = dict.fromkeys(sorted({field.word for field in questions.fields}), 0)
    for field, mask in zip(questions.fields, questions.released, strict=True):
        masks[field.word] |= mask
    return masks


def _groupable(column: Any) -> Any:
    """Return a column that every backend can group by; lists and documents are cast to text."""
    kind = column.type()
    return column if is_scalar(kind) or kind.is_boolean() else column.cast("string")


def _ordered(column: Any) -> Any:
    """Return a column whose minimum every backend can compute."""
    kind = column.type()
    return column if kind.is_string() or kind.is_integer() else column.cast("string")


def _agreement(backend: Backend, groups: BackendTable, question: AgreementQuestion) -> tuple[Any, Any]:
    """Return each group's number of eligible records, and whether its records agree."""
    mask = backend.expressions.literal(question.mask, "int64")
    low, high = (groups[f"{name}{question.word}"] & mask for name in (_AND, _OR))
    eligible = groups[COUNT] if question.flag is None else groups[f"{_FLAG}{question.flag}"]
    return eligible, low == high


def _sums(backend: Backend, groups: BackendTable, question: AgreementQuestion) -> list[Any]:
    """Count eligible records, and groups that have any: first in all groups, then in those that agree."""
    eligible, agree = _agreement(backend, groups, question)
    has_eligible = eligible > 0
    return [eligible.sum(), has_eligible.sum(), agree.ifelse(eligible, 0).sum(), (agree & has_eligible).sum()]


def _whole_numbers(expressions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: expression.cast("int64") for name, expression in expressions.items()}
