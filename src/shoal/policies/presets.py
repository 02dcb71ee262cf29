"""Presets: first policies that follow a published rule, made from what each column of a table seems to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from shoal.core.builder import number_of
from shoal.core.schema import Role
from shoal.errors import UnknownName
from shoal.identifiers.looks import is_age, is_birth, oldest
from shoal.identifiers.names import words_of
from shoal.policies.first import column_line, last_lines, note_lines, policy_text, suggested
from shoal.policies.guesses import Guess
from shoal.policies.notes import notes_on, postcode_notes

# Three-digit ZIP areas with 20,000 people or fewer by the census of 2000, as the Department of Health and
# Human Services lists them: Guidance Regarding Methods for De-identification of Protected Health Information
# in Accordance with the HIPAA Privacy Rule (2012). A newer census has another list.
SMALL_ZIP_AREAS = (
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878", "879", "884",
    "890", "893",
)  # fmt: skip
_GONE = {"role": Role.IDENTIFIER.value}


def safe_harbor(guesses: Sequence[Guess], *, today: date | None = None) -> str:
    """Remove or coarsen the 18 identifiers of HIPAA's Safe Harbor, 45 CFR 164.514(b)(2); it asks for no k."""
    year = (today or date.today()).year
    parts = [_safe(found, year) for found in guesses]
    lines = [
        "# Safe Harbor, 45 CFR 164.514(b)(2)(i): the 18 identifiers (A) to (R) are removed or made coarse.",
        "# Guessed from the table. Check every column: what is not recognized is kept. Free text, and what",
        "# you know of persons who can still be told apart, are yours to judge.",
        "# Dates go to the year, ages of 90 and over are one group. ZIP codes keep three digits, and areas",
        "# of 20,000 people or fewer are 000: the list is that of the census of 2000, as HHS published it in",
        "# 2012. Give a newer one under `together`.",
        "# Safe Harbor asks for no k: other columns stay as they are, and a person may be alone with theirs.",
        "# Raise k, say to 11, and the suppression_limit, to protect those too.",
        *note_lines([entry for entry, _ in parts], preset_notes("safe-harbor", guesses)),
        "columns:",
    ]
    lines += [column_line(found, *part) for found, part in zip(guesses, parts, strict=True)]
    lines += ["models:", "  - k-anonymity: {k: 1}  # no record is suppressed", *last_lines("0")]
    return "\n".join(lines) + "\n"


def _safe(found: Guess, year: int) -> tuple[Mapping[str, Any], str]:
    """Return a column's part of a policy that follows Safe Harbor, and why."""
    finding = found.identifier
    rule = _coarse(found, year)
    if found.chosen:
        told = f"your choice; it looks like {finding.mark}" if finding else found.reason
        return (rule[0], told) if rule and found.role is Role.QUASI_IDENTIFIER else (suggested(found), told)
    if rule:
        return rule
    if finding:
        return _GONE, f"{finding.mark}: {finding.reason}"
    if found.perhaps:
        doubt = "few values differ, so it may be none; removed to be safe: to keep it, give it the role other"
        return _GONE, f"{found.perhaps.mark}: {found.perhaps.reason}; {doubt}"
    if not found.distinct and words_of(found.column, weak=False):
        return _GONE, "empty here, and named as one of the 18; removed to be safe: it may be filled elsewhere"
    if found.role is Role.QUASI_IDENTIFIER and found.kind in ("code", "category"):
        return suggested(found), f"{found.reason}; KEPT AS IT IS: see that it is no free text"
    return suggested(found), found.reason


def _coarse(found: Guess, year: int) -> tuple[Mapping[str, Any], str] | None:
    """Return how a ZIP code, a date or an age is made coarse; none for what must go, or may stay."""
    kind = found.identifier.kind if found.identifier else ""
    if kind == "zip":
        unknown = [code for code in _unknown(found) if number_of(code) is None]
        hierarchy: dict[str, Any] = {"prefix": [3], "together": list(SMALL_ZIP_AREAS), "label": "000"}
        return _least(hierarchy | {"pad": [5, 9]}, unknown), "(B) three digits of the ZIP code"
    if found.kind == "date":
        dates = {"dates": ["year", "decade"], **_kept(found, "format")}
        if is_birth(found.column):
            return _least(dates | {"bottom_coding": year - 89}, _unknown(found)), "(C) the year of birth"
        return _least(dates, _unknown(found)), "(C) the year alone"
    if kind == "birth year" and found.kind == "number":
        years = {"intervals": [1, 5, 10], "bottom_coding": year - 89, **_kept(found, "decimal")}
        return _least(years, _unknown(found)), "(C) years that tell ages over 89 are one group"
    if is_age(found.column) and found.kind == "number":
        most = oldest(found.column)
        unknown = [code for code in _unknown(found) if not most <= (number_of(code) or 0) < 2 * most]
        ages = {"intervals": [1, 5, 10, 20], "top_coding": most, **_kept(found, "decimal")}
        return _least(ages, unknown), "(C) ages over 89 are one group"
    return None


def _kept(found: Guess, option: str) -> dict[str, Any]:
    """Return how the column's values are written, where the guess says so."""
    return {option: found.hierarchy[option]} if option in found.hierarchy else {}


def _least(hierarchy: dict[str, Any], unknown: Sequence[str]) -> Mapping[str, Any]:
    """Return a quasi-identifier that is never released as it is."""
    extra = {"unknown": list(unknown)} if unknown else {}
    return {"role": Role.QUASI_IDENTIFIER.value, "hierarchy": hierarchy | extra, "min_level": 1}


def _unknown(found: Guess) -> Sequence[str]:
    hierarchy = found.hierarchy
    return hierarchy.get("unknown", ()) if isinstance(hierarchy, Mapping) else ()


def health_0_09(guesses: Sequence[Guess]) -> str:
    """Let nobody be found with a chance above 1 in 11 (0.09), as agencies ask of public health data."""
    about = (
        "Nobody is found with a chance above 1 in 11: 0.0909, which is written 0.09. For 0.09 to the letter,",
        "k is 12.",
    )
    return policy_text(guesses, k=11, about=about)


def health_0_05(guesses: Sequence[Guess]) -> str:
    """Let nobody be found with a chance above 1 in 20 (0.05), as some public health data are released."""
    return policy_text(guesses, k=20, about=("Nobody is found with a chance above 1 in 20: 0.05.",))


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
    name: str | None, guesses: Sequence[Guess], roles: Mapping[str, str] | None = None
) -> list[str]:
    """Say what is doubtful about columns, in roles that may be the user's own, and about a preset's rule."""
    if roles:
        guesses = [found.with_role(Role(roles[found.column])) for found in guesses]
    abroad = postcode_notes(guesses) if name == "safe-harbor" else ()
    return [*notes_on(guesses), *abroad]


def preset_text(name: str | None, guesses: Sequence[Guess]) -> str:
    """Write a first policy by a preset's name, or the usual one without."""
    check_preset(name)
    return policy_text(guesses) if name is None else PRESETS[name](guesses)
