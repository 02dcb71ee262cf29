"""What a negotiation is asked for: the wishes given, and the policy's where none is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from shoal.core.contracts import When
from shoal.errors import UnknownName, UsageError, meant
from shoal.policies.shares import limit_in_records, share_in
from shoal.profiling.separable import metric_of

if TYPE_CHECKING:
    from shoal.profile import Profile


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    model: str  # k or l
    least: int
    limit: int  # records
    max_level: Mapping[str, int]
    sensitive: str | None = None  # the column that l is about
    prefer: str = "height"
    metric: str | None = None
    share: float | str | None = None  # the limit as it is written, where it is a share


def request_of(
    profile: Profile,
    k: int | None,
    l: int | None,
    suppression_limit: float | str | None,
    max_level: Mapping[str, int] | None,
    sensitive: str | None,
    prefer: str,
    metric: str | None,
) -> Request:
    """Check the wishes, and take what is left out from the profile's policy."""
    model, least = _strength(profile, k, l)
    if sensitive is not None and model == "k":
        message = "A sensitive column is for l; k looks at sizes alone. Ask for l, or leave sensitive out."
        raise UsageError(message)
    wish = profile.wish
    limit = wish.limit if suppression_limit is None else limit_in_records(suppression_limit, profile.records)
    if prefer not in ("height", "loss"):
        raise UnknownName(str(prefer), "preference", ["height", "loss"])
    if metric is not None and prefer != "loss":
        message = "A metric is for what loses least. Prefer loss, or leave the metric out."
        raise UsageError(message)
    if prefer == "loss":
        metric = _metric(profile, metric, limit)
    return Request(
        model=model,
        least=least,
        limit=limit,
        max_level=_allowed(profile, max_level),
        sensitive=_sensitive(profile, sensitive) if model == "l" else None,
        prefer=prefer,
        metric=metric,
        share=wish.share if suppression_limit is None else share_in(suppression_limit),
    )


def _strength(profile: Profile, k: int | None, l: int | None) -> tuple[str, int]:
    if k is not None and l is not None:
        message = "Ask for k or for l, not for both."
        raise UsageError(message)
    for name, least in (("k", k), ("l", l)):
        if least is not None:
            if isinstance(least, bool) or not isinstance(least, Integral) or least < 1:
                message = f"{name} must be a whole number of at least 1, got {least!r}."
                raise UsageError(message)
            return name, int(least)
    return profile.wish.model, profile.wish.least


def _sensitive(profile: Profile, sensitive: str | None) -> str:
    sensitive = profile.wish.sensitive if sensitive is None else sensitive
    if sensitive is not None:
        profile.table(sensitive)
        return sensitive
    if len(profile.sensitive) == 1:
        return profile.sensitive[0]
    if not profile.sensitive:
        message = "The profile knows no l: its policy names no sensitive column. Ask for k."
    else:
        message = f"Say which sensitive column l is about: {', '.join(profile.sensitive)}."
    raise UsageError(message)


def _metric(profile: Profile, metric: str | None, limit: int) -> str:
    name = metric or _usual_metric(profile, limit)
    if name not in profile.losses:
        raise UnknownName(name, "separable metric", profile.losses)
    if not metric_of(name).separable.given(limit > 0):
        exact = [n for n in profile.losses if metric_of(n).separable is When.ALWAYS]
        message = (
            f"The loss by {name} depends on what is suppressed, which a profile does not hold. "
            f"Use {', '.join(exact)}, or a limit of 0."
        )
        raise UsageError(message)
    return name


def _usual_metric(profile: Profile, limit: int) -> str:
    """Name the policy's metric where its loss is a sum over columns, else one whose loss always is."""
    mine = profile.wish.metric
    if mine in profile.losses and mine and metric_of(mine).separable.given(limit > 0):
        return mine
    return "non-uniform-entropy"


def _allowed(profile: Profile, max_level: Mapping[str, int] | None) -> dict[str, int]:
    if max_level is not None and not isinstance(max_level, Mapping):
        message = f"max_level is levels by column, as {{'age': 2}}, got {type(max_level).__name__}."
        raise UsageError(message)
    lattice = profile.lattice
    heights = dict(zip(lattice.columns, lattice.heights, strict=True))
    max_level = {meant(name, heights): level for name, level in (max_level or {}).items()}
    for name, level in max_level.items():
        if name not in heights:
            raise UnknownName(name, "quasi-identifier", heights)
        whole = isinstance(level, Integral) and not isinstance(level, bool)
        if not whole or not 0 <= level <= heights[name]:
            message = f"max_level of {name!r} must be a level from 0 to {heights[name]}, got {level!r}."
            raise UsageError(message)
    allowed = heights | dict(profile.wish.max_level)
    allowed |= {name: int(level) for name, level in max_level.items()}
    for members in lattice.axes:  # columns that move together go no higher than the lowest of them
        names = [lattice.columns[column] for column in members]
        highest = min(allowed[name] for name in names)
        lowest = max(profile.wish.min_level.get(name, 0) for name in names)
        if highest < lowest:
            message = f"max_level of {names[0]!r} is {highest}; the policy's min_level is {lowest}. Raise it."
            raise UsageError(message)
        allowed |= dict.fromkeys(names, highest)
    return allowed
