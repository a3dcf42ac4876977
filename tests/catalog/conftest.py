"""A PostgreSQL server for the tests of this folder, started by the first one that needs it."""

import importlib.util
import os
from collections.abc import Iterator

import pytest

from tests.support.servers.postgres import FIX, PostgresServer, PostgresUnavailable
from tests.support.services import require_service


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    try:
        if importlib.util.find_spec("psycopg") is None:
            raise PostgresUnavailable("the package psycopg is not installed")
        server = PostgresServer()
        server.start()
    except PostgresUnavailable as error:
        require_service(str(error), FIX, env=os.environ)
    yield server
    server.stop()
