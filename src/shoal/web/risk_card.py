"""The card of risk: what regulators ask about, before and after."""

from __future__ import annotations

from typing import Any

from shoal.assessing.rows import risk_rows
from shoal.risk import Risk
from shoal.web import look
from shoal.web.room import Room, Worker

_SETS = 8


class RiskCard:
    """A threshold and a population to say, and the risks against them."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.said: dict[str, str] = room.seat.said.setdefault("risk", {"threshold": "", "population": ""})
        about = "Prosecutor, journalist and marketer risk, and what makes records unique."
        with look.card("In the terms of regulators", about):
            with look.box("line top"):
                with look.box("", style="width: 170px"):
                    self.threshold = look.entry(
                        "Risk too high above",
                        self.said["threshold"],
                        lambda text: self.said.update(threshold=text),
                        placeholder="0.2 or 1/11",
                    )
                with look.box("", style="width: 170px"):
                    self.population = look.entry(
                        "Persons in the population",
                        self.said["population"],
                        lambda text: self.said.update(population=text),
                        inputmode="numeric",
                        placeholder="not known",
                    )
                with look.box("line", style="padding-top: 21px"):
                    look.button("Assess", self.start)
            self.worker = Worker(room, "risk", lambda _: room.refresh(), self.failed)
            if room.desk.risk is not None:
                show_risk(room.desk.risk)

    def start(self) -> None:
        """Assess with what the fields say."""
        for field, fault in (self.threshold, self.population):
            look.fault(fault, None, field)
        wishes: dict[str, Any] = {"threshold": self.said["threshold"].strip() or None}
        persons = self.said["population"].strip().replace(",", "")
        if persons and not persons.isdecimal():
            look.fault(self.population[1], "A whole number, such as 250000.", self.population[0])
            return
        wishes["population_size"] = int(persons) if persons else None
        self.worker.start(lambda tell: self.room.desk.assess(progress=tell, **wishes))

    def failed(self, job: Any) -> bool:
        """Put an error beside its field."""
        place = {"threshold": self.threshold, "population_size": self.population}.get(job.field or "")
        if place is None:
            return False
        look.fault(place[1], job.error, place[0])
        return True


def show_risk(found: Risk) -> None:
    """Show the measures, the sets of columns that make records unique, and what looks like an identifier."""
    head = ["Measure", "Before", *(["After"] if found.after else [])]
    special = found.before.special
    with look.box("split halves" if special else "", style="align-items: start"):
        look.table(head, risk_rows(found), right=(1, 2))
        if special:
            with look.box("stack"):
                look.tag("h3", "What makes records unique")
                rows = [(", ".join(columns), f"{records:,}") for columns, records in special.sets[:_SETS]]
                look.table(["Columns, none of which can be left out", "records"], rows, right=(1,))
                left = len(special.sets) - _SETS
                if left > 0:
                    look.tag("p", f"and {left:,} more sets", "muted small")
    if found.identifiers:
        told = "; ".join(f"{name} {one.mark}" for name, one in found.identifiers.items())
        look.tag("p", f"Looks like an identifier of HIPAA's Safe Harbor: {told}.", "muted small")
