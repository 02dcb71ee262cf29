"""The desk: one custodian's work on one table, without any web in it.

Every result is kept together with all that it depends on. It is shown as long as that stays the same, so a
change drops what depends on it and nothing else, and taking the change back brings the result back.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.anonymize import anonymize
from shoal.compare import compare
from shoal.comparison import Comparison
from shoal.diagnose import diagnose
from shoal.diagnosis import Diagnosis
from shoal.findings import Suppression
from shoal.negotiate import Negotiation, negotiate
from shoal.offer import Offer, adopted
from shoal.policy import named
from shoal.problem import with_wishes
from shoal.profile import Profile, profile
from shoal.profile_source import wish_of
from shoal.release import Release
from shoal.risk import Risk, risk
from shoal.shares import limit_in_records
from shoal.web import views
from shoal.web.columns import Progress
from shoal.web.downloads import files_of, stem
from shoal.web.kept import Kept
from shoal.web.plan import Plan
from shoal.web.refusals import NotReady, Refused, Unknown, beside_the_first_named
from shoal.web.shown import Exposed, Findings, Step
from shoal.web.words import in_words

FORMATS = ("csv", "tsv", "parquet", "arrow")
KINDS = ("exact", "suppression", "levels", "privacy", "column")  # of what a negotiation offers
_SECONDS = 60.0  # for which unsafe and safe sets are looked for, unless asked otherwise


class Desk(Plan):
    """The five steps over one table: data (the plan), diagnose, negotiate, compare, release."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._diagnosis, self._findings, self._risk = Kept(), Kept(), Kept()
        self._profile, self._wished = Kept(), Kept()
        self._negotiation, self._node = Kept(), Kept()
        self._comparison, self._release = Kept(), Kept()

    def steps(self) -> list[Step]:
        """Tell of each step whether it is usable and whether it is done."""
        missing = self.missing()
        no_table = None if self.inspection else "Choose a table first."
        no_columns = no_table or (
            None if self.quasi_identifiers else "Give at least one column the role quasi-identifier."
        )
        done = (missing is None, self.findings, self.profile, self.comparison, self.released)
        names = ("data", "diagnose", "negotiate", "compare", "release")
        lacks = (None, no_columns, missing, missing, missing)
        return [
            Step(name, lack is None, bool(is_done), lack)
            for name, is_done, lack in zip(names, done, lacks, strict=True)
        ]

    # What results depend on.

    def _about_columns(self) -> object:
        return (self.revision, self.quasi_identifiers) if self.inspection else None

    def _about_lattice(self) -> object:
        return self._once("about lattice", self._of_lattice)

    def _of_lattice(self) -> object:
        if self.inspection is None or self.missing():
            return None
        made = self.policy()
        parts = [(made.columns[name].hierarchy, made.columns[name].weight) for name in self.quasi_identifiers]
        files = {name: self._files.get(name) for name in self.quasi_identifiers}
        _, options = named(made.metric)
        about = (self.quasi_identifiers, parts, files, self.of_role("sensitive"), made.same_level)
        return (self.revision, json.dumps(about, default=str), json.dumps([made.metric] if options else []))

    def _about_policy(self) -> object:
        return self._once("about policy", self._of_policy)

    def _of_policy(self) -> object:
        if self.inspection is None or self.missing():
            return None
        return (self.revision, self.policy().to_yaml(), json.dumps(self._files))

    # Diagnose.

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
        chosen = tuple(columns) if columns is not None else self.quasi_identifiers
        if not chosen:
            message = "Give at least one column the role quasi-identifier."
            raise NotReady(message, "columns")
        if columns is None:
            chosen = tuple(name for name in chosen if name != sensitive)
        with self.lock:
            about, table, key = self._about_columns(), self.table, (self.revision, chosen, sensitive)
        with beside_the_first_named(("k", "l", "suppression_limit", "seconds", "columns", "sensitive")):
            limit = limit_in_records(suppression_limit, self.records)
            counted: Diagnosis | None = self._diagnosis.under(key)
            if counted is None:
                counted = diagnose(table, chosen, sensitive=sensitive, progress=progress)
                self._diagnosis = Kept(key, replace(counted, progress=_quiet))
            counted = replace(counted, progress=progress or _quiet)
            unsafe = counted.unsafe_sets(k, limit, seconds=seconds)
            safe = counted.largest_sets(k, limit, seconds=seconds)
        curve = counted.curve()
        reached = counted.anonymity()
        exposed = Exposed(
            records=counted.records,
            classes=counted.combinations,
            k=reached,
            unique=curve.short(2),
            highest=1 / reached,
            average=counted.combinations / counted.records,
        )
        found = Findings(counted.measure, counted.columns, k, limit, curve.short(k), exposed, unsafe, safe)
        _tell(progress)
        self._findings = Kept(about, (found, replace(counted, progress=_quiet)))
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

    def assess(self, *, progress: Progress | None = None, **wishes: Any) -> Risk:
        """Say how likely people are found: threshold, population_size, sampling_share, special_size."""
        with self.lock:
            made = None if self.missing() else self.policy()
            table, about, done = self.table, self._about_risk(), self.released
            columns = None if made else self.quasi_identifiers
        release = done.output if done and not done.apart else None
        with beside_the_first_named(wishes):
            found = risk(table, made, columns=columns, release=release, progress=progress, **wishes)
        _tell(progress)
        self._risk = Kept(about, found)
        return found

    @property
    def risk(self) -> Risk | None:
        """The last assessment of these quasi-identifiers and, where there is one, of this release."""
        found: Risk | None = self._risk.under(self._about_risk())
        return found

    def _about_risk(self) -> object:
        return (self._about_columns(), self._about_policy(), id(self.released)) if self.inspection else None

    # Negotiate.

    def tabulate(
        self,
        *,
        seconds: float | None = None,
        share: float | str | None = None,
        progress: Progress | None = None,
    ) -> Profile:
        """Tabulate the lattice, which answers all requests at once."""
        with self.lock:
            made, about, table = self.policy(), self._about_lattice(), self.table
        with beside_the_first_named(("seconds", "share")):
            found = profile(table, made, seconds=seconds, share=share, progress=progress)
        _tell(progress)
        self._profile = Kept(about, found)
        return found

    @property
    def profile(self) -> Profile | None:
        """The profile of these hierarchies, with the plan's present wishes."""
        found: Profile | None = self._profile.under(self._about_lattice())
        if found is None or found.problem is None:
            return found
        about = (self._about_policy(), id(found))
        wished: Profile | None = self._wished.under(about)
        if wished is None:
            made = self.policy()
            problem = with_wishes(found.problem, made)
            wished = replace(found, wish=wish_of(made, problem), problem=problem)
            self._wished = Kept(about, wished)
        return wished

    @property
    def tabulated(self) -> Profile:
        """The profile; refused where there is none."""
        found = self.profile
        if found is None:
            raise NotReady(self.missing() or "Tabulate the lattice first.")
        return found

    def negotiate(self, **wishes: Any) -> Negotiation:
        """Answer a request: k or l, suppression_limit, max_level, sensitive, prefer, metric, runtime."""
        found = self.tabulated
        with beside_the_first_named(wishes):
            answer = negotiate(found, **wishes)
        self._negotiation = Kept(self._about_lattice(), answer)
        return answer

    @property
    def negotiation(self) -> Negotiation | None:
        """The last answer, as long as the lattice is the same."""
        found: Negotiation | None = self._negotiation.under(self._about_lattice())
        return found

    def offer(self, kind: str, column: str | None = None) -> Offer:
        """Return what the last answer offers: exact, suppression, levels, privacy, or of one column."""
        answer = self.negotiation
        if answer is None:
            message = "Negotiate first."
            raise NotReady(message)
        if kind not in KINDS:
            message = f"An offer is one of {', '.join(KINDS)}."
            raise Refused(message, "kind")
        if kind == "column":
            found = next((offer for offer in answer.columns if offer.column == column), None)
        else:
            found = getattr(answer, kind)
        if found is None:
            message = "The last answer has no such offer."
            raise Refused(message, "column" if kind == "column" else "kind")
        return found

    def take(self, offer: Offer | Mapping[str, Any]) -> dict[str, int]:
        """Let an offer's k or l, limit and levels stand in the plan, and fix its node for the release."""
        made, levels = adopted(self.policy(), offer)
        node = dict(zip(self.quasi_identifiers, views.levels_of(self.tabulated, levels), strict=True))
        with self.lock:
            written = made.model_dump(mode="json", exclude_unset=True)
            self._entries |= {name: written[name] for name in ("models", "suppression_limit")}
            for name in self.quasi_identifiers:
                most = written["columns"][name].get("max_level")
                self._columns[name] |= {} if most is None else {"max_level": most}
            self._version += 1
            self._node = Kept(self._about_lattice(), node)
        return node

    def choose_node(self, node: Mapping[str, int] | None) -> None:
        """Fix the node for the release; None leaves it to the search."""
        if node is None:
            self._node = Kept()
            return
        levels = views.levels_of(self.tabulated, node)
        self._node = Kept(self._about_lattice(), dict(zip(self.quasi_identifiers, levels, strict=True)))

    @property
    def node(self) -> dict[str, int] | None:
        """The node chosen, as long as the lattice is the same."""
        found: dict[str, int] | None = self._node.under(self._about_lattice())
        return found

    def strength(
        self, k: int | None = None, l: int | None = None, sensitive: str | None = None
    ) -> tuple[int, str | None]:
        """Return (least, sensitive) of a k or l; without any, those of the last request or of the plan."""
        found = self.tabulated
        if k is None and l is None:
            last = self.negotiation
            if last is not None:
                return last.request.least, last.request.sensitive
        with beside_the_first_named(("k", "l", "sensitive")):
            request = negotiate(found, k=k, l=l, sensitive=sensitive, suppression_limit=0).request
        return request.least, request.sensitive

    # Compare.

    def compare(self, *, progress: Progress | None = None, **wishes: Any) -> Comparison:
        """Search with algorithms, metrics, k, suppression_limits; `seconds` bound each search."""
        with self.lock:
            made, about, table = self.policy(), self._about_policy(), self.table
        with beside_the_first_named(wishes):
            found = compare(table, made, progress=progress, **wishes)
        _tell(progress)
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
            _tell(progress)
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


def _quiet(_phase: str, _done: int, _total: int | None) -> None:
    """Tell nobody."""


def _tell(progress: Progress | None) -> None:
    """Let a cancelled job end before its result is kept."""
    if progress:
        progress("keep", 0, None)
