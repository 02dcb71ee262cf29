"""Columns and the roles they play."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a column is to the custodian."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    OTHER = "other"


AS_IS = (Role.SENSITIVE, Role.OTHER)  # columns that are released as they are


@dataclass(frozen=True)
class Schema:
    """The role of every column, in the table's order of the policy."""

    roles: dict[str, Role]

    def of(self, role: Role) -> tuple[str, ...]:
        """Return the columns of one role, in order."""
        return tuple(name for name, own in self.roles.items() if own is role)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """The columns that are counted and generalized."""
        return self.of(Role.QUASI_IDENTIFIER)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns whose values a class must not give away."""
        return self.of(Role.SENSITIVE)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that never reach a release."""
        return self.of(Role.IDENTIFIER)
