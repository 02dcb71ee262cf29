"""Routes of steps 4 and 5: the comparison, the release and its files."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response, StreamingResponse

from shoal.spreadsheet import Sheet, is_text_table, lines_of
from shoal.web.answers import JobAnswer
from shoal.web.api_parts import Begin, Own, there
from shoal.web.downloads import media_type
from shoal.web.requests import ComparisonRequest, ReleaseRequest

routes = APIRouter()


@routes.post("/desks/{desk}/comparison", status_code=202, response_model=JobAnswer)
def compare(own: Own, begin: Begin, asked: ComparisonRequest) -> Any:
    """Compare algorithms on this table."""
    own.policy()
    return begin("compare", lambda tell: own.compare(**asked.model_dump(), progress=tell))


@routes.get("/desks/{desk}/comparison")
def comparison(own: Own) -> list[dict[str, Any]]:
    """Return the rows of the last comparison."""
    return there(own.comparison, "Compare first.").to_dicts()  # type: ignore[no-any-return]


@routes.post("/desks/{desk}/release", status_code=202, response_model=JobAnswer)
def release(own: Own, begin: Begin, asked: ReleaseRequest) -> Any:
    """Release: search, recode, count afresh."""
    own.policy()
    return begin("release", lambda tell: own.release(**asked.model_dump(), progress=tell))


@routes.get("/desks/{desk}/release")
def released(own: Own) -> dict[str, Any]:
    """Return what was released, its verification and the files to download.

    `notes` holds what to look at again; `outliers`, after `mu-argus`, the sets of columns that are rare
    together, by numbers, and is null after other algorithms.
    """
    found = there(own.released, "Release first.")
    paths = ("output", "recipe", "codebook", "report")  # of the server: downloads have names of their own
    told = {name: value for name, value in found.to_dict().items() if name not in paths}
    return told | {"verification": found.verification.to_dict(), "files": list(own.files())}


@routes.get("/desks/{desk}/files/{file}", response_class=Response)
def download(own: Own, file: str, safe: bool = False, semicolons: bool = False) -> Response:
    """Download a file of the release.

    With `safe`, cells of a CSV that begin with =, +, -, @, a tab or a carriage return get an
    apostrophe in front, so that a spreadsheet does not run them. Negative numbers become text. With
    `semicolons`, these part the values of a CSV, and it begins with a byte order mark, as Excel in much of
    Europe expects.
    """
    path = own.file(file)
    semicolons = semicolons and path.suffix == ".csv"
    if not (safe or semicolons) or not is_text_table(path):
        return FileResponse(path, media_type=media_type(path), filename=path.name)
    sheet = Sheet(safe, ";" if semicolons else None, semicolons)
    name = f"safe-{path.name}" if safe else path.name
    named = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(lines_of(path, sheet), media_type=media_type(path), headers=named)
