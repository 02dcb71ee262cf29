"""What does a release cost beside DuckDB's own GROUP BY of the same columns and a copy of the file?

Invented admissions, eight quasi-identifiers, k = 5 with 5% suppressed, Parquet to Parquet. Every job runs in
a process of its own, so that its peak of memory is its own; the baseline runs before and after the release
and counts with its mean, since machines are shared. The kernels are compiled beforehand.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from setting import machine

RECORDS = (1_000_000, 10_000_000)
CHUNK = 1_000_000  # rows made at once
PHASES = ("count", "search", "recode", "verify")
KILOBYTE = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


def main() -> None:
    """Print one table, ready for the documentation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", nargs="*", type=int, default=RECORDS, help="sizes of the table")
    parser.add_argument("--memory-limit", help="for both sides' database, such as 1GB")
    given = parser.parse_args()
    limit = f" Memory limit of the database: {given.memory_limit}." if given.memory_limit else ""
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Seconds and gigabytes.{limit}\n")
    titles = ("records", "combinations", *PHASES, "other", "without search", "baseline", "ratio")
    print("| " + " | ".join((*titles, "peak memory", "baseline's peak")) + " |")
    print("|" + "--:|" * (len(titles) + 2))
    for records in given.records:
        with tempfile.TemporaryDirectory() as folder:
            _print_row(records, Path(folder), given.memory_limit)


def _print_row(records: int, folder: Path, limit: str | None) -> None:
    data = folder / "admissions.parquet"
    _apart(_generate, data, records)
    before = _apart(_baseline, data, limit)
    release = _apart(_release, data, limit)
    after = _apart(_baseline, data, limit)
    phases = [release["seconds"][phase] for phase in PHASES]
    ours = release["total"] - release["seconds"]["search"]
    baseline = (before["total"] + after["total"]) / 2
    seconds = (*phases, release["total"] - sum(phases), ours, baseline)
    cells = (f"{records:,}", f"{before['combinations']:,}", *(f"{number:.1f}" for number in seconds))
    peaks = (release["peak"], max(before["peak"], after["peak"]))
    print("| " + " | ".join((*cells, f"{ours / baseline:.2f}", *(f"{peak:.2f}" for peak in peaks))) + " |")
    sys.stdout.flush()


def _apart(job: Callable[..., Any], *given: Any) -> Any:
    """Run a job in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, *given).result()


def _generate(path: Path, records: int) -> None:
    import pyarrow.parquet

    import shoal
    from shoal.sample import admissions

    writer = None
    for place, start in enumerate(range(0, records, CHUNK)):
        table = admissions(min(CHUNK, records - start), seed=place)
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()
    shoal.anonymize(admissions(), _policy())  # compiles the kernels


def _release(path: Path, limit: str | None) -> dict[str, Any]:
    import shoal
    from shoal.engines import ENGINES

    engine = ENGINES.create("duckdb", {"memory_limit": limit})
    start = time.perf_counter()
    release = shoal.anonymize(
        path, _policy(), output=path.with_name("release.parquet"), engine=engine, force=True
    )
    total = time.perf_counter() - start
    return {"total": total, "seconds": dict(release.seconds), "peak": _peak()}


def _baseline(path: Path, limit: str | None) -> dict[str, Any]:
    import duckdb

    roles = _policy()["columns"].items()
    columns = ", ".join(name for name, column in roles if column["role"] == "quasi-identifier")
    connection = duckdb.connect(config={"temp_directory": str(path.with_name("spill"))})
    if limit:
        connection.execute(f"SET memory_limit = '{limit}'")
    start = time.perf_counter()
    connection.execute(f"CREATE TABLE grouped AS SELECT {columns}, count(*) FROM '{path}' GROUP BY {columns}")
    connection.execute(f"COPY (FROM '{path}') TO '{path.with_name('copy.parquet')}' (FORMAT parquet)")
    total = time.perf_counter() - start
    (combinations,) = connection.execute("SELECT count(*) FROM grouped").fetchone()
    return {"total": total, "combinations": combinations, "peak": _peak()}


def _policy() -> dict[str, Any]:
    """Return the sample's policy with k-anonymity alone."""
    import yaml

    written: dict[str, Any] = yaml.safe_load((files("shoal") / "data" / "policy.yaml").read_text("utf-8"))
    return written | {"models": [{"k-anonymity": {"k": 5}}], "suppression_limit": "5%"}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE / 1e9


if __name__ == "__main__":
    main()
