"""The release of a table and its files, and the comparison of the algorithms that could make it."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack, get_args

from pydantic import Field

from shoal.core.progress import Progress
from shoal.document.document import of_records
from shoal.files.outputs import CERTIFICATE
from shoal.policy.policy import Policy
from shoal.web.errors import NotReady, Refused, Unknown
from shoal.web.fields import PluginSpec, PositiveInt, PositiveSeconds, ShortText, SuppressionLimit
from shoal.web.workspace.draft import PolicyDraft
from shoal.web.workspace.negotiation import NegotiationStep
from shoal.web.workspace.sources import release_table
from shoal.web.workspace.step import Step
from shoal.workflow.compare.compare import compare
from shoal.workflow.compare.comparison import Comparison
from shoal.workflow.inspect import table_endings
from shoal.workflow.level_names import LevelNames
from shoal.workflow.problem import limit_for
from shoal.workflow.release.anonymize import anonymize, apply
from shoal.workflow.release.recipe import Recipe
from shoal.workflow.release.release import Release
from shoal.workflow.session import RemoteTable
from shoal.workflow.statements import choice_statement, column_statements, model_statements

Format = Literal["csv", "tsv", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SHARED = ("release", "sensitive-table")  # the files that are shared with others


class ComparisonOptions(TypedDict, total=False):
    """What to compare. The default is all algorithms, with the metric and the limits of the policy."""

    algorithms: Annotated[list[PluginSpec], Field(min_length=1, max_length=50)] | None
    metrics: Annotated[list[PluginSpec], Field(min_length=1, max_length=20)] | None
    k: Annotated[list[PositiveInt], Field(min_length=1, max_length=100)] | None
    suppression_limits: Annotated[list[SuppressionLimit], Field(min_length=1, max_length=100)] | None


class ComparisonStep(Step[Comparison]):
    """The comparison of algorithms under the current policy."""

    missing_result = "Compare first."

    def run(
        self,
        *,
        seconds: PositiveSeconds = 60.0,
        progress: Progress | None = None,
        **options: Unpack[ComparisonOptions],
    ) -> Comparison:
        """Compare algorithms on the table. By default, compare all with the policy's metric and limits.

        `seconds` limits the time of each search.
        """
        with self.draft.table.changes.lock:
            policy, key, path = self.draft.policy(), self.key(), self.draft.table.path
        result = compare(path, policy, seconds=seconds, progress=progress, **options)
        return self._store(key, result, progress)

    def to_dict(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Return the rows of the last comparison."""
        return self.required_result.to_dicts()


class ReleaseStep(Step[Release]):
    """The release under the current policy, at the chosen node."""

    missing_result = "Release first."

    def __init__(self, draft: PolicyDraft, negotiation: NegotiationStep) -> None:
        super().__init__(draft)
        self.negotiation = negotiation
        self._applied: Release | None = None

    def key(self) -> object:
        return self.draft.policy_key(), self.negotiation.node

    def check(self, form: str = "csv", table: str | None = None, **_request: Any) -> None:
        self.draft.policy()
        self._new_table(form, table)

    def _new_table(self, form: str, table: str | None) -> str | None:
        """Return the full name of the new table in the database. Return None if the release is a file."""
        return release_table(self.draft.table.remote, table or "") if form == "database" else None

    def run(
        self,
        form: Format | Literal["database"] = "csv",
        table: ShortText | None = None,
        *,
        seconds: PositiveSeconds | None = 20.0,
        progress: Progress | None = None,
    ) -> Release:
        """Write the release: search, recode, and verify the result.

        A release of a source in PostgreSQL can be written to the new `table` there, with the form `database`.
        """
        new = self._new_table(form, table)
        with self.draft.table.changes.lock:
            policy, node, path = self.draft.policy(), self.negotiation.node, self.draft.table.path

        def write(output: Path) -> Release:
            options: dict[str, Any] = {"node": node, "seconds": seconds, "progress": progress}
            if new is not None and isinstance(path, RemoteTable):
                remote = replace(path, folder=output.parent)
                return anonymize(remote, policy, output=new, report=True, **options)
            return anonymize(path, policy, output=output, report=True, **options)

        return self._write(write, "csv" if new else form, progress)

    @property
    def output(self) -> Path | RemoteTable:
        """The written release: a file, or a table of the database."""
        release, remote = self.required_result, self.draft.table.remote
        if remote is not None and isinstance(release.output, str):
            return replace(remote, table=release.output)
        assert isinstance(release.output, Path)
        return release.output

    def to_dict(self) -> dict[str, Any]:
        """Return the last release, its verification and the files to download.

        `notes` lists what should be reviewed. `outliers`, after `mu-argus`, counts the sets of columns that
        are rare together; it is null after other algorithms.
        """
        result = self.required_result
        paths = (
            "output",
            "recipe",
            "codebook",
            "report",
        )  # omitted: `files` lists the names of the downloads
        values = {name: value for name, value in result.to_dict().items() if name not in paths}
        return values | {"verification": result.verification.to_dict(), "files": list(self.files())}

    def apply(self, recipe: Recipe, form: str = "csv", *, progress: Progress | None = None) -> Release:
        """Recode the table by a recipe. The result is the release until the policy changes."""
        path = self.draft.table.path
        self._applied = self._write(
            lambda output: apply(recipe, path, output=output, report=True, progress=progress), form, progress
        )
        return self._applied

    @property
    def is_applied(self) -> bool:
        """Whether the release was made by a recipe, not by the current settings."""
        return self._applied is not None and self.result is self._applied

    def _write(self, write: Callable[[Path], Release], form: str, progress: Progress | None) -> Release:
        """Write a release into a new folder, and remove the folder of the last release."""
        table = self.draft.table
        with table.changes.lock:
            key, name = self.key(), table.name
        if form not in FORMATS:
            raise Refused(f"A release is written as {', '.join(FORMATS)}, got {form[:40]!r}.", "form")
        folder = table.folder / f"release-{secrets.token_hex(6)}"
        folder.mkdir(mode=0o700)
        old = self._result.result
        try:
            release = write(folder / f"{stem(name)}-release.{form}")
            (folder / "policy.yaml").write_text(release.policy.to_yaml(), encoding="utf-8")
            self._store(key, release, progress)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if old is not None and old.codebook is not None:
            shutil.rmtree(old.codebook.parent, ignore_errors=True)
        return release

    def summary(self) -> list[str]:
        """Describe what the release will do."""
        table = self.draft.table
        return policy_summary(self.draft.policy(), table.records, table.level_names, self.negotiation.node)

    @property
    def withheld(self) -> str | None:
        """Why an unverified release cannot be downloaded; None if it is verified, or if there is none."""
        release = self.result
        if release is None or release.verification.verified:
            return None
        checked = release.verification
        why = "; ".join(checked.reasons or checked.unchecked)
        return (
            f"The release cannot be downloaded, because it is not verified: {why}. Change the algorithm or "
            "the models, and release again."
        )

    def files(self) -> dict[str, Path]:
        """Return the files to download by name. An unverified release is not among them."""
        release = self.result
        if release is None or release.codebook is None:
            return {}
        recipe, second = release.recipe, release.sensitive_table
        paths = {
            "release": release.output if isinstance(release.output, Path) else None,
            "recipe": recipe,
            "audit": recipe and recipe.parent / "audit.json",
            "policy": release.codebook.parent / "policy.yaml",
            "codebook": release.codebook,
            "report": release.report,
            "certificate": recipe and recipe.parent / CERTIFICATE,
            "sensitive-table": second if isinstance(second, Path) else None,
        }
        if not release.verification.verified:
            paths |= dict.fromkeys(_SHARED)
        return {name: path for name, path in paths.items() if path is not None and path.is_file()}

    def file(self, name: str) -> Path:
        """Return one of the files. Raise NotReady if it is withheld, and Unknown if it does not exist."""
        files, withheld = self.files(), self.withheld
        if withheld and name in _SHARED:
            raise NotReady(withheld, "file")
        if name not in files:
            known = ", ".join(files) or "none before a release"
            raise Unknown(f"There is no such file. There are: {known}.", "file")
        return files[name]


def stem(name: str | None) -> str:
    """Return the first part of a release's file name: the name of the table in ASCII letters.

    >>> stem("My data.csv.gz"), stem(None)
    ('My_data', 'table')
    """
    text = name or "table"
    ending = next((ending for ending in table_endings() if text.lower().endswith(ending)), "")
    return re.sub(r"[^A-Za-z0-9_-]", "_", text[: len(text) - len(ending)])[:60] or "table"


def policy_summary(
    policy: Policy, records: int, names: LevelNames, node: Mapping[str, int] | None = None
) -> list[str]:
    """Describe in sentences what a policy does."""
    sentences = column_statements(policy) + model_statements(policy)
    limit = limit_for(policy, records)
    suppressed = "blanked" if limit and policy.suppressed != "drop" else "left out"
    allowed = f"At most {of_records(limit, records)}" if limit else "No record"
    sentences.append(f"{allowed} may be {suppressed}.")
    for start, levels in (
        ("At least this coarse", policy.limits("min_level")),
        ("At most this coarse", policy.limits("max_level")),
    ):
        if levels:
            sentences.append(f"{start}: {names.describe(levels)}.")
    return [*sentences, choice_statement(policy, node, names)]
