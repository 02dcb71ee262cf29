"""Comparing searches: the rows, their optimum, stopping and going on, files, plots and the command."""

from __future__ import annotations

import csv
import errno
import json
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

import shoal
from problems import NODE_SEARCHES
from shoal.algorithms import ALGORITHMS
from shoal.cli.app import app
from shoal.core.contracts import Guarantee
from shoal.document.figures import draw, save
from shoal.document.terminal import show
from shoal.errors import CannotHonour, Infeasible, OutputError, PolicyError, UnknownName, UsageError
from shoal.workflow.compare.comparison import Comparison, ComparisonRow, Stopped, comparison_plots

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

MODULE: Any = import_module("shoal.workflow.compare.compare")
SECRET = "SECRETVAL7"  # in every text cell of the table; nothing written or said may hold it
QUASI = "quasi-identifier"
PROMISED = (
    "algorithm", "k", "limit", "metric", "loss", "relative_loss", "retained", "levels", "suppressed",
    "candidates", "candidate_nodes", "nodes_evaluated", "loss_evaluations", "nodes_tagged", "nodes_compared",
    "subset_evaluations", "column_counts", "candidate_graph", "rows_scanned",
    "node_score", "seconds", "proven",
)  # fmt: skip
FIGURES = {field.name for field in fields(ComparisonRow)} - {"seconds"}
EXACT = [name for name in NODE_SEARCHES if ALGORITHMS.load(name).guarantee is Guarantee.LEAST_LOSS]


def table(records: int = 240) -> pa.Table:
    """Ages that are dense in the middle, two sexes, zips of unequal frequency."""
    rows = range(records)
    return pa.table(
        {
            "name": [f"{SECRET} {i}" for i in rows],
            "age": [20 + (i * i) % 37 % 19 for i in rows],
            "sex": [f"{SECRET}{'fm'[i % 3 % 2]}" for i in rows],
            "zip": [f"{SECRET}{(i * 7) % 11 % 4}{i % 2}" for i in rows],
            "illness": [f"{SECRET}ill{i % 5}" for i in rows],
        }
    )


def policy(**entries: Any) -> dict[str, Any]:
    return {
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": QUASI, "hierarchy": {"intervals": [5, 10]}},
            "sex": {"role": QUASI, "hierarchy": "flat"},
            "zip": {"role": QUASI, "hierarchy": {"prefix": [11, 10]}},
            "illness": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": 3}}],
        "suppression_limit": "5%",
        **entries,
    }


def figures(rows: tuple[ComparisonRow, ...]) -> list[dict[str, Any]]:
    """Return rows without what depends on the machine."""
    return [{name: value for name, value in row.to_dict().items() if name in FIGURES} for row in rows]


# What a row says


@pytest.mark.parametrize("limit", ["5%", 0, 7])
def test_rows_are_what_anonymize_finds(limit: Any) -> None:
    found = shoal.compare(
        table(),
        policy(),
        algorithms=NODE_SEARCHES,
        k=[2, 6],
        suppression_limits=[limit],
        metrics=["precision"],
    )
    assert [(row.k, row.algorithm) for row in found.rows] == [(k, a) for k in (2, 6) for a in NODE_SEARCHES]
    for row in found.rows:
        wished = policy(
            models=[{"k-anonymity": {"k": row.k}}],
            suppression_limit=limit,
            metric="precision",
            algorithm=row.algorithm,
        )
        release = shoal.anonymize(table(), wished)
        told = release.to_dict()
        for name in ("loss", "levels", "suppressed", "candidates", "nodes_evaluated", "rows_scanned"):
            assert getattr(row, name) == told[name], name
        for name in ("metric", "proven", "node_score", "records", "lattice_size"):
            assert getattr(row, name) == told[name], name
        assert (row.limit, row.runs, row.note) == (limit, 1, None)
        assert row.limit_records == (12 if limit == "5%" else limit)
        assert row.seconds is not None
        assert row.seconds > 0


def test_a_row_has_every_promised_key() -> None:
    (row,) = shoal.compare(table(), policy(), algorithms=["ola"]).to_dicts()
    assert [name for name in row if name in PROMISED] == list(PROMISED)
    assert row.keys() - set(PROMISED) == {
        "losses",
        "search_space",
        "limit_records",
        "runs",
        "outcome",
        "reason",
        "note",
        "records",
        "lattice_size",
    }
    assert (row["metric"], row["limit"], row["k"]) == ("non-uniform-entropy", "5%", 3)


def test_without_algorithms_all_take_part() -> None:
    found = shoal.compare(table(), policy())
    every = [name for name in ALGORITHMS if not ALGORITHMS.create(name).needs_label]
    assert [row.algorithm for row in found.rows] == every


def test_every_search_that_proves_the_least_loss_has_a_relative_loss_of_1() -> None:
    found = shoal.compare(
        table(),
        policy(),
        algorithms=NODE_SEARCHES,
        k=[2, 4, 9],
        metrics=["precision", "discernibility-star"],
    )
    for row in found.rows:
        assert row.relative_loss is not None
        if row.algorithm in EXACT:
            assert row.proven == "least loss"
            assert row.relative_loss == 1.0
        else:
            assert row.relative_loss >= 1.0


def test_the_optimum_is_found_where_no_row_proves_it() -> None:
    rows = shoal.compare(table(), policy(), algorithms=["datafly", "samarati"], k=[4, 9]).rows
    for row in rows:
        best = shoal.anonymize(table(), policy(models=[{"k-anonymity": {"k": row.k}}])).loss
        assert row.relative_loss == pytest.approx((row.loss or 0) / best)
    assert any((row.relative_loss or 0) > 1 for row in rows)


def test_an_optimum_of_0_is_reached_or_not_comparable() -> None:
    from shoal.workflow.compare.compare import relative

    assert [relative(0.0, 0.0), relative(0.5, 0.0), relative(None, 1.0), relative(1.0, None)] == [
        1.0,
        None,
        None,
        None,
    ]
    (row,) = shoal.compare(table(), policy(), algorithms=["ola"], k=[1]).rows
    assert (row.loss, row.relative_loss) == (0.0, 1.0)


def test_what_a_search_refuses_is_a_row_that_says_why() -> None:
    ola, exhaustive = shoal.compare(
        table(), policy(), algorithms=["ola", "exhaustive"], metrics=["discernibility"]
    ).rows
    with pytest.raises(CannotHonour) as refusal:
        shoal.anonymize(table(), policy(metric="discernibility", algorithm="ola"))
    assert ola.note == f"refused: {refusal.value}"
    assert ola.note.endswith("the metric is not monotone here. Use 'contour' or 'auto'.")
    assert (ola.loss, ola.relative_loss, ola.levels, ola.proven, ola.seconds, ola.runs) == (*[None] * 5, 0)
    assert (exhaustive.note, exhaustive.relative_loss) == (None, 1.0)


def test_what_is_infeasible_is_a_row_that_says_what_would_do() -> None:
    found = shoal.compare(table(), policy(), algorithms=["ola", "datafly"], k=[3, 241])
    with pytest.raises(Infeasible) as miss:
        shoal.anonymize(table(), policy(models=[{"k-anonymity": {"k": 241}}]))
    assert [row.note for row in found.rows] == [None, None, *[f"infeasible: {miss.value}"] * 2]
    assert "Use a smaller k" in str(miss.value)
    assert [row.loss is None for row in found.rows] == [False, False, True, True]
    assert [row.relative_loss is None for row in found.rows] == [False, False, True, True]


def test_a_search_without_time_is_a_row() -> None:
    found = shoal.compare(table(), policy(), seconds=1e-9)
    *refused, regions, note = sorted({row.note or "" for row in found.rows}, reverse=True)
    for told, name in zip(refused, ("k-optimize", "greedy-cuts", "anatomy"), strict=True):
        assert told.startswith(f"refused: Algorithm '{name}' cannot honour this policy")  # before it searches
    assert note == (
        "out of time: No acceptable node was found within 1e-09 seconds. Allow more, or lower max_level."
    )
    assert regions == "out of time: No acceptable recoding was found within 1e-09 seconds. Allow more."
    assert {row.loss for row in found.rows} == {None}


def test_a_search_stopped_by_time_is_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.algorithms.contour import Contour
    from shoal.errors import OutOfTime

    def look_at_the_top_alone(_: Any, problem: Any, evaluate: Any) -> None:
        evaluate(problem.lattice.top)
        raise OutOfTime

    monkeypatch.setattr(Contour, "search", look_at_the_top_alone)
    contour, datafly = shoal.compare(table(), policy(), algorithms=["contour", "datafly"]).rows
    assert contour.proven == datafly.proven == "acceptable"
    assert contour.loss > datafly.loss  # type: ignore[operator]
    assert contour.relative_loss is datafly.relative_loss is None


def test_k_stands_in_for_the_policys_own() -> None:
    models = [{"distinct-l-diversity": {"l": 2}}, {"k-anonymity": {"k": 2}}]
    (row,) = shoal.compare(table(), policy(models=models), algorithms="contour", k=6).rows
    models = [{"distinct-l-diversity": {"l": 2}}, {"k-anonymity": {"k": 6}}]
    assert (row.k, row.loss) == (6, shoal.anonymize(table(), policy(models=models)).loss)


def test_k_is_added_where_the_policy_has_none() -> None:
    models = [{"distinct-l-diversity": {"l": 3}}]
    without, with_k = (
        shoal.compare(table(), policy(models=models), algorithms="contour", k=k).rows[0] for k in (None, 12)
    )
    assert (without.k, with_k.k) == (None, 12)
    assert without.loss == shoal.anonymize(table(), policy(models=models)).loss
    assert with_k.loss == shoal.anonymize(table(), policy(models=[*models, {"k-anonymity": {"k": 12}}])).loss


def test_plug_ins_are_told_with_their_options() -> None:
    metrics = ["height", {"coverage": {"aggregate": "geometric"}}]
    algorithms = [{"datafly": {"stop": "k", "seed": 3}}, {"ola": None}]
    found = shoal.compare(table(), policy(), algorithms=algorithms, metrics=metrics)
    assert [row.algorithm for row in found.rows] == ["datafly:stop=k,seed=3", "ola"] * 2
    assert [row.metric for row in found.rows] == ["height"] * 2 + ["coverage:aggregate=geometric"] * 2


def test_levels_can_be_fixed() -> None:
    (row,) = shoal.compare(table(), policy(), algorithms="ola", node={"age": 3}).rows
    assert row.levels is not None
    assert (row.levels["age"], row.lattice_size) == (3, 8)


def test_a_search_with_a_limit_of_its_own_has_its_own_optimum() -> None:
    wished = {name: entry for name, entry in policy().items() if name != "suppression_limit"}
    own, ola = shoal.compare(table(), wished, algorithms=[{"datafly": {"stop": "k"}}, "ola"], k=[9]).rows
    assert (own.limit, own.limit_records, ola.limit_records) == (0, 9, 0)
    (best,) = shoal.compare(table(), wished, algorithms="ola", k=9, suppression_limits=9).rows
    assert own.relative_loss == pytest.approx(own.loss / best.loss)  # type: ignore[operator]
    release = shoal.anonymize(
        table(), wished | {"models": [{"k-anonymity": {"k": 9}}], "algorithm": {"datafly": {"stop": "k"}}}
    )
    assert (own.loss, own.suppressed) == (release.loss, release.suppressed)


@pytest.mark.parametrize("k", [np.int64(3), [np.int32(3)], np.arange(3, 4), range(3, 4), (3,)])
def test_numbers_may_be_numpys(k: Any) -> None:
    wish: dict[str, Any] = {"suppression_limits": np.float64(0.05), "seconds": np.float64(60)}
    (row,) = shoal.compare(table(), policy(), algorithms="ola", k=k, **wish).rows
    assert (row.k, type(row.k), row.limit, type(row.limit)) == (3, int, 0.05, float)
    assert json.loads(json.dumps(row.to_dict())) == row.to_dict()


def test_equal_wishes_are_asked_once() -> None:
    found = shoal.compare(table(), policy(), algorithms=["ola", "ola"], k=[3, 3], metrics="precision")
    assert len(found.rows) == 1


# A search that draws lots


def ties() -> tuple[pa.Table, dict[str, Any]]:
    """Three columns with as many values each: the first step is a lot, and any will do."""
    rows = range(108)
    columns = {"a": [f"v{i % 3}" for i in rows], "b": [f"v{i // 3 % 3}" for i in rows]}
    columns["c"] = [f"v{(0, 0, 0, 1, 2, 0)[i // 9 % 6]}" for i in rows]
    quasi = {name: {"role": QUASI, "hierarchy": "flat"} for name in columns}
    return pa.table(columns), {"columns": quasi, "models": [{"k-anonymity": {"k": 5}}]}


def test_a_search_that_draws_lots_is_averaged_over_a_hundred_seeds() -> None:
    data, wished = ties()
    draws = {"ties": "random"}
    (mean,) = shoal.compare(data, wished, algorithms=[{"datafly": draws}]).rows
    seeds = [{"datafly": {**draws, "seed": seed}} for seed in range(100)]
    each = shoal.compare(data, wished, algorithms=seeds).rows
    assert (mean.algorithm, mean.runs, mean.proven) == ("datafly:ties=random", 100, "acceptable")
    assert {row.runs for row in each} == {1}
    assert len({str(row.levels) for row in each}) > 1
    assert mean.levels is None
    for name in ("loss", "relative_loss", "suppressed", "nodes_evaluated", "rows_scanned", "node_score"):
        assert getattr(mean, name) == pytest.approx(fmean(getattr(row, name) for row in each)), name


def test_what_all_draws_have_in_common_is_kept() -> None:
    random, first = shoal.compare(
        table(), policy(), algorithms=[{"datafly": {"ties": "random"}}, "datafly"]
    ).rows
    assert random.levels == first.levels  # no two columns have as many values
    assert random.loss == first.loss
    assert random.runs == 100


# What is wrong is said before the table is counted


@pytest.mark.parametrize(
    ("wish", "kind", "says"),
    [
        ({"k": [0]}, PolicyError, "k must be at least 1, got 0."),
        ({"k": [2, "many"]}, PolicyError, "Option k of k-anonymity must be .* got 'many'"),
        ({"k": []}, UsageError, "k is empty. Name at least one, or leave it out."),
        ({"algorithms": ["olaa"]}, UnknownName, "Unknown algorithm 'olaa'. Did you mean 'ola'?"),
        ({"algorithms": [{"ola": {"speed": 2}}]}, UnknownName, "Unknown option of ola 'speed'"),
        ({"metrics": ["coverge"]}, UnknownName, "Unknown metric 'coverge'. Did you mean 'coverage'?"),
        ({"suppression_limits": ["lots"]}, PolicyError, "suppression_limit must be a share"),
        ({"k": object()}, UsageError, "k takes one or a list, got object."),
        ({"k": [True]}, PolicyError, "Option k of k-anonymity"),
        ({"seconds": 0}, UsageError, "seconds must be a number above 0, got 0."),
        ({"seconds": "x"}, UsageError, "seconds must be a number above 0, got 'x'."),
        ({"seconds": float("nan")}, UsageError, "seconds must be a number above 0, got nan."),
        ({"engine": "duckdbb"}, UnknownName, "Did you mean 'duckdb'?"),
    ],
)
def test_a_wrong_wish_is_refused_at_once(wish: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        shoal.compare("no-such-file.csv", policy(), **wish)


def test_more_records_than_there_are_cannot_be_suppressed() -> None:
    with pytest.raises(PolicyError, match="must not be above the table's 240 records, got 241"):
        shoal.compare(table(), policy(), suppression_limits=["5%", 241])


def test_warming_up_is_limited_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many columns a search may be long even on a part of the table that has few nodes."""
    plain, asked = MODULE.search, []

    def search(problem: Any, *given: Any, **named: Any) -> Any:
        asked.append((problem.records, named))
        return plain(problem, *given, **named)

    monkeypatch.setattr(MODULE, "search", search)
    shoal.compare(table(), policy(), algorithms=["incognito"], seconds=None)
    (warming, named), *_ = asked
    assert warming < 240
    assert 0 < named["seconds"] <= 1
    assert named["progress"] is not None


# Stopping and going on


class Searches:
    """Counts searches of whole problems and stops before one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plain = MODULE.search
        self.number = 0
        self.last: int | None = None
        monkeypatch.setattr(MODULE, "search", self)

    def __call__(self, problem: Any, *given: Any, **named: Any) -> Any:
        if problem.records == 240:  # not the warming up
            if self.number == self.last:
                raise KeyboardInterrupt
            self.number += 1
        return self.plain(problem, *given, **named)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    return Searches(monkeypatch)


WISH: dict[str, Any] = {"algorithms": ["ola", "datafly"], "k": [2, 4, 9]}


def test_an_interrupted_comparison_goes_on_where_it_was_stopped(searches: Searches, tmp_path: Path) -> None:
    journal = tmp_path / "rows.part"
    whole = shoal.compare(table(), policy(), **WISH)
    assert searches.number == 6
    searches.number, searches.last = 0, 4
    with pytest.raises(KeyboardInterrupt):
        shoal.compare(table(), policy(), **WISH, journal=journal)
    assert len(journal.read_text().splitlines()) == 1 + 4
    searches.number, searches.last = 0, None
    told: list[tuple[str, int, int | None]] = []
    again = shoal.compare(table(), policy(), **WISH, journal=journal, progress=lambda *one: told.append(one))
    assert searches.number == 2
    assert figures(again.rows) == figures(whole.rows)
    # What is kept is told before the warming up, and again after it.
    assert [one for one in told if one[0] == "compare"] == [("compare", done, 6) for done in (4, 4, 5, 6)]
    searches.number = 0
    assert shoal.compare(table(), policy(), **WISH, journal=journal) == again
    assert searches.number == 0


def test_a_stopped_comparison_holds_its_rows(searches: Searches) -> None:
    whole = shoal.compare(table(), policy(), **WISH)
    searches.number, searches.last = 0, 5
    with pytest.raises(Stopped, match="5 of 6 rows are finished") as stop:
        shoal.compare(table(), policy(), **WISH)
    assert figures(stop.value.finished.rows) == figures(whole.rows[:5])
    assert all(row.relative_loss for row in stop.value.finished.rows)


def test_rows_without_a_known_optimum_are_held_all_the_same(searches: Searches) -> None:
    searches.last = 1
    with pytest.raises(Stopped) as stop:
        shoal.compare(table(), policy(), algorithms="datafly", k=[2, 9])
    (row,) = stop.value.finished.rows
    assert (row.k, row.relative_loss) == (2, None)
    assert row.loss is not None


def test_a_journal_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        shoal.compare(table(), policy(), algorithms="ola", journal=tmp_path / "rows.part")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "rows.part").stat().st_mode) == 0o600


def test_an_optimum_that_is_no_row_is_kept_too(searches: Searches, tmp_path: Path) -> None:
    wish = {"algorithms": "datafly", "k": [2, 9], "journal": tmp_path / "rows.part"}
    first = shoal.compare(table(), policy(), **wish)
    assert searches.number == 4
    assert shoal.compare(table(), policy(), **wish) == first
    assert searches.number == 4


def test_a_longer_comparison_takes_over_what_is_kept(searches: Searches, tmp_path: Path) -> None:
    journal = tmp_path / "rows.part"
    shoal.compare(table(), policy(), **WISH, journal=journal)
    searches.number = 0
    longer = shoal.compare(table(), policy(), **WISH | {"k": [2, 4, 6, 9]}, journal=journal)
    assert searches.number == 2
    assert [row.k for row in longer.rows] == [2, 2, 4, 4, 6, 6, 9, 9]


@pytest.mark.parametrize("torn", [b'{"algorithm": "ola", "k', b"\xff\xfe", b"{}"])
def test_a_torn_last_line_is_dropped(searches: Searches, tmp_path: Path, torn: bytes) -> None:
    journal = tmp_path / "rows.part"
    whole = shoal.compare(table(), policy(), **WISH, journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + torn)
    searches.number = 0
    assert figures(shoal.compare(table(), policy(), **WISH, journal=journal).rows) == figures(whole.rows)
    assert searches.number == 1
    assert len(journal.read_text().splitlines()) == 1 + 6


@pytest.mark.parametrize(
    ("data", "wished", "wish"),
    [
        pytest.param(table(239), policy(), {}, id="table"),
        pytest.param(table(), policy(suppressed="mask"), {}, id="policy"),
        pytest.param(table(), policy(), {"seconds": 60}, id="seconds"),
        pytest.param(table(), policy(), {"node": {"sex": 1}}, id="node"),
    ],
)
def test_the_journal_of_another_run_is_refused(
    tmp_path: Path, data: pa.Table, wished: dict[str, Any], wish: dict[str, Any]
) -> None:
    journal = tmp_path / "rows.part"
    shoal.compare(table(), policy(), **WISH, journal=journal)
    before = journal.read_bytes()
    with pytest.raises(OutputError, match=r"rows.part' is the journal of another run: the table, the policy"):
        shoal.compare(data, wished, **WISH, **wish, journal=journal)
    assert journal.read_bytes() == before


def test_the_journal_of_another_hierarchy_file_is_refused(tmp_path: Path) -> None:
    wished = policy()
    wished["columns"]["sex"]["hierarchy"] = {"csv": str(tmp_path / "sex.csv")}
    (tmp_path / "sex.csv").write_text(f"{SECRET}f;*\n{SECRET}m;*\n")
    shoal.compare(table(), wished, **WISH, journal=tmp_path / "rows.part")
    (tmp_path / "sex.csv").write_text(f"{SECRET}f;both;*\n{SECRET}m;both;*\n")
    with pytest.raises(OutputError, match="journal of another run"):
        shoal.compare(table(), wished, **WISH, journal=tmp_path / "rows.part")


@pytest.mark.parametrize(
    "text", ["mine\n", "mine", '{"journal": 99}\n', "[]\n", '{"journal": 1, "salt": 3}\n']
)
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.part").write_text(text)
    with pytest.raises(OutputError, match=r"rows.part' is not a journal of shoal, or is damaged. Remove it"):
        shoal.compare(table(), policy(), **WISH, journal=tmp_path / "rows.part")
    assert (tmp_path / "rows.part").read_text() == text


@pytest.mark.parametrize("line", ['{"algorithm": "ol', "[]", '{"algorithm": "ola"}', '{"optimum": 3}'])
def test_a_damaged_line_inside_is_refused(tmp_path: Path, line: str) -> None:
    journal = tmp_path / "rows.part"
    shoal.compare(table(), policy(), **WISH, journal=journal)
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:2], line, *lines[3:], ""]))
    with pytest.raises(OutputError, match="damaged"):
        shoal.compare(table(), policy(), **WISH, journal=journal)


def test_a_journal_holds_no_value_and_its_fingerprint_is_salted(tmp_path: Path) -> None:
    headers = []
    for name in ("one.part", "two.part"):
        shoal.compare(table(), policy(), **WISH, journal=tmp_path / name)
        assert SECRET not in (tmp_path / name).read_text()
        headers.append(json.loads((tmp_path / name).read_text().splitlines()[0]))
    assert headers[0]["journal"] == 1
    assert headers[0]["salt"] != headers[1]["salt"]
    assert headers[0]["fingerprint"] != headers[1]["fingerprint"]


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from shoal.workflow.compare.journal import Journal

    class Full:
        def write(self, _: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OutputError, match=r"Cannot write 'rows.part' .*: No space left on device. Free some"):
        Journal(tmp_path / "rows.part", Full(), []).add({})  # type: ignore[arg-type]


# Files


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Two metrics, two limits, three k; ola refuses one of the metrics."""
    return shoal.compare(
        table(),
        policy(),
        algorithms=["ola", "contour", {"datafly": {"ties": "random"}}],
        k=[2, 4, 9],
        suppression_limits=["1%", "5%"],
        metrics=["non-uniform-entropy", "discernibility"],
    )


def read_csv(path: Path) -> list[ComparisonRow]:
    """Read rows back from CSV, knowing no more than what the documentation says."""
    texts = {"algorithm", "limit", "metric", "proven", "outcome", "reason", "note"}
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    return [
        ComparisonRow(
            **{
                name: (cell if name in texts else json.loads(cell)) if cell else None
                for name, cell in row.items()
            }
        )
        for row in found
    ]


def test_rows_read_back_from_files_are_equal(comparison: Comparison, tmp_path: Path) -> None:
    for name in ("rows.csv", "rows.json"):
        comparison.write(tmp_path / name)
    assert tuple(read_csv(tmp_path / "rows.csv")) == comparison.rows
    told = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert told == comparison.to_dicts()
    assert tuple(ComparisonRow(**row) for row in told) == comparison.rows
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "rows.json"}
    assert SECRET not in (tmp_path / "rows.csv").read_text() + (tmp_path / "rows.json").read_text()


def test_a_file_is_replaced_only_on_request(comparison: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine")
    with pytest.raises(OutputError, match=r"exists\. Use force=True to replace it\."):
        comparison.write(path)
    assert path.read_text() == "mine"
    comparison.write(path, force=True)
    assert len(read_csv(path)) == len(comparison.rows)


def test_a_file_that_cannot_be_written_leaves_nothing(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OutputError, match=r"Cannot write 'rows.csv' .*: Read-only file system"):
        comparison.write(tmp_path / "rows.csv")
    assert not any(tmp_path.iterdir())


# Plots


def test_plots_are_drawn_as_png_and_svg(comparison: Comparison, tmp_path: Path) -> None:
    from PIL import Image

    paths = save(comparison_plots(comparison.rows), tmp_path / "plots")
    # ola refuses discernibility, so nothing can be set beside it there.
    names = [f"non-uniform-entropy-{name}" for name in ("loss", "nodes", "cost", "seconds")]
    names += [f"discernibility-{name}" for name in ("loss", "nodes", "seconds")]
    assert {path.name for path in paths} == {
        f"{name}.{ending}" for name in names for ending in ("png", "svg")
    }
    for path in paths:
        if path.suffix == ".png":
            colours = Image.open(path).convert("RGB").getcolors(100_000)
            assert colours is not None
            assert len(colours) > 20, path.name
        else:
            assert path.read_text(encoding="utf-8").count("<path") > 50, path.name


def test_the_same_plot_is_the_same_file(comparison: Comparison, tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(comparison_plots(comparison.rows)[:2], tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_k_goes_across_with_a_panel_per_limit(comparison: Comparison) -> None:
    plot = comparison_plots(comparison.rows)[0]
    assert (plot.across, plot.headings) == ("k", ["limit 1%", "limit 5%"])
    assert list(plot.ticks.values()) == ["2", "4", "9"]
    assert plot.name == "non-uniform-entropy-loss"
    for limit, panel in zip(("1%", "5%"), plot.strips[0].panels, strict=True):
        for algorithm in ("ola", "contour", "datafly:ties=random"):
            told = [
                (row.k, row.relative_loss)
                for row in comparison.rows
                if (row.metric, row.limit, row.algorithm) == ("non-uniform-entropy", limit, algorithm)
            ]
            assert panel[algorithm] == told
            assert len(told) == 3
        assert {relative for _, relative in panel["ola"]} == {1.0}


def test_the_limit_goes_across_where_there_is_one_k(comparison: Comparison) -> None:
    plot = comparison_plots([row for row in comparison.rows if row.k == 4])[0]
    assert (plot.across, plot.headings, list(plot.ticks.values())) == (
        "suppression limit",
        ["k = 4"],
        ["1%", "5%"],
    )
    assert [at for at, _ in plot.strips[0].panels[0]["contour"]] == [0, 1]


def test_one_k_and_one_limit_are_bars(comparison: Comparison) -> None:
    rows = [row for row in comparison.rows if (row.k, row.limit) == (4, "5%")]
    plots = comparison_plots(rows)
    assert {plot.bars for plot in plots} == {True}
    plot = next(plot for plot in plots if plot.name == "discernibility-nodes")
    figure = draw(plot)
    evaluated, _ = figure.axes
    assert [label.get_text() for label in evaluated.get_yticklabels()] == ["contour", "datafly:ties=random"]
    drawn = [bar.get_width() for bar in evaluated.patches]
    assert drawn == [
        (row.nodes_evaluated or 0) / row.lattice_size
        for row in rows
        if row.metric == "discernibility" and row.loss is not None
    ]
    assert "k = 4, limit 5%\nola refused here" in figure.get_suptitle()


def test_limits_of_different_kinds_have_panels_of_their_own() -> None:
    found = shoal.compare(
        table(), policy(), algorithms=["ola", "datafly"], k=[2, 9], suppression_limits=[1, 1.0]
    )
    assert [row.limit_records for row in found.rows] == [1] * 4 + [240] * 4
    plot = next(plot for plot in comparison_plots(found.rows) if plot.name.endswith("seconds"))
    assert plot.headings == ["limit 1", "limit 1.0"]
    for limit, panel in zip((1, 240), plot.strips[0].panels, strict=True):
        told = [row for row in found.rows if row.limit_records == limit and row.algorithm == "ola"]
        assert panel["ola"] == [(row.k, row.seconds) for row in told]


def test_a_panel_says_what_is_not_in_it(comparison: Comparison) -> None:
    plot = next(plot for plot in comparison_plots(comparison.rows) if plot.name == "discernibility-loss")
    assert plot.notes == ["ola refused here"] * 2
    assert [text.get_text() for text in draw(plot).axes[0].texts] == ["ola refused here"]


def test_a_panel_without_data_says_why() -> None:
    found = shoal.compare(
        table(),
        policy(),
        algorithms=["ola", "contour"],
        k=[2, 9],
        suppression_limits=[0, "5%"],
        metrics="discernibility",
    )
    (plot,) = [plot for plot in comparison_plots(found.rows) if plot.name == "discernibility-cost"]
    assert [len(panel) for panel in plot.strips[0].panels] == [2, 0]
    empty = draw(plot).axes[1]
    assert [text.get_text() for text in empty.texts] == ["ola refused here"]
    assert not empty.get_lines()


def many(rows: tuple[ComparisonRow, ...], number: int) -> list[ComparisonRow]:
    """Let one search appear under many names."""
    contour = [row for row in rows if (row.algorithm, row.metric) == ("contour", "non-uniform-entropy")]
    return [replace(row, algorithm=f"search{place}") for place in range(number) for row in contour]


def test_many_lines_can_be_told_apart(comparison: Comparison) -> None:
    plot = comparison_plots(many(comparison.rows, 20))[0]
    (legend,) = draw(plot).legends
    shown = {
        (line.get_color(), line.get_marker(), line._unscaled_dash_pattern) for line in legend.get_lines()
    }
    by_dash = {(line.get_color(), line._unscaled_dash_pattern) for line in legend.get_lines()}
    assert len(legend.get_lines()) == len(shown) == len(by_dash) == 20


def test_lines_that_coincide_take_turns(comparison: Comparison) -> None:
    """Along every piece each of the lines has its own colour somewhere, and no two overlap."""
    plot = comparison_plots(many(comparison.rows, 9))[0]
    drawn = draw(plot).axes[0].collections
    assert len(drawn) == 9
    for piece in range(2):
        turns = set()
        for line in drawn:
            offset, (on, off) = line.get_linestyles()[piece]
            assert off == pytest.approx(8 * on)
            turns.add(round(-offset / on) % 9)
        assert turns == set(range(9))


def test_a_line_of_its_own_is_whole(comparison: Comparison) -> None:
    panel = draw(next(plot for plot in comparison_plots(comparison.rows) if "seconds" in plot.name)).axes[0]
    assert {pattern for line in panel.collections for _, pattern in line.get_linestyles()} == {None}


def test_every_algorithm_has_its_colour_and_marker(comparison: Comparison) -> None:
    for plot in comparison_plots(comparison.rows):
        lines = {line.get_label(): line for line in draw(plot).axes[0].get_lines()}
        shown = [(line.get_color(), line.get_marker()) for line in lines.values()]
        assert len({colour for colour, _ in shown}) == len({marker for _, marker in shown}) == len(shown)


def test_ratios_that_span_a_decade_are_drawn_by_factors(comparison: Comparison) -> None:
    for plot in comparison_plots(comparison.rows):
        figure = draw(plot)
        for number, strip in enumerate(plot.strips):
            values = [up for panel in strip.panels for line in panel.values() for _, up in line]
            scale = figure.axes[number * len(plot.headings)].get_yscale()
            assert scale == ("log" if max(values) > 10 * min(values) > 0 else "linear"), plot.name


def test_the_legend_and_the_labels_cover_nothing(comparison: Comparison) -> None:
    for plot in comparison_plots(comparison.rows):
        figure = draw(plot)
        figure.draw_without_rendering()
        (legend,) = figure.legends
        area = legend.get_window_extent()
        for panel in figure.axes:
            assert not area.overlaps(panel.get_tightbbox()), plot.name
            inside = panel.get_tightbbox()
            assert inside.x0 >= 0
            assert inside.x1 <= figure.bbox.width + 1
        assert area.x0 >= 0
        assert area.x1 <= figure.bbox.width


# The command


class Workspace:
    """A folder with a table and a policy, and the command to compare them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "out"
        self.home.mkdir()
        self.data = folder / "data.csv"
        self.policy = folder / "policy.yaml"
        self.output = self.home / "rows.csv"
        self.part = self.home / "rows.csv.part"
        rows = table().to_pylist()
        with self.data.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        self.policy.write_text(yaml.safe_dump(policy(), sort_keys=False), encoding="utf-8")

    def call(self, *options: object, width: int = 250) -> Any:
        runner = CliRunner(env={"COLUMNS": str(width)})
        asked = ["compare", self.data, "--policy", self.policy, *options]
        result = runner.invoke(app, [str(part) for part in asked])
        accident = result.exception
        assert accident is None or isinstance(accident, SystemExit), repr(accident)
        assert SECRET not in result.output
        return result

    def rows(self, *options: object) -> list[dict[str, Any]]:
        result = self.call("--json", *options)
        assert result.exit_code == 0, result.output
        found: list[dict[str, Any]] = json.loads(result.stdout)
        return found

    def refused(self, *options: object, says: str) -> None:
        result = self.call(*options)
        assert result.exit_code == 2, result.output
        assert says in result.stderr
        assert result.stdout == ""
        assert not any(self.home.iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_the_command_prints_a_list_of_rows_as_json(desk: Workspace) -> None:
    found = desk.rows("--algorithm", "ola,contour", "--k", "2..4,9", "--suppression-limit", "1%,5%")
    assert len(found) == 2 * 5 * 2 - 4
    assert all(set(PROMISED) <= row.keys() for row in found)
    assert [(row["limit"], row["k"]) for row in found[::2]] == [
        (limit, k) for limit in ("1%", "5%") for k in (2, 3, 4, 9)
    ]


def test_options_may_be_repeated_and_may_be_lists(desk: Workspace) -> None:
    found = desk.rows(
        *("--algorithm", "ola,datafly:stop=k,seed=2,contour", "--algorithm", "samarati"),
        *("--metric", "coverage:aggregate=geometric,height", "--metric", "precision", "--k", "3", "--k", "5"),
        *("--suppression-limit", "4"),
    )
    names = ["ola", "datafly:stop=k,seed=2", "contour", "samarati"]
    metrics = ["coverage:aggregate=geometric", "height", "precision"]
    assert [row["algorithm"] for row in found] == names * 6
    assert list(dict.fromkeys(row["metric"] for row in found)) == metrics
    assert {(row["limit"], row["limit_records"]) for row in found} == {(4, 4)}


def test_models_and_levels_stand_in_for_the_policys(desk: Workspace) -> None:
    asked = ("--model", "distinct-l-diversity:l=2", "--node", "sex=1", "--algorithm", "contour")
    (row,) = desk.rows(*asked)
    assert (row["k"], row["levels"]["sex"]) == (None, 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--k", "0"), "k must be at least 1, got 0."),
        (("--k", "x"), "--k takes whole numbers, such as 5, 2,5,10 or 2..15; got 'x'."),
        (("--k", "2,,5"), "--k takes whole numbers, such as 5, 2,5,10 or 2..15; got ''."),
        (("--k", "2..x"), "got '2..x'."),
        (("--k", "2.."), "got '2..'."),
        (("--k", "5..2"), "--k runs upwards, got '5..2'. Write 2..5."),
        (("--k", "1..9999999999"), "--k takes at most 1,000 values in a range, got '1..9999999999'."),
        (("--algorithm", "olaa"), "Unknown algorithm 'olaa'. Did you mean 'ola'? Available:"),
        (("--algorithm", "ola,contuor"), "Unknown algorithm 'contuor'. Did you mean 'contour'?"),
        (("--algorithm", "ola:speed=2"), "Unknown option of ola 'speed'"),
        (("--metric", "precison"), "Unknown metric 'precison'. Did you mean 'precision'?"),
        (("--suppression-limit", "lots"), "suppression_limit must be a share such as 5%"),
        (("--suppression-limit", "²"), "suppression_limit must be a share such as 5%"),
        (("--suppression-limit=--5",), "or a number of records, got '--5'."),
        (("--suppression-limit", "9" * 5000), "must not be above the table's 240 records"),
        (("--node", "sex=²"), "--node takes column=level, as age=2,sex=0; got 'sex=²'."),
        (("--node", "sex=" + "9" * 5000), "--node takes column=level, as age=2,sex=0; got"),
        (("--k", "²"), "--k takes whole numbers, such as 5, 2,5,10 or 2..15; got '²'."),
        (("--k", "9" * 5000), "--k takes whole numbers, such as 5, 2,5,10 or 2..15; got"),
        (("--suppression-limit", "1%,500"), "must not be above the table's 240 records, got 500"),
        (("--seconds", "-1"), "seconds must be a number above 0, got -1.0."),
        (("--node", "sexx=1"), "Did you mean 'sex'?"),
    ],
)
def test_what_is_wrong_is_said(desk: Workspace, options: tuple[str, ...], says: str) -> None:
    desk.refused(*options, "--output", desk.output, says=says)


def test_an_error_is_told_as_json(desk: Workspace) -> None:
    result = desk.call("--k", "0", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"] == "PolicyError"


FEW = ("--algorithm", "ola,datafly", "--k", "2,4,9")


@pytest.mark.parametrize("name", ["rows.csv", "rows.json"])
def test_rows_are_written_and_the_journal_is_gone(desk: Workspace, name: str) -> None:
    result = desk.call(*FEW, "--output", desk.home / name)
    assert result.exit_code == 0
    assert [path.name for path in desk.home.iterdir()] == [name]
    assert str(desk.home / name) in result.stdout
    text = (desk.home / name).read_text(encoding="utf-8")
    assert len(read_csv(desk.home / name) if name.endswith("csv") else json.loads(text)) == 6
    assert SECRET not in text


def test_an_output_that_exists_needs_force(desk: Workspace) -> None:
    desk.output.write_text("mine")
    result = desk.call(*FEW, "--output", desk.output)
    assert result.exit_code == 2
    assert f"{str(desk.output)!r} exists. Use --force to replace it." in result.stderr
    assert desk.output.read_text() == "mine"
    assert desk.call(*FEW, "--output", desk.output, "--force").exit_code == 0
    assert len(read_csv(desk.output)) == 6


def test_the_input_is_never_the_output(desk: Workspace) -> None:
    before = desk.data.read_bytes()
    result = desk.call(*FEW, "--output", desk.data, "--force")
    assert result.exit_code == 2
    assert "is the input and would be replaced" in result.stderr
    assert desk.data.read_bytes() == before


def test_an_output_has_an_ending_and_a_folder(desk: Workspace) -> None:
    desk.refused("--output", desk.home / "rows.xlsx", says="written as .csv or .json, got 'rows.xlsx'.")
    desk.refused("--output", desk.home / "no" / "rows.csv", says="does not exist. Create it first.")


def test_an_output_that_cannot_be_written_is_told_at_once(
    desk: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so the refusal is the system call's own."""
    plain: Callable[..., Any] = open

    def refuse(path: Any, *given: Any, **named: Any) -> Any:
        if str(path).endswith(".part"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return plain(path, *given, **named)

    monkeypatch.setattr("shoal.workflow.compare.journal.open", refuse, raising=False)
    desk.refused(*FEW, "--output", desk.output, says="Cannot write 'rows.csv.part' in the folder")


def test_a_stopped_command_keeps_its_rows_and_resumes(desk: Workspace, searches: Searches) -> None:
    searches.last = 4
    stopped = desk.call(*FEW, "--output", desk.output)
    assert stopped.exit_code == 130
    assert f"Stopped: 4 of 6 rows are kept in {str(desk.part)!r}." in stopped.stderr
    assert "The same command resumes." in stopped.stderr
    assert [path.name for path in desk.home.iterdir()] == ["rows.csv.part"]
    assert SECRET not in desk.part.read_text()
    searches.number, searches.last = 0, None
    assert desk.call(*FEW, "--output", desk.output).exit_code == 0
    assert searches.number == 2
    assert len(read_csv(desk.output)) == 6
    assert not desk.part.exists()


def test_a_command_stopped_while_it_counts_says_so(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, "counted", stop)
    stopped = desk.call(*FEW, "--output", desk.output)
    assert stopped.exit_code == 130
    assert "Stopped before the first search." in stopped.stderr
    assert not any(desk.home.iterdir())
    desk.part.write_text("of an earlier run")
    again = desk.call(*FEW, "--output", desk.output)
    assert again.exit_code == 130
    assert f"Stopped before the first search. {str(desk.part)!r} was not changed." in again.stderr
    assert desk.part.read_text() == "of an earlier run"


def test_a_command_stopped_while_it_warms_up_tells_what_an_earlier_run_has_kept(
    desk: Workspace, searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches.last = 4
    assert desk.call(*FEW, "--output", desk.output).exit_code == 130

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, "_small_part", stop)
    stopped = desk.call(*FEW, "--output", desk.output)
    assert stopped.exit_code == 130
    assert f"Stopped: 4 of 6 rows are kept in {str(desk.part)!r}." in stopped.stderr


def test_a_stopped_command_without_an_output_shows_its_rows(desk: Workspace, searches: Searches) -> None:
    searches.last = 4
    stopped = desk.call(*FEW)
    assert stopped.exit_code == 130
    assert "Stopped after 4 of 6 rows." in stopped.stderr
    shown = [line.split() for line in stopped.stdout.splitlines()]
    assert sum("ola" in line or "datafly" in line for line in shown) == 4
    searches.number = 0
    stopped = desk.call(*FEW, "--json")
    assert stopped.exit_code == 130
    assert [(row["k"], row["algorithm"]) for row in json.loads(stopped.stdout)] == [
        (k, name) for k in (2, 4) for name in ("ola", "datafly")
    ]


def test_the_journal_of_another_table_is_not_overwritten(desk: Workspace, searches: Searches) -> None:
    searches.last = 4
    assert desk.call(*FEW, "--output", desk.output).exit_code == 130
    before = desk.part.read_bytes()
    text = desk.data.read_text(encoding="utf-8").splitlines(keepends=True)
    desk.data.write_text("".join(text[:-1]), encoding="utf-8")
    searches.last = None
    result = desk.call(*FEW, "--output", desk.output, "--force")
    assert result.exit_code == 2
    assert f"{str(desk.part)!r} is the journal of another run" in result.stderr
    assert desk.part.read_bytes() == before


def test_plots_go_to_a_folder(desk: Workspace) -> None:
    result = desk.call(*FEW, "--plots", desk.home / "new" / "plots")
    assert result.exit_code == 0
    assert "8 files" in result.stdout
    assert len(list((desk.home / "new" / "plots").iterdir())) == 8


def test_plots_need_matplotlib(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    desk.refused(*FEW, "--plots", desk.home, says="Plots need matplotlib: pip install 'shoal[plots]'.")


def test_plots_need_a_folder(desk: Workspace) -> None:
    result = desk.call(*FEW, "--plots", desk.data)
    assert result.exit_code == 2
    assert "Cannot write 'data.csv'" in result.stderr


# What the terminal shows


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_table_drops_columns_rather_than_wrap(
    comparison: Comparison, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    show(comparison.document())
    shown = capsys.readouterr().out
    assert "…" not in shown
    tables = shown[: shown.index("ola (discernibility, ")]  # a terminal wraps the sentences below
    assert max(map(len, tables.splitlines())) <= width
    assert ("score" in shown) == (width == 200)
    assert "least loss" in shown
    assert " ".join(shown.split()).endswith(
        "ola (discernibility, limit 1%, 5%): refused: the metric is not monotone here. "
        "Use 'contour' or 'auto'."
    )
    assert shown.count("refused:") == 1


def test_why_there_is_no_result_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    wish: dict[str, Any] = {"k": [3, 241, 300], "metrics": "discernibility", "suppression_limits": [0, 5]}
    names = ["ola", "contour", "all-minimal"]
    show(shoal.compare(table(), policy(), algorithms=names, **wish).document())
    shown = " ".join(capsys.readouterr().out.split())
    miss = "The table has 240 records and every class needs 241. Use a smaller k (or l), or more records."
    assert shown.endswith(
        f"ola, all-minimal (discernibility, limit 0, k 241 to 300): infeasible: {miss} "
        f"contour (discernibility, limit 0, 5, k 241 to 300): infeasible: {miss} "
        "ola, all-minimal (discernibility, limit 5): refused: the metric is not monotone here. "
        "Use 'contour' or 'auto'."
    )


def test_the_best_row_comes_first(desk: Workspace) -> None:
    result = desk.call("--algorithm", "datafly,exhaustive,contour", "--k", "9")
    lines = [line.split() for line in result.stdout.splitlines()]
    shown = [line for line in lines if line and line[0] in ("datafly", "exhaustive", "contour")]
    assert [line[0] for line in shown] == ["contour", "exhaustive", "datafly"]
    assert [line[1] for line in shown][:2] == ["100.00%", "100.00%"]
    assert "k 9" in result.stdout
