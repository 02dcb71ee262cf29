"""The two questions of step 1, data. The answers set roles, hierarchies, metric and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.web.pages import elements
from shoal.web.pages.tab import JobForm, TabView
from shoal.workflow.policy_request import DEFAULT_K

_QUESTIONS = {
    "known": (
        "What could an outsider know?",
        "Columns that somebody could know of a person. They are generalized; the others are released as they "
        "are. None chosen: to be safe, all columns that are not recognized are generalized.",
    ),
    "keep": (
        "What does the analyst need?",
        "Columns that must stay useful. One that an outsider could also know keeps at least two labels.",
    ),
}


class KnownKeepCard:
    """The two questions, and the button that sets the policy."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        workspace = tab.workspace
        defaults: dict[str, Any] = {"known": [], "keep": [], "k": str(DEFAULT_K)}
        self.form = JobForm(tab, "answers", defaults)
        self.names = workspace.table.loaded.names
        last = workspace.known_keep.answer
        is_open = workspace.draft.is_suggested or last.can_undo
        title = "Two questions instead of a role for each column"
        with elements.details(title, "card", "stack", data_part="questions", is_open=is_open):
            with elements.box("split halves"):
                for name, (label, description) in _QUESTIONS.items():
                    with elements.box("tight", data_question=name):
                        self._question(name, label, description)
            with elements.box("line", style="align-items: flex-end"):
                self.form.text("k", "k", 70)
                elements.button("Set the policy", self.start, "primary")
            self.form.add_job_view(self.show_policy)
            known_notes = workspace.draft.notes()  # these notes are already shown beside the columns
            for note in (note for note in last.notes if note not in known_notes):
                elements.message(note)

    def _question(self, name: str, label: str, description: str) -> None:
        chosen = [column for column in self.form.values[name] if column in self.names]
        self.form.values[name] = chosen
        line = elements.choices(label, self.names, chosen, self._answer_to(name))
        self.form.fields[name] = line
        elements.note(description)

    def _answer_to(self, name: str) -> Callable[[list[str]], None]:
        return lambda chosen: self.form.values.update({name: chosen})

    def start(self) -> None:
        """Set the policy, unless nothing is chosen."""
        known, keep = self.form.values["known"], self.form.values["keep"]
        if not known and not keep:
            self.form.show_errors({"known": "Choose a column here, or one that the analyst needs."})
            return
        answers = {name: columns for name, columns in (("known", known), ("keep", keep)) if columns}
        self.form.start(**answers, k=elements.parse_value(self.form.values["k"]))

    def show_policy(self) -> None:
        self.tab.state.dials.clear()
        self.tab.refresh()
