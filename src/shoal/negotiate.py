"""Negotiate: privacy, suppression and generalization weighed against each other, answered from a profile.

The exact answer is the acceptable node of least height within the levels allowed. Where there is none, each
suggestion relaxes one wish and keeps the others (Pilalidou and Vassiliadis).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.core.arrays import IntArray
from shoal.profiling.offer import MODELS, Offer
from shoal.profiling.request import Request, request_of
from shoal.profiling.separable import metric_of

if TYPE_CHECKING:
    from shoal.profile import Profile


@dataclass(frozen=True)
class Negotiation:
    """The exact answer, or else what each wish alone would have to become."""

    request: Request
    exact: Offer | None
    suppression: Offer | None = None
    levels: Offer | None = None
    privacy: Offer | None = None
    columns: Sequence[Offer] = field(default=())
    partial: bool = False  # the profile holds some nodes only
    besides: tuple[str, ...] = ()  # models of the policy that are not negotiated
    settled: bool = True  # without an exact answer: none exists, whether or not the profile is partial

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return {
            self.request.model: self.request.least,
            "limit": self.request.limit,
            "max_level": dict(self.request.max_level),
            "sensitive": self.request.sensitive,
            "prefer": self.request.prefer,
            "metric": self.request.metric,
            "exact": _plain(self.exact),
            "suggestions": {
                "suppression": _plain(self.suppression),
                "levels": _plain(self.levels),
                "privacy": _plain(self.privacy),
                "columns": [offer.to_dict() for offer in self.columns],
            },
            "partial": self.partial,
            "besides": list(self.besides),
        }

    def _repr_html_(self) -> str:
        from shoal.notebook import negotiation_block

        return negotiation_block(self)


def _plain(offer: Offer | None) -> dict[str, Any] | None:
    return offer.to_dict() if offer else None


def negotiate(
    profile: Profile,
    *,
    k: int | None = None,
    l: int | None = None,
    suppression_limit: float | str | None = None,
    max_level: Mapping[str, int] | None = None,
    sensitive: str | None = None,
    prefer: Literal["height", "loss"] = "height",
    metric: str | None = None,
    runtime: bool = False,
) -> Negotiation:
    """Answer a request from a profile; what it leaves out is the policy's wish.

    `prefer: loss` takes the node of least loss by a separable metric instead of the lowest. `runtime` counts
    the node at `max_level` on the spot where a partial profile lacks it and the data is at hand.
    """
    request = request_of(profile, k, l, suppression_limit, max_level, sensitive, prefer, metric)
    return _Answer(profile, request, runtime=runtime).negotiation()


class _Answer:
    """One request at work on one profile."""

    def __init__(self, profile: Profile, request: Request, *, runtime: bool) -> None:
        lattice = profile.lattice
        names = [[lattice.columns[column] for column in members] for members in lattice.axes]
        self.names = [members[0] for members in names]
        self.high = [request.max_level[name] for name in self.names]
        self.low = [max(profile.wish.min_level.get(name, 0) for name in members) for members in names]
        self.partial = not profile.complete
        if runtime and self.partial and profile.place(tuple(self.high)) is None:
            profile = profile.with_node(tuple(self.high))
        self.profile = profile
        self.request = request
        self.rank, self.losses = profile.ranks(request.metric)
        self.suppressed = profile.by_node(request.least, request.sensitive)

    def negotiation(self) -> Negotiation:
        """Return the exact answer, or the suggestions."""
        profile, request = self.profile, self.request
        exact, less, levels, *columns = self.chosen(self.rank)
        if exact >= 0:
            return Negotiation(request, self.offer(exact), partial=self.partial, besides=self.besides)
        if request.metric and not metric_of(request.metric).separable.given(True):
            less = self.chosen(profile.heights)[1]  # a loss that is not known once records are suppressed
        return Negotiation(
            request=request,
            exact=None,
            suppression=self.more_suppression(less),
            levels=self.offer(levels) if levels >= 0 else None,
            privacy=self.less_privacy(),
            columns=self.one_column(columns),
            partial=self.partial,
            besides=self.besides,
            # Where the greatest node allowed will not do, no other will.
            settled=profile.place(tuple(self.high)) is not None,
        )

    def chosen(self, rank: IntArray) -> list[int]:
        """Return the exact answer, then what fewest suppress, other levels and each column; -1 for none."""
        from shoal.core.table_kernels import choose

        profile = self.profile
        found: list[int] = choose(
            profile.levels,
            rank,
            self.suppressed,
            profile.merged,
            profile.numbers,
            np.array(self.low),
            np.array(self.high),
            min(self.request.limit, profile.records - 1),  # a class remains
        ).tolist()
        return found

    @property
    def besides(self) -> tuple[str, ...]:
        """The policy's models that this request leaves out."""
        about = self.request.sensitive
        mine = MODELS[self.request.model]
        found = []
        for name, _, column in self.profile.wish.models:
            if name != mine or (column and column != about):  # another column, or k of units
                found.append(f"{name} of {column}" if column else name)
            elif about and column is None:  # of every sensitive column
                others = [other for other in self.profile.sensitive if other != about]
                found += [f"{name} of {', '.join(others)}"] if others else []
        return tuple(dict.fromkeys(found))

    def offer(self, place: int, **changed: Any) -> Offer:
        """Describe a node as an answer."""
        lattice, request = self.profile.lattice, self.request
        node = lattice.node(self.profile.levels[place].tolist())
        told: dict[str, Any] = {
            "suppressed": int(self.suppressed[place]),
            "least": request.least,
            "limit": request.limit,
            "share": request.share,
        } | changed
        loss = None
        if request.metric and metric_of(request.metric).separable.given(told["suppressed"] > 0):
            loss = float(self.losses[place]) if self.losses is not None else None
        return Offer(
            node=dict(zip(lattice.columns, node, strict=True)),
            height=sum(node),
            model=request.model,
            sensitive=request.sensitive,
            loss=loss,
            **told,
        )

    def more_suppression(self, place: int) -> Offer | None:
        """Offer the least that can be suppressed within the levels, at the lowest node that reaches it."""
        if place < 0 or self.suppressed[place] >= self.profile.records:
            return None
        return self.offer(place, limit=int(self.suppressed[place]), share=None)

    def less_privacy(self) -> Offer | None:
        """Offer the greatest strength within the limit, at the greatest node allowed.

        A partial profile that lacks this node offers the best of those it has within the levels.
        """
        profile, request = self.profile, self.request
        table = profile.table(request.sensitive)
        top = profile.place(tuple(self.high))
        if top is not None:
            places = np.array([top])
        else:
            inside = (profile.levels >= self.low) & (profile.levels <= self.high)
            places = np.flatnonzero(inside.all(axis=1))
        if not len(places):
            return None
        reached, gone = table.some(places).strongest(request.limit)
        order = (profile.numbers[places], profile.merged[places], gone, self.rank[places], -reached)
        best = int(np.lexsort(order)[0])
        if reached[best] <= 1:
            return None
        return self.offer(int(places[best]), least=int(reached[best]), suppressed=int(gone[best]))

    def one_column(self, places: Sequence[int]) -> list[Offer]:
        """Offer, for each column alone, the lowest level that would do if it were allowed; the best first."""
        found: list[tuple[tuple[int, ...], Offer]] = []
        for axis, place in enumerate(places):
            if place >= 0:
                needed = int(self.profile.levels[place, axis])
                offer = self.offer(place, column=self.names[axis], max_level=needed)
                best = (int(self.rank[place]), offer.suppressed, needed - self.high[axis], axis)
                found.append((best, offer))
        return [offer for _, offer in sorted(found, key=lambda pair: pair[0])]
