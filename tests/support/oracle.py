"""The naive oracle: plain lists and dicts, the definitions as they are written; imports nothing of shoal."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

from plugin_examples import example

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


def violates(labels, positions, k=1, l=1, sensitive=None, extra=None):
    if len(positions) < k or (l > 1 and len({sensitive[p] for p in positions}) < l):
        return True
    return any(
        refuses(name, options, labels, positions, extra) for name, options in (extra or {}).get("models", ())
    )


def suppressed(rows, hierarchies, node, k=1, l=1, sensitive=None, extra=None):
    found = classes(rows, hierarchies, node)
    extra = at_node(extra, hierarchies, node)
    return sum(len(p) for labels, p in found.items() if violates(labels, p, k, l, sensitive, extra))


def acceptable(rows, hierarchies, node, limit, k=1, l=1, sensitive=None, extra=None):
    found = classes(rows, hierarchies, node)
    extra = at_node(extra, hierarchies, node)
    return kept_acceptable(found, len(rows), limit, k, l, sensitive, extra)


def kept_acceptable(found, records, limit, k, l, sensitive, extra):
    kept = {labels: p for labels, p in found.items() if not violates(labels, p, k, l, sensitive, extra)}
    gone = records - sum(map(len, kept.values()))
    if gone > limit or gone == records:
        return False
    return all(holds(name, options, kept, gone, extra) for name, options in (extra or {}).get("models", ()))


def loss(
    metric, rows, hierarchies, node, k=1, l=1, sensitive=None, weights=None, least_size=None, extra=None,
    labels=None, ends=None,
):  # fmt: skip
    if metric in COMPOSITES:
        asked = {
            "k": k, "l": l, "sensitive": sensitive, "weights": weights, "least_size": least_size or k,
            "extra": extra, "labels": labels,
        }  # fmt: skip
        return _composite(COMPOSITES[metric], rows, hierarchies, node, asked, ends)
    weights = weights or [1] * len(node)
    found = classes(rows, hierarchies, node)
    extra = at_node(extra, hierarchies, node)
    bad = {labels for labels, p in found.items() if violates(labels, p, k, l, sensitive, extra)}
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
    if metric == "classification":
        return sum(_unlike(labels, p) if own not in bad else len(p) for own, p in found.items()) / n
    if metric == "class-size":
        return n / len(found) / (least_size or k)
    if metric == "non-uniform-entropy":
        return sum(w * _entropy(rows, hierarchies, node, c) for c, w in enumerate(weights))
    if metric == "uniform-entropy":
        return sum(w * _uniform_entropy(rows, hierarchies, node, c) for c, w in enumerate(weights))
    if metric == "non-uniform-entropy-normalized":
        most = [_entropy_of_one_group(rows, c) for c in range(len(node))]
        parts = [_entropy(rows, hierarchies, node, c) / m if m else 0.0 for c, m in enumerate(most)]
        return sum(w * x for w, x in zip(weights, parts, strict=True)) / sum(weights)
    if metric in ("coverage", "coverage-geometric"):
        gone = {position for labels in bad for position in found[labels]}
        columns = [_coverage(rows, hierarchies, node, c, gone) for c in range(len(node))]
        if metric == "coverage":
            return sum(w * x for w, x in zip(weights, columns, strict=True)) / sum(weights)
        return math.prod((1 + x) ** (w / sum(weights)) for w, x in zip(weights, columns, strict=True)) - 1
    refused = [positions for labels, positions in found.items() if labels in bad]
    return example(metric).loss(rows, list(found.values()), refused)


# Each part: metric, weight, and the range that is stated, if any. `ends`: the lowest and the highest node.
COMPOSITES = {
    "composite-by-column": [("precision", 1, None), ("uniform-entropy", 2, (-1, 9))],
    "composite-by-size": [("discernibility", 1, None), ("class-size", 0.5, (2, 4))],
    "composite-of-both": [("precision", 1, None), ("discernibility", 2, None), ("height", 1, (1, 2))],
    "composite-of-coverage": [("coverage", 2, None), ("discernibility-star", 1, None)],
    "composite-of-others": [("coverage-geometric", 1, None), ("classification", 1, None)],
}


def _composite(parts, rows, hierarchies, node, asked, ends):
    """Average losses by weight, each less its smallest value and divided by its range."""
    total = 0.0
    for metric, weight, stated in parts:
        at = loss(metric, rows, hierarchies, node, **asked)
        if stated is None:
            nothing_goes = asked | {"k": 1, "l": 1, "extra": None}
            stated = [loss(metric, rows, hierarchies, end, **nothing_goes) for end in ends]
        low, high = stated
        total += weight * ((at - low) / (high - low) if high > low else 0.0)
    return total / sum(weight for _, weight, _ in parts)


# A cut is {value: level} per column. A step is (column, level, label of the upper group).


def cut_classes(rows, hierarchies, cut):
    """Return {labels: positions of the rows}; a column of which nothing is generalized is as it is."""
    as_is = [not any(levels.values()) for levels in cut]
    found = defaultdict(list)
    for position, row in enumerate(rows):
        columns = zip(row, hierarchies, cut, as_is, strict=True)
        found[tuple(v if same else h[v][c[v]] for v, h, c, same in columns)].append(position)
    return found


def cut_acceptable(rows, hierarchies, cut, limit, k=1, l=1, sensitive=None, extra=None):
    return kept_acceptable(cut_classes(rows, hierarchies, cut), len(rows), limit, k, l, sensitive, extra)


def cut_cost(rows, hierarchies, cut, record_labels, k=1, l=1, sensitive=None, extra=None):
    """Return the records suppressed and the bits unknown of labels; of suppressed ones nothing is known."""
    gone, unknown = 0, 0
    for labels, positions in cut_classes(rows, hierarchies, cut).items():
        if violates(labels, positions, k, l, sensitive, extra):
            gone += len(positions)
            unknown += len(positions) * math.log2(len(set(record_labels)))
        else:
            unknown += len(positions) * entropy([record_labels[p] for p in positions]) / math.log(2)
    return gone, unknown


def cut_steps(rows, hierarchies, cut, low):
    """Return the steps down from a cut, each with the cut that it leads to."""
    for column, (levels, hierarchy) in enumerate(zip(cut, hierarchies, strict=True)):
        for level, label in sorted({(levels[v], hierarchy[v][levels[v]]) for v in levels}):
            inside = [v for v in levels if levels[v] == level and hierarchy[v][level] == label]
            if level > low[column]:
                lower = {**levels, **dict.fromkeys(inside, level - 1)}
                yield (column, level, label), [*cut[:column], lower, *cut[column + 1 :]]


def step_gain(rows, hierarchies, labels, step):
    """Return the bits that the groups below a group tell of a record's label."""
    column, level, group = step
    inside = [p for p, row in enumerate(rows) if hierarchies[column][row[column]][level] == group]
    below = defaultdict(list)
    for p in inside:
        below[hierarchies[column][rows[p][column]][level - 1]].append(labels[p])
    left = sum(len(part) * entropy(part) for part in below.values()) / len(inside)
    return (entropy([labels[p] for p in inside]) - left) / math.log(2)


def _group(hierarchy, value, level):
    return ("value", value) if level == 0 else ("group", hierarchy[value][level])


def _unlike(labels, positions):
    return len(positions) - max(Counter(labels[p] for p in positions).values())


def _entropy(rows, hierarchies, node, column):
    values = Counter(row[column] for row in rows)
    groups = Counter()
    for value, count in values.items():
        groups[_group(hierarchies[column], value, node[column])] += count
    total = 0.0
    for value, count in values.items():
        total -= count * math.log2(count / groups[_group(hierarchies[column], value, node[column])])
    return total


def _uniform_entropy(rows, hierarchies, node, column):
    groups = defaultdict(set)
    for row in rows:
        groups[_group(hierarchies[column], row[column], node[column])].add(row[column])
    return sum(math.log2(len(groups[_group(hierarchies[column], row[column], node[column])])) for row in rows)


def _entropy_of_one_group(rows, column):
    values = Counter(row[column] for row in rows)
    return -sum(count * math.log2(count / len(rows)) for count in values.values())


def _coverage(rows, hierarchies, node, column, gone):
    hierarchy = {value: hierarchies[column][value] for value in {row[column] for row in rows}}
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
    asked = {name: wishes[name] for name in ("k", "l", "sensitive", "extra") if name in wishes}
    found = [
        loss(metric, rows, hierarchies, node, **wishes)
        for node in nodes(hierarchies, low, high, same_level)
        if acceptable(rows, hierarchies, node, limit, **asked)
    ]
    return min(found, default=None)


# Models beyond k and distinct l. `extra` holds `models` (name, options), `columns` {name: sensitive value of
# each row}, `trees` {name: {value: labels from level 0}}, `units` {name: unit of each row} and `population`
# (rows). A real threshold is met within 1e-9.

CLOSE = 1e-9


OF_VALUES = (
    "alpha-k-anonymity", "basic-beta-likeness", "delta-disclosure", "distinct-l-diversity",
    "enhanced-beta-likeness", "entropy-l-diversity", "p-sensitive", "recursive-cl-diversity", "t-closeness",
)  # fmt: skip


def at_node(extra, hierarchies, node):
    """Count the population into the classes of a node."""
    if not extra or extra.get("population") is None:
        return extra
    inside = {labels: len(p) for labels, p in classes(extra["population"], hierarchies, node).items()}
    return {**extra, "inside": inside}


def refuses(name, options, labels, positions, extra):
    """Return whether a model wants a class suppressed."""
    if name == "k-anonymity":
        unit = options.get("unit")
        return len({extra["units"][unit][p] for p in positions} if unit else positions) < options["k"]
    if name == "k-map":
        return extra["inside"][labels] < options["k"]
    if name == "delta-presence":
        presence = len(positions) / extra["inside"][labels]
        return presence > options["maximum"] + CLOSE or presence < options.get("minimum", 0) - CLOSE
    if name in ("average-risk", "sample-uniqueness"):
        return False
    if name not in OF_VALUES:
        return example(name).refuses(options, positions, extra)
    columns = [options["column"]] if options.get("column") else list(extra["columns"])
    return any(
        violating(
            name, options, [extra["columns"][c][p] for p in positions], extra["columns"][c], extra["trees"][c]
        )
        for c in columns
    )


def holds(name, options, kept, gone, extra):
    """Return whether the classes that remain may be released, after so many records went."""
    records = sum(map(len, kept.values()))
    if name == "average-risk":
        return len(kept) / records <= options["risk"] + CLOSE
    if name == "sample-uniqueness":
        return sum(len(p) == 1 for p in kept.values()) / records <= options["share"] + CLOSE
    if name == "delta-presence" and options.get("minimum", 0) > 0:
        return gone == 0 and set(extra["inside"]) == set(kept)  # nobody is surely absent
    return True


def violating(name, options, here, whole, tree):
    """Return whether the values of a class fall short of a model, beside those of the whole table."""
    counts = Counter(here)
    q = {value: number / len(here) for value, number in counts.items()}
    p = {value: number / len(whole) for value, number in Counter(whole).items()}
    if name == "distinct-l-diversity":
        return len(counts) < options["l"]
    if name == "p-sensitive":
        return len(here) < options["k"] or len(counts) < options["p"]
    if name == "alpha-k-anonymity":
        rare = options.get("rarer_than") or 2
        shares = [q[v] for v in q if p[v] < rare - CLOSE]
        return len(here) < options["k"] or max(shares, default=0) > options["alpha"] + CLOSE
    if name == "entropy-l-diversity":
        return entropy(here) < math.log(options["l"]) - CLOSE or len(counts) < math.ceil(options["l"])
    if name == "recursive-cl-diversity":
        often = sorted(counts.values(), reverse=True)
        return not often[0] < options["c"] * sum(often[options["l"] - 1 :])
    if name == "t-closeness":
        return distance(options.get("distance", "equal"), here, whole, tree) > options["t"] + CLOSE
    if name == "basic-beta-likeness":
        return any((q[v] - p[v]) / p[v] > options["beta"] + CLOSE for v in q)
    if name == "enhanced-beta-likeness":
        return any((q[v] - p[v]) / p[v] > min(options["beta"], -math.log(p[v])) + CLOSE for v in q)
    if name == "delta-disclosure":
        absent = not options.get("present_only") and len(q) < len(p)
        return absent or any(abs(math.log(q[v] / p[v])) >= options["delta"] - CLOSE for v in q)
    raise ValueError(name)


def entropy(here):
    return -sum(n / len(here) * math.log(n / len(here)) for n in Counter(here).values())


def distance(kind, here, whole, tree=None):
    """Return the earth mover's distance of two lists of values as Li et al. (2007) define it."""
    apart = {v: here.count(v) / len(here) - whole.count(v) / len(whole) for v in set(whole)}
    if kind == "equal":
        return sum(map(abs, apart.values())) / 2
    if kind == "ordered":
        total = moved = 0.0
        for value in sorted(apart, key=lambda v: (v is None, v or 0)):
            moved += apart[value]
            total += abs(moved)
        return total / (len(apart) - 1) if len(apart) > 1 else 0.0
    paths = {v: [v, *tree[v][1:]] for v in apart}
    if len({path[-1] for path in paths.values()}) > 1 or len(next(iter(paths.values()))) == 1:
        paths = {v: [*path, "root"] for v, path in paths.items()}
    top = len(next(iter(paths.values()))) - 1
    extras = dict(apart)  # of each group at the level below
    total = 0.0
    for level in range(1, top + 1):
        above = {path[level - 1]: path[level] for path in paths.values()}
        groups = defaultdict(list)
        for child, group in above.items():
            groups[group].append(extras[child])
        for children in groups.values():
            over, under = sum(max(e, 0) for e in children), sum(max(-e, 0) for e in children)
            total += level / top * min(over, under)
        extras = {group: sum(children) for group, children in groups.items()}
    return total
