"""The lives of a table over a log are tested themselves: an engine with a planted bug fails one of them."""

import pytest

from tablestore.errors import TablestoreError
from tablestore.testing.night.planted.logbugs import BUGS, FIRST
from tests.simulation.test_log_lives import play

MOST_SEEDS = 60


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[name](monkeypatch)
    with pytest.raises((AssertionError, TablestoreError)):
        for number in range(MOST_SEEDS):
            play((FIRST[name] + number) % MOST_SEEDS)
