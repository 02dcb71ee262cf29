"""Routes of desks and jobs, and the catalogue."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from shoal.catalogue import catalogue
from shoal.web.answers import DeskAnswer, JobAnswer, StateAnswer
from shoal.web.api_parts import All, Own

routes = APIRouter()
Wait = Annotated[float, Query(ge=0, le=30, description="Seconds to wait for the job's end, at most 30.")]


@routes.post("/desks", status_code=201, response_model=DeskAnswer)
def open_desk(desks: All) -> Any:
    """Set up a desk, as a browser tab does."""
    return {"desk": desks.open()}


@routes.get("/desks/{desk}", response_model=StateAnswer)
def state(desk: str, own: Own, desks: All) -> Any:
    """Tell where a desk stands: its table, steps, jobs, node and files."""
    return {
        "table": own.name,
        "records": own.inspection.records if own.inspection else None,
        "notes": list(own.inspection.read_notes) if own.inspection else [],
        "steps": own.steps(),
        "jobs": desks.jobs.of(desk),
        "node": own.node,
        "files": list(own.files()),
    }


@routes.delete("/desks/{desk}", status_code=204)
def leave_desk(desk: str, own: Own, desks: All) -> None:
    """Clear a desk away with all its files."""
    desks.leave(desk)


@routes.get("/desks/{desk}/jobs/{job}", response_model=JobAnswer)
def job_status(desk: str, job: str, own: Own, desks: All, wait: Wait = 0.0) -> Any:
    """Tell how far a job is; `wait` waits so many seconds for its end, at most 30."""
    found = desks.jobs.job(desk, job)
    found.wait(wait)
    return found


@routes.delete("/desks/{desk}/jobs/{job}", response_model=JobAnswer)
def cancel_job(desk: str, job: str, own: Own, desks: All) -> Any:
    """Ask a job to stop."""
    found = desks.jobs.job(desk, job)
    found.cancel()
    return found


@routes.get("/catalogue")
def list_plugins() -> dict[str, dict[str, str]]:
    """List the models, metrics, algorithms, engines and hierarchy builders."""
    return catalogue()
