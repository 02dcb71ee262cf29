"""What is wrong with the YAML of a policy, in plain words; the lines themselves are not shown."""

from __future__ import annotations

import re
from typing import Any

# What yaml's parser says, and what that means; {n} are its groups, {line} where the part at fault opens.
_WORDS = {
    r"expected the node content, but found '<stream end>'": (
        "the text ends where a value is missing. Close every bracket"
    ),
    r"expected the node content, but found '(.)'": "a value is missing before {1}",
    r"expected ',' or '(.)', but got .*": "a comma or a {1} is missing in what opens at line {line}",
    r"found character '\\t' that .*": "a tab stands there. Indent with spaces",
    r"found character '(.)' that .*": "text that begins with {1} needs quotes",
    r"expected <block end>, but found .*": (
        "the line is not indented as those that it belongs to, from line {line} on"
    ),
    r"mapping values are not allowed here": (
        "a colon stands where none can. Put text that holds one in quotes, and indent as the line above"
    ),
    r"sequence entries are not allowed here": "a list begins on a line of its own, with - before each entry",
    r"found unexpected end of stream": "the quote that opens at line {line} is not closed",
    r"could not find expected ':'": "a colon is missing after the name at line {line}",
    r"found unknown escape character .*": "a backslash stands in double quotes. Use single quotes",
    r"expected alphabetic or numeric character, .*|found undefined alias .*": (
        "text that begins with * or & needs quotes"
    ),
    r"could not determine a constructor for the tag .*": "text that begins with ! needs quotes",
    r"but found another document": "a second document begins there. Keep one",
}


def in_plain_words(error: Any) -> str:
    """Say at which line a text is no YAML, and why.

    >>> import yaml
    >>> try:
    ...     yaml.safe_load("columns: {age: @x}")
    ... except yaml.YAMLError as error:
    ...     print(in_plain_words(error))
     at line 1: text that begins with @ needs quotes.
    """
    mark, opened = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    where = f" at line {mark.line + 1}" if mark else ""
    said = getattr(error, "problem", None)
    if said is None:
        odd = hasattr(error, "character")  # yaml's reader tells a place, not a line
        return ": a sign in it is no text." if odd else ": a key is a list or a mapping."
    begun = (opened or mark).line + 1 if mark else 0
    for pattern, words in _WORDS.items():
        if found := re.fullmatch(pattern, said):
            return f"{where}: {words.format(found[0], *found.groups(), line=begun)}."
    return f"{where}: {said}."
