"""Chances: how likely a record of the sample is picked out among those of the population that look like it.

The f records of a class were drawn from F in the population, which nobody has counted. With the share of the
population that was drawn, F given f is negative binomial (Benedetti and Franconi 1998, "Statistical and
technological solutions for controlled data dissemination"), and the chance is the expectation of 1/F.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import FloatArray, IntArray

_SMALL = 30  # sizes up to which a recursion is used; beyond, few terms of the series suffice
_TERMS = 400


def chances(sizes: IntArray, share: float) -> FloatArray:
    """Return the expectation of 1/F for classes of these sizes, given the share that was drawn.

    It is share times the integral from 0 to 1 of u^(f-1) / (share + (1-share) u).

    >>> chances(np.array([1, 2, 5]), 1.0).tolist()
    [1.0, 0.5, 0.2]
    >>> [round(chance, 4) for chance in chances(np.array([1, 2]), 0.1).tolist()]
    [0.2558, 0.0827]
    """
    found = np.empty(len(sizes))
    few = (sizes <= _SMALL) & (share < 0.5)
    if few.any():
        found[few] = _by_recursion(share)[sizes[few] - 1]
    found[~few] = _by_series(sizes[~few].astype(np.float64), share)
    return found


def _by_recursion(share: float) -> FloatArray:
    """Return the chances of sizes 1 to a few; an error shrinks at each step where the share is below half."""
    rest = 1 - share
    found = np.empty(_SMALL)
    part = -np.log(share) / rest
    for size in range(1, _SMALL + 1):
        found[size - 1] = share * part
        part = (1 / size - share * part) / rest
    return found


def _by_series(sizes: FloatArray, share: float) -> FloatArray:
    """Sum share * (1-share)^m * B(f, m+1) until nothing is added."""
    term = share / sizes
    found = term.copy()
    for m in range(_TERMS):
        term = term * ((1 - share) * (m + 1) / (sizes + m + 1))
        found += term
        if not (term > found * 1e-17).any():
            break
    return found
