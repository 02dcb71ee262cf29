"""What a workspace finds out about a table and its release is what the workflow finds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
import shoal
from shoal.core.rows import RowRequest
from shoal.errors import ShoalError
from shoal.sample import bundled
from shoal.web.errors import NotReady, Refused, TooLarge, Unknown
from shoal.web.workspace.diagnosis import QuestionName
from shoal.web.workspace.workspace import Workspace
from shoal.web.workspace.workspaces import Workspaces
from shoal.workflow.diagnosis.questions import QUESTIONS
from shoal.workflow.plain_words import QUESTION_SENTENCES

COLUMNS = ("age", "sex", "diagnosis")
OPTIONS: dict[str, Any] = {"k": 7, "suppression_limit": "2%", "most": 9, "max_size": 2, "at_most": True}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundled(tmp_path_factory.mktemp("sample"))[0]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    workspace.open_sample()
    return workspace


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_is_answered_as_diagnose_answers_it(
    question: str, shared: Workspace, sample: Path
) -> None:
    asked = QUESTIONS[question]
    options = {name: OPTIONS[name] for name in (*asked.needs, *asked.takes) if name in OPTIONS}
    answer = shared.question.run(question, COLUMNS, **options)
    own = shoal.diagnose(sample, COLUMNS).ask(question, **options)
    assert answer.answer == own.answer
    assert answer.text == own.text
    assert answer.document().tables == own.document().tables


def test_every_question_can_be_asked_and_has_its_sentence() -> None:
    assert set(get_args(QuestionName)) == set(QUESTIONS)
    assert {*QUESTION_SENTENCES, "overview"} == set(QUESTIONS)
    for name, sentence in QUESTION_SENTENCES.items():
        assert all(f"{{{option}}}" in sentence for option in QUESTIONS[name].needs)


def test_a_question_about_l_and_about_k_with_l(shared: Workspace, sample: Path) -> None:
    for kind in ({"sensitive": "diagnosis"}, {"sensitive": "diagnosis", "l": 2}):
        answer = shared.question.run("9", ["age", "sex"], k=3, **kind)
        assert answer.answer == shoal.diagnose(sample, ["age", "sex"], **kind).ask("9", k=3).answer
        assert answer.measure == ("k" if "l" in kind else "l")


def test_the_affected_records_are_a_file_that_the_next_answer_removes(
    shared: Workspace, sample: Path
) -> None:
    answer = shared.question.run("rows", ["age", "postcode"], k=4)
    path = shared.file("affected-rows")
    numbers = [int(line) for line in path.read_text().split()]
    assert len(numbers) == answer.answer > 0
    rows = sample.read_text(encoding="utf-8").splitlines()
    header = rows[0].split(",")
    pairs = [tuple(row.split(",")[header.index(name)] for name in ("age", "postcode")) for row in rows[1:]]
    assert all(pairs.count(pairs[number - 1]) < 4 for number in numbers)
    shared.question.run("2", ["age"])
    assert not path.exists()
    with pytest.raises(Unknown):
        shared.file("affected-rows")


@pytest.mark.parametrize(
    ("question", "columns", "options", "field"),
    [
        ("1", COLUMNS, {}, "k"),
        ("2", COLUMNS, {"k": 3}, "k"),
        ("2", ["agee"], {}, "columns"),
        ("2", [], {}, "columns"),
        ("12", COLUMNS, {"max_size": 2}, "most"),
    ],
)
def test_a_question_that_cannot_be_asked_names_the_field(
    question: str, columns: Any, options: dict[str, Any], field: str, shared: Workspace
) -> None:
    with pytest.raises(ShoalError) as error:
        shared.question.check(question, columns, **options)
    assert error.value.field == field


def test_an_answer_belongs_to_its_table_and_not_to_the_roles(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.open_sample()
    workspace.question.run("2", ["age"])
    workspace.table.choose_role("age", "other")
    assert workspace.question.result is not None
    workspace.open_sample()
    assert workspace.question.result is None


# Risk, measurement and attack.


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    workspace.open_sample()
    workspace.release.run()
    return workspace


def test_the_risk_takes_the_share_that_was_sampled(released: Workspace, sample: Path) -> None:
    policy = released.draft.policy()
    found = released.risk.run(threshold="1/11", sampling_share="10%", special_size=0)
    own = shoal.risk(
        sample, policy, threshold="1/11", sampling_share="10%", special_size=0,
        release=released.release.required_result.output,
    )  # fmt: skip
    assert found.to_dict() == own.to_dict()
    assert found.population == 50_000


def test_a_measurement_is_that_of_measure_before_and_after(released: Workspace, sample: Path) -> None:
    found = released.measurement.run()
    release = released.release.required_result
    assert found.before == shoal.measure(sample, policy=release.policy)
    assert found.after == shoal.measure(release.output, policy=release.policy)
    assert found.after.k == release.verification.smallest_class
    alone = released.measurement.run(["age"], ["diagnosis"])
    assert alone.before == shoal.measure(sample, ["age"], ["diagnosis"])
    assert alone.after is None


def register_of(sample: Path, *columns: str, rows: int = 200) -> bytes:
    lines = [line.split(",") for line in sample.read_text(encoding="utf-8").splitlines()[: rows + 1]]
    chosen = [lines[0].index(name) for name in columns]
    return "\n".join(",".join(line[index] for index in chosen) for line in lines).encode()


@pytest.fixture
def studio() -> Any:
    created = Workspaces(upload_limit=100_000)
    yield created
    created.close()


def released_at(studio: Workspaces) -> str:
    name = studio.open("anna")
    studio.open_sample(name)
    studio.get(name).release.run()
    return name


def received(studio: Workspaces, name: str, content: bytes, file_name: str = "register.csv") -> Any:
    with studio.receive_register(name, file_name) as register:
        register.write(content)
    return register


def files_of(studio: Workspaces, name: str) -> set[str]:
    return {path.name for path in studio.get(name).folder.iterdir()}


def test_an_attack_is_that_of_attack_and_its_register_is_deleted(studio: Workspaces, sample: Path) -> None:
    name = released_at(studio)
    before = files_of(studio, name)
    content = register_of(sample, "name", "age", "sex", "postcode")
    register = received(studio, name, content)
    assert register.path.stat().st_mode & 0o077 == 0
    found = studio.attack(name, register, ["age", "sex", "postcode"])
    assert files_of(studio, name) == before
    release = studio.get(name).release.required_result
    (own_register := studio.private / "own.csv").write_bytes(content)
    own = shoal.attack(release.output, own_register, ["age", "sex", "postcode"], policy=release.policy)
    assert (found.persons, found.exposure, found.learnt) == (own.persons, own.exposure, own.learnt)
    assert found.persons == 200
    assert found.revealed == ()
    studio.get(name).table.choose_role("age", "other")
    assert studio.get(name).attack.result is None


@pytest.mark.parametrize("damage", ["not a table", "no such column", "a cell too long", "nothing"])
def test_a_register_that_cannot_be_used_is_deleted_and_no_value_is_quoted(
    damage: str, studio: Workspaces, sample: Path
) -> None:
    name = released_at(studio)
    contents = {
        "not a table": b"\x00\x01SECRET" * 50,
        "no such column": b"born,SECRET\n1970,SECRET\n",
        "a cell too long": b'age\n"SECRET' + b"x" * 90_000,
        "nothing": b"",
    }
    with pytest.raises(ShoalError) as error:
        studio.attack(name, received(studio, name, contents[damage]), ["age"])
    assert "SECRET" not in str(error.value) or damage == "no such column"  # a header names columns
    assert str(studio.private) not in str(error.value)
    assert not [file for file in files_of(studio, name) if file.startswith("register-")]


def test_a_register_beyond_the_limit_or_of_another_kind_leaves_nothing(studio: Workspaces) -> None:
    name = released_at(studio)
    before = files_of(studio, name)
    with pytest.raises(TooLarge):
        received(studio, name, b"age\n" + b"5\n" * 60_000)
    for file_name in ("register.exe", "../../etc/passwd", "register.csv/..", "\0"):
        with pytest.raises(Refused, match="A table is a file"):
            received(studio, name, b"age\n5\n", file_name)
    assert files_of(studio, name) == before


def test_a_register_stays_in_the_folder_of_its_workspace_and_goes_with_the_next(studio: Workspaces) -> None:
    name = released_at(studio)
    abandoned = received(studio, name, b"age\n5\n", "../../outside/register.csv")
    assert abandoned.path.parent == studio.get(name).folder
    received(studio, name, b"age\n5\n")
    assert not abandoned.path.exists()


def test_a_register_needs_a_release(studio: Workspaces) -> None:
    name = studio.open("anna")
    studio.open_sample(name)
    with pytest.raises(NotReady, match="Release first"):
        studio.receive_register(name, "register.csv")


# The rows themselves.


def test_rows_are_those_of_the_table_sorted_filtered_and_marked(released: Workspace, sample: Path) -> None:
    lines = [line.split(",") for line in sample.read_text(encoding="utf-8").splitlines()]
    head, table = lines[0], lines[1:]
    page = released.rows.page("table", RowRequest(start=40, count=10))
    assert page.columns == tuple(head)
    assert page.total == len(table)
    assert [list(row.values) for row in page.rows] == table[40:50]
    assert [row.number for row in page.rows] == list(range(41, 51))
    age, sex = head.index("age"), head.index("sex")
    oldest = released.rows.page("table", RowRequest(count=5, sort=(("age", True),), contains={"sex": "FEM"}))
    expected = sorted((int(row[age]) for row in table if row[sex] == "female"), reverse=True)
    assert [int(row.values[age] or 0) for row in oldest.rows] == expected[:5]
    assert oldest.total == len(expected)


def test_marked_rows_are_those_that_a_diagnosis_counts(workspace_of_few: Workspace) -> None:
    for k in (2, 3, 5):
        page = workspace_of_few.rows.page("table", RowRequest(count=100, below=k))
        answer = workspace_of_few.question.run("rows", k=k)
        numbers = workspace_of_few.file("affected-rows").read_text().split()
        assert page.total == answer.answer > 0
        assert [str(row.number) for row in page.rows] == numbers


@pytest.fixture
def workspace_of_few(tmp_path: Path) -> Workspace:
    rows = ["age,town,note", *(f"{20 + n % 7},{'AB'[n % 2] if n % 5 else ''},n{n}" for n in range(40))]
    (tmp_path / "few.csv").write_text("\n".join(rows))
    (tmp_path / "workspace").mkdir()
    workspace = Workspace(tmp_path / "workspace")
    workspace.open(tmp_path / "few.csv")
    workspace.table.choose_roles(["age", "town"], "quasi-identifier")
    workspace.table.choose_role("note", "other")
    return workspace


def test_rows_of_the_release_have_classes_of_k_and_follow_the_roles(released: Workspace) -> None:
    release = released.release.required_result
    page = released.rows.page("release", RowRequest(count=1000))
    assert page.total == release.verification.records
    assert min(row.alike or 0 for row in page.rows) >= release.verification.smallest_class
    assert released.rows.page("release", RowRequest(below=release.verification.smallest_class)).total == 0


def test_names_and_values_that_look_like_sql_are_values(tmp_path: Path) -> None:
    table = tmp_path / "odd.csv"
    table.write_text('"a""; DROP TABLE x; --",it\'s,<b>\n1\'); DROP,x,1\n2,y,2\n')
    (tmp_path / "workspace").mkdir()
    workspace = Workspace(tmp_path / "workspace")
    workspace.open(table)
    names = workspace.table.loaded.names
    page = workspace.rows.page("table", RowRequest(contains={names[0]: "'); drop"}, sort=((names[1], True),)))
    assert [row.values for row in page.rows] == [("1'); DROP", "x", "1")]
    with pytest.raises(ShoalError, match="no column"):
        workspace.rows.page("table", RowRequest(sort=(("b", False),)))


def test_another_table_and_the_end_close_the_rows(workspace_of_few: Workspace, tmp_path: Path) -> None:
    workspace = workspace_of_few
    assert workspace.rows.page("table", RowRequest()).total == 40
    (tmp_path / "other.csv").write_text("age\n1\n2\n")
    workspace.open(tmp_path / "other.csv")
    assert not workspace.rows._open
    assert workspace.rows.page("table", RowRequest()).total == 2
    workspace.close()
    assert not workspace.rows._open


def test_values_are_summarized_by_their_counts(released: Workspace, sample: Path) -> None:
    lines = [line.split(",") for line in sample.read_text(encoding="utf-8").splitlines()]
    ages = [int(row[lines[0].index("age")]) for row in lines[1:]]
    summary = released.table.summary("age")
    assert summary.range == (str(min(ages)), str(max(ages)))
    assert len(summary.bars) == 12
    assert sum(summary.bars) == len(ages)
    width = (max(ages) - min(ages)) / 12
    assert summary.bars[0] == sum(age < min(ages) + width for age in ages)
    sexes = Counter(row[lines[0].index("sex")] for row in lines[1:])
    summary = released.table.summary("sex")
    assert summary.range is None
    assert list(zip(summary.samples, summary.bars, strict=False)) == sexes.most_common(3)
    insured = released.table.summary("insurance")
    assert sum(insured.bars) == 5_000 - 58  # a missing value is none
    assert "" not in insured.samples


@pytest.mark.parametrize(
    "values", [["", ""], ["1", "2"], ["5"] * 4, ["a", "1", "2"], [str(n) for n in range(50)]]
)
def test_any_column_has_a_summary(values: list[str], tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("first,value\n" + "".join(f"x,{value}\n" for value in values))
    workspace = Workspace(tmp_path)
    workspace.open(tmp_path / "table.csv")
    summary = workspace.table.summary("value")
    assert sum(summary.bars) <= len(values)
    assert summary.text


# Utility.


def test_the_utility_is_that_of_the_report_or_of_another_pair(released: Workspace, sample: Path) -> None:
    release = released.release.required_result
    own = shoal.utility(sample, release.output, release.policy)
    assert released.utility.required_result.columns == own.columns
    assert released.utility.required_result.to_dict()["associations"] == own.to_dict()["associations"]
    found = released.utility.run(["age", "diagnosis"])
    other = shoal.utility(sample, release.output, release.policy, pair=["age", "diagnosis"])
    assert found.contingency == other.contingency
    assert released.utility.required_result is found
    with pytest.raises(ShoalError) as error:
        released.utility.run(["age", "nothing"])
    assert error.value.field == "pair"


def test_records_by_class_size_add_up_before_and_after(released: Workspace) -> None:
    pytest.importorskip("nicegui", reason="the pages need shoal[web]")
    from shoal.web.pages.utility import class_size_bars

    release = released.release.required_result
    bars = class_size_bars(release.exposure, release.exposure_after)
    assert sum(before for _, before, _ in bars) == 5_000
    assert sum(after for _, _, after in bars) == release.verification.records
    assert [after for name, _, after in bars if name in ("1", "2\u20134")] == [0, 0]


def test_the_utility_goes_with_its_release(done: Workspace) -> None:
    done.utility.run(["age", "town"])
    done.table.choose_role("town", "other")
    assert done.utility.result is None


@pytest.fixture
def done(workspace_of_few: Workspace) -> Workspace:
    workspace_of_few.draft.change(models=[{"k-anonymity": {"k": 3}}], suppression_limit="20%")
    workspace_of_few.release.run()
    return workspace_of_few
