"""Successive releases: the k that remains against someone who has two releases of the same persons.

An intruder who knows a person's quasi-identifiers knows the person's class in both releases. Only a record
in both classes can be the person's (Ganta, Kasiviswanathan and Smith, 2008, "Composition attacks and
auxiliary information in data privacy"). Without the input, the number of such records is estimated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.contracts import Engine, Role
from shoal.core.counts.counts import Counts, Domain, numbered, packed
from shoal.core.hierarchy.builder import Builder
from shoal.core.hierarchy.lists import Csv
from shoal.core.recoding.recoding import Recoding
from shoal.document.document import Document, Fact, HasDocument, Verdict
from shoal.errors import DataError, Infeasible, PolicyError, UsageError
from shoal.files.outputs import private_folder
from shoal.policy.policy import Policy
from shoal.wording import plural
from shoal.workflow.attack.covering import ValueIndex, match_labels, resolve_unread
from shoal.workflow.attack.labels import Meaning
from shoal.workflow.attack.linking import Compatible, joined, overlap
from shoal.workflow.attack.released import Knowledge, ReleasedColumn, knowledge_of, shown
from shoal.workflow.problem import check_columns, counted, problem_of
from shoal.workflow.release.recipe import Recipe
from shoal.workflow.release.recovery import load_policy, recover, recover_recipe
from shoal.workflow.release.spreadsheet import plain_cells
from shoal.workflow.search import find, recode
from shoal.workflow.session import AUTO, OpenTable, session
from shoal.workflow.utility.labels import CellText


@dataclass(frozen=True)
class Intersection(HasDocument):
    """The k that remains against someone who has two releases."""

    k: int  # required by the policy
    remaining: int | None  # size of the smallest pair of classes; None if no record can be in both releases
    exact: bool  # counted in the input, not estimated from the releases
    pairs: int  # a pair: the records in one class of each release, or in a class of one release only
    records: int  # number of records in pairs of fewer than k records
    warning: str | None  # set if less than k remains, or may remain
    note: str | None = None  # set if an estimate does not prove that k remains
    same_recoding: bool | None = None  # whether the recipes recode in the same way; None if not available

    @property
    def holds(self) -> bool:
        """Whether k remains, according to the count or the estimate."""
        return self.warning is None

    def document(self) -> Document:
        """Describe the k that remains against someone who has both releases."""
        few = f"{plural(self.records, 'record')} in those of fewer than {self.k:,}"
        remaining = "no record can be in both"
        if self.remaining is not None:
            remaining = f"{self.remaining:,} ({self._basis()})"
        return Document(
            title="Two releases side by side",
            verdict=Verdict("good", "k remains for someone who has both releases.")
            if self.warning is None
            else Verdict("bad", self.warning),
            facts=[
                Fact("remaining", "k beside the other release", remaining),
                Fact("pairs", "pairs of classes", f"{self.pairs:,}; {few}"),
            ],
            notes=[self.note] if self.note else [],
        )

    def _basis(self) -> str:
        if self.exact:
            return "exact"
        advice = (
            "" if self.same_recoding else "; the table that both were made from (--input) gives the exact k"
        )
        return f"if the same persons are in both; estimated from the releases alone{advice}"


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
    """Compute the k that remains if the persons of a release are also in an older release.

    With the input `table`, the result is exact. This needs the recipes of both releases. A recipe that is not
    given is read from the private folder next to its release.
    """
    policy = load_policy(policy, engine)
    k = Knowledge(policy).k or 1
    with session(new, engine, role="release") as s:
        for release, recipe_path in ((new, recipe), (old, old_recipe)):
            recover(release, s.engine)
            recover_recipe(recipe_path, s.engine)
        if table is not None:
            recipes = _recipe(new, recipe), _recipe(old, old_recipe)
            releases = s.table, s.open(old, "older release")
            sizes = _exact(s.open(table, "table"), list(zip(releases, recipes, strict=True)))
            small = sizes[sizes < k]
            least, pairs, records, proven = int(sizes.min()), len(sizes), int(small.sum()), True
        else:
            knowledge = knowledge_of(policy, recipe), knowledge_of(old_policy or policy, old_recipe)
            releases = s.table, s.open(old, "older release")
            least, pairs, records, proven = estimated(releases, knowledge, k)
    remaining = least or None
    same = _same_recoding(_readable_recipe(new, recipe), _readable_recipe(old, old_recipe))
    warning = _warning(least, k, exact=table is not None, same_recoding=same) if pairs and least < k else None
    note = None if proven or warning else _UNPROVEN
    return Intersection(k, remaining, table is not None, pairs, records, warning, note, same)


_UNPROVEN = (
    "The releases alone do not prove this: their classes differ, and the records that two of them share may "
    "be fewer. The input gives the exact number."
)


def _warning(remaining: int, k: int, *, exact: bool, same_recoding: bool | None) -> str:
    """Return the warning and advice, without a value of the data."""
    number = f"{plural(remaining, 'record')} that can be a person's, although {k:,} were requested."
    if exact:
        advice = "Publish one of the two alone." if same_recoding else _RECODE
        return f"Someone with both releases is left with {number} {advice}"
    message = (
        f"If the same persons are in both releases, someone with both may be left with as few as {number}"
    )
    if same_recoding:
        return f"{message} {_ALIKE} {_SERIES}"
    return f"{message} {_RECODE} {_SERIES} The table that both were made from gives the exact number."


_RECODE = "Release with the recoding of the other release, or not at all."
_ALIKE = (
    "Both already have the same recoding, so only the records differ: if persons are in both, "
    "publish one of the two alone."
)
_SERIES = "If they are of different persons, as in a series, this check does not apply."


def _readable_recipe(release: Any, path: Any) -> Recipe | None:
    """Return the recipe of a release, or None if there is none."""
    try:
        return _recipe(release, path)
    except UsageError:
        return None


def _same_recoding(new: Recipe | None, old: Recipe | None) -> bool | None:
    """Return whether two recipes have the same hierarchies, and the same levels or regions."""
    if new is None or old is None:
        return None
    names = new.policy.roles.quasi_identifiers
    if new.policy.finishing != old.policy.finishing:
        return False
    if set(names) != set(old.policy.roles.quasi_identifiers) or new.levels != old.levels:
        return False
    if any(_rule(new, name) != _rule(old, name) for name in names):
        return False
    if new.regions is None or old.regions is None:
        return new.regions is old.regions and new.levels is not None
    same = new.regions.labels == old.regions.labels and new.regions.covers == old.regions.covers
    return same and np.array_equal(new.regions.classes, old.regions.classes)  # type: ignore[arg-type]


def _rule(recipe: Recipe, name: str) -> Builder:
    """Return the rule of a column, without the path of a hierarchy file: only its rows are compared."""
    rule = recipe.policy.builder(name)
    return replace(rule, csv="") if isinstance(rule, Csv) else rule


def _recipe(release: Any, path: Any) -> Recipe:
    """Return the given recipe, else the one in the private folder next to the release."""
    if path is not None:
        return Recipe.load(path)
    if isinstance(release, str | Path) and private_folder(Path(release)).is_dir():
        return Recipe.load(private_folder(Path(release)))
    raise UsageError(
        "With the input, the recipes of both releases are needed. Give those that are not beside them."
    )


def _exact(table: OpenTable, releases: Sequence[tuple[OpenTable, Recipe]]) -> IntArray:
    """Group records by their classes in both releases; return the sizes of the groups."""
    for _, recipe in releases:
        check_columns(recipe.policy, table.columns)
    columns_by_release = [recipe.policy.roles.quasi_identifiers for _, recipe in releases]
    columns = list(dict.fromkeys(name for names in columns_by_release for name in names))
    counts = table.count(columns)[0].in_memory()
    classes_by_release = []
    for (release, recipe), names in zip(releases, columns_by_release, strict=True):
        release_counts, domains, classes = _classes(table, recipe)
        both = []
        for index, name in enumerate(names):
            codes, merged = counts.codes(columns.index(name)), domains[name].codes
            both.append(
                np.concatenate((release_counts.codes(index), codes if merged is None else merged[codes]))
            )
        # The combinations of the release come first and are distinct. Suppressed classes become 0.
        position = numbered(packed(both))[len(release_counts) :]
        classes_by_release.append(classes[position] + 1)
        sizes = np.bincount(classes + 1, release_counts.sizes)[1:].astype(np.int64)
        _check(release, recipe, sizes[sizes > 0], release_counts.records)
    released = (classes_by_release[0] > 0) | (classes_by_release[1] > 0)
    cells = numbered(packed([release_classes[released] for release_classes in classes_by_release]))
    return np.bincount(cells, counts.sizes[released]).astype(np.int64)


def _classes(table: OpenTable, recipe: Recipe) -> tuple[Counts, Mapping[str, Domain], IntArray]:
    """Return the combinations of a table and the class of each under a recipe; -1 if it is suppressed."""
    relaxed = getattr(recipe.policy.search_algorithm, "relaxed", False)  # it may divide equal records
    if recipe.levels is None and (relaxed or recipe.regions is None):
        raise UsageError(_BY_CHANCE)
    counts, domains = counted(table, recipe.policy)
    counts = counts.in_memory()
    problem = problem_of(recipe.policy, counts, domains, recipe.levels, table.engine.memory)
    try:
        _, evaluation = find(recipe.policy, problem, recipe.regions)
    except Infeasible:
        raise UsageError(_OTHERS) from None
    recoded = recode(problem, evaluation)
    class_of = _class_of(counts, recoded.recoding)  # numbered by first appearance
    return counts, domains, np.where(recoded.suppressed[class_of], -1, class_of)


_BY_CHANCE = (
    "A recipe leaves to chance which records form a class, so the input does not determine "
    "the classes. Leave out the input: the releases alone give an estimate."
)


def _class_of(counts: Counts, recoding: Recoding) -> IntArray:
    if recoding.regions is None:
        groups = [column_groups[counts.codes(column)] for column, column_groups in enumerate(recoding.groups)]
        return numbered(packed(groups))
    classes = np.empty(len(counts), np.int64)
    classes[recoding.regions.rows] = recoding.regions.classes
    return classes


def _check(release: OpenTable, recipe: Recipe, sizes: IntArray, records: int) -> None:
    """Raise if the numbers of records or the class sizes of a release do not fit the input and the recipe."""
    policy = recipe.policy
    shown = [part for name in policy.roles.quasi_identifiers for part in policy.released(name)]
    released_sizes = release.count(shown)[0].in_memory().sizes
    rows, count = int(released_sizes.sum()), int(sizes.sum())
    expected = {count, records} if policy.masks else {count}
    if rows not in expected:
        raise DataError(
            f"A release has {plural(rows, 'record')}, and its recipe keeps {count:,} "
            "of the input: they do not belong together. Give the table that both releases were made from, "
            "and their recipes. If each was made from a table of its own, there is no exact answer: "
            "leave the input out."
        )
    masked = [rows - count] if rows > count else []
    if sorted(released_sizes.tolist()) != sorted([*sizes.tolist(), *masked]):
        raise UsageError(_OTHERS)


# Regions overlap where values are missing, and the recipe does not say which region a record belongs to.
_OTHERS = (
    "A release has other classes than its recipe makes from the input, so the input does not determine which "
    "records look alike. Is it the table that both were made from? If not, leave it out: the releases alone "
    "give an estimate."
)


@dataclass(frozen=True)
class _Side:
    """The classes of one release."""

    codes: list[IntArray]  # per quasi-identifier in common: (classes,)
    meanings: list[list[Meaning]]  # what each code covers
    texts: list[list[tuple[CellText, ...]]]  # the released text of each code
    extra: bool  # whether the release has quasi-identifiers that the other lacks
    of: IntArray  # (rows,): the class of each row
    links: list[tuple[IntArray, Domain]]  # (rows,): the columns that are released unchanged
    sizes: IntArray  # (rows,)

    @property
    def classes(self) -> int:
        return int(self.of.max()) + 1


def estimated(
    releases: Sequence[OpenTable], knowledge: tuple[Knowledge, Knowledge], k: int
) -> tuple[int, int, int, bool]:
    """Return the fewest records that two classes can share, the number of pairs, and the records below k.

    The last value says whether this minimum is proven, which requires the same classes in both releases.
    """
    policies = [known.policy for known in knowledge if known.policy is not None]
    quasi = list(dict.fromkeys(name for policy in policies for name in policy.roles.quasi_identifiers))
    sides = [
        {name: column for name in quasi if (column := shown(name, known, release.columns))}
        for known, release in zip(knowledge, releases, strict=True)
    ]
    common = [name for name in quasi if all(name in side for side in sides)]
    if not common:
        raise PolicyError(
            "The releases have no quasi-identifier of the policies in common. Are they of the same table?"
        )
    links = _links(
        policies, releases, {part for side in sides for column in side.values() for part in column.parts}
    )
    new, old = (_side(*pair, common, links) for pair in zip(releases, sides, strict=True))
    ids = _common_codes(new, old)
    if not (new.extra or old.extra) and set(_released(new)) == set(_released(old)):
        return *_compare_same_classes(new, old, ids, k), True
    return *_compare_other_classes(common, new, old, ids, k), False


def _links(policies: Sequence[Policy], releases: Sequence[OpenTable], used: set[str]) -> list[str]:
    """Return the columns that are unchanged in both releases."""
    unchanged = (Role.SENSITIVE, Role.OTHER)
    return [
        name
        for name in releases[0].columns
        if name in releases[1].columns
        and name not in used
        and all(name in policy.columns and policy.columns[name].role in unchanged for policy in policies)
    ]


def _side(
    table: OpenTable, shown_columns: Mapping[str, ReleasedColumn], common: Sequence[str], links: Sequence[str]
) -> _Side:
    # Columns of both releases come before those of one release.
    columns = sorted(shown_columns.values(), key=lambda column: column.name not in common)
    parts = [part for column in columns for part in column.parts]
    counts, domains = table.count([*parts, *links])
    counts = counts.in_memory()
    written = {part: column.reader.written for column in columns for part in column.parts}
    domains = {name: _unescaped(domain, written.get(name, ())) for name, domain in domains.items()}
    class_of = numbered(packed([counts.codes(index) for index in range(len(parts))]))
    first = np.unique(class_of, return_index=True)[1]
    codes, meanings, texts = [], [], []
    index = 0
    for column in columns[: len(common)]:
        column_codes, released = column.codes(counts, domains, index)
        codes.append(column_codes[first])
        meanings.append(column.meanings(released))
        texts.append(released)
        index += len(column.parts)
    values = [(counts.codes(len(parts) + n), domains[name]) for n, name in enumerate(links)]
    return _Side(codes, meanings, texts, len(columns) > len(common), class_of, values, counts.sizes)


def _unescaped(domain: Domain, written: Collection[str]) -> Domain:
    return replace(domain, texts=tuple(plain_cells(domain.texts, written)))


def _common_codes(new: _Side, old: _Side) -> tuple[IntArray, IntArray]:
    """Return codes of the unchanged values of each row; equal values have equal codes in both releases."""
    if not new.links:
        return np.zeros(len(new.of), np.int64), np.zeros(len(old.of), np.int64)
    both = []
    for (new_codes, domain), (old_codes, old_domain) in zip(new.links, old.links, strict=True):
        codes: dict[CellText, int] = {}
        maps = [
            np.array([codes.setdefault(text, len(codes)) for text in d.texts]) for d in (domain, old_domain)
        ]
        both.append(np.concatenate((maps[0][new_codes], maps[1][old_codes])))
    ids = numbered(packed(both))
    return ids[: len(new.of)], ids[len(new.of) :]


def _released(side: _Side) -> list[tuple[tuple[CellText, ...], ...]]:
    pairs = zip(side.codes, side.texts, strict=True)
    return list(zip(*[[texts[code] for code in codes.tolist()] for codes, texts in pairs], strict=True))


def _compare_same_classes(
    new: _Side, old: _Side, ids: tuple[IntArray, IntArray], k: int
) -> tuple[int, int, int]:
    numbers: dict[object, int] = {}
    tables = []
    for side, side_ids in zip((new, old), ids, strict=True):
        classes = np.array([numbers.setdefault(labels, len(numbers)) for labels in _released(side)])
        tables.append((classes[side.of], side_ids, side.sizes))
    keys = numbered(packed([np.concatenate([table[n] for table in tables]) for n in (0, 1)]))
    size, cut = int(keys.max()) + 1, len(new.of)
    first, second = (
        np.bincount(part, table[2], size)
        for part, table in zip((keys[:cut], keys[cut:]), tables, strict=True)
    )
    both = np.minimum(first, second)
    class_of = np.empty(size, np.int64)
    class_of[keys] = np.concatenate([table[0] for table in tables])
    return _summary(
        [np.bincount(class_of, part).astype(np.int64) for part in (both, first - both, second - both)], k
    )


def _summary(parts: Sequence[IntArray], k: int) -> tuple[int, int, int]:
    """Return the smallest positive size, the number of positive sizes, and the sum of those below k."""
    records = np.concatenate(parts)
    records = records[records > 0]
    least = int(records.min()) if len(records) else 0
    return least, len(records), int(records[records < k].sum())


def _compare_other_classes(
    names: Sequence[str], new: _Side, old: _Side, ids: tuple[IntArray, IntArray], k: int
) -> tuple[int, int, int]:
    columns = []
    for name, new_meanings, old_meanings in zip(names, new.meanings, old.meanings, strict=True):
        resolved = (
            resolve_unread(own_meanings, ValueIndex.of_meanings(other_meanings), rule=True)[0]
            for own_meanings, other_meanings in ((new_meanings, old_meanings), (old_meanings, new_meanings))
        )
        new_resolved, old_resolved = resolved
        columns.append(match_labels(name, old_resolved, ValueIndex.of_meanings(new_resolved)))
    released, known = list(old.codes), list(new.codes)
    if old.extra:  # one label per class keeps identical classes separate
        number = old.classes
        zero = np.zeros(1, np.int64)
        columns.append(
            Compatible(np.ones(number, np.bool_), np.ones(1, np.bool_), np.append(zero, zero), zero[:0])
        )
        released.append(np.arange(number))
        known.append(np.zeros(new.classes, np.int64))
    totals = np.bincount(old.of, old.sizes).astype(np.int64)
    both = joined(np.stack(released), np.stack(known), columns, totals)
    sides = _grouped(new, ids[0], both.rows), _grouped(old, ids[1], both.released)
    matched = [np.zeros(len(counts), np.int64) for _, _, counts in sides]
    least, pairs, records = overlap(
        both.known, both.fresh, both.tree, both.lists, *sides[0], *sides[1], k, *matched
    )
    unmatched = _summary(
        [_unmatched(*side, matched_records) for side, matched_records in zip(sides, matched, strict=True)], k
    )
    least = min(filter(None, (int(least), unmatched[0])), default=0)
    return least, int(pairs) + unmatched[1], int(records) + unmatched[2]


def _unmatched(starts: IntArray, _: IntArray, counts: IntArray, matched: IntArray) -> IntArray:
    """Return the minimum number of records of each class that are not in the other release."""
    before = np.append(0, np.cumsum(np.maximum(0, counts - matched)))
    left: IntArray = before[starts[1:]] - before[starts[:-1]]
    return left


def _grouped(side: _Side, ids: IntArray, order: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the sorted codes of unchanged values of each class, with the classes in the order given."""
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    class_of = positions[side.of]
    rows = np.lexsort((ids, class_of))
    starts = np.append(0, np.cumsum(np.bincount(class_of, minlength=len(order)))).astype(np.int64)
    return starts, ids[rows], side.sizes[rows]
