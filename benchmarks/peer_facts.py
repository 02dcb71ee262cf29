"""Features of other packages, from their sources and documentation; printed by benchmarks/peers.py."""

from __future__ import annotations

from collections.abc import Iterator

READ = {"pycanon": "1.3.5", "anjana": "1.2.3", "anonypy": "0.2.1", "anonypyx": "0.2.11"}  # versions read

TOOLS = ("shoal", "pycanon", "anjana", "anonypy", "anonypyx", "ARX", "sdcMicro")
FEATURES: tuple[tuple[str, ...], ...] = (
    (
        "what it does",
        "measures, searches, recodes, verifies",
        "measures",
        "generalizes",
        "partitions",
        "partitions, microaggregates",
        "measures, searches, recodes",
        "measures, recodes, perturbs",
    ),
    (
        "models it can enforce",
        "14 ([models](models/k-anonymity.md)), several at once",
        "none: it measures nine",
        "nine, those that pycanon measures",
        "k, distinct l; t can be requested but is not enforced, see above",
        "k, distinct l, t by the greatest difference, or by equal distances if all columns are categories",
        "those of shoal except alpha-k and p-sensitive by name; population uniqueness, differential "
        "privacy, profitability",
        "k by local suppression; l-diversity is measured",
    ),
    (
        "search",
        "full-domain with a proof of the least loss; regions, cuts, cells",
        "-",
        "greedy: raises the column with the most distinct values by one level; no metric",
        "Mondrian",
        "Mondrian, MDAV",
        "full-domain with the least loss (Flash), heuristics for large lattices, local recoding",
        "recoding by hand, local suppression by importance",
    ),
    (
        "records suppressed",
        "up to a limit, dropped or masked",
        "-",
        "up to a limit in percent, dropped",
        "no",
        "no",
        "up to a limit",
        "cells",
    ),
    (
        "hierarchies",
        "rules, trees, CSV; refused if not nested",
        "-",
        "a list per level; a function for intervals",
        "none",
        "none",
        "rules (intervals, order, priority, redaction, dates), CSV, a wizard",
        "none: `globalRecode`, `groupAndRename`",
    ),
    (
        "where the rows are",
        "file, frame, DuckDB, Spark, PostgreSQL",
        "pandas",
        "pandas",
        "pandas",
        "pandas",
        "memory; imports CSV, Excel, JDBC",
        "R data frame",
    ),
    (
        "risk and attacks",
        "prosecutor, journalist, marketer, uniqueness in the population, SUDA; joins, two releases",
        "average and highest risk",
        "no",
        "record linkage by nearest neighbours",
        "intersection, trajectories",
        "prosecutor, journalist, marketer, uniqueness in the population",
        "individual risk, log-linear models, SUDA",
    ),
    (
        "noise, swapping, PRAM",
        "no",
        "no",
        "no",
        "no",
        "means of clusters",
        "microaggregation",
        "`addNoise`, `rankSwap`, `recordSwap`, `pram`, `shuffle`, `microaggregation`",
    ),
    ("differential privacy", "no", "no", "no", "no", "no", "(epsilon, delta)", "none found"),
    ("synthetic records", "no", "no", "no", "no", "no", "none found", "`dataGen`"),
    ("images", "no", "no", "no", "no", "k-Same", "none found", "none found"),
    (
        "interfaces",
        "Python, command line, browser",
        "Python, command line, PDF report",
        "Python",
        "Python",
        "Python",
        "desktop, Java",
        "R, browser (`sdcApp`)",
    ),
)

BETTER = (
    "**ARX** enforces (epsilon, delta)-differential privacy, uniqueness in the population and profitability "
    "(what an attacker would gain and pay). It has a genetic search and other heuristic searches. It "
    "evaluates a release with logistic regression, naive Bayes and random forests. It shows all of this in "
    "a desktop application, with a wizard for hierarchies.",
    "**sdcMicro** perturbs data: noise, swapping, PRAM, shuffling, microaggregation. It counts with "
    "sampling weights and models risk with log-linear models. A release of shoal says less than the "
    "original data, but nothing false: if you need perturbed numbers, use sdcMicro.",
    "**anonypyx** has MDAV, images (k-Same), attacks based on trajectories, and the error of counting "
    "queries.",
    "**pycanon** writes its measures as a PDF, and combines several sensitive columns into one number.",
)


def features(versions: dict[str, str]) -> Iterator[str]:
    """Print the table, and note installed versions that differ from those in `READ`."""
    yield "| | " + " | ".join(f"{tool} {READ.get(tool, '')}".strip() for tool in TOOLS) + " |"
    yield "|---" * (len(TOOLS) + 1) + "|"
    for name, *cells in FEATURES:
        yield f"| {name} | " + " | ".join(cells) + " |"
    for tool, version in versions.items():
        if version != READ[tool]:
            yield ""
            yield f"The row of {tool} was read in {READ[tool]}; {version} was measured."
