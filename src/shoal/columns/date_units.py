"""The format of most dates in a column, and the calendar units that merge some of these dates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product

import numpy as np

from shoal.columns.values import MOST
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.hierarchy.dates import AFTER_DAYS, Moments, day_or_time, may_read, moments, not_after

MAJORITY = 0.5  # a column contains dates if more than this share of the records has a date
_YEARS = (1000, 2400)  # a date with a year outside this range does not count
_TRIED = 40  # the number of values that a format is tested on first

_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",
    "%d %b %Y", "%d-%b-%Y", "%d. %b %Y", "%d%b%Y", "%d de %b de %Y", "%b %d, %Y", "%b %d %Y", "%Y %b %d",
    "%Y-%b-%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%d %b %y", "%d-%b-%y", "%d%b%y",
    "%G-W%V-%u", "%GW%V%u", "%A, %d %b %Y", "%A, %d. %b %Y", "%A, %b %d, %Y", "%A %d.%m.%Y", "%A, %d.%m.%Y",
    "%A %d/%m/%Y", "%A %m/%d/%Y", "%A, %d de %b de %Y",
)  # fmt: skip
_LONGER = (
    "%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%b %Y", "%b-%Y", "%b%Y", "%b de %Y", "%Y %b", "%Y-%b", "%b-%y",
    "%b %y", "%Y%m", "%G-W%V", "%GW%V", "%G W%V", "W%V/%G", "W%V-%G", "W%V %G", "%G%V",
    "%Y-Q%q", "%YQ%q", "%Y Q%q", "Q%q %Y", "Q%q/%Y", "Q%q-%Y", "%Y:%q", "%m/%y",
)  # fmt: skip
_ISO = "-"
_USUAL = ("month", "quarter", "year")
_LENGTHS = {"%Y%m%d": 8, "%Y%m": 6, "%GW%V%u": 8, "%G%V": 6, "%m/%y": 5}
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M", "T%H:%M:%S")


@dataclass(frozen=True)
class DateFormat:
    """A date format, and the texts of a column parsed with it."""

    style: str | None  # None: ISO dates
    moments: Moments
    latest: date | None  # the latest date that a two-digit year may mean

    @property
    def read(self) -> BoolArray:
        """Whether each text is a date in this format."""
        return ~np.isnat(self.moments)


def date_format(texts: Sequence[str], records: FloatArray, today: date | None = None) -> DateFormat | None:
    """Return the date format that fits more than half of the records, or None.

    >>> dated = date_format(["05.03.2024", "06.03.2024", "soon"], np.array([5.0, 5.0, 2.0]))
    >>> dated.style, dated.read.tolist()
    ('%d.%m.%Y', [True, True, False])
    """
    step = max(1, len(texts) // MOST)
    sampled, weights = texts[::step], records[::step]
    first = range(0, len(sampled), max(1, len(sampled) // _TRIED))
    if sum(_may_be(sampled[index]) for index in first) < MAJORITY * len(first):
        return None
    sample = [sampled[index] for index in first]
    best_style, share = "", MAJORITY * float(weights.sum())
    may = may_read(sample)
    for style, read in _formats():
        times = AFTER_DAYS if read is day_or_time else ("",)
        if not any(may(None if style == _ISO else style + time) for time in times):
            continue
        if (~np.isnat(_read(sample, style, read))).any():
            records_read = float(weights[~np.isnat(_read(sampled, style, read))].sum())
            best_style, share = (style, records_read) if records_read > share else (best_style, share)
    if best_style == "":
        return None
    dated = _read(texts, best_style, day_or_time)
    latest = (today or date.today()) if "%y" in best_style else None
    dated = not_after(dated, latest) if latest else dated
    return DateFormat(None if best_style == _ISO else best_style, dated, latest)


def _formats() -> Iterator[tuple[str, Callable[..., Moments]]]:
    """Yield formats: common formats first (a dash means ISO), formats with an optional time last."""
    yield _ISO, moments
    yield from ((day + time, moments) for time, day in product(_TIMES, _DAYS))
    yield from ((style, moments) for style in _LONGER)
    yield from ((day, day_or_time) for day in _DAYS)


def _may_be(text: str) -> bool:
    text = text.strip()
    return 5 <= len(text) <= 40 and any(map(str.isdigit, text))


def _read(texts: Sequence[str], style: str, read: Callable[..., Moments]) -> Moments:
    """Parse dates in plausible years. ISO dates need dashes; digits without separators need full length."""
    result = read(texts, None if style == _ISO else style)
    years = result.astype("datetime64[Y]").astype(np.int64) + 1970
    good = ~np.isnat(result) & (years >= _YEARS[0]) & (years <= _YEARS[1])
    if style == _ISO:
        good &= np.array([text.strip()[4:5] == "-" and "W" not in text for text in texts], np.bool_)
    elif style in _LENGTHS:
        length = _LENGTHS[style]
        good &= np.array([len(text.split()[0]) == length if text.strip() else False for text in texts])
    if style == "%m/%y" and len(np.unique(years[good])) < 2:  # values such as 08/10 may be grades
        good[:] = False
    return np.where(good, result, np.datetime64("NaT", "s"))


def date_units(dated: DateFormat, records: FloatArray) -> list[str]:
    """Return the units that merge some dates, finest first; if no unit does, return the default units."""
    from shoal.columns.number_bands import useful

    days = dated.moments[dated.read].astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    month = months.astype(np.int64)
    years = month // 12 + 1970
    week = (days - months).astype(np.int64) // 7
    groups: dict[str, IntArray] = {
        "day": days.astype(np.int64),
        "week_of_month": month * 5 + week,
        "month": month,
        "quarter": month // 3,
        "half_year": month // 6,
        "year": years,
        "five_years": years // 5,
        "decade": years // 10,
        "twenty_years": years // 20,
        "century": years // 100,
    }
    style = dated.style or "%d"
    if "%d" not in style and "%u" not in style:
        finest = 3 if "%q" in style else 2
        groups = {unit: groups[unit] for unit in list(groups)[finest:]}
    units = list(groups)
    numbered = [np.unique(groups[unit], return_inverse=True)[1] for unit in units]
    return [units[level] for level in useful(numbered, records[dated.read])] or list(_USUAL)
