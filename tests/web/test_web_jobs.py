"""Jobs: slots that users share, work that is stopped, and numbers that a browser can read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
pytest.importorskip("uvicorn", reason="the studio needs shoal[web]")
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from shoal.engines.duckdb.engine import DuckDb
from shoal.web.actions import JobAnswer
from shoal.web.workspace.jobs import Job, Jobs, Slot, Slots
from shoal.workflow.session import choose_engine
from studio import Custodian, running


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    created = Jobs()
    yield created
    created.close()


class Endless:
    """Work that runs until it is told to end."""

    def __init__(self) -> None:
        self.begun, self.end = threading.Event(), threading.Event()

    def __call__(self, _: Any) -> None:
        self.begun.set()
        self.end.wait(600)


@pytest.fixture
def endless() -> Iterator[Callable[[], Endless]]:
    made: list[Endless] = []

    def create() -> Endless:
        made.append(Endless())
        return made[-1]

    yield create
    for work in made:
        work.end.set()


# Slots.


def test_endless_jobs_of_one_user_do_not_stop_another(jobs: Jobs, endless: Callable[[], Endless]) -> None:
    attacks = [endless() for _ in range(12)]
    for number, attack in enumerate(attacks):
        jobs.start(f"workspace {number}", "x", attack, user="anna")
    assert all(attack.begun.wait(300) for attack in attacks[:3])
    assert jobs.start("elsewhere", "x", lambda _: 42, user="ben").wait(300)
    assert not any(attack.begun.is_set() for attack in attacks[3:])


def test_a_job_that_cannot_be_stopped_does_not_stop_another_user(
    jobs: Jobs, endless: Callable[[], Endless], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.web.workspace.jobs.PATIENCE", 0.0)
    for number in range(6):  # three are abandoned, three more hold the slots
        work = endless()
        job = jobs.start(f"workspace {number}", "x", work, user="anna")
        assert work.begun.wait(300)
        job.cancel()
        assert job.wait(300)
    mine = endless()
    stuck = jobs.start("elsewhere", "x", mine, user="ben")
    assert mine.begun.wait(300)
    stuck.cancel()
    assert stuck.wait(300)
    assert jobs.start("elsewhere", "y", lambda _: 42, user="ben").wait(300)


def test_waiting_jobs_of_the_user_with_the_fewest_running_ones_are_first() -> None:
    slots = Slots(at_once=3, most=4)
    first = [slots.request("anna") for _ in range(3)]
    waiting = slots.request("anna")
    one, other = slots.request("ben"), slots.request("ben")
    assert [slot.state for slot in (*first, one)] == ["running"] * 4
    assert (waiting.state, other.state) == ("waiting", "waiting")
    cleo = slots.request("cleo")
    assert cleo.state == "waiting"  # as many as may run in all
    first[0].leave()
    assert cleo.state == "running"
    first[1].leave()
    assert (waiting.state, other.state) == ("waiting", "waiting")  # three run
    cleo.leave()
    assert (waiting.state, other.state) == ("running", "waiting")  # the older one, of users with one each


@settings(max_examples=examples(2000))
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(["request", "leave", "abandon"]))))
def test_a_user_without_a_running_job_waits_only_where_all_slots_are_taken(
    steps: list[tuple[str, str]],
) -> None:
    slots = Slots(at_once=2, most=4)
    present: list[Slot] = []
    for user, step in steps:
        mine = [slot for slot in present if slot.user == user]
        if step == "request":
            present.append(slots.request(user))
        elif step == "leave" and mine:
            mine[0].leave()
            present.remove(mine[0])
        elif mine:
            mine[0].abandon()
        running = [slot.user for slot in present if slot.state == "running"]
        abandoned = [slot.user for slot in present if slot.state == "abandoned"]
        assert len(running) <= 4
        assert len(abandoned) <= 4
        for waiting in (slot for slot in present if slot.state == "waiting"):
            assert len(running) == 4 or (waiting.user in running and len(running) >= 2)


def test_what_one_user_ended_does_not_make_another_job_unknown(jobs: Jobs) -> None:
    job = jobs.start("ben's", "x", lambda _: 42, user="ben")
    assert job.wait(300)
    for _ in range(60):
        assert jobs.start("anna's", "x", lambda _: 1, user="anna").wait(300)
    assert jobs.job("ben's", job.id) is job


def test_many_who_wait_for_a_job_keep_nobody_from_an_answer(
    endless: Callable[[], Endless], monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, find = threading.Semaphore(0), Jobs.job

    def job_of(self: Jobs, workspace: str, name: str) -> Job:
        arrived.release()
        return find(self, workspace, name)

    monkeypatch.setattr(Jobs, "job", job_of)
    with running() as studio, studio.client() as client:
        custodian, work = Custodian(client), endless()
        job = studio.workspaces.start(custodian.workspace, "x", work)
        path, session = custodian.url(f"jobs/{job.id}"), dict(client.headers)
        answers: list[int] = []

        def wait() -> None:
            with studio.anyone(headers=session) as other:
                answers.append(other.get(path, params={"wait": 30}).status_code)

        threads = [threading.Thread(target=wait) for _ in range(60)]
        for thread in threads:
            thread.start()
        try:
            assert all(arrived.acquire(timeout=300) for _ in range(60))
            assert custodian.state()["jobs"][0]["status"] == "running"
        finally:
            work.end.set()
            for thread in threads:
                thread.join(300)
    assert answers == [200] * 60


# Work that is stopped.


def test_a_query_that_begins_after_the_cancel_is_ended_too(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.web.workspace.jobs.PATIENCE", 0.0)
    going, cancelled = threading.Event(), threading.Event()
    ended: list[str] = []

    def work(_: Any) -> None:
        engine = choose_engine("duckdb", None)
        assert isinstance(engine, DuckDb)
        database = engine.connection
        going.set()
        assert cancelled.wait(300)  # before that, `job` may have no value yet
        assert job.wait(300)  # it is given up
        try:
            with engine.translate_errors():
                database.execute("SELECT sum(a.range * b.range % 7) FROM range(200_000) a, range(200_000) b")
        except KeyboardInterrupt:
            ended.append("the query")
            raise

    job = jobs.start("workspace", "x", work)
    assert going.wait(300)
    job.cancel()
    cancelled.set()
    assert job.wait_for_thread(300)
    assert (job.status, ended) == ("cancelled", ["the query"])


# Numbers.


@pytest.mark.parametrize("total", [2**53, 2**64, 3**300])
def test_a_total_that_a_browser_cannot_count_is_unknown(jobs: Jobs, total: int) -> None:
    going, go = threading.Event(), threading.Event()

    def work(tell: Any) -> None:
        tell("search", total - 1, total)
        going.set()
        go.wait(300)

    job: Job = jobs.start("workspace", "x", work)
    assert going.wait(300)
    answer = JobAnswer.model_validate(job, from_attributes=True)
    go.set()
    assert (answer.done, answer.total) == (2**53 - 1, None)
    assert json.loads(answer.model_dump_json())["done"] < 2**53
