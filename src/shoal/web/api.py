"""The JSON twin: every action of a desk under /api, for programs and for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import unquote

import anyio.to_thread
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import FileResponse, Response, StreamingResponse
from starlette.requests import ClientDisconnect

from shoal.catalogue import catalogue
from shoal.web import answers as a
from shoal.web import views
from shoal.web.columns import Progress
from shoal.web.desk import Desk
from shoal.web.desks import Desks
from shoal.web.downloads import is_text_table, media_type, safe_lines
from shoal.web.jobs import Job, Work
from shoal.web.refusals import NotReady, Refused

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": a.Error} for status in (400, 401, 404, 405, 409, 413, 415, 422)
}
_UPLOAD = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}}}


def desk_of(desk: str, request: Request) -> Desk:
    """Return the desk that a path names."""
    desks: Desks = request.app.state.desks
    return desks.desk(desk)


Own = Annotated[Desk, Depends(desk_of)]


def router_of(desks: Desks) -> APIRouter:
    """Return the routes over some desks."""
    api = APIRouter(prefix="/api", responses=_ERRORS)

    def begun(name: str, kind: str, work: Work) -> dict[str, Any]:
        return desks.start(name, kind, work).to_dict()

    # Desks and jobs.

    @api.post("/desks", status_code=201, response_model=a.DeskAnswer)
    def open_desk() -> Any:
        """Set up a desk, as a browser tab does."""
        return {"desk": desks.open()}

    @api.get("/desks/{desk}", response_model=a.StateAnswer)
    def state(desk: str, own: Own) -> Any:
        """Tell where a desk stands: its table, steps, jobs, node and files."""
        return {
            "table": own.name,
            "records": own.inspection.records if own.inspection else None,
            "steps": [asdict(step) for step in own.steps()],
            "jobs": [job.to_dict() for job in desks.jobs.of(desk)],
            "node": own.node,
            "files": list(own.files()),
        }

    @api.delete("/desks/{desk}", status_code=204)
    def leave_desk(desk: str, own: Own) -> None:
        """Clear a desk away with all its files."""
        desks.leave(desk)

    @api.get("/desks/{desk}/jobs/{job}", response_model=a.JobAnswer)
    def job_status(desk: str, job: str, own: Own, wait: Annotated[float, Query(ge=0, le=30)] = 0.0) -> Any:
        """Tell how far a job is; `wait` waits so many seconds for its end."""
        found: Job = desks.jobs.job(desk, job)
        found.wait(wait)
        return found.to_dict()

    @api.delete("/desks/{desk}/jobs/{job}", response_model=a.JobAnswer)
    def cancel_job(desk: str, job: str, own: Own) -> Any:
        """Ask a job to stop."""
        found = desks.jobs.job(desk, job)
        found.cancel()
        return found.to_dict()

    @api.get("/catalogue")
    def list_plugins() -> dict[str, dict[str, str]]:
        """List the models, metrics, algorithms, engines and hierarchy builders."""
        return catalogue()

    # Step 1: the table, roles, hierarchies, wishes.

    @api.get("/files", response_model=list[a.FileAnswer])
    def list_files() -> Any:
        """List the tables below the given folder."""
        return [asdict(file) for file in desks.tables()]

    @api.post("/desks/{desk}/table", status_code=202, response_model=a.JobAnswer)
    def choose_table(desk: str, own: Own, asked: a.TableRequest) -> Any:
        """Choose the sample, the table given with the command, or a file below the given folder."""
        if asked.source == "sample":
            return begun(desk, "open", own.open_sample)
        if asked.source == "given":
            if desks.data is None:
                message = "No table was given with the command."
                raise Refused(message, "source")
            return begun(desk, "open", lambda tell: desks.begin(desk, tell))
        path = desks.below(asked.name or "")
        return begun(desk, "open", lambda tell: desks.place(desk, path, path.name, tell))

    @api.post("/desks/{desk}/upload", status_code=202, response_model=a.JobAnswer, openapi_extra=_UPLOAD)
    async def upload_table(
        desk: str, request: Request, x_file_name: Annotated[str, Header(max_length=1000)] = "table.csv"
    ) -> Any:
        """Upload a table: its bytes as the body, its name (percent-encoded) in the header X-File-Name."""
        upload = desks.receive(desk, unquote(x_file_name, errors="replace"))
        try:
            with upload:
                async for piece in _pieces(request):
                    await anyio.to_thread.run_sync(upload.write, piece)
        except ClientDisconnect:
            message = "The upload was not finished."
            raise Refused(message, "file") from None
        return begun(desk, "open", lambda tell: desks.place(desk, upload.path, upload.name, tell))

    @api.get("/desks/{desk}/columns", response_model=list[a.ColumnAnswer])
    def list_columns(own: Own) -> Any:
        """Return the column table."""
        return [row.to_dict() for row in own.columns()]

    @api.put("/desks/{desk}/role", response_model=list[a.ColumnAnswer])
    def choose_role(own: Own, asked: a.RoleRequest) -> Any:
        """Give a column another role."""
        own.choose_role(asked.column, asked.role)
        return [row.to_dict() for row in own.columns()]

    @api.post("/desks/{desk}/preview", response_model=a.PreviewAnswer)
    def preview_hierarchy(own: Own, asked: a.PreviewRequest) -> Any:
        """Try a hierarchy on a column's values without choosing it."""
        trial = own.preview(asked.column, asked.spec, values=asked.values)
        if trial.preview is None:
            return {"fits": False, "problem": trial.problem, "values": list(trial.values)}
        return _preview(trial.preview, tree=asked.tree)

    @api.put("/desks/{desk}/hierarchy", response_model=a.PreviewAnswer)
    def choose_hierarchy(own: Own, asked: a.HierarchyRequest) -> Any:
        """Choose a hierarchy; one that does not fit is refused."""
        return _preview(own.choose_hierarchy(asked.column, asked.spec))

    @api.put("/desks/{desk}/hierarchy-file", response_model=a.PreviewAnswer)
    def upload_hierarchy(own: Own, asked: a.HierarchyFileRequest) -> Any:
        """Choose a hierarchy that is a CSV file."""
        return _preview(own.upload_hierarchy(asked.column, asked.text.encode(), asked.name))

    @api.put("/desks/{desk}/settings")
    def choose_settings(own: Own, asked: a.SettingsRequest) -> dict[str, Any]:
        """Set levels, weight and form of a quasi-identifier; what is not named stays."""
        given = asked.model_dump(exclude_unset=True)
        column = given.pop("column")
        own.choose_settings(column, **given)
        return own.settings(column)

    @api.get("/desks/{desk}/wishes")
    def list_wishes(own: Own) -> dict[str, Any]:
        """Return the policy's entries besides its columns."""
        return own.wishes()

    @api.put("/desks/{desk}/wishes")
    def wish(own: Own, asked: a.WishesRequest) -> dict[str, Any]:
        """Change some of the policy's entries; all are taken, or none."""
        _ = own.opened
        own.wish(**asked.model_dump(exclude_unset=True))
        return own.wishes()

    @api.get("/desks/{desk}/policy", response_model=a.PolicyAnswer)
    def show_policy(own: Own) -> Any:
        """Return the policy that all this makes, or what is missing."""
        missing = own.missing()
        if missing:
            return {"yaml": None, "words": [], "missing": missing}
        return {"yaml": own.policy_text(), "words": own.words(), "missing": None}

    @api.put("/desks/{desk}/policy", response_model=a.PolicyAnswer)
    def adopt_policy(own: Own, asked: a.PolicyRequest) -> Any:
        """Take a whole policy."""
        own.adopt_yaml(asked.yaml)
        return show_policy(own)

    # Step 2: diagnose.

    @api.post("/desks/{desk}/diagnosis", status_code=202, response_model=a.JobAnswer)
    def diagnose(desk: str, own: Own, asked: a.DiagnosisRequest) -> Any:
        """Find the risk as it is, the smallest unsafe sets and the largest safe ones."""
        if not own.quasi_identifiers and asked.columns is None:
            message = "Give at least one column the role quasi-identifier."
            raise NotReady(message, "columns")
        return begun(desk, "diagnose", lambda tell: own.diagnose(**asked.model_dump(), progress=tell))

    @api.get("/desks/{desk}/diagnosis")
    def findings(own: Own) -> dict[str, Any]:
        """Return what was diagnosed."""
        return _there(own.findings, "Diagnose first.").to_dict()  # type: ignore[no-any-return]

    @api.post("/desks/{desk}/curve")
    def curve(own: Own, asked: a.CurveRequest) -> list[dict[str, Any]]:
        """Return what each k costs a set of the columns diagnosed."""
        return views.plain(own.curve(asked.columns, asked.most))

    @api.post("/desks/{desk}/risk", status_code=202, response_model=a.JobAnswer)
    def assess(desk: str, own: Own, asked: a.RiskRequest) -> Any:
        """Say how likely people are found, in the terms of regulators; with a release, before and after."""
        if not own.quasi_identifiers:
            message = "Give at least one column the role quasi-identifier."
            raise NotReady(message)
        return begun(desk, "risk", lambda tell: own.assess(**asked.model_dump(), progress=tell))

    @api.get("/desks/{desk}/risk")
    def risk(own: Own) -> dict[str, Any]:
        """Return what was assessed."""
        return _there(own.risk, "Assess first.").to_dict()  # type: ignore[no-any-return]

    # Step 3: negotiate.

    @api.post("/desks/{desk}/profile", status_code=202, response_model=a.JobAnswer)
    def tabulate(desk: str, own: Own, asked: a.ProfileRequest) -> Any:
        """Tabulate the lattice, which answers all requests at once."""
        own.policy()
        return begun(desk, "profile", lambda tell: own.tabulate(**asked.model_dump(), progress=tell))

    @api.get("/desks/{desk}/profile")
    def profile(own: Own) -> dict[str, Any]:
        """Return what is tabulated."""
        found = own.tabulated
        wish = found.wish
        return {
            "columns": dict(zip(found.lattice.columns, found.lattice.heights, strict=True)),
            "records": found.records,
            "combinations": found.combinations,
            "nodes": len(found.numbers),
            "lattice_size": found.lattice.size,
            "sensitive": list(found.sensitive),
            "metrics": list(found.losses),
            "wish": {wish.model: wish.least, "limit": wish.limit, "max_level": dict(wish.max_level)},
        }

    @api.post("/desks/{desk}/negotiation")
    def negotiate(own: Own, asked: a.NegotiationRequest) -> dict[str, Any]:
        """Answer a request, or suggest what would do."""
        return own.negotiate(**asked.model_dump()).to_dict()

    @api.post("/desks/{desk}/take")
    def take(own: Own, asked: a.TakeRequest) -> dict[str, Any]:
        """Take an offer of the last answer: its k or l, its limit, its levels and its node."""
        return {"node": own.take(own.offer(asked.kind, asked.column)), "wishes": own.wishes()}

    @api.put("/desks/{desk}/node")
    def choose_node(own: Own, asked: a.NodeRequest) -> dict[str, Any]:
        """Choose the node to release at."""
        own.choose_node(asked.node)
        return {"node": own.node}

    @api.post("/desks/{desk}/lattice")
    def lattice(own: Own, asked: a.LatticeRequest) -> dict[str, Any]:
        """Return the lattice as points; where they are too many, each stands for a run of its height."""
        least, about = own.strength(asked.k, asked.l, asked.sensitive)
        return views.lattice_view(own.tabulated, least, about, asked.most).to_dict()

    @api.post("/desks/{desk}/heights")
    def heights(own: Own, asked: a.StrengthRequest) -> list[dict[str, Any]]:
        """Return the least and the mean that nodes of each height suppress."""
        return views.plain(views.by_height(own.tabulated, *own.strength(asked.k, asked.l, asked.sensitive)))

    @api.post("/desks/{desk}/loss")
    def loss(own: Own, asked: a.LossRequest) -> dict[str, Any]:
        """Return what each column loses at a node."""
        return views.loss_by_column(own.tabulated, asked.node, asked.metric)

    @api.post("/desks/{desk}/examples")
    def examples(own: Own, asked: a.ExamplesRequest) -> list[dict[str, Any]]:
        """Return some records as they are and as they would be at a node."""
        least, about = own.strength(asked.k, asked.l, asked.sensitive)
        return views.plain(views.examples(own.tabulated, asked.node, least, about, asked.number))

    # Steps 4 and 5: compare, release.

    @api.post("/desks/{desk}/comparison", status_code=202, response_model=a.JobAnswer)
    def compare(desk: str, own: Own, asked: a.ComparisonRequest) -> Any:
        """Compare algorithms on this table."""
        own.policy()

        def work(tell: Progress) -> Any:
            return own.compare(**asked.model_dump(), progress=tell)

        return begun(desk, "compare", work)

    @api.get("/desks/{desk}/comparison")
    def comparison(own: Own) -> list[dict[str, Any]]:
        """Return the rows of the last comparison."""
        return _there(own.comparison, "Compare first.").to_dicts()  # type: ignore[no-any-return]

    @api.post("/desks/{desk}/release", status_code=202, response_model=a.JobAnswer)
    def release(desk: str, own: Own, asked: a.ReleaseRequest) -> Any:
        """Release: search, recode, count afresh."""
        own.policy()
        return begun(desk, "release", lambda tell: own.release(**asked.model_dump(), progress=tell))

    @api.get("/desks/{desk}/release")
    def released(own: Own) -> dict[str, Any]:
        """Return what was released, its verification and the files to download."""
        found = _there(own.released, "Release first.")
        paths = ("output", "recipe", "codebook", "report")  # of the server: downloads have names of their own
        told = {name: value for name, value in found.to_dict().items() if name not in paths}
        return told | {"verification": found.verification.to_dict(), "files": list(own.files())}

    @api.get("/desks/{desk}/files/{file}", response_class=Response)
    def download(own: Own, file: str, safe: bool = False) -> Response:
        """Download a file of the release.

        With `safe`, cells of a CSV that begin with =, +, -, @, a tab or a carriage return get an
        apostrophe in front, so that a spreadsheet does not run them. That file is for reading, not for
        `shoal verify`: negative numbers become text.
        """
        path = own.file(file)
        if not safe or not is_text_table(path):
            return FileResponse(path, media_type=media_type(path), filename=path.name)
        named = {"content-disposition": f'attachment; filename="safe-{path.name}"'}
        return StreamingResponse(safe_lines(path), media_type=media_type(path), headers=named)

    return api


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


def _there(found: Any, message: str) -> Any:
    if found is None:
        raise NotReady(message)
    return found
