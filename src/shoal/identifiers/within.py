"""What a regular expression finds of direct identifiers, also where few values of a column hold one.

Every engine searches its own rows for these, so they are written in what all dialects share, and are narrow:
no code of a disease or a drug, no date and no plain number matches. `looks` judges columns as a whole.
"""

from __future__ import annotations

from types import MappingProxyType

_MAIL = r"[A-Za-z0-9._%+-]@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"  # also within a text
_ABROAD = r"^\+[1-9]([ ().\-/]{0,2}[0-9]){7,14}$"
_AMERICAN = r"^(1[-. ])?(\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}$"
_AT_HOME = r"^0[0-9]{2,4}([ /][0-9 /\-]{6,12}|-[0-9]{6,8})$|^0[0-9]([ .\-][0-9]{2}){4}$"
_SECURITY = r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$"

WITHIN = MappingProxyType(
    {
        "e-mail addresses": _MAIL,
        "telephone or social security numbers": f"{_ABROAD}|{_AMERICAN}|{_AT_HOME}|{_SECURITY}",
    }
)
"""What is found, in words, by its pattern."""
