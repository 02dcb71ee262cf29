"""What `shoal verify` is told of an older release of the same table, and what it shows of the two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.display import show_pairs
from shoal.errors import UsageError

Against = Annotated[
    Path | None, typer.Option(help="An older release of the same table: does k remain for who has both?")
]
AgainstPolicy = Annotated[
    Path | None, typer.Option(help="The policy of the older release; the same without it.")
]
AgainstRecipe = Annotated[
    Path | None, typer.Option(help="The recipe of the older release, where it is not beside it.")
]
InputTable = Annotated[
    Path | None, typer.Option("--input", help="The table that both were made from: then it is exact.")
]


def side_by_side(release: Path, policy: Path, against: Path | None, **options: Any) -> Any:
    """Put a release beside an older one, where one is named."""
    if against is None:
        if options["old_policy"] or options["old_recipe"] or options["table"]:
            message = (
                "--against-policy, --against-recipe and --input are about an older release. Name it with "
                "--against."
            )
            raise UsageError(message)
        return None
    from shoal.successive import intersect

    return intersect(release, against, policy, **options)


def show_intersection(found: Any) -> None:
    """Show what remains of k beside the older release."""
    if found is None:
        return
    remaining = "no record can be in both" if found.remaining is None else f"{found.remaining:,}"
    told = "exact" if found.exact else "estimated from the releases alone: give --input for an exact count"
    rows = {
        "k beside the other release": remaining if found.remaining is None else f"{remaining} ({told})",
        "pairs of classes": f"{found.pairs:,}; {found.records:,} records in those of fewer than {found.k:,}",
    }
    if found.warning:
        rows["warning"] = found.warning
    if found.note:
        rows["note"] = found.note
    show_pairs(rows)
