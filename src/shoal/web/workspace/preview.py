"""The preview of a release: the result of the search under the current settings, without writing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from shoal.core.progress import Progress
from shoal.policy.policy import Policy
from shoal.web.fields import PositiveSeconds
from shoal.web.workspace.draft import PolicyDraft
from shoal.web.workspace.negotiation import NegotiationStep
from shoal.web.workspace.step import Step
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.profile.negotiate import Negotiation
from shoal.workflow.profile.offer import Offer, Request, privacy_of
from shoal.workflow.release.codebook import losses_of
from shoal.workflow.search import Recoded, find, recode, retained
from shoal.workflow.session import session

SECONDS = 20.0  # the default time limit of a release's search


@dataclass(frozen=True)
class ReleasePreview:
    """The result that a release would have under all models of the policy."""

    algorithm: str
    levels: Mapping[str, int] | None  # None: levels differ between classes
    proven: str
    records: int
    suppressed: int
    classes: int  # number of classes that are not suppressed
    smallest_class: int
    retained: float
    retained_by_column: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def search_preview(
    table: Any, policy: Policy, node: Mapping[str, int], seconds: float | None, progress: Progress | None
) -> tuple[ReleasePreview, Recoded]:
    """Run the search of a release, and describe the result."""
    with session(table, progress=progress) as s:
        counts, domains = counted(s.table, policy)
        problem = problem_of(policy, counts, domains, node, s.engine.memory)
        name, evaluation = find(policy, problem, seconds=seconds, progress=s.progress)
        result = recode(problem, evaluation)
        losses = losses_of(problem, result.recoding, result.classes, result.suppressed)
    sizes = result.classes.sizes
    released_sizes = sizes[~result.suppressed]
    columns = problem.lattice.columns
    preview = ReleasePreview(
        algorithm=name,
        levels=None if evaluation.recoding else dict(zip(columns, evaluation.node, strict=True)),
        proven=str(evaluation.proven),
        records=problem.records,
        suppressed=int(sizes[result.suppressed].sum()),
        classes=len(released_sizes),
        smallest_class=int(released_sizes.min()) if len(released_sizes) else 0,
        retained=retained(result),
        retained_by_column={name: 1 - loss.coverage for name, loss in losses.items()},
    )
    return preview, result


class PreviewStep(Step[ReleasePreview]):
    """The step that runs the search of a release under the current policy, at the chosen node."""

    missing_result = "Preview first."

    def __init__(self, draft: PolicyDraft, negotiation: NegotiationStep) -> None:
        super().__init__(draft)
        self.negotiation = negotiation

    def key(self) -> object:
        return self.draft.policy_key(), self.negotiation.node

    def run(
        self, *, seconds: PositiveSeconds | None = SECONDS, progress: Progress | None = None
    ) -> ReleasePreview:
        """Run the search of a release without writing it, and measure the retained share of each column."""
        with self.draft.table.changes.lock:
            policy, node, path, key = (
                self.draft.policy(),
                self.negotiation.node,
                self.draft.table.path,
                self.key(),
            )
        preview, _ = search_preview(path, policy, node or {}, seconds, progress)
        return self._store(key, preview, progress)

    def repeats_policy(self, request: Request) -> bool:
        """Return whether all settings of a request equal those of the policy."""
        profile = self.negotiation.profile
        if profile is None:
            return False
        defaults = profile.defaults
        heights = dict(zip(profile.lattice.columns, profile.lattice.heights, strict=True))
        allowed = heights | dict(defaults.max_level)
        same = request.privacy == privacy_of(profile) and request.limit == defaults.limit
        return same and request.prefer == "loss" and dict(request.max_level) == allowed

    def of_request(self, request: Request) -> ReleasePreview | None:
        """Return the preview if all settings of a request equal those of the policy, else None."""
        preview = self.result
        return preview if preview is not None and self.repeats_policy(request) else None

    def confirm(self, answer: Negotiation) -> Negotiation:
        """If the request equals the policy, replace the answer by the preview, which checks all models.

        If the levels of the release differ between classes, the answer does not change.
        """
        preview, request = self.of_request(answer.request), answer.request
        if preview is None or preview.levels is None:
            return answer
        offer = Offer(
            node=dict(preview.levels),
            height=sum(preview.levels.values()),
            suppressed=preview.suppressed,
            model=request.model,
            least=request.least,
            limit=request.limit,
            sensitive=request.sensitive,
            share=request.share,
            l=request.l,
            diversity=request.diversity,
            c=request.c,
        )
        return replace(answer, exact=offer, besides=(), partial=False)
