"""The columns of a release that show an input column, and what defines the values that a label covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.columns.header import check_asked
from shoal.core.arrays import IntArray
from shoal.core.contracts import NodeSearch, Role
from shoal.core.counts.counts import Counts, Domain
from shoal.core.hierarchy.builders import Flat
from shoal.core.recoding.groups import Cover, released_columns
from shoal.core.recoding.matching import Saved
from shoal.errors import UsageError
from shoal.policy.policy import Policy, named
from shoal.wording import match_trimmed
from shoal.workflow.attack.labels import Meaning, Reader
from shoal.workflow.release.recipe import Recipe
from shoal.workflow.release.recovery import load_policy
from shoal.workflow.utility.labels import CellText


@dataclass(frozen=True)
class Knowledge:
    """What defines the values that a label covers: a recipe, a policy, or nothing."""

    policy: Policy | None = None
    regions: Saved | None = None
    levels: bool = False  # whether the groups are those of the hierarchies' levels
    node: Mapping[str, int] | None = None  # the level of each column, if a recipe gives it

    @property
    def k(self) -> int | None:
        """The smallest class size that the policy requires, or None if it is 1."""
        least = (
            max((model.least_size for model in self.policy.privacy_models), default=1) if self.policy else 1
        )
        return least if least > 1 else None

    def reader(self, name: str) -> Reader:
        """Return the reader for the labels of a column."""
        if self.policy is None or name not in self.policy.columns:
            return Reader(several=self.policy is None)
        if self.policy.columns[name].role is not Role.QUASI_IDENTIFIER:
            return Reader(Flat(), as_is=True)
        as_is = self.regions is not None and self.regions.labels[name] is None
        as_is |= self.node is not None and self.node[name] == 0
        whole_groups = (
            bool(self.policy.columns[name].min_level) and named(self.policy.algorithm)[0] == "mondrian"
        )
        several_labels = whole_groups or self.policy.local_labels > 1
        return Reader(self.policy.builder(name), self._covers(name), self.levels, several_labels, as_is)

    def _covers(self, name: str) -> Mapping[tuple[CellText, ...], Cover] | None:
        if self.regions is None or self.regions.labels[name] is None:
            return None
        cell_texts = zip(*(self.regions.labels[name] or {}).values(), strict=True)
        texts = [tuple(_text(part) for part in cell) for cell in cell_texts]
        return dict(zip(texts, self.regions.covers[name], strict=True))


def _text(shown: str | float | None) -> CellText:
    return None if shown is None else str(shown)


def knowledge_of(policy: Any, recipe: Any) -> Knowledge:
    """Return the knowledge from the recipe or, without a recipe, from the policy."""
    if recipe is not None:
        loaded_recipe = Recipe.load(recipe)
        # Refined classes may have other levels than the recipe.
        node = None if loaded_recipe.policy.levels_by_class else loaded_recipe.levels
        return Knowledge(loaded_recipe.policy, loaded_recipe.regions, loaded_recipe.regions is None, node)
    if policy is None:
        return Knowledge()
    policy = load_policy(policy)
    search = policy.search_algorithm
    return Knowledge(policy, None, search is None or isinstance(search, NodeSearch))


@dataclass(frozen=True)
class ReleasedColumn:
    """An input column as a release shows it: as one column, or as two columns with its bounds."""

    name: str
    parts: tuple[str, ...]
    reader: Reader

    def codes(
        self, counts: Counts, domains: Mapping[str, Domain], first_index: int
    ) -> tuple[IntArray, list[tuple[CellText, ...]]]:
        """Return the code of each combination and the texts of each code; the column is at `first_index`."""
        if len(self.parts) == 1:
            return counts.codes(first_index), [(text,) for text in domains[self.parts[0]].texts]
        lower, upper = (domains[part].texts for part in self.parts)
        both = counts.codes(first_index) * len(upper) + counts.codes(first_index + 1)
        used, codes = np.unique(both, return_inverse=True)
        pairs = [divmod(code, len(upper)) for code in used.tolist()]
        return codes, [(lower[low], upper[high]) for low, high in pairs]

    def meanings(
        self, label_texts: Sequence[tuple[CellText, ...]], written: Mapping[str, str] | None = None
    ) -> list[Meaning]:
        """Return what each released text covers; `written` holds other forms of the texts."""
        if len(self.parts) == 1:
            return self.reader.labels([label[0] for label in label_texts], written or {})
        return [self.reader.bounds(*label) for label in label_texts]


def shown(name: str, knowledge: Knowledge, available: Sequence[str]) -> ReleasedColumn | None:
    """Return how a release shows a column: as one column or as two bounds; None if it does not show it."""
    for parts in (released_columns(name, bounds=False), released_columns(name, bounds=True)):
        if all(part in available for part in parts):
            return ReleasedColumn(name, parts, knowledge.reader(name))
    return None


def joined_on(
    on: str | Sequence[str], knowledge: Knowledge, released: Sequence[str], known: Sequence[str]
) -> list[tuple[ReleasedColumn, str]]:
    """Pair columns of a release with known columns; `age=years` pairs different names."""
    pairs: list[tuple[str, str]] = []
    for text in [on] if isinstance(on, str) else on:
        name, equals, other = (text, "", "") if text in known else text.partition("=")
        name, other = name.strip(), other.strip() if equals else name.strip()
        name, other = match_trimmed(name, released), match_trimmed(other, known)
        if not name or not other:
            raise UsageError(
                "A column to join on has an empty name. Write age, or age=years, between commas."
            )
        pairs.append((name, other))
    if not pairs:
        raise UsageError("No columns to join on. Name those known of persons, such as age, sex, zip.")
    names, others = map(list, zip(*pairs, strict=True))
    columns = {name: shown(name, knowledge, released) for name in names}
    bounded = [name for name in columns if columns[name] and name not in released]
    check_asked(names, [*released, *bounded], kind="column of the release", where="release")
    check_asked(others, known, kind="column of what is known", where="table of what is known")
    return [(column, other) for name, other in pairs if (column := columns[name])]
