"""The hierarchy that is chosen for a column: it binds, nests, merges at every level, and is round."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from shoal.columns.evidence import unknown_codes
from shoal.columns.kinds import Kind
from shoal.columns.natural import natural_hierarchy, uncovered_note
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.workflow.inspect import inspect

TODAY = date(2026, 7, 1)
NUMBERS = (
    st.integers(-(10**6), 10**6).map(str)
    | st.integers(0, 30).map(str)
    | st.decimals(-1000, 1000, places=3).map(str)
    | st.sampled_from(["1e22", "-1e20", "0.000001", " 7", "8 ", "1e-7", "5.0", "-0"])
    | st.integers(0, 40).map(lambda n: str(2**n))
)
DATES = (
    st.dates(date(1900, 1, 1), date(2026, 1, 1)).map(str)
    | st.dates(date(1000, 1, 1), date(2300, 1, 1)).map(lambda day: f"{day:%d.%m.%Y}")
    | st.dates(date(1970, 1, 1), date(2026, 1, 1)).map(lambda day: f"{day:%d-%b-%y}")
)
PLACES = st.sampled_from(["CA", "NY", "TX", "DE", "Germany", "France", "Peru", "Ohio", "C50.1", "A00", "I10"])
UGLY = st.text(max_size=4) | st.sampled_from(
    ["other", "Other", "missing", "unknown", "*", "", " ", "a*", "12:30"]
)
COLUMNS = st.one_of(
    *(st.lists(values, min_size=1, max_size=40, unique=True) for values in (NUMBERS, DATES, PLACES, UGLY)),
    st.lists(NUMBERS | DATES | PLACES | UGLY, min_size=1, max_size=12, unique=True),
)
NAMES = st.sampled_from(["c", "age", "zip", "state", "country", "diagnosis", "type code", "born"])


def natural(
    values: list[Any], name: str = "c", kind: Kind = Kind.CATEGORY, unknown: tuple[str, ...] = ()
) -> tuple[str, Any, Hierarchy]:
    """Choose a hierarchy for a column and bind it to its values."""
    counts = Counter(map(str, values))
    known = [text for text in counts if text not in unknown]
    written, spec = natural_hierarchy(
        name, kind, known, [counts[text] for text in known], unknown, today=TODAY
    )
    texts = tuple(counts)
    records = np.array(list(counts.values()), np.int64)
    return written, spec, parse(name, spec).bind(Domain(name, texts, texts), records)


def sizes(hierarchy: Hierarchy) -> list[int]:
    return [len(labels) for labels in hierarchy.labels]


@settings(max_examples=examples(400), deadline=None)
@given(texts=COLUMNS, name=NAMES, data=st.data())
def test_what_is_chosen_binds_and_merges(texts: list[str], name: str, data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 50), min_size=len(texts), max_size=len(texts)))
    kind = data.draw(st.sampled_from([Kind.CATEGORY, Kind.AGE, Kind.MEASUREMENT, Kind.DATE]))
    codes = data.draw(st.sampled_from([(), ("99",), ("unknown", "U"), ("-1",)]))
    known = [(text, count) for text, count in zip(texts, counts, strict=True) if text not in codes]
    column = [text for text, _ in known], [count for _, count in known]
    written, spec = natural_hierarchy(name, kind, *column, codes, today=TODAY)
    assert (written, spec) == natural_hierarchy(name, kind, *column, codes, today=TODAY)
    every = (*column[0], *codes, None)
    records = np.array([*column[1], *(1 for _ in codes), 3], np.int64)
    bound = parse(name, spec).bind(Domain(name, every, every), records)
    groups = [len(set(bound.groups(level)[: len(known)].tolist())) for level in range(bound.height + 1)]
    if "prefix" not in spec or name != "zip":
        idle = [low for low, high in pairwise(groups[1:]) if low <= high]
        assert not idle or groups[1] == 1 or spec["dates"] == ["month", "quarter", "year"]
    for level in range(1, bound.height + 1):
        below, here = bound.groups(level - 1), bound.groups(level)
        assert all(len(set(here[below == group].tolist())) == 1 for group in np.unique(below))
    assert len(bound.labels[-1]) == 1
    assert written in ("number", "date", "time", "code", "category", "empty")


def test_nothing_but_nulls_and_codes_is_empty() -> None:
    assert natural_hierarchy("c", Kind.EMPTY, [], [], ["99"]) == ("empty", "flat")


@pytest.mark.parametrize(
    ("values", "widths"),
    [
        (range(18, 91), [5, 10, 20, 40]),
        (range(1, 11), [2, 4]),
        (range(0, 17), [2, 4, 8]),
        (range(0, 1000, 7), [25, 50, 100, 200, 400]),
        ([n / 100 for n in range(460, 860, 3)], [0.05, 0.1, 0.2, 0.4, 0.8, 1.6]),
    ],
)
def test_numbers_get_round_bands_each_twice_as_wide(values: Any, widths: list[float]) -> None:
    written, spec, bound = natural(list(values))
    assert (written, spec["intervals"]) == ("number", widths)
    assert sizes(bound) == sorted(set(sizes(bound)), reverse=True)


def test_bands_start_where_the_values_start() -> None:
    _, spec, bound = natural([year for year in range(1984, 1990) for _ in range(5)])
    assert (spec, sizes(bound)) == ({"intervals": [2, 4]}, [6, 3, 2, 1])
    assert natural(list(range(1, 11)))[1]["origin"] == 1


def test_ages_get_five_ten_and_twenty_years() -> None:
    draw = random.Random(1)
    ages = [draw.randint(18, 95) for _ in range(500)]
    assert natural(ages, "age")[1] == {"intervals": [5, 10, 20], "split": [[40, 60, 80], [40, 60], [60]]}
    assert natural(ages, "x", Kind.AGE)[1] == natural(ages, "age")[1]
    assert natural([age / 10 for age in ages], "age")[1]["intervals"][0] < 1  # decades of years


@pytest.mark.parametrize("name", ["agew", "ageh", "age_h", "age76", "mage", "fage"])
def test_the_age_of_one_of_several_people_gets_the_bands_of_ages(name: str) -> None:
    ages = [str(age) for age in range(18, 80)]
    assert natural_hierarchy(name, Kind.COUNT, ages, [3] * len(ages)) == natural_hierarchy(
        "age", Kind.AGE, ages, [3] * len(ages)
    )


def test_ages_that_lie_close_together_keep_their_narrow_bands() -> None:
    draw = random.Random(1)
    mothers = [min(45, max(14, round(draw.gauss(24, 5)))) for _ in range(300)]
    assert natural(mothers, "age")[1] == {"intervals": [5, 10], "split": 30}


def test_the_smallest_group_joins_its_smaller_neighbour() -> None:
    ages = [17] * 2 + [21, 25, 29, 33, 37] * 60 + [41, 45, 49, 53, 57] * 30 + [61, 65, 79] * 10 + [81, 90] * 4
    _, spec, bound = natural(ages, "age")
    assert spec == {"intervals": [5, 10, 20], "split": [[40, 60, 80], [40, 60], [40]]}
    assert sizes(bound)[-4:] == [4, 3, 2, 1]


def test_skewed_numbers_get_bands_of_about_as_many_records() -> None:
    draw = random.Random(1)
    amounts = [int(draw.lognormvariate(6, 1.5)) for _ in range(4000)]
    _, spec, bound = natural(amounts)
    finest = spec["cuts"][0]
    assert all(len(str(point).rstrip("0")) <= 2 for point in finest)  # round
    assert all(set(high) < set(low) for low, high in zip(spec["cuts"], spec["cuts"][1:], strict=False))
    counts = Counter(map(str, amounts))
    for level in range(1, bound.height):
        shares = np.bincount(bound.groups(level), list(counts.values())) / len(amounts)
        assert shares.max() < max(0.6, 3 / len(shares))
    visits = [0] * 500 + [int(draw.expovariate(0.4)) for _ in range(500)]
    cuts = natural(visits)[1]["cuts"]
    assert cuts[0][:3] == [0, 1, 2]
    assert len(cuts[-1]) >= 2


def test_the_last_level_has_two_groups_of_some_size() -> None:
    draw = random.Random(2)
    for values in (
        [draw.gauss(50, 5) for _ in range(500)],
        [draw.randint(0, 100) for _ in range(500)],
        [max(0, int(draw.gauss(-2, 3))) for _ in range(500)],
        [draw.choice([1, 1, 1, 1, 1, 2, 3, 9]) for _ in range(500)],
        [str(date(2020, 1, 1) + timedelta(draw.randint(0, 900))) for _ in range(500)],
    ):
        _, _, bound = natural(values)
        counts = list(Counter(map(str, values)).values())
        top = max(counts) / 500
        last = np.bincount(bound.groups(bound.height - 1), counts) / 500
        assert len(last) >= 2
        assert last.max() <= max(0.85, (1 + top) / 2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["yes", "no"] * 50, "flat"),
        ([0, 1] * 50, "flat"),
        (["a"] * 50 + ["b"] * 30 + ["c"] * 20, "flat"),
        ([1, 2, 3] * 50, "flat"),
        (
            ["a"] * 500 + ["b"] * 300 + ["c"] * 15 + ["d"] * 12 + ["e"] * 3 + ["f"] * 2,
            {"rare": ["0.5%", "2%"]},
        ),
        (["a"] * 90 + ["other"] * 60 + ["c", "d", "e"], {"rare": ["1%"], "label": "other values"}),
    ],
)
def test_categories_are_flat_or_merge_what_is_rare(values: list[Any], expected: Any) -> None:
    assert natural(values)[1] == expected


def test_numbers_that_are_named_as_codes_are_categories() -> None:
    draw = random.Random(3)
    codes = [draw.choice([11, 12, 21, 22] * 9 + [31, 32, 41]) for _ in range(1000)]
    assert natural(codes, "occupation_code")[:2] == ("category", {"rare": ["5%"]})
    assert natural(codes, "OccupationCode")[0] == "category"
    assert natural(codes, "stay")[0] == "number"


@pytest.mark.parametrize("name", ["marital", "race", "ind_code", "policePrecinct", "religion", "Beruf"])
@pytest.mark.parametrize("ending", ["", ".0"])
def test_numbers_of_groups_without_an_order_are_categories(name: str, ending: str) -> None:
    codes = [f"{code}{ending}" for code in [1] * 50 + [2] * 30 + [3] * 9 + [4] * 2 + [5] + [6] * 8]
    assert natural(codes, name)[:2] == ("category", {"rare": ["5%", "10%"]})
    assert natural(codes, "satisfaction")[0] == "number"


def test_shares_from_an_eighth_to_a_sixth_can_be_merged() -> None:
    assert natural(["a"] * 46 + ["b"] * 37 + ["c"] * 11 + ["d"] * 6)[1] == {"rare": ["15%"]}


@pytest.mark.parametrize(("code", "refused"), [("99", "98"), ("999", "997"), ("9999", "9998")])
def test_codes_just_below_that_for_unknown_are_unknown_too(code: str, refused: str) -> None:
    values = [str(n) for n in range(20)]
    assert unknown_codes([*values, refused, code]) == [refused, code]
    assert unknown_codes([*values, refused]) == []
    assert unknown_codes([str(n) for n in range(int(code) + 1)]) == []


def test_many_values_that_are_all_rare_go_by_their_first_letters() -> None:
    draw = random.Random(4)
    towns = ["".join(draw.choices("abcdefgh", k=7)) for _ in range(300)]
    written, spec, bound = natural(towns * 2)
    assert (written, list(spec)) == ("category", ["prefix"])
    assert sizes(bound)[-2] == 8


@pytest.mark.parametrize(
    ("form", "style"),
    [
        ("%Y-%m-%d", None),
        ("%Y-%m-%d %H:%M:%S", None),
        ("%d.%m.%Y", "%d.%m.%Y"),
        ("%m/%d/%Y", "%m/%d/%Y"),
        ("%Y%m%d", "%Y%m%d"),
        ("%Y/%m/%d", "%Y/%m/%d"),
        ("%d-%m-%Y", "%d-%m-%Y"),
        ("%d %B %Y", "%d %b %Y"),
        ("%d-%b-%Y", "%d-%b-%Y"),
        ("%d%b%Y", "%d%b%Y"),
        ("%b %d, %Y", "%b %d, %Y"),
        ("%d/%m/%y", "%d/%m/%y"),
        ("%d-%b-%y", "%d-%b-%y"),
        ("%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M"),
        ("%Y-%m", "%Y-%m"),
        ("%Y%m", "%Y%m"),
        ("%m/%Y", "%m/%Y"),
        ("%B %Y", "%b %Y"),
        ("%G-W%V", "%G-W%V"),
        ("%GW%V", "%GW%V"),
        ("%G-W%V-%u", "%G-W%V-%u"),
        ("W%V/%G", "W%V/%G"),
        ("W%V %G", "W%V %G"),
        ("%m/%y", "%m/%y"),
        ("%A, %d %B %Y", "%A, %d %b %Y"),
        ("%A, %B %d, %Y", "%A, %b %d, %Y"),
        ("%a %d.%m.%Y", "%A %d.%m.%Y"),
    ],
)
def test_common_formats_of_dates_are_recognized(form: str, style: str | None) -> None:
    days = [datetime(2001, 1, 1, 9, 30) + timedelta(days=5 * n) for n in range(1500)]
    written, spec, bound = natural([day.strftime(form) for day in days])
    # A format whose spaces are optional reads what another writes without them.
    assert (written, (spec.get("format") or "").replace(" ", "")) == ("date", (style or "").replace(" ", ""))
    assert spec["dates"][-3:] == ["year", "five_years", "decade"]
    assert {label[:3] for label in bound.labels[-2]} == {"200", "201", "202"}
    assert (spec.get("latest") is not None) == ("%y" in form)
    assert sizes(bound) == sorted(set(sizes(bound)), reverse=True)


@pytest.mark.parametrize("form", ["{y}-Q{q}", "{y}Q{q}", "{y} Q{q}", "Q{q} {y}", "Q{q}/{y}", "{y}:{q}"])
def test_quarters_are_dates_with_years(form: str) -> None:
    texts = [form.format(y=2001 + n // 4, q=n % 4 + 1) for n in range(40)]
    written, spec, bound = natural(texts * 5)
    assert (written, spec["dates"]) == ("date", ["half_year", "year", "five_years"])
    assert bound.labels[1][bound.groups(1)[6]] == "2002-H2"


def test_weeks_in_six_digits_are_dates_if_the_name_says_so() -> None:
    weeks = [f"{date(2015, 1, 5) + timedelta(days=7 * n):%G%V}" for n in range(300)]
    assert natural(weeks, "iso_week")[1]["format"] == "%G%V"
    assert natural(weeks, "amount")[0] == "number"


def test_marks_out_of_ten_are_no_months() -> None:
    assert natural([f"{n % 10 + 1:02}/10" for n in range(300)])[0] == "category"


def test_days_with_an_ordinal_are_dates() -> None:
    endings = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
    days = [date(2015, 1, 1) + timedelta(days=5 * n) for n in range(400)]
    texts = [f"{day:%B} {day.day}{endings.get(day.day, 'th')}, {day.year}" for day in days]
    written, spec, bound = natural(texts)
    assert (written, spec["format"]) == ("date", "%b %d, %Y")
    assert bound.positions is not None
    assert bound.positions.tolist() == [day.toordinal() for day in days]


def test_dates_of_a_whole_century_end_in_two_groups() -> None:
    births = [str(date(1940, 1, 1) + timedelta(days=211 * n)) for n in range(150)]
    _, spec, bound = natural(births, "birth_date")
    assert spec["dates"][-3:] == ["decade", "twenty_years", "century"]
    assert set(bound.labels[-2]) == {"1900-1999", "2000-2099"}
    assert "1960-1979" in bound.labels[-3]


@pytest.mark.parametrize("form", ["%I:%M %p", "%I:%M%p", "%I:%M:%S %p"])
def test_times_of_twelve_hours_are_times(form: str) -> None:
    times = [datetime(2001, 1, 1) + timedelta(minutes=7 * n) for n in range(200)]
    written, spec, bound = natural([time.strftime(form).lower() for time in times])
    assert (written, spec["times"][-2:]) == ("time", ["part_of_day", "half_day"])
    afternoon = [
        label == "after noon" for label in np.array(bound.labels[-2])[bound.groups(bound.height - 1)]
    ]
    assert afternoon == [time.hour >= 12 for time in times]


def test_two_digit_years_are_never_in_the_future() -> None:
    texts = [f"{n % 28 + 1:02}.{n % 12 + 1:02}.{n % 100:02}" for n in range(600)]
    _, spec, bound = natural(texts)
    assert spec["latest"] == "2026-07-01"
    day = bound.positions
    assert day is not None
    assert day.max() < TODAY.toordinal() + 1
    assert day.min() > date(1926, 6, 30).toordinal()


def test_the_majority_decides_and_other_cells_become_unknown() -> None:
    days = [f"{n % 28 + 1:02}/{n % 12 + 1:02}/2024" for n in range(300)]
    written, spec, bound = natural([*days, "12/31/2024", "soon", "soon", "2024"])
    assert (written, spec["format"], spec["uncovered"]) == ("date", "%d/%m/%Y", "unknown")
    assert bound.labels[-2].count("unknown") == 1
    counts = Counter([*days, "12/31/2024", "soon", "soon", "2024"])
    note = uncovered_note("day", spec, list(counts), list(counts.values())) or ""
    assert "4 cells are not dates of this format" in note
    assert "soon" not in note
    assert natural([*days[:100], *(f"x{n}" for n in range(150))])[0] != "date"


def test_the_note_on_cells_that_are_no_dates_is_shown_with_the_guess() -> None:
    days = [f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}" for n in range(200)]
    found = inspect(pa.table({"seen": [*days, "soon", "n.d.", "n.d."]}))
    (note,) = [note for note in found.notes if "not dates" in note]
    assert note.startswith("Column 'seen' holds ISO dates such as 2025-01-31. 3 cells are not dates")


@pytest.mark.parametrize(
    ("name", "values", "keyword"),
    [
        ("state", ["CA", "NY", "TX", "WA", "GA"], "us_states"),
        ("x", ["California", "Oregon", "Ohio", "New York"], "us_states"),
        ("country", ["CA", "DE", "IN", "CO", "GA"], "countries"),
        ("x", ["Germany", "France", "Peru", "Japan"], "countries"),
        ("diagnosis", ["C50.1", "C50.9", "C61", "E11.2", "I10", "I21"], "icd_10"),
    ],
)
def test_values_of_a_classification_are_grouped_by_it(name: str, values: list[str], keyword: str) -> None:
    assert keyword in natural(values * 9, name)[1]
    assert keyword not in natural([*values * 9, "Atlantis"], name)[1]
    assert natural([*values * 9, "99"], name, unknown=("99",))[1]["unknown"] == ["99"]


def test_countries_keep_their_regions_beside_a_few_that_no_longer_exist() -> None:
    names = ["Germany", "France", "Peru", "Japan", "St. Lucia", "Antigua & Barbuda", "Germany, East", "Kenya"]
    names += ["Micronesia, Federated States of", "Ghana", "Chile", "Spain", "Italy", "Egypt", "Chad", "Mali"]
    spec = natural([*names * 9, "Czechoslovakia"], "country")[1]
    assert spec == {"countries": ["subregion", "region"], "uncovered": "unknown"}
    note = uncovered_note("country", spec, [*names, "Czechoslovakia"], [1] * 17)
    assert note is not None
    assert "1 cell whose text is not a country of today" in note
    assert "countries" not in natural([*names * 9, *(f"Atlantis {n}" for n in range(4))], "country")[1]
    assert "countries" not in natural([*names * 9, "Czechoslovakia"], "label")[1]


@pytest.mark.parametrize("name", ["ctryname", "cntry", "home ctry", "label"])
def test_many_names_of_countries_need_no_name_that_says_so(name: str) -> None:
    names = [
        "Germany",
        "France",
        "Peru",
        "Japan",
        "Kenya",
        "Ghana",
        "Chile",
        "Spain",
        "Italy",
        "Egypt",
        "Chad",
    ]
    names += [
        "Mali",
        "India",
        "Canada",
        "Brazil",
        "Cuba",
        "Norway",
        "Poland",
        "Greece",
        "Turkey",
        "Yugoslavia",
    ]
    spec = natural(names * 9, name)[1]
    assert spec == {"countries": ["subregion", "region"], "uncovered": "unknown"}
    made_up = [*names, "Atlantis", "Utopia"]  # more than a tenth is unknown
    assert "countries" not in natural(made_up * 9, name)[1]


def test_few_letters_are_not_taken_for_countries() -> None:
    assert "countries" not in natural(["NO", "SI"] * 9, "smoker")[1]
    assert "countries" not in natural(["IN", "NO", "AT", "IS"] * 9, "x")[1]


def test_a_hundred_thousand_values_take_less_than_a_second() -> None:
    import time

    size = 100_000
    start = datetime(1950, 1, 1)
    columns = [
        [str(n) for n in range(size)],
        [str(n**3 / 7) for n in range(size)],
        [(start + timedelta(hours=n)).isoformat() for n in range(size)],
        [f"{n * 7919 % 999983:06x} t" for n in range(size)],
    ]
    for texts in columns:
        seconds = []
        for _ in range(2):
            begun = time.process_time()
            natural_hierarchy("c", Kind.CATEGORY, texts, [1] * size)
            seconds.append(time.process_time() - begun)
        assert min(seconds) < 2  # one second on a machine that does nothing else
