"""Risk: gauges with the threshold, what every class satisfies, and an attack with a register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.document.document import without_markup
from shoal.web.pages import elements
from shoal.web.pages.tab import JobForm, JobView, TabView, receive_file
from shoal.web.workspace.examine import REVEALED
from shoal.workflow.risk.exposure import TableRisk
from shoal.workflow.risk.risk import Risk

_GAUGES: dict[
    str, tuple[str, Callable[[TableRisk], float]]
] = {  # by intruder: what the intruder knows or wants, and the name of the risk
    "Prosecutor": ("knows that the person is in the table", lambda table: table.prosecutor.highest),
    "Journalist": ("knows that the person is in the population", lambda table: table.journalist.highest),
    "Marketer": ("wants to match as many as possible", lambda table: table.marketer),
}
_KINDS = {"Prosecutor": "highest risk", "Journalist": "highest risk", "Marketer": "expected share of matches"}


class RiskCard:
    """Threshold and population, and the risk in the terms of regulators."""

    def __init__(self, tab: TabView) -> None:
        defaults = {"threshold": "", "population_size": "", "sampling_share": ""}
        self.form = JobForm(tab, "risk", defaults)
        description = "Prosecutor, journalist and marketer risk, and what makes records unique."
        with elements.card("In the terms of regulators", description, data_part="risk"):
            with elements.box("line top"):
                self.form.text("threshold", "Risk threshold", placeholder="0.2 or 1/11")
                label = "Persons in the population"
                self.form.text("population_size", label, inputmode="numeric", placeholder="not known")
                label = "Share of them in the table"
                self.form.text("sampling_share", label, placeholder="10%, or not known")
                with elements.box("line", style="padding-top: 21px"):
                    elements.button("Assess", self.start)
            self.form.add_job_view()
            if tab.workspace.risk.result is not None:
                show_risk(tab.workspace.risk.result)

    def start(self) -> None:
        shares = {  # a fraction such as 1/11, or a percentage
            name: self.form.values[name].strip() or None for name in ("threshold", "sampling_share")
        }
        persons = elements.parse_value(self.form.values["population_size"].replace(",", ""))
        self.form.start(shares, population_size=persons)


def show_risk(risk: Risk) -> None:
    """Show gauges, the measures, the sets of columns that make records unique, and likely identifiers."""
    measures, *others = risk.document().tables
    with elements.box("cards gauges"):
        for intruder in _GAUGES:
            _gauges(risk, intruder)
    with elements.box("split halves" if others else "", style="align-items: start"):
        elements.document_table(measures)
        if others:
            with elements.box("stack"):
                for content in others:
                    elements.tag("h3", without_markup(content.title))
                    elements.document_table(content)


def _gauges(risk: Risk, intruder: str) -> None:
    """Show gauges of a risk with its threshold, for the table and, if there is one, for the release."""
    knows, value = _GAUGES[intruder]
    tables: dict[str, TableRisk] = {"before": risk.before} | ({"after": risk.after} if risk.after else {})
    with elements.box("tile tight"):
        elements.tag("h3", f"{intruder}: {_KINDS[intruder]}")
        for name, table in tables.items():
            elements.gauge(f"{intruder} risk {name}", name, value(table), risk.threshold)
        elements.note(f"An intruder who {knows}.")


class MeasureCard:
    """The measures that every class satisfies, in the table and in its release."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        form = JobForm(tab, "measurement", {})
        description = "The k, l, t and so on that hold for every class of the quasi-identifiers."
        with elements.card("What every class satisfies", description, data_part="measure"):
            with elements.box("line"):
                elements.button("Measure", form.start)
            form.add_job_view(self.draw)
            self.body = elements.box("stack")
        self.draw()

    def draw(self) -> None:
        result = self.tab.workspace.measurement.result
        self.body.clear()
        if result is None:
            return
        tables = {"The table": result.before} | ({"The release": result.after} if result.after else {})
        with self.body, elements.box("split halves" if result.after else ""):
            for title, measurement in tables.items():
                with elements.box("tight"):
                    elements.tag("h3", title)
                    elements.show_document(measurement.document())


class AttackCard:
    """An attack on the release with a register of persons that is uploaded, used once and deleted."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        policy = tab.workspace.release.required_result.policy
        defaults: dict[str, Any] = {
            "known": list(policy.roles.quasi_identifiers),
            "other": "",
            "k": "",
            "reveal": False,
        }
        self.values = tab.state.fields.setdefault("attack", defaults)
        self.form = elements.Form(self.values)
        description = "Whom could somebody find with a register of names? It is deleted after use."
        with elements.card("Attack with a register", description, data_part="attack"):
            names = policy.roles.quasi_identifiers
            known = [name for name in self.values["known"] if name in names]
            elements.choices("Columns that the register has", names, known, self.choose)
            with elements.box("line top"):
                hint = "age=years, sex=gender"
                self.form.text("other", "Columns with another name there", 260, placeholder=hint)
                self.form.text("k", "Records to match, at least", 170, placeholder="the policy's k")
            text = f"List up to {REVEALED} persons who are singled out, with what is learnt about them"
            elements.checkbox(text, self.values["reveal"], self.set_reveal)
            self._upload()
            self.job_view = JobView(tab, "attack", lambda _: self.draw())
            self.body = elements.box("tight", data_part="attacked")
        self.draw()

    def _upload(self) -> None:
        workspaces = self.tab.workspaces
        too_large = f"The file is larger than {workspaces.upload_limit:,} bytes, the limit."
        with elements.box("line"):
            elements.upload_button(
                "Upload a register and attack",
                self.receive,
                workspaces.upload_limit,
                on_rejected=lambda: self.job_view.show_message(too_large),
            )
            elements.note(workspaces.upload_limits())

    def choose(self, names: list[str]) -> None:
        self.values["known"] = names

    def set_reveal(self, on: bool) -> None:
        """Set whether persons are listed or only counted."""
        self.values["reveal"] = on

    def joined(self) -> list[str]:
        """Return the columns to join on, with their names in the register."""
        others = [part.strip() for part in self.values["other"].split(",") if part.strip()]
        renamed = {part.partition("=")[0].strip() for part in others}
        return [*[name for name in self.values["known"] if name not in renamed], *others]

    async def receive(self, event: Any) -> None:
        workspaces, name, on = self.tab.workspaces, self.tab.state.workspace, self.joined()
        k, reveal = elements.parse_whole(self.values["k"]), bool(self.values["reveal"])
        register = await receive_file(
            self.job_view.show_message, lambda: workspaces.receive_register(name, event.file.name), event
        )
        if register is not None:
            self.job_view.start(
                lambda progress: workspaces.attack(name, register, on, progress, k=k or None, reveal=reveal)
            )

    def draw(self) -> None:
        result = self.tab.workspace.attack.result
        self.body.clear()
        if result is not None:
            with self.body:
                elements.show_document(result.document())
