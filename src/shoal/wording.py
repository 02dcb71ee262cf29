"""The wording of messages: the text of an error for each audience, and functions that format its parts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Literal, Protocol
from unicodedata import combining, normalize

Audience = Literal["python", "cli", "web"]

_MAX_QUOTED = 80  # maximum number of characters of a name or of the value of an option
_MAX_PATH = 300
_MAX_MESSAGE = 3000
_MAX_NAMES = 30
_LARGEST_WRITTEN_OUT = 10**15


@dataclass(frozen=True)
class Change:
    """A change that solves a problem.

    `{}` in the action stands for the option, which has another name in Python than on the command line.
    Without an action, the change is to set the option to the value.
    """

    option: str = ""
    value: object = None
    action: str = ""
    current: object = None
    subject: str = ""  # the model that the option belongs to, if several models have this option
    label: str = ""  # what the message calls the change if the value is a mapping of columns to levels
    others: tuple[str, ...] = ()  # names of further options to which the action applies

    @property
    def key(self) -> str:
        """Return the option's name in JSON, with the model if several models have that option."""
        return f"{self.subject}.{self.option}" if self.subject else self.option


class Message(Protocol):
    """The attributes of an error or a note that `message` uses."""

    text: str
    option: str | None
    advice: tuple[Change, ...]
    advice_intro: str
    file_names: Mapping[str, str]


def message(error: Message, audience: Audience) -> str:
    """Return the text of an error for a reader of Python, of the command line or of the studio.

    >>> from shoal.errors import OutputError
    >>> error = OutputError("'o.csv' exists.", advice=[Change("force", True, "Use {} to replace it")])
    >>> message(error, "python"), message(error, "cli")
    ("'o.csv' exists. Use force=True to replace it.", "'o.csv' exists. Use --force to replace it.")
    """
    subject = f"{option_name(error.option, audience)} " if error.option else ""
    advice = advice_text(error.advice, audience, error.advice_intro)
    text = f"{subject}{error.text} {advice}".rstrip()
    for path, name in error.file_names.items():
        text = text.replace(path, name)
    text = re.sub(rf"\S{{{_MAX_PATH + 1},}}", lambda word: shorten(word[0], _MAX_QUOTED), text)
    return shorten(text, _MAX_MESSAGE)


def advice_text(changes: Sequence[Change], audience: Audience = "python", intro: str = "") -> str:
    """Write changes as one sentence: as alternatives, or as a list after `intro`.

    >>> advice_text([Change("memory_limit", action="Raise {}"), Change(action="Use 'contour'")], "cli")
    "Raise --memory-limit, or use 'contour'."
    >>> advice_text([Change("k", 3, current=5), Change("l", 2)], intro="Any one of these changes works:")
    'Any one of these changes works: k=3 (now 5); l=2.'
    """
    phrases = [_phrase(change, audience) for change in changes]
    if not phrases:
        return ""
    if intro:
        return f"{intro} {'; '.join(phrases)}."
    first, *others = phrases
    others = [f"{phrase[:1].lower()}{phrase[1:]}" for phrase in others]
    end = f", or {others.pop()}" if others else ""
    return f"{', '.join([first, *others])}{end}."


def _phrase(change: Change, audience: Audience) -> str:
    if change.action:
        names = [option_name(change.option, audience, change.value)]
        names += [option_name(option, audience) for option in change.others]
        return change.action.replace("{}", " and ".join(names))
    current = "" if change.current is None else f" (now {change.current})"
    if change.option == "suppression_limit" and isinstance(change.value, int):
        limit = f"{change.current:,}" if isinstance(change.current, int) else change.current
        return f"a suppression limit of {plural(change.value, 'record')} (now {limit})"
    if isinstance(change.value, Mapping):
        columns = " or ".join(f"{name} to {level}" for name, level in change.value.items())
        return f"{change.label or f'{change.option} raised'}: {columns}"
    subject = f"{change.subject} with " if change.subject else ""
    return f"{subject}{change.option}={change.value}{current}"


def option_name(option: str, audience: Audience, value: object = None) -> str:
    """Write an option, and its value if it has one, in the notation of the audience.

    >>> option_name("bom", "python", True), option_name("bom", "cli", True), option_name("max_size", "cli")
    ('bom=True', '--bom', '--max-size')
    """
    if audience == "cli":
        return f"--{option.replace('_', '-')}{'' if value in (None, True) else f' {value}'}"
    return option if value is None else f"{option}={value!r}"


def quote(value: object) -> str:
    """Write a name, a path or the value of an option in quotes, shortened to fit into a message.

    >>> from pathlib import Path
    >>> quote("age"), len(quote("x" * 1000)), quote(Path("a/b")), quote([5])
    ("'age'", 82, "'a/b'", '[5]')
    """
    limit = _MAX_PATH if isinstance(value, PurePath) else _MAX_QUOTED
    value = str(value) if isinstance(value, PurePath) else value
    return repr(shorten(value, limit)) if isinstance(value, str) else shorten(repr(value), limit)


def shorten(text: str, limit: int) -> str:
    """Replace the middle of a long text by dots. The end is kept, because it often says what to do.

    >>> shorten("a short text", 12), shorten("a longer text than that", 12)
    ('a short text', 'a lon...that')
    """
    if len(text) <= limit:
        return text
    kept_end = (limit - 3) // 2
    return f"{text[: limit - 3 - kept_end]}...{text[len(text) - kept_end :]}"


def enumerate_names(names: Sequence[str]) -> str:
    """List the first names, and say how many more there are."""
    shown = [shorten(name, _MAX_QUOTED) for name in names[:_MAX_NAMES]]
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(shown)}{more}"


def plural(count: int, noun: str, plural_noun: str = "") -> str:
    """Write a count with its noun in singular or plural.

    >>> plural(1, "record"), plural(1200, "record"), plural(2, "class"), plural(2, "entry", "entries")
    ('1 record', '1,200 records', '2 classes', '2 entries')
    """
    plural_noun = plural_noun or noun + ("es" if noun.endswith("s") else "s")
    return f"{number_text(count)} {noun if count == 1 else plural_noun}"


def number_text(count: int) -> str:
    """Write a count; a very large count is written as a power of ten.

    >>> number_text(1_200), number_text(622 * 10**203)
    ('1,200', 'about 6 x 10^205')
    """
    if count < _LARGEST_WRITTEN_OUT:
        return f"{count:,}"
    digits = str(count)
    return f"about {digits[0]} x 10^{len(digits) - 1}"


def percent(share: float) -> str:
    """Write a share in percent. Only 0 is written as 0% and only 1 as 100%.

    >>> [percent(share) for share in (0, 0.00012, 0.05, 1 / 3, 0.99999, 1)]
    ['0%', '0.012%', '5%', '33.3%', '99.9%', '100%']
    """
    if 0 < share < 0.001:
        return f"{100 * share:.2g}%"
    rounded = min(round(100 * share, 1), 99.9) if share < 1 else 100 * share
    return f"{rounded:.1f}".removesuffix(".0") + "%"


def above_optimum(loss: float, lower_bound: float | None) -> str:
    """Describe how far a loss is above the optimum, in percent rounded up. No loss is below `lower_bound`.

    >>> [above_optimum(1.0632, bound) for bound in (1.0632, 1, 0.5)]
    ['at the optimum', 'at most 6.4% above the optimum', 'at most 113% above the optimum']
    >>> above_optimum(1, 0), above_optimum(1, None)
    ('no bound', 'no bound')
    """
    if lower_bound is None or (lower_bound <= 0 < loss):
        return "no bound"
    if loss <= lower_bound * (1 + 1e-12):
        return "at the optimum"
    above = 100 * (loss / lower_bound - 1)
    return f"at most {math.ceil(above - 1e-9):,}% above the optimum" if above >= 10 else _tenths(above)


def _tenths(above: float) -> str:
    return f"at most {math.ceil(10 * above - 1e-9) / 10:.1f}".removesuffix(".0") + "% above the optimum"


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the most similar name, or None. Case, accents and surrounding space are ignored.

    >>> nearest("AGE ", ["sex", "age"]), nearest("grosse", ["Größe"]), nearest("age", ["Mueller", "Dresden"])
    ('age', 'Größe', None)
    """
    names = list(names)
    by_normalized = {_normalized(candidate): candidate for candidate in names}
    close = get_close_matches(name, names, 1, cutoff)
    close = close or [
        by_normalized[match] for match in get_close_matches(_normalized(name), by_normalized, 1, cutoff)
    ]
    return close[0] if close else None


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return a question that suggests the most similar name, with a leading space; empty if none is similar.

    >>> did_you_mean("olaa", ["ola", "datafly"]), did_you_mean(5, ["ola"])
    (" Did you mean 'ola'?", '')
    """
    close = nearest(name, names) if isinstance(name, str) else None
    return "" if close is None else f" Did you mean {quote(close)}?"


def same(name: str, other: str) -> bool:
    """Return whether two names are equal apart from case, accents and surrounding space.

    >>> same("GROSSE ", "größe"), same("age", "ages")
    (True, False)
    """
    return _normalized(name) == _normalized(other)


def match_trimmed(name: str, names: Iterable[str]) -> str:
    """Return the name in `names` that differs only by surrounding space, if there is exactly one.

    Otherwise return the given name.

    >>> match_trimmed("ward", ["age", "ward "]), match_trimmed("ward", ["ward", "ward "])
    ('ward ', 'ward')
    """
    names = list(names)
    matches = [candidate for candidate in names if candidate.strip() == name.strip()]
    return matches[0] if name not in names and len(matches) == 1 else name


def _normalized(name: str) -> str:
    letters = normalize("NFKD", name.strip().casefold())
    return "".join(letter for letter in letters if not combining(letter))


def one_value_text(columns: Sequence[str]) -> str:
    """Return a note that columns with one value count as retained.

    >>> one_value_text(["land"])
    'land has one value in the input, and counts as retained'
    """
    if not columns:
        return ""
    counts = (
        "has one value in the input, and counts" if len(columns) == 1 else "have one value each, and count"
    )
    return f"{enumerate_names(columns)} {counts} as retained"
