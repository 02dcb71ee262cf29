"""A desk's second step: what is diagnosed of the quasi-identifiers as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shoal.diagnose import diagnose
from shoal.diagnosing.findings import Suppression
from shoal.diagnosis import Diagnosis
from shoal.policies.shares import limit_in_records
from shoal.web.columns import NO_COLUMNS, Progress
from shoal.web.diagnosed import Exposed, Findings
from shoal.web.kept import Kept, still_wanted
from shoal.web.plan import Plan
from shoal.web.refusals import NotReady, beside_the_first_named

_SECONDS = 60.0  # for which unsafe and safe sets are looked for, unless asked otherwise


class Diagnosing(Plan):
    """A plan whose table can be diagnosed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._diagnosis, self._findings = Kept(), Kept()

    def diagnose(
        self,
        k: int = 5,
        suppression_limit: float | str = 0,
        *,
        columns: Sequence[str] | None = None,
        sensitive: str | None = None,
        seconds: float | None = _SECONDS,
        progress: Progress | None = None,
    ) -> Findings:
        """Count the combinations and find the risk, the smallest unsafe sets and the largest safe ones."""
        chosen = self.quasi_identifiers if columns is None else tuple(columns)
        if not chosen:
            raise NotReady(NO_COLUMNS, "columns")
        if columns is None:
            chosen = tuple(name for name in chosen if name != sensitive)
        with self.lock:
            about, table, key = self._about_columns(), self.table, (self.revision, chosen, sensitive)
        with beside_the_first_named(("k", "l", "suppression_limit", "seconds", "columns", "sensitive")):
            limit = limit_in_records(suppression_limit, self.records)
            counted: Diagnosis | None = self._diagnosis.under(key)
            if counted is None:
                counted = diagnose(table, chosen, sensitive=sensitive, progress=progress)
                self._diagnosis = Kept(key, counted.telling(None))
            counted = counted.telling(progress)
            unsafe = counted.unsafe_sets(k, limit, seconds=seconds)
            safe = counted.largest_sets(k, limit, seconds=seconds)
        curve = counted.curve()
        exposed = _exposed(counted, curve.short(2))
        found = Findings(counted.measure, counted.columns, k, limit, curve.short(k), exposed, unsafe, safe)
        still_wanted(progress)
        self._findings = Kept(about, (found, counted.telling(None)))
        return found

    @property
    def findings(self) -> Findings | None:
        """What was diagnosed of these quasi-identifiers."""
        found: tuple[Findings, Diagnosis] | None = self._findings.under(self._about_columns())
        return found and found[0]

    def curve(self, columns: Sequence[str] | None = None, most: int | None = 100) -> tuple[Suppression, ...]:
        """Return what each k up to `most` costs a set of the columns diagnosed."""
        found: tuple[Findings, Diagnosis] | None = self._findings.under(self._about_columns())
        if found is None:
            message = "Diagnose first."
            raise NotReady(message)
        with beside_the_first_named(("most", "columns")):
            return found[1].suppression_by_k(columns, most)


def _exposed(counted: Diagnosis, unique: int) -> Exposed:
    """Return how exposed the records are as they are."""
    reached = counted.anonymity()
    return Exposed(
        records=counted.records,
        classes=counted.combinations,
        k=reached,
        unique=unique,
        highest=1 / reached,
        average=counted.combinations / counted.records,
    )
