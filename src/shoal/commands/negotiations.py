"""How a negotiation is shown: the request, its answer or the suggestions, and the command that uses one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.display import say, show_pairs, show_table
from shoal.errors import so_many

DATA, POLICY = "DATA", "POLICY"  # stand for names that are not known


def show_negotiation(found: Any, profile: Any, data: str, policy: str, *, talking: bool = False) -> None:
    """Show the exact answer, or what each wish alone would have to become."""
    request = found.request
    records = profile.records
    rows = {
        request.model: f"{request.least:,}" + (f" of {request.sensitive}" if request.sensitive else ""),
        "limit": _share(request.limit, records),
        "max levels": _levels(request.max_level),
    }
    if request.metric:
        rows["prefer"] = f"least {request.metric}"
    exact = found.exact
    if exact:
        rows |= {"answer": _levels(exact.node), "height": str(exact.height)}
        rows |= {"loss": f"{exact.loss:,.10g}"} if exact.loss is not None else {}
        rows["suppressed"] = _share(exact.suppressed, records)
        rows["next"] = command_line(exact, data, policy)
    else:
        rows["answer"] = (
            "none within these wishes" if found.settled else "none among the nodes held; one may exist"
        )
    show_pairs(rows)
    if not exact:
        _suggestions(found, profile)
        listed = offers(found)
        if listed and talking:
            say("take 1, or another number, adopts one.")
        elif listed:
            say(f"To use one: {_command(data, policy)} NODE, where NODE is")
            for number, (_, offer) in enumerate(listed, 1):
                say(f"{number}  {shlex.quote(_node(offer))}")
    if not talking and (exact or offers(found)) and {data, policy} & {DATA, POLICY}:
        say("DATA and POLICY are those of the profile; with --data and --policy their names are written.")
    for note in _notes(found, profile):
        say(note)


def offers(found: Any) -> list[tuple[str, Any]]:
    """List the suggestions with the wish that each relaxes, as they are numbered from 1."""
    kinds = [(kind, getattr(found, kind)) for kind in ("suppression", "levels", "privacy")]
    return [(kind, offer) for kind, offer in kinds if offer] + [(one.column, one) for one in found.columns]


def _suggestions(found: Any, profile: Any) -> None:
    listed = offers(found)
    if not listed:
        held = "Among the nodes that the profile holds, nothing" if found.partial else "Nothing"
        say(f"{held} that relaxes one wish alone would do. Relax two, or use fewer quasi-identifiers.")
        return
    title = "Any one of these would do; each relaxes one wish and keeps the others. Columns come best first."
    headings = ["", "relax", "what would change", "node", "height", "suppressed"]
    headings += ["loss"] if found.request.metric else []
    rows = []
    for number, (kind, offer) in enumerate(listed, 1):
        gone = f"{offer.suppressed:,} ({offer.suppressed / profile.records:.1%})"
        node = " ".join(map(str, offer.node.values()))
        loss = [] if not found.request.metric else ["" if offer.loss is None else f"{offer.loss:,.6g}"]
        what = change(found.request, kind, offer)
        rows.append((str(number), kind, what, node, str(offer.height), gone, *loss))
    show_table(title, headings, rows, left=(1, 2, 3), plain=True)


def change(request: Any, kind: str, offer: Any) -> str:
    """Say what a suggestion asks to change."""
    if kind == "suppression":
        return f"limit {so_many(offer.limit, 'record')} (now {request.limit:,})"
    if kind == "privacy":
        return f"{offer.model} = {offer.least} (now {request.least})"
    raised = raised_levels(request, offer)
    return ", ".join(
        f"{name} up to {level} (now {request.max_level[name]})" for name, level in raised.items()
    )


def raised_levels(request: Any, offer: Any) -> dict[str, int]:
    """Return the levels that must be allowed beyond those of the request."""
    return {name: level for name, level in offer.node.items() if level > request.max_level[name]}


def command_line(offer: Any, data: str, policy: str) -> str:
    """Write the command that releases a table at an offer's node."""
    return f"{_command(data, policy)} {shlex.quote(_node(offer))}"


def _command(data: str, policy: str) -> str:
    return shlex.join(["shoal", "anonymize", data, "--policy", policy, "--output", "OUT", "--node"])


def _node(offer: Any) -> str:
    # Levels alone would leave the rest to the policy's file, which may ask for less than the profile's wish.
    told = offer.to_dict()
    kept = ("node", offer.model, "limit", "share", "sensitive")
    return json.dumps({name: told[name] for name in kept if name in told}, ensure_ascii=False)


def changes(before: Any, after: Any) -> str:
    """Say what another request changed of the answer."""
    if before.exact is None or after.exact is None:
        told = [_briefly(found.exact) if found.exact else "none" for found in (before, after)]
        return f"Changed: {told[0]} -> {told[1]}." if told[0] != told[1] else "There is still no answer."
    old, new = before.exact, after.exact
    pairs = [(name, old.node[name], level) for name, level in new.node.items()]
    pairs += [("height", old.height, new.height), ("suppressed", old.suppressed, new.suppressed)]
    if old.loss is not None and new.loss is not None:
        pairs.append(("loss", round(old.loss, 6), round(new.loss, 6)))
    moved = [f"{name} {one:,} -> {other:,}" for name, one, other in pairs if one != other]
    return f"Changed: {', '.join(moved)}." if moved else "The answer is the same."


def _briefly(offer: Any) -> str:
    return f"{_levels(offer.node)} (height {offer.height}, {offer.suppressed:,} suppressed)"


def _notes(found: Any, profile: Any) -> Iterator[str]:
    if found.partial:
        held = f"{len(profile.numbers):,} of {profile.lattice.size:,} nodes"
        better = ": another node may do better" if found.exact or not found.settled else ""
        yield f"The profile holds {held}{better}."
    if not found.settled and not found.exact and profile.problem is None:
        yield "--runtime with --data and --policy counts the greatest node allowed."
    if found.besides:
        yield (
            f"The policy also asks for {', '.join(found.besides)}, which this leaves out; anonymize honours "
            "what its policy names and may suppress more."
        )


def _levels(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in levels.items())


def _share(number: int, records: int) -> str:
    return f"{number:,} of {records:,} records ({number / records:.1%})"
