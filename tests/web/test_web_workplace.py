"""What the studio says, in a real browser: the same on every page, and to everyone."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from browser import BROWSER_MARKS, expect, go, new_page, press, settled, studio, upload
from shoal.algorithms import ALGORITHMS
from shoal.workflow.catalogue import algorithm_sentence
from studio_views import PASSWORD, VIEWS, walk

pytestmark = BROWSER_MARKS


def test_negotiate_and_release_agree_on_local_recoding(sample: Any) -> None:
    go(sample, "Release")
    sample.get_by_label("Local recoding").select_option("1")
    preview = sample.locator("[data-part=preview]", has_text="its own labels in each class")
    preview.get_by_text("of the information is retained").wait_for()
    retained = re.search(r"([\d.]+)% of the information is retained", preview.inner_text())
    suppressed = re.search(r"([\d,]+) records? suppressed", preview.inner_text())
    assert retained
    assert suppressed
    go(sample, "Negotiate")
    says = sample.locator("[data-part=by-class]", has_text=f"{suppressed[0]}, {retained[1]}% of the")
    says.get_by_text("The release recodes locally").wait_for()
    assert sample.get_by_text("Yes: ").count() == 0
    sample.get_by_text(re.compile(r"With one level for each column: [\d,]+ records suppressed")).wait_for()
    sample.get_by_label("At least k", exact=True).fill("9")
    sample.get_by_text("The release recodes locally. Its figures differ").wait_for()
    press(sample, "Take this")
    sample.locator("[data-part=by-class]", has_text="% of the information retained").wait_for()


def test_negotiate_retains_what_the_release_retains(sample: Any) -> None:
    go(sample, "Negotiate")
    settled(sample)
    line = sample.locator("[data-part=answer]").get_by_text("% of the information is retained.")
    share = line.inner_text().split(" ")[0]
    go(sample, "Release")
    press(sample, "Write the release")
    sample.locator("[data-part=verdict] .message", has_text=f"{share} of the information").wait_for()


def test_a_setting_that_cannot_be_used_is_set_back(sample: Any) -> None:
    go(sample, "Release")
    sample.get_by_text("The policy as a file").click()
    policy = sample.get_by_label("Policy", exact=True)
    policy.fill(policy.input_value() + "algorithm: {auto: {cells: true}}\n")
    press(sample, "Use this policy")
    sample.get_by_text("Then cells are blanked").wait_for()
    for label, wrong, text in (
        ("Local recoding", "1", "Local recoding stays off"),
        ("Suppressed records are", "mask", "Suppressed records stay left out"),
    ):
        field = sample.get_by_label(label)
        before = field.input_value()
        field.select_option(wrong)
        sample.locator(".error", has_text=text).wait_for()
        expect(field).to_have_value(before)


def test_a_release_that_is_not_verified_has_no_download(sample: Any) -> None:
    go(sample, "Release")
    sample.get_by_text("The policy as a file").click()
    policy = sample.get_by_label("Policy", exact=True)
    text = re.sub("same_level:\n(- .*\n|  .*\n)*", "", policy.input_value())
    text = text.replace("- distinct-l-diversity:\n    l: 2\n", "")
    policy.fill(text + "algorithm: mu-argus\n")
    press(sample, "Use this policy")
    sample.get_by_text("mu-argus does not promise").wait_for()
    press(sample, "Write the release")
    verdict = sample.locator("[data-part=verdict]")
    verdict.locator(".message.bad", has_text="Not verified: ").wait_for()
    verdict.get_by_text("mu-argus guarantees none of the models").wait_for()
    sample.locator("[data-part=withheld]", has_text="cannot be downloaded, because it is not").wait_for()
    assert sample.locator("[data-file=release]").count() == 0
    assert sample.locator("[data-file=report]").count() == 1
    color = "(element) => getComputedStyle(element).backgroundColor"
    verdict.locator(".message", has_text="unique for someone who knows every").wait_for()
    assert verdict.locator(".message.bad").first.evaluate(color) != "rgba(0, 0, 0, 0)"


def test_every_step_but_the_last_has_next_and_the_focus_follows(sample: Any) -> None:
    focused = "() => document.activeElement.tagName + ' ' + document.activeElement.textContent"
    for drawn, following, heading in (  # a click is lost on a page that is drawn again just then
        ("Hierarchy of age", "Diagnose", "H2 How exposed are the records"),
        ("Smallest unsafe sets", "Negotiate", "H2 "),
        ("Ten records, before and after", "Compare", "H2 Algorithms"),
        ("Algorithms", "Release", "H2 What the release will do"),
    ):
        sample.get_by_role("heading", name=drawn).wait_for()
        sample.get_by_role("button", name=f"Next: {following}").click()
        sample.locator("nav button[aria-current=step]", has_text=following).wait_for()
        sample.wait_for_function(f"() => ({focused})().startsWith({heading!r})")
    sample.go_back()
    sample.wait_for_function(f"() => ({focused})().startsWith('H2 Algorithms')")


def test_charts_have_a_name_and_their_data_and_sliders_say_what_they_mean(sample: Any) -> None:
    go(sample, "Diagnose")
    chart = sample.get_by_role("img", name="Chart of records suppressed (%) by k")
    chart.wait_for()
    card = sample.locator("section", has=chart)
    card.get_by_text("Data of the chart").click()
    card.get_by_role("row", name="2 ").first.wait_for()
    go(sample, "Negotiate")
    sample.locator("[data-answer=exact]").wait_for()
    sample.get_by_role("img", name="choices").first.wait_for()
    expect(sample.locator(".nicegui-echart")).to_have_count(5)
    expect(sample.locator(".nicegui-echart[role=img]")).to_have_count(5)
    k = sample.get_by_label("At least k, slider")
    expect(k).to_have_attribute("aria-valuetext", "k = 5")
    k.focus()
    sample.keyboard.press("ArrowRight")
    sample.locator("input[aria-valuetext='k = 6']").wait_for()
    sample.get_by_label("At least k", exact=True).fill("12")
    sample.locator("input[aria-valuetext='k = 12']").wait_for()
    limit = sample.get_by_label("Suppressed at most, slider")
    expect(limit).to_have_attribute("aria-valuetext", "5%, 250 records")
    level = sample.get_by_label("How coarse age may become")
    assert (level.get_attribute("aria-valuetext") or "").startswith("in ")


def test_what_scrolls_is_reached_by_keyboard_and_has_a_name(sample: Any) -> None:
    sample.set_viewport_size({"width": 390, "height": 700})
    go(sample, "Negotiate")
    sample.locator("[data-answer=exact]").wait_for()
    scrolled = sample.locator(".scroll[tabindex='0'][role=region]").filter(visible=True)
    scrolled.first.wait_for()
    assert all(box.get_attribute("aria-label") for box in scrolled.all())


def test_each_algorithm_is_explained_on_the_page(sample: Any) -> None:
    go(sample, "Compare")
    sample.get_by_text(
        "Finds the choice of levels that loses least, and proves it, unless its time runs out."
    ).wait_for()
    for name in ALGORITHMS:
        sentence = algorithm_sentence(name)
        assert sentence.startswith("Chooses the search") or sample.get_by_text(sentence).is_visible()


def test_results_of_a_comparison_come_before_the_algorithms_in_a_narrow_window(sample: Any) -> None:
    sample.set_viewport_size({"width": 390, "height": 844})
    go(sample, "Compare")
    press(sample, "Run the comparison")
    result = sample.get_by_role("heading", name="Metric: coverage")
    result.wait_for()
    button = sample.get_by_role("button", name="Run the comparison")
    assert result.bounding_box()["y"] < button.bounding_box()["y"]


def test_no_action_is_named_like_a_step(sample: Any) -> None:
    go(sample, "Release")
    press(sample, "Write the release")
    sample.get_by_role("link", name="Released table").wait_for()
    for name in ("Data", "Diagnose", "Negotiate", "Compare", "Release"):
        assert sample.get_by_role("link", name=name, exact=True).count() == 0
        assert sample.locator(".main").get_by_role("button", name=name, exact=True).count() == 0


def test_an_answer_that_loses_a_column_is_not_green(sample: Any) -> None:
    go(sample, "Negotiate")
    answer = sample.locator("[data-answer=exact]")
    expect(answer).to_have_class("good")
    sample.get_by_label("At least k", exact=True).fill("60")
    sample.locator("[data-part=answer]", has_text="Nothing is left of").wait_for()
    expect(answer).to_have_class("warn")


def test_a_number_of_choices_without_end_is_said_in_words(start: Any, tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    names = [f"c{number}" for number in range(46)]
    rows = [",".join(str(row * (number + 1) % 31) for number in range(46)) for row in range(60)]
    path.write_text("\n".join([",".join(names), *rows]) + "\n")
    upload(start, path)
    start.get_by_role("heading", name="What is each column?").wait_for()
    go(start, "Negotiate")
    start.get_by_text(re.compile(r"The number of choices has \d\d digits, too many to count")).wait_for()
    start.get_by_role("button", name="Next: Compare").click()
    start.get_by_role("button", name="Run the comparison").wait_for()


def test_the_studio_speaks_of_choices_and_not_of_nodes(sample: Any) -> None:
    for step in ("Negotiate", "Compare", "Release"):
        go(sample, step)
        sample.locator("h2").first.wait_for()
        if step == "Negotiate":
            sample.locator("[data-answer=exact]").wait_for()
            sample.get_by_text(" choices").first.wait_for()
        assert not re.search(r"\bnodes?\b|generalization step", sample.locator(".main").inner_text())


def test_a_page_is_dimmed_until_the_restarted_studio_answers(browser: Any, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = ("--port", port, "--projects", str(tmp_path / "projects"))
    opacity = "() => getComputedStyle(document.querySelector('.main')).opacity"
    page = new_page(browser)
    with studio(*options, password=PASSWORD) as started:
        sign_in(page, started().split("?")[0])
        page.get_by_role("button", name="Open the sample").click()
        page.get_by_role("heading", name="Hierarchy of age").wait_for()
        page.get_by_role("button", name="Project", exact=True).click()
        page.get_by_label("Name", exact=True).fill("survives")
        page.get_by_role("button", name="Save", exact=True).click()
        page.wait_for_url(re.compile("/project/"))
        page.wait_for_function(f"() => ({opacity})() === '1'")
    page.wait_for_function(f"() => Number(({opacity})()) < 0.5")
    page.get_by_text("Connection lost").wait_for()
    with studio(*options, password=PASSWORD) as started:
        started()
        page.get_by_label("Password").wait_for()  # the page of the old studio does not stay
        sign_in(page)
        page.get_by_role("button", name="Open survives").click()
        page.get_by_role("heading", name=re.compile("As one file|What is each column")).first.wait_for()
        page.context.close()


def test_the_first_page_says_what_this_is_for_and_shows_records(start: Any) -> None:
    card = start.locator("[data-part=introduction]")
    card.get_by_text("every record looks like others").wait_for()
    card.get_by_text("ethics boards").wait_for()
    card.get_by_text("a codebook for those who analyse it").wait_for()
    assert card.get_by_role("row", name="Rosa Khan 47 female 31252").count() == 1
    assert card.get_by_role("row", name="removed 40-59 female 3* 2025-H1").count() == 3
    assert card.get_by_role("listitem").count() == 5


def test_too_many_choices_are_counted_for_some_seconds_and_the_answer_is_partial(
    start: Any, tmp_path: Path
) -> None:
    rows = (",".join("ab"[row * (n + 1) // 7 % 2] for n in range(46)) for row in range(60))
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(46)) + "\n" + "\n".join(rows) + "\n")
    page = start
    upload(page, path)
    page.get_by_role("heading", name="What is each column?").wait_for()
    go(page, "Negotiate")
    page.get_by_text("too many to count them all").wait_for()
    assert page.get_by_label("Seconds at most").input_value() == "20"
    page.locator("[data-part=partial]", has_text="This answer is partial").wait_for()
    page.context.close()


def test_the_glossary_is_on_every_page(sample: Any) -> None:
    for step in ("Data", "Diagnose", "Negotiate", "Compare", "Release"):
        go(sample, step)
        words = sample.locator("footer")
        words.get_by_text("What the words mean").click()
        words.get_by_text("A choice of one level for each quasi-identifier.").wait_for()
        words.get_by_text("What the words mean").click()


def test_the_sign_in_page_follows_the_dark_appearance(browser: Any) -> None:
    with studio(password=PASSWORD) as started:
        address = started().split("?")[0]
        colors = []
        for scheme in ("light", "dark"):
            page = new_page(browser, color_scheme=scheme)
            page.goto(address)
            page.get_by_label("Password").fill("wrong")
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("alert").wait_for()
            colors.append(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
            page.context.close()
    assert colors == ["rgb(245, 246, 248)", "rgb(18, 23, 28)"]


def sign_in(page: Any, address: str | None = None) -> None:
    if address:
        page.goto(address)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Open the sample").wait_for()


RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_violates_wcag(browser: Any, scheme: str, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = new_page(browser, color_scheme=scheme)
    violations: dict[str, list[str]] = {}
    seen = []
    with studio("--projects", str(tmp_path), password=PASSWORD) as started:
        for view in walk(page, started()):
            page.locator("h1, h2").first.wait_for()
            result = axe.run(page, options=RULES).response
            assert result["passes"]
            seen.append(view)
            if result["violations"]:
                violations[view] = [f"{one['id']}: {one['nodes'][0]['html']}" for one in result["violations"]]
        assert violations == {}
        assert tuple(seen) == VIEWS
        page.context.close()


def test_rows_report_and_certificate_are_shown_before_the_download(sample: Any, tmp_path: Path) -> None:
    go(sample, "Release")
    press(sample, "Write the release")
    sample.get_by_text("Verified: every model holds").wait_for()
    sample.get_by_text("The first rows of the release").click()
    card = sample.locator("section", has=sample.get_by_role("heading", name="Files"))
    card.get_by_role("row").nth(10).wait_for()
    assert card.get_by_role("row").first.inner_text().split()[:3] == ["age", "sex", "postcode"]
    for name, heading in (("report", "Release report"), ("certificate", "Certificate of de-identification")):
        sample.get_by_text(f"The {name}, here on the page").click()
        frame = sample.locator(f"iframe[title={name.capitalize()}]")
        frame.wait_for()
        assert frame.get_attribute("sandbox") == ""  # no script, no form, no link that leads away
        frame.content_frame.get_by_role("heading", name=heading).first.wait_for()
    with sample.expect_download() as coming:
        sample.locator("[data-file=certificate]").click()
    assert coming.value.suggested_filename == "certificate.html"


def test_a_release_is_checked_and_a_recipe_applied_from_a_file(sample: Any, tmp_path: Path) -> None:
    go(sample, "Release")
    press(sample, "Write the release")
    sample.get_by_text("Verified: every model holds").wait_for()
    files = {}
    for name in ("release", "recipe"):
        with sample.expect_download() as coming:
            sample.locator(f"[data-file={name}]").click()
        files[name] = tmp_path / coming.value.suggested_filename
        coming.value.save_as(files[name])
    sample.get_by_text("Apply a recipe, or check a release").click()
    card = sample.locator("[data-part=uploads]")
    with sample.expect_file_chooser() as chooser:
        card.get_by_role("button", name="Check a release").click()
    chooser.value.set_files(files["release"])
    card.locator(".message.good", has_text="admissions-release.csv: Verified").wait_for()
    with sample.expect_file_chooser() as chooser:
        card.get_by_role("button", name="Apply a recipe").click()
    chooser.value.set_files(files["recipe"])
    sample.get_by_text("Made by the uploaded recipe").wait_for()


NARROW = """() => {
  const seen = [...document.querySelectorAll(".btn")].filter((button) => button.offsetParent);
  const cells = [...document.querySelectorAll(".t.rows td")].filter((cell) => cell.offsetParent);
  return {
    over: document.documentElement.scrollWidth - innerWidth,
    header: document.querySelector("header")?.offsetHeight || 0,
    broken: seen.filter((button) => button.offsetHeight > 40).map((button) => button.textContent),
    cut: cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth).length,
    outside: [...document.querySelectorAll(".card .in")].filter((field) => field.offsetParent
      && field.getBoundingClientRect().right > field.closest(".card").getBoundingClientRect().right).length,
    scrolling: [...document.querySelectorAll("[data-part=introduction] .scroll, [data-part=risk] .scroll")]
      .filter((box) => box.scrollWidth > box.clientWidth + 1).length,
    beside: [...document.querySelectorAll(".gauges > .tile + .tile")]
      .filter((tile) => tile.offsetTop === tile.previousElementSibling.offsetTop).length,
  };
}"""


def test_every_view_fits_a_narrow_window(browser: Any, tmp_path: Path) -> None:
    page = new_page(browser, viewport={"width": 390, "height": 844})
    with studio("--projects", str(tmp_path), password=PASSWORD) as started:
        for view in walk(page, started()):
            layout = page.evaluate(NARROW)
            assert layout["over"] <= 0, view
            assert layout["header"] <= 130, view
            assert layout["broken"] == [], view
            for name in ("cut", "outside", "scrolling", "beside"):
                assert layout[name] == 0, (view, name)
        page.context.close()
