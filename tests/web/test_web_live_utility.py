"""Negotiate shows what an analyst would lose by a node or a local recoding, while the dials move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.web.workspace.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    opened = Workspace(tmp_path)
    opened.open_sample()
    opened.negotiation.tabulate()
    return opened


def test_a_node_shows_what_its_release_loses(workspace: Workspace) -> None:
    answer = workspace.negotiation.negotiate()
    assert answer.exact is not None
    workspace.live_utility.pair = ("age", "sex")
    live = workspace.live_utility.of_node(answer.exact.node, answer.request)
    assert workspace.release.result is None
    workspace.negotiation.take(answer.exact)
    release = workspace.release.run()
    workspace.utility.run(("age", "sex"))
    utility = workspace.utility.required_result
    assert live.exposure_after == release.exposure_after
    after = {column.column: column for column in utility.columns}
    for column in live.columns:
        assert column.kept_information == pytest.approx(after[column.column].kept_information)
    assert live.contingency is not None
    assert utility.contingency is not None
    assert live.contingency.after == utility.contingency.after


def test_a_local_recoding_stays_within_the_dials(workspace: Workspace) -> None:
    live = workspace.live_utility
    answer = workspace.negotiation.negotiate(k=20, suppression_limit=100, max_level={"age": 1})
    assert live.of_local(answer.request) is None
    local = live.search_local(answer.request)
    result = live.of_local(answer.request)
    assert result is not None
    assert local.preview.levels is None
    assert local.preview.smallest_class >= 20
    assert local.preview.suppressed <= 100
    assert result.exposure_after.total == workspace.table.records - local.preview.suppressed
    other = workspace.negotiation.negotiate(k=21)
    assert live.of_local(other.request) is None


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    pytest.importorskip("playwright", reason="pages are tried with playwright")
    import browser

    if not Path(browser.CHROMIUM).exists():
        pytest.skip("pages are tried in Chromium")
    with browser.studio() as address, browser.chromium() as chromium:
        opened = browser.new_page(chromium)
        opened.goto(address())
        opened.get_by_role("button", name="Open the sample").click()
        opened.get_by_role("radiogroup", name="Role of age").wait_for()
        opened.locator("nav button", has_text="Negotiate").click()
        opened.locator("[data-answer]").wait_for()
        yield opened


@pytest.mark.xdist_group("browser")
def test_the_figures_follow_the_dials(page: Any) -> None:
    card = page.locator("[data-part=live-utility]")
    message = card.locator(".message", has_text="records are kept")
    page.locator(".charts .message", has_text="It suppresses").wait_for()  # the charts are drawn
    assert card.get_by_text("records are kept").count() == 0  # nothing is compared while it is collapsed
    card.get_by_text("What an analyst would lose").click()
    message.wait_for()
    before = message.inner_text()
    card.get_by_label("Before and after", exact=True).select_option("age")
    card.get_by_text("The same as a table").click()
    part = card.locator("details details", has_text="The same as a table")
    rows = part.locator("tbody tr")
    rows.first.wait_for()
    bars = rows.all_inner_texts()
    card.get_by_label("Two-way table of").select_option("age")
    card.get_by_label("and", exact=True).select_option("sex")
    card.get_by_role("heading", name="age and sex").wait_for()
    page.get_by_label("At least k", exact=True).fill("40")
    page.wait_for_function(
        "(text) => !document.querySelector('[data-part=live-utility]').innerText.includes(text)", arg=before
    )
    message.wait_for()
    rows.first.wait_for()
    assert rows.all_inner_texts() != bars


@pytest.mark.xdist_group("browser")
def test_local_recoding_is_shown_before_a_release(page: Any) -> None:
    card = page.locator("[data-part=live-utility]")
    if card.locator("details").first.get_attribute("open") is None:
        card.get_by_text("What an analyst would lose").click()
    card.get_by_label("With local recoding").check()
    card.get_by_text("Local recoding retains").wait_for()
    page.evaluate(  # the message may be gone before one looks for it
        """() => {
          const card = document.querySelector("[data-part=live-utility]");
          const look = () => { window.searched ||= card.innerText.includes("Searching the labels"); };
          new MutationObserver(look).observe(card, {childList: true, subtree: true, characterData: true});
        }"""
    )
    page.get_by_label("At least k", exact=True).fill("10")
    page.wait_for_function("window.searched")
    page.locator("[data-answer=exact]").wait_for()
    card.get_by_text("Local recoding retains").wait_for()
    card.get_by_label("With local recoding").uncheck()
    card.get_by_text("Local recoding retains").wait_for(state="detached")


@pytest.mark.xdist_group("browser")
def test_the_opened_comparison_violates_no_wcag_rule(page: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    card = page.locator("[data-part=live-utility]")
    if card.locator("details").first.get_attribute("open") is None:
        card.get_by_text("What an analyst would lose").click()
    card.locator(".message", has_text="records are kept").wait_for()
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
    result = axe.run(page, context="[data-part=live-utility]", options=rules).response
    assert result["passes"]
    assert result["violations"] == []
