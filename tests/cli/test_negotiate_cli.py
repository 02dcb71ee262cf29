"""Profiles and negotiation from the command line: what is shown, kept, refused, and what is never said."""

from __future__ import annotations

import csv
import json
import random
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

import adult
import shoal
from adult import needs_adult
from shoal.cli.app import app
from shoal.cli.prompt import Prompt
from shoal.errors import Infeasible, UnknownName, UsageError
from shoal.policy.policy import Policy
from shoal.workflow.profile.negotiate import Negotiation
from shoal.workflow.profile.offer import adopted, offer_of
from shoal.workflow.profile.profile import Profile
from shoal.workflow.profile.tabulate import Tabulation
from terminal import CTRL_C, CTRL_D, in_a_terminal

SECRET = "SECRETVAL7"  # in every text cell of the table; no file and no message may hold it
SHOAL = Path(sys.executable).with_name("shoal")
QUASI = "quasi-identifier"


class Workspace:
    """A folder with a table, a policy and a place for a profile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.policy = folder / "data.csv", folder / "policy.yaml"
        self.profile, self.output = folder / "table.profile", folder / "release.csv"
        lots = random.Random(3)
        rows = [
            (
                20 + int(20 * lots.random() ** 3),
                f"{SECRET}{lots.choice('fm')}",
                f"{SECRET}{int(3 * lots.random() ** 2)}{int(3 * lots.random() ** 2)}",
                f"{SECRET}ill{lots.randrange(5)}",
            )
            for _ in range(200)
        ]
        with self.data.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("age", "sex", "zip", "illness"), *rows])
        self.write_policy()

    def write_policy(self, **entries: Any) -> None:
        columns = {
            "age": {"role": QUASI, "hierarchy": {"intervals": [5, 10]}},
            "sex": {"role": QUASI, "hierarchy": "flat"},
            "zip": {"role": QUASI, "hierarchy": {"prefix": [11]}},
            "illness": {"role": "sensitive"},
        }
        policy = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]}
        self.policy.write_text(yaml.safe_dump(policy | entries, sort_keys=False), encoding="utf-8")

    def call(self, *arguments: object) -> Any:
        result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(argument) for argument in arguments])
        accident = result.exception
        assert accident is None or isinstance(accident, SystemExit), repr(accident)
        assert "Traceback" not in result.output
        assert SECRET not in result.output
        return result

    def tabulate(self, *options: object) -> Any:
        given = ("profile", self.data, "--policy", self.policy, "--output", self.profile)
        return self.call(*given, *options)

    def negotiate(self, *options: object) -> Any:
        return self.call("negotiate", self.profile, *options)

    def answer(self, *options: object, code: int = 0) -> dict[str, Any]:
        result = self.negotiate(*options, "--json")
        assert result.exit_code == code, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def released(self, node: str) -> dict[str, Any]:
        given = (
            "anonymize",
            self.data,
            "--policy",
            self.policy,
            "--output",
            self.output,
            "--force",
            "--json",
        )
        result = self.call(*given, "--node", node)
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture(scope="module")
def tabulated(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    desk = Workspace(tmp_path_factory.mktemp("desk"))
    assert desk.tabulate().exit_code == 0
    return desk.profile.read_bytes()


@pytest.fixture
def made(desk: Workspace, tabulated: bytes) -> Workspace:
    desk.profile.write_bytes(tabulated)
    return desk


def lines_of(text: str) -> dict[str, str]:
    """Read the pairs that a command shows."""
    return dict(line.split(maxsplit=1) for line in text.splitlines() if len(line.split()) > 1)


# Profiles


def test_a_profile_says_what_it_holds_and_what_to_do_next(desk: Workspace) -> None:
    done = desk.tabulate()
    assert done.exit_code == 0
    told = lines_of(done.stdout)
    assert told["records"] == "200"
    assert told["nodes"] == "24 of 24"
    assert told["tabulated"] == "k, l of illness"
    where = f"--data {desk.data} --policy {desk.policy}"
    assert told["next"] == f"shoal negotiate {desk.profile} {where}"
    assert desk.profile.stat().st_mode & 0o777 == 0o600
    assert SECRET.encode() not in desk.profile.read_bytes()


def test_a_profile_as_json(desk: Workspace) -> None:
    found = json.loads(
        desk.tabulate("--json", "--share", "25%", "--score", "sizes", "--by", "lattice").stdout
    )
    assert (found["nodes"], found["lattice_size"], found["complete"], found["stopped"]) == (
        6,
        24,
        False,
        False,
    )
    assert found["columns"] == {"age": 3, "sex": 1, "zip": 2}
    assert found["sensitive"] == ["illness"]
    assert found["bytes"] == desk.profile.stat().st_size
    assert set(found["seconds"]) >= {"count", "tabulate"}
    assert found["output"] == str(desk.profile)
    assert found["study"] is None


def test_a_profile_is_extended_in_place(desk: Workspace) -> None:
    assert "7 of 24 (29.2%); another node may be better" in desk.tabulate("--share", "10%").stdout
    assert len(Profile.load(desk.profile).numbers) == 7  # one of each height
    again = desk.tabulate("--extend", "--seconds", "60")
    assert again.exit_code == 0
    assert "24 of 24" in again.stdout
    assert desk.answer("--k", 3)["partial"] is False


def test_options_stand_in_for_the_policys_lines(desk: Workspace) -> None:
    desk.tabulate("--model", "k-anonymity:k=7", "--suppression-limit", "10%")
    found = desk.answer()
    assert (found["k"], found["limit"]) == (7, 20)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--share", "200%"), "share must be a part of the lattice, such as 10% or 0.1, got '200%'."),
        (("--seconds", "0"), "seconds must be a number above 0, got 0.0."),
        (("--score", "size"), "Unknown score 'size'. Did you mean 'sizes'?"),
        (("--by", "heights"), "Unknown ranking 'heights'. Did you mean 'height'?"),
        (("--extend",), "Leave out --extend to make one."),
        (("--model", "k-anonymity:k=0"), "k must be at least 1, got 0."),
        (("--suppression-limit", "101%"), "must not be above 100%"),
    ],
)
def test_wrong_options_are_refused_in_words(desk: Workspace, options: tuple[str, ...], says: str) -> None:
    done = desk.tabulate(*options)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not desk.profile.exists()


def test_what_exists_is_not_replaced_unasked(made: Workspace) -> None:
    before = made.profile.read_bytes()
    done = made.tabulate()
    assert done.exit_code == 2
    assert "exists. Use --force to replace it, or use --extend to continue from it." in done.stderr
    assert made.profile.read_bytes() == before
    assert made.tabulate("--force").exit_code == 0
    done = made.call("profile", made.data, "--policy", made.policy, "--output", made.data, "--force")
    assert done.exit_code == 2
    assert "is the input and would be replaced" in done.stderr
    done = made.call("profile", made.data, "--policy", made.policy, "--output", made.folder / "no" / "p")
    assert "does not exist. Create it first." in done.stderr


def test_a_foreign_profile_is_not_extended(made: Workspace) -> None:
    text = made.data.read_text(encoding="utf-8").splitlines()
    made.data.write_text("\n".join(text[:-1]) + "\n", encoding="utf-8")
    before = made.profile.read_bytes()
    done = made.tabulate("--extend")
    assert done.exit_code == 2
    assert "of another table, or of other hierarchies. Make a new one." in done.stderr
    assert made.profile.read_bytes() == before


@contextmanager
def stopping(after: int) -> Iterator[Any]:
    """A progress bar that is interrupted once so many nodes are done."""

    def tell(phase: str, done: int, total: int | None) -> None:
        if phase == "tabulate" and done >= after:
            raise KeyboardInterrupt

    yield tell


def test_ctrl_c_keeps_a_valid_partial_profile(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tabulation.slices, "__defaults__", (None, 5))
    command = import_module("shoal.cli.profile")
    monkeypatch.setattr(command, "progress_bar", lambda: stopping(10))
    done = desk.tabulate("--json", "--study")
    assert done.exit_code == 130
    assert "Stopped: 10 of 24 nodes are tabulated in" in done.stderr
    assert "The same command with --extend continues." in done.stderr
    told = json.loads(done.stdout)
    assert (told["nodes"], told["stopped"], told["study"]) == (10, True, None)
    kept = Profile.load(desk.profile)
    assert len(kept.numbers) == 10
    assert desk.answer("--k", 1)["partial"] is True
    again = desk.tabulate("--extend")  # is stopped at once, and keeps what there was
    assert again.exit_code == 130
    assert len(Profile.load(desk.profile).numbers) == 10
    monkeypatch.setattr(command, "progress_bar", lambda: stopping(1000))
    assert desk.tabulate("--extend").exit_code == 0
    full = Profile.load(desk.profile)
    assert full.complete
    direct = shoal.profile(desk.data, desk.policy)
    assert np.array_equal(full.suppressed(3), direct.suppressed(3))
    assert np.array_equal(full.suppressed(2, "illness"), direct.suppressed(2, "illness"))


def test_ctrl_c_before_the_first_node_writes_nothing(
    desk: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("shoal.cli.profile"), "progress_bar", lambda: stopping(0))
    done = desk.tabulate()
    assert done.exit_code == 130
    assert "Stopped before any node was tabulated. Nothing was written." in done.stderr
    assert sorted(path.name for path in desk.folder.iterdir()) == ["data.csv", "policy.yaml"]


def test_a_study_is_shown_and_drawn(desk: Workspace) -> None:
    done = desk.tabulate("--study", "--plots", desk.folder / "plots")
    assert done.exit_code == 0, done.output
    for title in ("by height, k = 2", "by k", "below their top level, k = 2", "Grouping power"):
        assert title in done.stdout
    drawn = sorted(path.name for path in (desk.folder / "plots").iterdir())
    names = ["grouping-power", "suppression-by-columns", "suppression-by-height", "suppression-by-k"]
    assert drawn == sorted(f"{name}.{ending}" for name in names for ending in ("png", "svg"))
    told = json.loads(desk.tabulate("--study", "--force", "--json").stdout)["study"]
    assert [row["at"] for row in told["by_height"]] == list(range(7))
    assert [(row["column"], row["level"]) for row in told["grouping"]][:4] == [("age", i) for i in range(4)]


# Answers


def test_without_wishes_the_policys_own_are_answered(made: Workspace) -> None:
    done = made.negotiate()
    told = lines_of(done.stdout)
    assert (told["k"], told["limit"]) == ("2", "0 of 200 records (0%)")
    found = made.answer()
    assert found["exact"]["k"] == 2
    node = json.dumps({"node": found["exact"]["node"], "k": 2, "limit": 0})
    assert told["next"] == f"shoal anonymize DATA --policy POLICY --output OUT --node '{node}'"
    assert made.released(node)["suppressed"] == found["exact"]["suppressed"]


@pytest.mark.parametrize(
    ("options", "wishes"),
    [
        (("--model", "k-anonymity:k=9", "--suppression-limit", "10%"), ()),
        (("--model", "distinct-l-diversity:l=3,column=sex2", "--suppression-limit", "30%"), ()),
        ((), ("--l", 3, "--sensitive", "sex2", "--suppression-limit", "30%")),
        ((), ("--l", 3, "--sensitive", "illness", "--suppression-limit", "30%")),
        ((), ("--k", 2)),
    ],
)
def test_the_command_printed_releases_what_was_negotiated(desk: Workspace, options: Any, wishes: Any) -> None:
    rows = desk.data.read_text(encoding="utf-8").splitlines()
    rows = [rows[0] + ",sex2", *[f"{row},{number % 7}" for number, row in enumerate(rows[1:])]]
    desk.data.write_text("\n".join(rows) + "\n", encoding="utf-8")
    columns = yaml.safe_load(desk.policy.read_text(encoding="utf-8"))["columns"]
    columns["sex2"] = {"role": "sensitive"}
    desk.write_policy(columns=columns, models=[{"distinct-l-diversity": {"l": 1, "column": "illness"}}])
    assert desk.tabulate(*options).exit_code == 0
    where = ("--data", desk.data, "--policy", desk.policy)
    exact = desk.answer(*wishes, *where)["exact"]
    command = shlex.split(lines_of(desk.negotiate(*wishes, *where).stdout)["next"])
    assert command[:2] == ["shoal", "anonymize"]
    command[command.index("OUT")] = str(desk.output)
    done = desk.call(*command[1:], "--json")
    assert done.exit_code == 0, done.output
    release = json.loads(done.stdout)
    assert (release["levels"], release["suppressed"]) == (exact["node"], exact["suppressed"])
    policy, _ = adopted(Policy.load(desk.policy), command[-1])
    asked = {"k-anonymity": {"k": exact["k"]}} if "k" in exact else None
    asked = asked or {"distinct-l-diversity": {"l": exact["l"], "column": exact["sensitive"]}}
    assert asked in policy.models
    assert policy.suppression_limit == exact.get("share", exact["limit"])


def test_what_a_profile_is_made_from_is_never_replaced(desk: Workspace) -> None:
    columns = yaml.safe_load(desk.policy.read_text(encoding="utf-8"))["columns"]
    listed = desk.folder / "sex.csv"
    listed.write_text(f"{SECRET}f,any\n{SECRET}m,any\n", encoding="utf-8")
    columns["sex"]["hierarchy"] = {"csv": "sex.csv"}
    desk.write_policy(columns=columns)
    notes = desk.folder / "notes.txt"
    notes.write_text("notes", encoding="utf-8")
    for path, says in [
        (desk.data, "is the input and would be replaced"),
        (desk.policy, "is the policy and would be replaced"),
        (listed, "is the hierarchy of 'sex' and would be replaced"),
        (notes, "is not a profile, so it is not replaced. Name another output."),
    ]:
        before = path.read_bytes()
        for option in ("--force", "--extend"):
            done = desk.call("profile", desk.data, "-p", desk.policy, "-o", path, option)
            assert done.exit_code == 2
            assert says in done.stderr
        assert path.read_bytes() == before
    assert desk.tabulate().exit_code == 0
    assert desk.tabulate("--force").exit_code == 0


def test_an_answer_names_the_files_it_was_given(made: Workspace) -> None:
    done = made.negotiate("--k", 2, "--data", made.data, "--policy", made.policy)
    assert f"shoal anonymize {made.data} --policy {made.policy} --output OUT --node" in done.stdout


def test_no_answer_is_exit_code_1_with_suggestions(made: Workspace) -> None:
    wishes = ("--k", 5, "--max-level", "age=0,sex=0", "--max-level", "zip=0")
    done = made.negotiate(*wishes)
    assert done.exit_code == 1
    assert "Not possible with these settings." in done.stdout
    for words in ("suppression", "limit", "(now 0)", "levels", "age up to"):
        assert words in done.stdout
    found = made.answer(*wishes, code=1)
    assert found["exact"] is None
    assert set(found["suggestions"]) == {"suppression", "levels", "privacy", "columns"}
    assert found["max_level"] == {"age": 0, "sex": 0, "zip": 0}


def test_nothing_at_all_would_do(made: Workspace) -> None:
    done = made.negotiate("--k", "201", "--max-level", "age=0,sex=0,zip=0")
    assert done.exit_code == 1
    assert "Nothing that relaxes one setting alone works." in done.stdout


def test_l_is_negotiated_for_its_column(made: Workspace) -> None:
    found = made.answer("--l", 3, "--suppression-limit", "20%")
    assert (found["l"], found["sensitive"], found["limit"]) == (3, "illness", 40)
    assert found["besides"] == ["k-anonymity"]
    assert "The policy also asks for k-anonymity" in made.negotiate("--l", 3).stdout


def test_k_and_l_are_negotiated_together(made: Workspace) -> None:
    found = made.answer("--k", 3, "--l", 3, "--suppression-limit", "20%")
    assert (found["k"], found["l"], found["sensitive"], found["besides"]) == (3, 3, "illness", [])
    assert (found["exact"]["k"], found["exact"]["l"]) == (3, 3)
    told = made.released(json.dumps(found["exact"]))
    assert told["suppressed"] == found["exact"]["suppressed"]
    narrow = ("--k", 3, "--l", 4, "--suppression-limit", "5%", "--max-level", "age=1,sex=0,zip=0")
    found = made.answer(*narrow, code=1)
    assert set(found["suggestions"]) == {"suppression", "levels", "privacy", "k", "l", "columns"}
    for name, other in (("k", "l"), ("l", "k")):
        offer = found["suggestions"][name]
        if offer:
            assert offer[name] < found[name]
            assert offer[other] == found[other]
    shown = made.negotiate(*narrow).stdout
    assert "k  " in shown
    assert "l  " in shown
    assert "Without one column, or two, everything else can stay as asked" in shown
    assert {tuple(one["columns"]) for one in found["dropped"]} == {
        ("age",), ("sex",), ("zip",), ("age", "sex"), ("age", "zip"), ("sex", "zip"),
    }  # fmt: skip
    best = found["dropped"][0]
    assert made.released(json.dumps(best["levels"]))["suppressed"] == best["levels"]["suppressed"]


def test_other_kinds_of_l_are_negotiated_where_the_policy_names_them(desk: Workspace) -> None:
    desk.write_policy(
        models=[
            {"k-anonymity": {"k": 2}},
            {"entropy-l-diversity": {"l": 2.5}},
            {"recursive-cl-diversity": {"c": 3, "l": 2}},
            {"t-closeness": {"t": 0.4}},
        ]
    )
    told = json.loads(desk.tabulate("--json").stdout)
    assert told["tabulated"] == ["k", "l of illness", "entropy l of illness", "recursive (3,l) of illness"]
    assert told["unanswered"] == ["t-closeness"]
    assert "not answered" in desk.tabulate("--force").stdout
    found = desk.answer("--suppression-limit", "30%")
    assert (found["k"], found["l"], found["diversity"]) == (2, 2.5, "entropy")
    assert found["besides"] == ["recursive-cl-diversity", "t-closeness"]
    found = desk.answer("--l", 3, "--c", 3, "--suppression-limit", "30%")
    assert (found["l"], found["diversity"], found["c"]) == (3, "recursive", 3.0)
    assert "recursive (c = 3) l" in desk.negotiate("--l", 3, "--c", 3, "--suppression-limit", "30%").stdout
    refused = desk.negotiate("--l", 3, "--c", 2)
    assert refused.exit_code == 2
    assert "It holds recursive (3,l) of illness." in refused.stderr


def test_the_least_loss_can_be_preferred(made: Workspace) -> None:
    found = made.answer("--k", 3, "--prefer", "loss", "--metric", "precision")
    assert found["metric"] == "precision"
    levels = found["exact"]["node"]
    assert found["exact"]["loss"] == pytest.approx(
        (levels["age"] / 3 + levels["sex"] + levels["zip"] / 2) / 3
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--k", "0"), "k must be at least 1, got 0."),
        (("--k", "2", "--l", "1.5"), "l must be a whole number, got 1.5."),
        (("--k", "2", "--l", "0"), "l must be at least 1, got 0."),
        (("--k", "2", "--diversity", "entropy"), "diversity and c are for l. Ask for l, or leave them out."),
        (("--l", "2", "--diversity", "entropi"), "Did you mean 'entropy'?"),
        (("--l", "2", "--diversity", "entropy"), "Make it with this model in its policy, such as entropy-l-"),
        (("--l", "2", "--c", "-1"), "does not hold what is asked for: recursive l-diversity with c = -1."),
        (("--suppression-limit", "201"), "must not be above the table's 200 records, got 201."),
        (("--suppression-limit", "some"), "must be a share such as 5% or 0.05"),
        (("--suppression-limit", "\u00b2"), "must be a share such as 5% or 0.05"),
        (("--max-level", "agee=1"), "Unknown quasi-identifier 'agee'. Did you mean 'age'?"),
        (("--max-level", "age=4"), "max_level of 'age' must be a level from 0 to 3, got 4."),
        (("--max-level", "age"), "--max-level takes column=level, as age=2,sex=0; got 'age'."),
        (("--max-level", "age=1,age=2"), "--max-level names 'age' twice, with the levels 1 and 2. Give one."),
        (("--max-level", "age=1", "--max-level", "age=2"), "--max-level names 'age' twice"),
        (("--l", "2", "--sensitive", "ilness"), "Did you mean 'illness'?"),
        (("--k", "2", "--sensitive", "illness"), "A sensitive column is for l"),
        (("--prefer", "los"), "Unknown preference 'los'. Did you mean 'loss'?"),
        (("--metric", "height"), "A metric is only used to minimize the loss"),
        (("--prefer", "loss", "--metric", "discernibility"), "Unknown separable metric"),
        (("--runtime",), "--runtime counts a node of the table: give --data and --policy too."),
    ],
)
def test_wishes_out_of_range_are_refused_in_words(
    made: Workspace, options: tuple[str, ...], says: str
) -> None:
    done = made.negotiate(*options)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stdout == ""
    told = json.loads(made.negotiate(*options, "--json").stdout)
    assert says in told["message"]


def test_files_that_are_no_profile_are_refused(made: Workspace) -> None:
    for path, says in [
        (made.data, "is not a profile. Make one with: shoal profile"),
        (made.folder / "none", "No such file or directory"),
        (made.folder, "Is a directory"),
    ]:
        done = made.call("negotiate", path, "--k", 2)
        assert done.exit_code == 2
        assert says in done.stderr
    good = made.profile.read_bytes()
    for bad, says in [
        (good[: len(good) // 2], "is damaged. Make it again"),
        (good.replace(b"shoal-profile 3", b"shoal-profile 1", 1), "is of another version"),
        (good.replace(b'"records": 200', b'"records": 201', 1), "is damaged"),
    ]:
        made.profile.write_bytes(bad)
        done = made.negotiate("--k", 2)
        assert done.exit_code == 2
        assert says in done.stderr
        assert made.tabulate("--extend").exit_code == 2


def test_the_greatest_node_is_counted_at_the_request(desk: Workspace) -> None:
    desk.tabulate("--share", "1%", "--by", "lattice")
    wishes = ("--k", 2, "--suppression-limit", "50%", "--max-level", "age=1,sex=1,zip=1")
    lacking = desk.negotiate(*wishes)
    assert lacking.exit_code == 1
    assert "None of the tabulated nodes satisfies this; another node may." in lacking.stdout
    assert "The profile holds 1 of 24 nodes: another node may be better." in lacking.stdout
    assert "With --data and --policy the node at the highest levels allowed is counted too." in lacking.stdout
    counted = desk.answer(*wishes, "--data", desk.data, "--policy", desk.policy)
    without = desk.answer(*wishes, "--no-runtime", "--data", desk.data, "--policy", desk.policy, code=1)
    assert without["exact"] is None
    assert counted["exact"]["node"] == {"age": 1, "sex": 1, "zip": 1}
    assert counted["partial"] is True
    full = shoal.profile(desk.data, desk.policy)
    assert counted["exact"]["suppressed"] == full.suppressed(2)[1, 1, 1]
    weaker = desk.answer(
        *wishes[:1], 30, *wishes[2:], "--runtime", "--data", desk.data, "-p", desk.policy, code=1
    )
    limit = weaker["limit"]
    place = full.row_of((1, 1, 1))
    reached, gone = full.tables[None].strongest(limit)
    assert weaker["suggestions"]["privacy"]["k"] == reached[place]
    assert weaker["suggestions"]["privacy"]["suppressed"] == gone[place]
    desk.data.write_text(desk.data.read_text(encoding="utf-8") + "20,x,y,z\n", encoding="utf-8")
    other = desk.negotiate(*wishes, "--runtime", "--data", desk.data, "--policy", desk.policy)
    assert other.exit_code == 2
    assert "The profile is of another table, or of other hierarchies." in other.stderr


# Offers become releases


def test_every_suggestion_is_released_as_it_said(made: Workspace) -> None:
    tried = set()
    for k in (2, 3, 5, 9):
        for limit in (0, 4, 10):
            for levels in ("age=0,sex=0,zip=0", "age=1,sex=0,zip=1", "age=2,sex=1,zip=0"):
                result = made.negotiate(
                    "--k", k, "--suppression-limit", limit, "--max-level", levels, "--json"
                )
                found = json.loads(result.stdout)
                suggestions = found["suggestions"]
                offers = [("exact", found["exact"]), *list(suggestions.items())[:3]]
                offers += [("columns", offer) for offer in suggestions["columns"]]
                for kind, offer in offers:
                    if offer and (kind not in tried or kind == "columns"):
                        release = made.released(json.dumps(offer))
                        assert release["levels"] == offer["node"]
                        assert release["suppressed"] == offer["suppressed"]
                        assert release["smallest_class"] >= offer["k"]
                        tried.add(kind)
    assert tried == {"exact", "suppression", "levels", "privacy", "columns"}


def test_an_offer_of_l_is_released_as_it_said(made: Workspace) -> None:
    made.write_policy(models=[{"distinct-l-diversity": {"l": 2}}])
    assert made.tabulate("--force").exit_code == 0
    offer = made.answer("--l", 3, "--suppression-limit", 20)["exact"]
    assert offer["sensitive"] == "illness"
    release = made.released(json.dumps(offer))
    assert (release["levels"], release["suppressed"]) == (offer["node"], offer["suppressed"])
    with made.output.open(encoding="utf-8", newline="") as file:
        classes: dict[tuple[str, ...], set[str]] = {}
        for age, sex, zip_, illness in list(csv.reader(file))[1:]:
            classes.setdefault((age, sex, zip_), set()).add(illness)
    assert min(map(len, classes.values())) >= 3


def test_a_whole_answer_is_its_exact_node_and_may_come_from_a_file(made: Workspace) -> None:
    answer = made.answer("--k", 4, "--suppression-limit", 10)
    path = made.folder / "answer.json"
    path.write_text(json.dumps(answer), encoding="utf-8")
    for node in (json.dumps(answer), str(path)):
        assert made.released(node)["suppressed"] == answer["exact"]["suppressed"]
    release = shoal.anonymize(made.data, made.policy, output=made.output, force=True, node=path)
    assert release.levels == answer["exact"]["node"]
    offer = Profile.load(made.profile).negotiate(k=4, suppression_limit=10).exact
    assert (
        shoal.anonymize(made.data, made.policy, output=made.output, force=True, node=offer).suppressed
        == (answer["exact"]["suppressed"])
    )


def test_an_offer_goes_above_the_policys_levels(made: Workspace) -> None:
    columns = yaml.safe_load(made.policy.read_text(encoding="utf-8"))["columns"]
    columns["age"]["max_level"] = 0
    made.write_policy(columns=columns)
    made.tabulate("--force")
    answer = made.answer("--k", 5, code=1)
    offer = answer["suggestions"]["levels"]
    assert offer["node"]["age"] > 0
    assert made.released(json.dumps(offer))["suppressed"] == offer["suppressed"]
    told = made.negotiate("--k", 5).stdout
    assert f"'{json.dumps({'node': offer['node'], 'k': 5, 'limit': 0})}'" in told


def test_an_answer_without_an_exact_node_says_what_to_pass(made: Workspace) -> None:
    answer = made.answer("--k", 5, "--max-level", "age=0,sex=0,zip=0", code=1)
    given = ("anonymize", made.data, "--policy", made.policy, "--output", made.output)
    done = made.call(*given, "--node", json.dumps(answer))
    assert done.exit_code == 2
    assert "This negotiation has no exact answer. Pass one of its suggestions (" in done.stderr
    assert not made.output.exists()


@pytest.mark.parametrize(
    ("node", "says"),
    [
        ('{"node": {"age": 1}, "kk": 3}', "Unknown entry of an offer 'kk'. Did you mean 'k'?"),
        ('{"node": {"age": 1}, "k": "3"}', "k of an offer must be a whole number of at least 1, got '3'."),
        (
            '{"node": {"age": 1}, "k": 2, "l": 2.5}',
            "l of an offer must be a whole number of at least 1, got 2.5.",
        ),
        ('{"node": {"age": 1}, "l": 2, "c": 2}', "c of an offer goes with recursive diversity"),
        (
            '{"node": {"age": 1}, "l": 2, "diversity": "recursive", "c": 0}',
            "c must be a number above 0, got 0",
        ),
        ('{"node": {"age": 1}, "l": 2, "diversity": "entropie"}', "Did you mean 'entropy'?"),
        ('{"node": {"age": 1.5}}', "The level of 'age' must be a whole number, got 1.5."),
        ('{"node": {"age": 1}, "limit": -1}', "limit of an offer must be a whole number of at least 0"),
        ('{"node": {"age": 1}, "limit": 999}', "must not be above the table's 200 records, got 999."),
        ('{"node": {"age": 1}, "share": "lots"}', "must be a share such as 5% or 0.05"),
        ('{"node": {"age": 1}, "share": 5}', "share of an offer must be a share such as 5%, got 5."),
        ('{"node": {"agee": 1}}', "Unknown quasi-identifier 'agee'. Did you mean 'age'?"),
        ('{"node": {"age": 9}}', "Level 9 of 'age' is outside 0..3."),
        ('{"node": {"age": 1}, "l": 2, "sensitive": "zip"}', "Unknown sensitive column 'zip'."),
        ('{"node": {"age": 1}, "sensitive": 3}', "sensitive of an offer must name a column, got 3."),
        ('{"node"', "Cannot read the node: it is not JSON."),
        ('{"age": "1"}', "The level of 'age' must be a whole number, got '1'."),
        ("missing.json", "--node takes column=level, as age=2,sex=0, or an offer"),
        ("age=1,age=2", "--node names 'age' twice, with the levels 1 and 2. Give one."),
        ("age", "--node takes column=level, as age=2,sex=0, or an offer"),
        ("age=\u00b2", "--node takes column=level, as age=2,sex=0, or an offer"),
    ],
)
def test_a_wrong_offer_is_refused_in_words(desk: Workspace, node: str, says: str) -> None:
    done = desk.call("anonymize", desk.data, "-p", desk.policy, "-o", desk.output, "--node", node)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not desk.output.exists()


def test_a_limit_that_was_a_share_stays_one(desk: Workspace) -> None:
    """Next quarter's table has other records: 10% of this one's would be another share of them."""
    desk.tabulate()
    for wish, share in (("10%", "10%"), ("0.1", "0.1"), ("20", None)):
        found = desk.answer("--k", 2, "--suppression-limit", wish)
        assert found["exact"]["limit"] == found["limit"] == 20
        assert found["exact"].get("share") == share
        policy, _ = adopted(Policy.load(desk.policy), found["exact"])
        assert policy.suppression_limit == (share or 20)
    done = desk.negotiate(
        "--k", 2, "--suppression-limit", "10%", "--data", desk.data, "--policy", desk.policy
    )
    command = shlex.split(lines_of(done.stdout)["next"])
    assert json.loads(command[-1])["share"] == "10%"
    command[command.index("OUT")] = str(desk.output)
    done = desk.call(*command[1:], "--json")
    assert done.exit_code == 0
    recipe = json.loads(Path(json.loads(done.stdout)["recipe"]).read_text(encoding="utf-8"))
    assert recipe["policy"]["suppression_limit"] == "10%"


def test_the_share_of_the_policy_stays_one_and_more_suppression_is_in_records(desk: Workspace) -> None:
    desk.write_policy(suppression_limit="3%")
    desk.tabulate()
    assert desk.answer("--k", 2)["exact"]["share"] == "3%"
    others = desk.answer("--k", 5, "--max-level", "age=1,sex=0,zip=1", code=1)["suggestions"]
    assert others["suppression"]["limit"] > 6
    assert "share" not in others["suppression"]
    assert others["levels"]["share"] == "3%"
    old = {"node": {"age": 1}, "k": 2, "limit": 6}  # as offers were written before
    assert adopted(Policy.load(desk.policy), old)[0].suppression_limit == 6


def test_a_file_that_holds_no_offer_is_refused(desk: Workspace) -> None:
    for path, says in [(desk.data, "it is not JSON"), (desk.folder, "Cannot read the node from")]:
        done = desk.call("anonymize", desk.data, "-p", desk.policy, "-o", desk.output, "--node", path)
        assert done.exit_code == 2
        assert says in done.stderr
    with pytest.raises(
        UsageError, match="A node is levels by column, or an offer of a negotiation, got list"
    ):
        offer_of([1])


def policy_of(models: list[Any], **columns: Any) -> Policy:
    flat = {"role": QUASI, "hierarchy": "flat"}
    sensitive = {name: {"role": "sensitive"} for name in ("x", "y")}
    return Policy.load({"columns": {"a": flat, **sensitive, **columns}, "models": models})


def test_an_offer_replaces_its_own_model_and_leaves_the_others() -> None:
    k, l = {"k-anonymity": {"k": 2}}, {"distinct-l-diversity": {"l": 2}}
    adopt = {"node": {"a": 0}, "k": 7, "limit": 3}
    policy, levels = adopted(policy_of([l, k]), adopt)
    assert policy.models == [l, {"k-anonymity": {"k": 7}}]
    assert (policy.suppression_limit, levels) == (3, {"a": 0})
    about_x = {"node": {"a": 0}, "l": 5, "sensitive": "x"}
    policy, _ = adopted(policy_of([k]), about_x)
    assert policy.models == [k, {"distinct-l-diversity": {"l": 5, "column": "x"}}]
    policy, _ = adopted(policy_of([l, k]), about_x)  # the other column keeps its l
    assert policy.models == [
        {"distinct-l-diversity": {"l": 5, "column": "x"}},
        {"distinct-l-diversity": {"l": 2, "column": "y"}},
        k,
    ]
    policy, _ = adopted(policy_of([l]), {"node": {"a": 0}, "l": 4})
    assert policy.models == [{"distinct-l-diversity": {"l": 4}}]
    policy, levels = adopted(policy_of([k]), {"a": 1})  # levels alone
    assert (policy.models, levels) == ([k], {"a": 1})


def test_an_offer_leaves_k_of_persons_as_it_is() -> None:
    persons, k = {"k-anonymity": {"k": 3, "unit": "pid"}}, {"k-anonymity": {"k": 2}}
    adopt = {"node": {"a": 0}, "k": 7, "limit": 3}
    for before, after in (([persons], [persons]), ([k, persons], [persons]), ([persons, k], [persons])):
        policy, _ = adopted(policy_of(before, pid={"role": "identifier"}), adopt)
        assert [model for model in policy.models if model in after] == after
        assert {"k-anonymity": {"k": 7}} in policy.models
        assert k not in policy.models


@pytest.mark.parametrize("written", [False, True])
def test_an_offer_is_released_only_where_its_persons_are_enough(written: bool) -> None:
    """Two records of one person are no class of two persons, whatever a profile of records offers."""
    table = pd.DataFrame({"a": ["1", "1", "2", "2"], "pid": ["p", "p", "q", "r"]})
    columns = {"a": {"role": QUASI, "hierarchy": "flat"}, "pid": {"role": "identifier"}}
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 2, "unit": "pid"}}]}
    found = shoal.profile(table, policy).negotiate()
    assert found.besides == ("k-anonymity of pid",)
    assert found.exact is not None
    assert found.exact.node == {"a": 0}
    offer = json.dumps({"node": {"a": 0}, "k": 2, "limit": 0}) if written else found.exact
    with pytest.raises(Infeasible, match="2 of 4 records would have to be suppressed"):
        shoal.anonymize(table, policy, node=offer)


def test_a_column_may_be_called_node() -> None:
    policy = policy_of([{"k-anonymity": {"k": 2}}], node={"role": QUASI, "hierarchy": "flat"})
    assert adopted(policy, {"node": 1})[1] == {"node": 1}
    assert adopted(policy, {"node": {"node": 1}, "k": 3})[1] == {"node": 1}
    with pytest.raises(UnknownName):
        adopted(policy, {"node": {"node": 1}, "K": 3})


# The prompt


class Talk:
    """A prompt that is fed lines; what it says after each is kept."""

    def __init__(self, profile: Profile, capsys: pytest.CaptureFixture[str], *lines: str) -> None:
        self.said: list[str] = []
        waiting = iter(lines)

        def read() -> str:
            out, err = capsys.readouterr()
            self.said.append(out + err)
            try:
                return next(waiting)
            except StopIteration:
                raise EOFError from None

        self.prompt = Prompt(profile, {}, "DATA", "POLICY", read)
        self.code = self.prompt.run()

    @property
    def answer(self) -> Negotiation:
        found: Negotiation = self.prompt.answer
        return found


@pytest.fixture(autouse=True)
def _wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def profile(made: Workspace) -> Profile:
    return Profile.load(made.profile)


def test_one_wish_is_changed_at_a_time(profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    talk = Talk(profile, capsys, "k 10", "limit 10%", "age 1", "", "show", "l 2", "quit")
    assert talk.code == 0
    assert (talk.answer.request.model, talk.answer.request.least, talk.answer.request.limit) == ("l", 2, 20)
    assert talk.answer.request.max_level == {"age": 1, "sex": 1, "zip": 2}
    assert "24 of 24 nodes, 200 records. Levels: age 0..3, sex 0..1, zip 0..2." in talk.said[0]
    before, after = profile.negotiate().exact, profile.negotiate(k=10).exact
    assert f"height {before.height} -> {after.height}" in talk.said[1]
    for name in before.node:
        moved = f"{name} {before.node[name]} -> {after.node[name]}"
        assert (moved in talk.said[1]) == (before.node[name] != after.node[name])
    relaxed = profile.negotiate(k=10, suppression_limit="10%").exact
    assert f"suppressed {after.suppressed} -> {relaxed.suppressed}" in talk.said[2]


def test_suggestions_are_taken_and_undone(profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    none = ("k 10", "limit 5%", "age 2", "sex 0", "zip 1")
    start = profile.negotiate(k=10, suppression_limit=10, max_level={"age": 2, "sex": 0, "zip": 1})
    assert start.exact is None
    for kind, offer in [
        ("suppression", start.suppression), ("levels", start.levels), ("privacy", start.privacy),
        ("1", start.suppression), ("3", start.privacy), ("6", start.columns[2]), ("age", start.columns[1]),
    ]:  # fmt: skip
        talk = Talk(profile, capsys, *none, f"take {kind}")
        assert talk.answer.exact is not None, kind
        assert talk.answer.exact.suppressed == offer.suppressed
        assert "Changed: none -> age" in talk.said[-1]
    back = Talk(profile, capsys, *none, "take levels", *["undo"] * 7)
    assert back.answer == profile.negotiate()
    assert "There is nothing to undo." in back.said[-1]
    assert "There is still no answer." in Talk(profile, capsys, *none, "k 11").said[-1]
    again = Talk(profile, capsys, *none, "reset")
    assert again.answer == profile.negotiate()
    assert "There is no suggestion to take." in Talk(profile, capsys, "take 1").said[-1]


def test_the_answer_is_written(profile: Profile, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "my answer.json"
    talk = Talk(profile, capsys, "k 3", f"json {path}", f"json {path}", "json", f"json {tmp_path}/no/a.json")
    assert json.loads(path.read_text(encoding="utf-8")) == profile.negotiate(k=3).to_dict()
    assert path.stat().st_mode & 0o777 == 0o600
    assert "Wrote" in talk.said[2]
    assert "exists. Name another file." in talk.said[3]
    assert "json takes the file to write" in talk.said[4]
    assert f"The folder '{tmp_path}/no' does not exist" in talk.said[5]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("kk 3", "Unknown command or column 'kk'. Did you mean 'k'?"),
        ("agee 2", "Did you mean 'age'?"),
        ("age", "'age' takes a level, such as: age 1."),
        ("age 7", "max_level of 'age' must be a level from 0 to 3, got 7."),
        ("age two", "max_level of 'age' must be a level from 0 to 3, got 'two'."),
        ("level agee 1", "Unknown quasi-identifier 'agee'. Did you mean 'age'?"),
        ("k", "k must be a whole number, got ''."),
        ("k -1", "k must be at least 1, got -1."),
        ("k --1", "k must be a whole number, got '--1'."),
        ("limit \u00b2", "must be a share such as 5% or 0.05"),
        ("l 2 ilness", "Did you mean 'illness'?"),
        ("limit 200%", "must not be above 100%, got '200%'."),
        ("limit", "must be a share such as 5% or 0.05"),
        ("prefer los", "Did you mean 'loss'?"),
        ("prefer loss nothing", "Unknown separable metric 'nothing'."),
        ("undo", "There is nothing to undo."),
        ("help", "adopt a suggestion"),
    ],
)
def test_lines_that_cannot_be_obeyed_change_nothing(
    profile: Profile, capsys: pytest.CaptureFixture[str], line: str, says: str
) -> None:
    talk = Talk(profile, capsys, line, "undo")
    assert says in talk.said[1]
    assert talk.answer == profile.negotiate()
    assert "There is nothing to undo." in talk.said[2]
    assert talk.code == 0


def test_columns_of_any_name_have_their_level_set(capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    flat = {"role": QUASI, "hierarchy": "flat"}
    table = pd.DataFrame({"k": list("cccc"), "home town": list("xxxx"), "a": list("1122"), "b": list("1212")})
    policy = {
        "columns": dict.fromkeys(table.columns, flat), "models": [{"k-anonymity": {"k": 2}}],
        "same_level": [["a", "b"]],
    }  # fmt: skip
    made = shoal.profile(table, policy)
    talk = Talk(made, capsys, "level k 0", "home town 0", "a 0")
    assert talk.answer.request.max_level == {"k": 0, "home town": 0, "a": 0, "b": 0}
    assert "a up to 1 (now 0), b up to 1 (now 0)" in talk.said[-1]
    taken = Talk(made, capsys, "level k 0", "a 0", "take a")
    assert taken.answer.request.max_level["b"] == 1


@pytest.fixture
def two_columns() -> Profile:
    import pandas as pd

    flat = {"role": QUASI, "hierarchy": "flat"}
    table = pd.DataFrame({"a": list("1122"), "ill": list("xxyy"), "job": list("abcd")})
    columns = {"a": flat, "ill": {"role": "sensitive"}, "job": {"role": "sensitive"}}
    return shoal.profile(table, {"columns": columns, "models": [{"distinct-l-diversity": {"l": 2}}]})


def test_a_prompt_opens_where_the_column_of_l_is_yet_to_be_said(
    two_columns: Profile, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ("show", "limit 1", "take 1", "json x", "a 0", "undo", "reset", "l 2 job", "l 3", "undo", "undo")
    talk = Talk(two_columns, capsys, *lines)
    assert talk.code == 0
    says = "Say which sensitive column l is about: ill, job."
    assert says in talk.said[0]
    assert "As: l 2 ill." in talk.said[0]
    for place in (1, 2, 3, 4, 5, 7):
        assert says in talk.said[place], place
    assert "There is nothing to undo." in talk.said[6]
    assert says in talk.said[-1]
    assert (talk.answer.request.least, talk.answer.request.sensitive) == (2, "job")
    assert "2 of job" in talk.said[8]
    assert Talk(two_columns, capsys, "k 2").answer.exact is not None


def test_l_stays_with_the_column_in_use(two_columns: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    talk = Talk(two_columns, capsys, "l 2 job", "l 1")
    assert (talk.answer.request.least, talk.answer.request.sensitive) == (1, "job")


def test_a_suggestion_whose_loss_is_unknown_is_taken_by_height(
    profile: Profile, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = Talk(
        profile, capsys, "k 10", "age 2", "sex 0", "zip 1", "prefer loss coverage", "take suppression"
    )
    assert talk.answer.exact is not None
    assert (talk.answer.request.prefer, talk.answer.request.metric) == ("height", None)
    assert talk.answer.request.limit > 0
    assert "Now prefers height" in talk.said[-1]


@pytest.mark.parametrize(("end", "code"), [(b"quit\n", 0), (CTRL_D, 0), (CTRL_C, 130)])
def test_a_terminal_opens_the_prompt_and_leaves_it_politely(made: Workspace, end: bytes, code: int) -> None:
    lines = [b"k 4\n", b"limit 10%\n", b"ages 2\n", end]
    left, said = in_a_terminal([str(SHOAL), "negotiate", str(made.profile)], lines)
    assert left == code
    assert "-> " in said
    assert "Did you mean 'age'?" in said
    assert "Traceback" not in said
    assert SECRET not in said


# Published numbers


@needs_adult
def test_the_published_negotiations_from_the_command_line(tmp_path: Path) -> None:
    desk = Workspace(tmp_path)
    root = adult.folder()
    assert root is not None
    desk.data = root / "adult.csv"

    def profile_over(*columns: str) -> None:
        policy = adult.policy(columns, "hierarchies-study")
        policy["columns"]["hours-per-week"] = {"role": "sensitive"}
        desk.policy.write_text(yaml.safe_dump(policy, sort_keys=False), encoding="utf-8")
        assert desk.tabulate("--force").exit_code == 0

    def exact(*wishes: object) -> tuple[int, ...]:
        found = desk.answer(*wishes, *asked)["exact"]
        return (*found["node"].values(), found["suppressed"])

    profile_over("age", "race", "workclass")
    asked: tuple[str, ...] = ("--suppression-limit", "321", "--max-level", "age=2,race=1,workclass=1")
    assert [exact("--k", k) for k in (3, 10, 50)] == [(1, 0, 0, 125), (1, 1, 0, 170), (2, 1, 1, 251)]
    assert [exact("--l", l) for l in (3, 6)] == [(1, 0, 0, 240), (1, 1, 1, 70)]
    profile_over("age", "occupation", "race", "workclass")
    asked = ("--suppression-limit", "321", "--max-level", "age=2,occupation=0,race=1,workclass=1")
    assert exact("--k", 3) == (1, 0, 1, 1, 283)
    found = desk.answer("--k", 10, *asked, code=1)["suggestions"]
    assert (*found["suppression"]["node"].values(), found["suppression"]["limit"]) == (2, 0, 1, 1, 655)
    assert (*found["levels"]["node"].values(), found["levels"]["suppressed"]) == (1, 2, 1, 0, 170)
    assert (found["privacy"]["k"], found["privacy"]["suppressed"]) == (5, 301)
    for offer in (found["suppression"], found["levels"], found["privacy"], *found["columns"]):
        assert desk.released(json.dumps(offer))["suppressed"] == offer["suppressed"]
