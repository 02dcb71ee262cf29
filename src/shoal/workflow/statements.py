"""Sentences that reports, notebooks and the studio share: on models, guarantees, choices and results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Guarantee, Role
from shoal.document.document import Verdict, of_records
from shoal.document.html import Html, isolated, joined, tag
from shoal.policy.policy import Policy, named
from shoal.wording import enumerate_names, one_value_text, percent, plural
from shoal.workflow.verify import WILDCARDS, verified_text

if TYPE_CHECKING:
    from shoal.workflow.level_names import LevelNames
    from shoal.workflow.profile.negotiate import Negotiation
    from shoal.workflow.profile.profile import Profile
    from shoal.workflow.release.release import Release


_MUCH = 0.5  # a result is poor if more than this share of the records or of the information is lost

_IN_TIME = "; if time runs out, the best so far"

PROVEN = {
    Guarantee.LEAST_LOSS: "No other of these choices that satisfies the policy loses less. This was proven.",
    Guarantee.LEAST_HEIGHT: "No other choice that satisfies the policy has less height. This was proven.",
    Guarantee.MINIMAL: "No column can be taken a level down without breaking the policy. This was proven.",
    Guarantee.ACCEPTABLE: "It satisfies the policy. That nothing else loses less was not proven.",
    Guarantee.NONE: "The search guarantees none of the models. The release was counted to see which hold.",
}


def model_statements(policy: Policy) -> list[str]:
    """State what each model guarantees for a release by this policy, unless the algorithm does not."""
    algorithm = policy.search_algorithm
    if algorithm is not None and algorithm.guarantee is Guarantee.NONE:
        models = " and ".join(_model(name, options) for name, options in map(named, policy.models))
        name = named(policy.algorithm)[0]
        return [f"{name} does not promise {models}. Whether it holds is counted in the release."]
    if algorithm is not None and algorithm.separates_sensitive:
        return [
            "Quasi-identifiers are released as they are: a known person's record can be found.",
            *(
                f"Each group of the second table satisfies {_model(name, options)}."
                for name, options in map(named, policy.models)
            ),
        ]
    if policy.wildcards:
        least = max(model.least_size for model in policy.privacy_models)
        return [f"At least {plural(least, 'record')} match every record in the quasi-identifiers.", WILDCARDS]
    return [
        model.in_words() or f"The release satisfies {_model(*named(written))}."
        for model, written in zip(policy.privacy_models, policy.models, strict=True)
    ]


def column_statements(policy: Policy) -> list[str]:
    """State what happens to the columns of each role."""
    roles, algorithm, looked_at = policy.roles, policy.search_algorithm, policy.sensitive_needed
    quasi = "Generalized", "Nothing is generalized"
    sensitive = "Kept as they are, and protected by the models", "No column is protected by the models"
    if algorithm is not None and algorithm.separates_sensitive:
        quasi = "Kept as they are, and known to others", "No column is known to others"
        sensitive = "Released by groups, in a second table", "No column is released by groups"
    rows = [
        (("Removed", "Nothing is removed"), roles.identifiers),
        (quasi, roles.quasi_identifiers),
        (sensitive, looked_at),
        (("Kept as they are, and taken to be harmless", "No column is harmless"), _others(policy)),
    ]
    sentences = [f"{title}: {', '.join(names)}." if names else f"{empty}." for (title, empty), names in rows]
    ignored = [name for name in roles.sensitive if name not in looked_at]
    if ignored:
        sentences.insert(3, f"Kept as they are, and protected by no model: {', '.join(ignored)}.")
    return sentences


def _others(policy: Policy) -> list[str]:
    return [name for name, column in policy.columns.items() if column.role is Role.OTHER]


def choice_statement(
    policy: Policy, node: Mapping[str, int] | None = None, names: LevelNames | None = None
) -> str:
    """Say which of the acceptable recodings is chosen. `node` has the levels if they are fixed."""
    if node is not None:
        numbers = ", ".join(f"{name} {level}" for name, level in node.items())
        levels = numbers if names is None else names.describe(node)
        start = "The search begins at the levels" if policy.levels_by_class else "Levels are fixed"
        return f"{start}: {levels}.{_finishing(policy)}"
    metric = named(policy.metric)[0]
    algorithm = policy.search_algorithm
    guarantee = Guarantee.LEAST_LOSS if algorithm is None else algorithm.guarantee
    name = named(policy.algorithm)[0]
    if guarantee is Guarantee.LEAST_LOSS:
        text = f"Among the acceptable recodings, the one of least loss by {metric} is chosen{_IN_TIME}."
    elif guarantee is Guarantee.LEAST_HEIGHT:
        text = (
            f"Among the acceptable recodings of least height, the least loss by {metric} is chosen{_IN_TIME}."
        )
    else:
        text = f"{name} chooses by a rule of its own. Another choice may lose less by {metric}."
    return text + _finishing(policy)


def _finishing(policy: Policy) -> str:
    """Say what is done after the search for a node; "" if nothing is done."""
    finishing = policy.finishing
    if finishing["local"]:
        text = (
            " Then every class gets labels of its own levels, where that loses no more. A value may be "
            "released under a broad label in one class and under a fine one in another."
        )
        return text + labels_statement(policy)
    if finishing["refine"]:
        return " Then classes that allow it get finer labels."
    if finishing["cells"]:
        text = " Then cells are blanked where that keeps records that would be suppressed."
        if policy.wildcards:
            text += " A blank counts as a match of every value, so few are needed."
        return text
    return ""


def labels_statement(policy: Policy) -> str:
    """Say that a cell of local recoding may name several labels; "" if each cell has one label."""
    labels = policy.finishing["local"]
    return f" A cell may name up to {labels} labels; the value is under one of them." if labels > 1 else ""


_GUARANTEES = {
    Guarantee.LEAST_LOSS: "that every model holds and, unless time runs out, that no other of its choices "
    "loses less",
    Guarantee.LEAST_HEIGHT: "that every model holds and, unless time runs out, the fewest generalization "
    "steps; another choice may lose less",
    Guarantee.MINIMAL: "that every model holds and that no column alone can be made finer; another may "
    "lose less",
    Guarantee.ACCEPTABLE: "that every model holds; it does not guarantee that nothing else loses less",
    Guarantee.NONE: "none of the models; whether they hold is only known from counting the release",
}


def guarantee_statement(name: str) -> str:
    """Say in one sentence what an algorithm guarantees for a release, and what it does not guarantee.

    >>> guarantee_statement("datafly")
    'datafly guarantees that every model holds; it does not guarantee that nothing else loses less.'
    """
    algorithm = ALGORITHMS.create(name)
    if algorithm.separates_sensitive:
        return (
            f"{name} guarantees the models for each group of the table with the sensitive values; it does "
            "not hide who is in the data, because quasi-identifiers are released as they are."
        )
    return f"{name} guarantees {_GUARANTEES[algorithm.guarantee]}."


def proven_statement(release: Release) -> str:
    """Say what was proven about the recoding of a release."""
    least = release.evaluation.lower_bound
    if least is not None:
        kind = "set of cuts by order" if release.start is None else "acceptable choice of levels"
        return f"No {kind} loses less than {least:,.10g}; this one loses {release.loss:,.10g}."
    if release.outliers:
        return f"No tested combination of columns is shared by fewer than {release.outliers.k:,} records."
    if release.lattice_size == 1 and release.levels:
        return "The levels were fixed, so there was nothing to choose."
    return PROVEN[release.evaluation.proven]


def release_verdict(release: Release) -> Verdict:
    """State whether the models hold in the release, and whether much of the information is retained."""
    checked = release.verification
    if checked.reasons:
        promise = "" if _promises(release.algorithm) else f" {release.algorithm} does not promise this."
        return Verdict("bad", f"Not verified: {'; '.join(checked.reasons)}.{promise}")
    if not checked.verified:
        return Verdict("warn", f"Not fully verified: {'; '.join(checked.unchecked)}.")
    unseen = list(dict.fromkeys(check.model for check in checked.models if check.passed is None))
    text = verified_text(wildcards=checked.wildcards)
    if unseen:
        text = (
            f"Verified. {' and '.join(unseen)} cannot be seen in the release alone and "
            f"{'was' if len(unseen) == 1 else 'were'} checked before it was written."
        )
    left = f"{percent(release.retained_overall)} of the information"
    if release.separate_column:
        left += (
            f" in the quasi-identifiers is retained, none on which record has which {release.separate_column}"
        )
    else:
        left += " is retained"
    if is_ruined(release.suppressed, release.records):
        lost = of_records(release.suppressed, release.records)
        return Verdict("warn", f"{text} But {lost} were suppressed, and {left}.")
    carrying = len(release.losses) - len(release.columns_without_information)
    if release.retained_overall < _MUCH or 2 * carrying < len(release.losses):
        columns = f"{carrying:,} of {plural(len(release.losses), 'quasi-identifier')}"
        carry = "carries" if carrying == 1 else "carry"
        one_value = one_value_text(release.columns_with_one_value)
        counted = f" ({one_value})" if one_value else ""
        return Verdict("warn", f"{text} But only {left}: {columns} still {carry} information{counted}.")
    if without := release.columns_without_information:
        return Verdict("warn", f"{text} But nothing is left of {enumerate_names(without)}; {left}.")
    return Verdict("warn" if release.revealed else "good", f"{text} {left}.")


def negotiation_verdict(answer: Negotiation, records: int) -> Verdict:
    """Say whether a request is possible, what it costs, and what was not counted."""
    offer = answer.exact
    if offer is None:
        return Verdict("warn", "Not possible as asked. Any one of these changes works:")
    suppressed = plural(offer.suppressed, "record")
    if is_ruined(offer.suppressed, records):
        return Verdict("warn", f"Possible, but {suppressed} of {records:,} would be suppressed")
    if answer.besides:
        others = " and ".join(answer.besides)
        text = f"Possible for {offer.privacy.text}: {suppressed} suppressed; {others} not checked yet"
        return Verdict("warn", text)
    return Verdict("good", f"Yes: {suppressed} suppressed")


def is_ruined(suppressed: int, records: int) -> bool:
    """Return whether too many records are suppressed for the rest to be useful."""
    return suppressed > _MUCH * records


def removal_statement(profile: Profile, node: Mapping[str, int]) -> str:
    """Say which columns a node generalizes to a top level with only one label; "" if there are none."""
    names = [
        name
        for name, height in zip(profile.lattice.columns, profile.lattice.heights, strict=True)
        if height and node[name] == height
    ]
    if profile.problem is None:  # the labels are not known
        return f"Highest level: {', '.join(names)}." if names else ""
    removed = [bound.name for bound in profile.problem.hierarchies if len(bound.labels[-1]) == 1]
    names = [name for name in names if name in removed]
    return f"Nothing is left of {', '.join(names)}." if names else ""


def _promises(algorithm: str) -> bool:
    return algorithm not in ALGORITHMS or ALGORITHMS.create(algorithm).guarantee is not Guarantee.NONE


def _model(name: str, options: Mapping[str, object]) -> str:
    shown = ", ".join(f"{option} {value}" for option, value in options.items())
    return f"{name} ({shown})" if shown else name


def interleaved(parts: Sequence[object], sign: str = ", ") -> list[object]:
    """Return parts with a separator between them.

    >>> interleaved(["a", "b"])
    ['a', ', ', 'b']
    """
    return [part for element in parts for part in (sign, element)][1:]


def listed(names: Iterable[str]) -> Html:
    """Return names from the data, separated by commas.

    >>> listed(["age", "sex"])
    '<bdi>age</bdi>, <bdi>sex</bdi>'
    """
    return joined(interleaved([isolated(name) for name in names]))


def unbroken(words: str) -> Html:
    """Keep words on one line."""
    return tag("span", words, class_="whole")


def options_in_words(options: Mapping[str, object]) -> str:
    """Write the options of a plug-in.

    >>> options_in_words({"k": 1000, "t": 0.2})
    'k = 1,000, t = 0.2'
    """
    return ", ".join(f"{option} = {_value(value)}" for option, value in options.items())


def _value(value: object) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return f"{value:,}" if type(value) is int else str(value)
