"""The four interfaces that plug-ins implement: Model, Metric, Algorithm, Engine.

A plug-in is a frozen dataclass. Its fields are its options, and its class attributes are its promises. The
tests in `tests/plugins/contracts` check every promise. The text below a promise appears on the page of the
plug-in; a plug-in may override it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from shoal.core.agreement import AgreementQuestions, ColumnAgreement
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.counts.counts import Counts, Domain
from shoal.core.memory import limit_of
from shoal.core.recoding.recoding import Recoding
from shoal.errors import Refusal, UsageError

if TYPE_CHECKING:
    from shoal.core.evaluation import Evaluation
    from shoal.core.evaluator import Evaluator
    from shoal.core.problem import Problem
    from shoal.core.rows import Browse
    from shoal.core.targets import Target


class Role(StrEnum):
    """The role of a column in a policy."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    OTHER = "other"


AS_IS = (Role.SENSITIVE, Role.OTHER)  # columns that are released unchanged


@dataclass(frozen=True)
class Schema:
    """The role of every column, in the order of the policy."""

    roles: dict[str, Role]

    def of(self, role: Role) -> tuple[str, ...]:
        return tuple(name for name, column_role in self.roles.items() if column_role is role)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return self.of(Role.QUASI_IDENTIFIER)

    @property
    def sensitive(self) -> tuple[str, ...]:
        return self.of(Role.SENSITIVE)

    @property
    def identifiers(self) -> tuple[str, ...]:
        return self.of(Role.IDENTIFIER)


COMPARED_GROUPS = 10_000  # maximum number of groups of a key that `Engine.key_groups` compares


class When(StrEnum):
    """When a promise holds."""

    ALWAYS = "always"
    WITHOUT_SUPPRESSION = "without suppression"
    NEVER = "never"

    def given(self, suppression: bool) -> bool:
        """Return whether the promise holds, given whether records may be suppressed."""
        return self is When.ALWAYS or (self is When.WITHOUT_SUPPRESSION and not suppression)


class Guarantee(StrEnum):
    """What a search proves about its result."""

    LEAST_LOSS = "least loss"
    """No acceptable node has a smaller loss."""
    LEAST_HEIGHT = "least height"
    """No acceptable node has a smaller sum of levels."""
    MINIMAL = "minimal"
    ACCEPTABLE = "acceptable"
    NONE = "none"


class RecordCost(StrEnum):
    """The cost of one record, for losses that are a sum over records and depend only on their classes."""

    SIZE = "the size of its class, or of the table if it is suppressed"
    MINORITY = "1 if it is suppressed or not in the majority of its class, as a share of all records"


class ColumnTotal(StrEnum):
    """How the losses of the columns are combined into the loss of a node."""

    SUM = "their sum"
    MEAN = "their mean by weight"


@dataclass(frozen=True)
class SizeTerms:
    """The factors of a loss that is computed from class sizes: the sum of factors times amounts."""

    squares: float = 0.0  # factor of the sum of squared sizes of all classes, suppressed or not
    suppressed_squares: float = 0.0  # factor of the sum of squared sizes of suppressed classes
    suppressed: float = 0.0  # factor of the number of suppressed records
    per_class: float = 0.0  # factor of 1 / (number of all classes)
    # One number per column and level; the sum at a node is added to the loss. It never decreases upwards.
    table: tuple[FloatArray, ...] | None = field(default=None, compare=False)


class Model(ABC):
    """A privacy model: which classes must be suppressed, or whether the whole release is acceptable."""

    # One sentence for readers who do not program; without it the studio shows the docstring's first line.
    plain_summary: ClassVar[str] = ""
    # With some options, the next two promises do not hold: see `is_monotone` and `sizes_suffice`.
    monotone: ClassVar[When]
    """Generalizing never turns a class that passes into one that must be suppressed."""
    by_size: ClassVar[bool] = False
    """Whether the model needs only the size of a class, so that a whole lattice can be evaluated at once."""

    @abstractmethod
    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes that must be suppressed."""

    @property
    def sizes_suffice(self) -> bool:
        """Whether this model, with its options, needs only the sizes of classes."""
        return self.by_size

    def is_monotone(self, suppression: bool) -> bool:
        """Return whether this model, with its options, is monotone."""
        return self.monotone.given(suppression)

    def holds(self, classes: Classes, suppressed: BoolArray) -> bool:
        """Return whether the remaining records may be released, for models about the whole table."""
        return True

    @property
    def judges_table(self) -> bool:
        """Whether the model also judges the whole table, which means that it overrides `holds`."""
        return type(self).holds is not Model.holds

    def unavoidable(self, classes: Classes) -> FloatArray:
        """Return, per class, a lower bound on the records that are refused here and at every node below.

        If the sum of the bounds exceeds the limit, a search may refuse all nodes below. Merging classes never
        increases the sum.
        """
        if not self.is_monotone(suppression=True):
            return np.zeros(len(classes))
        return np.where(self.violations(classes), classes.sizes, 0.0)

    @property
    def least_size(self) -> int:
        """The smallest size of a class that can pass the model."""
        return 1

    def least_values(self, available: Sequence[str]) -> Mapping[str, int]:
        """Return, by sensitive column, the smallest number of values of a class that can pass."""
        return {}

    def sensitive(self, available: Sequence[str]) -> tuple[str, ...]:
        """Return the sensitive columns whose distributions the model needs."""
        return ()

    ignores_size = False  # whether the model depends on sensitive values only, not on the number of records

    @property
    def population_table(self) -> str | None:
        """The path of the population table that the input was drawn from."""
        return None

    @property
    def unit_column(self) -> str | None:
        """The column whose distinct values are counted in each class instead of records."""
        return None

    @property
    def needs_reference(self) -> bool:
        """Whether the model compares classes with the whole input, so a release alone is not enough."""
        return False

    @property
    def needs_hierarchy(self) -> bool:
        """Whether the sensitive columns of this model need a hierarchy."""
        return False

    def in_words(self) -> str | None:
        """Return one sentence for the data owner on what the release guarantees, or None."""
        return None

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the strictest variant of this model that refuses at most `limit` records here."""
        return None


class Metric(ABC):
    """A measure of information loss; smaller is better.

    A metric that is monotone only without suppression also promises that suppressing records never lowers the
    loss. Its loss without suppression is then a lower bound for every node above.
    """

    monotone: ClassVar[When]
    """Generalizing never lowers the loss, which lets a search skip nodes."""
    separable: ClassVar[When] = When.NEVER  # then the loss is `total(sum of values of table)`
    """The loss is computed from one number per column and level, so that no node needs to be counted."""
    by_size: ClassVar[bool] = False
    """Whether the loss needs only the sizes of the classes, not their values."""
    weighted: ClassVar[bool] = False
    """Whether the loss uses the `weight` of a column in the policy."""
    by_level: ClassVar[bool] = False
    """Whether the loss needs the level of every group; a range of values has no level."""

    @abstractmethod
    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Measure a recoding in which some classes are suppressed."""

    @property
    def needs_label(self) -> bool:
        """Whether the metric uses the label column of the policy."""
        return False

    @property
    def record_cost(self) -> RecordCost | None:
        """The cost of a record, for bounds of the loss; None if it depends on more than its class."""
        return None

    @property
    def over_columns(self) -> ColumnTotal | None:
        """How the losses of the columns are combined into the loss of a node; None if they cannot be.

        Any other value makes two more promises. The loss of a column depends only on its level and on the
        suppressed records, and suppressing more records never lowers it.
        """
        return None

    def onto(self, problem: Problem, part: Problem) -> tuple[Metric, float]:
        """Return the metric for some of the columns, and a factor for its loss.

        If the columns are divided into parts, the loss of a node is `constant` plus the sum of factor times
        loss over the parts.
        """
        whole = sum(problem.weights)
        return self, 1.0 if self.over_columns is ColumnTotal.SUM else sum(part.weights) / whole

    def constant(self, problem: Problem) -> float:
        """Return the part of the loss that does not depend on the columns."""
        return 0.0

    def size_terms(self, problem: Problem) -> SizeTerms | None:
        """Return the loss as a function of class sizes, for searches in compiled code, or None.

        The terms for all classes together never decrease upwards. Suppressing a class never lowers the loss.
        """
        return None

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        """Return one number per column and level, for a separable metric."""
        raise TypeError(type(self).__name__)

    def total(self, parts: Any) -> Any:
        """Convert sums of values of `table` to losses; a larger sum gives a larger loss."""
        return parts


class Algorithm(ABC):
    """A search for a recoding."""

    guarantee: ClassVar[Guarantee]
    """What the search proves about its result."""
    # One sentence for readers who do not program; without it the studio shows the docstring's first line.
    plain_summary: ClassVar[str] = ""
    # Whether the error for an infeasible problem says which settings work.
    reports_infeasible: ClassVar[bool] = False
    # Whether the result lists the nodes among which the metric chose.
    lists_candidates: ClassVar[bool] = False
    # Whether the search only evaluates nodes, so that the combinations may stay in an engine.
    supports_remote: ClassVar[bool] = False
    # Whether the sensitive column is released in a separate table that lists its values by group.
    separates_sensitive: ClassVar[bool] = False
    # Whether the search may suppress records. A search that blanks cells instead releases all records.
    suppresses: ClassVar[bool] = True

    @property
    def needs_label(self) -> bool:
        """Whether the search uses the label column of the policy."""
        return False

    def refuses(self, problem: Problem) -> Refusal | None:
        """Return why this search cannot handle the problem, or None."""
        return None

    def refuses_models(self, models: Sequence[Model], sensitive: Sequence[str]) -> Refusal | None:
        """Return why no table with these sensitive columns can satisfy the models, or None."""
        return None

    def tested_sets(self, identifying: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """Return the sets of columns whose rare combinations are hidden, for searches that ignore the models.

        `identifying` has a number for how identifying each column is.
        """
        return ()

    def default_limit(self, models: Sequence[Model]) -> int | None:
        """Return the suppression limit of this search if the policy has none."""
        return None

    @abstractmethod
    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Return the best recoding or raise Infeasible."""


Cells = bool | Literal["any"]


@dataclass(frozen=True)
class NodeSearch(Algorithm):
    """A search for a node of the lattice; the suppressed records may be recoded afterwards."""

    refine: bool = field(default=False, kw_only=True)
    """Continue from the node: recode the records that it suppresses, and lower levels class by class."""
    cells: Cells = field(default=False, kw_only=True)
    """Blank a few cells of records instead of suppressing them; with `any`, a blank matches every value."""


@dataclass(frozen=True)
class ColumnScan:
    """Counts of the values of a column: values that occur once, values that match patterns, all values."""

    unique_values: int  # number of values that occur once
    matches: tuple[int, ...]  # number of distinct values that match each pattern
    distinct: int | None = field(default=None, compare=False)  # approximate number of values; None: unknown


def _scan_column(counts: Counts, domain: Domain, patterns: Sequence[str]) -> ColumnScan:
    texts = [text for text in domain.texts if text is not None]
    matches = (sum(re.search(pattern, text) is not None for text in texts) for pattern in patterns)
    return ColumnScan(int((counts.sizes == 1).sum()), tuple(matches), len(texts))


def _key_groups(engine: Engine, table: Any, key: str, columns: Sequence[str]) -> KeyGroups:
    """Compute the groups of a key by counting its pairs of values with each column.

    A column is constant in a group if it has at most one value there, not counting nulls.
    """
    sizes = _sizes_by_key(engine, table, [key])[0]
    repeated = int((sizes > 1).sum())
    constant = {}
    for name in columns:
        rows, values = _sizes_by_key(engine, table, [key, name])
        constant[name] = int(((rows > 1) & (values <= 1)).sum())
    sizes = sizes[sizes > 0]
    smallest, largest = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    return KeyGroups(len(sizes), int(sizes.sum()), smallest, largest, repeated, repeated, constant)


def _sizes_by_key(engine: Engine, table: Any, names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return, per value of the first column, the number of rows and of distinct values of the last one."""
    counts, domains = engine.count(table, names)
    counts = counts.in_memory()
    keys, others = counts.codes(0), counts.codes(len(names) - 1)
    null = [np.array([text is None for text in domains[name].texts]) for name in (names[0], names[-1])]
    length = len(domains[names[0]])
    rows = np.bincount(keys, np.where(null[0][keys], 0, counts.sizes), length).astype(np.int64)
    values = np.bincount(keys, ~null[1][others], length).astype(np.int64)
    return rows, values


@dataclass(frozen=True)
class KeyGroups:
    """The groups that the values of one column form; nulls are ignored."""

    groups: int
    rows: int
    smallest: int  # the number of rows of the smallest group
    largest: int
    repeated: int  # the number of groups with several rows
    compared: int  # the number of these groups in which columns were compared
    constant: Mapping[str, int]  # per column: the number of compared groups in which it has at most one value


@dataclass(frozen=True)
class ReleaseColumns:
    """The columns of a release in memory."""

    order: tuple[str, ...]  # names, in the order of the release
    unchanged: tuple[str, ...]  # columns that keep their type; each cell keeps its value or becomes missing
    counted: tuple[str, ...] = ()  # unchanged quasi-identifiers; values that count as equal become identical


class Engine(ABC):
    """Stores tables, counts combinations and recodes rows. `Any` stands for the table type of the engine."""

    formats: ClassVar[tuple[str, ...]] = ()
    """The extensions of the files that the engine reads and writes."""
    # The next two must be literals: if the class cannot be imported, they are read from its source code.
    requires = ""  # an optional package that the engine imports; if it is missing, the error names it
    ibis_backend = ""  # the Ibis backend whose tables the engine processes, see `on`

    @abstractmethod
    def open(self, source: Any) -> Any:
        """Open a path or a table name, or accept a table of this engine."""

    @abstractmethod
    def columns(self, table: Any) -> tuple[str, ...]:
        """Return the column names of a table."""

    @abstractmethod
    def count(
        self, table: Any, columns: Sequence[str], sensitive: Sequence[str] = ()
    ) -> tuple[Counts, dict[str, Domain]]:
        """Count the combinations of some columns, and return the distinct values of each column.

        Counts that do not fit in memory stay in the engine: see `RemoteCounts`.
        """

    def count_each(self, table: Any, columns: Sequence[str]) -> Iterator[tuple[Counts, Domain]]:
        """Count the values of each column separately; an engine may count several columns in one query."""
        for name in columns:
            counts, domains = self.count(table, [name])
            yield counts, domains[name]

    def scan_columns(
        self, table: Any, columns: Sequence[str], patterns: Sequence[str] = ()
    ) -> dict[str, ColumnScan]:
        """Count, per column, the values that occur once and the distinct values that match each pattern.

        Patterns are regular expressions for text columns. If a column has fewer distinct values than two
        thirds of the rows, the number of its unique values may be 0 instead of the true number.
        """
        counted = zip(columns, self.count_each(table, columns), strict=True)
        return {name: _scan_column(counts, domain, patterns) for name, (counts, domain) in counted}

    def key_groups(self, table: Any, keys: Sequence[str], columns: Sequence[str]) -> dict[str, KeyGroups]:
        """Group the rows by each key, and count the groups in which each column is constant.

        Keys and columns whose type cannot be compared may be missing from the result. An engine may compare
        only the first `COMPARED_GROUPS` groups.
        """
        return {key: _key_groups(self, table, key, [name for name in columns if name != key]) for key in keys}

    def empty(self, table: Any) -> int:
        """Count the rows in which every column is null or blank text."""
        return 0

    def flag_empty(self, table: Any, columns: Sequence[str]) -> tuple[Any, str]:
        """Add a column that is 1 in rows where the columns are all null, else 0; also return its name."""
        raise UsageError("This engine cannot find masked records in a release. Use suppressed: drop.")

    @abstractmethod
    def recode(
        self,
        table: Any,
        recoding: Recoding,
        domains: Mapping[str, Domain],
        *,
        keep: Sequence[str],
        blank: Sequence[str] | None,
    ) -> Any:
        """Keep some columns, replace values by labels, and drop suppressed records.

        If `blank` is given, suppressed records are kept, with these columns blank.
        """

    def agreement(
        self,
        table: Any,
        recoding: Recoding,
        domains: Mapping[str, Domain],
        questions: AgreementQuestions,
        *,
        unchanged: Sequence[str],
        blank: Sequence[str] | None,
        unit: str | None,
    ) -> ColumnAgreement | None:
        """Group the released records by each unchanged column, and by all released columns.

        The table is read once. Suppressed records are left out. If `blank` is given, they are kept, and these
        columns become empty. `unit` is the column that identifies persons. None: the engine cannot do this.
        """
        return None

    def positions(
        self, table: Any, columns: Sequence[str], domains: Mapping[str, Domain], keys: IntArray
    ) -> IntArray:
        """Return the numbers of the rows whose packed combination is among the keys, in ascending order.

        `keys` has the shape (words, combinations). Rows are numbered from 0, in the order of the table.
        """
        raise UsageError(
            "This engine cannot return the position of a row, because its tables have no order. Give a file."
        )

    def browse(self, table: Any, classes: Sequence[str]) -> Browse:
        """Return a function that reads pages of rows, with the size of each row's class by some columns."""
        raise UsageError("This engine cannot show rows. Give a file.")

    @abstractmethod
    def target(self, output: str | Path) -> Target:
        """Describe an output, or refuse it."""

    @abstractmethod
    def write(self, table: Any, target: Target) -> None:
        """Write a table to a new file, folder or table."""

    def same(self, source: Any, target: Target) -> bool:
        """Return whether the output is the input."""
        if target.kind == "table" or not isinstance(source, str | Path):
            return False
        return target.path.exists() and Path(source).exists() and target.path.samefile(source)

    @property
    def memory(self) -> int:
        """The number of bytes that a run may use."""
        return limit_of(None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user about how the tables were read."""
        return ()

    def notes_on(self, table: Any) -> tuple[str, ...]:
        """Return notes about columns of an open table whose values are converted when they are read."""
        return ()

    def durations(self, table: Any) -> tuple[str, ...]:
        """Return the columns of an open table that hold durations, which no hierarchy generalizes."""
        return ()

    def spill(self, output: Path) -> None:  # noqa: B027 - an engine may have no use for it
        """Write data that does not fit in memory to a private folder next to the output."""

    def sample(self, table: Any, step: int) -> Any:
        """Return about one in `step` rows, the same at every call; return all rows if that is as fast."""
        return table

    def number_rows(self, table: Any) -> Any:
        """Return an open table with row numbers, if `materialize` needs them."""
        return table

    @abstractmethod
    def materialize(
        self, recoded: Any, source: Any, opened: Any, columns: ReleaseColumns
    ) -> tuple[Any, tuple[str, ...]]:
        """Return the release as a table of the same type as the source, and notes on inexact conversions.

        `opened` is the result of `open(source)`.
        """

    def interrupt(self) -> None:  # noqa: B027 - an engine may be unable to
        """Cancel the query that another thread is waiting for."""

    def abort(self) -> None:  # noqa: B027 - most engines end with this process
        """End processes of the engine that would continue to write after this process ends."""

    def close(self) -> None:  # noqa: B027 - an engine may hold no resources
        """Release the resources of a run."""
