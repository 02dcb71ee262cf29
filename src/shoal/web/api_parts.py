"""What routes are given: all desks, the one that a path names, and a way to begin long work there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from shoal.web.desk import Desk
from shoal.web.desks import Desks
from shoal.web.jobs import Job, Work
from shoal.web.refusals import NotReady


async def desks_of(request: Request) -> Desks:
    """Return the desks of the application."""
    found: Desks = request.app.state.desks
    return found


All = Annotated[Desks, Depends(desks_of)]


def desk_of(desk: str, desks: All) -> Desk:
    """Return the desk that a path names."""
    return desks.desk(desk)


@dataclass(frozen=True)
class Beginner:
    """Begins long work on the desk that a path names."""

    desks: Desks
    desk: str

    def __call__(self, kind: str, work: Work) -> Job:
        """Begin the work."""
        return self.desks.start(self.desk, kind, work)


async def beginner_of(desk: str, desks: All) -> Beginner:
    """Return what begins work there."""
    return Beginner(desks, desk)


Own = Annotated[Desk, Depends(desk_of)]
Begin = Annotated[Beginner, Depends(beginner_of)]


def there(found: Any, message: str) -> Any:
    """Return what an earlier request found; refused where there is nothing."""
    if found is None:
        raise NotReady(message)
    return found
