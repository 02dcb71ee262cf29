"""Routes of step 3: the profile, requests to it, the node, and views of the lattice."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from shoal.web import views
from shoal.web.answers import JobAnswer
from shoal.web.api_parts import Begin, Own
from shoal.web.requests import (
    ExamplesRequest,
    LatticeRequest,
    LossRequest,
    NegotiationRequest,
    NodeRequest,
    ProfileRequest,
    StrengthRequest,
    TakeRequest,
)

routes = APIRouter()


@routes.post("/desks/{desk}/profile", status_code=202, response_model=JobAnswer)
def tabulate(own: Own, begin: Begin, asked: ProfileRequest) -> Any:
    """Tabulate the lattice, which answers all requests at once."""
    own.policy()
    return begin("profile", lambda tell: own.tabulate(**asked.model_dump(), progress=tell))


@routes.get("/desks/{desk}/profile")
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


@routes.post("/desks/{desk}/negotiation")
def negotiate(own: Own, asked: NegotiationRequest) -> dict[str, Any]:
    """Answer a request, or suggest what would do."""
    return own.negotiate(**asked.model_dump()).to_dict()


@routes.post("/desks/{desk}/take")
def take(own: Own, asked: TakeRequest) -> dict[str, Any]:
    """Take an offer of the last answer: its k or l, its limit, its levels and its node."""
    return {"node": own.take(own.offer(asked.kind, asked.column)), "wishes": own.wishes()}


@routes.put("/desks/{desk}/node")
def choose_node(own: Own, asked: NodeRequest) -> dict[str, Any]:
    """Choose the node to release at."""
    own.choose_node(asked.node)
    return {"node": own.node}


@routes.post("/desks/{desk}/lattice")
def lattice(own: Own, asked: LatticeRequest) -> dict[str, Any]:
    """Return the lattice as points; where they are too many, each stands for a run of its height."""
    least, about = own.strength(asked.k, asked.l, asked.sensitive)
    return views.lattice_view(own.tabulated, least, about, asked.most).to_dict()


@routes.post("/desks/{desk}/heights")
def heights(own: Own, asked: StrengthRequest) -> list[dict[str, Any]]:
    """Return the least and the mean that nodes of each height suppress."""
    return views.plain(views.by_height(own.tabulated, *own.strength(asked.k, asked.l, asked.sensitive)))


@routes.post("/desks/{desk}/loss")
def loss(own: Own, asked: LossRequest) -> dict[str, Any]:
    """Return what each column loses at a node."""
    return views.loss_by_column(own.tabulated, asked.node, asked.metric)


@routes.post("/desks/{desk}/examples")
def examples(own: Own, asked: ExamplesRequest) -> list[dict[str, Any]]:
    """Return some records as they are and as they would be at a node."""
    least, about = own.strength(asked.k, asked.l, asked.sensitive)
    return views.plain(views.examples(own.tabulated, asked.node, least, about, asked.number))
