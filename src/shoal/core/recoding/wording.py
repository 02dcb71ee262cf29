"""The text of cells with several labels: "Europe or Asia"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shoal.core.hierarchy.hierarchy import MISSING

OR = " or "
_PART = re.compile(r'"(?P<quoted>.*?)"(?: or |$)|(?P<plain>.+?)(?: or |$)')


def joined(labels: Sequence[str], *, missing: bool) -> str:
    """Join labels; a label that looks like several labels is quoted.

    >>> joined(["Asia", "Black or brown"], missing=False), joined(["a", "missing"], missing=True)
    ('Asia or "Black or brown"', 'a or "missing" or missing')
    """
    quoted = [f'"{label}"' if OR in label or label == MISSING else label for label in labels]
    return OR.join([*quoted, *([MISSING] if missing else [])])


def parts_of(text: str) -> list[str]:
    """Return the labels of a cell.

    >>> parts_of('Asia or "Black or brown"'), parts_of("20-24 or 30-34"), parts_of("Asia")
    (['Asia', 'Black or brown'], ['20-24', '30-34'], ['Asia'])
    """
    if OR not in text:
        return [text]
    return [match["plain"] or match["quoted"] for match in _PART.finditer(text)]
