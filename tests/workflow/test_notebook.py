"""Notebooks: what results show of themselves there, their figures, and the two examples."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from shoal.core.hierarchy.hierarchy import Hierarchy, nest
from shoal.core.hierarchy.outline import LEAVES, Branch, branches
from shoal.errors import UsageError

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
SHOWN = (
    "release", "diagnosis", "profile", "comparison", "hierarchy", "negotiation", "refusal", "verification",
    "risk", "measurement", "study",
)  # fmt: skip
DRAWN = {"release": 2, "diagnosis": 2, "profile": 1, "comparison": 2, "hierarchy": 1}  # panels
BOLD = "<b>&age</b>"  # the name of a column
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Reads markup, and refuses what is not closed, or closed in another order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def patients() -> pa.Table:
    rows = range(240)
    return pa.table(
        {
            "name": [f"person {i}" for i in rows],
            BOLD: [20 + (i * i) % 37 % 19 for i in rows],
            "sex": ["fm"[i % 3 % 2] for i in rows],
            "ward": [f"<i>ward</i>-{(i * 7) % 11 % 4}-{i % 2}" for i in rows],
            "illness": [f"ill-{i % 5}" for i in rows],
        }
    )


WARDS = {
    "<u>west</u>": [f"<i>ward</i>-{n}-0" for n in range(4)],
    "east": [f"<i>ward</i>-{n}-1" for n in range(4)],
}
POLICY: dict[str, Any] = {
    "columns": {
        "name": {"role": "identifier"},
        BOLD: {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}, "min_level": 1},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "ward": {"role": "quasi-identifier", "hierarchy": {"tree": WARDS}, "min_level": 1},
        "illness": {"role": "sensitive"},
    },
    "models": [{"k-anonymity": {"k": 7}}],
    "suppression_limit": "5%",
}
KNOWN = [BOLD, "sex", "ward"]


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    table = patients()
    release, profile = shoal.anonymize(table, POLICY), shoal.profile(table, POLICY)
    return {
        "release": release,
        "diagnosis": shoal.diagnose(table, KNOWN),
        "profile": profile,
        "comparison": shoal.compare(table, POLICY, algorithms=["contour", "ola", "anatomy"]),
        "hierarchy": next(one for one in release.hierarchies if one.name == "ward"),
        "negotiation": profile.negotiate(k=7),
        "refusal": profile.negotiate(k=50, suppression_limit=0, max_level={BOLD: 1, "ward": 1}),
        "verification": release.verification,
        "risk": shoal.risk(table, POLICY, release=release.table),
        "measurement": shoal.measure(table, KNOWN, ["illness"]),
        "study": shoal.study(profile, requests=0),
    }


@pytest.mark.parametrize("name", SHOWN)
def test_a_block_is_well_formed_and_loads_nothing(results: dict[str, Any], name: str) -> None:
    html = results[name]._repr_html_()
    read = Reader(html)
    tags = {tag for tag, _ in read.found}
    assert tags <= {
        "div", "style", "p", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi",
        "code",
    }  # fmt: skip
    assert "shoal-block" in str(read.found[0][1]["class"])
    assert not any(
        name in ("src", "href", "style") or name.startswith("on") for _, a in read.found for name in a
    )
    assert "url(" not in html
    assert "@import" not in html


@pytest.mark.parametrize("name", SHOWN)
def test_a_block_escapes_names_and_labels(results: dict[str, Any], name: str) -> None:
    html = results[name]._repr_html_()
    assert not any(raw in html for raw in ("<b>", "<i>", "<u>"))
    if name in ("release", "diagnosis", "profile", "negotiation", "refusal", "risk", "measurement"):
        assert BOLD in Reader(html).text
    if name in ("release", "hierarchy"):
        assert "<u>west</u>" in Reader(html).text


def test_a_release_shows_no_value_of_a_column_that_was_generalized(results: dict[str, Any]) -> None:
    release = results["release"]
    assert release.levels[BOLD]
    assert release.levels["ward"]
    for shown in (Reader(release._repr_html_()).text, repr(replace(release, policy=None))):
        assert "<i>ward" not in shown
        assert "person" not in shown
        assert "ill-" not in shown


def test_a_release_tells_what_is_known_of_it(results: dict[str, Any]) -> None:
    release, words = results["release"], Reader(results["release"]._repr_html_()).text
    assert release.suppressed
    smallest = release.verification.smallest_class
    assert f"{240 - release.suppressed} of 240 kept" in words
    assert f"{release.suppressed} suppressed" in words
    assert f"{smallest} records" in words
    assert f"least loss among {release.lattice_size} nodes (contour, " in words
    assert words.startswith("Verified")
    levels = dict(release.levels)
    for fate in release.fates():
        assert fate.column in words
        assert fate.column not in levels or f"{levels[fate.column]} of" in fate.level
    assert 'class="shoal-block good"' in release._repr_html_()


def test_a_release_that_is_not_verified_says_so_first(results: dict[str, Any]) -> None:
    release = results["release"]
    broken = replace(release.verification, verified=False, reasons=("<b>2</b> records",))
    for shown in (broken, replace(release, verification=broken)):
        html = shown._repr_html_()
        assert Reader(html).text.startswith("Not verified: <b>2</b> records")
        assert 'class="shoal-block bad"' in html


def test_a_diagnosis_counts_no_set_to_show_itself(
    results: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.core.counts.subsets import Source

    found = results["diagnosis"]
    expected = found.curve().records_below(2)
    monkeypatch.setattr(Source, "onto", None)
    assert f"Unique records {expected} of 240 records (" in Reader(found._repr_html_()).text


def test_a_comparison_shows_a_row_for_each_search_and_says_where_there_is_no_result(
    results: dict[str, Any],
) -> None:
    rows = Reader(results["comparison"]._repr_html_())
    assert [tag for tag, _ in rows.found].count("tr") == 1 + 3
    assert "anatomy" in rows.text
    assert "refused" in rows.text
    many = replace(results["comparison"], rows=results["comparison"].rows * 40)
    read = Reader(many._repr_html_())
    assert [tag for tag, _ in read.found].count("tr") == 1 + 60
    assert "and 61 more" in read.text


def test_a_negotiation_without_an_answer_shows_every_offer(results: dict[str, Any]) -> None:
    refusal, words = results["refusal"], Reader(results["refusal"]._repr_html_()).text
    assert refusal.exact is None
    assert "Not possible with these settings." in words
    offers = {"suppression": refusal.suppression, "levels": refusal.levels, "privacy": refusal.privacy}
    assert any(offers.values())
    for name, offer in offers.items():
        assert (name in words.split()) == bool(offer)


def test_a_large_hierarchy_is_shown_in_part() -> None:
    values = [(f"v{n:05}" * 20, f"g{n // 10}", "*") for n in range(5000)]
    found = nest("wide", values)
    html = found._repr_html_()
    assert len(html) < 8000
    assert "5,000 values, 3 levels" in Reader(html).text
    assert values[0][0] not in html
    assert len(repr(found)) < 100


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    """Nested hierarchies of few to many values and levels."""
    size = draw(st.integers(1, 300))
    widths = [draw(st.sampled_from([1, 2, 3, 7, 20, 300])) for _ in range(draw(st.integers(0, 4)))]
    rows, numbers = [[f"v{n}"] for n in range(size)], list(range(size))
    for level, width in enumerate(widths, 1):
        numbers = [number // width for number in numbers]
        for row, number in zip(rows, numbers, strict=True):
            row.append(f"l{level}-{number}")
    return nest("column", rows)


@settings(max_examples=examples(60), deadline=None)
@given(hierarchies())
def test_a_tree_holds_every_value_once_and_few_branches_end(hierarchy: Hierarchy) -> None:
    found = branches(hierarchy)
    ends = [branch for one in found for branch in one.leaves()]
    assert len(ends) <= LEAVES
    assert sum(branch.values for branch in ends) == hierarchy.size
    assert {branch.level for branch in found} == {hierarchy.height}

    def check(branch: Branch) -> None:
        if branch.group is not None:
            assert branch.values == int((hierarchy.groups(branch.level) == branch.group).sum())
        for under in branch.children:
            assert under.level == branch.level - 1
            if under.group is not None:
                assert hierarchy.steps[under.level][under.group] == branch.group
            check(under)

    for branch in found:
        check(branch)


def test_a_tree_goes_as_low_as_it_can_be_read() -> None:
    dates = nest("date", [(f"d{n}", f"m{n // 30}", f"y{n // 360}", "*") for n in range(720)])
    assert {end.level for one in branches(dates) for end in one.leaves()} == {1}
    flat = nest("city", [(f"c{n}", "*") for n in range(400)])
    ends = [end for one in branches(flat) for end in one.leaves()]
    assert [ends[-1].label, ends[-1].values] == ["337 more", 337]
    words = [text.get_text() for text in flat.plot().axes[0].texts]
    assert "337 more  (337)" in words
    assert "* (400)" in [" ".join(word.split()) for word in words]


def test_groups_of_numbers_are_drawn_from_low_to_high() -> None:
    release = shoal.anonymize(patients(), POLICY)
    ages = next(one for one in release.hierarchies if one.name == BOLD)
    drawn = [end.label for one in branches(ages) for end in one.leaves()]
    numbers = [int(label) for label in drawn]
    assert numbers == sorted(numbers)


def test_a_label_is_not_read_as_mathematics() -> None:
    found = nest("price $x_{$", [("$a_{", "*"), ("$b\n$", "*")])
    assert found.plot()._repr_png_()


@pytest.mark.parametrize(("name", "panels"), DRAWN.items())
def test_a_figure_has_its_panels_and_needs_no_pyplot(results: dict[str, Any], name: str, panels: int) -> None:
    figure = results[name].plot()
    assert len(figure.axes) == panels
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert all(panel.get_xlabel() or panel.get_ylabel() or name == "hierarchy" for panel in figure.axes)


def _sizes(table: pa.Table) -> list[int]:
    return list(table.group_by(KNOWN).aggregate([([], "count_all")])["count_all"].to_pylist())


def test_the_figure_of_a_release_shows_its_records_and_its_losses(results: dict[str, Any]) -> None:
    release = results["release"]
    sizes, losses = release.plot().axes
    before, after = [[bar.get_height() for bar in bars] for bars in sizes.containers]
    kept = _sizes(release.table)
    assert (sum(before), sum(after)) == (240, sum(kept))
    labels = [tick.get_text() for tick in sizes.get_xticklabels()]
    place = labels.index("7\u20139")  # those below 7 are before it
    assert sum(before[:place]) == sum(size for size in _sizes(patients()) if size < 7)
    assert sum(after[:place]) == 0
    assert after[place] == sum(size for size in kept if size < 10)
    assert [bar.get_width() for bar in losses.patches] == [one.coverage for one in release.losses.values()]
    assert [tick.get_text() for tick in losses.get_yticklabels()] == list(release.losses)
    assert any("k = 7" in text.get_text() for text in sizes.texts)


def test_the_figure_of_a_diagnosis_is_what_each_k_costs(results: dict[str, Any]) -> None:
    found = results["diagnosis"]
    curve, sets = found.plot(suppression_limit=3).axes
    drawn = dict(zip(*map(list, curve.lines[0].get_data()), strict=True))
    assert drawn == pytest.approx(
        {one.k: one.suppressed / 240 for one in found.suppression_by_k()} | {1.0: 0.0}
    )
    assert len(sets.lines) == 4


def test_the_figure_of_a_profile_is_what_each_height_suppresses(results: dict[str, Any]) -> None:
    profile = results["profile"]
    (panel,) = profile.plot(k=7).axes
    gone = profile.by_node(7)
    heights = np.unique(profile.heights)
    drawn = {tuple(np.round(line.get_ydata(), 9)) for line in panel.lines}
    for of in (np.min, np.mean, np.max):
        assert tuple(np.round([of(gone[profile.heights == at]) / 240 for at in heights], 9)) in drawn


def test_the_figure_of_a_comparison_is_loss_and_time(results: dict[str, Any]) -> None:
    comparison = results["comparison"]
    loss, seconds = comparison.plot().axes
    found = [row for row in comparison.rows if row.loss is not None]
    assert [bar.get_width() for bar in loss.patches] == [row.relative_loss for row in found]
    assert [bar.get_width() for bar in seconds.patches] == [row.seconds for row in found]
    two = shoal.compare(patients(), POLICY, algorithms=["contour"], k=[2, 4], metrics=["height", "precision"])
    assert len(two.plot().axes) == 4


def test_a_comparison_without_a_result_cannot_be_drawn(results: dict[str, Any]) -> None:
    none = [row for row in results["comparison"].rows if row.loss is None]
    with pytest.raises(UsageError, match="No search of this comparison has a result"):
        replace(results["comparison"], rows=tuple(none)).plot()


@pytest.mark.parametrize("name", DRAWN)
def test_without_matplotlib_a_figure_says_what_to_install(
    results: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"Plots need matplotlib: pip install 'shoal\[plots\]'"):
        results[name].plot()
    assert results[name]._repr_html_()


def test_drawing_leaves_pyplot_alone() -> None:
    code = (
        "import shoal, sys\n"
        "from shoal.core.hierarchy.hierarchy import nest\n"
        "one = nest('sex', [('f', '*'), ('m', '*')])\n"
        "one._repr_html_()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "one.plot()._repr_png_()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_there_are_two_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-release", "negotiate"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_results(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat
    from nbclient import NotebookClient

    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    seconds: Any = {"timeout": 900, "startup_timeout": 900}
    NotebookClient(notebook, **seconds, kernel_name="python3", resources=where).execute()
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        last = cell.source.splitlines()[-1]
        assert not any(output.output_type == "stream" and output.name == "stderr" for output in cell.outputs)
        if ".plot(" in last:
            assert "image/png" in kinds
        elif last.isidentifier() or last.startswith("shoal."):
            assert "text/html" in kinds
