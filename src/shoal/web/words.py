"""A policy in words, for a custodian to read before a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.policies.shares import limit_in_records
from shoal.policy import Policy, named

_MODELS = {
    "k-anonymity": "Every record looks like at least {others} others in the quasi-identifiers.",
    "distinct-l-diversity": "Every group that looks alike holds at least {l} different sensitive values.",
    "entropy-l-diversity": "Sensitive values in every group are as mixed as {l} equally frequent ones.",
    "t-closeness": "In every group sensitive values are spread as in the whole table, to a distance of {t}.",
}


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
    told += [_model(*named(model)) for model in policy.models]
    limit = limit_in_records(policy.suppression_limit, records)
    gone = "left out" if policy.suppressed == "drop" else "blanked"
    told.append(
        f"At most {limit:,} of {records:,} records ({limit / records:.1%}) may be {gone}."
        if limit
        else "No record may be left out."
    )
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


def _listed(what: str, names: Sequence[str], none: str) -> str:
    return f"{what}: {', '.join(names)}." if names else f"{none[0].upper()}{none[1:]}."


def _model(name: str, options: Mapping[str, object]) -> str:
    k = options.get("k")
    if name == "k-anonymity" and k == 1:
        return "A record may look like no other in the quasi-identifiers."
    about = {**options, "others": k - 1 if isinstance(k, int) else k}
    try:
        text = _MODELS[name].format_map(about)
    except KeyError:
        shown = ", ".join(f"{option} {value}" for option, value in options.items())
        return f"The release satisfies {name}" + (f" ({shown})." if shown else ".")
    column = options.get("column") or options.get("unit")
    return text.removesuffix(".") + f" ({column})." if column else text
