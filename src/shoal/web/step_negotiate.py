"""Step 3, negotiate: dials for privacy, suppression and levels, and at once what they cost."""

from __future__ import annotations

import asyncio

import anyio.to_thread

from shoal.errors import ShoalError
from shoal.negotiate import Negotiation
from shoal.profiling.offer import Offer
from shoal.web import look
from shoal.web.dials import Dials
from shoal.web.offers import Answer
from shoal.web.outlook import Outlook
from shoal.web.room import Room, Worker

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
            seconds = look.seconds(said["seconds"])
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


class _Negotiate:
    """The dials on the left, the answer and its views on the right."""

    def __init__(self, room: Room) -> None:
        self.room = room
        profile = room.desk.tabulated
        self.asked = 0
        with look.box("split dials-split"):
            self.dials = Dials(room, profile, self.changed, self.again)
            with look.box("stack"):
                self.shown = Answer(room, profile.records, self.dials.said, self.take)
                self.outlook = Outlook(room, self.choose_node)
        self.ask()

    def again(self) -> None:
        """Set the dials back to the policy."""
        self.dials.reset()
        self.dials.draw()
        self.ask()

    async def changed(self) -> None:
        """Answer once the dials rest, and draw the rest a little later."""
        self.asked += 1
        mine = self.asked
        await asyncio.sleep(_PAUSE)
        if mine != self.asked:
            return
        self.dials.said["node"] = None
        answer = self.ask(draw=False)
        await asyncio.sleep(_LATER)
        if mine == self.asked and answer is not None:
            await self.outlook.draw(answer, None)

    def ask(self, *, draw: bool = True) -> Negotiation | None:
        """Ask for what the dials say and show the answer, or the error beside its dial."""
        self.dials.calm()
        asked = self.dials.wishes()
        if asked is None:
            self.shown.stale(True)
            return None
        try:
            answer = self.room.desk.negotiate(**asked)
        except ShoalError as error:
            self.shown.stale(True)
            if not self.dials.blame(error):
                self.shown.refuse(str(error))
            return None
        self.shown.draw(answer)
        self.shown.stale(False)
        if draw:
            self.outlook.later(answer, self.dials.said.get("node"))
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
        self.dials.move(desk.tabulated, offer, node)
        self.ask()
        self.room.refresh_nav()

    async def choose_node(self, node: dict[str, int]) -> None:
        """Take a node of the lattice for the release."""
        self.room.desk.choose_node(node)
        self.dials.said["node"] = node
        answer = self.room.desk.negotiation
        if answer is not None:
            self.shown.draw(answer)
            await self.outlook.draw(answer, node)
        self.room.refresh_nav()
