"""Values in other forms: dates that hierarchies do not parse, and numbers with another unit or origin.

A date may have a month name or a two-digit year, be part of a text, or be a day number. An age may be in
months, or follow from a date of birth, so dates are also read as numbers. If each record has its own number,
the rank of the number may reveal a value, for example if records were numbered by date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from math import inf

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.hierarchy.builder import decimal_of, number_of
from shoal.core.hierarchy.dates import MONTH_NUMBERS
from shoal.core.hierarchy.hierarchy import Hierarchy

_FORMATS = (
    "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d%b%Y",
    "%Y %b %d", "%d.%m.%y", "%d-%b-%y", "%Y-%j", "%Y%j", "%G-W%V-%u",
)  # fmt: skip
_SHORT = ("%d/%m/%y", "%m/%d/%y")  # only the format that fits more texts is used
_DIGIT = re.compile(r"\d")  # a text without a digit fits none of the formats
_INSIDE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_MONTH_NAME = re.compile(  # 26. Dezember 2016, 26 de dezembro de 2016, Dec. 26th, 2016
    r"(?<!\d)(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.|º)?[\s-]*(?:de |di |of )?(?P<month>[^\W\d_]{3,})\.?,?[\s-]*"
    r"(?:de )?(?P<year>\d{4}|\d\d)(?!\d)"
    r"|(?P<month_first>[^\W\d_]{3,})\.? (?P<day_second>\d{1,2})(?:st|nd|rd|th)?,? (?P<year_last>\d{4})(?!\d)"
)
_EUROPEAN = re.compile(r"(?<!\d)(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?!\d)")  # 26.12.2016, or 12/26/2016
_MONTHS = (  # without a day: read as the first of the month
    re.compile(r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<month>\d{1,2})[-/.](?P<year>\d{4})(?!\d)"),
)
_COUNTED = (
    (re.compile(r"\d{8,10}(\.\d+)?"), 1.0, datetime(1970, 1, 1)),  # seconds
    (re.compile(r"\d{11,13}"), 1e-3, datetime(1970, 1, 1)),
    (re.compile(r"\d{5}(\.\d+)?"), 86400.0, datetime(1899, 12, 30)),  # days, as spreadsheets count them
)

# Dates without separators, at the beginning of a key or inside it: 201503120417, A-150312-0001.
_COMPACT = tuple(
    (re.compile(pattern), order)
    for pattern, order in (
        (r"(?<!\d)((?:19|20)\d\d)(\d\d)(\d\d)", (0, 1, 2)),
        (r"(?<!\d)(\d\d)(\d\d)((?:19|20)\d\d)(?!\d)", (2, 1, 0)),
        (r"(?<!\d)(\d\d)(\d\d)(\d\d)", (0, 1, 2)),
        (r"(?<!\d)(\d\d)(\d\d)(\d\d)", (2, 1, 0)),
        (r"(?<!\d)(\d\d)(\d\d)(\d\d)", (2, 0, 1)),
    )
)
_MOST_FIT = 0.9  # minimum share of texts that must fit a style of digits
Compact = tuple[re.Pattern[str], tuple[int, int, int]]


def as_iso_dates(texts: Sequence[str], days: FloatArray | None = None) -> dict[str, str]:
    """Return the ISO date of each text that contains a date or is a serial number of days or seconds.

    If digits fit several styles, the style with the most dates within the range of `days` is used.

    >>> as_iso_dates(["15-Jan-2010", "hired 2010-01-15", "40193", "x", "le 3 août 2011"])
    {'15-Jan-2010': '2010-01-15', 'hired 2010-01-15': '2010-01-15', '40193': '2010-01-15', \
'le 3 août 2011': '2011-08-03'}
    """
    formats = (*_FORMATS, max(_SHORT, key=lambda style: sum(_fits(text, style) for text in texts[:1000])))
    compact = _compact_style(texts[:1000], days)
    months_first = _months_first(texts[:1000])
    dates = {}
    for text in dict.fromkeys(texts):
        moment = (
            _compact_date(text, compact)
            if compact
            else _read(text.strip(), formats, months_first=months_first)
        )
        if moment is not None and 1800 <= moment.year <= 2200:
            dates[text] = moment.date().isoformat()
    return dates


def _compact_style(texts: Sequence[str], days: FloatArray | None) -> Compact | None:
    """Return the style of digit-only dates that fits best; None if no style fits enough texts."""
    least, greatest = (
        (-inf, inf) if days is None or np.isnan(days).all() else (np.nanmin(days), np.nanmax(days))
    )

    def fit(style: Compact) -> tuple[int, int]:
        dates = [moment for text in texts if (moment := _compact_date(text, style)) is not None]
        return len(dates), sum(least <= moment.toordinal() <= greatest for moment in dates)

    fits = {style: fit(style) for style in _COMPACT}
    likely = [style for style in _COMPACT if fits[style][0] >= _MOST_FIT * len(texts)]
    return max(likely, key=lambda style: fits[style][::-1]) if texts and likely else None


def _months_first(texts: Sequence[str]) -> bool:
    """Return whether dates such as 12/26/2016 inside texts begin with the month; False if unclear."""
    dates = [match for text in texts if (match := _EUROPEAN.search(text))]
    first, second = (max((int(match[part]) for match in dates), default=0) for part in (1, 3))
    return first <= 12 < second


def _compact_date(text: str, style: Compact) -> datetime | None:
    pattern, (year_at, month_at, day_at) = style
    if (match := pattern.search(text)) is None:
        return None
    parts = [int(part) for part in match.groups()]
    return _date(_in_century(parts[year_at]), parts[month_at], parts[day_at])


def _fits(text: str, style: str) -> bool:
    if not _DIGIT.search(text):
        return False
    with suppress(ValueError):
        return bool(datetime.strptime(text.strip(), style))
    return False


def _read(text: str, formats: Sequence[str], *, months_first: bool) -> datetime | None:
    if not _DIGIT.search(text):
        return None
    if match := _INSIDE.search(text):
        with suppress(ValueError):
            year, month, day = map(int, match.groups())
            return datetime(year, month, day)
    for pattern, unit, start in _COUNTED:
        if pattern.fullmatch(text):
            return start + timedelta(seconds=float(text) * unit)
    for style in formats:
        with suppress(ValueError):
            return datetime.strptime(text, style)
    return _date_inside(text, months_first=months_first)


def _date_inside(text: str, *, months_first: bool) -> datetime | None:
    """Return the date in a longer text; if the text names only a month, return its first day."""
    if match := _MONTH_NAME.search(text):
        day, name, year = (
            match[word] or match[other]
            for word, other in (("day", "day_second"), ("month", "month_first"), ("year", "year_last"))
        )
        month = MONTH_NUMBERS.get(name.casefold(), 0)
        if date_of_name := _date(_in_century(int(year)), month, int(day)):
            return date_of_name
    if match := _EUROPEAN.search(text):
        first, second = int(match[1]), int(match[3])
        month, number = (first, second) if months_first else (second, first)
        return _date(int(match[4]), month, number)
    for pattern in _MONTHS:
        if (match := pattern.search(text)) and (start := _date(int(match["year"]), int(match["month"]), 1)):
            return start
    return None


def _date(year: int, month: int, day: int) -> datetime | None:
    with suppress(ValueError):
        return datetime(year, month, day)
    return None


def _in_century(year: int) -> int:
    """Return a four-digit year; a two-digit year is assumed not to be in the future."""
    if year >= 100:
        return year
    return year + (2000 if year <= date.today().year - 2000 else 1900)


_FIRST = 1000  # number of values from which the decimal sign is inferred
_OWN = 0.9  # minimum share of records with a number, for matching by rank
_FEWEST = 10  # minimum number of values of the column, for matching numbers to them
_LEAST = 20  # minimum number of distinct numbers, for fitting a line
_STRAIGHT = 0.98  # minimum squared correlation of the quantiles
_ALIKE = 0.05  # maximum relative difference between a slope and that of a common unit
_MONTH, _YEAR = 30.436875, 365.2425
_UNITS = [1.0, 7.0, _MONTH, _YEAR, 12.0, _YEAR / 7, 10.0, 60.0, 1440.0, 2.54, 0.45359237]
_SLOPES = np.array([sign * slope for unit in _UNITS for slope in (unit, 1 / unit) for sign in (1, -1)])
_TRIED = 5000  # maximum number of numbers that are used to find an offset
_WINDOW = 0.03  # share of the range of positions within which the offset is searched for
_MOST_SHIFTS = 400
_SHARES = np.linspace(0.05, 0.95, 19)


def scaled_groups(
    hierarchy: Hierarchy,
    records: IntArray,
    numbers: FloatArray,  # (texts,), nan if a text is not a number
    levels: Sequence[int],
    *,
    rising: bool,
    by_rank: bool,
) -> dict[int, IntArray]:
    """Read numbers as values in another unit, and return for each level the group of each number, or -1.

    The unit is found from the quantiles of numbers and values. With `by_rank`, a number is read as the value
    of the same rank instead. Both are guesses: the caller must count the records for which they are right.
    """
    no_group = np.full(len(numbers), -1, np.int64)
    positions = hierarchy.positions
    if positions is None:
        return dict.fromkeys(levels, no_group)
    known = np.flatnonzero(~np.isnan(positions) & (records > 0))
    order = known[np.argsort(positions[known], kind="stable")]
    if len(order) < _FEWEST:
        return dict.fromkeys(levels, no_group)
    follow = _by_rank if by_rank else _on_line
    guessed = follow(numbers, positions[order], records[order], rising=rising)
    if guessed is None:
        return dict.fromkeys(levels, no_group)
    values = order[_nearest(positions[order], guessed)]
    return {level: np.where(np.isnan(guessed), -1, hierarchy.groups(level)[values]) for level in levels}


def _by_rank(
    numbers: FloatArray, positions: FloatArray, records: IntArray, *, rising: bool
) -> FloatArray | None:
    """Map each number to the position of the same rank; None if too few records have unique numbers."""
    is_number = ~np.isnan(numbers)
    count = int(is_number.sum())
    if not _OWN * records.sum() <= count <= records.sum():
        return None
    ranks = np.argsort(np.argsort(numbers[is_number] if rising else -numbers[is_number], kind="stable"))
    guessed = np.full(len(numbers), np.nan)
    ends = np.cumsum(records) / records.sum()
    guessed[is_number] = positions[np.searchsorted(ends, (ranks + 0.5) / count)]
    return guessed


def enough_numbers(numbers: FloatArray) -> bool:
    """Return whether at least half of the texts are numbers, and enough of them differ to fit a line."""
    known = numbers[np.isfinite(numbers)]
    return 2 * len(known) >= len(numbers) and len(np.unique(known)) >= _LEAST


def numbers_of_texts(texts: Sequence[str]) -> FloatArray | None:
    """Convert texts to numbers, nan for other texts; None if too few texts are numbers."""
    decimal = decimal_of(list(texts[:_FIRST]))
    if decimal is None:
        return None
    read = [number_of(text, decimal) for text in texts]
    numbers = np.array([np.nan if number is None else float(number) for number in read])
    return numbers if enough_numbers(numbers) else None


def _on_line(
    numbers: FloatArray, positions: FloatArray, records: IntArray, *, rising: bool
) -> FloatArray | None:
    """Map each number to a position by a line through the quantiles; None if they do not lie on a line."""
    share = (np.cumsum(records) - records / 2) / records.sum()
    targets = np.interp(_SHARES, share, positions)
    quantiles = np.nanquantile(numbers, _SHARES if rising else 1 - _SHARES)
    if not quantiles.var() > 0:
        return None
    slope = _usual_slope(float(np.cov(quantiles, targets)[0, 1] / quantiles.var(ddof=1)))
    start = float(np.median(targets - slope * quantiles))
    if ((slope * quantiles + start - targets) ** 2).mean() >= (1 - _STRAIGHT) * targets.var():
        return None
    guessed: FloatArray = slope * numbers + start
    if (positions == np.floor(positions)).all():
        guessed = np.floor(guessed + _best_shift(guessed, positions, records, abs(slope)) + 1e-9)
    return guessed


def _best_shift(guessed: FloatArray, positions: FloatArray, records: IntArray, step: float) -> float:
    """Return the shift for which the rounded-down guesses have the distribution closest to the positions.

    `step` is the distance between guesses whose numbers differ by one.
    """
    sample = guessed[~np.isnan(guessed)]
    sample = sample[:: max(1, len(sample) // _TRIED)]
    window = max(2.0, _WINDOW * float(positions[-1] - positions[0]))
    step = max(min(step, 1.0), window / _MOST_SHIFTS)
    values = np.unique(positions)
    shares = np.bincount(np.searchsorted(values, positions), records / records.sum()).astype(np.float64)
    # Rounding changes at whole numbers, so the shifts are aligned with them.
    shifts = np.arange(-window, window, step) - float(sample[0]) % step
    overlaps = [_overlap(np.floor(sample + shift + 1e-9), values, shares) for shift in shifts]
    return float(shifts[int(np.argmax(overlaps))])


def _overlap(numbers: FloatArray, positions: FloatArray, shares: FloatArray) -> float:
    """Return the overlap of the distribution of the numbers with the shares of the ascending positions."""
    index = np.minimum(np.searchsorted(positions, numbers), len(positions) - 1)
    counts = np.bincount(index[positions[index] == numbers], minlength=len(positions))
    return float(np.minimum(counts / len(numbers), shares).sum())


def _usual_slope(slope: float) -> float:
    """Replace a slope by the nearest conversion factor between common units if it is close."""
    nearest = float(_SLOPES[np.abs(_SLOPES - slope).argmin()])
    return nearest if abs(nearest - slope) <= _ALIKE * abs(slope) else slope


def _nearest(positions: FloatArray, numbers: FloatArray) -> IntArray:
    """Return for each number the index of the nearest position; positions are ascending."""
    after = np.clip(np.searchsorted(positions, np.nan_to_num(numbers)), 1, max(1, len(positions) - 1))
    after = np.minimum(after, len(positions) - 1)
    before = np.maximum(after - 1, 0)
    nearer = numbers - positions[before] <= positions[after] - numbers
    indices: IntArray = np.where(nearer, before, after)
    return indices
