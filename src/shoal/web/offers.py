"""A negotiation's answer: yes and what it costs, or what would do instead, as cards to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nicegui.elements.mixins.text_element import TextElement

from shoal.errors import so_many
from shoal.negotiate import Negotiation
from shoal.profiling.offer import Offer
from shoal.reporting.words import percent
from shoal.web import look
from shoal.web.room import Room


class Answer:
    """The card that holds the answer."""

    def __init__(self, room: Room, records: int, dials: Mapping[str, Any], take: Callable[..., Any]) -> None:
        self.room, self.records, self.dials, self.take = room, records, dials, take
        self.takers: list[TextElement] = []
        self.refusal: TextElement | None = None
        self.place = look.box("card", "section", aria_live="polite", data_part="answer")

    def stale(self, yes: bool) -> None:
        """Let the answer look as old as it is and not be taken, while the dials ask for nothing sensible."""
        self.place.style("opacity: 0.45" if yes else "opacity: 1")
        for one in self.takers:
            one._props["disabled"] = yes
            one.update()

    def refuse(self, text: str) -> None:
        """Say why there is no answer, or why an offer cannot be taken."""
        if self.refusal is not None and not self.refusal.is_deleted:
            self.refusal.delete()
        with self.place:
            self.refusal = look.told(text, "bad")

    def draw(self, answer: Negotiation) -> None:
        """Show the exact answer, or the suggestions."""
        self.place.clear()
        self.takers = []
        with self.place:
            if answer.exact is not None:
                self.exact(answer.exact)
            else:
                self.suggestions(answer)
            if answer.besides:
                others = ", ".join(answer.besides)
                look.tag(
                    "p",
                    f"The release also has to satisfy {others}, which is not counted here.",
                    "muted small",
                )
            if answer.partial:
                look.tag(
                    "p", "Only the most promising choices were counted; another may do better.", "muted small"
                )

    def exact(self, offer: Offer) -> None:
        """Show the exact answer."""
        with look.box("line spread", style="flex-wrap: nowrap"):
            with look.box("tight"):
                look.tag(
                    "h2",
                    f"Yes: {so_many(offer.suppressed, 'record')} suppressed",
                    "good",
                    data_answer="exact",
                )
                look.tag(
                    "p",
                    f"{percent(offer.suppressed / self.records)} of {self.records:,}; "
                    f"{offer.limit:,} allowed. {offer.height} steps up in all.",
                    "muted small",
                )
            if self.room.desk.node == dict(offer.node):
                look.tag("span", "\u2713 taken for the release", "good")
            else:
                self.taker(offer, "primary nowrap")
        self.levels(offer)

    def levels(self, offer: Offer) -> None:
        """Show an offer's levels."""
        with look.box("line", style="gap: 6px"):
            for name, level in offer.node.items():
                raised = level > self.dials["most"].get(name, level)
                look.tag("span", f"{name} {level}", "chip on" if level else "chip").classes(
                    "bad" if raised else ""
                )

    def suggestions(self, answer: Negotiation) -> None:
        """Show what would do, as cards."""
        look.tag("h2", "Not all at once. One of these would do:", "warn", data_answer="none")
        with look.box("cards"):
            if answer.suppression is not None:
                offer = answer.suppression
                share = percent(offer.suppressed / self.records)
                self.card(
                    "Suppress more", f"{so_many(offer.suppressed, 'record')} ({share})", offer, "suppression"
                )
            if answer.levels is not None:
                raised = self.raised(answer.levels)
                self.card("Go higher", raised, answer.levels, "levels")
            if answer.privacy is not None:
                offer = answer.privacy
                self.card("Ask for less privacy", f"{offer.model} = {offer.least:,}", offer, "privacy")
            for offer in answer.columns[:3]:
                self.card(f"Only {offer.column} higher", self.raised(offer), offer, "column")
        if (
            answer.suppression is None
            and answer.levels is None
            and answer.privacy is None
            and not answer.columns
        ):
            look.tag("p", "No single change would do. Ask for less in several dials.", "muted")

    def raised(self, offer: Offer) -> str:
        """Say which levels an offer raises beyond the dials."""
        most = self.dials["most"]
        told = [f"{name} to {level}" for name, level in offer.node.items() if level > most.get(name, level)]
        return ", ".join(told) or "within the levels"

    def card(self, title: str, about: str, offer: Offer, kind: str) -> None:
        """Show one suggestion."""
        with look.box("offer", data_offer=kind):
            look.tag("h3", title)
            look.tag("p", about)
            look.tag("p", f"{offer.suppressed:,} suppressed, {offer.height} steps up", "muted small")
            self.taker(offer, "small")

    def taker(self, offer: Offer, classes: str) -> None:
        """Offer to take what is shown here, and nothing that may have been answered since."""
        self.takers.append(look.button("Take this", lambda: self.take(offer), classes))
