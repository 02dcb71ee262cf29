"""Projects, undo and addresses in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from browser import (
    BROWSER_MARKS,
    SLOW,
    choose_role,
    expect,
    expect_role,
    go,
    open_sample,
    studio,
)

pytestmark = BROWSER_MARKS
UNDO, REDO = {"name": "Undo", "exact": True}, {"name": "Redo", "exact": True}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("projects")
    rows = (",".join(str((row * 7 + n) % 5) for n in range(40)) for row in range(60))
    (folder / "wide.csv").write_text(",".join(f"c{n}" for n in range(40)) + "\n" + "\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def studio_options(home: Path) -> tuple[str, ...]:
    return "--projects", str(home / "projects")


@pytest.fixture
def page(start: Any) -> Any:
    return start


def open_file(page: Any, path: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(path)
    page.get_by_role("heading", name="What is each column?").wait_for()


def current(page: Any, step: str) -> None:
    page.locator("nav button[aria-current=step]", has_text=step).wait_for()


def test_back_forward_and_bookmarks_follow_the_steps(page: Any) -> None:
    open_sample(page)
    assert page.locator("html").get_attribute("lang") == "en-US"
    go(page, "Diagnose")
    page.wait_for_url("**/diagnose")
    expect(page).to_have_title("Diagnose \u2013 shoal studio")
    go(page, "Release")
    page.go_back()
    current(page, "Diagnose")
    page.go_back()
    current(page, "Data")
    page.go_forward()
    current(page, "Diagnose")
    page.reload()
    current(page, "Diagnose")


def test_a_change_is_undone_and_redone_on_the_page(page: Any) -> None:
    open_sample(page)
    choose_role(page, "sex", "other")
    page.get_by_title("Undo: role of sex").click()
    page.get_by_title("Redo: role of sex").wait_for()
    page.wait_for_function("() => document.querySelector('tr[data-column=sex] :checked').value[0] === 'q'")
    page.get_by_role("button", **REDO).click()
    page.wait_for_function("() => document.querySelector('tr[data-column=sex] :checked').value === 'other'")
    rule = page.get_by_label("Follow a published rule")
    rule.select_option("safe-harbor")
    page.get_by_title("Undo: several settings").click()
    page.wait_for_function("() => document.querySelector('[data-part=rule] select').value === ''")
    expect_role(page, "sex", "other")


def test_a_closed_tab_loses_nothing_and_a_project_is_deleted_at_once(page: Any) -> None:
    open_sample(page)
    choose_role(page, "insurance", "identifier")
    page.get_by_title("Undo: role of insurance").wait_for()
    page.get_by_role("button", name="Project", exact=True).click()
    page.get_by_label("Name", exact=True).fill("closed tab")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(re.compile("/project/[0-9a-f]{16}/settings$"))
    go(page, "Diagnose")
    page.wait_for_url("**/diagnose")
    bookmark = page.url
    other = page.context.new_page()
    page.close()
    other.goto("/")
    other.get_by_role("button", name="Open closed tab").click()
    current(other, "Diagnose")
    other.goto(bookmark)
    current(other, "Diagnose")
    go(other, "Data")
    expect_role(other, "insurance", "identifier")
    other.get_by_title("First page").click()
    delete = other.get_by_role("button", name="Delete closed tab")
    delete.click()
    delete.get_by_text("Delete now").click()
    delete.wait_for(state="detached")
    other.goto(bookmark)
    other.get_by_text("There is no such project").wait_for()


def test_a_project_goes_to_another_studio_as_one_file(page: Any, browser: Any, tmp_path: Path) -> None:
    open_sample(page)
    choose_role(page, "insurance", "identifier")
    page.get_by_title("Undo: role of insurance").wait_for()
    page.get_by_role("button", name="Project", exact=True).click()
    with page.expect_download() as coming:
        page.locator("[data-file=project-with-data]").click()
    path = tmp_path / coming.value.suggested_filename
    coming.value.save_as(path)
    assert path.name == "admissions.shoal"
    with studio() as started:
        context = browser.new_context()
        context.set_default_timeout(SLOW)
        other = context.new_page()
        other.goto(started())
        with other.expect_file_chooser() as chooser:
            other.get_by_role("button", name="Open a project file").click()
        chooser.value.set_files(path)
        other.get_by_title("Undo: role of insurance").wait_for()
        other.get_by_role("heading", name="What is each column?").wait_for()
        expect_role(other, "insurance", "identifier")
        choose_role(other, "sex", "other")
        other.get_by_title("Undo: role of sex").wait_for()
        other.wait_for_function("studio.unsaved")  # it comes after what is drawn
        asked = []  # without projects on the server, the browser asks before unsaved work is left
        other.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
        other.reload()
        other.get_by_title("Undo: role of sex").wait_for()
        assert asked == ["beforeunload"]
        context.close()


def test_many_columns_are_filtered_and_get_a_role_together(page: Any, home: Path) -> None:
    open_file(page, home / "wide.csv")
    page.get_by_label("Show columns with").fill("c3")
    bulk = page.get_by_label("Role of all 11 that match")
    bulk.wait_for()
    expect(page.locator("tr[data-column]")).to_have_count(11)
    bulk.select_option("other")
    page.get_by_title("Undo: role of 11 columns").wait_for()
    page.get_by_label("Show columns with").fill("")
    page.locator("tr[data-column=c0]").wait_for()
    others = (
        "() => [...document.querySelectorAll('tr[data-column] :checked')].filter(s => s.value === 'other')"
    )
    page.wait_for_function(f"({others})().length >= 11")


def test_a_rejected_choice_is_not_what_is_released(page: Any) -> None:
    open_sample(page)
    go(page, "Release")
    page.get_by_label("Algorithm").select_option("tds")
    page.get_by_text("tds needs a column to predict.").wait_for()
    page.get_by_role("button", name="Write the release").click()
    page.get_by_text("tds needs a column to predict.").wait_for()
    expect(page.get_by_role("heading", name="Verification")).to_have_count(0)
    row = page.locator("[data-part=preview] tr", has_text="age")
    row.get_by_text("in 20-year bands").wait_for()  # what the release does, before it is written


def test_one_unsuitable_algorithm_does_not_end_a_comparison(page: Any) -> None:
    open_sample(page)
    go(page, "Compare")
    for name in ("all-minimal", "datafly", "incognito", "ola", "samarati"):
        page.get_by_label(name, exact=True).uncheck()
    page.get_by_label("tds", exact=True).check()
    page.get_by_role("button", name="Run the comparison").click()
    page.get_by_role("cell", name="age in 20-year bands").wait_for()
    page.get_by_text("tds: refused").wait_for()


def test_a_choice_beyond_the_limit_is_shown_and_not_chosen(page: Any) -> None:
    open_sample(page)
    go(page, "Negotiate")
    page.get_by_text("Yes: 161 records").wait_for()
    page.get_by_text("Choose for each column").click()
    page.locator(".levels").get_by_label("postcode", exact=True).select_option("as it is")
    page.get_by_role("button", name="Choose these").click()
    page.get_by_text("it cannot be chosen").wait_for()
    assert page.get_by_text("Chosen for the release").count() == 0


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_step_is_wider_than_the_window(page: Any, width: int) -> None:
    open_sample(page)
    page.set_viewport_size({"width": width, "height": 768})
    fits = "() => document.documentElement.scrollWidth <= innerWidth"
    for step in ("Data", "Diagnose", "Negotiate", "Compare", "Release"):
        go(page, step)
        if step == "Negotiate":
            page.locator("[data-answer]").wait_for()
            top = "document.querySelector('[data-part=answer]').getBoundingClientRect().top"
            page.wait_for_function(f"{top} < {768 / 2}")  # it is visible beside or above the dials
        page.wait_for_function(fits)
    go(page, "Data")
    role = page.get_by_role("radiogroup", name="Role of age").bounding_box()
    assert role["x"] >= 0
    assert role["x"] + role["width"] <= width


def test_the_table_of_columns_is_not_cut_off_beside_the_editor(page: Any) -> None:
    open_sample(page)
    page.locator("td.values svg").first.wait_for()
    hidden = "() => { const box = document.querySelector('table.columns').closest('.scroll');"
    hidden += " return box.scrollWidth - box.clientWidth; }"
    for width in (1600, 1440, 1280, 1200):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"({hidden})() <= 1")
