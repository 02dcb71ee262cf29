"""Step 2, diagnose: how exposed the records are, unsafe sets of columns, the risk, and other questions."""

from __future__ import annotations

from typing import Any

from shoal.errors import ShoalError
from shoal.web.pages import charts, elements
from shoal.web.pages.risk import MeasureCard, RiskCard
from shoal.web.pages.tab import JobForm, TabView, next_button, run_in_thread
from shoal.web.workspace.diagnosis import Findings, QuestionResult
from shoal.wording import percent, plural
from shoal.workflow.diagnosis.questions import QUESTIONS, SetFinding, Sets
from shoal.workflow.plain_words import QUESTION_SENTENCES, question_sentence

_MAX_SETS = 12
_MAX_CURVES = 60
_FIELDS = {  # the label and default of each option that a question may have
    "k": ("k or l", "5"),
    "suppression_limit": ("Suppression limit", "5%"),
    "max_size": ("Columns in a set, at most", "3"),
    "most": ("Largest k", "20"),
}
_DIVERSITY = {
    "distinct": "distinct values",
    "entropy": "their entropy",
    "recursive": "recursive, for a c",
}


class DiagnoseView:
    """The questions on top, the findings below."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        defaults = {"k": "5", "suppression_limit": "0", "sensitive": "", "set": ""}
        self.form = JobForm(tab, "diagnosis", defaults)
        with elements.card("How exposed are the records as they are?"):
            with elements.box("line top"):
                self.form.text("k", "k or l", 110, inputmode="numeric")
                self.form.text("suppression_limit", "Suppression limit", placeholder="0 or 5%")
                sensitive = tab.workspace.table.with_role("sensitive")
                if sensitive:
                    options = {"": "records alike (k)"} | {
                        name: f"values of {name} (l)" for name in sensitive
                    }
                    self.form.select("sensitive", "Protect by", options, 220)
                else:
                    self.form.values["sensitive"] = ""
                with elements.box("line grow spread", style="padding-top: 21px"):
                    elements.button("Run the diagnosis", self.start, "primary")
                    next_button(tab)
            self.form.add_job_view()
        findings = tab.workspace.diagnosis.findings
        if findings is not None:
            self.show_findings(findings)
        elif self.form.job_view.job is None:
            self.start()
        QuestionCard(tab)

    def start(self) -> None:
        values = self.form.values
        self.form.start(
            k=elements.parse_value(values["k"]),
            suppression_limit=elements.parse_limit(values["suppression_limit"].strip() or "0"),
            sensitive=values["sensitive"] or None,
        )

    def show_findings(self, findings: Findings) -> None:
        risk, name, k = findings.risk, findings.measure, findings.k
        unique = "unique records" if name == "k" else "records with one value only"
        unique_share = f"{percent(risk.unique / risk.records)} of {risk.records:,}"
        share = f"{percent(findings.suppressed / risk.records)}, {findings.limit:,} allowed"
        with elements.box("cards"):
            elements.tile(f"{risk.k:,}", f"{name} that the table reaches", f"{k} was requested")
            elements.tile(f"{risk.unique:,}", unique, unique_share)
            elements.tile(percent(risk.highest), "highest risk", "of the most exposed record")
            elements.tile(percent(risk.average), "average risk", plural(risk.classes, "combination"))
            elements.tile(f"{findings.suppressed:,}", f"records below {name} = {k}", share)
        with elements.box("split halves"):
            unsafe = (
                f"Each violates {name} = {k}, and no part of it does. These are the columns to generalize."
            )
            _show_sets("Smallest unsafe sets", unsafe, findings.unsafe, name)
            self.show_curve(findings)
        safe = f"The largest sets of columns that satisfy {name} = {k} as they are."
        _show_sets("Safe frontier", safe, findings.safe, name)
        RiskCard(self.tab)
        MeasureCard(self.tab)

    def show_curve(self, findings: Findings) -> None:
        """Draw the share of records that each k would suppress, for a chosen set of columns."""
        unsafe = findings.unsafe
        all_lost = unsafe.whole.suppressed == findings.risk.records  # the curve of all columns is then flat
        default = "0" if all_lost and unsafe.findings else "all"
        listed = sorted((*unsafe.findings, *findings.safe.findings), key=_most_exposed)[:_MAX_CURVES]
        sets = {"all": findings.columns}
        sets |= {str(number): finding.columns for number, finding in enumerate(listed)}
        names = {key: ", ".join(columns) for key, columns in sets.items()} | {"all": "all quasi-identifiers"}
        title = f"What each {findings.measure} costs"
        with elements.card(title, "Records below it, if nothing is generalized."):
            chosen = self.form.values["set"] if self.form.values["set"] in sets else default
            elements.select("Set of columns", names, chosen, lambda key: draw(key))
            chart = charts.add_chart(self.tab.dark, 280)
            error_line = elements.error_line()

        def draw(key: str) -> None:
            self.form.values["set"] = key
            try:
                rows = self.tab.workspace.diagnosis.curve(sets[key])
            except ShoalError as error:
                elements.set_error(error_line, str(error))
                return
            charts.draw(chart, charts.curve(rows, findings.k, self.tab.dark))

        draw(chosen)


def _most_exposed(finding: SetFinding) -> tuple[int, int]:
    return (-finding.suppressed, len(finding.columns))


def _show_sets(title: str, description: str, sets: Sets, measure: str) -> None:
    with elements.card(title, description):
        if not sets.findings:
            elements.tag("p", "There is none.", "muted")
            return
        rows = [
            (", ".join(finding.columns), f"{finding.k:,}", f"{finding.suppressed:,}")
            for finding in sets.findings[:_MAX_SETS]
        ]
        with elements.box("scroll", style="max-height: 420px"):
            elements.table(["Columns", f"reaches {measure}", "records below"], rows, right=(1, 2))
        hidden = len(sets.findings) - _MAX_SETS
        if hidden > 0:
            elements.note(f"and {hidden:,} more")
        if not sets.complete:
            elements.tag("p", "The time limit was reached: there may be others.", "warn small")


class QuestionCard:
    """The choice of a question, of its columns and of its options, and the answer."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        table = tab.workspace.table
        defaults: dict[str, Any] = {name: value for name, (_, value) in _FIELDS.items()}
        defaults |= {"question": "1", "at_most": False, "columns": list(table.quasi_identifiers)}
        defaults |= {"sensitive": "", "diversity": "distinct", "c": "", "l": ""}
        self.form = JobForm(tab, "question", defaults)
        self.values: dict[str, Any] = self.form.values
        description = "About any columns, whatever their roles are."
        with elements.card("Ask about the table as it is", description, data_part="ask"):
            self._columns()
            with elements.box("field", "label"):
                elements.tag("span", "Question")
                texts = {n: f"{i}. {QUESTIONS[n].text}" for i, n in enumerate(QUESTION_SENTENCES, 1)}
                choose = self.choose_question
                elements.bare_select(texts, self.values["question"], choose, aria_label="Question")
            self.sentence = elements.note("")
            self.options = elements.box("line top")
            with elements.box("line"):
                elements.button("Ask", self.start, "primary")
            self.form.add_job_view(self.draw)
            self.answer = elements.box("tight", data_part="answer")
            self.show_options()
            self.draw()

    def _columns(self) -> None:
        names = self.tab.workspace.table.loaded.names
        self.values["columns"] = [name for name in self.values["columns"] if name in names]

        def choose(chosen: list[str]) -> None:
            self.values["columns"] = chosen

        self.form.fields["columns"] = elements.choices("Columns", names, self.values["columns"], choose)

    def choose_question(self, question: str) -> None:
        self.values["question"] = question
        self.show_options()

    @property
    def accepted_options(self) -> set[str]:
        """The options of the question. Questions 5 to 8 are questions 1 to 4 with a suppression limit."""
        name = self.values["question"]
        without = {"suppression_limit"} if name in ("1", "2", "3", "4") else set()
        return {*QUESTIONS[name].needs, *QUESTIONS[name].takes} - without

    def show_options(self) -> None:
        self.sentence.set_text(question_sentence(self.values["question"], "web"))
        self.options.clear()
        for name in (*_FIELDS, "c", "l"):
            self.form.fields.pop(name, None)
        option_names = self.accepted_options
        with self.options:
            for name, (label, _) in _FIELDS.items():
                if name in option_names:
                    self.form.text(name, label, 150)
            if self.values["question"] != "suggest":
                self._protection()
            if "at_most" in option_names:
                with elements.box("", style="padding-top: 21px"):
                    elements.checkbox("at most, not at least", self.values["at_most"], self.set_at_most)

    def _protection(self) -> None:
        sensitive = self.tab.workspace.table.with_role("sensitive")
        if not sensitive:
            self.values["sensitive"] = ""
            return
        options = {"": "records alike (k)"} | {name: f"values of {name} (l)" for name in sensitive}
        if self.values["sensitive"] not in options:
            self.values["sensitive"] = ""
        with elements.box("", style="width: 210px"):
            elements.select("Protect by", options, self.values["sensitive"], self.choose_sensitive)
        if self.values["sensitive"]:
            self.form.select("diversity", "Count by", _DIVERSITY, 170)
            self.form.text("c", "c, if recursive", 100)
            self.form.text("l", "l beside k, if both", 130)

    def choose_sensitive(self, name: str) -> None:
        self.values["sensitive"] = name
        self.show_options()

    def set_at_most(self, on: bool) -> None:
        self.values["at_most"] = on

    def start(self) -> None:
        values, option_names = self.values, self.accepted_options
        if not values["columns"]:
            self.form.show_errors({"columns": "Choose at least one column."})
            return
        options: dict[str, Any] = {
            name: elements.parse_value(values[name])
            for name in _FIELDS
            if name in option_names and values[name].strip()
        }
        if "suppression_limit" in options:
            options["suppression_limit"] = elements.parse_limit(values["suppression_limit"])
        if "at_most" in option_names:
            options["at_most"] = values["at_most"]
        sensitive = values["sensitive"] if values["question"] != "suggest" else ""
        if sensitive:
            options |= {"sensitive": sensitive, "diversity": values["diversity"]}
            options |= {name: number for name in ("c", "l") if (number := elements.parse_value(values[name]))}
        self.form.start(question=values["question"], columns=values["columns"], **options)

    def draw(self) -> None:
        self.answer.clear()
        result = self.tab.workspace.question.result
        if result is not None:
            with self.answer:
                self.show_answer(result)

    def show_answer(self, result: QuestionResult) -> None:
        """Show an answer, with a link to its file or a button to use its policy."""
        elements.show_document(result.answer.document())
        if result.rows is not None:
            href = f"/api/workspaces/{self.tab.state.workspace}/files/affected-rows"
            text = "Download the numbers of these records"
            elements.tag("a", text, "btn small", href=href, download="", style="align-self: flex-start")
        if result.answer.question == "suggest":
            policy = result.answer.answer["policy"]

            async def adopt() -> None:
                async with self.tab.changing:
                    if await run_in_thread(error.set_text, self.tab.workspace.draft.adopt_yaml, policy):
                        self.tab.go("data")

            elements.button("Use this policy", adopt, "small", style="align-self: flex-start")
            error = elements.error_line()
