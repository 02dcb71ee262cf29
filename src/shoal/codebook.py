"""The codebook, for analysts: every label of a release and what it covers; and the mapping, private."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from shoal.core.counts import Domain
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Node
from shoal.policy import Policy

Row = Sequence[object]


def codebook_path(output: Path) -> Path:
    """Return where a release's codebook goes: beside it."""
    return output.parent / f"{output.name}.codebook.csv"


def write_codebook(
    path: Path, policy: Policy, labels: Mapping[str, Sequence[str]], levels: Mapping[str, int]
) -> None:
    """Write a row for every label used; a column kept as is has one row."""
    rows: list[Row] = []
    for name, used in labels.items():
        shown = ", ".join(policy.released(name))
        if levels[name] == 0:
            rows.append((shown, 0, "", "as is"))
            continue
        rule = policy.builder(name)
        for label in used:
            missing = label == "missing" or rule.is_unknown(label)
            rows.append((shown, levels[name], label, "unknown or missing" if missing else rule.covers(label)))
    _write(path, ("column", "level", "label", "covers"), rows, 0o644)


def write_mapping(
    folder: Path, hierarchies: Sequence[Hierarchy], node: Node, domains: Mapping[str, Domain]
) -> None:
    """Write, per column, each value of the data with its label; this holds values of the data."""
    folder.mkdir(mode=0o700)
    for place, (hierarchy, level) in enumerate(zip(hierarchies, node, strict=True), 1):
        safe = "".join(letter if letter.isalnum() else "_" for letter in hierarchy.name)
        labels = [hierarchy.labels[level][group] for group in hierarchy.groups(level).tolist()]
        texts = [text or "" for text in domains[hierarchy.name].texts]
        _write(folder / f"{place:02}-{safe}.csv", ("value", "label"), zip(texts, labels, strict=True), 0o600)


def _write(path: Path, header: Row, rows: Iterable[Row], mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
