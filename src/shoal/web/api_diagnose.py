"""Routes of step 2: the diagnosis, and risk in the terms of regulators."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from shoal.web import views
from shoal.web.answers import JobAnswer
from shoal.web.api_parts import Begin, Own, there
from shoal.web.requests import CurveRequest, DiagnosisRequest, RiskRequest

routes = APIRouter()


@routes.post("/desks/{desk}/diagnosis", status_code=202, response_model=JobAnswer)
def diagnose(own: Own, begin: Begin, asked: DiagnosisRequest) -> Any:
    """Find the risk as it is, the smallest unsafe sets and the largest safe ones."""
    if asked.columns is None:
        own.needed("columns")
    return begin("diagnose", lambda tell: own.diagnose(**asked.model_dump(), progress=tell))


@routes.get("/desks/{desk}/diagnosis")
def findings(own: Own) -> dict[str, Any]:
    """Return what was diagnosed."""
    return there(own.findings, "Diagnose first.").to_dict()  # type: ignore[no-any-return]


@routes.post("/desks/{desk}/curve")
def curve(own: Own, asked: CurveRequest) -> list[dict[str, Any]]:
    """Return what each k costs a set of the columns diagnosed."""
    return views.plain(own.curve(asked.columns, asked.most))


@routes.post("/desks/{desk}/risk", status_code=202, response_model=JobAnswer)
def assess(own: Own, begin: Begin, asked: RiskRequest) -> Any:
    """Say how likely people are found, in the terms of regulators; with a release, before and after."""
    own.needed()
    return begin("risk", lambda tell: own.assess(**asked.model_dump(), progress=tell))


@routes.get("/desks/{desk}/risk")
def risk(own: Own) -> dict[str, Any]:
    """Return what was assessed."""
    return there(own.risk, "Assess first.").to_dict()  # type: ignore[no-any-return]
