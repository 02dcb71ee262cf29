"""Draw the figures of Adult for docs/plots/compare and docs/plots/diagnose.

Partitions over age and hours-per-week (k = 25), the search space of incognito (k = 5, at most 5% suppressed)
and the sets that questions 3 and 7 of a diagnosis count (at most 5% suppressed).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from setting import adult

import shoal
from shoal.document.document import Figure
from shoal.document.figures import save
from shoal.workflow.compare.partitions import draw_partitions, partition_plot

PLOTS = Path(__file__).resolve().parents[1] / "docs" / "plots"


def main() -> None:
    """Draw all figures."""
    table = adult() / "adult.csv"
    wide = _policy(["age", "hours-per-week"], 25)
    picture = partition_plot(table, wide, ["age", "hours-per-week"])
    save([picture], PLOTS / "compare", ("png",), draw_partitions)
    for partition in picture.partitions:
        print(partition.heading)
    compared = shoal.compare(table, _policy(_CODED, 5), algorithms=["incognito"])
    print(compared.rows[0].search_space)
    save(_named(compared.document().figures, "search-space"), PLOTS / "compare", ("png",))
    diagnosis = shoal.diagnose(table)
    counts = _named(diagnosis_figures(diagnosis), "counts")
    save(counts, PLOTS / "diagnose", ("png",))
    print(counts[0].strips[0].panels[0])


_CODED = [
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
    "salary-class",
]  # fmt: skip
_EVERY = [*_CODED, "hours-per-week"]


def _policy(quasi: list[str], k: int) -> dict[str, Any]:
    files = adult() / "hierarchies-arx"
    columns: dict[str, Any] = {}
    for name in _EVERY:
        rule: Any = {"csv": str(files / f"{name}.csv")} if name in _CODED and name != "age" else None
        rule = {"intervals": [5, 10, 20]} if rule is None else rule
        columns[name] = (
            {"role": "quasi-identifier", "hierarchy": rule} if name in quasi else {"role": "other"}
        )
    return {"columns": columns, "models": [{"k-anonymity": {"k": k}}], "suppression_limit": "5%"}


def diagnosis_figures(diagnosis: shoal.Diagnosis) -> list[Figure]:
    """Return the figures of a diagnosis with a limit of 5%."""
    from shoal.workflow.diagnosis.diagnose import diagnosis_plots

    return diagnosis_plots(diagnosis, "5%")[0]


def _named(figures: Any, name: str) -> list[Figure]:
    """Return the first figure whose name begins with `name`, renamed to `name`."""
    return [replace(figure, name=name) for figure in figures if figure.name.startswith(name)][:1]


if __name__ == "__main__":
    main()
