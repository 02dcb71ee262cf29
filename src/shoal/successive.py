"""Successive releases: what remains of k for somebody who has two releases of the same persons.

Who knows a person's quasi-identifiers knows the person's class in either; the records that can be the
person's lie in both (Ganta, Kasiviswanathan and Smith, 2008, "Composition attacks and auxiliary information
in data privacy"). With the input it is counted exactly; the releases alone bound the records of every pair.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.attacking.classes_of_two import estimated
from shoal.attacking.released import Knowledge, knowledge_of
from shoal.choose import AUTO, engine_for
from shoal.core.arrays import IntArray
from shoal.core.builder import Builder
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, numbered, packed
from shoal.core.listed import Csv
from shoal.core.progress import quiet
from shoal.core.recoding import Recoding
from shoal.errors import DataError, Infeasible, UsageError, so_many
from shoal.outputs import private_folder
from shoal.policy import Policy
from shoal.problem import check_columns, counted, problem_of
from shoal.recipe import Recipe
from shoal.releasing.task import Task


@dataclass(frozen=True)
class Intersection:
    """What remains of k where two releases are put side by side."""

    k: int  # what the policy asks for
    remaining: int | None  # the records in the smallest pair of classes; None where no record can be in both
    exact: bool  # counted on the input; else estimated from the releases
    pairs: int  # of a class of one and a class of the other, or none, with records in both
    records: int  # those in pairs of fewer than k
    warning: str | None  # less than k remains, or may
    note: str | None = None  # an estimate does not prove that k remains
    same_recoding: bool | None = None  # whether the recipes recode alike; None where they are not at hand

    @property
    def holds(self) -> bool:
        """Whether k remains, as far as it was counted or estimated."""
        return self.warning is None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return asdict(self)


def intersect(
    new: Any,
    old: Any,
    policy: Any,
    *,
    old_policy: Any = None,
    table: Any = None,
    recipe: Any = None,
    old_recipe: Any = None,
    engine: str | Engine = AUTO,
) -> Intersection:
    """Tell what remains of a release's k beside an older release, if the same persons are in both.

    With the input `table` it is exact and needs the recipes, which are read from the private folders beside
    the releases unless given.
    """
    policy = Policy.load(policy)
    engine = engine_for(engine, new)
    k = Knowledge(policy).k or 1
    if table is not None:
        sizes = _exact(engine, table, [(new, _recipe(new, recipe)), (old, _recipe(old, old_recipe))])
        few = sizes[sizes < k]
        least, pairs, records, proven = int(sizes.min()), len(sizes), int(few.sum()), True
    else:
        told = knowledge_of(policy, recipe), knowledge_of(old_policy or policy, old_recipe)
        least, pairs, records, proven = estimated(engine, (new, old), told, k)
    remaining = least or None
    alike = _alike(_at_hand(new, recipe), _at_hand(old, old_recipe))
    warning = _warning(least, k, exact=table is not None, alike=alike) if pairs and least < k else None
    note = None if proven or warning else _UNPROVEN
    return Intersection(k, remaining, table is not None, pairs, records, warning, note, alike)


_UNPROVEN = (
    "The releases alone do not prove this: their classes differ, and records that lie in a class of each may "
    "be fewer. The input tells exactly."
)


def _warning(remaining: int, k: int, *, exact: bool, alike: bool | None) -> str:
    """Say what is wrong and what to do, without a value."""
    many = f"{so_many(remaining, 'record')} that can be a person's, where {k:,} were asked for."
    if exact:
        advice = "Publish one of the two alone." if alike else _RECODE
        return f"Who has both releases is left with {many} {advice}"
    told = f"If the same persons are in both releases, who has both may be left with as few as {many}"
    if alike:
        return f"{told} {_ALIKE} {_SERIES}"
    return f"{told} {_RECODE} {_SERIES} The table that both were made from tells exactly."


_RECODE = "Release with the recoding of the other release, or not at all."
_ALIKE = (
    "Both have the same recoding already, so it is the records that differ: where persons are in both, "
    "publish one of the two alone."
)
_SERIES = "If they are of different persons, as in a series, this check does not apply."


def _at_hand(release: Any, given: Any) -> Recipe | None:
    """Return a release's recipe, where it is at hand and can be read."""
    try:
        return _recipe(release, given)
    except UsageError:
        return None


def _alike(one: Recipe | None, other: Recipe | None) -> bool | None:
    """Tell whether two recipes have the same hierarchies and levels, or regions."""
    if one is None or other is None:
        return None
    names = one.policy.roles.quasi_identifiers
    if one.policy.finishing != other.policy.finishing:
        return False
    if set(names) != set(other.policy.roles.quasi_identifiers) or one.levels != other.levels:
        return False
    if any(_rule(one, name) != _rule(other, name) for name in names):
        return False
    if one.regions is None or other.regions is None:
        return one.regions is other.regions and one.levels is not None
    same = one.regions.labels == other.regions.labels and one.regions.covers == other.regions.covers
    return same and np.array_equal(one.regions.classes, other.regions.classes)  # type: ignore[arg-type]


def _rule(recipe: Recipe, name: str) -> Builder:
    """Return the rule of a column; of a file, its rows and not its place."""
    rule = recipe.policy.builder(name)
    return replace(rule, csv="") if isinstance(rule, Csv) else rule


def _recipe(release: Any, given: Any) -> Recipe:
    """Return the recipe that is given, else the one in the private folder beside the release."""
    if given is not None:
        return Recipe.load(given)
    if isinstance(release, str | Path) and private_folder(Path(release)).is_dir():
        return Recipe.load(private_folder(Path(release)))
    message = "With the input, the recipes of both releases are needed. Give those that are not beside them."
    raise UsageError(message)


def _exact(engine: Engine, table: Any, releases: list[tuple[Any, Recipe]]) -> IntArray:
    """Return the sizes of the table's parts by what the releases show; what neither shows is left out."""
    opened = engine.open(table)
    for _, recipe in releases:
        check_columns(recipe.policy, engine.columns(opened))
    every = [recipe.policy.roles.quasi_identifiers for _, recipe in releases]
    columns = list(dict.fromkeys(name for names in every for name in names))
    counts = engine.count(opened, columns)[0].near()
    looks = []
    for (release, recipe), names in zip(releases, every, strict=True):
        own, classes = _classes(engine, opened, recipe)
        both = [
            np.concatenate((own.codes(place), counts.codes(columns.index(name))))
            for place, name in enumerate(names)
        ]
        of = numbered(packed(both))[len(own) :]  # the release's own combinations come first, each once
        looks.append(classes[of] + 1)
        sizes = np.bincount(classes + 1, own.sizes)[1:].astype(np.int64)  # the suppressed come first
        _check(engine, release, recipe, sizes[sizes > 0], own.records)
    kept = (looks[0] > 0) | (looks[1] > 0)
    cells = numbered(packed([look[kept] for look in looks]))
    return np.bincount(cells, counts.sizes[kept]).astype(np.int64)


def _classes(engine: Engine, table: Any, recipe: Recipe) -> tuple[Counts, IntArray]:
    """Return the combinations of a table and the class that a recipe puts each into, -1 where suppressed."""
    relaxed = getattr(recipe.policy.search_algorithm, "relaxed", False)  # divides records that are alike
    if recipe.levels is None and (relaxed or recipe.regions is None):
        raise UsageError(_BY_CHANCE)
    counts, domains = counted(table, recipe.policy, engine)
    counts = counts.near()
    problem = problem_of(recipe.policy, counts, domains, recipe.levels, engine.memory)
    task = Task(recipe.policy, recipe.levels, regions=recipe.regions)
    try:
        _, evaluation = task.found(problem, quiet)
    except Infeasible:
        raise UsageError(_OTHERS) from None
    recoding = evaluation.recoding or problem.recoding(evaluation.node)
    of = _of(counts, recoding)
    if recoding.regions is not None:
        gone = recoding.regions.suppressed
    else:
        gone = problem.violations(problem.classes_of(recoding))  # classes are numbered as they first appear
    return counts, np.where(gone[of], -1, of)


_BY_CHANCE = (
    "A recipe leaves to chance which records look alike, so the input does not tell it. Leave out the input: "
    "the releases alone give an estimate."
)


def _of(counts: Counts, recoding: Recoding) -> IntArray:
    """Return the class of each combination."""
    if recoding.regions is None:
        groups = [own[counts.codes(column)] for column, own in enumerate(recoding.groups)]
        return numbered(packed(groups))
    found = np.empty(len(counts), np.int64)
    found[recoding.regions.rows] = recoding.regions.classes
    return found


def _check(engine: Engine, release: Any, recipe: Recipe, sizes: IntArray, records: int) -> None:
    """Refuse an input or a recipe that the release is not made from: it has other records or classes."""
    policy = recipe.policy
    shown = [part for name in policy.roles.quasi_identifiers for part in policy.released(name)]
    there = engine.count(engine.open(release), shown)[0].near().sizes
    rows, kept = int(there.sum()), int(sizes.sum())
    expected = {kept, records} if policy.suppressed == "mask" else {kept}
    if rows not in expected:
        message = (
            f"A release has {so_many(rows, 'record')}, and its recipe keeps {kept:,} of the input: they do "
            "not belong together. Give the table that both releases were made from, and their recipes. If "
            "each was made from a table of its own, there is no exact answer: leave the input out."
        )
        raise DataError(message)
    masked = [rows - kept] if rows > kept else []
    if sorted(there.tolist()) != sorted([*sizes.tolist(), *masked]):
        raise UsageError(_OTHERS)


# Regions overlap where values are missing: which of several a record is in, the recipe does not tell.
_OTHERS = (
    "A release has other classes than its recipe makes of the input, so the input does not tell which "
    "records look alike. Is it the table that both were made from? Else leave it out: the releases alone "
    "give an estimate."
)
