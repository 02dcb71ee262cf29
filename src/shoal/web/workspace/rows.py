"""The rows of the table and of its release, for the page of their owner."""

from __future__ import annotations

import threading
from typing import Literal

from shoal.core.rows import RowPage, RowRequest
from shoal.web.workspace.draft import PolicyDraft
from shoal.web.workspace.release import ReleaseStep
from shoal.workflow.inspect import RowBrowser
from shoal.workflow.policy_request import DEFAULT_K

Which = Literal["table", "release"]


class RowsView:
    """The table and its release, open for reading. Each is reopened when its rows or classes change."""

    def __init__(self, draft: PolicyDraft, release: ReleaseStep) -> None:
        self.draft, self.release = draft, release
        self._open: dict[Which, tuple[object, RowBrowser]] = {}
        self._lock = threading.Lock()

    @property
    def least(self) -> int:
        """The number of records that a class needs under the policy. Smaller classes are marked."""
        if self.draft.missing():
            return DEFAULT_K
        return max(2, *[model.least_size for model in self.draft.policy().privacy_models])

    def page(self, which: Which, request: RowRequest) -> RowPage:
        table = self.draft.table
        with table.changes.lock:
            _ = table.loaded
            path: object = table.path
            classes = table.quasi_identifiers
            key: object = (table.revision, classes)
            if which == "release":
                release = self.release.required_result
                path, policy = self.release.output, release.policy
                key = str(release.output)
                classes = tuple(
                    part for name in policy.roles.quasi_identifiers for part in policy.released(name)
                )
        with self._lock:
            old = self._open.get(which)
            if old is None or old[0] != key:
                self._close(which)
                old = self._open[which] = key, RowBrowser(path, classes)
            return old[1].page(request)

    def close(self) -> None:
        with self._lock:
            for which in list(self._open):
                self._close(which)

    def _close(self, which: Which) -> None:
        old = self._open.pop(which, None)
        if old is not None:
            old[1].close()
