"""ARX's privacy models and quality models in shoal's words, with what is lost on the way.

A project writes each as the text of a Java object (toString of the classes in org.deidentifier.arx.criteria
and org.deidentifier.arx.metric.v2), so that these texts are what is read here; older versions write some of
them differently, and both are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from shoal.importing.project import printable


@dataclass(frozen=True)
class Unsupported:
    """Something in a project that has no counterpart, why, and what comes nearest."""

    setting: str
    reason: str
    nearest: str

    def to_dict(self) -> dict[str, str]:
        """Return it as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.setting}: {self.reason} {self.nearest}"


class Notes:
    """What was found to have no counterpart, so far."""

    def __init__(self) -> None:
        self.told: list[Unsupported] = []

    def tell(self, setting: str, reason: str, nearest: str) -> None:
        """Note one more."""
        self.told.append(Unsupported(printable(setting), reason, nearest))


Named = dict[str, dict[str, Any]]
Read = tuple[list[Named], list[Unsupported]]
_NUMBER = r"(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_COLUMN = r" for attribute '(.*)'"


def _plain(text: str) -> float | int:
    """Read a number; a whole one is whole.

    >>> _plain("5"), _plain("2.0"), _plain("1.0E-4")
    (5, 2, 0.0001)
    """
    number = float(text)
    return int(number) if number.is_integer() else number


def _about_column(name: str, *options: str, **fixed: Any) -> Callable[[re.Match[str]], Read]:
    """Read a model of a sensitive column whose numbers come first."""

    def read(found: re.Match[str]) -> Read:
        *numbers, column = found.groups()
        given = dict(zip(options, map(_plain, numbers), strict=True))
        return [{name: {**given, **fixed, "column": column}}], []

    return read


def _k_anonymity(found: re.Match[str]) -> Read:
    return [{"k-anonymity": {"k": int(found[1])}}], []


def _grassberger(found: re.Match[str]) -> Read:
    model: Named = {"entropy-l-diversity": {"l": _plain(found[1]), "column": found[2]}}
    told = Unsupported(
        f"the model {printable(found[0])!r}",
        "shoal has no Grassberger estimate of entropy.",
        "Shannon's entropy of each class stands in; on small classes it is the lower of the two.",
    )
    return [model], [told]


def _closeness(found: re.Match[str]) -> Read:
    t, distance, column = found.groups()
    options: dict[str, Any] = {"t": _plain(t), "column": column, "distance": distance.lower()}
    return [{"t-closeness": options}], []


def _disclosure(found: re.Match[str]) -> Read:
    # ARX takes the logarithm to base 2, and looks only at values that occur in the class.
    delta = round(float(found[1]) * math.log(2), 9)
    return [{"delta-disclosure": {"delta": delta, "present_only": True, "column": found[2]}}], []


def _average(found: re.Match[str]) -> Read:
    average, highest, share = found.groups()
    models: list[Named] = [{"average-risk": {"risk": _plain(average)}}]
    if highest is None:
        return models, []
    k = math.ceil(1 / float(highest) - 1e-9)
    models.append({"k-anonymity": {"k": k}})
    if float(share) == 0:
        return models, []
    told = Unsupported(
        f"the model {printable(found[0])!r}",
        "ARX lets a share of the released records have more than the highest risk.",
        f"k-anonymity with k={k} holds for all of them, which is stricter; suppression_limit says how many "
        "records may be left out instead.",
    )
    return models, [told]


def _estimated_map(found: re.Match[str]) -> Read:
    derived = found[2]
    reason = "shoal does not estimate a population from its size."
    if derived.isdigit() and int(derived) > 0:
        nearest = f"k-anonymity with k={derived}, which ARX derived for its data, stands in; derive it anew."
        told = Unsupported(f"the model {printable(found[0])!r}", reason, nearest)
        return [{"k-anonymity": {"k": int(derived)}}], [told]
    told = Unsupported(f"the model {printable(found[0])!r}", reason, _POPULATION)
    return [], [told]


_POPULATION = (
    "k-map and delta-presence take a table of the population: models: [{k-map: {k: 5, population: FILE}}]."
)
_SUBSET = "the sample is a subset of the rows that only ARX's Java object (config.dat) knows."


def _missing(reason: str, nearest: str) -> Callable[[re.Match[str]], Read]:
    """Read a model that shoal has not."""

    def read(found: re.Match[str]) -> Read:
        return [], [Unsupported(f"the model {printable(found[0])!r}", reason, nearest)]

    return read


_CRITERIA: tuple[tuple[str, Callable[[re.Match[str]], Read]], ...] = (
    (r"(\d+)-anonymity", _k_anonymity),
    (rf"distinct-{_NUMBER}-diversity{_COLUMN}", _about_column("distinct-l-diversity", "l")),
    (rf"(?:shannon-)?entropy-{_NUMBER}-diversity{_COLUMN}", _about_column("entropy-l-diversity", "l")),
    (rf"grassberger-entropy-{_NUMBER}-diversity{_COLUMN}", _grassberger),
    (
        rf"recursive-\({_NUMBER}, ?{_NUMBER}\)-diversity{_COLUMN}",
        _about_column("recursive-cl-diversity", "c", "l"),
    ),
    (rf"{_NUMBER}-closeness with (equal|ordered|hierarchical)[ -](?:ground-)?distance{_COLUMN}", _closeness),
    (rf"{_NUMBER}-disclosure privacy{_COLUMN}", _disclosure),
    (rf"basic-{_NUMBER}-likeness{_COLUMN}", _about_column("basic-beta-likeness", "beta")),
    (rf"{_NUMBER}-basic[ -]likeness{_COLUMN}", _about_column("basic-beta-likeness", "beta")),
    (rf"enhanced-{_NUMBER}-likeness{_COLUMN}", _about_column("enhanced-beta-likeness", "beta")),
    (rf"{_NUMBER}-enhanced[ -]likeness{_COLUMN}", _about_column("enhanced-beta-likeness", "beta")),
    (rf"\({_NUMBER}(?:, ?{_NUMBER}, ?{_NUMBER})?\)-avg-reidentification-risk", _average),
    (
        rf"\({_NUMBER}\)-sample-uniqueness",
        lambda found: ([{"sample-uniqueness": {"share": _plain(found[1])}}], []),
    ),
    (
        r"\(.*\)-population-uniqueness.*",
        _missing(
            "shoal does not estimate how many records are unique in a population.",
            "sample-uniqueness bounds those that are unique in the table; k-map takes the population itself.",
        ),
    ),
    (rf"\(({_NUMBER[1:-1]})\)-map estimated as \((\w+)\)-anonymity.*", _estimated_map),
    (r"\(\d+\)-map", _missing(_SUBSET, _POPULATION)),
    (r"\(.*\)-presence", _missing(_SUBSET, _POPULATION)),
    (
        r"\(.*\)-DP",
        _missing(
            "shoal has no differential privacy: a release is of records, generalized and counted afresh.",
            "k-anonymity and t-closeness are the models that a release can be verified for.",
        ),
    ),
    (
        r"profitability.*|.*stackelberg.*",
        _missing(
            "shoal has no model of an attacker's costs and gains.",
            "k-anonymity and average-risk bound what an attacker finds, whatever it is worth.",
        ),
    ),
    (
        r"inclusion",
        _missing(
            f"a research subset is chosen, and {_SUBSET}",
            "Give shoal only the rows of the subset.",
        ),
    ),
)


def models_of(criterion: str) -> Read:
    """Read one of ARX's privacy models.

    >>> models_of("5-anonymity")
    ([{'k-anonymity': {'k': 5}}], [])
    >>> models_of("recursive-(4.0,3)-diversity for attribute 'illness'")[0]
    [{'recursive-cl-diversity': {'c': 4, 'l': 3, 'column': 'illness'}}]
    """
    for pattern, read in _CRITERIA:
        found = re.fullmatch(pattern, criterion, re.IGNORECASE | re.DOTALL)
        if found:
            return read(found)
    told = Unsupported(
        f"the model {printable(criterion)!r}",
        "shoal does not know it.",
        "`shoal list` names the models there are; add what is meant under models:.",
    )
    return [], [told]


# ARX's name, as it begins or is: shoal's, and how they differ; nothing where they are the same.
_QUALITY: tuple[tuple[str, str, str], ...] = (
    (r"non-uniform entropy.*|monotonic non-uniform entropy.*", "non-uniform-entropy", ""),
    (
        r"non-monotonic non-uniform entropy.*",
        "non-uniform-entropy",
        "in ARX's variant a suppressed record costs all its bits; here suppression is bounded by its limit "
        "alone.",
    ),
    (
        r"normalized non-uniform entropy.*",
        "non-uniform-entropy",
        "ARX divides each column's bits by its most; here bits are bits, and weights set columns off.",
    ),
    (r"monotonic discernability.*", "discernibility-star", ""),
    (r"non-monotonic discernability.*|discernability.*", "discernibility", ""),
    (
        r"average equivalence class size.*|aecs.*",
        "class-size",
        "ARX counts the suppressed records as one class; here classes are those before suppression.",
    ),
    (r"monotonic precision.*", "precision", ""),
    (
        r"(?:non-monotonic )?precision.*",
        "precision",
        "in ARX's variant a suppressed record counts as fully generalized; here suppression is bounded by "
        "its limit alone.",
    ),
    (r"height.*", "height", ""),
    (
        r"classification.*",
        "classification",
        "ARX has three penalties of its own; here a record costs 1 that is suppressed or not of its class's "
        "majority.",
    ),
)


def metric_of(text: str) -> tuple[str, list[Unsupported]]:
    """Read ARX's quality model.

    >>> metric_of("Monotonic discernability (DM*)")
    ('discernibility-star', [])
    """
    setting = f"the quality model {printable(text)!r}"
    loss = re.match(rf"loss(?: \({_NUMBER}/.*\))?", text, re.IGNORECASE)
    if loss:
        told = [
            Unsupported(
                setting,
                "how ARX puts the columns' losses together (rank, geometric mean, ...) is only in its Java "
                "object.",
                "coverage with their mean stands in; aggregate: geometric is ARX's geometric mean.",
            )
        ]
        if loss[1] and float(loss[1]) != 0.5:
            reason = "ARX weighs generalization against suppression by a factor; coverage takes both alike."
            told.append(Unsupported(setting, reason, "suppression_limit bounds the records suppressed."))
        return "coverage", told
    for pattern, name, difference in _QUALITY:
        if re.fullmatch(pattern, text, re.IGNORECASE):
            told = [Unsupported(setting, difference, f"{name} stands in.")] if difference else []
            return name, told
    reason = "shoal does not have it." if text else "the project does not say."
    nearest = "non-uniform-entropy stands in; `shoal list` names the metrics there are."
    return "non-uniform-entropy", [Unsupported(setting, reason, nearest)]
