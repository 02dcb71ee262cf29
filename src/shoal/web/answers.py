"""What a desk answers, to a page and to the API, as models; the same names as in the workflow."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

Status = Literal["waiting", "running", "done", "failed", "cancelled"]  # of a job


class Error(BaseModel):
    """What went wrong, and beside which field that belongs."""

    error: str
    field: str | None = None
    nearest: dict[str, Any] = {}


class DeskAnswer(BaseModel):
    """A desk's name."""

    desk: str


class FileAnswer(BaseModel):
    """A table below the given folder."""

    name: str  # its path from there, with slashes
    size: int


class StepAnswer(BaseModel):
    """Whether a step can be used, and what is missing."""

    name: str
    usable: bool
    done: bool
    missing: str | None


class JobAnswer(BaseModel):
    """How far long work is."""

    id: str
    kind: str
    status: Status
    phase: str
    done: int
    total: int | None
    error: str | None
    field: str | None
    nearest: dict[str, Any]
    seconds: float


class StateAnswer(BaseModel):
    """Where a desk stands."""

    table: str | None
    records: int | None
    notes: Annotated[
        list[str],
        Field(description="What should be known of how the table was read, as that it is not UTF-8."),
    ]
    steps: list[StepAnswer]
    jobs: list[JobAnswer]
    node: dict[str, int] | None
    files: list[str]


class IdentifierAnswer(BaseModel):
    """Which of the 18 identifiers of Safe Harbor a column looks like, and why."""

    letter: str
    title: str
    by: str
    reason: str


class ColumnAnswer(BaseModel):
    """One line of the column table."""

    column: str
    kind: str
    distinct: int
    missing: int
    unique_share: float
    suggested_role: str
    reason: str
    role: str
    hierarchy: Any  # as a policy writes it; None for a column that is no quasi-identifier
    height: int | None  # the hierarchy's highest level, where it fits
    problem: str | None  # why it does not fit
    identifier: IdentifierAnswer | None


class PreviewAnswer(BaseModel):
    """How values climb, or why they cannot."""

    fits: bool
    problem: str | None = None
    values: list[str] = []
    builder: str | None = None
    groups: list[int] = []
    examples: list[list[str]] = []
    tree: dict[str, Any] | None = None


class PresetAnswer(BaseModel):
    """A published rule that a policy can follow."""

    name: str
    about: str


class PolicyAnswer(BaseModel):
    """The policy as it stands, or what is missing for one."""

    yaml: str | None
    words: list[str]
    missing: str | None
