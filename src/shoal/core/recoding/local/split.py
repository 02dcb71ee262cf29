"""Top-down division: classes are divided in two, as long as both parts satisfy the models.

A class is a range of `order`. In every step, one *child* is separated from its class: the records that share
one label of one axis, on the level below the label of the class.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.recoding.local.tables import ClassLabels, Needs


@compiled
def enough(size: int, bits: IntArray, needs: Needs) -> bool:
    """Return whether a class has as many records and sensitive values as it needs."""
    if size < needs.size:
        return False
    start = 0
    for column in range(len(needs.values)):
        number = 0
        for word in range(start, needs.ends[column]):
            remaining = bits[word]
            while remaining != 0:
                remaining &= remaining - 1
                number += 1
        if number < needs.values[column]:
            return False
        start = needs.ends[column]
    return True


@compiled
def common_level(order: IntArray, start: int, end: int, axis: int, labels: ClassLabels) -> int:
    """Return the lowest level at which all combinations of a class have one label, or -1."""
    codes, label_of, offsets = labels.codes[axis], labels.label_of, labels.offsets[axis]
    level, first = 0, codes[order[start]]
    label = label_of[offsets[0] + first]
    for n in range(start + 1, end):
        code = codes[order[n]]
        while label_of[offsets[level] + code] != label:
            level += 1
            if level > labels.heights[axis]:
                return -1
            label = label_of[offsets[level] + first]
    return level


@compiled
def best_children(
    order: IntArray,
    start: int,
    end: int,
    sizes: IntArray,
    labels: ClassLabels,
    needs: Needs,
    records: IntArray,  # (labels,): all 0 before and after the call
    touched: IntArray,  # (labels,): filled in
    gains: FloatArray,  # (candidates,): filled in, the best first; 0: none
    children: IntArray,  # (candidates, 2): axis and label, filled in
) -> None:
    """Find the children that gain most if they are separated, so that both parts have enough of `needs`."""
    gains[:] = 0.0
    total = 0
    for n in range(start, end):
        total += sizes[order[n]]
    if total < 2 * needs.size or end - start < 2:
        return
    for axis in range(labels.codes.shape[0]):
        level = common_level(order, start, end, axis, labels)
        if level <= 0:
            continue
        codes, label_of = labels.codes[axis], labels.label_of
        above = labels.weight[label_of[labels.offsets[axis, level] + codes[order[start]]]]
        first, number = labels.offsets[axis, level - 1], 0
        for n in range(start, end):
            label = label_of[first + codes[order[n]]]
            if records[label] == 0:
                touched[number] = label
                number += 1
            records[label] += sizes[order[n]]
        for n in range(number):
            label = touched[n]
            size = records[label]
            gain = size * (above - labels.weight[label])
            if number == 2:
                gain += (total - size) * (above - labels.weight[touched[1 - n]])
            if size >= needs.size and total - size >= needs.size and gain > gains[-1]:
                position = len(gains) - 1
                while position > 0 and gains[position - 1] < gain:
                    gains[position], children[position] = gains[position - 1], children[position - 1]
                    position -= 1
                gains[position], children[position, 0], children[position, 1] = gain, axis, label
        for n in range(number):
            records[touched[n]] = 0
    if len(needs.values):
        _drop_poor(order, start, end, labels, needs, gains, children)


@compiled
def _drop_poor(
    order: IntArray,
    start: int,
    end: int,
    labels: ClassLabels,
    needs: Needs,
    gains: FloatArray,
    children: IntArray,
) -> None:
    """Drop candidates for which one part has too few sensitive values."""
    kept = 0
    parts = np.zeros((2, needs.bits.shape[1]), np.int64)
    for candidate in range(len(gains)):
        if gains[candidate] <= 0.0:
            break
        axis, label = children[candidate]
        first = labels.offsets[axis, labels.level[label]]
        parts[:] = 0
        for n in range(start, end):
            side = 0 if labels.label_of[first + labels.codes[axis, order[n]]] == label else 1
            for word in range(parts.shape[1]):
                parts[side, word] |= needs.bits[order[n], word]
        if enough(needs.size, parts[0], needs) and enough(needs.size, parts[1], needs):
            gains[kept], children[kept] = gains[candidate], children[candidate]
            kept += 1
    gains[kept:] = 0.0


@compiled
def divide(order: IntArray, start: int, end: int, axis: int, label: int, labels: ClassLabels) -> int:
    """Move the combinations under a label to the front of their class; return where the others begin."""
    others = np.empty(end - start, np.int64)
    first = labels.offsets[axis, labels.level[label]]
    position, number = start, 0
    for n in range(start, end):
        row = order[n]
        if labels.label_of[first + labels.codes[axis, row]] == label:
            order[position] = row
            position += 1
        else:
            others[number] = row
            number += 1
    order[position:end] = others[:number]
    return position


@compiled
def split_all(
    order: IntArray,
    ends: IntArray,  # (combinations, 2): a stack of pending classes; changed in place
    pending: int,
    begins: BoolArray,  # (combinations,): whether a class begins here; changed in place
    sizes: IntArray,
    labels: ClassLabels,
    needs: Needs,
    work: int,  # combinations times axes to read before control is returned
) -> int:
    """Divide the pending classes; return how many are still pending."""
    records, touched = np.zeros(len(labels.level), np.int64), np.empty(len(labels.level), np.int64)
    gains, children = np.empty(1 if not len(needs.values) else 8), np.empty((8, 2), np.int64)
    while pending > 0 and work > 0:
        start, end = ends[pending - 1]
        pending -= 1
        work -= (end - start) * labels.codes.shape[0]
        best_children(order, start, end, sizes, labels, needs, records, touched, gains, children)
        if gains[0] > 0.0:
            middle = divide(order, start, end, children[0, 0], children[0, 1], labels)
            ends[pending, 0], ends[pending, 1] = start, middle
            ends[pending + 1, 0], ends[pending + 1, 1] = middle, end
            begins[middle] = True
            pending += 2
    return pending


@compiled
def candidates(
    order: IntArray,
    ends: IntArray,  # (classes, 2)
    sizes: IntArray,
    labels: ClassLabels,
    needs: Needs,
    gains: FloatArray,  # (classes, candidates): filled in
    children: IntArray,  # (classes, candidates, 2): filled in
) -> None:
    """Find the best children of some classes, for models that are checked afterwards."""
    records, touched = np.zeros(len(labels.level), np.int64), np.empty(len(labels.level), np.int64)
    for number in range(len(ends)):
        start, end = ends[number]
        best_children(
            order, start, end, sizes, labels, needs, records, touched, gains[number], children[number]
        )


@compiled
def sides(
    order: IntArray,
    ends: IntArray,  # (classes, 2)
    children: IntArray,  # (classes, 2): axis and label; axis -1: the class is left out
    labels: ClassLabels,
    part_of: IntArray,  # (combinations,): all -1; filled in: 2 * class if in the child, else 2 * class + 1
) -> None:
    """Write, for each combination, the number of the part of its class that contains it."""
    for number in range(len(ends)):
        axis, label = children[number]
        if axis < 0:
            continue
        first = labels.offsets[axis, labels.level[label]]
        for n in range(ends[number, 0], ends[number, 1]):
            row = order[n]
            part_of[row] = 2 * number + (labels.label_of[first + labels.codes[axis, row]] != label)
