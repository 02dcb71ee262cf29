"""Report: a release told to the custodian on one page: what was done, why it is safe, what was lost.

The page holds no value of the input but those that the release shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from shoal.analysing.compared import Utility
from shoal.core.markup import Html, own, table, tag
from shoal.errors import so_many
from shoal.models import MODELS
from shoal.policy import named
from shoal.recipe import packages
from shoal.release import Release
from shoal.reporting.again import again, name_of
from shoal.reporting.done import done
from shoal.reporting.page import page
from shoal.reporting.risk import risks, sizes
from shoal.reporting.utility import analyst_loses
from shoal.reporting.words import options_in_words, percent, whole
from shoal.risk import risk_of
from shoal.verify import ModelCheck


def report(release: Release, utility: Utility | None = None) -> str:
    """Tell of a release as one HTML page that loads nothing from elsewhere.

    What the analyst loses is told where the run measured it, or where a `shoal.utility` is given.
    """
    measured = utility or release.utility
    name = name_of(release.output) if release.output else "a table in memory"
    return page(
        f"Release report: {name}",
        _head(release, name),
        _section("What was done", done(release)),
        _section("Why it is safe", _safe(release)),
        _section("What was lost", _lost(release)),
        _section("What the analyst loses", analyst_loses(measured)) if measured else "",
        _section("How to reproduce it", again(release)),
        tag("footer", tag("p", "This report is the custodian's. Do not publish it.", class_="quiet")),
    )


def _section(heading: str, parts: Iterator[Html]) -> Html:
    return tag("section", tag("h2", heading), *parts)


def _head(release: Release, name: str) -> Html:
    before, after = release.exposure, release.exposure_after
    kept = release.records - release.suppressed
    tiles = [
        _tile("Records released", f"{kept + release.masked:,}", f"of {release.records:,}"),
        _tile("Smallest class", f"{after.smallest:,}", f"before: {before.smallest:,}"),
        _tile("Unique records", f"{after.unique:,}", f"before: {before.unique:,}"),
        _tile("Highest risk", percent(after.highest_risk), f"before: {percent(before.highest_risk)}"),
    ]
    if release.apart:
        groups = release.verification
        tiles.append(
            _tile("Smallest group", f"{groups.smallest_class:,}", f"of {so_many(groups.classes, 'group')}")
        )
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    told = f"De-identified with shoal {packages()['shoal']}. Written {when}."
    return tag(
        "header",
        tag("h1", "Release report: ", own(name)),
        tag("p", told, class_="quiet"),
        _verdict(release),
        *[tag("p", f"Note: {note}", class_="note") for note in release.notes],
        tag("dl", *tiles, class_="tiles"),
    )


def _tile(heading: str, large: str, small: str) -> Html:
    numbers = tag("dd", large, class_="large"), tag("dd", small, class_="quiet")
    return tag("div", tag("dt", heading), *numbers)


def _verdict(release: Release) -> Html:
    found = release.verification
    if not found.verified:
        words = f"Not verified: {'; '.join(found.reasons)}. {release.algorithm} does not promise this."
        return tag("p", words, class_="verdict bad")
    where = "what was written" if release.output else "the table that came out"
    before = list(dict.fromkeys(check.model for check in found.models if check.passed is None))
    judged = f" What the release does not show ({', '.join(before)}) was judged before." if before else ""
    return tag("p", f"Verified: counted afresh from {where}.{judged}", class_="verdict good")


def _safe(release: Release) -> Iterator[Html]:
    counted = "groups of sensitive values" if release.apart else "classes"
    yield tag(
        "p",
        "A class is all records that look alike in every quasi-identifier. The release was read back and its "
        f"{counted} were counted afresh, by nothing but what it shows. No identifier is in it.",
    )
    rows = [
        (
            whole(check.model),
            MODELS.about(check.model),
            options_in_words(check.options) or "none",
            _outcome(check),
        )
        for check in release.verification.models
    ]
    yield table("Privacy models", ("Model", "What it does", "Parameters", "Result"), rows)
    for reason in release.verification.unchecked:
        yield tag(
            "p",
            f"{reason[0].upper()}{reason[1:]}; it was judged before the release was written.",
            class_="quiet",
        )
    k = release.least_class
    yield tag("h3", "Risk before and after")
    yield from risks(release, risk_of(release), k)
    yield tag("h3", "Sizes of classes")
    yield from sizes(release, k)


def _outcome(check: ModelCheck) -> Html:
    if check.passed is None:
        return tag("span", "holds, judged before writing", class_="good")
    if check.passed:
        return tag("span", "holds, counted afresh", class_="good")
    many = f"violated: {so_many(check.violating_records, 'record')} in "
    many += so_many(check.violating_classes, "class")
    whole = "violated by the release as a whole"
    return tag("span", many if check.violating_records else whole, class_="bad")


def _lost(release: Release) -> Iterator[Html]:
    metric, _ = named(release.policy.metric)
    shares = any(loss.share is not None for loss in release.losses.values())
    yield tag(
        "p", "The loss is ", tag("strong", f"{release.loss:,.10g}"), f" by the policy's metric, {metric}."
    )
    levels = {fate.column: fate.level for fate in release.fates()}
    rows = []
    for name, loss in release.losses.items():
        labels = f"{len(release.labels[name]):,}"
        row: list[object] = [own(name), levels[name] or "as is", f"{loss.values:,}", labels]
        row.append(_amount(loss.coverage, name))
        rows.append([*row, percent(loss.share)] if shares and loss.share is not None else row)
    headings = ["Column", "Level", "Values before", "Labels after", "Coverage loss"]
    headings += [f"Share of {metric}"] if shares else []
    yield table("What was lost of each quasi-identifier", headings, rows, numbers=(2, 3, 5))
    words = (
        "Coverage loss is 0% where every value is told and 100% where nothing is: the share of a column's "
        "values that a label covers, on average over all records. A suppressed record counts as 100%."
    )
    yield tag("p", words, class_="quiet")


def _amount(share: float, name: str) -> Html:
    """Show a share as a number and a bar."""
    words = percent(share)
    bar = tag("rect", class_="after", x=0, y=0, width=f"{100 * share:.1f}", height=8, rx=1)
    track = tag("rect", class_="track", x=0, y=0, width=100, height=8, rx=1)
    said = tag("title", f"Coverage loss of {name}: {words}")
    drawn = tag("svg", said, track, bar, viewBox="0 0 100 8", preserveAspectRatio="none", role="img")
    return tag("div", tag("span", words), drawn, class_="amount")
