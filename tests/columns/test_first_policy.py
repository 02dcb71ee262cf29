"""The first policy: roles from what an outsider could know and the analyst needs; one call without a file."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from public_tables import ALL, LookAlike, staff, survival, wages
from shoal.cli.app import app
from shoal.columns.duplicates import Dependency, dependencies, redundant
from shoal.columns.guesses import Guess
from shoal.errors import DataError, ShoalError, UsageError
from shoal.models.distinct_l_diversity import DistinctLDiversity
from shoal.policy.policy import Policy
from shoal.workflow.first_policy import FirstPolicy, first_policy, names_text, outlook, quick_retained
from shoal.workflow.inspect import guess_columns_of
from shoal.workflow.policy_request import PolicyRequest
from shoal.workflow.session import session
from ticking import let_looks_take_time

QUASI = "quasi-identifier"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let quick searches come as far on a busy machine as on any other."""
    let_looks_take_time(monkeypatch)


def first(table: Any, known: Any = None, keep: Any = None, **options: Any) -> FirstPolicy:
    with session(table) as s:
        return first_policy(s, PolicyRequest(known, keep, **options))


def roles(table: Any, known: Any = None, keep: Any = None) -> dict[str, str]:
    policy = shoal.init(table, known=known, keep=keep)
    return {name: column.role.value for name, column in policy.columns.items()}


def patients(size: int = 200, **columns: list[Any]) -> pa.Table:
    draw = random.Random(size)
    named: dict[str, list[Any]] = {
        "patient_id": [f"P{n:04}" for n in range(size)],
        "age": [draw.randint(20, 80) for _ in range(size)],
        "sex": [draw.choice("mf") for _ in range(size)],
        "diagnosis": [draw.choice(("asthma", "diabetes", "migraine")) for _ in range(size)],
        "score": [draw.randint(3, 40) for _ in range(size)],
        "arm": [draw.choice(("a", "b")) for _ in range(size)],
    }
    return pa.table(named | columns)


# Roles.


def test_known_columns_are_the_quasi_identifiers_and_the_rest_is_other() -> None:
    assert roles(patients(), ["age", "arm"]) == {
        "patient_id": "identifier",
        "age": QUASI,
        "sex": "other",
        "diagnosis": "sensitive",
        "score": "other",
        "arm": QUASI,
    }


def test_kept_columns_are_released_unchanged() -> None:
    given_roles = roles(patients(), ["age"], ["score", "diagnosis"])
    assert (given_roles["score"], given_roles["diagnosis"]) == ("other", "sensitive")
    release = shoal.anonymize(patients(), known=["age"], keep=["score"])
    before = Counter(patients()["score"].to_pylist())
    assert not Counter(release.table["score"].to_pylist()) - before


def test_a_kept_column_needs_no_known_ones_but_what_is_recognized_is_known() -> None:
    given_roles = roles(patients(), keep=["score", "age"])
    assert given_roles["score"] == "other"
    assert given_roles["age"] == given_roles["sex"] == given_roles["arm"] == QUASI
    assert shoal.init(patients(), keep=["age"]).columns["age"].weight == 2


@pytest.mark.parametrize(
    "answer", [{"known": ["patient_id", "age"]}, {"known": ["age"], "keep": ["patient_id"]}]
)
def test_a_key_stays_an_identifier_with_a_note(answer: dict[str, Any]) -> None:
    made = first(patients(), **answer)
    assert made.policy.columns["patient_id"].role.value == "identifier"
    assert any("'patient_id'" in note and "as an identifier" in note for note in made.notes)
    assert "P00" not in "".join(made.notes)


def test_the_policy_is_to_be_edited_and_says_why() -> None:
    made = first(patients(), ["age"], ["score"])
    assert (
        Policy.from_yaml(made.text, Path())
        == made.policy
        == shoal.init(patients(), known="age", keep="score")
    )
    assert yaml.safe_load(made.text)["metric"] == "coverage"
    assert made.policy.models[0] == {"k-anonymity": {"k": 5}}
    assert made.policy.suppression_limit == "5%"
    lines = {line.split(":")[0].strip(): line for line in made.text.splitlines() if "role" in line}
    assert "# age: number" in lines["age"]
    assert lines["score"].endswith("needed by the analyst")
    assert lines["arm"].endswith("not known to an outsider")


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_nobody_matches_fewer_than_k_records_by_the_known_columns(table: LookAlike, tmp_path: Path) -> None:
    data, output = tmp_path / "t.csv", tmp_path / "r.csv"
    pyarrow.csv.write_csv(table.table, data)
    release = shoal.anonymize(data, known=table.known, keep=table.keep, output=output)
    policy = release.policy
    found = shoal.attack(output, known=data, on=list(table.known), policy=policy).to_dict()
    assert found["smallest"] >= 5
    assert {name: policy.columns[name].role.value for name in table.keep}.items() <= {
        **dict.fromkeys(table.keep, "other"),
        **{name: "sensitive" for name in ("lwage", "Salary") if name in table.keep},
    }.items()
    units = [model["k-anonymity"].get("unit") for model in policy.models if "k-anonymity" in model]
    assert units == [table.person]
    if table.person:
        person = dict(enumerate(table.columns[table.person]))
        assert fewest_persons(table, release.policy) >= 5, person


def fewest_persons(table: LookAlike, policy: Policy) -> int:
    """Count the persons behind each released combination, with the rows' numbers beside them."""
    numbered = table.table.append_column("row_tag", pa.array(range(table.table.num_rows)))
    columns = policy.written()["columns"] | {"row_tag": {"role": "other"}}
    released = shoal.anonymize(numbered, policy.written() | {"columns": columns}).table.to_pylist()
    behind: dict[tuple[Any, ...], set[Any]] = {}
    for row in released:
        key = tuple(row[name] for name in policy.roles.quasi_identifiers)
        behind.setdefault(key, set()).add(table.columns[str(table.person)][row["row_tag"]])
    return min(map(len, behind.values()))


# Known and needed.


def labels_left(release: Any, name: str) -> int:
    return len(set(release.table[name].to_pylist()))


@pytest.mark.parametrize("seed", range(6))
def test_a_column_that_is_known_and_needed_keeps_two_labels(seed: int) -> None:
    draw = random.Random(seed)
    size = 300
    rare = draw.choice((0.02, 0.04, 0.06, 0.3))
    table = patients(
        size,
        event=["yes" if draw.random() < rare else "no" for _ in range(size)],
        ward=[draw.choice("abcdefgh") for _ in range(size)],
    )
    made = first(table, ["age", "sex", "ward", "event"], ["event"])
    entry = made.policy.columns["event"]
    assert (entry.role.value, entry.weight) == (QUASI, 2)
    assert entry.max_level == 0
    rare_records = table["event"].to_pylist().count("yes")
    assert any("'event'" in note for note in made.notes) == (rare_records <= 15)
    release = shoal.anonymize(table, made.policy)
    if rare_records > 15:
        assert labels_left(release, "event") == 2


def test_the_highest_level_of_a_needed_column_leaves_two_labels() -> None:
    table = patients(400)
    policy = shoal.init(table, known=["age", "sex"], keep=["age"])
    groups = policy.builder("age")
    assert policy.columns["age"].max_level is not None
    values = [str(value) for value in table["age"].to_pylist()]
    with session(table) as s:
        _, domains = s.count(["age"])
    bound = groups.bind(domains["age"])
    sizes = np.array([values.count(str(text)) for text in domains["age"].texts])
    largest = [np.bincount(bound.groups(level), sizes).max() for level in range(bound.height + 1)]
    allowed = [level for level, size in enumerate(largest) if 400 - size > 20]
    assert policy.columns["age"].max_level == max(allowed)


# Duplicates.


def dependent(columns: dict[str, list[Any]]) -> list[Dependency]:
    with session(pa.table(columns)) as s:
        counts, _ = s.count(list(columns))
        return dependencies(counts, list(columns))


@given(st.data())
def test_dependencies_are_those_of_a_naive_comparison(data: st.DataObject) -> None:
    size = 120
    draw = random.Random(data.draw(st.integers(0, 10_000)))
    fine = [draw.randrange(12) for _ in range(size)]
    columns: dict[str, list[Any]] = {
        "fine": fine,
        "coarse": [value // 3 for value in fine],
        "same": [f"c{value}" for value in fine],
        "free": [draw.randrange(4) for _ in range(size)],
    }
    if draw.random() < 0.5:  # one exception
        columns["coarse"][0] = 9
        fine[1], columns["coarse"][1], columns["same"][1] = fine[0], fine[0] // 3, f"c{fine[0]}"

    def tells(one: str, other: str) -> bool:
        seen: dict[Any, set[Any]] = {}
        for key, value in zip(columns[one], columns[other], strict=True):
            seen.setdefault(key, set()).add(value)
        return all(len(values) == 1 for values in seen.values())

    expected = {(one, other) for one in columns for other in columns if one != other and tells(one, other)}
    pairs = dependent(columns)
    made = {(pair.finer, pair.coarser) for pair in pairs}
    made |= {(pair.coarser, pair.finer) for pair in pairs if pair.both}
    assert made == expected


def test_columns_that_agree_by_chance_are_no_duplicates() -> None:
    draw = random.Random(1)
    amounts = [draw.randrange(10**6) for _ in range(300)]
    assert not dependent({"amount": amounts, "sex": [draw.choice("mf") for _ in amounts]})
    rare = ["yes", *["no"] * 299]
    assert not dependent({"group": [draw.randrange(60) for _ in amounts], "rare": rare})


def test_the_coarser_of_two_stays_unless_it_tells_too_little() -> None:
    month, code = Dependency("date", "month", False, 0.4, 12), Dependency("DeptID", "Department", True)
    flags = [Dependency("level", f"level{number}", False, 0.4, 2) for number in (1, 2)]
    assert set(redundant([month, code, *flags], ["Department"])) == {"date", "DeptID", "level1", "level2"}
    assert not redundant(flags[:1], [])  # it may be kept where the finer one is lost
    assert set(redundant([month], [], kept=["date"])) == {"month"}
    assert not redundant([month], [], kept=["date", "month"])


def test_a_code_beside_its_name_and_a_date_beside_its_month_are_counted_once() -> None:
    made = first(staff().table)
    policy = made.policy
    assert policy.columns["Department"].role.value == policy.columns["MonthofHire"].role.value == QUASI
    assert policy.columns["DeptID"].role.value == policy.columns["DateofHire"].role.value == "identifier"
    assert any("'DeptID'" in note and "'Department'" in note for note in made.notes)
    assert any("'DateofHire'" in note and "'MonthofHire'" in note for note in made.notes)


def test_what_a_known_column_tells_is_not_released_beside_it() -> None:
    table = patients(300)
    ages = table["age"].to_pylist()
    table = table.append_column("decade", pa.array([f"{age // 10}0s" for age in ages]))
    assert roles(table, ["age", "sex"])["decade"] == "identifier"
    needed = first(table, ["age", "sex"], ["decade"])
    assert needed.policy.columns["decade"].role.value == QUASI
    assert any("'decade'" in note and "keep" in note for note in needed.notes)
    assert roles(table, ["decade", "sex"])["age"] == "identifier"
    assert labels_left(shoal.anonymize(table, known=["age", "sex"], keep=["decade"]), "decade") >= 2


def incidents(rows: int = 900) -> pa.Table:
    """Make a table of persons in incidents: the time of each incident, and so of one or two persons."""
    draw = random.Random(7)
    times = [f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02} 12:{n % 60:02}:00" for n in range(400)]
    of = [n % 400 for n in range(rows)]
    problems = [draw.choice(("fight", "theft", "fire")) for _ in times]
    return pa.table(
        {
            "reported_at": [times[n] for n in of],
            "weekday": [f"{datetime.fromisoformat(times[n]):%A}" for n in of],
            "problem": [problems[n] for n in of],
            "sex": [draw.choice("mf") for _ in of],
        }
    )


def test_what_few_records_of_a_moment_share_does_not_follow_from_it() -> None:
    made = first(incidents(), ["reported_at", "sex"], ["problem"])
    roles = {guess.column: guess.role.value for guess in made.guesses}
    assert roles == {"reported_at": QUASI, "sex": QUASI, "problem": "other", "weekday": "identifier"}


def test_classes_need_not_hold_two_values_of_a_column_that_hardly_varies() -> None:
    rare = patients(therapy=["none"] * 197 + ["a", "a", "b"], medication=["no"] * 170 + ["yes"] * 30)
    made = first(rare, ["age", "sex"])
    models = [model.column for model in made.policy.privacy_models if isinstance(model, DistinctLDiversity)]
    assert models == ["diagnosis", "medication"]
    (note,) = [note for note in made.notes if "Nearly all" in note]
    assert "'therapy'" in note
    assert "more than 80% of a class" in note
    constant = first(patients(therapy=["none"] * 200), ["age", "sex"])
    assert shoal.anonymize(patients(therapy=["none"] * 200), constant.policy).retained_overall > 0.5


def test_a_rare_sensitive_value_never_fills_a_class_under_a_guessed_policy() -> None:
    """All who are 30 have the illness: someone who knows the age would learn it."""
    ages = [20 + n % 10 * 5 for n in range(400)]
    ill = ["yes" if age == 30 else "no" for age in ages]
    table = pa.table({"age": ages, "hiv": ill})
    made = first(table, ["age"])
    assert made.guesses[1].role.value == "sensitive"
    assert not any(isinstance(model, DistinctLDiversity) for model in made.policy.privacy_models)
    release = shoal.anonymize(table, made.policy)
    classes: dict[object, list[str]] = {}
    for age, value in zip(*(release.table[name].to_pylist() for name in ("age", "hiv")), strict=True):
        classes.setdefault(age, []).append(value)
    assert max(values.count("yes") / len(values) for values in classes.values()) <= 0.8
    assert any(set(values) == {"no"} for values in classes.values())
    assert release.retained_overall > 0.5


def test_of_two_known_columns_both_stay_with_a_note() -> None:
    table = patients(300)
    table = table.append_column("minor", pa.array([age < 30 for age in table["age"].to_pylist()]))
    made = first(table, ["age", "minor"])
    assert {made.policy.columns[name].role.value for name in ("age", "minor")} == {QUASI}
    both = "'age' tells the value of 'minor', and both stay"
    assert any(f"{both} because known or keep names both." in note for note in made.notes)
    unasked = first(table)
    assert unasked.policy.columns["minor"].role.value == QUASI  # a single flag
    assert any(f"{both}. To count them once" in note for note in unasked.notes)


# Kinds.


def guessed(**columns: list[Any]) -> dict[str, Guess]:
    with session(pa.table(columns)) as s:
        return {guess.column: guess for guess in guess_columns_of(s).guesses}


def test_row_numbers_are_keys() -> None:
    draw = random.Random(3)
    found = guessed(
        X=list(range(1, 101)),
        index=list(range(100)),
        some=sorted(draw.sample(range(5, 150), 100)),
        rank=draw.sample(range(1, 101), 100),
        grams=[draw.randint(700, 5000) for _ in range(100)],
        age=[draw.randint(20, 60) for _ in range(100)],
    )
    assert [name for name, guess in found.items() if guess.role.value == "identifier"] == [
        "X",
        "index",
        "some",
        "rank",
    ]


def test_codes_of_most_persons_are_keys_also_where_some_are_missing() -> None:
    found = guessed(
        DRIVERS=[f"S999{n * 37 % 99991:05}" if n % 4 else None for n in range(200)],
        plan=["basic", "plus"] * 100,
    )
    assert (found["DRIVERS"].column_kind.value, found["DRIVERS"].role.value) == ("key", "identifier")
    assert found["plan"].role.value == QUASI


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("visits", [0, 1, 2, 3, 7, 12], "count"),
        ("stage", [1, 2, 3, 4], "category"),
        ("smoke", [0, 1], "category"),
        ("bmi", [18.5, 22.1, 30.7], "measurement"),
        ("Survived", [0, 1], "outcome"),
        ("arrest", [0, 1], "outcome"),
        ("MaritalStatusID", [0, 1, 2, 3, 4], "personal"),
        ("engagement", [1.5, 2.5, 3.5], "measurement"),
        ("capacity", [1.5, 2.5, 3.5], "measurement"),
        ("default.payment.next.month", [0, 1], "outcome"),
        ("hours_tv_per_school_day", ["0", "<1", "1", "2", "3", "4", "5+"], "category"),
        ("BirthWeightOz", [84, 101, 117, 120, 133, 140], "measurement"),
        ("addr_state", ["CA", "NY", "TX", "OH"], "place"),
        ("home_address_zip", ["80331", "80333", "10115"], "place"),
        ("mage", [19, 25, 31, 40], "age"),
    ],
)
def test_the_kind_follows_from_name_and_values(name: str, values: list[Any], kind: str) -> None:
    guess = guessed(**{name: values * 20})[name]
    assert guess.column_kind.value == kind
    assert guess.reason


def test_a_first_column_without_a_name_numbers_the_rows(tmp_path: Path) -> None:
    draw = random.Random(4)
    rows = "".join(f'"{n}",{draw.randint(20, 60)},{draw.choice("mf")}\n' for n in range(1, 61))
    (tmp_path / "t.csv").write_text(f'"","age","sex"\n{rows}', encoding="utf-8")
    assert roles(tmp_path / "t.csv", ["age", "sex"][:1]) == {
        "unnamed": "identifier",
        "age": QUASI,
        "sex": "other",
    }


# Wrong answers.


WRONG = [
    ({"known": ["agee"]}, "Unknown column 'agee'. Did you mean 'age'?"),
    ({"known": ["age"], "keep": ["scor"]}, "Unknown column 'scor'. Did you mean 'score'?"),
    ({"known": []}, "known names no column"),
    ({"known": ["age"], "keep": []}, "keep names no column"),
    ({"known": ""}, "known names no column"),
    ({"known": ["patient_id", "age", "sex", "diagnosis", "score", "arm"]}, "names every column"),
    ({"known": ["patient_id"]}, "removed as identifiers"),
    ({"known": ["age"], "k": 0}, "k must be at least 1"),
    ({"known": 7}, "must be names"),
]


@pytest.mark.parametrize(("answers", "says"), WRONG)
def test_a_wrong_answer_is_refused_clearly(answers: dict[str, Any], says: str) -> None:
    for call in (shoal.init, shoal.anonymize):
        with pytest.raises(UsageError, match=says.split("'")[0].strip()) as error:
            call(patients(), **answers)
        assert says in str(error.value)


def test_names_may_be_one_text_and_may_be_given_twice() -> None:
    assert roles(patients(), "age, sex") == roles(patients(), ["age", "sex", "age"])


def test_three_rows_are_too_few() -> None:
    with pytest.raises(DataError, match="The table has 3 records, and k is 5: no release is possible"):
        shoal.init(patients(3), known=["age"])
    assert shoal.init(patients(3), known=["age"], k=2).models[0] == {"k-anonymity": {"k": 2}}
    with pytest.raises(ShoalError, match="3 records"):
        shoal.anonymize(patients(3))


@pytest.mark.parametrize("option", ["known", "keep"])
def test_an_empty_column_is_no_answer(option: str) -> None:
    table = patients(nothing=[None] * 200)
    with pytest.raises(UsageError, match=f"{option} names column 'nothing', which is empty in every record"):
        shoal.init(table, **{"known": ["age"], option: ["age", "nothing"]})
    assert roles(table, ["age"])["nothing"] == "other"


def test_a_policy_goes_with_no_answers() -> None:
    policy = shoal.init(patients(), known=["age"])
    for answer in ({"known": ["age"]}, {"keep": ["age"]}, {"k": 3}):
        with pytest.raises(UsageError, match="is for a policy that is guessed, and one is given"):
            shoal.anonymize(patients(), policy, **answer)


def test_two_hundred_columns_end() -> None:
    draw = random.Random(200)
    table = pa.table({f"v{n}": [draw.randrange(3 + n % 40) for _ in range(300)] for n in range(200)})
    with session(table) as s:
        columns = guess_columns_of(s)
        made = first_policy(s, PolicyRequest(), columns=columns)
        looked = outlook(s, made, columns, PolicyRequest())
    assert len(looked.unrecognized) == 200
    assert looked.command("t.csv")[:4] == ["shoal", "init", "t.csv", "--known"]


def test_the_outlook_offers_no_columns_that_retain_less(monkeypatch: pytest.MonkeyPatch) -> None:
    table = patients(thing=["p", "q"] * 100)
    for shares, offered in (((0.2, 0.3), 0.3), ((0.3, 0.2), None)):
        found = iter(shares)
        monkeypatch.setattr("shoal.workflow.first_policy.quick_retained", lambda *_, found=found: next(found))
        with session(table) as s:
            columns = guess_columns_of(s)
            made = first_policy(s, PolicyRequest(), columns=columns)
            looked = outlook(s, made, columns, PolicyRequest())
        assert (looked.retained_then, bool(looked.command("t.csv"))) == (offered, offered is not None)


def test_a_date_of_birth_that_stays_gets_a_note() -> None:
    born = [date(1950 + n % 50, 1 + n % 12, 1 + n % 28) for n in range(200)]
    notes = " ".join(first(patients(Geburtsdatum=born, visit=born[::-1]), ["sex"]).notes)
    assert "Column 'Geburtsdatum' looks like something that an outsider could know" in notes
    assert "'visit' looks like" not in notes
    notes = " ".join(first(patients(**{"Age (years)": list(range(200))}), ["sex"]).notes)
    assert "--drop 'Age (years)'" in notes


# One call.


def test_one_call_needs_no_policy_and_leaves_it_in_the_private_folder(tmp_path: Path) -> None:
    data, output = tmp_path / "t.csv", tmp_path / "r.csv"
    pyarrow.csv.write_csv(patients(), data)
    release = shoal.anonymize(data, known=["age", "sex"], keep=["score"], k=4, output=output)
    saved = tmp_path / "r.csv.private" / "policy.yaml"
    assert release.to_dict()["policy"] == str(saved)
    assert Policy.load(saved) == release.policy
    assert release.policy.models[0] == {"k-anonymity": {"k": 4}}
    assert saved.stat().st_mode & 0o77 == 0
    assert shoal.verify(output, saved).verified
    assert not any("guessed" in note for note in release.notes)


def test_without_any_answer_the_guess_is_used_and_said() -> None:
    release = shoal.anonymize(patients())
    assert "The policy was guessed: 2 unrecognized columns stay" in release.notes[0]
    assert release.policy == shoal.init(patients())
    assert release.to_dict()["policy"] is None


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    pyarrow.csv.write_csv(patients(), path)
    return path


def call(*words: object, input_text: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words], input=input_text)


def test_the_command_anonymizes_without_a_policy(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.csv"
    words = ("--known", "age,sex", "--keep", "score", "--k", 4, "--suppression-limit", "10%")
    done = call("anonymize", data, *words, "--output", output, "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verified"]
    saved = Policy.load(answer["policy"])
    assert (saved.models[0], saved.suppression_limit) == ({"k-anonymity": {"k": 4}}, "10%")
    shown = call("anonymize", data, *words, "--output", output, "--force").stdout
    assert "policy.yaml (private: keep it)" in shown
    again = call(
        "anonymize", data, "--policy", answer["policy"], "--known", "age", "--output", tmp_path / "q.csv"
    )
    assert again.exit_code == 2
    assert "--known is for a policy that is guessed" in again.stderr
    talk = call("anonymize", data, "--known", "age", "--generalize", "age=1", "--output", tmp_path / "q.csv")
    assert talk.exit_code == 2
    assert "--generalize needs --policy" in talk.stderr


def test_init_takes_the_answers_as_options(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "p.yaml"
    done = call("init", data, "--known", "age,arm", "--known", "sex", "--keep", "arm", "-o", output)
    assert done.exit_code == 0
    assert Policy.load(output) == shoal.init(data, known=["age", "arm", "sex"], keep=["arm"])
    assert "A quick search retains" in done.stderr
    wrong = call("init", data, "--known", "agee")
    assert wrong.exit_code == 2
    assert "Did you mean 'age'?" in wrong.stderr
    assert call("init", data, "--known", ",").exit_code == 2
    assert "--k is set by the preset" in call("init", data, "--k", 3, "--preset", "health-0.09").stderr


def test_init_says_that_a_table_has_fewer_records_than_k(tmp_path: Path) -> None:
    small = tmp_path / "three.csv"
    small.write_text("age,sex,y\n30,m,1\n40,f,0\n50,m,1\n", encoding="utf-8")
    done = call("init", small, "--output", tmp_path / "p.yaml")
    assert done.exit_code == 0
    assert "No release is possible: the table has 3 records, and k is 5." in done.stderr
    assert "quick search" not in done.stderr
    assert "quick search" in call("init", small, "--k", 2, "--output", tmp_path / "q.yaml").stderr


def test_how_dates_are_read_is_noted_only_where_they_are_generalized() -> None:
    table = pa.table(
        {
            "seen": [f"{n % 28 + 1:02}.{n % 12 + 1:02}.{n % 20:02}" for n in range(100)],
            "age": [str(20 + n % 50) for n in range(100)],
            "score": [str(n % 7) for n in range(100)],
        }
    )
    with session(table) as s:
        first = first_policy(s, PolicyRequest(known=["seen", "age"]))
        other = first_policy(s, PolicyRequest(known=["age"], keep=["seen"]))
    assert [note for note in first.notes if "two digits" in note]
    assert not [note for note in other.notes if "two digits" in note]
    assert "two digits" not in other.text


def test_init_without_an_answer_ends_with_a_command_that_retains_more(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "p.yaml"
    done = call("init", data, "--output", output)
    assert "2 columns are not recognized, and treated as quasi-identifiers to be safe." in done.stderr
    answer = json.loads(call("init", data, "--json").stdout)
    assert answer["unrecognized"] == ["score", "arm"]
    command = done.stderr.splitlines()[-1].split()
    assert command == ["shoal", "init", str(data), "--known", "age,sex", "--output", str(output), "--force"]
    better = call(*command[1:])
    assert better.exit_code == 0
    with session(data) as s:
        retained = quick_retained(s, s.table, first_policy(s, PolicyRequest("age,sex")).policy)
    assert retained is not None
    assert retained > answer["retained"] > 0
    assert "command" in answer


def test_the_two_questions_are_asked_in_a_terminal(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from shoal.cli.init import ask_answers

    replies = iter(["agee", "2,sex", "5", ""])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(replies))
    with session(data) as s:
        guesses = guess_columns_of(s).guesses
    answers = ask_answers(guesses)
    assert (answers.known, answers.keep) == (("age", "sex"), ("score",))
    shown = capsys.readouterr().err
    assert "Did you mean 'age'?" in shown
    assert "key; " in shown
    replies = iter(["", ""])
    assert not ask_answers(guesses).given


def test_a_preset_still_holds_for_columns_that_no_answer_names() -> None:
    days = [f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}" for n in range(200)]
    with session(patients(admitted=days)) as s:
        made = first_policy(s, PolicyRequest(["age"], ["score"]), preset="safe-harbor")
    admitted = made.policy.columns["admitted"]
    assert (admitted.role.value, admitted.min_level) == (QUASI, 1)
    assert made.policy.columns["score"].role.value == "other"


def test_names_with_commas_are_quoted() -> None:
    assert names_text(["age", "city, state"]) == 'age,"city, state"'
    table = patients().append_column("city, state", pa.array(["x, y"] * 100 + ["z, y"] * 100))
    assert roles(table, "city, state")["city, state"] == QUASI


def test_the_survey_and_the_trial_retain_most_of_what_is_known() -> None:
    for table in (survival(), wages()):
        with session(table.table) as s:
            few = quick_retained(s, s.table, first_policy(s, PolicyRequest(table.known, table.keep)).policy)
            all_columns = quick_retained(s, s.table, first_policy(s, PolicyRequest()).policy)
        assert few is not None
        assert all_columns is not None
        assert few > all_columns


def test_a_place_that_known_leaves_out_is_named_with_the_remedy() -> None:
    table = pa.table(
        {
            "age": [20 + row % 50 for row in range(400)],
            "zip": [f"{10000 + row % 90 * 37}" for row in range(400)],
            "score": [row % 7 for row in range(400)],
        }
    )
    with session(table) as s:
        named = first_policy(s, PolicyRequest(["age"], ["score"], 5))
        complete = first_policy(s, PolicyRequest(["age", "zip"], ["score"], 5))
        kept = first_policy(s, PolicyRequest(["age"], ["score", "zip"], 5))
    assert any("add it to known, or remove it with --drop zip" in note for note in named.notes)
    for other in (complete, kept):
        assert not any("add it to known" in note for note in other.notes)
