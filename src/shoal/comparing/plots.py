"""What the plots of a comparison show: loss, nodes, work beside ola's and time, for each metric."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shoal.comparing.row import Row
from shoal.plots import Plot, Strip

Value = Callable[[Row], float | None]


def comparison_plots(rows: Sequence[Row]) -> list[Plot]:
    """Return the plots of a comparison; of searches that found nothing they say so."""
    order = list(dict.fromkeys(row.algorithm for row in rows))
    plots = []
    for metric in dict.fromkeys(row.metric for row in rows):
        of_metric = [row for row in rows if row.metric == metric]
        found = [row for row in of_metric if row.loss is not None]
        place = _Place.of(of_metric)
        prefix = re.sub(r"[^a-z0-9]+", "-", metric.lower())
        for name, title, quantities in _quantities(found):
            strips = [place.strip(found, *quantity, percent=name != "seconds") for quantity in quantities]
            strips = [strip for strip in strips if any(strip.panels)]
            if strips:
                told = (f"{prefix}-{name}", f"{title}: {metric}", place.headings, place.across, place.ticks)
                notes = place.notes(of_metric)
                plots.append(Plot(*told, strips, order, notes=notes, bars=place.alone))
    return plots


def loss_and_time(rows: Sequence[Row]) -> list[Plot]:
    """Return one plot for each metric: what each search lost, and how long it took."""
    found: list[Plot] = []
    for plot in comparison_plots(rows):
        if plot.name.endswith("-loss"):
            found.append(replace(plot, title=plot.title.replace("Information lost", "Loss and time")))
        elif plot.name.endswith("-seconds"):
            metric = plot.name.removesuffix("-seconds")
            if found and found[-1].name == f"{metric}-loss":
                found[-1] = replace(found[-1], strips=[*found[-1].strips, *plot.strips])
            else:  # no optimum is known
                found.append(plot)
    return found


def _quantities(rows: Sequence[Row]) -> Iterator[tuple[str, str, list[tuple[str, Value]]]]:
    """Yield a name, a title and, for each strip, its label and its value of a row."""
    ola = {(row.limit_asked, row.k): row for row in rows if row.algorithm == "ola"}

    def of_lattice(name: str) -> Value:
        return lambda row: _ratio(getattr(row, name), row.lattice_size)

    def of_ola(name: str) -> Value:
        return lambda row: _ratio(getattr(row, name), getattr(ola.get((row.limit_asked, row.k)), name, None))

    yield "loss", "Information lost", [("loss\n(optimum = 100%)", lambda row: row.relative_loss)]
    looked = [("nodes evaluated", of_lattice("nodes_evaluated")), ("candidates", of_lattice("candidates"))]
    yield "nodes", "Nodes of the lattice", [(f"{label}\n(lattice = 100%)", value) for label, value in looked]
    if ola:
        cost = [("node score", of_ola("node_score")), ("nodes compared", of_ola("nodes_compared"))]
        yield "cost", "Work beside ola's", [(f"{label}\n(ola = 100%)", value) for label, value in cost]
    yield "seconds", "Time of a search", [("seconds", lambda row: row.seconds)]


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


@dataclass(frozen=True)
class _Place:
    """Where a row goes: k across and a panel per limit, or the limits across where there is one k."""

    limits: list[tuple[str, str]]  # with their kinds
    ks: list[int | None]  # for which something was found
    alone: bool  # there is one limit and one k

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Place:
        limits = dict.fromkeys(row.limit_asked for row in sorted(rows, key=lambda row: row.limit_records))
        found = [row for row in rows if row.loss is not None]
        ks = sorted({row.k for row in found}, key=lambda k: k or 0)
        at = {(row.limit_asked, row.k) for row in found}
        return cls([limit for limit, _ in at] if len(at) == 1 else list(limits), ks, len(at) == 1)

    @property
    def by_k(self) -> bool:
        return len(self.ks) > 1

    @property
    def headings(self) -> list[str]:
        if self.by_k:
            return [f"limit {limit}" for _, limit in self.limits]
        limit = f"limit {self.limits[0][1]}" if self.alone else ""
        return [", ".join(filter(None, ["" if k is None else f"k = {k}", limit])) for k in self.ks]

    @property
    def across(self) -> str:
        return "k" if self.by_k else "suppression limit"

    @property
    def ticks(self) -> dict[float, str]:
        if self.by_k:
            return {float(k or 0): str(k) for k in self.ks}
        return {float(place): limit for place, (_, limit) in enumerate(self.limits)}

    def panel(self, row: Row) -> int:
        return self.limits.index(row.limit_asked) if self.by_k else 0

    def strip(self, rows: Sequence[Row], label: str, value: Value, *, percent: bool) -> Strip:
        """Sort rows into panels and lines."""
        panels: list[dict[str, list[tuple[float, float]]]] = [{} for _ in self.headings]
        for row in sorted(rows, key=lambda row: (row.limit_records, row.k or 0)):
            up = value(row)
            at = (row.k or 0) if self.by_k else self.limits.index(row.limit_asked)
            if up is not None:
                panels[self.panel(row)].setdefault(row.algorithm, []).append((at, up))
        return Strip(label, panels, percent)

    def notes(self, rows: Sequence[Row]) -> list[str]:
        """Say, for each panel, which searches have nothing there, and why."""
        here: list[dict[str, list[Row]]] = [{} for _ in self.headings]
        for row in rows:
            if row.limit_asked in self.limits and row.k in self.ks:
                here[self.panel(row)].setdefault(row.algorithm, []).append(row)
        return [_note(searches) for searches in here]


def _note(searches: Mapping[str, Sequence[Row]]) -> str:
    """Name the searches that found nothing at all, by what stood in the way."""
    names: dict[str, list[str]] = {}
    for name, rows in searches.items():
        if all(row.note for row in rows):
            names.setdefault(str(rows[0].note).partition(":")[0], []).append(name)
    return "\n".join(
        f"{'all' if len(found) == len(searches) > 1 else ', '.join(found)} {why} here"
        for why, found in names.items()
    )
