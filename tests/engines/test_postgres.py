"""PostgreSQL: every kind of column, odd names, rights, and runs that are cut off."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import shoal
from servers import needs_postgres, postgres, watched
from shoal.cli.app import app
from shoal.errors import DataError, OutputError, ReleaseRefused, ShoalError, UsageError
from shoal.workflow.session import choose_engine

pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.xdist_group("servers"),
    needs_postgres,
]

QUASI = "quasi-identifier"
ODD = 'x"; drop table people; --'
SECRET = "hunter2-secret"
SHOAL = Path(sys.executable).with_name("shoal")


def policy(**columns: Any) -> dict[str, Any]:
    roles: dict[str, Any] = {
        "name": {"role": "identifier"},
        "age": {"role": QUASI, "hierarchy": {"intervals": [10]}},
        "sex": {"role": QUASI, "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
    }
    return {"columns": roles | columns, "models": [{"k-anonymity": {"k": 3}}], "suppression_limit": "10%"}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A database with 200 people in it, and a folder of one's own."""
    own = postgres()
    for name, value in own.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.chdir(tmp_path)
    connection = own.connection
    connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    connection.execute(
        "CREATE TABLE people AS SELECT 'person ' || i AS name, (20 + i % 30)::smallint AS age, "
        "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, 'illness ' || i % 7 AS illness "
        "FROM generate_series(1, 200) AS i"
    )
    yield connection
    settled(connection)  # in every test


def run(output: str = "release", source: Any = "people", **options: Any) -> shoal.Release:
    return shoal.anonymize(
        source, options.pop("policy", policy()), output=output, engine="postgres", **options
    )


def test_a_note_that_cannot_be_made_ends_no_run(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(site: Any, *asked: Any) -> Any:
        site._server.execute("SELECT 1 / 0")

    monkeypatch.setattr("shoal.engines.relational.columns._worthwhile", refused)
    assert run().notes == ()
    assert server.execute("SELECT count(*) FROM release").fetchone()[0] == 200


def left(connection: Any) -> list[str]:
    return [row[0] for row in connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'shoal%'")]


def settled(connection: Any) -> None:
    """See that nothing of ours is left in the database, once it has noticed who is gone."""
    until = time.monotonic() + 300
    while left(connection) and time.monotonic() < until:
        time.sleep(0.05)
    assert left(connection) == []


def tables(connection: Any) -> set[str]:
    return {
        row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    }


def rows(connection: Any, name: str = "release") -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute(f"SELECT * FROM {name}").fetchall())


# What is read


KINDS = {
    "uuid": ("uuid", "('00000000-0000-0000-0000-00000000000' || i % 2)::uuid", "text"),
    "char": ("char(5)", "CASE i % 2 WHEN 0 THEN 'ab' ELSE 'a' END", "text"),
    "enum": ("mood", "(ARRAY['sad', 'ok'])[1 + i % 2]::mood", "text"),
    "timestamptz": (
        "timestamptz",
        "timestamptz '2020-03-29 00:30:00.25+01' + i % 3 * interval '1 hour'",
        "timestamptz",
    ),
    "timestamp": ("timestamp", "timestamp '1901-01-01' + i % 2 * interval '1 second'", "timestamp"),
    "time": ("time", "time '10:30:15.5' + i % 2 * interval '1 hour'", "time"),
    "timetz": ("timetz", "timetz '10:30+01' + i % 2 * interval '1 hour'", "text"),
    "date": ("date", "date '0900-01-01' + i % 2", "date"),
    "jsonb": ("jsonb", "jsonb_build_object('a', i % 2)", "text"),
    "numeric": ("numeric", "i % 2 + 0.123456789012345678901", "numeric"),
    "large": ("numeric(38, 2)", "123456789012345678901234567890.25 + i % 2", "numeric(38,2)"),
    "smallint": ("smallint", "i % 2", "int2"),
    "bigint": ("bigint", "9223372036854775806 + i % 2", "int8"),
    "real": ("real", "i % 2 * 0.1", "float4"),
    "double": ("double precision", "i % 3 * 0.1", "float8"),
    "boolean": ("boolean", "i % 2 = 0", "bool"),
    "varchar": ("varchar(20)", "'x  ' || i % 2", "varchar(20)"),
    "domain": ("code", "'c' || i % 2", "text"),
    "interval": ("interval", "i % 2 * interval '1 day'", "text"),
    "inet": ("inet", "'10.0.0.1'::inet + i % 2", "text"),
    "constant": ("integer", "7", "int4"),
    "empty": ("text", "NULL", "text"),
}


@pytest.fixture
def kinds(server: Any) -> Any:
    server.execute("DROP TYPE IF EXISTS mood CASCADE; CREATE TYPE mood AS ENUM ('sad', 'ok')")
    server.execute("CREATE DOMAIN code AS text CHECK (value LIKE 'c%')")
    columns = ", ".join(
        f'CASE WHEN i % 8 = 0 THEN NULL ELSE {value} END::{kind} AS "{name}"'
        for name, (kind, value, _) in KINDS.items()
    )
    server.execute(f"CREATE TABLE kinds AS SELECT {columns}, i AS number FROM generate_series(1, 96) AS i")
    server.execute("CREATE VIEW seen AS SELECT * FROM kinds")
    return server


def test_a_column_of_any_kind_can_be_told_apart(kinds: Any) -> None:
    """Each column in turn, as it is; a view is read as a table is."""
    for name, (_, _, released) in KINDS.items():
        roles = {other: {"role": "identifier"} for other in KINDS}
        roles |= {"number": {"role": "other"}, name: {"role": QUASI, "hierarchy": "flat", "max_level": 0}}
        run(source="seen", force=True, policy={"columns": roles, "models": [{"k-anonymity": {"k": 3}}]})
        found = kinds.execute(f'SELECT number, "{name}"::text FROM release').fetchall()
        assert Counter(found) == Counter(
            kinds.execute(f'SELECT number, "{name}"::text FROM kinds').fetchall()
        )
        described = kinds.execute("SELECT * FROM release LIMIT 0").description
        assert {column.name: column.type_display for column in described}[name] == released
    kinds.execute("DROP TABLE release")


def test_numbers_that_are_equal_look_alike(server: Any) -> None:
    server.execute("CREATE TABLE scales (n numeric, a text)")
    server.execute(
        "INSERT INTO scales SELECT CASE i % 2 WHEN 0 THEN 1.0 ELSE 1.00 END FROM generate_series(1, 8) i"
    )
    roles = {"n": {"role": QUASI, "hierarchy": "flat", "max_level": 0}, "a": {"role": "identifier"}}
    run(source="scales", policy={"columns": roles, "models": [{"k-anonymity": {"k": 8}}]})
    assert server.execute("SELECT DISTINCT n::text FROM release").fetchall() == [("1",)]


def test_texts_that_only_a_collation_takes_for_the_same_are_refused(server: Any) -> None:
    server.execute(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false); "
        "ALTER TABLE people ALTER sex TYPE text COLLATE loose"
    )
    with pytest.raises(DataError, match="Column 'sex' has a collation"):
        run()


def test_a_column_of_lists_is_refused_by_name(server: Any) -> None:
    server.execute("ALTER TABLE people ALTER age TYPE integer[] USING ARRAY[age]")
    with pytest.raises(DataError, match="Column 'age' holds nested values"):
        run()


@pytest.mark.parametrize("name", [ODD, "größe %s {} x", "People", "a.b", "select", "a'b\\n"])
def test_names_are_quoted(server: Any, name: str) -> None:
    from psycopg import sql

    schema, own = sql.Identifier(name), sql.Identifier(name, name)
    server.execute(sql.SQL("DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}").format(schema))
    query = "CREATE TABLE {} AS SELECT age AS {}, sex FROM people"
    server.execute(sql.SQL(query).format(own, sql.Identifier(name)))
    quoted = '"' + name.replace('"', '""') + '"'
    roles = {
        name: {"role": QUASI, "hierarchy": {"intervals": [10]}},
        "sex": {"role": QUASI, "hierarchy": "flat"},
    }
    wanted = {"columns": roles, "models": [{"k-anonymity": {"k": 3}}]}
    run(f'{quoted}.{quoted[:-1]} 2"', f"{quoted}.{quoted}", policy=wanted)
    found = sql.SQL("SELECT sum(1) FROM {}").format(sql.Identifier(name, f"{name} 2"))
    assert server.execute(found).fetchone() == (200,)
    assert "people" in tables(server)
    server.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(schema))


def test_a_name_without_quotes_is_taken_as_it_is(server: Any) -> None:
    with pytest.raises(DataError, match="no table or view 'PEOPLE'"):
        run(source="PEOPLE")


@pytest.mark.parametrize("name", ["", ".", "a.b.c", '"a', 'a"b', "a.", ".a"])
def test_what_is_no_name_is_refused(server: Any, name: str) -> None:
    with pytest.raises(UsageError, match="Expected the name of a table"):
        run(source=name)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://shoal:{SECRET}@host/db",
        f"postgres://shoal:{SECRET}@host.example.org",
        f"host=h user=u password={SECRET}",
    ],
)
@pytest.mark.parametrize("engine", ["postgres", "auto"])
def test_an_address_is_refused_and_not_shown(server: Any, address: str, engine: str, tmp_path: Path) -> None:
    Path("policy.yaml").write_text(json.dumps(policy()), encoding="utf-8")
    file = "" if engine == "postgres" else ".csv"
    for data, output in ((address, f"release{file}"), (f"people{file}", address)):
        done = invoke("anonymize", data, "--policy", "policy.yaml", "--output", output, "--engine", engine)
        assert done.exit_code == 2
        assert "not an address" in done.stderr or data == f"people{file}"
        assert SECRET not in done.output + done.stderr


# What is released


def test_only_new_tables_are_made_unless_forced(server: Any) -> None:
    server.execute("CREATE TABLE release AS SELECT 1 AS mine")
    with pytest.raises(OutputError, match=r"'release' exists\. Use force=True"):
        run()
    assert rows(server) == {(1,): 1}
    run(force=True)
    first = rows(server)
    assert sum(first.values()) == 200
    run(force=True)
    assert rows(server) == first
    assert left(server) == []  # at once, not when the server notices
    assert {path.name for path in Path().iterdir()} == {"release.private", "release.codebook.csv"}
    (mark,) = server.execute("SELECT obj_description('release'::regclass)").fetchone()
    audit = json.loads(Path("release.private/audit.json").read_text(encoding="utf-8"))
    assert mark == f"shoal {audit['release_sha256']}"


def test_the_old_table_stays_where_a_run_fails(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.postgres.engine import Postgres

    run()
    before = rows(server), files()

    def fails(*_: Any, **__: Any) -> None:
        raise OutputError("no")

    monkeypatch.setattr(Postgres, "publish", fails)
    with pytest.raises(OutputError, match="no"):
        run(force=True)
    assert (rows(server), files()) == before


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize("source", ["people", "public.people", '"people"', 'public."people"'])
@pytest.mark.parametrize("output", ["people", 'public."people"'])
def test_the_input_is_never_the_output(server: Any, source: str, output: str) -> None:
    with pytest.raises(OutputError, match="is the input"):
        run(output, source, force=True)
    assert sum(rows(server, "people").values()) == 200


def test_the_input_is_found_along_the_search_path(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.execute(
        "DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other; ALTER TABLE people SET SCHEMA other"
    )
    monkeypatch.setenv("PGOPTIONS", "-c search_path=other,public")
    with pytest.raises(OutputError, match="is the input"):
        run("other.people", "people", force=True)
    run("public.people", "people")
    assert sum(rows(server, "public.people").values()) == 200
    server.execute("DROP SCHEMA other CASCADE")


def test_a_view_is_not_replaced_nor_what_is_under_one(server: Any) -> None:
    server.execute("CREATE VIEW release AS SELECT * FROM people")
    with pytest.raises(OutputError, match="something other than a table"):
        run(force=True)
    with pytest.raises(OutputError, match="depend on the table"):
        run("people", "release", force=True)
    assert sum(rows(server, "people").values()) == 200


def test_a_table_that_appears_meanwhile_is_not_replaced(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.postgres.engine import Postgres

    place = Postgres.publish

    def late(self: Any, *arguments: Any, **options: Any) -> None:
        server.execute("CREATE TABLE release AS SELECT 1 AS mine")
        place(self, *arguments, **options)

    monkeypatch.setattr(Postgres, "publish", late)
    with pytest.raises(OutputError, match="appeared"):
        run()
    assert rows(server) == {(1,): 1}
    assert not any(Path().iterdir())


def test_missing_rights_are_told(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.execute(
        "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA public TO reader"
    )
    monkeypatch.setenv("PGUSER", "reader")
    with pytest.raises(DataError, match="does not allow this"):
        run()
    server.execute("GRANT SELECT ON people TO reader")
    with pytest.raises(DataError, match="the right to read or to create"):
        run()
    assert not any(Path().iterdir())
    assert tables(server) == {"people"}
    server.execute("GRANT CREATE ON SCHEMA public TO reader")
    run()
    server.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_what_is_not_there_is_named(server: Any) -> None:
    with pytest.raises(DataError, match="no table or view 'peple'"):
        run(source="peple")
    with pytest.raises(OutputError, match="no such schema"):
        run("nowhere.release")
    assert not any(Path().iterdir())


def test_all_is_read_in_one_state(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.postgres.engine import Postgres

    recode = Postgres.recode

    def late(self: Any, *arguments: Any, **options: Any) -> Any:
        server.execute(
            "INSERT INTO people VALUES ('new', 20, 'f', 'rare'); DELETE FROM people WHERE age = 21"
        )
        return recode(self, *arguments, **options)

    monkeypatch.setattr(Postgres, "recode", late)
    release = run()
    assert release.records == 200
    assert server.execute("SELECT count(*), bool_or(illness = 'rare') FROM release").fetchone() == (
        200,
        False,
    )


def test_only_values_and_counts_cross_the_wire(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.postgres.engine import Postgres

    crossed = watched(Postgres, monkeypatch)

    server.execute("INSERT INTO people SELECT people.* FROM people, generate_series(1, 9)")
    run(policy=policy(illness={"role": "other"}))
    assert crossed
    assert max(map(len, crossed)) == 30  # ages, and combinations of them with the sexes; of 2000 rows
    assert "name" not in {name for table in crossed for name in table.column_names}


def test_a_frame_is_released_to_a_table(server: Any) -> None:
    frame = pa.table(
        {"age": [20, 21] * 10, "sex": ["f", None] * 10, "name": ["x"] * 20, "illness": ["y"] * 20}
    )
    run(source=frame)
    assert sum(rows(server).values()) == 20


def test_a_release_comes_back_as_a_table_in_memory(server: Any) -> None:
    release = shoal.anonymize("people", policy(), engine="postgres")
    assert isinstance(release.table, pa.Table)
    assert len(release.table) == 200
    assert shoal.verify("people", policy(name={"role": "other"}), engine="postgres").records == 200


def test_persons_are_counted_by_the_recipe_and_the_table_that_was_read(server: Any) -> None:
    wish = policy() | {"models": [{"k-anonymity": {"k": 3, "unit": "name"}}], "suppressed": "mask"}
    release = shoal.anonymize("people", wish, output="released", engine="postgres")
    found = shoal.verify("released", wish, engine="postgres")
    assert (found.models[0].passed, found.reasons) == (None, ())
    assert "--engine postgres" in str(found.models[0].command)
    assert "released.private" in str(found.models[0].command)
    options: dict[str, Any] = {"recipe": release.recipe, "reference": "people", "engine": "postgres"}
    assert shoal.verify("released", wish, **options).verified


def test_an_ibis_table_stays_in_its_database(server: Any) -> None:
    import ibis

    own = postgres().environment
    backend = ibis.postgres.connect(host=own["PGHOST"], user="shoal", database="postgres", port=5432)
    server.execute("ALTER TABLE people ALTER sex TYPE char(3), ADD COLUMN key uuid")
    wanted = policy(key={"role": QUASI, "hierarchy": "flat"})
    people = backend.table("people")
    release = shoal.anonymize(people, wanted)
    assert isinstance(release.table, ibis.expr.types.Table)
    assert release.table.count().to_pyarrow().as_py() == 200
    with pytest.raises(OutputError, match="is the input"):
        shoal.anonymize(people.filter(people.age > 1), wanted, output="people", force=True)
    backend.disconnect()
    backend = ibis.postgres.connect(host=own["PGHOST"], user="shoal", database="postgres", port=5432)
    shoal.anonymize(backend.table("people"), wanted, output="release")
    assert left(server) == []
    assert sum(rows(server).values()) == 200
    backend.disconnect()


# What is never said


def said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_who_cannot_enter_is_told_how_and_the_password_is_not(
    server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (("PGHOST", str(tmp_path)), ("PGPORT", "1"), ("PGPORT", "word"), ("PGUSER", "nobody")):
        with monkeypatch.context() as here:
            here.setenv(name, value)
            with pytest.raises(DataError, match="Set PGHOST, PGPORT, PGDATABASE and PGUSER") as caught:
                run()
        assert SECRET not in said(caught.value)
    assert not any(Path().iterdir())


def test_no_file_of_a_release_holds_the_password(server: Any) -> None:
    release = run(mapping=True)
    held = [SECRET.encode() in content for content in files().values()]
    assert len(held) > 3
    assert not any(held)
    assert SECRET not in json.dumps(release.to_dict())


def test_what_the_database_says_of_a_row_is_not_repeated(server: Any) -> None:
    server.execute("CREATE VIEW casts AS SELECT name::integer AS age, sex, illness, name FROM people")
    server.execute("CREATE VIEW shares AS SELECT age / (age - 21) AS age, sex, illness, name FROM people")
    for view, code in (("casts", "22P02"), ("shares", "22012")):
        with pytest.raises(DataError, match=r"refused a query: a value is not valid for its use") as caught:
            run(source=view)
        assert str(caught.value).endswith(f"The log of the database says more, under the code {code}.")
        assert "person 1" not in said(caught.value)
    assert not any(Path().iterdir())


# Runs that are cut off


def struck(moment: str, monkeypatch: pytest.MonkeyPatch, strike: Callable[[Any], None]) -> None:
    """Let something happen to the connection just before a step of a run."""
    from shoal.engines.postgres.engine import Postgres

    step = getattr(Postgres, moment)

    def late(self: Any, *arguments: Any, **options: Any) -> Any:
        strike(self)
        return step(self, *arguments, **options)

    monkeypatch.setattr(Postgres, moment, late)


@pytest.mark.parametrize("moment", ["same", "has", "open", "upload", "recode", "write", "mark", "publish"])
def test_a_connection_that_is_lost_leaves_nothing(
    server: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def terminate(engine: Any) -> None:
        server.execute("SELECT pg_terminate_backend(%s, 60000)", (engine.connection.con.info.backend_pid,))

    with monkeypatch.context() as here:
        struck(moment, here, terminate)
        with pytest.raises(DataError, match="connection to the database was lost") as caught:
            run()
    assert SECRET not in said(caught.value)
    settled(server)
    assert tables(server) == {"people"}
    assert not any(Path().iterdir())
    run()
    assert sum(rows(server).values()) == 200


@contextmanager
def in_a_query(connection: Any, function: str) -> Iterator[None]:
    """Call a function of the server on the run's process once that sleeps in a query."""
    connection.execute("CREATE VIEW slow AS SELECT people.* FROM people, pg_sleep(3600)")
    ended = threading.Event()

    def strike() -> None:
        query = (
            f"SELECT {function}(pid) FROM pg_stat_activity "
            "WHERE application_name = 'shoal' AND wait_event = 'PgSleep'"
        )
        while not connection.execute(query).fetchall() and not ended.wait(0.02):
            pass

    other = threading.Thread(target=strike)
    other.start()
    try:
        yield
    finally:
        ended.set()
        other.join()


def test_a_connection_that_is_lost_in_a_query_leaves_nothing(server: Any) -> None:
    lost = pytest.raises(DataError, match="connection to the database was lost")
    with in_a_query(server, "pg_terminate_backend"), lost:
        run(source="slow")
    assert not any(Path().iterdir())


def test_a_connection_that_is_lost_as_it_commits_is_found_out(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is in place although nobody was told so: its recipe goes with it."""
    from shoal.engines.postgres.engine import Postgres

    place = Postgres.publish

    def late(self: Any, *arguments: Any, **options: Any) -> None:
        place(self, *arguments, **options)
        self.connection.con.close()
        raise DataError("lost")

    with monkeypatch.context() as here:
        here.setattr(Postgres, "publish", late)
        run()
    audit = json.loads(Path("release.private/audit.json").read_text(encoding="utf-8"))
    (mark,) = server.execute("SELECT obj_description('release'::regclass)").fetchone()
    assert mark == f"shoal {audit['release_sha256']}"
    assert {path.name for path in Path().iterdir()} == {"release.private", "release.codebook.csv"}


def test_a_query_that_the_server_cancels_is_no_ctrl_c(server: Any) -> None:
    cancelled = pytest.raises(DataError, match="cancelled a query")
    with in_a_query(server, "pg_cancel_backend"), cancelled:
        run(source="slow")


def test_a_transaction_may_rest_while_a_search_goes_on(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's limit, were it asked, would end the connection at the first rest."""
    monkeypatch.setenv("PGOPTIONS", "-c idle_in_transaction_session_timeout=1")
    limits = []

    def ask(engine: Any) -> None:
        connection = engine.connection.con
        limits.append(connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()[0])

    struck("recode", monkeypatch, ask)
    run()
    assert limits == ["0"]
    assert "release" in tables(server)


def test_a_server_without_room_is_told_and_nothing_is_left(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.execute("INSERT INTO people SELECT p.* FROM people p, generate_series(1, 200)")
    monkeypatch.setenv("PGOPTIONS", "-c temp_file_limit=0 -c work_mem=64kB")
    with pytest.raises(OutputError, match="no room left"):
        run()
    assert tables(server) == {"people"}
    assert not any(Path().iterdir())
    monkeypatch.delenv("PGOPTIONS")
    run()


@pytest.mark.parametrize("moment", ["upload", "write", "publish"])
def test_a_full_disk_of_the_server_is_told(server: Any, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    import psycopg

    def full(engine: Any) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise psycopg.errors.DiskFull("could not extend file: person 1")

        monkeypatch.setattr(engine.connection.con, "execute", refuse)

    with monkeypatch.context() as here:
        struck(moment, here, full)
        with pytest.raises(OutputError, match="no room left") as caught:
            run()
    assert "person 1" not in said(caught.value)
    assert tables(server) == {"people"}
    settled(server)


# The command line


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_every_command_that_reads_a_table_reads_one_here(server: Any) -> None:
    wanted, on = Path("policy.yaml"), ("--engine", "postgres")
    guessed = invoke("init", "people", "--output", "guessed.yaml", "--yes", *on)
    assert guessed.exit_code == 0, guessed.stderr
    assert "age" in Path("guessed.yaml").read_text(encoding="utf-8")
    wanted.write_text(json.dumps(policy()), encoding="utf-8")
    done = invoke("anonymize", "people", "--policy", wanted, "--output", "release", *on, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["output"] == "release"
    again = invoke("anonymize", "people", "--policy", wanted, "--output", "release", *on)
    assert again.exit_code == 2
    assert "Use --force" in again.stderr
    verified = invoke("verify", "release", "--policy", wanted, *on)
    assert verified.exit_code == 0, verified.stderr
    applied = invoke("apply", "release.private", "people", "--output", "later", *on)
    assert applied.exit_code == 0, applied.stderr
    assert rows(server, "later") == rows(server)
    diagnosed = invoke(
        "diagnose", "people", "--question", "3", "--k", "3", "--columns", "age,sex", *on, "--json"
    )
    assert diagnosed.exit_code == 0, diagnosed.stderr
    profiled = invoke("profile", "people", "--policy", wanted, "--output", "profile.json", *on)
    assert profiled.exit_code == 0, profiled.stderr
    assert left(server) == []


def killed(moment: str, number: int, connection: Any) -> tuple[int, str]:
    """Send a signal to a run when the server is seen to work on a statement."""
    command = [
        SHOAL,
        "anonymize",
        "slow",
        "--policy",
        "policy.yaml",
        "--output",
        "release",
        "--engine",
        "postgres",
    ]
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        while process.poll() is None:
            if connection.execute(
                "SELECT 1 FROM pg_stat_activity WHERE application_name = 'shoal' AND query ~ %s", (moment,)
            ).fetchone():
                break
            time.sleep(0.005)
        process.send_signal(number)
        _, words = process.communicate(timeout=300)
    return process.returncode, words


@pytest.mark.parametrize("moment", ["COPY .SELECT", '^CREATE TABLE "shoal_'])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_killed_leaves_nothing(
    server: Any, monkeypatch: pytest.MonkeyPatch, moment: str, number: int
) -> None:
    """The statement of that moment does not end by itself; the server soon notices a client that is gone."""
    server.execute(
        "CREATE VIEW slow AS SELECT people.* FROM people, "
        f"LATERAL (SELECT CASE WHEN current_query() ~ '{moment}' THEN pg_sleep(3600) END "
        "WHERE people.age > 0) AS s"
    )
    monkeypatch.setenv("PGOPTIONS", "-c client_connection_check_interval=200")
    Path("policy.yaml").write_text(json.dumps(policy()), encoding="utf-8")
    code, words = killed(moment, number, server)
    assert code == {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}[signal.Signals(number)], (
        words
    )
    assert "Traceback" not in words
    settled(server)
    assert tables(server) == {"people"}
    if number != signal.SIGKILL:
        assert [path.name for path in Path().iterdir()] == ["policy.yaml"]
    run()
    assert sum(rows(server).values()) == 200
    assert {path.name for path in Path().iterdir()} == {
        "policy.yaml",
        "release.private",
        "release.codebook.csv",
    }


# What it needs


@pytest.mark.parametrize("name", ["psycopg"])
def test_a_missing_driver_is_named_with_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "shoal.engines.postgres.engine", raising=False)
    with pytest.raises(DataError, match=re.escape("pip install 'shoal[postgres]'")):
        choose_engine("postgres", None)
    assert issubclass(DataError, ShoalError)


def test_values_that_cannot_be_read_name_their_column(server: Any) -> None:
    server.execute(
        "CREATE TABLE endless AS SELECT 'infinity'::date AS born, 'f' AS sex FROM generate_series(1, 9)"
    )
    columns = {
        "born": {"role": QUASI, "hierarchy": {"dates": ["year"]}},
        "sex": {"role": QUASI, "hierarchy": "flat"},
    }
    wanted = {"columns": columns, "models": [{"k-anonymity": {"k": 3}}]}
    with pytest.raises(DataError, match=r"Column 'born' holds values that cannot be read here.*view"):
        shoal.anonymize("endless", wanted, engine="postgres", output="release")


@pytest.mark.parametrize("name", ["people.csv", "out.parquet", "a.feather"])
def test_a_file_is_not_taken_for_a_table(name: str, server: Any) -> None:
    with pytest.raises(UsageError, match="has no such files"):
        shoal.anonymize("people", policy(), engine="postgres", output=name)
    with pytest.raises(UsageError, match="has no such files"):
        shoal.verify(name, policy(), engine="postgres")


@pytest.mark.parametrize("entries", [{}, {"suppressed": "mask"}, {"algorithm": "mondrian"}])
def test_unchanged_columns_reveal_the_same_as_in_a_frame(server: Any, entries: dict[str, Any]) -> None:
    from staff_tables import pairs, staff, staff_policy

    table = staff(150)
    names = ", ".join(
        f'"{name}" {"int" if kind == "int64" else "text"}' for name, kind in table.dtypes.items()
    )
    server.execute(f"CREATE TABLE staff ({names})")
    with server.cursor() as cursor, cursor.copy("COPY staff FROM STDIN") as copy:
        for row in table.itertuples(index=False):
            copy.write_row(row)
    wanted = staff_policy(**entries)
    if entries.get("algorithm"):
        for column in wanted["columns"].values():
            column.pop("min_level", None)
    own, found = shoal.anonymize(table, wanted), run("release", "staff", policy=wanted)
    assert pairs(found) >= {("DateofHire", "Hired")}
    assert found.revealed == own.revealed
    assert found.unique_with_unchanged == own.unique_with_unchanged
    with pytest.raises(ReleaseRefused):
        run("other", "staff", policy=wanted | {"fail": ["revealed"]})
    assert "other" not in tables(server)
