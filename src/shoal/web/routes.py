"""All routes of the API: the actions of a workspace, and routes that are not actions.

Those routes open and delete workspaces, report on jobs, share pages, and send and receive files.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from shoal.web import api, file_routes, project_routes
from shoal.web.actions import AllWorkspaces, CurrentWorkspace, JobAnswer, User, check_owner
from shoal.web.server.shared_pages import SHARED, SHARED_SECONDS
from shoal.web.workspace.draft import PresetAnswer, presets
from shoal.web.workspace.files import FileAnswer
from shoal.web.workspace.scenarios import shared_page
from shoal.web.workspace.sources import SourceAnswer
from shoal.web.workspace.workspace import StepAnswer
from shoal.workflow.catalogue import catalogue

_POLL = 0.05  # seconds between two looks at a job
routes = APIRouter()


class Error(BaseModel):
    """An error message, and the field of the request that it is about."""

    error: str
    field: str | None = None
    nearest: dict[str, Any] = {}


def api_router() -> APIRouter:
    """Return all routes. They use the workspaces in the state of the application."""
    statuses = (400, 401, 404, 405, 409, 413, 415, 422)
    responses: dict[int | str, dict[str, Any]] = {status: {"model": Error} for status in statuses}
    router = APIRouter(prefix="/api", responses=responses, dependencies=[Depends(check_owner)])
    router.include_router(routes)
    router.include_router(project_routes.routes)
    router.include_router(file_routes.routes)
    router.include_router(api.routes)
    return router


# Workspaces and jobs.


class WorkspaceAnswer(BaseModel):
    """The name of a workspace."""

    workspace: str


class StateAnswer(BaseModel):
    """The state of a workspace."""

    table: str | None
    records: int | None
    notes: Annotated[
        list[str], Field(description="How the table was read, for example that it is not UTF-8.")
    ]
    steps: list[StepAnswer]
    jobs: list[JobAnswer]
    node: dict[str, int] | None
    files: list[str]
    expires_after: Annotated[
        float, Field(description="Seconds without use after which the workspace and its files are deleted.")
    ]


@routes.post("/workspaces", status_code=201, response_model=WorkspaceAnswer)
def open_workspace(workspaces: AllWorkspaces, user: User) -> Any:
    """Open a workspace, as a browser tab does."""
    return {"workspace": workspaces.open(user)}


@routes.get("/workspaces/{workspace_id}", response_model=StateAnswer)
def state(workspace_id: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces) -> Any:
    """Return the state of a workspace: its table, steps, jobs, node and files."""
    inspection = workspace.table.inspection
    return {
        "table": workspace.table.name,
        "records": inspection.records if inspection else None,
        "notes": list(inspection.read_notes) if inspection else [],
        "steps": workspace.steps(),
        "jobs": workspaces.jobs.of(workspace_id),
        "node": workspace.negotiation.node,
        "files": list(workspace.release.files()),
        "expires_after": workspaces.keep_seconds,
    }


@routes.delete("/workspaces/{workspace_id}", status_code=204)
def delete_workspace(workspace_id: str, workspaces: AllWorkspaces) -> None:
    """Delete a workspace and all its files at once."""
    workspaces.delete(workspace_id)


Wait = Annotated[float, Query(ge=0, le=30, description="Seconds to wait for the job's end, at most 30.")]


@routes.get("/workspaces/{workspace_id}/jobs/{job}", response_model=JobAnswer)
async def job_status(
    workspace_id: str, job: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces, wait: Wait = 0.0
) -> Any:
    """Return the progress of a job. `wait` is the number of seconds to wait for its end, at most 30."""
    current = workspaces.jobs.job(workspace_id, job)
    deadline = time.monotonic() + wait
    while not current.ended and time.monotonic() < deadline:
        await asyncio.sleep(_POLL)  # waiting in a thread would block the thread for other users
    return current


@routes.delete("/workspaces/{workspace_id}/jobs/{job}", response_model=JobAnswer)
def cancel_job(workspace_id: str, job: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces) -> Any:
    """Cancel a job."""
    current = workspaces.jobs.job(workspace_id, job)
    current.cancel()
    return current


@routes.get("/catalogue")
def list_plugins() -> dict[str, dict[str, str]]:
    """List the models, metrics, algorithms, engines and hierarchy builders."""
    return catalogue()


@routes.get("/sources")
def list_sources(workspaces: AllWorkspaces, user: User) -> list[SourceAnswer]:
    """List the tables in databases that the user may open."""
    return workspaces.sources.of(user)


@routes.get("/files")
def list_files(workspaces: AllWorkspaces) -> list[FileAnswer]:
    """List the tables below the given folder."""
    return workspaces.data_folder.tables()


@routes.get("/presets")
def list_presets() -> list[PresetAnswer]:
    """List the published rules that a policy can follow."""
    return presets()


class SharedAnswer(BaseModel):
    """The address of a read-only page."""

    path: str
    expires_after: Annotated[float, Field(description="Seconds until the page expires, at the latest.")]


@routes.post("/workspaces/{workspace_id}/shared", status_code=201, response_model=SharedAnswer)
def share_scenarios(workspace_id: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces) -> Any:
    """Write the scenarios as a page that anyone with its address can read without signing in."""
    token = workspaces.shared_pages.share(workspace_id, shared_page(workspace.scenarios.pinned))
    return {"path": f"{SHARED}{token}", "expires_after": SHARED_SECONDS}


@routes.delete("/workspaces/{workspace_id}/shared", status_code=204)
def revoke_shared(workspace_id: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces) -> None:
    """Remove all read-only pages of the workspace at once."""
    workspaces.shared_pages.revoke(workspace_id)
