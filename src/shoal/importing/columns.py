"""The columns of an ARX project: roles, levels, and hierarchies that are checked before they are used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shoal.core.counts import Domain
from shoal.core.listed import Csv
from shoal.core.schema import Role
from shoal.errors import HierarchyError
from shoal.importing.project import Attribute, Project, printable
from shoal.importing.words import Notes

_ROLES = {
    "IDENTIFYING_ATTRIBUTE": Role.IDENTIFIER,
    "QUASI_IDENTIFYING_ATTRIBUTE": Role.QUASI_IDENTIFIER,
    "SENSITIVE_ATTRIBUTE": Role.SENSITIVE,
    "INSENSITIVE_ATTRIBUTE": Role.OTHER,
}


class Columns:
    """Reads columns one by one, and holds their hierarchies."""

    def __init__(self, project: Project, separator: str, notes: Notes) -> None:
        self.project = project
        self.separator = separator
        self.tell = notes.tell
        self.files: dict[str, list[list[str]]] = {}  # by the file
        self.rows: dict[str, list[list[str]]] = {}  # by the column

    def column(self, found: Attribute) -> dict[str, Any]:
        """Read a column's role, hierarchy and levels."""
        where = f"column {found.name!r}"
        role = _ROLES.get(found.type)
        if role is None:
            role = Role.IDENTIFIER
            self.tell(where, f"its type {printable(found.type, 40)!r} is not known.", "It is an identifier.")
        column: dict[str, Any] = {"role": role.value}
        if found.unknown:
            entries = printable(", ".join(found.unknown))
            self.tell(where, f"entries of it are not known: {entries}.", "They are left out.")
        file = self.hierarchy(found)
        if role is Role.QUASI_IDENTIFIER:
            column |= self.levels(found, file)
        elif file and role is Role.SENSITIVE:
            column["hierarchy"] = {"csv": file}
        elif file:
            reason = f"it has a hierarchy, which a column with the role {role.value} does not use."
            self.tell(where, reason, f"The hierarchy is in {file}.")
        if found.microaggregation:
            kind = printable(found.microaggregation, 60)
            nearest = "It is generalized; intervals with release_as: bounds keep numbers."
            self.tell(where, f"shoal has no microaggregation ({kind}).", nearest)
        return column

    def hierarchy(self, found: Attribute) -> str | None:
        """Read a column's hierarchy and return the file it goes to; None where there is none that fits."""
        if found.hierarchy is None:
            return None
        rows = self.project.rows(found.hierarchy, self.separator)
        file = _file_of(found.name, self.files)
        if not rows:
            self.tell(f"column {found.name!r}", "its hierarchy is empty.", "It is left out.")
            return None
        self.files[file] = rows
        problem = _problem(found.name, rows)
        if problem:
            nearest = f"It is in {file}, to be mended there; the column is as if it had none."
            self.tell(f"column {found.name!r}", problem, nearest)
            return None
        self.rows[found.name] = rows
        return file

    def levels(self, found: Attribute, file: str | None) -> dict[str, Any]:
        """Read a quasi-identifier's hierarchy and how far it may climb."""
        if file is None and found.hierarchy is None and found.microaggregation is None:
            return {"hierarchy": "flat", "max_level": 0}  # ARX leaves it as it is
        if file is None:
            return {"hierarchy": "flat"}
        column: dict[str, Any] = {"hierarchy": {"csv": file}}
        for option, text in (("min_level", found.minimum), ("max_level", found.maximum)):
            if re.fullmatch(r"\d{1,4}", text):
                column[option] = int(text)
            elif text != "All":
                what = f"{option.removesuffix('_level')} {printable(text, 20)!r}"
                self.tell(f"column {found.name!r}", f"its {what} is no level.", "All levels are searched.")
        if column.get("min_level") == 0:
            del column["min_level"]
        return column


def _file_of(column: str, taken: Mapping[str, object]) -> str:
    r"""Name a file after a column, with letters that every system takes and none that leads elsewhere.

    >>> _file_of("../age of\n person", {}), _file_of("sex", {"hierarchies/SEX.csv": 0})
    ('hierarchies/age-of-person.csv', 'hierarchies/sex-2.csv')
    """
    plain = re.sub(r"[^\w.-]+", "-", column).strip("-.")[:80] or "column"
    names = {name.lower() for name in taken}
    number, name = 1, f"hierarchies/{plain}.csv"
    while name.lower() in names:
        number += 1
        name = f"hierarchies/{plain}-{number}.csv"
    return name


def _problem(column: str, rows: list[list[str]]) -> str | None:
    """Say what is wrong with a hierarchy, if something is; never with a value of it."""
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        return "the rows of its hierarchy differ in length."
    listed: dict[str, list[str]] = {}
    if any(listed.setdefault(row[0], row) != row for row in rows):
        return "its hierarchy lists a value twice, with other groups."
    try:
        texts = tuple(listed)
        Csv(csv="file", rows=tuple(map(tuple, rows))).bind(Domain(column, texts, texts))
    except HierarchyError as error:
        return str(error)
    return None
