"""Figure: an empty figure to draw on, without a screen and without pyplot's state."""

from __future__ import annotations

from typing import Any

from shoal.errors import UsageError


def check_matplotlib() -> None:
    """Refuse to draw where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        message = "Plots need matplotlib: pip install 'shoal[plots]'."
        raise UsageError(message) from None


def blank(width: float, height: float) -> Any:
    """Return an empty figure of so many inches, which a notebook shows."""
    check_matplotlib()
    from shoal.core.drawn import Drawn

    return Drawn(figsize=(width, height), layout="constrained", dpi=100)
