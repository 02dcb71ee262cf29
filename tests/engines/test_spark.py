"""Spark: tables and folders, a session that stays as it was, and tasks that fail."""

from __future__ import annotations

import csv
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from servers import QUICK_JAVA, needs_spark, spark, watched
from shoal.engines.duckdb.engine import DuckDb
from shoal.errors import DataError, OutputError, ReleaseRefused, UsageError
from shoal.workflow.session import choose_engine

pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.xdist_group("servers"),
    needs_spark,
]

QUASI = "quasi-identifier"
SHOAL = Path(sys.executable).with_name("shoal")
POLICY: dict[str, Any] = {
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": QUASI, "hierarchy": {"intervals": [10]}},
        "sex": {"role": QUASI, "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
    },
    "models": [{"k-anonymity": {"k": 3}}],
    "suppression_limit": "10%",
}


def people(number: int = 120) -> pa.Table:
    return pa.table(
        {
            "name": [f"person {i}" for i in range(number)],
            "age": pa.array([20 + i % 12 for i in range(number)], pa.int16()),
            "sex": ["fm"[i % 2] for i in range(number)],
            "illness": [f"illness {i % 7}" for i in range(number)],
        }
    )


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The session of this process, in a folder of one's own; no view of ours may stay in it."""
    monkeypatch.chdir(tmp_path)
    own = spark()
    before = settings(own)
    yield own
    assert settings(own) == before
    assert views(own) == []


def settings(session: Any) -> dict[str, str]:
    names = ("timeZone", "mapKeyDedupPolicy", "shuffle.partitions", "ansi.enabled")
    return {name: session.conf.get(f"spark.sql.{'session.' * (name == 'timeZone')}{name}") for name in names}


def views(session: Any) -> list[str]:
    return [table.name for table in session.catalog.listTables() if table.name.startswith("shoal_")]


def run(session: Any, source: Any, output: Any, **options: Any) -> shoal.Release:
    from shoal.engines.spark.engine import Spark

    wanted = options.pop("policy", POLICY)
    return shoal.anonymize(source, wanted, output=output, engine=Spark.in_session(session), **options)


def temporaries(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if ".tmp" in path.name]


# What is read


def test_text_is_read_as_the_embedded_engine_reads_it(session: Any) -> None:
    header = ["a b", 'q"uote', "größe;", "`tick`"]
    rows = [
        ["plain", "007", "1.0", "x"],
        ['say "hi"', "two\nlines", "a,b", " spaced "],
        ["", "''", "NULL", "\\"],
        ["carriage\r\nreturn", '"', '""', "\\n"],
        ["ünï", "a;b|c\td", "-", "#comment"],
        ["last", "", "", ""],
    ]
    for ending, delimiter in ((".csv", ","), (".tsv", "\t")):
        path = Path(f"odd{ending}")
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([header, *rows])
            file.write(delimiter.join(["", '""', "x", "y"]) + "\r\n")  # missing, and empty in quotes
        # A line break inside a cell is \n to Spark, whatever it was.
        expected = [tuple(cell and cell.replace("\r\n", "\n") for cell in row) for row in read_embedded(path)]
        assert read(session, path) == Counter(expected)


def test_what_is_written_is_read_back_as_it_was(session: Any) -> None:
    values = ["", None, " spaced ", "a,b", 'q"q', "two\nlines", "\\", "NULL", "x"] * 2
    frame = session.createDataFrame(pa.table({"a": values, "b": ["1"] * len(values)}))
    roles = {"a": {"role": "other"}, "b": {"role": QUASI, "hierarchy": "flat"}}
    wanted = {"columns": roles, "models": [{"k-anonymity": {"k": 2}}]}
    for output in ("release.csv", "release.tsv"):
        run(session, frame, output, policy=wanted)
        found = read(session, Path(output))
        assert found == Counter((value or None, "1") for value in values)
        parts: Counter[tuple[Any, ...]] = Counter()
        for number, part in enumerate(Path(output).glob("part-*.csv")):
            copy = Path(f"{number}{Path(output).suffix}")
            shutil.copy(part, copy)
            parts += read_embedded(copy)
        assert parts == found


def read(session: Any, path: Path) -> Counter[tuple[Any, ...]]:
    from shoal.engines.spark.engine import Spark

    engine = Spark.in_session(session)
    return Counter(tuple(row.values()) for row in engine.fetch(engine.open(path)).to_pylist())


def read_embedded(path: Path) -> Counter[tuple[Any, ...]]:
    engine = DuckDb()
    return Counter(tuple(row.values()) for row in engine.fetch(engine.open(path)).to_pylist())


def test_folders_of_files_are_tables(session: Any) -> None:
    first, second = people().slice(0, 50), people().slice(50)
    for folder, write in (
        ("parts.parquet", lambda table, path: pq.write_table(table, f"{path}.parquet")),
        ("parts", lambda table, path: pq.write_table(table, f"{path}.parquet")),
        ("parts.csv", lambda table, path: table.to_pandas().to_csv(f"{path}.csv", index=False)),
        ("parts.tsv", lambda table, path: table.to_pandas().to_csv(f"{path}.tsv", index=False, sep="\t")),
        ("zipped.csv", lambda table, path: table.to_pandas().to_csv(f"{path}.csv.gz", index=False)),
    ):
        Path(folder).mkdir()
        write(first, f"{folder}/part-0")
        write(second, f"{folder}/part-1")
        Path(folder, "_SUCCESS").touch()
        source = f"./{folder}/" if folder == "parts" else folder
        where = Path(folder).resolve() if folder == "parts" else source
        found = read(session, Path(where))
        assert sum(found.values()) == 120
        assert {row[0] for row in found} == set(people()["name"].to_pylist())


def test_files_of_a_folder_with_other_columns_are_refused(session: Any) -> None:
    Path("mixed.csv").mkdir()
    Path("mixed.csv/0.csv").write_text("age,sex\n20,f\n", encoding="utf-8")
    Path("mixed.csv/1.csv").write_text("sex,age\nf,20\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"'mixed\.csv' cannot be read|The table cannot be read"):
        read(session, Path("mixed.csv"))


@pytest.mark.parametrize(
    ("content", "told"), [(b"a,b\n1\n", "cannot be read"), (b"a,b\n1,2,3\n", "cannot be read")]
)
def test_lines_of_another_length_are_refused(session: Any, content: bytes, told: str) -> None:
    Path("ragged.csv").write_bytes(content)
    with pytest.raises(DataError, match=told):
        read(session, Path("ragged.csv"))


@pytest.mark.parametrize("name", ["nothing.csv", "none", "a.b.c.d", "`", "empty.parquet"])
def test_what_is_not_there_is_named(session: Any, name: str) -> None:
    Path("empty.parquet").mkdir()
    with pytest.raises(UsageError, match=r"No such file|Spark has no table|Expected the name|holds no data"):
        run(session, name, "release.parquet")
    assert temporaries(Path()) == []


# Tables of a catalogue


def test_a_table_is_released_to_a_table(session: Any) -> None:
    session.sql("DROP DATABASE IF EXISTS clinic CASCADE")
    session.sql("CREATE DATABASE clinic")
    session.createDataFrame(people()).write.saveAsTable("clinic.people")
    run(session, "clinic.people", "clinic.release")
    assert session.table("clinic.release").count() == 120
    with pytest.raises(OutputError, match=r"'clinic\.release' exists\. Use force=True"):
        run(session, "clinic.people", "clinic.release")
    run(session, "`clinic`.people", "clinic.`release`", force=True)
    assert in_clinic(session) == {"people", "release"}
    mark = session.sql("SHOW TBLPROPERTIES clinic.release ('shoal.mark')").collect()[0]["value"]
    audit = json.loads(Path("clinic.release.private/audit.json").read_text(encoding="utf-8"))
    assert mark == audit["release_sha256"]
    for source in ("CLINIC.people", session.table("clinic.people").filter("age > 20")):
        with pytest.raises(OutputError, match="is the input"):
            run(session, source, "clinic.`people`", force=True)
    session.sql("DROP DATABASE clinic CASCADE")


def in_clinic(session: Any) -> set[str]:
    return {table.name for table in session.catalog.listTables("clinic") if not table.isTemporary}


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_table_that_is_replaced_is_never_lost(
    session: Any, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """A run dies between the steps of a replacement, which Spark does not do at once."""
    from shoal.engines.spark.engine import Spark

    session.sql("DROP DATABASE IF EXISTS clinic CASCADE")
    session.sql("CREATE DATABASE clinic")
    session.createDataFrame(people()).write.saveAsTable("clinic.people")
    session.createDataFrame(pa.table({"mine": [1]})).write.saveAsTable("clinic.release")
    done = []

    def dies(self: Any, statement: str) -> None:
        if "RENAME" in statement or "_before" in statement:
            done.append(statement)
            if len(done) >= step:
                raise OutputError("dead")
        with self.translate_errors():
            self.session.sql(statement)

    with monkeypatch.context() as here:
        here.setattr(Spark, "_do", dies)
        # After the last step the release is in place, and is completed.
        with pytest.raises(OutputError, match="dead") if step < 3 else nullcontext():
            run(session, "clinic.people", "clinic.release", force=True)
    run(session, "clinic.people", "clinic.other")  # settles nothing of the first
    with pytest.raises(OutputError, match="exists"):
        run(session, "clinic.people", "clinic.release")
    columns = session.table("clinic.release").columns
    assert columns == (["mine"] if step < 3 else ["age", "sex", "illness"])
    assert in_clinic(session) == {"people", "release", "other"}
    assert temporaries(Path()) == []
    session.sql("DROP DATABASE clinic CASCADE")


@pytest.mark.parametrize("name", ["`x; drop table keep`", "keep; drop table keep", "`a b`", "`ü`"])
def test_names_are_quoted(session: Any, name: str) -> None:
    """Spark's own catalogue takes few names; whatever it makes of others, it is not a statement."""
    session.sql("DROP TABLE IF EXISTS keep")
    session.createDataFrame(people()).write.saveAsTable("keep")
    with pytest.raises(UsageError):
        run(session, name, "release.parquet")
    with pytest.raises(UsageError):
        run(session, "keep", name, force=True)
    assert session.table("keep").count() == 120
    session.sql("DROP TABLE keep")


def test_odd_names_of_columns_are_quoted(session: Any) -> None:
    odd = 'x"; drop table `y` größe'
    table = people().rename_columns(["name", odd, "Sex", "illness"])
    pq.write_table(table, "people.parquet")
    roles = POLICY["columns"] | {odd: POLICY["columns"]["age"], "Sex": POLICY["columns"]["sex"]}
    roles = {name: roles[name] for name in table.column_names}
    run(session, "people.parquet", "release.parquet", policy=POLICY | {"columns": roles})
    assert pq.read_table("release.parquet").column_names == [odd, "Sex", "illness"]


@pytest.mark.parametrize("address", ["jdbc:postgresql://u:hunter2@h/db", "s3://key:hunter2@bucket/x.parquet"])
def test_an_address_is_refused_and_not_shown(session: Any, address: str) -> None:
    for source, output in ((address, "release.parquet"), (Path(address), "release.parquet"), ("x", address)):
        with pytest.raises(UsageError) as caught:
            run(session, source, output)
        assert "hunter2" not in str(caught.value)


# Frames, and the session around them


def test_a_frame_comes_back_with_the_types_it_had(session: Any) -> None:
    frame = session.createDataFrame(people()).selectExpr(
        "name", "cast(age AS smallint) age", "sex", "illness", "cast(age AS decimal(9,3)) paid",
        "array(age) many", "timestamp '2020-01-01 00:00:00' seen", "cast(1.1 AS float) part",
    )  # fmt: skip
    others = {name: {"role": "other"} for name in ("paid", "many", "seen", "part")}
    wanted = POLICY | {"columns": POLICY["columns"] | others}
    session.conf.set("spark.sql.session.timeZone", "America/Lima")
    release = shoal.anonymize(frame, wanted)
    assert session.conf.get("spark.sql.session.timeZone") == "America/Lima"
    assert views(session) == []
    assert dict(release.table.dtypes) == {k: v for k, v in frame.dtypes if k != "name"}
    rows = release.table.select("paid", "many", "seen", "part").collect()
    assert Counter(map(str, rows)) == Counter(
        map(str, frame.select("paid", "many", "seen", "part").collect())
    )
    session.conf.unset("spark.sql.session.timeZone")


def test_plans_hold_broadcasts_and_no_python(session: Any) -> None:
    where = Path("people.parquet").resolve().as_uri()
    session.createDataFrame(people()).write.parquet(where)
    release = shoal.anonymize(session.read.parquet(where), POLICY, node={"age": 1, "sex": 0})
    plan = release.table._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" in plan
    assert "Python" not in plan
    assert "SortMergeJoin" not in plan


def test_only_values_and_counts_come_to_the_driver(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.spark.engine import Spark

    crossed = watched(Spark, monkeypatch)

    def refuse(*_: Any) -> None:
        raise AssertionError

    pq.write_table(people(1200), "people.parquet")
    with monkeypatch.context() as here:
        for name in ("collect", "toPandas", "toLocalIterator", "take", "head"):
            here.setattr(type(session.range(1)), name, refuse)
        run(session, "people.parquet", "release.parquet")
    assert crossed
    assert max(map(len, crossed)) == 12  # ages, and their combinations with the sexes
    assert "name" not in {name for table in crossed for name in table.column_names}


def test_a_folder_is_not_replaced_by_what_is_read_from_it(session: Any) -> None:
    where = Path("people.parquet").resolve().as_uri()
    session.createDataFrame(people()).write.parquet(where)
    for source in ("people.parquet", session.read.parquet(where).filter("age > 20")):
        with pytest.raises(OutputError, match="is the input"):
            run(session, source, "people.parquet", force=True)
    assert len(pq.read_table("people.parquet")) == 120


# Tasks that fail


def said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_a_task_that_fails_leaves_nothing(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.spark.engine import Spark

    Path("people.parquet").mkdir()
    pq.write_table(people().slice(0, 60), "people.parquet/0.parquet")
    pq.write_table(people().slice(60), "people.parquet/1.parquet")
    whole = Path("people.parquet/1.parquet").read_bytes()
    recode = Spark.recode

    def late(self: Any, *arguments: Any, **options: Any) -> Any:
        found = recode(self, *arguments, **options)
        Path("people.parquet/1.parquet").write_bytes(b"PAR1 person 61 PAR1")
        return found

    with monkeypatch.context() as here:
        here.setattr(Spark, "recode", late)
        with pytest.raises(DataError, match="was changed while it was read") as caught:
            run(session, "people.parquet", "release.parquet")
    assert "person" not in said(caught.value)
    assert "Exception" not in str(caught.value)
    assert {path.name for path in Path().iterdir()} == {"people.parquet"}
    assert views(session) == []
    Path("people.parquet/1.parquet").write_bytes(whole)
    run(session, "people.parquet", "release.parquet")
    assert temporaries(Path()) == []


@pytest.mark.parametrize("expression", ["assert_true(name != 'person 7', name)", "cast(name AS int)"])
def test_a_row_that_cannot_be_worked_on_is_not_quoted(session: Any, expression: str) -> None:
    frame = session.createDataFrame(people()).withColumn("age", spark_expression(expression))
    with pytest.raises(DataError, match="by Spark") as caught:
        run(session, frame, "release.parquet")
    assert "person 7" not in said(caught.value)
    assert not any(Path().iterdir())


def spark_expression(text: str) -> Any:
    from pyspark.sql.functions import coalesce, col, expr

    return coalesce(expr(f"cast({text} AS string)"), col("age").cast("string"))


def test_a_full_disk_is_told(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import SparkRuntimeException

    from shoal.engines.spark.engine import Spark

    pq.write_table(people(), "people.parquet")

    def full(self: Any, *_: Any) -> None:
        with self.translate_errors():
            raise SparkRuntimeException("java.io.IOException: No space left on device")

    with monkeypatch.context() as here:
        here.setattr(Spark, "write", full)
        with pytest.raises(OutputError, match="No space is left"):
            run(session, "people.parquet", "release.parquet")
    assert {path.name for path in Path().iterdir()} == {"people.parquet"}


# Another program's tables


@pytest.mark.filterwarnings("ignore:.*infer_string")
def test_a_table_of_another_backend_is_released(tmp_path: Path) -> None:
    import ibis

    days = pa.array([datetime.date(2000, 1, 1 + i % 3) for i in range(120)])
    table = people().append_column("born", days).append_column("member", [[True, None] * 60])
    more = {
        "born": {"role": QUASI, "hierarchy": {"dates": ["month"]}},
        "member": {"role": QUASI, "hierarchy": "flat"},
    }
    wanted = POLICY | {"columns": POLICY["columns"] | more}
    expected = Counter(map(str, shoal.anonymize(table, wanted).table.to_pylist()))
    backend = ibis.sqlite.connect()
    release = shoal.anonymize(backend.create_table("people", table), wanted)
    assert isinstance(release.table, ibis.expr.types.Table)
    assert Counter(map(str, release.table.to_pyarrow().to_pylist())) == expected
    with pytest.raises(UsageError, match="from the Ibis backend 'sqlite'"):
        shoal.anonymize(backend.table("people"), wanted, output=tmp_path / "release.csv")
    backend.disconnect()


def test_what_another_backend_lacks_is_named() -> None:
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("polars")
    table = ibis.polars.connect().create_table("people", people())
    with pytest.raises(DataError, match="'polars' does not support a required operation: RandomScalar"):
        shoal.anonymize(table, POLICY)


# The command line, and sessions of its own


def command(*options: str) -> list[str]:
    return [
        str(SHOAL), "anonymize", "people.csv", "--policy", "policy.yaml", "--engine", "spark",
        "--memory-limit", "1GB", *options,
    ]  # fmt: skip


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and a policy, and one for what programs put aside."""
    monkeypatch.chdir(tmp_path)
    people().to_pandas().to_csv("people.csv", index=False)
    Path("policy.yaml").write_text(json.dumps(POLICY), encoding="utf-8")
    aside = tmp_path / "aside"
    aside.mkdir()
    monkeypatch.setenv("TMPDIR", str(aside))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", QUICK_JAVA)
    monkeypatch.setattr(tempfile, "tempdir", None)
    return aside


def emptied(folder: Path) -> None:
    """See that a folder is empty, once Java has noticed who is gone."""
    until = time.monotonic() + 300
    while any(folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(folder.iterdir())


def test_two_workers_release_what_one_does(desk: Path) -> None:
    from pyspark.find_spark_home import _find_spark_home

    work = Path(_find_spark_home(), "work")
    had = work.exists()
    done = subprocess.run(
        command("--output", "release.parquet", "--spark-master", "local-cluster[2,1,512]", "--json"),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout)["verified"]
    expected = shoal.anonymize("people.csv", POLICY).table
    found = pq.read_table("release.parquet")
    assert Counter(map(str, found.to_pylist())) == Counter(map(str, expected.to_pylist()))
    assert {path.name for path in Path().iterdir()} == {
        "people.csv", "policy.yaml", "aside", "release.parquet", "release.parquet.private",
        "release.parquet.codebook.csv",
    }  # fmt: skip
    emptied(desk)
    if not had:
        shutil.rmtree(work, ignore_errors=True)


SIGNALLED = """
import os, sys, threading, time
from pathlib import Path
from shoal.cli.app import main
from shoal.workflow.release import stage
number, sent = int(sys.argv.pop(1)), threading.Event()
def strike():
    while not any(path.name.endswith(".tmp.csv") for path in Path().iterdir()):
        time.sleep(0.01)
    os.kill(os.getpid(), number)
    sent.set()
threading.Thread(target=strike, daemon=True).start()
real = stage.FolderStage.digest, stage.FileStage.digest
def late(self, digest):
    sent.wait()
    return digest(self)
stage.FolderStage.digest = lambda self: late(self, real[0])
stage.FileStage.digest = lambda self: late(self, real[1])
main()
"""


def stopped(output: str, number: int) -> tuple[int, str]:
    """Run a release that sends itself a signal while it is written, and does not commit before."""
    _, *words = command("--output", output, "--spark-master", "local[1]")
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(int(number)), *words],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_a_run_that_is_killed_leaves_nothing_after_the_next(desk: Path) -> None:
    before = {path.name for path in Path().iterdir()}
    code, words = stopped("release.csv", signal.SIGKILL)
    assert code == -signal.SIGKILL, words
    assert not Path("release.csv").exists()
    assert temporaries(Path())
    emptied(desk)
    run(spark(), "people.csv", "release.csv")
    own = {"release.csv", "release.csv.private", "release.csv.codebook.csv"}
    assert {path.name for path in Path().iterdir()} == before | own


def test_ctrl_c_leaves_nothing_and_says_nothing(desk: Path) -> None:
    before = {path.name for path in Path().iterdir()}
    code, words = stopped("release.csv", signal.SIGINT)
    assert code == 130, words
    assert "Traceback" not in words
    assert {path.name for path in Path().iterdir()} == before
    emptied(desk)


def test_what_is_missing_is_told(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java, on a master that is none, and to a table that nobody could find again."""
    cases = {
        "Java 17 (JAVA_HOME)": ({"JAVA_HOME": str(desk), "PATH": "/nowhere"}, "release.csv", "local[1]"),
        "Cannot start Spark on 'local[x': ": ({}, "release.csv", "local[x"),
        "loses when it stops": ({}, "release", "local[1]"),
    }
    for words, (environment, output, master) in cases.items():
        if "PATH" in environment:
            bash = desk / "bin"
            bash.mkdir()
            for name in ("bash", "dirname", "cat", "ls", "tr", "grep", "sed", "env"):
                if found := shutil.which(name):
                    (bash / name).symlink_to(found)
            environment = environment | {"PATH": str(bash)}
        done = subprocess.run(
            command("--output", output, "--spark-master", master),
            capture_output=True,
            text=True,
            timeout=600,
            env=os.environ | environment,
        )
        assert done.returncode == 2, done.stderr
        told = " ".join(done.stderr.split())
        assert words.rstrip(": ") in told
        assert "Traceback" not in told
        assert temporaries(Path()) == []
        shutil.rmtree(desk / "bin", ignore_errors=True)
        emptied(desk)


def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "shoal.engines.spark.engine", raising=False)
    with pytest.raises(DataError, match=re.escape("pip install 'shoal[spark]'")):
        choose_engine("spark", None)


def test_a_master_is_only_spark_s() -> None:
    with pytest.raises(UsageError, match="spark_master is for the engine 'spark'"):
        choose_engine("duckdb", None, None, "local[1]")


@pytest.mark.parametrize("entries", [{}, {"suppressed": "mask"}])
def test_unchanged_columns_reveal_the_same_as_in_a_frame(session: Any, entries: dict[str, Any]) -> None:
    from staff_tables import PLANTED, pairs, staff, staff_policy

    table = pa.Table.from_pandas(staff(150))
    wanted = staff_policy(**entries)
    own = shoal.anonymize(table, wanted)
    found = run(session, session.createDataFrame(table), "release.parquet", policy=wanted)
    assert pairs(found) == PLANTED
    assert found.revealed == own.revealed
    assert found.unique_with_unchanged == own.unique_with_unchanged
    with pytest.raises(ReleaseRefused):
        run(session, session.createDataFrame(table), "other.parquet", policy=wanted | {"fail": ["revealed"]})
    assert not Path("other.parquet").exists()
