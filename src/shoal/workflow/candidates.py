"""Candidate nodes: the nodes from which the metric chose, with levels, suppressed records and loss."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import numpy as np

from shoal.algorithms import ALGORITHMS
from shoal.core.evaluation import Evaluation, better, exceeds
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.document.document import PlainValues
from shoal.errors import OutputError, UsageError
from shoal.files.outputs import check_file, written_whole
from shoal.policy.policy import Named, named
from shoal.workflow.release.publish import own_files

FIRST = 100  # maximum number of nodes in JSON and in a row of a comparison
ENDINGS = (".csv", ".json")


@dataclass(frozen=True)
class CandidateNode(PlainValues):
    """One of the nodes from which the metric chose."""

    levels: dict[str, int]
    height: int
    suppressed: int
    loss: float
    chosen: bool


def candidate_nodes(
    problem: Problem, evaluation: Evaluation, most: int | None = None
) -> tuple[CandidateNode, ...]:
    """Return the candidates of a search, best first; () if the search does not list candidates.

    A candidate that the search did not evaluate is evaluated now.
    """
    ordered = sorted(_evaluated(problem, evaluation, most), key=cmp_to_key(_order))
    return tuple(
        CandidateNode(
            levels=dict(zip(problem.lattice.columns, candidate.node, strict=True)),
            height=candidate.height,
            suppressed=candidate.suppressed,
            loss=candidate.loss,
            chosen=candidate.node == evaluation.node,
        )
        for candidate in ordered[:most]
    )


def _order(first: Evaluation, second: Evaluation) -> int:
    return -1 if better(first, second) else 1


def _evaluated(problem: Problem, evaluation: Evaluation, most: int | None) -> list[Evaluation]:
    """Evaluate the candidates; if losses are known without counting, only the best `most` and their ties."""
    known = {candidate.node: candidate for candidate in evaluation.evaluated_candidates}
    nodes = evaluation.candidates
    separable = problem.metric.separable.given(problem.limit > 0)
    if separable and most is not None and most < len(nodes):
        losses = np.array([problem.loss_of(node) for node in nodes])
        excluded = exceeds(losses, float(np.partition(losses, most - 1)[most - 1]))
        nodes = tuple(nodes[index] for index in np.flatnonzero(~excluded).tolist())
    evaluate = Evaluator(problem)
    return [known[node] if node in known else evaluate(node) for node in nodes]


def check_lists_candidates(algorithm: Named) -> None:
    """Raise if a search does not list the nodes from which it chooses."""
    name = named(algorithm)[0]
    if name in ALGORITHMS and ALGORITHMS.load(name).lists_candidates:
        return
    suitable = [other for other in ALGORITHMS if ALGORITHMS.load(other).lists_candidates]
    raise UsageError(
        f"lists the nodes that a search chooses among, and {name!r} does not list them. "
        f"Use one of these algorithms: {', '.join(suitable)}.",
        option="candidates",
    )


def check_candidates_file(
    path: Path,
    *,
    force: bool,
    table: Any = None,
    output: Path | None = None,
    inputs: Mapping[Path, str] | None = None,
) -> None:
    """Raise if candidates cannot be written to a file, or would overwrite a file without permission."""
    if path.suffix.lower() not in ENDINGS:
        raise OutputError(f"Candidates are written as {' or '.join(ENDINGS)}, got {path.name!r}.")
    if output is not None and path.resolve() in {file.resolve() for file in own_files(output)}:
        raise OutputError(f"{str(path)!r} is the output of the release. Name another file.")
    check_file(path, force=force, table=table, inputs=inputs)


def write_candidates(candidates: Sequence[CandidateNode], path: Path, *, force: bool) -> None:
    """Write candidates to a CSV or JSON file, by extension; only its owner can read it."""
    check_candidates_file(path, force=force)
    text = _csv(candidates) if path.suffix.lower() == ".csv" else _json(candidates)
    with written_whole(path) as file:
        file.write(text.encode())


def _csv(candidates: Sequence[CandidateNode]) -> str:
    """Write a row per node; the level of `age` is in the column `level_age`."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    columns = list(candidates[0].levels) if candidates else []
    writer.writerow([*[f"level_{name}" for name in columns], "height", "suppressed", "loss", "chosen"])
    for node in candidates:
        chosen = str(node.chosen).lower()
        writer.writerow([*node.levels.values(), node.height, node.suppressed, repr(node.loss), chosen])
    return text.getvalue()


def _json(candidates: Sequence[CandidateNode]) -> str:
    rows = (json.dumps(node.to_dict(), ensure_ascii=False) for node in candidates)
    return "[\n" + ",\n".join(rows) + "\n]\n"
