"""First policies: guessed from a table or by a published rule, with notes on doubtful columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from textwrap import wrap
from typing import Any

import yaml

from shoal.columns.guesses import Guess, person_key_of
from shoal.columns.identifiers import is_age, is_birth, oldest
from shoal.columns.names import is_foreign_postcode, words_of
from shoal.core.contracts import Role
from shoal.core.hierarchy.builder import number_of
from shoal.errors import UnknownName
from shoal.wording import percent

DEFAULT_LIMIT = "5%"
_LEAST_SEPARATION = 0.19  # the separation of a column in which 9 of 10 records have the same value
_MOST_CERTAIN = 0.8  # maximum share of a rare sensitive value in a class
FIRST_METRIC = "coverage"  # the metric of a first policy


def policy_text(
    guesses: Sequence[Guess],
    *,
    k: int = 5,
    suppression_limit: str = DEFAULT_LIMIT,
    comments: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """Write the guesses as a commented policy to edit."""
    entries = [suggested_entry(guess) for guess in guesses]
    lines = [
        "# A first policy, guessed from the table. Check every role: only you know who knows what.",
        "# Roles: identifier (removed), quasi-identifier (generalized), sensitive, other (kept as is).",
        *(f"# {line}" for line in comments),
        *note_lines(entries, [*notes, *notes_on(guesses, _units(guesses)), *_one_sided_notes(guesses)]),
        "columns:",
        *(column_line(guess, entry, guess.reason) for guess, entry in zip(guesses, entries, strict=True)),
        "models:",
        f"  - k-anonymity: {_k_anonymity(k, guesses)}",
    ]
    lines += _diversity(k, guesses)
    return "\n".join([*lines, *last_lines(suppression_limit)]) + "\n"


def _is_one_sided(guess: Guess) -> bool:
    """Return whether nearly all records have one value, so that few classes can have a second value."""
    return guess.separation < _LEAST_SEPARATION


def _diversity(k: int, guesses: Sequence[Guess]) -> Iterator[str]:
    """Yield the lines of the models for sensitive columns.

    If nearly all records have the same value, requiring a second value in every class would cost nearly all
    information. Then a class may have only this value, and only the share of rare values is limited.
    """
    sensitive = [guess for guess in guesses if guess.role is Role.SENSITIVE]
    spread = [guess.column for guess in sensitive if not _is_one_sided(guess)]
    comment = "  # every class holds two different sensitive values"
    if spread and len(spread) == len(sensitive):
        yield f"  - distinct-l-diversity: {{l: 2}}{comment}"
    else:
        yield from (
            f"  - distinct-l-diversity: {_flow({'l': 2, 'column': name})}{comment}" for name in spread
        )
    for guess in sensitive:
        if guess.distinct > 1 and _is_one_sided(guess):
            options = {"alpha": _MOST_CERTAIN, "k": k, "rarer_than": 0.5, "column": guess.column}
            yield f"  - alpha-k-anonymity: {_flow(options)}  # no rare value is nearly certain in a class"


def _one_sided_notes(guesses: Sequence[Guess]) -> Iterator[str]:
    """Yield notes on the sensitive columns for which a class may have only the common value."""
    for guess in guesses:
        if guess.role is Role.SENSITIVE and guess.distinct > 1 and _is_one_sided(guess):
            yield (
                f"Nearly all records have the same value in the sensitive column {guess.column!r}. Classes "
                "may hold only this value: if each had to hold a second one, little would be retained. No "
                f"rarer value has more than {percent(_MOST_CERTAIN)} of a class. To require two values, add "
                f"the model distinct-l-diversity with l: 2 and column: {guess.column}."
            )


def _units(guesses: Sequence[Guess]) -> Sequence[str]:
    key = person_key_of(guesses)
    return () if key is None else (key.column,)


def _k_anonymity(k: int, guesses: Sequence[Guess]) -> str:
    """Write the options of k-anonymity, which counts persons if they have several rows."""
    key = person_key_of(guesses)
    if key is None:
        return f"{{k: {k}}}"
    return (
        f"{_flow({'k': k, 'unit': key.column})}  # k counts persons: {key.persons:,} in {key.records:,} rows"
    )


def note_lines(entries: Iterable[Mapping[str, Any]], notes: Sequence[str]) -> list[str]:
    """Write notes as comments, and explain the codes in `unknown`, if there are any."""
    comments = [f"Note: {note}" for note in notes]
    if any("unknown" in entry.get("hierarchy", ()) for entry in entries):
        comments.append(
            "`unknown` lists well-known codes such as 99 or NA. No other value of the table is here."
        )
    return [f"# {line}" for note in comments for line in wrap(note, 108, subsequent_indent="  ")]


def suggested_entry(guess: Guess) -> dict[str, Any]:
    """Return the guessed entry of a column in the policy."""
    entry: dict[str, Any] = {"role": guess.role.value}
    if guess.role is not Role.QUASI_IDENTIFIER:
        return entry
    entry["hierarchy"] = guess.hierarchy
    return entry | {"weight": WEIGHT, "max_level": guess.max_level} if guess.needed else entry


def column_line(guess: Guess, entry: Mapping[str, Any], reason: str) -> str:
    """Write a column's entry on one line, with a comment that says what it contains, and the reason."""
    missing = f", {guess.missing:,} missing" if guess.missing else ""
    description = f"{guess.column_kind}: {guess.kind}, {guess.distinct:,} distinct{missing}"
    return f"  {_flow(guess.column)}: {_flow(dict(entry))}  # {description}; {reason}"


def last_lines(suppression_limit: str) -> tuple[str, ...]:
    """Return the lines that end every first policy."""
    return (
        f"suppression_limit: {suppression_limit}",
        f"metric: {FIRST_METRIC}",
        "algorithm: auto",
    )


class _Dumper(yaml.SafeDumper):
    """Quotes every text of digits, because other readers of YAML parse 059 as a number."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if text.isdigit() else None)


_Dumper.add_representer(str, _quoted)


def _flow(value: object) -> str:
    text = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n...\n").strip()


def notes_on(guesses: Sequence[Guess], units: Collection[str] = ()) -> list[str]:
    """Return notes on doubtful columns and pairs of columns; `units` are the unit columns of the models."""
    return [
        *_similar_names([guess.column for guess in guesses]),
        *_persons(guesses, units),
        *(note for guess in guesses for note in guess.notes),
        *_ages_beside_births(guesses),
    ]


def _persons(guesses: Sequence[Guess], units: Collection[str]) -> Iterator[str]:
    """Yield notes that persons have several rows, and what to change in the policy."""
    key = person_key_of(guesses)
    if key and key.column in units:
        yield f"{key}: the policy has unit: {key.column}, so that k-anonymity counts persons and not rows."
    elif key:
        yield f"{key}: k counts rows. {key.advice[0].upper()}{key.advice[1:]}."
    for guess in guesses:
        if guess.person_key and not guess.person_key.certain:
            role = "" if guess.role is Role.IDENTIFIER else "give it the role identifier, and "
            yield f"{guess.person_key}: if so, {role}{guess.person_key.advice}."


def _similar_names(names: Sequence[str]) -> Iterator[str]:
    """Yield notes on columns whose names are easily confused."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.strip().casefold(), []).append(name)
    for group in groups.values():
        if len(group) > 1:
            columns = " and ".join(map(repr, group))
            yield f"Columns {columns} differ only by case or by spaces around the name. Rename all but one."
    for name in names:
        if name != name.strip() and len(groups[name.strip().casefold()]) == 1:
            yield f"Column {name!r} has spaces around its name: write them in the policy too, or rename it."


def _ages_beside_births(guesses: Sequence[Guess]) -> Iterator[str]:
    """Yield notes on an age and a date or year of birth that are both quasi-identifiers."""
    quasi = [guess.column for guess in guesses if guess.role is Role.QUASI_IDENTIFIER]
    births = [name for name in quasi if is_birth(name)]
    for age in filter(is_age, quasi):
        for birth in births:
            yield (
                f"Columns {age!r} and {birth!r} say nearly the same, so that one shows what is generalized "
                "in the other. Keep one of them, and give the other the role identifier, which removes it."
            )


def postcode_notes(guesses: Sequence[Guess]) -> Iterator[str]:
    """Yield notes on postcodes outside the United States, to which the rule does not apply."""
    for guess in guesses:
        if guess.role is not Role.IDENTIFIER and is_foreign_postcode(guess.column):
            yield (
                f"Column {guess.column!r} is named as a postcode of another country. Safe Harbor is a rule "
                "of the United States: its list of small areas, under `together`, says nothing about other "
                "countries. List the areas of yours that have few people, or remove the column."
            )


# Three-digit ZIP areas with 20,000 people or fewer by the census of 2000, as the Department of Health and
# Human Services lists them: Guidance Regarding Methods for De-identification of Protected Health Information
# in Accordance with the HIPAA Privacy Rule (2012). A newer census has another list.
SMALL_ZIP_AREAS = (
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878", "879", "884",
    "890", "893",
)  # fmt: skip
WEIGHT = 2  # the weight of a column that an outsider knows and the analyst needs
_REMOVED = {"role": Role.IDENTIFIER.value}


def safe_harbor(guesses: Sequence[Guess], *, today: date | None = None) -> str:
    """Remove or generalize the 18 identifiers of HIPAA's Safe Harbor, 45 CFR 164.514(b)(2); it needs no k."""
    year = (today or date.today()).year
    parts = [_safe_harbor_entry(guess, year) for guess in guesses]
    lines = [
        "# Safe Harbor, 45 CFR 164.514(b)(2)(i): the 18 identifiers (A) to (R) are removed or made coarse.",
        "# Guessed from the table. Check every column: what is not recognized is kept. Free text, and what",
        "# you know of persons who can still be distinguished, are for you to judge.",
        "# Dates go to the year, ages of 90 and over are one group. ZIP codes keep three digits, and areas",
        "# of 20,000 people or fewer are 000: the list is that of the census of 2000, as HHS published it in",
        "# 2012. Give a newer one under `together`.",
        "# Safe Harbor asks for no k: other columns stay as they are, and a person may be unique in them.",
        "# Raise k, say to 11, and the suppression_limit, to protect those too.",
        *note_lines([entry for entry, _ in parts], preset_notes("safe-harbor", guesses)),
        "columns:",
    ]
    lines += [column_line(guess, *part) for guess, part in zip(guesses, parts, strict=True)]
    lines += ["models:", "  - k-anonymity: {k: 1}  # no record is suppressed", *last_lines("0")]
    return "\n".join(lines) + "\n"


def _safe_harbor_entry(guess: Guess, year: int) -> tuple[Mapping[str, Any], str]:
    finding = guess.identifier
    rule = _coarse_entry(guess, year)
    if guess.chosen:
        reason = f"your choice; it looks like {finding.mark}" if finding else guess.reason
        return (
            (rule[0], reason)
            if rule and guess.role is Role.QUASI_IDENTIFIER
            else (suggested_entry(guess), reason)
        )
    if rule:
        return rule
    if finding:
        return _REMOVED, f"{finding.mark}: {finding.reason}"
    if guess.possible_identifier:
        doubt = "few values differ, so it may be none; removed to be safe: to keep it, give it the role other"
        return _REMOVED, f"{guess.possible_identifier.mark}: {guess.possible_identifier.reason}; {doubt}"
    if not guess.distinct and words_of(guess.column, weak=False):
        return (
            _REMOVED,
            "empty here, and named as one of the 18; removed to be safe: it may be filled elsewhere",
        )
    if guess.role is Role.QUASI_IDENTIFIER and guess.kind in ("code", "category"):
        return suggested_entry(guess), f"{guess.reason}; KEPT AS IT IS: check that it is not free text"
    return suggested_entry(guess), guess.reason


def _coarse_entry(guess: Guess, year: int) -> tuple[Mapping[str, Any], str] | None:
    """Return the entry that generalizes a ZIP code, a date or an age; None for any other column."""
    kind = guess.identifier.kind if guess.identifier else ""
    if kind == "zip":
        unknown = [code for code in _unknown_codes(guess) if number_of(code) is None]
        hierarchy: dict[str, Any] = {"prefix": [3], "together": list(SMALL_ZIP_AREAS), "label": "000"}
        return _generalized(hierarchy | {"pad": [5, 9]}, unknown), "(B) three digits of the ZIP code"
    if guess.kind == "date":
        dates = {"dates": ["year", "decade"], **_as_written(guess, "format", "latest", "uncovered")}
        if is_birth(guess.column):
            return _generalized(
                dates | {"bottom_coding": year - 89}, _unknown_codes(guess)
            ), "(C) the year of birth"
        return _generalized(dates, _unknown_codes(guess)), "(C) the year alone"
    if kind == "birth year" and guess.kind == "number":
        years = {"intervals": [1, 5, 10], "bottom_coding": year - 89, **_as_written(guess, "decimal")}
        return _generalized(years, _unknown_codes(guess)), "(C) years that reveal ages over 89 are one group"
    if is_age(guess.column) and guess.kind == "number":
        most = oldest(guess.column)
        unknown = [code for code in _unknown_codes(guess) if not most <= (number_of(code) or 0) < 2 * most]
        ages = {"intervals": [1, 5, 10, 20], "top_coding": most, **_as_written(guess, "decimal")}
        return _generalized(ages, unknown), "(C) ages over 89 are one group"
    return None


def _as_written(guess: Guess, *options: str) -> dict[str, Any]:
    """Return options of the guessed hierarchy on how values are written, such as the date format."""
    known = guess.hierarchy if isinstance(guess.hierarchy, Mapping) else {}
    return {option: known[option] for option in options if option in known}


def _generalized(hierarchy: dict[str, Any], unknown: Sequence[str]) -> Mapping[str, Any]:
    """Return the entry of a quasi-identifier that is never released at level 0."""
    extra = {"unknown": list(unknown)} if unknown else {}
    return {"role": Role.QUASI_IDENTIFIER.value, "hierarchy": hierarchy | extra, "min_level": 1}


def _unknown_codes(guess: Guess) -> Sequence[str]:
    hierarchy = guess.hierarchy
    return hierarchy.get("unknown", ()) if isinstance(hierarchy, Mapping) else ()


def health_0_09(guesses: Sequence[Guess]) -> str:
    """Limit the chance of finding a person to 1 in 11 (0.09), as agencies ask of public health data."""
    comments = (
        "Nobody is found with a chance above 1 in 11: 0.0909, which is written 0.09. For 0.09 to the letter,",
        "k is 12.",
    )
    return policy_text(guesses, k=11, comments=comments)


def health_0_05(guesses: Sequence[Guess]) -> str:
    """Limit the chance of finding a person to 1 in 20 (0.05), as for some public health data."""
    return policy_text(guesses, k=20, comments=("Nobody is found with a chance above 1 in 20: 0.05.",))


PRESETS: dict[str, Callable[[Sequence[Guess]], str]] = {
    "health-0.05": health_0_05,
    "health-0.09": health_0_09,
    "safe-harbor": safe_harbor,
}


def check_preset(name: str | None) -> None:
    """Refuse a preset that does not exist."""
    if name is not None and name not in PRESETS:
        raise UnknownName(name, "preset", PRESETS)


def preset_notes(
    name: str | None,
    guesses: Sequence[Guess],
    roles: Mapping[str, str] | None = None,
    units: Collection[str] = (),
) -> list[str]:
    """Return notes on doubtful columns and on a preset's rule; `roles` are those that the user chose.

    `units` are the columns by which the models count persons.
    """
    if roles:
        guesses = [guess.with_role(Role(roles[guess.column])) for guess in guesses]
    abroad = postcode_notes(guesses) if name == "safe-harbor" else ()
    diversity = _one_sided_notes(guesses) if name is None else ()
    return [*notes_on(guesses, units), *diversity, *abroad]


def preset_text(name: str | None, guesses: Sequence[Guess]) -> str:
    """Return the first policy of a preset; without a name, return the default policy."""
    check_preset(name)
    return policy_text(guesses) if name is None else PRESETS[name](guesses)
