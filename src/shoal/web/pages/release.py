"""Step 5, release: a description of its effects, its verification, and the files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from nicegui.elements.mixins.text_element import TextElement

from shoal.core.rows import RowRequest
from shoal.web.pages import elements
from shoal.web.pages.forms import SearchForm
from shoal.web.pages.preview import PreviewCard
from shoal.web.pages.risk import AttackCard, MeasureCard, show_risk
from shoal.web.pages.rows import rows_card
from shoal.web.pages.scenarios import ScenariosCard
from shoal.web.pages.tab import JobForm, TabView
from shoal.web.pages.uploads import UploadsCard
from shoal.web.pages.utility import UtilityCard
from shoal.web.workspace.release import FORMATS
from shoal.wording import percent, plural
from shoal.workflow.advice import Advice, retained_text
from shoal.workflow.release.release import Release
from shoal.workflow.release.spreadsheet import is_text_table
from shoal.workflow.risk.risk import risk_of
from shoal.workflow.statements import guarantee_statement, proven_statement, release_verdict
from shoal.workflow.verify import WILDCARDS

_FILES = {
    "release": ("Released table", "the table to share"),
    "codebook": ("Codebook", "what each label means; may go with the release"),
    "policy": ("Policy", "the request, to run it again"),
    "certificate": ("Certificate", "what was guaranteed, proven and lost, to print and sign; no data values"),
    "report": ("Report", "what was done, what holds and what was lost, one HTML page; keep it private"),
    "recipe": ("Recipe", "how values were recoded; keep it private"),
    "audit": ("Audit", "what was done, step by step; keep it private"),
    "sensitive-table": ("Sensitive table", "the sensitive values, by group"),
}

_FIRST_ROWS = 10
_OPTIONS = {"form": "csv", "table": "release", "safe": False, "semicolons": False}


class ReleaseView:
    """The settings on the left, the release on the right."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        self.form = JobForm(tab, "release", _OPTIONS)
        self.values = self.form.values
        workspace = tab.workspace
        with elements.box("split halves", style="align-items: start"):
            with elements.card("What the release will do"):
                with elements.box("tight", "ul", style="padding-left: 18px; gap: 7px"):
                    for sentence in workspace.release.summary():
                        elements.tag("li", sentence)
                PreviewCard(tab)
                elements.button("Pin as a scenario", self.pin, "small self-start")
                self._not_taken()
                if workspace.negotiation.node is not None:
                    text, style = "Let the search choose", "align-self: flex-start"
                    elements.button(text, self.forget_node, "small", style=style)
                self.search = SearchForm(tab, tab.refresh)
                self._policy()
                with elements.box("line", style="align-items: flex-end"):
                    remote = workspace.table.remote
                    to_database = remote is not None and remote.releases is not None
                    forms = (*FORMATS, "database") if to_database else FORMATS
                    self.form.select("form", "Format", forms, 130)
                    if to_database:
                        self.form.text("table", "Table, for the database", 200)
                    elements.button("Write the release", self.start, "primary")
                self.form.add_job_view()
            with elements.box("stack"):
                release = workspace.release.result
                if release is None:
                    elements.empty_card("Nothing is released yet.")
                else:
                    self.show_release(release)
                UploadsCard(tab, self.file_form)
        self.scenarios = ScenariosCard(tab)
        if release is not None:
            self.examine(release)

    def file_form(self) -> str:
        """Return the format of a file that a recipe writes."""
        form = str(self.values["form"])
        return form if form in FORMATS else FORMATS[0]

    def start(self) -> None:
        """Write the release to a file or a table of the database, unless a chosen setting cannot be used."""
        if self.search.needs_label() or self.has_unused_text():
            return
        form = self.values["form"]
        self.form.start(form=form, table=self.values["table"] if form == "database" else None)

    def has_unused_text(self) -> bool:
        """If the text of the policy was edited but is not in use, show this and return True."""
        is_unused = bool(self.policy_form.values["policy"] != self.tab.workspace.draft.to_yaml())
        text = "This text is not in use. Press 'Use this policy', or undo what you typed."
        self.policy_form.show_errors({"policy": text} if is_unused else {})
        return is_unused

    def examine(self, release: Release) -> None:
        """Add the cards that examine the release, in full width."""
        UtilityCard(self.tab, release)
        if self.tab.workspace.table.remote is None:
            rows_card(self.tab, "Before and after, record by record", ["table", "release"])
        MeasureCard(self.tab)
        if not release.separate_column:
            AttackCard(self.tab)

    def _not_taken(self) -> None:
        text = self.tab.workspace.negotiation.not_taken() if self.tab.state.dials else None
        if text:
            with elements.box("message warn tight", role="status", data_part="not-taken"):
                elements.tag("span", f"{text} To release what you negotiated, press 'Take this' there.")
                style = "align-self: flex-start"
                elements.button("Go to Negotiate", lambda: self.tab.go("negotiate"), "small", style=style)

    def _policy(self) -> None:
        workspace = self.tab.workspace
        form = self.policy_form = elements.Form({"policy": workspace.draft.to_yaml()})

        async def adopt() -> None:
            show_error = form.fields["policy"].set_error
            await self.tab.change(show_error, workspace.draft.adopt_yaml, form.values["policy"])

        with elements.details("The policy as a file, with all models and options"):
            form.text("policy", "Policy", None, area=True, rows=16)
            elements.button("Use this policy", adopt, "small", style="align-self: flex-start")

    async def pin(self) -> None:
        await self.scenarios.attempt(self.tab.workspace.scenarios.pin_preview)

    def forget_node(self) -> None:
        """Clear the chosen node, so that the search chooses one."""
        self.tab.workspace.negotiation.choose_node(None)
        self.tab.refresh()

    def show_release(self, release: Release) -> None:
        verdict_card(self.tab, release)
        ReleaseFiles(self.tab, self.values)
        AdviceCard(self.tab, release)
        with elements.card("Columns", "What is retained of each column, and its labels in the release."):
            self.show_columns(release)
        if not release.separate_column:
            with elements.card("Risk", "How likely a record is identified, in the terms of regulators."):
                show_risk(risk_of(release))

    def show_columns(self, release: Release) -> None:
        """Show the effect of the release on each column. Lost columns are highlighted."""
        fates = release.fates()
        names, levels = self.tab.workspace.table.level_names, release.levels or {}
        rows = [
            (
                fate.column,
                fate.retained,
                names.name(fate.column, levels[fate.column]) if fate.column in levels else fate.level,
                fate.released_as,
                fate.role,
            )
            for fate in fates
        ]
        lost = {(row, 1): "bad" for row, fate in enumerate(fates) if fate.retained == "lost"}
        head = ("Column", "Retained", "Generalized", "Released as", "Role")
        elements.table(head, rows, right=(1,), classes="fit small rows wide-result", cell_classes=lost)


def verdict_card(tab: TabView, release: Release) -> None:
    """Show the verification, what the algorithm guarantees, and the figures of the release."""
    verification, verdict = release.verification, release_verdict(release)
    with elements.card("Verification", "The written file was read back and checked.", data_part="verdict"):
        elements.message(("\u2713 " if verdict.tone == "good" else "") + verdict.text, verdict.tone)
        if tab.workspace.release.is_applied:
            text = "Made by the uploaded recipe, whose models are below; not by the settings beside this."
            elements.message(text, "warn")
        for revealed in release.revealed:
            elements.message(revealed.message, "bad")
        unchanged = release.unchanged
        elements.message(unchanged.sentence, "" if unchanged.unique == 0 else "warn")
        for note in (*([WILDCARDS] if release.wildcards else ()), *release.notes):
            elements.message(f"Note: {note}", "warn")
        elements.table(["Model", "Outcome"], [(check.label, check.outcome) for check in verification.models])
        with elements.box("tight", data_part="guarantee"):
            elements.tag("h3", f"What {release.algorithm} guarantees")
            elements.tag("p", guarantee_statement(release.algorithm))
            elements.tag("p", f"This time: {proven_statement(release)}")
        _figures(release)
        if release.levels:
            source = "as chosen" if tab.workspace.negotiation.node else f"found by {release.algorithm}"
            levels = tab.workspace.table.level_names.describe(release.levels)
            elements.note(f"{levels[:1].upper()}{levels[1:]}: {source}.")


def _figures(release: Release) -> None:
    verification = release.verification
    with elements.box("cards four"):
        lost = len(release.columns_without_information)
        lost_text = f"{plural(lost, 'column')} lost" if lost else "no column lost"
        elements.tile(percent(release.retained_overall), "retained", lost_text)
        elements.tile(f"{verification.records:,}", "records released", f"of {release.records:,}")
        share = percent(release.suppressed / release.records)
        elements.tile(f"{release.suppressed:,}", "records suppressed", share)
        smallest = "fewest that match" if release.wildcards else "smallest class"
        elements.tile(f"{verification.smallest_class:,}", smallest, plural(verification.classes, "class"))


class AdviceCard:
    """The button that searches for alternatives, and the share that each alternative would retain."""

    def __init__(self, tab: TabView, release: Release) -> None:
        self.tab = tab
        self.form = JobForm(tab, "advice", {})
        advice, overall = tab.workspace.advice.result, release.retained_overall
        description = f"What other choices retain. This release retains {percent(overall)}."
        with elements.card("Alternatives", description, data_part="advice"):
            if advice is None:
                style = "align-self: flex-start"
                elements.button("What else is possible", self.form.start, style=style)
            elif not advice:
                elements.note("No other choice that was tried retains more.")
            self.form.add_job_view()
            for number, entry in enumerate(advice or ()):
                self._entry(number, entry, overall)

    def _entry(self, number: int, entry: Advice, overall: float) -> None:
        with elements.box("offer", data_advice=number):
            with elements.box("tight"):
                elements.tag("b", f"{retained_text(entry, overall)}, if {entry.change}")
                elements.note(f"Drawback: {entry.drawback}.")
            elements.button("Use this", partial(self.use, number), "small")

    async def use(self, number: int) -> None:
        """Adopt the policy of an entry as the draft."""
        await self.tab.change(self.form.job_view.show_message, self.tab.workspace.advice.use, number)


class ReleaseFiles:
    """The card of downloads. Its `options` are stored in the state of the tab."""

    def __init__(self, tab: TabView, options: dict[str, Any]) -> None:
        self.tab, self.values = tab, options
        self.links: dict[str, TextElement] = {}  # links to text tables
        with elements.card("Files"):
            self.draw()

    def draw(self) -> None:
        """Show the downloads. For an unverified release, show why it cannot be downloaded."""
        release = self.tab.workspace.release
        files, withheld = release.files(), release.withheld
        if withheld:
            elements.message(withheld, "bad").props("data-part=withheld")
        with elements.box("tight", style="gap: 8px"):
            for name in (name for name in _FILES if name in files):
                self._file(name, is_text_table(files[name]))
        if "release" in self.links:
            self._options(files["release"])
        if "release" in files:
            self._shown("The first rows of the release", files["release"], self.show_rows)
        for name in ("report", "certificate"):
            if name in files:
                self._shown(f"The {name}, here on the page", files[name], self.show_page)

    def _shown(self, label: str, path: Path, show: Callable[[Path], Any]) -> None:
        """Add a collapsed section. Its file is read when a user opens the section."""
        with elements.box("", "details") as part:
            elements.tag("summary", label)
            body = elements.box("scroll", style="padding-top: 8px")

        async def open_part() -> None:
            if not list(body):
                with body:
                    await show(path)

        part.on("toggle", lambda _: open_part(), args=[])

    async def show_rows(self, _: Path) -> None:
        rows, first = self.tab.workspace.rows, RowRequest(count=_FIRST_ROWS)
        page = await anyio.to_thread.run_sync(rows.page, "release", first)
        texts = [["" if value is None else value for value in row.values] for row in page.rows]
        elements.table(page.columns, texts, classes="fit small")

    async def show_page(self, path: Path) -> None:
        """Show an HTML page in a frame that runs no scripts and loads nothing."""
        text = await anyio.to_thread.run_sync(path.read_text, "utf-8")
        elements.box("page-frame", "iframe", sandbox="", srcdoc=text, title=path.stem.capitalize())

    def _options(self, path: Path) -> None:
        elements.checkbox("Safe for spreadsheets", self.values["safe"], partial(self.set_option, "safe"))
        elements.note(
            "Cells that begin with =, +, - or @ get an apostrophe, so that no program runs them. "
            "Negative numbers become text."
        )
        if path.suffix == ".csv":
            set_option = partial(self.set_option, "semicolons")
            elements.checkbox("Semicolons and a byte order mark", self.values["semicolons"], set_option)
            elements.note("As Excel in much of Europe expects of a CSV.")

    def _file(self, name: str, is_text: bool) -> None:
        title, description = _FILES[name]
        classes = "btn small primary" if name == "release" else "btn small"
        with elements.box("line", style="flex-wrap: nowrap"):
            with elements.box("", style="width: 130px; flex: none"):
                href = self.address(name, is_text)
                link = elements.tag("a", title, classes, href=href, download="", data_file=name)
            if is_text:
                self.links[name] = link
            elements.tag("span", description, "muted small")

    def set_option(self, option: str, on: bool) -> None:
        """Change an option of downloads. The links are updated in place, so that the focus stays."""
        self.values[option] = on
        for name, link in self.links.items():
            link._props["href"] = self.address(name, is_text=True)
            link.update()

    def address(self, name: str, is_text: bool) -> str:
        options = [f"{name}=true" for name in ("semicolons", "safe") if self.values[name] and is_text]
        query = f"?{'&'.join(options)}" if options else ""
        return f"/api/workspaces/{self.tab.state.workspace}/files/{name}{query}"
