"""A first policy for a table: every column with its guessed role and the reason, and a hierarchy that fits.

The policy holds no value of the data but well-known codes for "unknown".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

import yaml

from shoal.core.schema import Role
from shoal.policies.guesses import Guess
from shoal.policies.notes import notes_on


def policy_text(
    guesses: Sequence[Guess], *, k: int = 5, suppression_limit: str = "5%", about: Sequence[str] = ()
) -> str:
    """Write the guesses as a commented policy to edit."""
    entries = [suggested(found) for found in guesses]
    lines = [
        "# A first policy, guessed from the table. Check every role: only you know who knows what.",
        "# Roles: identifier (removed), quasi-identifier (generalized), sensitive, other (kept as is).",
        *(f"# {line}" for line in about),
        *note_lines(entries, notes_on(guesses)),
        "columns:",
        *(column_line(found, entry, found.reason) for found, entry in zip(guesses, entries, strict=True)),
        "models:",
        f"  - k-anonymity: {{k: {k}}}",
    ]
    if any(found.role is Role.SENSITIVE for found in guesses):
        lines.append("  - distinct-l-diversity: {l: 2}  # every class holds two different sensitive values")
    return "\n".join([*lines, *last_lines(suppression_limit)]) + "\n"


def note_lines(entries: Iterable[Mapping[str, Any]], notes: Sequence[str]) -> list[str]:
    """Write notes as comments, and say which values of the table the policy holds."""
    told = [f"Note: {note}" for note in notes]
    if any("unknown" in entry.get("hierarchy", ()) for entry in entries):
        told.append(
            "Under `unknown` stand well-known codes such as 99 or NA. No other value of the table is here."
        )
    return [f"# {line}" for note in told for line in wrap(note, 108, subsequent_indent="  ")]


def suggested(found: Guess) -> dict[str, Any]:
    """Return a column's part of the policy, as guessed."""
    entry: dict[str, Any] = {"role": found.role.value}
    return entry | {"hierarchy": found.hierarchy} if found.role is Role.QUASI_IDENTIFIER else entry


def column_line(found: Guess, entry: Mapping[str, Any], reason: str) -> str:
    """Write a column's part of the policy on one line, with what the column is and the reason."""
    missing = f", {found.missing:,} missing" if found.missing else ""
    about = f"{found.kind}, {found.distinct:,} distinct{missing}"
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
