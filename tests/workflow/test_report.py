"""The report: one page that tells the custodian of a release, with its numbers right and nothing let out."""

from __future__ import annotations

import json
import re
import stat
from collections import defaultdict
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from browser import CHROMIUM, chromium
from problems import QUASI, policy_of_people
from shoal.algorithms import ALGORITHMS
from shoal.cli.app import app
from shoal.core.contracts import Guarantee
from shoal.document.html import tag
from shoal.errors import InternalError, UsageError
from shoal.sample import bundled
from shoal.workflow.report.charts import bars, size_bars
from shoal.workflow.risk.exposure import Exposure, exposure_of

MARK = "zzq"  # every value that must not leave the house begins with it
LANDS = {"south": ["it", "es", f"{MARK}-south"], "north": ["se", "no", f"{MARK}-north"]}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed in order, and no attribute stands twice."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = defaultdict(list)  # of each kind of element, its own text
        self.tables: dict[str, list[list[str]]] = {}
        self._cells: list[list[str]] = []
        self._caption = ""
        assert html.startswith("<!DOCTYPE html>\n<html lang=")
        self.feed(html.removeprefix("<!DOCTYPE html>"))
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)
            self.texts[tag].append("")
        if tag == "tr":
            self._cells.append([])
        if tag in ("th", "td"):
            assert tag == "td" or dict(attrs)["scope"] in ("row", "col")
            self._cells[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("rect", "line")
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "caption":
            self._caption = self.texts["caption"][-1]
        if tag == "table":
            assert self._caption not in self.tables
            self.tables[self._caption] = self._cells
            self._cells = []

    def handle_data(self, data: str) -> None:
        for element in set(self.open):
            self.texts[element][-1] += data
        if ({"th", "td"} & set(self.open)) and "title" not in self.open:
            self._cells[-1][-1] += data

    @property
    def risks(self) -> dict[str, tuple[str, str]]:
        (found,) = (rows for caption, rows in self.tables.items() if caption.startswith("Before: "))
        return {name: (before, after) for name, before, after in found[1:]}

    @property
    def histogram(self) -> dict[str, int]:
        rows = self.tables["Records by the size of their class"][1:]
        return {
            kind: sum(int(row[column].replace(",", "")) for row in rows)
            for kind, column in (("before", 2), ("after", 3))
        }


def assert_alone(html: str) -> Page:
    """The page is well formed, loads nothing and runs nothing."""
    page = Page(html)
    allowed = {
        "html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "h1", "h2",
        "h3", "p", "dl", "dt", "dd", "div", "span", "strong", "bdi", "table", "caption", "thead", "tbody",
        "tr", "th", "td", "figure", "svg", "desc", "text", "rect", "line", "pre", "code",
    }  # fmt: skip
    for name, attributes in page.elements:
        assert name in allowed, name
        assert not [
            a for a in attributes if a in ("src", "href", "srcset", "style", "xlink:href") or a[:2] == "on"
        ]
    (style,) = page.texts["style"]
    assert "@import" not in style
    assert "url(" not in style
    assert not page.texts["script"]
    headings = [name for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert headings[0] == "h1" and headings.count("h1") == 1  # noqa: PT018
    assert all(int(below[1]) <= int(above[1]) + 1 for above, below in pairwise(headings))
    return page


def people(number: int = 240) -> pd.DataFrame:
    chance = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "name": [f"{MARK}-person-{i}" for i in range(number)],
            "age": chance.integers(20, 60, number),
            "land": chance.choice(["it", "es", "se", "no"], number),
            "sex": chance.choice(["f", "m"], number),
            "ill": chance.choice([f"ill{i}" for i in range(8)], number),
            "place": [f"row {i}" for i in range(number)],
        }
    )
    table.loc[0, ["land", "age"]] = [f"{MARK}-south", 97]  # one of a kind: suppressed, or merged with others
    table.loc[1, ["land", "age"]] = [f"{MARK}-north", 3]
    return table


def policy(**changes: Any) -> dict[str, Any]:
    return policy_of_people(LANDS, "place", **changes)


OWN: dict[str, dict[str, Any]] = {  # what some searches need
    "anatomy": {"models": [{"distinct-l-diversity": {"l": 3}}], "suppression_limit": 0},
    "bottom-up": {"label": "ill", "metric": "coverage"},
    "greedy-cuts": {"metric": "discernibility"},
    "incognito": {"suppression_limit": 0},
    "k-optimize": {"metric": "discernibility"},
    "mondrian": {"metric": "coverage"},
    "samarati": {"metric": "height"},
    "tds": {"label": "ill", "metric": "coverage"},
}
BOUNDS = policy()["columns"] | {
    "age": {"role": QUASI, "hierarchy": {"intervals": [5, 10, 40]}, "release_as": "bounds"}
}
FAMILIES = {name: {"algorithm": name} | OWN.get(name, {}) for name in ALGORITHMS} | {
    "auto": {},
    "relaxed": {"algorithm": {"mondrian": {"relaxed": True}}, "metric": "coverage"},
    "by-hierarchy": {"algorithm": {"mondrian": {"categorical": "hierarchy"}}, "metric": "coverage"},
    "refine": {"algorithm": {"ola": {"refine": True}}},
    "cells": {"algorithm": {"contour": {"cells": True}}, "metric": "coverage"},
    "mask": {"suppressed": "mask"},
    "bounds": {"columns": BOUNDS},
    "without-suppression": {"suppression_limit": 0, "metric": "precision"},
    "several-models": {
        "models": [{"k-anonymity": {"k": 3}}, {"t-closeness": {"t": 0.9}}, {"average-risk": {"risk": 0.5}}]
    },
}  # fmt: skip


def sizes(table: pd.DataFrame, names: list[str]) -> pd.Series:
    return table.groupby(names, dropna=False).size()


def told(found: pd.Series, k: int) -> dict[str, str]:
    """What a report must say of classes of such sizes, counted plainly."""
    records, unique, below = int(found.sum()), int((found == 1).sum()), int(found[found < k].sum())
    said = {
        "Records": f"{records:,}",
        "Classes": f"{len(found):,}",
        "Smallest class (k)": f"{found.min():,}",
    }
    counts = {"Unique records": unique} | ({f"Records in classes below {k}": below} if k > 1 else {})
    counts["Marketer risk: expected correct matches"] = len(found)
    said |= {name: f"{number:,} ({percent(number / records)})" for name, number in counts.items()}
    risks = {"Prosecutor risk, highest": 1 / found.min(), "Prosecutor risk, average": len(found) / records}
    return said | {name: percent(share) for name, share in risks.items()}


def percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_report_of_every_family_tells_what_plain_counts_tell(family: str, tmp_path: Path) -> None:
    table = people()
    if family == "mask":  # together enough to be kept
        table.loc[2:4, ["land", "age"]] = [["it", 95], ["es", 85], ["se", 5]]
    wish = policy(**FAMILIES[family])
    output = tmp_path / "release.csv"
    release = shoal.anonymize(table, wish, output=output, report=True)
    assert release.report == tmp_path / "release.csv.private" / "report.html"
    html = release.report.read_text(encoding="utf-8")
    page = assert_alone(html)
    released = pd.read_csv(output, dtype=str, keep_default_na=False)
    quasi = ["age_lower", "age_upper"] if family == "bounds" else ["age"]
    shown = released[[*quasi, "land", "sex"]]
    if release.masked:
        shown = shown[(shown != "").any(axis=1)]
    k = 1 if family == "anatomy" else max(m.least_size for m in release.policy.privacy_models)
    before = told(sizes(table, ["age", "land", "sex"]), k)
    after = told(sizes(shown, list(shown)), k)
    assert page.risks == {name: (before[name], after[name]) for name in before}
    assert page.histogram == {"before": len(table), "after": len(shown)}
    assert f"{len(table):,} records came in and {len(shown):,} are released" in html
    assert f"{release.loss:,.10g}" in page.texts["strong"]
    assert ("Not verified" in html) is not release.verification.verified
    assert [row[0] for row in page.tables["Privacy models"][1:]] == [
        c.model for c in release.verification.models
    ]
    leaked = {word for word in re.findall(rf"{MARK}[-\w]*", html) if word not in output.read_text()}
    assert not leaked
    if release.levels:
        levels = {row[0]: row[1] for row in page.tables["What was lost of each quasi-identifier"][1:]}
        assert levels == {
            h.name: f"{level} of {h.height}"
            for h, level in zip(release.hierarchies, release.levels.values(), strict=True)
        }
    if family == "mask":
        assert release.masked
        assert f"The {release.masked:,} masked records" in html
    if family == "anatomy":
        assert "can be found as before" in html
        assert f"{release.verification.classes:,} groups" in html
    again = Page(shoal.report(release))
    assert (again.tables, again.texts["pre"]) == (page.tables, page.texts["pre"])


def test_what_was_lost_is_what_naive_counts_say() -> None:
    table = people()
    wish = policy(metric="coverage")
    release = shoal.anonymize(table, wish, node={"age": 2, "land": 1, "sex": 0})
    assert release.suppressed
    groups = {
        "age": (table["age"] // 10, table["age"].nunique() - 1),
        "land": (table["land"].isin(LANDS["south"]), 5),
        "sex": (table["sex"], 1),
    }
    values = {name: table[name].groupby(group).nunique() for name, (group, _) in groups.items()}
    kept = sizes(table.assign(age=groups["age"][0], land=groups["land"][0]), ["age", "land", "sex"])
    for name, (group, most) in groups.items():
        share = (
            (group.map(values[name]) - 1) / most if name == "age" else group.map({True: 2 / 5, False: 2 / 5})
        )
        share = group.map({"f": 0.0, "m": 0.0}) if name == "sex" else share
        key = pd.MultiIndex.from_frame(
            pd.DataFrame({"a": groups["age"][0], "l": groups["land"][0], "s": table["sex"]})
        )
        gone = kept.reindex(key).to_numpy() < 4
        naive = np.where(gone, 1.0, share).mean()
        assert release.losses[name].coverage == pytest.approx(naive)
        assert release.losses[name].values == table[name].nunique()
    assert np.mean([loss.coverage for loss in release.losses.values()]) == pytest.approx(release.loss)


def test_the_shares_of_a_separable_metric_make_the_whole() -> None:
    release = shoal.anonymize(people(), policy())
    shares = [loss.share for loss in release.losses.values()]
    assert sum(share or 0.0 for share in shares) == pytest.approx(1)
    for name, loss in release.losses.items():
        alone = {h.name: 0 for h in release.hierarchies} | {name: (release.levels or {})[name]}
        only = shoal.anonymize(people(), policy(models=[{"k-anonymity": {"k": 1}}]), node=alone)
        assert loss.share == pytest.approx(only.loss / release.loss)
    assert shoal.anonymize(people(), policy(metric="discernibility")).losses["age"].share is None


def test_what_was_retained_is_said_and_lost_columns_are_named() -> None:
    release = shoal.anonymize(people(), policy(), node={"age": 2, "land": 2, "sex": 0})
    assert release.columns_without_information == ("land",)
    html = shoal.report(release)
    page = assert_alone(html)
    assert page.tables["What was retained of each quasi-identifier"] == [
        ["Column", "Retained"],
        *([name, "lost" if name == "land" else percent(share)] for name, share in release.retained.items()),
    ]
    assert percent(release.retained_overall) in page.texts["strong"]
    assert "Nothing is left of <bdi>land</bdi>." in html
    whole = shoal.report(shoal.anonymize(people(), policy(models=[{"k-anonymity": {"k": 1}}])))
    assert "Nothing is left of" not in whole


def test_nothing_lost_is_told_as_nothing() -> None:
    table = pd.DataFrame({"sex": ["f", "m"] * 5})
    wish = {"columns": {"sex": {"role": QUASI, "hierarchy": "flat"}}, "models": [{"k-anonymity": {"k": 5}}]}
    page = assert_alone(shoal.report(shoal.anonymize(table, wish)))
    assert page.tables["What was lost of each quasi-identifier"][1] == ["sex", "0 of 1", "2", "2", "0%", "0%"]


@given(st.lists(st.integers(1, 3_000_000), min_size=1), st.lists(st.integers(1, 400)), st.integers(1, 500))
@settings(deadline=None)
def test_bars_hold_every_record_once_and_are_cut_at_k(before: list[int], after: list[int], k: int) -> None:
    found = bars(exposure_of(np.array(before)), exposure_of(np.array(after, np.int64)), k)
    assert (sum(bar.before for bar in found), sum(bar.after for bar in found)) == (sum(before), sum(after))
    assert found[0].low == 1
    assert all(one.high + 1 == other.low for one, other in pairwise(found))
    assert not [bar for bar in found if bar.low < k <= bar.high <= max(before + after)]
    assert len(found) <= 15
    drawn = size_bars(found, k)
    widths = [float(width) for width in re.findall(r'width="([\d.]+)"', drawn)]
    assert len(widths) == sum((bar.before > 0) + (bar.after > 0) for bar in found)
    assert all(0 < width <= 100 for width in widths)
    assert (f"(k = {k})" in drawn) is (1 < k <= max(before + after))


def test_an_exposure_of_nothing_has_no_risk() -> None:
    nothing = Exposure()
    assert (nothing.total, nothing.smallest, nothing.highest_risk, nothing.average_risk) == (0, 0, 0, 0)


NASTY = (
    "<script>alert(1)</script>", "a\"b'c&amp;d", "na\u00efve \u540d\u524d \U0001f41f", "x" * 400,
    "\u202edetrevni", "]]> --> <!--", "</style><img src=x onerror=alert(1)>", "http://example.org/a.js",
    "javascript:alert(1)",
)  # fmt: skip


def test_names_and_labels_are_told_as_they_are_and_never_read_as_markup(tmp_path: Path) -> None:
    lands = {f"<b>{n}": [f"it{n}", f"es{n}"] for n in range(2)}
    table = pd.DataFrame({name: [f"it{i % 2}" for i in range(12)] for name in NASTY})
    columns = {name: {"role": QUASI, "hierarchy": {"tree": lands}} for name in NASTY[:-1]}
    columns[NASTY[-1]] = {"role": "sensitive"}
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "same_level": [list(NASTY[:2])]}
    node = dict.fromkeys(NASTY[:-1], 1)
    output = tmp_path / "a <b> & 'c'.csv"
    release = shoal.anonymize(table, wish, node=node, output=output, report=True)
    assert release.report
    page = assert_alone(release.report.read_text(encoding="utf-8"))
    (caption,) = (c for c in page.tables if c.startswith("What became"))
    assert [row[0] for row in page.tables[caption][1:]] == list(NASTY)
    assert page.tables[caption][1][-1] == "<b>0, <b>1"
    assert output.name in page.texts["h1"][0]


def test_what_has_no_place_in_a_page_is_replaced() -> None:
    assert tag("p", "a\x00b\ud800c\x1b[0m\n") == "<p>a\ufffdb\ufffdc\ufffd[0m\n</p>"
    assert tag("p", title='"><script>') == '<p title="&quot;&gt;&lt;script&gt;"></p>'


def test_sixty_columns_are_sixty_rows() -> None:
    names = [f"column {n} with a rather long name of its own" for n in range(60)]
    table = pd.DataFrame({name: [str(i % 2) for i in range(8)] for name in names})
    wish = {
        "columns": {name: {"role": QUASI, "hierarchy": "flat"} for name in names},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    page = assert_alone(shoal.report(shoal.anonymize(table, wish, node=dict.fromkeys(names, 1))))
    assert [row[0] for row in page.tables["What was lost of each quasi-identifier"][1:]] == names


def test_long_labels_are_cut_short() -> None:
    table = pd.DataFrame({"land": ["it", "es"] * 4})
    tree = {"s" * 5000: ["it", "es"]}
    wish = {
        "columns": {"land": {"role": QUASI, "hierarchy": {"tree": tree}}},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    html = shoal.report(shoal.anonymize(table, wish, node={"land": 1}))
    assert "s" * 200 + "\u2026" in html
    assert "s" * 201 not in html


def test_large_numbers_have_separators() -> None:
    release = shoal.anonymize(people(2400), policy())
    html = shoal.report(release)
    assert "2,400 records came in" in html
    assert not re.search(r">[^<]*\b2400\b", html)


def test_a_search_that_promises_no_model_is_told_of_in_red() -> None:
    columns = policy()["columns"] | {
        "ill": {"role": QUASI, "hierarchy": "flat"}
    }  # four together are not tested
    release = shoal.anonymize(people(), policy(columns=columns, algorithm="mu-argus"))
    assert not release.verification.verified
    html = shoal.report(release)
    assert_alone(html)
    assert 'class="verdict bad">Not verified: k-anonymity' in html
    assert "mu-argus does not promise" in html
    assert 'class="verdict good"' not in html


@pytest.mark.parametrize("name", ["contour", "ola"])
def test_a_report_says_if_the_time_ran_out_and_claims_no_proof(name: str) -> None:
    stopped = "It was stopped before its end."
    assert stopped not in shoal.report(shoal.anonymize(people(), policy(**FAMILIES[name])))
    release = shoal.anonymize(people(), policy(**FAMILIES[name]), seconds=1e-9)
    assert release.evaluation.proven is Guarantee.ACCEPTABLE
    html = shoal.report(release)
    assert stopped in html
    assert "was not proven" in html
    assert "prove it" not in html


def test_a_model_that_counts_persons_is_told_apart_from_records() -> None:
    html = shoal.report(shoal.anonymize(people(), policy(models=[{"k-anonymity": {"k": 4, "unit": "name"}}])))
    assert_alone(html)
    assert "a model counts the different values of name instead" in html


def test_what_was_judged_before_is_told(tmp_path: Path) -> None:
    table = people()
    table.to_csv(tmp_path / "everybody.csv", index=False)
    wish = tmp_path / "policy.yaml"
    wish.write_text(yaml.safe_dump(policy(models=[{"k-map": {"k": 4, "population": "everybody.csv"}}])))
    html = shoal.report(shoal.anonymize(table, wish))
    assert_alone(html)
    assert "holds, checked before writing" in html
    assert "Verified. k-map cannot be seen in the release alone and was checked before" in html


# Where it goes


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    people().to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy(), sort_keys=False))
    (tmp_path / "out").mkdir()
    return tmp_path


def call(*arguments: object) -> Any:
    result = CliRunner(env={"COLUMNS": "250"}).invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    return result


def anonymize(desk: Path, *more: object) -> Any:
    output = desk / "out" / "release.csv"
    return call("anonymize", desk / "data.csv", "--policy", desk / "policy.yaml", "--output", output, *more)


def test_a_report_is_made_only_when_asked(desk: Path) -> None:
    private = desk / "out" / "release.csv.private"
    done = anonymize(desk, "--json")
    assert json.loads(done.stdout)["report"] is None
    assert not (private / "report.html").exists()
    done = anonymize(desk, "--json", "--force", "--report")
    assert json.loads(done.stdout)["report"] == str(private / "report.html")
    assert_alone((private / "report.html").read_text(encoding="utf-8"))
    assert stat.S_IMODE((private / "report.html").stat().st_mode) == 0o600
    audit = json.loads((private / "audit.json").read_text())
    assert audit["result"]["report"] == str(private / "report.html")
    anonymize(desk, "--force")  # what told of the old release goes with it
    assert not (private / "report.html").exists()


def test_a_report_is_replaced_with_its_release(desk: Path) -> None:
    anonymize(desk, "--report")
    path = desk / "out" / "release.csv.private" / "report.html"
    first = path.read_text(encoding="utf-8")
    done = anonymize(desk, "--report", "--force", "--model", "k-anonymity:k=9")
    assert done.exit_code == 0
    assert str(path) in done.stdout.replace("\n", "")
    assert "k = 9" in path.read_text(encoding="utf-8")
    assert "k = 9" not in first


def test_an_applied_recipe_has_a_report_too(desk: Path) -> None:
    anonymize(desk)
    output = desk / "out" / "again.csv"
    recipe = desk / "out" / "release.csv.private" / "recipe.json"
    done = call("apply", recipe, desk / "data.csv", "--output", output, "--report", "--json")
    report = Path(json.loads(done.stdout)["report"])
    assert report == desk / "out" / "again.csv.private" / "report.html"
    page = assert_alone(report.read_text(encoding="utf-8"))
    assert "The levels were fixed" in " ".join(page.texts["dd"])


def test_the_commands_of_a_report_run(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shlex

    anonymize(desk, "--report")
    monkeypatch.chdir(desk / "out")
    page = Page((desk / "out" / "release.csv.private" / "report.html").read_text(encoding="utf-8"))
    lines = [line for line in page.texts["pre"][0].splitlines() if line and not line.startswith("#")]
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line.replace("DATA", "../data.csv").replace("POLICY.yaml", "../policy.yaml"))
        assert words[0] == "shoal"
        assert call(*words[1:]).exit_code == 0


def fail_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = import_module("shoal.workflow.verify").judge
    module = import_module("shoal.workflow.release.anonymize")

    def fails(*arguments: Any, **options: Any) -> shoal.Verification:
        return replace(judge(*arguments, **options), verified=False, reasons=("planted",))

    monkeypatch.setattr(module, "judge", fails)


def fail_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> str:
        raise InternalError

    monkeypatch.setattr(import_module("shoal.workflow.report.report"), "report", fails)


@pytest.mark.parametrize("fail", [fail_verification, fail_report])
def test_a_run_that_fails_leaves_no_report(desk: Path, monkeypatch: pytest.MonkeyPatch, fail: Any) -> None:
    fail(monkeypatch)
    with pytest.raises(InternalError):
        shoal.anonymize(desk / "data.csv", policy(), output=desk / "out" / "release.csv", report=True)
    assert not list((desk / "out").iterdir())


def test_a_run_that_fails_keeps_the_old_report(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anonymize(desk, "--report")
    path = desk / "out" / "release.csv.private" / "report.html"
    before = path.read_bytes(), {p.name for p in (desk / "out").iterdir()}
    fail_report(monkeypatch)
    with pytest.raises(InternalError):
        shoal.anonymize(
            desk / "data.csv", policy(), output=desk / "out" / "release.csv", report=True, force=True
        )
    assert (path.read_bytes(), {p.name for p in (desk / "out").iterdir()}) == before


def test_a_report_without_an_output_is_refused_with_the_next_step() -> None:
    with pytest.raises(UsageError, match=r"Name one, or use shoal\.report\."):
        shoal.anonymize(people(), policy(), report=True)


def test_a_report_shows_no_key_and_no_place(desk: Path) -> None:
    anonymize(desk, "--report")
    private = desk / "out" / "release.csv.private"
    html = (private / "report.html").read_text(encoding="utf-8")
    prints = json.loads((private / "recipe.json").read_text())["fingerprints"]
    assert prints["key"] not in html
    assert str(desk) not in html


# How it looks


def palettes(style: str) -> list[dict[str, str]]:
    blocks = re.findall(r":root\s*\{([^}]*)\}", style)
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block)) for block in blocks]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_text_is_readable_in_light_dark_and_print(tmp_path: Path) -> None:
    data, wish = bundled(tmp_path)
    html = shoal.report(shoal.anonymize(data, wish))
    assert not re.search("https?:", html)
    (style,) = assert_alone(html).texts["style"]
    light, dark, printed = palettes(style)
    assert light == printed
    assert luminance(light["paper"]) > 0.8
    assert luminance(dark["paper"]) < 0.05
    used = set(re.findall(r"(?<!-)color: var\(--(\w+)\)|fill: var\(--(\w+)\)", style))
    texts = {first for first, _ in used if first} | {"ink", "quiet"}
    for palette in (light, dark):
        for text in texts:
            assert contrast(palette[text], palette["paper"]) >= 4.5, text
        for text in ("ink", "quiet"):  # what stands on a tint
            assert contrast(palette[text], palette["tint"]) >= 4.5, text
        for bar in ("before", "after"):
            assert contrast(palette[bar], palette["paper"]) >= 3, bar
        assert contrast(palette["after"], palette["line"]) >= 3
    assert not re.search("#[0-9a-f]{3}", re.sub(r":root\s*\{[^}]*\}", "", style))


def test_every_drawing_is_told_in_words() -> None:
    html = shoal.report(shoal.anonymize(people(), policy()))
    for drawing in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        assert 'role="img"' in drawing
        assert re.match(r"<svg[^>]*><title", drawing)


def test_with_a_population_the_report_tells_of_it() -> None:
    release = shoal.anonymize(people(), policy(population_size=10_000))
    page = assert_alone(shoal.report(release))
    highest = page.risks["Journalist risk, highest (estimated)"]
    assert [float(risk.removesuffix("%")) for risk in highest] == sorted(
        (float(risk.removesuffix("%")) for risk in highest), reverse=True
    )
    assert "Unique in the population, by dankar" in page.risks


def test_the_report_tells_what_made_records_unique(tmp_path: Path) -> None:
    release = shoal.anonymize(people(), policy(), output=tmp_path / "release.csv", report=True)
    assert release.report is not None
    assert release.special is not None
    told = release.report.read_text(encoding="utf-8")
    assert "What makes records unique: sets of at most 3 columns" in told
    raw = people()

    def alone(columns: tuple[str, ...]) -> pd.Series:
        return raw.groupby(list(columns), dropna=False)[columns[0]].transform("size") == 1

    for columns, records in release.special.sets:
        parts = [part for size in range(1, len(columns)) for part in combinations(columns, size)]
        minimal = alone(columns)
        for part in parts:
            minimal &= ~alone(part)
        assert records == int(minimal.sum())
    assert f"{release.special.records:,} records" in told


def test_a_population_smaller_than_the_table_is_refused_before_the_search(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="population"):
        shoal.anonymize(people(), policy(population_size=3), output=tmp_path / "release.csv", report=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path(CHROMIUM).exists() or not find_spec("playwright"), reason="needs a browser")
def test_on_a_narrow_screen_tables_scroll_and_what_they_are_called_is_seen(tmp_path: Path) -> None:
    data, policy = bundled(tmp_path)
    release = shoal.anonymize(data, policy, output=tmp_path / "out.csv", report=True)
    width = 420
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto(Path(release.report).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        right = "[...document.querySelectorAll('.wide caption')].map(e => e.getBoundingClientRect().right)"
        captions = page.evaluate(right)
        assert captions
        assert max(captions) <= width
        inside = "[...document.querySelectorAll('.wide')].map(e => e.scrollWidth - e.clientWidth)"
        assert max(page.evaluate(inside)) > 0
        assert page.evaluate("getComputedStyle(document.querySelector('.wide')).overflowX") == "auto"
