"""Step 3, negotiate: dials for privacy, suppression and levels, and the answer to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio.to_thread

from shoal.core.counts.diversity import Measure
from shoal.errors import ShoalError
from shoal.policy.limits import decimal_point, limit_in_records
from shoal.web import api
from shoal.web.actions import action
from shoal.web.pages import elements
from shoal.web.pages.answer import AnswerCard, LatticeCharts, is_over
from shoal.web.pages.scenarios import ScenariosCard
from shoal.web.pages.tab import JobForm, JobView, TabView, next_button
from shoal.web.workspace.jobs import Job
from shoal.wording import plural
from shoal.workflow.profile.negotiate import Negotiation
from shoal.workflow.profile.offer import Offer
from shoal.workflow.profile.profile import Profile

_ASK_AFTER = 0.02  # seconds without a move of a dial before the answer
_DRAW_AFTER = 0.1  # seconds without a move of a dial before the charts
_MANY_CHOICES = 2_000_000  # of a larger lattice, only the most promising nodes are tabulated
_BUDGET = 20  # default time limit of tabulating a large lattice, in seconds
_UNCOUNTABLE = 1 << 63  # number of nodes that cannot be numbered
_MAX_K, _MAX_LIMIT = 100, 250  # upper ends of the sliders: k, and thousandths of the records


def show(tab: TabView) -> None:
    """Show the step."""
    if tab.workspace.negotiation.profile is not None:
        NegotiateView(tab)
    else:
        _show_tabulation(tab)


def _show_tabulation(tab: TabView) -> None:
    """Tabulate the lattice for the negotiation. A large one is tabulated in part, within a time limit."""
    size = tab.workspace.negotiation.lattice_size()
    if size >= _UNCOUNTABLE:
        with elements.card("Too many choices"):
            text = f"The number of choices has {len(str(size))} digits, too many to count them."
            elements.message(f"{text} Use fewer quasi-identifiers, or hierarchies of fewer levels.", "warn")
            elements.note("A release needs no numbers: its search looks only at the choices that matter.")
            with elements.box("line"):
                elements.button("Go to Release", lambda: tab.go("release"), "small")
                next_button(tab, "small")
        return
    is_large = size > _MANY_CHOICES
    form = JobForm(tab, "profile", {"seconds": ""})
    if is_large and not form.values["seconds"]:
        form.values["seconds"] = str(_BUDGET)

    def start() -> None:
        form.start(seconds=elements.parse_value(form.values["seconds"]))

    text = "Without a limit on the seconds, every request is then answered at once."
    if is_large:
        text = (
            f"The columns allow {size:,} choices, too many to count them all. The most promising ones are "
            "counted until the seconds are over, and the answers are then partial. With fewer "
            "quasi-identifiers or levels they are complete."
        )
    title = "The most promising choices" if is_large else "Every choice at once"
    with elements.card(title, f"It counts how many records each choice for the columns suppresses. {text}"):
        with elements.box("line top"):
            title = "With a limit only the most promising choices are counted"
            form.text("seconds", "Seconds at most", 190, placeholder="no limit", title=title)
            with elements.box("line", style="padding-top: 21px"):
                elements.button("Count the choices", start, "primary")
                next_button(tab)
        form.add_job_view()
        if form.job_view.job is None:
            start()


class NegotiateView:
    """The dials on the left, the answer and its charts on the right."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        profile = tab.workspace.negotiation.tabulated
        self.moves = 0
        with elements.box("split negotiate"):
            self.dials = Dials(tab, profile, self.on_move, self.reset)
            with elements.box("stack answer"):
                self.answer_card = AnswerCard(tab, profile.records, self.dials.values, self.take, self.pin)
                self.preview_job = JobView(
                    tab, "preview", self.on_preview_end, self.on_preview_end, self.on_preview_end
                )
            with elements.box("stack charts"):
                self.charts = LatticeCharts(tab, self.choose_node, self.answer_card.show_retained)
        self.scenarios = ScenariosCard(tab)
        with elements.box("line"):
            href = f"/api/workspaces/{tab.state.workspace}/negotiation-log"
            elements.tag("a", "Download the log", "btn small", href=href, download="")
            elements.note("What was asked, answered and taken, with the time; without values of the data.")
        self.run_preview()
        self.ask()

    def run_preview(self) -> None:
        """Run the search of the release, unless its result is cached."""
        preview = self.tab.workspace.preview
        if preview.result is None:
            self.preview_job.start(lambda progress: preview.run(progress=progress))

    def on_preview_end(self, _: Job) -> bool:
        """Show the answer of the preview, or of the profile if the preview has no result."""
        self.ask()
        return True

    def reset(self) -> None:
        self.dials.reset()
        self.dials.draw()
        self.ask()

    async def on_move(self) -> None:
        """Answer when the dials have stopped moving, and draw the charts a little later."""
        self.moves += 1
        move = self.moves
        await asyncio.sleep(_ASK_AFTER)
        if move != self.moves or self.dials.card.is_deleted:  # another step is shown
            return
        self.dials.values["node"] = None
        answer = self.ask(draw=False)
        await asyncio.sleep(_DRAW_AFTER)
        if move == self.moves and answer is not None and not self.dials.card.is_deleted:
            await self.charts.draw(answer, None)

    def ask(self, *, draw: bool = True) -> Negotiation | None:
        """Negotiate with the values of the dials, and show the answer or the errors."""
        request = self.dials.request()
        self.answer_card.set_stale(request is None)
        if request is None:
            return None
        try:
            answer = self.tab.workspace.negotiation.negotiate(**request)
            answer = self.tab.workspace.preview.confirm(answer)
        except ShoalError as error:
            self.answer_card.set_stale(True)
            if not self.dials.show_error(error):
                self.answer_card.show_error(str(error))
            return None
        searching = self.preview_job.job is not None
        self.answer_card.draw(
            answer, provisional=searching and self.tab.workspace.preview.repeats_policy(answer.request)
        )
        if draw:
            self.charts.draw_later(answer, self.dials.values.get("node"))
        return answer

    async def take(self, offer: Offer) -> None:
        """Take an offer: move the dials to it, and choose its node for the release."""
        negotiation = self.tab.workspace.negotiation
        async with self.tab.changing:
            try:
                node = await anyio.to_thread.run_sync(negotiation.take, offer)
            except ShoalError as error:
                self.answer_card.show_error(str(error))
                return
            self.moves += 1  # cancels the answers to earlier moves
            self.dials.move_to(negotiation.tabulated, offer, node)
            self.run_preview()
            self.ask()
            self.tab.refresh_nav()

    async def pin(self, offer: Offer) -> None:
        await self.scenarios.attempt(lambda: self.tab.workspace.scenarios.pin_offer(offer))

    async def choose_node(self, node: dict[str, int]) -> None:
        """Choose a node for the release. A node that exceeds the suppression limit is only shown."""
        negotiation = self.tab.workspace.negotiation
        answer = negotiation.answer
        if answer is None or not is_over(negotiation.tabulated, answer.request, node):
            negotiation.choose_node(node)
        self.dials.values["node"] = node
        if answer is not None:
            answer = self.tab.workspace.preview.confirm(answer)
            self.answer_card.draw(answer)
            await self.charts.draw(answer, node)
        self.tab.refresh_nav()


class Dials:
    """The fields and sliders of a request. Their values are stored in the state of the tab."""

    def __init__(
        self, tab: TabView, profile: Profile, on_move: Callable[[], Any], on_reset: Callable[[], Any]
    ) -> None:
        self.tab, self.profile, self.on_move, self.on_reset = tab, profile, on_move, on_reset
        self.heights = dict(zip(profile.lattice.columns, profile.lattice.heights, strict=True))
        self.values: dict[str, Any] = tab.state.dials
        if (
            self.values.get("heights") != self.heights
            or self.values["measure"] not in self._measure_options()
        ):
            self.reset()
        self.card = elements.box("card", "section")
        self.draw()

    def reset(self) -> None:
        policy = self.profile.defaults
        limit = self.tab.workspace.draft.settings()["suppression_limit"]
        self.values.clear()
        self.values.update(
            heights=self.heights,
            measure=self._policy_measure(),
            least=str(policy.least),
            least_l="2" if policy.l is None else str(policy.l),
            limit=f"{limit:.4g}" if isinstance(limit, float) else str(limit),
            max_level=self.heights | dict(policy.max_level),
            prefer="loss",
            node=None,
        )

    def _policy_measure(self) -> str:
        """Return the key of the measure (k, l or both) that the policy requires of every class."""
        policy = self.profile.defaults
        if policy.model == "k" and policy.l is None:
            return "k"
        for key, measure in self._measures().items():
            same = (measure.diversity.kind, measure.diversity.c) == (policy.diversity, policy.c or 0.0)
            if same and policy.sensitive in (None, measure.column):
                return f"{'l' if policy.model == 'l' else 'kl'}:{key}"
        return "k"

    def _measures(self) -> dict[str, Measure]:
        """Return the profile's measures of l by key. The key of distinct l is the name of the column."""
        measures = [*map(Measure, self.profile.sensitive), *self.profile.joints]
        return {item.column if item == Measure(item.column) else item.label: item for item in measures}

    def _measure_options(self) -> dict[str, str]:
        labels = {
            key: f"values of {key} (l)" if measure == Measure(measure.column) else measure.label
            for key, measure in self._measures().items()
        }
        options = {"k": "records alike (k)", **{f"l:{key}": label for key, label in labels.items()}}
        together = {f"kl:{key}": f"k and {label}" for key, label in labels.items()}
        return options | together if self.profile.joints else options

    def draw(self) -> None:
        self.card.clear()
        values = self.values
        with self.card:
            with elements.box("line spread"):
                elements.tag("h2", "What do you want?")
                next_button(self.tab, "small")
            elements.button("Reset to the policy", self.on_reset, "plain small self-start")
            if self.profile.sensitive:
                elements.select("Protect by", self._measure_options(), values["measure"], self.set_measure)
            self._least_dial("At least k" if values["measure"][0] == "k" else "At least l")
            self.least_l: elements.TextField | None = None
            if values["measure"].startswith("kl"):
                self.least_l = elements.text_field(
                    "At least l",
                    values["least_l"],
                    lambda text: self.move(least_l=text.strip()),
                    inputmode="decimal",
                    wait=0.05,
                )
            self._limit_dial()
            prefer = {"loss": "the least loss, as released", "height": "the fewest steps"}
            elements.select(
                "Among what works, prefer", prefer, values["prefer"], lambda name: self.move(prefer=name)
            )
            elements.tag("h3", "How coarse may each column become?")
            with elements.box("tight", style="gap: 6px"):
                for name, height in self.heights.items():
                    self._level_dial(name, height)

    def _least_dial(self, label: str) -> None:
        name = label.split()[-1]

        def type_least(text: str) -> Any:
            if least := elements.parse_whole(text):
                elements.set_value(slider, min(least, _MAX_K), f"{name} = {least:,}")
            return self.move(least=text.strip())

        def slide_least(value: int) -> Any:
            elements.set_value(self.least.element, str(value))
            slider._props["aria-valuetext"] = f"{name} = {value:,}"
            return self.move(least=str(value))

        text = self.values["least"]
        with elements.box("knob"):
            self.least = elements.text_field(label, text, type_least, inputmode="numeric", wait=0.05)
            least = min(elements.parse_whole(text) or 1, _MAX_K)
            slider = elements.slider(f"{label}, slider", least, _MAX_K, slide_least, 1)
            slider._props["aria-valuetext"] = f"{name} = {least:,}"

    def _limit_dial(self) -> None:
        def type_limit(text: str) -> Any:
            share = self._thousandths(text)
            elements.set_value(slider, share, self._limit_text(share))
            return self.move(limit=text.strip())

        def slide_limit(value: int) -> Any:
            elements.set_value(self.limit.element, f"{value / 10:g}%")
            slider._props["aria-valuetext"] = self._limit_text(value)
            return self.move(limit=f"{value / 10:g}%")

        label, text = "Suppressed, at most", self.values["limit"]
        title = "A share such as 5%, or a number of records"
        with elements.box("knob"):
            self.limit = elements.text_field(
                label, text, type_limit, wait=0.05, placeholder="5% or 250", title=title
            )
            share = self._thousandths(text)
            slider = elements.slider("Suppressed at most, slider", share, _MAX_LIMIT, slide_limit)
            slider._props["aria-valuetext"] = self._limit_text(share)

    def _limit_text(self, thousandths: int) -> str:
        records = self.profile.records * thousandths // 1000
        return f"{thousandths / 10:g}%, {plural(records, 'record')}"

    def _level_dial(self, name: str, height: int) -> None:
        with elements.box("dial"):
            elements.tag("span", name)
            text = elements.tag("span", self._example(name, self.values["max_level"][name]), "value")

            def set_level(level: int) -> Any:
                text.set_text(self._example(name, level))
                slider._props["aria-valuetext"] = text.text
                return self.move(max_level=self.values["max_level"] | {name: level})

            label, level = f"How coarse {name} may become", self.values["max_level"][name]
            slider = elements.slider(label, level, height, set_level)
            slider._props["aria-valuetext"] = text.text

    def _example(self, name: str, level: int) -> str:
        """Describe a level in words, with one of its labels."""
        text, problem = self.tab.workspace.table.level_names.name(name, level), self.profile.problem
        if problem is None:
            return text
        labels = problem.hierarchies[self.profile.lattice.columns.index(name)].labels[level]
        return text if len(labels) == 1 else f"{text}: {labels[len(labels) // 2]}"

    def _thousandths(self, limit: str) -> int:
        text = decimal_point(limit.strip())
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text) / self.profile.records
        except ValueError:
            return 0
        return max(0, min(_MAX_LIMIT, round(share * 1000)))

    def move(self, **values: Any) -> Any:
        self.values.update(values)
        return self.on_move()

    def set_measure(self, measure: str) -> Any:
        self.values["measure"] = measure
        self.draw()
        return self.on_move()

    def move_to(self, profile: Profile, offer: Offer, node: dict[str, int]) -> None:
        """Move the dials to an offer. Raise highest levels where the offer requires it; never lower them."""
        levels = {name: max(level, node[name]) for name, level in self.values["max_level"].items()}
        limit = str(offer.share or offer.limit)
        if offer.l is not None:
            self.values["least_l"] = str(offer.l)
        self.values.update(least=str(offer.least), limit=limit, max_level=levels, node=node)
        self.profile = profile
        self.draw()

    def request(self) -> dict[str, Any] | None:
        """Return the request of the dials. If it is invalid, show errors beside the dials and return None."""
        values = self.values
        names, _, key = values["measure"].partition(":")  # k, l or kl
        least = dict(zip(names, (values["least"], values["least_l"]), strict=False))
        parsed = {name: elements.parse_value(text) for name, text in least.items()}
        request: dict[str, Any] = {
            **{name: "" if value is None else value for name, value in parsed.items()},
            "suppression_limit": elements.parse_limit(values["limit"]),
            "max_level": values["max_level"],
            "prefer": values["prefer"],
        }
        if "l" in names:
            measure = self._measures()[key]
            request["sensitive"] = measure.column
            if measure.diversity.kind != "distinct":
                request["diversity"] = measure.diversity.kind
                request["c"] = measure.diversity.c or None
        errors = action.form_errors(api.negotiate, **request)
        try:
            limit_in_records(request["suppression_limit"], self.profile.records)
        except ShoalError as error:
            errors["suppression_limit"] = str(error)
        self.least.set_error(errors.get(names[0]))
        if self.least_l is not None:
            self.least_l.set_error(errors.get("l"))
        self.limit.set_error(errors.get("suppression_limit"))
        return None if errors else request

    def show_error(self, error: ShoalError) -> bool:
        """Show an error beside the dial that caused it. Return whether there is such a dial."""
        fields = {"k": self.least, "l": self.least_l or self.least, "suppression_limit": self.limit}
        field = fields.get(error.field or "")
        if field is not None:
            field.set_error(str(error))
        return field is not None
