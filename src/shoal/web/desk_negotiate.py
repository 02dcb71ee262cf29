"""A desk's third step: the profile, requests to it, and the node that is chosen for the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.negotiate import Negotiation, negotiate
from shoal.problem import with_wishes
from shoal.profile import Profile, profile
from shoal.profiling.offer import Offer, adopted
from shoal.profiling.source import wish_of
from shoal.web import views
from shoal.web.columns import Progress
from shoal.web.desk_diagnose import Diagnosing
from shoal.web.kept import Kept, still_wanted
from shoal.web.refusals import NotReady, Refused, beside_the_first_named
from shoal.web.words import differences

KINDS = ("exact", "suppression", "levels", "privacy", "column")  # of what a negotiation offers


class Negotiating(Diagnosing):
    """A plan whose lattice can be tabulated and asked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._profile, self._wished = Kept(), Kept()
        self._negotiation, self._node = Kept(), Kept()

    def tabulate(
        self,
        *,
        seconds: float | None = None,
        share: float | str | None = None,
        progress: Progress | None = None,
    ) -> Profile:
        """Tabulate the lattice, which answers all requests at once."""
        with self.lock:
            made, about, table = self.policy(), self._about_lattice(), self.table
        with beside_the_first_named(("seconds", "share")):
            found = profile(table, made, seconds=seconds, share=share, progress=progress)
        still_wanted(progress)
        self._profile = Kept(about, found)
        return found

    @property
    def profile(self) -> Profile | None:
        """The profile of these hierarchies, with the plan's present wishes."""
        found: Profile | None = self._profile.under(self._about_lattice())
        if found is None or found.problem is None:
            return found
        about = (self._about_policy(), id(found))
        wished: Profile | None = self._wished.under(about)
        if wished is None:
            made = self.policy()
            problem = with_wishes(found.problem, made)
            wished = replace(found, wish=wish_of(made, problem), problem=problem)
            self._wished = Kept(about, wished)
        return wished

    @property
    def tabulated(self) -> Profile:
        """The profile; refused where there is none."""
        found = self.profile
        if found is None:
            raise NotReady(self.missing() or "Tabulate the lattice first.")
        return found

    def negotiate(self, **wishes: Any) -> Negotiation:
        """Answer a request: k or l, suppression_limit, max_level, sensitive, prefer, metric, runtime."""
        found = self.tabulated
        with beside_the_first_named(wishes):
            answer = negotiate(found, **wishes)
        self._negotiation = Kept(self._about_lattice(), answer)
        return answer

    @property
    def negotiation(self) -> Negotiation | None:
        """The last answer, as long as the lattice is the same."""
        found: Negotiation | None = self._negotiation.under(self._about_lattice())
        return found

    def offer(self, kind: str, column: str | None = None) -> Offer:
        """Return what the last answer offers: exact, suppression, levels, privacy, or of one column."""
        answer = self.negotiation
        if answer is None:
            message = "Negotiate first."
            raise NotReady(message)
        if kind not in KINDS:
            message = f"An offer is one of {', '.join(KINDS)}."
            raise Refused(message, "kind")
        if kind == "column":
            found = next((offer for offer in answer.columns if offer.column == column), None)
        else:
            found = getattr(answer, kind)
        if found is None:
            message = "The last answer has no such offer. Take one that it has."
            raise Refused(message, "column" if kind == "column" else "kind")
        return found

    def take(self, offer: Offer | Mapping[str, Any]) -> dict[str, int]:
        """Let an offer's k or l, limit and levels stand in the plan, and fix its node for the release."""
        made, levels = adopted(self.policy(), offer)
        node = dict(zip(self.quasi_identifiers, views.levels_of(self.tabulated, levels), strict=True))
        with self.lock:
            written = made.model_dump(mode="json", exclude_unset=True)
            self._entries |= {name: written[name] for name in ("models", "suppression_limit")}
            for name in self.quasi_identifiers:
                most = written["columns"][name].get("max_level")
                self._columns[name] |= {} if most is None else {"max_level": most}
            self._version += 1
            self._node = Kept(self._about_lattice(), node)
        return node

    def untaken(self) -> str | None:
        """Say what was asked for, could be had and was not taken, so that the release follows the policy."""
        answer, found = self.negotiation, self.profile
        if answer is None or answer.exact is None or found is None:
            return None
        pairs = differences(answer.request, found, fixed=self.node == dict(answer.exact.node))
        if not pairs:
            return None
        asked, kept = (", ".join(words) for words in zip(*pairs, strict=True))
        return f"What you negotiated ({asked}) was not taken; the release follows the policy: {kept}."

    def choose_node(self, node: Mapping[str, int] | None) -> None:
        """Fix the node for the release; None leaves it to the search."""
        if node is None:
            self._node = Kept()
            return
        levels = views.levels_of(self.tabulated, node)
        self._node = Kept(self._about_lattice(), dict(zip(self.quasi_identifiers, levels, strict=True)))

    @property
    def node(self) -> dict[str, int] | None:
        """The node chosen, as long as the lattice is the same."""
        found: dict[str, int] | None = self._node.under(self._about_lattice())
        return found

    def strength(
        self, k: int | None = None, l: int | None = None, sensitive: str | None = None
    ) -> tuple[int, str | None]:
        """Return (least, sensitive) of a k or l; without any, those of the last request or of the plan."""
        found = self.tabulated
        if k is None and l is None:
            last = self.negotiation
            if last is not None:
                return last.request.least, last.request.sensitive
        with beside_the_first_named(("k", "l", "sensitive")):
            request = negotiate(found, k=k, l=l, sensitive=sensitive, suppression_limit=0).request
        return request.least, request.sensitive
