"""The routes for the saved projects of a user."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from shoal.web.actions import AllWorkspaces, CurrentWorkspace, User, action
from shoal.web.fields import ShortText
from shoal.web.workspace.jobs import JobWork
from shoal.web.workspace.projects import ProjectSummary

routes = APIRouter()


class ProjectStateAnswer(BaseModel):
    """The project of a workspace, or a project that waits until its table is uploaded."""

    id: str | None
    name: str
    unsaved: bool
    keeps_table: bool
    waits_for_table: str | None
    problem: str | None


@routes.get("/projects")
def list_projects(workspaces: AllWorkspaces, user: User) -> list[ProjectSummary]:
    """List the saved projects of the user, the last saved first. Without `--projects`, the list is empty."""
    store = workspaces.saving.store
    return [] if store is None else store.all(user)


@routes.delete("/projects/{project}", status_code=204)
def delete_project(project: str, workspaces: AllWorkspaces, user: User) -> None:
    """Delete a project immediately, with its table and the workspace in which it is open."""
    workspaces.saving.delete(user, project)


@action("GET", "project")
def project_state(
    workspace_id: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces
) -> ProjectStateAnswer:
    """Return the project of a workspace."""
    saving, link = workspaces.saving, workspaces.saving.link(workspace_id)
    return ProjectStateAnswer(
        id=link.id,
        name=link.name,
        unsaved=saving.unsaved(workspace_id),
        keeps_table=saving.keeps_table(workspace_id),
        waits_for_table=link.pending.table.name if link.pending else None,
        problem=link.problem or None,
    )


@action("PUT", "project")
def save_project(
    workspace_id: str,
    workspace: CurrentWorkspace,
    workspaces: AllWorkspaces,
    name: ShortText | None = None,
    keep_table: bool | None = None,
) -> ProjectSummary:
    """Save the project now. `keep_table` sets whether it contains a copy of an uploaded table."""
    summary = workspaces.saving.save(workspace_id, name)
    return summary if keep_table is None else workspaces.saving.keep_table(workspace_id, keep_table)


@action("POST", "project", job="open")
def open_project(
    workspace_id: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces, project: ShortText
) -> JobWork:
    """Open a saved project. If its table is not available, the project waits for the upload of the table."""
    _ = workspaces.saving.required_store.load(workspaces.owner(workspace_id), project)
    return lambda progress: workspaces.saving.open(workspace_id, project, progress)


@action("PUT", "start-from")
def start_from(
    workspace_id: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces, project: ShortText
) -> ProjectStateAnswer:
    """Apply roles, hierarchies and settings of a saved project to the open table. Undo is possible."""
    workspaces.saving.start_from(workspace_id, project)
    return project_state(workspace_id, workspace, workspaces)
