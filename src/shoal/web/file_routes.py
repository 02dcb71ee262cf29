"""The routes that receive and send files: tables, registers, recipes, releases, project files and logs."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

import anyio.to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import FileResponse, Response, StreamingResponse
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect

from shoal.engines.frames import WorkbookSheet
from shoal.web.actions import AllWorkspaces, CurrentWorkspace, JobAnswer
from shoal.web.errors import Refused
from shoal.web.fields import ShortText
from shoal.web.workspace.files import Upload
from shoal.web.workspace.release import Format
from shoal.web.workspace.uploads import apply_recipe, check_release, receive_recipe
from shoal.workflow.release.spreadsheet import Sheet, is_text_table, lines_of

_MEDIA_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".tsv": "text/tab-separated-values; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".yaml": "application/yaml",
}
routes = APIRouter()
_WORKSPACE = "/workspaces/{workspace_id}"
_UPLOAD: dict[str, Any] = {
    "status_code": 202,
    "response_model": JobAnswer,
    "openapi_extra": {
        "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}}
    },
}
FileName = Annotated[str, Header(max_length=1000)]  # percent-encoded


async def _receive(upload: Upload, request: Request) -> Upload:
    try:
        with upload:
            async for piece in request.stream():
                if piece:
                    await anyio.to_thread.run_sync(upload.write, piece)
    except ClientDisconnect:
        raise Refused("The upload was not finished. Send it again.", "file") from None
    return upload


def _decoded(name: str) -> str:
    return unquote(name, errors="replace")


@routes.post(f"{_WORKSPACE}/upload", **_UPLOAD)
async def upload_table(
    workspace_id: str,
    request: Request,
    workspaces: AllWorkspaces,
    x_file_name: FileName = "table.csv",
    sheet: Annotated[str | None, Query(max_length=1000)] = None,
    header_row: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Any:
    """Upload a table as the body. The header X-File-Name contains its name, percent-encoded.

    In a workbook, `sheet` is opened. Its row `header_row` contains the column names.
    """
    upload = await _receive(workspaces.receive_upload(workspace_id, _decoded(x_file_name)), request)
    chosen = WorkbookSheet(sheet, header_row) if sheet else None
    return workspaces.start(
        workspace_id,
        "open",
        lambda progress: workspaces.open_table(
            workspace_id, upload.path, upload.name, progress, sheet=chosen
        ),
    )


@routes.post(f"{_WORKSPACE}/attack", **_UPLOAD)
async def attack_release(
    workspace_id: str,
    request: Request,
    workspaces: AllWorkspaces,
    on: Annotated[list[ShortText], Query(min_length=1, max_length=1_000)],
    k: Annotated[int | None, Query(ge=1, le=10**9)] = None,
    reveal: bool = False,
    x_file_name: FileName = "register.csv",
) -> Any:
    """Attack the release with a register of persons, which is sent as the body and deleted after use.

    `on` names a known column: `age`, or `age=years` if the register calls it `years`. `reveal` lists up
    to 20 persons who are singled out, with what is learnt about them.
    """
    register = await _receive(workspaces.receive_register(workspace_id, _decoded(x_file_name)), request)
    return workspaces.start(
        workspace_id,
        "attack",
        lambda progress: workspaces.attack(workspace_id, register, on, progress, k=k, reveal=reveal),
    )


@routes.get(f"{_WORKSPACE}/attack")
def attack_result(workspace: CurrentWorkspace) -> dict[str, Any]:
    """Return the result of the last attack on the release."""
    return workspace.attack.to_dict()


@routes.post(f"{_WORKSPACE}/recipe", **_UPLOAD)
async def upload_recipe(
    workspace_id: str,
    request: Request,
    workspace: CurrentWorkspace,
    workspaces: AllWorkspaces,
    form: Format = "csv",
) -> Any:
    """Apply a recipe, sent as the body, to the open table. The result becomes the release."""
    _ = workspace.table.loaded
    upload = await _receive(receive_recipe(workspaces, workspace_id), request)
    return workspaces.start(
        workspace_id,
        "release",
        lambda progress: apply_recipe(workspaces, workspace_id, upload.path, form, progress),
    )


@routes.post(f"{_WORKSPACE}/check", **_UPLOAD)
async def upload_release(
    workspace_id: str,
    request: Request,
    workspace: CurrentWorkspace,
    workspaces: AllWorkspaces,
    x_file_name: FileName = "release.csv",
) -> Any:
    """Check a release, sent as the body, against the models of the policy. The file is deleted."""
    workspace.draft.policy()
    upload = await _receive(workspaces.receive_upload(workspace_id, _decoded(x_file_name)), request)
    return workspaces.start(
        workspace_id, "check", lambda progress: check_release(workspaces, workspace_id, upload, progress)
    )


@routes.get(f"{_WORKSPACE}/check")
def checked_release(workspace: CurrentWorkspace) -> dict[str, Any]:
    """Return which models the last checked release satisfies."""
    return workspace.check.to_dict()


@routes.post(f"{_WORKSPACE}/project-file", **_UPLOAD)
async def upload_project(
    workspace_id: str, request: Request, workspaces: AllWorkspaces, x_file_name: FileName = "project.shoal"
) -> Any:
    """Open a project file, sent as the body. If it contains no data, it is applied to the open table."""
    saving = workspaces.saving
    upload = await _receive(saving.receive_file(workspace_id, _decoded(x_file_name)), request)
    return workspaces.start(
        workspace_id, "open", lambda progress: saving.open_file(workspace_id, upload.path, progress)
    )


@routes.get(f"{_WORKSPACE}/project-file", response_class=Response)
async def download_project(
    workspace_id: str, workspace: CurrentWorkspace, workspaces: AllWorkspaces, table: bool = False
) -> Response:
    """Download policy, hierarchies, settings and history as one file. With `table`, add the data."""
    path = await anyio.to_thread.run_sync(
        lambda: workspaces.saving.write_file(workspace_id, with_table=table)
    )
    name = workspaces.saving.file_name(workspace_id)
    remove = BackgroundTask(path.unlink, missing_ok=True)
    return FileResponse(path, media_type="application/zip", filename=name, background=remove)


@routes.get(f"{_WORKSPACE}/negotiation-log", response_class=Response)
def negotiation_log(workspace: CurrentWorkspace) -> Response:
    """Download the log of the negotiation as CSV: requests, answers and choices, with levels in words."""
    headers = {"content-disposition": 'attachment; filename="negotiation-log.csv"'}
    return Response(workspace.negotiation.log.to_csv(), media_type=_MEDIA_TYPES[".csv"], headers=headers)


@routes.get(f"{_WORKSPACE}/files/{{file}}", response_class=Response)
def download(
    workspace: CurrentWorkspace, file: str, safe: bool = False, semicolons: bool = False
) -> Response:
    """Download a file of the release, or `affected-rows` after the question `rows`.

    With `safe`, cells of a CSV that begin with =, +, -, @, a tab or a carriage return get an
    apostrophe in front, so that a spreadsheet does not run them. Negative numbers become text. With
    `semicolons`, values are separated by semicolons, and the file begins with a byte order mark. Excel in
    much of Europe expects this.
    """
    path = workspace.file(file)
    media_type = _MEDIA_TYPES.get(path.suffix, "application/octet-stream")
    semicolons = semicolons and path.suffix == ".csv"
    if not (safe or semicolons) or not is_text_table(path):
        return FileResponse(path, media_type=media_type, filename=path.name)
    sheet = Sheet(safe, ";" if semicolons else None, semicolons)
    name = f"safe-{path.name}" if safe else path.name
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(lines_of(path, sheet), media_type=media_type, headers=headers)
