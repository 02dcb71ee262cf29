"""Report: a release told to the custodian on one page: what was done, why it is safe, what was lost.

The page holds no value of the input but those that the release shows.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from shoal.algorithms import ALGORITHMS
from shoal.core import builders
from shoal.core.contracts import Guarantee, Target
from shoal.core.markup import Html, joined, own, percent, table, tag
from shoal.core.schema import Role
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.policy import Named, Policy, named
from shoal.problem import limit_for
from shoal.publish import REPORT, private_folder
from shoal.recipe import packages
from shoal.release import Release
from shoal.report_page import page
from shoal.report_risk import risks, sizes
from shoal.report_utility import analyst_loses
from shoal.utility import Utility
from shoal.verify import ModelCheck

_LONGEST = 200  # characters of labels that are shown as examples
# Rules whose parameters are widths and units; those of the others list values.
_TOLD = ("dates", "intervals", "prefix", "times")
_PROVEN = {
    Guarantee.LEAST_LOSS: "No other of these choices that satisfies the policy loses less. This was proven.",
    Guarantee.LEAST_HEIGHT: "None of these choices that satisfies the policy is less high. This was proven.",
    Guarantee.MINIMAL: "No column can be taken a level down without breaking the policy. This was proven.",
    Guarantee.ACCEPTABLE: "It satisfies the policy. That nothing else loses less was not proven.",
    Guarantee.NONE: "The search promises nothing of the models; what they say is counted below.",
}


def report(release: Release, utility: Utility | None = None) -> str:
    """Tell of a release as one HTML page that loads nothing from elsewhere.

    What the analyst loses is told where the run measured it, or where a `shoal.utility` is given.
    """
    measured = utility or release.utility
    name = _name(release.output) if release.output else "a table in memory"
    return page(
        f"Release report: {name}",
        _head(release, name),
        _section("What was done", _done(release)),
        _section("Why it is safe", _safe(release)),
        _section("What was lost", _lost(release)),
        _section("What the analyst loses", analyst_loses(measured)) if measured else "",
        _section("How to reproduce it", _again(release)),
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
        tiles.append(_tile("Smallest group", f"{groups.smallest_class:,}", f"of {groups.classes:,} groups"))
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    told = f"De-identified with shoal {packages()['shoal']}. Written {when}."
    return tag(
        "header",
        tag("h1", "Release report: ", own(name)),
        tag("p", told, class_="quiet"),
        _verdict(release),
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


# What was done


def _done(release: Release) -> Iterator[Html]:
    yield tag("p", _records(release), " ", _kind(release))
    rows = [
        (
            own(fate.column),
            _whole(fate.role),
            _hierarchy(release.policy, fate.column),
            fate.level,
            own(_cut(fate.released_as)),
        )
        for fate in release.fates()
    ]
    headings = ("Column", "Role", "Hierarchy", "Level", "Released as")
    yield table("What became of each column; level 0 is the value as it is", headings, rows)
    yield tag("h3", "The policy in words")
    pairs = [joined((tag("dt", name), tag("dd", words))) for name, words in _policy(release)]
    yield tag("dl", *pairs, class_="words")


def _records(release: Release) -> str:
    kept = release.records - release.suppressed
    share = percent(release.suppressed / release.records)
    words = f"{release.records:,} records came in and {kept:,} are released. "
    if release.masked:
        words += f"{release.masked:,} ({share}) were masked: they stay, and show no quasi-identifier and no "
        words += "sensitive value."
    else:
        words += (
            f"{release.suppressed:,} ({share}) were suppressed."
            if release.suppressed
            else "None was suppressed."
        )
    if release.cells:
        words += f" {release.cells:,} cells of released records were blanked."
    return words


def _kind(release: Release) -> str:
    if release.apart:
        return (
            f"Quasi-identifiers stay as they are. The sensitive column {release.apart} is released in a "
            "second table that tells which values occur in each group of records, not whose they are."
        )
    if release.levels:
        return "Every column was taken to one level of its hierarchy, alike for all records."
    if release.cut:
        return "Every column was cut into groups, alike for all records."
    if release.start and not release.policy.finishing["refine"]:
        alike = "; in some records cells were blanked" if release.cells else ", alike for all records"
        return f"Every column was taken to one level of its hierarchy{alike}."
    return "Classes have labels of their own: a value may be told finely in one and broadly in another."


def _hierarchy(policy: Policy, name: str) -> str:
    """Say by which rule a quasi-identifier climbs; the values that a rule may list are not told."""
    column = policy.columns[name]
    if column.role is not Role.QUASI_IDENTIFIER:
        return ""
    rule = builders.parse(name, column.hierarchy)
    steps = getattr(rule, rule.keyword, ()) if rule.keyword in _TOLD else ()
    words = " ".join([rule.keyword, ", ".join(map(str, steps))]).strip()
    limits = {"at least": column.min_level, "at most": column.max_level}
    told = [f"{which} level {level}" for which, level in limits.items() if level is not None]
    told += [f"weight {column.weight:g}"] if column.weight != 1 else []
    return "; ".join([words, *told])


def _policy(release: Release) -> Iterator[tuple[str, object]]:
    policy, evaluation = release.policy, release.evaluation
    for model in policy.models:
        yield "Privacy model", _plugin(model)
    limit = limit_for(policy, release.records)
    yield (
        "Suppression limit",
        f"{limit:,} of {release.records:,} records ({percent(limit / release.records)})",
    )
    if policy.suppressed == "mask":
        yield "Suppressed records", "kept masked, where they are enough to hide among each other"
    for names in policy.same_level:
        yield "At one level", joined(_between([own(name) for name in names], ", "))
    if policy.label:
        yield "Label to predict", own(policy.label)
    yield "Metric", joined((_plugin(policy.metric), ": ", _first_line(METRICS.load(named(policy.metric)[0]))))
    yield "Search", _search(release)
    if evaluation.lower_bound is not None:
        least = f"{evaluation.lower_bound:,.10g}"
        yield (
            "Proven",
            f"No set of cuts by order loses less than {least}; this one loses {release.loss:,.10g}.",
        )
    elif release.outliers:
        yield (
            "Proven",
            f"No tested combination of columns is shared by fewer than {release.outliers.k:,} records.",
        )
    elif release.lattice_size == 1 and release.levels:
        yield "Proven", "The levels were given, so there was nothing to choose among."
    else:
        yield "Proven", _PROVEN[evaluation.proven]


def _search(release: Release) -> object:
    name = release.algorithm
    words = f": {_first_line(ALGORITHMS.load(name))}" if name in ALGORITHMS else ""
    work = release.evaluation.work
    if release.start is None:
        return f"{name}{words}"
    looked = f" {release.lattice_size:,} choices of levels"
    counted = f", {work.nodes_evaluated:,} of them counted" if work.nodes_evaluated else ""
    return f"{name}{words}{looked}{counted}."


def _plugin(written: Named) -> Html:
    name, options = named(written)
    told = ", ".join(f"{option} = {_value(value)}" for option, value in options.items())
    return joined((tag("strong", name), f" ({told})" if told else ""))


def _value(value: object) -> str:
    return f"{value:,}" if type(value) is int else str(value)


def _first_line(plugin: type) -> str:
    return (plugin.__doc__ or "").strip().splitlines()[0]


# Why it is safe


def _safe(release: Release) -> Iterator[Html]:
    counted = "groups of sensitive values" if release.apart else "classes"
    yield tag(
        "p",
        "A class is all records that look alike in every quasi-identifier. The release was read back and its "
        f"{counted} were counted afresh, by nothing but what it shows. No identifier is in it.",
    )
    rows = [
        (_whole(check.model), _first_line(MODELS.load(check.model)), _options(check), _outcome(check))
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
    yield from risks(release, k)
    yield tag("h3", "Sizes of classes")
    yield from sizes(release, k)


def _options(check: ModelCheck) -> str:
    return ", ".join(f"{option} = {_value(value)}" for option, value in check.options.items()) or "none"


def _outcome(check: ModelCheck) -> Html:
    if check.passed is None:
        return tag("span", "holds, judged before writing", class_="good")
    if check.passed:
        return tag("span", "holds, counted afresh", class_="good")
    many = f"violated: {check.violating_records:,} records in {check.violating_classes:,} classes"
    whole = "violated by the release as a whole"
    return tag("span", many if check.violating_records else whole, class_="bad")


# What was lost


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


# How to reproduce it


def _again(release: Release) -> Iterator[Html]:
    if release.output is None:
        yield tag("p", "With the same table and policy, in Python:")
        node = f", node={release.start!r}" if release.start else ""
        yield _code(f"release = shoal.anonymize(table, policy{node})\nshoal.verify(release.table, policy)")
    else:
        yield from _commands(release.output)
    if release.apart:
        yield tag("p", "Which record goes to which group is left to chance, each time anew.")
    rows = [*packages().items(), ("Python", platform.python_version())]
    yield table("Versions", ("Package", "Version"), rows, numbers=(1,))


def _name(release: Path | str) -> str:
    return release.name if isinstance(release, Path) else release


def _commands(release: Path | str) -> Iterator[Html]:
    output = _name(release)
    home = private_folder(release if isinstance(release, Path) else Target(release, "table").path)
    words = "In the folder of the release, where DATA stands for the table and POLICY.yaml for the policy:"
    if not isinstance(release, Path):
        words = (
            "In the folder that holds the private one, with the --engine of the table, where DATA stands for "
            "the table and POLICY.yaml for the policy:"
        )
    yield tag("p", words)
    quoted, recipe = shlex.quote(output), shlex.quote(f"{home.name}/recipe.json")
    again, anew = shlex.quote(f"again-{output}"), shlex.quote(f"new-{output}")
    yield _code(
        "# recode the same table, or a new one, in the same way\n"
        f"shoal apply {recipe} DATA --output {again}\n\n"
        "# count the release afresh\n"
        f"shoal verify {quoted} --policy POLICY.yaml --recipe {recipe}\n\n"
        "# search anew\n"
        f"shoal anonymize DATA --policy POLICY.yaml --output {anew} --report"
    )
    told = (
        "recipe.json holds the policy, the recoding and a keyed fingerprint of the input, whose key is not "
        "shown here; audit.json holds the SHA-256 of the release and what was counted. Both are beside this "
        f"file, {REPORT}, and as private. Rows come in another order each time."
    )
    yield tag("p", told)


def _code(written: str) -> Html:
    return tag("pre", tag("code", written))


def _whole(words: str) -> Html:
    """Keep words on one line."""
    return tag("span", words, class_="whole")


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}\u2026"


def _between(parts: Sequence[object], sign: str) -> list[object]:
    found: list[object] = []
    for part in parts:
        found += [sign, part] if found else [part]
    return found
