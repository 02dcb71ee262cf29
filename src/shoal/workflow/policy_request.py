"""The settings from which a policy is guessed if none is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.errors import UsageError

DEFAULT_K = 5


@dataclass(frozen=True)
class PolicyRequest:
    """`known`, `keep` and k, and entries that replace entries of the guessed policy."""

    known: object = None
    keep: object = None
    k: int = DEFAULT_K
    changes: Mapping[str, Any] = field(default_factory=dict)


def check_alone(**answers: object) -> None:
    """Raise if settings for a guess are given although a policy is given."""
    for option, value in answers.items():
        if value is not None:
            end = "Write it into that policy" if option == "k" else "Leave one of them out"
            raise UsageError(f"is for a policy that is guessed, and one is given. {end}.", option=option)
