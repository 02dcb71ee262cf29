"""Delimiters: the signs that part the values of a text file, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


def delimiter_of(ending: str) -> str:
    r"""Return the sign that a file's ending stands for.

    >>> delimiter_of(".csv.gz"), delimiter_of(".tsv")
    (',', '\t')
    """
    return "\t" if ending == ".tsv" else ","


def delimiter_told(line: str) -> str | None:
    r"""Return the sign that a first line tells Excel, where it is such a line.

    >>> delimiter_told("sep=;\r\n"), delimiter_told("separator;age"), delimiter_told("sep=;age")
    (';', None, None)
    """
    found = re.fullmatch(r"sep=([,;\t|])[\r\n]*", line, re.IGNORECASE)
    return found[1] if found else None


def must_quote(names: Sequence[str], delimiter: str) -> bool:
    """Tell whether names must stand in quotes for the header to tell the delimiter.

    Whoever reads the file takes the sign that is most often in the header, outside of quotes; and one name
    above values with other signs for a title.

    >>> must_quote(["age", "sex"], ";"), must_quote(["age"], ","), must_quote(["a,b", "c"], ";")
    (False, True, True)
    """
    if len(names) == 1:
        return True
    bare = "".join(name for name in names if not set(name) & {delimiter, '"', "\r", "\n"})
    found = {sign: bare.count(sign) for sign in DELIMITERS.values()} | {delimiter: len(names) - 1}
    return max(found, key=found.__getitem__) != delimiter
