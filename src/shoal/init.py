"""A first policy for a table: guessed roles with the reason, types, and a hierarchy that fits each column.

What is not recognized becomes a quasi-identifier, for that is the safe side. The policy holds no value of
the data but well-known codes for "unknown".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import yaml

from shoal.choose import AUTO, engine_for
from shoal.core.builder import Builder, number_of
from shoal.core.builders import BUILDERS
from shoal.core.calendar import DATE_UNITS, TIME_UNITS, minute_of
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain, missing_records
from shoal.core.schema import Role
from shoal.errors import DataError
from shoal.identifier_values import is_date
from shoal.identifiers import Finding, identifiers_in, looks_like, unique_code

# Parts of column names, in the order in which they are tried: role, what it is, words.
_NAMES = (
    (Role.IDENTIFIER, "a direct identifier", "e-?mail phone mobile fax passport ssn iban url ip.?address"),
    (Role.IDENTIFIER, "a person's name or address", "name$ street address"),
    (
        Role.IDENTIFIER,
        "a number that points at one person",
        r"(^|_|\b)id$ uuid guid mrn nhs card record.?n patient.?n account licen[cs]e social.?security",
    ),
    (
        Role.SENSITIVE,
        "something that must not be learnt",
        "diagnos disease illness condition icd therapy drug medic hiv salary income wage religion politic",
    ),
    (
        Role.QUASI_IDENTIFIER,
        "something known from outside",
        "age birth dob sex gender zip post.?(al|code) plz city town region state country nation race ethnic "
        "marital educ occupation job work.?class insur date admi discharg death year month language weight",
    ),
)
_UNKNOWN = {
    "unknown", "Unknown", "UNKNOWN", "U", "u", "?", "NA", "N/A", "n/a", "na", "-", "none", "-1", "99", "999",
    "9999", "99999", "999999",
}  # fmt: skip
_DATE_FORMATS = (None, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d")


@dataclass(frozen=True)
class Guess:
    """What a column seems to be."""

    column: str
    kind: str  # number, date, time, code, category, empty
    distinct: int
    distinct_share: float  # of the records
    missing: int
    unique_share: float  # records whose value nobody else has
    separation: float  # pairs of records that differ in the column
    role: Role
    reason: str
    hierarchy: Any
    identifier: Finding | None = None  # which of the 18 identifiers of Safe Harbor it looks like
    chosen: bool = False  # the role is the user's own

    def with_role(self, role: Role) -> Guess:
        """Return the guess with the user's own role."""
        changed = role is not self.role
        return replace(self, role=role, reason="your choice", chosen=True) if changed else self


def guess(table: Any, *, engine: str | Engine = AUTO) -> list[Guess]:
    """Look at every column of a table and guess its role and hierarchy."""
    engine = engine_for(engine, table)
    opened = engine.open(table)
    check_header(engine.columns(opened))
    found = []
    for name in engine.columns(opened):
        counts, domains = engine.count(opened, [name])
        if not len(counts):
            message = "The table has no rows."
            raise DataError(message)
        found.append(guess_column(name, counts, domains[name]))
    return found


def safe_harbor_findings(table: Any, *, engine: str | Engine = AUTO) -> dict[str, Finding]:
    """Return the columns of a table that look like one of the 18 identifiers of Safe Harbor, and why."""
    return identifiers_in(guess(table, engine=engine))


def check_header(columns: Sequence[str]) -> None:
    """Refuse a table whose first line is a record; its values are not shown."""
    if any(re.fullmatch(r"[\d.,:/ -]*\d[\d.,:/ -]*", name) for name in columns):
        message = (
            "The first line holds numbers or dates, so it seems to be a record. Add a line of column names."
        )
        raise DataError(message)


def guess_column(name: str, counts: Counts, domain: Domain) -> Guess:
    """Guess what a column is from the counts of its values."""
    texts = [text for text in domain.texts if text is not None]
    unknown = _unknown(texts)
    known = [text for text in texts if text not in unknown]
    kind, hierarchy = _kind(known, unknown)
    null = missing_records(counts, domain)
    unique = int((counts.sizes == 1).sum()) / counts.records
    finding = looks_like(name, known, records=counts.records)
    role, reason = _role(name, finding, len(texts), counts.records)
    if role is None and unique > 0.9 and counts.records > 20 and kind in ("code", "category"):
        finding = finding or unique_code()
        role, reason = Role.IDENTIFIER, "nearly every value occurs once"
    return Guess(
        column=name,
        kind=kind,
        distinct=len(texts),
        distinct_share=len(texts) / counts.records,
        missing=null,
        unique_share=unique,
        separation=_separation(counts),
        role=role or Role.QUASI_IDENTIFIER,
        reason=reason,
        hierarchy=hierarchy,
        identifier=finding,
    )


def _separation(counts: Counts) -> float:
    records = counts.records
    pairs = records * (records - 1)
    return 1 - int((counts.sizes * (counts.sizes - 1)).sum()) / pairs if pairs else 0.0


def _unknown(texts: Sequence[str]) -> list[str]:
    """Return the codes that mean "unknown": among numbers, only one that lies far from all others."""
    found = [text for text in texts if text in _UNKNOWN]
    if not any(number_of(text) is not None for text in found):
        return found
    if any(len(text) > 1 and text.startswith("0") for text in texts):  # digits, but codes
        return found
    numbers = sorted({number for text in texts if (number := number_of(text)) is not None})
    return [text for text in found if _far(number_of(text), numbers)]


def _far(code: Decimal | None, numbers: Sequence[Decimal]) -> bool:
    """Tell whether a code lies far from all other numbers, which ascend, or is none."""
    if code is None or len(numbers) == 1:
        return True
    if code > 0:
        return max(number for number in numbers[-2:] if number != code) < code / 2
    return min(number for number in numbers[:2] if number != code) >= 0


def _role(name: str, finding: Finding | None, distinct: int, records: int) -> tuple[Role | None, str]:
    """Return a role with the reason, or none where nothing tells it."""
    if finding and finding.direct and finding.by != "name":
        return Role.IDENTIFIER, finding.reason
    for role, what, words in _NAMES:
        if re.search("|".join(words.split()), name, re.IGNORECASE):
            if role is Role.IDENTIFIER and distinct < records / 4:
                continue  # an identifier tells persons apart
            return role, f"named as {what}"
    if finding and finding.direct and finding.sure:
        return Role.IDENTIFIER, finding.reason
    return None, "not recognized; this is the safe side"


def _kind(texts: Sequence[str], unknown: Sequence[str]) -> tuple[str, Any]:
    """Return what the values are and a builder that fits them."""
    extra = {"unknown": list(unknown)} if unknown else {}
    if not texts:
        return "empty", "flat"
    days = len(texts) > 5 and all(len(text) == 8 and text.isdigit() and is_date(text) for text in texts)
    if days and all(_is_date(text, "%Y%m%d") for text in texts):
        return "date", {"dates": ["month", "quarter", "year"], "format": "%Y%m%d", **extra}
    length = len(texts[0])
    numbers = _numbers(texts)
    if numbers and not _are_codes(texts):
        return "number", {"intervals": _widths(numbers), **extra} if len(texts) > 5 else "flat"
    for style in _DATE_FORMATS:
        if all(_is_date(text, style) for text in texts):
            form = {"format": style} if style else {}
            return "date", {"dates": ["month", "quarter", "year"], **form, **extra}
    if all(":" in text and minute_of(text) is not None for text in texts):
        return "time", {"times": ["hour", "part_of_day"], **extra}
    if len(texts) > 5 and 3 <= length <= 12 and all(len(t) == length and _is_code(t) for t in texts):
        return "code", {"prefix": list(range(length - 2, 0, -1))[:4], **extra}
    return "category", "flat"


def _numbers(texts: Sequence[str]) -> list[Decimal]:
    """Return the numbers that the texts are; none where one is no number, which is mostly soon seen."""
    found = []
    for text in texts:
        number = number_of(text)
        if number is None:
            return []
        found.append(number)
    return found


def _are_codes(texts: Sequence[str]) -> bool:
    """Tell digits of one length, some with a zero before them, from numbers."""
    length = len(texts[0])
    return (
        len(texts) > 5
        and any(text[0] == "0" for text in texts)
        and all(len(text) == length for text in texts)
    )


def _is_date(text: str, style: str | None) -> bool:
    try:
        _ = datetime.strptime(text, style) if style else datetime.fromisoformat(text)
    except ValueError:
        return False
    return style is not None or "-" in text


def _is_code(text: str) -> bool:
    return text.isascii() and text.isalnum() and any(letter.isdigit() for letter in text)


def _widths(numbers: Sequence[Decimal]) -> list[float | int]:
    """Return three widths, each twice the one before, the first about a twentieth of the range."""
    spread = max(numbers) - min(numbers)
    step = Decimal(1)
    while step * 100 < spread:
        step *= 10
    while spread and step > spread:
        step /= 10
    least = next((step * f for f in (1, 2, 5, 10) if step * f * 20 >= spread), step * 10)
    return [_plain(least * factor) for factor in (1, 2, 4)]


def _plain(number: Decimal) -> float | int:
    return int(number) if number == number.to_integral_value() else float(number)


def policy_text(
    guesses: Sequence[Guess], *, k: int = 5, suppression_limit: str = "5%", about: Sequence[str] = ()
) -> str:
    """Write the guesses as a commented policy to edit."""
    lines = [
        "# A first policy, guessed from the table. Check every role: only you know who knows what.",
        "# Roles: identifier (removed), quasi-identifier (generalized), sensitive, other (kept as is).",
        *(f"# {line}" for line in about),
        "columns:",
        *(column_line(found, suggested(found), found.reason) for found in guesses),
        "models:",
        f"  - k-anonymity: {{k: {k}}}",
    ]
    if any(found.role is Role.SENSITIVE for found in guesses):
        lines.append("  - distinct-l-diversity: {l: 2}  # every class holds two different sensitive values")
    return "\n".join([*lines, *last_lines(suppression_limit)]) + "\n"


def suggested(found: Guess) -> dict[str, Any]:
    """Return a column's part of the policy, as guessed."""
    entry: dict[str, Any] = {"role": found.role.value}
    return entry | {"hierarchy": found.hierarchy} if found.role is Role.QUASI_IDENTIFIER else entry


def column_line(found: Guess, entry: Mapping[str, Any], reason: str) -> str:
    """Write a column's part of the policy on one line, with what the column is and the reason."""
    missing = f", {found.missing} missing" if found.missing else ""
    about = f"{found.kind}, {found.distinct} distinct{missing}"
    return f"  {_flow(found.column)}: {_flow(dict(entry))}  # {about}; {reason}"


def last_lines(suppression_limit: str) -> tuple[str, ...]:
    """Return the lines that end every first policy."""
    return (
        f"suppression_limit: {suppression_limit}",
        "metric: non-uniform-entropy",
        "algorithm: auto",
    )


class _Dumper(yaml.SafeDumper):
    """Quotes every text of digits: other readers of YAML take 059 for a number."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if text.isdigit() else None)


_Dumper.add_representer(str, _quoted)


def _flow(value: object) -> str:
    text = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n...\n").strip()


def ask_roles(guesses: Sequence[Guess], ask: Callable[[str, str, Sequence[str]], str]) -> list[Guess]:
    """Let someone confirm each column's role: `ask` gets a question, a default and the choices."""
    choices = [role.value for role in Role]
    return [
        found.with_role(
            Role(ask(f"{found.column} ({found.kind}, {found.reason})", found.role.value, choices))
        )
        for found in guesses
    ]


def policy_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of a policy, for editors."""
    from shoal.policy import Policy

    schema = Policy.model_json_schema()
    schema["$defs"]["Column"]["properties"]["hierarchy"] = {
        "anyOf": [{"enum": ["flat"]}, *map(_builder_schema, BUILDERS.values())]
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _builder_schema(kind: type[Builder]) -> dict[str, Any]:
    options = sorted({field.name for field in fields(kind)} - {"rows"} | {kind.keyword})
    listed: dict[str, Any] = {option: {} for option in options}
    units = {"dates": list(DATE_UNITS), "times": list(TIME_UNITS)}.get(kind.keyword)
    if units:
        listed[kind.keyword] = {"type": "array", "items": {"enum": units}}
    return {
        "type": "object",
        "description": (kind.__doc__ or "").strip().splitlines()[0],
        "properties": listed,
        "required": [kind.keyword],
        "additionalProperties": False,
    }
