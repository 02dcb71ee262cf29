"""Routes of step 1: the table, roles, hierarchies, wishes, and the policy that they make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import unquote

import anyio.to_thread
from fastapi import APIRouter, Header, Request
from starlette.requests import ClientDisconnect

from shoal.web.answers import ColumnAnswer, FileAnswer, JobAnswer, PolicyAnswer, PresetAnswer, PreviewAnswer
from shoal.web.api_parts import All, Begin, Own
from shoal.web.plan import published
from shoal.web.refusals import Refused
from shoal.web.requests import (
    HierarchyFileRequest,
    HierarchyRequest,
    PolicyRequest,
    PresetRequest,
    PreviewRequest,
    RoleRequest,
    SettingsRequest,
    TableRequest,
    WishesRequest,
)

routes = APIRouter()
_UPLOAD = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}}}


@routes.get("/files", response_model=list[FileAnswer])
def list_files(desks: All) -> Any:
    """List the tables below the given folder."""
    return desks.tables()


@routes.post("/desks/{desk}/table", status_code=202, response_model=JobAnswer)
def choose_table(desk: str, own: Own, desks: All, begin: Begin, asked: TableRequest) -> Any:
    """Choose the sample, the table given with the command, or a file below the given folder."""
    if asked.source == "sample":
        return begin("open", own.open_sample)
    if asked.source == "given":
        if desks.data is None:
            message = "No table was given with the command. Upload one, or take the sample."
            raise Refused(message, "source")
        return begin("open", lambda tell: desks.begin(desk, tell))
    path = desks.below(asked.name or "")
    return begin("open", lambda tell: desks.place(desk, path, path.name, tell))


@routes.post("/desks/{desk}/upload", status_code=202, response_model=JobAnswer, openapi_extra=_UPLOAD)
async def upload_table(
    desk: str,
    request: Request,
    desks: All,
    begin: Begin,
    x_file_name: Annotated[str, Header(max_length=1000)] = "table.csv",
) -> Any:
    """Upload a table: its bytes as the body, its name (percent-encoded) in the header X-File-Name."""
    upload = desks.receive(desk, unquote(x_file_name, errors="replace"))
    try:
        with upload:
            async for piece in _pieces(request):
                await anyio.to_thread.run_sync(upload.write, piece)
    except ClientDisconnect:
        message = "The upload was not finished. Send it again."
        raise Refused(message, "file") from None
    return begin("open", lambda tell: desks.place(desk, upload.path, upload.name, tell))


@routes.get("/desks/{desk}/columns", response_model=list[ColumnAnswer])
def list_columns(own: Own) -> Any:
    """Return the column table."""
    return own.columns()


@routes.put("/desks/{desk}/role", response_model=list[ColumnAnswer])
def choose_role(own: Own, asked: RoleRequest) -> Any:
    """Give a column another role."""
    own.choose_role(asked.column, asked.role)
    return own.columns()


@routes.post("/desks/{desk}/preview", response_model=PreviewAnswer)
def preview_hierarchy(own: Own, asked: PreviewRequest) -> Any:
    """Try a hierarchy on a column's values without choosing it."""
    trial = own.preview(asked.column, asked.spec, values=asked.values)
    if trial.preview is None:
        return {"fits": False, "problem": trial.problem, "values": list(trial.values)}
    return _preview(trial.preview, tree=asked.tree)


@routes.put("/desks/{desk}/hierarchy", response_model=PreviewAnswer)
def choose_hierarchy(own: Own, asked: HierarchyRequest) -> Any:
    """Choose a hierarchy; one that does not fit is refused."""
    return _preview(own.choose_hierarchy(asked.column, asked.spec))


@routes.put("/desks/{desk}/hierarchy-file", response_model=PreviewAnswer)
def upload_hierarchy(own: Own, asked: HierarchyFileRequest) -> Any:
    """Choose a hierarchy that is a CSV file."""
    return _preview(own.upload_hierarchy(asked.column, asked.text.encode(), asked.name))


@routes.put("/desks/{desk}/settings")
def choose_settings(own: Own, asked: SettingsRequest) -> dict[str, Any]:
    """Set levels, weight and form of a quasi-identifier; what is not named stays."""
    given = asked.model_dump(exclude_unset=True)
    column = given.pop("column")
    own.choose_settings(column, **given)
    return own.settings(column)


@routes.get("/desks/{desk}/wishes")
def list_wishes(own: Own) -> dict[str, Any]:
    """Return the policy's entries besides its columns."""
    return own.wishes()


@routes.put("/desks/{desk}/wishes")
def wish(own: Own, asked: WishesRequest) -> dict[str, Any]:
    """Change some of the policy's entries; all are taken, or none."""
    _ = own.opened
    own.wish(**asked.model_dump(exclude_unset=True))
    return own.wishes()


@routes.get("/desks/{desk}/policy", response_model=PolicyAnswer)
def show_policy(own: Own) -> Any:
    """Return the policy that all this makes, or what is missing."""
    missing = own.missing()
    if missing:
        return {"yaml": None, "words": [], "missing": missing}
    return {"yaml": own.policy_text(), "words": own.words(), "missing": None}


@routes.put("/desks/{desk}/policy", response_model=PolicyAnswer)
def adopt_policy(own: Own, asked: PolicyRequest) -> Any:
    """Take a whole policy."""
    own.adopt_yaml(asked.yaml)
    return show_policy(own)


@routes.get("/presets", response_model=list[PresetAnswer])
def list_presets() -> Any:
    """List the published rules that a policy can follow."""
    return published()


@routes.put("/desks/{desk}/preset", response_model=PolicyAnswer)
def follow_preset(own: Own, asked: PresetRequest) -> Any:
    """Take the policy that a published rule makes of the columns, in place of all that was said before."""
    own.follow(asked.preset)
    return show_policy(own)


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    async for piece in request.stream():
        if piece:
            yield piece


def _preview(found: Any, *, tree: bool = False) -> dict[str, Any]:
    return {
        "fits": True,
        "builder": found.builder,
        "groups": list(found.groups),
        "examples": [list(row) for row in found.examples],
        "tree": found.tree() if tree else None,
    }
