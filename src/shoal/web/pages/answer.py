"""The answer of a negotiation: cards with offers, and charts of the lattice, heights, classes and records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread
from nicegui import background_tasks
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from shoal.document.document import Verdict
from shoal.errors import ShoalError
from shoal.web.pages import charts, elements
from shoal.web.pages.chart_data import DataTable
from shoal.web.pages.distribution import DistributionCard
from shoal.web.pages.tab import TabView
from shoal.web.pages.utility import LiveUtilityCard
from shoal.web.workspace import lattice as views
from shoal.wording import percent, plural
from shoal.workflow.profile.negotiate import Negotiation
from shoal.workflow.profile.offer import Offer, Request
from shoal.workflow.profile.profile import Profile
from shoal.workflow.statements import negotiation_verdict, removal_statement

_Node = dict[str, int]
_MAX_CARDS = 6
_MAX_OFFERS = 100  # number of stored offers: a click on a replaced button must still find its offer


class AnswerCard:
    """The answer to a request: its cost, or the changes that make the request possible."""

    def __init__(
        self,
        tab: TabView,
        records: int,
        dials: Mapping[str, Any],
        on_take: Callable[[Offer], Any],
        on_pin: Callable[[Offer], Any],
    ) -> None:
        self.tab, self.records, self.dials, self.on_take, self.on_pin = tab, records, dials, on_take, on_pin
        self.buttons: list[TextElement] = []
        self.offers: dict[int, Offer] = {}  # the last offers, by the numbers of their buttons
        self.error: TextElement | None = None
        self.retained: TextElement | None = None  # the line with the share that the exact answer retains
        self.exact: _Node = {}
        self.card = elements.box("card", "section", aria_live="polite", data_part="answer")
        # The card handles clicks instead of its buttons, so that a click on a replaced button still works.
        self.card.on("click", self.press, js_handler="(event) => studio.pressOffer(event, emit)")

    def press(self, event: Any) -> Any:
        """Take or pin the offer whose button was clicked."""
        number, pin = event.args
        offer = self.offers.get(number)
        return None if offer is None else (self.on_pin if pin else self.on_take)(offer)

    def set_stale(self, stale: bool) -> None:
        """Fade the answer and disable its buttons while the request of the dials is invalid."""
        self.card.style("opacity: 0.45" if stale else "opacity: 1")
        self.disable_buttons(stale)

    def disable_buttons(self, disabled: bool = True) -> None:
        """Disable or enable the buttons that take or pin an offer."""
        for button in self.buttons:
            button._props["disabled"] = disabled
            button.update()

    def show_error(self, text: str) -> None:
        """Show why there is no answer, or why an offer cannot be taken."""
        if self.error is not None and not self.error.is_deleted:
            self.error.delete()
        with self.card:
            self.error = elements.message(text, "bad")

    def draw(self, answer: Negotiation, *, provisional: bool = False) -> None:
        """Show the exact answer, or the suggestions. The buttons of a provisional answer are disabled."""
        self.card.clear()
        self.buttons = []
        self.retained = None
        with self.card:
            by_class = self._by_class(answer)
            verdict = negotiation_verdict(answer, self.records)
            if by_class and answer.exact is not None:
                suppressed = plural(answer.exact.suppressed, "record")
                verdict = replace(verdict, text=f"With one level for each column: {suppressed} suppressed")
            if answer.exact is not None:
                self._exact(answer.exact, verdict)
            else:
                elements.tag("h2", verdict.text, verdict.tone, data_answer="none")
                self._suggestions(answer)
            if answer.besides:
                others = ", ".join(answer.besides)
                elements.note(f"The release must also satisfy {others}, which is checked when it is written.")
            if answer.partial:
                self._partial(answer)
            if provisional:
                elements.message(
                    "The search for the release still runs. Its answer replaces this one.", "warn"
                )
        if provisional:
            self.disable_buttons()
            self.retained = None

    def _partial(self, answer: Negotiation) -> None:
        profile = self.tab.workspace.negotiation.tabulated
        counted = f"{len(profile.numbers):,} of {profile.lattice.size:,} choices were counted"
        other = "better" if answer.exact else "as you asked"
        text = f"This answer is partial: the most promising {counted}. Another one may be {other}."
        elements.message(text, "warn").props("data-part=partial")

    def _by_class(self, answer: Negotiation) -> bool:
        """If the labels of the release differ between classes, describe the release and return True."""
        policy = self.tab.workspace.draft.policy()
        preview = self.tab.workspace.preview.of_request(answer.request)
        if not policy.levels_by_class and (preview is None or preview.levels is not None):
            return False
        how = "recodes locally" if policy.finishing["local"] else "gives each class its own labels"
        with elements.box("message tight", role="status", data_part="by-class"):
            if preview is None:
                elements.tag("b", f"The release {how}. Its figures differ from those below.")
            else:
                elements.tag(
                    "b",
                    f"The release {how}: {plural(preview.suppressed, 'record')} suppressed, "
                    f"{percent(preview.retained)} of the information retained.",
                )
            elements.tag("span", "The dials describe one level for each column, as below.", "small")
        return True

    def show_retained(self, node: Mapping[str, int], retained: float) -> None:
        """Show the share of information that a node retains, if the exact answer has this node."""
        if self.retained is not None and self.exact == node:
            self.retained.set_text(f"{percent(retained)} of the information is retained.")

    def _exact(self, offer: Offer, verdict: Verdict) -> None:
        removed = self._removed(offer)
        with elements.box("line spread", style="flex-wrap: nowrap"):
            with elements.box("tight"):
                tone = "warn" if removed else verdict.tone  # a release that loses columns has this tone, too
                elements.tag("h2", verdict.text, tone, data_answer="exact")
                elements.note(
                    f"{percent(offer.suppressed / self.records)} of {self.records:,}; "
                    f"{offer.limit:,} allowed. The columns are {plural(offer.height, 'step')} coarser. "
                    f"{removed}"
                )
                self.retained, self.exact = elements.tag("p", "\u00a0", "small"), dict(offer.node)
            if self.tab.workspace.negotiation.node == dict(offer.node):
                elements.tag("span", "\u2713 taken for the release", "good")
                self._offer_buttons(offer, "nowrap", take=False)
            else:
                self._offer_buttons(offer, "primary nowrap")
        with elements.box("line chips", style="gap: 6px"):
            for name, level in offer.node.items():
                raised = level > self.dials["max_level"].get(name, level)
                classes = f"chip {'on' if level else ''} {'bad' if raised else ''}"
                elements.tag("span", self.tab.workspace.table.level_names.phrase(name, level), classes)

    def _suggestions(self, answer: Negotiation) -> None:
        listed = [(kind, offer) for kind, offer in answer.suggestions if offer.column is None]
        listed += [("column", offer) for offer in answer.columns]
        listed = _distinct(listed)[:_MAX_CARDS]
        with elements.box("cards"):
            for kind, offer in listed:
                self._offer_card(kind, offer)
        if not listed:
            elements.tag("p", "No single change works. Ask for less in several dials.", "muted")

    def _raised(self, offer: Offer) -> str:
        """Describe the levels of an offer that exceed the highest levels of the dials."""
        limits = self.dials["max_level"]
        raised = {name: level for name, level in offer.node.items() if level > limits.get(name, level)}
        return self.tab.workspace.table.level_names.describe(raised) if raised else "within the levels"

    def _removed(self, offer: Offer) -> str:
        return removal_statement(self.tab.workspace.negotiation.tabulated, offer.node)

    def _offer_card(self, kind: str, offer: Offer) -> None:
        suppressed, share = plural(offer.suppressed, "record"), percent(offer.suppressed / self.records)
        title, description = {
            "suppression": ("Suppress more", f"{suppressed} ({share})"),
            "levels": ("Generalize more", self._raised(offer)),
            "privacy": (f"Lower {offer.model}", offer.privacy.text),
            "k": ("Lower k", offer.privacy.text),
            "l": ("Lower l", offer.privacy.text),
            "column": (f"Generalize {offer.column} more", self._raised(offer)),
        }[kind]
        with elements.box("offer", data_offer="privacy" if kind in ("k", "l") else kind):
            elements.tag("h3", title)
            elements.tag("p", description)
            elements.note(
                f"{offer.suppressed:,} of {self.records:,} records suppressed. {self._removed(offer)}"
            )
            self._offer_buttons(offer, "small")

    def _offer_buttons(self, offer: Offer, classes: str, *, take: bool = True) -> None:
        number = max(self.offers, default=0) + 1
        self.offers[number] = offer
        self.offers.pop(number - _MAX_OFFERS, None)
        kinds = {"take": ("Take this", classes)} if take else {}
        with elements.box("line", style="flex-wrap: nowrap; gap: 6px"):
            for kind, (text, style) in {**kinds, "pin": ("Pin", classes.replace("primary", ""))}.items():
                button = elements.tag("button", text, f"btn {style}", type="button")
                button._props[f"data-{kind}"] = str(number)
                self.buttons.append(button)


class LevelSelects:
    """Selects to choose a node by the level of each column, for keyboard users."""

    def __init__(self, tab: TabView, on_choose: Callable[[_Node], Any]) -> None:
        self.tab, self.on_choose = tab, on_choose
        self.selects: dict[str, Element] = {}
        self.node: _Node = {}  # the node that was shown last
        self.chosen: set[str] = set()  # columns whose level the user has changed since
        lattice = tab.workspace.negotiation.tabulated.lattice
        with elements.box("", "details"):
            elements.tag("summary", "Choose for each column")
            with elements.box("levels"):
                names = tab.workspace.table.level_names
                for name, height in zip(lattice.columns, lattice.heights, strict=True):
                    levels = {str(level): names.name(name, level) for level in range(height + 1)}
                    self.selects[name] = elements.select(name, levels, "0", partial(self._changed, name))
            with elements.box("line"):
                elements.button("Choose these", self.choose, "small")
            self.error = elements.error_line()

    def _changed(self, name: str, _: str) -> None:
        self.chosen.add(name)
        elements.set_error(self.error, None)

    def set_node(self, node: Mapping[str, int]) -> None:
        """Show a node. If it is the same node as before, the levels that the user has changed stay."""
        elements.set_error(self.error, None)
        if self.node and self.node != node:
            self.chosen.clear()
        self.node = dict(node)
        for name, level in node.items():
            if name not in self.chosen and elements.value_of(self.selects[name]) != str(level):
                elements.set_value(self.selects[name], str(level))

    async def choose(self) -> None:
        """Choose the node, or show the error."""
        try:
            await self.on_choose(
                {name: int(elements.value_of(select)) for name, select in self.selects.items()}
            )
        except ShoalError as error:
            elements.set_error(self.error, str(error))


class LatticeCharts:
    """Charts and example records for an answer. A click on a node chooses the node."""

    def __init__(
        self,
        tab: TabView,
        on_choose: Callable[[_Node], Any],
        on_retained: Callable[[_Node, float], Any],
    ) -> None:
        self.tab, self.on_choose, self.on_retained = tab, on_choose, on_retained
        self.positions: list[charts.Position] = []
        self.view: views.LatticeView | None = None
        self.drawings = 0
        with elements.box("split halves"):
            with elements.card(
                "All choices", "Each point is one choice for every column. Click one, or name it below."
            ):
                self.lattice = charts.add_chart(tab.dark, 350, self.click)
                self.note = elements.note("")
                self.levels = LevelSelects(tab, on_choose)
            with elements.card(
                "By how coarse they are",
                "A step makes one column a level coarser. The least and mean number of records suppressed.",
            ):
                self.heights = charts.add_chart(tab.dark, 350)
        self.title = elements.message("", "")
        self.distribution = DistributionCard(tab.dark)
        # Records of many columns need the whole width.
        column_class = "many" if len(tab.workspace.table.quasi_identifiers) > 4 else ""
        with elements.box(f"split halves lower {column_class}"):
            text = "By coverage, as the release reports it; a suppressed record retains nothing."
            with elements.card("What is retained of each column", text):
                self.retained = charts.add_chart(tab.dark, 260)
            with elements.card("Ten records, before and after"):
                self.examples = elements.box("scroll")
        self.utility = LiveUtilityCard(tab)

    def draw_later(self, answer: Negotiation, node: _Node | None) -> None:
        """Draw in a background task, so that the answer is shown first."""
        background_tasks.create(self.draw(answer, node), name="lattice")

    async def click(self, event: Any) -> None:
        if self.view is None or event.series_index != 0:
            return
        point = self.positions[event.data_index][2]
        result = self.on_choose(dict(zip(self.view.columns, point.node, strict=True)))
        if result is not None:
            await result

    async def draw(self, answer: Negotiation, node: _Node | None) -> None:
        """Draw the charts and records for an answer and a node, by default the answer's best node."""
        self.drawings += 1
        drawing = self.drawings
        request, negotiation = answer.request, self.tab.workspace.negotiation
        profile, chosen = negotiation.tabulated, negotiation.node
        exact = dict(answer.exact.node) if answer.exact else None
        best = answer.exact or answer.suppression or answer.levels or answer.privacy
        shown = node or (dict(best.node) if best else None)

        def compute() -> Any:
            indexes = [_index(profile, ring) for ring in (exact, chosen) if ring]
            keep = [index for index in indexes if index is not None]
            view = views.lattice_view(profile, request.privacy, keep=keep)
            rows = views.by_height(profile, request.privacy)
            if shown is None:
                return view, rows, None, None, []
            retained = views.retained_by_column(profile, shown, request.privacy)
            l = request.privacy.l if request.diversity == "distinct" else None
            marks = {"k": request.privacy.k, "l": None if l is None else int(l)}
            spread = profile.distribution(shown, **marks, suppression_limit=request.limit)
            return view, rows, retained, spread, views.examples(profile, shown, request.privacy)

        view, rows, retained, spread, examples = await anyio.to_thread.run_sync(compute)
        if self.lattice.is_deleted or drawing != self.drawings:
            return
        self.view, self.positions = view, charts.lattice_positions(view)
        dark = self.tab.dark
        names = self.tab.workspace.table.level_names
        lattice = charts.lattice(view, self.positions, request.limit, exact, negotiation.node, names, dark)
        label = f"{_note(view)} The axes are the number of steps and of suppressed records."
        charts.draw(self.lattice, lattice, label=label, table=_table_by_height(rows))
        charts.draw(self.heights, charts.by_height(rows, request.limit / profile.records, dark))
        self.note.set_text(_note(view))
        self.title.set_visibility(shown is not None)
        self.distribution.show(spread)
        if shown is not None:
            self.levels.set_node(shown)
            overall = sum(retained.values()) / len(retained)
            self.show_title(shown, answer, profile, overall)
            self.on_retained(shown, overall)
            charts.draw(
                self.retained,
                charts.retained(retained, dark),
                label="Chart of what is retained of each column",
            )
            self.show_records(view.columns, examples)
        self.utility.show(shown, request)

    def show_title(self, node: _Node, answer: Negotiation, profile: Profile, retained: float) -> None:
        """Describe the node that is shown below."""
        request, index = answer.request, _index(profile, node)
        chosen = self.tab.workspace.negotiation.node == node
        over = is_over(profile, request, node)
        levels = self.tab.workspace.table.level_names.describe(node)
        text = f"{'Chosen for the release' if chosen else 'Shown below'}: {levels}."
        if index is not None:
            suppressed = int(profile.by_privacy(request.privacy)[index])
            share = percent(suppressed / profile.records)
            end = f", more than the {request.limit:,} allowed: it cannot be chosen." if over else ""
            text += f" It suppresses {plural(suppressed, 'record')} ({share}){end}"
            text += "" if over else f" and retains {percent(retained)} of the information."
        self.title.set_text(text)
        self.title.classes(replace="message warn" if over else "message")

    def show_records(self, columns: tuple[str, ...], examples: list[views.Example]) -> None:
        """Show example records. Changed values are coloured, and suppressed records are faint."""
        rows, cell_classes, row_classes = [], {}, {}
        for number, example in enumerate(examples):
            values = []
            for column, (before, after) in enumerate(zip(example.before, example.after, strict=True)):
                values.append(before if before == after else f"{before} \u2192 {after}")
                if before != after and not example.suppressed:
                    cell_classes[number, column + 1] = "changed"
            class_text = "suppressed" if example.suppressed else f"{example.alike:,} alike"
            rows.append((class_text, *values))
            if example.suppressed:
                row_classes[number] = "out"
        self.examples.clear()
        with self.examples:
            elements.table(
                ("", *columns), rows, classes="fit small", row_classes=row_classes, cell_classes=cell_classes
            )


def _table_by_height(rows: Sequence[views.HeightRow]) -> DataTable:
    """Return the lattice as a table with one row per height."""
    cells = [(r.height, f"{r.nodes:,}", percent(r.least_share), percent(r.mean_share)) for r in rows]
    return ("Steps coarser", "Choices", "Least suppressed", "Mean"), cells


def _note(view: views.LatticeView) -> str:
    text = plural(view.nodes, "choice") + (f" of {view.size:,}" if view.size > view.nodes else "")
    if view.binned:
        text += f", drawn as {len(view.points):,} points; each stands for several choices that are "
        text += "equally coarse and suppress about as many records"
    return f"{text}. Faint ones are beyond the limit."


def _distinct(offers: list[tuple[str, Offer]]) -> list[tuple[str, Offer]]:
    """Remove offers that have the same effect as an earlier offer."""
    results: dict[object, tuple[str, Offer]] = {}
    for kind, offer in offers:
        result = (tuple(offer.node.items()), offer.privacy, offer.suppressed)
        results.setdefault(result, (kind, offer))
    return list(results.values())


def is_over(profile: Profile, request: Request, node: Mapping[str, int]) -> bool:
    """Return whether a node suppresses more than a request allows."""
    index = _index(profile, node)
    if index is None:
        return False
    return int(profile.by_privacy(request.privacy)[index]) > request.limit


def _index(profile: Profile, node: Mapping[str, int]) -> int | None:
    """Return the index of a node in the tables of the profile, if it was tabulated."""
    names = profile.lattice.columns
    return profile.row_of(tuple(node[names[members[0]]] for members in profile.lattice.axes))
