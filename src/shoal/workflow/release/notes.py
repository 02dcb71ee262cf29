"""Notes on columns that are released unchanged and may identify persons."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.columns.evidence import NEARLY_UNIQUE, empty_rows, has_blanks, nearly_unique
from shoal.columns.identifiers import FEW, WITHIN
from shoal.columns.person_key import (
    Evidence,
    PersonKey,
    evidence_for,
    evidence_of_values,
    find_person_key,
    is_lifelong,
    may_be_key,
)
from shoal.core.arrays import IntArray
from shoal.core.classes import is_sensitive_name
from shoal.core.contracts import AS_IS, ColumnScan, Engine, Role
from shoal.core.counts.counts import Counts, Domain
from shoal.errors import DataError
from shoal.policy.policy import Policy
from shoal.wording import plural
from shoal.workflow.problem import separate_column
from shoal.workflow.release.spreadsheet import FORMULA, is_formula
from shoal.workflow.session import OpenTable

_MOST_VALUES = 250_000  # a column with more distinct values is not checked for keys
_MOST_COLUMNS = 4  # maximum number of columns that are checked for keys by their values


@dataclass(frozen=True)
class ColumnReview:
    """Findings about the columns that are released unchanged."""

    policy: Policy
    records: int
    unique_values: Mapping[str, int]  # by column: how many values occur once
    scans: Mapping[str, ColumnScan]
    empty: Sequence[str] = ()  # notes on empty rows
    person_key: PersonKey | None = None  # a column that identifies persons, although k counts rows

    def notes(self) -> tuple[str, ...]:
        """Describe columns that can identify persons on their own, and empty rows."""
        notes = (
            f"{name!r} is released as it is: {what}."
            for name in self.policy.roles.roles
            for what in (*self._unique(name), *self._identifiers(name))
        )
        return (*self.empty, *self._persons(), *notes)

    def _persons(self) -> list[str]:
        key = self.person_key
        if key is None:
            return []
        if not any("k-anonymity" in model for model in self.policy.models):
            return [f"{key}: the models count rows."]
        advice = key.advice
        if self.policy.roles.roles[key.column] is Role.QUASI_IDENTIFIER:
            advice = f"give it the role identifier, and {advice}"
        advice = f"{advice[0].upper()}{advice[1:]}" if key.certain else f"If so, {advice}"
        return [f"{key}: k counts rows. {advice}."]

    def formulas(self, labels: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Name the columns whose cells begin like formulas; recoded columns are checked by their labels."""
        begin = [name for name in self.policy.columns if self._begins(name, labels)]
        if not begin:
            return ()
        return (
            f"Cells of {', '.join(map(repr, begin))} begin like formulas, which a spreadsheet runs. "
            "The option 'safe for spreadsheets' prevents that.",
        )

    def _unique(self, name: str) -> list[str]:
        return [NEARLY_UNIQUE] if nearly_unique(self.unique_values.get(name, 0), self.records) else []

    def _identifiers(self, name: str) -> list[str]:
        matches = self.scans[name].matches if name in self.scans else ()
        counts = [
            f"{number:,} seem to hold {words}"
            for words, number in zip(WITHIN, matches, strict=False)
            if number >= FEW
        ]
        advice = "make the column an identifier, or remove them from its values"
        return [f"of its different values in the input, {' and '.join(counts)}: {advice}"] if counts else []

    def _begins(self, name: str, labels: Mapping[str, Sequence[str]]) -> bool:
        if name in self.scans:
            return any(self.scans[name].matches[len(WITHIN) :])
        bounds = len(self.policy.released(name)) > 1  # a band released as two numbers
        return not bounds and any(map(is_formula, labels.get(name, ())))


def mask_notes(policy: Policy, suppressed: int, *, masked: bool) -> Iterator[str]:
    """Yield a note if records were dropped although the policy asks to mask them."""
    if policy.masks and suppressed and not masked:
        yield (
            f"suppressed: mask was asked for, but {plural(suppressed, 'suppressed record')} had to be "
            "dropped. At least k records must be masked, and no row of the input may be empty."
        )


def review_columns(
    policy: Policy,
    opened: OpenTable,
    counts: Counts,
    domains: Mapping[str, Domain],
    *,
    formulas: bool,
) -> ColumnReview:
    """Search the columns that are released unchanged for identifiers and, if requested, formulas.

    The engine scans the columns. For sensitive columns, the number of unique values comes from `counts`.
    """
    engine, table = opened.engine, opened.table
    separate = separate_column(policy)  # released by group: no value belongs to a single record
    names = [name for name, role in policy.roles.roles.items() if role in AS_IS]
    scans = _scans(engine, table, names, (*WITHIN.values(), *([FORMULA] if formulas else [])))
    unique_values = {name: scan.unique_values for name, scan in scans.items()}
    unique_values |= {
        name: int((np.bincount(entries.codes, entries.counts) == 1).sum())
        for name, entries in counts.sensitive.items()
        if is_sensitive_name(name)
    }
    empty = empty_rows(engine, table) if all(map(has_blanks, domains.values())) else ()
    key = _person_key(policy, opened, counts, domains, scans)
    return ColumnReview(
        policy,
        counts.records,
        {**unique_values, **({separate: 0} if separate else {})},
        scans,
        empty,
        key,
    )


def _person_key(
    policy: Policy,
    opened: OpenTable,
    counts: Counts,
    domains: Mapping[str, Domain],
    scans: Mapping[str, ColumnScan],
) -> PersonKey | None:
    """Return a column that identifies persons who have several rows, if the policy counts rows.

    The values of quasi-identifiers are compared within the groups of each candidate.
    """
    if policy.units or max(model.least_size for model in policy.privacy_models) < 2:
        return None
    roles = policy.roles
    evidence = {name: evidence_for(name, identifier=False) for name in roles.roles}
    candidates = {name: kind for name, kind in evidence.items() if kind is not None}
    unknown = [name for name in evidence if name not in candidates]
    lifelong = any(map(is_lifelong, roles.quasi_identifiers))
    # If no column is constant for life, the shape of values is no evidence: other columns need not be read.
    removed = _scans(opened.engine, opened.table, [n for n in unknown if n in roles.identifiers], ())
    scanned = {**scans, **removed} if lifelong else removed
    shaped = _evidence_of_values(opened, unknown, counts, domains, scanned, removed)
    candidates |= {name: kind for name, kind in shaped.items() if lifelong or kind is not Evidence.SHAPE}
    agreement = {}
    if not counts.remote:
        for column, name in enumerate(roles.quasi_identifiers):
            agreement[name] = _agreement(counts.totals(column, len(domains[name])), domains[name])
    return find_person_key(opened.engine, opened.table, candidates, agreement, counts.records)


def _evidence_of_values(
    opened: OpenTable,
    names: Sequence[str],
    counts: Counts,
    domains: Mapping[str, Domain],
    scans: Mapping[str, ColumnScan],
    removed: Container[str],
) -> dict[str, Evidence]:
    """Return the columns whose values look like keys; only those with the most distinct values are read.

    A column without an estimate of its number of distinct values can only be recognized by its name.
    """
    texts = {name: domains[name].texts for name in names if name in domains}
    distinct = {name: scans[name].distinct or 0 for name in names if name in scans and name not in texts}
    likely = [name for name, number in distinct.items() if may_be_key(number, counts.records)]
    likely = [name for name in likely if distinct[name] <= _MOST_VALUES]
    likely = sorted(likely, key=distinct.__getitem__, reverse=True)[:_MOST_COLUMNS]
    with suppress(DataError):  # a note must not make a release fail
        counted = opened.engine.count_each(opened.table, likely)
        texts |= {name: domain.texts for name, (_, domain) in zip(likely, counted, strict=True)}
    evidence = {
        name: evidence_of_values(name, values, counts.records, removed=name in removed)
        for name, values in texts.items()
    }
    return {name: kind for name, kind in evidence.items() if kind is not None}


def _agreement(sizes: IntArray, domain: Domain) -> float:
    """Return the probability that two random records have the same value; missing values do not count."""
    known = sizes[np.array([text is not None for text in domain.texts])].astype(np.float64)
    rows = known.sum()
    return float((known * (known - 1)).sum() / (rows * (rows - 1))) if rows > 1 else 1.0


def _scans(
    engine: Engine, table: Any, names: Sequence[str], patterns: Sequence[str]
) -> dict[str, ColumnScan]:
    """Scan all columns at once; if that fails, scan each of them and skip those that fail."""
    with suppress(DataError):
        return engine.scan_columns(table, names, patterns)
    scans: dict[str, ColumnScan] = {}
    for name in names:
        with suppress(DataError):
            scans |= engine.scan_columns(table, [name], patterns)
    return scans
