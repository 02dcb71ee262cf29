"""Questions, risk, attacks, the table itself and its utility in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from browser import BROWSER_MARKS, choose_role, expect, expect_role, go, new_page

pytestmark = BROWSER_MARKS


@pytest.fixture
def page(sample: Any) -> Any:
    return sample


def diagnosed(page: Any) -> None:
    go(page, "Diagnose")
    page.get_by_role("heading", name="Smallest unsafe sets").wait_for()


def test_a_question_about_chosen_columns_is_answered_with_its_table(page: Any) -> None:
    diagnosed(page)
    card = page.locator("[data-part=ask]")
    question = card.get_by_label("Question")
    question.wait_for()
    assert question.locator("option").count() == 15
    question.select_option("3")
    card.get_by_text("Only sets that no larger one contains").wait_for()
    for name in ("admitted", "postcode"):
        card.get_by_label(name, exact=True).uncheck()
    card.get_by_label("ethnicity", exact=True).check()
    card.get_by_label("k or l").fill("20")
    card.get_by_role("button", name="Ask", exact=True).click()
    answer = card.locator("[data-part=answer]")
    answer.get_by_text("Sets whose k is at least 20").wait_for()
    assert answer.locator("tbody tr").count() >= 1
    assert "postcode" not in answer.inner_text()


def test_the_affected_records_are_downloaded_as_row_numbers(page: Any) -> None:
    diagnosed(page)
    card = page.locator("[data-part=ask]")
    card.get_by_label("Question").select_option("rows")
    card.get_by_label("k or l").fill("2")
    card.get_by_role("button", name="Ask", exact=True).click()
    link = card.get_by_text("Download the numbers of these records")
    link.wait_for()
    count = re.search(r"([\d,]+) of 5,000 records", card.locator("[data-part=answer]").inner_text())
    with page.expect_download() as download:
        link.click()
    lines = Path(download.value.path()).read_text().split()
    assert count is not None
    assert len(lines) == int(count[1].replace(",", ""))


def test_a_question_without_columns_or_with_a_wrong_k_says_so_at_the_field(page: Any) -> None:
    diagnosed(page)
    card = page.locator("[data-part=ask]")
    card.get_by_label("k or l").fill("many")
    card.get_by_role("button", name="Ask", exact=True).click()
    card.get_by_text(re.compile("^k must be")).wait_for()
    for box in card.locator(".choices input").all():
        box.uncheck()
    card.get_by_role("button", name="Ask", exact=True).click()
    card.get_by_text("Choose at least one column.").wait_for()


def test_the_suggested_policy_is_taken_with_a_button(page: Any) -> None:
    diagnosed(page)
    card = page.locator("[data-part=ask]")
    card.get_by_label("Question").select_option("suggest")
    card.get_by_role("button", name="Ask", exact=True).click()
    card.get_by_role("button", name="Use this policy").click()
    page.get_by_role("heading", name="What is each column?").wait_for()
    page.get_by_title(re.compile("^Undo: ")).wait_for()


def test_gauges_show_each_risk_before_and_after_against_the_threshold(page: Any) -> None:
    go(page, "Release")
    page.get_by_role("button", name="Write the release").click()
    page.get_by_role("meter", name="Prosecutor risk after").wait_for()
    diagnosed(page)
    card = page.locator("[data-part=risk]")
    card.get_by_label("Risk threshold").fill("1/3")
    card.get_by_label("Share of them in the table").fill("10%")
    card.get_by_role("button", name="Assess").click()
    prosecutor = card.get_by_role("meter", name="Prosecutor risk before")
    expect(prosecutor).to_have_attribute("aria-valuetext", "100%, above 33.3%")
    for intruder in ("Prosecutor", "Journalist", "Marketer"):
        before, after = (
            card.get_by_role("meter", name=f"{intruder} risk {when}") for when in ("before", "after")
        )
        assert float(before.get_attribute("aria-valuenow")) > float(after.get_attribute("aria-valuenow"))
        assert before.get_attribute("aria-valuetext") in card.inner_text()
    mark = prosecutor.locator(".mark").bounding_box()
    scale = prosecutor.bounding_box()
    assert 0.3 < (mark["x"] - scale["x"]) / scale["width"] < 0.36
    card.get_by_label("Risk threshold").fill("many")
    card.get_by_role("button", name="Assess").click()
    card.locator(".error", has_text="threshold").first.wait_for()


def test_what_every_class_satisfies_is_measured_before_and_after(page: Any) -> None:
    go(page, "Release")
    page.get_by_role("button", name="Write the release").click()
    card = page.locator("[data-part=measure]")
    card.get_by_role("button", name="Measure", exact=True).click()
    card.get_by_role("heading", name="The release").wait_for()
    expect(card.get_by_text("t-closeness, equal distance")).to_have_count(2)


def test_a_release_is_attacked_with_a_register_that_is_uploaded(page: Any, tmp_path: Path) -> None:
    go(page, "Release")
    page.get_by_role("button", name="Write the release").click()
    card = page.locator("[data-part=attack]")
    card.get_by_label("Records to match, at least").fill("4000")
    card.get_by_label("Columns with another name there").fill("age=years")
    for name in ("admitted", "postcode"):
        card.get_by_label(name, exact=True).uncheck()
    register = tmp_path / "register.csv"
    register.write_text("person,years,sex\nAnna,44,female\nBert,51,male\n")
    with page.expect_file_chooser() as chooser:
        card.get_by_role("button", name="Upload a register and attack").click()
    chooser.value.set_files(register)
    card.get_by_text("2 persons match fewer than 4,000 records.").wait_for()
    register.write_text("person,born\nAnna,1980\n")
    with page.expect_file_chooser() as chooser:
        card.get_by_role("button", name="Upload a register and attack").click()
    chooser.value.set_files(register)
    card.get_by_role("alert").filter(has_text="years").wait_for()


def test_the_table_is_shown_sorted_filtered_and_with_its_small_classes_marked(page: Any) -> None:
    part = page.locator("[data-part=rows]")
    assert part.locator(".ag-root").count() == 0  # nothing is read before it is opened
    part.get_by_text("The table itself, record by record").click()
    grid = part.locator("[data-grid=table]")
    grid.locator(".ag-row.exposed").first.wait_for()
    header = grid.locator("[role=columnheader][col-id=c2]")
    assert header.inner_text().strip() == "age"
    header.locator(".ag-header-cell-label").click()
    page.wait_for_function(
        """() => { const cells = [...document.querySelectorAll('.ag-center-cols-container [col-id=c2]')]
          .map((cell) => Number(cell.innerText)); return cells.length > 5 && new Set(cells).size === 1; }"""
    )
    grid.locator(".ag-floating-filter[col-id=c3] input").fill("femal")
    page.wait_for_function(
        """() => { const cells = [...document.querySelectorAll('.ag-center-cols-container [col-id=c3]')];
          return cells.length > 5 && cells.every((cell) => cell.innerText === 'female'); }"""
    )
    grid.get_by_text("Only records in classes of fewer than").click()
    grid.locator(".ag-row.exposed").first.wait_for()


def test_rows_before_and_after_stand_side_by_side(page: Any) -> None:
    go(page, "Release")
    page.get_by_role("button", name="Write the release").click()
    part = page.locator("[data-part=rows]")
    part.get_by_text("Before and after, record by record").click()
    before, after = part.locator("[data-grid=table]"), part.locator("[data-grid=release]")
    before.locator(".ag-row.exposed").first.wait_for()
    after.locator(".ag-center-cols-container .ag-row").first.wait_for()
    assert after.locator(".ag-row.exposed").count() == 0
    assert "name" not in after.locator(".ag-header").inner_text().split()
    boxes = [grid.bounding_box() for grid in (before, after)]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]


def test_roles_are_segments_that_work_by_keyboard_and_keep_the_focus(page: Any) -> None:
    group = page.get_by_role("radiogroup", name="Role of sex")
    group.locator(":checked").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_title("Undo: role of sex").wait_for()
    expect_role(page, "sex", "sensitive")
    expect(group.locator(":focus")).to_have_count(1)
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Hierarchy of sex: 2 levels").wait_for()
    expect(group.locator(":focus")).to_have_count(1)
    colours = {
        group.get_by_text(role, exact=True).evaluate("(e) => getComputedStyle(e).backgroundColor")
        for role in ("quasi-identifier", "other")
    }
    assert len(colours) == 2  # the chosen one is coloured
    cut = "() => [...document.querySelectorAll('.segment span')].filter((e) => e.scrollWidth > e.clientWidth)"
    assert page.evaluate(f"({cut})().length") == 0
    choose_role(page, "sex", "identifier")
    page.get_by_role("button", name="Undo", exact=True).click()
    page.wait_for_function(
        "() => document.querySelector('tr[data-column=sex] :checked').value === 'quasi-identifier'"
    )


def test_each_column_shows_sample_values_and_a_small_histogram(page: Any) -> None:
    row = page.locator("tr[data-column=sex]")
    chart = row.get_by_role("img", name=re.compile("^most often female"))
    chart.wait_for()
    assert chart.locator("rect").count() == 4
    assert row.get_by_text("female, male").count() == 1
    age = page.locator("tr[data-column=age]").get_by_role(
        "img", name=re.compile("^from 0 to 101; most often")
    )
    age.wait_for()
    assert age.locator("rect").count() == 12


def test_a_role_among_three_hundred_columns_is_visible_at_once(page: Any, tmp_path: Path) -> None:
    rows = (",".join(str((row * 7 + n) % 5) for n in range(300)) for row in range(60))
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{n}" for n in range(300)) + "\n" + "\n".join(rows) + "\n")
    page.get_by_role("button", name="Other table").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(wide)
    page.locator("tr[data-column=c99] .bars").wait_for()
    changed = page.evaluate(
        """async () => {
          const of = (name, role) => document.querySelector(`tr[data-column=${name}] [value=${role}]`);
          const found = [];
          for (const name of ['c10', 'c40', 'c90']) {
            const rows = [...document.querySelectorAll('tr[data-column]')];
            of(name, 'sensitive').click();
            while (!document.querySelector(`.history [title='Undo: role of ${name}']`)
                   || document.querySelector(`tr[data-column=${name}] button`))
              await new Promise((resolve) => setTimeout(resolve, 5));
            found.push(rows.every((row) => row.isConnected));
          }
          return found;
        }"""
    )
    assert changed == [True] * 3  # no other row was drawn again


def test_what_an_analyst_loses_is_shown_as_chart_and_as_tables(page: Any) -> None:
    go(page, "Release")
    page.get_by_role("button", name="Write the release").click()
    card = page.locator("[data-part=utility]")
    card.get_by_text("What is left of each column").wait_for()
    card.locator("canvas").first.wait_for()
    card.get_by_text("The same as a table").click()
    card.get_by_role("cell", name="1,000 and more").or_(
        card.get_by_role("cell", name="1", exact=True)
    ).first.wait_for()
    card.get_by_label("Before and after", exact=True).select_option("sex")
    card.get_by_role("cell", name="female", exact=True).first.wait_for()
    card.get_by_label("Two-way table of").select_option("sex")
    card.get_by_label("and", exact=True).select_option("diagnosis")
    card.get_by_role("button", name="Count the two columns").click()
    card.get_by_text(re.compile("sex.*diagnosis")).first.wait_for()


def test_scenarios_are_pinned_compared_in_words_and_used(page: Any) -> None:
    go(page, "Negotiate")
    page.locator("[data-answer=exact]").wait_for()
    page.get_by_role("button", name="Pin", exact=True).first.click()
    card = page.locator("[data-part=scenarios]")
    card.get_by_text("1. Offer: k = 5", exact=False).wait_for()
    with page.expect_download() as download:
        page.get_by_text("Download the log").click()
    assert "asked,k = 5" in Path(download.value.path()).read_text()
    card.get_by_role("button", name="Make a read-only link").click()
    address = card.get_by_role("link", name="The read-only page").get_attribute("href")
    page.wait_for_url("**/negotiate")
    shared = new_page(page.context.browser, base_url=page.url.removesuffix("/negotiate"))
    assert shared.goto(address).status == 200
    assert "k-anonymity (k = 5)" in shared.get_by_role("table").inner_text()
    assert shared.goto("/negotiate").status == 401
    card.get_by_role("button", name="Revoke all links").click()
    card.get_by_text("All read-only links of this workspace are revoked.").wait_for()
    assert shared.goto(address).status == 404
    shared.context.close()
    go(page, "Compare")
    page.get_by_role("button", name="Run the comparison").click()
    row = page.locator("tr[data-row=datafly]")
    row.get_by_role("button", name="Pin datafly").click()
    card.get_by_text("2. Compared: datafly").wait_for()
    cells = card.locator("[data-scenario='1'] td[data-label=age]").inner_text()
    assert cells == "as it is" or cells.startswith(("in ", "removed"))
    assert not re.search(r"\blevel \d", card.inner_text())
    row.get_by_role("button", name="Use this: datafly").click()
    page.locator(".history [title*=algorithm], .history [title*=settings]").first.wait_for()
    go(page, "Release")
    page.locator("[data-part=preview]").get_by_text("of the information is retained").wait_for()
    page.get_by_role("button", name="Pin as a scenario").click()
    card.get_by_text("3. Release: datafly").wait_for()
    card.get_by_role("button", name="Remove scenario 2").click()
    card.locator("[data-scenario='2']").wait_for(state="detached")
    card.get_by_role("button", name="Use this: scenario 1").click()
    page.get_by_role("button", name="Let the search choose").wait_for()
    page.get_by_role("button", name="Undo", exact=True).click()
    page.get_by_role("button", name="Let the search choose").wait_for(state="detached")
