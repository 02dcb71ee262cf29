"""Values that nearly all occur once: who knows one finds its record, whatever becomes of other columns."""

from __future__ import annotations

NEARLY_UNIQUE = "nearly every value occurs once, and whoever knows it finds the record: make it coarser"
_SHARE = 0.9  # of the records, above which values are nearly unique
_FEW = 20  # records, of which values may differ by chance


def nearly_unique(alone: int, records: int) -> bool:
    """Tell whether nearly every record has a value that no other has, given how many have.

    >>> nearly_unique(95, 100), nearly_unique(90, 100), nearly_unique(20, 20)
    (True, False, False)
    """
    return records > _FEW and alone / records > _SHARE
