"""How long does the walk take on a lattice of 45,000 nodes with a column of 20,000 values?

A generated table: 60,000 records, eight quasi-identifiers, k = 5, and up to 5% of the records suppressed.
Processor time, the best of five runs; kernels are compiled before.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from setting import machine

from shoal.algorithms import ALGORITHMS
from shoal.core.arrays import IntArray
from shoal.core.counts.counts import layout
from shoal.core.counts.in_memory import from_joint
from shoal.core.hierarchy.hierarchy import Hierarchy, nest
from shoal.core.lattice.lattice import build
from shoal.core.memory import limit_of
from shoal.core.problem import Problem
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.workflow.search import search

SEED = 20
RECORDS = 60_000
# For each column, the number of values, and how many groups of the level below each level merges. The last
# level has one group.
COLUMNS = (
    (20_000, (10, 10, 10)),
    (100, (5, 5)),
    (60, (3, 4)),
    (40, (4, 3)),
    (16, (2, 4)),
    (12, (3, 2)),
    (9, (3,)),
    (6, (2,)),
)
METRICS_SHOWN: dict[str, dict[str, Any]] = {
    "discernibility": {},
    "class-size": {},
    "discernibility-star": {},
    "non-uniform-entropy": {},
    "composite": {"parts": [{"precision": 1}, {"non-uniform-entropy": 1}]},
}
RUNS = 5


def main() -> None:
    """Print the table of the documentation."""
    print(f"{machine()}. {RECORDS:,} records, {problem('height').lattice.size:,} nodes.\n")
    print("| metric | seconds | nodes evaluated | rows scanned | least loss |")
    print("|---|--:|--:|--:|--:|")
    for metric in METRICS_SHOWN:
        _print_row(metric)


def problem(metric: str, k: int = 5, share: float = 0.05) -> Problem:
    """Return the problem; it is the same in every run."""
    random = np.random.default_rng(SEED)
    hierarchies = tuple(_hierarchy(f"c{number}", *column) for number, column in enumerate(COLUMNS))
    codes = [_column(random, values) for values, _ in COLUMNS]
    widths = [(values - 1).bit_length() for values, _ in COLUMNS]
    fields = layout(widths)
    keys = np.zeros((fields[-1].word + 1, RECORDS), np.int64)
    for field, column in zip(fields, codes, strict=True):
        keys[field.word] |= column << field.shift
    unique, sizes = np.unique(keys, axis=1, return_counts=True)
    return Problem(
        from_joint(widths, {}, unique, sizes.astype(np.int64)),
        hierarchies,
        build({hierarchy.name: hierarchy.height for hierarchy in hierarchies}),
        (MODELS.create("k-anonymity", {"k": k}),),
        METRICS.create(metric, METRICS_SHOWN.get(metric, {})),
        int(share * RECORDS),
        (1.0,) * len(COLUMNS),
        memory=limit_of(None),
    )


def _column(random: np.random.Generator, values: int) -> IntArray:
    """Draw codes, the low ones more often; the domain contains every value, even if the table does not."""
    codes: IntArray = (values * random.beta(0.8, 2.5, RECORDS)).astype(np.int64)
    return codes


def _hierarchy(name: str, values: int, merges: tuple[int, ...]) -> Hierarchy:
    rows = []
    for value in range(values):
        labels, group = [str(value)], value
        for level, merge in enumerate(merges, 1):
            group //= merge
            labels.append(f"{level}:{group}")
        rows.append((*labels, "*"))
    return nest(name, rows)


def _print_row(metric: str) -> None:
    generated = problem(metric)
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        _, result = search(generated, ALGORITHMS.create("contour"))
        seconds.append(time.process_time() - start)
    work = result.work
    cells = (metric, f"{min(seconds):.3f}", f"{work.nodes_evaluated:,}", f"{work.rows_scanned:,}")
    print("| " + " | ".join((*cells, f"{result.loss:,.6g}")) + " |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
