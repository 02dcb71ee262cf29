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
    """Return the change of cost and of suppressed records for each cut that could be added."""
    cuts = state.shape[0]
    below = boundaries(state, column_begins)
    costs = np.zeros(cuts)
    lost = np.zeros(cuts, np.int64)
    in_size = np.zeros(below.shape[1], np.int64)
    in_label = np.zeros((below.shape[1], labels.shape[1]), np.int64)
    whole = np.zeros(labels.shape[1], np.int64)
    left = np.zeros(labels.shape[1], np.int64)
    for group in range(begins.shape[0] - 1):
        start, stop = begins[group], begins[group + 1]
        size = 0
        whole[:] = 0
        for row in range(start, stop):
            size += sizes[row]
            for label in range(labels.shape[1]):
                whole[label] += labels[row, label]
        together = _cost(size, most_of(whole), k, records, minority)
        for column in range(codes.shape[0] if stop - start > 1 else 0):
            column_codes = codes[column]
            low, high = count_codes(column_codes, sizes, start, stop, in_size)
            for row in range(start, stop if labels.shape[1] else start):
                for label in range(labels.shape[1]):
                    in_label[column_codes[row], label] += labels[row, label]
            left_size = 0
            left[:] = 0
            for code in range(low, high):
                left_size += in_size[code]
                most = 0
                other = 0
                for label in range(labels.shape[1]):
                    left[label] += in_label[code, label]
                    most = max(most, left[label])
                    other = max(other, whole[label] - left[label])
                cut = below[column, code + 1]
                right_size = size - left_size
                costs[cut] += _cost(left_size, most, k, records, minority)
                costs[cut] += _cost(right_size, other, k, records, minority) - together
                if left_size < k:
                    lost[cut] += left_size
                if right_size < k:
                    lost[cut] += right_size
            for code in range(low, high + 1):
                in_size[code] = 0
                in_label[code, :] = 0
    return costs, lost


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
    """Return the change of cost and of suppressed records for each cut that could be removed.

    Every class is one row here, including classes below k, and every cut is in the head.
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
    keys = np.zeros(rows, np.uint64)  # a sum over columns, so that a neighbour's key is quick to compute
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
                        wanted = code - 1 if c == column else codes[c, row]
                        if codes[c, other] != wanted:
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
