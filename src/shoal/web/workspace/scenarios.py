"""Scenarios: pinned offers, previews and compared searches. They can be used, and shared as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from shoal.document.document import of_records
from shoal.document.html import tag
from shoal.policy.policy import Named, Policy, named
from shoal.web.errors import NotReady, Refused, Unknown
from shoal.web.fields import Count
from shoal.web.workspace.draft import CachedResult, Snapshot
from shoal.web.workspace.history import History, HistoryState
from shoal.web.workspace.lattice import class_figures
from shoal.web.workspace.preview import PreviewStep
from shoal.workflow.compare.comparison import ComparisonRow
from shoal.workflow.problem import limit_for
from shoal.workflow.profile.offer import Offer, adopted
from shoal.workflow.statements import model_statements

MAX_SCENARIOS = 20
_BY_CLASS = "its own labels in each class"
_MIN_K = 2
_NONE = "\u2013"
_PAGE_HEAD = ("Scenario", "Terms", "Retained", "Suppressed", "Smallest class", "Classes")
_PAGE_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b2a33;background:#fff}table{border-collapse:collapse}"
    "th,td{text-align:left;vertical-align:top;padding:.4rem .9rem .4rem 0;border-bottom:1px solid #ccd6db}"
)


@dataclass(frozen=True)
class ScenarioFigures:
    """The cost of a scenario; None means unknown."""

    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid"
    )  # a project file may come from an untrusted source
    records: Count
    suppressed: Count | None = None
    retained: Annotated[float, Field(ge=0, le=1)] | None = None
    smallest_class: Count | None = None
    classes: Count | None = None  # number of classes that are not suppressed


@dataclass(frozen=True)
class Scenario:
    """A pinned scenario, with the settings and the node that it was made from."""

    number: int
    name: str
    protection: str  # the guarantees of the models, and the number of records that may be suppressed
    columns: Mapping[str, str]  # the level of each quasi-identifier, in words
    figures: ScenarioFigures
    state: HistoryState
    terms: str = ""  # models with numeric options only, because the page is shared
    k: int = 1  # the smallest class that the models accept


class Scenarios:
    """The pinned scenarios of the open table, the oldest first."""

    def __init__(self, history: History, preview: PreviewStep) -> None:
        self.history, self.preview = history, preview
        self.draft, self.negotiation = history.draft, history.negotiation
        self._pinned: CachedResult[tuple[Scenario, ...]] = CachedResult()

    @property
    def pinned(self) -> tuple[Scenario, ...]:
        """The scenarios of the open table; empty after another table is opened."""
        return self._pinned.get(self.draft.table.revision) or ()

    def replace(self, scenarios: tuple[Scenario, ...]) -> None:
        self._pinned = CachedResult(self.draft.table.revision, scenarios)

    def pin_offer(self, offer: Offer) -> Scenario:
        profile = self.negotiation.tabulated
        policy, levels = adopted(self.draft.policy(), offer)
        with self.draft.table.changes.lock:
            node = CachedResult(self.draft.lattice_key(), dict(levels))
            snapshot = self.draft.snapshot_with_offer(policy)
        figures = ScenarioFigures(profile.records, offer.suppressed)
        if profile.problem is not None:
            retained, smallest, classes = class_figures(profile, levels, offer.privacy)
            figures = replace(figures, retained=retained, smallest_class=smallest, classes=classes)
        return self._pin(f"Offer: {offer.privacy.text}", policy, levels, figures, snapshot, node)

    def pin_preview(self) -> Scenario:
        """Pin the preview of the release with the current settings."""
        preview = self.preview.result
        if preview is None:
            raise NotReady("Wait for the preview of the release, and pin it then.")
        with self.draft.table.changes.lock:
            policy, snapshot, node = self.draft.policy(), self.draft.snapshot(), self.negotiation.chosen
        figures = ScenarioFigures(
            preview.records, preview.suppressed, preview.retained, preview.smallest_class, preview.classes
        )
        return self._pin(f"Release: {preview.algorithm}", policy, preview.levels, figures, snapshot, node)

    def pin_row(self, row: ComparisonRow) -> Scenario:
        """Pin a search of a comparison."""
        policy, snapshot = self._of_row(row)
        suppressed = None if row.suppressed is None else round(row.suppressed)
        figures = ScenarioFigures(row.records, suppressed, row.retained)
        return self._pin(f"Compared: {row.algorithm}", policy, row.levels, figures, snapshot, CachedResult())

    def use_row(self, row: ComparisonRow) -> None:
        """Adopt the algorithm, metric and limits of a compared search. A new search chooses the levels."""
        _, snapshot = self._of_row(row)
        self._restore(snapshot, CachedResult())

    def use(self, number: int) -> None:
        """Restore the settings and the node of a scenario, as one change that can be undone."""
        state = self.find(number).state
        self._restore(state.snapshot, state.node)

    def remove(self, number: int) -> None:
        removed = self.find(number)
        self.replace(tuple(scenario for scenario in self.pinned if scenario is not removed))
        self.history.add_edit()

    def find(self, number: int) -> Scenario:
        match = next((scenario for scenario in self.pinned if scenario.number == number), None)
        if match is None:
            raise Unknown("There is no such scenario.", "number")
        return match

    def _pin(
        self,
        name: str,
        policy: Policy,
        levels: Mapping[str, int] | None,
        figures: ScenarioFigures,
        snapshot: Snapshot,
        node: CachedResult[dict[str, int]],
    ) -> Scenario:
        if len(self.pinned) >= MAX_SCENARIOS:
            raise Refused(f"At most {MAX_SCENARIOS} scenarios are pinned. Remove one first.", "number")
        table, number = self.draft.table, max((earlier.number for earlier in self.pinned), default=0) + 1
        words = {
            column: _BY_CLASS if levels is None else table.level_names.name(column, levels[column])
            for column in table.quasi_identifiers
        }
        allowed = of_records(limit_for(policy, figures.records), figures.records)
        protection = " ".join([*model_statements(policy), f"At most {allowed} may be suppressed."])
        terms = "; ".join([*map(_terms, policy.models), f"at most {allowed} suppressed"])
        k = max((model.least_size for model in policy.privacy_models), default=1)
        state = HistoryState(name, snapshot, node)
        scenario = Scenario(number, name, protection, words, figures, state, terms, k)
        self.replace((*self.pinned, scenario))
        self.history.add_edit()
        return scenario

    def _of_row(self, row: ComparisonRow) -> tuple[Policy, Snapshot]:
        """Return the policy of a compared search, and the snapshot of a draft with this policy."""
        if row.loss is None:
            raise Refused(f"{row.algorithm} has no result to use.", "number")
        offer: dict[str, Any] = {"node": {}, "limit" if type(row.limit) is int else "share": row.limit}
        policy, _ = adopted(self.draft.policy(), offer | ({} if row.k is None else {"k": row.k}))
        written = named(policy.metric)[0]
        metric = policy.metric if row.metric.partition(":")[0] == written else row.metric
        policy = policy.with_(algorithm=row.algorithm, metric=metric)
        with self.draft.table.changes.lock:
            snapshot = self.draft.snapshot_with_offer(policy)
        changed = {"algorithm": row.algorithm, "metric": metric}
        return policy, replace(snapshot, settings={**snapshot.settings, **changed})

    def _restore(self, snapshot: Snapshot, node: CachedResult[dict[str, int]]) -> None:
        with self.draft.table.changes.lock:
            self.draft.restore(snapshot)
            self.negotiation.chosen = node


def _terms(model: Named) -> str:
    """Write a model with its numeric options. Text options are omitted: one may be the path of a file."""
    name, options = named(model)
    numbers = [f"{option} = {value}" for option, value in options.items() if type(value) in (int, float)]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def shared_page(scenarios: Sequence[Scenario]) -> str:
    """Return the page. It contains names of columns and levels, but no value, no file and no label.

    Counts below the largest k of the scenarios are not shown.
    """
    if not scenarios:
        raise NotReady("Pin a scenario first; the link shows what is pinned.", "link")
    k = max(_MIN_K, *(scenario.k for scenario in scenarios))
    columns = list(dict.fromkeys(name for scenario in scenarios for name in scenario.columns))
    head = tag("tr", *(tag("th", name, scope="col") for name in (*_PAGE_HEAD, *columns)))
    rows = [tag("tr", *(tag("td", text) for text in _cells(scenario, columns, k))) for scenario in scenarios]
    note = f"Counts below {k} are not shown as numbers. The page holds no record and no value of the table."
    head_tags = tag("meta", charset="utf-8"), tag("meta", name="viewport", content="width=device-width")
    body = tag("h1", "Scenarios"), tag("p", note), tag("table", head, *rows)
    title = tag("title", "Scenarios \u2013 shoal")
    return f"<!doctype html>{tag('html', *head_tags, title, tag('style', _PAGE_STYLE), *body, lang='en')}"


def _cells(scenario: Scenario, columns: Sequence[str], k: int) -> list[str]:
    figures = scenario.figures
    counts = (figures.suppressed, figures.smallest_class, figures.classes)
    retained = _NONE if figures.retained is None else f"{figures.retained:.0%}"
    return [
        f"{scenario.number}",
        scenario.terms,
        retained,
        *(_count(count, k) for count in counts),
        *(scenario.columns.get(name, _NONE) for name in columns),
    ]


def _count(count: int | None, k: int) -> str:
    if count is None:
        return _NONE
    return f"{count:,}" if count >= k else f"fewer than {k}"
