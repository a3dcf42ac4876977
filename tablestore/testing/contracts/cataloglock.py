"""Holds a catalog lock to what it promises: tests to subclass.

    class TestMine(CatalogLockContract):
        @pytest.fixture
        def lock(self, tmp_path):
            return MyLock(tmp_path)

        @pytest.fixture
        def impatient(self, tmp_path):
            return MyLock(tmp_path, timeout_s=0.1)

Other processes get the lock pickled, so its class has to lie in a module that they can import.
"""

import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tablestore.errors import StorageError
from tablestore.io.lock.cataloglock import CatalogLock

_HOLDER = """
import pickle, sys

def hold():
    print("held", flush=True)
    sys.stdin.read()

pickle.loads(bytes.fromhex(sys.argv[1])).run_with_lock("db/t", hold)
"""


class CatalogLockContract:
    """One at a time for each place, and free again when its holder is gone."""

    @pytest.fixture
    def lock(self) -> CatalogLock:
        """A lock that waits long enough for twenty others to finish."""
        raise NotImplementedError("override the fixture `lock`")

    @pytest.fixture
    def impatient(self) -> CatalogLock:
        """The same locks, asked for by one that soon gives up."""
        raise NotImplementedError("override the fixture `impatient`")

    def test_the_result_and_the_error_of_what_ran_come_through(self, impatient: CatalogLock) -> None:
        assert impatient.run_with_lock("db/t", lambda: 42) == 42
        with pytest.raises(ZeroDivisionError) as kept:  # its traceback keeps the frame, and all that is in it, alive
            impatient.run_with_lock("db/t", lambda: 1 // 0)
        assert impatient.run_with_lock("db/t", lambda: "free again") == "free again"
        assert kept.tb is not None

    def test_one_at_a_time_among_threads(self, lock: CatalogLock) -> None:
        inside = threading.Semaphore(1)
        total = 0

        def work() -> None:
            nonlocal total
            assert inside.acquire(blocking=False), "two were inside at once"
            total += 1
            inside.release()

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(lock.run_with_lock, "db/t", work) for _ in range(20)]:
                done.result()
        assert total == 20

    def test_places_do_not_wait_for_each_other(self, impatient: CatalogLock) -> None:
        for other in ("db/u", "other/t", "db/t/deeper"):
            inner = partial(impatient.run_with_lock, other, lambda: "both")
            assert impatient.run_with_lock("db/t", inner) == "both"

    def test_a_lock_that_is_not_free_ends_in_a_time_out_without_running(self, lock: CatalogLock, impatient: CatalogLock) -> None:
        ran: list[str] = []

        def attempt() -> None:
            # Another thread, as a second writer would be.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(impatient.run_with_lock, "db/t", lambda: ran.append("ran")).result()

        with pytest.raises(StorageError) as failed:
            lock.run_with_lock("db/t", attempt)
        assert failed.value.kind == "lock-timeout"
        assert ran == []

    def test_another_process_is_kept_out_and_its_death_frees_the_lock(self, lock: CatalogLock, impatient: CatalogLock) -> None:
        code = pickle.dumps(lock).hex()
        holder = subprocess.Popen([sys.executable, "-c", _HOLDER, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(StorageError) as failed:
                impatient.run_with_lock("db/t", lambda: None)
            assert failed.value.kind == "lock-timeout"
            holder.kill()
            holder.wait()
            assert lock.run_with_lock("db/t", lambda: "mine") == "mine"
