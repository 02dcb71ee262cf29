"""The JSON twin: every action of a desk under /api, for programs and for tests; a file for each step."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from shoal.web import api_data, api_desks, api_diagnose, api_negotiate, api_release
from shoal.web.answers import Error

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error} for status in (400, 401, 404, 405, 409, 413, 415, 422)
}


def router() -> APIRouter:
    """Return all routes; they work on the desks in the application's state."""
    api = APIRouter(prefix="/api", responses=_ERRORS)
    for step in (api_desks, api_data, api_diagnose, api_negotiate, api_release):
        api.include_router(step.routes)
    return api
