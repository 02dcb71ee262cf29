"""Comparisons: rows of searches, and how they are written to a file."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from shoal.comparing.row import Row
from shoal.errors import OutputError, UsageError
from shoal.outputs import check_file, written_whole

ENDINGS = (".csv", ".json")


@dataclass(frozen=True)
class Comparison:
    """A row for every metric, limit, k and algorithm, in that order."""

    rows: tuple[Row, ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as plain values."""
        return [row.to_dict() for row in self.rows]

    def to_json(self) -> str:
        """Write the rows as JSON, a line each."""
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in self.to_dicts()) + "\n]\n"

    def to_csv(self) -> str:
        """Write the rows as CSV; what is None is empty, levels are JSON."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in self.to_dicts():
            levels = row["levels"] and json.dumps(row["levels"], ensure_ascii=False)
            writer.writerow(row | {"levels": levels})
        return text.getvalue()

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write the rows to a file, as CSV or JSON by its ending; whole or not at all."""
        path = Path(path)
        check_output(path, force=force)
        text = self.to_csv() if path.suffix == ".csv" else self.to_json()
        with written_whole(path, 0o666) as file:
            file.write(text.encode())

    def plot(self) -> Any:
        """Draw what each search lost and how long it took, for each metric, as a figure of matplotlib."""
        from shoal.comparing.plots import loss_and_time
        from shoal.plots import together

        plots = loss_and_time(self.rows)
        if not plots:
            message = "No search of this comparison has a result to draw. Its rows tell why: note."
            raise UsageError(message)
        return together(plots)

    def _repr_html_(self) -> str:
        from shoal.notebook import comparison_block

        return comparison_block(self)


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a comparison."""

    def __init__(self, finished: Comparison, total: int) -> None:
        """Carry the rows that are finished, of so many."""
        super().__init__(f"{len(finished.rows):,} of {total:,} rows are finished.")
        self.finished = finished
        self.total = total


def check_output(path: Path, *, force: bool, table: Any = None) -> None:
    """Refuse a file that a comparison cannot or must not be written to."""
    if path.suffix not in ENDINGS:
        message = f"A comparison is written as {' or '.join(ENDINGS)}, got {path.name!r}."
        raise OutputError(message)
    check_file(path, force=force, table=table)
