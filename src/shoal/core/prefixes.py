"""The builder for codes: their first characters, fewer at each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from shoal.core.builder import Builder, Labels, not_nested
from shoal.core.counts import Domain
from shoal.core.hierarchy import TOP, Hierarchy
from shoal.errors import HierarchyError

_LABEL = "other"


@dataclass(frozen=True)
class Prefix(Builder):
    """The first characters of a code, fewer at each level."""

    prefix: tuple[int, ...] = ()
    """How many characters are kept at each level from 1 up, each 1 or more."""
    together: tuple[str, ...] = ()
    """Prefixes of the first length that are one group, from level 1 to the top."""
    label: str = _LABEL
    """The label of that group."""
    pad: tuple[int, ...] = ()
    """Codes of digits get back the zeros before them, up to the next of these lengths."""

    keyword: ClassVar[str] = "prefix"

    def depth(self) -> int:
        """Return the number of lengths."""
        return len(self.prefix)

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Keep the first characters of each text; those that go together share one label on all levels."""
        together = frozenset(self.together)
        found: list[Labels | None] = []
        for text in map(self._padded, texts):
            if together and text[: self.prefix[0]] in together:
                found.append((self.label,) * len(self.prefix))
            else:
                found.append(tuple(text[:length] + TOP for length in self.prefix))
        return found

    def _padded(self, text: str) -> str:
        """Return a code with the zeros that it lost where it was read as a number."""
        if not self.pad or not (text.isascii() and text.isdigit()):
            return text
        return text.zfill(min((length for length in self.pad if length >= len(text)), default=0))

    def bind(self, domain: Domain) -> Hierarchy:
        """Check that the lengths nest and what goes together is of the first length, then apply them."""
        for level, (low, high) in enumerate(pairwise(self.prefix), 2):
            if high > low:
                reason = f"Each prefix must be shorter than the one before: {high} is longer than {low}."
                raise not_nested(domain.name, level, reason)
        wrong = self._wrong()
        if wrong:
            message = f"Hierarchy of {domain.name!r}: {wrong}"
            raise HierarchyError(message)
        return super().bind(domain)

    def _wrong(self) -> str | None:
        """Say what is wrong with the group of prefixes that go together."""
        first = self.prefix[0]
        for entry in self.together:
            if len(entry) != first:
                return (
                    f"together takes prefixes of {first} characters, the first length, got {entry!r}. "
                    "Put digits in quotes."
                )
        if self.label != _LABEL and not self.together:
            return "label names the prefixes that go together. Name them, as together: [...]."
        if not self.label or self.label.endswith(TOP):
            return f"label must not be empty nor end in {TOP}, as other groups do, got {self.label!r}."
        return None

    def note(self, texts: Sequence[str]) -> str | None:
        """Note codes of digits that have several lengths, as where zeros before them were lost."""
        known = [text for text in texts if not self.is_unknown(text)]
        if self.pad and any(len(set(text)) == 1 and text[0] in "09" for text in known):
            return (
                "it has codes of zeros or nines alone, which get zeros before them where they are short. If "
                "they mean unknown, name them under 'unknown'."
            )
        lengths = {len(text) for text in known}
        if self.pad or len(lengths) < 2 or not all(text.isascii() and text.isdigit() for text in known):
            return None
        return (
            f"its codes have {min(lengths)} to {max(lengths)} digits. If zeros before them were lost, say "
            f"pad: [{max(lengths)}]."
        )

    def covers(self, label: str) -> str:
        """Say how the codes begin."""
        if self.together and label == self.label:
            return f"codes that begin with one of {', '.join(self.together)}"
        return super().covers(label) if label == TOP else f"codes that begin with {label.removesuffix(TOP)}"
