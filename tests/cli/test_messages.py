"""How errors are told: in a terminal, as JSON, and in Python."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import shoal
from shoal.algorithms import ALGORITHMS
from shoal.cli.app import app
from shoal.errors import DataError, HierarchyError, Infeasible, OutputError, PolicyError, UsageError
from shoal.policy.limits import limit_in_records
from shoal.policy.policy import Policy
from shoal.registry import in_words
from shoal.workflow.profile.grouping import share_of

POLICY = """
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: [5]}}
models:
  - k-anonymity: {k: 2}
"""


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of 60 values that are no numbers, two of them here: x00 and x59."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age\n" + "".join(f"x{n:02}\n" for n in range(60)), encoding="utf-8")
    Path("p.yaml").write_text(POLICY, encoding="utf-8")
    return tmp_path


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


ANONYMIZE = ("anonymize", "t.csv", "--policy", "p.yaml", "--output", "o.csv")
CHECK = ("hierarchy", "check", "t.csv", "--policy", "p.yaml")


@pytest.mark.parametrize("command", [ANONYMIZE, CHECK])
def test_values_are_listed_on_request_and_those_left_out_are_counted(
    strange: Path, command: tuple[str, ...]
) -> None:
    plain, shown = run(*command).stderr, run(*command, "--reveal").stderr
    assert "60 values are not a number" in plain
    assert plain.endswith(" --reveal lists them.\n")
    assert "x00" not in plain
    assert " Values: 'x00', 'x01'," in shown
    assert shown.endswith("'x49', and 10 more.\n")
    assert "--reveal" not in shown


def test_an_error_is_a_line_and_its_kind_is_told_as_json(strange: Path) -> None:
    told = run(*ANONYMIZE, "--json")
    assert told.stderr.startswith("Error: Hierarchy of 'age'")
    found = json.loads(told.stdout)
    assert found["error"] == "HierarchyError"
    assert "--reveal" not in found["message"]
    assert len(json.loads(run(*ANONYMIZE, "--json", "--reveal").stdout)["values"]) == 60


def test_values_of_a_hierarchy_file_are_not_shown_without_reveal(strange: Path) -> None:
    Path("h.csv").write_text("SECRET;a;*\nSECRET;b;*\n", encoding="utf-8")
    Path("q.yaml").write_text(
        "columns:\n  age: {role: quasi-identifier, hierarchy: {csv: h.csv}}\n"
        "models: [{k-anonymity: {k: 2}}]\n",
        encoding="utf-8",
    )
    asked = ("hierarchy", "show", "--policy", "q.yaml", "--column", "age", "3")
    for told in (run(*asked), run(*asked, "--json")):
        assert told.exit_code == 2
        assert "row 2 repeats a value with other groups" in told.stderr
        assert "SECRET" not in told.stderr + told.stdout
    assert "SECRET" in run(*asked, "--reveal").stderr


def test_values_that_were_typed_are_shown(strange: Path) -> None:
    told = run("hierarchy", "show", "--policy", "p.yaml", "--column", "age", "young")
    assert told.exit_code == 2
    assert "1 value is not a number" in told.stderr
    assert told.stderr.endswith("Values: 'young'.\n")
    assert "--reveal" not in told.stderr


def test_in_python_values_are_on_the_error_and_a_traceback_says_so(strange: Path) -> None:
    with pytest.raises(HierarchyError) as caught:
        shoal.anonymize("t.csv", "p.yaml")
    assert "--reveal" not in str(caught.value)
    assert len(caught.value.values) == 60
    assert caught.value.__notes__ == ["The values that this is about are listed in error.values."]


AGE = {"role": "quasi-identifier", "hierarchy": "flat"}
ROLES = "'identifier', 'quasi-identifier', 'sensitive' or 'other'"
MODELS = "models must be a list of models with their options, such as [{k-anonymity: {k: 5}}]"
PAIRS = "same_level must be lists of columns, such as [[admitted, discharged]]"
RULE = "columns.age.hierarchy must be a rule, such as flat or {intervals: [5, 10]}."
COLUMN: list[tuple[dict[str, Any], str]] = [
    ({"role": "quasi_identifier"}, "got 'quasi_identifier'. Did you mean 'quasi-identifier'?"),
    ({"role": 5}, f"columns.age.role must be {ROLES}, got 5."),
    ({"hierarchy": 5}, RULE),
    ({"hierarchy": ["SECRET"]}, RULE),
    ({"max_level": "two"}, "columns.age.max_level must be a whole number, got 'two'."),
    ({"max_level": 1.5}, "columns.age.max_level must be a whole number, got 1.5."),
    ({"max_level": -1}, "columns.age.max_level must be at least 0, got -1."),
    ({"max_level": True}, "columns.age.max_level must be a whole number, got True."),
    ({"min_level": False}, "columns.age.min_level must be a whole number, got False."),
    ({"weight": True}, "columns.age.weight must be a number, got True."),
    ({"weight": 0}, "columns.age.weight must be above 0, got 0."),
    ({"weight": float("inf")}, "columns.age.weight must be a finite number, got inf."),
    ({"weight": "much"}, "columns.age.weight must be a number, got 'much'."),
    ({"release_as": "bound"}, "release_as must be 'text' or 'bounds', got 'bound'. Did you mean 'bounds'?"),
    ({"identifying": "3"}, "columns.age.identifying must be a whole number, 1, 2 or 3, got '3'."),
]
ENTRIES: list[tuple[dict[str, Any], str]] = [
    (
        {"columns": {"age": "other"}},
        "columns.age must be a mapping with a role, such as {role: other}, got 'other'.",
    ),
    ({"columns": {"age": {}}}, f"columns.age.role is missing. It must be {ROLES}."),
    ({"columns": {5: AGE}}, "the name 5 of a column must be text. Put it in quotes."),
    ({"columns": {}}, "list columns and roles under 'columns'"),
    ({"models": []}, MODELS),
    ({"models": "k-anonymity"}, f"{MODELS}, got 'k-anonymity'."),
    ({"models": [5]}, MODELS),
    (
        {"models": [{"k-anonymity": {"k": "fünf"}}]},
        "Option k of k-anonymity must be a whole number, got 'fünf'.",
    ),
    ({"models": [{"k-anonymity": {"k": True}}]}, "Option k of k-anonymity must be a whole number, got True."),
    ({"suppressed": "droped"}, "suppressed must be 'drop' or 'mask', got 'droped'. Did you mean 'drop'?"),
    ({"metric": 5}, "metric must be a name, or a name with its options, such as precision, got 5."),
    ({"algorithm": ["ola"]}, "algorithm must be a name, or a name with its options"),
    (
        {"algorithm": {"auto": {"refine": "perhaps"}}},
        "Option refine of auto must be true or false, got 'perhaps'.",
    ),
    ({"label": 5}, "label must be text, got 5."),
    (
        {"suppression_limit": "1,500"},
        "number of records, got '1,500'. Write 1500 for that number of records.",
    ),
    ({"suppression_limit": "5,5"}, "got '5,5'. Write 5.5% for a share, or a whole number of records."),
    ({"suppression_limit": "5.5"}, "got '5.5'. Write 5.5% for a share, or a whole number of records."),
    ({"suppression_limit": 5.5}, "got 5.5. Write 5.5% for a share, or a whole number of records."),
    ({"suppression_limit": "150.5"}, "above 100%, got '150.5'. Write a whole number of records."),
    ({"suppression_limit": "150%"}, "above 100%, got '150%'."),
    ({"population_size": True}, "population_size must be a whole number, got True."),
    ({"population_size": 0}, "population_size must be at least 1, got 0."),
    ({"same_level": ["age"]}, PAIRS),
    ({"same_level": [["age", 5]]}, PAIRS),
]


@pytest.mark.parametrize(
    ("entries", "says"), [*ENTRIES, *[({"columns": {"age": AGE | own}}, says) for own, says in COLUMN]]
)
def test_what_an_entry_of_a_policy_must_be_is_said_in_our_words(entries: dict[str, Any], says: str) -> None:
    wrong = {"columns": {"age": AGE}, "models": [{"k-anonymity": {"k": 2}}]} | entries
    with pytest.raises(PolicyError) as caught:
        Policy.load(wrong)
    assert says in str(caught.value)
    for word in ("SECRET", "nput should", "Field required", "valid "):
        assert word not in str(caught.value)


def test_a_decimal_comma_is_read_where_it_can_be_nothing_else(strange: Path) -> None:
    wish: dict[str, Any] = {"columns": {"age": AGE}, "models": [{"k-anonymity": {"k": 2}}]}
    Policy.load(wish | {"suppression_limit": "0,05", "sampling_share": "2,5%"})
    assert limit_in_records("5,5%", 1000) == 55
    assert share_of("5,5%") == Fraction(55, 1000)
    told = run("compare", "t.csv", "--policy", "p.yaml", "--suppression-limit", "1%,5,5%")
    assert told.exit_code == 2
    assert "'5,5%' can be a share, or two limits. Write 5.5%, or --suppression-limit 5 --supp" in told.stderr
    told = run("compare", "t.csv", "--policy", "p.yaml", "--suppression-limit", "0,05")
    assert "'0,05' can be a share, or two limits. Write 0.05, or" in told.stderr


def test_a_policy_that_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes("models: []\ncolumns: {größe: {role: other}}\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"is not UTF-8 text \(line 2\)\. Save it as UTF-8\."):
        Policy.load(path)


def test_a_recipe_that_no_longer_holds_says_what_can_be_done(tmp_path: Path) -> None:
    policy = {"columns": {"age": AGE}, "models": [{"k-anonymity": {"k": 2}}]}
    table = pa.table({"age": ["1", "1", "2", "2"]})
    kept = shoal.anonymize(table, policy, output=tmp_path / "o.csv").recipe
    with pytest.raises(Infeasible) as caught:
        shoal.apply(kept, pa.table({"age": ["1", "1", "2"]}))
    assert str(caught.value) == (
        "The recipe no longer holds: at these levels 1 of 3 records would have to be suppressed, and the "
        "limit is 0. A recipe fixes levels, models and limit: anonymize this table again, with its policy or "
        "one that asks for less, or apply the recipe with the option repair, which raises levels. Nearest "
        "to the recipe, any one of these changes works: a suppression limit of 1 record (now 0); a higher "
        "level: age to 1."
    )
    many = pa.table({"age": ["1"] * 2000 + [str(n) for n in range(2, 1202)]})
    with pytest.raises(Infeasible, match=r"levels 1,200 of 3,200 records would .* limit of 1,200 records"):
        shoal.apply(kept, many)
    with pytest.raises(Infeasible, match="no longer holds: the table has 1 record and every class needs 2"):
        shoal.apply(kept, pa.table({"age": ["1"]}))


def test_a_recipe_for_a_table_with_more_columns_says_to_remove_them(tmp_path: Path) -> None:
    table = pa.table({"age": ["1", "1", "2", "2"]})
    policy = {"columns": {"age": AGE}, "models": [{"k-anonymity": {"k": 2}}]}
    recipe = shoal.anonymize(table, policy, output=tmp_path / "o.csv").recipe
    with pytest.raises(PolicyError, match=r"does not name: 'ward'\. Remove them from the table"):
        shoal.apply(recipe, table.append_column("ward", table["age"]))


def test_cells_that_hold_records_are_named_without_their_fields() -> None:
    table = pa.table({"age": ["1"] * 4, "labs": [{"Ann Smith": 1}] * 4})
    with pytest.raises(DataError, match="Column 'labs' holds values of type struct; it must hold single"):
        shoal.init(table)


def test_one_is_not_said_as_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age\n1\n1\n", encoding="utf-8")
    Path("one.csv").write_text("age\n1\n1\n2\n", encoding="utf-8")
    Path("p.yaml").write_text(POLICY, encoding="utf-8")
    assert run(*ANONYMIZE).exit_code == 0
    applied = run("apply", "o.csv.private", "t.csv", "--output", "again.csv").stdout
    assert "the levels were fixed" in applied
    told = run("verify", "one.csv", "--policy", "p.yaml")
    assert "the smallest of 1 record\n" in told.stdout
    assert "1 record violates it" in told.stdout
    found = json.loads(run("verify", "one.csv", "--policy", "p.yaml", "--json").stdout)
    assert found["reasons"] == ["k-anonymity: 1 record in 1 class violates it"]


def test_what_a_recipes_hierarchies_do_not_cover_is_told_with_what_a_recipe_allows(tmp_path: Path) -> None:
    policy = {
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}}},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    shoal.anonymize(pa.table({"age": [21, 22, 23, 24]}), policy, output=tmp_path / "r.csv")
    recipe = tmp_path / "r.csv.private" / "recipe.json"
    with pytest.raises(HierarchyError, match="A recipe fixes its hierarchies: correct this table") as caught:
        shoal.apply(recipe, pa.table({"age": ["21", "22", "SECRET"]}), output=tmp_path / "new.csv")
    assert caught.value.values == ("SECRET",)
    assert "SECRET" not in str(caught.value)


def test_each_reader_is_told_of_what_they_can_write(strange: Path) -> None:
    (strange / "t.csv").write_text("age\n41\n42\n", encoding="utf-8")
    assert run(*ANONYMIZE).exit_code == 0
    told = run(*ANONYMIZE, "--json")
    assert "exists. Use --force to replace it.\n" in told.stderr
    assert json.loads(told.stdout)["message"].endswith("exists. Use --force to replace it.")
    with pytest.raises(OutputError, match=r"exists. Use force=True to replace it.$"):
        shoal.anonymize("t.csv", "p.yaml", output="o.csv")
    assert "Name the columns that" in (said := run("risk", "t.csv").stderr)
    assert "as --columns age,sex,zip, or give a --policy" in said
    with pytest.raises(UsageError, match="as age, sex, zip, or give a policy"):
        shoal.risk("t.csv")


PARSED = [
    (("negotiate", "p", "--k", "zehn"), "--k takes a whole number, such as --k 5; got 'zehn'."),
    (("diagnose", "t.csv", "--k=1.5"), "--k takes a whole number, such as --k 5; got '1.5'."),
    (
        ("studio", "--port", "99999"),
        "--port takes a whole number from 1 to 65535, such as --port 8080; got '99999'.",
    ),
    (("compare", "t.csv", "--seconds", "0,5"), "as --seconds 60; got '0,5'. Write 0.5."),
    (("negotiate", "p", "--k"), "--k lacks its value: the least number of records that look alike."),
    (("measure", "t.csv", "--json=3"), "--json takes no value. Write --json alone."),
    (
        ("measure", "--colums", "x"),
        "There is no option --colums. Did you mean --columns? `shoal measure --help`",
    ),
    (("anonymize", "--limit", "5%"), "Did you mean --suppression-limit or --memory-limit?"),
    (
        ("anonymize", "t.csv", "--l", "10"),
        "There is no option --l. l is set in the policy, under models: distinct-l-diversity: {l: 10}. Or "
        "write --model distinct-l-diversity:l=10; these options replace all models of the policy.",
    ),
    (("anonymize", "t.csv", "--l=zwei"), "Or write --model distinct-l-diversity:l=2; "),
    (("verify", "t.csv", "--k", "3"), "under models: k-anonymity: {k: 3}. `shoal verify --help`"),
    (("verify", "t.csv", "--limit", "5%"), "suppression_limit is set in the policy. `shoal verify --help`"),
    (("anonymize", "t.csv", "-policy", "p.yaml"), "There is no option -policy. Did you mean --policy?"),
    (("utility", "t.csv", "-policy=p.yaml", "r.csv"), "There is no option -policy. Did you mean --policy?"),
    (("compare", "a.csv", "b.csv"), "`shoal compare` compares searches on one table. Two tables: `shoal ut"),
    (("compare", "a.csv", "b.csv", "-p", "p.yaml"), "`shoal risk DATA --policy POLICY --release RELEASE`."),
    (("report",), "There is no command report: `shoal anonymize --report` writes one"),
    (("help", "risk"), "There is no command help: `shoal --help` lists the commands"),
    (("measur",), "Unknown command 'measur'. Did you mean 'measure'? Available: demo,"),
    (("hierarchy", "chek"), "Unknown command 'chek'. Did you mean 'check'? Available: show, check."),
    (("profile", "t.csv", "-o", "x"), "--policy is missing: the policy, a YAML file."),
    (("anonymize", "t.csv"), "--output is missing: the file of the release; its extension sets the format."),
    (("measure",), "DATA is missing: the table"),
    (("measure", "t.csv", "age", "sex"), "'age sex' is unexpected: `shoal measure` takes DATA."),
]


@pytest.mark.parametrize(("words", "said"), PARSED)
def test_the_parser_speaks_as_all_else_does(words: tuple[str, ...], said: str) -> None:
    told = run(*words)
    assert told.exit_code == 2
    assert said in told.stderr
    assert not told.stdout
    if words[0] == "studio":  # which has no --json
        return
    as_json = run(*words, "--json") if words[-1] != "--k" else run(words[0], "--json", *words[1:])
    assert as_json.exit_code == 2
    assert said in json.loads(as_json.stdout)["message"]


@pytest.mark.parametrize("model", ["k-anonymity=10", "k-anonymity,k=10"])
def test_a_model_without_its_colon_is_told_how_it_is_written(strange: Path, model: str) -> None:
    assert run(*ANONYMIZE, "--model", model).stderr.endswith("is no name. Write k-anonymity:k=10.\n")


def test_a_policy_is_not_written_under_the_name_of_a_table(strange: Path) -> None:
    told = run("init", "t.csv", "--output", "policy.csv")
    assert told.exit_code == 2
    assert "'policy.csv' would be a table, by its extension" in told.stderr
    assert not Path("policy.csv").exists()
    assert run("init", "t.csv", "--output", "policy.txt").exit_code == 0


def test_all_numbers_of_a_message_have_the_same_look() -> None:
    policy = {
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}, "max_level": 0}},
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": 1_000,
    }
    with pytest.raises(Infeasible, match=r"1,500 of 2,500 records would have .* limit is 1,000") as caught:
        shoal.anonymize(pa.table({"age": [*range(1_500), *[7_000] * 1_000]}), policy)
    assert "limit of 1,500 records (now 1,000)" in str(caught.value)


YAML = [
    (
        "columns:\n  age: {role: [\n",
        "at line 3: the text ends where a value is missing. Close every bracket.",
    ),
    (
        "columns:\n  age: {role: other\nmodels: {}\n",
        "line 3: a comma or a } is missing in what begins at line 2.",
    ),
    ("columns:\n\tage: {role: other}\n", "at line 2: there is a tab. Indent with spaces."),
    ("columns:\n  d: {format: %d.%m}\n", "at line 2: text that begins with % needs quotes."),
    (
        "columns:\n  a: {}\n   b: {}\n",
        "line 3: the line is not indented like the lines that it belongs to, which begin at line 2",
    ),
    ("columns:\n  a: b: SECRET\n", "at line 2: a colon is not possible here."),
    ("columns:\n  'a: b\n", "at line 3: the quote that opens at line 2 is not closed."),
    ("columns:\n  a: *SECRET\n", "at line 2: text that begins with * or & needs quotes."),
    ("columns: \x01\n", "is not valid YAML: a character in it is not text."),
]


@pytest.mark.parametrize(("text", "said"), YAML)
def test_what_is_no_yaml_is_told_in_plain_words_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        Policy.load(path)
    assert said in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_every_option_that_takes_a_number_says_so_with_an_example() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    asked = 0
    for name, command in commands.items():
        numbers = [param for param in command.params if "number" in wrong_kind(command, param)]
        for param in numbers:
            told = run(name, f"{param.opts[0]}=zehn")
            assert told.stderr.startswith(f"Error: {param.opts[0]} takes a {wrong_kind(command, param)}")
            assert "; got 'zehn'." in told.stderr
            asked += 1
    assert asked > 8


def wrong_kind(command: Any, param: Any) -> str:
    return in_words(get_type_hints(command.callback).get(param.name, str))


def test_a_report_tells_its_reader_what_contour_does() -> None:
    told = ALGORITHMS.summary("contour")
    assert told.startswith("Find the node of least loss, and prove it")
    assert "incumbent" not in told


def test_a_space_around_a_value_is_seen_and_told_without_the_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("state\nmarried\nMarried\nmarried \nnew\n", encoding="utf-8")
    Path("p.yaml").write_text(
        "columns:\n  state: {role: quasi-identifier, hierarchy: {tree: {any: [married, single]}}}\n"
        "models: [{k-anonymity: {k: 2}}]\n",
        encoding="utf-8",
    )
    told = run(*ANONYMIZE).stderr
    assert "2 of them differ from a listed one only by spaces around it or by case." in told
    assert "arried" not in told
    shown = run(*ANONYMIZE, "--reveal").stderr
    assert shown.endswith("Values: 'Married', 'married ', 'new'.\n")
    Path("t.csv").write_text("state\nmarried\nwidowed\n", encoding="utf-8")
    assert "differ" not in run(*ANONYMIZE).stderr


def test_an_option_before_its_command_is_told_to_go_after_it() -> None:
    assert (
        "--policy goes after the command: `shoal hierarchy show --policy`."
        in run("hierarchy", "--policy", "p.yaml", "check", "t.csv").stderr
    )
    assert "--columns goes after the command: `shoal diagnose --columns`." in run("--columns", "a").stderr


def test_a_command_loads_no_other_command() -> None:
    code = (
        "import sys; sys.argv = ['shoal', 'anonymize', '--help']; from shoal.cli.app import app\n"
        "try: app()\n"
        "finally: print(*[name for name in sys.modules if name.startswith('shoal.cli.')], file=sys.stderr)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = process.stderr.split()
    assert "shoal.cli.anonymize" in loaded
    assert not {f"shoal.cli.{name}" for name in ("studio", "compare", "diagnose", "assess")} & {*loaded}
