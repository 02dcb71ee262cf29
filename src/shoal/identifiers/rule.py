"""The 18 identifiers of HIPAA's Safe Harbor, 45 CFR 164.514(b)(2)(i), and what is said of a column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from shoal.policies.guesses import Guess

By = Literal["name", "values", "name and values"]


@dataclass(frozen=True)
class Identifier:
    """One of the 18: its letter in the rule, and what it is."""

    letter: str
    title: str
    direct: bool = (
        True  # it points at a person by itself; else it may stay in part, as a year or a ZIP's start
    )


IDENTIFIERS = {
    one.letter: one
    for one in (
        Identifier("A", "Names"),
        Identifier("B", "Geographic subdivisions smaller than a state", direct=False),
        Identifier("C", "Dates finer than a year, and ages over 89", direct=False),
        Identifier("D", "Telephone numbers"),
        Identifier("E", "Fax numbers"),
        Identifier("F", "E-mail addresses"),
        Identifier("G", "Social security numbers"),
        Identifier("H", "Medical record numbers"),
        Identifier("I", "Health plan beneficiary numbers"),
        Identifier("J", "Account numbers"),
        Identifier("K", "Certificate and license numbers"),
        Identifier("L", "Vehicle identifiers and license plates"),
        Identifier("M", "Device identifiers and serial numbers"),
        Identifier("N", "Web addresses (URLs)"),
        Identifier("O", "IP addresses"),
        Identifier("P", "Biometric identifiers"),
        Identifier("Q", "Full-face photographs and comparable images"),
        Identifier("R", "Any other unique identifying number, characteristic or code"),
    )
}


@dataclass(frozen=True)
class Finding:
    """Which identifier a column looks like, and why."""

    identifier: Identifier
    kind: str  # what of it: zip, place, date, birth, age, ...
    by: By
    reason: str

    @property
    def direct(self) -> bool:
        """Whether such a column points at a person by itself."""
        return self.identifier.direct

    @property
    def mark(self) -> str:
        """The identifier in short: its letter and its title."""
        return f"({self.identifier.letter}) {self.identifier.title}"

    def to_dict(self) -> dict[str, str]:
        """Return the finding as plain values."""
        return {
            "letter": self.identifier.letter,
            "title": self.identifier.title,
            "by": self.by,
            "reason": self.reason,
        }


def unique_code() -> Finding:
    """Return what is said of a column in which nearly every record has a value of its own."""
    return Finding(IDENTIFIERS["R"], "unique", "values", "nearly every value occurs once")


def identifiers_in(guesses: Iterable[Guess]) -> dict[str, Finding]:
    """Return the columns that look like one of the 18 identifiers, in the table's order."""
    return {guess.column: guess.identifier for guess in guesses if guess.identifier is not None}
