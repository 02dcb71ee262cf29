"""Certificate: a page about a release that can be printed: what was guaranteed, proven and lost.

The page contains names of columns, but no value of the input or of the release. It may therefore be passed on
together with the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from shoal.algorithms import ALGORITHMS
from shoal.document.html import Html, isolated, page, table, tag
from shoal.wording import percent, plural
from shoal.workflow.level_names import level_names
from shoal.workflow.release.recipe import packages
from shoal.workflow.release.release import Release
from shoal.workflow.statements import (
    guarantee_statement,
    model_statements,
    options_in_words,
    proven_statement,
    release_verdict,
)


def certificate(release: Release, digest: str | None = None) -> str:
    """Return an HTML page about a release; `digest` is the SHA-256 of the release's file."""
    name = release.output.name if isinstance(release.output, Path) else release.output or "a table in memory"
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    verdict = release_verdict(release)
    about = [tag("dt", "File"), tag("dd", isolated(name))]
    if digest:
        about += [tag("dt", "SHA-256"), tag("dd", tag("code", digest))]
    about += [tag("dt", "Made with"), tag("dd", f"shoal {packages()['shoal']}, {when}")]
    return page(
        f"Certificate: {name}",
        tag(
            "header",
            tag("h1", "Certificate of de-identification"),
            tag("dl", *about, class_="words"),
            tag("p", verdict.text, class_=f"verdict {verdict.tone}"),
        ),
        tag("section", tag("h2", "What was guaranteed"), *_guaranteed(release)),
        tag("section", tag("h2", "What was proven"), *_proven(release)),
        tag("section", tag("h2", "What was lost"), *_lost(release)),
        tag("section", tag("h2", "Signatures"), _signatures()),
    )


def _guaranteed(release: Release) -> Iterator[Html]:
    yield tag("ul", *[tag("li", sentence) for sentence in model_statements(release.policy)])
    if release.algorithm in ALGORITHMS:
        yield tag("p", guarantee_statement(release.algorithm))
    yield tag(
        "p",
        "A model limits what can be learnt from the columns that are named quasi-identifiers. It promises "
        "nothing about columns with other roles, or about what others know of these persons.",
        class_="quiet",
    )


def _proven(release: Release) -> Iterator[Html]:
    checked = release.verification
    yield tag("p", "The written release was read back, and its records were counted.")
    rows = []
    for check in checked.models:
        # Show only numbers, because other options may contain values of the data.
        options = {name: value for name, value in check.options.items() if type(value) in (int, float)}
        rows.append((check.model, options_in_words(options), check.outcome))
    yield table("Models", ("Model", "Parameters", "Outcome"), rows)
    smallest = "Fewest records that match a record" if release.wildcards else "Smallest class"
    risk = percent(1 / checked.smallest_class) if checked.smallest_class else "none"
    counted = [
        ("Records released", f"{checked.records:,} of {release.records:,}"),
        (smallest, plural(checked.smallest_class, "record")),
        ("Highest chance to pick a known person's record", risk),
    ]
    yield table("Counted in the release", ("Measure", "Value"), counted, numbers=(1,))
    yield tag("p", proven_statement(release))
    yield tag("p", release.unchanged.sentence)


def _lost(release: Release) -> Iterator[Html]:
    share = percent(release.suppressed / release.records)
    yield tag(
        "p",
        f"{percent(release.retained_overall)} of the information in the quasi-identifiers is retained. "
        f"{plural(release.suppressed, 'record')} of {release.records:,} ({share}) were suppressed.",
    )
    names, levels = level_names(release.policy, release.hierarchies), release.levels or {}
    rows = []
    for fate in release.fates():
        # Labels of quasi-identifiers may be values of the data; for other columns, this is a phrase.
        released_as = "by class" if fate.role == "quasi-identifier" else fate.released_as
        if fate.column in levels:
            released_as = names.name(fate.column, levels[fate.column])
        rows.append((isolated(fate.column), fate.role, released_as, fate.retained))
    yield table("Columns", ("Column", "Role", "Released", "Retained"), rows, numbers=(3,))


def _signatures() -> Html:
    line = "_" * 32
    rows = [(role, line, line) for role in ("Data custodian", "Data protection", "Ethics board")]
    return table("To be filled in by hand", ("", "Name and signature", "Date"), rows)
