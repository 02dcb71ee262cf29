"""What a regular expression finds of direct identifiers, also where few values of a column hold one.

Every engine searches its own rows for these, so they are written in what all dialects share, and are narrow:
no code of a disease or a drug, no account, no date and no plain number matches. `looks` judges columns as a
whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from types import MappingProxyType

from shoal.identifiers.patterns import spread

FEW = 3
"""Different values: fewer addresses or numbers may be those of an office."""
_MOST = 20_000  # values of a column that are searched here

_MAIL = r"[A-Za-z0-9._%+-]@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"  # also within a text
# All of a value: signs between digits tell enough.
_ABROAD = r"^\+[1-9]([ ().\-/]{0,2}[0-9]){7,14}$"
_AMERICAN = r"^(1[-. ])?(\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}$"
_AT_HOME = r"^0[0-9]{2,4}([ /][0-9 /\-]{6,12}|-[0-9]{6,8})$|^0[0-9]([ .\-][0-9]{2}){4}$"
_SECURITY = r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$"
# Within a text: after no other digits, and before none unless many end it.
_BEFORE = r"(^|(^|[^0-9])[^A-Za-z0-9])"
_END, _AFTER = r"($|[^A-Za-z0-9])", r"($|[^A-Za-z0-9]($|[^0-9]))"
_SIGN = r"( / |[ /\-])"  # after the code of an area
_COUNTRY = r"[2-9][0-9]{1,2}( ?\(0\) ?|[ \-/])"
_TELEPHONE = r"([Tt]el|TEL|[Tt]él|[Tt]ele(f|ph)one?|[Pp]hone|[Hh]andy|[Mm]obile?)[.:]{0,2} ?"
_MANY_DIGITS = (
    r"\+[1-9][0-9]{8,13}",  # +4915112345678
    rf"(\+|00){_COUNTRY}\(?[0-9]{{1,4}}\)?{_SIGN}?[0-9]{{5,9}}",  # +49 (0)151 12345678
    rf"0[1-9][0-9]{{1,3}}{_SIGN}[1-9][0-9]{{5,8}}",  # 0151 12345678
    r"06-[1-9][0-9]{7}",
)
_GROUPS = (
    rf"\+{_COUNTRY}[0-9]{{1,4}}( [0-9]{{2,4}}){{2,4}}",  # +33 6 12 34 56 78
    r"(\+?1[ .\-]?)?\([0-9]{3}\) ?[0-9]{3}[ .\-][0-9]{4}",
    r"(\+?1[ .\-])?[0-9]{3}[.\-][0-9]{3}[.\-][0-9]{4}",
    r"\+1 [0-9]{3} [0-9]{3} [0-9]{4}",
    rf"0[1-9][0-9]{{1,3}}{_SIGN}[1-9][0-9]{{1,2}}( [0-9]{{2,4}}){{2,3}}",  # 0151 123 45 67
    rf"0[1-9][0-9]{{1,3}}{_SIGN}[1-9][0-9]{{2}}[ \-][0-9]{{4}}",  # 0161 496 0958
    rf"(0[1-9][0-9]|01[5-7][0-9]){_SIGN}[1-9][0-9]{{3}} [0-9]{{3,4}}",  # 020 7946 0958
    r"\(0[1-9][0-9]{1,4}\) ?[1-9]([ \-]?[0-9]){5,9}",
    r"0[1-9]([ .\-][0-9]{2}){4}",  # 06 12 34 56 78
    rf"{_TELEPHONE}[0-9]( ?[0-9]){{8,13}}",  # Tel. 612345678
    r"[0-9]{3}-[0-9]{2}-[0-9]{4}",  # a social security number
)
_IN_TEXT = f"{_BEFORE}(({'|'.join(_MANY_DIGITS)}){_END}|({'|'.join(_GROUPS)}){_AFTER})"

WITHIN = MappingProxyType(
    {
        "e-mail addresses": _MAIL,
        "telephone or social security numbers": f"{_ABROAD}|{_AMERICAN}|{_AT_HOME}|{_SECURITY}|{_IN_TEXT}",
    }
)
"""What is found, in words, by its pattern."""


def found_within(texts: Sequence[str]) -> Iterator[str]:
    """Yield in words what at least three different texts hold.

    >>> list(found_within([f"Rückruf unter 0151 123456{n}" for n in range(3)]))
    ['telephone or social security numbers']
    """
    some = spread(texts, _MOST)
    for words, pattern in WITHIN.items():
        compiled = re.compile(pattern)
        if len(list(islice(filter(compiled.search, some), FEW))) == FEW:
            yield words
