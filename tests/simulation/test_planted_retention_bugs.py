"""The schedules of clean and expiry are tested themselves: an engine with a planted bug fails one of them."""

import pytest

from tablestore.errors import TablestoreError
from tablestore.testing.night.keepers import Keepers
from tablestore.testing.night.planted.retentionbugs import BUGS, FIRST

MOST_SEEDS = 160


@pytest.mark.deep
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[name](monkeypatch)
    with pytest.raises((AssertionError, TablestoreError, KeyError)):
        for number in range(MOST_SEEDS):
            Keepers((FIRST.get(name, 0) + number) % MOST_SEEDS).run()
