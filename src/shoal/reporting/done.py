"""The section of a report on what was done: records, columns, the policy in words, and what is proven."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shoal.algorithms import ALGORITHMS
from shoal.core import builders
from shoal.core.block import cut
from shoal.core.contracts import Guarantee
from shoal.core.markup import Html, joined, own, table, tag
from shoal.core.schema import Role
from shoal.errors import so_many
from shoal.metrics import METRICS
from shoal.policy import Named, Policy, named
from shoal.problem import limit_for
from shoal.reporting.words import listed, of_records, options_in_words, percent, whole

if TYPE_CHECKING:
    from shoal.release import Release

_LONGEST = 200  # characters of labels that are shown as examples
# Rules whose parameters are widths and units; those of the others list values.
_TOLD = ("dates", "intervals", "prefix", "times")
_PROVEN = {
    Guarantee.LEAST_LOSS: "No other of these choices that satisfies the policy loses less. This was proven.",
    Guarantee.LEAST_HEIGHT: "None of these choices that satisfies the policy is less high. This was proven.",
    Guarantee.MINIMAL: "No column can be taken a level down without breaking the policy. This was proven.",
    Guarantee.ACCEPTABLE: "It satisfies the policy. That nothing else loses less was not proven.",
    Guarantee.NONE: "The search promises nothing of the models; what they say is counted below.",
}


def done(release: Release) -> Iterator[Html]:
    """Tell of the records, of what became of each column, and of the policy."""
    yield tag("p", _records(release), " ", _kind(release))
    rows = [
        (
            own(fate.column),
            whole(fate.role),
            _hierarchy(release.policy, fate.column),
            fate.level,
            own(cut(fate.released_as, _LONGEST)),
        )
        for fate in release.fates()
    ]
    headings = ("Column", "Role", "Hierarchy", "Level", "Released as")
    yield table("What became of each column; level 0 is the value as it is", headings, rows)
    yield tag("h3", "The policy in words")
    pairs = [joined((tag("dt", name), tag("dd", words))) for name, words in _policy(release)]
    yield tag("dl", *pairs, class_="words")


def _records(release: Release) -> str:
    kept = release.records - release.suppressed
    share = percent(release.suppressed / release.records)
    words = f"{release.records:,} records came in and {kept:,} are released. "
    if release.masked:
        words += f"{release.masked:,} ({share}) were masked: they stay, and show no quasi-identifier and no "
        words += "sensitive value."
    else:
        words += (
            f"{release.suppressed:,} ({share}) were suppressed."
            if release.suppressed
            else "None was suppressed."
        )
    if release.cells:
        blanked = ("cell of released records was blanked", "cells of released records were blanked")
        words += f" {so_many(release.cells, *blanked)}."
    return words


def _kind(release: Release) -> str:
    if release.apart:
        return (
            f"Quasi-identifiers stay as they are. The sensitive column {release.apart} is released in a "
            "second table that tells which values occur in each group of records, not whose they are."
        )
    if release.levels:
        return "Every column was taken to one level of its hierarchy, alike for all records."
    if release.cut:
        return "Every column was cut into groups, alike for all records."
    if release.start and not release.policy.finishing["refine"]:
        alike = "; in some records cells were blanked" if release.cells else ", alike for all records"
        return f"Every column was taken to one level of its hierarchy{alike}."
    return "Classes have labels of their own: a value may be told finely in one and broadly in another."


def _hierarchy(policy: Policy, name: str) -> str:
    """Say by which rule a quasi-identifier climbs; the values that a rule may list are not told."""
    column = policy.columns[name]
    if column.role is not Role.QUASI_IDENTIFIER:
        return ""
    rule = builders.parse(name, column.hierarchy)
    steps = getattr(rule, rule.keyword, ()) if rule.keyword in _TOLD else ()
    words = " ".join([rule.keyword, ", ".join(map(str, steps))]).strip()
    limits = {"at least": column.min_level, "at most": column.max_level}
    told = [f"{which} level {level}" for which, level in limits.items() if level is not None]
    told += [f"weight {column.weight:g}"] if column.weight != 1 else []
    return "; ".join([words, *told])


def _policy(release: Release) -> Iterator[tuple[str, object]]:
    policy, evaluation = release.policy, release.evaluation
    for model in policy.models:
        yield "Privacy model", _plugin(model)
    yield "Suppression limit", of_records(limit_for(policy, release.records), release.records)
    if policy.suppressed == "mask":
        yield "Suppressed records", "kept masked, where they are enough to hide among each other"
    for names in policy.same_level:
        yield "At one level", listed(names)
    if policy.label:
        yield "Label to predict", own(policy.label)
    yield "Metric", joined((_plugin(policy.metric), ": ", METRICS.about(named(policy.metric)[0])))
    yield "Search", _search(release)
    if evaluation.lower_bound is not None:
        least = f"{evaluation.lower_bound:,.10g}"
        yield (
            "Proven",
            f"No set of cuts by order loses less than {least}; this one loses {release.loss:,.10g}.",
        )
    elif release.outliers:
        yield (
            "Proven",
            f"No tested combination of columns is shared by fewer than {release.outliers.k:,} records.",
        )
    elif release.lattice_size == 1 and release.levels:
        yield "Proven", "The levels were given, so there was nothing to choose among."
    else:
        yield "Proven", _PROVEN[evaluation.proven]


def _search(release: Release) -> object:
    name = release.algorithm
    words = f": {ALGORITHMS.about(name)}" if name in ALGORITHMS else ""
    work = release.evaluation.work
    if release.start is None:
        return f"{name}{words}"
    looked = f" {release.lattice_size:,} choices of levels"
    counted = f", {work.nodes_evaluated:,} of them counted" if work.nodes_evaluated else ""
    return f"{name}{words}{looked}{counted}."


def _plugin(written: Named) -> Html:
    name, options = named(written)
    told = options_in_words(options)
    return joined((tag("strong", name), f" ({told})" if told else ""))
