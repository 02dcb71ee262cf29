"""Offers: what a negotiation proposes and a release can adopt.

An offer has a node, which fixes the levels, and a k (or l) and limit, which replace those of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from shoal.core.contracts import When
from shoal.core.counts.diversity import KINDS, MODEL_NAMES, Diversity, DiversityKind, Measure, kind_prefix
from shoal.errors import UnknownName, UsageError
from shoal.files.yaml import MAX_JSON_BYTES, LoadError, load_json, read_bytes
from shoal.policy.limits import check_whole, limit_in_records, read_limit, share_in
from shoal.policy.policy import Named, Policy, named
from shoal.wording import match_trimmed, quote
from shoal.workflow.profile.source import metric_of

if TYPE_CHECKING:
    from shoal.workflow.profile.profile import Profile


@dataclass(frozen=True)
class PrivacyLevel:
    """A k, or an l of a sensitive column, or both."""

    k: int | None = None
    l: float | None = None
    sensitive: str | None = None
    diversity: DiversityKind = "distinct"
    c: float | None = None  # of recursive (c,l)-diversity

    @property
    def text(self) -> str:
        """The level as text, such as k = 5 and entropy l = 2.5."""
        parts = [] if self.k is None else [f"k = {self.k:,}"]
        parts += [] if self.l is None else [f"{kind_prefix(self.diversity, self.c)}l = {self.l:,}"]
        return " and ".join(parts)


def is_monotone(privacy: PrivacyLevel) -> bool:
    """Return whether every node above an acceptable one is acceptable, even if records are suppressed."""
    return privacy.l is None or privacy.diversity == "distinct"


@dataclass(frozen=True)
class Request:
    """The settings of a request."""

    model: str  # k or l
    least: float
    limit: int  # records
    max_level: Mapping[str, int]
    sensitive: str | None = None  # the column that l is about
    prefer: str = "height"
    metric: str | None = None
    share: float | str | None = None  # the limit as given, if it is a share of the records
    l: float | None = None  # in addition to a k
    diversity: DiversityKind = "distinct"  # of the l
    c: float | None = None

    @property
    def privacy(self) -> PrivacyLevel:
        """What every class must satisfy."""
        k, l = (int(self.least), self.l) if self.model == "k" else (None, self.least)
        return PrivacyLevel(k, l, self.sensitive, self.diversity, self.c)

    def to_dict(self) -> dict[str, Any]:
        """Return the request as plain values."""
        names = ("limit", "max_level", "sensitive", "prefer", "metric")
        extra = {"l": self.l} if self.l is not None else {}
        return {self.model: self.least, **extra, **_kind(self), **{n: getattr(self, n) for n in names}}


def _kind(about: Request | Offer) -> dict[str, Any]:
    """Return the kind of l-diversity as plain values, unless it is distinct l-diversity."""
    if about.diversity == "distinct":
        return {}
    return {"diversity": about.diversity} | ({} if about.c is None else {"c": about.c})


def request_of(
    profile: Profile,
    k: int | None,
    l: float | None,
    suppression_limit: float | str | None,
    max_level: Mapping[str, int] | None,
    sensitive: str | None,
    prefer: str,
    metric: str | None,
    diversity: str | None = None,
    c: float | None = None,
) -> Request:
    """Check the settings; a setting that is not given is taken from the profile's policy."""
    privacy = privacy_of(profile, k, l, sensitive, diversity, c)
    defaults = profile.defaults
    limit = (
        defaults.limit if suppression_limit is None else limit_in_records(suppression_limit, profile.records)
    )
    if prefer not in ("height", "loss"):
        raise UnknownName(str(prefer), "preference", ["height", "loss"])
    if metric is not None and prefer != "loss":
        raise UsageError("A metric is only used to minimize the loss. Prefer loss, or leave the metric out.")
    if prefer == "loss":
        metric = _metric(profile, metric, limit)
    least = privacy.l if privacy.k is None else privacy.k
    assert least is not None
    return Request(
        model="l" if privacy.k is None else "k",
        least=least,
        limit=limit,
        max_level=_allowed(profile, max_level),
        sensitive=privacy.sensitive,
        prefer=prefer,
        metric=metric,
        share=defaults.share if suppression_limit is None else share_in(suppression_limit),
        l=None if privacy.k is None else privacy.l,
        diversity=privacy.diversity,
        c=privacy.c,
    )


def privacy_of(
    profile: Profile,
    k: int | None = None,
    l: float | None = None,
    sensitive: str | None = None,
    diversity: str | None = None,
    c: float | None = None,
) -> PrivacyLevel:
    """Check the k and l that a request requires of every class; without both, use the policy's."""
    defaults = profile.defaults
    if diversity is not None and diversity not in KINDS:
        raise UnknownName(str(diversity), "diversity", KINDS, field="diversity")
    if k is None and l is None:
        with_l = defaults.l is not None and sensitive in (None, defaults.sensitive, *_only(profile))
        if defaults.model == "k":
            k, l = int(defaults.least), defaults.l if with_l else None
        else:
            l = defaults.least
        diversity, c = diversity or defaults.diversity, defaults.c if c is None else c
    if k is not None:
        k = check_whole("k", k)
    if l is None:
        if sensitive is not None:
            raise UsageError(
                "A sensitive column is for l; k looks at sizes alone. Ask for l, or leave sensitive out."
            )
        if diversity not in (None, "distinct") or c is not None:
            raise UsageError("diversity and c are for l. Ask for l, or leave them out.", field="diversity")
        return PrivacyLevel(k)
    if diversity is None:
        diversity = "distinct" if c is None else "recursive"
    if c is not None and diversity != "recursive":
        raise UsageError("c is for recursive diversity. Leave it out, or ask for recursive.", field="c")
    measure = measure_of(profile, sensitive, diversity, c, beside_k=k is not None)
    if diversity != "entropy":
        l = check_whole("l", l)
    steps = measure.diversity.in_steps(l)
    kind = measure.diversity.kind
    return PrivacyLevel(
        k,
        measure.diversity.value(steps),
        measure.column,
        kind,
        measure.diversity.c if kind == "recursive" else None,
    )


def _only(profile: Profile) -> tuple[str, ...]:
    return profile.sensitive if len(profile.sensitive) == 1 else ()


def measure_of(
    profile: Profile, sensitive: str | None, kind: str, c: float | None = None, *, beside_k: bool = False
) -> Measure:
    """Return the measure of a kind of l-diversity; raise UsageError if it is not in the profile."""
    if kind == "distinct":
        column = _sensitive(profile, sensitive)
        if beside_k and Measure(column) not in profile.joints:
            raise UsageError(
                "This profile holds k and l one at a time: the combinations of its table stay in the engine. "
                "Ask for k or for l."
            )
        return Measure(column)
    if sensitive is not None:
        profile.table(sensitive)
    else:
        sensitive = profile.defaults.sensitive
    known = [item for item in profile.joints if item.diversity.kind == kind]
    matching = [item for item in known if sensitive in (None, item.column) and c in (None, item.diversity.c)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(item.label for item in matching)
        raise UsageError(f"Say which one is meant, with a sensitive column or c: {names}.")
    example = f"{MODEL_NAMES[cast(DiversityKind, kind)]}:{'c=3,l=2' if kind == 'recursive' else 'l=2'}"
    available = f" It holds {', '.join(item.label for item in known)}." if known else ""
    raise UsageError(
        f"The profile does not hold what is asked for: {kind} l-diversity"
        f"{f' of {sensitive}' if sensitive else ''}{f' with c = {c:g}' if c is not None else ''}.{available} "
        f"Make it with this model in its policy, such as {example}.",
        field="diversity",
    )


def _sensitive(profile: Profile, sensitive: str | None) -> str:
    sensitive = profile.defaults.sensitive if sensitive is None else sensitive
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
        raise UsageError(
            f"The loss by {name} depends on what is suppressed, which a profile does not hold. "
            f"Use {', '.join(exact)}, or a limit of 0."
        )
    return name


def _usual_metric(profile: Profile, limit: int) -> str:
    """Return the policy's metric if its loss is a sum over columns, else a separable metric."""
    metric = profile.defaults.metric
    if metric in profile.losses and metric and metric_of(metric).separable.given(limit > 0):
        return metric
    return "non-uniform-entropy"


def _allowed(profile: Profile, max_level: Mapping[str, int] | None) -> dict[str, int]:
    if max_level is not None and not isinstance(max_level, Mapping):
        raise UsageError(
            f"max_level is levels by column, such as {{'age': 2}}, got {type(max_level).__name__}.",
            field="max_level",
        )
    lattice = profile.lattice
    heights = dict(zip(lattice.columns, lattice.heights, strict=True))
    max_level = {match_trimmed(name, heights): level for name, level in (max_level or {}).items()}
    for name, level in max_level.items():
        if name not in heights:
            raise UnknownName(name, "quasi-identifier", heights)
        check_level(level, heights[name], f"max_level of {name!r} must be a level", "max_level")
    allowed = heights | dict(profile.defaults.max_level)
    allowed |= {name: int(level) for name, level in max_level.items()}
    for members in lattice.axes:  # columns that share a level have the lowest of their limits
        names = [lattice.columns[column] for column in members]
        highest = min(allowed[name] for name in names)
        lowest = max(profile.defaults.min_level.get(name, 0) for name in names)
        if highest < lowest:
            raise UsageError(
                f"max_level of {names[0]!r} is {highest}; the policy's min_level is {lowest}. Raise it.",
                field="max_level",
            )
        allowed |= dict.fromkeys(names, highest)
    return allowed


def check_level(level: Any, highest: int, what: str, field: str) -> int:
    """Return a level from 0 to the highest; raise an error that begins with `what` for any other value."""
    is_whole = isinstance(level, Integral) and not isinstance(level, bool)
    if not is_whole or not 0 <= level <= highest:
        raise UsageError(f"{what} from 0 to {highest}, got {level!r}.", field=field)
    return int(level)


K_ANONYMITY = "k-anonymity"
_KEYS = (
    "node", "height", "suppressed", "k", "l", "diversity", "c", "limit", "share", "sensitive", "loss",
    "column", "max_level",
)  # fmt: skip
_FORM = "Give an offer as `shoal negotiate --json` writes it."
_KINDS = ("suppression", "levels", "privacy", "k", "l", "columns")


@dataclass(frozen=True)
class Offer:
    """A node, with the k (or l) and the limit for which it is acceptable."""

    node: Mapping[str, int]
    height: int
    suppressed: int
    model: str  # k or l
    least: float
    limit: int  # records
    sensitive: str | None = None  # the column that l is about
    loss: float | None = None
    column: str | None = None  # the column whose max_level would have to be raised
    max_level: int | None = None
    share: float | str | None = None  # the limit as given, if it is a share of the records
    l: float | None = None  # in addition to a k
    diversity: DiversityKind = "distinct"  # of the l
    c: float | None = None

    @property
    def privacy(self) -> PrivacyLevel:
        """What every class satisfies."""
        k, l = (int(self.least), self.l) if self.model == "k" else (None, self.least)
        return PrivacyLevel(k, l, self.sensitive, self.diversity, self.c)

    def to_dict(self) -> dict[str, Any]:
        """Return the offer as plain values."""
        values = asdict(self) | {"l": None, "diversity": None, "c": None}
        values = {self.model if name == "least" else name: value for name, value in values.items()}
        values |= {"l": self.privacy.l, **_kind(self)}
        return {name: value for name, value in values.items() if name != "model" and value is not None}


NodeChoice = Mapping[str, int] | Offer | Mapping[str, Any] | str | Path | None  # levels, or an offer


def adopted(policy: Policy, node: NodeChoice) -> tuple[Policy, dict[str, int]]:
    """Return the policy with the settings of an offer, and the levels to fix.

    Plain levels, such as {"age": 2}, do not change the policy. An offer keeps the models that it does not
    replace, and raises max_level where its level is higher.
    """
    if node is None:
        return policy, {}
    offer = offer_of(node)
    if not isinstance(offer.get("node"), Mapping):
        return policy, offer
    levels = offer["node"]
    columns: dict[str, Any] = policy.model_dump(mode="json", exclude_unset=True)["columns"]
    for name, level in levels.items():
        most = columns.get(name, {}).get("max_level")
        if most is not None and level > most:
            columns[name]["max_level"] = level
    models = list(policy.models) if "k" in offer or "l" in offer else None
    if "k" in offer:
        models = _with_k(models or [], offer["k"])
    if "l" in offer:
        models = _with_l(policy, models or [], offer)
    limit = offer.get("share", offer.get("limit"))  # a share is also valid for another table
    return policy.with_(columns=columns, models=models, suppression_limit=limit), dict(levels)


def offer_of(source: Any) -> dict[str, Any]:
    """Read an offer or plain levels from a mapping, from JSON text or from a JSON file."""
    if isinstance(source, Offer):
        return source.to_dict()
    offer: Any = _read(source) if isinstance(source, str | Path) else source
    if not isinstance(offer, Mapping):
        raise UsageError(
            f"A node is levels by column, or an offer of a negotiation, got {type(offer).__name__}."
        )
    if "exact" in offer and not isinstance(offer["exact"], int):
        offer = _exact(offer)
    if isinstance(offer.get("node"), Mapping):
        _check_offer(offer)
        _check_levels(offer["node"])
    else:
        _check_levels(offer)
    return dict(offer)


def _read(source: str | Path) -> Any:
    text: str | bytes = str(source)
    name = "the node"
    if isinstance(source, Path) or not str(source).lstrip().startswith("{"):
        name = quote(Path(source))
        try:
            text = read_bytes(Path(source), MAX_JSON_BYTES)
        except OSError as error:
            raise UsageError(f"Cannot read the node from {name}: {error.strerror}.") from None
        except LoadError as error:
            raise UsageError(f"Cannot read {name}: it is {error}. {_FORM}") from None
    try:
        return load_json(text)
    except LoadError as error:
        raise UsageError(f"Cannot read {name}: it is {error}. {_FORM}") from None


def _exact(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    exact = answer["exact"]
    if not isinstance(exact, Mapping):
        suggestions = answer.get("suggestions")
        by_kind = suggestions if isinstance(suggestions, Mapping) else {}
        kinds = ", ".join(kind for kind in _KINDS if by_kind.get(kind))
        raise UsageError(
            "This negotiation has no exact answer. Pass one of its suggestions"
            f"{f' ({kinds})' if kinds else ''} instead of the whole."
        )
    return exact


def _check_offer(offer: Mapping[str, Any]) -> None:
    for key in offer:
        if key not in _KEYS:
            raise UnknownName(str(key), "entry of an offer", _KEYS)
    kind = offer.get("diversity", "distinct")
    if kind not in KINDS:
        raise UnknownName(str(kind), "diversity", KINDS)
    if (kind == "recursive") != ("c" in offer):
        raise UsageError("c of an offer goes with recursive diversity, and recursive diversity needs it.")
    if "c" in offer:
        Diversity("recursive", offer["c"])
    for key, least in (("k", 1), ("l", 1), ("limit", 0)):
        real = key == "l" and kind == "entropy"
        if key in offer and (
            type(offer[key]) not in ((int, float) if real else (int,)) or not offer[key] >= least
        ):
            raise UsageError(
                f"{key} of an offer must be {'a' if real else 'a whole'} number of at least {least}, "
                f"got {quote(offer[key])}."
            )
    if "share" in offer and not read_limit(offer["share"])[1]:
        raise UsageError(f"share of an offer must be a share such as 5%, got {quote(offer['share'])}.")
    if not isinstance(offer.get("sensitive", ""), str | None):
        raise UsageError(f"sensitive of an offer must name a column, got {quote(offer['sensitive'])}.")


def _check_levels(levels: Mapping[str, Any]) -> None:
    for name, level in levels.items():
        if isinstance(level, bool) or not isinstance(level, Integral):
            raise UsageError(f"The level of {quote(str(name))} must be a whole number, got {quote(level)}.")


def _with_k(models: Sequence[Named], k: int) -> list[Named]:
    return _replaced(models, {K_ANONYMITY: {"k": k}}, [_keeps_unit(model) for model in models])


def _keeps_unit(model: Named) -> list[Named] | None:
    """Return what remains of a model when k is replaced; None: the model is not k-anonymity, and stays."""
    name, options = named(model)
    if name != K_ANONYMITY:
        return None
    return [model] if options.get("unit") is not None else []  # an offer's k counts records


def _with_l(policy: Policy, models: Sequence[Named], offer: Mapping[str, Any]) -> list[Named]:
    sensitive, kind = offer.get("sensitive"), offer.get("diversity", "distinct")
    if sensitive is not None and sensitive not in policy.roles.sensitive:
        raise UnknownName(sensitive, "sensitive column", policy.roles.sensitive)
    name = MODEL_NAMES[cast(DiversityKind, kind)]
    model_options = {option: offer[option] for option in ("c", "l") if option in offer}
    if sensitive is not None:
        model_options["column"] = sensitive
    replacements: list[list[Named] | None] = []
    for model in models:
        known, options = named(model)
        if known != name or options.get("c") != offer.get("c"):
            replacements.append(None)
            continue
        column = options.get("column")
        columns = policy.roles.sensitive if column is None else (column,)
        other_columns = [other for other in columns if sensitive is not None and other != sensitive]
        replacements.append([{name: options | {"column": other}} for other in other_columns])
    return _replaced(models, {name: model_options}, replacements)


def _replaced(models: Sequence[Named], new: Named, replacements: Sequence[list[Named] | None]) -> list[Named]:
    """Insert `new` before the first replaced model; `replacements`: what is left of each (None: all)."""
    others: list[Named] = []
    position = len(models)
    for model, replacement in zip(models, replacements, strict=True):
        if replacement is not None and replacement != [model]:
            position = min(position, len(others))
        others += [model] if replacement is None else replacement
    return [*others[:position], new, *others[position:]]
