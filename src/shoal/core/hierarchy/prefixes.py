"""The builder for codes such as postcodes, which keeps fewer of their first characters at each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builder import Builder, Labels, not_nested
from shoal.core.hierarchy.hierarchy import TOP, Hierarchy
from shoal.errors import HierarchyError

_LABEL = "other"


@dataclass(frozen=True)
class Prefix(Builder):
    """The first characters of a code, fewer at each level."""

    prefix: tuple[int, ...] = ()
    """The number of characters kept at each level from 1 up, each 1 or more."""
    together: tuple[str, ...] = ()
    """Prefixes of the first length that form one group, from level 1 to the top."""
    label: str = _LABEL
    """The label of that group."""
    pad: tuple[int, ...] = ()
    """Restore the leading zeros of codes of digits, up to the next of these lengths."""

    keyword: ClassVar[str] = "prefix"

    def depth(self) -> int:
        return len(self.prefix)

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Keep the first characters of each text; prefixes that belong together share a label."""
        together = frozenset(self.together)
        labels: list[Labels | None] = []
        for text in map(self._padded, texts):
            if together and text[: self.prefix[0]] in together:
                labels.append((self.label,) * len(self.prefix))
            else:
                labels.append(tuple(text[:length] + TOP for length in self.prefix))
        return labels

    def _padded(self, text: str) -> str:
        """Restore leading zeros of a code that were lost when it was read as a number."""
        if not self.pad or not (text.isascii() and text.isdigit()):
            return text
        return text.zfill(min((length for length in self.pad if length >= len(text)), default=0))

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        for level, (low, high) in enumerate(pairwise(self.prefix), 2):
            if high > low:
                reason = f"Each prefix must be shorter than the one before: {high} is longer than {low}."
                raise not_nested(domain.name, level, reason)
        wrong = self._wrong()
        if wrong:
            raise HierarchyError(f"Hierarchy of {domain.name!r}: {wrong}")
        return super().bind(domain, counts)

    def _wrong(self) -> str | None:
        """Describe what is wrong with `together` or `label`, or return None."""
        first = self.prefix[0]
        for entry in self.together:
            if len(entry) != first:
                return (
                    f"together takes prefixes of {first} characters, the first length, got {entry!r}. "
                    "Put digits in quotes."
                )
        if self.label != _LABEL and not self.together:
            return "label names the prefixes that go together. Give them as together: [...]."
        if not self.label or self.label.endswith(TOP):
            return f"label must not be empty nor end in {TOP}, as other groups do, got {self.label!r}."
        return None

    def note(self, texts: Sequence[str]) -> str | None:
        """Note numeric codes of different lengths, which may have lost leading zeros."""
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
        if self.together and label == self.label:
            return f"codes that begin with one of {', '.join(self.together)}"
        return super().covers(label) if label == TOP else f"codes that begin with {label.removesuffix(TOP)}"
