"""Release: a de-identified table, what was proven about it and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.core.counts.counts import Counts, Domain
from shoal.core.evaluation import Evaluation
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.core.recoding.groups import group_column
from shoal.document.document import Code, Document, Fact, HasDocument, Name, Table
from shoal.errors import UsageError
from shoal.policy.policy import Policy
from shoal.wording import above_optimum, enumerate_names, one_value_text, percent, plural
from shoal.workflow.release.search_result import EMPTY_CELL, Revealed, Unchanged
from shoal.workflow.risk.exposure import Exposure
from shoal.workflow.search import Recoded
from shoal.workflow.verify import WILDCARDS, Verification

if TYPE_CHECKING:
    from shoal.workflow.advice import Advice
    from shoal.workflow.candidates import CandidateNode
    from shoal.workflow.outliers import Outliers
    from shoal.workflow.release.codebook import ColumnLoss
    from shoal.workflow.risk.suda import Special
    from shoal.workflow.utility.utility import Utility


@dataclass(frozen=True)
class Basis:
    """The counts of a release's input, which are used to evaluate alternatives to the release."""

    problem: Problem
    domains: Mapping[str, Domain]
    recoded: Recoded

    @property
    def counts(self) -> Counts:
        return self.problem.counts


@dataclass(frozen=True)
class Fate:
    """What happened to one column, in words."""

    column: str
    role: str
    level: str  # empty if the column has no hierarchy or keeps its values
    retained: str  # share of information left, "lost" or "one value"; empty if not a quasi-identifier
    released_as: str


@dataclass(frozen=True)
class Release(HasDocument):
    """A de-identified table, what was proven about it and what it cost."""

    policy: Policy
    evaluation: Evaluation
    algorithm: str
    hierarchies: tuple[Hierarchy, ...] = field(repr=False)  # contain values of the input
    labels: Mapping[str, tuple[str, ...]] = field(repr=False)  # those that occur in the release
    as_is: tuple[str, ...]  # the quasi-identifiers that are released unchanged
    lattice_size: int
    records: int
    suppressed: int  # dropped or masked
    masked: int
    limit: int  # the number of records that may be suppressed
    verification: Verification
    seconds: Mapping[str, float]
    exposure: Exposure  # of the input, by its quasi-identifiers
    losses: Mapping[str, ColumnLoss]  # of each quasi-identifier
    unchanged: Unchanged = field(default_factory=Unchanged)
    lost_values: Mapping[str, int] = field(default_factory=dict)  # by column: the number of values lost
    raised: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # by column: old and new level
    notes: tuple[str, ...] = ()  # for the custodian; contain names of columns, never values
    table: Any = field(default=None, repr=False)  # None if it was written to a file
    output: Path | str | None = None  # a path, or the name of a table
    recipe: Path | None = None
    policy_file: Path | None = None  # of a guessed policy
    codebook: Path | None = None
    report: Path | None = None
    sensitive_table: Any = field(default=None, repr=False)  # the second table of anatomy, or its path
    outliers: Outliers | None = None  # rare combinations before blanking, if the search looks for them
    basis: Basis | None = field(default=None, repr=False, compare=False)  # contains values of the input
    # For the report: the loss for analysts, and what made records of the input unique.
    utility: Utility | None = field(default=None, repr=False)
    special: Special | None = field(default=None, repr=False)

    @property
    def levels(self) -> dict[str, int] | None:
        """The level of each quasi-identifier; None if levels differ between classes."""
        return None if self.evaluation.recoding else self.start

    @property
    def start(self) -> dict[str, int] | None:
        """The levels that the search chose, before refinement; None if the recoding has no levels."""
        node = self.evaluation.node
        return dict(zip(self.policy.roles.quasi_identifiers, node, strict=True)) if node else None

    @cached_property
    def candidate_nodes(self) -> tuple[CandidateNode, ...]:
        """The candidate nodes of the search, best first by the metric; empty if the search lists none."""
        return self._candidates()

    @cached_property
    def first_candidates(self) -> tuple[CandidateNode, ...]:
        """The first 100 of `candidate_nodes`; if the metric allows it, only these are counted."""
        return self._candidates(first=True)

    def _candidates(self, *, first: bool = False) -> tuple[CandidateNode, ...]:
        if self.basis is None or not self.evaluation.candidates:
            return ()
        from shoal.workflow.candidates import FIRST, candidate_nodes

        return candidate_nodes(self.basis.problem, self.evaluation, FIRST if first else None)

    def recipe_content(self) -> dict[str, Any] | None:
        """Return the recipe as plain values, as in its file; None if the counts are not available."""
        from shoal.workflow.release.recipe import recipe_of  # only needed if a recipe is requested

        if self.basis is None:
            return None
        return recipe_of(self.policy, self.basis.problem, self.evaluation, self.basis.domains, self.masked)

    def write_candidates(self, path: str | Path, *, force: bool = False) -> None:
        """Write `candidate_nodes` to a .csv or .json file; after an error, no incomplete file remains."""
        from shoal.workflow.candidates import check_lists_candidates, write_candidates

        if not self.evaluation.candidates:
            check_lists_candidates(self.algorithm)
            raise UsageError("The search ended before it had listed its candidates.", option="candidates")
        write_candidates(self.candidate_nodes, Path(path), force=force)

    @property
    def loss_by_metric(self) -> dict[str, float]:
        """The loss of the whole result by every metric that applies, computed at first use."""
        return self.basis.recoded.losses if self.basis else {}

    @property
    def retained(self) -> dict[str, float]:
        """The share of each quasi-identifier's information that is left: 1 minus its coverage loss."""
        return {name: 1 - loss.coverage for name, loss in self.losses.items()}

    @property
    def retained_overall(self) -> float:
        """The mean of `retained` over the quasi-identifiers; suppressed records count as lost."""
        return sum(self.retained.values()) / len(self.losses)

    @property
    def columns_without_information(self) -> tuple[str, ...]:
        """The quasi-identifiers with several values in the input, but only one label in the release."""
        return tuple(
            name
            for name, loss in self.losses.items()
            if loss.values > 1 and len(set(self.labels[name]) - {EMPTY_CELL}) <= 1
        )

    @property
    def columns_with_one_value(self) -> tuple[str, ...]:
        """The quasi-identifiers that had one value in the input, so they have no information to lose."""
        return tuple(name for name, loss in self.losses.items() if loss.values <= 1)

    @property
    def revealed(self) -> tuple[Revealed, ...]:
        """The unchanged columns that reveal a finer value of a generalized column."""
        return self.unchanged.revealed

    @property
    def unique_with_unchanged(self) -> int | None:
        """The number of records (or persons) that are unique by all released columns; None if not counted."""
        return self.unchanged.unique

    @property
    def cells(self) -> int:
        """The number of blanked cells in kept records."""
        return self.evaluation.recoding.cells if self.evaluation.recoding else 0

    @property
    def wildcards(self) -> bool:
        """Whether a blanked cell counts as a match of every value: see docs/finer.md."""
        return self.verification.wildcards

    @property
    def separate_column(self) -> str | None:
        """The sensitive column that is released in a second table, if any."""
        return self.evaluation.recoding.separate_column if self.evaluation.recoding else None

    @property
    def exposure_after(self) -> Exposure:
        """The exposure of the release; equal to that of the input if a sensitive column is separate."""
        return self.exposure if self.separate_column else self.verification.exposure

    @property
    def least_class(self) -> int:
        """The least class size that the policy requires; 1 if a sensitive column is separate."""
        return 1 if self.separate_column else max(model.least_size for model in self.policy.privacy_models)

    @property
    def group_column(self) -> str | None:
        """The column that refers to the groups of the second table."""
        return group_column(self.separate_column) if self.separate_column else None

    @property
    def cut(self) -> bool:
        """Whether the groups of each column are the same in every class."""
        return bool(self.evaluation.recoding and self.evaluation.recoding.uniform)

    @property
    def loss(self) -> float:
        """The information loss, by the policy's metric."""
        return self.evaluation.loss

    def examples(self) -> dict[str, str]:
        """Return some released labels of each column, or "as is" for an unchanged one."""
        shown = {}
        for name, labels in self.labels.items():
            more = ", ..." if len(labels) > 3 else ""
            shown[name] = "as is" if name in self.as_is else ", ".join(labels[:3]) + more
        return shown

    def fates(self) -> tuple[Fate, ...]:
        """Describe what happened to every column of the input."""
        examples = self.examples()
        # Blanking cells does not change the levels of the node.
        levels = self.levels or (None if self.policy.levels_by_class else self.start)
        levels = dict(self.outliers.levels) if self.outliers else levels
        heights = {hierarchy.name: hierarchy.height for hierarchy in self.hierarchies}
        fates = []
        for name, column in self.policy.columns.items():
            level = ""
            if name in examples:
                if levels:
                    level = f"{levels[name]} of {heights[name]}"
                elif not (self.separate_column or name in self.as_is):
                    level = "cut" if self.cut else "by class"
                fate = examples[name]
            elif name == self.separate_column:
                fate = f"{self.group_column}: a second table holds the values of each group"
            else:
                fate = "removed" if column.role.value == "identifier" else "as is"
            fates.append(Fate(name, column.role.value, level, self._retained_in_words(name), fate))
        return tuple(fates)

    def _retained_in_words(self, name: str) -> str:
        if name in self.columns_without_information:
            return "lost"
        if name in self.columns_with_one_value:
            return "one value"
        return percent(self.retained[name]) if name in self.retained else ""

    def to_dict(self, *, losses: bool = True) -> dict[str, Any]:
        """Return the result as plain values; `losses` adds the loss by every metric, computed on demand."""
        work = self.evaluation.work
        metric = self.policy.metric
        return {
            "levels": self.levels,
            "start": self.start,
            "retained": {"overall": self.retained_overall, "columns": self.retained},
            "columns_without_information": list(self.columns_without_information),
            "columns_with_one_value": list(self.columns_with_one_value),
            "loss": self.loss,
            **({"losses": dict(self.loss_by_metric)} if losses else {}),
            "metric": metric if isinstance(metric, str) else next(iter(metric)),
            "algorithm": self.algorithm,
            "proven": str(self.evaluation.proven),
            "lower_bound": self.evaluation.lower_bound,
            "records": self.records,
            "suppressed": self.suppressed,
            "limit": self.limit,
            "masked": self.masked,
            "cells": self.cells,
            "wildcards": self.wildcards,
            "outliers": self.outliers.to_dict() if self.outliers else None,
            "classes": self.verification.classes,
            "smallest_class": self.verification.smallest_class,
            "lattice_size": self.lattice_size,
            "nodes_evaluated": work.nodes_evaluated,
            "loss_evaluations": work.loss_evaluations,
            "subset_evaluations": work.subset_evaluations,
            "column_counts": work.column_counts,
            "candidate_graph": asdict(work.candidate_graph) if work.candidate_graph else None,
            "candidates": len(self.evaluation.candidates) or None,
            "candidate_nodes": [node.to_dict() for node in self.first_candidates] or None,
            "rows_scanned": work.rows_scanned,
            "node_score": work.node_score,
            "seconds": dict(self.seconds),
            "revealed": [finding.to_dict() for finding in self.revealed],
            "unique_with_unchanged": self.unique_with_unchanged,
            "verified": self.verification.verified,
            "unchecked": list(self.verification.unchecked),
            "lost_values": dict(self.lost_values),
            "raised": {name: list(levels) for name, levels in self.raised.items()},
            "notes": list(self.notes),
            "output": str(self.output) if self.output else None,
            "recipe": str(self.recipe) if self.recipe else None,
            "policy": str(self.policy_file) if self.policy_file else None,
            "codebook": str(self.codebook) if self.codebook else None,
            "report": str(self.report) if self.report else None,
            "sensitive_table": str(self.sensitive_table) if isinstance(self.sensitive_table, Path) else None,
        }

    def advice(self, *, seconds: float = 10.0, progress: Progress | None = None) -> tuple[Advice, ...]:
        """Compare other recodings and small policy changes by the information they retain; best first."""
        from shoal.workflow.advice import advice_for

        return advice_for(self, seconds=seconds, progress=progress)

    def plot(self) -> Any:
        """Draw class sizes before and after, and the loss of each column, with matplotlib."""
        from shoal.workflow.report.charts import release_figure

        return release_figure(self)

    def document(self) -> Document:
        """Describe the release: its verdict, what was kept, lost and proven, and every column."""
        from shoal.workflow.statements import release_verdict

        columns = Table(
            "What became of each column; level 0 is the value as it is",
            ("column", "role", "level", "retained", "released as"),
            [
                (Name(fate.column), fate.role, fate.level, fate.retained, Name(fate.released_as))
                for fate in self.fates()
            ],
            left=range(5),
        )
        tables = [columns]
        if self.outliers:
            from shoal.workflow.outliers import outliers_table

            tables.append(outliers_table(self.outliers))
        return Document(
            title=f"Release of {plural(self.records - self.suppressed, 'record')}",
            verdict=release_verdict(self),
            warnings=[finding.message for finding in self.revealed],
            facts=[Fact(key, key, value) for key, value in _facts(self)],
            tables=tables,
            notes=[f"Note: {note}" for note in (*([WILDCARDS] if self.wildcards else ()), *self.notes)],
            hints=[("Class sizes before and after, and the loss of each column: ", Code("plot()"), ".")],
        )


def _facts(release: Release) -> Iterator[tuple[str, str]]:
    result, suppressed = release.to_dict(losses=False), release.suppressed
    lost = f"{release.masked:,} masked" if release.masked else f"{suppressed:,} suppressed"
    share = f"{percent(suppressed / release.records if release.records else 0)}, at most {release.limit:,}"
    blanked = f", {plural(release.cells, 'cell')} blanked" if release.cells else ""
    yield (
        "records",
        f"{release.records - suppressed:,} of {release.records:,} kept, {lost} ({share}){blanked}",
    )
    yield "retained", _retained(release)
    if release.lost_values:
        yield "values lost", _values_lost(release.lost_values)
    least = plural(result["smallest_class"], "record")
    smallest = f"{result['classes']:,}, the smallest of {least}"
    if release.wildcards:
        smallest = f"{result['classes']:,} that look alike; at least {least} match each record"
    before = (
        f"; before: {release.exposure.smallest:,}"
        if release.exposure.sizes and not release.separate_column
        else ""
    )
    yield "groups" if release.separate_column else "classes", smallest + before
    yield "unique", release.unchanged.sentence
    yield "loss", f"{release.loss:,.10g} ({result['metric']})"
    yield "proven", _proven(release, result)
    yield "seconds", ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in release.seconds.items())
    files = {"release": release.output, "codebook": release.codebook}
    if release.output is not None and release.separate_column:
        files["second table"] = release.sensitive_table
    yield from ((label, str(path)) for label, path in files.items() if path is not None)
    private = {"recipe": release.recipe, "policy": release.policy_file, "report": release.report}
    yield from ((label, f"{path} (private: keep it)") for label, path in private.items() if path is not None)


def _retained(release: Release) -> str:
    """Describe the share of the information that is left, and the columns that lost all of it."""
    lost = release.columns_without_information
    text = f"{percent(release.retained_overall)} of the information"
    if release.separate_column:
        return f"{text} in the quasi-identifiers; which record has which {release.separate_column} is lost"
    text = f"{text}; nothing is left of {enumerate_names(lost)}" if lost else text
    one_value = one_value_text(release.columns_with_one_value)
    return f"{text}; {one_value}" if one_value else text


def _values_lost(lost: Mapping[str, int]) -> str:
    """Count the values of each column that no released record has.

    >>> _values_lost({"age": 2, "zip code": 1})
    '2 values of age, 1 of zip code: all records that had them were suppressed'
    >>> _values_lost({"age": 1})
    '1 value of age: all records that had it were suppressed'
    """
    (first, count), *others = lost.items()
    parts = [f"{plural(count, 'value')} of {first}", *(f"{number:,} of {name}" for name, number in others)]
    pronoun = "it" if sum(lost.values()) == 1 else "them"
    return f"{', '.join(parts)}: all records that had {pronoun} were suppressed"


def _proven(release: Release, result: Mapping[str, Any]) -> str:
    """Describe what the search proved, and how many nodes it chose from."""
    proven, algorithm, least = result["proven"], release.algorithm, result["lower_bound"]
    if release.outliers:
        return f"no tested combination is shared by fewer than {release.outliers.k:,} records"
    gap = "" if release.evaluation.complete else f", {above_optimum(release.loss, least)},"
    if release.start is None:
        if least is not None:
            return f"{proven}{gap} among cuts by order ({algorithm})"
        return f"{proven} ({algorithm})"
    if release.lattice_size == 1 and release.levels:
        return f"it satisfies the policy; the levels were fixed ({algorithm})"
    nodes = f"{plural(release.lattice_size, 'node')} ({algorithm}, {result['nodes_evaluated']:,} evaluated)"
    return f"{proven}{gap}{_changes(release)} among {nodes}"


def _changes(release: Release) -> str:
    """Describe how a recoding differs from the node that was found; "" if it does not differ."""
    if release.levels is not None:
        return ""
    finishing = release.policy.finishing
    if finishing["local"]:
        return ", each class with labels of its own; the node that it was compared with was chosen"
    if finishing["cells"]:
        return ", with blanked cells; the node that it started from was chosen"
    return ", finer than the node that it started from, chosen"
