"""What the code blocks of the docs speak of: tables of patients, a policy, releases, and servers."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pyarrow as pa
import yaml
from pyarrow import csv, parquet

import shoal
from code_blocks import README, ROOT, blocks
from servers import postgres, spark
from shoal.sample import admissions
from studio import running

RECORDS = 1000
# What pages call their files: copies of one table, and of its release.
TABLES = ("patients.csv", "next-quarter.csv", "2025-q1.csv", "2025-q2.csv", "tables/patients.csv")
RELEASES = ("release.csv", "old.csv", "new.csv")
KNOWN: dict[str, dict[str, str]] = {  # columns have other names there
    "register.csv": {},
    "voters.csv": {"age": "years", "postcode": "zip"},
}
PROJECT = {  # as small as one of ARX can be; a policy for patients.csv comes of it
    "input/definition.xml": "<definition>"
    "<assigment><name>name</name><type>IDENTIFYING_ATTRIBUTE</type><datatype>String</datatype></assigment>"
    "<assigment><name>age</name><type>INSENSITIVE_ATTRIBUTE</type><datatype>Integer</datatype></assigment>"
    "<assigment><name>sex</name><type>QUASI_IDENTIFYING_ATTRIBUTE</type><datatype>String</datatype>"
    "<ref>hierarchies/sex.csv</ref><min>All</min><max>All</max></assigment>"
    "<assigment><name>postcode</name><type>INSENSITIVE_ATTRIBUTE</type><datatype>String</datatype></assigment>"
    "<assigment><name>diagnosis</name><type>SENSITIVE_ATTRIBUTE</type><datatype>String</datatype></assigment>"
    "</definition>",
    "input/config.xml": "<config><relativeMaxOutliers>0.0</relativeMaxOutliers><metric>Height</metric>"
    "<criteria><criterion>3-anonymity</criterion></criteria></config>",
    "input/hierarchies/sex.csv": "female;*\nmale;*\nother;*\nU;*\n",
}


@contextmanager
def furnished(folder: Path, page: Path, code: str) -> Iterator[dict[str, str]]:
    """Give the code of a page the files and servers that it names; say how to reach these."""
    own = [block.text for block in blocks(page, "yaml") if block.file == "policy.yaml"]
    policy = own[0] if own else blocks(README, "yaml")[0].text
    made = set(re.findall(r"(?:--output |-o |output=.)([\w./-]+)", code))
    if "shoal demo" not in code:
        _put(folder, policy, code, made)
    if "dbt run" in code:
        shutil.copytree(ROOT / "examples" / "dbt", folder, dirs_exist_ok=True)
    with ExitStack() as stack:
        environment = {}
        if "postgres" in code:
            environment |= stack.enter_context(_in_postgres(policy))
        if "spark" in code:
            stack.enter_context(_in_spark(policy))
        if "$STUDIO" in code:
            studio = stack.enter_context(running())
            environment |= {"STUDIO": studio.address, "TOKEN": str(studio.keys.token)}
        yield environment


def _put(folder: Path, policy: str, code: str, made: set[str]) -> None:
    """Put the files that the code names, and does not make, into a folder."""
    shelf = _shelf(policy)
    for kept in shelf.rglob("*"):
        name = str(kept.relative_to(shelf))
        about = name.split(".private")[0]
        named = about in code or f"--folder {kept.parent.name}" in code
        if kept.is_file() and named and about not in made:
            target = folder / name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy(kept, target)


@cache
def _patients(policy: str) -> pa.Table:
    """Return the sample's columns that a policy names."""
    return admissions(RECORDS).select(list(yaml.safe_load(policy)["columns"]))


@cache
def _shelf(policy: str) -> Path:
    """Make every file that a page may name, once for all that have one policy."""
    shelf = Path(tempfile.mkdtemp(prefix="shelf"))
    atexit.register(shutil.rmtree, shelf, ignore_errors=True)
    patients = _patients(policy)
    (shelf / "policy.yaml").write_text(policy, encoding="utf-8")
    (shelf / "tables").mkdir()
    for name in TABLES:
        csv.write_csv(patients, shelf / name)
    parquet.write_table(patients, shelf / "patients.parquet")
    known = patients.drop_columns(["diagnosis"])
    for name, renamed in KNOWN.items():
        columns = [renamed.get(one, one) for one in known.column_names]
        csv.write_csv(known.rename_columns(columns), shelf / name)
    first, *others = RELEASES
    shoal.anonymize(shelf / TABLES[0], shelf / "policy.yaml", output=shelf / first)
    for name in others:
        shutil.copy(shelf / first, shelf / name)
        shutil.copytree(shelf / f"{first}.private", shelf / f"{name}.private")
    with zipfile.ZipFile(shelf / "study.deid", "w") as project:
        for name, text in PROJECT.items():
            project.writestr(name, text)
    return shelf


@contextmanager
def _in_postgres(policy: str) -> Iterator[dict[str, str]]:
    """Hold the patients as a table of a database, in a schema that goes again."""
    server = postgres()
    rows = _shelf(policy) / TABLES[0]
    columns = ", ".join(f"{name} text" for name in _patients(policy).column_names)
    server.connection.execute(f"CREATE SCHEMA clinic; CREATE TABLE clinic.patients ({columns})")
    try:
        copying = "COPY clinic.patients FROM STDIN (FORMAT csv, HEADER)"
        with server.connection.cursor() as cursor, cursor.copy(copying) as copy:
            copy.write(rows.read_bytes())
        server.connection.execute("CREATE TABLE clinic.admissions AS TABLE clinic.patients")
        yield server.environment
    finally:
        server.connection.execute("DROP SCHEMA clinic CASCADE")


@contextmanager
def _in_spark(policy: str) -> Iterator[None]:
    """Hold the patients as a table of Spark's catalogue, in a database that goes again."""
    session = spark()
    session.sql("CREATE DATABASE clinic")
    try:
        frame = session.createDataFrame(_patients(policy))
        frame.write.saveAsTable("clinic.patients")
        yield
    finally:
        session.sql("DROP DATABASE clinic CASCADE")
