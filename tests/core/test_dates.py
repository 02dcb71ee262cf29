"""Dates are read together as one would read each alone: against the standard library, text by text."""

from __future__ import annotations

import re
from datetime import date, datetime
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy import dates
from shoal.core.hierarchy.builders import BUILDERS, Flat, parse
from shoal.core.hierarchy.calendar import DATE_UNITS
from shoal.errors import HierarchyError
from shoal.workflow.attack.labels import dates_in

STYLES = [
    *(day + time for day in dates.DAYS for time in ("", " %H:%M", " %H:%M:%S", " %I:%M %p", "T%H%M%S")),
    "%Y-%m", "%Y", "%d.%m.", "%H:%M", "%d%m%Y", "%d %b %Y", "%Y %m  %d", "%m/%d/%Y, %H Uhr", "%d.%m.%Y %p",
    "%d.%m.%Y %I:%M", "%d.%m.%Y %H:%M %p", "5%d.%m.%Y", "0%d.%m.%Y", "%j %Y", "%Y%m%d%H%M%S",
]  # fmt: skip
WHEN = st.datetimes(min_value=datetime(1000, 1, 1))


def naive(text: str, style: str | None) -> datetime | None:
    """Read one text as the standard library does."""
    try:
        found = datetime.strptime(text.strip(), style) if style else datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return found.replace(tzinfo=None, microsecond=0)


@st.composite
def odd(draw: st.DrawFn, text: str) -> str:
    """Draw a text, or one that is hardly another: other digits, no zeros, spaces, a character more."""
    kind = draw(st.sampled_from(["same", "same", "digit", "zeros", "space", "less", "more", "case"]))
    at = draw(st.integers(0, len(text) - 1))
    if kind == "digit":
        return text[:at] + draw(st.sampled_from("0123456789 x.\u0663")) + text[at + 1 :]
    changed = {
        "zeros": re.sub(r"\b0", "", text),
        "space": f" {text}\t",
        "less": text[:at] + text[at + 1 :],
        "more": text[:at] + draw(st.sampled_from("01 \0.-")) + text[at:],
        "case": text.swapcase(),
    }
    return changed.get(kind, text)


@st.composite
def texts_in(draw: st.DrawFn, style: str | None) -> list[str]:
    """Draw texts in a format, more and fewer than are read together, and some that are hardly in it."""
    when = draw(st.lists(WHEN, min_size=1, max_size=24))
    return [draw(odd(day.strftime(style) if style else day.isoformat(" ", "seconds"))) for day in when]


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from([None, *STYLES]).flatmap(lambda style: st.tuples(st.just(style), texts_in(style))))
def test_texts_are_read_together_as_alone(drawn: tuple[str | None, list[str]]) -> None:
    style, texts = drawn
    found = dates.moments(texts, style).tolist()
    assert found == [naive(text, style) for text in texts]
    assert dates.moments(texts * 9, style).tolist() == found * 9


@settings(max_examples=examples(100), deadline=None)
@given(texts_in("%d.%m.%Y"), st.lists(st.sampled_from(["", " 7:05", " 14:05", " 14:05:59", " 24:00", " x"])))
def test_a_time_may_follow_a_format_without_one(days: list[str], times: list[str]) -> None:
    texts = [day + time for day, time in zip(days, [*times, *[""] * len(days)], strict=False)]
    forms = [f"%d.%m.%Y{time}" for time in ("", " %H:%M", " %H:%M:%S")]
    expected = [next(filter(None, (naive(text, form) for form in forms)), None) for text in texts]
    assert dates.day_or_time(texts, "%d.%m.%Y").tolist() == expected
    days_only = [None if moment is None else moment.date() for moment in expected]
    rule = parse("x", {"dates": ["day", "month", "year"], "format": "%d.%m.%Y"})
    units = [DATE_UNITS[unit] for unit in ("day", "month", "year")]
    assert rule.labels(texts) == [day and tuple(unit(day) for unit in units) for day in days_only]
    places = [
        None if m is None else m.toordinal() + (m - datetime(*m.timetuple()[:3])).seconds / 86400
        for m in expected
    ]
    assert [None if np.isnan(p) else p for p in rule.positions(texts).tolist()] == places


# What a date may be made of, in its usual ways: numbers that may be none of a date, with zeros or without.
PARTS = st.tuples(
    st.sampled_from([0, 999, 1900, 2024, 9999]), st.integers(0, 14), st.integers(0, 33), st.booleans()
)
CLOCKS = st.tuples(st.integers(0, 25), st.integers(0, 61), st.none() | st.integers(0, 61), st.booleans())


@st.composite
def usual_texts(draw: st.DrawFn) -> tuple[str, datetime | None, datetime | None]:
    """Draw a date in a usual way, and when it is with the day and with the month first."""
    year, month, day, zeros = draw(PARTS)
    form = "{:02}" if zeros else "{}"
    between = draw(st.sampled_from(["-", "/", ".", ""]))
    first = not between or draw(st.booleans())
    own = [f"{year:04}", *((form if between else "{:02}").format(part) for part in (month, day))]
    text = between.join(own if first else own[::-1])
    hour, minute, second, half = draw(CLOCKS)
    if draw(st.booleans()):
        text += (
            draw(st.sampled_from(["T", " ", ", "])) + (f"{hour:02}" if zeros else f"{hour}") + f":{minute:02}"
        )
        text += "" if second is None else f":{second:02}" + draw(st.sampled_from(["", ".5", ",123456789"]))
        after = draw(st.sampled_from(["", " PM", "am"])) if half and hour < 24 else ""
        text += after
        hour = hour % 12 + 12 * ("P" in after) if after else hour
    else:
        hour, minute, second = 0, 0, 0
    turned = not first and between in ("-", "/")
    pairs = ((month, day), (day, month) if turned else (month, day))
    return text, *(_when(year, *pair, hour, minute, second or 0) for pair in pairs)


def _when(*parts: int) -> datetime | None:
    try:
        return datetime(*parts)  # type: ignore[arg-type]
    except ValueError:
        return None


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(usual_texts(), max_size=20))
def test_the_usual_ways_are_read(drawn: list[tuple[str, datetime | None, datetime | None]]) -> None:
    texts = [text for text, _, _ in drawn]
    assert dates.parse_usual(texts).tolist() == [moment for _, moment, _ in drawn]
    assert dates.parse_usual(texts, months_first=True).tolist() == [moment for _, _, moment in drawn]
    written = dates.as_iso(texts, dates.parse_usual(texts))
    assert {text: naive(iso, None) for text, iso in written.items()} == {t: m for t, m, _ in drawn if m}


@pytest.mark.parametrize(
    "text", ["", "x", "05.03/2024", "2024-3", "5.3.24", "05.03.2024 14", "\u0665.3.2024", "a\0b"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert np.isnat(dates.parse_usual([text, "05.03.2024"])).tolist() == [True, False]


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from([None, *STYLES[:15]]).flatmap(texts_in))
def test_the_formats_that_texts_fit_are_found(texts: list[str]) -> None:
    times = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
    usual = [day + time for time, day in product(times, dates.DAYS)]
    expected: list[str | None] = [form for form in usual if all(naive(text, form) for text in texts)]
    if all("-" in text and naive(text, None) for text in texts):
        expected.insert(0, None)
    expected += [
        day for day in dates.DAYS if all(any(naive(text, day + time) for time in times[:3]) for text in texts)
    ]
    assert list(dates.styles_of(texts)) == expected


@given(st.lists(st.tuples(st.integers(1, 31), st.integers(1, 31), st.sampled_from("/.-")), max_size=6))
def test_a_number_above_12_tells_which_is_the_month(parts: list[tuple[int, int, str]]) -> None:
    slashed = [(one, two) for one, two, between in parts if between == "/"]
    expected = None if slashed else False
    if any(one > 12 for one, _ in slashed):
        expected = False
    elif any(two > 12 for _, two in slashed):
        expected = True
    texts = [f"{one:02}{between}{two}{between}2024 7:15" for one, two, between in parts]
    assert dates.begins_with_month([*texts, "x", "2024/12/13"]) is expected


RULES: dict[str, Any] = {
    "csv": None,
    "countries": {"countries": ["region"]},
    "icd_10": {"icd_10": ["chapter"]},
    "us_states": {"us_states": ["region"]},
    "cuts": {"cuts": [10, 20], "decimal": ","},
    "dates": {"dates": ["month"], "format": "%d.%m.%Y"},
    "flat": "flat",
    "intervals": {"intervals": [5]},
    "order": {"order": ["low", "7", "2024-03-05"], "sizes": [2]},
    "prefix": {"prefix": [2]},
    "rare": {"rare": ["1%"]},
    "times": {"times": ["hour"]},
    "tree": {"tree": {"a": ["7", "8"]}},
}
TEXTS = ["7", "36,6", "36.6", "2024-03-05", "05.03.2024", "5/3/2024 14:15", "14:05", "low", "x", "20240305"]
READ = {
    "csv": {"number": ["7", "36.6", "20240305"]},
    "cuts": {"number": ["7", "36,6", "36.6", "20240305"]},
    "dates": {"day": ["2024-03-05", "05.03.2024"]},
    "flat": {"day": ["2024-03-05"], "number": ["7", "36.6", "20240305"]},
    "intervals": {"number": ["7", "36.6", "20240305"]},
    "order": {"place": ["7", "2024-03-05", "low"]},
    "prefix": {"number": ["7", "36.6", "20240305"]},
    "rare": {"number": ["7", "36.6", "20240305"]},
    "us_states": {"number": ["7", "36.6", "20240305"]},
    "icd_10": {"number": ["7", "36.6", "20240305"]},
    "countries": {"number": ["7", "36.6", "20240305"]},
    "times": {"minute": ["7", "14:05"]},
    "tree": {"number": ["7", "36.6", "20240305"]},
}


@pytest.mark.parametrize("keyword", sorted(BUILDERS))
def test_every_builder_tells_where_texts_of_others_lie(keyword: str) -> None:
    spec = RULES[keyword]
    rule = BUILDERS[keyword]() if spec is None else parse("x", spec)
    found = rule.positions_by_scale(TEXTS)
    assert {s: [t for t, p in zip(TEXTS, own, strict=True) if p == p] for s, own in found.items()} == READ[
        keyword
    ]
    if rule.scale is not None:  # its own values lie where it says
        assert list(found) == [rule.scale]
        known = ~np.isnan(rule.positions(TEXTS))
        np.testing.assert_array_equal(rule.positions(TEXTS)[known], found[rule.scale][known])
    written = rule.rewritten(TEXTS)
    lies = rule.positions_by_scale(list(written.values()))
    assert all(any(not np.isnan(own[n]) for own in lies.values()) for n in range(len(written)))


def test_what_is_written_otherwise_is_written_so_that_the_rule_reads_it() -> None:
    assert Flat().rewritten(["36,6", "5.3.2024", "20240305"]) == {"5.3.2024": "2024-03-05", "36,6": "36.6"}
    assert Flat().rewritten(["20240305", "20240306"])["20240305"] == "2024-03-05"
    assert parse("x", {"dates": ["day"]}).rewritten(["5.3.2024 14:15", "x"]) == {
        "5.3.2024 14:15": "2024-03-05 14:15:00"
    }
    assert parse("x", {"dates": ["day"], "format": "%m/%d/%Y"}).months_first() is True
    assert parse("x", {"dates": ["day"], "format": "%Y/%m/%d"}).months_first() is None
    assert [rule.fractions for rule in parse("x", {"intervals": [1]}).styles()] == [False, True]  # type: ignore[attr-defined]


def test_early_and_late_days_are_read() -> None:
    texts = ["0001-01-01", "9999-12-31", "1900-02-29", "2000-02-29"] * 4
    assert (
        dates.moments(texts).astype("datetime64[D]").tolist()
        == [date.min, date.max, None, date(2000, 2, 29)] * 4
    )


# Month names, weeks and two-digit years.

WEEKS = ["%G-W%V-%u", "%GW%V", "%G-W%V"]
SHORT = ["%d.%m.%y", "%m/%d/%y", "%d-%b-%y", "%d%b%y %H:%M", "%b-%y"]
NAMED = ["%d %b %Y", "%d-%B-%Y", "%d%b%Y", "%b %d, %Y", "%B %Y", "%d %B %Y %H:%M:%S", "%Y %b %d"]


@pytest.mark.parametrize("style", [*WEEKS, *SHORT, *NAMED])
@settings(max_examples=examples(60), deadline=None)
@given(
    when=st.lists(st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)), min_size=9, max_size=20),
    others=st.lists(st.text("0123456789JanuWw-. ", max_size=12), max_size=4),
)
def test_names_weeks_and_short_years_are_read_as_the_standard_library_does(
    style: str, when: list[datetime], others: list[str]
) -> None:
    texts = [moment.strftime(style) for moment in when]
    full, end = (style, "") if "%V" not in style or "%u" in style else (style + "-%u", "-1")
    expected = [naive(text.strip() + end, full) for text in texts]
    assert dates.moments(texts, style).tolist() == expected
    mixed = dates.moments([*texts, *others], style).tolist()
    assert mixed[: len(texts)] == expected
    alone = [dates.moments([text], style).tolist()[0] for text in others]
    assert mixed[len(texts) :] == alone


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("5. März 2024", "%d. %b %Y"),
        ("5 mars 2024", "%d %b %Y"),
        ("5 de marzo de 2024", "%d de %B de %Y"),
        ("5 marzo 2024", "%d %b %Y"),
        ("5 mrt. 2024", "%d %b %Y"),
        ("5 de março de 2024", "%d de %B de %Y"),
        ("Mar 5, 2024", "%b %d, %Y"),
    ],
)
def test_month_names_of_seven_languages_are_read_in_any_locale(text: str, style: str) -> None:
    assert dates.moments([text] * 9, style).astype("datetime64[D]").tolist() == [date(2024, 3, 5)] * 9
    assert parse("c", {"dates": ["month"], "format": style}).labels([text, "5 x 2024"]) == [
        ("2024-03",),
        None,
    ]


@settings(max_examples=examples(200), deadline=None)
@given(day=st.dates(date(1800, 1, 1), date(2300, 1, 1)), latest=st.dates(date(1950, 1, 1), date(2150, 1, 1)))
def test_a_two_digit_year_is_never_after_the_latest_day(day: date, latest: date) -> None:
    if (day.month, day.day) == (2, 29):
        day = day.replace(day=28)
    rule = parse("c", {"dates": ["day"], "format": "%d.%m.%y", "latest": str(latest)})
    ((label,),) = rule.labels([f"{day:%d.%m.}{day.year % 100:02}"])  # type: ignore[misc]
    read = date.fromisoformat(label)
    assert read <= latest
    assert (read.year - day.year) % 100 == 0
    assert (read.month, read.day) == (day.month, day.day)
    assert (latest - read).days < 36526


def test_a_two_digit_year_needs_the_latest_day() -> None:
    texts = ("05.03.61", "05.03.24")
    with pytest.raises(HierarchyError, match=r"two centuries. Give the 'latest' day"):
        parse("c", {"dates": ["year"], "format": "%d.%m.%y"}).bind(Domain("c", texts, texts))
    with pytest.raises(HierarchyError, match="latest must be a day such as 2025-01-31"):
        parse("c", {"dates": ["year"], "format": "%d.%m.%y", "latest": 2025})
    rule = parse("c", {"dates": ["five_years", "decade"], "format": "%d.%m.%y", "latest": "2025-12-31"})
    bound = rule.bind(Domain("c", texts, texts))
    assert bound.labels[1:3] == (("1960-1964", "2020-2024"), ("1960s", "2020s"))
    assert rule.positions(["05.03.61"]).tolist() == [date(1961, 3, 5).toordinal()]


def test_a_label_of_five_years_is_read_as_its_days() -> None:
    (span,) = [one for one in dates_in("2020-2024") if one.scale == "day"]
    assert (span.low, int(span.high)) == (date(2020, 1, 1).toordinal(), date(2024, 12, 31).toordinal())
    assert not [one for one in dates_in("2021-2025") if one.scale == "day"]


@settings(max_examples=examples(300))
@given(st.data())
def test_a_format_that_shapes_rule_out_reads_none_of_the_texts(data: st.DataObject) -> None:
    style = data.draw(st.sampled_from([*STYLES, "%d %b %Y", "%d de %b de %Y", "%d.%m.%y"]))
    other = data.draw(st.sampled_from([*STYLES, style, style]))
    written = WHEN.map(lambda when: when.strftime(other))
    texts = data.draw(st.lists(written.flatmap(odd), max_size=12))
    texts.append("x")
    reads = not np.isnat(dates.moments(texts, style)).all()
    assert dates.may_read(texts)(style) or not reads
