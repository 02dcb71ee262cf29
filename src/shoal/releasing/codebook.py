"""The codebook, for analysts: every label of a release and what it covers; and the mapping, private."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from shoal.core.builder import Builder
from shoal.core.counts import Domain, layout
from shoal.core.groups import Cover, group_column, in_order
from shoal.core.hierarchy import MISSING, Hierarchy
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding
from shoal.core.regions import Regions
from shoal.core.targets import Target
from shoal.policy import Policy

Row = Sequence[object]


def codebook_path(output: Path) -> Path:
    """Return where a release's codebook goes: beside it."""
    return output.parent / f"{output.name}.codebook.csv"


def write_codebook(
    target: Target,
    policy: Policy,
    recoding: Recoding,
    labels: Mapping[str, Sequence[str]],
    hierarchies: Sequence[Hierarchy],
) -> None:
    """Write a row for every label used, in order; a column kept as is has one row."""
    rows: list[Row] = []
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
    if recoding.apart:
        covers = f"a second table holds each group's values of {recoding.apart}"
        rows.append((group_column(recoding.apart), "", "", covers))
    _write(target.path, ("column", "level", "label", "covers"), rows, 0o644, target.separator)


def _by_class(rule: Builder, recoding: Recoding, column: int, hierarchy: Hierarchy) -> Iterator[Row]:
    """Yield the level, the label and what is covered of every group that some class has."""
    about, regions = recoding.about[column], recoding.regions
    if about.labels is None:
        yield (0, "", "as is")
    present = {} if regions is None else dict.fromkeys(regions.groups[column][~regions.suppressed].tolist())
    for group in in_order(hierarchy, about, sorted(present)):
        cover = about.cover(group)
        if about.labels is not None:
            ends = ["" if ends[group] is None else str(ends[group]) for ends in about.labels.values()]
            yield (cover.get("level", ""), " to ".join(ends) if any(ends) else "", _words(rule, cover))
        elif "blank" in cover:
            yield ("", "", _words(rule, cover))


def _words(rule: Builder, cover: Cover) -> str:
    if "blank" in cover:
        return "every value"
    if "level" in cover:
        itself = cover["level"] == 0 and cover["label"] != MISSING
        return "the value itself" if itself else _covers(rule, cover["label"])
    if "values" in cover:
        return "; ".join(_member(value) for value in cover["values"])
    told = [f"from {cover['from']} to {cover['to']}"] if "from" in cover else []
    return "; ".join([*told, *(["unknown or missing"] if cover["missing"] else [])])


def _member(value: str | None) -> str:
    """Tell what is missing from the text that says so."""
    if value is None:
        return MISSING
    return f'"{value}"' if value == MISSING else value


def _covers(rule: Builder, label: str) -> str:
    return "unknown or missing" if label == MISSING or rule.is_unknown(label) else rule.covers(label)


def write_mapping(folder: Path, problem: Problem, recoding: Recoding, domains: Mapping[str, Domain]) -> None:
    """Write each value of the data with its label, per column, or per combination where classes differ.

    This holds values of the data.
    """
    folder.mkdir(mode=0o700)
    regions = recoding.regions
    if regions is not None:
        _write_combinations(folder / "combinations.csv", recoding, regions, domains)
        return
    for place, (hierarchy, level) in enumerate(zip(problem.hierarchies, recoding.node or (), strict=True), 1):
        safe = "".join(letter if letter.isalnum() else "_" for letter in hierarchy.name)
        labels = [hierarchy.labels[level][group] for group in hierarchy.groups(level).tolist()]
        texts = [text or "" for text in domains[hierarchy.name].texts]
        _write(folder / f"{place:02}-{safe}.csv", ("value", "label"), zip(texts, labels, strict=True), 0o600)


def _write_combinations(
    path: Path, recoding: Recoding, regions: Regions, domains: Mapping[str, Domain]
) -> None:
    """Write a row for each part of a combination: its values, its records, and what is released for them."""
    values = []
    shown = []
    fields = layout([domains[name].bits for name in recoding.columns])
    for column, (name, about, field) in enumerate(zip(recoding.columns, recoding.about, fields, strict=True)):
        texts = ["" if text is None else text for text in domains[name].texts]
        own = ((regions.keys[field.word] >> field.shift) & field.mask)[regions.rows].tolist()
        values.append([texts[code] for code in own])
        groups = regions.groups[column][regions.classes].tolist()
        if about.labels is None:
            pairs = zip(groups, own, strict=True)
            shown.append(["" if group == about.blank else texts[code] for group, code in pairs])
        else:
            shown += [[ends[group] for group in groups] for ends in about.labels.values()]
    gone = regions.suppressed[regions.classes].tolist()
    shown = [["" if lost else look for look, lost in zip(looks, gone, strict=True)] for looks in shown]
    columns = zip(recoding.columns, recoding.labels, strict=True)
    released = [shown_as for name, labels in columns for shown_as in labels or (name,)]
    fate = ["suppressed" if lost else "kept" for lost in gone]
    names = [*recoding.columns, *[f"{name} (released)" for name in released]]
    header = [*names, *[own + "_" * (own in names) for own in ("records", "fate")]]
    _write(path, header, zip(*values, *shown, regions.sizes.tolist(), fate, strict=True), 0o600)


def _write(path: Path, header: Row, rows: Iterable[Row], mode: int, delimiter: str = ",") -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
