"""The naive oracle: plain lists and dicts, the definitions as they are written; imports nothing of shoal."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

# A hierarchy is {value: [label at level 0, label at level 1, ...]}; a table is a list of tuples of values.


def heights(hierarchies):
    return [len(next(iter(h.values()))) - 1 for h in hierarchies]


def nodes(hierarchies, low=None, high=None, same_level=()):
    tops = heights(hierarchies)
    low = low or [0] * len(tops)
    high = high or tops
    for node in itertools.product(*[range(a, b + 1) for a, b in zip(low, high, strict=True)]):
        if all(len({node[c] for c in group}) == 1 for group in same_level):
            yield node


def classes(rows, hierarchies, node):
    """Return {labels: positions of the rows}; at level 0 the values themselves are the labels."""
    found = defaultdict(list)
    for position, row in enumerate(rows):
        labels = tuple(
            value if level == 0 else hierarchy[value][level]
            for value, hierarchy, level in zip(row, hierarchies, node, strict=True)
        )
        found[labels].append(position)
    return found


def violates(positions, k=1, l=1, sensitive=None):
    if len(positions) < k:
        return True
    return l > 1 and len({sensitive[p] for p in positions}) < l


def suppressed(rows, hierarchies, node, k=1, l=1, sensitive=None):
    found = classes(rows, hierarchies, node)
    return sum(len(p) for p in found.values() if violates(p, k, l, sensitive))


def acceptable(rows, hierarchies, node, limit, k=1, l=1, sensitive=None):
    gone = suppressed(rows, hierarchies, node, k, l, sensitive)
    return gone <= limit and gone < len(rows)


def loss(
    metric, rows, hierarchies, node, k=1, l=1, sensitive=None, weights=None, leaves=None, least_size=None
):
    """`leaves`: per column the listed values beyond those of the data, as {value: labels}."""
    weights = weights or [1] * len(node)
    found = classes(rows, hierarchies, node)
    bad = {labels for labels, p in found.items() if violates(p, k, l, sensitive)}
    n = len(rows)
    if metric == "height":
        return sum(node)
    if metric == "precision":
        parts = [w * (v / h if h else 0) for w, v, h in zip(weights, node, heights(hierarchies), strict=True)]
        return sum(parts) / sum(weights)
    if metric == "discernibility-star":
        return sum(len(p) ** 2 for p in found.values())
    if metric == "discernibility":
        return sum(n * len(p) if labels in bad else len(p) ** 2 for labels, p in found.items())
    if metric == "class-size":
        return n / len(found) / (least_size or k)
    if metric == "non-uniform-entropy":
        return sum(w * _entropy(rows, hierarchies, node, c) for c, w in enumerate(weights))
    if metric in ("coverage", "coverage-geometric"):
        gone = {position for labels in bad for position in found[labels]}
        columns = [_coverage(rows, hierarchies, node, c, gone, leaves) for c in range(len(node))]
        if metric == "coverage":
            return sum(w * x for w, x in zip(weights, columns, strict=True)) / sum(weights)
        return math.prod((1 + x) ** (w / sum(weights)) for w, x in zip(weights, columns, strict=True)) - 1
    raise ValueError(metric)


def _group(hierarchy, value, level):
    return ("value", value) if level == 0 else ("group", hierarchy[value][level])


def _entropy(rows, hierarchies, node, column):
    values = Counter(row[column] for row in rows)
    groups = Counter()
    for value, count in values.items():
        groups[_group(hierarchies[column], value, node[column])] += count
    total = 0.0
    for value, count in values.items():
        total -= count * math.log2(count / groups[_group(hierarchies[column], value, node[column])])
    return total


def _coverage(rows, hierarchies, node, column, gone, leaves):
    hierarchy = {value: hierarchies[column][value] for value in {row[column] for row in rows}}
    hierarchy |= (leaves or [{}] * len(node))[column]
    size = Counter(_group(hierarchy, value, node[column]) for value in hierarchy)
    total = 0.0
    for position, row in enumerate(rows):
        if position in gone:
            total += 1
        elif len(hierarchy) > 1:
            total += (size[_group(hierarchy, row[column], node[column])] - 1) / (len(hierarchy) - 1)
    return total / len(rows)


def least_loss(metric, rows, hierarchies, limit, low=None, high=None, same_level=(), **wishes):
    """Return the least loss of all acceptable nodes, or None."""
    asked = {name: wishes[name] for name in ("k", "l", "sensitive") if name in wishes}
    found = [
        loss(metric, rows, hierarchies, node, **wishes)
        for node in nodes(hierarchies, low, high, same_level)
        if acceptable(rows, hierarchies, node, limit, **asked)
    ]
    return min(found, default=None)
