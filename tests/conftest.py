"""What holds for every test: random problems are often infeasible, and machines busy; neither is a fault."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from functools import cache

import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

from shoal.core import compilation
from shoal.core.compilation import Work

settings.register_profile(
    "shoal", suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None
)
settings.load_profile("shoal")

# A shell ignores Ctrl-C for what it starts in the background, and nohup the end of the terminal. So would
# every program that a test starts.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# A command line is built once for all its calls; a program that is started has but one.
typer.testing._get_command = cache(typer.main.get_command)


@pytest.fixture(params=["compiled", "numpy"], scope="module")
def both_modes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a module with compiled kernels, and again with NumPy wherever a kernel has an equivalent.

    Which of them a process uses would otherwise depend on the tests before.
    """
    with pytest.MonkeyPatch.context() as patch:
        numpy = request.param == "numpy"

        def fits_numpy(_: Work, rows: int, *, sorts: bool = True) -> bool:
            return numpy and (rows <= compilation._MAX_SORTED_ROWS or not sorts)

        patch.setattr(Work, "fits_numpy", fits_numpy)
        yield


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
