"""How accurate is a classifier trained on the release, compared with one trained on the raw table?

Adult with eight quasi-identifiers and salary-class as label, for k = 5 to 200: the accuracy of a decision
tree on records that it was not trained on. The tree and the tests are the same for all tables, and the raw
table is the baseline. Writes docs/accuracy.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
from setting import adult, machine, write_page

import shoal

EIGHT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
LABEL = "salary-class"
KS = (5, 10, 25, 50, 100, 200)
SEARCHES = ("tds", "bottom-up", "contour")
SPLITS = 10
RUNS = 3
DEPTH = 8
SMALLEST = 20  # minimum number of records in a leaf

Codes = npt.NDArray[np.int64]  # (columns, records)
Marks = npt.NDArray[np.bool_]  # (records,)


def main() -> None:
    """Measure, print the table, and write the page of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1] / "docs")
    arguments = parser.parse_args()
    text = "\n".join(_page())
    write_page(arguments.docs / "accuracy.md", text)
    print(text)


def _page() -> Iterator[str]:
    root = adult()
    raw = pa.csv.read_csv(root / "adult.csv", parse_options=_parsing(root / "adult.csv"))
    codes, rich = _read(raw, EIGHT)
    yield "# Classifiers, measured"
    yield ""
    yield "`python benchmarks/accuracy.py` writes this page; do not edit it by hand."
    yield ""
    yield (
        f"The UCI Adult table ({len(rich):,} records), eight quasi-identifiers, the hierarchies of ARX's "
        f"tests, `{LABEL}` as the label, nothing suppressed. A decision tree (binary splits by information "
        f"gain, depth at most {DEPTH}, leaves of at least {SMALLEST} records) is trained on two thirds of a "
        f"table and tested on the rest; accuracies are the mean of {SPLITS} random divisions. A release is "
        "made from all records, so its groups were chosen with knowledge of the labels of the test records. "
        "*Loss* is that of [classification](metrics/classification.md). The seconds are those of the "
        f"search, with kernels compiled before, as the best of {RUNS} runs."
    )
    yield ""
    yield f"{datetime.now(UTC):%Y-%m-%d}, {machine()}."
    yield ""
    yield (
        f"On the raw table the tree has an accuracy of {_accuracy(codes, rich):.1%}; always predicting the "
        f"most frequent label has an accuracy of {max(rich.mean(), 1 - rich.mean()):.1%}."
    )
    yield ""
    heads = " | ".join(f"{name} | loss | seconds" for name in SEARCHES)
    yield f"| k | {heads} |"
    yield "|--:|" + "--:|" * (3 * len(SEARCHES))
    for k in KS:
        yield f"| {k} | " + " | ".join(_cells(root, raw, name, k) for name in SEARCHES) + " |"
    yield ""
    yield (
        "[contour](algorithms/contour.md) finds the node with the least loss. [tds](algorithms/tds.md) and "
        "[bottom-up](algorithms/bottom-up.md) cut columns at several levels at once and can be better than "
        "any node, but they are greedy. A smaller k allows more steps, and tds may then refine age to "
        "single years, so that a more predictive column cannot be refined. Compare them on your table."
    )


def _cells(root: Path, raw: pa.Table, name: str, k: int) -> str:
    columns: dict[str, Any] = {column: {"role": "other"} for column in raw.column_names}
    for column in EIGHT:
        file = str(root / "hierarchies-arx" / f"{column}.csv")
        columns[column] = {"role": "quasi-identifier", "hierarchy": {"csv": file}}
    policy = {
        "columns": columns,
        "label": LABEL,
        "models": [{"k-anonymity": {"k": k}}],
        "metric": "classification",
        "algorithm": name,
    }
    releases = [shoal.anonymize(raw, policy) for _ in range(RUNS)]
    seconds = min(release.seconds["search"] for release in releases)
    accuracy = _accuracy(*_read(releases[0].table, EIGHT))
    return f"{accuracy:.1%} | {releases[0].loss:.4f} | {seconds:.2f}"


def _read(table: pa.Table, columns: Sequence[str]) -> tuple[Codes, Marks]:
    """Return arbitrary codes for the values of columns, and which records have the rarer label."""
    codes = [table[column].combine_chunks().dictionary_encode().indices.to_numpy() for column in columns]
    labels = table[LABEL].combine_chunks().dictionary_encode().indices.to_numpy()
    return np.stack(codes).astype(np.int64), labels == np.argmin(np.bincount(labels))


def _accuracy(codes: Codes, marks: Marks) -> float:
    random = np.random.default_rng(9)
    accuracies = []
    for _ in range(SPLITS):
        order = random.permutation(len(marks))
        learn, test = np.split(order, [2 * len(order) // 3])
        predicted = np.zeros(len(marks), np.bool_)
        _tree(codes, marks, learn, test, predicted, DEPTH)
        accuracies.append(float((predicted[test] == marks[test]).mean()))
    return float(np.mean(accuracies))


def _tree(codes: Codes, marks: Marks, learn: Codes, test: Codes, predicted: Marks, depth: int) -> None:
    """Split the records by the best split; a leaf predicts its most frequent label for the test records."""
    best, split = 0.0, None
    for column_codes in codes if depth else ():
        gain, inside = _split(column_codes[learn], marks[learn], int(column_codes.max()) + 1)
        if gain > best:
            best, split = gain, (column_codes, inside)
    if split is None:
        predicted[test] = marks[learn].mean() > 0.5
        return
    column_codes, inside = split
    for side in (inside, ~inside):
        _tree(
            codes,
            marks,
            learn[side[column_codes[learn]]],
            test[side[column_codes[test]]],
            predicted,
            depth - 1,
        )


def _split(codes: Codes, marks: Marks, values: int) -> tuple[float, Marks]:
    """Return the best binary split: with two labels, it divides the values sorted by share of one label."""
    records = np.bincount(codes, minlength=values)
    marked = np.bincount(codes, marks, values)
    order = np.argsort(marked / np.maximum(records, 1), kind="stable")
    order = order[records[order] > 0]
    left, with_label = np.cumsum(records[order])[:-1], np.cumsum(marked[order])[:-1]
    right = len(codes) - left
    gains = _bits(len(codes), marks.sum()) - _bits(left, with_label) - _bits(right, marks.sum() - with_label)
    gains = np.where(np.minimum(left, right) >= SMALLEST, gains, 0.0)
    inside = np.zeros(values, np.bool_)
    if not len(gains):
        return 0.0, inside
    at = int(np.argmax(gains))
    inside[order[: at + 1]] = True
    return float(gains[at]), inside


def _bits(records: Any, marked: Any) -> Any:
    """Return the entropy of two labels, multiplied by the number of records."""
    parts = np.stack(np.broadcast_arrays(marked, np.subtract(records, marked))).astype(np.float64)
    logs = np.log2(np.maximum(parts, 1e-12) / np.maximum(records, 1e-12))
    return -(parts * logs).sum(axis=0)


def _parsing(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        return pa.csv.ParseOptions(delimiter=";" if ";" in file.readline() else ",")


if __name__ == "__main__":
    main()
