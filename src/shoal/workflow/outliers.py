"""Outliers: the rare combinations that mu-Argus finds, reported by column and number, never by value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.algorithms.mu_argus import ColumnSubset, MuArgus, VisibleRecords, rare, shown_at
from shoal.core.contracts import Engine
from shoal.core.lattice.lattice import Node
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.core.recoding.recoding import Recoding
from shoal.document.document import PlainValues, Table, name_list
from shoal.errors import CannotHonour, UsageError
from shoal.policy.policy import Policy, named
from shoal.wording import Change, plural
from shoal.workflow.problem import count, counted, problem_of
from shoal.workflow.release.spreadsheet import plain_cell
from shoal.workflow.session import AUTO, Session, session


@dataclass(frozen=True)
class Outlier:
    """The number of rare combinations of some columns, and the number of records that have one."""

    columns: tuple[str, ...]
    combinations: int
    records: int


@dataclass(frozen=True)
class Outliers(PlainValues):
    """The rare combinations at some levels, before cells are blanked."""

    k: int
    levels: Mapping[str, int]
    tested: int  # number of sets of columns
    found: tuple[Outlier, ...]  # the sets with rare combinations; most rare combinations first
    columns: tuple[Outlier, ...]  # for each column, the rare combinations that contain it
    records: int  # the number of records with a rare combination


def outliers_table(outliers: Outliers, most: int = 15) -> Table:
    """List the sets of columns with rare combinations: counts only, no values."""
    shown = [
        (name_list(item.columns), f"{item.combinations:,}", f"{item.records:,}")
        for item in outliers.found[:most]
    ]
    return Table(
        f"Fewer than {outliers.k} records share these, before cells are blanked",
        ("columns", "rare combinations", "records"),
        shown,
        total=len(outliers.found),
        note=f"{len(outliers.found):,} of {outliers.tested:,} tested sets of columns have rare "
        f"combinations, in {plural(outliers.records, 'record')}.",
    )


def mu_argus_of(policy: Policy) -> MuArgus | None:
    """Return the policy's search if it is mu-Argus, which can generalize further on request."""
    algorithm = policy.search_algorithm
    return algorithm if isinstance(algorithm, MuArgus) else None


def generalizing(policy: Policy, levels: Mapping[str, int], option: str = "generalize") -> Policy:
    """Return the policy with minimum levels for columns that mu-Argus shall generalize further."""
    algorithm = mu_argus_of(policy)
    if algorithm is None:
        raise UsageError(
            f"is for algorithm 'mu-argus', and this one is {named(policy.algorithm)[0]!r}.",
            option=option,
            advice=[Change(action="Set the algorithm"), Change(option, action="Leave out {}")],
        )
    options = {"generalize": highest(algorithm.generalize or {}, levels)}
    return policy.with_(algorithm={"mu-argus": options}) if levels else policy


def highest(*requested: Mapping[str, int]) -> dict[str, int]:
    """Return the highest level that is requested for each column."""
    merged: dict[str, int] = {}
    for levels in requested:
        for name, level in levels.items():
            merged[name] = max(level, merged.get(name, level))
    return merged


def outliers_of(policy: Policy, problem: Problem, node: Node) -> Outliers | None:
    """Count the rare combinations at a node; None if the policy's search does not test for them."""
    return outliers_at(problem, node, policy.tested_sets) if policy.tested_sets else None


def outliers_at(problem: Problem, node: Node, sets: Sequence[ColumnSubset]) -> Outliers:
    """Count the rare combinations at a node, for every set of columns that is tested."""
    shown, _ = shown_at(problem, node)
    rares, sizes = [rare(shown, columns, problem.least_size) for columns in sets], shown.sizes
    names = problem.lattice.columns

    def records(rows: Any) -> int:
        return int(sizes[rows].sum())

    no_rows = np.zeros(len(sizes), np.bool_)
    outliers = [
        Outlier(tuple(names[c] for c in rare_set.columns), rare_set.combinations, records(rare_set.rows))
        for rare_set in rares
        if rare_set.combinations
    ]
    by_column = []
    for index, name in enumerate(names):
        matches = [rare_set for rare_set in rares if index in rare_set.columns]
        rows = np.logical_or.reduce([rare_set.rows for rare_set in matches])
        by_column.append(Outlier((name,), sum(rare_set.combinations for rare_set in matches), records(rows)))
    rare_rows = np.logical_or.reduce([no_rows, *[rare_set.rows for rare_set in rares]])
    return Outliers(
        k=problem.least_size,
        levels=dict(zip(names, node, strict=True)),
        tested=len(rares),
        found=tuple(sorted(outliers, key=lambda outlier: (-outlier.combinations, -outlier.records))),
        columns=tuple(by_column),
        records=records(rare_rows),
    )


class OutlierSession:
    """An interactive search: the custodian views the outliers, generalizes a column further, and repeats."""

    def __init__(
        self,
        table: Any,
        policy: Policy,
        levels: Mapping[str, int] | None = None,
        *,
        engine: str | Engine = AUTO,
        memory_limit: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Count a table once; `levels` are fixed."""
        algorithm = mu_argus_of(generalizing(policy, {}, "interactive"))
        s = session(table, engine, memory_limit, progress)  # left open: the counts may be in the engine
        s.progress("count", 0, None)
        counts, domains = counted(s.table, policy)
        self._problem = problem_of(policy, counts, domains, levels)
        self._argus = algorithm or MuArgus()
        self._tested = policy.tested_sets
        refusal = self._argus.refuses(self._problem)
        if refusal:
            raise CannotHonour(refusal.reason, algorithm="mu-argus")

    @property
    def heights(self) -> dict[str, int]:
        """The highest level of each column's hierarchy."""
        return dict(zip(self._problem.lattice.columns, self._problem.lattice.heights, strict=True))

    @property
    def records(self) -> int:
        """The number of records."""
        return self._problem.records

    def outliers(self, generalize: Mapping[str, int]) -> Outliers:
        """Return the rare combinations after some columns are generalized further."""
        levels = highest(self._argus.generalize or {}, generalize)
        node = replace(self._argus, generalize=levels).start(self._problem)
        return outliers_at(self._problem, node, self._tested)


def rare_in(policy: Policy, s: Session, released: Any, recoding: Recoding) -> str | None:
    """Count a release again, and report the first tested set with combinations that are still rare.

    A cell that is empty, or equals the blank label of its column, is in no combination. Return None if
    the policy's search tests no sets.
    """
    sets = policy.tested_sets
    if not sets:
        return None
    names = policy.roles.quasi_identifiers
    counts, domains = count(s.open(released), names, (), ())
    codes = np.stack([counts.codes(column) for column in range(len(names))])
    blanks = [recoding.blank_label(name) for name in names]
    empty = [
        np.array([text is None or plain_cell(text) == blank for text in domains[name].texts])
        for name, blank in zip(names, blanks, strict=True)
    ]
    visible = np.stack([~null[column_codes] for null, column_codes in zip(empty, codes, strict=True)])
    shown = VisibleRecords(codes, visible, counts.sizes)
    k = max(model.least_size for model in policy.privacy_models)
    for columns in sets:
        result = rare(shown, columns, k)
        if result.combinations:
            listed = ", ".join(names[column] for column in columns)
            many = plural(result.combinations, f"combination of {listed} is", f"combinations of {listed} are")
            return f"{many} shown by fewer than {k} records"
    return None
