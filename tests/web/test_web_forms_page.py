"""Forms of the studio in a real browser: privacy models, search, hierarchies and sources without YAML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from browser import BROWSER_MARKS, choose_role, expect, go, press

pytestmark = BROWSER_MARKS


@pytest.fixture
def page(sample: Any) -> Any:
    return sample


def test_tds_is_chosen_with_its_label_without_yaml(page: Any) -> None:
    go(page, "Release")
    page.get_by_label("Algorithm").select_option("tds")
    error = page.locator(".error", has_text="tds needs a column to predict")
    error.wait_for()
    page.get_by_label("Algorithm").select_option("auto")
    error.wait_for(state="detached")
    page.get_by_label("Algorithm").select_option("tds")
    error.wait_for()
    press(page, "Write the release")
    page.get_by_label("Metric").select_option("precision")  # an event later, nothing has been released
    page.get_by_title("Undo: metric").wait_for()
    page.get_by_text("Nothing is released yet.").wait_for()
    page.get_by_label("Algorithm").select_option("tds")
    error.wait_for()
    page.get_by_label("Column to predict").select_option("diagnosis")
    page.get_by_title("Undo: label and algorithm").or_(
        page.get_by_title("Undo: algorithm and label")
    ).wait_for()
    expect(page.get_by_label("Algorithm")).to_have_value("tds")
    page.get_by_role("button", name="Write the release").click()
    page.get_by_role("heading", name="Verification").wait_for()
    page.get_by_text("The policy as a file").click()
    written = page.get_by_label("Policy", exact=True).input_value()
    assert "algorithm: tds" in written
    assert "label: diagnosis" in written


def model(page: Any, name: str) -> Any:
    return page.locator(f"[data-model='{name}']")


def test_privacy_models_are_added_changed_and_removed_and_each_change_is_undone(page: Any) -> None:
    model(page, "k-anonymity").get_by_text("Each record looks like at least").wait_for()
    k = model(page, "k-anonymity").get_by_label("k of k-anonymity", exact=True)
    k.fill("0")
    k.press("Tab")
    model(page, "k-anonymity").get_by_text("k must be at least 1").wait_for()
    expect(page.get_by_title("Nothing to undo")).to_have_count(1)
    k.fill("7")
    k.press("Tab")
    page.get_by_title("Undo: privacy models").wait_for()
    page.get_by_label("Add a privacy model").select_option("t-closeness")
    new = model(page, "new t-closeness")
    new.get_by_text("spread nearly as in the whole table").wait_for()
    new.get_by_label("t of t-closeness", exact=True).fill("0.4")
    new.get_by_label("Sensitive column").select_option("diagnosis")
    new.get_by_role("button", name="Add t-closeness").click()
    model(page, "t-closeness").wait_for()
    go(page, "Release")
    page.get_by_text("The policy as a file").click()
    written = page.get_by_label("Policy", exact=True).input_value()
    assert "k: 7" in written
    assert "t: 0.4" in written
    assert "column: diagnosis" in written
    page.get_by_label("Policy", exact=True).fill(written.replace("k: 7", "k: 9"))  # and back from YAML
    page.get_by_role("button", name="Use this policy").click()
    page.get_by_text("at least 8 others").wait_for()
    go(page, "Data")
    expect(model(page, "k-anonymity").get_by_label("k of k-anonymity", exact=True)).to_have_value("9")
    page.get_by_role("button", name="Remove t-closeness").click()
    model(page, "t-closeness").wait_for(state="detached")
    page.get_by_role("button", name="Undo").click()
    model(page, "t-closeness").wait_for()


def test_the_last_model_stays(page: Any) -> None:
    for name in ("distinct-l-diversity", "k-anonymity"):
        button = page.get_by_role("button", name=f"Remove {name}")
        if button.count() and page.locator("[data-model]").count() > 1:
            button.click()
            model(page, name).wait_for(state="detached")
    page.locator("[data-model]").get_by_role("button", name="Remove").first.click()
    page.get_by_text("A policy needs at least one model").wait_for()


def test_columns_that_go_together_are_grouped_and_separated(page: Any) -> None:
    form = page.locator("[data-part=same-level]")
    form.get_by_label("age", exact=True).check()
    form.get_by_label("sex", exact=True).check()
    form.get_by_role("button", name="Group these columns").click()
    form.get_by_text("hierarchies of different heights").wait_for()
    form.get_by_label("sex", exact=True).uncheck()
    form.get_by_label("postcode", exact=True).check()
    form.get_by_role("button", name="Group these columns").click()
    form.get_by_role("button", name="Separate age, postcode").click()
    form.get_by_role("button", name="Separate age, postcode").wait_for(state="detached")


def test_levels_that_do_not_fit_beside_each_other_are_listed_below_each_other(page: Any) -> None:
    editor = page.locator("[data-part=editor]")
    scrolls = "box => box.scrollWidth > box.clientWidth + 1"
    editor.locator("th", has_text="in 5-year bands (19)").wait_for()
    for column, level in (("postcode", "by the first 3 characters (116)"), ("admitted", "by quarter (8)")):
        page.get_by_role("button", name=f"Hierarchy of {column}").click()
        row = editor.locator("tr", has_text=level)
        row.wait_for()
        assert row.locator("td").count() == 3  # the level, and two examples
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert not any(box.evaluate(scrolls) for box in editor.locator(".scroll").all())
    assert editor.locator(".nicegui-echart").count() == 0  # a tree of six levels would be too long


def test_the_editor_comes_into_view_and_gets_the_focus(page: Any) -> None:
    for width in (1024, 390):
        page.set_viewport_size({"width": width, "height": 768})
        page.get_by_label("Hierarchy of postcode").click()
        heading = page.get_by_role("heading", name="Hierarchy of postcode")
        heading.wait_for()
        page.wait_for_function("() => document.activeElement.textContent === 'Hierarchy of postcode'")
        page.wait_for_function(
            "() => { const r = document.activeElement.getBoundingClientRect(); "
            "return r.top >= 0 && r.bottom <= innerHeight }"
        )
        page.get_by_role("button", name="Back to the columns").click()
        page.wait_for_function(
            "() => (document.activeElement.ariaLabel || '').startsWith('Hierarchy of postcode')"
        )
        page.get_by_label("Hierarchy of age").click()
        page.get_by_role("heading", name="Hierarchy of age").wait_for()


def test_options_of_a_search_and_of_a_metric_have_fields(page: Any) -> None:
    go(page, "Release")
    page.get_by_label("Algorithm").select_option("datafly")
    page.get_by_text("Options of datafly").click()
    page.locator("[data-options=algorithm]").get_by_label("stop").select_option("k")
    page.get_by_text("Options of datafly (1 set)").wait_for()
    page.get_by_label("Metric").select_option("composite")
    parts = page.locator("[data-options=metric]").get_by_label("Metrics with weights")
    parts.fill("[{nonsense: 1}]")
    parts.press("Tab")
    page.locator("[data-part=search] .error", has_text="nonsense").wait_for()
    parts.fill("[{precision: 1}, {coverage: 2}]")
    parts.press("Tab")
    page.wait_for_function(
        "() => [...document.querySelectorAll('textarea')].some((area) => area.value.includes('coverage: 2'))"
    )
    page.get_by_text("The policy as a file").click()
    expect(page.get_by_label("Policy", exact=True)).to_have_value(re.compile("stop: k"))


def edit_groups(page: Any, column: str) -> Any:
    if column != "age":  # whose hierarchy is shown first
        choose_role(page, column, "quasi-identifier")  # which shows its hierarchy
    page.get_by_role("heading", name=f"Hierarchy of {column}").wait_for()
    part = page.locator("[data-part=groups]")
    part.locator("button", has_text="Add a level").wait_for(state="attached")  # all is drawn
    part.get_by_text("Edit the groups by hand").click()
    part.get_by_role("button", name="Add a level").wait_for()
    return part


def drag(page: Any, source: Any, target: Any) -> None:
    """Drag as a hand does, in several moves: a drag starts only after the first of them."""
    target.scroll_into_view_if_needed()
    source.hover()
    at = source.bounding_box()
    page.mouse.down()
    page.mouse.move(at["x"] + at["width"] / 2 + 8, at["y"] + at["height"] / 2 + 3, steps=4)
    target.hover()
    target.hover()
    page.mouse.up()


def test_values_are_dragged_into_groups_and_the_drag_is_undone(page: Any) -> None:
    part = edit_groups(page, "marital_status")
    before = part.get_by_role("group").count()
    drag(page, part.locator(".choice", has_text="widowed"), part.get_by_text("Drop here for a new group"))
    new = part.get_by_role("group", name="group 1", exact=True)
    new.get_by_text("widowed").wait_for()
    expect(page.get_by_label("Builder")).to_have_value("tree")
    drag(page, part.locator(".choice", has_text="divorced"), new)
    new.get_by_text("divorced").wait_for()
    name = new.get_by_label("Name of group 1")
    name.fill("was married")
    name.press("Tab")
    part.get_by_role("group", name="was married").wait_for()
    name = part.get_by_label("Name of was married")
    name.fill("*")
    name.press("Tab")
    part.get_by_text("A group needs a label").wait_for()
    for _ in range(3):
        page.get_by_title("Undo: hierarchy of marital_status").click()
    page.get_by_title("Undo: role of marital_status").wait_for()
    page.wait_for_function(
        f"() => document.querySelectorAll('[data-part=groups] [role=group]').length === {before}"
    )


def test_groups_are_edited_by_keyboard_alone(page: Any) -> None:
    part = edit_groups(page, "marital_status")
    for value in ("widowed", "divorced"):
        box = part.locator(".choice", has_text=value).locator("input")
        box.focus()
        box.press("Space")
        part.locator(".choice", has_text=value).locator("input:checked").wait_for()
    part.get_by_label("Move the selected to").select_option("new")
    part.get_by_role("group", name="group 1", exact=True).get_by_text("divorced").wait_for()
    page.wait_for_function("() => document.activeElement.ariaLabel === 'Move the selected to'")
    part.locator(".choice", has_text="widowed").locator("input").check()
    part.get_by_role("button", name="Split group of the selected").press("Enter")
    part.get_by_role("group", name="widowed").wait_for()
    for value in ("widowed", "divorced"):
        part.locator(".choice", has_text=value).locator("input").check()
    part.get_by_role("button", name="Merge groups of the selected").press("Enter")
    part.get_by_role("group", name="divorced").get_by_text("widowed").wait_for()
    levels = part.get_by_label("Groups", exact=True).locator("option")
    count = levels.count()
    part.get_by_role("button", name="Add a level").press("Enter")
    levels.nth(count).wait_for(state="attached")


def test_limits_of_bands_move_on_a_histogram_by_mouse_and_keys(page: Any) -> None:
    part = edit_groups(page, "age")
    part.get_by_role("img", name="Histogram from 0 to 102").wait_for()
    part.get_by_label("Limit 40 of level 3").press("ArrowRight")
    part.get_by_label("Limit 41 of level 3").wait_for()
    page.wait_for_function("() => document.activeElement.ariaLabel === 'Limit 41 of level 3'")
    part.get_by_label("Limit 41 of level 1").wait_for()  # the limit moved at every level that has it
    expect(page.get_by_label("Builder")).to_have_value("cuts")
    limit = part.get_by_label("Limit 80 of level 3")
    at = limit.bounding_box()
    page.mouse.move(at["x"] + at["width"] / 2, at["y"] + 4)
    page.mouse.down()
    page.mouse.move(at["x"] + at["width"] / 2 - 30, at["y"] + 4, steps=4)
    page.mouse.up()
    limit.wait_for(state="detached")
    part.get_by_label("Limit 60 of level 3").press("Delete")
    part.get_by_label("Limit 60 of level 3").wait_for(state="detached")
    part.get_by_label("Limit 60 of level 2").wait_for()
    part.get_by_label("New limit").fill("18")
    part.get_by_role("button", name="Add to level 3").click()
    part.get_by_label("Limit 18 of level 1").wait_for()
    for _ in range(4):
        page.get_by_title("Undo: hierarchy of age").click()
    page.get_by_title("Nothing to undo").wait_for()
    page.wait_for_function("() => document.querySelector('[data-part=editor] select').value === 'intervals'")


def test_many_hierarchy_files_are_taken_at_once(page: Any, tmp_path: Path) -> None:
    (tmp_path / "Sex.csv").write_text("female;f;*\nmale;m;*\nother;rare;*\nU;rare;*\n")
    values = ("married", "single", "widowed", "divorced", "separated", "unknown")
    (tmp_path / "marital_status.csv").write_text("".join(f"{value};any;*\n" for value in values))
    (tmp_path / "colour.csv").write_text("red;*\n")

    def send(*names: str) -> None:
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Upload hierarchies").click()
        chooser.value.set_files([tmp_path / name for name in names])

    send("Sex.csv", "colour.csv")
    page.get_by_text("No column has the name of 'colour.csv'. No file was taken.").wait_for()
    page.get_by_title("Nothing to undo").wait_for()
    send("Sex.csv", "marital_status.csv")
    page.get_by_title("Undo: hierarchy of sex and hierarchy of marital_status").wait_for()
    expect(page.get_by_label("Hierarchy of sex: 3 levels")).to_have_count(1)
    page.get_by_title("Undo: hierarchy of sex").click()
    page.get_by_label("Hierarchy of sex: 2 levels").wait_for()


def test_a_sheet_and_its_header_row_are_chosen(start: Any, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need shoal[formats]")
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["about this study"])
    table = book.create_sheet("Data")
    for row in (["Study 7"], [], ["age", "town"], *([20 + n % 40, "abc"[n % 3]] for n in range(90))):
        table.append(row)
    book.save(tmp_path / "study.xlsx")
    with start.expect_file_chooser() as chooser:
        start.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(tmp_path / "study.xlsx")
    start.get_by_label("Sheet", exact=True).select_option("Data")
    row = start.get_by_label("Row of the column names")
    start.wait_for_function("() => document.querySelector('[data-part=sheets] input').value === '3'")
    row.fill("2")
    start.get_by_role("button", name="Open this sheet").click()
    start.get_by_text("has no name").wait_for()
    with start.expect_file_chooser() as chooser:
        start.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(tmp_path / "study.xlsx")
    start.get_by_label("Sheet", exact=True).select_option("Data")
    start.get_by_role("button", name="Open this sheet").click()
    start.locator("tr[data-column=town]").wait_for()
    assert start.locator("#table-name").inner_text() == "study.xlsx"


def test_a_file_is_dropped_on_the_start_card(start: Any) -> None:
    rows = "\\n".join(f"{20 + n % 40},{'abc'[n % 3]}" for n in range(90))
    start.evaluate(
        f"""() => {{
            const transfer = new DataTransfer();
            transfer.items.add(new File(["age,town\\n{rows}\\n"], "people.csv", {{type: "text/csv"}}));
            const card = document.querySelector("[data-part=drop]");
            const options = {{dataTransfer: transfer, bubbles: true, cancelable: true}};
            for (const name of ["dragover", "drop"]) card.dispatchEvent(new DragEvent(name, options));
        }}"""
    )
    start.locator("tr[data-column=town]").wait_for()
    assert start.locator("#table-name").inner_text() == "people.csv"
