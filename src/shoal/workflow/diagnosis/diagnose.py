"""Diagnose a table: count its combinations once, and answer questions about the k of its columns."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from shoal.columns.header import check_asked, check_header
from shoal.core.contracts import Engine
from shoal.core.counts.diversity import Diversity, DiversityKind
from shoal.core.counts.subsets import Source
from shoal.core.progress import Progress
from shoal.document.document import Figure, Line, Strip, round_ticks
from shoal.errors import OutOfTime, UsageError
from shoal.policy.limits import check_whole, limit_in_records
from shoal.wording import Change, plural
from shoal.workflow.diagnosis.diagnosis import Diagnosis
from shoal.workflow.diagnosis.questions import MOST_SETS
from shoal.workflow.session import AUTO, Session, session

if TYPE_CHECKING:
    from shoal.workflow.diagnosis.diagnosis import Diagnosis, LimitValue


_DOTS = 300  # maximum number of sets of columns drawn for each size
_SETS = 20_000  # maximum number of sets counted for a plot if max_size is not given
_COUNTED = 2_047  # all sets of eleven columns; if there are more, questions 3 and 7 are not drawn


def diagnosis_plots(
    diagnosis: Diagnosis,
    suppression_limit: LimitValue = 0,
    max_size: int | None = None,
    seconds: float | None = None,
) -> tuple[list[Figure], str]:
    """Return the plots of a diagnosis, and a text that says which sets they do not show."""
    number = len(diagnosis.columns)
    size = min(max_size or _size(diagnosis), number)
    table = diagnosis.anonymity_of_sets(suppression_limit, size, seconds=seconds)
    by_size: dict[int, list[float]] = defaultdict(list)
    for columns, k in table.items():
        by_size[len(columns)].append(k)
    limit = limit_in_records(suppression_limit, diagnosis.records)
    after = f", at most {plural(limit, 'record')} suppressed" if limit else ""
    total = diagnosis.number_of_sets(size)
    bounded = f"sets of at most {plural(size, 'column')}" if size < number else ""
    stopped = "" if table.complete else f"stopped: {len(table):,} of {total:,} sets"
    missing = ", ".join(filter(None, (bounded, stopped)))
    if not by_size:
        return [_curve(diagnosis)], f"{missing}, so that only what suppression costs is drawn"
    sets = f"{plural(len(table), 'set')} of {plural(number, 'column')}" + (f" ({missing})" if missing else "")
    after += f"\n{missing}" if missing else ""
    plots = [
        _curve(diagnosis),
        _sets(diagnosis.measure, by_size, after),
        _frontier(diagnosis.measure, by_size, sets, after),
        *([] if bounded else _counts(diagnosis, limit, seconds)),
    ]
    return plots, missing


def _size(diagnosis: Diagnosis) -> int:
    columns = len(diagnosis.columns)
    if diagnosis.number_of_sets() <= MOST_SETS:
        return columns
    fitting = [size for size in range(1, columns + 1) if diagnosis.number_of_sets(size) <= _SETS]
    return max(fitting, default=1)


def _curve(diagnosis: Diagnosis) -> Figure:
    costs = diagnosis.suppression_by_k()
    points = [(float(cost.k), cost.suppressed / diagnosis.records) for cost in costs]
    if points[0][0] > 1:  # a k below the smallest class suppresses nothing
        points.insert(0, (1.0, 0.0))
    if len(points) == 1:  # a k above the largest class suppresses every record
        points.append((points[0][0] + 1, 1.0))
    number = len(diagnosis.columns)
    name = f"{number} columns together" if number > 1 else diagnosis.columns[0]
    strips = [Strip("records to suppress", [{name: points}], percent=True)]
    measure = diagnosis.measure
    title = f"What suppression alone costs, for each {measure}"
    return Figure(
        "suppression", title, [""], measure, round_ticks(points[-1][0]), strips, [name], _steps(name, points)
    )


def _sets(measure: str, by_size: dict[int, list[float]], after: str) -> Figure:
    dots: list[tuple[float, float]] = []
    lines: dict[str, list[tuple[float, float]]] = {"largest": [], "median": [], "smallest": []}
    for size, ks in sorted(by_size.items()):
        drawn_ks = sorted(ks)[:: -(-len(ks) // _DOTS)]
        # The jitter separates equal values. It is not random, so that a plot always gives the same file.
        dots += [(size + 0.3 * ((index * 0.618) % 1 - 0.5), float(k)) for index, k in enumerate(drawn_ks)]
        for name, summarize in (("largest", max), ("median", median), ("smallest", min)):
            lines[name].append((float(size), float(summarize(ks))))
    panel = {"a set": dots, **lines}
    ticks = {float(size): str(size) for size in sorted(by_size)}
    title = f"{measure} of sets, by their number of columns{after}"
    strips = [Strip(measure, [panel], percent=False)]
    return Figure("sets", title, [""], "columns", ticks, strips, [*lines, "a set"], {"a set": "dots"})


def _frontier(measure: str, by_size: dict[int, list[float]], of: str, after: str) -> Figure:
    """Draw, for each k, the size of the largest safe set and the share of safe sets."""
    ks = sorted({1, *[k for values in by_size.values() for k in values]})
    total = sum(map(len, by_size.values()))
    best = {size: max(values) for size, values in by_size.items()}
    all_k = sorted(k for values in by_size.values() for k in values)
    largest = [(float(k), float(max(size for size, most in best.items() if most >= k))) for k in ks]
    share = [(float(k), (total - bisect_left(all_k, k)) / total) for k in ks]
    strips = [
        Strip("columns of the\nlargest safe set", [{of: largest}], percent=False),
        Strip("share of sets\nthat are safe", [{of: share}], percent=True),
    ]
    title = f"The safe frontier{after}"
    return Figure(
        "frontier", title, [""], measure, round_ticks(largest[-1][0]), strips, [of], _steps(of, largest)
    )


def _counts(diagnosis: Diagnosis, limit: int, seconds: float | None) -> list[Figure]:
    """Draw how many sets questions 3 and 7 count for each k; nothing if it takes too many sets or seconds."""
    total, measure = diagnosis.number_of_sets(), diagnosis.measure
    if total > _COUNTED:
        return []
    ks = [int(k) for k in round_ticks(diagnosis.records, 99) if k > 1]
    deadline = None if seconds is None else time.monotonic() + seconds
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, allowed in (("question 3", 0), *([("question 7", limit)] if limit else [])):
        for k in ks:
            left = None if deadline is None else max(deadline - time.monotonic(), 1e-6)
            sets = diagnosis.largest_sets(k, allowed, seconds=left)
            if not sets.complete:
                return []
            lines.setdefault(name, []).append((float(k), float(sets.counts)))
    if not lines:
        return []
    lines["every set"] = [(float(ks[0]), float(total)), (float(ks[-1]), float(total))]
    suppressed = f"\nquestion 7: at most {plural(limit, 'record')} suppressed" if limit else ""
    title = f"Sets that are counted for each {measure}, of {total:,}{suppressed}"
    ticks = {float(k): f"{k:,}" for k in ks}
    strips = [Strip("sets counted", [lines], percent=False)]
    styles = {"every set": "steps"} if len(ks) > 1 else {}
    return [Figure("counts", title, [""], measure, ticks, strips, list(lines), styles)]


def _steps(name: str, points: Line) -> dict[str, str]:
    """Draw steps, as a point holds for each k above the previous point; a single point gets a marker."""
    return {name: "steps"} if len(points) > 1 else {}


ColumnChoice = Sequence[str] | Callable[[Sequence[str]], Sequence[str] | None] | None

_TEXT = (".csv", ".csv.gz", ".tsv", ".txt")  # the first line may be a record


def diagnose(
    table: Any,
    columns: ColumnChoice = None,
    *,
    sensitive: str | None = None,
    diversity: str = "distinct",
    c: float | None = None,
    l: float | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    seconds: float | None = None,
) -> Diagnosis:
    """Count the combinations of some columns (default: all), and return an object that answers questions.

    `columns` are names, or a function that selects some of the table's columns.

    With a sensitive column, questions are about l instead of k. `diversity` is "distinct", "entropy" or
    "recursive", which needs a `c` for (c,l)-diversity. If `l` is given, questions are about k, and each class
    must also reach this l.
    OutOfTime is raised if counting takes more than `seconds`.
    """
    kind, least = check_diversity(sensitive, diversity, c, l)
    s = session(table, engine, memory_limit, progress)  # left open: later questions read the table again
    with _time_limit(s.engine, seconds):
        counted = _diagnosis(s, columns, sensitive)
    source = replace(counted.source, diversity=kind, least_l=least)
    return replace(counted, source=source, l=None if l is None else kind.value(least))


_STEPS = 10_000  # steps per unit of an entropy l


def check_diversity(
    sensitive: str | None, diversity: str = "distinct", c: float | None = None, l: float | None = None
) -> tuple[Diversity, int]:
    """Return the kind of l, and the l required in addition to k, in steps; 0 if only k or only l is used."""
    if diversity == "recursive" and c is None:
        advice = [Change("c", action="Give {}")]
        raise UsageError("Recursive (c,l)-diversity needs a c.", field="c", advice=advice)
    steps = _STEPS if diversity == "entropy" else 1
    kind = Diversity(cast(DiversityKind, diversity), 0.0 if c is None else c, steps)
    least = 0
    if l is not None:
        least = kind.in_steps(l if diversity == "entropy" else check_whole("l", l))
    if sensitive is None and (l is not None or diversity != "distinct"):
        advice = [Change("sensitive", action="Name one with {}")]
        raise UsageError("l is about a sensitive column.", field="sensitive", advice=advice)
    return kind, least


def _diagnosis(s: Session, columns: ColumnChoice, sensitive: str | None) -> Diagnosis:
    columns = columns(s.columns) if callable(columns) else columns
    if isinstance(s.source, str | Path) and str(s.source).lower().endswith(_TEXT):
        check_header(s.columns)
    chosen = _chosen(columns, sensitive, s.columns)
    s.progress("count", 0, None)
    counts, domains = s.count([*chosen, *([sensitive] if sensitive else [])])
    source = Source(counts, tuple(range(len(chosen))), sensitive=sensitive is not None)
    return Diagnosis(
        columns=tuple(chosen),
        sensitive=sensitive,
        records=counts.records,
        combinations=source.combinations,
        source=source,
        domains=domains,
        opened=s.table,
        origin=s.source,
        progress=s.progress,
    )


@contextmanager
def _time_limit(engine: Engine, seconds: float | None) -> Iterator[None]:
    """Interrupt all queries once `seconds` have passed."""
    if seconds is None:
        yield
        return
    done, expired = threading.Event(), threading.Event()

    def watch() -> None:
        if not done.wait(min(seconds, threading.TIMEOUT_MAX)):
            expired.set()
            while not done.wait(0.05):  # a single interrupt could arrive between two queries
                engine.interrupt()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    except KeyboardInterrupt:
        if not expired.is_set():
            raise
        raise OutOfTime(
            f"The table could not be counted in {seconds:g} seconds, so no question can be answered.",
            advice=[
                Change("seconds", action="Give more {}"),
                Change("columns", action="Name fewer columns with {}"),
            ],
        ) from None
    finally:
        done.set()
        watching.join()


def _chosen(columns: Sequence[str] | None, sensitive: str | None, available: Sequence[str]) -> list[str]:
    """Return the columns to count: the named columns, or all except the sensitive column."""
    if sensitive is not None:
        check_asked(str(sensitive), available, kind="sensitive column", beside=columns)
    if columns is None:
        columns = [name for name in available if name != sensitive]
        if not columns:
            raise UsageError(
                "The table has no column but the sensitive one. Leave sensitive out, or give another table."
            )
    chosen = check_asked(columns, available, beside=sensitive)
    if sensitive in chosen:
        raise UsageError(
            f"Column {sensitive!r} is the sensitive one and cannot be among the columns. Leave it out."
        )
    return chosen
