"""Steps that examine a table and its release: measures, risk, attack, utility, advice, and a check.

A `ReleaseResult` needs a release. A `TableResult` examines the table and, if there is one, its release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

from pydantic import Field

from shoal.core.progress import Progress
from shoal.web.errors import NotReady, Refused, error_field
from shoal.web.fields import Names, Share, ShortText
from shoal.web.workspace.draft import PolicyDraft
from shoal.web.workspace.release import ReleaseStep
from shoal.web.workspace.step import Step, T
from shoal.workflow.advice import SECONDS, Advice
from shoal.workflow.attack.attack import Attack, attack
from shoal.workflow.measure import Measurement, measure
from shoal.workflow.risk.risk import Risk, risk
from shoal.workflow.utility.utility import Utility, utility
from shoal.workflow.verify import Verification, verify

REVEALED = 20  # maximum number of persons that an attack lists


class ReleaseResult(Step[T]):
    """A step that examines the release. The result is valid until the release changes."""

    def __init__(self, draft: PolicyDraft, release: ReleaseStep) -> None:
        super().__init__(draft)
        self.release = release

    def key(self) -> object:
        release = self.release.result
        return None if release is None else str(release.output)

    def check(self, **_request: Any) -> None:
        """Raise NotReady if there is no release."""
        _ = self.release.required_result


class TableResult(ReleaseResult[T]):
    """A step that examines the table and, if there is one, its release."""

    def key(self) -> object:
        if not self.draft.table.inspection:
            return None
        return self.draft.columns_key(), self.draft.policy_key(), id(self.release.result)

    def check(self, columns: Sequence[str] | None = None, **_request: Any) -> None:
        """Raise NotReady if there are no columns to examine."""
        if columns is None:
            self.draft.table.require_quasi_identifiers("columns")


class RiskOptions(TypedDict, total=False):
    """The threshold, and the size of the population or the share of the population in the table."""

    threshold: Share | None
    population_size: Annotated[int, Field(ge=1, le=10**12)] | None
    sampling_share: Share | None


class RiskStep(TableResult[Risk]):
    """The risk that records are identified, in the terms of regulators."""

    missing_result = "Assess first."

    def run(
        self,
        *,
        special_size: Annotated[int, Field(ge=0, le=8)] = 3,
        progress: Progress | None = None,
        **options: Unpack[RiskOptions],
    ) -> Risk:
        """Assess the risk of identification in the terms of regulators, for the table and its release.

        `special_size` is the largest number of columns of special uniques. With 0, they are not searched.
        """
        table = self.draft.table
        with table.changes.lock:
            policy = None if self.draft.missing() else self.draft.policy()
            path, key, release = table.path, self.key(), self.release.result
            columns = None if policy else table.quasi_identifiers
        output = self.release.output if release and not release.separate_column else None
        result = risk(
            path,
            policy,
            columns=columns,
            release=output,
            special_size=special_size,
            progress=progress,
            **options,
        )
        return self._store(key, result, progress)


@dataclass(frozen=True)
class Measurements:
    """The measures that every class satisfies, in the table and in its release."""

    before: Measurement
    after: Measurement | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"before": self.before.to_dict(), "after": self.after and self.after.to_dict()}


class MeasureStep(TableResult[Measurements]):
    """The measurement of the table, and of the release if there is one."""

    missing_result = "Measure first."

    def run(
        self,
        columns: Names | None = None,
        sensitive: Names | None = None,
        *,
        progress: Progress | None = None,
    ) -> Measurements:
        """Measure what every class satisfies, such as k, l and t, in the table and its release.

        The classes are those of `columns`, by default of the quasi-identifiers. With `columns`, only the
        table is measured.
        """
        table = self.draft.table
        with table.changes.lock:
            key, path, release = self.key(), table.path, self.release.result
            known = table.require_quasi_identifiers("columns") if columns is None else tuple(columns)
            secret = table.with_role("sensitive") if sensitive is None else tuple(sensitive)
        with error_field("columns"):
            before = measure(path, known, [name for name in secret if name not in known])
        after = None
        if release is not None and columns is None and sensitive is None and not release.separate_column:
            after = measure(self.release.output, policy=release.policy)
        return self._store(key, Measurements(before, after), progress)


class AttackStep(ReleaseResult[Attack]):
    """An attack on the release with a register. The register is not stored."""

    missing_result = "Attack first."

    def check(self, **_request: Any) -> None:
        """Raise NotReady if there is no release, or if the release consists of two tables."""
        if self.release.required_result.separate_column:
            raise NotReady("The release is two tables, which cannot be attacked here.")

    def run(
        self,
        register: Path,
        on: Sequence[str],
        k: int | None = None,
        *,
        reveal: bool = False,
        progress: Progress | None = None,
    ) -> Attack:
        """Join the release with the register on some columns. `reveal` lists persons who are singled out."""
        with self.draft.table.changes.lock:
            self.check()
            release, key = self.release.required_result, self.key()
        knowledge = {"recipe": release.recipe} if release.recipe else {"policy": release.policy}
        with error_field("on"):
            result = attack(
                self.release.output, register, on, k=k, reveal=REVEALED if reveal else 0, **knowledge
            )
        return self._store(key, result, progress)


class UtilityStep(ReleaseResult[Utility]):
    """The loss of utility of the release, from its report or computed for another pair or target."""

    missing_result = "Release first."

    @property
    def result(self) -> Utility | None:
        """The last comparison, or else the comparison in the report."""
        release = self.release.result
        return super().result or (release.utility if release else None)

    def run(
        self,
        pair: Annotated[list[ShortText], Field(min_length=2, max_length=2)] | None = None,
        target: ShortText | None = None,
        *,
        progress: Progress | None = None,
    ) -> Utility:
        """Compare the table with its release to measure the loss of utility.

        `pair` names the two columns of a two-way table. `target` names a column that a classifier predicts.
        """
        with self.draft.table.changes.lock:
            release, key, path = self.release.required_result, self.key(), self.draft.table.path
        with error_field("target" if pair is None else "pair"):
            result = utility(
                path, self.release.output, release.policy, pair=pair, target=target, progress=progress
            )
        return self._store(key, result, progress)


class AdviceStep(ReleaseResult[tuple[Advice, ...]]):
    """The share of information that alternatives to the release would retain."""

    missing_result = "Ask for advice first."

    def run(
        self,
        *,
        seconds: Annotated[float, Field(gt=0, le=60)] = SECONDS,
        progress: Progress | None = None,
    ) -> tuple[Advice, ...]:
        """Measure what other recodings and small changes of the policy would retain. The best comes first."""
        with self.draft.table.changes.lock:
            release, key = self.release.required_result, self.key()
        return self._store(key, release.advice(seconds=seconds, progress=progress), progress)

    def to_dict(self) -> dict[str, Any]:
        """Return the share that the release retains, and the share, drawback and options of each entry."""
        entries = [entry.to_dict() for entry in self.required_result]
        return {"retained": self.release.required_result.retained_overall, "advice": entries}

    def use(self, number: int) -> None:
        """Replace the draft with the policy of an entry. The next search chooses the levels."""
        advice = self.required_result
        if not 0 <= number < len(advice):
            raise Refused(f"number must be below {len(advice)}, the number of entries.", "number")
        with self.draft.table.changes.lock:
            self.draft.adopt(advice[number].policy)
            self.release.negotiation.choose_node(None)


class CheckStep(Step[Verification]):
    """The step that checks an uploaded release against the models of the current policy."""

    missing_result = "Upload a release to check first."

    def __init__(self, draft: PolicyDraft, release: ReleaseStep) -> None:
        super().__init__(draft)
        self.release = release
        self.name = ""  # name of the file that was checked

    def run(self, path: Path, name: str, *, progress: Progress | None = None) -> Verification:
        """Verify a release in a file, then delete it. If the workspace has a release, use its recipe."""
        with self.draft.table.changes.lock:
            policy, key, release = self.draft.policy(), self.key(), self.release.result
        try:
            result = verify(path, policy, recipe=release and release.recipe)
        finally:
            path.unlink(missing_ok=True)
        self.name = name
        return self._store(key, result, progress)
