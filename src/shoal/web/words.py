"""A policy in words, for a custodian to read before a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.policy import Policy, named
from shoal.problem import limit_for
from shoal.profile import Profile
from shoal.profiling.request import Request
from shoal.reporting.words import of_records


def in_words(policy: Policy, records: int, node: Mapping[str, int] | None = None) -> list[str]:
    """Say what a policy does, a sentence each."""
    roles = policy.roles
    told = [
        _listed("Removed", roles.identifiers, "nothing is removed"),
        _listed("Generalized", roles.quasi_identifiers, "nothing is generalized"),
        _listed("Kept as they are, and protected", roles.sensitive, "no column is sensitive"),
    ]
    others = [name for name, column in policy.columns.items() if column.role.value == "other"]
    told.append(_listed("Kept as they are, and taken to be harmless", others, "no column is harmless"))
    pairs = zip(policy.privacy_models, policy.models, strict=True)
    told += [model.in_words() or _by_name(*named(written)) for model, written in pairs]
    limit = limit_for(policy, records)
    gone = "left out" if policy.suppressed == "drop" else "blanked"
    many = f"At most {of_records(limit, records)}" if limit else "No record"
    told.append(f"{many} may be {gone if limit else 'left out'}.")
    least, most = policy.limits("min_level"), policy.limits("max_level")
    if least:
        told.append("Levels begin at " + ", ".join(f"{name} {level}" for name, level in least.items()) + ".")
    if most:
        told.append("Levels go up to " + ", ".join(f"{name} {level}" for name, level in most.items()) + ".")
    if node is not None:
        told.append("Levels are fixed: " + ", ".join(f"{name} {level}" for name, level in node.items()) + ".")
    else:
        told.append(f"Among what is acceptable, the least loss by {named(policy.metric)[0]} is chosen.")
    return told


def differences(request: Request, profile: Profile, *, fixed: bool) -> list[tuple[str, str]]:
    """Say in which words a request differs from the policy, of each what is asked for and what is kept.

    Where the levels are `fixed` at the answer, they are as asked.
    """
    wish, lattice = profile.wish, profile.lattice
    column, about = request.sensitive, f" of {request.sensitive}" if request.sensitive else ""
    if request.model == wish.model == "k":
        least = wish.least
    else:  # a policy that has but one sensitive column need not name it
        name = "k-anonymity" if request.model == "k" else "distinct-l-diversity"
        own = [least or 0 for model, least, of in wish.models if model == name and of in (None, column)]
        least = max(own, default=0)
    kept = f"{request.model} {least:,}" if least else f"no {request.model}"
    pairs = [(f"{request.model} {request.least:,}{about}", f"{kept}{about}")]
    pairs.append((f"at most {request.limit:,} suppressed", f"at most {wish.limit:,} suppressed"))
    for one, height in zip(lattice.columns, lattice.heights, strict=True) if not fixed else ():
        asked, most = request.max_level.get(one, height), wish.max_level.get(one, height)
        pairs.append((f"{one} up to {asked}", f"{one} up to {most}"))
    return [(asked, kept) for asked, kept in pairs if asked != kept]


def _listed(what: str, names: Sequence[str], none: str) -> str:
    return f"{what}: {', '.join(names)}." if names else f"{none[0].upper()}{none[1:]}."


def _by_name(name: str, options: Mapping[str, object]) -> str:
    shown = ", ".join(f"{option} {value}" for option, value in options.items())
    return f"The release satisfies {name}" + (f" ({shown})." if shown else ".")
