"""The desk: one custodian's work on one table, without any web in it.

Every result is kept together with all that it depends on. It is shown as long as that stays the same, so a
change drops what depends on it and nothing else, and taking the change back brings the result back.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Any

from shoal.anonymize import anonymize
from shoal.compare import compare
from shoal.comparison import Comparison
from shoal.release import Release
from shoal.risk import Risk, risk
from shoal.web.answers import StepAnswer
from shoal.web.columns import NO_COLUMNS, NO_TABLE, Progress
from shoal.web.desk_negotiate import Negotiating
from shoal.web.downloads import files_of, stem
from shoal.web.kept import Kept, still_wanted
from shoal.web.refusals import Refused, Unknown, beside_the_first_named
from shoal.web.words import in_words

FORMATS = ("csv", "tsv", "parquet", "arrow")


class Desk(Negotiating):
    """The five steps over one table: data (the plan), diagnose, negotiate, compare, release."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._comparison, self._release, self._risk = Kept(), Kept(), Kept()

    def steps(self) -> list[StepAnswer]:
        """Tell of each step whether it is usable and whether it is done."""
        missing = self.missing()
        no_table = None if self.inspection else NO_TABLE
        no_columns = no_table or (None if self.quasi_identifiers else NO_COLUMNS)
        done = (missing is None, self.findings, self.profile, self.comparison, self.released)
        names = ("data", "diagnose", "negotiate", "compare", "release")
        lacks = (None, no_columns, missing, missing, missing)
        return [
            StepAnswer(name=name, usable=lack is None, done=bool(is_done), missing=lack)
            for name, is_done, lack in zip(names, done, lacks, strict=True)
        ]

    # Compare.

    def compare(self, *, progress: Progress | None = None, **wishes: Any) -> Comparison:
        """Search with algorithms, metrics, k, suppression_limits; `seconds` bound each search."""
        with self.lock:
            made, about, table = self.policy(), self._about_policy(), self.table
        with beside_the_first_named(wishes):
            found = compare(table, made, progress=progress, **wishes)
        still_wanted(progress)
        self._comparison = Kept(about, found)
        return found

    @property
    def comparison(self) -> Comparison | None:
        """The last comparison of this policy."""
        found: Comparison | None = self._comparison.under(self._about_policy())
        return found

    # Release.

    def release(
        self, form: str = "csv", *, seconds: float | None = None, progress: Progress | None = None
    ) -> Release:
        """Run the policy at the node chosen, verify what was written and keep the files."""
        with self.lock:
            made, node, table = self.policy(), self.node, self.table
            about, name = (self._about_policy(), node), self.name
        if form not in FORMATS:
            message = f"A release is written as {', '.join(FORMATS)}, got {form[:40]!r}."
            raise Refused(message, "form")
        home = self.folder / f"release-{secrets.token_hex(6)}"
        home.mkdir(mode=0o700)
        try:
            output = home / f"{stem(name)}-release.{form}"
            found = anonymize(
                table, made, output=output, node=node, seconds=seconds, report=True, progress=progress
            )
            (home / "policy.yaml").write_text(made.to_yaml(), encoding="utf-8")
            still_wanted(progress)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        old, self._release = self._release, Kept(about, found)
        if isinstance(old.result, Release) and isinstance(old.result.output, Path):
            shutil.rmtree(old.result.output.parent, ignore_errors=True)
        return found

    @property
    def released(self) -> Release | None:
        """The last release, as long as the policy and the node are the same."""
        found: Release | None = self._release.under((self._about_policy(), self.node))
        return found

    def words(self) -> list[str]:
        """Say in words what the release will do."""
        return in_words(self.policy(), self.records, self.node)

    def files(self) -> dict[str, Path]:
        """Return what can be downloaded, by name: the release, its report, recipe and so on."""
        return {} if self.released is None else files_of(self.released)

    def file(self, name: str) -> Path:
        """Return one of the files; refused where it is not there."""
        files = self.files()
        if name not in files:
            message = f"There is no such file. There are: {', '.join(files) or 'none before a release'}."
            raise Unknown(message, "file")
        return files[name]

    # Risk, before and after.

    def assess(self, *, progress: Progress | None = None, **wishes: Any) -> Risk:
        """Say how likely people are found: threshold, population_size, sampling_share, special_size."""
        with self.lock:
            made = None if self.missing() else self.policy()
            table, about, done = self.table, self._about_risk(), self.released
            columns = None if made else self.quasi_identifiers
        release = done.output if done and not done.apart else None
        with beside_the_first_named(wishes):
            found = risk(table, made, columns=columns, release=release, progress=progress, **wishes)
        still_wanted(progress)
        self._risk = Kept(about, found)
        return found

    @property
    def risk(self) -> Risk | None:
        """The last assessment of these quasi-identifiers and, where there is one, of this release."""
        found: Risk | None = self._risk.under(self._about_risk())
        return found

    def _about_risk(self) -> object:
        return (self._about_columns(), self._about_policy(), id(self.released)) if self.inspection else None
