"""Tree: a hierarchy drawn from its top to as many groups as can be read, each with its number of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.block import cut
from shoal.core.figure import blank

if TYPE_CHECKING:
    from shoal.core.hierarchy import Hierarchy

LEAVES = 64  # branches that end in a figure
_BRANCHES = 6  # of a group, at least, where not all of them can be drawn
_LONGEST = 24  # characters of a label
_LINE = {"color": "#8a949d", "linewidth": 0.9, "zorder": 1}


@dataclass(frozen=True)
class Branch:
    """A group as it is drawn, with those of the level below; `group` is None for all that are summed up."""

    level: int
    group: int | None
    label: str
    values: int
    under: list[Branch] = field(default_factory=list)

    def ends(self) -> Iterator[Branch]:
        """Yield the branches that end, from the first to the last."""
        if not self.under:
            yield self
        for branch in self.under:
            yield from branch.ends()


def branches(hierarchy: Hierarchy, most: int = LEAVES) -> list[Branch]:
    """Return the groups of the top level with what is below them, as far as no more than `most` end.

    The first level that is too wide is drawn in part where its groups have few parents: the largest of each
    and the sum of the rest.
    """
    top = hierarchy.height
    found = _kept([_branch(hierarchy, top, group) for group in range(len(hierarchy.labels[top]))], top, most)
    ends = [branch for branch in found if branch.group is not None]
    whole = len(ends) == len(found)
    for level in range(top - 1, -1, -1):
        if not whole:
            break
        room = most if len(hierarchy.labels[level]) <= most else most // max(1, len(ends))
        whole = room == most
        if not whole and room < _BRANCHES:
            break
        for branch in ends:
            members = np.flatnonzero(hierarchy.steps[level] == branch.group)
            under = [_branch(hierarchy, level, group) for group in hierarchy.ordered(level, members)]
            branch.under.extend(_kept(under, level, room))
        ends = [under for branch in ends for under in branch.under]
    return found


def _branch(hierarchy: Hierarchy, level: int, group: int) -> Branch:
    return Branch(level, group, hierarchy.labels[level][group], int(hierarchy.leaves[level][group]))


def _kept(found: list[Branch], level: int, room: int) -> list[Branch]:
    """Return the largest that there is room for, in their order, and the sum of the rest."""
    if len(found) <= room:
        return found
    places = sorted(range(len(found)), key=lambda place: (-found[place].values, place))
    kept = [found[place] for place in sorted(places[: room - 1])]
    rest = [found[place] for place in places[room - 1 :]]
    summed = Branch(level, None, f"{len(rest):,} more", sum(one.values for one in rest))
    return [*kept, summed]


def tree(hierarchy: Hierarchy) -> Any:
    """Draw a hierarchy as a figure: the top at the left, each group with the number of its values."""
    found = branches(hierarchy)
    ends = [branch for one in found for branch in one.ends()]
    lowest = min(branch.level for branch in ends)
    levels = range(hierarchy.height, lowest - 1, -1)
    figure = blank(max(5.6, 0.4 + 2.3 * len(levels)), 1.1 + 0.19 * max(len(ends), 4))
    axes = figure.subplots()
    places = iter(range(len(ends)))
    for one in found:
        _draw(axes, one, hierarchy.height, places)
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


def _draw(axes: Any, branch: Branch, top: int, places: Iterator[int]) -> float:
    """Draw a branch and all below it, and return how far down it stands."""
    across = top - branch.level
    downs = [_draw(axes, under, top, places) for under in branch.under]
    down = (downs[0] + downs[-1]) / 2 if downs else float(next(places))
    if downs:
        axes.plot([across + 0.05 * (not across), across + 0.94], [down, down], **_LINE)
        axes.plot([across + 0.94] * 2, [downs[0], downs[-1]], **_LINE)
        for under in downs:
            axes.plot([across + 0.94, across + 1], [under, under], **_LINE)
    label, number = cut(_line(branch.label), _LONGEST), f"{branch.values:,}"
    told = label if branch.level == 0 and branch.group is not None else f"{label}  ({number})"
    style = "italic" if branch.group is None else "normal"
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
    axes.text(across + 0.02, down, told, va="center", fontsize=8, style=style, bbox=paper, parse_math=False)
    return down


def _line(words: str) -> str:
    """Write words in one line."""
    return "".join(sign if sign.isprintable() else " " for sign in words)


def _heading(hierarchy: Hierarchy, level: int) -> str:
    number = len(hierarchy.labels[level])
    return f"level {level}: {number:,} {'value' if level == 0 else 'group'}{'' if number == 1 else 's'}"


def _left_out(hierarchy: Hierarchy, lowest: int) -> str:
    """Say which levels are not drawn, or not as a whole."""
    below: Sequence[str] = [_heading(hierarchy, level) for level in range(lowest - 1, -1, -1)]
    return f"not drawn: {'; '.join(below)}" if below else "not all values are drawn"
