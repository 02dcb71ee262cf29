"""An engine that counts frames of text in plain Python, for tests that count often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from shoal.core.counts.counts import Counts, Domain, layout
from shoal.core.counts.in_memory import from_joint
from shoal.engines.duckdb.engine import DuckDb


class ListEngine(DuckDb):
    """Counts a frame as it is given."""

    def open(self, source: Any) -> Any:
        return source

    def columns(self, table: pd.DataFrame) -> tuple[str, ...]:
        return tuple(table.columns)

    def durations(self, table: pd.DataFrame) -> tuple[str, ...]:
        return ()

    def count(
        self, table: pd.DataFrame, columns: Sequence[str], sensitive: Sequence[str] = ()
    ) -> tuple[Counts, dict[str, Domain]]:
        names = [*columns, *sensitive]
        texts = {name: [None if pd.isna(value) else str(value) for value in table[name]] for name in names}
        found = {name: sorted(set(own), key=lambda text: (text is None, text)) for name, own in texts.items()}
        domains = {name: Domain(name, values, tuple(values)) for name, values in found.items()}
        rows = Counter(zip(*[map(found[name].index, texts[name]) for name in names], strict=True))
        fields = layout([domains[name].bits for name in names])
        keys = np.zeros((fields[-1].word + 1, len(rows)), np.int64)
        for place, field in enumerate(fields):
            keys[field.word] |= np.array([row[place] for row in rows], np.int64) << field.shift
        widths = [domains[name].bits for name in columns]
        own = {name: domains[name].bits for name in sensitive}
        return from_joint(widths, own, keys, np.array(list(rows.values()), np.int64)), domains
