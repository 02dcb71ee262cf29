"""How much the random tests try: little in make check, more in make test, much in make nightly."""

import os

import pytest

NIGHTLY = os.environ.get("SHOAL_NIGHTLY") == "1"
_MOST = 10 if os.environ.get("SHOAL_CHECK") == "1" else 40

# Seconds on the clock say something only on a machine that does nothing else.
needs_idle_machine = pytest.mark.skipif(
    not NIGHTLY, reason="measures seconds on the clock: make nightly, on an idle machine"
)


def examples(nightly: int) -> int:
    """Return how many examples a property is tried on, given how many at night."""
    return nightly if NIGHTLY else min(_MOST, nightly)


def usual_or_nightly(usual: int, nightly: int) -> int:
    return nightly if NIGHTLY else usual
