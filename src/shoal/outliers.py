"""Outliers: the rare combinations that mu-Argus finds, told by columns and numbers and never by values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from shoal.algorithms.mu_argus import MuArgus
from shoal.choose import AUTO, engine_for
from shoal.core.combinations import Columns, Shown, rare, shown_at
from shoal.core.contracts import Engine
from shoal.core.lattice import Node
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.core.recoding import Recoding
from shoal.errors import CannotHonour, UsageError, so_many
from shoal.policy import Policy, named
from shoal.problem import counted, problem_of
from shoal.sensitive import count
from shoal.spreadsheet import plain_cell


@dataclass(frozen=True)
class Outlier:
    """How many combinations of some columns are rare, and the records that show them."""

    columns: tuple[str, ...]
    combinations: int
    records: int


@dataclass(frozen=True)
class Outliers:
    """What is rare at some levels, before anything is blanked."""

    k: int
    levels: Mapping[str, int]
    tested: int  # sets of columns
    found: tuple[Outlier, ...]  # the sets that have some, those with the most first
    columns: tuple[Outlier, ...]  # the same by column: the rare combinations that it is part of
    records: int  # that show some

    def to_dict(self) -> dict[str, Any]:
        """Return the outliers as plain values."""
        return asdict(self)


def argus(policy: Policy) -> MuArgus | None:
    """Return the policy's search, where it is mu-Argus, which can be told to go further up."""
    algorithm = policy.search_algorithm
    return algorithm if isinstance(algorithm, MuArgus) else None


def generalizing(policy: Policy, levels: Mapping[str, int], option: str = "--generalize") -> Policy:
    """Return the policy with columns that mu-Argus takes further up."""
    found = argus(policy)
    if found is None:
        message = (
            f"{option} is for algorithm 'mu-argus', and this one is {named(policy.algorithm)[0]!r}. Set it, "
            f"or leave {option} out."
        )
        raise UsageError(message)
    options = {"generalize": highest(found.generalize or {}, levels)}
    return policy.with_(algorithm={"mu-argus": options}) if levels else policy


def highest(*asked: Mapping[str, int]) -> dict[str, int]:
    """Return the highest level that is asked for each column."""
    found: dict[str, int] = {}
    for levels in asked:
        for name, level in levels.items():
            found[name] = max(level, found.get(name, level))
    return found


def outliers_of(policy: Policy, problem: Problem, node: Node) -> Outliers | None:
    """Count what is rare at a node, where the policy's search looks for it."""
    sets = tested(policy)
    return outliers_at(problem, node, sets) if sets else None


def tested(policy: Policy) -> Sequence[Columns]:
    """Return the sets of quasi-identifiers, by place, in which the policy's search looks for what is rare."""
    algorithm, names = policy.search_algorithm, policy.roles.quasi_identifiers
    return algorithm.tested([policy.columns[name].identifying for name in names]) if algorithm else ()


def outliers_at(problem: Problem, node: Node, sets: Sequence[Columns]) -> Outliers:
    """Count what is rare in every set of columns that is tested, at a node."""
    shown, _ = shown_at(problem, node)
    rares, sizes = [rare(shown, columns, problem.least_size) for columns in sets], shown.sizes
    names = problem.lattice.columns

    def records(rows: Any) -> int:
        return int(sizes[rows].sum())

    nowhere = np.zeros(len(sizes), np.bool_)
    found = [
        Outlier(tuple(names[c] for c in one.columns), one.combinations, records(one.rows))
        for one in rares
        if one.combinations
    ]
    by_column = []
    for place, name in enumerate(names):
        own = [one for one in rares if place in one.columns]
        rows = np.logical_or.reduce([one.rows for one in own])
        by_column.append(Outlier((name,), sum(one.combinations for one in own), records(rows)))
    everywhere = np.logical_or.reduce([nowhere, *[one.rows for one in rares]])
    return Outliers(
        k=problem.least_size,
        levels=dict(zip(names, node, strict=True)),
        tested=len(rares),
        found=tuple(sorted(found, key=lambda one: (-one.combinations, -one.records))),
        columns=tuple(by_column),
        records=records(everywhere),
    )


class Holder:
    """Who holds the data: looks at the outliers, takes a column further up, and looks again."""

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
        found = argus(generalizing(policy, {}, "--interactive"))
        engine = engine_for(engine, table, memory_limit)
        if progress:
            progress("count", 0, None)
        counts, domains = counted(engine.open(table), policy, engine)
        self._problem = problem_of(policy, counts, domains, levels)
        self._argus = found or MuArgus()
        self._tested = tested(policy)
        reason = self._argus.refuses(self._problem)
        if reason:
            message = f"Algorithm 'mu-argus' cannot honour this policy: {reason}."
            raise CannotHonour(message)

    @property
    def heights(self) -> dict[str, int]:
        """The highest level of each column, that of its hierarchy."""
        return dict(zip(self._problem.lattice.columns, self._problem.lattice.heights, strict=True))

    @property
    def records(self) -> int:
        """The number of records."""
        return self._problem.records

    def look(self, generalize: Mapping[str, int]) -> Outliers:
        """Return what is rare with some columns further up."""
        own = highest(self._argus.generalize or {}, generalize)
        node = replace(self._argus, generalize=own).start(self._problem)
        return outliers_at(self._problem, node, self._tested)


def rare_in(policy: Policy, engine: Engine, released: Any, recoding: Recoding) -> str | None:
    """Count a release afresh; say where a combination that was tested is rare in it after all.

    A cell that is empty, or looks as a blanked one does in its column, is part of no combination. None where
    the policy's search tests none.
    """
    sets = tested(policy)
    if not sets:
        return None
    names = policy.roles.quasi_identifiers
    counts, domains = count(engine, engine.open(released), names, (), ())
    codes = np.stack([counts.codes(column) for column in range(len(names))])
    looks = [recoding.look_of_blanks(name) for name in names]
    empty = [
        np.array([text is None or plain_cell(text) == look for text in domains[name].texts])
        for name, look in zip(names, looks, strict=True)
    ]
    visible = np.stack([~null[own] for null, own in zip(empty, codes, strict=True)])
    shown = Shown(codes, visible, counts.sizes)
    k = max(model.least_size for model in policy.privacy_models)
    for columns in sets:
        found = rare(shown, columns, k)
        if found.combinations:
            told = ", ".join(names[column] for column in columns)
            many = so_many(found.combinations, f"combination of {told} is", f"combinations of {told} are")
            return f"{many} shown by fewer than {k} records"
    return None
