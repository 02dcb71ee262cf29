"""What a notebook shows of results: one block of HTML each, which holds no more of the data than they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shoal.assessing.rows import risk_rows
from shoal.core.block import block, cut, facts, first, quiet
from shoal.core.markup import Html, joined, own, table, tag
from shoal.errors import so_many
from shoal.reporting.words import between, listed, percent

if TYPE_CHECKING:
    from shoal.comparing.row import Row
    from shoal.comparison import Comparison
    from shoal.diagnosis import Diagnosis
    from shoal.measure import Measurement
    from shoal.negotiate import Negotiation
    from shoal.profile import Profile
    from shoal.profiling.offer import Offer
    from shoal.release import Release
    from shoal.risk import Risk
    from shoal.study import Study
    from shoal.verify import ModelCheck, Verification

_ROWS = 60  # of a comparison
_BELOW = 5  # the k that a diagnosis tells of before anything is asked


# A release


def release_block(release: Release) -> str:
    """Say what is proven of a release, what was lost, and what became of each column."""
    rows = [(own(fate.column), fate.role, fate.level, own(cut(fate.released_as))) for fate in release.fates()]
    became = table(
        "What became of each column; level 0 is the value as it is",
        ("Column", "Role", "Level", "Released as"),
        first(rows),
    )
    good = release.verification.verified
    return block(
        _verdict(release.verification),
        facts(_release(release)),
        *[quiet(f"Note: {note}") for note in release.notes],
        became,
        quiet("Class sizes before and after, and the loss of each column: ", _code("plot()"), "."),
        kind="good" if good else "bad",
    )


def _release(release: Release) -> Iterator[tuple[str, object]]:
    kept, told = release.records - release.suppressed, release.to_dict()
    gone = f"{release.masked:,} masked" if release.masked else f"{release.suppressed:,} suppressed"
    share = percent(release.suppressed / release.records) if release.records else "0%"
    cells = f", {so_many(release.cells, 'cell')} blanked" if release.cells else ""
    yield "Records", f"{kept:,} of {release.records:,} kept, {gone} ({share}){cells}"
    if release.apart:
        yield (
            "Smallest group",
            f"{so_many(told['smallest_class'], 'record')}, of {so_many(told['classes'], 'group')}",
        )
    else:
        before = f"; before: {release.exposure.smallest:,}" if release.exposure.sizes else ""
        yield (
            "Smallest class",
            f"{so_many(told['smallest_class'], 'record')}, of {so_many(told['classes'], 'class')}{before}",
        )
    yield "Loss", f"{release.loss:,.6g} ({told['metric']})"
    yield "Proven", _proven(release)
    judged = dict.fromkeys(check.model for check in release.verification.models if check.passed is None)
    if judged:
        yield "Judged before writing", ", ".join(judged)
    if release.output:
        yield "Written to", str(release.output)


def _proven(release: Release) -> str:
    if release.outliers:
        return f"no tested combination is shared by fewer than {release.outliers.k:,} records"
    least = release.evaluation.lower_bound
    if least is not None:
        return f"no set of cuts by order loses less than {least:,.6g} ({release.algorithm})"
    if release.lattice_size == 1 and release.levels:
        return "it satisfies the policy; the levels were given"
    among = f" among {_many(release.lattice_size, 'node')}" if release.start else ""
    return f"{release.evaluation.proven}{among} ({release.algorithm})"


def verification_block(found: Verification) -> str:
    """Say whether a release holds what the policy asks for."""
    pairs: list[tuple[str, object]] = [
        ("Records", f"{found.records:,}" + (f", of which {found.masked:,} masked" if found.masked else "")),
        ("Classes", f"{found.classes:,}, the smallest of {so_many(found.smallest_class, 'record')}"),
        *[(_asked(check.model, check.options), _outcome(check)) for check in found.models],
    ]
    unchecked = [quiet(reason) for reason in found.unchecked]
    return block(_verdict(found), facts(pairs), *unchecked, kind="good" if found.verified else "bad")


def _verdict(found: Verification) -> str:
    if found.verified:
        return "Verified: counted afresh, it holds what the policy asks for"
    return f"Not verified: {'; '.join((*found.reasons, *found.unchecked))}"


def _asked(model: str, options: Mapping[str, object]) -> str:
    told = ", ".join(f"{name} = {value}" for name, value in options.items())
    return f"{model} ({told})" if told else model


def _outcome(check: ModelCheck) -> str:
    if check.passed is None:
        return "not checkable on the release alone"
    if check.passed:
        return "passed"
    return (
        f"violated by {so_many(check.violating_records, 'record')}" if check.violating_records else "violated"
    )


# Before a release


def diagnosis_block(found: Diagnosis) -> str:
    """Tell what is known without counting anew, and what can be asked."""
    rows = [(own(name), f"{len(found.domains[name]):,}") for name in found.columns]
    ask = [f"overview(k={_BELOW})", f"unsafe_sets(k={_BELOW})", f"suppression(k={_BELOW})", "suggest()"]
    if found.sensitive:
        ask = [words.replace("k=", "") for words in ask]
    return block(
        f"Diagnosis of {_many(found.records, 'record')} by {_many(len(found.columns), 'column')}",
        facts(_diagnosis(found)),
        table("What somebody could know", ("Column", "Distinct values"), first(rows), numbers=(1,)),
        quiet("Ask on: ", *between([_code(words) for words in ask]), "; or ", _code("plot()"), "."),
    )


def _diagnosis(found: Diagnosis) -> Iterator[tuple[str, object]]:
    yield "Combinations", f"{found.combinations:,}"
    if found.sensitive:
        yield "Sensitive column", own(found.sensitive)
    if not found.source.counts.held:  # the engine would have to count
        return
    curve = found.curve()
    measure = found.measure
    alone, below = curve.short(2), curve.short(_BELOW)
    yield f"Smallest {measure}", f"{curve.reached(0):,}"
    words = "Records with one sensitive value in their class" if found.sensitive else "Unique records"
    yield words, f"{alone:,} ({percent(alone / found.records)})"
    yield f"Records below {measure} = {_BELOW}", f"{below:,} ({percent(below / found.records)})"


def measurement_block(found: Measurement) -> str:
    """Say what a table satisfies as it is."""
    pairs = [
        ("Columns", listed(found.columns)),
        ("Smallest class (k)", f"{found.k:,}, of {so_many(found.classes, 'class')}"),
        ("Unique records", f"{found.unique_records:,} ({percent(found.unique_records / found.records)})"),
    ]
    rows = [
        (
            own(one.column), f"{one.distinct_l:,}", f"{one.entropy_l:.3g}", f"{one.t_equal:.3g}",
            f"{one.alpha:.3g}", f"{one.basic_beta:.3g}",
        )
        for one in found.sensitive
    ]  # fmt: skip
    headings = ("Sensitive column", "distinct l", "entropy l", "t (equal)", "alpha", "basic beta")
    parts = [table("What all classes satisfy", headings, first(rows), numbers=range(1, 6))] if rows else []
    return block(f"Measurement of {_many(found.records, 'record')}", facts(pairs), *parts)


def risk_block(found: Risk) -> str:
    """Tell every measure of the risk, before and, where there is a release, after."""
    headings = ("Measure", "Before", "After")[: 3 if found.after else 2]
    rows = risk_rows(found)
    columns = listed(found.columns)
    return block(
        "Risk that people are found",
        facts([("Known of a person", columns)]),
        table("Chances are from 0 to 1", headings, rows, numbers=range(1, len(headings))),
        *map(quiet, found.notes),
    )


# Negotiation


def profile_block(found: Profile) -> str:
    """Tell what a profile holds, and how to ask it."""
    lattice = found.lattice
    rows = [(own(name), height) for name, height in zip(lattice.columns, lattice.heights, strict=True)]
    return block(
        f"Profile of {_many(found.records, 'record')} at {_many(len(found.numbers), 'node')}",
        facts(_profile(found)),
        table("Highest level of each column", ("Column", "Level"), first(rows), numbers=(1,)),
        quiet("Ask: ", _code(f'negotiate({found.wish.model}={found.wish.least}, suppression_limit="5%")'),
              ", with ", _code("max_level={column: level}"), " to keep detail; or ", _code("plot()"), "."),
    )  # fmt: skip


def _profile(found: Profile) -> Iterator[tuple[str, object]]:
    size, held = found.lattice.size, len(found.numbers)
    whole = "all tabulated" if found.complete else f"{held:,} tabulated ({percent(held / size)})"
    yield "Lattice", f"{_many(size, 'node')}, {whole}"
    yield "Combinations", f"{found.combinations:,}"
    wish = found.wish
    yield "The policy's wish", f"{wish.model} = {wish.least}, at most {wish.limit:,} suppressed"
    sensitive = between([own(name) for name in found.sensitive])
    of = [", every l of ", *sensitive] if sensitive else []
    yield "Answers at once", joined(["every k", *of, ", every suppression limit and every choice of levels"])


def negotiation_block(found: Negotiation) -> str:
    """Tell the answer, or what each wish alone would have to become."""
    request = found.request
    column = [" of ", own(request.sensitive)] if request.sensitive else []
    told = joined(
        [f"{request.model} = {request.least}", *column, f", at most {request.limit:,} suppressed: "]
    )
    rows = list(_offers(found))
    if found.exact:
        words = "there is a node that will do"
    else:
        words = "no node will do" if found.settled else "no node of those tabulated will do"
    parts: list[object] = []
    if rows:
        headings = ("Offer", request.model, "Limit", "Suppressed", "Height", "Levels")
        best = "The lowest node" if request.prefer == "height" else "The node of least loss"
        about = best if found.exact else "Each offer gives up one wish and keeps the others"
        parts.append(table(about, headings, first(rows), numbers=range(1, 5)))
    if found.besides:
        parts.append(quiet(f"Not negotiated: {', '.join(found.besides)}."))
    if rows:
        release = _code("shoal.anonymize(table, policy, node=offer)")
        parts.append(quiet("An offer can be released: ", release, "."))
    return block(joined([told, words]), *parts, kind="good" if found.exact else None)


def _offers(found: Negotiation) -> Iterator[Sequence[object]]:
    names = {"exact": found.exact, "suppression": found.suppression, "levels": found.levels}
    every: list[tuple[str, Offer | None]] = [*names.items(), ("privacy", found.privacy)]
    every += [("columns", offer) for offer in found.columns]
    for name, offer in every:
        if offer:
            of = joined([name, ": ", own(offer.column)]) if offer.column else name
            figures = (offer.least, offer.limit, offer.suppressed, offer.height)
            levels = [joined([own(column), f" {level}"]) for column, level in offer.node.items()]
            yield of, *[f"{figure:,}" for figure in figures], joined(between(levels))


def study_block(found: Study) -> str:
    """Tell what each k (or l) suppresses over the nodes of a profile."""

    def told(records: float) -> str:
        return percent(records / found.records)

    rows = [(row.at, told(row.least), told(row.mean), told(row.largest)) for row in found.by_strength]
    part = "" if found.nodes == found.lattice_size else f"{found.nodes:,} of "
    nodes = part + _many(found.lattice_size, "node")
    headings = (found.model, "Least", "Mean", "Largest")
    return block(
        f"Study of {nodes}, {_many(found.records, 'record')}",
        table("Records suppressed over these nodes", headings, first(rows), numbers=range(1, 4)),
    )


# A comparison


def comparison_block(found: Comparison) -> str:
    """Tell the row of every search: what it lost and what that cost."""
    rows = [_row(row) for row in found.rows]
    same = [name for name in ("metric", "limit", "k") if len({row[name] for row in rows}) <= 1]
    headings = [name for name in (rows[0] if rows else ()) if name not in same]
    numbers = [n for n, name in enumerate(headings) if name not in ("algorithm", "metric", "proven")]
    told = ", ".join(f"{name} {rows[0][name]}" for name in same if rows and rows[0][name])
    cells = [[row[name] for name in headings] for row in rows]
    parts = [table(told or "Searches", headings, first(cells, _ROWS), numbers=numbers)] if rows else []
    about = found.rows[0] if found.rows else None
    where = f", {_many(about.records, 'record')}, {_many(about.lattice_size, 'node')}" if about else ""
    without = any(row.loss is None for row in found.rows)
    why = ["; why there is no result: ", _code("rows[i].note")] if without else []
    loss_and_time = quiet("Loss and time: ", _code("plot()"), "; all figures: ", _code("to_csv()"), *why, ".")
    return block(f"Comparison of {_many(len(rows), 'search', 'es')}{where}", *parts, loss_and_time)


def _row(row: Row) -> dict[str, str]:
    """Return the cells of a row by their headings; what has no result says so in a word."""
    ratio = "" if row.relative_loss is None else f"{row.relative_loss:.2%}"
    return {
        "algorithm": row.algorithm,
        "metric": row.metric,
        "limit": str(row.limit),
        "k": "" if row.k is None else str(row.k),
        "loss": "" if row.loss is None else f"{row.loss:,.6g}",
        "of the optimum": ratio,
        "suppressed": _figure(row.suppressed),
        "nodes evaluated": _figure(row.nodes_evaluated),
        "ms": "" if row.seconds is None else f"{row.seconds * 1000:,.1f}",
        "proven": row.proven or (row.note or "").partition(":")[0],
    }


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}"


# Words


def _code(written: str) -> Html:
    return tag("code", written)


def _many(number: int, word: str, ending: str = "s") -> str:
    return f"{number:,} {word}{'' if number == 1 else ending}"
