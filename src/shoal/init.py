"""Begin with a table: guess what its columns are, and let somebody confirm it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from shoal.choose import AUTO, engine_for
from shoal.column_names import check_header
from shoal.core.contracts import Engine
from shoal.core.schema import Role
from shoal.identifiers.rule import Finding, identifiers_in
from shoal.policies.guesses import Guess, guess_columns


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


def ask_roles(guesses: Sequence[Guess], ask: Callable[[str, str, Sequence[str]], str]) -> list[Guess]:
    """Let someone confirm each column's role: `ask` gets a question, a default and the choices."""
    choices = [role.value for role in Role]
    chosen = []
    for place, found in enumerate(guesses, 1):
        about = f"{found.kind}, {found.distinct:,} distinct; {found.reason}"
        question = f"{place} of {len(guesses)}: {found.column} ({about})"
        chosen.append(found.with_role(Role(ask(question, found.role.value, choices))))
    return chosen
