"""Step 4, compare: several algorithms on this table, by chosen metrics."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from shoal.catalogue import catalogue
from shoal.comparing.row import Row
from shoal.comparison import Comparison
from shoal.policy import named
from shoal.web import charts, look
from shoal.web.room import Room, Worker

_USUAL = ("all-minimal", "contour", "datafly", "incognito", "ola", "samarati")


def show(room: Room) -> None:
    """Show the step."""
    _Compare(room)


class _Compare:
    """What to compare on the left, how they did on the right."""

    def __init__(self, room: Room) -> None:
        self.room = room
        usual = {
            "algorithms": list(_USUAL),
            "metrics": [named(room.desk.policy().metric)[0]],
            "seconds": "20",
        }
        self.said: dict[str, Any] = room.seat.said.setdefault("compare", usual)
        known = catalogue()
        with look.box("split dials-split"):
            with look.box("card", "section"):
                with look.box("line spread", style="flex-wrap: nowrap"):
                    look.tag("h2", "Algorithms", "nowrap")
                    look.button("Compare", self.start, "primary")
                self.wrong = look.no_fault()
                with look.box("checks"):
                    for name, about in known["algorithms"].items():
                        look.check(
                            name, name in self.said["algorithms"], self.taker("algorithms", name), about
                        )
                look.tag("h3", "Loss by")
                with look.box("checks"):
                    for name, about in known["metrics"].items():
                        look.check(name, name in self.said["metrics"], self.taker("metrics", name), about)
                with look.box("", style="width: 180px"):
                    self.seconds = look.entry(
                        "Seconds for each, at most",
                        self.said["seconds"],
                        lambda text: self.said.update(seconds=text),
                    )
            with look.box("stack"):
                self.worker = Worker(room, "compare", lambda _: room.refresh(), self.failed)
                found = room.desk.comparison
                if found is not None:
                    self.answers(found)
                else:
                    with look.box("card empty"):
                        look.tag("p", "Choose algorithms and compare: loss, levels, time.", "muted")

    def taker(self, kind: str, name: str) -> Any:
        """Return what a checkbox does."""

        def take(on: bool) -> None:
            chosen = [one for one in self.said[kind] if one != name]
            self.said[kind] = [*chosen, name] if on else chosen

        return take

    def start(self) -> None:
        """Compare what is chosen."""
        look.fault(self.seconds[1], None, self.seconds[0])
        look.fault(self.wrong, None)
        seconds = look.seconds(self.said["seconds"])
        if not seconds:
            look.fault(self.seconds[1], "A number of seconds above 0, such as 20.", self.seconds[0])
            return
        algorithms, metrics = list(self.said["algorithms"]), list(self.said["metrics"])
        if not algorithms or not metrics:
            look.fault(self.wrong, "Choose at least one algorithm and one metric.")
            return

        def work(tell: Any) -> Any:
            desk = self.room.desk
            return desk.compare(algorithms=algorithms, metrics=metrics, seconds=seconds, progress=tell)

        self.worker.start(work)

    def failed(self, job: Any) -> bool:
        """Put an error beside its field."""
        if job.field not in ("algorithms", "metrics"):
            return False
        look.fault(self.wrong, job.error)
        return True

    def answers(self, found: Comparison) -> None:
        """Show the charts, then the table."""
        for metric in dict.fromkeys(row.metric for row in found.rows):
            rows = [row for row in found.rows if row.metric == metric]
            with look.card(f"Loss by {metric}"):
                drawn = sum(row.loss is not None for row in rows)
                if drawn:
                    ui.echart(charts.comparison(rows, metric, self.room.dark)).style(
                        f"height: {70 + 26 * drawn}px"
                    )
                look.table(
                    [
                        "Algorithm",
                        "Relative loss",
                        "Suppressed",
                        "Levels",
                        "Nodes counted",
                        "Time",
                        "Proven",
                    ],
                    [_cells(row) for row in rows],
                    right=(1, 2, 4, 5),
                    classes="fit small",
                )
                for row in rows:
                    if row.note:
                        look.tag("p", f"{row.algorithm}: {row.note}", "muted small")


def _cells(row: Row) -> tuple[str, ...]:
    levels = "-".join(map(str, row.levels.values())) if row.levels else "\u2013"
    return (
        row.algorithm,
        "\u2013" if row.relative_loss is None else f"{row.relative_loss:.3f}",
        "\u2013" if row.suppressed is None else f"{row.suppressed:,.0f}",
        levels,
        "\u2013" if row.nodes_evaluated is None else f"{row.nodes_evaluated:,.0f}",
        "\u2013" if row.seconds is None else f"{row.seconds * 1000:,.0f} ms",
        row.proven or "",
    )
