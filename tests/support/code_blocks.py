"""The fenced code blocks of the docs: their language, and where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
README = ROOT / "README.md"
FENCE = "```"


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    page: Path
    line: int  # of the first fence, from 1
    language: str
    text: str
    below: bool  # nothing but empty lines stand between it and the block before

    @property
    def place(self) -> str:
        """Say where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name of the file that it is, where its first line is a comment with nothing but that."""
        found = re.match(r"# ([\w-]+\.\w+)$", self.text, re.MULTILINE)
        return found[1] if found else None


def blocks(page: Path, *languages: str) -> list[Block]:
    """List the blocks of a page, all of them or those in some languages."""
    return [block for block in _blocks(page) if not languages or block.language in languages]


def _blocks(page: Path) -> Iterator[Block]:
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    below = False
    for number, line in lines:
        if line.lstrip().startswith(FENCE):
            inside = []
            for _, text in lines:
                if text.strip() == FENCE:
                    break
                inside.append(text + "\n")
            yield Block(page, number, line.strip().removeprefix(FENCE), "".join(inside), below)
            below = True
        elif line.strip():
            below = False


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Go through the lines of a page that are in no block, numbered from 1."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = line.lstrip().startswith(FENCE)
        if not inside and not fence:
            yield number, line
        inside ^= fence
