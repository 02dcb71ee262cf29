"""Study: what a lattice costs at each height, k and number of columns, and how far part of it would do.

Suppression is told over the nodes that a profile holds. A partial profile is measured against the full one
without counting anew: it is the full one with its other nodes left out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.arrays import IntArray
from shoal.errors import UsageError
from shoal.profiling.request import Request

if TYPE_CHECKING:
    from shoal.profile import Profile

STRENGTHS = {"k": (2, 3, 5, 10, 15, 20, 25, 50, 100), "l": (2, 3, 4, 5, 6, 8, 10, 15, 20)}
LIMITS = ("0%", "0.5%", "1%", "2%", "5%")
SHARES = ("1%", "5%", "10%")
REQUESTS = 1000


@dataclass(frozen=True)
class Suppression:
    """What is suppressed over some nodes: the least, the mean and the most, in records."""

    at: int  # the height, the k (or l), or the number of columns
    nodes: int
    least: int
    mean: float
    largest: int


@dataclass(frozen=True)
class Power:
    """The grouping power of one level of one column, the other columns as they are."""

    column: str
    level: int
    groups: int
    size: float  # records in a group, on average
    importance: float


@dataclass(frozen=True)
class Agreement:
    """How a partial profile answers requests that the full one answers exactly."""

    share: str
    score: str
    runtime: bool  # whether the greatest node allowed was counted at the request
    nodes: int
    same: int  # the same node
    other: int  # another that will do
    failed: int  # none
    height: float  # of other answers above the full one's, on average
    most_height: int
    suppressed: float  # records of other answers beyond the full one's, on average; may be below 0
    most_suppressed: int  # the largest difference, whatever its sign


@dataclass(frozen=True)
class Study:
    """What a profile tells of its lattice."""

    model: str  # k or l
    least: int
    sensitive: str | None
    records: int
    nodes: int
    lattice_size: int
    by_height: tuple[Suppression, ...]  # at this k (or l)
    by_strength: tuple[Suppression, ...]  # over all nodes
    by_columns: tuple[Suppression, ...]  # at this k (or l), by columns that are not at their top level
    grouping: tuple[Power, ...]
    requests: int = 0  # tried on a complete profile, of which
    answered: int = 0  # have an exact answer
    agreement: tuple[Agreement, ...] = ()  # of its parts

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        from shoal.notebook import study_block

        return study_block(self)


def study(
    profile: Profile,
    *,
    k: int | None = None,
    l: int | None = None,
    sensitive: str | None = None,
    strengths: Sequence[int] | None = None,
    requests: int = REQUESTS,
    score: str = "weighted-log",
) -> Study:
    """Study a profile; what is left out is the policy's wish, and a range of k (or l) that is useful."""
    if sensitive is None and k is None and (l or profile.wish.model == "l") and not profile.wish.sensitive:
        sensitive = next(iter(profile.sensitive), None)
    asked = profile.negotiate(k=k, l=l, sensitive=sensitive).request
    gone = profile.by_node(asked.least, asked.sensitive)
    tried = drawn(profile, asked, requests) if profile.complete else []
    truth = answered(profile, tried)
    return Study(
        model=asked.model,
        least=asked.least,
        sensitive=asked.sensitive,
        records=profile.records,
        nodes=len(profile.numbers),
        lattice_size=profile.lattice.size,
        by_height=_grouped(gone, profile.heights),
        by_strength=tuple(
            _suppression(at, profile.by_node(at, asked.sensitive))
            for at in _strengths(profile, asked, strengths)
        ),
        by_columns=_grouped(gone, _kept_columns(profile)),
        grouping=tuple(_powers(profile)),
        requests=len(tried),
        answered=len(truth),
        agreement=tuple(
            one for share in (SHARES if truth else ()) for one in agreement(profile, share, truth, score)
        ),
    )


def _suppression(at: int, gone: IntArray) -> Suppression:
    return Suppression(at, len(gone), int(gone.min()), float(gone.mean()), int(gone.max()))


def _grouped(gone: IntArray, groups: IntArray) -> tuple[Suppression, ...]:
    return tuple(_suppression(int(at), gone[groups == at]) for at in np.unique(groups))


def _kept_columns(profile: Profile) -> IntArray:
    """Count the columns of each node that are not at their top level."""
    lattice = profile.lattice
    members = np.array([len(axis) for axis in lattice.axes])
    kept: IntArray = (profile.levels < np.array(lattice.high)) @ members
    return kept


def _strengths(profile: Profile, asked: Request, wanted: Sequence[int] | None) -> list[int]:
    for least in wanted or ():
        if isinstance(least, bool) or not isinstance(least, Integral) or least < 1:
            message = f"{asked.model} must be a whole number of at least 1, got {least!r}."
            raise UsageError(message)
    most = int(profile.table(asked.sensitive).values.max())  # beyond it no class is left anywhere
    usual = [least for least in STRENGTHS[asked.model] if least <= most]
    return sorted({*(wanted or usual), asked.least})


def _powers(profile: Profile) -> Iterator[Power]:
    found = profile.grouping
    columns = zip(profile.lattice.columns, found.groups, found.sizes, found.importances, strict=True)
    for column, *levels in columns:
        for level, (groups, size, importance) in enumerate(zip(*levels, strict=True)):
            yield Power(column, level, groups, size, importance)


Wishes = Mapping[str, Any]  # what a request asks for


@dataclass(frozen=True)
class Answer:
    """The node that a profile chose for a request."""

    node: Mapping[str, int]
    height: int
    suppressed: int


Truth = Sequence[tuple[Wishes, Answer]]


def drawn(profile: Profile, asked: Request, number: int) -> list[Wishes]:
    """Draw requests, always the same ones: a strength, a limit and the levels allowed."""
    lots = random.Random(0)
    strengths = _strengths(profile, asked, None)
    heights = dict(zip(profile.lattice.columns, profile.lattice.heights, strict=True))
    return [
        {
            asked.model: lots.choice(strengths),
            "sensitive": asked.sensitive,
            "suppression_limit": lots.choice(LIMITS),
            "max_level": _drawn_levels(profile, heights, lots),
        }
        for _ in range(number)
    ]


def _drawn_levels(profile: Profile, heights: Mapping[str, int], lots: random.Random) -> dict[str, int]:
    """Draw a level for each column; those that move together get one, and none is below the policy's."""
    found: dict[str, int] = {}
    for members in profile.lattice.axes:
        names = [profile.lattice.columns[column] for column in members]
        low = max(profile.wish.min_level.get(name, 0) for name in names)
        found |= dict.fromkeys(names, lots.randint(low, heights[names[0]]))
    return found


def answered(profile: Profile, requests: Sequence[Wishes]) -> Truth:
    """Return the requests that a profile answers exactly, with the answers."""
    found = [(wishes, _answer(profile, wishes)) for wishes in requests]
    return [(wishes, answer) for wishes, answer in found if answer]


def _answer(profile: Profile, wishes: Wishes) -> Answer | None:
    exact = profile.negotiate(**wishes).exact
    return Answer(exact.node, exact.height, exact.suppressed) if exact else None


def agreement(full: Profile, share: str, truth: Truth, score: str = "weighted-log") -> list[Agreement]:
    """Measure the best share of a profile against the whole, without and with the run-time node."""
    part = full.best(share, score)
    answers = [_answer(part, wishes) for wishes, _ in truth]
    # The greatest node allowed is acceptable where any is. Counted, it is the answer of last resort: whatever
    # else will do is lower.
    counted = [answer or _greatest(full, wishes) for answer, (wishes, _) in zip(answers, truth, strict=True)]
    expected = [answer for _, answer in truth]
    told = (share, score, len(part.numbers))
    return [_agreement(*told, False, answers, expected), _agreement(*told, True, counted, expected)]


def _greatest(full: Profile, wishes: Wishes) -> Answer:
    request = full.negotiate(**wishes).request
    lattice = full.lattice
    node = tuple(request.max_level[name] for name in lattice.columns)
    place = full.place(lattice.index(node))
    assert place is not None
    gone = full.by_node(request.least, request.sensitive)
    return Answer(request.max_level, sum(node), int(gone[place]))


def _agreement(
    share: str,
    score: str,
    nodes: int,
    runtime: bool,
    answers: Sequence[Answer | None],
    expected: Sequence[Answer],
) -> Agreement:
    pairs = [(one, other) for one, other in zip(answers, expected, strict=True) if one]
    others = [(one, other) for one, other in pairs if one.node != other.node]
    heights = [one.height - other.height for one, other in others]
    gone = [one.suppressed - other.suppressed for one, other in others]
    return Agreement(
        share=share,
        score=score,
        runtime=runtime,
        nodes=nodes,
        same=len(pairs) - len(others),
        other=len(others),
        failed=len(expected) - len(pairs),
        height=fmean(heights) if heights else 0.0,
        most_height=max(heights, default=0),
        suppressed=fmean(gone) if gone else 0.0,
        most_suppressed=max(gone, key=abs, default=0),
    )
