"""Grouping of few rows in memory, because a query with many aggregates takes long to plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.agreement import AgreementQuestion, AgreementQuestions, ColumnAgreement, GroupTally
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.arrow import column_of, numbers_of
from shoal.core.contracts import ColumnScan, KeyGroups
from shoal.core.counts.counts import Counts, Domain, layout
from shoal.core.counts.in_memory import InMemoryCounts
from shoal.engines.relational.relations import Backend, BackendTable, domain_of

FEW_ROWS = 10_000  # not more than COMPARED_GROUPS, so that all groups are compared


def has_few_rows(backend: Backend, table: BackendTable) -> bool:
    """Return whether a table is known to have so few rows that they are grouped in memory."""
    rows = backend.row_count_if_few(table)
    return rows is not None and rows <= FEW_ROWS


def fetch_few(backend: Backend, table: BackendTable, columns: Sequence[str]) -> pa.Table | None:
    """Fetch columns of a table that has few rows; None if it has many, or if their number is unknown."""
    few = has_few_rows(backend, table)
    return backend.fetch(table.select(*dict.fromkeys(columns))) if few else None


def scan(rows: pa.Table, columns: Sequence[str], patterns: Sequence[str]) -> dict[str, ColumnScan]:
    """Count, per column, the values that occur once and the texts that match each pattern."""
    scans = {}
    for name in columns:
        codes, values = coded(rows[name])
        matches = [0] * len(patterns)
        if pa.types.is_string(values.type):
            # As in a query, a dot also matches a line break.
            matched = (pc.match_substring_regex(values, f"(?s){pattern}") for pattern in patterns)
            matches = [pc.sum(flags).as_py() or 0 for flags in matched]
        unique = int((np.bincount(codes) == 1).sum())
        scans[name] = ColumnScan(unique, tuple(matches), len(values))
    return scans


def count_each(rows: pa.Table) -> Iterator[tuple[Counts, Domain]]:
    """Count the values of every column."""
    for name in rows.column_names:
        codes, values = coded(rows[name])
        sizes = np.bincount(codes, minlength=len(values))
        if len(sizes) > len(values):
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        domain, order = domain_of(name, values)
        keys = np.arange(len(sizes))[np.newaxis]
        yield InMemoryCounts(layout([domain.bits]), keys, sizes[order], {}), domain


def coded(column: pa.ChunkedArray) -> tuple[IntArray, pa.Array]:
    """Return the code of each row, and the values; the code of nulls is the number of values."""
    values = column.combine_chunks()
    if pa.types.is_floating(values.type):
        values = pc.add(values, column_of([0])[0].cast(values.type))  # -0.0 becomes 0.0
    encoded = values.dictionary_encode()
    return _filled(encoded.indices, len(encoded.dictionary)), encoded.dictionary


def _filled(numbers: pa.Array, number: int) -> IntArray:
    """Replace nulls by a number; pa.scalar would import pandas."""
    filled: IntArray = numbers_of(pc.fill_null(numbers.cast(pa.int64()), column_of([number])[0]))
    return filled


def key_groups(rows: pa.Table, keys: Sequence[str], columns: Sequence[str]) -> dict[str, KeyGroups]:
    """Group rows by each key, and count the groups in which each column has at most one value."""
    codes = {name: coded(rows[name]) for name in dict.fromkeys([*keys, *columns])}
    groups = {}
    for key in keys:
        codes_here, values = codes[key]
        has_key = codes_here < len(values)
        sizes = np.bincount(codes_here[has_key], minlength=len(values))
        repeated = sizes > 1
        constant = {}
        for name in columns if repeated.any() else ():
            others, known = codes[name]
            has_both = has_key & (others < len(known))
            pairs = np.unique(codes_here[has_both] * len(known) + others[has_both]) // max(1, len(known))
            distinct = np.bincount(pairs, minlength=len(values))
            constant[name] = int((distinct[repeated] < 2).sum())
        constant.pop(key, None)
        groups[key] = KeyGroups(
            groups=len(values),
            rows=int(sizes.sum()),
            smallest=int(sizes.min(initial=len(rows))) if len(values) else 0,
            largest=int(sizes.max(initial=0)),
            repeated=int(repeated.sum()),
            compared=int(repeated.sum()) if columns else 0,
            constant=constant,
        )
    return groups


class FewGroups(ColumnAgreement):
    """Groups the rows of a release in memory."""

    def __init__(
        self,
        rows: pa.Table,
        questions: AgreementQuestions,
        unchanged: Mapping[str, str],
        paths: Mapping[str, str],
        flags: Sequence[str],
        keys: Sequence[str],
        shown: str,
        unit: str | None,
    ) -> None:
        """Store rows and the names of their columns; `unchanged` maps original names to names in `rows`."""
        self.questions, self.names = questions, list(unchanged)
        self._columns = [coded(rows[name]) for name in unchanged.values()]
        self._paths = {word: whole(rows[name]) for word, name in paths.items()}
        self._flags = [whole(rows[name]) for name in flags]
        self.records, self.released = len(rows), int(whole(rows[shown]).sum())
        code_columns = [*(coded(rows[name])[0] for name in keys), *(codes for codes, _ in self._columns)]
        self.unique = _count_unique(code_columns, len(rows), None if unit is None else coded(rows[unit]))
        self._by_column: dict[int, _Groups] = {}

    def _groups(self, column: int) -> _Groups:
        if column not in self._by_column:
            self._by_column[column] = _Groups(self._columns[column][0], self._paths, self._flags)
        return self._by_column[column]

    def tallies(self) -> list[GroupTally]:
        return [self._tally(self._groups(column)) for column in range(len(self.names))]

    def _tally(self, groups: _Groups) -> GroupTally:
        sizes, size = np.unique(groups.sizes, return_inverse=True)
        sums: list[list[IntArray]] = [[], [], [], []]
        for question in self.questions.asked:
            eligible, agree = groups.agreement(question)
            for kept, numbers in zip(
                sums, (eligible, eligible > 0, eligible * agree, agree & (eligible > 0)), strict=True
            ):
                kept.append(np.bincount(size, numbers, len(sizes)).astype(np.int64))
        return GroupTally(sizes, *map(np.stack, sums))

    def values(self, column: int, most: int) -> Domain:
        return domain_of(self.names[column], self._columns[column][1][:most])[0]

    def matching(
        self, column: int, values: Domain, wanted: Mapping[int, IntArray]
    ) -> Mapping[int, tuple[int, int]]:
        codes, known = self._columns[column]
        value_index = np.append(_filled(pc.index_in(known, values.values), -1), -1)[codes]
        is_present = value_index >= 0
        counts = {}
        for number, bits in wanted.items():
            question = self.questions.asked[number]
            eligible = is_present if question.flag is None else is_present & (self._flags[question.flag] > 0)
            named = (self._paths[str(question.word)] & question.mask) == bits[value_index]
            counts[number] = int(eligible.sum()), int((eligible & named).sum())
        return counts

    def close(self) -> None:
        """Do nothing: all data is in this process."""


class _Groups:
    """The groups by one column: their sizes, flag counts, and the AND and OR of their paths."""

    def __init__(self, codes: IntArray, paths: Mapping[str, IntArray], flags: Sequence[IntArray]) -> None:
        order = np.argsort(codes, kind="stable")
        self.codes, starts, self.sizes = np.unique(codes[order], return_index=True, return_counts=True)
        has_rows = bool(len(codes))
        self.low = {w: np.bitwise_and.reduceat(p[order], starts) if has_rows else p for w, p in paths.items()}
        self.high = {w: np.bitwise_or.reduceat(p[order], starts) if has_rows else p for w, p in paths.items()}
        self.flags = [np.add.reduceat(flag[order], starts) if has_rows else flag for flag in flags]

    def agreement(self, question: AgreementQuestion) -> tuple[IntArray, BoolArray]:
        """Return each group's number of eligible records, and whether its records agree."""
        word = str(question.word)
        low, high = self.low[word] & question.mask, self.high[word] & question.mask
        eligible = self.sizes if question.flag is None else self.flags[question.flag]
        return eligible, low == high


def _count_unique(columns: Sequence[IntArray], rows: int, unit: tuple[IntArray, pa.Array] | None) -> int:
    """Count the rows or persons whose combination of codes no other row or person has."""
    classes = np.zeros(rows, np.int64)
    for codes in columns:
        classes = np.unique(classes * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    sizes = np.bincount(classes)
    if unit is None:
        return int((sizes == 1).sum())
    persons, values = unit
    has_person = persons < len(values)
    pairs = np.unique(classes[has_person] * max(1, len(values)) + persons[has_person])
    owners, units = np.divmod(pairs, max(1, len(values)))
    known = np.bincount(classes[has_person], minlength=len(sizes))
    one_person = (np.bincount(owners, minlength=len(sizes)) == 1) & (known == sizes)
    nobody = bool((known == 0).any())  # records without a person count as one person
    return len(np.unique(units[one_person[owners]])) + nobody


def whole(column: pa.ChunkedArray) -> IntArray:
    """Return a column of whole numbers or booleans as an array of integers."""
    if column.null_count:
        raise pa.ArrowNotImplementedError
    numbers: IntArray = numbers_of(column).astype(np.int64)
    return numbers
