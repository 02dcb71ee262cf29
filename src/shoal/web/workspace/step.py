"""A step of the workflow. Its result is valid until the state that it was computed from changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from shoal.core.progress import Progress
from shoal.web.errors import NotReady
from shoal.web.workspace.draft import CachedResult, PolicyDraft, raise_if_cancelled
from shoal.web.workspace.jobs import JobWork

T = TypeVar("T")


class Step(ABC, Generic[T]):
    """A step. The signature of its `run` defines the API request that starts the step."""

    missing_result: str  # the message if there is no result: what to do first

    def __init__(self, draft: PolicyDraft) -> None:
        self.draft = draft
        self._result: CachedResult[T] = CachedResult()

    def key(self) -> object:
        """Return the key of the state that the result depends on."""
        return self.draft.policy_key()

    def check(self, *_arguments: Any, **_request: Any) -> None:
        """Raise an error if the step cannot run. By default, a step needs a policy."""
        self.draft.policy()

    @abstractmethod
    def run(self, *arguments: Any, **request: Any) -> Any:
        """Compute the result and store it."""

    def job(self, **request: Any) -> JobWork:
        """Check a request and return the work of its job."""
        self.check(**request)
        return lambda progress: self.run(**request, progress=progress)

    @property
    def result(self) -> T | None:
        """The last result; None if the state that it depends on has changed."""
        return self._result.get(self.key())

    @property
    def required_result(self) -> T:
        """The result. Raises NotReady if there is none."""
        result = self.result
        if result is None:
            raise NotReady(self.missing_result)
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the last result."""
        values: dict[str, Any] = self.required_result.to_dict()  # type: ignore[attr-defined]
        return values

    def _store(self, key: object, result: T, progress: Progress | None) -> T:
        """Store a result, unless its job was cancelled."""
        raise_if_cancelled(progress)
        self._result = CachedResult(key, result)
        return result
