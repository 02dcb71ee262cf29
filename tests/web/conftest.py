"""A studio for the tests of a module, with a browser that has signed in, and tabs of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browser import SignedIn, chromium, open_sample, signed_in


@pytest.fixture(scope="module")
def studio_options() -> tuple[str, ...]:
    """Options of `shoal studio`; a module that needs others has its own fixture."""
    return ()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def custodian_browser(browser: Any, studio_options: tuple[str, ...]) -> Iterator[SignedIn]:
    with signed_in(browser, *studio_options) as signed:
        yield signed


@pytest.fixture
def start(custodian_browser: SignedIn) -> Iterator[Any]:
    """A tab at the first page; an error in its scripts fails the test."""
    with custodian_browser.tab() as page:
        yield page


@pytest.fixture
def sample(start: Any) -> Any:
    """A tab with the sample open."""
    open_sample(start)
    return start
