"""A workspace: the work of one user on one table, in five steps from the data to the release.

Each result is stored with the state that it was computed from, and is shown only while this state is current.
A change therefore hides exactly the results that it affects. Undoing the change shows them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shoal.core.progress import Progress
from shoal.policy.policy import Policy
from shoal.sample import bundled
from shoal.web.workspace.diagnosis import DiagnosisCounts, DiagnosisStep, QuestionStep
from shoal.web.workspace.draft import PolicyDraft
from shoal.web.workspace.examine import AdviceStep, AttackStep, CheckStep, MeasureStep, RiskStep, UtilityStep
from shoal.web.workspace.history import History
from shoal.web.workspace.known_keep import KnownKeepStep
from shoal.web.workspace.live_utility import LiveUtility
from shoal.web.workspace.negotiation import NegotiationStep
from shoal.web.workspace.preview import PreviewStep
from shoal.web.workspace.release import ComparisonStep, ReleaseStep
from shoal.web.workspace.rows import RowsView
from shoal.web.workspace.scenarios import Scenarios
from shoal.web.workspace.table import NO_COLUMNS, NO_TABLE, Changes, TableSource, WorkspaceTable
from shoal.workflow.inspect import Inspection, inspect
from shoal.workflow.session import RemoteTable


@dataclass(frozen=True)
class StepAnswer:
    """Whether a step can be used and is done, and what is missing."""

    name: str
    usable: bool
    done: bool
    missing: str | None


class Workspace:
    """The five steps over one table: data (table and draft), diagnose, negotiate, compare, release."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # private: uploads, the sample and releases
        self.table = WorkspaceTable(folder, Changes())
        self.draft = PolicyDraft(self.table)
        self.known_keep = KnownKeepStep(self.draft)
        counts = DiagnosisCounts(self.draft)
        self.diagnosis = DiagnosisStep(self.draft, counts)
        self.question = QuestionStep(self.draft, counts)
        self.negotiation = NegotiationStep(self.draft)
        self.comparison = ComparisonStep(self.draft)
        self.preview = PreviewStep(self.draft, self.negotiation)
        self.live_utility = LiveUtility(self.draft, self.negotiation)
        self.release = ReleaseStep(self.draft, self.negotiation)
        self.check = CheckStep(self.draft, self.release)
        self.advice = AdviceStep(self.draft, self.release)
        self.risk = RiskStep(self.draft, self.release)
        self.rows = RowsView(self.draft, self.release)
        self.measurement = MeasureStep(self.draft, self.release)
        self.attack = AttackStep(self.draft, self.release)
        self.utility = UtilityStep(self.draft, self.release)
        self.history = History(self.draft, self.negotiation)
        self.scenarios = Scenarios(self.history, self.preview)

    def open(
        self, path: Path | RemoteTable, name: str | None = None, progress: Progress | None = None
    ) -> Inspection:
        """Open a table and start with the suggested roles and hierarchies."""
        inspection = inspect(path, progress=progress)
        self.rows.close()
        with self.table.changes.lock:
            self.table.replace(path, name or path.name, inspection)
            self.draft.reset()
            self.negotiation.log.replace(())
        return inspection

    def open_sample(self, progress: Progress | None = None) -> Inspection:
        """Open the bundled sample with its policy."""
        data, policy = bundled(self.folder / "sample", force=True)
        inspection = self.open(data, "admissions.csv", progress)
        self.table.source = TableSource("sample")
        self.draft.adopt(Policy.load(policy))
        self.history.reset()
        self.prepare()
        return inspection

    def file(self, name: str) -> Path:
        """Return a file to download: the row numbers of the affected records, or a file of the release."""
        if name == "affected-rows" and (result := self.question.result) and result.rows:
            return result.rows
        return self.release.file(name)

    def close(self) -> None:
        """Remove all listeners: a reference from a listener would keep the workspace in memory."""
        self.rows.close()
        self.history.on_change.clear()
        self.table.changes.close()

    def prepare(self) -> None:
        """Check all hierarchies and steps. The pages, which must not block, then find cached results."""
        for name in self.table.quasi_identifiers if self.table.inspection else ():
            self.table.check_hierarchy(name)  # the lock is not held, so that pages can read meanwhile
        self.steps()

    def steps(self) -> list[StepAnswer]:
        missing = self.draft.missing()
        no_table = None if self.table.inspection else NO_TABLE
        no_columns = no_table or (None if self.table.quasi_identifiers else NO_COLUMNS)
        steps = (
            ("data", missing is None, None),
            ("diagnose", self.diagnosis.findings, no_columns),
            ("negotiate", self.negotiation.profile, missing),
            ("compare", self.comparison.result, missing),
            ("release", self.release.result, missing),
        )
        return [
            StepAnswer(name=name, usable=lacks is None, done=bool(done), missing=lacks)
            for name, done, lacks in steps
        ]
