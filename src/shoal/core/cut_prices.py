"""A bound that ties classes together: a cut that suppresses records here has its price there.

Each class alone would choose the cuts that serve it best. But a cut divides all classes, and in some it cuts
off fewer than k records, which are suppressed. Let class A of a records, N in all, have a set X of cuts, of
which those in Y count, and let the others cut U off it, each fewer than k.

Lemma (rate): X costs A at least max(floor, a² - sum of 2·left·right over Y) + (N - 2a)·|U|. For U is
suppressed, and what remains of a cell of Y stays one cell. A cell of n >= k records of which u are in U
costs at least N·u + (n - u)² >= n² + (N - 2a)·u, a smaller one N·n >= k·n + (N - 2a)·u; and the sum of
n·max(k, n) is at least the floor, and at least a² less the pairs of records that Y tells apart.
Lemma (prices): divide what a record of U is charged among the cuts that cut it off. A cut then has a price,
the sum of its shares, which every set with it pays in full. Divide that among the classes in which the cut
counts, as 2·left·right is: each pays the same for a pair that the cut tells apart, and buys where pairs are
cheap, until only its floor is left. The least sum is a bound: linear programming duality, not solved to the
optimum.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.cut_entries import Entries
from shoal.core.cut_tables import CodeArray

_FEW = 8  # the part of a rate that may go into a bound above the floor is one in so many


@compiled
def rates_of(
    totals: IntArray, floors: FloatArray, bounds: FloatArray, records: int
) -> tuple[FloatArray, FloatArray]:
    """Return what each class charges for a record that is cut off it, and its bound apart from that.

    The lemma is about the floor. Where some record is cut off, a bound above the floor may be charged off
    what the first one pays; where that would take much of it, the floor is all that is claimed.
    """
    rates = np.zeros(totals.shape[0])
    bases = bounds.copy()
    for group in range(totals.shape[0]):
        rate = float(records - 2 * totals[group])
        more = bounds[group] - floors[group]
        if rate <= 0.0:
            continue
        if _FEW * more <= rate:
            rates[group] = rate - more
        else:
            rates[group] = rate
            bases[group] = floors[group]
    return rates, bases


@compiled
def prices_of(
    codes: CodeArray,
    sizes: IntArray,
    begins: IntArray,
    totals: IntArray,  # (classes,)
    entries: Entries,
    rates: FloatArray,  # (classes,): what a record costs that is cut off
    pairs: FloatArray,  # (cuts,): of records, that each tells apart in classes where it counts
    width: int,
    k: int,
) -> FloatArray:
    """Return the price of each cut: records are charged to cuts as those tell pairs apart."""
    at, lows, cut_of, lefts, counts = entries
    columns = codes.shape[0]
    prices = np.zeros(pairs.shape[0])
    cover = np.zeros((columns, width))  # the pairs of the cuts that cut off a code
    shares = np.zeros(width)
    charges = np.zeros(sizes.shape[0])
    for group in range(totals.shape[0]):
        start, stop = begins[group], begins[group + 1]
        if rates[group] <= 0.0 or stop - start == 1:
            continue
        size = totals[group]
        some = False
        for column in range(columns):
            some |= _cover(
                cover[column], lows[group, column], at[group, column], at[group, column + 1],
                cut_of, lefts, counts, pairs, size, k,
            )  # fmt: skip
        if not some:
            continue
        charges[start:stop] = 0.0
        for column in range(columns):
            for row in range(start, stop):
                charges[row] += cover[column, codes[column, row]]
        for row in range(start, stop):
            if charges[row] > 0.0:
                charges[row] = rates[group] * sizes[row] / charges[row]
        for column in range(columns):
            first, last = at[group, column], at[group, column + 1]
            low = lows[group, column]
            if first == last or not cover[column, low : low + last - first + 1].any():
                continue
            shares[low : low + last - first + 1] = 0.0
            for row in range(start, stop):
                shares[codes[column, row]] += charges[row]
            total = shares[low : low + last - first + 1].sum()
            left = 0.0
            for entry in range(first, last):
                left += shares[low + entry - first]
                if counts[entry]:
                    continue
                cut = cut_of[entry]
                if lefts[entry] < k:
                    prices[cut] += pairs[cut] * left
                if size - lefts[entry] < k:
                    prices[cut] += pairs[cut] * (total - left)
    return prices


@compiled
def _cover(
    cover: FloatArray,  # (codes,): is written to
    low: int,
    first: int,
    last: int,
    cut_of: IntArray,
    lefts: IntArray,
    counts: BoolArray,
    pairs: FloatArray,
    size: int,
    k: int,
) -> bool:
    """Add up the pairs of a column's cuts that cut off each code; return whether there are any."""
    some = False
    for code in range(low, low + last - first + 1):
        cover[code] = 0.0
    for entry in range(first, last):
        more = pairs[cut_of[entry]]
        if counts[entry] or more <= 0.0:
            continue
        if lefts[entry] < k:
            some = True
            for code in range(low, low + entry - first + 1):
                cover[code] += more
        if size - lefts[entry] < k:
            some = True
            for code in range(low + entry - first + 1, low + last - first + 1):
                cover[code] += more
    return some


@compiled
def priced(
    totals: IntArray,
    wholes: FloatArray,
    bases: FloatArray,  # (classes,): what each costs at least, whatever it buys
    entries: Entries,
    pairs: FloatArray,
    prices: FloatArray,
    cuts: int,
) -> tuple[float, FloatArray, FloatArray]:
    """Let each class buy cuts; return the sum, and by how much it grows with each cut and without it."""
    at, _, cut_of, lefts, counts = entries
    rates = np.full(cuts, np.inf)
    for cut in range(cuts):
        if pairs[cut] > 0.0:
            rates[cut] = prices[cut] / pairs[cut]
    order = np.argsort(rates)
    rank = np.empty(cuts, np.int64)
    for place in range(cuts):
        rank[order[place]] = place
    with_cut = np.zeros(cuts)
    without = np.zeros(cuts)
    offered = np.zeros(cuts)  # by rank: pairs told apart
    bought = np.zeros(cuts)
    total = 0.0
    for group in range(totals.shape[0]):
        if at[group, 0] == at[group, -1]:
            total += wholes[group]
            continue
        last = -1
        for entry in range(at[group, 0], at[group, -1]):
            if counts[entry]:
                place = rank[cut_of[entry]]
                offered[place] = 2.0 * lefts[entry] * (totals[group] - lefts[entry])
                last = max(last, place)
        room = wholes[group] - bases[group]
        cost = wholes[group]
        filled = -1  # the last rank that is bought
        for place in range(last + 1):
            rate = rates[order[place]]
            if rate >= 1.0 or room <= 0.0:
                break
            if offered[place] > 0.0:
                bought[place] = min(room, offered[place])
                room -= bought[place]
                cost -= bought[place] * (1.0 - rate)
                filled = place
        total += cost
        for place in range(last + 1):
            if offered[place] <= 0.0:
                continue
            cut = order[place]
            with_cut[cut] += _forced(place, filled, room, offered, bought, rates, order)
            if bought[place] > 0.0:
                without[cut] += _refused(place, filled, last, offered, bought, rates, order)
        offered[: last + 1] = 0.0
        bought[: last + 1] = 0.0
    return total, with_cut, without


@compiled
def _forced(
    place: int,
    filled: int,
    room: float,
    offered: FloatArray,
    bought: FloatArray,
    rates: FloatArray,
    order: IntArray,
) -> float:
    """Return what it costs a class to buy all of a cut, in place of the dearest that it bought."""
    rest = offered[place] - bought[place]
    cost = rates[order[place]] * rest
    cost -= min(rest, room)
    rest -= min(rest, room)
    for other in range(filled, -1, -1):
        if rest <= 0.0:
            break
        if other != place and bought[other] > 0.0:
            instead = min(rest, bought[other])
            cost -= instead * rates[order[other]]
            rest -= instead
    return cost if cost > 0.0 else 0.0


@compiled
def _refused(
    place: int,
    filled: int,
    last: int,
    offered: FloatArray,
    bought: FloatArray,
    rates: FloatArray,
    order: IntArray,
) -> float:
    """Return what it costs a class to do without a cut that it bought."""
    rest = bought[place]
    cost = rest * (1.0 - rates[order[place]])
    for other in range(filled, last + 1):
        rate = rates[order[other]]
        if rest <= 0.0 or rate >= 1.0:
            break
        if other != place and offered[other] > bought[other]:
            instead = min(rest, offered[other] - bought[other])
            cost -= instead * (1.0 - rate)
            rest -= instead
    return cost if cost > 0.0 else 0.0
