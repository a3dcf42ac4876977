"""The suite of everybody who follows a table, on the file store. The same runs over topics in tests/integration/kafka."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.testing.contracts.following import Following, make_table


class TestFileStore(Following):
    @pytest.fixture
    def new_table(self, tmp_path: Path) -> Callable[..., ts.Table]:
        return partial(make_table, str(tmp_path))
