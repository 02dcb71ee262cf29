"""Anatomy (Xiao and Tao 2006): quasi-identifiers as they are, sensitive values apart, by group.

Lemma: order the records by sensitive value and deal them out to g groups in turn. The records of one value
stand together, so where no value has more than g of them no group gets a value twice: a group of m records
holds m different values. There are g groups of at least n // g records each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.classes import Classes, own_name
from shoal.core.contracts import Algorithm, Guarantee, Model
from shoal.core.counts import Counts, Entries, layout
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.groups import Groups, group_column
from shoal.core.held import of_sizes
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding
from shoal.core.regions import Regions
from shoal.errors import Infeasible


@dataclass(frozen=True)
class Anatomy(Algorithm):
    """Release quasi-identifiers with a group, and how often each sensitive value occurs in each group."""

    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every group satisfies every model; nothing is proven of the loss."""
    explains: ClassVar[bool] = True
    apart: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> str | None:
        """Refuse what is said of quasi-identifiers, of a population, or of more than one sensitive column."""
        lattice, names = problem.lattice, [name for name in problem.counts.sensitive if own_name(name)]
        if problem.counts.population is not None:
            return "quasi-identifiers stay as they are, so nobody is hidden in a population"
        if problem.metric.by_level:
            return "its metric needs levels, and quasi-identifiers stay as they are"
        if lattice.constrained:
            return (
                "quasi-identifiers stay as they are, so max_level, min_level, same_level and fixed levels "
                "say nothing of them"
            )
        if problem.as_bounds:
            return "quasi-identifiers stay as they are, so release_as: bounds says nothing of them"
        if problem.metric.needs_label:
            return "its metric is about classes, and quasi-identifiers stay as they are"
        if any(model.unit_column is not None for model in problem.models):
            return "quasi-identifiers stay as they are, so no persons are counted in a class"
        reason = self.unfit(problem.models, names)
        if reason is None and len(names) != 1:
            reason = (
                f"one sensitive column is released apart from the others, and models look at {len(names)}"
            )
        return reason

    def unfit(self, models: Sequence[Model], sensitive: Sequence[str]) -> str | None:
        """Say why a model wants more than groups of sensitive values can give, where one does."""
        if not all(model.values_alone and model.sensitive(sensitive) for model in models):
            return (
                "quasi-identifiers stay as they are, so nobody is hidden among k: models can be about "
                "sensitive values alone. Use distinct-l-diversity instead, or another algorithm"
            )
        return None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Take the smallest groups that all models allow; which record goes to which is left to chance."""
        ((name, entries),) = ((n, e) for n, e in problem.counts.sensitive.items() if own_name(n))
        totals = np.bincount(entries.codes, entries.counts).astype(np.int64)
        most, records, least = int(totals.max()), problem.records, problem.least_size
        if records // most < least:
            reached = records // most
            advice = f"l={reached} would do" if reached > 1 else "No l above 1 can do"
            message = (
                f"Column {name!r}: the most frequent value has {most:,} of {records:,} records, and groups "
                f"of {least:,} different values allow {records // least:,}. {advice}."
            )
            raise Infeasible(message, {"l": reached} if reached > 1 else {})
        order = np.argsort(-totals, kind="stable")  # the most frequent first, ties by code
        codes = np.repeat(order, totals[order])
        for groups in dict.fromkeys(records // size for size in range(least, records // most + 1)):
            evaluate.check_time()
            if not problem.violations(_classes(problem, name, _held(codes, groups, entries.bits))).any():
                recoding = _recoding(problem, name, order, codes, groups)
                return evaluate.finish(evaluate.recoded(recoding), self.guarantee)
        message = (
            f"Column {name!r}: groups of up to {records // most} different values, the most that there can "
            "be, do not satisfy all models. Use weaker ones."
        )
        raise Infeasible(message)


def _held(codes: IntArray, groups: int, bits: int) -> Entries:
    """Deal records out in turn; return the sensitive values of each group."""
    keys = np.sort((np.arange(len(codes)) % groups) << bits | codes)
    return Entries(keys, np.ones(len(keys), np.int64), bits)


def _classes(problem: Problem, name: str, held: Entries) -> Classes:
    sizes = np.bincount(held.rows)
    return Classes(of_sizes(sizes, {name: held}), problem.about)


def _recoding(problem: Problem, name: str, order: IntArray, codes: IntArray, groups: int) -> Recoding:
    """Let chance choose who of those with the same value is dealt out when, and how groups are numbered."""
    chance = np.random.default_rng()
    entries = problem.counts.sensitive[name]
    rank = np.empty(len(order), np.min_scalar_type(len(order)))  # few bits are sorted fast
    rank[order] = np.arange(len(order))
    records = chance.permutation(np.repeat(np.arange(len(entries.keys)), entries.counts))
    records = records[np.argsort(rank[entries.codes[records]], kind="stable")]
    group = chance.permutation(groups)[np.arange(len(records)) % groups]
    keys = np.sort(group << entries.bits | codes)
    columns = len(problem.hierarchies)
    regions = Regions(
        keys=_joint_keys(problem.counts, entries),
        rows=records,
        sizes=np.ones(len(records), np.int64),
        classes=group,
        groups=np.concatenate((np.zeros((columns, groups), np.int64), np.arange(groups).reshape(1, -1))),
        suppressed=np.zeros(groups, np.bool_),
        sensitive={name: Entries(keys, np.ones(len(keys), np.int64), entries.bits)},
    )
    as_is = Groups(None, np.ones(1, np.int64), np.array([problem.records]), lambda _: {"level": 0})
    numbers = {group_column(name): list(range(1, groups + 1))}
    ones = np.ones(groups, np.int64)
    apart = Groups(numbers, ones, ones, lambda _: {"sensitive": name})
    names = [*(hierarchy.name for hierarchy in problem.hierarchies), name]
    return Recoding.from_regions(names, [as_is] * columns + [apart], regions)


def _joint_keys(counts: Counts, entries: Entries) -> IntArray:
    """Pack quasi-identifiers and the sensitive value of each entry as an engine packs its rows."""
    field = layout([*(field.mask.bit_length() for field in counts.fields), entries.bits])[-1]
    keys = counts.keys[:, entries.rows]
    if field.word == len(keys):
        keys = np.concatenate((keys, np.zeros((1, len(entries.keys)), np.int64)))
    keys[field.word] |= entries.codes << field.shift
    return keys
