"""Writing: dates and numbers of a column that are written otherwise than its rule, or another table, does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.core import dates
from shoal.core.builder import Builder
from shoal.core.builders import Flat
from shoal.policies.value_kinds import unknown_codes

_AS_IS = Flat()


def otherwise(
    texts: Iterable[str | None], rule: Builder | None, *, months_first: bool = False
) -> Mapping[str, str]:
    """Write dates as 2024-03-05, and numbers with the rule's decimal sign; what is read as it is is left out.

    >>> otherwise(["05.03.2024", "6.3.2024 14:15", "2024-03-07"], None)
    {'05.03.2024': '2024-03-05', '6.3.2024 14:15': '2024-03-06 14:15:00'}
    >>> otherwise(["36,6", "37"], None), otherwise(["1,234", "999"], None)
    ({'36,6': '36.6'}, {})
    """
    rule = rule or _AS_IS
    given = [text for text in texts if text is not None and not rule.is_unknown(text)]
    codes = set(unknown_codes(given))
    return rule.rewritten([text for text in given if text not in codes], months_first=months_first)


def months_first_in(texts: Iterable[str | None], rule: Builder | None) -> bool | None:
    """Tell whether dates such as 05/03/2024 begin with the month; None where they may, and the day is taken.

    The rule's own order counts; else what all texts can be, the day before the month.
    """
    own = (rule or _AS_IS).months_first()
    return dates.begins_with_month([text for text in texts if text]) if own is None else own
