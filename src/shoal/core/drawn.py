"""Drawn: a figure that a notebook shows as it is, without pyplot; imports matplotlib."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class Drawn(Figure):
    """A figure of matplotlib that tells a notebook how it looks."""

    def _repr_png_(self) -> bytes:
        drawn = BytesIO()
        self.savefig(drawn, format="png")
        return drawn.getvalue()
