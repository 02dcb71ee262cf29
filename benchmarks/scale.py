"""How long does a release of 1 to 100 million rows take, compared with the engine's GROUP BY and copy?

Generated people, eight quasi-identifiers, k = 5 with 5% suppressed, Parquet to Parquet, by DuckDB and by
Spark on this machine. The combinations are in memory or, in rows named "far", in the engine. Every job runs
in a separate process to measure its peak memory; for Spark, this includes the Java process. The kernels are
compiled before. Writes docs/scale.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from setting import machine, write_page

RECORDS = (1_000_000, 10_000_000, 100_000_000)
PHASES = ("count", "search", "recode", "verify", "exposure")
# The largest number of rows of each measurement; more rows take long and show nothing new.
MOST = {"duckdb": 100_000_000, "duckdb, far": 10_000_000, "spark": 10_000_000, "spark, far": 1_000_000}
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
NODES, CORES_PER_NODE = 10, 16  # of the cluster in the extrapolation
# Each column is drawn from a skewed distribution: the number of values, and the skew.
COLUMNS = {
    "age": (100, 2.0), "sex": (2, 1.0), "postcode": (1000, 7.0), "education": (16, 5.5), "marital": (7, 5.5),
    "country": (60, 20.0), "year": (8, 3.5), "ward": (20, 7.0),
}  # fmt: skip
POLICY: dict[str, Any] = {
    "columns": {
        "person": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "postcode": {"role": "quasi-identifier", "hierarchy": {"prefix": [2, 1]}},
        "education": {"role": "quasi-identifier", "hierarchy": {"intervals": [4]}},
        "marital": {"role": "quasi-identifier", "hierarchy": "flat"},
        "country": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 30]}},
        "year": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}},
        "ward": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}},
        "illness": {"role": "sensitive"},
        "days": {"role": "other"},
        "cost": {"role": "other"},
    },
    "models": [{"k-anonymity": {"k": 5}}],
    "suppression_limit": "5%",
}
SORT = (
    "## Why the rows are sorted",
    "",
    "The order of the rows of a release must not reveal their order in the table. DuckDB copies a file in "
    "its order, so without a sort the rows of a release would have the positions of the records. A shuffle "
    "within blocks would still reveal the block. The rows are therefore "
    "sorted by the released values, in random order within a class. 2026-11-20, 2 idle cores, DuckDB, 10 "
    "million rows: counting takes 1.6 s, recoding and writing 2.4 s, verifying 0.3 s, and GROUP BY and copy "
    "2.3 s, a ratio of 2.0 with 0.3 s for everything else. The search takes 7.5 s, the exposure pass 4.3 s, "
    "and the peak memory is 2.1 GB. With the same queries on a busy machine, writing took 2.7 s of CPU time "
    "without the sort and 4.3 s with it. Without the sort the ratio would be about 1.6.",
    "",
)
TITLES = (
    "records", "engine", "combinations", *PHASES, "without search and exposure", "GROUP BY + copy", "ratio",
    "peak memory", "baseline's peak",
)  # fmt: skip


def main() -> None:
    """Print the table and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", nargs="*", type=int, default=RECORDS, help="sizes of the table")
    parser.add_argument("--folder", type=Path, help="where the tables are made; a temporary folder without")
    arguments = parser.parse_args()
    rows = []
    print(_line(TITLES))
    for records in arguments.records:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            rows += _measured(records, Path(folder))
        write_page(PAGE, _page(rows))


def _measured(records: int, folder: Path) -> list[dict[str, Any]]:
    data = folder / "people.parquet"
    if shutil.disk_usage(folder).free < 400 * records:
        print(f"{records:,} records: too little room on the disk", file=sys.stderr)
        return []
    _in_new_process(_generate, data, records)
    rows = []
    combinations = 0
    for engine, baseline in (("duckdb", _duckdb_alone), ("spark", _spark_alone)):
        if records > MOST[engine]:
            continue
        before = _in_new_process(baseline, data)
        combinations = before.get("combinations", combinations)
        for remote in (False, True):
            name = f"{engine}, far" if remote else engine
            if records > MOST[name]:
                continue
            release = _in_new_process(_release, data, engine, combinations // 2 if remote else None)
            after = _in_new_process(baseline, data)
            engine_alone = {part: (before[part] + after[part]) / 2 for part in ("total", "peak")}
            before = after
            left_out = (release["seconds"].get(phase, 0) for phase in ("search", "exposure", "compile"))
            other_time = release["total"] - sum(left_out)
            row = {"records": records, "engine": name, "combinations": combinations, "alone": engine_alone}
            row |= {"ours": other_time, **release}
            print(_line(_cells(row)), flush=True)
            rows.append(row)
    return rows


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    alone = row["alone"]
    seconds = [row["seconds"][phase] for phase in PHASES]
    return (
        f"{row['records']:,}",
        row["engine"],
        f"{row['combinations']:,}",
        *(f"{number:.1f}" for number in (*seconds, row["ours"], alone["total"])),
        f"{row['ours'] / alone['total']:.2f}",
        f"{row['peak']:.2f}",
        f"{alone['peak']:.2f}",
    )


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _in_new_process(job: Callable[..., Any], *arguments: Any) -> Any:
    """Run a job in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, *arguments).result()


def _generate(path: Path, records: int) -> None:
    import duckdb

    def random_integer(values: int, skew: float) -> str:
        return f"CAST(floor(pow(random(), {skew}) * {values}) AS INTEGER)"

    columns = {name: random_integer(*shape) for name, shape in COLUMNS.items()}
    columns["sex"] = f"CASE {columns['sex']} WHEN 0 THEN 'f' ELSE 'm' END"
    columns["postcode"] = f"printf('%03d', {columns['postcode']})"
    columns |= {
        "illness": f"'illness ' || {random_integer(40, 2.0)}",
        "days": random_integer(30, 2.0),
        "cost": "round(random() * 10000, 2)",
    }
    expressions = ", ".join(f"{drawn_as} AS {name}" for name, drawn_as in columns.items())
    connection = duckdb.connect()
    connection.execute("SELECT setseed(0.5)")
    query = f"SELECT 'person ' || range AS person, {expressions} FROM range({records})"
    connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def _release(path: Path, engine: str, max_combinations: int | None) -> dict[str, Any]:
    """Release a table; with `max_combinations`, as if no more combinations fitted in memory."""
    import shoal
    from shoal.core.counts import remote as far_counts
    from shoal.core.lattice import rollup_cache as far_hubs
    from shoal.engines.relational import relations

    _compile()
    if max_combinations is not None:
        for module in (relations, far_counts, far_hubs):
            vars(module)["fits"] = lambda number, *_: number <= max_combinations
    output = path.with_name(f"{engine}.parquet")
    if engine == "spark":
        _session()
    start = time.perf_counter()
    release = shoal.anonymize(path, POLICY, output=output, engine=engine, force=True)
    total = time.perf_counter() - start
    return {
        "total": total,
        "seconds": dict(release.seconds),
        "peak": _peak(),
        "levels": release.levels,
        "nodes": release.evaluation.work.nodes_evaluated,
    }


def _compile() -> None:
    """Compile the kernels on a small table."""
    import pyarrow as pa

    import shoal

    names = [name for name, column in POLICY["columns"].items() if column["role"] == "quasi-identifier"]
    table = pa.table({name: ["1"] * 10 for name in POLICY["columns"]})
    shoal.anonymize(table, POLICY, node=dict.fromkeys(names, 0))


def _session() -> Any:
    from shoal.engines.spark.engine import Spark

    return Spark().session


def _duckdb_alone(path: Path) -> dict[str, Any]:
    import duckdb

    columns = ", ".join(COLUMNS)
    connection = duckdb.connect(config={"temp_directory": str(path.with_name("spill"))})
    start = time.perf_counter()
    connection.execute(f"CREATE TABLE grouped AS SELECT {columns}, count(*) FROM '{path}' GROUP BY {columns}")
    connection.execute(f"COPY (FROM '{path}') TO '{path.with_name('copy.parquet')}' (FORMAT parquet)")
    total = time.perf_counter() - start
    (combinations,) = connection.execute("SELECT count(*) FROM grouped").fetchone() or (0,)
    return {"total": total, "peak": _peak(), "combinations": combinations}


def _spark_alone(path: Path) -> dict[str, Any]:
    session = _session()
    start = time.perf_counter()
    frame = session.read.parquet(str(path))
    grouped = frame.groupBy(*COLUMNS).count()
    grouped.write.mode("overwrite").parquet(str(path.with_name("grouped.parquet")))
    frame.write.mode("overwrite").parquet(str(path.with_name("copy.parquet.folder")))
    return {"total": time.perf_counter() - start, "peak": _peak()}


def _peak() -> float:
    """Return the peak memory of this process and of its Java process, in gigabytes."""
    kilobyte = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            status_fields = dict(
                line.split(":", 1) for line in status.read_text().splitlines() if ":" in line
            )
        except OSError:
            continue
        is_child = status_fields.get("PPid", "").strip() == str(os.getpid())
        if is_child and status_fields["Name"].strip() == "java" and "VmHWM" in status_fields:
            peak += int(status_fields["VmHWM"].split()[0]) * 1024
    return peak / 1e9


def _page(rows: list[dict[str, Any]]) -> str:
    lines = [
        "# Scale",
        "",
        "This page compares the cost of a release with the engine's own GROUP BY of the same columns and a "
        "copy of the file: fictitious people, eight quasi-identifiers, k = 5 with 5% suppressed, from "
        "Parquet to Parquet, with the release counted again at the end. *far*: as if only half of the "
        "combinations fitted in memory. They then stay in the engine, and the search queries the engine.",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Seconds and gigabytes; `python benchmarks/scale.py`.",
        "",
        _line(TITLES),
        "|" + "--:|" * len(TITLES),
        *[_line(_cells(row)) for row in rows],
        "",
        "The ratio does not include the search and the exposure pass, which reviews the columns that are "
        "released unchanged. The times of GROUP BY and copy are the mean of one run "
        "before and one after the release, because the machine is shared. The peak memory of Spark is the "
        "sum of Python and Java.",
        "",
        *_growth(rows),
        *SORT,
        *_extrapolation(rows),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _growth(rows: list[dict[str, Any]]) -> list[str]:
    """Describe how the time without the search grows with the number of rows."""
    texts = []
    for engine in dict.fromkeys(row["engine"] for row in rows):
        engine_rows = [row for row in rows if row["engine"] == engine]
        for before, after in pairwise(engine_rows):
            times = after["records"] / before["records"]
            growth = after["ours"] / before["ours"]
            texts.append(
                f"- {engine}, from {before['records']:,} to {after['records']:,} rows ({times:.0f} times): "
                f"{growth:.1f} times the time."
            )
    return [*texts, ""] if texts else []


def _extrapolation(rows: list[dict[str, Any]]) -> list[str]:
    """Extrapolate the largest run of Spark to a billion rows on a cluster."""
    spark_rows = [row for row in rows if row["engine"] == "spark"]
    if not spark_rows:
        return []
    largest = spark_rows[-1]
    cores = os.cpu_count() or 1
    share = 1e9 / largest["records"] * cores / (NODES * CORES_PER_NODE)
    parts = {phase: largest["seconds"][phase] * share for phase in ("count", "recode", "verify")}
    phase_texts = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in parts.items())
    return [
        "## A billion rows on ten nodes, on paper",
        "",
        f"This is an extrapolation from {largest['records']:,} rows on {cores} cores to {NODES} nodes with "
        f"{CORES_PER_NODE} cores each, assuming that the work divides evenly: {phase_texts}, together "
        f"{sum(parts.values()):.0f} s. The search runs on the driver. Its time depends on the number of "
        f"combinations, not on the number of rows: here {largest['seconds']['search']:.0f} s for "
        f"{largest['combinations']:,} combinations. Network shuffles, slower disks and stragglers are not "
        "included, so the actual time could easily be twice as long. This was not measured.",
        "",
    ]


if __name__ == "__main__":
    main()
