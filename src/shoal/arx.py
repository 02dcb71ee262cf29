"""From ARX: a project (.deid) read into a policy and hierarchies, with a list of what has no counterpart."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.importing.project import Project, printable
from shoal.importing.reading import Reading
from shoal.importing.words import Unsupported
from shoal.policy import Policy


@dataclass(frozen=True)
class Import:
    """What a project became: a policy that can be used at once, its hierarchy files, and what is lost."""

    policy: Policy
    hierarchies: Mapping[str, list[list[str]]] = field(repr=False)  # by the file they are written to
    unsupported: tuple[Unsupported, ...]
    version: str  # of the ARX that wrote the project
    has_data: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; values of hierarchies are in their files alone."""
        return {
            "arx": self.version,
            "policy": self.policy.written(),
            "hierarchies": sorted(self.hierarchies),
            "unsupported": [one.to_dict() for one in self.unsupported],
            "has_data": self.has_data,
        }

    def policy_text(self) -> str:
        """Write the policy with what it lacks on top."""
        lines = [f"# From a project of ARX {self.version or '(version not told)'}."]
        if self.unsupported:
            lines.append("# What has no counterpart, and what comes nearest:")
        lines += [f"# - {printable(str(one), 1000)}" for one in self.unsupported]
        return "\n".join(lines) + "\n" + self.policy.to_yaml()

    def files(self) -> dict[str, str]:
        """Return the text of every file that is written, by its name."""
        found = {"policy.yaml": self.policy_text()}
        return found | {name: hierarchy_text(rows) for name, rows in self.hierarchies.items()}


def import_arx(path: str | Path) -> Import:
    """Read a project that ARX saved into a policy; `unsupported` lists what has no counterpart."""
    with Project(path) as project:
        reading = Reading(project)
        policy = reading.policy()
        return Import(policy, reading.files, tuple(reading.notes.told), reading.version, reading.has_data)


def hierarchy_text(rows: list[list[str]]) -> str:
    """Write a hierarchy as ARX does: a row per value, from the value to the top, by semicolons."""
    text = io.StringIO()
    # Where there is one column no semicolon tells what separates, so that quotes have to.
    quoting: Any = csv.QUOTE_ALL if rows and len(rows[0]) == 1 else csv.QUOTE_MINIMAL
    csv.writer(text, delimiter=";", quoting=quoting, lineterminator="\n").writerows(rows)
    return text.getvalue()
