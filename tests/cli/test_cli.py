"""The command line: what it shows, what it refuses and in which words, and what it never says."""

from __future__ import annotations

import csv
import dataclasses
import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app, main

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

SECRET = "SECRETVAL7"  # in every text cell of the table; no message may hold it
SHOAL = Path(sys.executable).with_name("shoal")
HEADER = ("name", "age", "sex", "zip", "illness", "note")
PROMISED = {
    "levels",
    "loss",
    "metric",
    "algorithm",
    "proven",
    "records",
    "suppressed",
    "classes",
    "smallest_class",
    "lattice_size",
    "nodes_evaluated",
    "loss_evaluations",
    "subset_evaluations",
    "column_counts",
    "candidate_graph",
    "candidate_nodes",
    "rows_scanned",
    "node_score",
    "seconds",
    "verified",
    "output",
    "recipe",
}
QUASI = "quasi-identifier"

RELEASED = {"release.csv.codebook.csv", "release.csv", "release.csv.private"}


def rows(number: int = 40) -> list[tuple[str, ...]]:
    """Ten ages in two bands of 5, two sexes, four zips; every text cell is recognizable."""
    return [
        (
            f"{SECRET} {i}",
            str(20 + i % 10),
            f"{SECRET}{'fm'[i // 10 % 2]}",
            f"{SECRET}{i // 10 % 4}",
            f"{SECRET}ill{i % 3}",
            f"{SECRET}note{i}",
        )
        for i in range(number)
    ]


def columns(**changes: Any) -> dict[str, Any]:
    named: dict[str, Any] = {
        "name": {"role": "identifier"},
        "age": {"role": QUASI, "hierarchy": {"intervals": [5, 10]}},
        "sex": {"role": QUASI, "hierarchy": "flat"},
        "zip": {"role": QUASI, "hierarchy": {"prefix": [11, 10]}},
        "illness": {"role": "sensitive"},
        "note": {"role": "other"},
    }
    return {name: column for name, column in (named | changes).items() if column is not None}


class Workspace:
    """A folder with a table and a policy, and an output folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data.csv"
        self.policy = folder / "policy.yaml"
        self.home = folder / "out"
        self.output = self.home / "release.csv"
        self.home.mkdir()
        self.write_table(rows())
        self.write_policy()

    def write_table(self, cells: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> None:
        with self.data.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *cells])

    def write_policy(self, named: dict[str, Any] | None = None, **entries: Any) -> None:
        policy = {"columns": columns() if named is None else named, "models": [{"k-anonymity": {"k": 2}}]}
        self.policy.write_text(yaml.safe_dump(policy | entries, sort_keys=False), encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def call(self, *arguments: object) -> Any:
        runner = CliRunner(env={"COLUMNS": "250"})
        result = runner.invoke(app, [str(argument) for argument in arguments])
        accident = result.exception
        assert accident is None or isinstance(accident, SystemExit), repr(accident)
        assert "Traceback" not in result.output
        return result

    def anonymize(self, *options: object) -> Any:
        output = () if "--output" in options else ("--output", self.output)
        return self.call("anonymize", self.data, "--policy", self.policy, *output, *options)

    def released(self, *options: object) -> dict[str, Any]:
        result = self.anonymize("--json", *options)
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def refused(self, *options: object, says: Sequence[str], code: int = 2) -> Any:
        """Anonymize in vain: the words are said, no value is, and nothing is written."""
        result = self.anonymize(*options)
        assert result.exit_code == code, result.output
        if "--json" not in options:
            assert result.stdout == ""
        for words in says:
            assert words in result.stderr
        if "--reveal" not in options:
            assert SECRET not in result.output
        assert not any(self.home.iterdir())
        return result


@pytest.fixture
def desk(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def line_of(text: str, *words: str) -> str:
    """Find the line that holds all the words."""
    found = [line for line in text.splitlines() if all(word in line for word in words)]
    assert found, f"no line with {words} in:\n{text}"
    return found[0]


# What each command shows


def test_the_demo_leaves_the_sample_and_its_release(desk: Workspace) -> None:
    result = desk.call("demo", "--folder", desk.home)
    assert result.exit_code == 0
    assert {path.name for path in desk.home.iterdir()} == {
        "admissions.csv",
        "policy.yaml",
        "release.csv.codebook.csv",
        "release.csv",
        "release.csv.private",
    }
    assert "Before" in result.stdout
    assert "After" in result.stdout
    assert "shoal anonymize" in result.stdout
    assert "name" not in read(desk.home / "release.csv")[0]


def test_the_demo_shows_the_same_records_before_and_after(desk: Workspace) -> None:
    from shoal.cli.demo import _same_records

    desk.call("demo", "--folder", desk.home)
    data = desk.home / "admissions.csv"
    release = shoal.anonymize(data, desk.home / "policy.yaml", output=desk.home / "again.csv")
    before, after = _same_records(release, data, desk.home / "again.csv")
    assert len(before) == len(after) == 3
    assert release.levels is not None
    for old, new in zip(before, after, strict=True):
        kept = {name: value for name, value in new.items() if release.levels.get(name, 0) == 0}
        assert kept.items() <= old.items()
        assert old["length_of_stay"] == new["length_of_stay"]
        low, _, high = new["age"].partition("-")
        assert int(low) <= int(old["age"]) <= int(high or low)
        assert new["postcode"].rstrip("*") == old["postcode"][: len(new["postcode"].rstrip("*"))]


def test_the_demo_tells_its_result_as_json(desk: Workspace) -> None:
    result = desk.call("demo", "--folder", desk.home, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found.keys() >= PROMISED
    assert found["verified"] is True
    assert found["smallest_class"] >= 5


def test_the_version_is_told() -> None:
    told = subprocess.run([SHOAL, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"shoal {version('shoal')}\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("shoal anony", ["anonymize"]),
        ("shoal anonymize --algorithm cont", ["contour"]),
        ("shoal anonymize --engine a", ["auto"]),
        ("shoal anonymize --metric prec", ["precision"]),
        ("shoal anonymize --model k-m", ["k-map"]),
        ("shoal list safe", ["safe-harbor"]),
    ],
)
def test_a_shell_completes(words: str, completed: list[str]) -> None:
    asked = {"_SHOAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    told = subprocess.run([SHOAL], env=os.environ | asked, capture_output=True, text=True, check=False)
    assert told.stdout.split() == completed


def test_the_package_runs_as_a_module() -> None:
    for asked in (["list", "--json"], ["no-such-command"]):
        both = [
            subprocess.run([*start, *asked], capture_output=True, text=True, check=False)
            for start in ([sys.executable, "-m", "shoal"], [SHOAL])
        ]
        assert both[0].returncode == both[1].returncode
        assert both[0].stdout == both[1].stdout
        assert "Traceback" not in both[0].stderr


def test_the_demo_can_be_run_twice_in_one_folder(desk: Workspace) -> None:
    assert desk.call("demo", "--folder", desk.home, "--json").exit_code == 0
    assert desk.call("demo", "--folder", desk.home, "--json").exit_code == 2
    assert desk.call("demo", "--folder", desk.home, "--json", "--force").exit_code == 0


def test_the_demo_keeps_a_policy_of_the_same_name(desk: Workspace) -> None:
    (desk.home / "policy.yaml").write_text("mine\n")
    assert desk.call("demo", "--folder", desk.home).exit_code == 2
    assert (desk.home / "policy.yaml").read_text() == "mine\n"


def test_paths_are_shown_whole_in_a_narrow_terminal(desk: Workspace) -> None:
    runner = CliRunner(env={"COLUMNS": "60"})
    shown = runner.invoke(app, ["demo", "--folder", str(desk.home)]).stdout
    lines = shown.splitlines()
    assert any("shoal anonymize" in line and "--output" in line for line in lines)  # to copy and paste
    assert any(f"{desk.home / 'release.csv'}" in line and "shoal" not in line for line in lines)
    assert any(f"{desk.home / 'release.csv.private' / 'recipe.json'}" in line for line in lines)


def test_the_final_table_tells_what_became_of_each_column(desk: Workspace) -> None:
    result = desk.anonymize("--node", "age=1,sex=0,zip=2")
    assert result.exit_code == 0
    shown = result.stdout
    assert "removed" in line_of(shown, "name", "identifier")
    age = line_of(shown, "age", QUASI)
    assert "1 of 3" in age
    assert "20-24" in age
    assert "25-29" in age
    sex = line_of(shown, "sex", QUASI)
    assert "0 of 1" in sex
    assert "as is" in sex
    assert SECRET not in sex
    assert "2 of 3" in line_of(shown, "zip", QUASI)
    assert "as is" in line_of(shown, "illness", "sensitive")
    assert "as is" in line_of(shown, "note", "other")


def test_the_final_table_tells_records_classes_loss_and_what_was_proven(desk: Workspace) -> None:
    result = desk.anonymize()
    assert result.exit_code == 0
    shown = result.stdout
    found = json.loads((desk.home / "release.csv.private" / "audit.json").read_text())["result"]
    assert "40 kept" in line_of(shown, "records", "kept")
    assert "0 suppressed" in line_of(shown, "records", "kept")
    classes = line_of(shown, "classes")
    assert str(found["classes"]) in classes
    assert f"smallest of {found['smallest_class']}" in classes
    assert "non-uniform-entropy" in line_of(shown, "loss", f"{found['loss']:,.10g}")
    assert "least loss" in line_of(shown, "proven")
    assert line_of(shown, "Verified: every model holds")
    assert line_of(shown, f" {desk.output}").split()[0] == "release"
    assert "private" in line_of(shown, "recipe.json")


def test_the_final_table_tells_suppressed_records(desk: Workspace) -> None:
    cells = [*rows(), (f"{SECRET} x", "104", f"{SECRET}f", f"{SECRET}1", f"{SECRET}ill", f"{SECRET}note")]
    desk.write_table(cells)
    result = desk.anonymize("--suppression-limit", "1", "--node", "age=1,sex=1,zip=3")
    assert result.exit_code == 0
    assert "40 of 41 kept, 1 suppressed" in line_of(result.stdout, "records", "kept")


def test_example_labels_are_those_of_the_release(desk: Workspace) -> None:
    last = (f"{SECRET} x", "4", f"{SECRET}f", f"{SECRET}1", f"{SECRET}ill", f"{SECRET}note")
    desk.write_table([*rows(), last])
    result = desk.anonymize("--suppression-limit", "1", "--node", "age=1,sex=1,zip=3")
    age = line_of(result.stdout, "age", QUASI)
    assert "20-24" in age
    assert "0-4" not in age.replace("20-24", "")


def test_anonymize_tells_its_result_as_json(desk: Workspace) -> None:
    found = desk.released()
    assert found.keys() >= PROMISED
    assert found["seconds"].keys() >= {"count", "search", "recode", "verify"}
    assert found["levels"].keys() == {"age", "sex", "zip"}
    assert (found["records"], found["suppressed"], found["verified"]) == (40, 0, True)
    assert found["proven"] == "least loss"
    assert found["output"] == str(desk.output)
    assert Path(found["recipe"]).is_file()
    assert len(read(desk.output)) == 40


def test_verify_passes_what_anonymize_released(desk: Workspace) -> None:
    desk.released()
    result = desk.call("verify", desk.output, "--policy", desk.policy)
    assert result.exit_code == 0
    assert line_of(result.stdout, "Verified: every model holds")
    assert "passed" in line_of(result.stdout, "k-anonymity")
    assert "40" in line_of(result.stdout, "records")
    assert "smallest of" in line_of(result.stdout, "classes")


def test_verify_tells_its_result_as_json(desk: Workspace) -> None:
    expected = desk.released()
    result = desk.call("verify", desk.output, "--policy", desk.policy, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["verified"] is True
    assert found["reasons"] == []
    for name in ("records", "classes", "smallest_class"):
        assert found[name] == expected[name]


def test_verify_fails_the_table_itself(desk: Workspace) -> None:
    plain = desk.call("verify", desk.data, "--policy", desk.policy)
    assert plain.exit_code == 1
    assert plain.stdout.startswith("Not verified: ")
    assert "identifier 'name' is in the release" in plain.stdout
    assert SECRET not in plain.output
    told = desk.call("verify", desk.data, "--policy", desk.policy, "--json")
    assert told.exit_code == 1
    found = json.loads(told.stdout)
    assert found["verified"] is False
    assert any("name" in reason for reason in found["reasons"])
    assert any("k-anonymity" in reason for reason in found["reasons"])


def test_verify_names_a_missing_release(desk: Workspace) -> None:
    result = desk.call("verify", desk.output, "--policy", desk.policy)
    assert result.exit_code == 2
    assert f"No such file: {str(desk.output)!r}" in result.stderr


def test_list_shows_every_plug_in(desk: Workspace) -> None:
    shown = desk.call("list")
    assert shown.exit_code == 0
    found = json.loads(desk.call("list", "--json").stdout)
    assert found.keys() >= {"models", "metrics", "algorithms", "engines", "builders"}
    assert found["models"].keys() >= {"k-anonymity", "distinct-l-diversity"}
    assert found["algorithms"].keys() >= {"contour", "exhaustive", "ola"}
    assert found["engines"].keys() >= {"duckdb"}
    assert found["builders"].keys() >= {"csv", "flat", "intervals", "prefix", "tree"}
    for plugins in found.values():
        for name, line in plugins.items():
            assert line.endswith("."), name
            assert name in shown.stdout


def test_list_tells_the_options_of_a_name(desk: Workspace) -> None:
    shown = desk.call("list", "t-closeness")
    assert shown.exit_code == 0
    for told in ("(model)", "distance", "equal, ordered or hierarchical", "required", "from 0 to 1"):
        assert told in " ".join(shown.stdout.split())
    found = json.loads(desk.call("list", "t-closeness", "--json").stdout)
    assert (found["kind"], found["name"]) == ("model", "t-closeness")
    assert [one["name"] for one in found["options"]] == ["t", "distance", "column"]
    first, second, _ = found["options"]
    assert (first["type"], first["required"], first["default"]) == ("number", True, None)
    assert (second["required"], second["default"]) == (False, "equal")
    assert json.loads(desk.call("list", "intervals", "--json").stdout)["options"][1]["default"] == 0


def test_init_refuses_an_output_before_it_asks_about_the_table(desk: Workspace) -> None:
    missing = desk.call("init", desk.data.with_name("absent.csv"), "--output", desk.home / "no" / "p.yaml")
    assert missing.exit_code == 2
    assert "does not exist. Create it first." in missing.stderr
    own = desk.call("init", desk.data, "--output", desk.data, "--force", "--yes")
    assert own.exit_code == 2
    assert "is the input and would be replaced" in own.stderr


def test_list_says_that_a_name_has_no_options(desk: Workspace) -> None:
    assert "It has no options." in desk.call("list", "safe-harbor").stdout


def test_list_refuses_a_name_that_is_nothing(desk: Workspace) -> None:
    refused = desk.call("list", "coverag", "--json")
    assert refused.exit_code == 2
    assert "Did you mean 'coverage'?" in json.loads(refused.stdout)["message"]


# Options that stand in for the policy's lines


def test_models_may_be_repeated(desk: Workspace) -> None:
    found = desk.released("--model", "k-anonymity:k=4", "--model", "distinct-l-diversity:l=3")
    assert found["smallest_class"] >= 4
    told = json.loads(desk.call("verify", desk.output, "--policy", desk.policy, "--json").stdout)
    assert [check["model"] for check in told["models"]] == ["k-anonymity"]  # the policy's own
    recipe = json.loads(Path(found["recipe"]).read_text())
    assert recipe["policy"]["models"] == [{"k-anonymity": {"k": 4}}, {"distinct-l-diversity": {"l": 3}}]


@pytest.mark.parametrize(("limit", "records"), [("5%", 2), ("0.05", 2), ("7", 7), ("0", 0), ("100%", 40)])
def test_a_suppression_limit_is_a_share_or_records(desk: Workspace, limit: str, records: int) -> None:
    found = desk.released("--suppression-limit", limit)
    assert found["suppressed"] <= records
    assert json.loads(Path(found["recipe"]).read_text())["suppression_limit"] == records


def test_a_metric_takes_options(desk: Workspace) -> None:
    geometric = desk.released("--metric", "coverage:aggregate=geometric", "--node", "age=1,sex=0,zip=3")
    mean = desk.released("--metric", "coverage", "--node", "age=1,sex=0,zip=3", "--force")
    assert geometric["metric"] == mean["metric"] == "coverage"
    losses = [4 / 9, 0, 1]
    product = 1.0
    for loss in losses:
        product *= 1 + loss
    assert geometric["loss"] == pytest.approx(product ** (1 / 3) - 1)
    assert mean["loss"] == pytest.approx(sum(losses) / 3)


def test_the_algorithms_agree_on_the_loss(desk: Workspace) -> None:
    names = ("ola", "exhaustive", "contour")
    found = {name: desk.released("--algorithm", name, "--force") for name in (*names, "auto")}
    assert [found[name]["algorithm"] for name in names] == list(names)
    assert {result["proven"] for result in found.values()} == {"least loss"}
    losses = [result["loss"] for result in found.values()]
    assert losses == pytest.approx([losses[0]] * len(losses))


def test_one_fixed_level_leaves_the_rest_to_the_search(desk: Workspace) -> None:
    found = desk.released("--node", "age=2")
    assert found["levels"]["age"] == 2
    assert found["lattice_size"] == 2 * 4


def test_several_fixed_levels_leave_one_node(desk: Workspace) -> None:
    found = desk.released("--node", "age=2, sex=1, zip=0")
    assert found["levels"] == {"age": 2, "sex": 1, "zip": 0}
    assert found["lattice_size"] == 1


def test_seconds_bound_the_search(desk: Workspace) -> None:
    assert desk.released("--seconds", "60")["proven"] == "least loss"


def test_no_seconds_at_all_give_an_acceptable_node_or_a_clear_refusal(desk: Workspace) -> None:
    result = desk.anonymize("--seconds", "0.0000001", "--json")
    found = json.loads(result.stdout)
    if result.exit_code == 0:
        assert found["verified"] is True
        assert found["proven"] != "least loss"
    else:
        assert result.exit_code == 1
        assert found["error"] == "OutOfTime"
        assert "seconds" in found["message"]
        assert not any(desk.home.iterdir())


def test_a_memory_limit_is_handed_to_the_engine(desk: Workspace) -> None:
    assert desk.released("--engine", "duckdb", "--memory-limit", "1GB")["verified"]


# Bad input: the table


def test_a_missing_file_is_named(desk: Workspace) -> None:
    desk.data.unlink()
    desk.refused(says=["No such file", "data.csv"])


def test_a_folder_is_no_table(desk: Workspace) -> None:
    desk.data.unlink()
    desk.data.mkdir()
    desk.refused(says=["data.csv", "is not a file"])


def test_an_unknown_input_format_is_refused_with_those_there_are(desk: Workspace) -> None:
    other = desk.data.rename(desk.folder / "data.docx")
    desk.data = other
    desk.refused(says=["'data.docx'", ".csv", ".parquet", ".xlsx"])


def test_an_empty_file_is_refused(desk: Workspace) -> None:
    desk.data.write_bytes(b"")
    desk.refused(says=["data.csv", "is empty"])


def test_a_header_with_no_rows_is_refused(desk: Workspace) -> None:
    desk.write_table([])
    desk.refused(says=["no rows"])


def test_fewer_rows_than_k_is_infeasible(desk: Workspace) -> None:
    desk.write_table(rows(3))
    desk.refused("--model", "k-anonymity:k=5", code=1, says=["3 records", "needs 5", "smaller k"])


def test_fewer_rows_than_k_names_the_k_that_would_do(desk: Workspace) -> None:
    desk.write_table(rows(3))
    result = desk.refused("--model", "k-anonymity:k=5", "--json", code=1, says=["3 records"])
    assert json.loads(result.stdout)["nearest"]["k"] == 3


def test_two_columns_of_one_name_are_refused(desk: Workspace) -> None:
    desk.write_table(rows(), header=("name", "age", "age", "zip", "illness", "note"))
    desk.refused(says=["Columns 2 and 3 have the same name", "Give every column one of its own"])


def test_names_that_differ_only_in_case_are_refused(desk: Workspace) -> None:
    desk.write_table(rows(), header=("name", "age", "Age", "zip", "illness", "note"))
    result = desk.refused(says=["differ only in case", "Give every column one of its own"])
    assert "Age" not in result.output  # such a line may be a record


@pytest.mark.parametrize("cells", [("lost", "20"), (*rows(1)[0], "x", f"{SECRET}more")])
@pytest.mark.parametrize("place", [0, 20, 40])
def test_a_ragged_row_is_refused_with_its_line(desk: Workspace, cells: tuple[str, ...], place: int) -> None:
    found: list[tuple[str, ...]] = rows()
    found.insert(place, cells)
    desk.write_table(found)
    desk.refused(says=["data.csv", f"line {place + 2}"])


def test_a_ragged_row_far_into_the_file_is_refused_with_its_line(desk: Workspace) -> None:
    desk.write_table([*rows() * 600, ("lost", f"{SECRET}"), *rows()])
    desk.refused(says=["line 24002"])


def test_a_header_shorter_than_the_rows_is_refused_without_values(desk: Workspace) -> None:
    desk.write_table(rows(), header=HEADER[:-1])
    desk.refused(says=["'note'"])


def test_a_table_without_a_header_is_refused_without_values(desk: Workspace) -> None:
    desk.write_table(rows()[1:], header=rows()[0])
    desk.refused(says=["line of column names"])


@pytest.mark.parametrize("place", [0, 39])
def test_text_of_which_only_a_part_is_utf_8_is_refused(desk: Workspace, place: int) -> None:
    cells = rows()
    cells[place] = (*cells[place][:-1], f"{SECRET}é")
    desk.write_table(cells)
    desk.data.write_bytes(desk.data.read_bytes() + desk.data.read_bytes().decode().encode("latin-1"))
    desk.refused(
        says=["data.csv", "characters in UTF-8", f"(line {place + 2})", "others not in UTF-8", "python -c"]
    )


def test_a_parquet_file_that_is_none_is_refused(desk: Workspace) -> None:
    desk.data = desk.data.rename(desk.folder / "data.parquet")
    desk.refused(says=["data.parquet", "cannot be read"])


def test_an_arrow_file_that_is_none_is_refused(desk: Workspace) -> None:
    desk.data = desk.data.rename(desk.folder / "data.arrow")
    desk.refused(says=["data.arrow", "cannot be read"])


def test_a_gzip_file_that_is_none_is_refused(desk: Workspace) -> None:
    desk.data = desk.data.rename(desk.folder / "data.csv.gz")
    desk.refused(says=["data.csv.gz", "not compressed with gzip"])


# Bad input: models and limits


@pytest.mark.parametrize("k", ["0", "-3"])
def test_a_k_below_1_is_refused(desk: Workspace, k: str) -> None:
    desk.refused("--model", f"k-anonymity:k={k}", says=[f"k must be at least 1, got {k}."])


@pytest.mark.parametrize("k", ["many", "2.5", "true", ""])
def test_a_k_that_is_not_a_number_is_refused(desk: Workspace, k: str) -> None:
    got = {"many": "'many'", "true": "True", "": "None"}.get(k, k)
    desk.refused("--model", f"k-anonymity:k={k}", says=["k of k-anonymity", "whole number", f"got {got}"])


def test_a_model_without_its_k_is_refused(desk: Workspace) -> None:
    desk.refused("--model", "k-anonymity", says=["k-anonymity needs k"])


def test_a_model_option_without_a_value_is_refused(desk: Workspace) -> None:
    desk.refused("--model", "k-anonymity:5", says=["option=value", "'5'"])


def test_a_model_of_sensitive_values_needs_a_sensitive_column(desk: Workspace) -> None:
    desk.write_policy(columns(illness={"role": "other"}))
    desk.refused("--model", "distinct-l-diversity:l=2", says=["distinct-l-diversity", "sensitive"])


@pytest.mark.parametrize("limit", ["-1", "-5%", "-0.05"])
def test_a_limit_below_0_is_refused(desk: Workspace, limit: str) -> None:
    desk.refused("--suppression-limit", limit, says=["suppression_limit must not be below 0", limit])


@pytest.mark.parametrize("limit", ["101%", "1.5"])
def test_a_share_above_the_table_is_refused(desk: Workspace, limit: str) -> None:
    desk.refused("--suppression-limit", limit, says=["suppression_limit must not be above 100%", limit])


@pytest.mark.parametrize("limit", ["41", "3000000000"])
def test_records_above_the_table_are_refused(desk: Workspace, limit: str) -> None:
    desk.refused("--suppression-limit", limit, says=["must not be above the table's 40 records", limit])


@pytest.mark.parametrize("limit", ["lots", "nan", "5%%"])
def test_a_limit_that_is_no_number_is_refused(desk: Workspace, limit: str) -> None:
    desk.refused("--suppression-limit", limit, says=["suppression_limit must be a share", f"got {limit!r}"])


def test_a_limit_of_true_is_refused(desk: Workspace) -> None:
    desk.write_policy(suppression_limit=True)
    desk.refused(says=["suppression_limit must be a share", "True"])


# Bad input: the policy


def test_a_missing_policy_is_named(desk: Workspace) -> None:
    desk.policy.unlink()
    desk.refused(says=["Cannot read the policy", "policy.yaml", "No such file"])


def test_a_policy_that_is_not_yaml_is_refused_with_its_line(desk: Workspace) -> None:
    desk.policy.write_text("columns:\n  age: {role: [\n", encoding="utf-8")
    desk.refused(says=["policy.yaml", "not valid YAML", "line 3"])


def test_a_policy_that_is_no_mapping_is_refused(desk: Workspace) -> None:
    desk.policy.write_text("just words\n", encoding="utf-8")
    desk.refused(says=["policy.yaml", "mapping", "columns:"])


@pytest.mark.parametrize("text", ["", "columns:\nmodels:\n"])
def test_an_empty_policy_is_refused(desk: Workspace, text: str) -> None:
    desk.policy.write_text(text, encoding="utf-8")
    desk.refused(says=["columns"])


def test_a_key_given_twice_is_refused_with_its_line(desk: Workspace) -> None:
    text = desk.policy.read_text(encoding="utf-8")
    desk.policy.write_text(f"{text}models: []\n", encoding="utf-8")
    desk.refused(says=["policy.yaml", "'models' appears twice", f"line {len(text.splitlines()) + 1}"])


def test_a_policy_that_is_not_utf_8_is_refused(desk: Workspace) -> None:
    desk.policy.write_bytes("columns: {ü: {role: other}}\n".encode("latin-1"))
    desk.refused(says=["policy.yaml", "not UTF-8 text"])


def test_a_policy_column_that_the_table_lacks_is_named(desk: Workspace) -> None:
    desk.write_policy(columns(shoe={"role": "other"}))
    desk.refused(says=["does not have", "'shoe'", "'age'"])


def test_a_table_column_that_the_policy_lacks_is_named(desk: Workspace) -> None:
    desk.write_policy(columns(note=None))
    desk.refused(says=["does not name", "'note'", "Give each a role", QUASI])


def test_a_policy_without_quasi_identifiers_is_refused(desk: Workspace) -> None:
    desk.write_policy({name: {"role": "other"} for name in HEADER})
    desk.refused(says=["no quasi-identifier"])


def test_a_quasi_identifier_without_a_hierarchy_is_refused(desk: Workspace) -> None:
    desk.write_policy(columns(sex={"role": QUASI}))
    desk.refused(says=["'sex'", "needs a hierarchy", "flat"])


def test_an_unknown_role_is_refused_with_those_there_are(desk: Workspace) -> None:
    desk.write_policy(columns(sex={"role": "quasi"}))
    desk.refused(says=["columns.sex.role", QUASI, "sensitive"])


def test_a_level_above_the_hierarchy_is_refused(desk: Workspace) -> None:
    desk.write_policy(columns(sex={"role": QUASI, "hierarchy": "flat", "max_level": 2}))
    desk.refused(says=["'sex'", "level 2", "highest, 1"])


def test_a_least_level_above_the_highest_is_refused(desk: Workspace) -> None:
    age = {"role": QUASI, "hierarchy": {"intervals": [5, 10]}, "min_level": 2, "max_level": 1}
    desk.write_policy(columns(age=age))
    desk.refused(says=["'age'", "min_level 2", "level 1"])


def test_columns_of_one_level_need_one_height(desk: Workspace) -> None:
    desk.write_policy(same_level=[["age", "sex"]])
    desk.refused(says=["same_level", "'age' has 3", "'sex' has 1", "same levels"])


def test_an_unknown_column_of_one_level_is_named(desk: Workspace) -> None:
    desk.write_policy(same_level=[["age", "sexx"]])
    desk.refused(says=["same_level", "'sexx'", "Did you mean 'sex'?"])


# Bad input: hierarchies


MISSING: dict[str, Any] = {
    "csv": {"csv": "sex.csv"},
    "tree": {"tree": {"any": [f"{SECRET}f"]}},
    "intervals": {"intervals": [5]},
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_hierarchy_that_misses_values_tells_how_many(desk: Workspace, kind: str) -> None:
    desk.write("sex.csv", f"{SECRET}f;*\n")
    desk.write_policy(columns(sex={"role": QUASI, "hierarchy": MISSING[kind]}))
    number = "2 values are" if kind == "intervals" else "1 value is"
    desk.refused(says=["Hierarchy of 'sex'", kind, number, "unknown", "--reveal"])


@pytest.mark.parametrize("kind", MISSING)
def test_the_missed_values_are_told_only_on_request(desk: Workspace, kind: str) -> None:
    desk.write("sex.csv", f"{SECRET}f;*\n")
    desk.write_policy(columns(sex={"role": QUASI, "hierarchy": MISSING[kind]}))
    desk.refused("--reveal", says=[f"{SECRET}m"])
    told = json.loads(desk.refused("--reveal", "--json", says=["Hierarchy"]).stdout)
    assert f"{SECRET}m" in told["values"]
    assert SECRET not in told["message"]
    assert json.loads(desk.refused("--json", says=["Hierarchy"]).stdout)["values"] == []


def test_a_csv_hierarchy_that_is_not_nested_is_refused(desk: Workspace) -> None:
    lines = [f"{SECRET}{i};{SECRET}group;{SECRET}{i % 2};*" for i in range(4)]
    desk.write("zip.csv", "\n".join(lines))
    desk.write_policy(columns(zip={"role": QUASI, "hierarchy": {"csv": "zip.csv"}}))
    said = ["Hierarchy of 'zip'", "level 2 splits a group of level 1", "merge whole groups"]
    desk.refused(says=said)
    desk.refused("--reveal", says=[*said, f"{SECRET}group"])


def test_a_csv_hierarchy_that_is_not_nested_among_unused_values_is_refused(desk: Workspace) -> None:
    lines = [f"{SECRET}{i};{SECRET}group{i // 4};{SECRET}{i % 2 if i > 3 else 0};*" for i in range(6)]
    desk.write("zip.csv", "\n".join(lines))
    desk.write_policy(columns(zip={"role": QUASI, "hierarchy": {"csv": "zip.csv"}}))
    desk.refused(says=["Hierarchy of 'zip'", "level 2 splits a group of level 1"])


def test_widths_that_do_not_nest_are_refused(desk: Workspace) -> None:
    desk.write_policy(columns(age={"role": QUASI, "hierarchy": {"intervals": [5, 12]}}))
    desk.refused(says=["Hierarchy of 'age'", "level 2 splits a group of level 1", "12 is not one of 5"])


def test_prefixes_that_do_not_nest_are_refused(desk: Workspace) -> None:
    desk.write_policy(columns(zip={"role": QUASI, "hierarchy": {"prefix": [2, 3]}}))
    desk.refused(says=["Hierarchy of 'zip'", "level 2 splits", "3 is longer than 2"])


def test_a_ragged_csv_hierarchy_is_refused_with_its_line(desk: Workspace) -> None:
    desk.write("sex.csv", f"{SECRET}f;any;*\n{SECRET}m;*\n")
    desk.write_policy(columns(sex={"role": QUASI, "hierarchy": {"csv": "sex.csv"}}))
    desk.refused(says=["Hierarchy of 'sex'", "row 2 has 2 levels", "the first 3"])


def test_a_csv_hierarchy_with_a_value_twice_is_refused_with_its_line(desk: Workspace) -> None:
    desk.write("sex.csv", f"{SECRET}f;a;*\n{SECRET}m;a;*\n{SECRET}f;b;*\n")
    desk.write_policy(columns(sex={"role": QUASI, "hierarchy": {"csv": "sex.csv"}}))
    desk.refused(says=["Hierarchy of 'sex'", "row 3 repeats a value"])


def test_a_missing_csv_hierarchy_is_named(desk: Workspace) -> None:
    desk.write_policy(columns(sex={"role": QUASI, "hierarchy": {"csv": "nowhere.csv"}}))
    desk.refused(says=["Hierarchy of 'sex'", "nowhere.csv", "No such file"])


@pytest.mark.parametrize("kind", ["intervals", "prefix"])
@pytest.mark.parametrize("number", [0, -1, "wide"])
def test_a_builder_takes_numbers_above_0(desk: Workspace, kind: str, number: Any) -> None:
    desk.write_policy(columns(age={"role": QUASI, "hierarchy": {kind: [number]}}))
    desk.refused(says=["Hierarchy of 'age'", kind, f"got {number!r}"])


# Bad input: names


UNKNOWN = {
    "model": ("k-anonimity:k=5", "Unknown model 'k-anonimity'. Did you mean 'k-anonymity'? Available:"),
    "metric": ("coverge", "Unknown metric 'coverge'. Did you mean 'coverage'? Available:"),
    "algorithm": ("olaa", "Unknown algorithm 'olaa'. Did you mean 'ola'? Available:"),
    "engine": ("duckdbb", "Unknown engine 'duckdbb'. Did you mean 'duckdb'? Available:"),
    "node": ("agee=1", "'agee'. Did you mean 'age'? Available: age, sex, zip"),
}


@pytest.mark.parametrize("option", UNKNOWN)
def test_an_unknown_name_is_answered_with_the_closest(desk: Workspace, option: str) -> None:
    value, message = UNKNOWN[option]
    desk.refused(f"--{option}", value, says=[message])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--model", "k-anonymity:k=2,kk=5", "Unknown option of k-anonymity 'kk'"),
        ("--metric", "coverage:agregate=mean", "'agregate'. Did you mean 'aggregate'?"),
        ("--algorithm", "ola:speed=2", "Unknown option of ola 'speed'"),
    ],
)
def test_an_unknown_option_of_a_plug_in_is_named(
    desk: Workspace, option: str, value: str, message: str
) -> None:
    desk.refused(option, value, says=[message, "Available:"])


def test_a_wrong_choice_of_an_option_is_answered_with_those_there_are(desk: Workspace) -> None:
    desk.refused("--metric", "coverage:aggregate=median", says=["aggregate", "mean", "geometric", "'median'"])


def test_an_unknown_option_of_the_command_is_named(desk: Workspace) -> None:
    desk.refused(
        "--suppresion-limit", "5%", says=["no option --suppresion-limit", "Did you mean --suppression-limit?"]
    )


def test_an_unknown_builder_is_answered_with_the_closest(desk: Workspace) -> None:
    desk.write_policy(columns(age={"role": QUASI, "hierarchy": {"interval": [5]}}))
    desk.refused(says=["hierarchy builder", "'age'", "'interval'", "Did you mean 'intervals'?"])


def test_an_unknown_option_of_a_builder_is_answered_with_the_closest(desk: Workspace) -> None:
    age = {"role": QUASI, "hierarchy": {"intervals": [5], "top_codin": 90}}
    desk.write_policy(columns(age=age))
    desk.refused(says=["'age'", "'top_codin'", "Did you mean 'top_coding'?"])


def test_an_unknown_policy_entry_is_answered_with_the_closest(desk: Workspace) -> None:
    desk.write_policy(sameLevel=[["age"]], suppresion_limit="5%")
    desk.refused(says=["policy entry", "'sameLevel'", "Did you mean 'same_level'?"])


def test_an_unknown_entry_of_a_column_is_answered_with_the_closest(desk: Workspace) -> None:
    desk.write_policy(columns(age={"role": QUASI, "hierarchy": "flat", "max_levle": 1}))
    desk.refused(says=["'age'", "'max_levle'", "Did you mean 'max_level'?"])


@pytest.mark.parametrize("node", ["age", "age=high", "age=-1", "age=1.5", "=1"])
def test_a_node_is_columns_and_levels(desk: Workspace, node: str) -> None:
    desk.refused("--node", node, says=["column=level"])


def test_a_node_above_the_hierarchy_is_refused(desk: Workspace) -> None:
    desk.refused("--node", "age=4", says=["Level 4 of 'age'", "0..3"])


@pytest.mark.parametrize("seconds", ["-1", "nan"])
def test_seconds_are_above_0(desk: Workspace, seconds: str) -> None:
    desk.refused("--seconds", seconds, says=["seconds", seconds])


def test_a_memory_limit_that_means_nothing_is_named(desk: Workspace) -> None:
    desk.refused("--memory-limit", "lots", says=["memory", "'lots'", "4GB"])


# Bad input: the output


def test_an_output_that_exists_needs_force(desk: Workspace) -> None:
    desk.output.write_text("mine\n")
    result = desk.anonymize()
    assert result.exit_code == 2
    assert f"{str(desk.output)!r} exists. Use --force" in result.stderr
    assert [path.name for path in desk.home.iterdir()] == ["release.csv"]
    assert desk.output.read_text() == "mine\n"
    desk.released("--force")
    assert len(read(desk.output)) == 40


def test_a_private_folder_that_exists_needs_force(desk: Workspace) -> None:
    recipe = Path(desk.released()["recipe"])
    before = recipe.read_text()
    desk.output.unlink()
    (desk.home / "release.csv.codebook.csv").unlink()
    result = desk.anonymize()
    assert result.exit_code == 2
    assert "release.csv.private' exists. Use --force" in result.stderr
    assert recipe.read_text() == before
    desk.released("--force")
    assert recipe.read_text() != before


def test_a_refused_run_with_force_leaves_the_old_release(desk: Workspace) -> None:
    recipe = Path(desk.released()["recipe"])
    before = desk.output.read_bytes(), recipe.read_bytes()
    result = desk.anonymize("--force", "--model", "k-anonymity:k=41")
    assert result.exit_code == 1
    assert (desk.output.read_bytes(), recipe.read_bytes()) == before
    assert {path.name for path in desk.home.iterdir()} == {
        "release.csv.codebook.csv",
        "release.csv",
        "release.csv.private",
    }


def test_an_output_folder_that_does_not_exist_is_named(desk: Workspace) -> None:
    output = desk.home / "nowhere" / "release.csv"
    desk.refused("--output", output, says=[f"{str(output.parent)!r} does not exist", "Create it"])


def test_an_output_that_is_a_folder_is_refused(desk: Workspace) -> None:
    folder = desk.folder / "folder.csv"
    folder.mkdir()
    desk.refused("--output", folder, "--force", says=["folder.csv", "is a folder", "Name a file"])
    assert not any(folder.iterdir())


@pytest.mark.parametrize("name", ["release.xlsx", "release"])
def test_an_unknown_output_format_is_refused_with_those_there_are(desk: Workspace, name: str) -> None:
    desk.refused("--output", desk.home / name, says=["Use one of", repr(name), ".csv", ".parquet"])


def test_a_folder_that_must_not_be_written_is_named(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write everywhere, so the refusal is the system call's own."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)
    desk.refused(says=["Cannot write", str(desk.home), "Permission denied"])


# No acceptable node, and what an algorithm cannot do


@pytest.fixture
def tight(desk: Workspace) -> Workspace:
    """Eight people in bands of 5 and 3 while k is 5: a limit of 3, k=3 or level 2 would do."""
    cells = [(SECRET, str(age), SECRET, SECRET, SECRET, SECRET) for age in (20, 21, 22, 23, 24, 25, 26, 27)]
    desk.write_table(cells)
    age = {"role": QUASI, "hierarchy": {"intervals": [5, 10]}, "max_level": 1}
    desk.write_policy(columns(age=age), models=[{"k-anonymity": {"k": 5}}])
    return desk


def test_no_acceptable_node_names_the_nearest_miss(tight: Workspace) -> None:
    told = ["No acceptable", "limit of 3 records (now 0)", "k=3 (now 5)", "max_level raised: age to 2"]
    tight.refused(code=1, says=told)


def test_no_acceptable_node_tells_the_nearest_miss_as_json(tight: Workspace) -> None:
    found = json.loads(tight.refused("--json", code=1, says=["No acceptable"]).stdout)
    assert found["error"] == "Infeasible"
    assert found["nearest"] == {"suppression_limit": 3, "k": 3, "max_level": {"age": 2}}


@pytest.mark.parametrize(
    ("options", "highest"),
    [
        pytest.param(("--suppression-limit", "3"), 1, id="limit"),
        pytest.param(("--model", "k-anonymity:k=3"), 1, id="k"),
        pytest.param((), 2, id="level"),
    ],
)
def test_each_nearest_miss_would_do(tight: Workspace, options: tuple[str, ...], highest: int) -> None:
    age = {"role": QUASI, "hierarchy": {"intervals": [5, 10]}, "max_level": highest}
    tight.write_policy(columns(age=age), models=[{"k-anonymity": {"k": 5}}])
    assert tight.released(*options)["verified"]


@pytest.mark.parametrize("algorithm", ["ola", "exhaustive", "contour"])
def test_every_algorithm_names_the_nearest_miss(tight: Workspace, algorithm: str) -> None:
    tight.refused("--algorithm", algorithm, code=1, says=["k=3 (now 5)"])


def test_ola_refuses_discernibility_with_a_limit_and_names_one_that_can(desk: Workspace) -> None:
    wish = ("--metric", "discernibility", "--suppression-limit", "5%")
    result = desk.refused("--algorithm", "ola", *wish, says=["'ola'", "cannot", "monotone", "Use '"])
    able = result.stderr.partition("Use '")[2].partition("'")[0]
    assert able in ("contour", "exhaustive")
    assert desk.released("--algorithm", able, *wish)["proven"] == "least loss"


def test_ola_takes_discernibility_without_a_limit(desk: Workspace) -> None:
    assert desk.released("--algorithm", "ola", "--metric", "discernibility")["algorithm"] == "ola"


def test_every_refusal_is_one_json_object(desk: Workspace) -> None:
    desk.data.unlink()
    found = json.loads(desk.refused("--json", says=["No such file"]).stdout)
    assert found["error"] == "DataError"
    assert "No such file" in found["message"]


# The real thing, in a process of its own


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(SHOAL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_json_alone_is_on_stdout(desk: Workspace) -> None:
    done = run("anonymize", desk.data, "-p", desk.policy, "-o", desk.output, "--json")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert json.loads(line).keys() >= PROMISED


def test_an_infeasible_run_exits_with_1_and_no_traceback(tight: Workspace) -> None:
    done = run("anonymize", tight.data, "-p", tight.policy, "-o", tight.output, "--json")
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["nearest"]["k"] == 3
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr


def exit_code(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> object:
    monkeypatch.setattr(sys, "argv", ["shoal", *map(str, arguments)])
    try:
        main()
    except SystemExit as left:
        return left.code or 0
    return 0


def test_the_program_exits_with_what_the_command_says(
    tight: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("anonymize", tight.data, "--policy", tight.policy, "--output", tight.output)
    assert exit_code(monkeypatch, *asked) == 1
    assert exit_code(monkeypatch, *asked, "--model", "k-anonymity:k=0") == 2
    assert exit_code(monkeypatch, *asked, "--model", "k-anonymity:k=3") == 0
    assert exit_code(monkeypatch, "verify", tight.output, "--policy", tight.policy) == 1
    assert exit_code(monkeypatch, "verify", tight.folder / "none.csv", "--policy", tight.policy) == 2
    assert exit_code(monkeypatch, "--help") == 0
    assert exit_code(monkeypatch, "--nonsense") == 2


def test_a_wrong_option_exits_with_2_and_no_traceback(desk: Workspace) -> None:
    done = run("anonymize", desk.data, "--polcy", desk.policy)
    assert done.returncode == 2
    assert "--polcy" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_in_the_current_folder_needs_no_path(desk: Workspace) -> None:
    done = run("anonymize", desk.data, "-p", desk.policy, "-o", "mine.csv", cwd=desk.home)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in desk.home.iterdir()} == {
        "mine.csv.codebook.csv",
        "mine.csv",
        "mine.csv.private",
    }


def test_help_answers_at_once() -> None:
    """Processor time, compared with that of a bare import: other work on the machine slows both down."""

    def least(*command: str) -> float:
        took = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert subprocess.run(command, capture_output=True, check=False).returncode == 0
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(took)

    assert least(str(SHOAL), "--help") < 8 * least(sys.executable, "-c", "import typer, rich.console")


def test_importing_shoal_loads_nothing_heavy() -> None:
    heavy = ["numba", "ibis", "duckdb", "pandas", "pyspark", "pyarrow"]
    check = f"import sys, shoal; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_work_that_cannot_be_stopped_does_not_outlive_the_command_or_make_it_print() -> None:
    code = (
        "import sys, threading, time, duckdb; from shoal.cli.app import main;"
        "sys.argv = ['shoal', '--version'];"
        "work = lambda held=duckdb.connect(): time.sleep(3600);"
        "threading.Thread(target=work, name='shoal-count', daemon=True).start(); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"shoal {version('shoal')}\n", "")


def test_an_answer_cut_short_by_its_seconds_is_no_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a signal ends diagnose with 130, however early the question stops before its seconds are up."""
    from shoal.cli import diagnose as command
    from shoal.workflow.diagnosis.diagnosis import Diagnosis

    data = tmp_path / "t.csv"
    data.write_text("a,b\n1,2\n1,3\n", encoding="utf-8")
    ask = Diagnosis.ask

    def cut_short(self: Diagnosis, *arguments: Any, **options: Any) -> Any:
        return dataclasses.replace(ask(self, *arguments, **options), complete=False)

    monkeypatch.setattr(Diagnosis, "ask", cut_short)
    wish = ["diagnose", str(data), "--question", "4", "--seconds", "600"]
    assert CliRunner().invoke(app, wish).exit_code == 0
    monkeypatch.setattr(command, "stopping", lambda: True)
    assert CliRunner().invoke(app, wish).exit_code == 130
