"""Rows of a comparison: which row is asked for, which are of one problem, and what fills them in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from shoal.algorithms import ALGORITHMS
from shoal.comparing.row import Row
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.evaluation import Evaluation, tie
from shoal.core.problem import Problem
from shoal.models.k_anonymity import KAnonymity
from shoal.policy import Named, Policy, named


def empty_row(policy: Policy, problem: Problem) -> Row:
    """Return the row that a policy asks for, still without a result."""
    least = [model.k for model in problem.models if isinstance(model, KAnonymity)]
    return Row(
        algorithm=_text(policy.algorithm),
        k=max(least, default=None),
        limit=policy.suppression_limit,
        limit_records=problem.limit,
        metric=_text(policy.metric),
        records=problem.records,
        lattice_size=problem.lattice.size,
    )


def key_of(row: Row) -> object:
    """Return what tells a row from all others."""
    return row.algorithm, row.k, row.limit_asked, row.metric


def of_nodes(row: Row) -> bool:
    """Tell whether a row's search is for a node; what is no node may lose less than the least of them."""
    name = row.algorithm.partition(":")[0]
    return name == "auto" or issubclass(ALGORITHMS.load(name), NodeSearch)


def problem_key(row: Row) -> tuple[str, int, int | None]:
    """Return what tells the problem of a row: its metric, limit and k."""
    return row.metric, row.limit_records, row.k


def alike(row: Row, rows: Sequence[Row]) -> list[Row]:
    """Return the rows, of one metric, limit and k, of the same problem: a search may bring its own limit."""
    return [other for other in rows if other.limit_records == row.limit_records]


def _text(plugin: Named) -> str:
    """Write a plug-in with its options as the command line reads it."""
    name, options = named(plugin)
    pairs = [f"{o}={v if isinstance(v, str) else json.dumps(v)}" for o, v in options.items()]
    return f"{name}:{','.join(pairs)}" if pairs else name


def figures(found: Evaluation, columns: Sequence[str]) -> dict[str, Any]:
    """Return what a search found, and what it cost, as entries of a row."""
    work = found.work
    return {
        "loss": found.loss,
        "levels": None if found.recoding else dict(zip(columns, found.node, strict=True)),
        "suppressed": found.suppressed,
        "candidates": len(found.candidates) or None,
        "nodes_evaluated": work.nodes_evaluated,
        "nodes_tagged": work.nodes_tagged,
        "nodes_compared": work.nodes_compared,
        "subset_evaluations": work.subset_evaluations,
        "rows_scanned": work.rows_scanned,
        "node_score": work.node_score,
        "proven": str(found.proven),
    }


def mean(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what all runs have in common, the means of numbers and the weakest of what was proven."""
    told: dict[str, Any] = {}
    for name in found[0]:
        values = [one[name] for one in found]
        if name == "proven":
            told[name] = max(values, key=list(Guarantee).index)
        elif all(value == values[0] for value in values):
            told[name] = values[0]
        else:
            told[name] = fmean(values) if all(isinstance(v, int | float) for v in values) else None
    return told


def relative(loss: float | None, optimum: float | None) -> float | None:
    """Return the loss as a multiple of the optimum, where both are known and the optimum is not 0."""
    if loss is None or optimum is None:
        return None
    if tie(loss, optimum):
        return 1.0
    return loss / optimum if optimum else None
