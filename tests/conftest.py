"""What holds for every test: random problems are often infeasible, and machines busy; neither is a fault."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shoal", suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None
)
settings.load_profile("shoal")


def pytest_collection_finish() -> None:
    """Spare the search for garbage what was imported: all of it stays to the end, and it is a lot."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let all go at the end as if nothing had been spared: what DuckDB holds would be called a leak."""
    gc.unfreeze()
