"""ARX's privacy and quality models as models and metrics of shoal, with the differences.

A project stores each model as the text of a Java object (toString of the classes in the packages
org.deidentifier.arx.criteria and org.deidentifier.arx.metric.v2). This module parses these texts, also in the
forms that older versions of ARX write.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from shoal.integrations.arx.project import printable


@dataclass(frozen=True)
class Unsupported:
    """A setting of a project without a counterpart, the reason, and the nearest alternative."""

    setting: str
    reason: str
    nearest: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.setting}: {self.reason} {self.nearest}"


class UnsupportedSettings(list[Unsupported]):
    """The settings without a counterpart that the import has found so far."""

    def note(self, setting: str, reason: str, nearest: str) -> None:
        self.append(Unsupported(printable(setting), reason, nearest))


ModelEntry = dict[str, dict[str, Any]]
ReadModels = tuple[list[ModelEntry], list[Unsupported]]
_NUMBER = r"(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_COLUMN = r" for attribute '(.*)'"


def _read_number(text: str) -> float | int:
    """Read a number; return whole numbers as int.

    >>> _read_number("5"), _read_number("2.0"), _read_number("1.0E-4")
    (5, 2, 0.0001)
    """
    number = float(text)
    return int(number) if number.is_integer() else number


def _about_column(name: str, *options: str, **fixed: Any) -> Callable[[re.Match[str]], ReadModels]:
    """Return a reader of models of one sensitive column; in ARX's text, the column follows the numbers."""

    def read(match: re.Match[str]) -> ReadModels:
        *numbers, column = match.groups()
        values = dict(zip(options, map(_read_number, numbers), strict=True))
        return [{name: {**values, **fixed, "column": column}}], []

    return read


def _unsupported(match: re.Match[str], reason: str, nearest: str) -> list[Unsupported]:
    return [Unsupported(f"the model {printable(match[0])!r}", reason, nearest)]


def _k_anonymity(match: re.Match[str]) -> ReadModels:
    return [{"k-anonymity": {"k": int(match[1])}}], []


def _grassberger(match: re.Match[str]) -> ReadModels:
    model: ModelEntry = {"entropy-l-diversity": {"l": _read_number(match[1]), "column": match[2]}}
    nearest = "Shannon's entropy of each class stands in; on small classes it is the lower of the two."
    return [model], _unsupported(match, "shoal has no Grassberger estimate of entropy.", nearest)


def _closeness(match: re.Match[str]) -> ReadModels:
    t, distance, column = match.groups()
    options: dict[str, Any] = {"t": _read_number(t), "column": column, "distance": distance.lower()}
    return [{"t-closeness": options}], []


def _disclosure(match: re.Match[str]) -> ReadModels:
    # ARX uses the logarithm to base 2, and counts only the values that occur in the class.
    delta = round(float(match[1]) * math.log(2), 9)
    return [{"delta-disclosure": {"delta": delta, "present_only": True, "column": match[2]}}], []


def _average(match: re.Match[str]) -> ReadModels:
    average, highest, share = match.groups()
    models: list[ModelEntry] = [{"average-risk": {"risk": _read_number(average)}}]
    if highest is None:
        return models, []
    k = math.ceil(1 / float(highest) - 1e-9)
    models.append({"k-anonymity": {"k": k}})
    if float(share) == 0:
        return models, []
    reason = "ARX lets a share of the released records have more than the highest risk."
    nearest = (
        f"k-anonymity with k={k} holds for all of them, which is stricter; suppression_limit says how many "
        "records may be left out instead."
    )
    return models, _unsupported(match, reason, nearest)


def _estimated_map(match: re.Match[str]) -> ReadModels:
    derived = match[2]
    reason = "shoal does not estimate a population from its size."
    if derived.isdigit() and int(derived) > 0:
        nearest = f"k-anonymity with k={derived}, which ARX derived for its data, stands in; derive it again."
        return [{"k-anonymity": {"k": int(derived)}}], _unsupported(match, reason, nearest)
    return [], _unsupported(match, reason, _POPULATION)


_POPULATION = (
    "k-map and delta-presence take a table of the population: models: [{k-map: {k: 5, population: FILE}}]."
)
_SUBSET = "the sample is a subset of the rows that only ARX's Java object (config.dat) knows."


def _missing(reason: str, nearest: str) -> Callable[[re.Match[str]], ReadModels]:
    """Return a reader of models that shoal does not have."""
    return lambda match: ([], _unsupported(match, reason, nearest))


_CRITERIA: tuple[tuple[str, Callable[[re.Match[str]], ReadModels]], ...] = (
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
        lambda match: ([{"sample-uniqueness": {"share": _read_number(match[1])}}], []),
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
            "shoal has no differential privacy: a release consists of records, generalized and verified.",
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
        _missing(f"a research subset is chosen, and {_SUBSET}", "Give shoal only the rows of the subset."),
    ),
)


def models_of(criterion: str) -> ReadModels:
    """Read one of ARX's privacy models.

    >>> models_of("5-anonymity")
    ([{'k-anonymity': {'k': 5}}], [])
    >>> models_of("recursive-(4.0,3)-diversity for attribute 'illness'")[0]
    [{'recursive-cl-diversity': {'c': 4, 'l': 3, 'column': 'illness'}}]
    """
    for pattern, read in _CRITERIA:
        match = re.fullmatch(pattern, criterion, re.IGNORECASE | re.DOTALL)
        if match:
            return read(match)
    unsupported = Unsupported(
        f"the model {printable(criterion)!r}",
        "shoal does not know it.",
        "`shoal list` names all models; add the intended one under models:.",
    )
    return [], [unsupported]


# ARX's name as a pattern, the name in shoal, and how the two differ ("" if they do not).
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
        "ARX divides each column's bits by their maximum; here they are not scaled, except by weights.",
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
        "ARX has three penalties of its own; here a record costs 1 if it is suppressed or not in its class's "
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
        unsupported = [
            Unsupported(
                setting,
                "how ARX puts the columns' losses together (rank, geometric mean, ...) is only in its Java "
                "object.",
                "coverage with their mean is used instead; aggregate: geometric is ARX's geometric mean.",
            )
        ]
        if loss[1] and float(loss[1]) != 0.5:
            reason = (
                "ARX weighs generalization against suppression by a factor; coverage counts both equally."
            )
            unsupported.append(
                Unsupported(setting, reason, "suppression_limit bounds the records suppressed.")
            )
        return "coverage", unsupported
    for pattern, name, difference in _QUALITY:
        if re.fullmatch(pattern, text, re.IGNORECASE):
            unsupported = [Unsupported(setting, difference, f"{name} stands in.")] if difference else []
            return name, unsupported
    reason = "shoal does not have it." if text else "the project does not say."
    nearest = "non-uniform-entropy stands in; `shoal list` names all metrics."
    return "non-uniform-entropy", [Unsupported(setting, reason, nearest)]
