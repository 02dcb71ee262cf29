"""Which unchanged columns reveal a generalized column, and how many records all columns together make unique.

A finer group is a group at a level below the released one. For each quasi-identifier and finer level, there
is one question: does a column reveal the finer group? This can happen in two ways. By agreement: all records
with the same value of the column have the same finer group. A value of a single record is no evidence. By
content: the values name the finer group, for example an exact date next to a year.

Only records whose released label covers several finer groups count. Masked records are among them, because
they share one label. A column is reported if it reveals the finer groups of at least half of these records.
The same must hold without the records for which guessing the most frequent finer group is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shoal.core.agreement import (
    AgreementQuestion,
    AgreementQuestions,
    ColumnAgreement,
    EligibleFlag,
    GroupTally,
    fitting_paths,
    same_groups,
    width_of,
)
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.contracts import AS_IS
from shoal.core.counts.counts import Domain, Field, layout, numbered
from shoal.core.hierarchy.builder import Builder, Labels
from shoal.core.hierarchy.calendar import Dates
from shoal.core.hierarchy.dates import begins_with_month
from shoal.core.hierarchy.hierarchy import TOP, Hierarchy
from shoal.core.hierarchy.numbers import Banded
from shoal.core.hierarchy.prefixes import Prefix
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding
from shoal.errors import DataError
from shoal.policy.policy import Policy
from shoal.workflow.release.other_forms import as_iso_dates, enough_numbers, numbers_of_texts, scaled_groups
from shoal.workflow.release.search_result import Revealed, SearchResult, Unchanged

_SHORTEST_DATE = 5  # length of the shortest date, a day number of a spreadsheet such as 40193
GroupReader = Callable[
    [int, Sequence[str], Sequence[int]], Mapping[int, IntArray]
]  # for each of the levels, the group that each text names


def named_groups(
    rule: Builder, domain: Domain, hierarchy: Hierarchy, texts: Sequence[str], levels: Sequence[int]
) -> Mapping[int, IntArray]:
    """Return for each level the group that each text names, or -1.

    A text names a group if it equals the group's label, or if the rule reads it as a value of the group.
    Examples of such texts are a date in another format or with a time, a number with another decimal sign,
    and a longer code.
    """
    return NamedGroups(rule, domain, hierarchy).read(texts, levels)


class NamedGroups:
    """Reads which groups of a hierarchy texts name; the labels are indexed once for many texts."""

    def __init__(self, rule: Builder, domain: Domain, hierarchy: Hierarchy) -> None:
        self.rule = rule.with_fixed_style(domain.texts) if isinstance(rule, Banded) else rule
        self.domain, self.hierarchy = domain, hierarchy
        self._indexes: dict[int, list[_LabelIndex]] = {}

    def read(self, texts: Sequence[str], levels: Sequence[int]) -> Mapping[int, IntArray]:
        """Return for each level the group that each text names, or -1."""
        hierarchy = self.hierarchy
        rule, read = _rewritten(self.rule, texts, hierarchy.positions)
        labels = _labels_of_values(self.domain, hierarchy, read) if rule.needs_counts else _labels(rule, read)
        normalized = [_normalized(text) for text in texts]
        firsts = [_first_part(text) for text in normalized]
        groups_by_level = {}
        for level in levels:
            groups = np.full(len(texts), -1, np.int64) if level else _same_position(rule, hierarchy, read)
            for index in self._indexes_of(level):
                named = list(map(index.group_of, normalized, firsts))
                ruled = [index.group_of_labels(row) for row in labels]
                for candidates in (named, ruled):
                    groups = np.where(groups < 0, index.back[np.array(candidates, np.int64)], groups)
            groups_by_level[level] = groups
        return groups_by_level

    def _indexes_of(self, level: int) -> list[_LabelIndex]:
        """Return the indexes of a level and of the levels above it that have the same groups."""
        if level not in self._indexes:
            sizes = [len(labels) for labels in self.hierarchy.labels]
            same = [other for other in range(level, len(sizes)) if sizes[other] == sizes[level]]
            self._indexes[level] = [_LabelIndex(self.hierarchy, level, other) for other in same]
        return self._indexes[level]


class _LabelIndex:
    """Finds groups of `level` by the labels of the level `labelled`, which has the same groups."""

    def __init__(self, hierarchy: Hierarchy, level: int, labelled: int) -> None:
        self.labelled = labelled
        self.back = np.append(np.argsort(hierarchy.between(level, labelled)), -1)  # index -1: no group
        self.names = {label: group for group, label in enumerate(hierarchy.labels[labelled])}
        self.plain = _plain_labels(hierarchy, labelled)
        self.parts = _parts_of_keys(self.plain)

    def group_of(self, text: str, first: str | None) -> int:
        """Return the group that a normalized text, or its first part, names; -1 if there is none."""
        group = self.plain.get(text)
        if group is None:
            group = -1 if first is None else self.parts.get(first, self.parts.get(first.lstrip("0"), -1))
        return group

    def group_of_labels(self, row: Labels | None) -> int:
        """Return the group that the labels of a text name, or -1."""
        return self.names.get(row[self.labelled - 1], -1) if row and 0 < self.labelled <= len(row) else -1


_AFTER_LETTERS = re.compile(r"[A-Za-z]{1,3}[-_ /](\d+)")  # D-10123


def _rewritten(
    rule: Builder, texts: Sequence[str], positions: FloatArray | None = None
) -> tuple[Builder, list[str]]:
    """Rewrite texts for the rule. If it cannot parse all dates, return ISO dates and a rule for them."""
    months_first = rule.months_first() or False
    if isinstance(rule, Dates):
        shown = begins_with_month(texts)
        months_first = months_first if shown is None else shown
    other = rule.rewritten(texts, months_first=months_first)
    if isinstance(rule, Dates):
        unread = np.isnan(rule.positions(texts)).tolist()
        unread_texts = [
            text for text, is_unread in zip(texts, unread, strict=True) if is_unread and text not in other
        ]
        other = {**as_iso_dates([text for text in unread_texts if _may_be_date(text)], positions), **other}
        if other and rule.format:
            iso = replace(rule, format=None)
            other = {**iso.rewritten(texts, months_first=months_first), **other}
            rule = iso
    elif isinstance(rule, Prefix):
        other = {text: match[1] for text in texts if (match := _AFTER_LETTERS.fullmatch(text))}
    return rule, [other.get(text, text) for text in texts]


def _may_be_date(text: str) -> bool:
    return len(text) >= _SHORTEST_DATE and any(map(str.isdecimal, text))


def _labels_of_values(domain: Domain, hierarchy: Hierarchy, texts: Sequence[str]) -> list[Labels | None]:
    """Return the labels of texts that are values of the column; None for other texts."""
    codes = {text: code for code, text in enumerate(domain.texts) if text is not None}
    levels = [(hierarchy.labels[level], hierarchy.groups(level)) for level in range(1, hierarchy.height + 1)]
    return [
        tuple(labels[groups[codes[text]]] for labels, groups in levels) if text in codes else None
        for text in texts
    ]


def _labels(rule: Builder, texts: Sequence[str]) -> list[Labels | None]:
    """Return the labels of each text, or None if it cannot be parsed; a code for unknown is its own label."""
    try:
        labels = rule.labels(texts)
    except ArithmeticError:  # a number is too large for its band to be computed
        return [None] * len(texts)
    return [
        (text,) * rule.depth() if rule.is_unknown(text) else row
        for text, row in zip(texts, labels, strict=True)
    ]


def _same_position(rule: Builder, hierarchy: Hierarchy, texts: Sequence[str]) -> IntArray:
    """Return for each text the value at its position (a day or a number), or -1.

    A date with a time is at the position of its day. If all values are whole, numbers are rounded down.
    """
    no_match = np.full(len(texts), -1, np.int64)
    if rule.scale not in ("number", "day", "minute") or hierarchy.positions is None:
        return no_match
    positions, text_positions = hierarchy.positions, rule.positions(texts)
    known = positions[~np.isnan(positions)]
    if rule.scale == "day" or (known == np.floor(known)).all():
        positions, text_positions = np.floor(positions), np.floor(text_positions)
    order = np.argsort(positions, kind="stable")
    first, last = (np.searchsorted(positions[order], text_positions, side) for side in ("left", "right"))
    # The position nan means a missing value in the hierarchy, but an unreadable text here.
    unique_match = (last - first == 1) & ~np.isnan(text_positions)
    return np.where(unique_match, order[np.minimum(first, len(order) - 1)], no_match)


def _plain_labels(hierarchy: Hierarchy, level: int) -> dict[str, int]:
    """Map the normalized labels of a level to their groups; -1 if several groups share a label."""
    groups: dict[str, int] = {}
    for group, label in enumerate(hierarchy.labels[level]):
        plain = _normalized(label if label == TOP else label.removesuffix(TOP))
        groups[plain] = -1 if plain in groups else group
    return groups


def _parts_of_keys(plain: Mapping[str, int]) -> dict[str, int]:
    """Map what a key may contain of a label, either all of it or its only number, to the label's group."""
    parts = {label: group for label, group in plain.items() if group >= 0 and label}
    for label, group in plain.items():
        numbers = _NUMBER.findall(label)
        if len(numbers) == 1 and group >= 0:
            number = numbers[0].lstrip("0")
            parts[number] = -1 if parts.get(number, group) != group else group
    return parts


def _first_part(text: str) -> str | None:
    """Return the first part of a key, such as 17 in 17-233; None if the text has a single part."""
    first, *rest = _SEPARATOR.split(text, maxsplit=1)
    return first if rest else None


_NUMBER = re.compile(r"\d+")
_SEPARATOR = re.compile(r"[-_/ .:]+")


def _normalized(text: str) -> str:
    return text.strip().casefold()


@dataclass(frozen=True)
class TextPart:
    """A part of a longer text, such as the second number in "ward 3, 10117 Berlin"."""

    pattern: re.Pattern[str]
    number: int  # from 0, or -1 for the last

    def of(self, text: str) -> str:
        """Return the part of a text, or an empty string."""
        parts = self.pattern.findall(text)
        return parts[self.number].strip() if -len(parts) <= self.number < len(parts) else ""


_PARTS = tuple(
    TextPart(re.compile(pattern), number)
    for pattern in (r"[^/,;:|_#()-]*[^\s/,;:|_#()-]", r"\d+(?:[.,]\d+)?")
    for number in (0, 1, -1)
)


def parts_of(texts: Sequence[str]) -> list[TextPart]:
    """Return the parts that most texts have, except parts that always equal the whole text or another part.

    >>> [part.of("A7 10117") for part in parts_of(["A7 10117", "A9 20095"])]
    ['7', '10117']
    """
    parts: dict[tuple[str, ...], TextPart] = {tuple(text.strip() for text in texts): _PARTS[0]}
    for part in _PARTS:
        values = tuple(map(part.of, texts))
        if 2 * sum(map(bool, values)) > len(texts):
            parts.setdefault(values, part)
    return list(parts.values())[1:]


_SAMPLE = 100  # values to read first; if a quarter of their records match, all values are read
_MOST_SCALED = 100_000  # maximum values to read if they may be numbers on another scale
_MOST_VALUES = 1_000_000  # maximum values to read; records with other values count as not revealed
_CHANCE = 1e-3  # agreement with a lower probability is not attributed to chance


def unchanged_in(policy: Policy, result: SearchResult) -> Unchanged:
    """Find what unchanged columns reveal about the released records; reads the table once."""
    names = [
        name
        for name, role in policy.roles.roles.items()
        if role in AS_IS and name != result.recoding.separate_column
    ]
    unit = next(iter(policy.units), None)
    if not names and unit is None and not result.recoding.separate_column and result.remaining_classes[1] > 1:
        return Unchanged(unique=0)
    questions, guesses = questions_of(result.problem, result.recoding, masks=result.masks)
    answer = result.opened.engine.agreement(
        result.opened.table,
        result.recoding,
        result.domains,
        questions,
        unchanged=names,
        blank=policy.roles.sensitive if result.masks else None,
        unit=unit,
    )
    if answer is None:
        return Unchanged(by_unit=unit is not None)
    with closing(answer):
        released = result.problem.records - result.evaluation.suppressed
        if (answer.records, answer.released) != (result.records, released):
            raise DataError("The table changed while it was read. Give a table that does not change.")
        revealed: tuple[Revealed, ...] = ()
        if names and questions.asked:
            revealed = tuple(_Search(policy, result, questions, guesses, answer).revealed(names))
        return Unchanged(revealed, answer.unique, by_unit=unit is not None)


class _Search:
    """Search for pairs of an unchanged column and a column that it reveals."""

    def __init__(
        self,
        policy: Policy,
        result: SearchResult,
        questions: AgreementQuestions,
        guesses: Sequence[GroupGuess],
        answer: ColumnAgreement,
    ) -> None:
        self.result, self.questions, self.guesses, self.answer = result, questions, guesses, answer
        self.hierarchies = result.problem.hierarchies
        self.named_groups: dict[int, NamedGroups] = {}
        self.rules = {
            column: policy.builder(self.hierarchies[column].name)
            for column in dict.fromkeys(question.column for question in questions.asked)
        }

    def revealed(self, names: Sequence[str]) -> Iterator[Revealed]:
        """Yield each pair at the level that reveals most records; of equal levels, at the finest."""
        for index, (name, tally) in enumerate(zip(names, self.answer.tallies(), strict=True)):
            records = np.maximum(agreement(tally, self.guesses), self.content(index, tally))
            for column in self.rules:
                numbers = [n for n, question in enumerate(self.questions.asked) if question.column == column]
                number = max(numbers, key=records.__getitem__)  # the first maximum, which is the finest level
                if not records[number]:
                    continue
                yield Revealed(
                    column=name,
                    reveals=self.hierarchies[column].name,
                    level=self.questions.asked[number].level,
                    records=int(records[number]),
                    share=float(records[number] / tally.eligible[number].sum()),
                )

    def content(self, index: int, tally: GroupTally) -> IntArray:
        """Count, for each question, the records whose unchanged value names their finer group."""
        records = np.zeros(len(self.guesses), np.int64)
        if not len(tally.sizes):
            return records
        values = self.answer.values(index, _SAMPLE)
        records = self._named(index, tally, values, self._read)
        for part in () if records.any() else parts_of([text or "" for text in values.texts]):
            records = np.maximum(records, self._named(index, tally, values, partial(self._read, part=part)))
        if not records.any() and _as_numbers([text or "" for text in values.texts]) is not None:
            # Not a sample: to fit another scale, the whole distribution is needed.
            values = self.answer.values(index, _MOST_SCALED)
            numbers = _as_numbers([text or "" for text in values.texts])
            if numbers is None:
                return records
            for rising, by_rank in ((True, False), (False, False), (True, True), (False, True)):
                read = partial(self._read_scaled, numbers=numbers, rising=rising, by_rank=by_rank)
                matches = self._matching(index, values, range(len(self.guesses)), read)
                records = np.maximum(records, self._confirmed(tally, matches, sorted(matches)))
        return records

    def _named(self, index: int, tally: GroupTally, values: Domain, read: GroupReader) -> IntArray:
        """Count the records whose value names their finer group; all values are read if a sample matches."""
        matches = self._matching(index, values, range(len(self.guesses)), read)
        likely = [number for number, (eligible, hits) in matches.items() if hits and 4 * hits >= eligible]
        if likely and len(values) == _SAMPLE:
            values = self.answer.values(index, _MOST_VALUES)
            matches = self._matching(index, values, likely, read)
        return self._confirmed(tally, matches, likely)

    def _confirmed(
        self, tally: GroupTally, matches: Mapping[int, tuple[int, int]], likely: Sequence[int]
    ) -> IntArray:
        """Return the matches of each question, or 0 if chance explains them."""
        records = np.zeros(len(self.guesses), np.int64)
        for number in likely:
            hits, eligible = matches.get(number, (0, 0))[1], int(tally.eligible[number].sum())
            guessed = eligible * float(self.guesses[number].agreeing(np.array([2]))[0])
            if convincing(hits, eligible, guessed) and 2 * hits >= eligible:
                records[number] = hits if unlikely(hits, guessed) else 0
        return records

    def _read(
        self, column: int, texts: Sequence[str], levels: Sequence[int], part: TextPart | None = None
    ) -> Mapping[int, IntArray]:
        if column not in self.named_groups:
            hierarchy = self.hierarchies[column]
            domain = self.result.domains[hierarchy.name]
            self.named_groups[column] = NamedGroups(self.rules[column], domain, hierarchy)
        texts = texts if part is None else [part.of(text) for text in texts]
        return self.named_groups[column].read(texts, levels)

    def _read_scaled(
        self,
        column: int,
        texts: Sequence[str],
        levels: Sequence[int],
        *,
        numbers: FloatArray,
        rising: bool,
        by_rank: bool,
    ) -> Mapping[int, IntArray]:
        records, hierarchy = self.result.problem.value_counts[column], self.hierarchies[column]
        return scaled_groups(hierarchy, records, numbers, levels, rising=rising, by_rank=by_rank)

    def _matching(
        self, index: int, values: Domain, numbers: Sequence[int], read: GroupReader
    ) -> Mapping[int, tuple[int, int]]:
        """Count eligible records and matches for each question, with the values as parsed by `read`."""
        bits_by_question = {}
        texts = [text or "" for text in values.texts]
        for column in self.rules:
            chosen = {n: self.questions.asked[n] for n in numbers if self.questions.asked[n].column == column}
            if not chosen:
                continue
            hierarchy = self.hierarchies[column]
            levels = [question.level for question in chosen.values()]
            groups = read(column, texts, levels)
            for number, question in chosen.items():
                bits = np.full(len(hierarchy.labels[question.level]) + 1, -1, np.int64)  # index -1: no group
                bits[hierarchy.groups(question.level)] = self.questions.paths[column] & question.mask
                if (groups[question.level] >= 0).any():
                    bits_by_question[number] = bits[groups[question.level]]
        return self.answer.matching(index, values, bits_by_question) if bits_by_question else {}


def _as_numbers(texts: Sequence[str]) -> FloatArray | None:
    """Convert texts to numbers, or dates to day numbers; None if too few texts are numbers or dates."""
    numbers = numbers_of_texts(texts)
    if numbers is None and any(map(str.isdigit, "".join(texts[:_SAMPLE]))):
        rule, read = _rewritten(Dates(dates=("year",)), texts)
        days = rule.positions(read)
        numbers = days if enough_numbers(days) else None
    return numbers


def agreement(tally: GroupTally, guesses: Sequence[GroupGuess]) -> IntArray:
    """Count, for each question, the records in groups that agree; 0 if chance explains the agreement."""
    multi = tally.sizes > 1
    sizes = tally.sizes[multi]
    counts = np.zeros(len(guesses), np.int64)
    for number, guess in enumerate(guesses):
        chances = guess.agreeing(sizes)
        eligible, agreeing = tally.eligible[number][multi], tally.agreeing[number][multi]
        groups, agreeing_groups = (tally.eligible_groups[number][multi], tally.agreeing_groups[number][multi])
        records = int(agreeing.sum())
        if 2 * records < tally.eligible[number].sum() or not records:
            continue
        if not convincing(records, int(eligible.sum()), float((eligible * chances).sum())):
            continue
        expected = float((groups * chances).sum())
        if unlikely(int(agreeing_groups.sum()), expected) or _surprising(agreeing_groups, groups, chances):
            counts[number] = records
    return counts


def convincing(records: int, eligible: int, by_chance: float) -> bool:
    """Return whether at least half of the records that chance does not explain are revealed."""
    return records - by_chance >= (eligible - by_chance) / 2 > 0


def unlikely(number: int, expected: float) -> bool:
    """Return whether this number of independent hits is too high for chance, by Chernoff's bound.

    >>> unlikely(5, 0.25), unlikely(2, 0.25), unlikely(100, 50.0), unlikely(10, 9.0)
    (True, False, True, False)
    """
    if not 0 < expected < number:
        return number > 0 and expected <= 0
    return bool(number * np.log(number / expected) - number + expected >= -np.log(_CHANCE))


def _surprising(agreeing: IntArray, groups: IntArray, chances: FloatArray) -> bool:
    """Return whether the agreeing groups are too large to agree by chance, by Markov's bound on 1 / chance.

    If groups agree by chance, the product of 1 / chance over the agreeing groups has a mean of at most
    2 ** groups.
    """
    information = -(agreeing * np.log(np.maximum(chances, 1e-300))).sum()
    return bool(information - groups.sum() * np.log(2) >= -np.log(_CHANCE))


@dataclass(frozen=True)
class GroupGuess:
    """The probability that the most frequent finer group of a released label is the right guess."""

    weights: FloatArray  # (labels,): share of records, for labels that cover several finer groups
    hits: FloatArray  # (labels,): share of records with the most frequent finer group

    def agreeing(self, sizes: IntArray) -> FloatArray:
        """Return the probability that groups of these sizes agree by chance.

        The probability that a further record has the first record's finer group is at most the share of the
        most frequent group.

        >>> GroupGuess(np.array([1.0]), np.array([0.5])).agreeing(np.array([1, 2, 3])).tolist()
        [1.0, 0.5, 0.25]
        """
        chances: FloatArray = (self.weights * self.hits ** (sizes[:, np.newaxis] - 1)).sum(axis=1)
        return chances


@dataclass(frozen=True)
class RecodedColumn:
    """A quasi-identifier before and after recoding."""

    hierarchy: Hierarchy
    released: int  # the released level, or the highest level if the recoding has no levels
    highest: int  # the highest level at which a finer group is asked for
    codes: IntArray  # (parts,): the value of each part; a part is the records with one value and one label
    records: IntArray  # (parts,)
    labels: IntArray  # (parts,)
    shown: IntArray  # (values,) or (classes,): the released label of each
    masked: int | None  # the label of masked records, if there are any

    def with_masked(self, codes: IntArray, records: IntArray) -> RecodedColumn:
        """Add masked records, by value; they have a separate label."""
        label = int(max(self.labels.max(), self.shown.max())) + 1
        return replace(
            self,
            highest=self.hierarchy.height,
            codes=np.concatenate([self.codes, codes]),
            records=np.concatenate([self.records, records]),
            labels=np.concatenate([self.labels, np.full(len(codes), label)]),
            masked=label,
        )


def questions_of(
    problem: Problem, recoding: Recoding, *, masks: bool
) -> tuple[AgreementQuestions, list[GroupGuess]]:
    """Return a question and its guess for every finer level of every generalized quasi-identifier.

    If suppressed records are kept masked, every level is finer than their label.
    """
    totals = _released_totals(problem, recoding)
    columns = [
        _column(problem, recoding, index, column_totals, masks=masks)
        for index, column_totals in enumerate(totals)
    ]
    column_paths = [fitting_paths(column.hierarchy, column.highest, column.released) for column in columns]
    fields = layout(
        [
            width_of(c.hierarchy, max(after), after[max(after)])
            for c, (_, after) in zip(columns, column_paths, strict=True)
        ]
    )
    questions: list[AgreementQuestion] = []
    guesses: list[GroupGuess] = []
    flags: list[EligibleFlag] = []
    for index, (column, field, (_, after)) in enumerate(zip(columns, fields, column_paths, strict=True)):
        for level, bits in after.items():
            eligible, guess = _guess(column, level)
            if guess is None:
                continue
            flag = None
            if not eligible[column.labels[column.records > 0]].all():
                flag = len(flags)
                masked = column.masked is not None and bool(eligible[column.masked])
                flags.append(EligibleFlag(index, eligible[column.shown], masked))
            mask = (field.mask >> bits << bits) << field.shift
            questions.append(AgreementQuestion(index, level, field.word, mask, flag))
            guesses.append(guess)
    paths = tuple(path << field.shift for (path, _), field in zip(column_paths, fields, strict=True))
    hidden = [
        after[same_groups(column.hierarchy, column.released)]
        for column, (_, after) in zip(columns, column_paths, strict=True)
    ]
    released = tuple(
        (field.mask >> bits << bits) << field.shift for field, bits in zip(fields, hidden, strict=True)
    )
    suppressed = _suppressed(problem, recoding, fields, paths, released)
    return AgreementQuestions(fields, paths, released, suppressed, tuple(questions), tuple(flags)), guesses


def _released_totals(problem: Problem, recoding: Recoding) -> Sequence[IntArray]:
    """Count the released records of each value; counts in an engine give all records instead."""
    counts = problem.counts
    if recoding.suppressed is None or counts.remote:
        return problem.value_counts
    keys = np.zeros_like(counts.keys)
    for column, (field, groups) in enumerate(zip(counts.fields, recoding.groups, strict=True)):
        keys[field.word] |= groups[counts.codes(column)] << field.shift
    numbers = numbered(np.concatenate([recoding.suppressed, keys], axis=1))
    suppressed, classes = np.split(numbers, [recoding.suppressed.shape[1]])
    sizes = np.where(np.isin(classes, suppressed), 0, counts.sizes)
    return [
        np.bincount(counts.codes(column), sizes, len(hierarchy.labels[0])).astype(np.int64)
        for column, hierarchy in enumerate(problem.hierarchies)
    ]


def _column(
    problem: Problem, recoding: Recoding, index: int, totals: IntArray, *, masks: bool
) -> RecodedColumn:
    hierarchy = problem.hierarchies[index]
    regions = recoding.regions
    if regions is None:
        level = recoding.node[index] if recoding.node else 0
        groups = hierarchy.groups(level)
        codes = np.arange(len(groups))
        column = RecodedColumn(hierarchy, level, level, codes, totals, groups, groups, None)
        all_records = problem.value_counts[index]
        masked_records = all_records - totals if not problem.counts.remote else all_records
        return column.with_masked(codes, masked_records) if masks else column
    if recoding.separate_column:
        codes = np.arange(len(hierarchy.labels[0]))
        return RecodedColumn(hierarchy, 0, 0, codes, totals, codes, codes, None)
    labels = regions.groups[index]
    suppressed = regions.suppressed[regions.classes]
    codes = problem.counts.codes(index)[regions.rows]
    column = RecodedColumn(
        hierarchy,
        hierarchy.height,
        hierarchy.height,
        codes,
        np.where(suppressed, 0, regions.sizes),
        labels[regions.classes],
        labels,
        None,
    )
    return column.with_masked(codes, np.where(suppressed, regions.sizes, 0)) if masks else column


def _guess(column: RecodedColumn, level: int) -> tuple[BoolArray, GroupGuess | None]:
    """Mark the labels that cover several groups of a level, and return the guess for them, if any."""
    occurring = column.records > 0
    groups = column.hierarchy.groups(level)[column.codes[occurring]]
    labels, records = column.labels[occurring], column.records[occurring]
    most = int(max(column.labels.max(), column.shown.max())) + 1
    width = len(column.hierarchy.labels[level])
    pairs, inverse = np.unique(labels * width + groups, return_inverse=True)
    sums = np.bincount(inverse, records)
    labels_of_pairs = pairs // width
    eligible = np.bincount(labels_of_pairs, minlength=most) > 1
    if not eligible.any():
        return eligible, None
    totals = np.bincount(labels_of_pairs, sums, most)
    largest = np.zeros(most)
    np.maximum.at(largest, labels_of_pairs, sums)
    weights = totals[eligible]
    return eligible, GroupGuess(weights / weights.sum(), largest[eligible] / weights)


def _suppressed(
    problem: Problem,
    recoding: Recoding,
    fields: tuple[Field, ...],
    paths: tuple[IntArray, ...],
    released: tuple[int, ...],
) -> IntArray | None:
    """Return the suppressed classes as keys, packed in the same way as the released bits of paths."""
    if recoding.suppressed is None or recoding.node is None:
        return None
    before = problem.counts.fields  # may be wider than the new fields
    keys = np.zeros((fields[-1].word + 1, recoding.suppressed.shape[1]), np.int64)
    for column, (old, new) in enumerate(zip(before, fields, strict=True)):
        groups = problem.hierarchies[column].groups(recoding.node[column])
        beginnings = np.zeros(int(groups.max()) + 1, np.int64)
        beginnings[groups] = paths[column] & released[column]
        keys[new.word] |= beginnings[(recoding.suppressed[old.word] >> old.shift) & old.mask]
    return keys
