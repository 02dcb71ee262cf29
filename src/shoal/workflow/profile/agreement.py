"""How often a partial profile gives the same answer as the full profile.

A partial profile is the full profile with some nodes left out, so no node is counted again. If a request has
no exact answer, three suggestions are compared: less suppression, higher levels and less privacy. The
experiments are those of Pilalidou and Vassiliadis, with random requests.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from shoal.document.document import Table
from shoal.workflow.profile.grouping import SCORES
from shoal.workflow.profile.negotiate import Negotiation
from shoal.workflow.profile.offer import Offer, Request, is_monotone

if TYPE_CHECKING:
    from shoal.workflow.profile.profile import Profile

LIMITS = ("0%", "0.5%", "1%", "2%", "5%")
SHARES = ("1%", "5%", "10%")
PUBLISHED_SHARE = "5%"
RELAXATIONS = ("suppression", "levels", "privacy")


@dataclass(frozen=True)
class Outcome:
    """Numbers of requests: does a partial profile give the full one's answer, for one kind of answer?"""

    same: int  # the same node
    other: int  # another node
    failed: int  # no answer, although the full profile has one
    neither: int = 0  # no answer in either profile


@dataclass(frozen=True)
class HeightAgreement:
    """The agreement over all requests whose exact answer in the full profile has the same height."""

    at: int
    requests: int
    missed: int  # requests without an answer in the partial profile
    other: int  # requests answered by another node
    height: float  # how much higher these other nodes are, on average
    suppressed: float  # how many more records these other nodes suppress, on average


@dataclass(frozen=True)
class Agreement:
    """A comparison of a partial profile's answers with the answers of the full profile."""

    share: str
    score: str
    runtime: bool  # whether the highest allowed node was counted at run time for each request
    nodes: int
    exact: Outcome  # over requests that the full profile answers exactly
    suppression: Outcome  # over requests without an exact answer, like `levels` and `privacy`
    levels: Outcome
    privacy: Outcome
    height: float  # how much higher exact answers by another node are, on average
    most_height: int
    suppressed: float  # how many more records exact answers by another node suppress, on average
    most_suppressed: int  # the difference with the largest absolute value
    by_height: tuple[HeightAgreement, ...]


Requested = Mapping[str, Any]  # the arguments of a request
Truth = Sequence[tuple[Requested, Negotiation]]  # requests with the answers of the full profile


def drawn(profile: Profile, request: Request, strengths: Sequence[float], number: int) -> list[Requested]:
    """Draw random requests with a fixed seed. Each has a k or l, a limit and the highest levels."""
    random_numbers = random.Random(0)
    heights = dict(zip(profile.lattice.columns, profile.lattice.heights, strict=True))
    kind = {"diversity": request.diversity, "c": request.c} if request.model == "l" else {}
    return [
        {
            request.model: random_numbers.choice(strengths),
            "sensitive": request.sensitive,
            **kind,
            "suppression_limit": random_numbers.choice(LIMITS),
            "max_level": _drawn_levels(profile, heights, random_numbers),
        }
        for _ in range(number)
    ]


def _drawn_levels(
    profile: Profile, heights: Mapping[str, int], random_numbers: random.Random
) -> dict[str, int]:
    """Draw one level for all columns of each axis, at least the policy's min_level."""
    levels: dict[str, int] = {}
    for members in profile.lattice.axes:
        column_names = [profile.lattice.columns[column] for column in members]
        low = max(profile.defaults.min_level.get(name, 0) for name in column_names)
        levels |= dict.fromkeys(column_names, random_numbers.randint(low, heights[column_names[0]]))
    return levels


def answered(profile: Profile, requests: Sequence[Requested]) -> Truth:
    """Return each request with its answer from a complete profile."""
    return [(options, profile.negotiate(**options)) for options in requests]


def agreement(
    full: Profile, share: str, truth: Truth, score: str = "weighted-log", by: str = "height"
) -> list[Agreement]:
    """Compare a partial profile, the best share of the nodes, with the full one.

    The second result also counts the highest allowed node for each request, at run time.
    """
    part = full.best(share, score, by)
    without = [part.negotiate(**options, runtime=False) for options, _ in truth]
    pairs = [(answer, known) for answer, (_, known) in zip(without, truth, strict=True)]
    figures = share, score, len(part.numbers)
    if not all(is_monotone(known.request.privacy) for _, known in truth):
        return [_agreement(*figures, False, pairs)]  # the highest allowed node may not be the best
    counted = [(_with_greatest(full, answer, known), known) for answer, known in pairs]
    return [_agreement(*figures, False, pairs), _agreement(*figures, True, counted)]


_Answers = dict[str, Offer | None]


def _offers(answer: Negotiation) -> _Answers:
    return {kind: getattr(answer, kind) for kind in ("exact", *RELAXATIONS)}


def _with_greatest(full: Profile, answer: Negotiation, truth: Negotiation) -> _Answers:
    """Return the answers of a partial profile that also has the highest allowed node.

    No allowed node suppresses fewer records or reaches a larger k (or l) than the highest one.
    """
    offers = _offers(answer)
    if truth.exact:
        return offers | {"exact": answer.exact or _greatest(full, truth.request)}
    if truth.suppression and (
        answer.suppression is None or answer.suppression.limit > truth.suppression.limit
    ):
        offers["suppression"] = _greatest(full, truth.request)
    return offers | {"privacy": truth.privacy}


def _greatest(full: Profile, request: Request) -> Offer:
    lattice = full.lattice
    node = tuple(request.max_level[name] for name in lattice.columns)
    position = full.row_of(lattice.index(node))
    assert position is not None
    suppressed = int(full.by_privacy(request.privacy)[position])
    return Offer(request.max_level, sum(node), suppressed, request.model, request.least, request.limit)


def _agreement(
    share: str,
    score: str,
    nodes: int,
    runtime: bool,
    answers: Sequence[tuple[Negotiation | _Answers, Negotiation]],
) -> Agreement:
    offers = [(part if isinstance(part, dict) else _offers(part), _offers(full)) for part, full in answers]
    exact = [(part["exact"], full["exact"]) for part, full in offers if full["exact"]]
    others = [pair for pair in offers if not pair[1]["exact"]]
    relaxed = {kind: _outcome([(part[kind], full[kind]) for part, full in others]) for kind in RELAXATIONS}
    higher, suppressed = _deviations(exact)
    return Agreement(
        share=share,
        score=score,
        runtime=runtime,
        nodes=nodes,
        exact=_outcome(exact),
        **relaxed,
        height=fmean(higher) if higher else 0.0,
        most_height=max(higher, default=0),
        suppressed=fmean(suppressed) if suppressed else 0.0,
        most_suppressed=max(suppressed, key=abs, default=0),
        by_height=tuple(_by_height(exact)),
    )


_Pairs = Sequence[tuple[Offer | None, Offer | None]]  # (offer of the partial profile, of the full one)


def _outcome(pairs: _Pairs) -> Outcome:
    known = [(offer, full) for offer, full in pairs if full]
    same = sum(offer is not None and offer.node == full.node for offer, full in known)
    failed = sum(offer is None for offer, _ in known)
    return Outcome(same, len(known) - same - failed, failed, len(pairs) - len(known))


def _deviations(pairs: _Pairs) -> tuple[list[int], list[int]]:
    """Return the additional height and suppressed records of answers by another node."""
    others = [(offer, full) for offer, full in pairs if offer and full and offer.node != full.node]
    heights = [offer.height - full.height for offer, full in others]
    return heights, [offer.suppressed - full.suppressed for offer, full in others]


def _by_height(pairs: _Pairs) -> list[HeightAgreement]:
    groups: dict[int, list[tuple[Offer | None, Offer | None]]] = {}
    for offer, full in pairs:
        if full:
            groups.setdefault(full.height, []).append((offer, full))
    rows = []
    for height, group in sorted(groups.items()):
        outcome, (higher, suppressed) = _outcome(group), _deviations(group)
        means = (fmean(higher), fmean(suppressed)) if higher else (0.0, 0.0)
        rows.append(HeightAgreement(height, len(group), outcome.failed, outcome.other, *means))
    return rows


def agreement_tables(rows: Sequence[Agreement], requests: int, answered: int) -> list[Table]:
    """Show exact answers, suggestions, and the answers by height for the share that the paper reports."""
    return [
        _exact_table(rows, answered),
        _relaxation_table(rows, requests - answered),
        _height_table([row for row in rows if row.share == PUBLISHED_SHARE and not row.runtime]),
    ]


def _first(row: Agreement) -> tuple[str, ...]:
    return row.share, row.score, "yes" if row.runtime else "no"


def _exact_table(rows: Sequence[Agreement], answered: int) -> Table:
    headers = (
        "share", "score", "run-time\nnode", "nodes", "same", "other", "failed", "height\nmean",
        "height\nmost", "suppressed\nmean", "suppressed\nmost",
    )  # fmt: skip
    lines = [
        (
            *_first(row), f"{row.nodes:,}", str(row.exact.same), str(row.exact.other), str(row.exact.failed),
            f"{row.height:.2f}", str(row.most_height), f"{row.suppressed:+,.0f}", f"{row.most_suppressed:+,}",
        )
        for row in rows
    ]  # fmt: skip
    return Table(
        f"Partial profiles compared with this one, over {answered:,} requests with an exact answer here",
        headers,
        lines,
        left=(1,),
        optional=(8, 10, 3),
        note="same: the same node; other: another node that satisfies the request, with the given height and "
        "suppressed records beyond those here; failed: no answer.",
    )


def _relaxation_table(rows: Sequence[Agreement], requests: int) -> Table:
    lines = []
    for row in rows:
        outcomes = (row.suppression, row.levels, row.privacy)
        numbers = [(outcome.same, outcome.other, outcome.failed, outcome.neither) for outcome in outcomes]
        lines.append((*_first(row), *("/".join(map(str, four)) for four in numbers)))
    return Table(
        f"Relaxations of partial profiles and this one, over {requests:,} requests without an exact answer",
        ("share", "score", "run-time\nnode", "suppression", "levels", "privacy"),
        lines,
        left=(1,),
        note="same/other/failed/neither: the same node, another node, no suggestion although there is one "
        "here, no suggestion in both.",
    )


def _height_table(rows: Sequence[Agreement]) -> Table:
    by_score = {row.score: {item.at: item for item in row.by_height} for row in rows}
    lines = []
    for height in next(iter(by_score.values())):
        for score in SCORES:
            item = by_score[score][height]
            deviation = (f"{item.height:.2f}", f"{item.suppressed:+,.0f}") if item.other else ("", "")
            lines.append(
                (str(height), str(item.requests), score, str(item.missed), str(item.other), *deviation)
            )
    return Table(
        f"Exact answers by height, versus partial profiles of {PUBLISHED_SHARE} without the run-time node",
        ("height", "requests", "score", "missed", "other", "higher", "suppressed"),
        lines,
        left=(2,),
        note="height: of the answer here; missed: requests without an answer; other: with another node, "
        "whose levels above it and suppressed records beyond those here are given on average.",
    )
