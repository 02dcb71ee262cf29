"""Compiled loops of the greedy search: the cost of adding or removing one cut."""

from __future__ import annotations

import numpy as np

from shoal.algorithms.order_cuts.tables import (
    GOLDEN,
    CodeArray,
    StateArray,
    boundaries,
    count_codes,
    most_of,
    slot_bits,
)
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled


@compiled
def _cost(size: int, most: int, k: int, records: int, minority: bool) -> float:
    """Return the cost of a class, given the number of records of its most frequent label."""
    if minority:
        return float(size) if size < k else float(size - most)
    return float(size) * (records if size < k else size)


@compiled
def added(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    state: StateArray,
    column_begins: IntArray,
    k: int,
    records: int,
    minority: bool,
) -> tuple[FloatArray, IntArray]:
    """Return, for each cut that could be added, the change of the cost and of the suppressed records."""
    cuts = state.shape[0]
    below = boundaries(state, column_begins)
    costs = np.zeros(cuts)
    newly_suppressed = np.zeros(cuts, np.int64)
    records_of_code = np.zeros(below.shape[1], np.int64)
    records_of_label = np.zeros((below.shape[1], labels.shape[1]), np.int64)
    all_labels = np.zeros(labels.shape[1], np.int64)
    left_labels = np.zeros(labels.shape[1], np.int64)
    for group in range(begins.shape[0] - 1):
        start, stop = begins[group], begins[group + 1]
        size = 0
        all_labels[:] = 0
        for row in range(start, stop):
            size += sizes[row]
            for label in range(labels.shape[1]):
                all_labels[label] += labels[row, label]
        undivided_cost = _cost(size, most_of(all_labels), k, records, minority)
        for column in range(codes.shape[0] if stop - start > 1 else 0):
            column_codes = codes[column]
            low, high = count_codes(column_codes, sizes, start, stop, records_of_code)
            for row in range(start, stop if labels.shape[1] else start):
                for label in range(labels.shape[1]):
                    records_of_label[column_codes[row], label] += labels[row, label]
            left_size = 0
            left_labels[:] = 0
            for code in range(low, high):
                left_size += records_of_code[code]
                left_majority = 0
                right_majority = 0
                for label in range(labels.shape[1]):
                    left_labels[label] += records_of_label[code, label]
                    left_majority = max(left_majority, left_labels[label])
                    right_majority = max(right_majority, all_labels[label] - left_labels[label])
                cut = below[column, code + 1]
                right_size = size - left_size
                costs[cut] += _cost(left_size, left_majority, k, records, minority)
                costs[cut] += _cost(right_size, right_majority, k, records, minority) - undivided_cost
                if left_size < k:
                    newly_suppressed[cut] += left_size
                if right_size < k:
                    newly_suppressed[cut] += right_size
            for code in range(low, high + 1):
                records_of_code[code] = 0
                records_of_label[code, :] = 0
    return costs, newly_suppressed


@compiled
def removed(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    state: StateArray,
    column_begins: IntArray,
    k: int,
    records: int,
    minority: bool,
) -> tuple[FloatArray, IntArray]:
    """Return, for each cut that could be removed, the change of the cost and of the suppressed records.

    Here every class is one row, including classes below k, and every cut is in the head.
    """
    columns, rows = codes.shape
    below = boundaries(state, column_begins)
    costs = np.zeros(state.shape[0])
    merged = np.zeros(state.shape[0], np.int64)
    bits = slot_bits(rows)
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    factors = np.empty(columns, np.uint64)
    factor = GOLDEN
    for column in range(columns):
        factors[column] = factor
        factor = factor * GOLDEN + np.uint64(2)
    keys = np.zeros(rows, np.uint64)  # sums over columns, so that subtraction gives a neighbour's key
    for column in range(columns):
        for row in range(rows):
            keys[row] += np.uint64(codes[column, row]) * factors[column]
    slots = np.full(last + 1, -1, np.int64)
    for row in range(rows):
        slot = np.int64((keys[row] * GOLDEN) >> spread)
        while slots[slot] >= 0:
            slot = (slot + 1) & last
        slots[slot] = row
    saved = np.zeros(rows)
    for row in range(rows):
        saved[row] = _cost(sizes[row], most_of(labels[row]), k, records, minority)
    for column in range(columns):
        for row in range(rows):
            code = codes[column, row]
            if code == 0:
                continue
            key = keys[row] - factors[column]
            slot = np.int64((key * GOLDEN) >> spread)
            while slots[slot] >= 0:
                other = slots[slot]
                same = keys[other] == key
                if same:
                    for c in range(columns):
                        expected = code - 1 if c == column else codes[c, row]
                        if codes[c, other] != expected:
                            same = False
                            break
                if same:
                    size = sizes[row] + sizes[other]
                    most = 0
                    for label in range(labels.shape[1]):
                        most = max(most, labels[row, label] + labels[other, label])
                    cut = below[column, code]
                    costs[cut] += _cost(size, most, k, records, minority) - saved[row] - saved[other]
                    if size >= k:
                        if sizes[row] < k:
                            merged[cut] -= sizes[row]
                        if sizes[other] < k:
                            merged[cut] -= sizes[other]
                    break
                slot = (slot + 1) & last
    return costs, merged
