"""The loss of utility of the node or local recoding that Negotiate shows, before a release is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.core.progress import Progress
from shoal.policy.policy import Policy
from shoal.web.workspace import lattice
from shoal.web.workspace.draft import PolicyDraft, raise_if_cancelled
from shoal.web.workspace.negotiation import NegotiationStep
from shoal.web.workspace.preview import ReleasePreview, search_preview
from shoal.workflow.profile.offer import Request, adopted
from shoal.workflow.search import Recoded
from shoal.workflow.utility.unwritten import UnwrittenUtility, unwritten_utility

LOCAL_SECONDS = 10.0  # the time limit of a search for a local recoding


@dataclass(frozen=True)
class LocalAnswer:
    """A local recoding for a request of a negotiation, in memory only."""

    request: Request
    preview: ReleasePreview
    recoded: Recoded


class LiveUtility:
    """Compares the table with its recoding at a node, or with a local recoding."""

    def __init__(self, draft: PolicyDraft, negotiation: NegotiationStep) -> None:
        self.draft, self.negotiation = draft, negotiation
        self.pair: tuple[str, str] | None = None  # the columns of the two-way table
        self.local: LocalAnswer | None = None  # the last one that was searched

    def of_node(self, node: Mapping[str, int], request: Request) -> UnwrittenUtility:
        """Compare the table with a node under the k, l and limit of a request."""
        profile = self.negotiation.tabulated
        return self._of(lattice.recoded_at(profile, node, request.privacy))

    def of_local(self, request: Request) -> UnwrittenUtility | None:
        """Compare the table with the local recoding of a request. None if there was no search for it."""
        local = self.local
        return self._of(local.recoded) if local is not None and local.request == request else None

    def search_local(self, request: Request, progress: Progress | None = None) -> LocalAnswer:
        """Search for a local recoding within the k, l, limit and highest levels of a request."""
        with self.draft.table.changes.lock:
            policy, path = self._local_policy(request), self.draft.table.path
        preview, recoded = search_preview(path, policy, {}, LOCAL_SECONDS, progress)
        raise_if_cancelled(progress)
        self.local = LocalAnswer(request, preview, recoded)
        return self.local

    def _local_policy(self, request: Request) -> Policy:
        policy = self.draft.policy()
        strength: dict[str, Any] = {"k": request.privacy.k, "l": request.privacy.l, "limit": request.limit}
        if request.privacy.l is not None:
            strength |= {"sensitive": request.sensitive, "diversity": request.diversity, "c": request.c}
        offer = {name: value for name, value in strength.items() if value is not None}
        policy, _ = adopted(policy, {"node": dict(request.max_level), **offer})
        columns = policy.model_dump(mode="json", exclude_unset=True)["columns"]
        for name, level in request.max_level.items():
            columns[name]["max_level"] = level
        return policy.with_(columns=columns, local=policy.local or True)

    def _of(self, recoded: Recoded) -> UnwrittenUtility:
        return unwritten_utility(recoded, self.draft.policy(), self.pair)
