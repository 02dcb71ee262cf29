"""Workspaces: how many a user has, when they expire, and what is left of one that is deleted."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
pytest.importorskip("uvicorn", reason="the studio needs shoal[web]")
from shoal.web.errors import NotReady, Unknown
from shoal.web.workspace import workspaces as home
from shoal.web.workspace.workspaces import IN_USE_SECONDS, WORKSPACES_PER_USER, Workspaces
from studio import Custodian, running

HOUR = 3600.0


class Clock:
    """A clock that is set by the test."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def workspaces(clock: Clock) -> Iterator[Workspaces]:
    created = Workspaces(clock=clock, keep_seconds=10 * HOUR, workspaces_per_user=4)
    yield created
    created.close()


def with_table(workspaces: Workspaces, owner: str) -> str:
    """Open a workspace with an uploaded table."""
    name = workspaces.open(owner)
    with workspaces.receive_upload(name, "people.csv") as upload:
        upload.write(b"age,town\n" + b"34,Bern\n" * 9)
    workspaces.open_table(name, upload.path, upload.name)
    return name


# How many.


def test_66_workspaces_of_one_user_close_none_of_another() -> None:
    workspaces = Workspaces()
    try:
        mine = workspaces.open("ben")
        others = [workspaces.open("anna") for _ in range(66)]
        assert mine in workspaces
        assert [name in workspaces for name in others] == [False] * (66 - WORKSPACES_PER_USER) + [
            True
        ] * WORKSPACES_PER_USER
        assert len(list(workspaces.private.iterdir())) == WORKSPACES_PER_USER + 1
    finally:
        workspaces.close()


def test_a_workspace_in_use_makes_no_room_and_the_next_one_is_refused(
    workspaces: Workspaces, clock: Clock
) -> None:
    names = [with_table(workspaces, "anna") for _ in range(4)]
    with pytest.raises(NotReady, match=r"^You have 4 workspaces, .* all of them are in use"):
        workspaces.open("anna")
    assert workspaces.open("ben") in workspaces
    clock.now += IN_USE_SECONDS
    workspaces.get(names[0])
    another = workspaces.open("anna")
    assert [name in workspaces for name in (*names, another)] == [True, False, True, True, True]
    assert workspaces.reason_closed(names[1]).startswith("You opened more than 4 workspaces")


def test_a_workspace_whose_job_runs_makes_no_room(workspaces: Workspaces, clock: Clock) -> None:
    names = [workspaces.open("anna") for _ in range(4)]
    end = threading.Event()
    workspaces.start(names[0], "x", lambda _: end.wait(300))
    clock.now += IN_USE_SECONDS
    another = workspaces.open("anna")
    end.set()
    assert [name in workspaces for name in (*names, another)] == [True, False, True, True, True]


def test_the_workspace_that_would_make_room_says_so_in_advance(workspaces: Workspaces, clock: Clock) -> None:
    names = [with_table(workspaces, "anna") for _ in range(3)]
    clock.now += IN_USE_SECONDS
    assert [workspaces.expiry_notice(name) for name in names] == [None] * 3
    names.append(workspaces.open("anna"))
    workspaces.get(names[0])
    notices = [workspaces.expiry_notice(name) for name in names]
    assert [bool(notice) for notice in notices] == [False, True, False, False]
    assert "deleted if you open another" in str(notices[1])


# Expiry.


def test_a_workspace_expires_after_a_notice_and_its_files_are_gone(
    workspaces: Workspaces, clock: Clock
) -> None:
    name = with_table(workspaces, "anna")
    folder = workspaces.get(name).folder
    assert list(folder.iterdir())
    clock.now += 9.4 * HOUR
    workspaces.expire()
    assert workspaces.expiry_notice(name) is None
    clock.now += 0.3 * HOUR
    workspaces.expire()
    assert workspaces.expiry_notice(name) == "This workspace is deleted in 18 minutes unless it is used."
    clock.now += 0.4 * HOUR
    workspaces.expire()
    assert name not in workspaces
    assert not list(workspaces.private.iterdir())
    assert workspaces.reason_closed(name) == "Nobody used it for 10 hours."


def test_use_and_work_keep_a_workspace(workspaces: Workspaces, clock: Clock) -> None:
    used, busy, idle = (workspaces.open("anna") for _ in range(3))
    end = threading.Event()
    job = workspaces.start(busy, "x", lambda _: end.wait(300))
    for _ in range(3):
        clock.now += 6 * HOUR
        workspaces.get(used)
        workspaces.expire()
    assert [name in workspaces for name in (used, busy, idle)] == [True, True, False]
    end.set()
    assert job.wait_for_thread(300)
    clock.now += 9 * HOUR
    workspaces.expire()
    assert busy in workspaces  # its time begins when its work ends
    clock.now += HOUR
    with pytest.raises(Unknown):  # at the moment it is asked for, too
        workspaces.get(busy)


def test_a_notice_is_no_use(workspaces: Workspaces, clock: Clock) -> None:
    name = workspaces.open("anna")
    for _ in range(10):
        clock.now += HOUR
        workspaces.expiry_notice(name)
    workspaces.expire()
    assert name not in workspaces


# Deleted at once.


def test_a_deleted_workspace_leaves_nothing_on_disk_even_where_work_still_writes(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = with_table(workspaces, "anna")
    folder = workspaces.get(name).folder
    going, go = threading.Event(), threading.Event()
    written: list[Path] = []

    def stubborn(_: Any) -> None:
        going.set()
        go.wait(300)
        folder.mkdir(parents=True)
        (folder / "late.csv").write_text("34,Bern")
        written.append(folder / "late.csv")

    removed = threading.Event()
    rmtree = home.shutil.rmtree

    def count_removals(path: Path, **options: Any) -> None:
        rmtree(path, **options)
        if written:
            removed.set()

    monkeypatch.setattr(home.shutil, "rmtree", count_removals)
    workspaces.start(name, "x", stubborn)
    assert going.wait(300)
    workspaces.delete(name)
    assert not list(workspaces.private.iterdir())
    go.set()
    assert removed.wait(300)
    assert written
    assert not written[0].exists()


def test_the_api_deletes_a_workspace(tmp_path: Path) -> None:
    with running() as studio, studio.client() as client:
        custodian = Custodian(client)
        answer = client.post(custodian.url("upload"), content=b"age\n1\n2\n")
        custodian.ended(answer.json())
        folder = studio.workspaces.get(custodian.workspace).folder
        assert custodian.state()["expires_after"] == 24 * HOUR
        assert folder.exists()
        assert client.delete(custodian.url()).status_code == 204
        assert not list(studio.workspaces.private.iterdir())
        assert client.get(custodian.url()).status_code == 404
        assert client.delete(custodian.url()).status_code == 404


def test_too_many_workspaces_are_refused_by_the_api() -> None:
    with running(workspaces_per_user=1) as studio, studio.client() as client:
        custodian = Custodian(client)
        custodian.ended(client.post(custodian.url("upload"), content=b"age\n1\n2\n").json())
        answer = client.post("/api/workspaces")
        assert answer.status_code == 409
        assert "Delete one of them first." in answer.json()["error"]


def test_the_memory_of_a_deleted_workspace_is_freed_at_once(workspaces: Workspaces) -> None:
    name = with_table(workspaces, "anna")
    workspaces.get(name).table.choose_role("age", "other")
    freed = weakref.ref(workspaces.get(name))
    gc.disable()  # it must not wait for a collection of cycles
    try:
        workspaces.delete(name)
        assert freed() is None
    finally:
        gc.enable()
