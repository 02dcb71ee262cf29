"""What the name of a column says: which identifier it is, and which role it has, in several languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from shoal.core.schema import Role
from shoal.identifiers.words import dutch, english, french, german, italian, portuguese, spanish

_FOREIGN = (german, french, spanish, italian, dutch, portuguese)  # whose postcodes are no ZIP codes
_LANGUAGES = (english, *_FOREIGN)
_NO = "(?:id|ids|no|nr|num|number|nummer|numero)"
_WHEN = (
    "(?:birth|admission|admit|admitted|discharge|discharged|death|visit|event|encounter|surgery|operation|"
    "service|diagnosis|procedure|treatment|onset|enrol?lment)"
)
_NONE = "-"  # stands where no letter of the rule does


@dataclass(frozen=True)
class Word:
    """Words that point at one identifier; weak ones count only where the values tell persons apart."""

    letter: str
    kind: str
    text: str
    weak: bool
    whole: bool  # they must be all of the name

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The words as an expression; there are many, and few commands ask for them."""
        return re.compile(self.text)

    def is_in(self, names: Sequence[str]) -> bool:
        """Tell whether one of the spellings of a name holds such a word."""
        return any(map(self.pattern.search, names))

    def is_all_of(self, names: Sequence[str]) -> bool:
        """Tell whether one of the spellings of a name is nothing but such a word."""
        return any(map(self.pattern.fullmatch, names))


def _read(tables: Sequence[str]) -> tuple[Word, ...]:
    """Read the tables of all languages: lines that begin alike are one, where the first of them stands."""
    lines: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        for line in table.strip().splitlines():
            letter, kind, *words = line.split()
            lines.setdefault((letter, kind), []).extend(words)
    return tuple(_word(letter, kind, words) for (letter, kind), words in lines.items() if words)


def _word(letter: str, kind: str, words: Sequence[str]) -> Word:
    joined = "|".join(map(_unaccented, words)).replace("NO", _NO).replace("WHEN", _WHEN)
    pattern = f"^(?:{joined})$" if "!" in kind else f"(?:^|_)(?:{joined})(?:_|$)"
    return Word(letter, kind.rstrip("?!"), pattern, "?" in kind, "!" in kind)


def _unaccented(word: str) -> str:
    """Write a word as plain names have it, umlauts in both ways; but one that needs its accents.

    >>> _unaccented("größe"), _unaccented("prénom"), _unaccented("=età")
    ('groe?sse', 'prenom', 'età')
    """
    if word.startswith("="):
        return word[1:]
    for umlaut, letter in zip("äöü", "aou", strict=True):
        word = word.replace(umlaut, f"{letter}e?")
    return without_accents(word)


def without_accents(text: str) -> str:
    """Write a text without accents.

    >>> without_accents("Straße, año, São")
    'Strasse, ano, Sao'
    """
    text = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(letter for letter in text if not unicodedata.combining(letter))


def plain(name: str) -> str:
    """Write a name in small letters without accents, its words joined by an underscore.

    >>> plain("PatientLastName"), plain("Téléphone (privé)"), plain("ZIP+4")
    ('patient_last_name', 'telephone_prive', 'zip_4')
    """
    return re.sub(r"[^a-z0-9]+", "_", without_accents(_apart(name)).lower()).strip("_")


def _apart(name: str) -> str:
    """Part the words that capital letters tell apart."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)


def _spellings(name: str) -> tuple[str, ...]:
    """Return a name without accents and, where it has some, as it is."""
    name = name[:200]
    bare = plain(name)
    own = re.sub(r"\W+", "_", unicodedata.normalize("NFC", _apart(name)).lower()).strip("_")
    return (bare,) if own == bare else (bare, own)


_ALL = _read([language.WORDS for language in _LANGUAGES])
WORDS = tuple(word for word in _ALL if word.letter != _NONE)
_PERSONS = tuple(word for word in WORDS if word.letter == "A" and word.weak and word.whole)
_OTHERS = tuple(word for word in _ALL if word.letter == _NONE)
_FOREIGN_POSTCODES = (
    _word("B", "zip", ["post_?codes?"]),  # postal_code is written everywhere
    *(word for word in _read([language.WORDS for language in _FOREIGN]) if word.kind == "zip"),
)
_IDENTIFYING = tuple(
    (what, re.compile("|".join(parts.split()), re.IGNORECASE)) for what, parts in english.IDENTIFIER_PARTS
)
_SENSITIVE, _QUASI = (
    re.compile("|".join(parts.split()), re.IGNORECASE)
    for parts in (english.SENSITIVE_PARTS, english.QUASI_IDENTIFIER_PARTS)
)


def words_of(name: str, *, weak: bool = True) -> Word | None:
    """Return the first words that a name holds, weak ones only where they count."""
    names = _spellings(name)
    for word in WORDS:
        if (weak or not word.weak) and word.is_in(names):
            return None if word.letter == "A" and _says("thing", names) else word
    return None


def roles_of(name: str) -> Iterator[tuple[Role, str]]:
    """Yield the roles that a name tells, the likeliest first, each with what the column is named as.

    >>> [role.value for role, _ in roles_of("Einkommen")], [role.value for role, _ in roles_of("Sexe")]
    (['sensitive'], ['quasi-identifier'])
    """
    names = _spellings(name)
    for what, parts in _IDENTIFYING:
        if parts.search(name):
            yield Role.IDENTIFIER, what
    word = words_of(name, weak=False)
    if any(map(_SENSITIVE.search, (name, *names))) or (word is None and _says("sensitive", names)):
        yield Role.SENSITIVE, "something that must not be learnt"
    # A place, a date or an age.
    outside = _says("quasi-identifier", names) if word is None else word.letter in ("B", "C")
    if outside or _QUASI.search(name):
        yield Role.QUASI_IDENTIFIER, "something known from outside"


def weak_word_of(name: str) -> Word | None:
    """Return the weak words that are all of a name; those of a person's name wherever they stand.

    >>> [word and word.letter for word in map(weak_word_of, ("id", "ward_id", "doctor_name", "ward_name"))]
    ['R', None, 'A', None]
    """
    word = words_of(name)
    counts = word is not None and word.weak and (word.letter == "A" or word.is_all_of(_spellings(name)))
    return word if counts else None


def name_persons(names: Iterable[str]) -> bool:
    """Tell whether one of the columns of a table is surely named as a person's name.

    >>> name_persons(["Name", "Vorname"]), name_persons(["name", "species"])
    (True, False)
    """
    words = (words_of(name, weak=False) for name in names)
    return any(word is not None and word.letter == "A" for word in words)


def is_person(name: str) -> bool:
    """Tell whether a name is nothing but a word for a person or a person's name, which is a weak one.

    >>> is_person("Name"), is_person("Patient"), is_person("nombre"), is_person("doctor_name")
    (True, True, True, False)
    """
    return any(word.is_in(_spellings(name)) for word in _PERSONS)


def is_usual(name: str) -> bool:
    """Tell whether a name is nothing but a word that columns are often named by, and values hardly ever.

    >>> is_usual("Alter"), is_usual("zip code"), is_usual("Station 3"), is_usual("HIV")
    (True, True, False, False)
    """
    sure = [word for word in _ALL if not word.weak and word.kind != "sensitive"]  # which names illnesses, too
    role = _QUASI.fullmatch(name) or _QUASI.fullmatch(name.rstrip("s"))
    return role is not None or any(word.is_all_of(_spellings(name)) for word in sure)


def is_address(name: str) -> bool:
    """Tell whether a name is that of a street or an address; not of a computer's or for mail.

    >>> is_address("Straße"), is_address("home_address"), is_address("ip_address"), is_address("city")
    (True, True, False, False)
    """
    word = words_of(name, weak=False)
    return _says("address", _spellings(name)) and (word is None or word.letter == "B")


def is_postcode(name: str) -> bool:
    """Tell whether a name is that of a postcode, of whatever country."""
    word = words_of(name)
    return word is not None and word.kind == "zip"


def is_foreign_postcode(name: str) -> bool:
    """Tell whether a name is that of a postcode, but hardly one of the United States.

    >>> is_foreign_postcode("PLZ"), is_foreign_postcode("Postcode"), is_foreign_postcode("zip_code")
    (True, True, False)
    """
    return is_postcode(name) and any(word.is_in(_spellings(name)) for word in _FOREIGN_POSTCODES)


def _says(kind: str, names: Sequence[str]) -> bool:
    """Tell whether a name holds a word that is none of the rule's."""
    return any(word.is_in(names) for word in _OTHERS if word.kind == kind)
