"""A first policy for a table: every column with its guessed role and the reason, and a hierarchy that fits.

The policy holds no value of the data but well-known codes for "unknown".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

import yaml

from shoal.choose import AUTO, engine_for
from shoal.core.contracts import Engine
from shoal.core.schema import Role
from shoal.identifiers.rule import Finding, identifiers_in
from shoal.policies.guesses import Guess, check_header, guess_columns


def guess(table: Any, *, engine: str | Engine = AUTO) -> list[Guess]:
    """Look at every column of a table and guess its role and hierarchy."""
    engine = engine_for(engine, table)
    with closing(engine):
        opened = engine.open(table)
        check_header(engine.columns(opened))
        return [found for found, _, _ in guess_columns(engine, opened)]


def safe_harbor_findings(table: Any, *, engine: str | Engine = AUTO) -> dict[str, Finding]:
    """Return the columns of a table that look like one of the 18 identifiers of Safe Harbor, and why."""
    return identifiers_in(guess(table, engine=engine))


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
    chosen = []
    for place, found in enumerate(guesses, 1):
        about = f"{found.kind}, {found.distinct:,} distinct; {found.reason}"
        question = f"{place} of {len(guesses)}: {found.column} ({about})"
        chosen.append(found.with_role(Role(ask(question, found.role.value, choices))))
    return chosen
