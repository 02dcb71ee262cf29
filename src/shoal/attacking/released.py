"""What stands for a column in a release, and who tells what its labels cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.attacking.meaning import Meaning, Reader
from shoal.column_names import check_asked
from shoal.core.arrays import IntArray
from shoal.core.builders import Flat
from shoal.core.contracts import NodeSearch
from shoal.core.counts import Counts, Domain
from shoal.core.groups import Cover, released_columns
from shoal.core.matching import Saved
from shoal.core.schema import Role
from shoal.errors import UsageError, meant
from shoal.policy import Policy
from shoal.recipe import Recipe

Text = str | None


@dataclass(frozen=True)
class Knowledge:
    """What tells what labels cover: a recipe, a policy, or nothing."""

    policy: Policy | None = None
    regions: Saved | None = None
    levels: bool = False  # groups are those of the hierarchies' levels

    @property
    def k(self) -> int | None:
        """The records that the policy wants to look alike, where it wants several."""
        least = (
            max((model.least_size for model in self.policy.privacy_models), default=1) if self.policy else 1
        )
        return least if least > 1 else None

    def reader(self, name: str) -> Reader:
        """Return what reads the labels of a column."""
        if self.policy is None or name not in self.policy.columns:
            return Reader()
        if self.policy.columns[name].role is not Role.QUASI_IDENTIFIER:
            return Reader(Flat())  # released as it is
        return Reader(self.policy.builder(name), self._covers(name), self.levels)

    def _covers(self, name: str) -> Mapping[tuple[Text, ...], Cover] | None:
        if self.regions is None or self.regions.labels[name] is None:
            return None
        looks = zip(*(self.regions.labels[name] or {}).values(), strict=True)
        told = [tuple(_text(part) for part in look) for look in looks]
        return dict(zip(told, self.regions.covers[name], strict=True))


def _text(shown: str | float | None) -> Text:
    return None if shown is None else str(shown)


def knowledge_of(policy: Any, recipe: Any) -> Knowledge:
    """Take the recipe's word, else the policy's."""
    if recipe is not None:
        found = Recipe.load(recipe)
        return Knowledge(found.policy, found.regions, found.regions is None)
    if policy is None:
        return Knowledge()
    policy = Policy.load(policy)
    search = policy.search_algorithm
    return Knowledge(policy, None, search is None or isinstance(search, NodeSearch))


@dataclass(frozen=True)
class Shown:
    """A column of the input as a release shows it: one column, or two that hold its bounds."""

    name: str
    parts: tuple[str, ...]
    reader: Reader

    def codes(
        self, counts: Counts, domains: Mapping[str, Domain], place: int
    ) -> tuple[IntArray, list[tuple[Text, ...]]]:
        """Return each combination's code, and what codes are released as; its parts begin at a place."""
        if len(self.parts) == 1:
            return counts.codes(place), [(text,) for text in domains[self.parts[0]].texts]
        lower, upper = (domains[part].texts for part in self.parts)
        both = counts.codes(place) * len(upper) + counts.codes(place + 1)
        used, codes = np.unique(both, return_inverse=True)
        pairs = [divmod(code, len(upper)) for code in used.tolist()]
        return codes, [(lower[low], upper[high]) for low, high in pairs]

    def meanings(
        self, looks: Sequence[tuple[Text, ...]], written: Mapping[str, str] | None = None
    ) -> list[Meaning]:
        """Return what each look covers, those that can be written otherwise so, too."""
        if len(self.parts) == 1:
            return self.reader.labels([look[0] for look in looks], written or {})
        return [self.reader.bounds(*look) for look in looks]


def shown(name: str, told: Knowledge, available: Sequence[str]) -> Shown | None:
    """Find what stands for a column in a release, if anything does: itself, or two columns of bounds."""
    for parts in (released_columns(name, bounds=False), released_columns(name, bounds=True)):
        if all(part in available for part in parts):
            return Shown(name, parts, told.reader(name))
    return None


def joined_on(
    on: str | Sequence[str], told: Knowledge, released: Sequence[str], known: Sequence[str]
) -> list[tuple[Shown, str]]:
    """Pair each column of a release with the column of what is known, as age or age=years names them."""
    pairs: list[tuple[str, str]] = []
    for text in [on] if isinstance(on, str) else on:
        name, equals, other = (text, "", "") if text in known else text.partition("=")
        name, other = name.strip(), other.strip() if equals else name.strip()
        name, other = meant(name, released), meant(other, known)
        if not name or not other:
            message = "A column to join on has an empty name. Write age, or age=years, between commas."
            raise UsageError(message)
        pairs.append((name, other))
    if not pairs:
        message = "No columns to join on. Name those that are known of persons, as age, sex, zip."
        raise UsageError(message)
    names, others = map(list, zip(*pairs, strict=True))
    found = {name: shown(name, told, released) for name in names}
    bounded = [name for name in found if found[name] and name not in released]
    check_asked(names, [*released, *bounded], kind="column of the release", where="release")
    check_asked(others, known, kind="column of what is known", where="table of what is known")
    return [(one, other) for name, other in pairs if (one := found[name])]
