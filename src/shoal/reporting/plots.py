"""What the figure of a release shows: class sizes before and after, and what was lost of each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.core.block import cut
from shoal.plots import styled
from shoal.reporting.histogram import bars
from shoal.reporting.words import percent

if TYPE_CHECKING:
    from shoal.release import Release

_BEFORE, _AFTER = "#D55E00", "#0072B2"  # Okabe and Ito's
_LONGEST = 30  # characters of a column's name


def release_figure(release: Release) -> Any:
    """Draw a release: records by the size of their class, and the loss of each quasi-identifier."""

    def onto(figure: Any) -> None:
        sizes, losses = figure.subplots(1, 2, width_ratios=(3, 2))
        _sizes(sizes, release)
        _losses(losses, release)

    return styled(10, max(3.4, 1.1 + 0.26 * len(release.losses)), onto)


def _sizes(axes: Any, release: Release) -> None:
    k = release.least_class
    found = bars(release.exposure, release.exposure_after, k)
    for name, colour, side in (("before", _BEFORE, -0.2), ("after", _AFTER, 0.2)):
        records = [getattr(bar, name) for bar in found]
        axes.bar([place + side for place in range(len(found))], records, 0.38, color=colour, label=name)
    axes.set_xticks(range(len(found)), [bar.label for bar in found])
    axes.set_xlabel("size of the class")
    axes.set_ylabel("records")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)
    axes.set_title("Records by the size of their class", fontsize="medium")
    at = next((place for place, bar in enumerate(found) if bar.low == k > 1), None)
    if at is not None:
        axes.axvline(at - 0.5, color="#333333", linewidth=1, linestyle=(0, (5, 4)))
        axes.text(at - 0.45, 0.98, f"k = {k:,}", transform=axes.get_xaxis_transform(), va="top")
    axes.legend(frameon=False)


def _losses(axes: Any, release: Release) -> None:
    names = [cut(name, _LONGEST) for name in release.losses]
    lost = [one.coverage for one in release.losses.values()]
    drawn = axes.barh(range(len(names)), lost, color=_AFTER, height=0.65)
    axes.bar_label(drawn, [percent(share) for share in lost], padding=3, fontsize="small")
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1.18)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    axes.set_xlabel("0%: every value is told; 100%: nothing is")
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    axes.set_title("What was lost of each column", fontsize="medium")
