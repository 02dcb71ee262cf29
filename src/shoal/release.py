"""Release: a de-identified table, what was proven of it and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.analysing.compared import Utility
from shoal.assessing.exposure import Exposure
from shoal.assessing.special import Special
from shoal.core.evaluation import Evaluation
from shoal.core.groups import group_column
from shoal.core.hierarchy import Hierarchy
from shoal.outliers import Outliers
from shoal.policy import Policy
from shoal.verify import Verification

if TYPE_CHECKING:
    from shoal.releasing.losses import ColumnLoss


@dataclass(frozen=True)
class Fate:
    """What became of one column, in words."""

    column: str
    role: str
    level: str  # none where the column has no hierarchy, or keeps its values
    released_as: str


@dataclass(frozen=True)
class Release:
    """A de-identified table, what was proven of it and what it cost."""

    policy: Policy
    evaluation: Evaluation
    algorithm: str
    hierarchies: tuple[Hierarchy, ...] = field(repr=False)  # which hold values of the input
    labels: Mapping[str, tuple[str, ...]] = field(repr=False)  # those that occur in the release
    as_is: tuple[str, ...]  # the quasi-identifiers whose values stay as they are
    lattice_size: int
    records: int
    suppressed: int  # dropped or masked
    masked: int
    limit: int  # the records that might have been suppressed
    verification: Verification
    seconds: Mapping[str, float]
    exposure: Exposure  # of the input, by its quasi-identifiers as they are
    losses: Mapping[str, ColumnLoss]  # of each quasi-identifier
    vanished: Mapping[str, int] = field(default_factory=dict)  # by column: values of which nothing is left
    notes: tuple[str, ...] = ()  # what the custodian should look at again; names columns, never values
    table: Any = field(default=None, repr=False)  # None where it was written to a file
    output: Path | str | None = None  # the name of a table, where it is one
    recipe: Path | None = None
    codebook: Path | None = None
    report: Path | None = None
    sensitive_table: Any = field(default=None, repr=False)  # where the sensitive column is apart; or its file
    outliers: Outliers | None = None  # what was rare before cells were blanked, where a search looks for it
    # Where a report tells it: what the analyst loses, and what made records of the input unique.
    utility: Utility | None = field(default=None, repr=False)
    special: Special | None = field(default=None, repr=False)

    @property
    def levels(self) -> dict[str, int] | None:
        """The level of each quasi-identifier; None where they have no uniform one."""
        return None if self.evaluation.recoding else self.start

    @property
    def start(self) -> dict[str, int] | None:
        """The node that the recoding is, or began with; None where it began with none."""
        node = self.evaluation.node
        return dict(zip(self.policy.roles.quasi_identifiers, node, strict=True)) if node else None

    @property
    def cells(self) -> int:
        """The cells of kept records that are blanked."""
        return self.evaluation.recoding.cells if self.evaluation.recoding else 0

    @property
    def apart(self) -> str | None:
        """The sensitive column that is released in a table of its own, if one is."""
        return self.evaluation.recoding.apart if self.evaluation.recoding else None

    @property
    def exposure_after(self) -> Exposure:
        """How exposed the released records are; where quasi-identifiers stay as they are, as before."""
        return self.exposure if self.apart else self.verification.exposure

    @property
    def least_class(self) -> int:
        """The records that every class must have; 1 where quasi-identifiers stay as they are."""
        return 1 if self.apart else max(model.least_size for model in self.policy.privacy_models)

    @property
    def group_column(self) -> str | None:
        """The column that tells which group of the second table holds a record's sensitive value."""
        return group_column(self.apart) if self.apart else None

    @property
    def cut(self) -> bool:
        """Whether columns are cut, alike in every class."""
        return bool(self.evaluation.recoding and self.evaluation.recoding.uniform)

    @property
    def loss(self) -> float:
        """The information loss, by the policy's metric."""
        return self.evaluation.loss

    def examples(self) -> dict[str, str]:
        """Show a few of each column's labels as they are released; a column at level 0 stays as is."""
        shown = {}
        for name, labels in self.labels.items():
            more = ", ..." if len(labels) > 3 else ""
            shown[name] = "as is" if name in self.as_is else ", ".join(labels[:3]) + more
        return shown

    def fates(self) -> tuple[Fate, ...]:
        """Say of every column of the input what became of it."""
        examples = self.examples()
        # Blanked cells leave the levels of the node as they are.
        levels = self.levels or (None if self.policy.finishing["refine"] else self.start)
        levels = dict(self.outliers.levels) if self.outliers else levels
        heights = {hierarchy.name: hierarchy.height for hierarchy in self.hierarchies}
        found = []
        for name, column in self.policy.columns.items():
            level = ""
            if name in examples:
                if levels:
                    level = f"{levels[name]} of {heights[name]}"
                elif not (self.apart or name in self.as_is):
                    level = "cut" if self.cut else "by class"
                fate = examples[name]
            elif name == self.apart:
                fate = f"{self.group_column}: a second table holds the values of each group"
            else:
                fate = "removed" if column.role.value == "identifier" else "as is"
            found.append(Fate(name, column.role.value, level, fate))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        work = self.evaluation.work
        metric = self.policy.metric
        return {
            "levels": self.levels,
            "start": self.start,
            "loss": self.loss,
            "metric": metric if isinstance(metric, str) else next(iter(metric)),
            "algorithm": self.algorithm,
            "proven": str(self.evaluation.proven),
            "lower_bound": self.evaluation.lower_bound,
            "records": self.records,
            "suppressed": self.suppressed,
            "limit": self.limit,
            "masked": self.masked,
            "cells": self.cells,
            "outliers": self.outliers.to_dict() if self.outliers else None,
            "classes": self.verification.classes,
            "smallest_class": self.verification.smallest_class,
            "lattice_size": self.lattice_size,
            "nodes_evaluated": work.nodes_evaluated,
            "candidates": len(self.evaluation.candidates) or None,
            "rows_scanned": work.rows_scanned,
            "node_score": work.node_score,
            "seconds": dict(self.seconds),
            "verified": self.verification.verified,
            "unchecked": list(self.verification.unchecked),
            "vanished": dict(self.vanished),
            "notes": list(self.notes),
            "output": str(self.output) if self.output else None,
            "recipe": str(self.recipe) if self.recipe else None,
            "codebook": str(self.codebook) if self.codebook else None,
            "report": str(self.report) if self.report else None,
            "sensitive_table": str(self.sensitive_table) if isinstance(self.sensitive_table, Path) else None,
        }

    def plot(self) -> Any:
        """Draw class sizes before and after, and the loss of each column, as a figure of matplotlib."""
        from shoal.reporting.plots import release_figure

        return release_figure(self)

    def _repr_html_(self) -> str:
        from shoal.notebook import release_block

        return release_block(self)
