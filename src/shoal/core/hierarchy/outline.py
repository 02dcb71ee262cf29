"""A hierarchy as HTML and as a figure of its tree; large hierarchies are shown in part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.document.figures import empty_figure
from shoal.document.html import block, cut, first, isolated, joined, quiet, table, tag
from shoal.wording import plural

if TYPE_CHECKING:
    from shoal.core.hierarchy.hierarchy import Hierarchy


_EXAMPLE_VALUES = 5  # number of values whose labels at all levels are shown
_MAX_LEVELS = 8  # maximum number of levels for these values
_EXAMPLE_LABELS = 3  # number of labels shown per level
_MAX_LABEL = 32  # maximum number of characters of a label


def outline(hierarchy: Hierarchy) -> str:
    """Return the levels with their groups, and examples of values at all levels, as HTML."""
    levels, values = hierarchy.height + 1, len(hierarchy.labels[0])
    summary = f": {plural(values, 'value')}, {plural(levels, 'level')}"
    parts: list[object] = [
        table(
            "Level 0 is the value as it is; each level merges whole groups of the one below",
            ("Level", "Groups", "Values in the largest", "For example"),
            first([_level(hierarchy, level) for level in range(levels)]),
            numbers=(1, 2),
        )
    ]
    if hierarchy.height and values:
        parts.append(_label_paths(hierarchy))
    parts.append(quiet("The groups as a tree: ", tag("code", "plot()"), "."))
    return block(joined(("Hierarchy of ", isolated(hierarchy.name), summary)), *parts)


def _level(hierarchy: Hierarchy, level: int) -> tuple[object, ...]:
    labels, covered = hierarchy.labels[level], hierarchy.leaves[level]
    groups = hierarchy.ordered(level, np.arange(len(labels)))
    examples = [cut(labels[group], _MAX_LABEL) for group in _evenly_spaced(groups, _EXAMPLE_LABELS)]
    more = ", \N{HORIZONTAL ELLIPSIS}" if len(labels) > len(examples) else ""
    largest = f"{int(covered.max()):,}" if len(covered) else ""
    return str(level), f"{len(labels):,}", largest, isolated(", ".join(examples) + more)


def _evenly_spaced(items: Sequence[int], count: int) -> Sequence[int]:
    """Return at most `count` items, evenly spread."""
    if len(items) <= count:
        return items
    return [items[index * (len(items) - 1) // (count - 1)] for index in range(count)]


def _label_paths(hierarchy: Hierarchy) -> object:
    codes = _evenly_spaced(hierarchy.ordered(0, np.arange(len(hierarchy.labels[0]))), _EXAMPLE_VALUES)
    levels = list(range(hierarchy.height + 1))
    if len(levels) > _MAX_LEVELS:
        levels = [*levels[: _MAX_LEVELS - 1], levels[-1]]
    rows = [
        [
            isolated(cut(hierarchy.labels[level][hierarchy.groups(level)[code]], _MAX_LABEL))
            for level in levels
        ]
        for code in codes
    ]
    return table("How a few values are generalized", [f"Level {level}" for level in levels], rows)


LEAVES = 64  # maximum number of leaves in a figure
_MIN_BRANCHES = 6  # minimum number of branches of a group, if not all of them can be drawn
_MAX_DRAWN_LABEL = 24  # maximum number of characters of a label
_LINE = {"color": "#8a949d", "linewidth": 0.9, "zorder": 1}


@dataclass(frozen=True)
class Branch:
    """A drawn group with its children; if `group` is None, it stands for groups that are not drawn."""

    level: int
    group: int | None
    label: str
    values: int
    children: list[Branch] = field(default_factory=list)

    def leaves(self) -> Iterator[Branch]:
        """Yield the leaves, from first to last."""
        if not self.children:
            yield self
        for branch in self.children:
            yield from branch.leaves()


def branches(hierarchy: Hierarchy, max_leaves: int = LEAVES) -> list[Branch]:
    """Return the groups of the top level with their descendants, down to at most `max_leaves` leaves.

    The first level with too many groups is drawn in part if it has few parents: the largest groups of each
    parent, and one branch for its other groups.
    """
    top = hierarchy.height
    roots = _largest_branches(
        [_branch(hierarchy, top, group) for group in range(len(hierarchy.labels[top]))], top, max_leaves
    )
    ends = [branch for branch in roots if branch.group is not None]
    complete = len(ends) == len(roots)
    for level in range(top - 1, -1, -1):
        if not complete:
            break
        max_branches = (
            max_leaves if len(hierarchy.labels[level]) <= max_leaves else max_leaves // max(1, len(ends))
        )
        complete = max_branches == max_leaves
        if not complete and max_branches < _MIN_BRANCHES:
            break
        for branch in ends:
            members = np.flatnonzero(hierarchy.steps[level] == branch.group)
            children = [_branch(hierarchy, level, group) for group in hierarchy.ordered(level, members)]
            branch.children.extend(_largest_branches(children, level, max_branches))
        ends = [child for branch in ends for child in branch.children]
    return roots


def _branch(hierarchy: Hierarchy, level: int, group: int) -> Branch:
    return Branch(level, group, hierarchy.labels[level][group], int(hierarchy.leaves[level][group]))


def _largest_branches(branches: list[Branch], level: int, max_branches: int) -> list[Branch]:
    """Return the largest branches, in their order, and one branch for all the rest."""
    if len(branches) <= max_branches:
        return branches
    by_size = sorted(range(len(branches)), key=lambda index: (-branches[index].values, index))
    kept = [branches[index] for index in sorted(by_size[: max_branches - 1])]
    others = [branches[index] for index in by_size[max_branches - 1 :]]
    summed = Branch(level, None, f"{len(others):,} more", sum(branch.values for branch in others))
    return [*kept, summed]


def tree(hierarchy: Hierarchy) -> Any:
    """Draw a hierarchy as a figure: the top at the left, each group with its number of values."""
    roots = branches(hierarchy)
    ends = [branch for root in roots for branch in root.leaves()]
    lowest = min(branch.level for branch in ends)
    levels = range(hierarchy.height, lowest - 1, -1)
    figure = empty_figure(max(5.6, 0.4 + 2.3 * len(levels)), 1.1 + 0.19 * max(len(ends), 4))
    axes = figure.subplots()
    rows = iter(range(len(ends)))
    for root in roots:
        _draw(axes, root, hierarchy.height, rows)
    axes.set_xlim(-0.05, len(levels))
    axes.set_ylim(max(len(ends), 4) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xticks(
        range(len(levels)), [_heading(hierarchy, level) for level in levels], ha="left", fontsize=8
    )
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False, colors="#55606b")
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    title = f"Hierarchy of {cut(_line(hierarchy.name), 40)}: groups with their number of values"
    figure.suptitle(title, fontsize=10, parse_math=False)
    if lowest or any(branch.group is None for branch in ends):
        axes.set_xlabel(_left_out(hierarchy, lowest), loc="left", fontsize=8, color="#55606b")
    return figure


def _draw(axes: Any, branch: Branch, top: int, rows: Iterator[int]) -> float:
    """Draw a branch and its descendants; return its vertical position."""
    x = top - branch.level
    child_ys = [_draw(axes, child, top, rows) for child in branch.children]
    y = (child_ys[0] + child_ys[-1]) / 2 if child_ys else float(next(rows))
    if child_ys:
        axes.plot([x + 0.05 * (not x), x + 0.94], [y, y], **_LINE)
        axes.plot([x + 0.94] * 2, [child_ys[0], child_ys[-1]], **_LINE)
        for child_y in child_ys:
            axes.plot([x + 0.94, x + 1], [child_y, child_y], **_LINE)
    label, number = cut(_line(branch.label), _MAX_DRAWN_LABEL), f"{branch.values:,}"
    text = label if branch.level == 0 and branch.group is not None else f"{label}  ({number})"
    style = "italic" if branch.group is None else "normal"
    background = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
    axes.text(x + 0.02, y, text, va="center", fontsize=8, style=style, bbox=background, parse_math=False)
    return y


def _line(words: str) -> str:
    return "".join(character if character.isprintable() else " " for character in words)


def _heading(hierarchy: Hierarchy, level: int) -> str:
    number = len(hierarchy.labels[level])
    return f"level {level}: {number:,} {'value' if level == 0 else 'group'}{'' if number == 1 else 's'}"


def _left_out(hierarchy: Hierarchy, lowest: int) -> str:
    """Describe the levels that are not drawn, or not completely."""
    below: Sequence[str] = [_heading(hierarchy, level) for level in range(lowest - 1, -1, -1)]
    return f"not drawn: {'; '.join(below)}" if below else "not all values are drawn"
