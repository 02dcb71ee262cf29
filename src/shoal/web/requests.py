"""What the API takes, as models; the same names as in the workflow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_DEEPEST, _MOST = 20, 50_000  # of what is nested, and of entries


def _plain(value: Any) -> Any:
    """Refuse what no policy holds: numbers that are none, halves of characters, and nests without end."""
    waiting, seen = [(value, 0)], 0
    while waiting:
        one, depth = waiting.pop()
        seen += 1
        if depth > _DEEPEST or seen > _MOST:
            message = "it is too deep or too long; send less at once"
            raise ValueError(message)
        if isinstance(one, float) and not math.isfinite(one):
            message = "numbers must be finite"
            raise ValueError(message)
        if isinstance(one, int) and abs(one) > 10**15:
            message = "the number is too large"
            raise ValueError(message)
        if isinstance(one, str) and any(0xD800 <= ord(letter) <= 0xDFFF for letter in one):
            message = "the text is not valid; send it as UTF-8"
            raise ValueError(message)
        if isinstance(one, Mapping):
            waiting += [(part, depth + 1) for pair in one.items() for part in pair]
        elif isinstance(one, list):
            waiting += [(part, depth + 1) for part in one]
    return value


Plain = Annotated[Any, AfterValidator(_plain)]
Whole = Annotated[int, Field(ge=1, le=10**9, strict=True)]
Limit = Annotated[int, Field(ge=0, le=10**12, strict=True)] | Annotated[
    float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)
] | Annotated[str, Field(max_length=20, pattern=r"^[0-9.,]+%?$")]  # fmt: skip
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=1000)]
Level = Annotated[int, Field(ge=0, le=1000, strict=True)]
Levels = dict[Name, Level]
Role = Literal["identifier", "quasi-identifier", "sensitive", "other"]
Plugin = Annotated[str | dict[str, Any], AfterValidator(_plain)]


class Asked(BaseModel):
    """A request; what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid")


class TableRequest(Asked):
    """Which table: the sample, the one given with the command, or a file below the given folder."""

    source: Literal["sample", "given", "file"]
    name: Name | None = None


class RoleRequest(Asked):
    """A column's role."""

    column: Name
    role: Role


class HierarchyRequest(Asked):
    """A column's hierarchy as a policy writes it."""

    column: Name
    spec: Plain


class PreviewRequest(HierarchyRequest):
    """A hierarchy to try."""

    values: Annotated[int, Field(ge=1, le=100)] = 8
    tree: bool = False


class HierarchyFileRequest(Asked):
    """A hierarchy as a CSV file: one row per value, from the value to the top."""

    column: Name
    text: Annotated[str, Field(max_length=20_000_000)]
    name: Name = "hierarchy.csv"


class SettingsRequest(Asked):
    """What is set for a quasi-identifier besides its hierarchy; null unsets."""

    column: Name
    max_level: Level | None = None
    min_level: Level | None = None
    weight: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    release_as: Literal["text", "bounds"] | None = None
    identifying: Literal[1, 2, 3] | None = None


class WishesRequest(Asked):
    """The policy's entries besides its columns; null is the usual."""

    models: Annotated[list[Plugin], Field(min_length=1, max_length=50)] | None = None
    suppression_limit: Limit | None = None
    metric: Plugin | None = None
    algorithm: Plugin | None = None
    suppressed: Literal["drop", "mask"] | None = None
    label: Name | None = None
    same_level: list[list[Name]] | None = None


class PolicyRequest(Asked):
    """A whole policy as YAML."""

    yaml: Annotated[str, Field(max_length=1_000_000)]


class PresetRequest(Asked):
    """A published rule to follow; null is what the columns suggest."""

    preset: Name | None


class DiagnosisRequest(Asked):
    """What to diagnose; without columns, the quasi-identifiers."""

    k: Whole = 5
    suppression_limit: Limit = 0
    columns: list[Name] | None = None
    sensitive: Name | None = None
    seconds: Seconds = 60.0


class RiskRequest(Asked):
    """Against which threshold and population; special uniques of at most so many columns, 0 for none."""

    threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    population_size: Annotated[int, Field(ge=1, le=10**12)] | None = None
    sampling_share: Annotated[float, Field(gt=0, le=1)] | None = None
    special_size: Annotated[int, Field(ge=0, le=8)] = 3


class CurveRequest(Asked):
    """Which set's curve, for k up to `most`."""

    columns: list[Name] | None = None
    most: Annotated[int, Field(ge=1, le=10_000)] = 100


class ProfileRequest(Asked):
    """How much of the lattice: all, its best share, or what the seconds allow."""

    seconds: Seconds | None = None
    share: Annotated[float, Field(gt=0, le=1)] | None = None


class StrengthRequest(Asked):
    """A k, or an l of a sensitive column; without any, those of the last request."""

    k: Whole | None = None
    l: Whole | None = None
    sensitive: Name | None = None


class NegotiationRequest(StrengthRequest):
    """A request; what it leaves out is the policy's."""

    suppression_limit: Limit | None = None
    max_level: Levels | None = None
    prefer: Literal["height", "loss"] = "height"
    metric: Name | None = None
    runtime: bool = False


class TakeRequest(Asked):
    """Which offer of the last answer to take; of one column, its name too."""

    kind: Literal["exact", "suppression", "levels", "privacy", "column"]
    column: Name | None = None


class NodeRequest(Asked):
    """The node to release at; null leaves it to the search."""

    node: Levels | None


class LatticeRequest(StrengthRequest):
    """How many points at most."""

    most: Annotated[int, Field(ge=1, le=20_000)] = 5_000


class LossRequest(Asked):
    """A node, and by which metric."""

    node: Levels
    metric: Name | None = None


class ExamplesRequest(StrengthRequest):
    """A node, and how many records to show there."""

    node: Levels
    number: Annotated[int, Field(ge=1, le=100)] = 10


class ComparisonRequest(Asked):
    """What to compare; what is left out is the policy's, and all algorithms."""

    algorithms: Annotated[list[Plugin], Field(min_length=1, max_length=50)] | None = None
    metrics: Annotated[list[Plugin], Field(min_length=1, max_length=20)] | None = None
    k: Annotated[list[Whole], Field(min_length=1, max_length=100)] | None = None
    suppression_limits: Annotated[list[Limit], Field(min_length=1, max_length=100)] | None = None
    seconds: Seconds = 60.0


class ReleaseRequest(Asked):
    """The format of the release."""

    form: Literal["csv", "tsv", "parquet", "arrow"] = "csv"
    seconds: Seconds | None = None
