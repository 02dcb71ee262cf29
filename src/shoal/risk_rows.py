"""The measures of a risk assessment, written as rows of words."""

from __future__ import annotations

from collections.abc import Callable

from shoal.core.uniqueness import Estimate
from shoal.risk import Risk, TableRisk


def risk_rows(found: Risk) -> list[tuple[str, ...]]:
    """Write every measure as a row of words: what it is, before, and after where there is a release."""
    tables = [found.before, *([found.after] if found.after else [])]
    limit = f"{found.threshold:.4g}"
    by = {
        "prosecutor": "at most, as prosecutor",
        "estimate": "estimated",
        "population": "counted in the population",
    }

    def row(name: str, tell: Callable[[TableRisk], str]) -> tuple[str, ...]:
        return (name, *[tell(table) for table in tables])

    rows = [
        row("records", lambda one: f"{one.records:,}"),
        row("classes", lambda one: f"{one.exposure.classes:,}"),
        row("smallest class (k)", lambda one: f"{one.exposure.smallest:,}"),
        row("unique records", lambda one: _of(one.exposure.unique, one.records)),
        row("prosecutor risk, highest", lambda one: _chance(one.prosecutor.highest)),
        row("prosecutor risk, average", lambda one: _chance(one.prosecutor.average)),
        row(f"records above {limit}", lambda one: f"{one.prosecutor.above:.2%}"),
        row(
            f"journalist risk, highest ({by[found.before.journalist_by]})",
            lambda one: _chance(one.journalist.highest),
        ),
        row("journalist risk, average", lambda one: _chance(one.journalist.average)),
        row(f"records above {limit}", lambda one: f"{one.journalist.above:.2%}"),
        row("marketer risk: records rightly told", lambda one: _of(one.marketer * one.records, one.records)),
    ]
    for place, estimate in enumerate(found.before.uniques):
        told = [_estimated(one.uniques[place]) for one in tables]
        rows.append((f"unique in the population, by {estimate.model}", *told))
    if found.before.special is not None:
        rows.append(row("special uniques", _special))
    return rows


def _special(one: TableRisk) -> str:
    return "not looked for" if one.special is None else _of(one.special.records, one.records)


def _chance(chance: float) -> str:
    return f"{chance:.4f}"


def _of(records: float, total: int) -> str:
    share = records / total if total else 0.0
    return f"{round(records):,} ({share:.2%})"


def _estimated(estimate: Estimate) -> str:
    if estimate.in_sample is None:
        return "no solution"
    return f"{round(estimate.in_sample):,} of these"
