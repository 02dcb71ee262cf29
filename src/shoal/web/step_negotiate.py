"""Step 3, negotiate: dials for privacy, suppression and levels, and at once what they cost."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio.to_thread

from shoal.errors import ShoalError
from shoal.negotiate import Negotiation
from shoal.offer import Offer
from shoal.profile import Profile
from shoal.shares import limit_in_records
from shoal.web import look
from shoal.web.offers import Answer
from shoal.web.outlook import Outlook
from shoal.web.refusals import field_of
from shoal.web.room import Room, Worker

_MOST_K, _MOST_LIMIT = 100, 250  # of the sliders: k, and thousandths of the records
_PAUSE = 0.02  # seconds that a dial must rest before it is asked about
_LATER = 0.2  # and before all is drawn


def show(room: Room) -> None:
    """Show the step."""
    if room.desk.profile is not None:
        _Negotiate(room)
        return
    said = room.seat.said.setdefault("tabulate", {"seconds": ""})
    with look.card(
        "Every choice of levels at once",
        "It counts what each choice of levels would suppress. Then every request is answered at once.",
    ):
        worker: Worker

        def start() -> None:
            seconds = _seconds(said["seconds"])
            text = "A number of seconds above 0, such as 30, or nothing." if seconds == 0 else None
            look.fault(wrong, text, field)
            if text is None:
                worker.start(lambda tell: room.desk.tabulate(seconds=seconds, progress=tell))

        with look.box("line top"):
            with look.box("", style="width: 190px"):
                field, wrong = look.entry(
                    "Seconds at most",
                    said["seconds"],
                    lambda text: said.update(seconds=text),
                    placeholder="no limit",
                    title="With a limit only the most promising choices are counted",
                )
            with look.box("", style="padding-top: 21px"):
                look.button("Tabulate the lattice", start, "primary")
        worker = Worker(room, "profile", lambda _: room.refresh())
        if worker.job is None:
            start()


def _seconds(text: str) -> float | None:
    """Read a bound on time: None where there is none, 0 where it makes no sense."""
    try:
        found = float(text) if text.strip() else None
    except ValueError:
        return 0.0
    return found if found is None or 0 < found <= 86_400 else 0.0


class _Negotiate:
    """The dials on the left, the answer and its views on the right."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.profile: Profile = room.desk.tabulated
        self.heights = dict(zip(self.profile.lattice.columns, self.profile.lattice.heights, strict=True))
        self.dials: dict[str, Any] = room.seat.dials
        if self.dials.get("heights") != self.heights:
            self.reset()
        self.asked = 0
        with look.box("split dials-split"):
            self.left = look.box("card", "section")
            with look.box("stack"):
                self.shown = Answer(room, self.profile.records, self.dials, self.take)
                self.outlook = Outlook(room, self.choose_node)
        self.draw_dials()
        self.ask()

    def reset(self) -> None:
        """Set the dials as the policy does."""
        wish = self.profile.wish
        limit = self.room.desk.wishes()["suppression_limit"]
        self.dials.clear()
        self.dials.update(
            heights=self.heights,
            measure="k" if wish.model == "k" else f"l:{wish.sensitive or self.profile.sensitive[0]}",
            least=str(wish.least),
            limit=f"{limit:.4g}" if isinstance(limit, float) else str(limit),
            most=self.heights | dict(wish.max_level),
            prefer="height",
            node=None,
        )

    # The dials.

    def draw_dials(self) -> None:
        """Show the dials as they stand."""
        self.left.clear()
        dials = self.dials
        with self.left:
            with look.box("line spread"):
                look.tag("h2", "What do you want?")
                look.button("As the policy", self.again, "plain small")
            if self.profile.sensitive:
                options = {"k": "records alike (k)"}
                options |= {f"l:{name}": f"values of {name} (l)" for name in self.profile.sensitive}
                look.choice("Privacy counts", options, dials["measure"], self.take_measure)
            label = "At least k" if dials["measure"] == "k" else "At least l"
            with look.box("knob"):
                self.least = look.entry(
                    label, dials["least"], self.take_least, inputmode="numeric", wait=0.05
                )
                least = look.whole(dials["least"]) or 1
                self.least_slide = look.slide(
                    f"{label}, slider", min(least, _MOST_K), _MOST_K, self.slide_least, 1
                )
            with look.box("knob"):
                self.limit = look.entry(
                    "Suppressed, at most",
                    dials["limit"],
                    self.take_limit,
                    wait=0.05,
                    placeholder="5% or 250",
                    title="A share such as 5%, or a number of records",
                )
                told = "Suppressed at most, slider"
                self.limit_slide = look.slide(told, self.thousandths(), _MOST_LIMIT, self.slide_limit)
            prefer = {"height": "the fewest steps up", "loss": "the least loss"}
            look.choice("Among what would do", prefer, dials["prefer"], self.take_prefer)
            look.tag("h3", "Highest level of each column")
            with look.box("tight", style="gap: 6px"):
                for name, height in self.heights.items():
                    self.level(name, height)

    def level(self, name: str, height: int) -> None:
        """Show the dial of a column's highest level."""
        with look.box("dial"):
            look.tag("span", name)
            text = look.tag("span", self.example(name, self.dials["most"][name]), "value")

            def take(level: int) -> Any:
                self.dials["most"] = self.dials["most"] | {name: level}
                text.set_text(self.example(name, level))
                return self.changed()

            look.slide(f"Highest level of {name}", self.dials["most"][name], height, take)

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
        text = str(self.dials["limit"]).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text) / self.profile.records
        except ValueError:
            return 0
        return max(0, min(_MOST_LIMIT, round(share * 1000)))

    def again(self) -> None:
        """Set the dials back."""
        self.reset()
        self.draw_dials()
        self.ask()

    def take_measure(self, measure: str) -> Any:
        """Count k or the l of a column."""
        self.dials["measure"] = measure
        self.draw_dials()
        return self.changed()

    def take_least(self, text: str) -> Any:
        """Take k or l as it is typed."""
        self.dials["least"] = text.strip()
        least = look.whole(text)
        if least:
            look.put(self.least_slide, min(least, _MOST_K))
        return self.changed()

    def slide_least(self, value: int) -> Any:
        """Take k or l from the slider."""
        self.dials["least"] = str(value)
        look.put(self.least[0], str(value))
        return self.changed()

    def take_limit(self, text: str) -> Any:
        """Take the limit as it is typed."""
        self.dials["limit"] = text.strip()
        look.put(self.limit_slide, self.thousandths())
        return self.changed()

    def slide_limit(self, value: int) -> Any:
        """Take the limit from the slider."""
        self.dials["limit"] = f"{value / 10:g}%"
        look.put(self.limit[0], self.dials["limit"])
        return self.changed()

    def take_prefer(self, prefer: str) -> Any:
        """Prefer the fewest steps or the least loss."""
        self.dials["prefer"] = prefer
        return self.changed()

    async def changed(self) -> None:
        """Answer once the dials rest, and draw the rest a little later."""
        self.asked += 1
        mine = self.asked
        await asyncio.sleep(_PAUSE)
        if mine != self.asked:
            return
        self.dials["node"] = None
        answer = self.ask(draw=False)
        await asyncio.sleep(_LATER)
        if mine == self.asked and answer is not None:
            await self.outlook.draw(answer, None)

    # The answer.

    def wishes(self) -> dict[str, Any] | None:
        """Return what the dials ask for; what makes no sense is said beside each dial."""
        dials, wrong = self.dials, False
        least, counted = look.whole(dials["least"]), look.whole(dials["limit"])
        limit = dials["limit"] if counted is None else counted
        if not least:
            told = f"{dials['measure'][:1]} must be a whole number of at least 1."
            look.fault(self.least[1], told, self.least[0])
            wrong = True
        try:
            limit_in_records(limit, self.profile.records)
        except ShoalError as error:
            look.fault(self.limit[1], str(error), self.limit[0])
            wrong = True
        if wrong:
            return None
        asked = {"suppression_limit": limit, "max_level": dials["most"], "prefer": dials["prefer"]}
        if dials["measure"] == "k":
            return asked | {"k": least}
        return asked | {"l": least, "sensitive": dials["measure"][2:]}

    def ask(self, *, draw: bool = True) -> Negotiation | None:
        """Ask for what the dials say and show the answer, or the error beside its dial."""
        look.fault(self.least[1], None, self.least[0])
        look.fault(self.limit[1], None, self.limit[0])
        asked = self.wishes()
        if asked is None:
            self.shown.stale(True)
            return None
        try:
            answer = self.room.desk.negotiate(**asked)
        except ShoalError as error:
            self.shown.stale(True)
            about = field_of(error) or ("suppression_limit" if "limit" in str(error).lower() else "")
            place = {"k": self.least, "l": self.least, "suppression_limit": self.limit}.get(about)
            if place is None:
                self.shown.refuse(str(error))
            else:
                look.fault(place[1], str(error), place[0])
            return None
        self.shown.draw(answer)
        self.shown.stale(False)
        if draw:
            self.outlook.later(answer, self.dials.get("node"))
        return answer

    async def take(self, offer: Offer) -> None:
        """Let an offer stand: the dials move to it and its node is fixed for the release."""
        desk = self.room.desk
        try:
            node = await anyio.to_thread.run_sync(desk.take, offer)
        except ShoalError as error:
            self.shown.refuse(str(error))
            return
        self.asked += 1  # what the dials said meanwhile is no longer asked for
        most = {name: max(level, node[name]) for name, level in self.dials["most"].items()}
        self.dials.update(least=str(offer.least), limit=str(offer.limit), most=most, node=node)
        self.profile = desk.tabulated
        self.draw_dials()
        self.ask()
        self.room.refresh_nav()

    async def choose_node(self, node: dict[str, int]) -> None:
        """Take a node of the lattice for the release."""
        self.room.desk.choose_node(node)
        self.dials["node"] = node
        answer = self.room.desk.negotiation
        if answer is not None:
            self.shown.draw(answer)
            await self.outlook.draw(answer, node)
        self.room.refresh_nav()
