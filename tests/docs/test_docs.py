"""The docs: every name has a page, every option a line, and every number is right; see also test_examples."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import shoal
from code_blocks import DOCS, PAGES, README, ROOT, prose
from shoal import errors
from shoal.algorithms import ALGORITHMS
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy import builders
from shoal.core.hierarchy.calendar import DATE_UNITS, TIME_UNITS
from shoal.core.hierarchy.lists import Csv
from shoal.core.recoding.recoding import Recoding
from shoal.engines import ENGINES
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.policy.policy import Policy
from shoal.registry import Registry

EVERY = (*PAGES, README, ROOT / "CONTRIBUTING.md")
PLUGINS = [
    pytest.param(registry, name, id=f"{registry.kind}-{name}")
    for registry in (MODELS, METRICS, ALGORITHMS, ENGINES)
    for name in registry
]


def page_of(registry: Registry[Any], name: str) -> Path:
    return DOCS / f"{registry.kind}s" / f"{name}.md"


def code(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def section(page: Path, heading: str) -> str:
    text = page.read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert heading in found, f"{page.name} has no heading {heading!r}"
    return found[heading]


def table_rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip().strip("`") for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_row_of_a_table_has_a_cell_for_every_column(page: Path) -> None:
    cells = re.compile(r"(?<!\\)\|")  # not \|, which is a character of a cell
    for table in re.findall(r"(?:^\|.*\n)+", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert len({len(cells.findall(line)) for line in table.splitlines()}) == 1, table


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_has_lines_of_at_most_120_characters(page: Path) -> None:
    long = [
        number
        for number, line in prose(page)
        if len(line) > 120 and not line.lstrip().startswith("|") and " " in line.strip()
    ]
    assert not long, f"{page.relative_to(ROOT)}: wrap lines {long}"


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_docs_use_common_words(page: Path) -> None:
    rare = r"\b(told|somebody|nobody|anybody|afresh|anew|at hand|meanwhile|would do)\b"
    assert not re.findall(rare, page.read_text(encoding="utf-8"), re.IGNORECASE)


@pytest.mark.parametrize(("registry", "name"), PLUGINS)
def test_every_plug_in_has_a_page(registry: Registry[Any], name: str) -> None:
    page = page_of(registry, name)
    assert page.is_file(), f"write {page.relative_to(ROOT)}"
    assert page.read_text(encoding="utf-8").startswith(f"# {name}\n")


def test_the_page_about_choosing_links_every_model_metric_and_search() -> None:
    links = set(re.findall(r"\]\(([\w/-]+\.md)", (DOCS / "choosing.md").read_text(encoding="utf-8")))
    wanted = {
        str(page_of(registry, name).relative_to(DOCS))
        for registry in (MODELS, METRICS, ALGORITHMS)
        for name in registry
    }
    assert wanted <= links, sorted(wanted - links)


@pytest.mark.parametrize("keyword", sorted(builders.BUILDERS))
def test_every_builder_gives_the_labels_of_its_example(keyword: str, tmp_path: Path) -> None:
    parts = re.split(r"^```yaml\n", section(DOCS / "hierarchies.md", keyword), flags=re.MULTILINE)
    assert len(parts) > 1
    for part in parts[1:]:
        written, _, rest = part.partition("```")
        spec = yaml.safe_load(written)["hierarchy"]
        builder = builders.parse("column", spec)
        if isinstance(builder, Csv):
            (tmp_path / builder.csv).write_text(code(rest, "csv")[0], encoding="utf-8")
            builder = builder.read(tmp_path, "column")
        lines = list(table_rows(rest[rest.index("| level 0") :].split("\n\n")[0]))
        rows = lines[2:]  # below the header and its rule
        texts = tuple(None if row[0] == "missing" else row[0] for row in rows)
        hierarchy = builder.bind(Domain("column", pa.array(texts, pa.string()), texts))
        levels = range(hierarchy.height + 1)
        assert len(lines[0]) == len(levels)
        for value, row in enumerate(rows):
            assert row == [hierarchy.labels[level][hierarchy.groups(level)[value]] for level in levels]


def told_units(keyword: str) -> dict[str, str]:
    text = section(DOCS / "hierarchies.md", keyword)
    rows = list(table_rows(text[text.index("| unit ") :].split("\n\n")[0]))[2:]
    return {unit: label for unit, label, *_ in rows}


def test_every_unit_of_dates_and_times_is_told_in_its_order_with_its_label() -> None:
    days = {unit: label(date(2025, 8, 17)) for unit, label in DATE_UNITS.items()}
    assert list(told_units("dates").items()) == list(days.items())
    minutes = {unit: label(14 * 60 + 5) for unit, label in TIME_UNITS.items()}
    assert list(told_units("times").items()) == list(minutes.items())


def test_the_parts_of_the_day_begin_when_the_page_says() -> None:
    parts = re.findall(r"`([a-z ]+)` from (\d\d):00", (DOCS / "hierarchies.md").read_text(encoding="utf-8"))
    assert len(parts) == 5
    for part, hour in parts:
        here = {label(int(hour) * 60) for label in TIME_UNITS.values()}
        before = {label((int(hour) * 60 - 1) % 1440) for label in TIME_UNITS.values()}
        assert part in here - before


def test_bounds_are_released_as_the_policy_page_says() -> None:
    text = section(DOCS / "policy.md", "release_as")
    policy = Policy.load(yaml.safe_load(code(text, "yaml")[0]))
    rows = list(table_rows(text))[2:]
    values: dict[str, tuple[str | None, ...]] = {}
    for column, _, value, *_ in rows:
        found = None if value == "missing" else value
        values[column] = tuple(dict.fromkeys((*values.get(column, ()), found)))
    for column, level, value, label, lower, upper, _ in rows:
        texts = values[column]
        hierarchy = policy.builder(column).bind(Domain(column, texts, texts))
        recoding = Recoding.from_node([hierarchy], (int(level),), policy.as_bounds)
        group = recoding.groups[0][texts.index(None if value == "missing" else value)]
        released = recoding.labels[0]
        assert released is not None
        assert hierarchy.labels[int(level)][group] == label
        assert [released[name][group] for name in (f"{column}_lower", f"{column}_upper")] == [
            None if end == "null" else float(end) for end in (lower, upper)
        ]


def test_the_policy_page_names_the_weighted_metrics() -> None:
    weighted = {name for name in METRICS if METRICS.load(name).weighted}
    told = re.search(
        r"metrics that are weighted: (.*?)\. The others", section(DOCS / "policy.md", "Columns"), re.DOTALL
    )
    assert told
    assert set(re.findall(r"\[([a-z-]+)\]", told.group(1))) == weighted


def test_the_policy_page_counts_suppressed_records_as_the_policy_does() -> None:
    from shoal.policy.limits import limit_in_records

    rows = list(table_rows(section(DOCS / "policy.md", "suppression_limit")))[2:]
    for written, records, _ in rows:
        assert limit_in_records(yaml.safe_load(written), 5000) == int(records.replace(",", ""))


def test_every_error_has_its_place_in_the_tree() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    for kind in kinds:
        assert re.search(rf"\b{kind.__name__}\b", text)
    drawn = re.findall(r"^[│├└─ ]*(\w+)", text.partition("```text\n")[2].partition("```")[0], re.MULTILINE)
    assert sorted(drawn) == sorted(kind.__name__ for kind in kinds if issubclass(kind, errors.ShoalError))


def test_every_extra_that_is_told_of_can_be_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    places = [ROOT / "README.md", *PAGES, *(ROOT / "src").rglob("*.py")]
    told = {
        extra for path in places for extra in re.findall(r"shoal\[(\w+)\]", path.read_text(encoding="utf-8"))
    }
    assert told >= {"web", "spark"}
    assert told <= set(project["optional-dependencies"])


HIERARCHY_ERRORS = {
    "level 2 splits a group of level 1": {"cuts": [[18], [65]]},
    "3 values are not a number": {"intervals": [5]},
    "3 values are not an ISO date` or `not a date like %d.%m.%Y": {"dates": ["year"]},
    "3 values are not a time": {"times": ["hour"]},
    "3 values are not covered` or `not in the file": {"tree": {"group": ["value"]}},
    "'week' does not nest": {"dates": ["week"]},
    "a value appears twice in the order` or `a value of the tree is in two groups": {
        "order": ["a", "a"],
        "sizes": [2],
    },
    "holds true or false": {"order": [True, False], "sizes": [2]},
}


def test_the_errors_page_tells_the_messages_of_hierarchies() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    told = [row[0] for row in table_rows(text[text.index("| message ") :].split("\n\n")[0])][2:]
    assert told == list(HIERARCHY_ERRORS)
    for message, spec in HIERARCHY_ERRORS.items():
        with pytest.raises(errors.HierarchyError) as caught:
            builders.parse("column", spec).bind(Domain("column", "xyz", ("x", "y", "z")))
        assert message.split("`")[0] in str(caught.value)


@pytest.mark.parametrize("metric", [name for name in METRICS if page_of(METRICS, name).is_file()])
def test_the_ten_records_lose_what_the_pages_say(metric: str) -> None:
    names: dict[str, Any] = {}
    exec(code((DOCS / "metrics" / "index.md").read_text(encoding="utf-8"), "python")[0], names)
    text = page_of(METRICS, metric).read_text(encoding="utf-8")
    told = [row for row in table_rows(text) if re.fullmatch(r"\d, \d, \d", row[0])]
    assert told
    blocks = code(text, "yaml")  # how a metric is written that needs options
    policy = names["policy"] | (yaml.safe_load(blocks[0]) if blocks else {"metric": metric})
    for node, suppressed, loss in told:
        levels = dict(zip(("sex", "age", "date"), map(int, node.split(", ")), strict=True))
        release = shoal.anonymize(names["ten"], policy, node=levels)
        assert (release.suppressed, round(release.loss, 4)) == (int(suppressed), float(loss))


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert not [line for line in built.stderr.splitlines() if line.startswith("WARNING")]
