"""Negotiate: answer requests for privacy, suppression and generalization levels from a profile.

The exact answer is the lowest acceptable node within the allowed levels. If there is none, each suggestion
relaxes one setting and keeps the other settings (Pilalidou and Vassiliadis).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts.diversity import MODEL_NAMES, Diversity, kind_prefix
from shoal.document.document import (
    Code,
    Document,
    Fact,
    HasDocument,
    Name,
    Table,
    Text,
    Verdict,
    levels_text,
    of_records,
)
from shoal.wording import plural
from shoal.workflow.profile.offer import K_ANONYMITY, Offer, PrivacyLevel, Request, is_monotone, request_of
from shoal.workflow.profile.source import metric_of

if TYPE_CHECKING:
    from shoal.workflow.profile.dropped import Dropped
    from shoal.workflow.profile.profile import Profile


@dataclass(frozen=True)
class Negotiation(HasDocument):
    """The exact answer, or suggestions that each make the request possible by changing one setting."""

    request: Request
    exact: Offer | None
    suppression: Offer | None = None
    levels: Offer | None = None
    k: Offer | None = None  # a smaller k, with the requested l
    l: Offer | None = None  # a smaller l, with the requested k
    columns: Sequence[Offer] = field(default=())
    partial: bool = False  # True if the profile lacks some nodes
    besides: tuple[str, ...] = ()  # models of the policy that the request leaves out
    settled: bool = True  # False if a node that is missing in the profile could be an exact answer
    profile: Profile | None = field(default=None, repr=False, compare=False)  # the profile that was asked

    @property
    def privacy(self) -> Offer | None:
        """The suggestion that lowers k; if there is none, the suggestion that lowers l."""
        return self.k or self.l

    @cached_property
    def dropped(self) -> tuple[Dropped, ...]:
        """What becomes possible without one or two columns, best first."""
        from shoal.workflow.profile.dropped import dropped

        return dropped(self.profile, self.request) if self.profile is not None else ()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        names = ("suppression", "levels", "privacy", *(("k", "l") if self.request.l is not None else ()))
        suggestions = {name: getattr(self, name) for name in names}
        plain = {name: offer and offer.to_dict() for name, offer in suggestions.items()}
        return {
            **self.request.to_dict(),
            "exact": self.exact and self.exact.to_dict(),
            "suggestions": {**plain, "columns": [offer.to_dict() for offer in self.columns]},
            "dropped": [dropped.to_dict() for dropped in self.dropped],
            "partial": self.partial,
            "besides": list(self.besides),
        }

    @property
    def suggestions(self) -> list[tuple[str, Offer]]:
        """The suggestions, each with the setting that it relaxes."""
        both = self.request.l is not None
        lower = {"k": self.k, "l": self.l} if both else {"privacy": self.privacy}
        kinds = {"suppression": self.suppression, "levels": self.levels, **lower}
        return [
            *((kind, offer) for kind, offer in kinds.items() if offer),
            *((str(offer.column), offer) for offer in self.columns),
        ]

    def document(self) -> Document:
        """Describe the request, and its exact answer or the changes that make the request possible."""
        from shoal.workflow.statements import negotiation_verdict

        if self.exact:
            verdict = negotiation_verdict(self, self._records)
        elif self.settled:
            verdict = Verdict("warn", "Not possible with these settings.")
        else:
            verdict = Verdict("warn", "None of the tabulated nodes satisfies this; another node may.")
        release = Code("shoal.anonymize(table, policy, node=offer)")
        return Document(
            title="Negotiation",
            verdict=verdict,
            facts=list(self._facts()),
            tables=list(self._tables()),
            notes=list(self._notes()),
            hints=[("An offer can be released: ", release, ".")] if self.exact or self.suggestions else [],
        )

    @property
    def _records(self) -> int:
        return self.profile.records if self.profile else 0

    def _facts(self) -> Iterator[Fact]:
        request, exact = self.request, self.exact
        privacy = request.privacy
        of_column = (" of ", Name(request.sensitive)) if request.sensitive else ()
        if privacy.k is not None:
            yield Fact("k", "k", f"{privacy.k:,}")
        if privacy.l is not None:
            prefix = kind_prefix(privacy.diversity, privacy.c)
            yield Fact("l", f"{prefix}l", (f"{privacy.l:,}", *of_column))
        yield Fact("limit", "limit", self._share(request.limit))
        yield Fact("max_level", "max level", levels_text(request.max_level))
        if request.metric:
            yield Fact("prefer", "prefer", f"least {request.metric}")
        if exact:
            yield Fact("answer", "answer", levels_text(exact.node))
            yield Fact("height", "height", str(exact.height))
            if exact.loss is not None:
                yield Fact("loss", "loss", f"{exact.loss:,.10g}")
            yield Fact("suppressed", "suppressed", self._share(exact.suppressed))

    def _share(self, count: int) -> str:
        return of_records(count, self._records) if self._records else plural(count, "record")

    def _tables(self) -> Iterator[Table]:
        from shoal.workflow.profile.dropped import dropped_table

        if self.suggestions:
            yield self._table()
        if not self.exact and self.profile is not None:
            table = dropped_table(self.dropped, self.profile.lattice.columns, self._records)
            if table is not None:
                yield table

    def _table(self) -> Table:
        rows: list[list[Text]] = []
        for number, (kind, offer) in enumerate(self.suggestions, 1):
            change = change_text(self.request, kind, offer)
            row: list[Text] = [str(number), kind, change, " ".join(map(str, offer.node.values()))]
            row += [str(offer.height), self._share(offer.suppressed)]
            if self.request.metric:
                row.append("" if offer.loss is None else f"{offer.loss:,.6g}")
            rows.append(row)
        headers = ["", "relax", "change", "node", "height", "suppressed"]
        headers += ["loss"] if self.request.metric else []
        title = "Any one of these changes works; each relaxes one setting. Columns come best first."
        return Table(title, headers, rows, left=(1, 2, 3))

    def _notes(self) -> Iterator[Text]:
        from shoal.workflow.statements import is_ruined, removal_statement

        if not self.exact and not self.suggestions:
            among = "Among the nodes that the profile holds, nothing" if self.partial else "Nothing"
            yield f"{among} that relaxes one setting alone works. Relax two, or use fewer quasi-identifiers."
        if self.profile is not None:
            if self.exact and is_ruined(self.exact.suppressed, self._records):
                yield f"Note: {self._share(self.exact.suppressed)} would be suppressed."
            if self.exact and (removed := removal_statement(self.profile, self.exact.node)):
                yield f"Note: {removed}"
            if self.partial:
                nodes = f"{len(self.profile.numbers):,} of {self.profile.lattice.size:,} nodes"
                better = ": another node may be better" if self.exact or not self.settled else ""
                yield f"The profile holds {nodes}{better}."
            unknown = [
                item.columns[0] for item in self.dropped if len(item.columns) == 1 and not item.counted
            ]
            if unknown and not self.exact:
                names = ", ".join(unknown)
                yield f"What becomes possible without {names} is not known: that needs the data."
        if self.besides:
            yield (
                f"The policy also asks for {', '.join(self.besides)}, which this leaves out; a release "
                "honours what its policy names and may suppress more."
            )


def change_text(request: Request, kind: str, offer: Offer) -> Text:
    """Describe the change of a setting that a suggestion makes."""
    if kind == "suppression":
        return f"limit {plural(offer.limit, 'record')} (now {request.limit:,})"
    if kind in ("privacy", "k", "l"):
        name = offer.model if kind == "privacy" else kind
        now = getattr(request.privacy, name)
        return f"{name} = {getattr(offer.privacy, name):,} (now {now:,})"
    parts = [
        part
        for name, level in raised_levels(request, offer).items()
        for part in (", ", Name(name), f" up to {level} (now {request.max_level[name]})")
    ]
    return tuple(parts[1:])


def raised_levels(request: Request, offer: Offer) -> dict[str, int]:
    """Return the levels of an offer that the request does not allow."""
    return {name: level for name, level in offer.node.items() if level > request.max_level[name]}


def negotiate(
    profile: Profile,
    *,
    k: int | None = None,
    l: float | None = None,
    suppression_limit: float | str | None = None,
    max_level: Mapping[str, int] | None = None,
    sensitive: str | None = None,
    prefer: Literal["height", "loss"] = "height",
    metric: str | None = None,
    runtime: bool | None = None,
    diversity: str | None = None,
    c: float | None = None,
) -> Negotiation:
    """Answer a request from a profile; settings that are not given are taken from the policy.

    With k and l, a class is suppressed if it violates one of them. `diversity` is the kind of l-diversity:
    distinct, entropy, or recursive with `c`; kinds other than distinct must be in the profile's policy.

    `prefer="loss"` chooses the node of least loss by a separable metric instead of the lowest node. If the
    node at `max_level` is missing in a partial profile, it is counted now if the data is available.
    `runtime=False` never counts it; `runtime=True` raises an error without the data.
    """
    request = request_of(profile, k, l, suppression_limit, max_level, sensitive, prefer, metric, diversity, c)
    answer = RequestAnswer(profile, request, runtime=runtime).negotiation()
    return replace(answer, profile=profile)


class RequestAnswer:
    """The data that answers one request: the nodes' suppression and rank, and the levels allowed."""

    def __init__(self, profile: Profile, request: Request, *, runtime: bool | None) -> None:
        lattice = profile.lattice
        names = [[lattice.columns[column] for column in members] for members in lattice.axes]
        self.names = [members[0] for members in names]
        self.high = [request.max_level[name] for name in self.names]
        self.low = [max(profile.defaults.min_level.get(name, 0) for name in members) for members in names]
        self.partial = not profile.complete
        if runtime is None:
            runtime = profile.problem is not None
        if runtime and self.partial and profile.row_of(tuple(self.high)) is None:
            profile = profile.with_node(tuple(self.high))
        self.profile = profile
        self.request = request
        self.rank, self.losses = profile.ranks(request.metric)
        self.suppressed = profile.by_privacy(request.privacy)

    def negotiation(self) -> Negotiation:
        """Return the exact answer, or the suggestions."""
        profile, request = self.profile, self.request
        exact, less, levels, *columns = self.chosen(self.rank)
        if exact >= 0:
            return Negotiation(request, self.offer(exact), partial=self.partial, besides=self.besides)
        if request.metric and not metric_of(request.metric).separable.given(True):
            less = self.chosen(profile.heights)[1]  # with suppressed records, the loss is unknown
        return Negotiation(
            request=request,
            exact=None,
            suppression=self.more_suppression(less),
            levels=self.offer(levels) if levels >= 0 else None,
            k=self.less_privacy("k", np.array(self.low), np.array(self.high)),
            l=self.less_privacy("l", np.array(self.low), np.array(self.high)),
            columns=self.one_column(columns),
            partial=self.partial,
            besides=self.besides,
            # If privacy is monotone and the highest allowed node is not acceptable, no allowed node is.
            settled=profile.complete
            or (is_monotone(self.request.privacy) and profile.row_of(tuple(self.high)) is not None),
        )

    def chosen(self, rank: IntArray) -> list[int]:
        """Return rows of nodes (-1: none): see `choose`."""
        from shoal.workflow.profile.choose import choose

        profile = self.profile
        nodes: list[int] = choose(
            profile.levels,
            rank,
            self.suppressed,
            profile.merged,
            profile.numbers,
            np.array(self.low),
            np.array(self.high),
            min(self.request.limit, profile.records - 1),  # at least one class remains
        ).tolist()
        return nodes

    @property
    def besides(self) -> tuple[str, ...]:
        """The policy's models that this request leaves out."""
        privacy = self.request.privacy
        diverse = MODEL_NAMES[privacy.diversity] if privacy.l is not None else ""
        models = []
        for name, _, column, c in self.profile.defaults.models:
            if name == diverse and c == privacy.c:
                if column is None:  # the model is about every sensitive column
                    others = [other for other in self.profile.sensitive if other != privacy.sensitive]
                    models += [f"{name} of {', '.join(others)}"] if others else []
                    continue
                is_requested = column == privacy.sensitive
            else:
                # A k with a column counts units; requests count records.
                is_requested = name == K_ANONYMITY and privacy.k is not None and column is None
            if not is_requested:
                models.append(f"{name} of {column}" if column else name)
        return tuple(dict.fromkeys(models))

    def offer(self, position: int, **changed: Any) -> Offer:
        """Describe a node as an answer."""
        lattice, request = self.profile.lattice, self.request
        node = lattice.node(self.profile.levels[position].tolist())
        figures: dict[str, Any] = {
            "suppressed": int(self.suppressed[position]),
            "least": request.least,
            "l": request.l,
            "limit": request.limit,
            "share": request.share,
        } | changed
        loss = None
        if request.metric and metric_of(request.metric).separable.given(figures["suppressed"] > 0):
            loss = float(self.losses[position]) if self.losses is not None else None
        return Offer(
            node=dict(zip(lattice.columns, node, strict=True)),
            height=sum(node),
            model=request.model,
            sensitive=request.sensitive,
            diversity=request.diversity,
            c=request.c,
            loss=loss,
            **figures,
        )

    def more_suppression(self, position: int) -> Offer | None:
        """Offer the least suppression that is possible within the levels, at the lowest such node."""
        if position < 0 or self.suppressed[position] >= self.profile.records:
            return None
        return self.offer(position, limit=int(self.suppressed[position]), share=None)

    def less_privacy(self, name: Literal["k", "l"], low: IntArray, high: IntArray) -> Offer | None:
        """Offer the largest k (or l) within the limit and the levels. A requested l (or k) is kept.

        If the requested privacy is monotone, the highest allowed node gives the answer. A partial profile
        without this node offers the best of its nodes within the levels.
        """
        profile, request = self.profile, self.request
        if getattr(request.privacy, name) is None:
            return None
        greatest = profile.row_of(tuple(high.tolist())) if is_monotone(self.request.privacy) else None
        if greatest is not None:
            rows = np.array([greatest])
        else:
            inside = (profile.levels >= low) & (profile.levels <= high)
            rows = np.flatnonzero(inside.all(axis=1))
        if not len(rows):
            return None
        reached, suppressed = strongest(profile, request.privacy, name, request.limit, rows)
        order = (profile.numbers[rows], profile.merged[rows], suppressed, self.rank[rows], -reached)
        best = int(np.lexsort(order)[0])
        value = strength_of(profile, request.privacy, name, int(reached[best]))
        if value is None:
            return None
        changed = {"least" if name == request.model else "l": value}
        return self.offer(int(rows[best]), suppressed=int(suppressed[best]), **changed)

    def one_column(self, rows: Sequence[int]) -> list[Offer]:
        """For each column, offer the lowest acceptable level if only its max_level is raised; best first."""
        ranked: list[tuple[tuple[int, ...], Offer]] = []
        for axis, position in enumerate(rows):
            if position >= 0:
                required = int(self.profile.levels[position, axis])
                offer = self.offer(position, column=self.names[axis], max_level=required)
                best = (int(self.rank[position]), offer.suppressed, required - self.high[axis], axis)
                ranked.append((best, offer))
        return [offer for _, offer in sorted(ranked, key=lambda pair: pair[0])]


def strongest(
    profile: Profile, privacy: PrivacyLevel, name: Literal["k", "l"], limit: int, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """Return each node's largest k (or l, in steps) within a limit, and the records it then suppresses.

    A requested l (or k) is kept. 0 means that no k (or l) is within the limit. With k and l, or an l that is
    not distinct, a node that does not reach the largest result of all nodes also gets 0.
    """
    k, l = privacy.k, privacy.l
    if l is None:
        return profile.table(None).select(rows).strongest(limit)
    if k is None and privacy.diversity == "distinct":
        return profile.table(privacy.sensitive).select(rows).strongest(limit)
    measure = profile.measure(privacy)
    joint, steps = profile.joints[measure], measure.diversity.in_steps(l)
    if len(rows) > 1:
        joint = joint.select(rows)
        if name == "k":
            return _greatest(
                joint.sizes, lambda least: joint.suppressed(least, steps), limit, profile.records
            )
        return _greatest(joint.values, lambda least: joint.suppressed(k or 1, least), limit, profile.records)
    position = int(rows[0])
    result = (
        joint.strongest_k(position, steps, limit)
        if name == "k"
        else joint.strongest_l(position, k or 1, limit)
    )
    return np.array(result[:1]), np.array(result[1:])


def _greatest(
    values: IntArray, suppressed: Callable[[int], IntArray], limit: int, records: int
) -> tuple[IntArray, IntArray]:
    """Return the largest value that any node reaches within a limit, and the records each node suppresses.

    The result has this value for the nodes that reach it, and 0 for all other nodes.
    """
    candidates = [0, *np.unique(values).tolist()]
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high + 1) // 2
        violating = suppressed(candidates[middle])
        reached = ((violating <= limit) & (violating < records)).any()
        low, high = (middle, high) if reached else (low, middle - 1)
    violating = suppressed(candidates[low])
    return np.where((violating <= limit) & (violating < records), candidates[low], 0), violating


def strength_of(
    profile: Profile, privacy: PrivacyLevel, name: Literal["k", "l"], reached: int
) -> int | float | None:
    """Convert a result of `strongest` to a k or an l; None if this k or l does not protect anyone.

    If both are requested, a k of 1 is accepted because the l still protects, and an l of 1 because of the k.
    """
    both = privacy.k is not None and privacy.l is not None
    if name == "k":
        return reached if reached > (0 if both else 1) else None
    diversity = profile.measure(privacy).diversity if both or privacy.diversity != "distinct" else Diversity()
    return diversity.value(reached) if reached >= diversity.steps + (0 if both else 1) else None
