"""Negotiation: the tabulated lattice, requests to it, and the node that is chosen for the release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shoal.core.counts.diversity import MODEL_NAMES
from shoal.core.progress import Progress
from shoal.web.errors import NotReady, Refused
from shoal.web.workspace.draft import CachedResult, PolicyDraft, raise_if_cancelled
from shoal.web.workspace.lattice import levels_of
from shoal.web.workspace.negotiation_log import NegotiationLog
from shoal.workflow.level_names import LevelNames
from shoal.workflow.problem import with_settings
from shoal.workflow.profile.negotiate import Negotiation, negotiate
from shoal.workflow.profile.offer import Offer, PrivacyLevel, Request, adopted, privacy_of
from shoal.workflow.profile.profile import Profile, profile
from shoal.workflow.profile.source import PolicyDefaults, policy_defaults

OFFERS = ("exact", "suppression", "levels", "privacy", "k", "l", "column")


class NegotiationStep:
    """The profile of the lattice, and the last answer to a request."""

    def __init__(self, draft: PolicyDraft) -> None:
        self.draft = draft
        self._tabulated: CachedResult[Profile] = CachedResult()
        self._profile: CachedResult[Profile] = CachedResult()
        self._answer: CachedResult[Negotiation] = CachedResult()
        self.chosen: CachedResult[dict[str, int]] = CachedResult()  # the node of the release
        self.log = NegotiationLog()

    def lattice_size(self) -> int:
        """Return the number of nodes of the lattice. Columns that always have the same level count as one."""
        policy, table = self.draft.policy(), self.draft.table
        heights = {row.column: row.height or 0 for row in table.rows(table.quasi_identifiers)}
        for _, *others in policy.same_level:
            heights |= dict.fromkeys(others, 0)
        return math.prod(height + 1 for height in heights.values())

    def tabulate(
        self,
        *,
        seconds: float | None = None,
        share: float | str | None = None,
        progress: Progress | None = None,
    ) -> Profile:
        """Tabulate the lattice, so that any request can be answered without a search."""
        with self.draft.table.changes.lock:
            policy, key, path = self.draft.policy(), self.draft.lattice_key(), self.draft.table.path
        tabulated = profile(path, policy, seconds=seconds, share=share, progress=progress)
        raise_if_cancelled(progress)
        self._tabulated = CachedResult(key, tabulated)
        return tabulated

    @property
    def profile(self) -> Profile | None:
        """The profile of the current hierarchies, with the current settings."""
        tabulated = self._tabulated.get(self.draft.lattice_key())
        if tabulated is None or tabulated.problem is None:
            return tabulated
        key = (self.draft.policy_key(), id(tabulated))
        current = self._profile.get(key)
        if current is None:
            policy = self.draft.policy()
            problem = with_settings(tabulated.problem, policy)
            current = replace(tabulated, defaults=policy_defaults(policy, problem), problem=problem)
            self._profile = CachedResult(key, current)
        return current

    @property
    def tabulated(self) -> Profile:
        """The profile; raises NotReady if there is none."""
        current = self.profile
        if current is None:
            raise NotReady(self.draft.missing() or "Tabulate the lattice first.")
        return current

    def negotiate(self, **request: Any) -> Negotiation:
        """Answer a request: k, l or both, and the other options of `Profile.negotiate`."""
        tabulated = self.tabulated
        answer = negotiate(tabulated, **request)
        self._answer = CachedResult(self.draft.lattice_key(), answer)
        heights = dict(zip(tabulated.lattice.columns, tabulated.lattice.heights, strict=True))
        self.log.add_answer(answer, heights, self.draft.table.level_names)
        return answer

    @property
    def answer(self) -> Negotiation | None:
        """The last answer; None if the lattice has changed since then."""
        return self._answer.get(self.draft.lattice_key())

    def offer(self, kind: str, column: str | None = None) -> Offer:
        """Return an offer of the last answer. The kind `column` has one offer for each column."""
        answer = self.answer
        if answer is None:
            raise NotReady("Negotiate first.")
        if kind not in OFFERS:
            raise Refused(f"An offer is one of {', '.join(OFFERS)}.", "kind")
        if kind == "column":
            offer = next((offer for offer in answer.columns if offer.column == column), None)
        else:
            offer = getattr(answer, kind)
        if offer is None:
            field = "column" if kind == "column" else "kind"
            raise Refused("The last answer has no such offer. Take one that it has.", field)
        return offer

    def take(self, offer: Offer | Mapping[str, Any]) -> dict[str, int]:
        """Copy an offer's k or l, limit and levels to the policy, and choose its node for the release."""
        policy, levels = adopted(self.draft.policy(), offer)
        node = self._checked_node(levels)
        with self.draft.table.changes.lock:
            self.draft.adopt_offer(policy)
            self.chosen = CachedResult(self.draft.lattice_key(), node)
        self.log.add_taken(offer, node, self.draft.table.level_names)
        return node

    def not_taken(self) -> str | None:
        """Return a message if the last request was possible but its answer was not taken, or else None."""
        answer, current = self.answer, self.profile
        if answer is None or answer.exact is None or current is None:
            return None
        fixed = self.node == dict(answer.exact.node)
        pairs = _differences(answer.request, current, self.draft.table.level_names, fixed=fixed)
        if not pairs:
            return None
        requested, policy = (", ".join(texts) for texts in zip(*pairs, strict=True))
        return f"What you negotiated ({requested}) was not taken; the release follows the policy: {policy}."

    def choose_node(self, node: Mapping[str, int] | None) -> None:
        """Choose the node of the release. With None, the search chooses it."""
        key = None if node is None else self.draft.lattice_key()
        chosen = CachedResult(key, None if node is None else self._checked_node(node))
        with self.draft.table.changes.lock:
            self.chosen = chosen
            self.draft.table.changes.note()
        self.log.add_chosen(chosen.result, self.draft.table.level_names)

    def _checked_node(self, node: Mapping[str, int]) -> dict[str, int]:
        return dict(zip(self.draft.table.quasi_identifiers, levels_of(self.tabulated, node), strict=True))

    @property
    def node(self) -> dict[str, int] | None:
        """The chosen node; None if the lattice has changed since then."""
        return self.chosen.get(self.draft.lattice_key())

    def privacy(self, **strength: Any) -> PrivacyLevel:
        """Return the required k, l or both. The default is from the last request, or else from the policy."""
        if all(value is None for value in strength.values()) and self.answer is not None:
            return self.answer.request.privacy
        return privacy_of(self.tabulated, **strength)


def _differences(
    request: Request, profile: Profile, names: LevelNames, *, fixed: bool
) -> list[tuple[str, ...]]:
    """Return a pair of texts (requested, policy) for each setting in which the request differs.

    With `fixed`, the levels of the release are those of the answer, so levels are not compared.
    """
    policy, lattice, privacy = profile.defaults, profile.lattice, request.privacy
    pairs: list[tuple[str, ...]] = []
    if privacy.k is not None:
        k = _least_of(policy, "k-anonymity", None, None)
        k = int(policy.least) if not k and policy.model == "k" else k
        pairs.append((f"k {privacy.k:,}", f"k {k:,}" if k else "no k"))
    if privacy.l is not None:  # a model need not name the only sensitive column
        kind = "" if privacy.diversity == "distinct" else f"{privacy.diversity} "
        suffix = f" of {privacy.sensitive}"
        l = _least_of(policy, MODEL_NAMES[privacy.diversity], privacy.sensitive, privacy.c)
        policy_text = f"{kind}l {l:,}" if l else f"no {kind}l"
        pairs.append((f"{kind}l {privacy.l:,}{suffix}", f"{policy_text}{suffix}"))
    pairs.append((f"at most {request.limit:,} suppressed", f"at most {policy.limit:,} suppressed"))
    for name, height in zip(lattice.columns, lattice.heights, strict=True) if not fixed else ():
        requested, highest = request.max_level.get(name, height), policy.max_level.get(name, height)
        pairs.append(
            tuple(
                f"{name} without a limit" if level == height else f"{name} at most {names.name(name, level)}"
                for level in (requested, highest)
            )
        )
    return [pair for pair in pairs if pair[0] != pair[1]]


def _least_of(policy: PolicyDefaults, name: str, column: str | None, c: float | None) -> float:
    """Return the largest k (or l) that a model of the policy requires, or 0."""
    models = (m for m in policy.models if m.name == name and m.column in (None, column) and m.c == c)
    return max((model.least or 0 for model in models), default=0)
