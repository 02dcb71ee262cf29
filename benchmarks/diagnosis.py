"""How many sets does the diagnosis count, and how long does it take, by k and suppression limit?

Questions 3, 7 and 8 on the eight usual quasi-identifiers of Adult (255 sets), like the published measurements
of the privacy diagnosis centre (0.49 s for a single count); all k of all sets at once; and a million rows.
Kernels are compiled before. Times are the best of several runs, without counting the table unless stated
otherwise.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa
from setting import adult, machine

import shoal
from shoal import Diagnosis
from shoal.sample import admissions

COLUMNS = (
    "age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country",
)  # fmt: skip
KS = (1, 2, 3, 5, 10, 20, 30, 40, 50)
SHARES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3)
RUNS = 3
ROWS = 1_000_000
VALUES = (2, 3, 5, 7, 9, 16, 16, 30, 40, 75, 100, 500)  # distinct values of the twelve generated columns


def main() -> None:
    """Print the tables of the documentation."""
    diagnosed = shoal.diagnose(adult() / "adult.csv", COLUMNS)
    counts = f"{diagnosed.records:,} records, {len(COLUMNS)} columns, {diagnosed.combinations:,} combinations"
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Adult: {counts}, {diagnosed.number_of_sets()} sets.\n")
    _largest_sets(diagnosed)
    _k_of_sets(diagnosed)
    seconds = _best(partial(diagnosed.suppression_of_sets_by_k, 50))
    print(f"\nQuestion 12, k = 1, ..., 50 for all {diagnosed.number_of_sets()} sets: {seconds:.3f} s.\n")
    _million()


def _largest_sets(diagnosed: Diagnosis) -> None:
    """Print question 3 (the column of 0%) and question 7 (the other columns)."""
    print("Questions 3 and 7, the largest sets for k: sets counted and milliseconds.\n")
    _head("k", [f"{share:.0%}" for share in SHARES])
    for k in KS:
        cells = []
        for share in SHARES:
            result = diagnosed.largest_sets(k, share)
            seconds = _best(partial(diagnosed.largest_sets, k, share))
            cells.append(f"{result.counts} ({seconds * 1000:.1f})")
        _row(k, cells)


def _k_of_sets(diagnosed: Diagnosis) -> None:
    print("\nQuestions 4 and 8, the k of every set: sets counted and milliseconds.\n")
    _head("", [f"{share:.0%}" for share in SHARES])
    cells = []
    for share in SHARES:
        result = diagnosed.anonymity_of_sets(share)
        seconds = _best(partial(diagnosed.anonymity_of_sets, share))
        cells.append(f"{result.counts} ({seconds * 1000:.1f})")
    _row("every set", cells)


def _million() -> None:
    """Measure question 3 from the table to the answer."""
    print(f"Question 3, k = 3, on {ROWS:,} rows and twelve columns: seconds from the table to the answer.\n")
    print("| table | combinations | count | question 3 | together | sets counted |")
    print("|---|--:|--:|--:|--:|--:|")
    random = np.random.default_rng(1)
    columns = {f"c{index}": random.zipf(1.3, ROWS) % values for index, values in enumerate(VALUES)}
    tables = {"drawn, zipf": pa.table(columns), "made-up admissions": admissions(ROWS)}
    for name, table in tables.items():
        start = time.perf_counter()
        diagnosis = shoal.diagnose(table)
        counted = time.perf_counter()
        largest = diagnosis.largest_sets(3)
        end = time.perf_counter()
        seconds = (counted - start, end - counted, end - start)
        cells = " | ".join(f"{second:.2f}" for second in seconds)
        print(
            f"| {name} | {diagnosis.combinations:,} | {cells} | "
            f"{largest.counts} of {diagnosis.number_of_sets():,} |"
        )
        sys.stdout.flush()


def _head(first: str, headings: list[str]) -> None:
    print(f"| {first} | " + " | ".join(headings) + " |")
    print("|--:" * (len(headings) + 1) + "|")


def _row(first: object, cells: list[str]) -> None:
    print(f"| {first} | " + " | ".join(cells) + " |")
    sys.stdout.flush()


def _best(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
