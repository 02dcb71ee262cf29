"""Step 2, diagnose: the risk as it is, the smallest unsafe sets, what each k costs, and what is safe."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from shoal.diagnosing.findings import SetFinding, Sets
from shoal.errors import ShoalError, so_many
from shoal.policies.shares import limit_in_records
from shoal.reporting.words import percent
from shoal.web import charts, look
from shoal.web.diagnosed import Findings
from shoal.web.risk_card import RiskCard
from shoal.web.room import Room, Worker

_MOST_SETS = 12


def show(room: Room) -> None:
    """Show the step."""
    _Diagnose(room)


class _Diagnose:
    """The questions on top, the answers below."""

    def __init__(self, room: Room) -> None:
        self.room = room
        said = room.seat.said.setdefault("diagnose", {"k": "5", "limit": "0", "sensitive": ""})
        sensitive = room.desk.of_role("sensitive")
        if said["sensitive"] not in sensitive:
            said["sensitive"] = ""
        with look.card("How exposed are the records as they are?"):
            with look.box("line top"):
                with look.box("", style="width: 110px"):
                    self.k = look.entry(
                        "k or l", said["k"], lambda text: said.update(k=text), inputmode="numeric"
                    )
                with look.box("", style="width: 170px"):
                    self.limit = look.entry(
                        "Suppression limit",
                        said["limit"],
                        lambda text: said.update(limit=text),
                        placeholder="0 or 5%",
                    )
                if sensitive:
                    with look.box("", style="width: 220px"):
                        options = {"": "records alike (k)"} | {
                            name: f"values of {name} (l)" for name in sensitive
                        }
                        look.choice(
                            "Count", options, said["sensitive"], lambda one: said.update(sensitive=one)
                        )
                with look.box("line grow spread", style="padding-top: 21px"):
                    look.button("Diagnose", self.start, "primary")
                    look.button("Negotiate \u2192", lambda: room.go("negotiate"))
            self.worker = Worker(room, "diagnose", lambda _: room.refresh(), self.failed)
        found = room.desk.findings
        if found is not None:
            self.answers(found)
        elif self.worker.job is None:
            self.start()

    def start(self) -> None:
        """Diagnose with what the fields say."""
        said = self.room.seat.said["diagnose"]
        look.fault(self.k[1], None, self.k[0])
        look.fault(self.limit[1], None, self.limit[0])
        k, text = look.whole(said["k"]), said["limit"].strip() or "0"
        counted = look.whole(text)
        limit: Any = text if counted is None else counted
        if not k:
            look.fault(self.k[1], "k must be a whole number of at least 1.", self.k[0])
        try:
            limit_in_records(limit, self.room.desk.records)
        except ShoalError as error:
            look.fault(self.limit[1], str(error), self.limit[0])
            return
        if not k:
            return
        sensitive = said["sensitive"] or None
        self.worker.start(lambda tell: self.room.desk.diagnose(k, limit, sensitive=sensitive, progress=tell))

    def failed(self, job: Any) -> bool:
        """Put an error beside its field."""
        place = {"k": self.k, "l": self.k, "suppression_limit": self.limit}.get(job.field or "")
        if place is None:
            return False
        look.fault(place[1], job.error, place[0])
        return True

    def answers(self, found: Findings) -> None:
        """Show what was found."""
        risk, name = found.risk, found.measure
        alone = "unique records" if name == "k" else "records with one value only"
        with look.box("cards"):
            look.tile(str(risk.k), f"{name} that the table reaches", f"{found.k} was asked for")
            look.tile(f"{risk.unique:,}", alone, f"{percent(risk.unique / risk.records)} of {risk.records:,}")
            look.tile(percent(risk.highest), "highest risk", "of the most exposed record")
            look.tile(percent(risk.average), "average risk", so_many(risk.classes, "combination"))
            share = percent(found.suppressed / risk.records)
            look.tile(
                f"{found.suppressed:,}",
                f"records below {name} = {found.k}",
                f"{share}, {found.limit:,} allowed",
            )
        with look.box("split halves"):
            self.sets(
                "Smallest unsafe sets",
                f"Each breaks {name} = {found.k}; no part of it does. These are what to generalize.",
                found.unsafe,
                found,
            )
            self.curve(found)
        self.sets(
            "Safe frontier",
            f"The largest sets of columns that keep {name} = {found.k} as they are.",
            found.safe,
            found,
        )
        RiskCard(self.room)

    def sets(self, title: str, about: str, sets: Sets, found: Findings) -> None:
        """Show some sets, each of which can be drawn."""
        with look.card(title, about):
            if not sets.found:
                look.tag("p", "There is none.", "muted")
                return
            with look.box("scroll", style="max-height: 420px"):
                rows = [
                    (", ".join(one.columns), f"{one.k:,}", f"{one.suppressed:,}")
                    for one in sets.found[:_MOST_SETS]
                ]
                look.table(["Columns", f"reaches {found.measure}", "records below"], rows, right=(1, 2))
            left = len(sets.found) - _MOST_SETS
            if left > 0:
                look.tag("p", f"and {left:,} more", "muted small")
            if not sets.complete:
                look.tag("p", "The time was up: there may be others.", "warn small")

    def curve(self, found: Findings) -> None:
        """Draw what each k costs a chosen set."""
        with look.card(f"What each {found.measure} costs", "Records below it, if nothing is generalized."):
            lost = found.unsafe.whole.suppressed == found.risk.records  # then its curve says nothing
            usual = "0" if lost and found.unsafe.found else "all"
            chosen = self.room.seat.said["diagnose"].get("set", usual)
            sets = {"all": found.columns} | {
                str(place): one.columns
                for place, one in enumerate(
                    sorted((*found.unsafe.found, *found.safe.found), key=_exposed)[:60]
                )
            }
            chosen = chosen if chosen in sets else usual
            names = {
                key: "all quasi-identifiers" if key == "all" else ", ".join(one) for key, one in sets.items()
            }
            look.choice("Set of columns", names, chosen, lambda key: draw(key))
            chart = ui.echart({}).style("height: 280px")
            wrong = look.no_fault()

        def draw(key: str) -> None:
            self.room.seat.said["diagnose"]["set"] = key
            try:
                rows = self.room.desk.curve(sets[key])
            except ShoalError as error:
                look.fault(wrong, str(error))
                return
            chart.options.clear()
            chart.options.update(charts.curve(rows, found.k, self.room.dark))
            chart.update()

        draw(chosen)


def _exposed(finding: SetFinding) -> tuple[int, int]:
    return (-finding.suppressed, len(finding.columns))
