"""Classifier: how well a decision tree predicts one column from others, on records not used for training.

A tree needs ordered labels. Numbers, bands and dates have an order. Other labels are ordered by the first
principal component of their class shares (Coppersmith, Hong and Hosking 1999, "Partitioning nominal
attributes in decision trees"). With two values to predict, no order has a better split.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.errors import DataError, UsageError
from shoal.workflow.utility.labels import CellText, positions
from shoal.workflow.utility.tally import Sides, Tally

NEEDED = "The accuracy of a classifier needs scikit-learn: pip install 'shoal[ml]'."
FOLDS = 5
MOST_RECORDS = 50_000
MOST_CLASSES = 100
_MOST_COMBINATIONS = 1_000_000  # maximum number of combinations sampled from an engine
_DEPTH = 8
_LEAF = 20  # minimum number of records in a leaf
_SEED = 9


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a tree on records of one table that it was not trained on."""

    records: int  # number of records used for training and testing
    classes: int  # number of different values of the target
    majority: float  # the accuracy of always predicting the most frequent value
    accuracy: float


@dataclass(frozen=True)
class Prediction:
    """How well a column can be predicted in the input and in the release."""

    target: str
    features: tuple[str, ...]
    before: Accuracy
    after: Accuracy


def available() -> bool:
    """Return whether scikit-learn is installed."""
    return find_spec("sklearn") is not None


def predicted(sides: Sides, target: str, features: Sequence[str]) -> Prediction:
    """Predict a column from others on both tables, in the same way."""
    if not available():
        raise UsageError(NEEDED)
    both = [accuracy(tally, target, features, sides.unknown) for tally in sides.both]
    return Prediction(target, tuple(features), *both)


def accuracy(
    tally: Tally, target: str, features: Sequence[str], unknown: Mapping[str, Collection[CellText]]
) -> Accuracy:
    """Predict a column of a table by cross-validation; the result is deterministic."""
    from sklearn.tree import DecisionTreeClassifier

    codes, sizes = tally.read([target, *features], _MOST_COMBINATIONS)
    codes, answers = _drawn(codes, sizes)
    values, answers = np.unique(answers, return_inverse=True)
    if len(values) < 2:
        raise DataError(f"Column {target!r} has one value: there is nothing to predict. Name another target.")
    if len(values) > MOST_CLASSES:
        raise DataError(
            f"Column {target!r} has {len(values):,} values, which are too many to predict. Name a target of "
            f"at most {MOST_CLASSES}."
        )
    orders = [positions(tally.labels[name], unknown[name]) for name in features]
    folds = stratified(answers)
    right = 0
    for fold in range(FOLDS):
        test = folds == fold
        if test.all() or not test.any():
            continue
        columns = [
            _placed(column_codes, order, answers, ~test, len(values))
            for column_codes, order in zip(codes, orders, strict=True)
        ]
        table = np.stack(columns, axis=1)
        tree = DecisionTreeClassifier(max_depth=_DEPTH, min_samples_leaf=_LEAF, random_state=_SEED)
        tree.fit(table[~test], answers[~test])
        right += int((tree.predict(table[test]) == answers[test]).sum())
    majority = float(np.bincount(answers).max() / len(answers))
    return Accuracy(len(answers), len(values), majority, right / len(answers))


def stratified(answers: IntArray) -> IntArray:
    """Assign records to stratified random folds; the seed is fixed.

    >>> stratified(np.array([0] * 5 + [1] * 10)).tolist().count(0)
    3
    """
    random = np.random.default_rng(_SEED)
    shuffled = random.permutation(len(answers))
    order = shuffled[np.argsort(answers[shuffled], kind="stable")]
    folds = np.empty(len(answers), np.int64)
    folds[order] = np.arange(len(answers)) % FOLDS
    return folds


def _drawn(codes: Sequence[IntArray], sizes: IntArray) -> tuple[list[IntArray], IntArray]:
    """Return the features and the answer of every record, or of a random sample of the records."""
    if sizes.sum() > MOST_RECORDS:
        random = np.random.default_rng(_SEED)
        ends = np.cumsum(sizes)
        sampled = random.choice(int(ends[-1]), MOST_RECORDS, replace=False, shuffle=False)
        rows = np.sort(np.searchsorted(ends, sampled, side="right"))
    else:
        rows = np.repeat(np.arange(len(sizes)), sizes)
    target, *features = (column_codes[rows] for column_codes in codes)
    return features, target


def _placed(
    codes: IntArray, order: FloatArray | None, answers: IntArray, learned: BoolArray, classes: int
) -> FloatArray:
    """Convert labels to numbers that a tree can split, using only the training records."""
    if order is not None:
        return np.where(np.isnan(order), len(order), order)[codes]  # missing and unknown labels come last
    labels = int(codes.max(initial=0)) + 1
    class_counts = np.bincount(codes[learned] * classes + answers[learned], minlength=labels * classes)
    class_counts = class_counts.reshape(labels, classes)
    records = class_counts.sum(axis=1)
    overall = class_counts.sum(axis=0) / records.sum()
    shares = np.where(records[:, None] > 0, class_counts / np.maximum(records, 1)[:, None], overall) - overall
    _, vectors = np.linalg.eigh((shares * records[:, None]).T @ shares)
    component = vectors[:, -1]
    projection: FloatArray = shares @ (component * np.sign(component[np.argmax(np.abs(component))]))
    return projection[codes]
