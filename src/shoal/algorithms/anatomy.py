"""Anatomy (Xiao and Tao 2006): unchanged quasi-identifiers, and a second table of sensitive values by group.

Lemma: sort the n records by sensitive value and distribute them to g groups in turn. Records with the same
value are consecutive. If no value has more than g records, no group gets a value twice, so a group of m
records has m different values. Each of the g groups has at least n // g records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.classes import Classes, is_sensitive_name
from shoal.core.contracts import Algorithm, Guarantee, Model
from shoal.core.counts.counts import Counts, SensitiveCounts, layout
from shoal.core.counts.in_memory import of_sizes
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.groups import Groups, group_column
from shoal.core.recoding.recoding import Recoding, Regions
from shoal.errors import Infeasible, Refusal
from shoal.wording import Change


@dataclass(frozen=True)
class Anatomy(Algorithm):
    """Release quasi-identifiers with a group, and how often each sensitive value occurs in each group."""

    plain_summary: ClassVar[str] = (
        "Keeps all values, and moves the sensitive ones to a second table, by groups of records."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every group satisfies every model; nothing is proven about the loss."""
    reports_infeasible: ClassVar[bool] = True
    separates_sensitive: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> Refusal | None:
        lattice, names = (
            problem.lattice,
            [name for name in problem.counts.sensitive if is_sensitive_name(name)],
        )
        if problem.counts.population is not None:
            return Refusal("quasi-identifiers stay as they are, so nobody is hidden in a population")
        if problem.metric.by_level:
            return Refusal("its metric needs levels, and quasi-identifiers stay as they are")
        if lattice.constrained:
            return Refusal(
                "quasi-identifiers stay as they are, so max_level, min_level, same_level and fixed levels "
                "do not apply"
            )
        if problem.as_bounds:
            return Refusal("quasi-identifiers stay as they are, so release_as: bounds does not apply")
        if problem.metric.needs_label:
            return Refusal("its metric is about classes, and quasi-identifiers stay as they are")
        if any(model.unit_column is not None for model in problem.models):
            return Refusal("quasi-identifiers stay as they are, so no persons are counted in a class")
        refusal = self.refuses_models(problem.models, names)
        if refusal is None and len(names) != 1:
            refusal = Refusal(
                f"only one sensitive column can be released separately, but the models use {len(names)}"
            )
        return refusal

    def refuses_models(self, models: Sequence[Model], sensitive: Sequence[str]) -> Refusal | None:
        if not all(model.ignores_size and model.sensitive(sensitive) for model in models):
            return Refusal(
                "quasi-identifiers stay as they are, so nobody is hidden among k: models can only use "
                "sensitive values",
                (Change(action="Use distinct-l-diversity instead"), Change(action="Use another algorithm")),
            )
        return None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Use the smallest groups that all models allow; the assignment of records to groups is random."""
        ((name, entries),) = ((n, e) for n, e in problem.counts.sensitive.items() if is_sensitive_name(n))
        totals = np.bincount(entries.codes, entries.counts).astype(np.int64)
        most_frequent, records, group_size = int(totals.max()), problem.records, problem.least_size
        largest_size = records // most_frequent
        if largest_size < group_size:
            none_works = "" if largest_size > 1 else " No l above 1 is possible."
            raise Infeasible(
                f"Column {name!r}: the most frequent value has {most_frequent:,} of {records:,} records, and "
                f"groups of {group_size:,} different values allow {records // group_size:,}.{none_works}",
                [Change("l", largest_size, f"Use l={largest_size}")] if largest_size > 1 else (),
            )
        order = np.argsort(-totals, kind="stable")  # most frequent first; among ties, by code
        codes = np.repeat(order, totals[order])
        for groups in dict.fromkeys(records // size for size in range(group_size, largest_size + 1)):
            evaluate.check_time()
            classes = _classes(problem, name, _distribute(codes, groups, entries.bits))
            if not problem.violations(classes).any():
                recoding = _recoding(problem, name, order, codes, groups)
                return evaluate.finish(evaluate.recoding(recoding), self.guarantee)
        raise Infeasible(
            f"Column {name!r}: groups of up to {largest_size} different values, the most that there can be, "
            "do not satisfy all models. Use weaker ones."
        )


def _distribute(codes: IntArray, groups: int, bits: int) -> SensitiveCounts:
    """Distribute records to groups in turn; return the sensitive values of each group."""
    keys = np.sort((np.arange(len(codes)) % groups) << bits | codes)
    return SensitiveCounts(keys, np.ones(len(keys), np.int64), bits)


def _classes(problem: Problem, name: str, counts: SensitiveCounts) -> Classes:
    sizes = np.bincount(counts.rows)
    return Classes(of_sizes(sizes, {name: counts}), problem.sensitive_info)


def _recoding(problem: Problem, name: str, order: IntArray, codes: IntArray, groups: int) -> Recoding:
    """Choose randomly among records with the same value, and number the groups randomly."""
    random = np.random.default_rng()
    entries = problem.counts.sensitive[name]
    rank = np.empty(len(order), np.min_scalar_type(len(order)))  # small integers are sorted faster
    rank[order] = np.arange(len(order))
    records = random.permutation(np.repeat(np.arange(len(entries.keys)), entries.counts))
    records = records[np.argsort(rank[entries.codes[records]], kind="stable")]
    group = random.permutation(groups)[np.arange(len(records)) % groups]
    keys = np.sort(group << entries.bits | codes)
    columns = len(problem.hierarchies)
    regions = Regions(
        keys=_joint_keys(problem.counts, entries),
        rows=records,
        sizes=np.ones(len(records), np.int64),
        classes=group,
        groups=np.concatenate((np.zeros((columns, groups), np.int64), np.arange(groups).reshape(1, -1))),
        suppressed=np.zeros(groups, np.bool_),
        sensitive={name: SensitiveCounts(keys, np.ones(len(keys), np.int64), entries.bits)},
    )
    as_is = Groups(None, np.ones(1, np.int64), np.array([problem.records]), lambda _: {"level": 0})
    numbers = {group_column(name): list(range(1, groups + 1))}
    ones = np.ones(groups, np.int64)
    separate = Groups(numbers, ones, ones, lambda _: {"sensitive": name})
    names = [*(hierarchy.name for hierarchy in problem.hierarchies), name]
    return Recoding.from_regions(names, [as_is] * columns + [separate], regions)


def _joint_keys(counts: Counts, entries: SensitiveCounts) -> IntArray:
    """Pack the quasi-identifiers and the sensitive value of each entry, in the layout that engines use."""
    field = layout([*(field.mask.bit_length() for field in counts.fields), entries.bits])[-1]
    keys = counts.keys[:, entries.rows]
    if field.word == len(keys):
        keys = np.concatenate((keys, np.zeros((1, len(entries.keys)), np.int64)))
    keys[field.word] |= entries.codes << field.shift
    return keys
