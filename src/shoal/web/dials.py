"""The dials of a negotiation: privacy, suppression and the highest level of each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.errors import ShoalError
from shoal.policies.shares import decimal_point, limit_in_records
from shoal.profile import Profile
from shoal.profiling.offer import Offer
from shoal.web import look
from shoal.web.refusals import field_of
from shoal.web.room import Room

_MOST_K, _MOST_LIMIT = 100, 250  # of the sliders: k, and thousandths of the records


class Dials:
    """A card of fields and sliders. What they say is the seat's; `moved` is called when one of them moves."""

    def __init__(
        self, room: Room, profile: Profile, moved: Callable[[], Any], again: Callable[[], Any]
    ) -> None:
        self.room, self.profile, self.moved, self.again = room, profile, moved, again
        self.heights = dict(zip(profile.lattice.columns, profile.lattice.heights, strict=True))
        self.said: dict[str, Any] = room.seat.dials
        if self.said.get("heights") != self.heights:
            self.reset()
        self.place = look.box("card", "section")
        self.draw()

    def reset(self) -> None:
        """Set the dials as the policy does."""
        wish = self.profile.wish
        limit = self.room.desk.wishes()["suppression_limit"]
        self.said.clear()
        self.said.update(
            heights=self.heights,
            measure="k" if wish.model == "k" else f"l:{wish.sensitive or self.profile.sensitive[0]}",
            least=str(wish.least),
            limit=f"{limit:.4g}" if isinstance(limit, float) else str(limit),
            most=self.heights | dict(wish.max_level),
            prefer="height",
            node=None,
        )

    def draw(self) -> None:
        """Show the dials as they stand."""
        self.place.clear()
        said = self.said
        with self.place:
            with look.box("line spread"):
                look.tag("h2", "What do you want?")
                look.button("As the policy", self.again, "plain small")
            if self.profile.sensitive:
                options = {"k": "records alike (k)"}
                options |= {f"l:{name}": f"values of {name} (l)" for name in self.profile.sensitive}
                look.choice("Privacy counts", options, said["measure"], self.take_measure)
            label = "At least k" if said["measure"] == "k" else "At least l"
            with look.box("knob"):
                self.least = look.entry(label, said["least"], self.take_least, inputmode="numeric", wait=0.05)
                least = look.whole(said["least"]) or 1
                self.least_slide = look.slide(
                    f"{label}, slider", min(least, _MOST_K), _MOST_K, self.slide_least, 1
                )
            with look.box("knob"):
                self.limit = look.entry(
                    "Suppressed, at most",
                    said["limit"],
                    self.take_limit,
                    wait=0.05,
                    placeholder="5% or 250",
                    title="A share such as 5%, or a number of records",
                )
                told = "Suppressed at most, slider"
                self.limit_slide = look.slide(told, self.thousandths(), _MOST_LIMIT, self.slide_limit)
            prefer = {"height": "the fewest steps up", "loss": "the least loss"}
            look.choice("Among what would do", prefer, said["prefer"], self.take_prefer)
            look.tag("h3", "Highest level of each column")
            with look.box("tight", style="gap: 6px"):
                for name, height in self.heights.items():
                    self.level(name, height)

    def level(self, name: str, height: int) -> None:
        """Show the dial of a column's highest level."""
        with look.box("dial"):
            look.tag("span", name)
            text = look.tag("span", self.example(name, self.said["most"][name]), "value")

            def take(level: int) -> Any:
                self.said["most"] = self.said["most"] | {name: level}
                text.set_text(self.example(name, level))
                return self.moved()

            look.slide(f"Highest level of {name}", self.said["most"][name], height, take)

    def example(self, name: str, level: int) -> str:
        """Say a level with one of its labels."""
        height = self.heights[name]
        problem = self.profile.problem
        if problem is None:
            return f"{level} of {height}"
        labels = problem.hierarchies[self.profile.lattice.columns.index(name)].labels[level]
        return f"{level} of {height}: {labels[len(labels) // 2]}"

    def thousandths(self) -> int:
        """Return the limit where the slider shows it."""
        text = decimal_point(str(self.said["limit"]).strip())
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text) / self.profile.records
        except ValueError:
            return 0
        return max(0, min(_MOST_LIMIT, round(share * 1000)))

    def take_measure(self, measure: str) -> Any:
        """Count k or the l of a column."""
        self.said["measure"] = measure
        self.draw()
        return self.moved()

    def take_least(self, text: str) -> Any:
        """Take k or l as it is typed."""
        self.said["least"] = text.strip()
        least = look.whole(text)
        if least:
            look.put(self.least_slide, min(least, _MOST_K))
        return self.moved()

    def slide_least(self, value: int) -> Any:
        """Take k or l from the slider."""
        self.said["least"] = str(value)
        look.put(self.least[0], str(value))
        return self.moved()

    def take_limit(self, text: str) -> Any:
        """Take the limit as it is typed."""
        self.said["limit"] = text.strip()
        look.put(self.limit_slide, self.thousandths())
        return self.moved()

    def slide_limit(self, value: int) -> Any:
        """Take the limit from the slider."""
        self.said["limit"] = f"{value / 10:g}%"
        look.put(self.limit[0], self.said["limit"])
        return self.moved()

    def take_prefer(self, prefer: str) -> Any:
        """Prefer the fewest steps or the least loss."""
        self.said["prefer"] = prefer
        return self.moved()

    def move(self, profile: Profile, offer: Offer, node: dict[str, int]) -> None:
        """Let the dials say what an offer does; levels go up to it, and none goes down."""
        most = {name: max(level, node[name]) for name, level in self.said["most"].items()}
        self.said.update(least=str(offer.least), limit=str(offer.share or offer.limit), most=most, node=node)
        self.profile = profile
        self.draw()

    def wishes(self) -> dict[str, Any] | None:
        """Return what the dials ask for; what makes no sense is said beside each dial."""
        said, wrong = self.said, False
        least, counted = look.whole(said["least"]), look.whole(said["limit"])
        limit = said["limit"] if counted is None else counted
        if not least:
            told = f"{said['measure'][:1]} must be a whole number of at least 1."
            look.fault(self.least[1], told, self.least[0])
            wrong = True
        try:
            limit_in_records(limit, self.profile.records)
        except ShoalError as error:
            look.fault(self.limit[1], str(error), self.limit[0])
            wrong = True
        if wrong:
            return None
        asked = {"suppression_limit": limit, "max_level": said["most"], "prefer": said["prefer"]}
        if said["measure"] == "k":
            return asked | {"k": least}
        return asked | {"l": least, "sensitive": said["measure"][2:]}

    def calm(self) -> None:
        """Take away what was said to be wrong."""
        look.fault(self.least[1], None, self.least[0])
        look.fault(self.limit[1], None, self.limit[0])

    def blame(self, error: ShoalError) -> bool:
        """Put an error beside its dial; tell whether it belongs to one."""
        about = field_of(error) or ("suppression_limit" if "limit" in str(error).lower() else "")
        place = {"k": self.least, "l": self.least, "suppression_limit": self.limit}.get(about)
        if place is not None:
            look.fault(place[1], str(error), place[0])
        return place is not None
