"""Builders for values of public classifications: countries, states of the United States, diseases.

The tables are in `shoal/data`. Each names its source.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

import yaml

from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builder import Builder, Labels, check_units
from shoal.core.hierarchy.hierarchy import TOP, Hierarchy

_ICD_10 = re.compile(r"([A-Z]\d\d)(?:\.?[0-9A-Z]{1,4})?(?:\.?-)?[*+!]?")


@dataclass(frozen=True)
class Classified(Builder):
    """Values of a public classification, by its groups."""

    units: ClassVar[tuple[str, ...]]

    @abstractmethod
    def groups_of(self, text: str) -> Labels | None:
        """Return the group of a value in each unit, or None."""

    def levels(self) -> tuple[str, ...]:
        """Return the unit at each level from 1 up."""
        units: tuple[str, ...] = getattr(self, self.keyword)
        return units

    def depth(self) -> int:
        return len(self.levels())

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        unit_indices = [self.units.index(unit) for unit in self.levels()]
        all_groups = (self.groups_of(text.strip()) for text in texts)
        return [
            None if groups is None else tuple(groups[index] for index in unit_indices)
            for groups in all_groups
        ]

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        check_units(domain.name, self.levels(), self.units)
        return super().bind(domain, counts)

    def covers(self, label: str) -> str:
        return super().covers(label) if label == TOP else f"values in {label}"

    def _explain_uncovered(self, values: Sequence[str]) -> str:
        return f"not in the classification {self.keyword}. Name codes under 'unknown', or give 'uncovered'."


@dataclass(frozen=True)
class Countries(Classified):
    """Countries by the regions of the United Nations."""

    countries: tuple[str, ...] = ()
    """The unit at each level from 1 up: `subregion`, `region`."""

    keyword: ClassVar[str] = "countries"
    units: ClassVar[tuple[str, ...]] = ("subregion", "region")

    def groups_of(self, text: str) -> Labels | None:
        return _areas("countries").get(_name(text))


@dataclass(frozen=True)
class UsStates(Classified):
    """States of the United States by the divisions and regions of the census."""

    us_states: tuple[str, ...] = ()
    """The unit at each level from 1 up: `division`, `region`."""

    keyword: ClassVar[str] = "us_states"
    units: ClassVar[tuple[str, ...]] = ("division", "region")

    def groups_of(self, text: str) -> Labels | None:
        return _areas("us-states").get(_name(text))


@dataclass(frozen=True)
class Icd10(Classified):
    """Codes of the International Classification of Diseases, 10th revision."""

    icd_10: tuple[str, ...] = ()
    """The unit at each level from 1 up: `category`, `block`, `chapter`."""

    keyword: ClassVar[str] = "icd_10"
    units: ClassVar[tuple[str, ...]] = ("category", "block", "chapter")

    def groups_of(self, text: str) -> Labels | None:
        match = _ICD_10.fullmatch(text)
        groups = _categories().get(match[1]) if match else None
        return None if match is None or groups is None else (match[1], *groups)


def _table(name: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = yaml.safe_load((files("shoal") / "data" / f"{name}.yaml").read_text("utf-8"))
    return table


def _name(text: str) -> str:
    """Return a name as it is spelled in the tables; a code of at most three letters is returned unchanged.

    >>> _name("St. Lucia"), _name("Micronesia, Federated States of"), _name("US")
    ('saint lucia', 'federated states of micronesia', 'US')
    """
    if len(text) <= 3:
        return text
    first, comma, qualifier = text.casefold().partition(", ")
    name = f"{qualifier} {first}" if comma else first
    return re.sub(r"\bst\. ", "saint ", name).replace(" & ", " and ")


@cache
def _areas(name: str) -> Mapping[str, Labels]:
    """Return the groups of every code and name of a table of areas."""
    areas: dict[str, Labels] = {}
    for region, subregions in _table(name).items():
        for subregion, entries in subregions.items():
            for entry in entries:
                codes, names = re.fullmatch(r"((?:[A-Z]{2,3} )+)(.+)", entry).groups()  # type: ignore[union-attr]
                for name_or_code in (*codes.split(), *map(_name, names.split("|"))):
                    areas[name_or_code] = (subregion, region)
    return areas


@cache
def _categories() -> Mapping[str, Labels]:
    """Return the block and the chapter of every category of ICD-10."""
    categories: dict[str, Labels] = {}
    for chapter, blocks in _table("icd-10").items():
        for block in blocks:
            first, last = (_position(end) for end in (block[:3], block[-3:]))
            for position in range(first, last + 1):
                categories[f"{chr(ord('A') + position // 100)}{position % 100:02}"] = (block, chapter)
    return categories


def _position(category: str) -> int:
    return 100 * (ord(category[0]) - ord("A")) + int(category[1:])
