"""Parsing of dates: the usual formats, the formats that texts fit, and fast parsing of many texts.

Texts that differ only in their digits have the same *shape*, such as 00.00.0000. Each shape is matched once,
and then the numbers of all its texts are parsed together. Texts of an ambiguous shape are parsed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt

from shoal.core.arrays import BoolArray, FloatArray, IntArray

Moments = npt.NDArray[np.datetime64]  # in seconds; not a time (NaT) if a text is not a date

DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
AFTER_DAYS = _TIMES[:3]  # times that may follow a date even if the format has no time
_HAS_TIME = re.compile("%[HIMSTRXcfpzZ]")
_TIME_PART = re.compile(r"[\sT,]*%[HIMSpfXzZ].*")
_NAMES_MONTH = re.compile("%[bB]")
_NAMES_DAY = re.compile("%[aA]")
_NAMES = re.compile("%[aAbB]")
_ISO_START = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PIVOT = 69  # this and later two-digit years are in the 20th century, as in strptime
_MAX_ONE_BY_ONE = 8  # up to this number of texts, parsing them one by one is faster
_SHAPE = str.maketrans("123456789", "000000000")
_EPOCH = datetime(1970, 1, 1).toordinal()
_NOT_A_TIME = np.datetime64("NaT", "s")

_CLOCK = r"(?P<H>00?):(?P<M>00)(?::(?P<S>00)(?:[.,]0+)?)?(?: ?(?P<p>[AP])M)?"
_TIME = rf"(?:(?:T|,? ){_CLOCK})?"
_USUAL = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<Y>0000)([-/.])(?P<m>00?)\2(?P<d>00?){_TIME}",
        rf"(?P<Y>0000)(?P<m>00)(?P<d>00){_TIME}",
        rf"(?P<d>00?)(?P<between>[-/.])(?P<m>00?)\2(?P<Y>0000){_TIME}",
    )
)
_ISO = re.compile(r"(?P<Y>0000)-(?P<m>00)-(?P<d>00)(?:[T ](?P<H>00):(?P<M>00)(?::(?P<S>00))?)?")
_SHORT_YEAR = re.compile(
    rf"[0-3]?[0-9]([./-])[0-3]?[0-9]\1[0-9]{{2}}{_TIME.replace('0', '[0-9]')}", re.IGNORECASE
)
_ANYTHING = re.compile(".*", re.DOTALL)
_MONTHS = (
    "jan january januar janvier januari jän jänner ene enero gen gennaio janeiro",
    "feb february februar februari fév févr février fev fevr fevrier febrero febbraio fevereiro",
    "mar march mär märz maerz mrz mars maart mrt marzo março",
    "apr april avr avril abr abril aprile",
    "may mai mei mayo mag maggio maio",
    "jun june juni juin junio giu giugno junho",
    "jul july juli juil juillet julio lug luglio julho",
    "aug august août aout ago agosto augustus",
    "sep sept september septembre septiembre set settembre setembro",
    "oct october okt oktober octobre octubre ott ottobre out outubro",
    "nov november novembre noviembre novembro",
    "dec december dez dezember déc décembre decembre dic diciembre dicembre dezembro",
)
MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_WEEKDAYS = (  # without abbreviations that also mean a month
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun",
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "lunes martes miércoles jueves viernes sábado domingo",
    "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
)
_WEEKDAY_NAMES = frozenset(name for names in _WEEKDAYS for name in names.split())
_LETTERS = re.compile(r"[^\W\d_]{3,}\.?")
_ORDINAL = re.compile(r"(?<=[0-9])(?:st|nd|rd|th|er)\b", re.IGNORECASE)
_DIRECTIVES = {
    "G": "0000",
    "V": "00",
    "u": "0",
    "y": "00",
    "q": "0",
    "d": "00?",
    "m": "00?",
    "Y": "0000",
    "H": "00?",
    "I": "00?",
    "M": "00?",
    "S": "00?",
    "p": "[AP]M",
}
_LIMITS = {
    "Y": (1, 9999), "G": (1, 9999), "y": (0, 99), "q": (1, 4), "V": (1, 53), "u": (1, 7), "m": (1, 12),
    "d": (1, 31), "H": (0, 23), "I": (1, 12), "M": (0, 59), "S": (0, 59),
}  # fmt: skip


def moments(texts: Sequence[str], style: str | None = None) -> Moments:
    """Parse texts in a format, or as ISO dates; surrounding spaces are ignored.

    >>> moments(["05.03.2024", "31.02.2024", "2024-03-05"], "%d.%m.%Y").astype("datetime64[D]")
    array(['2024-03-05',        'NaT',        'NaT'], dtype='datetime64[D]')
    """
    texts = [text.strip() for text in texts]
    if style and _NAMES.search(style):
        texts, style = _with_month_numbers(texts), _with_numbered_month(style)
    patterns = _patterns(style) if style else (_ISO, _ANYTHING)
    result = np.full(len(texts), _NOT_A_TIME)
    one_by_one = list(range(len(texts)))
    if patterns is not None and len(texts) <= _MAX_ONE_BY_ONE and "%q" not in (style or ""):
        shapes_of_texts = [text.translate(_SHAPE) for text in texts]
        one_by_one = [
            index
            for index, shape in enumerate(shapes_of_texts)
            if not shape.isascii() or any(pattern.fullmatch(shape) for pattern in patterns)
        ]
    elif patterns is not None:
        shapes, one_by_one = _shapes(texts)
        for shape, indices in shapes.items():
            if parts := patterns[0].fullmatch(shape):
                result[indices] = _parse_shape([texts[index] for index in indices], parts)
            elif patterns[1].fullmatch(shape):
                one_by_one += indices
    for index in one_by_one:
        result[index] = _parse_one(texts[index], style)
    return result


def may_read(texts: Sequence[str]) -> Callable[[str | None], bool]:
    """Return a function that tells whether any text may fit a format, judging by the shapes of the texts.

    >>> may = may_read(["05.03.2024", "6 Mar 2024"])
    >>> [may(style) for style in ("%d.%m.%Y", "%d %b %Y", "%Y/%m/%d", "%d.%m.%Y %H:%M")]
    [True, True, False, False]
    """
    stripped = [text.strip() for text in texts]
    shapes = {
        named: {text.translate(_SHAPE) for text in (_with_month_numbers(stripped) if named else stripped)}
        for named in (False, True)
    }

    def may(style: str | None) -> bool:
        numbered = _with_numbered_month(style) if style else ""
        patterns = _patterns(numbered) if style else None
        return patterns is None or any(
            not shape.isascii() or "\0" in shape or any(pattern.fullmatch(shape) for pattern in patterns)
            for shape in shapes[numbered != style]
        )

    return may


@cache
def _with_numbered_month(style: str) -> str:
    return _NAMES_MONTH.sub(" %m ", _NAMES_DAY.sub("", style)).strip() if _NAMES.search(style) else style


def _with_month_numbers(texts: Sequence[str]) -> list[str]:
    """Replace the names of months, in seven languages, by numbers between spaces; remove weekdays.

    >>> _with_month_numbers(["5-Mar-2024", "5 de março de 2024", "Sept. 2024", "Tue 5th March 2024"])
    ['5- 03 -2024', '5 de  03  de 2024', '09  2024', '5  03  2024']
    """

    def number(match: re.Match[str]) -> str:
        word = match[0].removesuffix(".").casefold()
        month = MONTH_NUMBERS.get(word)
        unnamed = "" if word in _WEEKDAY_NAMES else match[0]
        return unnamed if month is None else f" {month:02} "

    def numbered(text: str) -> str:
        return _ORDINAL.sub("", _LETTERS.sub(number, text))

    if any("\0" in text for text in texts):
        return [numbered(text).strip() for text in texts]
    return [text.strip() for text in numbered("\0".join(texts)).split("\0")] if texts else []


def day_or_time(texts: Sequence[str], style: str | None = None) -> Moments:
    """Parse texts in a format; if the format has no time, a time may follow the date."""
    if not style or _HAS_TIME.search(style):
        return moments(texts, style)
    result = moments(texts, style)
    for time in AFTER_DAYS[1:]:
        unparsed = np.flatnonzero(np.isnat(result))
        if not len(unparsed):
            break
        result[unparsed] = moments([texts[index] for index in unparsed.tolist()], style + time)
    return result


def parse_iso(texts: Sequence[str]) -> Moments:
    """Parse texts that start like 2024-03-05. Texts in other ISO formats could be numbers or codes."""
    result = np.full(len(texts), _NOT_A_TIME)
    matching = [index for index, text in enumerate(texts) if _ISO_START.match(text)]
    result[matching] = moments([texts[index] for index in matching])
    return result


def parse_usual(texts: Sequence[str], *, months_first: bool = False) -> Moments:
    """Parse texts in any of the usual formats; the day is before the month unless `months_first`.

    >>> texts = ["5.3.2024 14:15", "2024/03/05", "05-03-2024, 2:15 PM", "x"]
    >>> [str(moment)[:10] for moment in parse_usual(texts)]
    ['2024-03-05', '2024-03-05', '2024-03-05', 'NaT']
    """
    texts = [text.strip() for text in texts]
    result = np.full(len(texts), _NOT_A_TIME)
    for shape, indices in _shapes(texts)[0].items():
        parts = next((parts for pattern in _USUAL if (parts := pattern.fullmatch(shape))), None)
        if parts:
            month_first = months_first and parts.groupdict().get("between") in ("-", "/")
            result[indices] = _parse_shape(
                [texts[index] for index in indices], parts, month_first=month_first
            )
    return result


def begins_with_month(texts: Sequence[str]) -> bool | None:
    """Return whether dates such as 05/03/2024 start with the month; None if that is ambiguous."""
    texts = [text.strip() for text in texts]
    slashed = False
    first = second = 0
    for shape, indices in _shapes(texts)[0].items():
        parts = _USUAL[2].fullmatch(shape)
        if parts and parts["between"] == "/":
            slashed = True
            digits = _digits([texts[index] for index in indices])
            first = max(first, int(_number(digits, *parts.span("d")).max()))
            second = max(second, int(_number(digits, *parts.span("m")).max()))
    if first > 12:
        return False
    return True if second > 12 else None if slashed else False


def has_short_year(text: str) -> bool:
    """Return whether a text is a date with a two-digit year, which is ambiguous.

    >>> has_short_year("05.03.61"), has_short_year("5/3/61 14:05"), has_short_year("05.03.1961")
    (True, True, False)
    """
    return _SHORT_YEAR.fullmatch(text.strip()) is not None


def month_comes_first(style: str | None) -> bool | None:
    """Return whether the month is before the day in a format; None if it starts with the year."""
    if not style or style.startswith("%Y") or "%d" not in style or "%m" not in style:
        return None
    return style.index("%m") < style.index("%d")


def without_time(style: str) -> str:
    """Return a format without the time after the day.

    >>> without_time("%d.%m.%Y %H:%M"), without_time("%d.%m.%Y")
    ('%d.%m.%Y', '%d.%m.%Y')
    """
    return _TIME_PART.sub("", style)


def styles_of(texts: Sequence[str]) -> Iterator[str | None]:
    """Yield the usual formats that all texts fit, the most likely first; None stands for ISO dates.

    Formats without a time come last; they also fit if only some of the texts have a time.

    >>> list(styles_of(["05.03.2024", "06.03.2024"]))[0], list(styles_of(["2024-03-05", "05.03.2024"]))
    ('%d.%m.%Y', [])
    """
    if all("-" in text for text in texts) and _parses_all(moments, texts, None):
        yield None
    for time, day in product(_TIMES, DAYS):
        if _parses_all(moments, texts, day + time):
            yield day + time
    for day in DAYS:
        if _parses_all(day_or_time, texts, day):
            yield day


def _parses_all(parse: Callable[..., Moments], texts: Sequence[str], style: str | None) -> bool:
    """Return whether all texts can be parsed; parse the first text alone, because most formats fail there."""
    return all(not np.isnat(parse(part, style)).any() for part in (texts[:1], texts[1:]))


def day_numbers(moments: Moments) -> FloatArray:
    """Return day numbers, with the time as a fraction; nan for NaT."""
    days = moments.astype("datetime64[D]")
    numbers = days.astype(np.int64) + _EPOCH + (moments - days).astype(np.int64) / 86400
    return np.where(np.isnat(moments), np.nan, numbers)


def as_iso(texts: Sequence[str], moments: Moments) -> dict[str, str]:
    """Write texts as ISO dates, with the time unless it is midnight; NaT is left out.

    >>> texts = ["05.03.2024", "5.3.2024 14:15", "x"]
    >>> as_iso(texts, parse_usual(texts))
    {'05.03.2024': '2024-03-05', '5.3.2024 14:15': '2024-03-05 14:15:00'}
    """
    parsed = np.flatnonzero(~np.isnat(moments))
    written = "\n".join(np.datetime_as_string(moments[parsed]).tolist()).replace("T", " ").splitlines()
    is_midnight = (moments.astype("datetime64[D]") == moments)[parsed].tolist()
    pairs = zip(parsed.tolist(), written, is_midnight, strict=True)
    return {texts[index]: moment[:10] if day else moment for index, moment, day in pairs}


def _shapes(texts: Sequence[str]) -> tuple[dict[str, list[int]], list[int]]:
    """Return the indices of the texts of each shape, and of the texts that must be parsed one by one."""
    joined = "\0".join(texts)
    irregular: set[int] = set()
    if not joined.isascii() or joined.count("\0") >= max(1, len(texts)):
        irregular = {index for index, text in enumerate(texts) if not text.isascii() or "\0" in text}
        joined = "\0".join("" if index in irregular else text for index, text in enumerate(texts))
    by_shape: dict[str, list[int]] = {}
    for index, shape in enumerate(joined.translate(_SHAPE).split("\0") if texts else ()):
        by_shape.setdefault(shape, []).append(index)
    if irregular:
        by_shape[""] = [index for index in by_shape.get("", ()) if index not in irregular]
    return by_shape, sorted(irregular)


def _parse_shape(texts: Sequence[str], parts: re.Match[str], *, month_first: bool = False) -> Moments:
    """Parse texts of one shape, given the positions of its numbers; `month_first` swaps day and month."""
    digits = _digits(texts)
    spans = {name: parts.span(name) for name in _LIMITS if name in parts.re.groupindex and parts[name]}
    if month_first:
        spans["d"], spans["m"] = spans["m"], spans["d"]
    numbers = {name: _number(digits, *span) for name, span in spans.items()}
    fits = np.ones(len(texts), np.bool_)
    for name, number in numbers.items():
        fits &= (number >= _LIMITS[name][0]) & (number <= _LIMITS[name][1])
    hour = numbers.get("H", numbers.get("I", np.zeros(len(texts), np.int64)))
    am_or_pm = parts["p"] if "p" in parts.re.groupindex else None
    if "I" in numbers or am_or_pm:
        hour = hour % 12 + 12 * (am_or_pm or "A").upper().startswith("P")
    return _moment(numbers, hour, fits)


def _moment(numbers: dict[str, IntArray], hour: IntArray, fits: BoolArray) -> Moments:
    """Combine the numbers of dates; missing parts default to 1900-01-01 00:00."""
    ones = np.ones(len(fits), np.int64)
    if "y" in numbers:
        numbers = {**numbers, "Y": numbers["y"] + np.where(numbers["y"] < _PIVOT, 2000, 1900)}
    if "q" in numbers:
        numbers = {**numbers, "m": numbers["q"] * 3 - 2}
    if "G" in numbers:
        return _week(numbers["G"], numbers.get("V", ones), numbers.get("u", ones), fits)
    year, month, day = (numbers.get(name, ones * least) for name, least in (("Y", 1900), ("m", 1), ("d", 1)))
    first = np.where(fits, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = first.astype("datetime64[D]") + (day - 1)
    fits &= days.astype("datetime64[M]") == first
    seconds = hour * 3600 + numbers.get("M", 0 * ones) * 60 + numbers.get("S", 0 * ones)
    return np.where(fits, days.astype("datetime64[s]") + seconds, _NOT_A_TIME)


def _week(year: IntArray, week: IntArray, weekday: IntArray, fits: BoolArray) -> Moments:
    """Return days of ISO weeks; week 1 contains January 4."""
    fourth = np.where(fits, (year - 1970) * 12, 0).astype("datetime64[M]").astype("datetime64[D]") + 3
    monday = fourth - (fourth.astype(np.int64) + 3) % 7 + 7 * (week - 1)
    fits = fits & ((monday + 3).astype("datetime64[Y]").astype(np.int64) + 1970 == year)
    return np.where(fits, (monday + weekday - 1).astype("datetime64[s]"), _NOT_A_TIME)


def not_after(moments: Moments, latest: date) -> Moments:
    """Move dates by whole centuries, so that all lie in the hundred years before a day.

    >>> not_after(moments(["05.03.61", "05.03.24"], "%d.%m.%y"), date(2026, 1, 1)).astype("datetime64[D]")
    array(['1961-03-05', '2024-03-05'], dtype='datetime64[D]')
    """
    days = moments.astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    remainder = moments - months.astype("datetime64[s]")
    latest_day = np.datetime64(latest, "D")
    for _ in range(abs(latest.year - 2000) // 100 + 2):
        later, earlier = days > latest_day, days <= _century(latest_day, -1)
        months = months + 1200 * (earlier.astype(np.int64) - later.astype(np.int64))
        days = (months.astype("datetime64[s]") + remainder).astype("datetime64[D]")
    result: Moments = months.astype("datetime64[s]") + remainder
    return result


def _century(day: np.datetime64, centuries: int) -> np.datetime64:
    month = day.astype("datetime64[M]")
    earlier: np.datetime64 = (month + 1200 * centuries).astype("datetime64[D]") + (day - month)
    return earlier


def _digits(texts: Sequence[str]) -> IntArray:
    """Return the digits of texts of equal length, (texts, characters)."""
    characters = np.frombuffer("".join(texts).encode("ascii"), np.uint8)
    return characters.reshape(len(texts), -1).astype(np.int64) - ord("0")


def _number(digits: IntArray, start: int, end: int) -> IntArray:
    number: IntArray = digits[:, start:end] @ (10 ** np.arange(end - start - 1, -1, -1))
    return number


@cache
def _patterns(style: str) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Return patterns for the shapes of a format: unambiguous ones, and those that are parsed one by one.

    Return None if the format has other parts than numbers and AM or PM.
    """
    pieces = re.findall(r"%.|\s+|.", style, re.DOTALL)
    names = [piece[1] for piece in pieces if piece[0] == "%" and len(piece) == 2]
    if len(set(names)) < len(names) or not set(names) <= set(_DIRECTIVES) or {"H", "I"} <= set(names):
        return None
    if any(char.isdigit() for char in style) or "%" in pieces or not style.isascii():
        return None
    strict = loose = ""
    for index, piece in enumerate(pieces):
        if piece[0] != "%":
            strict += r"\s+" if piece.isspace() else re.escape(piece)
            loose += r"\s*" if piece.isspace() else re.escape(piece)
            continue
        neighbours = (pieces[at][0] == "%" for at in (index - 1, index + 1) if 0 <= at < len(pieces))
        digits = _DIRECTIVES[piece[1]]
        loose += "[^0]*" if piece == "%p" else rf"\s*{digits}"
        if any(neighbours):  # without a separator, only fixed widths show where a number ends
            digits = digits.replace("?", "")
        is_used = piece != "%p" or "I" in names  # with a clock of 24 hours, AM and PM are ignored
        strict += f"(?P<{piece[1]}>{digits})" if is_used else digits
    return re.compile(strict, re.IGNORECASE), re.compile(loose, re.IGNORECASE)


def _parse_one(text: str, style: str | None) -> np.datetime64:
    if style and "%V" in style and "%u" not in style:  # a week is read as its Monday
        text, style = f"{text} 1", f"{style} %u"
    try:
        moment = datetime.strptime(text, style) if style else datetime.fromisoformat(text)
    except ValueError:
        return _NOT_A_TIME
    return np.datetime64(moment.replace(tzinfo=None, microsecond=0), "s")
