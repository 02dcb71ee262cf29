"""Actions: functions and steps whose signature defines a route of the API.

The parameters of an action become the fields of its request. The route, the request model, the OpenAPI entry
and the messages about invalid requests are generated from their names, types and defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from fastapi import APIRouter, Depends, Request
from fastapi.params import Depends as Dependency
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from shoal.web.fields import describe
from shoal.web.server.sessions import SINGLE_USER, USER
from shoal.web.workspace.jobs import Job, JobWork, Status
from shoal.web.workspace.step import Step
from shoal.web.workspace.workspace import Workspace
from shoal.web.workspace.workspaces import Workspaces

F = TypeVar("F", bound=Callable[..., Any])


# Parameters that do not come from the body of the request.


async def _workspaces(request: Request) -> Workspaces:
    workspaces: Workspaces = request.app.state.workspaces
    return workspaces


async def _user(request: Request) -> str:
    return str(request.scope.get(USER, SINGLE_USER))


def _workspace(workspace_id: str, workspaces: AllWorkspaces) -> Workspace:
    return workspaces.get(workspace_id)


async def check_owner(request: Request) -> None:
    """Reject every request about a workspace of another user."""
    if (workspace_id := request.path_params.get("workspace_id")) is not None:
        (await _workspaces(request)).check_owner(workspace_id, await _user(request))


AllWorkspaces = Annotated[Workspaces, Depends(_workspaces)]
CurrentWorkspace = Annotated[Workspace, Depends(_workspace)]
User = Annotated[str, Depends(_user)]


class JobAnswer(BaseModel):
    """The progress of a job."""

    id: str
    kind: str
    status: Status
    phase: str
    done: int
    total: int | None
    error: str | None
    field: str | None
    nearest: dict[str, Any]
    seconds: float


class Actions:
    """The registered actions and their routes below /workspaces/{workspace_id}."""

    def __init__(self) -> None:
        self.routes = APIRouter()
        self._requests: dict[str, type[BaseModel]] = {}  # by function name
        self._jobs: dict[str, Callable[..., JobWork]] = {}  # by path

    def __call__(self, method: str, path: str, *, job: str | None = None) -> Callable[[F], F]:
        """Register a function as a route.

        With `job`, the function validates the request and returns a callable. A job of this kind calls it.
        """

        def register(function: F) -> F:
            fields, parameters = _parameters(function, has_body=method in ("POST", "PUT"))
            if job:
                self._jobs[path] = function
            self._add(method, path, function, fields, parameters, job)
            return function

        return register

    def step(self, path: str, name: str, step: type[Step[Any]]) -> None:
        """Register the routes of a step of a workspace: POST starts its job, and GET returns its result.

        `name` is the attribute of the workspace that holds the step. It is also the kind of the job.
        """

        def begin(workspace: Workspace, **request: Any) -> JobWork:
            return _step(workspace, name).job(**request)

        def result(workspace: Workspace) -> Any:
            return _step(workspace, name).to_dict()

        begin.__name__, begin.__doc__ = f"run_{name}", inspect.getdoc(step.run)
        result.__name__, result.__doc__ = f"{name}_result", inspect.getdoc(step.to_dict)
        result.__annotations__["return"] = get_type_hints(step.to_dict)["return"]
        fields, _ = _parameters(step.run, has_body=True, omitted=("self", "progress"))
        parameters = {"workspace": CurrentWorkspace}
        self._jobs[path] = begin
        self._add("POST", path, begin, fields, parameters, name)
        self._add("GET", path, result, {}, parameters, None)

    def _add(
        self,
        method: str,
        path: str,
        function: Callable[..., Any],
        fields: Mapping[str, Any],
        parameters: Mapping[str, Any],
        job: str | None,
    ) -> None:
        model = None
        if method in ("POST", "PUT"):
            title = "".join(part.capitalize() for part in path.split("-")) + "Request"
            model = create_model(title, __config__=ConfigDict(extra="forbid"), **fields)
            self._requests[function.__name__] = model
        self.routes.add_api_route(
            f"/workspaces/{{workspace_id}}/{path}",
            _endpoint(function, parameters, model, job),
            methods=[method],
            status_code=202 if job else 200,
            response_model=JobAnswer if job else get_type_hints(function)["return"],
        )

    def fields(self, name: str) -> Collection[str]:
        """Return the names of the request fields of an action."""
        return self._requests[name].model_fields if name in self._requests else ()

    def form_errors(self, function: Callable[..., Any], **values: Any) -> dict[str, str]:
        """Validate the values of a form like an API request. Return a message for each invalid field."""
        try:
            self._requests[function.__name__].model_validate(values)
        except ValidationError as error:
            messages = [describe([{**item, "loc": ("body", *item["loc"])}], ()) for item in error.errors()]
            return {field: message for message, field in reversed(messages) if field}
        return {}

    def job(self, path: str) -> Callable[..., JobWork]:
        """Return the function of a path. It validates a request and returns the work of the job."""
        return self._jobs[path]


action = Actions()


def _step(workspace: Workspace, name: str) -> Step[Any]:
    step: Step[Any] = getattr(workspace, name)
    return step


def _parameters(
    function: Callable[..., Any], *, has_body: bool, omitted: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of the body with their defaults, and the types of the other parameters."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in omitted:
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:  # **settings: Unpack[SomeTypedDict]
            (entries,) = get_args(hints[name])
            fields |= {
                key: (hint, None) for key, hint in get_type_hints(entries, include_extras=True).items()
            }
        elif (
            not has_body
            or name == "workspace_id"
            or any(isinstance(part, Dependency) for part in get_args(hints[name]))
        ):
            others[name] = hints[name]
        else:
            fields[name] = (hints[name], ... if parameter.default is parameter.empty else parameter.default)
    return fields, others


def _endpoint(
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    model: type[BaseModel] | None,
    job: str | None,
) -> Callable[..., Any]:
    """Return the function that FastAPI calls."""
    signature = {"workspace_id": str, **parameters}
    if model is not None:
        signature["body"] = model
    if job:
        signature["workspaces"] = AllWorkspaces

    def endpoint(**arguments: Any) -> Any:
        body = arguments.pop("body", None)
        fields = {name: value for name, value in arguments.items() if name in parameters}
        if body is not None:
            fields |= {name: getattr(body, name) for name in body.model_fields_set}
        result = function(**fields)
        return _start(arguments, job, result) if job else result

    endpoint.__name__, endpoint.__doc__ = function.__name__, function.__doc__
    keyword = inspect.Parameter.KEYWORD_ONLY
    endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword, annotation=kind) for name, kind in signature.items()]
    )
    return endpoint


def _start(arguments: Mapping[str, Any], kind: str, work: JobWork) -> Job:
    workspaces: Workspaces = arguments["workspaces"]
    return workspaces.start(arguments["workspace_id"], kind, work)
