"""Dates as texts: the usual ways to write them, which of them texts fit, and when each text is, many at once.

Texts that differ only in their digits have one shape, as 00.00.0000. A shape is matched once; the numbers of
all its texts are then read together. A shape that tells nothing for sure is read text by text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt

from shoal.core.arrays import BoolArray, FloatArray, IntArray

Moments = npt.NDArray[np.datetime64]  # by the second; not a time (NaT) where a text is no date

DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_AFTER_DAYS = _TIMES[:3]  # the times that may follow a format that tells none
_TELLS_TIME = re.compile("%[HIMSTRXcfpzZ]")
_TIME_PART = re.compile(r"[\sT,]*%[HIMSpfXzZ].*")
_WRITTEN_OUT = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FEW = 8  # are read one by one sooner
_SHAPE = str.maketrans("123456789", "000000000")
_EPOCH = datetime(1970, 1, 1).toordinal()
_NEVER = np.datetime64("NaT", "s")

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
_DIRECTIVES = {
    "d": "00?",
    "m": "00?",
    "Y": "0000",
    "H": "00?",
    "I": "00?",
    "M": "00?",
    "S": "00?",
    "p": "[AP]M",
}
_LIMITS = {"Y": (1, 9999), "m": (1, 12), "d": (1, 31), "H": (0, 23), "I": (1, 12), "M": (0, 59), "S": (0, 59)}


def moments(texts: Sequence[str], style: str | None = None) -> Moments:
    """Return when each text is, written in a format, or else as an ISO date; spaces around it do not count.

    >>> moments(["05.03.2024", "31.02.2024", "2024-03-05"], "%d.%m.%Y").astype("datetime64[D]")
    array(['2024-03-05',        'NaT',        'NaT'], dtype='datetime64[D]')
    """
    texts = [text.strip() for text in texts]
    patterns = _patterns(style) if style else (_ISO, _ANYTHING)
    found = np.full(len(texts), _NEVER)
    rest = list(range(len(texts)))
    if patterns is not None and len(texts) > _FEW:
        shapes, rest = _shapes(texts)
        for shape, places in shapes.items():
            if parts := patterns[0].fullmatch(shape):
                found[places] = _together([texts[place] for place in places], parts)
            elif patterns[1].fullmatch(shape):
                rest += places
    for place in rest:
        found[place] = _one(texts[place], style)
    return found


def day_or_time(texts: Sequence[str], style: str | None = None) -> Moments:
    """Return when each text is; a format that tells no time may be followed by one."""
    if not style or _TELLS_TIME.search(style):
        return moments(texts, style)
    found = moments(texts, style)
    for time in _AFTER_DAYS[1:]:
        left = np.flatnonzero(np.isnat(found))
        if not len(left):
            break
        found[left] = moments([texts[place] for place in left.tolist()], style + time)
    return found


def written_out(texts: Sequence[str]) -> Moments:
    """Return when each text is that begins as 2024-03-05 does; other ISO dates look like numbers or codes."""
    found = np.full(len(texts), _NEVER)
    read = [place for place, text in enumerate(texts) if _WRITTEN_OUT.match(text)]
    found[read] = moments([texts[place] for place in read])
    return found


def usual(texts: Sequence[str], *, months_first: bool = False) -> Moments:
    """Return when each text is, in whichever of the usual ways it is written, the day before the month.

    >>> [str(moment)[:10] for moment in usual(["5.3.2024 14:15", "2024/03/05", "05-03-2024, 2:15 PM", "x"])]
    ['2024-03-05', '2024-03-05', '2024-03-05', 'NaT']
    """
    texts = [text.strip() for text in texts]
    found = np.full(len(texts), _NEVER)
    for shape, places in _shapes(texts)[0].items():
        parts = next((parts for way in _USUAL if (parts := way.fullmatch(shape))), None)
        if parts:
            turned = months_first and parts.groupdict().get("between") in ("-", "/")
            found[places] = _together([texts[place] for place in places], parts, turned=turned)
    return found


def begins_with_month(texts: Sequence[str]) -> bool | None:
    """Tell whether dates such as 05/03/2024 begin with the month; None where all of them may do so or not."""
    texts = [text.strip() for text in texts]
    slashed = False
    first = second = 0
    for shape, places in _shapes(texts)[0].items():
        parts = _USUAL[2].fullmatch(shape)
        if parts and parts["between"] == "/":
            slashed = True
            digits = _digits([texts[place] for place in places])
            first = max(first, int(_number(digits, *parts.span("d")).max()))
            second = max(second, int(_number(digits, *parts.span("m")).max()))
    if first > 12:
        return False
    return True if second > 12 else None if slashed else False


def has_short_year(text: str) -> bool:
    """Tell whether a text is a date whose year has two digits, which can be of two centuries.

    >>> has_short_year("05.03.61"), has_short_year("5/3/61 14:05"), has_short_year("05.03.1961")
    (True, True, False)
    """
    return _SHORT_YEAR.fullmatch(text.strip()) is not None


def month_comes_first(style: str | None) -> bool | None:
    """Tell whether a format begins with the month; None where it begins with the year or lacks one."""
    if not style or style.startswith("%Y") or "%d" not in style or "%m" not in style:
        return None
    return style.index("%m") < style.index("%d")


def without_time(style: str) -> str:
    """Return a format without the time that follows the day.

    >>> without_time("%d.%m.%Y %H:%M"), without_time("%d.%m.%Y")
    ('%d.%m.%Y', '%d.%m.%Y')
    """
    return _TIME_PART.sub("", style)


def styles_of(texts: Sequence[str]) -> Iterator[str | None]:
    """Yield the usual formats that all texts fit, the likeliest first; None stands for ISO dates.

    The last are formats of days, some of which have a time.

    >>> list(styles_of(["05.03.2024", "06.03.2024"]))[0], list(styles_of(["2024-03-05", "05.03.2024"]))
    ('%d.%m.%Y', [])
    """
    if all("-" in text for text in texts) and _all(moments, texts, None):
        yield None
    for time, day in product(_TIMES, DAYS):
        if _all(moments, texts, day + time):
            yield day + time
    for day in DAYS:
        if _all(day_or_time, texts, day):
            yield day


def _all(read: Callable[..., Moments], texts: Sequence[str], style: str | None) -> bool:
    """Tell whether all texts can be read; where the first cannot, no other is."""
    return all(not np.isnat(read(part, style)).any() for part in (texts[:1], texts[1:]))


def day_numbers(found: Moments) -> FloatArray:
    """Return the number of each moment's day, with the time as its fraction; nan where there is none."""
    days = found.astype("datetime64[D]")
    place = days.astype(np.int64) + _EPOCH + (found - days).astype(np.int64) / 86400
    return np.where(np.isnat(found), np.nan, place)


def as_iso(texts: Sequence[str], found: Moments) -> dict[str, str]:
    """Write texts as ISO dates, with the time where it is not midnight; those without a moment are left out.

    >>> texts = ["05.03.2024", "5.3.2024 14:15", "x"]
    >>> as_iso(texts, usual(texts))
    {'05.03.2024': '2024-03-05', '5.3.2024 14:15': '2024-03-05 14:15:00'}
    """
    read = np.flatnonzero(~np.isnat(found))
    written = "\n".join(np.datetime_as_string(found[read]).tolist()).replace("T", " ").splitlines()
    whole = (found.astype("datetime64[D]") == found)[read].tolist()
    pairs = zip(read.tolist(), written, whole, strict=True)
    return {texts[place]: moment[:10] if day else moment for place, moment, day in pairs}


def _shapes(texts: Sequence[str]) -> tuple[dict[str, list[int]], list[int]]:
    """Return the places of the texts of each shape, and of those that are read one by one."""
    joined = "\0".join(texts)
    odd: set[int] = set()
    if not joined.isascii() or joined.count("\0") >= max(1, len(texts)):
        odd = {place for place, text in enumerate(texts) if not text.isascii() or "\0" in text}
        joined = "\0".join("" if place in odd else text for place, text in enumerate(texts))
    found: dict[str, list[int]] = {}
    for place, shape in enumerate(joined.translate(_SHAPE).split("\0") if texts else ()):
        found.setdefault(shape, []).append(place)
    if odd:
        found[""] = [place for place in found.get("", ()) if place not in odd]
    return found, sorted(odd)


def _together(texts: Sequence[str], parts: re.Match[str], *, turned: bool = False) -> Moments:
    """Read texts of one shape, whose numbers stand where a pattern found them; turned: the month first."""
    digits = _digits(texts)
    spans = {name: parts.span(name) for name in _LIMITS if name in parts.re.groupindex and parts[name]}
    if turned:
        spans["d"], spans["m"] = spans["m"], spans["d"]
    numbers = {name: _number(digits, *span) for name, span in spans.items()}
    fits = np.ones(len(texts), np.bool_)
    for name, number in numbers.items():
        fits &= (number >= _LIMITS[name][0]) & (number <= _LIMITS[name][1])
    hour = numbers.get("H", numbers.get("I", np.zeros(len(texts), np.int64)))
    half = parts["p"] if "p" in parts.re.groupindex else None
    if "I" in numbers or half:
        hour = hour % 12 + 12 * (half or "A").upper().startswith("P")
    return _moment(numbers, hour, fits)


def _moment(numbers: dict[str, IntArray], hour: IntArray, fits: BoolArray) -> Moments:
    """Put the numbers of dates together; what a format leaves out is of 1900, January, the 1st, midnight."""
    ones = np.ones(len(fits), np.int64)
    year, month, day = (numbers.get(name, ones * least) for name, least in (("Y", 1900), ("m", 1), ("d", 1)))
    first = np.where(fits, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = first.astype("datetime64[D]") + (day - 1)
    fits &= days.astype("datetime64[M]") == first
    seconds = hour * 3600 + numbers.get("M", 0 * ones) * 60 + numbers.get("S", 0 * ones)
    return np.where(fits, days.astype("datetime64[s]") + seconds, _NEVER)


def _digits(texts: Sequence[str]) -> IntArray:
    """Return the characters of texts of one length as digits, a row for each text."""
    characters = np.frombuffer("".join(texts).encode("ascii"), np.uint8)
    return characters.reshape(len(texts), -1).astype(np.int64) - ord("0")


def _number(digits: IntArray, start: int, end: int) -> IntArray:
    found: IntArray = digits[:, start:end] @ (10 ** np.arange(end - start - 1, -1, -1))
    return found


@cache
def _patterns(style: str) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Return how shapes of a format look, and how those that may be of it but are read one by one.

    None where it has other parts than numbers and AM or PM.
    """
    pieces = re.findall(r"%.|\s+|.", style, re.DOTALL)
    names = [piece[1] for piece in pieces if piece[0] == "%" and len(piece) == 2]
    if len(set(names)) < len(names) or not set(names) <= set(_DIRECTIVES) or {"H", "I"} <= set(names):
        return None
    if any(char.isdigit() for char in style) or "%" in pieces or not style.isascii():
        return None
    found = loose = ""
    for place, piece in enumerate(pieces):
        if piece[0] != "%":
            found += r"\s+" if piece.isspace() else re.escape(piece)
            loose += r"\s*" if piece.isspace() else re.escape(piece)
            continue
        beside = (pieces[at][0] == "%" for at in (place - 1, place + 1) if 0 <= at < len(pieces))
        digits = _DIRECTIVES[piece[1]]
        loose += "[^0]*" if piece == "%p" else rf"\s*{digits}"
        if any(beside):  # only all of their digits tell where one ends
            digits = digits.replace("?", "")
        read = piece != "%p" or "I" in names  # beside a clock of 24 hours it counts for nothing
        found += f"(?P<{piece[1]}>{digits})" if read else digits
    return re.compile(found, re.IGNORECASE), re.compile(loose, re.IGNORECASE)


def _one(text: str, style: str | None) -> np.datetime64:
    try:
        found = datetime.strptime(text, style) if style else datetime.fromisoformat(text)
    except ValueError:
        return _NEVER
    return np.datetime64(found.replace(tzinfo=None, microsecond=0), "s")
