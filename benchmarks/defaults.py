"""What does an analyst lose, by metric and by kind of recoding, with the policy that `init` writes?

    python benchmarks/defaults.py FOLDER

FOLDER has the tables named below as CSV files, from the packages pydataset, lifelines and statsmodels. The
default was chosen with the first half of the tables; docs/defaults.md reports the second half.

Four errors are measured. Each compares the input with what an analyst can compute from the release and its
codebook, if the records of a label are spread evenly over the values that it covers:

- one-way: half the sum of absolute differences of a column's distribution, mean over the quasi-identifiers;
- two-way: the same for pairs of quasi-identifiers;
- regression: the mean absolute difference of the coefficients of a regression of the first column to keep on
  the quasi-identifiers, all standardized;
- classifier: the accuracy of logistic regression on the input minus that on the release; it predicts whether
  the first column to keep is above its median.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from setting import machine
from sklearn.linear_model import LinearRegression, LogisticRegression

import shoal
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import LABEL
from shoal.core.counts.counts import numbered
from shoal.core.hierarchy.builder import number_of
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.recoding.groups import Cover
from shoal.core.recoding.lowering import keys_at
from shoal.errors import ShoalError
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.release.codebook import losses_of
from shoal.workflow.search import Recoded, find, recode
from shoal.workflow.session import session

_MOST_CELLS = 4_000_000  # of a two-way table that is compared
_MOST_COLUMNS = 600  # of 0 and 1, that a classifier learns from


@dataclass(frozen=True)
class Source:
    """A table with what an outsider could know, and what the analyst needs."""

    name: str
    known: str
    keep: str


CHOSEN_WITH = (
    Source("OFP", "age sex black maried region school", "ofp hosp hlth privins"),
    Source("MedExp", "age sex black child educdec", "med health ndisease"),
    Source("Chile", "region sex age education income", "vote statusquo"),
    Source("Melanoma", "age sex year", "time status thickness"),
    Source("birthwt", "age race lwt", "low smoke bwt"),
    Source("Salaries", "rank discipline sex yrs.since.phd", "salary"),
    Source("rwm5yr", "age female married kids edlevel year", "docvis hospvis hhninc"),
    Source("lymph_node", "diagdateb age menopause", "rectime censrec hormone"),
)
REPORTED = (
    Source("HI", "education race hispanic region kidslt6 kids618", "whrswk hhi whi"),
    Source("VietNamI", "age sex married educ commune", "illness pharvis insurance"),
    Source("mexico", "age female school prof townsize", "vote88"),
    Source("lung", "inst age sex", "time status ph.ecog"),
    Source("Wages", "exp sex black married ed ind", "lwage union"),
    Source("rossi", "age race mar prio", "week arrest fin"),
    Source("recur", "AGE TREAT", "EVENT"),
    Source("fair", "age educ occupation children religious", "affairs rate_marriage"),
)
METRICS: Mapping[str, Any] = {
    "non-uniform-entropy": "non-uniform-entropy",
    "normalized entropy": {"non-uniform-entropy": {"normalized": True}},
    "coverage": "coverage",
    "precision": "precision",
    "discernibility": "discernibility",
}
RECODINGS: Mapping[str, Mapping[str, Any]] = {
    "one level": {},
    "refine": {"algorithm": {"auto": {"refine": True}}},
    "local": {"local": True},
    "local, 3 labels": {"local": {"labels": 3}},
    "mondrian": {"algorithm": "mondrian"},
}


@dataclass(frozen=True)
class Result:
    """What one release of one table retains, and its errors."""

    retained: float
    least: float  # of a column
    one_way: float
    two_way: float
    regression: float
    classifier: float
    seconds: float


def measure(path: Path, policy: Policy, target: str) -> Result:
    """Search by a policy and measure what an analyst loses; models predict the target."""
    with session(path) as s:
        counts, domains = counted(s.table, policy, label=target)
        start = time.perf_counter()
        problem = problem_of(policy, counts, domains, None, s.engine.memory)
        _, evaluation = find(policy, problem, seconds=20)
        seconds = time.perf_counter() - start
    result = recode(problem, evaluation)
    losses = losses_of(problem, result.recoding, result.classes, result.suppressed)
    retained = [1 - loss.coverage for loss in losses.values()]
    sides = Sides.of(result)
    goals = _numbers(domains[target].texts)
    return Result(
        float(np.mean(retained)),
        min(retained),
        sides.one_way(),
        sides.two_way(),
        sides.regression(target, goals),
        sides.classifier(target, goals),
        seconds,
    )


def _numbers(texts: Sequence[str | None]) -> FloatArray:
    """Return values as numbers, texts by their alphabetical position; what is no number is the mean."""
    numbers = [None if text is None else number_of(text) for text in texts]
    if sum(number is not None for number in numbers) < len(texts) / 2:
        ranks = {text: float(rank) for rank, text in enumerate(sorted(map(str, texts)))}
        return np.array([ranks[str(text)] for text in texts])
    mean = float(np.mean([float(number) for number in numbers if number is not None]))
    return np.array([mean if number is None else float(number) for number in numbers])


def _distance(first: FloatArray, second: FloatArray) -> float:
    return float(np.abs(first - second).sum()) / 2


@dataclass(frozen=True)
class Sides:
    """Each combination's values in the input, and the values that its labels in the release cover."""

    result: Recoded
    before: Sequence[FloatArray]  # per column: (combinations, values), 1 for the value
    after: Sequence[FloatArray]  # per column: (combinations, values), each row adds up to 1
    kept: BoolArray  # (combinations,)

    @classmethod
    def of(cls, result: Recoded) -> Sides:
        """Spread the records of each label evenly over the values that it covers."""
        problem, recoding = result.problem, result.recoding
        counts, regions = problem.counts, recoding.regions
        before, after = [], []
        if regions is None:
            levels = np.repeat(np.array(recoding.node)[:, None], len(counts), axis=1)
            kept = ~result.suppressed[numbered(keys_at(problem, levels))]
        else:
            kept = ~regions.suppressed[regions.classes]
        for column, hierarchy in enumerate(problem.hierarchies):
            values = len(hierarchy.labels[0])
            codes = counts.codes(column)
            before.append(np.eye(values)[codes])
            if regions is None:
                of = hierarchy.groups((recoding.node or ())[column])
                table = (of[:, None] == of[None, :]).astype(float)[codes]
            else:
                groups = recoding.column_groups[column]
                shown = np.stack([_covered(groups.cover(g), hierarchy) for g in range(len(groups.leaves))])
                table = shown[regions.groups[column][regions.classes]]
            after.append(table / np.maximum(table.sum(axis=1, keepdims=True), 1))
        return cls(result, before, after, kept)

    @property
    def input_shares(self) -> FloatArray:
        """The share of the input's records of each combination."""
        shares: FloatArray = self.result.problem.counts.sizes / self.result.problem.records
        return shares

    @property
    def released_shares(self) -> FloatArray:
        """The share of the release's records of each combination."""
        sizes = np.where(self.kept, self.result.problem.counts.sizes, 0)
        shares: FloatArray = sizes / sizes.sum()
        return shares

    def one_way(self) -> float:
        """Return the mean distance between the distributions of a column."""
        pairs = zip(self.before, self.after, strict=True)
        return float(np.mean([_distance(self.input_shares @ b, self.released_shares @ a) for b, a in pairs]))

    def two_way(self) -> float:
        """Return the mean distance between the joint distributions of two columns."""
        distances = []
        for first, second in combinations(range(len(self.after)), 2):
            if self.after[first].shape[1] * self.after[second].shape[1] <= _MOST_CELLS:
                before = (self.before[first] * self.input_shares[:, None]).T @ self.before[second]
                after = (self.after[first] * self.released_shares[:, None]).T @ self.after[second]
                distances.append(_distance(before, after))
        return float(np.mean(distances)) if distances else float("nan")

    def _records(self, target: str) -> tuple[IntArray, IntArray, IntArray]:
        """Return the combination, the code of the target and the records of each entry."""
        entries = self.result.problem.counts.sensitive[LABEL + target]
        return entries.rows, entries.codes, entries.counts

    def regression(self, target: str, goals: FloatArray) -> float:
        """Return the mean absolute difference of standardized coefficients."""
        rows, codes, records = self._records(target)
        scores = [_numbers(hierarchy.labels[0]) for hierarchy in self.result.problem.hierarchies]
        sides = [
            np.stack([part[rows] @ numbers for part, numbers in zip(side, scores, strict=True)], axis=1)
            for side in (self.before, self.after)
        ]
        middle, deviation = _moments(sides[0], records)
        goal, unit = _moments(goals[codes][:, None], records)
        slopes = [
            LinearRegression()
            .fit((side - middle) / deviation, (goals[codes] - goal) / unit, sample_weight=records * mask)
            .coef_
            for side, mask in zip(sides, (np.ones(len(rows), bool), self.kept[rows]), strict=True)
        ]
        return float(np.abs(slopes[0] - slopes[1]).mean())

    def classifier(self, target: str, goals: FloatArray) -> float:
        """Return the accuracy that a classifier loses; a third of the combinations is for testing."""
        rows, codes, records = self._records(target)
        if sum(part.shape[1] for part in self.before) > _MOST_COLUMNS:
            return float("nan")
        order = np.argsort(goals[codes], kind="stable")
        half = np.searchsorted(np.cumsum(records[order]), records.sum() / 2)
        label = goals[codes] > goals[codes][order[half]]
        test = rows % 3 == 0
        learn = [~test, ~test & self.kept[rows]]
        if min(len(np.unique(label[mask])) for mask in (*learn, test)) < 2:
            return float("nan")
        sides = [np.hstack([part[rows] for part in side]) for side in (self.before, self.after)]
        accuracy = []
        for side, mask in zip(sides, learn, strict=True):
            model = LogisticRegression(max_iter=300).fit(side[mask], label[mask], sample_weight=records[mask])
            accuracy.append(model.score(sides[0][test], label[test], sample_weight=records[test]))
        return float(accuracy[0] - accuracy[1])


def _moments(values: FloatArray, records: IntArray) -> tuple[FloatArray, FloatArray]:
    mean = np.average(values, axis=0, weights=records)
    deviation = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=records))
    return mean, np.where(deviation > 0, deviation, 1.0)


def _covered(cover: Cover, hierarchy: Hierarchy) -> FloatArray:
    """Mark the values that a group stands for."""
    values = len(hierarchy.labels[0])
    if "blank" in cover:
        return np.ones(values)
    if "values" in cover:
        covered_texts = set(cover["values"])
        texts = [None if code == hierarchy.null else text for code, text in enumerate(hierarchy.labels[0])]
        return np.array([float(text in covered_texts) for text in texts])
    if "level" in cover:
        level = cover["level"]
        labels = cover.get("labels") or [cover["label"]]
        groups = [hierarchy.labels[level].index(label) for label in labels]
        inside: FloatArray = np.isin(hierarchy.groups(level), groups).astype(np.float64)
        return inside
    positions = hierarchy.positions
    assert positions is not None
    position_of_label = dict(zip(hierarchy.labels[0], positions.tolist(), strict=True))
    low, high = (cover.get(end) for end in ("from", "to"))
    between = ~np.isnan(positions)
    between &= positions >= (-np.inf if low is None else position_of_label.get(str(low), _number(low)))
    between &= positions <= (np.inf if high is None else position_of_label.get(str(high), _number(high)))
    missing = np.isnan(positions) & bool(cover.get("missing"))
    marked: FloatArray = (between | missing).astype(np.float64)
    return marked


def _number(end: object) -> float:
    return float(number_of(str(end)) or 0)


def table_of(folder: Path, sources: Sequence[Source]) -> None:
    """Print the median over the tables, for every metric with one level, and every recoding with coverage."""
    choices: list[tuple[str, str, dict[str, Any]]] = [
        (metric, "one level", {"metric": written}) for metric, written in METRICS.items()
    ]
    choices += [("coverage", name, {"metric": "coverage", **changes}) for name, changes in RECODINGS.items()][
        1:
    ]
    names = [field.name.replace("_", "-") for field in fields(Result)]
    print(f"| metric | recoding | tables | {' | '.join(names)} | least retained |")
    print(f"|---|---|--:|{'--:|' * (len(names) + 1)}")
    for metric, recoding, changes in choices:
        results = []
        for source in sources:
            path = folder / f"{source.name}.csv"
            policy = shoal.init(path, known=source.known.split(), keep=source.keep.split())
            try:
                results.append(measure(path, policy.with_(**changes), source.keep.split()[0]))
            except ShoalError as error:
                print(f"{source.name}, {metric}, {recoding}: {type(error).__name__}", file=sys.stderr)
        medians = [
            np.nanmedian([getattr(result, field.name) for result in results]) for field in fields(Result)
        ]
        least = min(result.retained for result in results)
        cells = " | ".join(f"{value:.3f}" for value in (*medians, least))
        print(f"| {metric} | {recoding} | {len(results)} | {cells} |", flush=True)


def main() -> None:
    """Print both halves."""
    if len(sys.argv) != 2:
        print(
            "The tables are not here. Name the folder of their CSV files; the docstring says what they are."
        )
        return
    folder = Path(sys.argv[1])
    print(f"Medians over tables, k = 5, 5%. {machine()}, {time.strftime('%Y-%m-%d')}")
    for title, sources in (("Chosen with", CHOSEN_WITH), ("Reported", REPORTED)):
        print(f"\n{title}: {', '.join(source.name for source in sources)}\n")
        table_of(folder, sources)


if __name__ == "__main__":
    main()
