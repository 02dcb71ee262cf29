"""Projects of ARX: what is read, what is told to be lost, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import random
import stat
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
import yaml
from typer.testing import CliRunner

import adult
import shoal
from shoal.cli.app import app
from shoal.errors import DataError, OutputError, ShoalError
from shoal.integrations.arx.arx import write_import
from shoal.integrations.arx.words import metric_of, models_of
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.policy.policy import Policy, named

HIERARCHIES = (adult.folder() or Path("nowhere")) / "hierarchies-arx"
AGES = [["18", "<30", "*"], ["25", "<30", "*"], ["34", ">=30", "*"], ["47", ">=30", "*"]]
SEXES = [["female", "*"], ["male", "*"]]

# A project as org.deidentifier.arx.gui.worker.WorkerSave writes it, with the words of
# org.deidentifier.arx.gui.worker.io.Vocabulary_V1 and V2, tabs and line ends by its XMLWriter. Each model is
# the toString() of its class in org.deidentifier.arx.criteria, the metric that of its in arx.metric.v2, a
# type that of org.deidentifier.arx.AttributeType.


def element(tag: str, value: object) -> str:
    return f"\t<{tag}>{escape(str(value))}</{tag}>\n"


def assignment(name: str, kind: str = "QUASI_IDENTIFYING_ATTRIBUTE", **more: str) -> str:
    entries = {"name": name, "type": kind, "datatype": "String", **more}
    return "\t<assigment>\n" + "".join("\t" + element(*e) for e in entries.items()) + "\t</assigment>\n"


def config(
    criteria: Sequence[str] = ("2-anonymity",),
    metric: str = "Non-uniform entropy",
    limit: str = "0.05",
    types: Sequence[str] = ("QUASI_IDENTIFYING_ATTRIBUTE",),
    weights: Mapping[str, float] | None = None,
    more: str = "",
) -> str:
    told = "".join(element("type", kind) for kind in types)
    weighed = "".join(
        f"<attributeWeight>{element('attribute', name)}{element('weight', weight)}</attributeWeight>"
        for name, weight in (weights or {}).items()
    )
    return (
        "<config>\n"
        + element("suppressTuplesInNonAnonymousOutput", "true")
        + f"<suppressedAttributeTypes>\n{told}</suppressedAttributeTypes>\n"
        + element("practicalMonotonicity", "false")
        + element("relativeMaxOutliers", limit)
        + element("metric", metric)
        + f"<attributeWeights>\n{weighed}</attributeWeights>\n"
        + f"<criteria>\n{''.join(element('criterion', c) for c in criteria)}</criteria>\n{more}</config>\n"
    )


def listed(rows: Sequence[Sequence[str]], separator: str = ";") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    return text.getvalue()


STANDARD = [
    assignment("name", "IDENTIFYING_ATTRIBUTE"),
    assignment("age", datatype="Integer", ref="hierarchies/age.csv", min="All", max="All"),
    assignment("sex", ref="hierarchies/sex.csv", min="0", max="1"),
    assignment("illness", "SENSITIVE_ATTRIBUTE"),
    assignment("stay", "INSENSITIVE_ATTRIBUTE"),
]


def members(
    assignments: Sequence[str] = tuple(STANDARD),
    hierarchies: Mapping[str, Sequence[Sequence[str]]] | None = None,
    separator: str = ";",
    **settings: Any,
) -> dict[str, str | bytes]:
    definition = f"<definition>\n{''.join(assignments)}</definition>\n"
    about = element("version", "3.9.1") + element("vocabulary", "2.0")
    found: dict[str, str | bytes] = {
        "metadata.xml": f"<metadata>\n{about}</metadata>\n",
        "project.dat": b"\xac\xed\x00\x05sr",
        "project.xml": f"<project>\n{element('name', 'p')}{element('separator', separator)}</project>\n",
        "data/input.csv": "name;age;sex;illness;stay\nA;18;female;flu;1\n",
        "input/config.dat": b"\xac\xed\x00\x05sr",
        "input/config.xml": config(**settings),
        "input/definition.xml": definition,
    }
    held = {"age": AGES, "sex": SEXES} if hierarchies is None else hierarchies
    return found | {f"input/hierarchies/{name}.csv": listed(rows, separator) for name, rows in held.items()}


def project(folder: Path, held: Mapping[str, str | bytes]) -> Path:
    path = folder / "project.deid"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return path


def read(folder: Path, **more: Any) -> shoal.Import:
    return shoal.import_arx(project(folder, members(**more)))


def told_of(found: shoal.Import, words: str) -> list[str]:
    return [str(one) for one in found.unsupported if words in str(one)]


def test_a_project_becomes_a_policy(tmp_path: Path) -> None:
    criteria = ["2-anonymity", "distinct-2-diversity for attribute 'illness'"]
    found = read(tmp_path, criteria=criteria, weights={"age": 0.5, "sex": 0.25})
    assert found.version == "3.9.1"
    assert yaml.safe_load(found.policy.to_yaml()) == {
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "hierarchy": {"csv": "hierarchies/age.csv"}, "weight": 0.5},
            "sex": {
                "role": "quasi-identifier",
                "hierarchy": {"csv": "hierarchies/sex.csv"},
                "max_level": 1,
                "weight": 0.25,
            },
            "illness": {"role": "sensitive"},
            "stay": {"role": "other"},
        },
        "models": [{"k-anonymity": {"k": 2}}, {"distinct-l-diversity": {"l": 2, "column": "illness"}}],
        "suppression_limit": "5%",
    }
    assert found.hierarchies == {"hierarchies/age.csv": AGES, "hierarchies/sex.csv": SEXES}


def test_an_imported_policy_releases_a_table_from_memory_and_from_its_folder(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {
            "name": list("abcdefgh"),
            "age": [18, 25, 34, 47] * 2,
            "sex": ["female"] * 4 + ["male"] * 4,
            "illness": ["flu", "cold"] * 4,
            "stay": range(8),
        }
    )
    found = read(tmp_path, criteria=["2-anonymity"], limit="0.0")
    release = shoal.anonymize(table, found.policy)
    assert (release.levels, release.suppressed) in (({"age": 1, "sex": 0}, 0), ({"age": 0, "sex": 1}, 0))
    write_import(found, tmp_path / "folder")
    again = shoal.anonymize(table, tmp_path / "folder" / "policy.yaml")
    assert (again.levels, again.loss) == (release.levels, release.loss)


@pytest.mark.skipif(not HIERARCHIES.is_dir(), reason="the Adult hierarchies are not here")
def test_adults_hierarchies_come_through_a_project_as_they_are(tmp_path: Path) -> None:
    held = {}
    for path in sorted(HIERARCHIES.glob("*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            held[path.stem] = [row for row in csv.reader(file, delimiter=";") if row]
    names = [name for name in held if name != "salary-class"]
    found = read(
        tmp_path,
        assignments=[
            *[assignment(name, ref=f"hierarchies/{name}.csv", min="All", max="All") for name in names],
            assignment("hours-per-week", "INSENSITIVE_ATTRIBUTE"),
            assignment("salary-class", "SENSITIVE_ATTRIBUTE", ref="hierarchies/salary-class.csv"),
        ],
        hierarchies=held,
        criteria=[
            "5-anonymity",
            "0.2-closeness with hierarchical ground-distance for attribute 'salary-class'",
        ],
    )
    assert not told_of(found, "column ")
    write_import(found, tmp_path / "folder")
    assert Policy.load(tmp_path / "folder" / "policy.yaml") == found.policy
    for name, rows in held.items():
        assert found.policy.builder(name).rows == tuple(map(tuple, rows))  # type: ignore[attr-defined]
        reread = Policy.load(tmp_path / "folder" / "policy.yaml").builder(name)
        assert reread == found.policy.builder(name)
    table = HIERARCHIES.parent / "adult.csv"
    release = shoal.anonymize(table, found.policy.with_(models=[{"k-anonymity": {"k": 5}}]))
    assert release.records == 30162
    assert release.verification.verified


@pytest.mark.parametrize(
    ("criterion", "models"),
    [
        ("5-anonymity", [{"k-anonymity": {"k": 5}}]),
        (
            "distinct-3-diversity for attribute 'it''s'",
            [{"distinct-l-diversity": {"l": 3, "column": "it''s"}}],
        ),
        ("entropy-3.0-diversity for attribute 'a'", [{"entropy-l-diversity": {"l": 3, "column": "a"}}]),
        (
            "shannon-entropy-2.5-diversity for attribute 'a'",
            [{"entropy-l-diversity": {"l": 2.5, "column": "a"}}],
        ),
        (
            "recursive-(4.0,3)-diversity for attribute 'a'",
            [{"recursive-cl-diversity": {"c": 4, "l": 3, "column": "a"}}],
        ),
        (
            "0.2-closeness with equal distance for attribute 'a'",
            [{"t-closeness": {"t": 0.2, "column": "a", "distance": "equal"}}],
        ),
        (
            "0.2-closeness with equal ground-distance for attribute 'a'",
            [{"t-closeness": {"t": 0.2, "column": "a", "distance": "equal"}}],
        ),
        (
            "0.2-closeness with ordered distance for attribute 'a'",
            [{"t-closeness": {"t": 0.2, "column": "a", "distance": "ordered"}}],
        ),
        (
            "0.2-closeness with hierarchical ground-distance for attribute 'a'",
            [{"t-closeness": {"t": 0.2, "column": "a", "distance": "hierarchical"}}],
        ),
        (
            "1.0-disclosure privacy for attribute 'a'",  # DDisclosurePrivacy takes log2
            [{"delta-disclosure": {"delta": 0.693147181, "present_only": True, "column": "a"}}],
        ),
        ("basic-1.5-likeness for attribute 'a'", [{"basic-beta-likeness": {"beta": 1.5, "column": "a"}}]),
        ("1.5-basic likeness for attribute 'a'", [{"basic-beta-likeness": {"beta": 1.5, "column": "a"}}]),
        ("enhanced-1.0-likeness for attribute 'a'", [{"enhanced-beta-likeness": {"beta": 1, "column": "a"}}]),
        ("(0.2)-avg-reidentification-risk", [{"average-risk": {"risk": 0.2}}]),
        (
            "(0.1, 0.3, 0.0)-avg-reidentification-risk",
            [{"average-risk": {"risk": 0.1}}, {"k-anonymity": {"k": 4}}],
        ),
        ("(0.01)-sample-uniqueness", [{"sample-uniqueness": {"share": 0.01}}]),
        ("(1.0E-4)-sample-uniqueness", [{"sample-uniqueness": {"share": 0.0001}}]),
    ],
)
def test_models_with_a_counterpart_lose_nothing(criterion: str, models: list[Any]) -> None:
    assert models_of(criterion) == (models, [])
    for model in models:
        MODELS.create(*named(model))


@pytest.mark.parametrize(
    ("criterion", "models"),
    [
        (
            "grassberger-entropy-2.0-diversity for attribute 'a'",
            [{"entropy-l-diversity": {"l": 2, "column": "a"}}],
        ),
        (
            "(0.1, 0.2, 0.05)-avg-reidentification-risk",
            [{"average-risk": {"risk": 0.1}}, {"k-anonymity": {"k": 5}}],
        ),
        ("(5)-map estimated as (3)-anonymity (Poisson)", [{"k-anonymity": {"k": 3}}]),
        ("(5)-map estimated as (unknown)-anonymity (Poisson)", []),
        ("(5)-map", []),
        ("(0.1,0.4)-presence", []),
        ("(0.01)-population-uniqueness (dankar)", []),
        ("(2.0,1.0E-6)-DP", []),
        ("profitability (prosecutor)[publisherBenefit=300.0]", []),
        ("Inclusion", []),
        ("something of tomorrow", []),
        ("", []),
    ],
)
def test_models_that_lose_something_say_so(criterion: str, models: list[Any]) -> None:
    found, told = models_of(criterion)
    assert found == models
    assert len(told) == 1
    assert told[0].reason
    assert told[0].nearest


@pytest.mark.parametrize(
    ("text", "name", "lost"),
    [
        ("Non-uniform entropy", "non-uniform-entropy", 0),
        ("Non-monotonic non-uniform entropy", "non-uniform-entropy", 1),
        ("Normalized non-uniform entropy", "non-uniform-entropy", 1),
        ("Monotonic discernability (DM*)", "discernibility-star", 0),
        ("Non-monotonic discernability", "discernibility", 0),
        ("Average equivalence class size", "class-size", 1),
        ("Monotonic precision", "precision", 0),
        ("Non-monotonic precision", "precision", 1),
        ("Height", "height", 0),
        ("Classification accuracy", "classification", 1),
        ("Loss (0.5/1.0/1.0)", "coverage", 1),
        ("Loss (0.3/1.0/0.6)", "coverage", 2),
        ("Ambiguity", "non-uniform-entropy", 1),
        ("", "non-uniform-entropy", 1),
    ],
)
def test_quality_models_are_read(text: str, name: str, lost: int) -> None:
    found, told = metric_of(text)
    assert (found, len(told)) == (name, lost)
    assert name in METRICS


def test_nothing_is_dropped_silently(tmp_path: Path) -> None:
    held = members(
        assignments=[
            assignment("age", ref="hierarchies/age.csv", min="All", max="All",
                       microaggregationFunction="Arithmetic mean", microaggregationIgnoreMissingData="true"),
            assignment("born", datatype="Date/Time", format="dd.MM.yyyy", locale="DE", min="x", novelty="1",
                       ref="hierarchies/born.csv", max="All"),
            assignment("zip"),
            assignment("note", "INSENSITIVE_ATTRIBUTE", ref="hierarchies/note.csv", response="true"),
            assignment("label", "INSENSITIVE_ATTRIBUTE", response="true"),
            assignment("odd", "UNKNOWN_ATTRIBUTE_TYPE"),
        ],
        hierarchies={"age": AGES, "born": [["a", "1"], ["b"]], "note": SEXES},
        criteria=["(2.0,1.0E-6)-DP", "distinct-2-diversity for attribute 'gone'"],
        limit="1.5",
        types=["QUASI_IDENTIFYING_ATTRIBUTE", "INSENSITIVE_ATTRIBUTE"],
        weights={"age": 0, "zip": 1.0, "born": "much"},  # type: ignore[dict-item]
        more=element("novelty", "1") + element("suppressionString", "*"),
    )  # fmt: skip
    held |= {"lattice.xml": "<lattice/>", "clipboard.xml": "<clipboard/>", "data/output.dat": b"x"}
    held["input/config.xml"] = str(held["input/config.xml"]).replace(
        "<practicalMonotonicity>false", "<practicalMonotonicity>true"
    )
    held["output/config.xml"] = config(criteria=["3-anonymity"])
    found = shoal.import_arx(project(tmp_path, held))
    for words in (
        "no microaggregation (Arithmetic mean)", "rows of its hierarchy differ in length",
        "some of its entries are not", 
        "column 'note'",
        "response variable", "UNKNOWN_ATTRIBUTE_TYPE", "-DP", "'gone'",
        "suppression limit", "columns of a suppressed record", "weight of column 'age'", "'born'", "novelty",
        "suppressionString", "lattice.xml", "clipboard.xml", "data/output.dat", "practical monotonicity",
        "settings of the last output", "Java objects", "data types", "privacy models", "ARX's windows",
        "suppressTuplesInNonAnonymousOutput",
    ):  # fmt: skip
        assert told_of(found, words), words
    assert found.policy.models == [{"k-anonymity": {"k": 5}}]
    assert found.policy.suppression_limit == "0%"
    assert found.policy.columns["zip"].hierarchy == "flat"
    assert found.policy.columns["zip"].max_level == 0
    assert found.policy.columns["odd"].role.value == "identifier"
    assert all(one.reason and one.nearest for one in found.unsupported)


def test_suppressed_records_are_masked_where_arx_blanks_what_shoal_does(tmp_path: Path) -> None:
    both = ["QUASI_IDENTIFYING_ATTRIBUTE", "SENSITIVE_ATTRIBUTE"]
    assert read(tmp_path, types=both).policy.suppressed == "mask"
    assert read(tmp_path).policy.suppressed == "drop"
    assert read(tmp_path, assignments=STANDARD[1:3]).policy.suppressed == "mask"


def test_a_response_variable_is_the_label(tmp_path: Path) -> None:
    columns = [*STANDARD[:3], assignment("illness", "SENSITIVE_ATTRIBUTE", response="true")]
    found = read(tmp_path, assignments=columns, metric="Classification accuracy")
    assert (found.policy.label, found.policy.metric) == ("illness", "classification")
    without = read(tmp_path, metric="Classification accuracy")
    assert without.policy.metric == "non-uniform-entropy"
    assert told_of(without, "one column to predict")


def test_a_hierarchy_that_does_not_nest_is_told_without_its_values(tmp_path: Path) -> None:
    rows = [["18", "young", "odd"], ["25", "young", "even"], ["34", "secret", "odd"]]
    found = read(tmp_path, hierarchies={"age": rows, "sex": SEXES})
    assert told_of(found, "level 2 splits")
    assert found.policy.columns["age"].hierarchy == "flat"
    assert found.hierarchies["hierarchies/age.csv"] == rows
    assert "secret" not in json.dumps(found.to_dict()) + found.policy_text() + repr(found)


def test_another_separator_and_quotes_are_read_and_written_so_that_shoal_reads_them(tmp_path: Path) -> None:
    ages = [["18", 'under "30"', "a;b"], ["25", "x,y", "a;b"]]
    alone = [["a,b"], ["c;d"], ['e"f']]
    found = read(tmp_path, hierarchies={"age": ages, "sex": alone}, separator=",")
    write_import(found, tmp_path / "folder")
    policy = Policy.load(tmp_path / "folder" / "policy.yaml")
    assert policy.builder("age").rows == tuple(map(tuple, ages))  # type: ignore[attr-defined]
    assert policy.builder("sex").rows == tuple(map(tuple, alone))  # type: ignore[attr-defined]


def test_old_letters_of_windows_are_read(tmp_path: Path) -> None:
    held = members()
    held["input/hierarchies/sex.csv"] = "weiblich;ü\nmännlich;ü\n".encode("cp1252")
    assert shoal.import_arx(project(tmp_path, held)).hierarchies["hierarchies/sex.csv"][1][0] == "männlich"


def test_a_project_with_parts_missing_is_read(tmp_path: Path) -> None:
    held = members()
    for name in ("metadata.xml", "project.xml", "input/config.xml", "data/input.csv"):
        del held[name]
    found = shoal.import_arx(project(tmp_path, held))
    assert not found.has_data
    assert found.policy.models == [{"k-anonymity": {"k": 5}}]
    assert told_of(found, "config.xml")
    assert told_of(found, "metadata.xml")


def test_the_settings_of_an_output_stand_in_for_none_at_hand(tmp_path: Path) -> None:
    held = {name.replace("input/", "output/", 1): content for name, content in members().items()}
    found = shoal.import_arx(project(tmp_path, held))
    assert found.policy.models == [{"k-anonymity": {"k": 2}}]
    assert told_of(found, "Those of its output")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><definition>&b;</definition>',
            "document type",
        ),
        ('<!DOCTYPE d SYSTEM "file:///etc/passwd"><definition/>', "document type"),
        ("<definition><assigment>", "not XML"),
        ("<a>" * 100 + "</a>" * 100, "nested too deeply"),
        ("<definition>&a;</definition>", "not XML"),
        ("<definition/>", "defines no columns"),
        ("<definition><assigment><type>x</type></assigment></definition>", "has no name"),
        (f"<definition>{assignment('a') * 2}</definition>", "a column twice"),
        (" " * (17 << 20), "above 16 MB"),
    ],
    ids=["entities", "external", "cut", "deep", "entity", "empty", "nameless", "twice", "large"],
)
def test_xml_that_arx_never_wrote_is_refused(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        shoal.import_arx(project(tmp_path, members() | {"input/definition.xml": content}))


def test_files_that_are_no_projects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Cannot read the project"):
        shoal.import_arx(tmp_path / "none.deid")
    plain = tmp_path / "plain.deid"
    plain.write_text("k;v")
    with pytest.raises(DataError, match="not a ZIP file"):
        shoal.import_arx(plain)
    whole = project(tmp_path, members()).read_bytes()
    plain.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="not a ZIP file"):
        shoal.import_arx(plain)
    with pytest.raises(DataError, match=r"no input/definition\.xml"):
        shoal.import_arx(project(tmp_path, {"a.txt": "b"}))
    place = whole.index(b"input/definition.xml") + len("input/definition.xml") + 12
    plain.write_bytes(whole[:place] + bytes(8) + whole[place + 8 :])
    with pytest.raises(DataError, match="is damaged"):
        shoal.import_arx(plain)
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", "2")
    with pytest.raises(DataError, match="two of its members"):
        shoal.import_arx(plain)


def test_damage_anywhere_is_an_error_of_ours_or_none(tmp_path: Path) -> None:
    criteria = ["2-anonymity", "0.2-closeness with equal ground-distance for attribute 'illness'"]
    path = project(tmp_path, members(criteria=criteria))
    whole = path.read_bytes()
    chance = random.Random(4)
    refused = 0
    for _ in range(300):
        broken = bytearray(whole)
        for _ in range(chance.choice((1, 3, 30))):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        path.write_bytes(broken[: chance.choice((len(broken), chance.randrange(len(broken))))])
        try:
            shoal.import_arx(path)
        except ShoalError:
            refused += 1
    assert refused > 100


def test_settings_that_make_no_sense_are_told_or_refused(tmp_path: Path) -> None:
    words = [
        "",
        "-1",
        "nan",
        "1e400",
        "5",
        "x" * 5000,
        "'",
        "\u202e",
        "5-anonymity",
        "0-anonymity",
        "(",
        "All",
    ]
    words += ["9.0-closeness with equal distance for attribute 'illness'", "99999999999999999999-anonymity"]
    chance = random.Random(5)
    for _ in range(60):
        criteria = chance.choices(words, k=3)
        metric, limit, low, high, kind = chance.choices(words, k=5)
        column = assignment(
            "age", ref="hierarchies/age.csv", min=low, max=high, microaggregationFunction=kind
        )
        more = {"criteria": criteria, "metric": metric, "limit": limit, "weights": {"age": kind}}
        try:
            found = read(tmp_path, assignments=[column, *STANDARD[2:]], **more)
        except ShoalError:
            continue
        assert found.unsupported
        assert Policy.load(yaml.safe_load(found.policy.to_yaml())) == found.policy
        assert all(str(one).isprintable() and len(str(one)) < 2000 for one in found.unsupported)


def test_names_lead_nowhere_else(tmp_path: Path) -> None:
    names = ["../../evil", "/etc/passwd", "a/b", "con\u202etrol", "AGE", "age", "..."]
    columns = [assignment(n, ref=f"hierarchies/{n}.csv", min="All", max="All") for n in names]
    held = members(assignments=columns, hierarchies=dict.fromkeys(names, SEXES))
    found = shoal.import_arx(project(tmp_path, held))
    folder = tmp_path / "deep" / "folder"
    folder.parent.mkdir()
    written = write_import(found, folder)
    inside = {path.resolve() for path in folder.rglob("*.*") if path.is_file()}
    assert {path.resolve() for path in written} == inside
    assert {path.parent.name for path in written} == {"folder", "hierarchies"}
    assert len({name.lower() for name in found.hierarchies}) == len(found.hierarchies) == len(names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "project.deid"]
    assert not (tmp_path / "evil.csv").exists()


def test_the_command_writes_a_private_folder_and_no_value_to_the_screen(tmp_path: Path) -> None:
    path = project(tmp_path, members())
    folder = tmp_path / "folder"
    done = CliRunner().invoke(app, ["import-arx", str(path), "-o", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["policy"]["models"] == [{"k-anonymity": {"k": 2}}]
    assert {Path(name).name for name in told["files"]} == {"policy.yaml", "age.csv", "sex.csv"}
    assert told["unsupported"][0].keys() == {"setting", "reason", "nearest"}
    assert not (folder / "data.csv").exists()
    assert all(stat.S_IMODE(Path(name).stat().st_mode) == 0o600 for name in told["files"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    again = CliRunner().invoke(app, ["import-arx", str(path), "-o", str(folder)])
    assert again.exit_code == 2
    assert "exists. Use --force" in again.stderr
    forced = CliRunner().invoke(app, ["import-arx", str(path), "-o", str(folder), "--force", "--data"])
    assert forced.exit_code == 0
    assert "What has no counterpart" in forced.stdout
    assert "female" not in done.output + forced.output
    assert stat.S_IMODE((folder / "data.csv").stat().st_mode) == 0o600
    assert (folder / "data.csv").read_text() == "name;age;sex;illness;stay\nA;18;female;flu;1\n"
    assert "# - " in (folder / "policy.yaml").read_text(encoding="utf-8")
    assert Policy.load(folder / "policy.yaml").files["age"] == folder / "hierarchies" / "age.csv"


def test_the_command_refuses_in_words(tmp_path: Path) -> None:
    held = members()
    del held["data/input.csv"]
    path = project(tmp_path, held)
    asked = CliRunner().invoke(app, ["import-arx", str(path), "-o", str(tmp_path / "f"), "--data"])
    assert asked.exit_code == 2
    assert "holds no data" in asked.stderr
    with pytest.raises(OutputError, match="is a file"):
        write_import(shoal.import_arx(path), path)


def test_the_policy_on_the_disk_is_the_policy_in_memory(tmp_path: Path) -> None:
    found = read(tmp_path, criteria=["5-anonymity", "(0.01)-population-uniqueness (dankar)"])
    write_import(found, tmp_path / "folder")
    loaded = Policy.load(tmp_path / "folder" / "policy.yaml")
    assert loaded == found.policy
    assert [named(model)[0] for model in loaded.models] == ["k-anonymity"]
