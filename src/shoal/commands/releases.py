"""How a release is shown: what became of each column, what was lost and proven, what a fresh count says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.display import say, show_pairs, show_table
from shoal.errors import so_many


def show_release(release: Any) -> None:
    """Show what became of each column, what was kept, lost and proven."""
    fates = [(fate.column, fate.role, fate.level, fate.released_as) for fate in release.fates()]
    show_table("What became of each column", ("column", "role", "level", "released as"), fates, left=4)
    if release.outliers:
        show_outliers(release.outliers)
    result = release.to_dict()
    suppressed = release.suppressed
    lost = f"{release.masked:,} masked" if release.masked else f"{suppressed:,} suppressed"
    blanks = f", {so_many(release.cells, 'cell')} blanked" if release.cells else ""
    share = f"{suppressed / release.records:.1%}, of at most {release.limit:,}"
    rows = {
        "records": f"{release.records - suppressed:,} kept, {lost} ({share}){blanks}",
        **({"vanished": _vanished(release.vanished)} if release.vanished else {}),
        "classes": f"{result['classes']:,}, the smallest of {so_many(result['smallest_class'], 'record')}",
        "loss": f"{release.loss:,.10g} ({result['metric']})",
        "proven": _proven(release, result),
        "verified": _verified(release.verification, release.algorithm),
        "seconds": ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in release.seconds.items()),
        "release": str(release.output),
        "recipe": f"{release.recipe} (private: keep it)",
        "codebook": str(release.codebook),
    }
    if result["lower_bound"] is not None:
        rows["proven"] = _within(release.loss, result["lower_bound"], release.algorithm)
    if release.outliers:
        rows["proven"] = f"no tested combination is shared by fewer than {release.outliers.k} records"
    if release.report is not None:
        rows["report"] = f"{release.report} (private: keep it)"
    if release.sensitive_table is not None:
        rows["second table"] = str(release.sensitive_table)
    show_pairs(rows)
    for note in release.notes:
        say(f"Note: {note}")


def note_semicolons(data: Path, output: Path, delimiter: str | None, *, bom: bool) -> None:
    """Say how a release becomes like an input that is parted by semicolons, where it is parted by commas."""
    from shoal.spreadsheet import has_semicolons

    if delimiter is None and output.suffix.lower() == ".csv" and has_semicolons(data):
        options = "--delimiter semicolon" + " --bom" * (not bom)
        say(
            "Note: The input is parted by semicolons, the release by commas. To open it in Excel as you do "
            f"the input, release with {options}."
        )


def _proven(release: Any, result: Mapping[str, Any]) -> str:
    """Say what the search proved, and among what."""
    if release.start is None:
        return f"{result['proven']} ({release.algorithm})"
    if release.lattice_size == 1 and release.levels:
        return f"it satisfies the policy; there was one node to choose from ({release.algorithm})"
    nodes = so_many(release.lattice_size, "node")
    looked = f"{nodes} ({release.algorithm}, {result['nodes_evaluated']:,} evaluated)"
    if release.levels is None:
        return f"{result['proven']}, finer than the node it began with, chosen among {looked}"
    return f"{result['proven']} among {looked}"


def _vanished(vanished: Mapping[str, int]) -> str:
    """Say of which columns values are gone, and how many.

    >>> _vanished({"age": 2, "zip code": 1})
    '2 values of age, 1 of zip code: all records that had them were suppressed'
    >>> _vanished({"age": 1})
    '1 value of age: all records that had it were suppressed'
    """
    (first, most), *others = vanished.items()
    values = "value" if most == 1 else "values"
    listed = [f"{most:,} {values} of {first}", *(f"{number:,} of {name}" for name, number in others)]
    them = "it" if sum(vanished.values()) == 1 else "them"
    return f"{', '.join(listed)}: all records that had {them} were suppressed"


def _within(loss: float, least: float, algorithm: str) -> str:
    """Say how far a loss can be from the least of its kind."""
    if loss <= least:
        return f"least loss among cuts by order ({algorithm})"
    far = f"within {loss / least - 1:.1%} of the least" if least > 0 else "acceptable; the least is not known"
    return f"{far} among cuts by order ({algorithm}, not proven to be the least)"


def _verified(found: Any, algorithm: str) -> str:
    """Say what was counted afresh, and what the release alone does not show."""
    if not found.verified:
        broken = " and ".join(dict.fromkeys(check.model for check in found.models if check.passed is False))
        return f"NO: {'; '.join(found.reasons)}; {algorithm} does not promise {broken}"
    before = list(dict.fromkeys(check.model for check in found.models if check.passed is None))
    judged = f"; {' and '.join(before)} {'was' if len(before) == 1 else 'were'} judged before writing"
    return "yes, counted afresh from what was written" + (judged if before else "")


def show_outliers(outliers: Any, most: int = 15) -> None:
    """Show which columns are rare together, by numbers; never a value."""
    rows = [
        (", ".join(one.columns), f"{one.combinations:,}", f"{one.records:,}") for one in outliers.found[:most]
    ]
    if rows:
        title = f"Fewer than {outliers.k} records share these, before cells are blanked"
        show_table(title, ("columns", "rare combinations", "records"), rows)
    more = len(outliers.found) - most
    rest = f" {more:,} more of them are not shown." if more > 0 else ""
    sets = f"{len(outliers.found):,} of {outliers.tested:,} tested sets of columns have rare combinations"
    say(f"{sets}, in {so_many(outliers.records, 'record')}.{rest}")


def show_verification(found: Any) -> None:
    """Show what a fresh count says of a release."""
    rows = {
        "verified": "yes" if found.verified else "NO",
        "records": f"{found.records:,}" + (f", of which {found.masked:,} masked" if found.masked else ""),
        "classes": f"{found.classes:,}, the smallest of {so_many(found.smallest_class, 'record')}",
    }
    for check in found.models:
        violated = so_many(check.violating_records, "record violates it", "records violate it")
        verdict = "passed" if check.passed else violated
        if check.passed is None:
            verdict = "not checkable on the release alone"
        elif not check.passed and not check.violating_records:
            verdict = "violated by the release as a whole"
        told = ", ".join(f"{option} {value}" for option, value in check.options.items())
        rows[f"{check.model} ({told})" if told else check.model] = verdict
    for number, reason in enumerate((*found.reasons, *found.unchecked), 1):
        rows[f"reason {number}"] = reason
    show_pairs(rows)
