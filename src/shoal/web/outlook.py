"""The outlook of a negotiation: the lattice, suppression by height, and what one node does to the columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio.to_thread
from nicegui import background_tasks, ui
from nicegui.element import Element

from shoal.errors import ShoalError, so_many
from shoal.negotiate import Negotiation
from shoal.reporting.words import percent
from shoal.web import charts, lattice_chart, look, views
from shoal.web.room import Room

Node = dict[str, int]


class Levels:
    """A node named level by level: what a click on the lattice does, for the keyboard."""

    def __init__(self, room: Room, choose: Callable[[Node], Any]) -> None:
        self.room, self.choose = room, choose
        self.selects: dict[str, Element] = {}
        lattice = room.desk.tabulated.lattice
        with look.box("", "details"):
            look.tag("summary", "Choose by levels")
            with look.box("levels"):
                for name, height in zip(lattice.columns, lattice.heights, strict=True):
                    levels = map(str, range(height + 1))
                    self.selects[name] = look.choice(name, levels, "0", lambda _: self.say(None))
            with look.box("line"):
                look.button("Choose these levels", self.take, "small")
            self.wrong = look.no_fault()

    def say(self, text: str | None) -> None:
        """Say what is wrong with the levels, or nothing."""
        look.fault(self.wrong, text)

    def put(self, node: Mapping[str, int]) -> None:
        """Show the levels of the node that is shown."""
        self.say(None)
        for name, level in node.items():
            if self.selects[name]._props["value"] != str(level):
                look.put(self.selects[name], str(level))

    async def take(self) -> None:
        """Choose the node, or say why it cannot be."""
        try:
            await self.choose({name: int(made._props["value"]) for name, made in self.selects.items()})
        except ShoalError as error:
            self.say(str(error))


class Outlook:
    """Charts and examples for an answer; a click on a node chooses it."""

    def __init__(self, room: Room, choose: Callable[[Node], Any]) -> None:
        self.room, self.choose = room, choose
        self.placed: list[tuple[float, float, views.Point]] = []
        self.view: views.LatticeView | None = None
        with look.box("split halves"):
            with look.card("The lattice", "Each point is a choice of levels. Click one, or name it below."):
                self.lattice = ui.echart({}, on_point_click=self.click).style("height: 350px")
                self.note = look.tag("p", "", "muted small")
                self.levels = Levels(room, choose)
            with look.card("By height", "The least and the mean that choices of one height suppress."):
                self.heights = ui.echart({}).style("height: 350px")
        self.title = look.told("", "")
        many = "many" if len(room.desk.quasi_identifiers) > 4 else ""  # then records need all the width
        with look.box(f"split halves lower {many}"):
            with look.card("What each column loses", "As a share of what it could lose."):
                self.loss = ui.echart({}).style("height: 260px")
            with look.card("Ten records, before and after"):
                self.examples = look.box("scroll")

    def later(self, answer: Negotiation, node: Node | None) -> None:
        """Draw once the page has what is more urgent."""
        background_tasks.create(self.draw(answer, node), name="outlook")

    async def click(self, event: Any) -> None:
        """Choose the node that was clicked."""
        if self.view is None or event.series_index != 0:
            return
        point = self.placed[event.data_index][2]
        found = self.choose(dict(zip(self.view.columns, point.node, strict=True)))
        if found is not None:
            await found

    async def draw(self, answer: Negotiation, node: Node | None) -> None:
        """Draw everything for an answer and, where one is chosen, a node."""
        request = answer.request
        desk = self.room.desk
        profile = desk.tabulated
        best = answer.exact or answer.suppression or answer.levels or answer.privacy
        shown: Mapping[str, int] | None = node or (dict(best.node) if best else None)

        def work() -> Any:
            rings = (answer.exact and answer.exact.node, desk.node)
            places = [profile.place(_axes(profile, one)) for one in rings if one]
            keep = [place for place in places if place is not None]
            view = views.lattice_view(profile, request.least, request.sensitive, keep=keep)
            rows = views.by_height(profile, request.least, request.sensitive)
            if shown is None:
                return view, rows, None, []
            loss = views.loss_by_column(profile, shown)
            return view, rows, loss, views.examples(profile, shown, request.least, request.sensitive)

        view, rows, loss, examples = await anyio.to_thread.run_sync(work)
        if self.lattice.is_deleted:
            return
        self.view, self.placed = view, lattice_chart.places(view)
        dark = self.room.dark
        exact = dict(answer.exact.node) if answer.exact else None
        _draw(self.lattice, lattice_chart.lattice(view, self.placed, request.limit, exact, desk.node, dark))
        _draw(self.heights, charts.by_height(rows, request.limit / profile.records, dark))
        self.note.set_text(_note(view))
        if shown is None:
            self.title.set_visibility(False)
            return
        self.title.set_visibility(True)
        self.levels.put(shown)
        place = profile.place(_axes(profile, shown))
        gone = int(profile.by_node(request.least, request.sensitive)[place]) if place is not None else None
        self.say(shown, gone, request.limit, profile.records)
        _draw(self.loss, charts.loss(loss["columns"], dark))
        self.records(view.columns, examples)

    def say(self, node: Mapping[str, int], gone: int | None, limit: int, records: int) -> None:
        """Say which node is shown below."""
        chosen = self.room.desk.node == dict(node)
        what = "Chosen for the release" if chosen else "Shown below"
        levels = ", ".join(f"{name} {level}" for name, level in node.items())
        told = "" if gone is None else f" It suppresses {so_many(gone, 'record')} ({percent(gone / records)})"
        over = gone is not None and gone > limit
        if told:
            told += f", more than the {limit:,} allowed." if over else "."
        self.title.set_text(f"{what}: {levels}.{told}")
        self.title.classes(replace="told warn" if over else "told")

    def records(self, columns: tuple[str, ...], examples: list[views.Example]) -> None:
        """Show examples: what changes is coloured, what is suppressed is faint."""
        rows, cells, marks = [], {}, {}
        for number, one in enumerate(examples):
            values = []
            for place, (before, after) in enumerate(zip(one.before, one.after, strict=True)):
                values.append(before if before == after else f"{before} \u2192 {after}")
                if before != after and not one.suppressed:
                    cells[number, place + 1] = "changed"
            alike = "suppressed" if one.suppressed else f"{one.alike:,} alike"
            rows.append((alike, *values))
            if one.suppressed:
                marks[number] = "out"
        self.examples.clear()
        with self.examples:
            look.table(("", *columns), rows, classes="fit small", marks=marks, cells=cells)


def _draw(chart: ui.echart, options: dict[str, Any]) -> None:
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def _note(view: views.LatticeView) -> str:
    told = so_many(view.nodes, "node") + (f" of {view.size:,}" if view.size > view.nodes else "")
    if view.binned:
        told += f", drawn as {len(view.points):,} points; each stands for several of its height "
        told += "that suppress about as much"
    return f"{told}. Faint ones are beyond the limit."


def _axes(profile: Any, node: Mapping[str, int]) -> tuple[int, ...]:
    """Return a node's level on each axis."""
    names = profile.lattice.columns
    return tuple(node[names[members[0]]] for members in profile.lattice.axes)
