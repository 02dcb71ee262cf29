"""Two questions that determine the policy: what an outsider could know, and what the analyst needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.columns.known_keep import check_answers
from shoal.core.progress import Progress
from shoal.web.errors import NotReady, error_field
from shoal.web.workspace.draft import CachedResult, PolicyDraft, Snapshot, raise_if_cancelled
from shoal.workflow.first_policy import FirstPolicy, first_policy
from shoal.workflow.inspect import ColumnGuesses
from shoal.workflow.policy_request import DEFAULT_K, PolicyRequest
from shoal.workflow.session import session


@dataclass(frozen=True)
class KnownKeepAnswer:
    """The answers that the policy was made from, notes on the answers, and whether undo is possible."""

    known: tuple[str, ...] | None
    keep: tuple[str, ...]
    notes: tuple[str, ...]
    can_undo: bool


class KnownKeepStep:
    """The answers to the two questions, and the draft as it was before the answers."""

    def __init__(self, draft: PolicyDraft) -> None:
        self.draft = draft
        self._before: CachedResult[Snapshot] = CachedResult()
        self._answered: CachedResult[FirstPolicy] = CachedResult()

    def run(
        self,
        known: Sequence[str] | None = None,
        keep: Sequence[str] | None = None,
        k: int = DEFAULT_K,
        *,
        progress: Progress | None = None,
    ) -> FirstPolicy:
        """Replace roles, hierarchies, metric and limits with those that `shoal.init` chooses."""
        self.check(known, keep)
        table = self.draft.table
        with table.changes.lock:
            inspection, path, revision = table.loaded, table.path, table.revision
        with session(path, progress=progress) as s:
            guesses = ColumnGuesses(inspection.columns, inspection.records)
            first = first_policy(s, PolicyRequest(known, keep, k), columns=guesses)
        raise_if_cancelled(progress)
        with table.changes.lock:
            if table.revision != revision:
                raise NotReady("Another table was opened. Answer for that one.")
            before = self.draft.snapshot()
            self.draft.adopt(first.policy)
            self._before = CachedResult(revision, before)
            self._answered = CachedResult(revision, first)
        return first

    def check(self, known: Sequence[str] | None, keep: Sequence[str] | None) -> None:
        """Raise an error if a name is not a column of the table, or if `known` contains every column."""
        names = self.draft.table.loaded.names
        with error_field("known"):
            check_answers(known, None, names)
        with error_field("keep"):
            check_answers(None, keep, names)

    def undo(self) -> None:
        """Restore the draft as it was before the last answers; this is possible only once."""
        with self.draft.table.changes.lock:
            before = self._before.get(self.draft.table.revision)
            if before is None:
                raise NotReady("There are no answers to undo.")
            self.draft.restore(before)
            self._before, self._answered = CachedResult(), CachedResult()

    @property
    def answer(self) -> KnownKeepAnswer:
        """The last answers about the open table."""
        revision = self.draft.table.revision
        first, can_undo = self._answered.get(revision), self._before.get(revision) is not None
        if first is None:
            return KnownKeepAnswer(None, (), (), can_undo)
        return KnownKeepAnswer(first.answers.known, first.answers.keep, first.notes, can_undo)
