"""What the plots of a diagnosis show: what suppression costs, k by the size of sets, the safe frontier."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from shoal.diagnosing.findings import MOST_SETS
from shoal.errors import so_many
from shoal.plot_lines import Line
from shoal.plots import Plot, Strip
from shoal.policies.shares import limit_in_records

if TYPE_CHECKING:
    from shoal.diagnosis import Diagnosis, Limit

_DOTS = 300  # of one size
_SETS = 20_000  # that are counted for a plot where nobody says how large they may be


def diagnosis_plots(
    diagnosis: Diagnosis,
    suppression_limit: Limit = 0,
    max_size: int | None = None,
    seconds: float | None = None,
) -> tuple[list[Plot], str]:
    """Return the plots of a diagnosis, and which sets are not in them: too large, or not counted in time."""
    number = len(diagnosis.columns)
    size = min(max_size or _size(diagnosis), number)
    table = diagnosis.anonymity_of_sets(suppression_limit, size, seconds=seconds)
    by_size: dict[int, list[int]] = defaultdict(list)
    for columns, k in table.items():
        by_size[len(columns)].append(k)
    limit = limit_in_records(suppression_limit, diagnosis.records)
    after = f", at most {so_many(limit, 'record')} suppressed" if limit else ""
    every = diagnosis.number_of_sets(size)
    bounded = f"sets of at most {so_many(size, 'column')}" if size < number else ""
    stopped = "" if table.complete else f"stopped: {len(table):,} of {every:,} sets"
    missing = ", ".join(filter(None, (bounded, stopped)))
    if not by_size:
        return [_curve(diagnosis)], f"{missing}, so that only what suppression costs is drawn"
    of = f"{so_many(len(table), 'set')} of {so_many(number, 'column')}" + (f" ({missing})" if missing else "")
    after += f"\n{missing}" if missing else ""
    plots = [
        _curve(diagnosis),
        _sets(diagnosis.measure, by_size, after),
        _frontier(diagnosis.measure, by_size, of, after),
    ]
    return plots, missing


def _size(diagnosis: Diagnosis) -> int:
    """Return the size up to which the sets are not too many."""
    columns = len(diagnosis.columns)
    if diagnosis.number_of_sets() <= MOST_SETS:
        return columns
    fitting = [size for size in range(1, columns + 1) if diagnosis.number_of_sets(size) <= _SETS]
    return max(fitting, default=1)


def _curve(diagnosis: Diagnosis) -> Plot:
    found = diagnosis.suppression_by_k()
    points = [(float(one.k), one.suppressed / diagnosis.records) for one in found]
    if points[0][0] > 1:  # up to the smallest class nothing is suppressed
        points.insert(0, (1.0, 0.0))
    if len(points) == 1:  # a k above the largest class leaves nothing
        points.append((points[0][0] + 1, 1.0))
    number = len(diagnosis.columns)
    name = f"{number} columns together" if number > 1 else diagnosis.columns[0]
    strips = [Strip("records to suppress", [{name: points}], percent=True)]
    measure = diagnosis.measure
    title = f"What suppression alone costs, for each {measure}"
    return Plot("suppression", title, [""], measure, _ticks(points), strips, [name], _steps(name, points))


def _sets(measure: str, by_size: dict[int, list[int]], after: str) -> Plot:
    dots: list[tuple[float, float]] = []
    lines: dict[str, list[tuple[float, float]]] = {"largest": [], "median": [], "smallest": []}
    for size, ks in sorted(by_size.items()):
        few = sorted(ks)[:: -(-len(ks) // _DOTS)]
        # A fixed scatter keeps equal values apart and the same plot the same file.
        dots += [(size + 0.3 * ((place * 0.618) % 1 - 0.5), float(k)) for place, k in enumerate(few)]
        for name, of in (("largest", max), ("median", median), ("smallest", min)):
            lines[name].append((float(size), float(of(ks))))
    panel = {"a set": dots, **lines}
    ticks = {float(size): str(size) for size in sorted(by_size)}
    title = f"{measure} of sets, by their number of columns{after}"
    strips = [Strip(measure, [panel], percent=False)]
    return Plot("sets", title, [""], "columns", ticks, strips, [*lines, "a set"], {"a set": "dots"})


def _frontier(measure: str, by_size: dict[int, list[int]], of: str, after: str) -> Plot:
    """Show, for each k, the columns of the largest safe set and the share of sets that are safe."""
    ks = sorted({1, *[k for found in by_size.values() for k in found]})
    total = sum(map(len, by_size.values()))
    best = {size: max(found) for size, found in by_size.items()}
    every = sorted(k for found in by_size.values() for k in found)
    largest = [(float(k), float(max(size for size, most in best.items() if most >= k))) for k in ks]
    share = [(float(k), (total - bisect_left(every, k)) / total) for k in ks]
    strips = [
        Strip("columns of the\nlargest safe set", [{of: largest}], percent=False),
        Strip("share of sets\nthat are safe", [{of: share}], percent=True),
    ]
    title = f"The safe frontier{after}"
    return Plot("frontier", title, [""], measure, _ticks(largest), strips, [of], _steps(of, largest))


def _steps(name: str, points: Line) -> dict[str, str]:
    """Draw steps, for a point stands for all k after the one before; a single point is marked."""
    return {name: "steps"} if len(points) > 1 else {}


def _ticks(points: Line) -> dict[float, str]:
    """Return round values from the first to the last point."""
    most = points[-1][0]
    rounds: Sequence[int] = [step * 10**power for power in range(10) for step in (1, 2, 5)]
    found = [value for value in rounds if value <= most]
    if len(found) > 8:
        found = [value for value in found if str(value)[0] == "1"]
    return {float(value): f"{value:,}" for value in found}
