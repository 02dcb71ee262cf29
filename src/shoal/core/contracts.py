"""The four contracts a plug-in fulfils: Model, Metric, Algorithm, Engine.

A plug-in is a frozen dataclass: its fields are its options, its class attributes are its promises.
Every promise is held by a test in `tests/contracts`. Those with a text below them are told on the plug-in's
page, by its own text where it has one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.counts import Counts, Domain
from shoal.core.memory import limit_of
from shoal.core.recoding import Recoding
from shoal.errors import UsageError

if TYPE_CHECKING:
    from shoal.core.evaluate import Evaluator
    from shoal.core.evaluation import Evaluation
    from shoal.core.problem import Problem
    from shoal.core.targets import Target


class When(StrEnum):
    """When a promise holds."""

    ALWAYS = "always"
    WITHOUT_SUPPRESSION = "without suppression"
    NEVER = "never"

    def given(self, suppression: bool) -> bool:
        """Tell whether the promise holds where records may (or may not) be suppressed."""
        return self is When.ALWAYS or (self is When.WITHOUT_SUPPRESSION and not suppression)


class Guarantee(StrEnum):
    """What a search proves of its result."""

    LEAST_LOSS = "least loss"
    """No acceptable node has a smaller loss."""
    LEAST_HEIGHT = "least height"
    """No acceptable node has a smaller sum of levels."""
    MINIMAL = "minimal"
    ACCEPTABLE = "acceptable"
    NONE = "none"


class Charge(StrEnum):
    """What one record costs, where the loss is a sum over records that their own classes settle."""

    SIZE = "the size of its class, or of the table where it is suppressed"
    MINORITY = "1 where it is suppressed or not of its class's majority, as a share of all records"


class Model(ABC):
    """A privacy model: which classes must not be released, or whether what remains may be."""

    # Both may be less with some options: ask `is_monotone` and `sizes_suffice`.
    monotone: ClassVar[When]
    """Generalizing never turns a class that passes into one that must be suppressed."""
    by_size: ClassVar[bool] = False
    """Whether only the size of a class counts, so that whole lattices can be judged at once."""

    @abstractmethod
    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes to suppress."""

    @property
    def sizes_suffice(self) -> bool:
        """Whether this model, with its options, looks at the sizes of classes alone."""
        return self.by_size

    def is_monotone(self, suppression: bool) -> bool:
        """Tell whether this model, with its options, is monotone where records may be suppressed, or not."""
        return self.monotone.given(suppression)

    def holds(self, classes: Classes, suppressed: BoolArray) -> bool:
        """Tell whether what remains may be released; for models about the whole table."""
        return True

    @property
    def about_table(self) -> bool:
        """Whether the model is about the whole table, so that it says whether it `holds`."""
        return type(self).holds is not Model.holds

    def unavoidable(self, classes: Classes) -> FloatArray:
        """Return how many records of each class are refused here and at every node below, at least.

        A search may refuse everything below a node at which they exceed the limit. Merging classes never
        raises their sum.
        """
        if not self.is_monotone(suppression=True):
            return np.zeros(len(classes))
        return np.where(self.violations(classes), classes.sizes, 0.0)

    @property
    def least_size(self) -> int:
        """The records that every class passing the model has at least."""
        return 1

    def sensitive(self, available: Sequence[str]) -> tuple[str, ...]:
        """Name the sensitive columns, of those available, whose distributions the model needs."""
        return ()

    values_alone = False  # all that is asked of a class is about its sensitive values, not its records

    @property
    def population_table(self) -> str | None:
        """The table of a population, from which the input was drawn, that classes are looked up in."""
        return None

    @property
    def unit_column(self) -> str | None:
        """The column, of whatever role, whose distinct values are counted in each class."""
        return None

    @property
    def needs_reference(self) -> bool:
        """Whether the model compares classes with the whole input, which a release no longer shows."""
        return False

    @property
    def needs_hierarchy(self) -> bool:
        """Whether the sensitive columns that the model looks at need a hierarchy."""
        return False

    def in_words(self) -> str | None:
        """Say to a custodian what a release then is, in a sentence; None where the name must do."""
        return None

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the strongest setting of this model that these classes reach within the limit."""
        return None


class Metric(ABC):
    """A measure of information loss; smaller is better.

    A metric that is monotone only without suppression also promises that suppressing records never
    lowers the loss, so that its value without suppression bounds everything above a node.
    """

    monotone: ClassVar[When]
    """Generalizing never lowers the loss, which lets a search skip nodes."""
    separable: ClassVar[When] = When.NEVER  # it is `total` of the sum of what `table` gives
    """The loss is made of one number per column and level: that of every node is known without counting."""
    by_size: ClassVar[bool] = False
    """Whether the loss needs of the classes their sizes alone: values need not be told apart."""
    weighted: ClassVar[bool] = False
    """Whether the `weight` of a column in the policy counts."""
    by_level: ClassVar[bool] = False
    """Whether the loss needs a level of every group, which a range of values does not have."""

    @abstractmethod
    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Measure a recoding of which some classes are suppressed."""

    @property
    def needs_label(self) -> bool:
        """Whether the loss is about the policy's label."""
        return False

    @property
    def charge(self) -> Charge | None:
        """What a record costs, for searches that bound it; None where its class alone does not tell."""
        return None

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        """Return, for a separable metric, each column's part of the loss at each level."""
        raise TypeError(type(self).__name__)

    def total(self, parts: Any) -> Any:
        """Turn sums over the columns' parts into losses; must keep their order."""
        return parts


class Algorithm(ABC):
    """A search for a recoding."""

    guarantee: ClassVar[Guarantee]
    """What is proven of the result."""
    # Where nothing is acceptable the error says itself what would do; else the lattice's top tells.
    explains: ClassVar[bool] = False
    # It asks for nodes alone, so that the combinations may stay in an engine.
    far: ClassVar[bool] = False
    # The sensitive column goes into a table of its own, which tells its values by groups of records.
    apart: ClassVar[bool] = False

    @property
    def needs_label(self) -> bool:
        """Whether the search looks at the policy's label."""
        return False

    def refuses(self, problem: Problem) -> str | None:
        """Say why this problem cannot be honoured, or None; one who prunes needs a monotone problem."""
        return None

    def unfit(self, models: Sequence[Model], sensitive: Sequence[str]) -> str | None:
        """Say why no table with these sensitive columns could honour the models, or None."""
        return None

    def tested(self, identifying: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """Return the sets of columns of which a release shows no rare combination, where models do not judge.

        Each column is told by how identifying it is.
        """
        return ()

    def to_compile(self) -> list[Callable[[], object]]:
        """Return what compiles the kernels of this search alone that are not compiled on this machine."""
        return []

    def own_limit(self, models: Sequence[Model]) -> int | None:
        """Return the limit that this search brings along where the policy names none."""
        return None

    @abstractmethod
    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Find the best recoding or raise Infeasible."""


@dataclass(frozen=True)
class NodeSearch(Algorithm):
    """A search for a node; what it suppresses may be served better afterwards."""

    refine: bool = field(default=False, kw_only=True)
    """Go on from the node: recode what it suppresses anew, and lower levels class by class."""
    cells: bool = field(default=False, kw_only=True)
    """Blank few cells of what would be suppressed instead."""


@dataclass(frozen=True)
class Look:
    """What a glance at a column tells."""

    alone: int  # the values that occur once
    found: tuple[int, ...]  # the different values in which each pattern is found


def _look(counts: Counts, domain: Domain, patterns: Sequence[str]) -> Look:
    texts = [text for text in domain.texts if text is not None]
    found = (sum(re.search(pattern, text) is not None for text in texts) for pattern in patterns)
    return Look(int((counts.sizes == 1).sum()), tuple(found))


class Engine(ABC):
    """Where tables live: counts combinations and recodes rows; `Any` is the engine's own table."""

    formats: ClassVar[tuple[str, ...]] = ()
    """The files that it reads and writes, by ending."""

    @abstractmethod
    def open(self, source: Any) -> Any:
        """Open a path, or the name of a table, or take a table as it is."""

    @abstractmethod
    def columns(self, table: Any) -> tuple[str, ...]:
        """Name the table's columns."""

    @abstractmethod
    def count(
        self, table: Any, columns: Sequence[str], sensitive: Sequence[str] = ()
    ) -> tuple[Counts, dict[str, Domain]]:
        """Count the combinations of some columns, with the distinct values of each.

        Where they do not fit in memory, what is returned asks the engine: see `FarCounts`.
        """

    def count_each(self, table: Any, columns: Sequence[str]) -> Iterator[tuple[Counts, Domain]]:
        """Count the values of every column by itself; an engine may read the table once for many."""
        for name in columns:
            counts, domains = self.count(table, [name])
            yield counts, domains[name]

    def look(self, table: Any, columns: Sequence[str], patterns: Sequence[str] = ()) -> dict[str, Look]:
        """Look at columns that hold single values: how many occur once, and in how many a pattern is found.

        Patterns are regular expressions, looked for in text alone. Of a column that has values for fewer than
        two of three rows, 0 will do for those that occur once: they are not nearly unique.
        """
        counted = zip(columns, self.count_each(table, columns), strict=True)
        return {name: _look(counts, domain, patterns) for name, (counts, domain) in counted}

    def empty(self, table: Any) -> int:
        """Count the rows in which every column is empty: null, or a text of spaces alone."""
        return 0

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
        """Keep some columns, replace values by their groups' labels, drop (or blank) suppressed records."""

    def positions(
        self, table: Any, columns: Sequence[str], domains: Mapping[str, Domain], keys: IntArray
    ) -> IntArray:
        """Find the rows whose packed combination of some columns is among the keys (words, combinations).

        Returns their places in the order in which the table holds its rows, from 0, ascending.
        """
        message = "This engine cannot tell where a row stands, for its tables have no order. Give a file."
        raise UsageError(message)

    @abstractmethod
    def target(self, output: str | Path) -> Target:
        """Tell what an output is, or refuse it."""

    @abstractmethod
    def write(self, table: Any, target: Target) -> None:
        """Write a table to a new file, folder or table."""

    def same(self, source: Any, target: Target) -> bool:
        """Tell whether an output is what is read."""
        if target.kind == "table" or not isinstance(source, str | Path):
            return False
        return target.path.exists() and Path(source).exists() and target.path.samefile(source)

    @property
    def memory(self) -> int:
        """The bytes that a run may take."""
        return limit_of(None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever gave the tables should know of how they were read."""
        return ()

    def spill(self, folder: Path) -> None:  # noqa: B027 - an engine may have no use for it
        """Be told of a folder, closed to others, for what does not fit in memory."""

    @abstractmethod
    def materialize(self, table: Any, like: Any, as_is: Sequence[str]) -> Any:
        """Return a table of the same kind as the one that came in; some columns keep their types."""

    def interrupt(self) -> None:  # noqa: B027 - an engine may be unable to
        """End the query that another thread waits for, as Ctrl-C would; nothing where there is none."""

    def close(self) -> None:  # noqa: B027 - an engine may have nothing to let go of
        """Let go of what was put aside for a run."""
