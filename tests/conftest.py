"""What holds for every test: random problems are often infeasible, and machines busy; neither is a fault."""

from __future__ import annotations

import gc
import threading
from functools import cache

import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

settings.register_profile(
    "shoal", suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None
)
settings.load_profile("shoal")

# A command line is built once for all its calls; a program that is started has but one.
typer.testing._get_command = cache(typer.main.get_command)


def pytest_collection_finish() -> None:
    """Spare the search for garbage what was imported: all of it stays to the end, and it is a lot."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let all go at the end as if nothing had been spared: what DuckDB holds would be called a leak.

    So would what a job of a studio holds that was let go and works on.
    """
    for thread in threading.enumerate():
        if thread.name.startswith("shoal-"):
            thread.join(30)
    gc.unfreeze()
