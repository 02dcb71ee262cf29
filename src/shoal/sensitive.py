"""What models may know of sensitive columns, of persons with several records, and of a population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.builder import POINT, decimal_of, number_of
from shoal.core.classes import LABEL, UNIT, Sensitive, own_name
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.core.listed import Order
from shoal.errors import DataError, PolicyError
from shoal.policy import Policy
from shoal.spreadsheet import plain_cells

Text = str | None
Reference = Mapping[str, Sequence[tuple[Text, int]]]  # how often each value occurs in the whole input


def count(
    engine: Engine,
    table: Any,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    units: Sequence[str],
    label: str | None = None,
) -> tuple[Counts, dict[str, Domain]]:
    """Count combinations with sensitive values, and with units and labels apart from them."""
    labels = [] if label is None else [label]
    counts, domains = engine.count(table, quasi, list(dict.fromkeys([*sensitive, *units, *labels])))
    own = {
        **dict.fromkeys(sensitive),
        **{UNIT + name: name for name in units},
        **{LABEL + name: name for name in labels},
    }
    return counts.naming({new: old or new for new, old in own.items()}), domains


def about(
    policy: Policy, counts: Counts, domains: Mapping[str, Domain], reference: Reference | None = None
) -> dict[str, Sensitive]:
    """Describe the sensitive columns; the reference is what was counted, or the whole input where given.

    Values that occur in the reference alone get codes behind those of the table.
    """
    found = {}
    for name, own in reference_of(counts, domains).items():
        texts, totals = [text for text, _ in own], [number for _, number in own]
        if reference is not None and name in reference:
            told = dict(reference[name])
            texts = _as_told(texts, told)
            present = set(texts)
            texts += [text for text in told if text not in present]
            totals = [told.get(text, 0) for text in texts]
        order: tuple[str, ...] = ()
        hierarchy = None
        if policy.columns[name].hierarchy is not None:
            rule = policy.builder(name)
            order = rule.order if isinstance(rule, Order) else ()
            plain = plain_cells(texts, rule.listed())
            hierarchy = rule.bind(Domain(name, plain, tuple(plain)))
        found[name] = Sensitive(np.array(totals, np.int64), order_of(texts, order), hierarchy)
    return found


def _as_told(texts: Sequence[Text], told: Mapping[Text, int]) -> list[Text]:
    """Write values as the reference does: a release may show 45.0 where the input has 45, or '-5 where -5."""
    texts = plain_cells(texts, told)
    here = set(texts)
    unseen = {number_of(text): text for text in told if text is not None and text not in here}
    unseen.pop(None, None)
    strange = {text: number_of(text) for text in texts if text is not None and text not in told}
    return [unseen.pop(strange[text], text) if text in strange else text for text in texts]  # each once


def order_of(texts: Sequence[Text], listed: Sequence[str] = ()) -> IntArray:
    """Return each value's place in its column's own order: as listed, then numbers, then texts.

    What is missing comes last.

    >>> order_of(["10", None, "9", "?"]), order_of(["low", "high", "mid"], ["low", "mid", "high"])
    (array([1, 3, 0, 2]), array([0, 2, 1]))
    >>> order_of(["10,5", None, "9,25"])
    array([1, 2, 0])
    >>> order_of(["1", "'-5", "'-9"])
    array([2, 1, 0])
    """
    texts = plain_cells(texts, listed)
    place = {value: number for number, value in enumerate(listed)}
    decimal = decimal_of([text for text in texts if text is not None]) or POINT
    numbers = [number_of(text or "", decimal) for text in texts]
    keys = [
        (text is None, place.get(text or "", len(place)), number is None, number or Decimal(0), text or "")
        for text, number in zip(texts, numbers, strict=True)
    ]
    found = np.empty(len(texts), np.int64)
    found[sorted(range(len(texts)), key=keys.__getitem__)] = np.arange(len(texts))
    return found


def with_population(
    policy: Policy, engine: Engine, counts: Counts, domains: Mapping[str, Domain]
) -> tuple[Counts, dict[str, Domain]]:
    """Count the population into the same combinations; its own values get codes behind the sample's."""
    path = policy.population
    if path is None:
        return counts, dict(domains)
    quasi = policy.roles.quasi_identifiers
    opened = engine.open(path)
    absent = [name for name in quasi if name not in engine.columns(opened)]
    if absent:
        message = (
            f"The population lacks quasi-identifiers of the policy: {', '.join(map(repr, absent))}. Give a "
            "table that has them, under the same names."
        )
        raise PolicyError(message)
    counts = counts.near()
    there, others = engine.count(opened, quasi)
    there = there.near()
    if not len(there):
        message = "The population has no rows. Give one that has records."
        raise DataError(message)
    joined = dict(domains)
    maps = {}
    for column, name in enumerate(quasi):
        texts = list(domains[name].texts)
        codes = {text: code for code, text in enumerate(texts)}
        texts += [text for text in others[name].texts if text not in codes]
        codes |= {text: code for code, text in enumerate(texts[len(domains[name]) :], len(domains[name]))}
        joined[name] = Domain(name, domains[name].values, tuple(texts))
        maps[column] = np.array([codes[text] for text in others[name].texts], np.int64)
    widths = [joined[name].bits for name in quasi]
    population = there.widened(widths).roll_up(maps)
    sample = counts.widened(widths)
    inside = population.sizes_of(sample.keys)
    short = int((inside < sample.sizes).sum())
    if short:
        message = (
            f"The population does not cover the table: {short:,} of {len(sample):,} combinations of "
            f"quasi-identifiers have fewer records in it, {int((inside == 0).sum()):,} of them none. "
            "It must hold all records that the table was drawn from, with values written alike: 1 is not 01."
        )
        raise DataError(message)
    return replace(sample, population=population), joined


def reference_in(engine: Engine, table: Any, names: Sequence[str]) -> dict[str, list[tuple[Text, int]]]:
    """Count how often each value of some columns occurs in a table."""
    opened = engine.open(table)
    absent = [name for name in names if name not in engine.columns(opened)]
    if absent:
        message = (
            f"The reference lacks sensitive columns of the policy: {', '.join(map(repr, absent))}. Give the "
            "whole input of the release."
        )
        raise PolicyError(message)
    found = {}
    for name in names:
        counts, domains = engine.count(opened, [name])
        found[name] = _totals(counts.codes(0), counts.sizes, domains[name])
    return found


def reference_of(counts: Counts, domains: Mapping[str, Domain]) -> dict[str, list[tuple[Text, int]]]:
    """Return how often each value of each sensitive column occurs in the whole input."""
    return {
        name: _totals(entries.codes, entries.counts, domains[name])
        for name, entries in counts.sensitive.items()
        if own_name(name)
    }


def _totals(codes: IntArray, counts: IntArray, domain: Domain) -> list[tuple[Text, int]]:
    totals = np.bincount(codes, counts, len(domain)).astype(np.int64).tolist()
    return list(zip(domain.texts, totals, strict=True))


def beyond(told: Sequence[tuple[Text, int]], own: Sequence[tuple[Text, int]]) -> int:
    """Count the values that occur more often than the reference tells, or that it does not have."""
    known = dict(told)
    texts = _as_told([text for text, _ in own], known)
    return sum(known.get(text, 0) < number for text, (_, number) in zip(texts, own, strict=True))
