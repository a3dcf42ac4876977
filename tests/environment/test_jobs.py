"""Jobs and their hooks: how a job ends, who hears of it, and how it is waited for."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tablestore.environment.jobs import Job, Jobs, JobStatus
from tablestore.errors import CommitOutcomeUnknown, InvalidInputError, StorageError, UnsupportedError

CALLS: list[tuple[str, ...]] = []


class Hook:
    """Notes what it is told; ``fails`` names the methods that raise."""

    def __init__(self, name: str = "a", *fails: str) -> None:
        self.name, self.fails = name, fails

    def on_created(self, job_id: str) -> None:
        self._note("created", job_id)

    def on_finished(self, job_id: str) -> None:
        self._note("finished", job_id)

    def on_failed(self, job_id: str, error: BaseException) -> None:
        self._note("failed", job_id, str(error))

    def on_canceled(self, job_id: str) -> None:
        self._note("canceled", job_id)

    def _note(self, what: str, *more: str) -> None:
        CALLS.append((self.name, what, *more))
        if what in self.fails:
            raise StorageError(f"{self.name} cannot {what}")


class Numbers:
    """Ids that count."""

    def __init__(self) -> None:
        self._last = 0

    def uuid(self) -> str:
        self._last += 1
        return f"job-{self._last}"

    def nonce(self) -> bytes:
        raise NotImplementedError

    def fraction(self) -> float:
        raise NotImplementedError


@pytest.fixture
def calls() -> list[tuple[str, ...]]:
    CALLS.clear()
    return CALLS


@pytest.fixture
def jobs() -> Jobs:
    return Jobs(Numbers())


def fail(error: BaseException) -> Callable[[Any], Any]:
    def work(job: Any) -> Any:
        raise error

    return work


def test_hooks_hear_of_a_job_in_their_order_and_once(jobs: Jobs, calls: list[Any]) -> None:
    assert jobs.run(lambda job: job.id, [Hook("a"), Hook("b")]) == "job-1"
    assert calls == [("a", "created", "job-1"), ("b", "created", "job-1"), ("a", "finished", "job-1"), ("b", "finished", "job-1")]


def test_nothing_has_run_when_on_created_is_called(jobs: Jobs, calls: list[Any]) -> None:
    jobs.run(lambda job: calls.append(("work",)), [Hook()])
    assert [call[-1] if len(call) == 1 else call[1] for call in calls] == ["created", "work", "finished"]


def test_a_failed_job_raises_its_own_error_and_says_what_hooks_raised(jobs: Jobs, calls: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match="wrong rows\na hook of the job failed as well: a cannot failed"):
        jobs.run(fail(InvalidInputError("wrong rows")), [Hook("a", "failed"), Hook("b")])
    assert [call[:2] for call in calls] == [("a", "created"), ("b", "created"), ("a", "failed"), ("b", "failed")]
    with pytest.raises(ZeroDivisionError) as raised:
        jobs.run(lambda job: 1 // 0, [Hook("a", "failed")])
    assert raised.value.__notes__ == ["a hook of the job failed as well: a cannot failed"]


def test_a_hook_that_raises_on_creation_fails_the_job_and_nothing_runs(jobs: Jobs, calls: list[Any]) -> None:
    with pytest.raises(StorageError, match="b cannot created"):
        jobs.run(lambda job: calls.append(("work",)), [Hook("a"), Hook("b", "created"), Hook("c")])
    assert [call[:2] for call in calls] == [("a", "created"), ("b", "created"), ("a", "failed"), ("b", "failed")]


def test_a_hook_that_raises_after_the_end_leaves_a_finished_job_finished(
    jobs: Jobs, calls: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert jobs.run(lambda job: 7, [Hook("a", "finished"), Hook("b")]) == 7
    assert calls[-1][:2] == ("b", "finished")
    assert "job-1 has finished, and a hook of it failed" in caplog.text


def test_a_hook_that_cannot_be_pickled_is_refused_before_anything_runs(jobs: Jobs, calls: list[Any]) -> None:
    hook = Hook()
    hook.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match="the hook Hook can not be serialized"):
        jobs.run(lambda job: calls.append(("work",)), [hook])
    assert calls == []


def test_a_job_that_is_canceled_while_it_runs_is_canceled_once(calls: list[Any]) -> None:
    running, interrupted = threading.Event(), threading.Event()
    threads: list[int] = []

    def interrupt(thread: int) -> None:
        threads.append(thread)
        interrupted.set()

    def work(job: Job[None]) -> None:
        running.set()
        assert interrupted.wait(60)
        raise StorageError("the engine gave up")

    job = Jobs(Numbers(), interrupt).start(work, [Hook()])
    assert running.wait(60)
    assert (job.status, job.done()) == (JobStatus.RUNNING, False)
    assert job.cancel()
    with pytest.raises(UnsupportedError, match="job job-1 was canceled") as raised:
        job.result(60)
    assert raised.value.kind == "cancelled"
    assert (job.status, job.done(), job.cancel()) == (JobStatus.CANCELED, True, False)
    assert [call[1] for call in calls] == ["created", "canceled"]
    assert len(threads) == 1 and threads[0] != threading.get_ident()


def test_a_job_that_has_landed_before_it_sees_the_request_is_finished() -> None:
    def work(job: Job[int]) -> int:
        job.cancel()
        return 7

    job: Job[int] = Job("j", work)
    assert (job.run(), job.status) == (7, JobStatus.FINISHED)


def test_a_job_that_is_canceled_before_it_runs_does_nothing(calls: list[Any]) -> None:
    job: Job[None] = Job("j", lambda job: calls.append(("work",)), hooks=[Hook()])
    job.cancel()
    with pytest.raises(UnsupportedError):
        job.run()
    assert (job.status, calls) == (JobStatus.CANCELED, [])


def test_whether_a_commit_landed_is_not_hidden_by_the_request_to_cancel() -> None:
    def work(job: Job[None]) -> None:
        job.cancel()
        raise CommitOutcomeUnknown("maybe it landed")

    job: Job[None] = Job("j", work)
    with pytest.raises(CommitOutcomeUnknown):
        job.run()
    assert job.status is JobStatus.CANCELED


def test_a_statement_that_the_engine_ended_or_ctrl_c_cancels_the_job(jobs: Jobs, calls: list[Any]) -> None:
    for error in (UnsupportedError("ended", kind="cancelled"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            jobs.run(fail(error), [Hook()])
    assert [call[1] for call in calls] == ["created", "canceled"] * 2


def test_a_job_is_awaited_and_a_task_that_stops_waiting_does_not_end_it(jobs: Jobs) -> None:
    go_on = threading.Event()

    def work(job: Job[int]) -> int:
        assert go_on.wait(60)
        return 7

    async def both() -> int:
        job = jobs.start(work)
        waiting = asyncio.ensure_future(_await(job))
        await asyncio.sleep(0)
        waiting.cancel()
        go_on.set()
        return await job

    assert asyncio.run(both()) == 7


async def _await(job: Job[int]) -> int:
    return await job


def test_waiting_for_a_job_ends_after_the_timeout_and_the_job_goes_on(jobs: Jobs) -> None:
    go_on = threading.Event()
    job = jobs.start(lambda job: go_on.wait(60))
    with pytest.raises(TimeoutError, match=f"job {job.id} has not ended after 0 s"):
        job.result(0)
    assert not job.wait(0)
    go_on.set()
    assert job.result(60) and job.wait(60)
    jobs.wait()


def test_a_job_whose_error_nobody_asks_for_ends_quietly(jobs: Jobs, capfd: pytest.CaptureFixture[str]) -> None:
    job = jobs.start(fail(StorageError("lost")))
    assert job.wait(60)
    assert (job.status, repr(job)) == (JobStatus.FAILED, "Job('job-1', FAILED)")
    assert capfd.readouterr() == ("", "")
