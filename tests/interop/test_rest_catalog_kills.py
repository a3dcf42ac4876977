"""Clients of three kinds commit to one table, through the service and beside it, while the service is killed and started again.

A client that gets an error looks whether its commit is in the table, by its user and identifier, and repeats it if not: as one does
whose commit has an unknown outcome. In the end each row is there once.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import setup_oracles
from oracles import JavaOracle, Oracle, OracleDied, OracleError, PypaimonOracle

import tablestore as ts
from tests.support.servers.catalogservice import CatalogService

pytestmark = [pytest.mark.interop, pytest.mark.deep]

COLUMNS = [{"name": "id", "type": "BIGINT"}, {"name": "v", "type": "STRING"}]
_MOST_TRIES = 60


class Progress:
    """The commits that were acknowledged so far, and who waits for more of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.ids: set[int] = set()
        self.errors: list[BaseException] = []
        self.repeats = 0

    def landed(self, row_id: int) -> None:
        with self._changed:
            self.ids.add(row_id)
            self._changed.notify_all()

    def failed(self, error: BaseException) -> None:
        with self._changed:
            self.errors.append(error)
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.ids) >= count or bool(self.errors), timeout=300)


def has_landed(table: Path, user: str, identifier: int) -> bool:
    snapshots = ts.open_table(str(table)).snapshots()  # type: ignore[union-attr]
    return any((one.commit_user, one.commit_identifier) == (user, identifier) for one in snapshots)


def client(service: CatalogService, oracle: Oracle, table: Path, number: int, commits: int, progress: Progress) -> None:
    """Commits a row at a time, until each is known to have landed."""
    user = f"client-{number}"
    try:
        for identifier in range(1, commits + 1):
            row_id = number * 1000 + identifier
            for _ in range(_MOST_TRIES):
                try:
                    oracle.write(table, [{"id": row_id, "v": user}], user=user, identifier=identifier)
                    break
                except (OracleError, OracleDied):
                    if has_landed(table, user, identifier):
                        break
                    progress.repeats += 1
                    service.is_up.wait(60)
            else:
                raise AssertionError(f"{user} could not commit {identifier}")
            progress.landed(row_id)
    except BaseException as error:
        progress.failed(error)


def client_beside(table: Path, number: int, commits: int, progress: Progress) -> None:
    """Commits straight to the files."""
    try:
        opened = ts.open_table(str(table))
        for identifier in range(1, commits + 1):
            opened.append([{"id": number * 1000 + identifier, "v": f"beside-{number}"}])  # type: ignore[union-attr]
            progress.landed(number * 1000 + identifier)
    except BaseException as error:
        progress.failed(error)


@pytest.fixture
def started(interpreter: Callable[[str], Path], java: JavaOracle) -> Iterator[Callable[[int, int], list[Oracle]]]:
    """Starts so many clients in Java, and so many of pypaimon."""
    python = interpreter("pypaimon")
    with ExitStack() as stack:

        def start(javas: int, pythons: int) -> list[Oracle]:
            oracles: list[Oracle] = [JavaOracle(setup_oracles.CACHE / "java") for _ in range(javas)]
            oracles += [PypaimonOracle(python, native=False) for _ in range(pythons)]
            for oracle in oracles:
                stack.callback(oracle.close)
            return oracles

        yield start


@pytest.mark.parametrize(
    ("javas", "pythons", "beside", "commits", "kills"),
    [(1, 2, 1, 8, 3), pytest.param(2, 3, 3, 40, 20, marks=pytest.mark.slow)],
)
def test_no_row_is_lost_or_doubled_however_often_the_service_dies(
    started: Callable[[int, int], list[Oracle]], tmp_path: Path, javas: int, pythons: int, beside: int, commits: int, kills: int
) -> None:
    oracles, progress = started(javas, pythons), Progress()
    with CatalogService(tmp_path / "wh", "--grace", "0") as service, ExitStack() as stack:
        table = service.warehouse / "db.db" / "t"
        for oracle in oracles:
            stack.enter_context(oracle.through(service.client_options))
        oracles[-1].create(table, COLUMNS, options={"bucket": "-1", "commit.max-retries": "50"})
        work = [partial(client, service, oracle, table, number, commits, progress) for number, oracle in enumerate(oracles, 1)]
        work += [partial(client_beside, table, 50 + number, commits, progress) for number in range(beside)]
        threads = [threading.Thread(target=one) for one in work]
        for thread in threads:
            thread.start()
        total = len(work) * commits
        for number in range(1, kills + 1):
            progress.wait_for(number * total // (kills + 2))
            service.kill()
            service.start()
        for thread in threads:
            thread.join()
        assert progress.errors == []
        expected = sorted(owner * 1000 + one for owner in (*range(1, len(oracles) + 1), *range(50, 50 + beside))
                          for one in range(1, commits + 1))  # fmt: skip
        assert sorted(progress.ids) == expected
        opened = ts.open_table(str(table))
        assert sorted(opened.to_arrow().column("id").to_pylist()) == expected  # type: ignore[union-attr]
        assert sorted(row["id"] for row in oracles[0].read(table)) == expected
        print(f"{len(expected)} rows, {kills} kills, {progress.repeats} commits repeated")
