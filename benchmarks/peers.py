"""How does shoal compare with other Python packages for de-identification?

On the Adult table, measures are compared with pycanon, full-domain generalization with anjana, and Mondrian
with anonypy and anonypyx. The packages are not dependencies of shoal: `--peers PYTHON` names an interpreter
that has them (`python -m venv E; E/bin/pip install pycanon anjana anonypy anonypyx pandas`). Missing packages
are left out, which the page states. Writes docs/peers.md; without `--peers` the page does not change.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd
from peer_calls import (
    EIGHT,
    NINE,
    RUNS,
    Peers,
    Times,
    best,
    policy_for,
    problem_for,
    process_seconds,
    time_cells,
    timed,
)
from peer_facts import BETTER, READ, features
from peer_mistakes import mistakes
from setting import adult, machine, write_page

import shoal
from shoal.core.problem import Problem
from shoal.policy.policy import Policy
from shoal.workflow.search import search

BESIDE = tuple(name for name in NINE if name != "occupation")
MEASURES = (
    *("k", "distinct_l", "alpha", "t_equal", "t_ordered", "basic_beta"),
    *("delta_present_only", "entropy_l", "recursive_c", "enhanced_beta", "delta"),
)
WHY = {
    "entropy_l": "pycanon drops the digits after the decimal point",
    "recursive_c": "pycanon sorts the values from the rarest to the most frequent; Machanavajjhala et al. "
    "(2007) and shoal sort them from the most frequent to the rarest. pycanon gives no c if l is 1",
    "enhanced_beta": "pycanon takes the lower of the greatest gain and the greatest -ln p; Cao and Karras "
    "(2012) bound the gain of each value by its own -ln p, and by that definition no beta is large enough "
    "here",
    "delta": "pycanon leaves out the values that do not occur in a class, like `delta_present_only`; "
    "Brickell and Shmatikov (2008) include them",
}
ALONE = {
    "measure": "shoal.measure(table, {beside}, 'occupation')",
    "least entropy": "shoal.anonymize(table, {node})",
    "mondrian": "shoal.anonymize(table, {regions})",
}


def main() -> None:
    """Measure, print the tables, and write the page of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", default="", help="an interpreter that has the peers")
    parser.add_argument("--bound", type=float, default=300, help="seconds that a peer may take")
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1] / "docs")
    arguments = parser.parse_args()
    if not arguments.peers:
        print("Without --peers PYTHON no peer is measured, and docs/peers.md stays as it is.")
        return
    with tempfile.TemporaryDirectory() as folder:
        text = "\n".join(_page(Peers(arguments.peers, arguments.bound, {}, Path(folder))))
    write_page(arguments.docs / "peers.md", text)
    print(text)


def _page(peers: Peers) -> Iterator[str]:
    before = os.getloadavg()[0]
    whole = pd.read_csv(adult() / "adult.csv")
    parts = (_measuring(peers, whole), _nodes(peers, whole), _regions(peers, whole), _startup())
    body = [line for part in (*parts, mistakes(peers)) for line in (*part, "")]
    versions = ", ".join(f"{name} {version}" for name, version in peers.versions.items())
    yield "# Beside other tools"
    yield ""
    yield "`python benchmarks/peers.py --peers PYTHON` writes this page; do not edit it by hand. `PYTHON` is"
    yield "an interpreter that has the peers (`pip install pycanon anjana anonypy anonypyx pandas`)."
    yield ""
    yield fill(
        "The UCI Adult table (30,162 records), with the hierarchies of ARX's tests. Both sides begin with a "
        "pandas frame in memory and end with a result in memory: the time does not include reading or "
        "writing the table. The time of shoal includes reading the hierarchy files; anjana gets the "
        f"hierarchies as frames. *First* is the first call, *best* the best of {RUNS} calls (for shoal, of "
        f"the first and {RUNS} more), or a single call if it takes more than 30 s. All times are in seconds. "
        "*CPU* is the processor time of the best call, over all threads. Others used the machine at the "
        "same time: compare figures within one table, by CPU.",
        110,
    )
    yield ""
    load = f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    yield f"{datetime.now(UTC):%Y-%m-%d}, {machine()}, {load}."
    yield f"{versions or 'No peer answered'}."
    yield ""
    yield from body
    yield "## What each can do"
    yield ""
    yield (
        "This table is based on the source code of the named versions; for ARX on the source code and the "
        "description of its repository, and for sdcMicro on the exports of its package (5.x)."
    )
    yield ""
    yield from features(peers.versions)
    yield ""
    yield "What other tools do that shoal does not, or do better:"
    yield ""
    yield from [f"- {line}" for line in BETTER]


def _measuring(peers: Peers, whole: Any) -> Iterator[str]:
    released = peers.folder / "measured.csv"
    policy = policy_for(BESIDE, 0.05, "non-uniform-entropy", l=3)
    shoal.anonymize(whole, policy).table.to_csv(released, index=False)
    yield "## Measuring a table: pycanon"
    yield ""
    yield (
        "All measures of one sensitive column (occupation), with the other eight columns as "
        "quasi-identifiers, by `get_report_values` of pycanon and by `shoal.measure`. *Release* is a "
        "release by shoal, with k = 5 and three distinct values."
    )
    yield ""
    yield "| table | classes | tool | first | best | CPU |"
    yield "|---|--:|---|--:|--:|--:|"
    values: dict[str, list[float | None]] = {name: [] for name in MEASURES}
    for title, path in (("as it is", adult() / "adult.csv"), ("release", released)):
        frame = pd.read_csv(path)
        times, measurement = timed(partial(shoal.measure, frame, BESIDE, "occupation"))
        task = {"table": str(path), "columns": BESIDE, "sensitive": "occupation"}
        answer = peers.run("pycanon", task | ({"number": "hours-per-week"} if title == "release" else {}))
        if "missing" in answer:
            yield f"| {title} | {measurement.classes:,} | {answer['missing']} | | | |"
        else:
            yield f"| {title} | {measurement.classes:,} | pycanon | {time_cells(answer['times'])} |"
            hours = shoal.measure(frame, BESIDE, "hours-per-week").sensitive[0].t_ordered
            measured = vars(measurement.sensitive[0]) | {"k": measurement.k, "t_ordered": hours}
            peer_values = answer["values"] | {"delta_present_only": answer["values"]["delta"]}
            for name, pair in values.items():
                pair += [measured[name], peer_values[name]]
        yield f"| {title} | {measurement.classes:,} | shoal | {time_cells(times)} |"
    if all(len(pairs) == 4 for pairs in values.values()):
        yield from _compared(values)


def _compared(values: dict[str, list[float | None]]) -> Iterator[str]:
    """List the values of both packages, and explain why some differ."""
    yield ""
    yield (
        "Do the values agree, to 1e-9? `t_ordered` is measured for hours-per-week, and by pycanon only for "
        "the release."
    )
    yield ""
    yield "| measure | as it is: shoal | pycanon | release: shoal | pycanon | same |"
    yield "|---|--:|--:|--:|--:|---|"
    differing = []
    for name, (shoal_value, peer_value, *release) in values.items():
        pairs = [release] if name == "t_ordered" else [[shoal_value, peer_value], release]
        same = all(a is not None and b is not None and abs(a - b) <= 1e-9 for a, b in pairs)
        every = [shoal_value, peer_value if len(pairs) == 2 else None, *release]
        cells = ["-" if value is None else f"{value:.6g}" for value in every]
        yield f"| {name} | " + " | ".join(cells) + f" | {'yes' if same else 'no'} |"
        differing += [] if same else [name]
    yield ""
    for name in differing:
        yield f"- `{name}`: {WHY.get(name, 'the reason is not known')}."


def _nodes(peers: Peers, whole: Any) -> Iterator[str]:
    yield "## One level per column: anjana, ARX"
    yield ""
    yield (
        "Nine quasi-identifiers, a lattice of 12,960 nodes. Levels are in the order sex, age, race, "
        "marital-status, education, native-country, workclass, occupation, salary-class. *Entropy* is the "
        "non-uniform entropy in bits, *precision* is the precision loss; both are computed by shoal. *k "
        "found* is measured in the release by `shoal.measure`. The time of shoal includes verification."
    )
    yield ""
    yield "| k | limit | search | levels | entropy | precision | suppressed | k found | first | best | CPU |"
    yield "|--:|--:|---|---|--:|--:|--:|--:|--:|--:|--:|"
    files = {name: str(adult() / "hierarchies-arx" / f"{name}.csv") for name in NINE}
    added: list[str] = []
    for k, share in ((5, 0.05), (5, 0.0), (10, 0.05)):
        problem, prefix = problem_for(NINE, share, k), f"| {k} | {share:.0%} |"
        task = {"table": str(adult() / "adult.csv"), "hierarchies": files, "k": k, "percent": share * 100}
        answer = peers.run("anjana", task)
        if "missing" in answer:
            yield f"{prefix} {answer['missing']} | | | | | | | | |"
        else:
            release = pd.read_csv(answer["release"])
            yield f"{prefix} anjana | {_node(problem, answer['node'], release, answer['times'])}"
            added = added or answer["added"]
        for title, metric, algorithm in (
            ("shoal, datafly", "non-uniform-entropy", "datafly"),
            ("shoal, least entropy", "non-uniform-entropy", "contour"),
            ("shoal, least precision loss", "precision", "contour"),
        ):
            policy = policy_for(NINE, share, metric, k=k) | {"algorithm": algorithm}
            times, made = timed(partial(shoal.anonymize, whole, policy))
            yield f"{prefix} {title} | {_node(problem, list(made.levels.values()), made.table, times)}"
    yield ""
    yield (
        "Like `datafly` (Sweeney 1997), anjana generalizes the column with the most distinct values until "
        "suppression is enough; it has no metric. A release with the least loss by one metric does not have "
        "the least loss by another."
    )
    if added:
        yield (
            f"The release of anjana has a new column, `{'`, `'.join(added)}`: the position of each record in "
            "the input. Drop it before you share the release."
        )
    yield ""
    yield from _arx()


def _node(problem: Problem, node: Sequence[int], release: Any, times: Times) -> str:
    heights = [hierarchy.height for hierarchy in problem.hierarchies]
    precision = sum(level / height for level, height in zip(node, heights, strict=True)) / len(node)
    return (
        f"{' '.join(map(str, node))} | {problem.loss_of(tuple(node)):,.0f} | {precision:.3f} | "
        f"{problem.records - len(release):,} | {shoal.measure(release, NINE).k} | {time_cells(times)} |"
    )


def _arx() -> Iterator[str]:
    problem = problem_for(NINE, 0.05, 5)
    policy = Policy.load(policy_for(NINE, 0.05, "non-uniform-entropy") | {"algorithm": "contour"})
    times, (_, result) = timed(partial(search, problem, policy.search_algorithm, **policy.finishing))
    text = f"{result.loss:,.1f} bits, {result.work.nodes_evaluated:,} nodes, {best(times)[1]:.3f} s of CPU"
    yield (
        "ARX was not run here. Its figures were measured outside this project, on two cores; those of shoal "
        "are for the search alone, without counting the table. The figures are not from the same run: read "
        "them as orders of magnitude."
    )
    yield ""
    yield "| Adult, hierarchies of ARX's tests | ARX | shoal |"
    yield "|---|---|---|"
    yield f"| k = 5, 5%, least entropy | 249,978.7 bits, 2,867 nodes, 1.05 s of CPU | {text} |"
    yield "| t = 0.2 with k = 5, 5% | 0.9 s | [models](benchmarks.md#privacy-models-on-adult) |"
    yield "| local recoding, coverage loss | 0.084, 1.2 s | [refine](regions.md#refine-and-cells) |"


def _regions(peers: Peers, whole: Any) -> Iterator[str]:
    yield "## Regions: anonypy, anonypyx"
    yield ""
    yield (
        "Mondrian with k = 5 over eight quasi-identifiers (all but salary-class), with age as numbers and "
        "the others as categories. NCP is computed from the labels of each release, by the same code. For a "
        "range it is the width of the range divided by the width of the column. For a set it is the number "
        "of its values minus one, divided by the number of the column's values minus one. The figure is the "
        "mean over records and columns (`coverage` counts the values of a range instead)."
    )
    yield ""
    yield "| search | classes | records | average class | NCP | k found | first | best | CPU |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    task = {"table": str(adult() / "adult.csv"), "columns": EIGHT, "sensitive": "salary-class", "k": 5}
    lost: dict[str, float] = {}
    for name in ("anonypy", "anonypyx"):
        answer = peers.run(name, task)
        if "missing" in answer:
            yield f"| {answer['missing']} | | | | | | | | |"
        else:
            yield _region(name, pd.read_csv(answer["release"], dtype=str), answer["times"], lost)
    for title, bare, options in (
        ("shoal, mondrian, no hierarchies", True, {}),
        ("shoal, mondrian", False, {}),
        ("shoal, mondrian (choose: loss)", False, {"choose": "loss"}),
    ):
        policy = policy_for(EIGHT, 0.0, "coverage", flat=bare) | {"algorithm": {"mondrian": options}}
        times, made = timed(partial(shoal.anonymize, whole, policy))
        yield _region(title, made.table.astype(str), times, lost)
    yield ""
    least = min(lost, key=lambda name: lost[name])
    flat = "shoal, mondrian, no hierarchies"
    better = [name for name in ("anonypy", "anonypyx") if lost.get(name, 1) < lost[flat]]
    yield (
        f"*{least}* loses the least. These lose less than *{flat}*: {', '.join(better) or 'no peer'}. The "
        "peers halve a column's categories in the order in which they occur in the region; shoal cuts them "
        "near the median of a fixed order. That order is alphabetical, or follows the groups of the "
        "hierarchy if there is one."
    )
    yield ""
    yield from _closeness(peers, task)


def _region(title: str, release: Any, times: Times, lost: dict[str, float]) -> str:
    measurement = shoal.measure(release, EIGHT)
    lost[title] = _ncp(pd.read_csv(adult() / "adult.csv"), release)
    return (
        f"| {title} | {measurement.classes:,} | {measurement.records:,} | "
        f"{measurement.records / measurement.classes:.2f} | {lost[title]:.2%} | {measurement.k} | "
        f"{time_cells(times)} |"
    )


def _ncp(whole: Any, release: Any) -> float:
    """Return the normalized certainty penalty, computed from the labels of a release."""
    total = 0.0
    for name in EIGHT:
        counts = release[name].value_counts()
        if name == "age":
            width = int(whole[name].max() - whole[name].min())
            ends = [[int(number) for number in re.findall(r"\d+", label)] for label in counts.index]
            lost = [(max(pair) - min(pair)) / width for pair in ends]
        else:
            known = set(whole[name])
            sets = [set(re.split(r",\s*", label.strip("{}"))) for label in counts.index]
            if not all(members <= known for members in sets):
                message = f"A label of {name!r} was not read as a set of its values."
                raise SystemExit(message)
            lost = [(len(members) - 1) / (len(known) - 1) for members in sets]
        total += sum(count * loss for count, loss in zip(counts, lost, strict=True)) / len(release)
    return total / len(EIGHT)


def _closeness(peers: Peers, task: dict[str, Any]) -> Iterator[str]:
    """Request t-closeness, and measure the result."""
    yield (
        "With t = 0.1 for salary-class in addition to k = 5, on the first 1,000 records, measured in the "
        "release by `shoal.measure` (for two values, the greatest difference and the equal distance are the "
        "same):"
    )
    yield ""
    yield "| search | classes | k found | t found |"
    yield "|---|--:|--:|--:|"
    for name in ("anonypy", "anonypyx"):
        answer = peers.run(name, task | {"t": 0.1, "rows": 1000})
        if "missing" in answer:
            yield f"| {answer['missing']} | | | |"
        else:
            yield _close(name, pd.read_csv(answer["release"], dtype=str))
    policy = policy_for(EIGHT, 0.0, "coverage", flat=True) | {"algorithm": "mondrian"}
    policy["columns"]["salary-class"] = {"role": "sensitive"}
    policy["models"].append({"t-closeness": {"t": 0.1, "column": "salary-class"}})
    some = pd.read_csv(adult() / "adult.csv", nrows=1000)
    yield _close("shoal, mondrian", shoal.anonymize(some, policy).table)
    yield ""
    if peers.versions.get("anonypy") == READ["anonypy"]:
        yield (
            "In anonypy, a loop overwrites the argument that holds the threshold: after that, a class is "
            "compared with the share of its last value."
        )


def _close(title: str, release: Any) -> str:
    measurement = shoal.measure(release, EIGHT, "salary-class")
    return f"| {title} | {measurement.classes:,} | {measurement.k} | {measurement.sensitive[0].t_equal:.3f} |"


def _startup() -> Iterator[str]:
    """Time whole processes, with and without compiled kernels."""
    arguments = {
        "beside": BESIDE,
        "node": policy_for(NINE, 0.05, "non-uniform-entropy") | {"algorithm": "contour"},
        "regions": policy_for(EIGHT, 0.0, "coverage") | {"algorithm": "mondrian"},
    }
    yield "## What starting costs"
    yield ""
    yield (
        "shoal compiles its kernels when they are first needed on a machine, and loads the compiled code "
        "later. The seconds of a whole Python process, from its start to the result, with imports and "
        "reading the table:"
    )
    yield ""
    yield "| call | nothing compiled | compiled before |"
    yield "|---|--:|--:|"
    for name, call in ALONE.items():
        statements = (
            f"import pandas, shoal; table = pandas.read_csv({str(adult() / 'adult.csv')!r}); "
            f"{call.format(**{key: repr(value) for key, value in arguments.items()})}"
        )
        cold, warm = (process_seconds(statements, compiled=compiled) for compiled in (False, True))
        yield f"| {name} | {cold:.1f} | {warm:.1f} |"


if __name__ == "__main__":
    main()
