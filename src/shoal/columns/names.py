"""What the name of a column means, in several languages: which identifier it is, and which role it has."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files

import yaml

from shoal.core.contracts import Role

_MONTHS = (
    "jan(uary|uar|vier|uari)? ene(ro)? gen(naio)? janeiro "
    "feb(ruary|ruar|rero|braio|ruari)? f[eé]vr?(ier)? fev(ereiro)? "
    "mar(ch|s|zo|t|ço)? m(ä|ae)rz? mrt maart apr(il|ile)? avr(il)? abr(il)? ma[iy] mayo mag(gio)? mei maio "
    "june? juni? juin junio giu(gno)? junho july? juli? juil(let)? julio lug(lio)? julho "
    "aug(ust|ustus)? ao[uû]t ago(sto)? sep(t(ember|embre)?)? septiembre set(tembre|embro)? "
    "o[ck]t(ober|obre)? octubre ott(obre)? out(ubro)? nov(ember|embre|iembre|embro)? "
    "de[cz](ember)? d[eé]c(embre)? dic(iembre|embre)? dez(embro)?"
)
_WEEKDAYS = (
    "mon(day|tag)? tue(s|sday)? wed(nesday)? thu(r|rs|rsday)? fri(day)? sat(urday)? sun(day)? "
    "dienstag mittwoch donnerstag freitag samstag sonnabend sonntag "
    "lundi mardi mercredi jeudi vendredi samedi dimanche "
    "lunes martes mi[eé]rcoles jueves viernes s[aá]bado domingo "
    "luned[iì] marted[iì] mercoled[iì] gioved[iì] venerd[iì] sabato domenica "
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag "
    "segunda terça quarta quinta sexta"
)
MONTH = "(?:" + "|".join(_MONTHS.replace("(", "(?:").split()) + r")\.?"
_WEEKDAY = "(?:" + "|".join(_WEEKDAYS.replace("(", "(?:").split()) + r")(?:-feira)?\.?"
_WRITTEN = re.compile(f"{MONTH}|{_WEEKDAY}", re.IGNORECASE)


def is_month_or_weekday(text: str) -> bool:
    """Return whether a text is the name of a month or a weekday.

    >>> [is_month_or_weekday(text) for text in ("März", "Tue", "segunda-feira", "mars 2021", "marsh")]
    [True, True, True, False, False]
    """
    return len(text) <= 15 and _WRITTEN.fullmatch(text) is not None


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled loader is ten times faster
TABLES = yaml.load((files("shoal") / "data" / "words.yaml").read_text("utf-8"), Loader=_LOADER)
FOREIGN = (
    "german",
    "french",
    "spanish",
    "italian",
    "dutch",
    "portuguese",
)  # languages whose postcodes are not ZIP codes
_NO = "(?:id|ids|no|nr|num|number|nummer|numero)"
_WHEN = (
    "(?:birth|admission|admit|admitted|discharge|discharged|death|visit|event|encounter|surgery|operation|"
    "service|diagnosis|procedure|treatment|onset|enrol?lment)"
)
_PART_OF_ADDRESS = re.compile(  # a part of an address that many people have in common, such as address_city
    "^(?!.*stre).*addr(?:ess)?_(?:state|country|region|province|county|city|town|zip|zip_?code|post_?code)$"
)
_NONE = "-"  # instead of the letter of an identifier


@dataclass(frozen=True)
class Word:
    """Words that mean one identifier or kind. Weak words count only if the values distinguish persons."""

    letter: str
    kind: str
    text: str
    weak: bool
    whole: bool  # True: a word must be the whole name

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The words as a regular expression, compiled on first use because few commands need it."""
        return re.compile(self.text)

    def is_in(self, names: Sequence[str]) -> bool:
        """Return whether any spelling of a name contains one of the words."""
        return any(map(self.pattern.search, names))

    def is_all_of(self, names: Sequence[str]) -> bool:
        """Return whether any spelling of a name equals one of the words."""
        return any(map(self.pattern.fullmatch, names))


def _read(tables: Sequence[str]) -> tuple[Word, ...]:
    """Read the tables of some languages; lines with the same letter and kind are merged."""
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
    """Write a word as in a normalized name, with both spellings of umlauts; after "=", accents are kept.

    >>> _unaccented("größe"), _unaccented("prénom"), _unaccented("=età")
    ('groe?sse', 'prenom', 'età')
    """
    if word.startswith("="):
        return word[1:]
    for umlaut, letter in zip("äöü", "aou", strict=True):
        word = word.replace(umlaut, f"{letter}e?")
    return without_accents(word)


def without_accents(text: str) -> str:
    """Return a text without accents.

    >>> without_accents("Straße, año, São")
    'Strasse, ano, Sao'
    """
    text = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(letter for letter in text if not unicodedata.combining(letter))


def normalized_name(name: str) -> str:
    """Return a name in lowercase without accents, its words joined by underscores.

    >>> normalized_name("PatientLastName"), normalized_name("Téléphone (privé)"), normalized_name("ZIP+4")
    ('patient_last_name', 'telephone_prive', 'zip_4')
    """
    return re.sub(r"[^a-z0-9]+", "_", without_accents(_split_capitals(name)).lower()).strip("_")


def _split_capitals(name: str) -> str:
    """Insert underscores between words that are separated by capital letters."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)


@lru_cache(1000)
def _spellings(name: str) -> tuple[str, ...]:
    """Return the normalized name and, if the name has accents, also its spelling with accents."""
    name = name[:200]
    bare = normalized_name(name)
    accented = re.sub(r"\W+", "_", unicodedata.normalize("NFC", _split_capitals(name)).lower()).strip("_")
    return (bare,) if accented == bare else (bare, accented)


_ALL = _read([TABLES[language] for language in ("english", *FOREIGN)])
WORDS = tuple(word for word in _ALL if word.letter != _NONE)
_PERSONS = tuple(word for word in WORDS if word.letter == "A" and word.weak and word.whole)
_OTHERS = tuple(word for word in _ALL if word.letter == _NONE)
_FOREIGN_POSTCODES = (
    _word("B", "zip", ["post_?codes?"]),  # postal_code is written everywhere
    *(word for word in _read([TABLES[language] for language in FOREIGN]) if word.kind == "zip"),
)
_IDENTIFYING = tuple(
    (what, re.compile("|".join(parts.split()), re.IGNORECASE))
    for what, parts in TABLES["identifier_parts"].items()
)
_SENSITIVE, _INCOME, _QUASI = (
    re.compile("|".join(TABLES[f"{role}_parts"].split()), re.IGNORECASE)
    for role in ("sensitive", "income", "quasi_identifier")
)
# These words also occur in names of illnesses, or are too common to distinguish a header from a record.
_NOT_USUAL = tuple(
    (_NONE, kind)
    for kinds in (
        "sensitive income time age place state key text",
        "outcome count person-key id lifelong nominal",
    )
    for kind in kinds.split()
)


@lru_cache(1000)
def words_of(name: str, *, weak: bool = True) -> Word | None:
    """Return the first entry that has a word of a name; weak entries are searched only if `weak`."""
    names = _spellings(name)
    for word in WORDS:
        if (weak or not word.weak) and word.is_in(names):
            return None if word.letter == "A" and _says("thing", names) else word
    return None


def roles_of(name: str) -> Iterator[tuple[Role, str]]:
    """Yield the roles that a name suggests, the most likely first, each with what the name means.

    >>> [role.value for role, _ in roles_of("Einkommen")], [role.value for role, _ in roles_of("Sexe")]
    (['sensitive'], ['quasi-identifier'])
    """
    names = _spellings(name)
    for what, parts in _IDENTIFYING:
        if parts.search(name):
            yield Role.IDENTIFIER, what
    word = words_of(name, weak=False)
    if is_sensitive(name):
        yield Role.SENSITIVE, "something that must not be learnt"
    # A place, a date or an age.
    outside = _says("quasi-identifier", names) if word is None else word.letter in ("B", "C")
    if outside or _QUASI.search(name):
        yield Role.QUASI_IDENTIFIER, "something known from outside"


def is_sensitive(name: str) -> bool:
    """Return whether a name is about illness, treatment, money or belief.

    >>> is_sensitive("diagnosis_date"), is_sensitive("revenu_annuel"), is_sensitive("ward")
    (True, True, False)
    """
    names = _spellings(name)
    if any(map(_SENSITIVE.search, (name, *names))) or any(map(_INCOME.search, (name, *names))):
        return True
    foreign = _says("sensitive", names) or _says("income", names)
    return foreign and words_of(name, weak=False) is None


def is_income(name: str) -> bool:
    """Return whether a name means money that a person has or earns."""
    names = _spellings(name)
    return any(map(_INCOME.search, (name, *names))) or _says("income", names)


def is_named_as(name: str, kind: str) -> bool:
    """Return whether a name contains a word that the word tables list under `- kind`.

    >>> is_named_as("therapy_start", "time"), is_named_as("DiagnosingHospital", "place")
    (True, True)
    """
    return _says(kind, _spellings(name))


def weak_word_of(name: str) -> Word | None:
    """Return the weak entry that matches a whole name. For names of persons, one matching word is enough.

    >>> [word and word.letter for word in map(weak_word_of, ("id", "ward_id", "doctor_name", "ward_name"))]
    ['R', None, 'A', None]
    """
    word = words_of(name)
    counts = word is not None and word.weak and (word.letter == "A" or word.is_all_of(_spellings(name)))
    return word if counts else None


def name_persons(names: Iterable[str]) -> bool:
    """Return whether a column is certainly named as the name of a person.

    >>> name_persons(["Name", "Vorname"]), name_persons(["name", "species"])
    (True, False)
    """
    words = (words_of(name, weak=False) for name in names)
    return any(word is not None and word.letter == "A" for word in words)


def is_person(name: str) -> bool:
    """Return whether a name is only a word for a person or a person's name (a weak word).

    >>> is_person("Name"), is_person("Patient"), is_person("nombre"), is_person("doctor_name")
    (True, True, True, False)
    """
    return any(word.is_in(_spellings(name)) for word in _PERSONS)


def is_usual(name: str) -> bool:
    """Return whether a name is a common column name that rarely occurs as a value.

    >>> is_usual("Alter"), is_usual("zip code"), is_usual("Station 3"), is_usual("HIV")
    (True, True, False, False)
    """
    sure = [word for word in _ALL if not word.weak and (word.letter, word.kind) not in _NOT_USUAL]
    role = _QUASI.fullmatch(name) or _QUASI.fullmatch(name.rstrip("s"))
    return role is not None or any(word.is_all_of(_spellings(name)) for word in sure)


def is_address(name: str) -> bool:
    """Return whether a name means a street or a postal address, not an IP or e-mail address.

    >>> is_address("Straße"), is_address("home_address"), is_address("ip_address"), is_address("addr_state")
    (True, True, False, False)
    """
    if _PART_OF_ADDRESS.search(normalized_name(name)):
        return False
    word = words_of(name, weak=False)
    return _says("address", _spellings(name)) and (word is None or word.letter == "B")


def is_postcode(name: str) -> bool:
    """Return whether a column is named as a postcode of any country."""
    word = words_of(name)
    return word is not None and word.kind == "zip"


def is_foreign_postcode(name: str) -> bool:
    """Return whether a name means a postcode, but probably not one of the United States.

    >>> is_foreign_postcode("PLZ"), is_foreign_postcode("Postcode"), is_foreign_postcode("zip_code")
    (True, True, False)
    """
    return is_postcode(name) and any(word.is_in(_spellings(name)) for word in _FOREIGN_POSTCODES)


def _says(kind: str, names: Sequence[str]) -> bool:
    """Return whether a name contains a word of a kind that is no Safe Harbor identifier."""
    return any(word.is_in(names) for word in _OTHERS if word.kind == kind)
