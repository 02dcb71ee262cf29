"""The log of a negotiation: requests, answers and accepted offers, without values of the data."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from shoal.web.fields import ShortText
from shoal.wording import plural
from shoal.workflow.level_names import LevelNames
from shoal.workflow.profile.negotiate import Negotiation
from shoal.workflow.profile.offer import Offer
from shoal.workflow.release.spreadsheet import safe_cell

MAX_ENTRIES = 1_000  # older entries are removed
_MERGE_SECONDS = 2.0  # a request within this time replaces the last one, so a moved slider adds one entry
_ColumnTexts = Annotated[str, Field(max_length=1_000_000)]  # a phrase that describes the levels


@dataclass(frozen=True)
class LogEntry:
    """A request with its answer, an offer that was taken, or a node that was chosen."""

    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid"
    )  # a project file may come from an untrusted source
    time: ShortText  # in ISO form
    event: ShortText  # asked, taken or chosen
    protection: ShortText = ""
    limit: ShortText = ""  # suppression limit
    coarsest: _ColumnTexts = ""  # the highest levels that were allowed
    answer: ShortText = ""
    suppressed: ShortText = ""
    columns: _ColumnTexts = ""  # the level of each column


class NegotiationLog:
    """The entries about the open table, the oldest first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.entries: tuple[LogEntry, ...] = ()
        self._clock = clock
        self._last_request = -_MERGE_SECONDS  # the time of the last request

    def replace(self, entries: Sequence[LogEntry]) -> None:
        self.entries, self._last_request = tuple(entries)[-MAX_ENTRIES:], self._clock() - _MERGE_SECONDS

    def add_answer(self, answer: Negotiation, heights: Mapping[str, int], names: LevelNames) -> None:
        """Add a request and its answer, unless the last entry is the same."""
        request, exact = answer.request, answer.exact
        lower = {name: level for name, level in request.max_level.items() if level < heights.get(name, 0)}
        entry = LogEntry(
            time=_now(),
            event="asked",
            protection=request.privacy.text,
            limit=plural(request.limit, "record"),
            coarsest=names.describe(lower) if lower else "no limit",
            answer="possible" if exact else "not possible" if answer.settled else "not found",
            suppressed="" if exact is None else f"{exact.suppressed}",
            columns="" if exact is None else names.describe(exact.node),
        )
        last = self.entries[-1] if self.entries else None
        if last is not None and astuple(last)[1:] == astuple(entry)[1:]:
            return
        now = self._clock()
        replaces_last = (
            last is not None and last.event == "asked" and now - self._last_request < _MERGE_SECONDS
        )
        self._add(entry, self.entries[:-1] if replaces_last else self.entries)
        self._last_request = now

    def add_taken(self, offer: Offer | Mapping[str, Any], node: Mapping[str, int], names: LevelNames) -> None:
        entry = LogEntry(_now(), "taken", columns=names.describe(node))
        if isinstance(offer, Offer):
            limit, suppressed = plural(offer.limit, "record"), f"{offer.suppressed}"
            entry = replace(entry, protection=offer.privacy.text, limit=limit, suppressed=suppressed)
        self._add(entry, self.entries)

    def add_chosen(self, node: Mapping[str, int] | None, names: LevelNames) -> None:
        """Add an entry for the node that was chosen for the release; None if the search will choose it."""
        columns = "left to the search" if node is None else names.describe(node)
        self._add(LogEntry(_now(), "chosen", columns=columns), self.entries)

    def _add(self, entry: LogEntry, entries: tuple[LogEntry, ...]) -> None:
        self.entries = (*entries, entry)[-MAX_ENTRIES:]

    def to_csv(self) -> str:
        """Return the log as CSV. Cells are escaped, so that a spreadsheet does not run them as formulas."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow([field.name for field in fields(LogEntry)])
        writer.writerows([safe_cell(cell) for cell in astuple(entry)] for entry in self.entries)
        return text.getvalue()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
