"""The actions of the API: every operation of a workspace, from the table to the release."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field

from shoal.core.counts.diversity import DiversityKind
from shoal.core.progress import Progress
from shoal.core.rows import RowPage, RowRequest
from shoal.engines.frames import WorkbookSheet
from shoal.policy.policy import MOST_LABELS
from shoal.web.actions import AllWorkspaces, CurrentWorkspace, action
from shoal.web.errors import Refused
from shoal.web.fields import (
    Diverse,
    Json,
    Level,
    Levels,
    Names,
    PluginSpec,
    PositiveInt,
    PositiveReal,
    PositiveSeconds,
    RoleName,
    Share,
    ShortText,
    SuppressionLimit,
    Weight,
)
from shoal.web.workspace import lattice as views
from shoal.web.workspace.diagnosis import DiagnosisStep, QuestionStep
from shoal.web.workspace.examine import AdviceStep, MeasureStep, RiskStep, UtilityStep
from shoal.web.workspace.history import HistoryAnswer
from shoal.web.workspace.jobs import JobWork
from shoal.web.workspace.known_keep import KnownKeepAnswer
from shoal.web.workspace.preview import PreviewStep
from shoal.web.workspace.release import ComparisonStep, ReleaseStep
from shoal.web.workspace.table import MAX_HIERARCHY_BYTES, MAX_HIERARCHY_FILES, ColumnAnswer
from shoal.workflow.diagnosis.questions import Suppression
from shoal.workflow.inspect import Preview

routes = action.routes

# Step 1: the table, its columns and the policy.


@action("POST", "table", job="open")
def choose_table(
    workspace_id: str,
    workspace: CurrentWorkspace,
    workspaces: AllWorkspaces,
    source: Literal["sample", "given", "file", "database"],
    name: ShortText | None = None,
    sheet: ShortText | None = None,
    header_row: Annotated[int, Field(ge=1, le=10_000, strict=True)] = 1,
) -> JobWork:
    """Open the sample, the table given on the command line, a file in the data folder, or a database table.

    In a workbook, `sheet` is opened. Its row `header_row` contains the column names.
    """
    if source == "sample":
        return lambda progress: workspaces.open_sample(workspace_id, progress)
    if source == "given":
        if workspaces.data is None:
            raise Refused("No table was given with the command. Upload one, or take the sample.", "source")
        return lambda progress: workspaces.open_given_table(workspace_id, progress)
    if source == "database":
        workspaces.sources.resolve(name or "", workspaces.owner(workspace_id), workspace.folder)
        return lambda progress: workspaces.open_source(workspace_id, name or "", progress)
    path = workspaces.data_folder.resolve(name or "")
    chosen = WorkbookSheet(sheet, header_row) if sheet else None
    return lambda progress: workspaces.open_table(workspace_id, path, path.name, progress, sheet=chosen)


@action("GET", "columns")
def list_columns(workspace: CurrentWorkspace) -> list[ColumnAnswer]:
    """List the columns with their roles and hierarchies."""
    return workspace.table.rows()


@action("PUT", "role")
def choose_role(workspace: CurrentWorkspace, column: ShortText, role: RoleName) -> list[ColumnAnswer]:
    """Change the role of a column."""
    workspace.table.choose_role(column, role)
    return workspace.table.rows()


@action("PUT", "roles")
def choose_roles(
    workspace: CurrentWorkspace, columns: Annotated[list[ShortText], Field(max_length=5_000)], role: RoleName
) -> list[ColumnAnswer]:
    """Change the role of several columns. If one change is invalid, none is made."""
    workspace.table.choose_roles(columns, role)
    return workspace.table.rows()


class PreviewAnswer(BaseModel):
    """The levels of sample values, or the reason why the hierarchy does not fit."""

    fits: bool
    problem: str | None = None
    values: list[str] = []
    builder: str | None = None
    groups: list[int] = []
    examples: list[list[str]] = []
    tree: dict[str, Any] | None = None


def _preview(preview: Preview, *, tree: bool = False) -> PreviewAnswer:
    return PreviewAnswer(
        fits=True,
        builder=preview.builder,
        groups=list(preview.groups),
        examples=[list(row) for row in preview.examples],
        tree=preview.tree() if tree else None,
    )


@action("POST", "hierarchy-preview")
def preview_hierarchy(
    workspace: CurrentWorkspace,
    column: ShortText,
    spec: Json,
    values: Annotated[int, Field(ge=1, le=100)] = 8,
    tree: bool = False,
) -> PreviewAnswer:
    """Check whether a hierarchy fits the values of a column, without changing the column's hierarchy."""
    check = workspace.table.preview(column, spec, values=values)
    if check.preview is None:
        return PreviewAnswer(fits=False, problem=check.problem, values=list(check.values))
    return _preview(check.preview, tree=tree)


@action("PUT", "hierarchy")
def choose_hierarchy(workspace: CurrentWorkspace, column: ShortText, spec: Json) -> PreviewAnswer:
    """Change the hierarchy of a column. A hierarchy that does not fit is rejected."""
    return _preview(workspace.table.choose_hierarchy(column, spec))


@action("PUT", "hierarchy-file")
def upload_hierarchy(
    workspace: CurrentWorkspace,
    column: ShortText,
    text: Annotated[str, Field(max_length=MAX_HIERARCHY_BYTES)],
    name: ShortText = "hierarchy.csv",
) -> PreviewAnswer:
    """Set the hierarchy of a column from a CSV file: one row per value, from the value to the top level."""
    return _preview(workspace.table.upload_hierarchy(column, text.encode(), name))


class HierarchyFile(BaseModel):
    """A hierarchy file. Its name contains the name of its column."""

    model_config = ConfigDict(extra="forbid")
    name: ShortText
    text: Annotated[str, Field(max_length=MAX_HIERARCHY_BYTES)]


class HierarchyFilesAnswer(BaseModel):
    """The columns whose hierarchies were changed."""

    columns: list[str]


@action("PUT", "hierarchy-files")
def upload_hierarchies(
    workspace: CurrentWorkspace,
    files: Annotated[list[HierarchyFile], Field(min_length=1, max_length=MAX_HIERARCHY_FILES)],
) -> HierarchyFilesAnswer:
    """Set the hierarchies of several columns from CSV files with their names. One error rejects all files."""
    contents = [(file.name, file.text.encode()) for file in files]
    return HierarchyFilesAnswer(columns=workspace.table.upload_hierarchies(contents))


class ColumnSettings(TypedDict, total=False):
    """Settings of a quasi-identifier other than its hierarchy. Null removes a setting."""

    max_level: Level | None
    min_level: Level | None
    weight: Weight | None
    release_as: Literal["text", "bounds"] | None
    identifying: Literal[1, 2, 3] | None


@action("PUT", "column-settings")
def change_column_settings(
    workspace: CurrentWorkspace, column: ShortText, **settings: Unpack[ColumnSettings]
) -> dict[str, Any]:
    """Change settings of a quasi-identifier. Omitted settings do not change."""
    workspace.table.change_settings(column, **settings)
    return workspace.table.settings(column)


@action("GET", "settings")
def list_settings(workspace: CurrentWorkspace) -> dict[str, Any]:
    """Return all entries of the policy except its columns."""
    return workspace.draft.settings()


LocalLabels = dict[Literal["labels"], Annotated[int, Field(ge=1, le=MOST_LABELS)]]


class PolicySettings(TypedDict, total=False):
    """All entries of a policy except its columns. Null restores the default."""

    models: Annotated[list[PluginSpec], Field(min_length=1, max_length=50)] | None
    suppression_limit: SuppressionLimit | None
    metric: PluginSpec | None
    algorithm: PluginSpec | None
    local: bool | LocalLabels | None
    suppressed: Literal["drop", "mask"] | None
    label: ShortText | None
    same_level: list[list[ShortText]] | None
    population_size: Annotated[int, Field(ge=1, le=10**12, strict=True)] | None
    sampling_share: Share | Annotated[str, Field(max_length=20)] | None


@action("PUT", "settings")
def change_settings(workspace: CurrentWorkspace, **settings: Unpack[PolicySettings]) -> dict[str, Any]:
    """Change entries of the policy other than its columns. If one change is invalid, none is made."""
    _ = workspace.table.loaded
    workspace.draft.change(**settings)
    return workspace.draft.settings()


class PolicyAnswer(BaseModel):
    """The policy, or a message that says what is missing."""

    yaml: str | None
    summary: list[str]
    missing: str | None


@action("GET", "policy")
def show_policy(workspace: CurrentWorkspace) -> PolicyAnswer:
    """Return the policy, or a message that says what is missing."""
    missing = workspace.draft.missing()
    if missing:
        return PolicyAnswer(yaml=None, summary=[], missing=missing)
    return PolicyAnswer(yaml=workspace.draft.to_yaml(), summary=workspace.release.summary(), missing=None)


@action("PUT", "policy")
def adopt_policy(
    workspace: CurrentWorkspace, yaml: Annotated[str, Field(max_length=1_000_000)]
) -> PolicyAnswer:
    """Replace the whole policy."""
    workspace.draft.adopt_yaml(yaml)
    return show_policy(workspace)


@action("PUT", "preset")
def follow_preset(workspace: CurrentWorkspace, preset: ShortText | None) -> PolicyAnswer:
    """Replace the whole policy with the preset for a published rule. Null stands for the suggested policy."""
    workspace.draft.follow_preset(preset)
    return show_policy(workspace)


@action("POST", "answers", job="answers")
def answer_questions(
    workspace: CurrentWorkspace, known: Names | None = None, keep: Names | None = None, k: PositiveInt = 5
) -> JobWork:
    """Replace the whole policy: derive it from what an outsider could know and what the analyst needs.

    `known` and `keep` are lists of columns. Without `known`, unrecognized columns are quasi-identifiers.
    """
    workspace.known_keep.check(known, keep)

    def work(progress: Progress) -> None:
        workspace.known_keep.run(known, keep, k, progress=progress)
        workspace.prepare()

    return work


@action("GET", "answers")
def answers(workspace: CurrentWorkspace) -> KnownKeepAnswer:
    """Return the last answers, with notes on columns whose role differs from the answers."""
    return workspace.known_keep.answer


@action("DELETE", "answers")
def undo_answers(workspace: CurrentWorkspace) -> PolicyAnswer:
    """Restore the policy as it was before the last answers. This is possible only once."""
    workspace.known_keep.undo()
    return show_policy(workspace)


@action("GET", "history")
def history(workspace: CurrentWorkspace) -> HistoryAnswer:
    """Return the changes that the next undo and redo apply to, and all changes that can be undone."""
    return workspace.history.answer


@action("POST", "undo")
def undo(workspace: CurrentWorkspace) -> HistoryAnswer:
    """Undo the last change of roles, hierarchies, settings or the node chosen for the release."""
    workspace.history.undo()
    return workspace.history.answer


@action("POST", "redo")
def redo(workspace: CurrentWorkspace) -> HistoryAnswer:
    """Redo the change that was undone last."""
    workspace.history.redo()
    return workspace.history.answer


@action("POST", "rows")
def rows(
    workspace: CurrentWorkspace,
    of: Literal["table", "release"] = "table",
    start: Annotated[int, Field(ge=0, le=10**12, strict=True)] = 0,
    count: Annotated[int, Field(ge=1, le=1_000, strict=True)] = 100,
    sort: Annotated[list[tuple[ShortText, bool]], Field(max_length=20)] = [],  # noqa: B006
    contains: Annotated[dict[ShortText, ShortText], Field(max_length=20)] = {},  # noqa: B006
    below: Annotated[int, Field(ge=0, le=10**9, strict=True)] = 0,
) -> RowPage:
    """Return rows of the table or of its release, each with the number of records in its class.

    `sort` lists columns, each with true for descending order: [["age", true]]. `contains` selects rows by
    a part of a column's value. `below` selects classes of fewer records. Long values are truncated.
    """
    request = RowRequest(start, count, tuple(sort), contains, below)
    return workspace.rows.page(of, request)


# Step 2: diagnosis and risk.


action.step("diagnosis", "diagnosis", DiagnosisStep)


@action("POST", "curve")
def curve(
    workspace: CurrentWorkspace,
    columns: list[ShortText] | None = None,
    most: Annotated[int, Field(ge=1, le=10_000)] = 100,
) -> tuple[Suppression, ...]:
    """Return the number of records that each k up to `most` suppresses, for some diagnosed columns."""
    return workspace.diagnosis.curve(columns, most)


action.step("question", "question", QuestionStep)
action.step("risk", "risk", RiskStep)
action.step("measurement", "measurement", MeasureStep)


# Step 3: negotiation.


@action("POST", "profile", job="profile")
def tabulate(
    workspace: CurrentWorkspace, seconds: PositiveSeconds | None = None, share: Share | None = None
) -> JobWork:
    """Tabulate the lattice, or a part of it, so that any request can be answered without a search.

    `share` limits the tabulated nodes to the best ones of each height. `seconds` limits the time.
    """
    workspace.draft.policy()
    return lambda progress: workspace.negotiation.tabulate(seconds=seconds, share=share, progress=progress)


@action("GET", "profile")
def profile(workspace: CurrentWorkspace) -> dict[str, Any]:
    """Describe the tabulated lattice."""
    tabulated = workspace.negotiation.tabulated
    defaults = tabulated.defaults
    return {
        "columns": dict(zip(tabulated.lattice.columns, tabulated.lattice.heights, strict=True)),
        "records": tabulated.records,
        "combinations": tabulated.combinations,
        "nodes": len(tabulated.numbers),
        "lattice_size": tabulated.lattice.size,
        "sensitive": list(tabulated.sensitive),
        "tabulated": list(tabulated.tabulated),
        "unanswered": list(tabulated.unanswered),
        "metrics": list(tabulated.losses),
        "defaults": {
            defaults.model: defaults.least,
            **({} if defaults.l is None else {"l": defaults.l}),
            "limit": defaults.limit,
            "max_level": dict(defaults.max_level),
        },
    }


class Strength(TypedDict, total=False):
    """A k, an l of a sensitive column, or both. The default is from the last request or the policy."""

    k: PositiveInt | None
    l: Diverse | None
    sensitive: ShortText | None
    diversity: DiversityKind | None
    c: PositiveReal | None


class NegotiationRequest(Strength, total=False):
    """Limits of a request. The default is from the policy."""

    suppression_limit: SuppressionLimit | None
    max_level: Levels | None
    metric: ShortText | None


@action("POST", "negotiation")
def negotiate(
    workspace: CurrentWorkspace,
    prefer: Literal["height", "loss"] = "height",
    runtime: bool | None = None,
    **request: Unpack[NegotiationRequest],
) -> dict[str, Any]:
    """Answer a request, or suggest changes that make it possible."""
    return workspace.negotiation.negotiate(prefer=prefer, runtime=runtime, **request).to_dict()


@action("POST", "take")
def take(
    workspace: CurrentWorkspace,
    kind: Literal["exact", "suppression", "levels", "privacy", "k", "l", "column"],
    column: ShortText | None = None,
) -> dict[str, Any]:
    """Adopt an offer of the last answer: its k or l, its limit, its levels and its node."""
    node = workspace.negotiation.take(workspace.negotiation.offer(kind, column))
    return {"node": node, "settings": workspace.draft.settings()}


@action("PUT", "node")
def choose_node(workspace: CurrentWorkspace, node: Levels | None) -> dict[str, Any]:
    """Choose the node of the release. With null, the search chooses it."""
    workspace.negotiation.choose_node(node)
    return {"node": workspace.negotiation.node}


# Views of the lattice.


@action("POST", "lattice")
def lattice(
    workspace: CurrentWorkspace,
    most: Annotated[int, Field(ge=1, le=20_000)] = 5_000,
    **strength: Unpack[Strength],
) -> views.LatticeView:
    """Return the lattice as at most `most` points. If there are more nodes, a point represents several."""
    privacy = workspace.negotiation.privacy(**strength)
    return views.lattice_view(workspace.negotiation.tabulated, privacy, most)


@action("POST", "heights")
def heights(workspace: CurrentWorkspace, **strength: Unpack[Strength]) -> list[views.HeightRow]:
    """Return the smallest and the mean number of records that nodes of each height suppress."""
    privacy = workspace.negotiation.privacy(**strength)
    return views.by_height(workspace.negotiation.tabulated, privacy)


@action("POST", "loss")
def loss(workspace: CurrentWorkspace, node: Levels, metric: ShortText | None = None) -> dict[str, Any]:
    """Return the loss of each column at a node."""
    return views.loss_by_column(workspace.negotiation.tabulated, node, metric)


@action("POST", "distribution")
def distribution(
    workspace: CurrentWorkspace,
    node: Levels,
    k: PositiveInt | None = None,
    l: PositiveInt | None = None,
    suppression_limit: SuppressionLimit | None = None,
) -> dict[str, Any]:
    """Return how the records of a node are distributed over class sizes and numbers of sensitive values."""
    marks = {"k": k, "l": l, "suppression_limit": suppression_limit}
    return workspace.negotiation.tabulated.distribution(node, **marks).to_dict()


@action("POST", "examples")
def examples(
    workspace: CurrentWorkspace,
    node: Levels,
    number: Annotated[int, Field(ge=1, le=100)] = 10,
    **strength: Unpack[Strength],
) -> list[views.Example]:
    """Return some records before and after recoding at a node."""
    privacy = workspace.negotiation.privacy(**strength)
    return views.examples(workspace.negotiation.tabulated, node, privacy, number)


# Steps 4 and 5: comparison and release.


action.step("comparison", "comparison", ComparisonStep)
action.step("release-preview", "preview", PreviewStep)
action.step("release", "release", ReleaseStep)
action.step("utility", "utility", UtilityStep)
action.step("advice", "advice", AdviceStep)


@action("PUT", "advice")
def use_advice(
    workspace: CurrentWorkspace, number: Annotated[int, Field(ge=0, le=1000, strict=True)]
) -> PolicyAnswer:
    """Replace the policy with that of an entry of the last advice. Entries are numbered from 0."""
    workspace.advice.use(number)
    workspace.prepare()
    return show_policy(workspace)
