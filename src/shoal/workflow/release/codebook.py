"""The effect of a recoding on each column: its loss, the codebook for analysts and the private mapping."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import Classes
from shoal.core.counts.counts import Domain, layout
from shoal.core.hierarchy.builder import Builder
from shoal.core.hierarchy.hierarchy import MISSING, Hierarchy
from shoal.core.problem import Problem
from shoal.core.recoding.groups import Cover, group_column, in_order
from shoal.core.recoding.recoding import Recoding, Regions
from shoal.core.targets import Target
from shoal.metrics.coverage import Coverage
from shoal.policy.policy import Policy


@dataclass(frozen=True)
class ColumnLoss:
    """The information loss of one quasi-identifier."""

    values: int  # distinct values in the input
    coverage: float  # from 0 (all values kept) to 1 (nothing kept); a suppressed record counts as 1
    share: float | None  # of the total loss, if the metric is a sum over columns


def losses_of(
    problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray
) -> dict[str, ColumnLoss]:
    """Measure each column's coverage loss, and its share of the total loss if the metric is a sum."""
    coverage = Coverage().by_column(problem, recoding, classes, suppressed)
    shares = _shares(problem, recoding, lossy=bool(suppressed.any()))
    columns = zip(problem.hierarchies, problem.value_counts, coverage, shares, strict=True)
    return {
        hierarchy.name: ColumnLoss(int((counts > 0).sum()), lost, share)
        for hierarchy, counts, lost, share in columns
    }


def count_lost_values(
    problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray
) -> dict[str, int]:
    """Count, by column, the values that are lost because all their records were suppressed.

    The result contains quasi-identifiers and sensitive columns that lost at least one value. If all classes
    use the same level of a column, a value is lost only if no released record has its label.
    """
    if recoding.separate_column or not suppressed.any():
        return {}
    lost = {
        name: _count_lost_in(problem, recoding, classes, suppressed, column)
        for column, name in enumerate(recoding.columns)
    }
    for name in classes.sensitive:
        spread = classes.distribution(name)
        lost[name] = _lost_codes(spread.codes, ~suppressed[spread.rows]).size
    return {name: number for name, number in lost.items() if number}


def _count_lost_in(
    problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray, column: int
) -> int:
    if recoding.regions is not None:
        regions, field = recoding.regions, problem.counts.fields[column]
        codes = (regions.keys[field.word] >> field.shift) & field.mask
        return _lost_codes(codes[regions.rows], ~regions.suppressed[regions.classes]).size
    lost = _lost_codes(classes.counts.codes(column), ~suppressed)
    occurring = problem.value_counts[column] > 0
    return int((occurring & np.isin(recoding.groups[column], lost)).sum())


def _lost_codes(codes: IntArray, kept: BoolArray) -> IntArray:
    """Return the codes that occur only in suppressed records."""
    lost = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
    lost[codes] = True
    lost[codes[kept]] = False
    return np.flatnonzero(lost)


def _shares(problem: Problem, recoding: Recoding, *, lossy: bool) -> list[float | None]:
    node = recoding.node
    if node is None or not problem.metric.separable.given(lossy):
        return [None] * len(problem.hierarchies)
    pairs = zip(problem.metric.table(problem), node, strict=True)
    parts = [float(part[level]) for part, level in pairs]
    total = sum(parts)
    return [part / total if total else 0.0 for part in parts]


_Row = Sequence[object]


def write_codebook(
    target: Target,
    policy: Policy,
    recoding: Recoding,
    labels: Mapping[str, Sequence[str]],
    hierarchies: Sequence[Hierarchy],
) -> None:
    """Write one row per label that occurs; a column that keeps its values has one row."""
    rows: list[_Row] = []
    for column, (name, used) in enumerate(labels.items()):
        shown = ", ".join(policy.released(name))
        rule = policy.builder(name)
        if recoding.node is not None and recoding.node[column] == 0:
            rows.append((shown, 0, "", "as is"))
        elif recoding.node is not None:
            level = recoding.node[column]
            rows += [(shown, level, label, _covers(rule, label)) for label in used]
        else:
            rows += [(shown, *row) for row in _by_class(rule, recoding, column, hierarchies[column])]
    if recoding.separate_column:
        covers = f"a second table holds each group's values of {recoding.separate_column}"
        rows.append((group_column(recoding.separate_column), "", "", covers))
    _write(target.path, ("column", "level", "label", "covers"), rows, 0o644, target.separator)


def _by_class(rule: Builder, recoding: Recoding, column: int, hierarchy: Hierarchy) -> Iterator[_Row]:
    """Yield the level, the label and the covered values of every group that occurs in a class."""
    column_groups, regions = recoding.column_groups[column], recoding.regions
    if column_groups.labels is None:
        yield (0, "", "as is")
    used = {} if regions is None else dict.fromkeys(regions.groups[column][~regions.suppressed].tolist())
    for group in in_order(hierarchy, column_groups, sorted(used)):
        cover = column_groups.cover(group)
        if column_groups.labels is not None:
            ends = ["" if ends[group] is None else str(ends[group]) for ends in column_groups.labels.values()]
            yield (cover.get("level", ""), " to ".join(ends) if any(ends) else "", _covered_text(rule, cover))
        elif "blank" in cover:
            yield ("", "", _covered_text(rule, cover))


def _covered_text(rule: Builder, cover: Cover) -> str:
    if "blank" in cover:
        return "every value"
    if "labels" in cover:
        labels = cover["labels"]
        return "; ".join(
            map(_quoted_member, labels) if cover["level"] == 0 else [_covers(rule, label) for label in labels]
        )
    if "level" in cover:
        itself = cover["level"] == 0 and cover["label"] != MISSING
        return "the value itself" if itself else _covers(rule, cover["label"])
    if "values" in cover:
        return "; ".join(_quoted_member(value) for value in cover["values"])
    ranges = [f"from {cover['from']} to {cover['to']}"] if "from" in cover else []
    return "; ".join([*ranges, *(["unknown or missing"] if cover["missing"] else [])])


def _quoted_member(value: str | None) -> str:
    """Quote a value that could be mistaken for the label of missing values."""
    if value is None:
        return MISSING
    return f'"{value}"' if value == MISSING else value


def _covers(rule: Builder, label: str) -> str:
    return "unknown or missing" if label == MISSING or rule.is_unknown(label) else rule.covers(label)


def write_mapping(folder: Path, problem: Problem, recoding: Recoding, domains: Mapping[str, Domain]) -> None:
    """Write the label of each value to one file per column; the files contain values of the data.

    If labels differ between classes, write one file with the labels of each combination.
    """
    folder.mkdir(mode=0o700)
    regions = recoding.regions
    if regions is not None:
        _write_combinations(folder / "combinations.csv", recoding, regions, domains)
        return
    for number, (hierarchy, level) in enumerate(
        zip(problem.hierarchies, recoding.node or (), strict=True), 1
    ):
        safe = "".join(letter if letter.isalnum() else "_" for letter in hierarchy.name)
        labels = [hierarchy.labels[level][group] for group in hierarchy.groups(level).tolist()]
        texts = [text or "" for text in domains[hierarchy.name].texts]
        _write(folder / f"{number:02}-{safe}.csv", ("value", "label"), zip(texts, labels, strict=True), 0o600)


def _write_combinations(
    path: Path, recoding: Recoding, regions: Regions, domains: Mapping[str, Domain]
) -> None:
    """Write one row per combination and class: the values, the number of records and the released labels."""
    values = []
    shown = []
    fields = layout([domains[name].bits for name in recoding.columns])
    for column, (name, column_groups, field) in enumerate(
        zip(recoding.columns, recoding.column_groups, fields, strict=True)
    ):
        texts = ["" if text is None else text for text in domains[name].texts]
        codes = ((regions.keys[field.word] >> field.shift) & field.mask)[regions.rows].tolist()
        values.append([texts[code] for code in codes])
        groups = regions.groups[column][regions.classes].tolist()
        if column_groups.labels is None:
            pairs = zip(groups, codes, strict=True)
            shown.append(["" if group == column_groups.blank else texts[code] for group, code in pairs])
        else:
            shown += [[ends[group] for group in groups] for ends in column_groups.labels.values()]
    blank = regions.suppressed[regions.classes].tolist()
    shown = [["" if lost else label for label, lost in zip(labels, blank, strict=True)] for labels in shown]
    columns = zip(recoding.columns, recoding.labels, strict=True)
    released = [shown_as for name, labels in columns for shown_as in labels or (name,)]
    fate = ["suppressed" if lost else "kept" for lost in blank]
    names = [*recoding.columns, *[f"{name} (released)" for name in released]]
    header = [*names, *[codes + "_" * (codes in names) for codes in ("records", "fate")]]
    _write(path, header, zip(*values, *shown, regions.sizes.tolist(), fate, strict=True), 0o600)


def _write(path: Path, header: _Row, rows: Iterable[_Row], mode: int, delimiter: str = ",") -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
