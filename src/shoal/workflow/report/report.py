"""Report: an HTML page for the custodian that says what was done, proven, retained and lost.

The page contains no value of the input except those that the release shows.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Role
from shoal.core.hierarchy import builders
from shoal.core.progress import Progress
from shoal.core.targets import Target
from shoal.document.document import of_records
from shoal.document.html import Html, cut, document_table, isolated, joined, page, table, tag
from shoal.errors import DataError
from shoal.files.outputs import REPORT, private_folder, write_private
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.policy.policy import Named, Policy, named
from shoal.wording import number_text, percent, plural
from shoal.workflow.catalogue import algorithm_sentence
from shoal.workflow.problem import limit_for
from shoal.workflow.release.recipe import packages
from shoal.workflow.release.release import Release
from shoal.workflow.report.charts import analyst_loses, bars, lost, other_choices, retained, size_bars
from shoal.workflow.risk.risk import Risk, risk_of, special_table
from shoal.workflow.risk.rows import risk_rows
from shoal.workflow.risk.suda import SPECIAL_SIZE, Special, special_uniques
from shoal.workflow.risk.uniqueness import persons_of
from shoal.workflow.statements import (
    labels_statement,
    listed,
    options_in_words,
    proven_statement,
    release_verdict,
    unbroken,
)
from shoal.workflow.utility.utility import Utility, compared
from shoal.workflow.verify import WILDCARDS, ModelCheck

if TYPE_CHECKING:
    from shoal.workflow.advice import Advice
    from shoal.workflow.release.search_result import SearchResult

Phase = Callable[[str], AbstractContextManager[None]]
_LONGEST = 200  # maximum number of characters of the labels that are shown as examples


class ReportData(TypedDict, total=False):
    """What the analyst loses, and what makes records of the input unique; None if not computed."""

    utility: Utility | None
    special: Special | None


def check_population(policy: Policy, records: int) -> None:
    """Raise before the search if the policy's population is smaller than the table."""
    _ = persons_of(policy, records)


def report_data(
    policy: Policy, result: SearchResult, released: Any, phase: Phase, progress: Progress
) -> ReportData:
    """Compute the parts of a report that a release lacks; if the comparison raises DataError, omit it."""
    utility, special = None, None
    with phase("compare"), suppress(DataError):
        release = result.opened.open(released)
        utility = compared(result.opened, release, policy, progress=progress, lenient=True)
    counts = result.problem.counts
    if not counts.remote:
        with phase("uniques"):
            columns = policy.roles.quasi_identifiers
            special = special_uniques(counts, columns, SPECIAL_SIZE, progress=progress)
    return ReportData(utility=utility, special=special)


def report(release: Release, utility: Utility | None = None, advice: Sequence[Advice] = ()) -> str:
    """Return a self-contained HTML page about a release.

    It includes what the analyst loses, if the run measured this or `utility` is given. It includes what other
    choices retain, if `advice` is given.
    """
    measured = utility or release.utility
    name = _name_of(release.output) if release.output else "a table in memory"
    return page(
        f"Release report: {name}",
        _head(release, name),
        _section("What was done", _result_section(release)),
        _section("Privacy models and risk", _privacy(release)),
        _section("What was retained", retained(release)),
        _section("What was lost", lost(release)),
        _section("What other choices retain", other_choices(release, advice)) if advice else "",
        _section("What the analyst loses", analyst_loses(measured)) if measured else "",
        _section("How to reproduce it", _reproduction_section(release)),
        tag("footer", tag("p", "This report is the custodian's. Do not publish it.", class_="quiet")),
    )


def add_advice(release: Release, advice: Sequence[Advice]) -> None:
    """Replace the report of a release with one that includes advice."""
    if release.report is None or not advice:
        return
    draft = release.report.with_name(f"{release.report.name}.part")
    draft.unlink(missing_ok=True)
    write_private(draft, report(release, advice=advice))
    draft.replace(release.report)


_MOST_CANDIDATES = 20  # maximum number of candidates in a report


def _section(heading: str, parts: Iterator[Html]) -> Html:
    return tag("section", tag("h2", heading), *parts)


def _head(release: Release, name: str) -> Html:
    before, after = release.exposure, release.exposure_after
    released_records = release.records - release.suppressed
    smallest = "Fewest that match" if release.wildcards else "Smallest class"
    tiles = [
        _tile("Records released", f"{released_records + release.masked:,}", f"of {release.records:,}"),
        _tile(smallest, f"{after.smallest:,}", f"before: {before.smallest:,}"),
        _tile("Unique records", f"{after.unique:,}", f"before: {before.unique:,}"),
        _tile("Highest risk", percent(after.highest_risk), f"before: {percent(before.highest_risk)}"),
    ]
    if release.separate_column:
        groups = release.verification
        tiles.append(
            _tile("Smallest group", f"{groups.smallest_class:,}", f"of {plural(groups.classes, 'group')}")
        )
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    message = f"De-identified with shoal {packages()['shoal']}. Written {when}."
    return tag(
        "header",
        tag("h1", "Release report: ", isolated(name)),
        tag("p", message, class_="quiet"),
        *[tag("p", revealed.message, class_="verdict bad") for revealed in release.revealed],
        _verdict(release),
        *[tag("p", f"Note: {note}", class_="note") for note in release.notes],
        tag("dl", *tiles, class_="tiles"),
    )


def _tile(heading: str, large: str, small: str) -> Html:
    numbers = tag("dd", large, class_="large"), tag("dd", small, class_="quiet")
    return tag("div", tag("dt", heading), *numbers)


def _verdict(release: Release) -> Html:
    verdict = release_verdict(release)
    return tag("p", verdict.text, class_=f"verdict {verdict.tone}")


def _privacy(release: Release) -> Iterator[Html]:
    counted = "groups of sensitive values" if release.separate_column else "classes"
    yield tag(
        "p",
        "A class is all records that look alike in every quasi-identifier. The release was read back, and "
        f"its {counted} were counted from nothing but what it shows. No identifier is in it.",
    )
    if release.wildcards:
        yield tag("p", f"{WILDCARDS} Sizes below are the records that match a record.", class_="bad")
    rows = [
        (
            unbroken(check.model),
            MODELS.summary(check.model),
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
    yield tag("p", release.unchanged.sentence)
    k = release.least_class
    yield tag("h3", "Risk before and after")
    yield from _risks(release, risk_of(release), k)
    yield tag("h3", "Sizes of classes")
    yield size_bars(bars(release.exposure, release.exposure_after, k), k)


def _outcome(check: ModelCheck) -> Html:
    if check.passed is None:
        return tag("span", "holds, checked before writing", class_="good")
    if check.passed:
        return tag("span", "holds in the release, read back", class_="good")
    violated = f"violated: {plural(check.violating_records, 'record')} in "
    violated += plural(check.violating_classes, "class")
    text = violated if check.violating_records else "violated by the release as a whole"
    return tag("span", text, class_="bad")


def _reproduction_section(release: Release) -> Iterator[Html]:
    """Describe the commands that repeat the run and check the release, and the versions of packages."""
    if release.output is None:
        yield tag("p", "With the same table and policy, in Python:")
        node = f", node={release.start!r}" if release.start else ""
        yield _code(f"release = shoal.anonymize(table, policy{node})\nshoal.verify(release.table, policy)")
    else:
        yield from _commands(release.output)
    if release.separate_column:
        yield tag("p", "Which record goes to which group is left to chance, in every run.")
    rows = [*packages().items(), ("Python", platform.python_version())]
    yield table("Versions", ("Package", "Version"), rows, numbers=(1,))


def _name_of(release: Path | str) -> str:
    return release.name if isinstance(release, Path) else release


def _commands(release: Path | str) -> Iterator[Html]:
    output = _name_of(release)
    private = private_folder(release if isinstance(release, Path) else Target(release, "table").path)
    words = "In the folder of the release, where DATA stands for the table and POLICY.yaml for the policy:"
    if not isinstance(release, Path):
        words = (
            "In the folder that holds the private one, with the --engine of the table, where DATA stands for "
            "the table and POLICY.yaml for the policy:"
        )
    yield tag("p", words)
    quoted, recipe = shlex.quote(output), shlex.quote(f"{private.name}/recipe.json")
    copy_name, new_name = shlex.quote(f"again-{output}"), shlex.quote(f"new-{output}")
    yield _code(
        "# recode the same table, or a new one, in the same way\n"
        f"shoal apply {recipe} DATA --output {copy_name}\n\n"
        "# read the release back and check it\n"
        f"shoal verify {quoted} --policy POLICY.yaml --recipe {recipe}\n\n"
        "# search again\n"
        f"shoal anonymize DATA --policy POLICY.yaml --output {new_name} --report"
    )
    message = (
        "recipe.json holds the policy, the recoding and a keyed fingerprint of the input, whose key is not "
        "shown here; audit.json holds the SHA-256 of the release and what was counted. Both are next to this "
        f"file, {REPORT}, and equally private. The order of the rows differs each time."
    )
    yield tag("p", message)


def _code(written: str) -> Html:
    return tag("pre", tag("code", written))


# Rules whose parameters are only widths and units; those of other rules may be values of the data.
_LISTED_RULES = ("dates", "intervals", "prefix", "times")


def _result_section(release: Release) -> Iterator[Html]:
    yield tag("p", _records(release), " ", _kind(release))
    rows = [
        (
            isolated(fate.column),
            unbroken(fate.role),
            _hierarchy(release.policy, fate.column),
            fate.level,
            isolated(cut(fate.released_as, _LONGEST)),
        )
        for fate in release.fates()
    ]
    headings = ("Column", "Role", "Hierarchy", "Level", "Released as")
    yield table("What became of each column; level 0 is the value as it is", headings, rows)
    yield tag("h3", "The policy in words")
    pairs = [joined((tag("dt", name), tag("dd", words))) for name, words in _policy(release)]
    yield tag("dl", *pairs, class_="words")
    yield from _candidates(release)


def _candidates(release: Release) -> Iterator[Html]:
    nodes = release.first_candidates[:_MOST_CANDIDATES]
    if not nodes:
        return
    rows = [
        (
            *[str(level) for level in node.levels.values()],
            f"{node.height:,}",
            f"{node.suppressed:,}",
            f"{node.loss:,.10g}",
            "this release" if node.chosen else "",
        )
        for node in nodes
    ]
    headings = (*map(isolated, nodes[0].levels), "Height", "Suppressed", "Loss", "")
    of_all = len(release.evaluation.candidates)
    caption = f"Nodes among which the metric chose: {len(nodes):,} of {of_all:,}, the best first"
    yield table(caption, headings, rows, numbers=range(len(headings) - 1))


def _records(release: Release) -> str:
    released_records = release.records - release.suppressed
    share = percent(release.suppressed / release.records)
    words = f"{release.records:,} records came in and {released_records:,} are released. "
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
        blanked = ("cell of released records was blanked", "cells of released records were blanked")
        words += f" {plural(release.cells, *blanked)}."
    return words


def _kind(release: Release) -> str:
    if release.separate_column:
        return (
            f"Quasi-identifiers stay as they are. The sensitive column {release.separate_column} is released "
            "in a second table that shows which values occur in each group of records, not whose they are."
        )
    if release.levels:
        return "Every column was generalized to one level of its hierarchy, the same for all records."
    if release.cut:
        return "Every column was cut into groups, the same for all records."
    if release.start and not release.policy.levels_by_class:
        scope = "; in some records cells were blanked" if release.cells else ", the same for all records"
        return f"Every column was generalized to one level of its hierarchy{scope}."
    text = "Classes have labels of their own: a value may be fine in one and broad in another."
    return text + labels_statement(release.policy)


def _hierarchy(policy: Policy, name: str) -> str:
    """Describe the hierarchy of a quasi-identifier without values of the data."""
    column = policy.columns[name]
    if column.role is not Role.QUASI_IDENTIFIER:
        return ""
    rule = builders.parse(name, column.hierarchy)
    steps = getattr(rule, rule.keyword, ()) if rule.keyword in _LISTED_RULES else ()
    words = " ".join([rule.keyword, ", ".join(map(str, steps))]).strip()
    limits = {"at least": column.min_level, "at most": column.max_level}
    details = [f"{which} level {level}" for which, level in limits.items() if level is not None]
    details += [f"weight {column.weight:g}"] if column.weight != 1 else []
    return "; ".join([words, *details])


def _policy(release: Release) -> Iterator[tuple[str, object]]:
    policy = release.policy
    for model in policy.models:
        yield "Privacy model", _plugin(model)
    yield "Suppression limit", of_records(limit_for(policy, release.records), release.records)
    if policy.masks:
        yield "Suppressed records", "kept masked, where they are enough to hide among each other"
    for names in policy.same_level:
        yield "At one level", listed(names)
    if policy.label:
        yield "Label to predict", isolated(policy.label)
    yield "Metric", joined((_plugin(policy.metric), ": ", METRICS.summary(named(policy.metric)[0])))
    yield "Search", _search(release)
    yield "Proven", proven_statement(release)


def _search(release: Release) -> object:
    name = release.algorithm
    words = f": {algorithm_sentence(name)}" if name in ALGORITHMS else ""
    if not release.evaluation.complete:
        words += " It was stopped before its end."
    work = release.evaluation.work
    if release.start is None:
        return f"{name}{words}"
    searched = f" {number_text(release.lattice_size)} choices of levels"
    counted = f", {work.nodes_evaluated:,} of them counted" if work.nodes_evaluated else ""
    return f"{name}{words}{searched}{counted}."


def _plugin(written: Named) -> Html:
    name, options = named(written)
    details = options_in_words(options)
    return joined((tag("strong", name), f" ({details})" if details else ""))


def _risks(release: Release, risk: Risk, k: int) -> Iterator[Html]:
    rows = [(f"{name[0].upper()}{name[1:]}", *cells) for name, *cells in risk_rows(risk, k)]
    caption = "Before: the input's quasi-identifiers as they are. After: the release"
    yield table(caption, ("Measure", "Before", "After"), rows, numbers=(1, 2))
    yield from _notes(release, risk.population)
    if release.special is not None and release.special.sets:
        yield document_table(special_table(release.special))


def _notes(release: Release, persons: int | None) -> Iterator[Html]:
    words = (
        "Prosecutor risk is the chance of picking a known person's record out of its class: one in its size. "
        "A marketer matches everyone, right or wrong."
    )
    if persons is not None:
        words += (
            f" A journalist knows only that a person is among the {persons:,} of the population. Numbers "
            "about the population are estimated as if the table were a random sample of it."
        )
    yield tag("p", words, class_="quiet")
    for unit in release.policy.units:
        words = f"Risk is counted by records; a model counts the different values of {unit} instead."
        yield tag("p", words, class_="quiet")
    if release.masked:
        words = f"The {release.masked:,} masked records show no quasi-identifier and are in no class after."
        yield tag("p", words, class_="quiet")
    if release.separate_column:
        words = (
            "Quasi-identifiers are released as they are: a known person's record can be found as before. "
            f"What is hidden is which value of {release.separate_column} is whose: "
            f"{release.verification.classes:,} groups, the smallest of "
            f"{plural(release.verification.smallest_class, 'record')}, were checked in the written file."
        )
        yield tag("p", words, class_="bad")
    if any(column.role in (Role.SENSITIVE, Role.OTHER) for column in release.policy.columns.values()):
        words = "Sensitive and other columns make no class; the models above say what is asked of them."
        yield tag("p", words, class_="quiet")
