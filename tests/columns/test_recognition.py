"""Tables as hospitals outside English have them: decimal commas, dates with times, postcodes, cases."""

from __future__ import annotations

import csv
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from list_engine import ListEngine
from shoal.algorithms import ALGORITHMS
from shoal.cli.app import app
from shoal.columns.guesses import Guess
from shoal.columns.kinds import Kind
from shoal.columns.natural import natural_hierarchy
from shoal.columns.presets import policy_text, safe_harbor
from shoal.core.counts.counts import Domain
from shoal.core.evaluator import Evaluator
from shoal.core.hierarchy.builder import decimal_of, number_of
from shoal.core.hierarchy.builders import parse
from shoal.errors import HierarchyError
from shoal.metrics import METRICS
from shoal.policy.policy import Policy
from shoal.web.workspace.workspace import Workspace
from shoal.workflow.attack.covering import ValueIndex
from shoal.workflow.attack.labels import Reader
from shoal.workflow.inspect import guess, inspect
from shoal.workflow.problem import counted, order_of, problem_of
from shoal.workflow.search import search, without_idle_levels
from shoal.workflow.session import OpenTable

SIZE = 60
SEX = ["f", "m"] * (SIZE // 2)


def guessed(**columns: list[Any]) -> dict[str, Guess]:
    return {one.column: one for one in guess(pa.table(columns))}


def natural(texts: list[str]) -> tuple[str, Any]:
    return natural_hierarchy("c", Kind.CATEGORY, texts, [1] * len(texts))


def bands(spec: dict[str, Any], *texts: str | None) -> list[str]:
    bound = parse("c", spec).bind(Domain("c", texts, texts))
    return [bound.labels[1][group] for group in bound.groups(1)]


# Decimal commas.


@given(st.lists(st.decimals(-999, 999, places=2), min_size=6, max_size=30, unique=True))
def test_bands_of_numbers_are_the_same_with_comma_and_point(numbers: list[Decimal]) -> None:
    points = [f"{number:.2f}" for number in numbers]
    commas = [text.replace(".", ",") for text in points]
    spec = {"intervals": [5, 10], "fractions": True}
    assert bands(spec, *points) == bands(spec | {"decimal": ","}, *commas)
    assert decimal_of(points) == "."
    assert decimal_of(commas) == ","
    (kind, rule), (same, other) = natural(points), natural(commas)
    assert (kind, same, other) == ("number", "number", rule | {"decimal": ","})


def test_a_comma_that_may_part_thousands_is_not_guessed_at() -> None:
    texts = [f"{n},{n * 37 % 1000:03}" for n in range(1, 40)] + ["12"]
    found = guessed(Betrag=texts * 2)["Betrag"]
    assert (found.kind, found.hierarchy) == ("category", "flat")
    (note,) = inspect(pa.table({"Betrag": texts})).notes  # each once, so that it is an identifier: also then
    assert note.startswith("Column 'Betrag' may hold numbers, but its commas may be")
    assert not any(text in note for text in texts)
    small = [f"1,{n}" for n in range(100, 180)]
    (near,) = inspect(pa.table({"Betrag": small})).notes
    assert "as hierarchy: {intervals: [0.0025, 0.005, 0.01, 0.02, 0.04], decimal: ','}." in near
    assert "If they separate thousands" in near
    assert decimal_of([*texts, "0,125"]) == ","  # no thousands begin with a zero
    assert decimal_of([*texts, "1,234,567"]) is None
    assert decimal_of([*texts, "1.234"]) is None


def test_numbers_of_one_length_that_begin_with_zero_are_no_codes() -> None:
    for sign in ".,":
        texts = [f"{n % 3}{sign}{n:02}" for n in range(30)]
        assert guessed(n=texts)["n"].kind == "number"


def test_a_code_for_unknown_lies_far_from_numbers_with_commas_too() -> None:
    high = [f"9{n},5" for n in range(8)]
    assert guessed(n=[*high, "99"])["n"].hierarchy == {
        "intervals": [2, 4], "origin": 90, "split": 94, "decimal": ",",
    }  # fmt: skip
    low = [f"3{n},5" for n in range(8)]
    found = guessed(n=[*low, "99", "k.A."])["n"]
    expected = {"intervals": [2, 4], "origin": 30, "decimal": ",", "unknown": ["99", "k.A."]}
    assert found.hierarchy == expected
    assert bands(found.hierarchy, *low[1:3], "99", "99,0") == ["[30, 32)", "[32, 34)", "99", "99,0"]


def test_a_wrong_decimal_sign_is_refused_with_the_right_one_named() -> None:
    with pytest.raises(HierarchyError, match=r"42 or 3\.5,.*add decimal: ','") as refused:
        bands({"intervals": [5]}, "36,6")
    assert refused.value.values == ("36,6",)
    with pytest.raises(HierarchyError, match="42 or 3,5"):
        bands({"cuts": [37], "decimal": ","}, "36.6")
    with pytest.raises(HierarchyError, match=r"decimal must be '\.' or ','"):
        parse("c", {"intervals": [5], "decimal": ";"})


def test_a_table_with_decimal_commas_is_released_verified_and_measured(tmp_path: Path) -> None:
    draw = random.Random(1)
    rows = [(f"{draw.randint(360, 367) / 10:.1f}".replace(".", ","), draw.choice("fm")) for _ in range(200)]
    data, output, policy = tmp_path / "t.csv", tmp_path / "r.csv", tmp_path / "p.yaml"
    with data.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows([("Temperatur", "sex"), *rows])
    policy.write_text(policy_text(guess(data)), encoding="utf-8")
    exact = np.mean([float(text.replace(",", ".")) for text, _ in rows])
    for level, near in ((1, 0.5), (0, 1e-9)):
        release = shoal.anonymize(data, policy, output=output, force=True, node={"Temperatur": level})
        assert (release.verification.verified, release.suppressed) == (True, 0)
        (column,) = (c for c in shoal.utility(data, output, policy).columns if c.column == "Temperatur")
        assert column.mean_before == pytest.approx(exact)
        assert column.mean_after == pytest.approx(exact, abs=near)
    regions = Policy.load(policy).with_(models=[{"k-anonymity": {"k": 30}}], algorithm="mondrian")
    temperatures, sexes = map(list, zip(*rows, strict=True))
    table = shoal.anonymize(pa.table({"Temperatur": temperatures, "sex": sexes}), regions).table
    ranges = {label for label in table["Temperatur"].to_pylist() if "-" in label}
    ends = [[float(end.replace(",", ".")) for end in label.strip("[]").split("-")] for label in ranges]
    assert ends
    assert all(low < high < low + 0.6 for low, high in ends)  # cut by the numbers, not by the texts


def test_the_other_readers_of_numbers_know_the_comma() -> None:
    texts = ["10,5", "9,25", None, "100,0"]
    assert order_of(texts).tolist() == [1, 0, 3, 2]
    found = inspect(pa.table({"t": [text for text in texts if text] + ["1,5", "2,5", "3,5"]}))
    assert [row[0] for row in found.preview("t", {"intervals": [5], "decimal": ","}).examples] == [
        "1,5", "2,5", "3,5", "9,25", "10,5", "100,0",
    ]  # fmt: skip
    reader = Reader(parse("t", {"intervals": [0.5], "decimal": ","}))
    assert ValueIndex.of_texts(["36,6"], reader, {}).scales["number"].lows.tolist() == [36.6]
    assert (reader.label("[36.5, 37)").spans[0].low, reader.label("[36,4-36,9]").spans[0].high) == (
        36.5,
        36.9,
    )


@given(st.text("0123456789,.-+ ", max_size=8))
def test_a_number_is_read_with_one_sign_only(text: str) -> None:
    if "," in text:
        assert number_of(text) is None
    if "." not in text:
        assert number_of(text, ",") == number_of(text.replace(",", "."))
    elif number_of(text, ",") is not None:
        assert text.rindex(".") < text.index(",")


@given(st.decimals(-(10**9), 10**9, places=2))
def test_points_part_thousands_before_a_comma(number: Decimal) -> None:
    text = f"{number:,.2f}".translate(str.maketrans(",.", ".,"))
    assert number_of(text, ",") == number
    assert decimal_of([text]) == ","
    if "." in text:
        assert number_of(text.partition(",")[0], ",") is None


# Dates with a time.


@pytest.mark.parametrize(
    "style",
    [
        f"{day}{time}"
        for day in ("%d.%m.%Y", "%d/%m/%Y", "%Y%m%d")
        for time in (" %H:%M", " %H:%M:%S", " %I:%M %p")
    ],
)
def test_a_date_with_a_time_is_a_date(style: str) -> None:
    days = [np.datetime64("2024-01-20T08:15:30") + np.timedelta64(31 * n, "h") for n in range(SIZE)]
    texts = [day.item().strftime(style) for day in days]
    found = guessed(Aufnahme=texts)["Aufnahme"]
    assert (found.kind, found.role.value) == ("date", "quasi-identifier")
    assert found.hierarchy == {"dates": ["week_of_month", "month"], "format": style}
    assert [label[:7] for label in bands(found.hierarchy, *texts)] == [str(day)[:7] for day in days]


@pytest.mark.parametrize("style", ["%d.%m.%Y", "%d/%m/%Y", "%Y%m%d"])
def test_dates_with_and_without_a_time_are_one_column_of_dates(style: str, tmp_path: Path) -> None:
    days = [np.datetime64("2024-01-20T08:15:30") + np.timedelta64(31 * n, "h") for n in range(SIZE)]
    times = ("", " %H:%M", " %H:%M:%S")
    texts = [day.item().strftime(style + times[n % 3]) for n, day in enumerate(days)]
    found = guessed(Aufnahme=[*texts, "k.A."])["Aufnahme"]
    rule = {"dates": ["week_of_month", "month"], "format": style}
    assert (found.kind, found.hierarchy) == ("date", rule | {"unknown": ["k.A."]})
    assert [label[:7] for label in bands(rule, *texts)] == [str(day)[:7] for day in days]
    data, policy, output = tmp_path / "t.csv", tmp_path / "p.yaml", tmp_path / "r.csv"
    data.write_text(
        "\n".join(["Aufnahme,sex", *map(",".join, zip(texts, SEX, strict=True))]), encoding="utf-8"
    )
    for text in (policy_text(guess(data)), safe_harbor(guess(data))):
        policy.write_text(text, encoding="utf-8")
        release = shoal.anonymize(data, policy, output=output, force=True)
        assert release.verification.verified
        assert shoal.verify(output, policy).verified
        again = shoal.apply(release.recipe, data, output=tmp_path / "again.csv", force=True)
        assert again.suppressed == release.suppressed
        assert (tmp_path / "again.csv").read_bytes() == output.read_bytes()


@pytest.mark.parametrize(
    "text", ["05.03.2024 x", "05.03.2024 99", "05.03.2024 24:00", "05.03.2024 14:15:", "05.03.2024 14:15 Uhr",
             "05.03.202414:15", "05.03.2024T14:15", "14:15", "32.03.2024 14:15", "2024-03-05 14:15"],
)  # fmt: skip
def test_only_a_time_may_follow_a_date(text: str) -> None:
    rule = {"dates": ["month"], "format": "%d.%m.%Y"}
    assert bands(rule, "05.03.2024", " 05.03.2024 14:15 ", "05.03.2024 14:15:59") == ["2024-03"] * 3
    with pytest.raises(HierarchyError, match=r"not a date like %d\.%m\.%Y"):
        bands(rule, "05.03.2024 14:15", text)
    some = ["05.03.2024 14:15", "06.03.2024"]
    assert natural([*some, text])[1]["uncovered"] == "unknown"
    assert natural([some[0], text, text + "x"])[0] == "category"


def test_a_format_with_a_time_asks_for_it() -> None:
    for style in ("%d.%m.%Y %H:%M", "%d.%m.%Y %I:%M %p", "%d.%m.%Y %X"):
        with pytest.raises(HierarchyError, match="not a date like"):
            bands({"dates": ["month"], "format": style}, "05.03.2024")


def test_a_rule_without_levels_names_no_codes() -> None:
    found = guessed(smoker=["ja", "nein", "k.A.", "99"] * 15)["smoker"]
    assert (found.kind, found.hierarchy) == ("category", "flat")
    texts = ("ja", "nein", "k.A.", None)
    for spec in ("flat", {"flat": None, "unknown": ["k.A."]}):
        bound = parse("c", spec).bind(Domain("c", texts, texts))
        assert [len(set(bound.groups(level))) for level in range(bound.height + 1)] == [4, 1]


def test_days_that_may_be_months_are_noted() -> None:
    texts = [f"{n % 12 + 1:02}/{n % 11 + 1:02}/2024 14:{n:02}" for n in range(SIZE)]
    found = guessed(seen=texts)["seen"]
    assert found.hierarchy["format"] == "%d/%m/%Y %H:%M"
    assert found.notes[0].startswith("Column 'seen' has dates that may begin with the day or with the month.")
    assert guessed(seen=[*texts, "13/01/2024 00:00"])["seen"].notes == ()
    assert guessed(seen=[text.replace("/", ".") for text in texts])["seen"].notes == ()
    american = guessed(seen=[*texts, "01/13/2024 00:00"])["seen"]
    assert (american.hierarchy["format"], american.notes) == ("%m/%d/%Y %H:%M", ())


# Postcodes.


@pytest.mark.parametrize("name", ["PLZ", "zip", "Postcode", "codigo_postal", "CEP", "cap_residenza"])
def test_postcodes_that_were_numbers_get_their_zeros_back(name: str) -> None:
    codes = [1067, 1069, 4109, 10115, 10117, 80331, 99084]
    found = guessed(**{name: codes * 8, "sex": SEX[:56]})[name]
    assert (found.kind, found.role.value) == ("code", "quasi-identifier")
    assert found.hierarchy == {"prefix": [3, 2, 1], "pad": [5]}
    assert bands(found.hierarchy, *map(str, codes)) == [f"{code:05}"[:3] + "*" for code in codes]


@pytest.mark.parametrize(
    ("codes", "rule"),
    [
        (["80331", "80333"], {"prefix": [3, 2, 1]}),
        (["1010", "8020"], {"prefix": [2, 1]}),
        (["501", "94110", "36011234", "941101234"], {"prefix": [3, 2, 1], "pad": [5, 9]}),
        (["1310100", "20040020"], {"prefix": [6, 5, 4, 3], "pad": [8]}),
        (["SW1A 1AA", "M1 1AE"], "flat"),
    ],
)
def test_the_rule_of_postcodes_follows_their_lengths(codes: list[str], rule: object) -> None:
    assert guessed(postcode=codes * 5)["postcode"].hierarchy == rule


def test_prefixes_of_codes_that_may_have_lost_zeros_are_noted(tmp_path: Path) -> None:
    data, policy = tmp_path / "t.csv", tmp_path / "p.yaml"
    data.write_text("code,other\n1067,ab\n10115,abc\n99,x\n", encoding="utf-8")
    rule = "{role: quasi-identifier, hierarchy: {prefix: [2], unknown: ['99']%s}}"
    for extra, note in (
        (
            "",
            "Hierarchy of 'code' (prefix): its codes have 4 to 5 digits. "
            "If zeros before them were lost, say pad: [5].",
        ),
        (", pad: [5]", None),
    ):
        policy.write_text(
            f"columns:\n  code: {rule % extra}\n  other: {rule % ''}\nmodels: [{{k-anonymity: {{k: 1}}}}]\n",
            encoding="utf-8",
        )
        words = ["hierarchy", "check", str(data), "--policy", str(policy)]
        found = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["columns"]
        assert [one["note"] for one in found] == [note, None]
        assert ("Note: " in CliRunner().invoke(app, words).stderr) == (note is not None)


# Roles.


@pytest.mark.parametrize(
    "name",
    ["Fallnummer", "Fall-Nr.", "case_number", "CaseID", "encounter id", "Numéro de séjour", "numero_caso",
     "lfd. Nr.", "Aufnahmenummer", "opnamenummer", "numero nosologico", "episode_id"],
)  # fmt: skip
def test_numbers_of_cases_are_identifiers_where_they_differ(name: str) -> None:
    found = guessed(**{name: [10_000 + 7 * n for n in range(SIZE)], "sex": SEX})[name]
    assert (found.kind, found.role.value) == ("number", "identifier")
    few = guessed(**{name: [n % 3 for n in range(SIZE)], "sex": SEX})[name]
    assert few.role.value == "quasi-identifier"


# What is told of a table beside its roles.


def notes_of(columns: dict[str, list[Any]]) -> list[str]:
    return inspect(pa.table(columns)).notes


def test_an_age_beside_a_date_of_birth_is_told() -> None:
    births = [f"{n % 28 + 1:02}.05.{1940 + n}" for n in range(SIZE)]
    columns = {"Alter": list(range(SIZE)), "Geburtsdatum": births, "sex": SEX}
    (note,) = notes_of(columns)
    assert note.startswith("Columns 'Alter' and 'Geburtsdatum' say nearly the same")
    assert notes_of({"Alter": columns["Alter"], "sex": SEX}) == []


def test_names_and_values_that_look_alike_are_told_without_a_value() -> None:
    columns = {
        "Station": ["Xa", "Xa ", "Xb"] * 20,
        "Station ": ["Yc", "yc", "Yd"] * 20,
        "Ort ": ["Zz ", "Zy", "Zx"] * 20,
    }
    notes = notes_of(columns)
    assert [note[:45] for note in notes] == [
        "Columns 'Station' and 'Station ' differ only ",
        "Column 'Ort ' has spaces around its name: wri",
        "Column 'Station' has values that differ only ",
        "Column 'Station ' has values that differ only",
        "Column 'Ort ' has values with spaces around t",
    ]
    assert not any(value.strip() in note for note in notes for value in ("Xa", "yc", "Zz"))


def test_notes_are_in_the_policy_in_json_and_on_stderr(tmp_path: Path) -> None:
    data, policy = tmp_path / "t.csv", tmp_path / "p.yaml"
    codes = ["01067", 10115, 80331, 99084, 20095, "04109", 99999]
    lines = [f"{codes[n % 7]},{n},{1940 + n}" for n in range(SIZE)]
    data.write_text("\n".join(["PLZ,Alter,Geburtsjahr", *lines]), encoding="utf-8")
    run = CliRunner().invoke
    for extra, told in (([], 1), (["--preset", "safe-harbor"], 2), (["--preset", "health-0.09"], 1)):
        notes = json.loads(run(app, ["init", str(data), "--json", *extra]).stdout)["notes"]
        assert len(notes) == told
        done = run(app, ["init", str(data), "--yes", "--force", "--output", str(policy), *extra])
        assert all(f"Note: {note}" in done.stderr.replace("\n", " ") for note in notes)
        text = policy.read_text(encoding="utf-8")
        comments = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
        assert all(note in comments for note in notes)
        assert ("No other value of the table is here." in comments) == (
            "unknown" in text.partition("columns:")[2]
        )
        assert max(len(line) for line in text.splitlines() if line.startswith("#")) <= 110
        Policy.load(policy)
    assert notes_are_about_abroad(run(app, ["init", str(data), "--json", "--preset", "safe-harbor"]).stdout)


def notes_are_about_abroad(stdout: str) -> bool:
    return "'PLZ' is named as a postcode of another country" in json.loads(stdout)["notes"][1]


def test_the_studio_tells_notes_for_the_roles_that_columns_have_now(tmp_path: Path) -> None:
    data = tmp_path / "t.csv"
    lines = [f"{10115 + n % 9},{n},{1940 + n}" for n in range(SIZE)]
    data.write_text("\n".join(["PLZ,Alter,Geburtsjahr", *lines]), encoding="utf-8")
    workspace = Workspace(tmp_path / "desk")
    workspace.open(data)
    assert [note[:15] for note in workspace.draft.notes()] == ["Columns 'Alter'"]
    workspace.draft.follow_preset("safe-harbor")
    assert [note[:15] for note in workspace.draft.notes()] == ["Columns 'Alter'", "Column 'PLZ' is"]
    workspace.table.choose_role("Alter", "identifier")
    assert workspace.draft.notes() == []


def test_a_zip_code_is_of_the_country_of_the_rule() -> None:
    for name in ("zip", "ZIP code", "postal_code"):
        assert "another country" not in safe_harbor(list(guessed(**{name: ["12345", "02139"] * 9}).values()))


# Columns with one value.

TABLE = {
    "age": [str(20 + n % 9) for n in range(SIZE)],
    "sex": SEX,
    "clinic": ["north"] * SIZE,
    "none": [None] * SIZE,
}
POLICY = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4, 8]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "clinic": {"role": "quasi-identifier", "hierarchy": {"tree": {"all": {"north side": ["north"]}}}},
        "none": {"role": "quasi-identifier", "hierarchy": "flat"},
    },
    "models": [{"k-anonymity": {"k": 7}}],
    "suppression_limit": 5,
}


def problem(**changes: Any) -> Any:
    policy = Policy.load({**POLICY, **changes})
    engine = ListEngine()
    table = engine.open(pa.table(TABLE).to_pandas())
    counts, domains = counted(OpenTable(engine, table), policy)
    return problem_of(policy, counts, domains)


@pytest.mark.parametrize("metric", [name for name in METRICS if name != "classification"])
def test_levels_of_a_column_with_one_value_are_not_searched(metric: str) -> None:
    """No level of it loses less than the lowest, by any metric: the search misses nothing."""
    parts = {"composite": {"parts": [{"precision": 1}, {"discernibility": 2}]}}
    asked = problem(metric=parts if metric == "composite" else metric)
    assert (asked.lattice.size, without_idle_levels(asked).lattice.size) == (5 * 2 * 4 * 2, 5 * 2)
    evaluate = Evaluator(asked)
    least = min(
        (e for node in asked.lattice.nodes() if (e := evaluate(node)).acceptable), key=lambda e: e.loss
    )
    _, found = search(asked)
    assert found.node[2:] == (0, 0)
    assert found.loss == pytest.approx(least.loss)
    assert found.work.nodes_evaluated <= 10
    assert search(asked, ALGORITHMS.create("exhaustive"))[1].work.nodes_evaluated == 80  # named


def test_a_wish_for_a_level_of_such_a_column_is_heard() -> None:
    table = pa.table(TABLE)
    assert shoal.anonymize(table, POLICY).levels["clinic"] == 0
    assert shoal.anonymize(table, POLICY, node={"clinic": 2}).levels["clinic"] == 2
    columns = {**POLICY["columns"], "clinic": {**POLICY["columns"]["clinic"], "min_level": 1}}
    assert shoal.anonymize(table, {**POLICY, "columns": columns}).levels["clinic"] == 1
    assert shoal.anonymize(table, {**POLICY, "algorithm": "mondrian", "metric": "coverage"}).suppressed == 0


def test_the_first_policy_of_a_constant_column_serves_a_later_table() -> None:
    """Its hierarchy is whole, so that the next table may have more values."""
    days = ["05.03.2024 14:15"] * SIZE
    policy = yaml.safe_load(policy_text(guess(pa.table({"day": days, "sex": SEX}))))
    assert policy["columns"]["day"]["hierarchy"]["dates"] == ["month", "quarter", "year"]
    later = [f"{n % 20 + 1:02}.03.2024 14:15" for n in range(SIZE)]
    assert shoal.anonymize(pa.table({"day": later, "sex": SEX}), policy).levels["day"] == 1
