"""Build the problem of a search from a table and a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from shoal.columns.header import has_half, no_such_columns
from shoal.core.arrays import IntArray
from shoal.core.classes import LABEL, UNIT, Sensitive, is_sensitive_name, label_of
from shoal.core.contracts import Role
from shoal.core.counts.counts import Counts, Domain
from shoal.core.hierarchy.builder import POINT, Builder, decimal_of, number_of
from shoal.core.hierarchy.lists import Order
from shoal.core.lattice.lattice import build
from shoal.core.memory import limit_of
from shoal.core.problem import Problem
from shoal.core.recoding.groups import cell_number, group_column
from shoal.errors import DataError, PolicyError
from shoal.policy.limits import limit_in_records
from shoal.policy.policy import Policy
from shoal.wording import nearest
from shoal.workflow.release.spreadsheet import plain_cells
from shoal.workflow.session import OpenTable

RECORDS = "records"  # the column of a second table that counts how often a value occurs in a group
OptionalText = str | None
Reference = Mapping[str, Sequence[tuple[OptionalText, int]]]  # how often each value occurs in the whole input


def count(
    table: OpenTable,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    units: Sequence[str],
    label: str | None = None,
) -> tuple[Counts, dict[str, Domain]]:
    """Count combinations with their sensitive values; units and labels are counted separately."""
    labels = [] if label is None else [label]
    counts, domains = table.count(quasi, list(dict.fromkeys([*sensitive, *units, *labels])))
    renamed = {
        **dict.fromkeys(sensitive),
        **{UNIT + name: name for name in units},
        **{LABEL + name: name for name in labels},
    }
    return counts.rename_sensitive({new: old or new for new, old in renamed.items()}), domains


def sensitive_info(
    policy: Policy, counts: Counts, domains: Mapping[str, Domain], reference: Reference | None = None
) -> dict[str, Sensitive]:
    """Describe the sensitive columns; the reference is the counted table, or the whole input if it is given.

    Values that occur only in the reference get codes after those of the table.
    """
    described = {}
    for name, frequencies in reference_of(counts, domains).items():
        texts, totals = [text for text, _ in frequencies], [number for _, number in frequencies]
        if reference is not None and name in reference:
            known = dict(reference[name])
            texts = _as_in_reference(texts, known)
            known_texts = set(texts)
            texts += [text for text in known if text not in known_texts]
            totals = [known.get(text, 0) for text in texts]
        order: tuple[str, ...] = ()
        hierarchy = None
        if policy.columns[name].hierarchy is not None:
            rule = policy.builder(name)
            order = rule.order if isinstance(rule, Order) else ()
            plain = plain_cells(texts, rule.listed())
            hierarchy = rule.bind(Domain(name, plain, tuple(plain)), np.array(totals, np.int64))
        described[name] = Sensitive(np.array(totals, np.int64), order_of(texts, order), hierarchy)
    return described


def _as_in_reference(texts: Sequence[OptionalText], known: Mapping[OptionalText, int]) -> list[OptionalText]:
    """Write values as in the reference: a release may have 45.0 where the input has 45, or '-5 for -5."""
    texts = plain_cells(texts, known)
    present_texts = set(texts)
    unseen = {number_of(text): text for text in known if text is not None and text not in present_texts}
    unseen.pop(None, None)
    numbers = {text: number_of(text) for text in texts if text is not None and text not in known}
    return [unseen.pop(numbers[text], text) if text in numbers else text for text in texts]  # used once


def order_of(texts: Sequence[OptionalText], listed: Sequence[str] = ()) -> IntArray:
    """Return the rank of each value in the order of its column: listed values, then numbers, then texts.

    Missing values come last.

    >>> order_of(["10", None, "9", "?"]), order_of(["low", "high", "mid"], ["low", "mid", "high"])
    (array([1, 3, 0, 2]), array([0, 2, 1]))
    >>> order_of(["10,5", None, "9,25"])
    array([1, 2, 0])
    >>> order_of(["1", "'-5", "'-9"])
    array([2, 1, 0])
    """
    texts = plain_cells(texts, listed)
    positions = {value: number for number, value in enumerate(listed)}
    decimal = decimal_of([text for text in texts if text is not None]) or POINT
    numbers = [number_of(text or "", decimal) for text in texts]
    keys = [
        (
            text is None,
            positions.get(text or "", len(positions)),
            number is None,
            number or Decimal(0),
            text or "",
        )
        for text, number in zip(texts, numbers, strict=True)
    ]
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=keys.__getitem__)] = np.arange(len(texts))
    return ranks


def with_population(
    policy: Policy, table: OpenTable, counts: Counts, domains: Mapping[str, Domain]
) -> tuple[Counts, dict[str, Domain]]:
    """Count the population into the same combinations; its additional values get codes after the sample's."""
    path = policy.population
    if path is None:
        return counts, dict(domains)
    quasi = policy.roles.quasi_identifiers
    population_table = table.open(path, "population")
    missing = [name for name in quasi if name not in population_table.columns]
    if missing:
        raise PolicyError(
            f"The population lacks quasi-identifiers of the policy: {', '.join(map(repr, missing))}. Give a "
            "table that has them, under the same names."
        )
    counts = counts.in_memory()
    population_counts, population_domains = population_table.count(quasi)
    population_counts = population_counts.in_memory()
    joined = dict(domains)
    maps = {}
    for column, name in enumerate(quasi):
        texts = list(domains[name].texts)
        codes = {text: code for code, text in enumerate(texts)}
        texts += [text for text in population_domains[name].texts if text not in codes]
        codes |= {text: code for code, text in enumerate(texts[len(domains[name]) :], len(domains[name]))}
        joined[name] = Domain(name, domains[name].values, tuple(texts))
        maps[column] = np.array([codes[text] for text in population_domains[name].texts], np.int64)
    widths = [joined[name].bits for name in quasi]
    population = population_counts.widened(widths).roll_up(maps)
    sample = counts.widened(widths)
    inside = population.sizes_of(sample.keys)
    too_few = int((inside < sample.sizes).sum())
    if too_few:
        raise DataError(
            f"The population does not cover the table: {too_few:,} of {len(sample):,} combinations of "
            f"quasi-identifiers have fewer records in it, {int((inside == 0).sum()):,} of them none. "
            "It must hold all records that the table was drawn from, with values written alike: 1 is not 01."
        )
    return replace(sample, population=population), joined


def reference_in(table: OpenTable, names: Sequence[str]) -> dict[str, list[tuple[OptionalText, int]]]:
    """Count how often each value of some columns occurs in a table."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise PolicyError(
            f"The reference lacks sensitive columns of the policy: {', '.join(map(repr, missing))}. Give the "
            "whole input of the release."
        )
    totals = {}
    for name in names:
        counts, domains = table.count([name])
        totals[name] = _totals(counts.codes(0), counts.sizes, domains[name])
    return totals


def reference_of(counts: Counts, domains: Mapping[str, Domain]) -> dict[str, list[tuple[OptionalText, int]]]:
    """Return how often each value of each sensitive column occurs in the whole input."""
    return {
        name: _totals(entries.codes, entries.counts, domains[name])
        for name, entries in counts.sensitive.items()
        if is_sensitive_name(name)
    }


def _totals(codes: IntArray, counts: IntArray, domain: Domain) -> list[tuple[OptionalText, int]]:
    totals = np.bincount(codes, counts, len(domain)).astype(np.int64).tolist()
    return list(zip(domain.texts, totals, strict=True))


def above_reference(
    reference: Sequence[tuple[OptionalText, int]], frequencies: Sequence[tuple[OptionalText, int]]
) -> int:
    """Count the values that occur more often than in the reference, or that the reference lacks."""
    known = dict(reference)
    texts = _as_in_reference([text for text, _ in frequencies], known)
    return sum(known.get(text, 0) < number for text, (_, number) in zip(texts, frequencies, strict=True))


def counted(
    table: OpenTable,
    policy: Policy,
    sensitive: Sequence[str] | None = None,
    label: str | None = None,
) -> tuple[Counts, dict[str, Domain]]:
    """Count the combinations of an open table; without `sensitive`, with all columns that plug-ins need."""
    check_columns(policy, table.columns)
    for name in table.engine.durations(table.table):
        if name in policy.roles.quasi_identifiers:
            raise DataError(
                f"Column {name!r} holds durations, which no hierarchy generalizes. Turn them into numbers, "
                "such as days, or give the column the role sensitive or other."
            )
    needed = policy.sensitive_needed if sensitive is None else sensitive
    units = policy.units if sensitive is None else ()
    if sensitive is None:
        label = label or policy.label_needed
    counts, domains = count(table, policy.roles.quasi_identifiers, needed, units, label)
    return _merge_alike(policy, *with_population(policy, table, counts, domains))


def without_unused_label(
    policy: Policy, counts: Counts, domains: Mapping[str, Domain]
) -> tuple[Counts, dict[str, Domain]]:
    """Remove a label that the search does not need: it was counted only to measure losses."""
    used = {*policy.roles.quasi_identifiers, *policy.sensitive_needed, *policy.units}
    columns = {name: name for name in counts.sensitive if not name.startswith(LABEL)}
    return counts.rename_sensitive(columns), {
        name: domain for name, domain in domains.items() if name in used
    }


def _merge_alike(
    policy: Policy, counts: Counts, domains: dict[str, Domain]
) -> tuple[Counts, dict[str, Domain]]:
    """Merge values with the same bounds in columns that are released as bounds.

    Values that are not numbers (null, codes for unknown) have no bounds; 5 and 5.0 have the same. A model
    that holds for two classes need not hold for their union, so the values are merged before the search.
    """
    maps = {}
    for index, name in enumerate(policy.roles.quasi_identifiers):
        domain = domains[name]
        codes = _same_bounds(policy.builder(name), domain.texts) if name in policy.as_bounds else None
        if codes is not None and codes.max() + 1 < len(codes):
            first = np.unique(codes, return_index=True)[1].tolist()
            maps[index] = codes
            domains[name] = replace(domain, texts=tuple(domain.texts[at] for at in first), codes=codes)
    return (counts.roll_up(maps) if maps else counts), domains


def _same_bounds(rule: Builder, texts: Sequence[str | None]) -> IntArray:
    """Return a code for the bounds of each value, in the order of their first occurrence."""
    known: dict[object, int] = {}
    codes = []
    for text in texts:
        bounds: object = None
        if text is not None and not rule.is_unknown(text):
            number = rule.number(text)
            if number is not None:
                bounds = cell_number(number)
            elif rule.uncovered is None:
                bounds = text  # is refused later
        codes.append(known.setdefault(bounds, len(known)))
    return np.array(codes, np.int64)


def problem_of(
    policy: Policy,
    counts: Counts,
    domains: Mapping[str, Domain],
    node: Mapping[str, int] | None = None,
    memory: int | None = None,
) -> Problem:
    """Create the problem of a search from counts and a policy."""
    hierarchies = policy.bind(domains, counts)
    heights = {hierarchy.name: hierarchy.height for hierarchy in hierarchies}
    for which in ("max_level", "min_level"):
        for name, level in policy.limits(which).items():
            if level > heights[name]:
                raise PolicyError(
                    f"Column {name!r}: {which} {level} is above its hierarchy's highest, {heights[name]}."
                )
    lattice = build(heights, policy.limits("max_level"), policy.limits("min_level"), policy.same_level)
    return Problem(
        counts=counts,
        hierarchies=hierarchies,
        lattice=lattice.narrowed(node or {}),
        models=policy.privacy_models,
        metric=policy.information_metric,
        limit=limit_for(policy, counts.records),
        weights=tuple(policy.columns[name].weight for name in heights),
        identifying=tuple(policy.columns[name].identifying for name in heights),
        sensitive_info=sensitive_info(policy, counts, domains),
        as_bounds=policy.as_bounds,
        whole=lattice,
        memory=limit_of(None) if memory is None else memory,
    )


def check_label(problem: Problem) -> None:
    """Raise if the label has only one value, unless there is nothing to search for."""
    if problem.lattice.size == 1:
        return
    name = label_of(problem.counts)
    if name is not None and len(set(problem.counts.sensitive[name].codes.tolist())) < 2:
        raise DataError(
            f"Column {name.removeprefix(LABEL)!r} is the label and has one value in the table: there is "
            "nothing to predict. Name another, or use a metric and an algorithm that need none."
        )


def with_settings(problem: Problem, policy: Policy) -> Problem:
    """Return the problem with the models, the metric and the limit of another policy for the same columns."""
    return replace(
        problem,
        models=policy.privacy_models,
        metric=policy.information_metric,
        limit=limit_for(policy, problem.records),
    )


def limit_for(policy: Policy, records: int) -> int:
    """Return the number of records that may be suppressed, by the policy or the algorithm's default."""
    algorithm = policy.search_algorithm
    if algorithm is not None and "suppression_limit" not in policy.model_fields_set:
        default = algorithm.default_limit(policy.privacy_models)
        if default is not None:
            return min(default, records)
    return limit_in_records(policy.suppression_limit, records)


def separate_column(policy: Policy) -> str | None:
    """Return the sensitive column that the algorithm releases in a second table, if it does so."""
    algorithm = policy.search_algorithm
    if algorithm is None or not algorithm.separates_sensitive:
        return None
    names = policy.roles.sensitive
    if len(names) != 1:
        advice = "Change the other columns' roles." if names else "Give one column the role sensitive."
        raise PolicyError(
            "With algorithm anatomy exactly one column must be sensitive: any other would be released with "
            f"unchanged quasi-identifiers. The policy has {len(names)}. {advice}"
        )
    (name,) = names
    if name.lower() == RECORDS:
        raise PolicyError(f"Column {name!r}: its table has a column {RECORDS!r} of its own. Rename yours.")
    same = [column for column in policy.columns if column.lower() == group_column(name).lower()]
    if same:
        raise PolicyError(f"Column {same[0]!r} has a name that the groups of {name!r} need. Rename it.")
    return name


def check_columns(policy: Policy, columns: tuple[str, ...]) -> None:
    """Fail closed: the policy and the table must name the same columns."""
    missing = [name for name in policy.columns if name not in columns]
    if len(missing) == len(policy.columns):
        raise PolicyError(no_such_columns())
    if missing:
        message = f"The policy names columns that the table does not have: {', '.join(map(repr, missing))}."
        if has_half(policy.columns, columns):
            others = [name for name in columns if name not in policy.columns]
            close = [match for name in missing if (match := nearest(name, others)) is not None]
            message += f" Did you mean {', '.join(map(repr, dict.fromkeys(close)))}?" if close else ""
            message += f" The table has: {', '.join(map(repr, columns))}."
        else:
            message += " Give the table of this policy, or the policy of this table."
        raise PolicyError(message)
    unnamed = [name for name in columns if name not in policy.columns]
    if unnamed:
        raise PolicyError(
            f"The table has columns that the policy does not name: {', '.join(map(repr, unnamed))}. "
            f"Give each a role: {', '.join(role.value for role in Role)}."
        )
